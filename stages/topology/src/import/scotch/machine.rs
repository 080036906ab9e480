//! The machine that a target describes.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use hopmap_model::{CostModel, Levels, Link, Matrix, Node, Routing, Slot, SystemGraph, Ties};
use hopmap_text::{FileError, Words};

use crate::import::finish::{MOST_SLOTS, Parts};
use crate::import::reader::malformed;
use crate::import::{ImportError, ImportParams, finish};
use crate::{SyntheticParams, synthetic};

/// Most slots of a machine whose costs are a matrix.
const MOST_PAIRED: usize = 4096;

/// Most hosts of a tree.
const MOST_HOSTS: u64 = 1 << 20;

/// A machine, and what people should know of it.
pub(super) fn machine(
    target: &Target,
    params: &ImportParams,
    path: &Path,
) -> Result<(SystemGraph, Vec<String>), ImportError> {
    let mut notes = Vec::new();
    // The terminals in the order of their numbers: the slots of each.
    let (mut system, mut terminals) = match &target.shape {
        Shape::Tree { levels, numbers } => numbered_tree(levels, numbers, params, path)?,
        Shape::Grid { sizes, wraps } => grid(sizes, *wraps, params, path)?,
        Shape::Complete { weights } => complete(weights, params, path, &mut notes)?,
        Shape::Listed { terminals, distances } => listed(terminals, distances, params, path, &mut notes)?,
    };
    if target.is_measured_as_torus
        && let Shape::Grid { sizes, .. } = &target.shape
        && sizes.iter().any(|&size| size > 2)
    {
        notes.push(
            "it is a mesh without links around; Scotch 7 itself measures meshXD as if it were a torus".into(),
        );
    }
    for restriction in target.restrictions.iter().rev() {
        let count = terminals.len();
        let chosen = |&terminal: &u32| {
            terminals.get(terminal as usize).cloned().ok_or_else(|| {
                malformed(
                    path,
                    None,
                    format!("`sub` keeps terminal {terminal}, but there are {count}"),
                    "terminals are counted from zero",
                )
            })
        };
        terminals = restriction.iter().map(chosen).collect::<Result<_, _>>()?;
        notes.push(format!(
            "{} of {count} terminals stay; the other hosts have no slots but pass messages on",
            terminals.len()
        ));
    }
    if !target.restrictions.is_empty() {
        restrict(&mut system, &terminals.concat());
    }
    system.check().map_err(|source| ImportError::Machine { path: path.to_owned(), source })?;
    Ok((system, notes))
}

type Numbered = (SystemGraph, Vec<Vec<u32>>);

fn wrong(name: &'static str, problem: impl Into<String>, help: impl Into<String>) -> ImportError {
    ImportError::Parameter { name, problem: problem.into(), help: help.into() }
}

/// Refuses parameters that mean nothing where a file has costs of its own.
fn check(params: &ImportParams, is_grid: bool) -> Result<(), ImportError> {
    if params.hwloc.is_some() {
        return Err(wrong("hwloc", "means nothing here: the file names no hosts", "leave it out"));
    }
    if !params.costs.is_empty() {
        return Err(wrong("costs", "means nothing here: the file has costs of its own", "leave it out"));
    }
    if !is_grid && params.cost.is_some() {
        return Err(wrong("cost", "means nothing here: the file has costs of its own", "leave it out"));
    }
    if !is_grid && params.link_latency.is_some() {
        return Err(wrong("link_latency", "means nothing here: costs follow from no links", "leave it out"));
    }
    Ok(())
}

