//! Conversion of Slurm's switches to the parts of a machine.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use hopmap_formats::host_list::{MAX_NAMES, expand};
use hopmap_formats::natural_key;
use hopmap_model::{Link, Node, to_u32};

use super::finish::Parts;
use super::format::{ImportError, listed, malformed, note, some};
use super::{ImportParams, Result};

/// A switch in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Switch {
    pub(super) name: String,
    pub(super) line: usize,
    /// The switches below it.
    pub(super) switches: Vec<String>,
    /// The hosts below it.
    pub(super) hosts: Vec<String>,
}

/// Parses the host lists of one file, which share a limit.
pub(super) struct Lists {
    left: Cell<usize>,
}

impl Lists {
    pub(super) fn new() -> Self {
        Self { left: Cell::new(MAX_NAMES) }
    }

    /// The names of a list on a line.
    pub(super) fn names(&self, line: usize, list: &str) -> Result<Vec<String>> {
        let names = expand(list).map_err(|error| malformed(line, error.to_string(), error.hint))?;
        let Some(left) = self.left.get().checked_sub(names.len()) else {
            let problem = format!("more than {MAX_NAMES} names in total");
            return Err(malformed(line, problem, "check the ranges"));
        };
        self.left.set(left);
        Ok(names)
    }

    /// The hosts of a list. Only Slurm can expand `ALL`.
    pub(super) fn hosts(&self, line: usize, list: &str) -> Result<Vec<String>> {
        match list.eq_ignore_ascii_case("all") {
            true => {
                let problem = "`ALL` does not list the hosts";
                Err(malformed(line, problem, "give their names: `Nodes=n[001-128]`"))
            }
            false => self.names(line, list),
        }
    }

    /// The name of a single switch or block, not a list.
    pub(super) fn own_name(line: usize, name: &str) -> Result<String> {
        match name.is_empty() || name.contains(['[', ']', ',']) {
            false => Ok(name.to_owned()),
            true => {
                let problem = format!("`{name}` is not the name of a single switch or block");
                Err(malformed(line, problem, "define each one separately"))
            }
        }
    }
}

/// Hosts, switches and the links between them in both directions; and notes.
pub(super) fn parts(switches: &[Switch]) -> Result<(Parts, Vec<String>)> {
    let by_name = by_name(switches)?;
    let below = below(switches, &by_name)?;
    let height = heights(switches, &below, vec![0; switches.len()])?;
    let above = above(switches)?;
    let mut hosts: Vec<&str> = above.keys().copied().collect();
    hosts.sort_by_cached_key(|host| (natural_key(host), *host));
    if let Some(host) = hosts.iter().find(|host| by_name.contains_key(**host)) {
        let line = above[*host].first().map(|&switch| switches[switch].line);
        let help = "rename the switch";
        return Err(malformed(line, format!("`{host}` is a host here and a switch elsewhere"), help));
    }
    let mut order: Vec<usize> = (0..switches.len()).collect();
    order.sort_by_cached_key(|&switch| {
        let name = &switches[switch].name;
        (height[switch], natural_key(name), name)
    });
    let mut place = vec![0; switches.len()];
    (to_u32(hosts.len())..).zip(&order).for_each(|(number, &switch)| place[switch] = number);
    let uplinks = |(number, host): (u32, &&str)| above[*host].iter().map(move |&switch| (number, switch));
    let mut ends: Vec<(u32, u32)> =
        (0..).zip(&hosts).flat_map(uplinks).map(|(host, switch)| (host, place[switch])).collect();
    for (switch, children) in below.iter().enumerate() {
        ends.extend(children.iter().map(|&child| (place[child], place[switch])));
    }
    let mut links: Vec<Link> = ends.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]).collect();
    links.sort_by_key(|link| (link.source, link.destination));
    let shared: Vec<&str> = hosts.iter().copied().filter(|host| above[host].len() > 1).collect();
    let mut remarks = notes(switches, &below);
    if !shared.is_empty() {
        remarks.push(format!("hosts below several switches, linked to all of them: {}", some(&shared)));
    }
    let mut nodes: Vec<Node> = hosts.into_iter().map(Node::host).collect();
    nodes.extend(order.iter().map(|&switch| Node::switch(switches[switch].name.clone())));
    Ok((Parts { nodes, links, ..Parts::default() }, remarks))
}

