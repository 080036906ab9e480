//! Entries of static forwarding tables that are others.

use std::collections::{BTreeMap, BTreeSet};

use crate::Change;
use crate::pair::{Both, Key, Side};

/// What an entry is for, the node and the port of the destination, and where it sends, the next node and the port that it leaves by.
type Entries<'s> = BTreeMap<(&'s Key, &'s Key, Option<u32>), (&'s Key, Option<u32>)>;

/// The hosts to which messages go in another way, on nodes that are there on both sides.
pub(crate) fn changes(both: &Both<'_>) -> Option<Change> {
    let (before, after) =
        (entries(both, &both.before, &both.after), entries(both, &both.after, &both.before));
    let is_other = |key: &&(&Key, &Key, Option<u32>)| before.get(*key) != after.get(*key);
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).filter(is_other).collect();
    let hosts: BTreeSet<&String> = keys
        .iter()
        .filter_map(|(_, host, _)| match host {
            Key::Host(name) => Some(name),
            _ => None,
        })
        .collect();
    (!hosts.is_empty()).then(|| Change::Routes { to: hosts.into_iter().cloned().collect() })
}

fn entries<'s>(both: &Both<'_>, side: &'s Side<'_>, other: &Side<'_>) -> Entries<'s> {
    let known = other.by_key();
    let system = side.snapshot.system;
    let key = |node: u32| &side.keys[node as usize];
    let mut entries = Entries::new();
    for entry in &system.routing.forwarding {
        let (last, link) = (&system.links[entry.last as usize], &system.links[entry.link as usize]);
        let ends = [entry.node, last.destination];
        if ends.iter().all(|&node| both.is_comparable(key(node), &known)) {
            let purpose = (key(entry.node), key(last.destination), last.destination_port);
            entries.insert(purpose, (key(link.destination), link.source_port));
        }
    }
    entries
}