/// A regular tree over slots: branches and costs innermost first, of which `slots` are a host.
pub(in crate::import) fn tree(
    branches: &[u32],
    costs: &[f64],
    params: &ImportParams,
    path: &Path,
) -> Result<SystemGraph, ImportError> {
    if !params.inside.is_empty() {
        return Err(wrong(
            "inside",
            "means nothing here: the file has the costs of all levels",
            "leave it out",
        ));
    }
    let slots = params.slots.unwrap_or(1);
    let mut size = 1_u64;
    let mut sizes = vec![1];
    sizes.extend(branches.iter().map(|&branches| {
        size = size.saturating_mul(u64::from(branches));
        size
    }));
    let Some(host_level) = sizes.iter().rposition(|&size| size == u64::from(slots)) else {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return Err(wrong(
            "slots",
            format!("is {slots}, but no level of the tree joins so many leaves"),
            format!("it may be {}", sizes.join(", ")),
        ));
    };
    let hosts = size / u64::from(slots.max(1));
    if size <= MOST_SLOTS as u64 && hosts > MOST_HOSTS {
        return Err(malformed(
            path,
            None,
            format!("every leaf is a host, and there are {hosts}, more than {MOST_HOSTS}"),
            "say with `slots` how many leaves are a host",
        ));
    }
    let shape = branches.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
    let made = synthetic(&SyntheticParams {
        shape: format!("tree:{}", if shape.is_empty() { "1" } else { &shape }),
        costs: if costs.is_empty() { vec![0.0] } else { costs.to_vec() },
        host_level: Some(if slots == 1 { 0 } else { host_level as u32 }),
        host_prefix: "host".into(),
        ..SyntheticParams::default()
    });
    made.map_err(|error| {
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
        malformed(path, None, error.to_string(), help)
    })
}

/// The cost of two leaves that part on a level is that of the links of this level and of all further in (`archTleafDomDist` of
/// Scotch 6 and later; what the user guide calls the distance of two terminals).
fn numbered_tree(
    levels: &[(u32, f64)],
    numbers: &[u32],
    params: &ImportParams,
    path: &Path,
) -> Result<Numbered, ImportError> {
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
    let mut system = tree(&branches, &costs, params, path)?;
    let count = system.slots.len();
    if numbers.is_empty() {
        return Ok((system, (0..count as u32).map(|slot| vec![slot]).collect()));
    }
    let period = numbers.len();
    let number = |slot: usize| slot - slot % period + numbers.get(slot % period).map_or(0, |&n| n as usize);
    let mut terminals = vec![Vec::new(); count];
    (0..count).for_each(|slot| {
        if let Some(terminal) = terminals.get_mut(number(slot)) {
            *terminal = vec![slot as u32];
        }
    });
    let slots = params.slots.unwrap_or(1) as usize;
    if slots == 1 {
        let width = (count - 1).to_string().len();
        for (slot, node) in system.nodes.iter_mut().take(count).enumerate() {
            node.name = format!("host{:0width$}", number(slot));
        }
    } else if slots.is_multiple_of(period) {
        for (slot, place) in system.slots.iter_mut().enumerate() {
            place.core = (number(slot) % slots) as u32;
        }
    } else {
        return Err(wrong(
            "slots",
            "cannot be given: the permutation of the leaves reaches over hosts",
            "leave it out: every leaf is a host then",
        ));
    }
    Ok((system, terminals))
}

fn hosts(numbers: impl Iterator<Item = u32>, most: usize) -> Vec<Node> {
    let width = most.to_string().len();
    numbers.map(|number| Node::host(format!("host{number:0width$}"))).collect()
}

fn grid(sizes: &[u32], wraps: bool, params: &ImportParams, path: &Path) -> Result<Numbered, ImportError> {
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
    let system = finish::machine(parts, params, path)?;
    let slots = params.slots.unwrap_or(1);
    let terminals = (0..count).map(|host| (host * slots..(host + 1) * slots).collect()).collect();
    Ok((system, terminals))
}

/// Hosts with as many slots as their weights, and the slots of every terminal.
struct Weighted {
    hosts: Vec<Node>,
    slots: Vec<Slot>,
    terminals: Vec<Vec<u32>>,
}

