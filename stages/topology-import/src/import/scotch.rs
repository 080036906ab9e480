//! Target architectures of Scotch (`.tgt`), as defined by its user guide 7.0 and its reader.
//!
//! | target | becomes | distance of two terminals |
//! |---|---|---|
//! | `tleaf L n c …`, `ltleaf` | levels and a tree of switches | the sum of the costs of the level where
//! their paths meet and of all levels inside it |
//! | `mesh2D`, `mesh3D`, `meshXD`, `torus2D`, `torus3D`, `torusXD`, `hcub` | hosts linked to hosts, routed dimension by dimension | the number of links |
//! | `cmplt`, `cmpltw` | one level | 1 |
//! | `deco 0`, `deco 1` | a matrix | as written |
//! | `sub n t … TARGET` | the target with slots on these terminals only | as in the target |
//!
//! A terminal is a host with one slot, unless `slots` sets the number of leaves per host of a tree, or the
//! number of slots per host of a mesh. A weight is a number of slots.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_model::{CostModel, Levels, Link, Matrix, Node, Routing, Slot, SystemGraph, Ties, to_u32};
use hopmap_text::Words;

use super::finish::{self, MOST_SLOTS, Parts};
use super::format::{Sample, malformed, read_text};
use super::{ImportError, ImportParams, Imported, Result};
use hopmap_machines::params::SyntheticParams;
use hopmap_machines::synthetic;
use parse::{Shape, Target};

/// A file that begins with the name of a class and, if that has parameters, a number.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut words = text.split_whitespace();
    let Some(class) = words.next() else { return false };
    let Some(is_alone) = parse::is_alone(class) else { return false };
    let number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match words.next() {
        None => is_alone,
        Some(word) => number(word),
    }
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    finish::check(params)?;
    let text = read_text(path)?;
    let mut words = Words::of(text.as_bytes(), "");
    let target = parse::target(&mut words)?;
    let rest = words.next()?.then(|| words.line());
    let (system, mut notes) = machine(&target, params)?;
    if let Some(line) = rest {
        notes.push(format!("text after the target, from line {line} on, is ignored, as in Scotch"));
    }
    Ok(Imported { system, notes })
}

/// Largest number of slots of a machine with a cost matrix.
const MOST_PAIRED: usize = 4096;

/// Largest number of hosts of a tree.
const MOST_HOSTS: u64 = 1 << 20;

/// A machine topology and notes.
fn machine(target: &Target, params: &ImportParams) -> Result<(SystemGraph, Vec<String>)> {
    let mut notes = Vec::new();
    // The slots of each terminal, by terminal number.
    let (mut system, mut terminals) = match &target.shape {
        Shape::Tree { levels, numbers } => numbered_tree(levels, numbers, params)?,
        Shape::Grid { sizes, wraps } => grid(sizes, *wraps, params)?,
        Shape::Complete { weights } => complete(weights, params, &mut notes)?,
        Shape::Listed { terminals, distances } => listed(terminals, distances, params, &mut notes)?,
    };
    if target.is_measured_as_torus
        && let Shape::Grid { sizes, .. } = &target.shape
        && sizes.iter().any(|&size| size > 2)
    {
        notes.push(
            "read as a mesh without wrap-around links; Scotch 7 computes the distances of meshXD as in a torus".into(),
        );
    }
    for restriction in target.restrictions.iter().rev() {
        let count = terminals.len();
        let chosen = |&terminal: &u32| {
            terminals.get(terminal as usize).cloned().ok_or_else(|| {
                malformed(
                    None,
                    format!("`sub` keeps terminal {terminal}, but there are {count}"),
                    "terminals are numbered from zero",
                )
            })
        };
        terminals = restriction.iter().map(chosen).collect::<Result<_, _>>()?;
        notes.push(format!(
            "{} of {count} terminals are kept; the other hosts have no slots but forward messages",
            terminals.len()
        ));
    }
    if !target.restrictions.is_empty() {
        restrict(&mut system, &terminals.concat());
    }
    system.check().map_err(ImportError::machine)?;
    Ok((system, notes))
}

type Numbered = (SystemGraph, Vec<Vec<u32>>);

/// Rejects parameters that have no effect because the file defines the costs.
fn check(params: &ImportParams, is_grid: bool) -> Result<()> {
    params.refuse(&["hwloc"], "the file contains no host names", "omit it")?;
    params.refuse(&["costs"], "the file defines the costs", "omit it")?;
    if !is_grid {
        params.refuse(&["cost"], "the file defines the costs", "omit it")?;
        params.refuse(&["link_latency_s"], "costs do not depend on links", "omit it")?;
    }
    Ok(())
}