pub(super) fn by_name(switches: &[Switch]) -> Result<HashMap<&str, usize>> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (index, Switch { name, line, .. }) in switches.iter().enumerate() {
        if let Some(other) = by_name.insert(name, index) {
            let first = switches[other].line;
            let problem = format!("the switch `{name}` is defined twice, first on line {first}");
            return Err(malformed(*line, problem, "give every switch a unique name"));
        }
    }
    Ok(by_name)
}

/// For each switch the indexes of those below it.
pub(super) fn below(switches: &[Switch], by_name: &HashMap<&str, usize>) -> Result<Vec<Vec<usize>>> {
    let mut below = Vec::with_capacity(switches.len());
    for Switch { name, line, switches: children, .. } in switches {
        let mut own = Vec::with_capacity(children.len());
        let mut seen = HashSet::new();
        for child in children {
            let Some(&index) = by_name.get(child.as_str()) else {
                let problem = format!("`{name}` is above the switch `{child}`, which is not defined");
                return Err(malformed(*line, problem, "check the spelling of its name"));
            };
            if !seen.insert(index) {
                let problem = format!("`{name}` lists the switch `{child}` twice");
                return Err(malformed(*line, problem, "list it once"));
            }
            own.push(index);
        }
        below.push(own);
    }
    Ok(below)
}

/// The height of each switch, at least a given one and above those of all switches below; an error if there is a cycle.
pub(super) fn heights(
    switches: &[Switch],
    below: &[Vec<usize>],
    mut height: Vec<usize>,
) -> Result<Vec<usize>> {
    let mut waiting: Vec<usize> = below.iter().map(Vec::len).collect();
    let mut above = vec![Vec::new(); switches.len()];
    for (switch, children) in below.iter().enumerate() {
        children.iter().for_each(|&child| above[child].push(switch));
    }
    let mut queue: Vec<usize> = (0..switches.len()).filter(|&switch| waiting[switch] == 0).collect();
    let mut next = 0;
    while let Some(&child) = queue.get(next) {
        next += 1;
        for &parent in &above[child] {
            height[parent] = height[parent].max(height[child] + 1);
            waiting[parent] -= 1;
            if waiting[parent] == 0 {
                queue.push(parent);
            }
        }
    }
    let Some(mut inside) = waiting.iter().position(|&count| count > 0) else { return Ok(height) };
    // Every remaining switch has a remaining one below it: descending that often ends on the cycle.
    for _ in 0..switches.len() {
        inside = below[inside].iter().copied().find(|&child| waiting[child] > 0).unwrap_or(inside);
    }
    let Switch { name, line, .. } = &switches[inside];
    let problem = format!("the switch `{name}` is below itself");
    Err(malformed(*line, problem, "the hierarchy of switches must not contain cycles"))
}

/// The switches above each host: several for hosts with several rails, and for those that Slurm warns of as being below
/// several leaf switches.
fn above(switches: &[Switch]) -> Result<HashMap<&str, Vec<usize>>> {
    let mut above: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, Switch { name, line, hosts, .. }) in switches.iter().enumerate() {
        for host in hosts {
            let all = above.entry(host).or_default();
            if all.last() == Some(&index) {
                let problem = format!("`{name}` lists the host `{host}` twice");
                return Err(malformed(*line, problem, "list it once"));
            }
            all.push(index);
        }
    }
    Ok(above)
}

fn notes(switches: &[Switch], below: &[Vec<usize>]) -> Vec<String> {
    let mut parents = vec![0; switches.len()];
    below.iter().flatten().for_each(|&child| parents[child] += 1);
    let mut notes = Vec::new();
    let several = parents.iter().filter(|&&count| count > 1).count();
    note(&mut notes, "switches below several switches, with all links kept", several);
    let empty =
        (0..switches.len()).filter(|&switch| below[switch].is_empty() && switches[switch].hosts.is_empty());
    note(&mut notes, "switches with nothing below them", empty.count());
    notes
}