fn weighted(
    terminals: &[(u32, u32)],
    params: &ImportParams,
    path: &Path,
    notes: &mut Vec<String>,
    most: usize,
) -> Result<Weighted, ImportError> {
    let slots_of_one = u64::from(params.slots.unwrap_or(1));
    let total: u64 = terminals.iter().map(|&(_, weight)| u64::from(weight) * slots_of_one).sum();
    if total > most as u64 {
        return Err(malformed(
            path,
            None,
            format!("the weights, which are numbers of slots, give {total} slots; there may be {most}"),
            "divide the weights by what they have in common",
        ));
    }
    if terminals.iter().any(|&(_, weight)| weight != 1) {
        notes.push("weights of terminals are read as numbers of slots".into());
    }
    let largest = terminals.iter().map(|terminal| terminal.0).max().unwrap_or(0) as usize;
    let hosts = hosts(terminals.iter().map(|terminal| terminal.0), largest);
    let (mut slots, mut by_terminal) = (Vec::new(), Vec::new());
    for (host, &(_, weight)) in (0..).zip(terminals) {
        let first = slots.len() as u32;
        slots.extend((0..weight * slots_of_one as u32).map(|core| Slot { host, core }));
        by_terminal.push((first..slots.len() as u32).collect());
    }
    Ok(Weighted { hosts, slots, terminals: by_terminal })
}

/// The cost between slots of one host: zero, as between two ranks on one terminal, unless given.
fn inside(params: &ImportParams, least: f64) -> Result<f64, ImportError> {
    match params.inside[..] {
        [] => Ok(0.0),
        [cost] if cost <= least => Ok(cost),
        [cost] => Err(wrong(
            "inside",
            format!("is {cost}, more than the least cost between hosts, {least}"),
            "inside hosts it is nearer",
        )),
        _ => Err(wrong("inside", "has several costs, but hosts have one level inside", "give one cost")),
    }
}

fn complete(
    weights: &[u32],
    params: &ImportParams,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<Numbered, ImportError> {
    check(params, false)?;
    let terminals: Vec<(u32, u32)> = (0..).zip(weights).map(|(number, &weight)| (number, weight)).collect();
    let Weighted { hosts, slots, terminals: by_terminal } =
        weighted(&terminals, params, path, notes, MOST_SLOTS)?;
    let within = inside(params, 1.0)?;
    let mut levels = Levels { costs: vec![1.0], groups: vec![vec![0; slots.len()]] };
    if slots.len() > hosts.len() {
        levels.costs.insert(0, within);
        levels.groups.insert(0, slots.iter().map(|slot| slot.host).collect());
    }
    let cost = CostModel::Levels(levels);
    Ok((
        SystemGraph { nodes: hosts, links: Vec::new(), slots, cost, routing: Routing::default() },
        by_terminal,
    ))
}

fn listed(
    terminals: &[(u32, u32)],
    distances: &[f64],
    params: &ImportParams,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<Numbered, ImportError> {
    check(params, false)?;
    let Weighted { hosts, slots, terminals: by_terminal } =
        weighted(terminals, params, path, notes, MOST_PAIRED)?;
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
        SystemGraph { nodes: hosts, links: Vec::new(), slots, cost, routing: Routing::default() },
        by_terminal,
    ))
}

/// Only these slots, in this order.
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

/// Most terminals of a target that is no tree.
const MOST_TERMINALS: i64 = 1 << 20;
/// Most terminals whose distances are written one by one.
const MOST_LISTED: i64 = 4096;
/// Most domains of a compiled decomposition.
const MOST_DOMAINS: i64 = 1 << 16;
/// Largest number in a file: what Scotch holds in 32 bits.
const MOST: i64 = i32::MAX as i64;
/// Most levels of a tree.
const MOST_LEVELS: i64 = 32;
/// Dimensions that Scotch 7 has room for.
const MOST_DIMENSIONS: i64 = 5;
/// Restrictions of restrictions.
const MOST_RESTRICTIONS: usize = 16;

/// A target, and the restrictions of its terminals, outermost first.
pub(super) struct Target {
    pub(super) restrictions: Vec<Vec<u32>>,
    pub(super) shape: Shape,
    /// Whether it is of the class whose distances Scotch does not compute as its user guide says.
    pub(super) is_measured_as_torus: bool,
}