/// A regular tree over slots: branches and costs innermost first, with `slots` slots per host.
pub(super) fn tree(branches: &[u32], costs: &[f64], params: &ImportParams) -> Result<SystemGraph> {
    if !params.intra_node_costs.is_empty() {
        let problem = "has no effect: the file defines the costs of all levels";
        return Err(ImportError::parameter("intra_node_costs", problem, "omit it"));
    }
    let slots = params.slots().unwrap_or(1);
    let mut size = 1_u64;
    let mut sizes = vec![1];
    sizes.extend(branches.iter().map(|&branches| {
        size = size.saturating_mul(u64::from(branches));
        size
    }));
    let Some(host_level) = sizes.iter().rposition(|&size| size == u64::from(slots)) else {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let problem = format!("is {slots}, but no level of the tree has groups of that many leaves");
        return Err(ImportError::parameter("slots", problem, format!("allowed: {}", sizes.join(", "))));
    };
    let hosts = size / u64::from(slots.max(1));
    if size <= MOST_SLOTS as u64 && hosts > MOST_HOSTS {
        let problem = format!("every leaf is a host, and {hosts} exceed the limit of {MOST_HOSTS}");
        return Err(malformed(None, problem, "set `slots` to the number of leaves per host"));
    }
    let shape = branches.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
    let made = synthetic(&SyntheticParams {
        shape: format!("tree:{}", if shape.is_empty() { "1" } else { &shape }),
        costs: if costs.is_empty() { vec![0.0] } else { costs.to_vec() },
        host_level: Some(if slots == 1 { 0 } else { to_u32(host_level) }),
        host_prefix: "host".into(),
        ..SyntheticParams::default()
    });
    made.map_err(|error| {
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
        malformed(None, error.to_string(), help)
    })
}

/// The distance of two leaves is the sum of the link costs of the level where their paths meet and of all
/// levels inside it (`archTleafDomDist` of Scotch 6 and later; called the distance of two terminals in the
/// user guide).
fn numbered_tree(levels: &[(u32, f64)], numbers: &[u32], params: &ImportParams) -> Result<Numbered> {
    check(params, false)?;
    let branches: Vec<u32> = levels.iter().rev().map(|level| level.0).collect();
    let mut sum = 0.0;
    let costs: Vec<f64> = levels
        .iter()
        .rev()
        .map(|level| {
            sum += level.1;
            sum
        })
        .collect();
    let mut system = tree(&branches, &costs, params)?;
    let count = system.slots.len();
    if numbers.is_empty() {
        return Ok((system, (0..to_u32(count)).map(|slot| vec![slot]).collect()));
    }
    let period = numbers.len();
    let number = |slot: usize| slot - slot % period + numbers.get(slot % period).map_or(0, |&n| n as usize);
    let mut terminals = vec![Vec::new(); count];
    (0..count).for_each(|slot| {
        if let Some(terminal) = terminals.get_mut(number(slot)) {
            *terminal = vec![to_u32(slot)];
        }
    });
    let slots = params.slots().unwrap_or(1) as usize;
    if slots == 1 {
        let width = (count - 1).to_string().len();
        for (slot, node) in system.nodes.iter_mut().take(count).enumerate() {
            node.name = format!("host{:0width$}", number(slot));
        }
    } else if slots.is_multiple_of(period) {
        for (slot, place) in system.slots.iter_mut().enumerate() {
            place.core = to_u32(number(slot) % slots);
        }
    } else {
        let help = "omit it; every leaf is then a host";
        return Err(ImportError::parameter(
            "slots",
            "cannot be used: the permutation of the leaves crosses hosts",
            help,
        ));
    }
    Ok((system, terminals))
}

fn hosts(numbers: impl Iterator<Item = u32>, most: usize) -> Vec<Node> {
    let width = most.to_string().len();
    numbers.map(|number| Node::host(format!("host{number:0width$}"))).collect()
}

fn grid(sizes: &[u32], wraps: bool, params: &ImportParams) -> Result<Numbered> {
    check(params, true)?;
    let count = sizes.iter().product::<u32>();
    let mut links = Vec::new();
    for host in 0..count {
        let mut step = 1;
        for &size in sizes {
            let place = host / step % size;
            let base = host - place * step;
            let forth = if place + 1 < size { Some(place + 1) } else { (wraps && size > 2).then_some(0) };
            let back = if place > 0 { Some(place - 1) } else { (wraps && size > 2).then_some(size - 1) };
            links.extend(
                [forth, back].into_iter().flatten().map(|other| Link::new(host, base + other * step)),
            );
            step *= size;
        }
    }
    let parts = Parts {
        nodes: hosts(0..count, count as usize - 1),
        links,
        routing: Routing { ties: Ties::First, ..Routing::default() },
        shapes: BTreeMap::new(),
    };
    let system = finish::machine(parts, params)?;
    let slots = params.slots().unwrap_or(1);
    let terminals = (0..count).map(|host| (host * slots..(host + 1) * slots).collect()).collect();
    Ok((system, terminals))
}

/// Hosts with as many slots as their weights, and the slots of each terminal.
struct Weighted {
    hosts: Vec<Node>,
    slots: Vec<Slot>,
    terminals: Vec<Vec<u32>>,
}

