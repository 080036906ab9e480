//! Search for the best machine: cheap choices of components or boards first, well-known topologies, then exhaustive enumeration,
//! then local search from the best machine.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Demands, Error, Node, SystemGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use hopmap_routing::error::fail;
use hopmap_routing::problem::{Rules, TOLERANCE};

use super::design::{Assembly, Design, extended, families, least, pack};
use super::exact::Exact;
use super::inventory::{Component, Inventory};
use super::judge::{Candidate, Judge, above};

/// Maximum number of choices of units or boards.
const MOST_CHOICES: usize = 200_000;
/// Maximum number of boards in well-known topologies.
const MOST_BOARDS: usize = 128;

/// The best machine with its cost, and whether optimality or infeasibility is proven.
pub(super) fn search(judge: &mut Judge<'_>, seed: u64) -> Result<(Option<(SystemGraph, f64)>, bool), Error> {
    let (all, inventory) = (judge.left, judge.inventory);
    // A quarter of the candidates is for well-known topologies.
    judge.left = all / 4;
    let possible = well_known(judge)?;
    judge.left = all.saturating_sub(judge.looked) * 3 / 4;
    judge.unsure = false;
    let mut is_complete = true;
    for (cost, counts) in &possible {
        if judge.is_dear(*cost) {
            break;
        }
        is_complete &= !judge.is_over();
        if is_complete {
            let assembly = Assembly::new(inventory, counts);
            let exact = Exact::new(&assembly, judge);
            is_complete &= exact.map_or(Ok(false), |mut exact| exact.search())?;
        }
    }
    let proven = is_complete && !judge.unsure;
    judge.left = all.saturating_sub(judge.looked);
    if !proven {
        let mut random = Pcg64::from_seed(seed_stream("route/build", seed, 0));
        if inventory.is_fixed() {
            fill(judge, &possible, &mut random)?;
        }
        climb(judge, &mut random)?;
    }
    Ok((judge.found.take().map(|best| finished(best, judge)), proven))
}

/// A choice: the number of components of every kind, and a lower bound of its cost.
type Choice = (f64, Vec<usize>);

/// All choices, the cheapest first; of alike components the first ones are used.
fn choices(judge: &Judge<'_>) -> Result<Vec<Choice>, Error> {
    let inventory = judge.inventory;
    let processes = &judge.graph.demands.processes;
    // Components to which processes are fixed are always included.
    let is_named =
        |unit: &Component| processes.iter().any(|process| process.host.as_ref() == Some(&unit.node.name));
    let (what, ranges): (&str, Vec<_>) = match inventory.is_fixed() {
        true => {
            let boards = inventory.fixed_boards.iter();
            ("boards", boards.map(|kind| usize::from(kind.is_named)..=kind.names.len()).collect())
        }
        false => {
            let least = |class: &[Component]| usize::from(class.len() == 1 && is_named(&class[0]));
            ("units", inventory.classes().map(|class| least(class)..=class.len()).collect())
        }
    };
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for range in ranges {
        if choices.len() * range.clone().count() > MOST_CHOICES {
            return fail(
                format!("the inventory allows more than {MOST_CHOICES} choices of {what}"),
                "use fewer components of each kind, or fewer kinds",
            );
        }
        choices = extended(&choices, |_| range.clone().collect());
    }
    // A host without a process is useless, unless another one may fail.
    let processes = judge.graph.ranks();
    let most = if judge.survives.is_empty() { processes } else { processes * 2 + 1 };
    let is_useful = |choice: &Vec<usize>| {
        let hosts: usize = choice[..inventory.nodes.len()].iter().sum();
        inventory.is_fixed() || (hosts <= most && (hosts > 0 || processes == 0))
    };
    choices.retain(is_useful);
    let mut choices: Vec<Choice> =
        choices.into_iter().map(|counts| (least_cost(inventory, &counts), counts)).collect();
    let count = |choice: &Choice| choice.1.iter().sum::<usize>();
    choices.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| count(a).cmp(&count(b))));
    Ok(choices)
}

