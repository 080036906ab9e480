//! The same levels of switches above every host.
//!
//! Crossings and borders count levels from the hosts. If the spine of a host without a leaf switch were linked to that
//! host, it would be on the level of leaf switches, and would join all leaves below it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::super::Result;
use super::super::format::some;
use super::super::slurm_tree::{Switch, below, by_name, heights};
use super::labels::names_of;

/// A host and what is above it.
#[derive(Debug, Default)]
pub(super) struct PlacedHost {
    pub(super) name: String,
    /// Line of the file, if known.
    pub(super) line: Option<usize>,
    /// Switches with their levels, innermost first, as in `labels`. What other hosts have between two switches raises the upper one.
    pub(super) above: Vec<(usize, String)>,
}

/// Gives hosts the switches that they lack: those of other hosts below the same switch, or else some of their own.
/// `switches` are all that the hosts have.
pub(super) fn complete(hosts: &mut [PlacedHost], switches: &[Switch], notes: &mut Vec<String>) -> Result<()> {
    let numbers = by_name(switches)?;
    let below = below(switches, &numbers)?;
    let mut level = vec![0; switches.len()];
    for (at, name) in hosts.iter().flat_map(|host| &host.above) {
        let level = &mut level[numbers[name.as_str()]];
        *level = (*level).max(*at);
    }
    let level = heights(switches, &below, level)?;
    let levels: Vec<usize> = level.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    // The lowest switch above each one.
    let mut up: Vec<Option<usize>> = vec![None; switches.len()];
    for (switch, children) in below.iter().enumerate() {
        for &child in children {
            let lower = up[child].filter(|&other| level[other] <= level[switch]);
            up[child] = lower.or(Some(switch));
        }
    }
    let names = hosts.iter().map(|host| &host.name).chain(switches.iter().map(|switch| &switch.name));
    let mut added = Added { names: names.cloned().collect(), ..Added::default() };
    for host in hosts {
        let known = std::mem::take(&mut host.above).into_iter().map(|(_, name)| numbers[name.as_str()]);
        let known: HashMap<usize, usize> = known.map(|switch| (level[switch], switch)).collect();
        let mut last: Option<usize> = None;
        for &at in &levels {
            let of_others = || last.and_then(|last| up[last]).filter(|&up| level[up] == at);
            let found = known.get(&at).copied().or_else(of_others);
            let name = match (found, last) {
                (Some(switch), _) => switches[switch].name.clone(),
                (None, Some(last)) => added.above("switches", &switches[last].name, at, false),
                (None, None) => added.above("hosts", &host.name, at, known.is_empty()),
            };
            last = found.or(last);
            host.above.push((at, name));
        }
    }
    notes.extend(added.notes());
    Ok(())
}

/// Switches that stand in for missing ones.
#[derive(Default)]
struct Added {
    /// All names of hosts and switches.
    names: HashSet<String>,
    /// By what they are above and their level.
    switches: HashMap<(String, usize), String>,
    /// What they are above, by level.
    lacking: BTreeMap<(usize, &'static str), Vec<String>>,
}

impl Added {
    /// The name of the switch above a host or a switch on a level.
    fn above(&mut self, what: &'static str, child: &str, level: usize, is_known: bool) -> String {
        let place = (child.to_owned(), level);
        if let Some(name) = self.switches.get(&place) {
            return name.clone();
        }
        if !is_known {
            self.lacking.entry((level, what)).or_default().push(child.to_owned());
        }
        let name = unused(format!("{}-of-{child}", names_of(level)[0]), &self.names);
        self.names.insert(name.clone());
        self.switches.insert(place, name.clone());
        name
    }

    fn notes(&self) -> impl Iterator<Item = String> + '_ {
        self.lacking.iter().map(|((level, what), names)| {
            let (kind, names) = (names_of(*level)[1], some(names));
            format!("{what} without {kind}: {names}; each has one of its own here, which groups with other hosts cross")
        })
    }
}

/// The name, or that with underscores which nothing else has.
pub(super) fn unused(mut name: String, taken: &HashSet<String>) -> String {
    while taken.contains(&name) {
        name.push('_');
    }
    name
}