fn weighted(
    terminals: &[(u32, u32)],
    params: &ImportParams,
    notes: &mut Vec<String>,
    most: usize,
) -> Result<Weighted> {
    let slots_of_one = params.slots().unwrap_or(1);
    let total: u64 = terminals.iter().map(|&(_, weight)| u64::from(weight) * u64::from(slots_of_one)).sum();
    if total > most as u64 {
        return Err(malformed(
            None,
            format!("the weights, read as numbers of slots, give {total} slots, more than {most}"),
            "divide the weights by a common factor",
        ));
    }
    if terminals.iter().any(|&(_, weight)| weight != 1) {
        notes.push("weights of terminals are read as numbers of slots".into());
    }
    let largest = terminals.iter().map(|terminal| terminal.0).max().unwrap_or(0) as usize;
    let hosts = hosts(terminals.iter().map(|terminal| terminal.0), largest);
    let (mut slots, mut by_terminal) = (Vec::new(), Vec::new());
    for (host, &(_, weight)) in (0..).zip(terminals) {
        let first = to_u32(slots.len());
        slots.extend((0..weight * slots_of_one).map(|core| Slot { host, core }));
        by_terminal.push((first..to_u32(slots.len())).collect());
    }
    Ok(Weighted { hosts, slots, terminals: by_terminal })
}

/// The cost between slots of one host: zero by default, as between two ranks on one terminal.
fn inside(params: &ImportParams, least: f64) -> Result<f64> {
    match params.intra_node_costs[..] {
        [] => Ok(0.0),
        [cost] if cost <= least => Ok(cost),
        [cost] => Err(ImportError::parameter(
            "intra_node_costs",
            format!("is {cost}, more than the minimum cost between hosts, {least}"),
            "costs inside hosts must be lower",
        )),
        _ => Err(ImportError::parameter(
            "intra_node_costs",
            "has several costs, but hosts have one level",
            "give one cost",
        )),
    }
}

fn complete(weights: &[u32], params: &ImportParams, notes: &mut Vec<String>) -> Result<Numbered> {
    check(params, false)?;
    let terminals: Vec<(u32, u32)> = (0..).zip(weights).map(|(number, &weight)| (number, weight)).collect();
    let Weighted { hosts, slots, terminals: by_terminal } = weighted(&terminals, params, notes, MOST_SLOTS)?;
    let within = inside(params, 1.0)?;
    let mut levels = Levels { costs: vec![1.0], groups: vec![vec![0; slots.len()]] };
    if slots.len() > hosts.len() {
        levels.costs.insert(0, within);
        levels.groups.insert(0, slots.iter().map(|slot| slot.host).collect());
    }
    let cost = CostModel::Levels(levels);
    Ok((
        SystemGraph {
            nodes: hosts,
            links: Vec::new(),
            slots,
            cost,
            routing: Routing::default(),
            calibration: Vec::new(),
        },
        by_terminal,
    ))
}

fn listed(
    terminals: &[(u32, u32)],
    distances: &[f64],
    params: &ImportParams,
    notes: &mut Vec<String>,
) -> Result<Numbered> {
    check(params, false)?;
    let Weighted { hosts, slots, terminals: by_terminal } = weighted(terminals, params, notes, MOST_PAIRED)?;
    let within =
        inside(params, distances.iter().copied().filter(|&cost| cost > 0.0).fold(f64::MAX, f64::min))?;
    let count = terminals.len();
    let cost = |a: &Slot, b: &Slot| match (a.host == b.host, a.core == b.core) {
        (true, true) => 0.0,
        (true, false) => within,
        (false, _) => distances.get(a.host as usize * count + b.host as usize).copied().unwrap_or(0.0),
    };
    let costs = slots.iter().flat_map(|a| slots.iter().map(move |b| cost(a, b))).collect();
    let cost = CostModel::Matrix(Matrix { costs });
    Ok((
        SystemGraph {
            nodes: hosts,
            links: Vec::new(),
            slots,
            cost,
            routing: Routing::default(),
            calibration: Vec::new(),
        },
        by_terminal,
    ))
}

/// Keeps only these slots, in this order.
fn restrict(system: &mut SystemGraph, slots: &[u32]) {
    let count = system.slots.len();
    let pick = |groups: &Vec<u32>| -> Vec<u32> {
        slots.iter().filter_map(|&slot| groups.get(slot as usize).copied()).collect()
    };
    match &mut system.cost {
        CostModel::Levels(Levels { groups, .. }) => groups.iter_mut().for_each(|level| *level = pick(level)),
        CostModel::Routes(routes) => routes.inside.groups.iter_mut().for_each(|level| *level = pick(level)),
        CostModel::Matrix(matrix) => {
            let cost = |a: u32, b: u32| matrix.costs.get(a as usize * count + b as usize).copied();
            let costs =
                slots.iter().flat_map(|&a| slots.iter().map(move |&b| cost(a, b).unwrap_or(0.0))).collect();
            matrix.costs = costs;
        }
    }
    system.slots = slots.iter().filter_map(|&slot| system.slots.get(slot as usize).copied()).collect();
}