/// Lower bound of the cost of a choice.
fn least_cost(inventory: &Inventory, counts: &[usize]) -> f64 {
    if inventory.is_fixed() {
        let boards = inventory.fixed_boards.iter().zip(counts);
        return boards.map(|(kind, &count)| kind.cost * count as f64).sum();
    }
    let units = inventory.classes().zip(counts).flat_map(|(class, &count)| &class[..count]);
    units.map(|unit| unit.cost).sum::<f64>() + least(&inventory.boards, counts.iter().sum())
}

/// Tries well-known topologies; returns the choices that may be sufficient.
fn well_known(judge: &mut Judge<'_>) -> Result<Vec<Choice>, Error> {
    let inventory = judge.inventory;
    let needed: f64 = judge.graph.demands.processes.iter().map(|demand| demand.performance).sum();
    let is_too_weak = |counts: &[usize]| {
        let boards = inventory.fixed_boards.iter().zip(counts);
        let there: f64 = boards.map(|(kind, &count)| kind.performance() * count as f64).sum();
        inventory.is_fixed() && needed > there * (1.0 + TOLERANCE)
    };
    let are_free = inventory.cable_cost <= 0.0;
    let mut stars = BTreeMap::new();
    let mut possible = Vec::new();
    for (cost, counts) in choices(judge)? {
        if judge.is_dear(cost) {
            break;
        }
        if is_too_weak(&counts) {
            continue;
        }
        if !judge.is_over() {
            let assembly = Assembly::new(inventory, &counts);
            if !is_possible(judge, &assembly.hosts(), needed, &mut stars)? {
                continue;
            }
            let designs = match inventory.is_fixed() {
                true => shapes(&assembly, are_free),
                false => families(&assembly.units, are_free),
            };
            for design in designs {
                if judge.is_over() {
                    break;
                }
                judge.offer(&assembly, &design)?;
            }
        }
        possible.push((cost, counts));
    }
    Ok(possible)
}

/// Whether hosts would suffice if one ideal switch connected them all.
fn is_possible(
    judge: &mut Judge<'_>,
    hosts: &[Component],
    needed: f64,
    stars: &mut BTreeMap<Vec<usize>, bool>,
) -> Result<bool, Error> {
    let there: f64 = hosts.iter().filter_map(|unit| unit.node.traits.performance).sum();
    if needed > there * (1.0 + TOLERANCE) {
        return Ok(false);
    }
    let key: Vec<usize> = hosts.iter().map(|unit| unit.class).collect();
    if let Some(&known) = stars.get(&key) {
        return Ok(known);
    }
    let rules = judge.rules;
    let survives = std::mem::take(&mut judge.survives);
    judge.rules = Rules { switch_load: None, ..rules };
    let possible = judge.may_do(&star(hosts, &judge.graph.demands), &BTreeSet::new());
    (judge.rules, judge.survives) = (rules, survives);
    let possible = possible?;
    stars.insert(key, possible);
    Ok(possible)
}

/// The machine in which one ideal switch connects all hosts, each by a cable with the bandwidth of all its ports.
pub(super) fn star(hosts: &[Component], demands: &Demands) -> SystemGraph {
    let node = Node::switch("the network");
    let switch = Component { class: 0, node, ports: u32::MAX, bandwidth: f64::INFINITY, cost: 0.0 };
    let assembly = Assembly::of(hosts.iter().cloned().chain([switch]).collect());
    let mut design = Design::new(&assembly.units);
    // A host on a board may have no links.
    let is_joined = |host: &usize| hosts[*host].bandwidth > 0.0;
    (0..hosts.len()).filter(is_joined).for_each(|host| design.add(host, hosts.len()));
    assembly.system(&design, demands)
}