/// How the terminals of a target lie.
pub(super) enum Shape {
    /// Leaves of a regular tree.
    Tree {
        /// Branches of every level and the cost of a link there, outermost first.
        levels: Vec<(u32, f64)>,
        /// The numbers of the leaves of every so many, if they are not in order.
        numbers: Vec<u32>,
    },
    /// A grid, the first dimension first.
    Grid { sizes: Vec<u32>, wraps: bool },
    /// All at distance 1, with their weights.
    Complete { weights: Vec<u32> },
    /// Terminals sorted by number: number and weight of each, and the distance of every ordered pair.
    Listed { terminals: Vec<(u32, u32)>, distances: Vec<f64> },
}

/// The next word, which has to be a whole number in a range.
fn number(words: &mut Words<'_>, what: &str, least: i64, most: i64) -> Result<i64, FileError> {
    let help = || format!("{what} is a whole number from {least} to {most}");
    if !words.next()? {
        let problem = format!("the file ends where {what} should be");
        return Err(words.error_at(words.here(), problem).with_help(help()));
    }
    match words.text()?.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(words.error(format!("{what} is `{}`", words.shown())).with_help(help())),
    }
}

/// Whether a class stands alone in a file; `None` if there is no such class.
pub(super) fn is_alone(class: &str) -> Option<bool> {
    Some(match class.to_ascii_lowercase().as_str() {
        "tleaf" | "ltleaf" | "mesh2d" | "mesh3d" | "meshxd" | "torus2d" | "torus3d" | "torusxd" | "hcub"
        | "cmplt" | "cmpltw" | "deco" | "sub" => false,
        "varcmplt" | "varhcub" => true,
        _ => return None,
    })
}

/// Reads a target. Names of classes are read in either case, as Scotch does.
pub(super) fn target(words: &mut Words<'_>) -> Result<Target, FileError> {
    let mut restrictions = Vec::new();
    loop {
        if !words.next()? {
            return Err(words
                .error("there is no target")
                .with_help("a target begins with its class, such as `tleaf`"));
        }
        let class = words.text()?.to_owned();
        let shape = match class.to_ascii_lowercase().as_str() {
            "sub" if restrictions.len() < MOST_RESTRICTIONS => {
                restrictions.push(restriction(words)?);
                continue;
            }
            "sub" => {
                return Err(words
                    .error("there are too many `sub` in each other")
                    .with_help("say it with one"));
            }
            "tleaf" => Shape::Tree { levels: levels(words)?, numbers: Vec::new() },
            "ltleaf" => {
                let levels = levels(words)?;
                let numbers = numbers(words, &levels)?;
                Shape::Tree { levels, numbers }
            }
            "mesh2d" => parse_grid(words, Some(2), false)?,
            "mesh3d" => parse_grid(words, Some(3), false)?,
            "meshxd" => parse_grid(words, None, false)?,
            "torus2d" => parse_grid(words, Some(2), true)?,
            "torus3d" => parse_grid(words, Some(3), true)?,
            "torusxd" => parse_grid(words, None, true)?,
            "hcub" => {
                let dimensions = number(words, "the dimension of the hypercube", 1, 20)?;
                Shape::Grid { sizes: vec![2; dimensions as usize], wraps: false }
            }
            "cmplt" => {
                let count = number(words, "the number of terminals", 1, MOST_TERMINALS)?;
                Shape::Complete { weights: vec![1; count as usize] }
            }
            "cmpltw" => parse_complete(words)?,
            "deco" => decomposition(words)?,
            "varcmplt" | "varhcub" => {
                return Err(words
                    .error(format!(
                        "a target of class `{class}` has no size: Scotch makes it as large as it needs"
                    ))
                    .with_help("give one with a size, such as `cmplt 64` or `hcub 6`"));
            }
            _ => {
                return Err(words.error(format!("`{}` is no class of targets that is known here", words.shown())).with_help("known are tleaf, ltleaf, mesh2D, mesh3D, meshXD, torus2D, torus3D, torusXD, hcub, cmplt, cmpltw, deco and sub"));
            }
        };
        let is_measured_as_torus = class.eq_ignore_ascii_case("meshXD");
        return Ok(Target { restrictions, shape, is_measured_as_torus });
    }
}

