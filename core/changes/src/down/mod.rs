//! Hosts that do not answer keep what was known of them.

mod costs;
mod derived;
mod measured;
mod system;

use std::collections::BTreeSet;

use hopmap_model::{NodeKind, NodeState};

use crate::view::{Host, hosts};
use crate::{Machine, Snapshot};

/// What a host is that a source does not name any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is down.
    Down,
    /// It is gone.
    Gone,
}

/// The machine as it is, where hosts that are down keep their last data: slots, links, costs, samples and fits.
///
/// A host is down if its node or an endpoint of it says so. One that is not named at all is what `missing` says; where the
/// machine was measured it is gone, as measurements name every host that was asked. Hosts take their old place in the order
/// of hosts, so that a machine that has not changed stays the same but for the state of these hosts.
#[must_use]
pub fn keep_down(before: &Snapshot<'_>, after: &Snapshot<'_>, missing: Missing) -> Machine {
    let (old, new) = (hosts(before), hosts(after));
    let missing = if after.measurements.is_some() { Missing::Gone } else { missing };
    let is_restored = |(name, was): &(&&str, &Host)| match new.get(**name) {
        Some(host) => host.is_bare() && !was.slots.is_empty(),
        None => missing == Missing::Down && (was.up || !was.slots.is_empty()),
    };
    let restored: BTreeSet<&str> = old.iter().filter(is_restored).map(|(name, _)| *name).collect();
    let mut system = match restored.is_empty() {
        true => after.system.clone(),
        false if derived::stands(before, after, &restored) => before.system.clone(),
        false => system::restore(before, after, &restored),
    };
    let measurements = match (before.measurements, after.measurements) {
        (Some(before), Some(after)) => Some(measured::restore(before, after)),
        (_, after) => after.cloned(),
    };
    for node in system.nodes.iter_mut().filter(|node| node.kind == NodeKind::Host) {
        let is_down =
            new.get(node.name.as_str()).map_or(restored.contains(node.name.as_str()), |host| !host.up);
        node.state = if is_down { NodeState::Down } else { NodeState::Up };
    }
    Machine { system, measurements }
}
