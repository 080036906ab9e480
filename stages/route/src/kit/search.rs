//! The best machine from a kit: cheap units first, well-known ways to join them, then all ways, then steps from the best one.

use std::collections::BTreeMap;

use hopmap_model::{Demands, Error, Node, NodeKind, SystemGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::boards;
use super::candidate::{Candidate, above, units};
use super::design::Design;
use super::exact::{Exact, MOST_SWITCHES};
use super::families::families;
use super::judge::Judge;
use super::stock::{Stock, Unit};
use crate::{CheckError, Rules};

/// Most choices of units.
const MOST_CHOICES: usize = 200_000;

/// The best machine, and whether there is surely no better one, or none at all.
pub(super) fn search(
    judge: &mut Judge<'_>,
    stock: &Stock,
    seed: u64,
) -> Result<(Option<Candidate>, bool), Error> {
    let mut choices = choices(stock, judge)?;
    let least = |units_of: &Vec<Unit>| units(units_of) + boards::least(&stock.boards, units_of.len());
    choices.sort_by(|a, b| least(a).total_cmp(&least(b)).then(a.len().cmp(&b.len())));
    let all = judge.left;
    let mut best = None;
    let mut stars = BTreeMap::new();
    let mut possible = Vec::new();
    // A quarter of what may be looked at is for well-known ways.
    judge.left = all / 4;
    for choice in choices {
        if best.as_ref().is_some_and(|best: &Candidate| above(least(&choice), best.cost)) {
            break;
        }
        if !judge.is_over() && !is_possible(judge, &choice, &mut stars)? {
            continue;
        }
        let thick = stock.cable_cost <= 0.0;
        for design in families(&choice, thick) {
            if judge.is_over() {
                break;
            }
            let is_many = stock.cables.is_some_and(|most| design.count() > most);
            if !is_many {
                Candidate::offer(&mut best, &design, stock, judge)?;
            }
        }
        possible.push(choice);
    }
    judge.left = all.saturating_sub(judge.looked) * 3 / 4;
    judge.unsure = false;
    let mut whole = true;
    for choice in &possible {
        if best.as_ref().is_some_and(|best| above(least(choice), best.cost)) {
            break;
        }
        let switches = choice.iter().filter(|unit| unit.node.kind == NodeKind::Switch).count();
        whole &= switches <= MOST_SWITCHES && !judge.is_over();
        if whole {
            whole &= Exact::new(stock, choice, judge).search(&mut best)?;
        }
    }
    let proven = whole && !judge.unsure;
    judge.left = all.saturating_sub(judge.looked);
    if !proven {
        climb(judge, stock, seed, &mut best)?;
    }
    Ok((best, proven))
}

/// All choices of units: of those that are alike the first ones.
fn choices(stock: &Stock, judge: &Judge<'_>) -> Result<Vec<Vec<Unit>>, Error> {
    let classes: Vec<&Vec<Unit>> = stock.nodes.iter().chain(&stock.switches).collect();
    // A host without a process is of no use, unless another one may fail.
    let processes = judge.graph.ranks();
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for class in &classes {
        // Hosts that processes name are there.
        let is_named = |unit: &Unit| {
            judge.graph.demands.processes.iter().any(|process| process.host.as_ref() == Some(&unit.node.name))
        };
        let least = usize::from(class.len() == 1 && class.iter().any(is_named));
        let count = choices.len() * (class.len() + 1 - least);
        if count > MOST_CHOICES {
            return Err(CheckError::new(
                format!("the kit leaves more than {MOST_CHOICES} choices of units"),
                "fewer of each, or fewer kinds",
            )
            .into());
        }
        let longer = |choice: &Vec<usize>| {
            let choice = choice.clone();
            (least..=class.len()).map(move |count| choice.iter().copied().chain([count]).collect())
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    let nodes = stock.nodes.len();
    let most = if judge.survives.is_empty() { processes } else { processes * 2 + 1 };
    let is_useful = |choice: &Vec<usize>| {
        let hosts: usize = choice[..nodes].iter().sum();
        hosts <= most && (hosts > 0 || processes == 0)
    };
    let taken = |choice: Vec<usize>| -> Vec<Unit> {
        classes.iter().zip(choice).flat_map(|(class, count)| class[..count].iter().cloned()).collect()
    };
    Ok(choices.into_iter().filter(is_useful).map(taken).collect())
}

/// Whether the hosts could do if one switch without limits joined them all.
pub(super) fn is_possible(
    judge: &mut Judge<'_>,
    choice: &[Unit],
    stars: &mut BTreeMap<Vec<usize>, bool>,
) -> Result<bool, Error> {
    let hosts: Vec<Unit> = choice.iter().filter(|unit| unit.node.kind == NodeKind::Host).cloned().collect();
    let there: f64 = hosts.iter().filter_map(|unit| unit.node.traits.performance).sum();
    let needed: f64 = judge.graph.demands.processes.iter().map(|demand| demand.performance).sum();
    if needed > there * (1.0 + crate::problem::TOLERANCE) {
        return Ok(false);
    }
    let key: Vec<usize> = hosts.iter().map(|unit| unit.class).collect();
    if let Some(&known) = stars.get(&key) {
        return Ok(known);
    }
    let rules = judge.rules;
    let survives = std::mem::take(&mut judge.survives);
    judge.rules = Rules { switch_load: None, ..rules };
    let system = star(&hosts, &judge.graph.demands);
    let possible = judge.may_do(&system, &std::collections::BTreeSet::new());
    (judge.rules, judge.survives) = (rules, survives);
    let possible = possible?;
    stars.insert(key, possible);
    Ok(possible)
}

/// The machine in which one switch joins all hosts, each by a cable with the bandwidth of all its ports.
pub(super) fn star(hosts: &[Unit], demands: &Demands) -> SystemGraph {
    let mut units: Vec<Unit> = hosts.to_vec();
    units.iter_mut().for_each(|unit| unit.bandwidth *= f64::from(unit.ports));
    let node = Node::switch("the network");
    units.push(Unit { class: 0, node, ports: u32::MAX, bandwidth: f64::INFINITY, cost: 0.0 });
    let mut design = Design::new(&units);
    // A host on a board may have no link at all.
    let is_joined = |host: &usize| units[*host].bandwidth > 0.0;
    (0..hosts.len()).filter(is_joined).for_each(|host| design.join(host, hosts.len(), 1));
    design.system(demands)
}

/// Climbs from the best machine: a cable goes elsewhere if that is no worse.
fn climb(judge: &mut Judge<'_>, stock: &Stock, seed: u64, best: &mut Option<Candidate>) -> Result<(), Error> {
    let Some(mut here) = best.clone() else { return Ok(()) };
    let mut random = Pcg64::from_seed(seed_stream("route/build", seed, 0));
    let mut below = move |bound: usize| random.index(bound);
    // As many tries that lead nowhere as there are steps left end it.
    for _ in 0..judge.left {
        if judge.is_over() || here.cables.is_empty() {
            break;
        }
        let units = here.units.clone();
        let mut design = Design { units: &units, cables: here.cables.clone() };
        let from = design.cables.keys().copied().nth(below(design.cables.len()));
        if let Some((a, b)) = from {
            design.join(a, b, design.between(a, b) - 1);
        }
        let is_free = |unit: &usize| design.free(*unit) > 0;
        let free: Vec<usize> = (0..units.len()).filter(is_free).collect();
        let [Some(&a), Some(&b)] = [free.get(below(free.len())), free.get(below(free.len()))] else { break };
        let is_host = |unit: usize| units[unit].node.kind == NodeKind::Host;
        if a == b || (is_host(a) && is_host(b)) || from == Some((a.min(b), a.max(b))) {
            continue;
        }
        design.join(a, b, design.between(a, b) + 1);
        let mut found = None;
        Candidate::offer(&mut found, &design, stock, judge)?;
        if let Some(found) = found.filter(|found| !above(found.cost, here.cost)) {
            if Candidate::is_beaten(best.as_ref(), found.cost, found.objective) {
                *best = Some(found.clone());
            }
            if !above(found.objective, here.objective) {
                here = found;
            }
        }
    }
    Ok(())
}