fn restriction(words: &mut Words<'_>) -> Result<Vec<u32>, FileError> {
    let count = number(words, "the number of terminals that stay", 1, MOST)?;
    let mut terminals = Vec::new();
    let mut known = HashSet::new();
    for _ in 0..count {
        let terminal = number(words, "a terminal that stays", 0, MOST)? as u32;
        if !known.insert(terminal) {
            return Err(words
                .error(format!("terminal {terminal} stays twice"))
                .with_help("name every terminal once"));
        }
        terminals.push(terminal);
    }
    Ok(terminals)
}

fn levels(words: &mut Words<'_>) -> Result<Vec<(u32, f64)>, FileError> {
    let count = number(words, "the number of levels", 0, MOST_LEVELS)?;
    let level = |_| {
        let branches = number(words, "the number of branches of a level", 2, MOST)? as u32;
        let cost = number(words, "the cost of the links of a level", 1, MOST)?;
        Ok((branches, cost as f64))
    };
    (0..count).map(level).collect()
}

/// What the leaves of `ltleaf` are called: a permutation of as many as some of the innermost levels have.
fn numbers(words: &mut Words<'_>, levels: &[(u32, f64)]) -> Result<Vec<u32>, FileError> {
    let count = number(words, "the size of the permutation", 1, MOST)?;
    let mut size = 1_u64;
    let mut sizes = vec![1];
    sizes.extend(levels.iter().rev().map(|(branches, _)| {
        size = size.saturating_mul(u64::from(*branches));
        size
    }));
    if !sizes.contains(&(count as u64)) {
        return Err(words.error(format!("the permutation has {count} numbers, which are not the leaves of some of the innermost levels")).with_help(format!("it may have {}", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))));
    }
    let mut numbers = Vec::new();
    let mut known = HashSet::new();
    for _ in 0..count {
        let number = number(words, "a number of the permutation", 0, count - 1)? as u32;
        if !known.insert(number) {
            return Err(words
                .error(format!("{number} is there twice"))
                .with_help("a permutation has every number once"));
        }
        numbers.push(number);
    }
    let is_in_order = (0..).zip(&numbers).all(|(place, &number): (u32, _)| place == number);
    Ok(if is_in_order { Vec::new() } else { numbers })
}

fn parse_grid(words: &mut Words<'_>, dimensions: Option<i64>, wraps: bool) -> Result<Shape, FileError> {
    let dimensions =
        dimensions.map_or_else(|| number(words, "the number of dimensions", 1, MOST_DIMENSIONS), Ok)?;
    let mut count = 1_i64;
    let mut sizes = Vec::new();
    for _ in 0..dimensions {
        let size = number(words, "the size of a dimension", 1, MOST_TERMINALS)?;
        count = count.saturating_mul(size);
        sizes.push(size as u32);
    }
    if count > MOST_TERMINALS {
        return Err(words
            .error(format!("the target has more than {MOST_TERMINALS} terminals"))
            .with_help("make some dimensions smaller"));
    }
    Ok(Shape::Grid { sizes, wraps })
}

fn parse_complete(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_TERMINALS)?;
    let mut weights = Vec::new();
    for _ in 0..count {
        weights.push(number(words, "the weight of a terminal", 1, MOST)? as u32);
    }
    Ok(Shape::Complete { weights })
}

fn decomposition(words: &mut Words<'_>) -> Result<Shape, FileError> {
    match number(words, "the type of the decomposition", 0, 2)? {
        0 => parse_listed(words),
        1 => compiled(words),
        _ => Err(words
            .error("decompositions of type 2 hold no distances but coarsened graphs")
            .with_help("write the target as type 0, such as with `amk_grf` without `-2`")),
    }
}