/// Boards in well-known topologies, each treated as a switch, in both orders. If cables are free, all remaining connectors get
/// parallel ones; otherwise both variants are tried.
fn shapes(assembly: &Assembly, are_free: bool) -> Vec<Design<'_>> {
    let count = assembly.kinds.len();
    if count > MOST_BOARDS {
        return Vec::new();
    }
    let connectors = |board: usize| -> u32 {
        let units = assembly.units.iter().zip(&assembly.board_of);
        units.filter(|(_, of)| **of == board).map(|(unit, _)| unit.ports).sum()
    };
    let board = |board: usize| Component {
        class: assembly.kinds[board],
        node: Node::switch("a board"),
        ports: connectors(board),
        bandwidth: f64::INFINITY,
        cost: 0.0,
    };
    let mut designs: Vec<Design<'_>> = Vec::new();
    for order in [(0..count).collect::<Vec<_>>(), (0..count).rev().collect()] {
        let boards: Vec<Component> = order.iter().map(|&number| board(number)).collect();
        for thick in [false, true].into_iter().filter(|thick| *thick || !are_free) {
            let shapes = families(&boards, thick).into_iter();
            designs.extend(shapes.filter_map(|shape| plug(assembly, &shape, &order)));
        }
    }
    let mut seen = BTreeSet::new();
    designs.retain(|design| seen.insert(design.cables.clone()));
    designs
}

/// The cables of a topology at connectors: the widest ones first, and those between the same chips last. None if two adjacent
/// boards cannot be connected.
fn plug<'a>(assembly: &'a Assembly, shape: &Design<'_>, order: &[usize]) -> Option<Design<'a>> {
    let mut design = Design::new(&assembly.units);
    let units =
        |board: usize| (0..assembly.units.len()).filter(move |unit| assembly.board_of[*unit] == order[board]);
    for (&(one, other), &cables) in &shape.cables {
        for cable in 0..cables {
            let free = |unit: &usize| design.free(*unit) > 0;
            let pairs = units(one).filter(free).flat_map(|a| units(other).filter(free).map(move |b| (a, b)));
            let width = |(a, b): (usize, usize)| assembly.width(a, b);
            let best = pairs.filter(|&(a, b)| assembly.may_join(a, b)).min_by(|&x, &y| {
                let used = |(a, b)| design.between(a, b);
                width(y).total_cmp(&width(x)).then_with(|| used(x).cmp(&used(y))).then(x.cmp(&y))
            });
            match best {
                Some((a, b)) => design.add(a, b),
                None if cable == 0 => return None,
                None => break,
            }
        }
    }
    Some(design)
}

/// Random cabling until a machine is sufficient, if none is known.
fn fill(judge: &mut Judge<'_>, possible: &[Choice], random: &mut Pcg64) -> Result<(), Error> {
    let inventory = judge.inventory;
    for (_, counts) in possible.iter().cycle() {
        if judge.found.is_some() || judge.is_over() {
            break;
        }
        let assembly = Assembly::new(inventory, counts);
        let mut design = Design::new(&assembly.units);
        let mut free: Vec<usize> = (0..assembly.units.len())
            .flat_map(|unit| std::iter::repeat_n(unit, assembly.units[unit].ports as usize))
            .collect();
        while let Some(a) = (!free.is_empty()).then(|| free.swap_remove(random.index(free.len()))) {
            let others: Vec<usize> = (0..free.len()).filter(|&b| assembly.may_join(a, free[b])).collect();
            let is_full = inventory.cables.is_some_and(|most| design.count() >= most);
            if let Some(&b) = others.get(random.index(others.len())).filter(|_| !is_full) {
                design.add(a, free.swap_remove(b));
            }
        }
        judge.offer(&assembly, &design)?;
    }
    Ok(())
}

