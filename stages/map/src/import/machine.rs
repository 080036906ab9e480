//! The hosts of a machine by their names, with their sockets and cores.

use std::collections::HashMap;

use hopmap_model::{CostModel, SystemGraph};
use hopmap_text::{FileError, Line, shown};

const NAMES: &str = "hosts have the names of the machine, or these up to the first dot where that tells them apart: give the machine \
                     that the file was made for, or name its hosts with `hosts`";

/// A host of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host {
    /// Index in slot order.
    pub(super) index: usize,
    /// Its first slot.
    pub(super) first: u32,
    /// Number of its slots.
    pub(super) slots: u32,
}

/// A machine whose hosts can be looked up.
pub(super) struct Machine<'a> {
    system: &'a SystemGraph,
    pub(super) hosts: Vec<Host>,
    by_name: HashMap<&'a str, usize>,
    /// By the name up to the first dot; none where that is one of several.
    by_short_name: HashMap<&'a str, Option<usize>>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(system: &'a SystemGraph) -> Self {
        let mut machine =
            Self { system, hosts: Vec::new(), by_name: HashMap::new(), by_short_name: HashMap::new() };
        for (index, (node, first, slots)) in system.hosts().enumerate() {
            let name = system.nodes[node as usize].name.as_str();
            machine.hosts.push(Host { index, first, slots });
            machine.by_name.insert(name, index);
            let short = machine.by_short_name.entry(short(name));
            short.and_modify(|several| *several = None).or_insert(Some(index));
        }
        machine
    }

    /// The host of a name.
    pub(super) fn host(&self, name: &str, line: Line<'_>) -> Result<Host, FileError> {
        let index = self.by_name.get(name).copied();
        // `a.x` and `a.y` are two hosts, but each may be the `a` of the other side.
        let is_short = |name: &str| short(name) == name;
        let is_same = |index: &usize| is_short(name) || is_short(self.name(self.hosts[*index]));
        let index = index.or_else(|| self.by_short_name.get(short(name)).copied().flatten().filter(is_same));
        match index {
            Some(index) => Ok(self.hosts[index]),
            None => {
                let first = self.hosts.first().map_or("none", |host| self.name(*host));
                let what = format!("the machine has no host `{}`; its first one is `{first}`", shown(name));
                Err(line.error(what).with_help(NAMES))
            }
        }
    }

    /// The name of a host.
    pub(super) fn name(&self, host: Host) -> &'a str {
        let node = self.system.slots[host.first as usize].host;
        &self.system.nodes[node as usize].name
    }

    /// The slot of a core of a host, counted over all its sockets.
    pub(super) fn core(&self, host: Host, core: u32) -> Option<u32> {
        let is_it = |slot: &u32| self.system.slots[*slot as usize].core == core;
        let slots = host.first..host.first + host.slots;
        let direct = host.first.checked_add(core).filter(|slot| slots.contains(slot)).filter(is_it);
        direct.or_else(|| slots.clone().find(is_it))
    }

    /// The slots of all sockets of a host. Sockets are the outermost groups of the machine's levels that part the host; where
    /// they are single slots, as where nothing parts it, there is one socket.
    pub(super) fn sockets(&self, host: Host) -> Vec<Vec<u32>> {
        let slots = host.first..host.first + host.slots;
        let one = || vec![slots.clone().collect()];
        let Some(groups) = self.parting_groups(host) else { return one() };
        let mut sockets: Vec<Vec<u32>> = Vec::new();
        let mut by_group = HashMap::new();
        for slot in slots.clone() {
            let socket = *by_group.entry(groups[slot as usize]).or_insert(sockets.len());
            match sockets.get_mut(socket) {
                Some(socket) => socket.push(slot),
                None => sockets.push(vec![slot]),
            }
        }
        if sockets.len() == slots.len() { one() } else { sockets }
    }

    /// The groups of the outermost level that parts a host.
    fn parting_groups(&self, host: Host) -> Option<&[u32]> {
        let CostModel::Levels(levels) = &self.system.cost else { return None };
        let slots = host.first as usize..(host.first + host.slots) as usize;
        let parts = |groups: &&Vec<u32>| groups[slots.clone()].windows(2).any(|pair| pair[0] != pair[1]);
        levels.groups.iter().rev().find(parts).map(Vec::as_slice)
    }
}

fn short(name: &str) -> &str {
    // An address has no name before its first dot.
    match name.parse::<std::net::Ipv4Addr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().unwrap_or(name),
    }
}
