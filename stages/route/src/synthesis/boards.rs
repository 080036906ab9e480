//! The best machine of boards with known contents: what is on them is fixed, and cables join their connectors. Cheap boards first,
//! well-known shapes, then all designs, then steps from the best one.

mod assembly;
mod exact;

use std::collections::BTreeMap;

use hopmap_model::{Error, Node, SystemGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use self::assembly::{Found, offer};
use self::exact::Exact;
use crate::CheckError;
use crate::synthesis::design::{Design, families};
use crate::synthesis::judge::{Judge, above, answer_of, is_better};

pub(super) use self::assembly::Assembly;
use crate::synthesis::inventory::{Component, Inventory};
use crate::synthesis::search::is_possible;

/// Most choices of boards.
const MOST_CHOICES: usize = 200_000;
/// Most boards that are joined in well-known ways.
const MOST_BOARDS: usize = 128;

/// The best machine with its cost, and whether there is surely no better one, or none at all.
pub(super) fn search(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    seed: u64,
) -> Result<(Option<(SystemGraph, f64)>, bool), Error> {
    let all = judge.left;
    let mut best = None;
    // A quarter of what may be looked at is for well-known ways.
    judge.left = all / 4;
    let possible = well_known(judge, inventory, &mut best)?;
    judge.left = all.saturating_sub(judge.looked) * 3 / 4;
    judge.unsure = false;
    let mut whole = true;
    for counts in &possible {
        if best.as_ref().is_some_and(|best| above(cost(inventory, counts), best.cost)) {
            break;
        }
        whole &= !judge.is_over();
        if whole {
            let assembly = Assembly::new(&inventory.fixed_boards, counts);
            let exact = Exact::new(inventory, counts, &assembly, judge);
            whole &= exact.map_or(Ok(false), |mut exact| exact.search(&mut best))?;
        }
    }
    let proven = whole && !judge.unsure;
    judge.left = all.saturating_sub(judge.looked);
    if !proven {
        let mut random = Pcg64::from_seed(seed_stream("route/build", seed, 0));
        fill(judge, inventory, &possible, &mut random, &mut best)?;
        climb(judge, inventory, &mut random, &mut best)?;
    }
    Ok((best.map(|best| finished(best, inventory, judge)), proven))
}

fn cost(inventory: &Inventory, counts: &[usize]) -> f64 {
    inventory.fixed_boards.iter().zip(counts).map(|(kind, &count)| kind.cost * count as f64).sum()
}

/// How many boards of every type there may be, cheap choices first.
fn choices(inventory: &Inventory) -> Result<Vec<Vec<usize>>, Error> {
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for kind in &inventory.fixed_boards {
        let counts = usize::from(kind.is_named)..=kind.names.len();
        if choices.len() * counts.clone().count() > MOST_CHOICES {
            return Err(CheckError::new(
                format!("the kit leaves more than {MOST_CHOICES} choices of boards"),
                "fewer of each, or fewer kinds",
            )
            .into());
        }
        let longer = |choice: &Vec<usize>| {
            let choice = choice.clone();
            counts.clone().map(move |count| choice.iter().copied().chain([count]).collect())
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    let boards = |choice: &Vec<usize>| choice.iter().sum::<usize>();
    choices.sort_by(|a, b| {
        cost(inventory, a).total_cmp(&cost(inventory, b)).then_with(|| boards(a).cmp(&boards(b)))
    });
    Ok(choices)
}

/// Joins boards in well-known ways; the choices of boards that may do.
fn well_known(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    best: &mut Option<Found>,
) -> Result<Vec<Vec<usize>>, Error> {
    let needed: f64 = judge.graph.demands.processes.iter().map(|demand| demand.performance).sum();
    let there = |counts: &[usize]| -> f64 {
        inventory
            .fixed_boards
            .iter()
            .zip(counts)
            .map(|(kind, &count)| kind.performance() * count as f64)
            .sum()
    };
    let mut stars = BTreeMap::new();
    let mut possible = Vec::new();
    for counts in choices(inventory)? {
        if best.as_ref().is_some_and(|best| above(cost(inventory, &counts), best.cost)) {
            break;
        }
        if needed > there(&counts) * (1.0 + crate::problem::TOLERANCE) {
            continue;
        }
        if !judge.is_over() {
            let assembly = Assembly::new(&inventory.fixed_boards, &counts);
            if !is_possible(judge, &assembly.hosts(), &mut stars)? {
                continue;
            }
            for design in shapes(&assembly, inventory.cable_cost <= 0.0) {
                if !judge.is_over() {
                    offer(best, &assembly, &counts, &design, inventory, judge)?;
                }
            }
        }
        possible.push(counts);
    }
    Ok(possible)
}

/// Boards joined in well-known ways, as if each were a switch, in their order and the other way round. Where cables are free, all
/// connectors that are left take parallel ones; else there are machines with and without such.
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
            let plugged =
                families(&boards, thick).into_iter().filter_map(|shape| plug(assembly, &shape, &order));
            designs.extend(plugged);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    designs.retain(|design| seen.insert(design.cables.clone()));
    designs
}

/// The cables of a shape at connectors: the widest ones first, and those between the same chips last. Nothing if two boards that
/// have to be joined cannot be.
fn plug<'a>(assembly: &'a Assembly, shape: &Design<'_>, order: &[usize]) -> Option<Design<'a>> {
    let mut design = Design::new(&assembly.units);
    let units =
        |board: usize| (0..assembly.units.len()).filter(move |unit| assembly.board_of[*unit] == order[board]);
    for (&(one, other), &cables) in &shape.cables {
        for cable in 0..cables {
            let free = |unit: &usize| design.free(*unit) > 0;
            let pairs = units(one).filter(free).flat_map(|a| units(other).filter(free).map(move |b| (a, b)));
            let width = |(a, b): (usize, usize)| assembly.units[a].bandwidth.min(assembly.units[b].bandwidth);
            let best = pairs.filter(|&(a, b)| assembly.may_join(a, b)).min_by(|&x, &y| {
                let used = |(a, b)| design.between(a, b);
                width(y).total_cmp(&width(x)).then_with(|| used(x).cmp(&used(y))).then(x.cmp(&y))
            });
            match best {
                Some((a, b)) => design.join(a, b, design.between(a, b) + 1),
                None if cable == 0 => return None,
                None => break,
            }
        }
    }
    Some(design)
}

/// Joins connectors by chance until a machine does, if none is known.
fn fill(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    possible: &[Vec<usize>],
    random: &mut Pcg64,
    best: &mut Option<Found>,
) -> Result<(), Error> {
    for counts in possible.iter().cycle() {
        if best.is_some() || judge.is_over() {
            break;
        }
        let assembly = Assembly::new(&inventory.fixed_boards, counts);
        let mut design = Design::new(&assembly.units);
        let mut free: Vec<usize> = (0..assembly.units.len())
            .flat_map(|unit| std::iter::repeat_n(unit, assembly.units[unit].ports as usize))
            .collect();
        while let Some(a) = (!free.is_empty()).then(|| free.swap_remove(random.index(free.len()))) {
            let others: Vec<usize> = (0..free.len()).filter(|&b| assembly.may_join(a, free[b])).collect();
            let is_full = inventory.cables.is_some_and(|most| design.count() >= most);
            if let Some(&b) = others.get(random.index(others.len())).filter(|_| !is_full) {
                let b = free.swap_remove(b);
                design.join(a, b, design.between(a, b) + 1);
            }
        }
        offer(best, &assembly, counts, &design, inventory, judge)?;
    }
    Ok(())
}

/// Climbs from the best machine: a cable goes elsewhere, or is left out, if that is no worse.
fn climb(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    random: &mut Pcg64,
    best: &mut Option<Found>,
) -> Result<(), Error> {
    let Some(mut here) = best.clone() else { return Ok(()) };
    let assembly = Assembly::new(&inventory.fixed_boards, &here.counts);
    // As many tries that lead nowhere as there are steps left end it.
    for _ in 0..judge.left {
        if judge.is_over() || here.cables.is_empty() {
            break;
        }
        let mut design = Design { units: &assembly.units, cables: here.cables.clone() };
        let from = design.cables.keys().copied().nth(random.index(design.cables.len()));
        if let Some((a, b)) = from {
            design.join(a, b, design.between(a, b) - 1);
        }
        let is_less = inventory.cable_cost > 0.0 && random.index(2) == 0;
        if !is_less {
            let free: Vec<usize> = (0..assembly.units.len()).filter(|&unit| design.free(unit) > 0).collect();
            let drawn = [random.index(free.len()), random.index(free.len())];
            let [Some(&a), Some(&b)] = drawn.map(|place| free.get(place)) else { break };
            if !assembly.may_join(a, b) || from == Some((a.min(b), a.max(b))) {
                continue;
            }
            design.join(a, b, design.between(a, b) + 1);
        }
        let mut found = None;
        offer(&mut found, &assembly, &here.counts, &design, inventory, judge)?;
        let Some(found) = found.filter(|found| !above(found.cost, here.cost)) else { continue };
        if best
            .as_ref()
            .is_none_or(|best| is_better(Some((best.cost, best.objective)), (found.cost, found.objective)))
        {
            *best = Some(found.clone());
        }
        if above(here.cost, found.cost) || !above(found.objective, here.objective) {
            here = found;
        }
    }
    Ok(())
}

/// The machine and its cost, without cables that no route takes if nothing may fail.
fn finished(best: Found, inventory: &Inventory, judge: &Judge<'_>) -> (SystemGraph, f64) {
    let assembly = Assembly::new(&inventory.fixed_boards, &best.counts);
    let design = Design { units: &assembly.units, cables: best.cables };
    let system = assembly.system(&design, &judge.graph.demands);
    if !judge.survives.is_empty() || (judge.should_stop)() {
        return (system, best.cost);
    }
    let Ok(Some(answer)) = answer_of(judge, &system) else { return (system, best.cost) };
    let mut used = vec![false; design.count() as usize];
    for &link in answer.routes.routes.iter().flat_map(|route| &route.links) {
        // The two directions of a cable follow each other.
        let cable = (link as usize).checked_sub(assembly.links()).map(|link| link / 2);
        cable.and_then(|cable| used.get_mut(cable)).into_iter().for_each(|used| *used = true);
    }
    let mut used = used.into_iter();
    let mut thin = Design::new(&assembly.units);
    for (&(a, b), &cables) in &design.cables {
        let needed = used.by_ref().take(cables as usize).filter(|used| *used).count();
        thin.join(a, b, needed as u32);
    }
    let cost = assembly.cost + inventory.cable_cost * f64::from(thin.count());
    let thinned = assembly.system(&thin, &judge.graph.demands);
    // Limits may keep the search from what it has just found.
    match answer_of(judge, &thinned) {
        Ok(Some(_)) => (thinned, cost),
        Ok(None) | Err(_) => (system, best.cost),
    }
}