/// Local search from the best machine: a cable is moved, or a cable between boards removed, if the machine does not get worse.
fn climb(judge: &mut Judge<'_>, random: &mut Pcg64) -> Result<(), Error> {
    let inventory = judge.inventory;
    let Some(mut here) = judge.found.clone() else { return Ok(()) };
    let assembly = Assembly::new(inventory, &here.counts);
    // Ends when the unsuccessful attempts equal the remaining steps.
    for _ in 0..judge.left {
        if judge.is_over() || here.cables.is_empty() {
            break;
        }
        let mut design = Design { units: &assembly.units, cables: here.cables.clone() };
        let from = design.cables.keys().copied().nth(random.index(design.cables.len()));
        if let Some((a, b)) = from {
            design.join(a, b, design.between(a, b) - 1);
        }
        let is_less = inventory.is_fixed() && inventory.cable_cost > 0.0 && random.index(2) == 0;
        if !is_less {
            let free: Vec<usize> = (0..assembly.units.len()).filter(|&unit| design.free(unit) > 0).collect();
            let drawn = [random.index(free.len()), random.index(free.len())];
            let [Some(&a), Some(&b)] = drawn.map(|place| free.get(place)) else { break };
            if !assembly.may_join(a, b) || from == Some((a.min(b), a.max(b))) {
                continue;
            }
            design.add(a, b);
        }
        let found = judge.better(None, &assembly, &design)?;
        let Some(found) = found.filter(|found| !above(found.cost, here.cost)) else { continue };
        if found.is_better_than(judge.found.as_ref()) {
            judge.found = Some(found.clone());
        }
        let is_cheaper = inventory.is_fixed() && above(here.cost, found.cost);
        if is_cheaper || !above(found.objective, here.objective) {
            here = found;
        }
    }
    Ok(())
}

/// The machine and its cost, with the names of boards. If nothing may fail, cables without routes are removed, except those of
/// hosts.
fn finished(best: Candidate, judge: &Judge<'_>) -> (SystemGraph, f64) {
    let inventory = judge.inventory;
    let mut assembly = Assembly::new(inventory, &best.counts);
    let units = assembly.units.clone();
    let design = Design { units: &units, cables: best.cables };
    let packing = pack(&inventory.boards, &design).unwrap_or_default();
    for (node, &(kind, number)) in assembly.parts.nodes.iter_mut().zip(&packing.boards) {
        // Hosts to which processes are fixed keep their names.
        if !judge.graph.demands.processes.iter().any(|process| process.host.as_ref() == Some(&node.name)) {
            node.name = format!("{}_{}", inventory.boards[kind].names[number], node.name);
        }
    }
    let system = assembly.system(&design, &judge.graph.demands);
    if !judge.survives.is_empty() || (judge.should_stop)() {
        return (system, best.cost);
    }
    let Ok(Some(answer)) = judge.answer(&system) else { return (system, best.cost) };
    let mut used = vec![false; design.count() as usize];
    for &link in answer.routes.routes.iter().flat_map(|route| &route.links) {
        // The two directions of a cable are adjacent.
        let cable = (link as usize).checked_sub(assembly.parts.links.len()).map(|link| link / 2);
        cable.and_then(|cable| used.get_mut(cable)).into_iter().for_each(|used| *used = true);
    }
    let mut used = used.into_iter();
    let mut thin = Design::new(&units);
    for (&(a, b), &cables) in &design.cables {
        let needed = used.by_ref().take(cables as usize).filter(|used| *used).count() as u32;
        let least = u32::from(!inventory.is_fixed() && assembly.is_host(a));
        thin.join(a, b, needed.max(least));
    }
    let cost = match inventory.is_fixed() {
        true => assembly.cost + inventory.cable_cost * f64::from(thin.count()),
        false => best.cost - inventory.cable_cost * f64::from(design.count() - thin.count()),
    };
    let thinned = assembly.system(&thin, &judge.graph.demands);
    // Limits may prevent the search from finding its own result again.
    match judge.answer(&thinned) {
        Ok(Some(_)) => (thinned, cost),
        Ok(None) | Err(_) => (system, best.cost),
    }
}