/// Which of several topologies of a file to read: the one that `topology` names, otherwise the only one.
pub(super) fn chosen(names: &[&str], params: &ImportParams, problem: &str) -> Result<usize> {
    let Some(wanted) = &params.topology else {
        if names.len() == 1 {
            return Ok(0);
        }
        let problem = format!("{} topologies{problem}: {}", names.len(), listed(names));
        let help = format!(
            "choose one of them: `topology = \"{}\"` of topology/import",
            names.first().unwrap_or(&"")
        );
        return Err(malformed(None, problem, help));
    };
    names.iter().position(|name| name == wanted).ok_or_else(|| {
        let problem = format!("is `{wanted}`, which the file does not have");
        ImportError::parameter("topology", problem, format!("the file has {}", listed(names)))
    })
}

/// Blocks in order, and the sizes of larger blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Each block as a switch above its hosts.
    pub(super) bases: Vec<Switch>,
    /// Number of hosts of a block, of the next larger block, and so on.
    pub(super) sizes: Vec<u64>,
    /// Line of the sizes.
    pub(super) line: usize,
}

impl Blocks {
    /// Reads the sizes: numbers with commas between them.
    pub(super) fn set_sizes(&mut self, line: usize, text: &str) -> Result<()> {
        self.line = line;
        for size in text.split(',').map(str::trim) {
            let Some(number) = size.parse().ok().filter(|&number: &u64| number > 0) else {
                let problem = format!("`{size}` is not a block size");
                return Err(malformed(line, problem, "give numbers of hosts: `BlockSizes=4,16`"));
            };
            self.sizes.push(number);
        }
        Ok(())
    }

    /// One switch per block, per larger block, and on top.
    pub(super) fn switches(self) -> Result<(Vec<Switch>, Vec<String>)> {
        let Self { bases: blocks, mut sizes, line } = self;
        sizes.sort_unstable();
        sizes.dedup();
        let mut notes = Vec::new();
        let base = sizes.first().copied().unwrap_or(1);
        let fits = |size: u64| size.is_multiple_of(base) && (size / base).is_power_of_two();
        if let Some(size) = sizes.iter().find(|size| !fits(**size)) {
            let problem = format!("a block of {size} hosts is not 2, 4, 8, … blocks of {base}");
            return Err(malformed(line, problem, "larger sizes must be the smallest times 2, 4, 8, …"));
        }
        let small = blocks.iter().filter(|block| (block.hosts.len() as u64) < base).count();
        note(&mut notes, &format!("blocks with fewer hosts than the smallest size, {base}"), small);
        let mut taken: HashSet<String> =
            blocks.iter().flat_map(|block| [&block.name].into_iter().chain(&block.hosts)).cloned().collect();
        let mut tops: Vec<String> = blocks.iter().map(|block| block.name.clone()).collect();
        let mut joined = 1;
        let mut switches = blocks;
        for size in sizes.iter().skip(1) {
            let wide = usize::try_from(size / base).unwrap_or(usize::MAX);
            tops = join(&mut switches, &mut taken, &tops, wide / joined, &format!("blocks-{size}"));
            joined = wide;
        }
        if tops.len() > 1 {
            join(&mut switches, &mut taken, &tops, usize::MAX, "blocks");
            notes.push(format!(
                "{} blocks without a common larger block are connected by an additional top switch",
                tops.len()
            ));
        }
        Ok((switches, notes))
    }
}

/// Adds a switch above every `wide` switches; returns their names.
fn join(
    switches: &mut Vec<Switch>,
    taken: &mut HashSet<String>,
    below: &[String],
    wide: usize,
    prefix: &str,
) -> Vec<String> {
    let mut names = Vec::new();
    for (index, group) in below.chunks(wide.max(1)).enumerate() {
        let mut name = if wide == usize::MAX { prefix.to_owned() } else { format!("{prefix}-{index}") };
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        names.push(name.clone());
        switches.push(Switch { name, switches: group.to_vec(), ..Switch::default() });
    }
    names
}