/// Type 0: label, weight and domain of every terminal, then the lower triangle of distances in the order of the terminals.
fn parse_listed(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_LISTED)?;
    let most = number(words, "the largest number of a domain", count, MOST)?;
    let mut terminals = Vec::new();
    let mut domains = HashSet::new();
    for _ in 0..count {
        let label = number(words, "the number of a terminal", 0, MOST)? as u32;
        let weight = number(words, "the weight of a terminal", 0, MOST)? as u32;
        let domain = number(words, "the number of a domain", 1, most)?;
        if !domains.insert(domain) {
            return Err(words
                .error(format!("two terminals are domain {domain}"))
                .with_help("every one has its own"));
        }
        terminals.push((label, weight));
    }
    let mut triangle = Vec::new();
    for _ in 0..count * (count - 1) / 2 {
        triangle.push(number(words, "a distance", 1, MOST)? as f64);
    }
    let distance = |a: usize, b: usize| {
        let (low, high) = (a.min(b), a.max(b));
        if low == high { 0.0 } else { triangle.get(high * (high - 1) / 2 + low).copied().unwrap_or(0.0) }
    };
    sorted(words, &terminals, distance)
}

/// Type 1: label, size and weight of every domain, then the lower triangle of distances between all domains.
fn compiled(words: &mut Words<'_>) -> Result<Shape, FileError> {
    let count = number(words, "the number of terminals", 1, MOST_LISTED)?;
    let domains = number(words, "the number of domains", count, MOST_DOMAINS)?;
    let mut terminals = Vec::new();
    // By domain, its place among the terminals.
    let mut places = Vec::new();
    for _ in 0..domains {
        let label = number(words, "the number of a terminal", -1, MOST)?;
        let size = number(words, "the number of terminals in a domain", 0, MOST)?;
        let weight = number(words, "the weight of a domain", 0, MOST)? as u32;
        places.push((size == 1).then_some(terminals.len()));
        if size == 1 {
            let label = u32::try_from(label).map_err(|_| {
                words.error(format!("a terminal has number {label}")).with_help("they begin with zero")
            })?;
            terminals.push((label, weight));
        }
    }
    if i64::try_from(terminals.len()) != Ok(count) {
        return Err(words
            .error(format!("{} domains have one terminal, but there are {count} terminals", terminals.len()))
            .with_help("is the file damaged?"));
    }
    let mut table = vec![0.0; terminals.len() * terminals.len()];
    for (high, at_high) in places.iter().enumerate() {
        for at_low in places.iter().take(high) {
            let distance = number(words, "a distance", 0, MOST)?;
            let (Some(a), Some(b)) = (at_high, at_low) else { continue };
            if distance == 0 {
                return Err(words
                    .error("two terminals are at distance 0")
                    .with_help("distances of terminals are above zero"));
            }
            for place in [a * terminals.len() + b, b * terminals.len() + a] {
                if let Some(entry) = table.get_mut(place) {
                    *entry = distance as f64;
                }
            }
        }
    }
    let distance = |a: usize, b: usize| table.get(a * terminals.len() + b).copied().unwrap_or(0.0);
    sorted(words, &terminals, distance)
}

/// The terminals in the order of their numbers.
fn sorted(
    words: &Words<'_>,
    terminals: &[(u32, u32)],
    distance: impl Fn(usize, usize) -> f64,
) -> Result<Shape, FileError> {
    let mut order: Vec<usize> = (0..terminals.len()).collect();
    let at = |place: usize| terminals.get(place).copied().unwrap_or_default();
    order.sort_by_key(|&place| at(place));
    let sorted: Vec<(u32, u32)> = order.iter().map(|&place| at(place)).collect();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(words
            .error(format!("two terminals have number {}", pair[0].0))
            .with_help("every one has its own"));
    }
    let distance = &distance;
    let row = |&a: &usize| order.iter().map(move |&b| distance(a, b)).collect::<Vec<_>>();
    Ok(Shape::Listed { distances: order.iter().flat_map(row).collect(), terminals: sorted })
}
