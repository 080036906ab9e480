//! Machines that were derived from measurements: their switches are made up, and a host that is down takes some with it.

use std::collections::{BTreeSet, HashMap};

use hopmap_model::SystemGraph;

use crate::{Snapshot, Thresholds};

/// Whether the machine as it was still describes the hosts that answer: it has the same hosts but for those that are down, with the
/// same slots, and no two of them cost something else. Then nothing has changed but who is down, whatever tree was derived without
/// them.
pub(super) fn stands(before: &Snapshot<'_>, after: &Snapshot<'_>, down: &BTreeSet<&str>) -> bool {
    if before.measurements.is_none() || after.measurements.is_none() {
        return false;
    }
    let (old, new) = (slots_by_host(before.system), slots_by_host(after.system));
    let is_known = |(name, slots): &(&&str, &Vec<(u32, u32)>)| {
        let cores = |slots: &Vec<(u32, u32)>| slots.iter().map(|slot| slot.1).collect::<Vec<_>>();
        old.get(**name).is_some_and(|was| cores(was) == cores(slots))
    };
    let left = old.keys().filter(|name| !down.contains(**name)).count();
    left == new.len() && new.iter().all(|host| is_known(&host)) && cost_the_same(before, after, &old, &new)
}

/// Slots with their cores by the name of their host.
fn slots_by_host(system: &SystemGraph) -> HashMap<&str, Vec<(u32, u32)>> {
    let mut hosts: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
    for (index, slot) in (0..).zip(&system.slots) {
        hosts.entry(system.nodes[slot.host as usize].name.as_str()).or_default().push((index, slot.core));
    }
    hosts
}

/// Whether the first slots of all hosts, and the slots of each, cost what they did.
fn cost_the_same(
    before: &Snapshot<'_>,
    after: &Snapshot<'_>,
    old: &HashMap<&str, Vec<(u32, u32)>>,
    new: &HashMap<&str, Vec<(u32, u32)>>,
) -> bool {
    let thresholds = Thresholds::default();
    let (old_costs, new_costs) = (before.system.costs(), after.system.costs());
    let same = |was: (u32, u32), is: (u32, u32)| {
        let (was, is) = (old_costs.between(was.0, was.1), new_costs.between(is.0, is.1));
        !thresholds.differ(was, is)
    };
    let names: Vec<&str> = new.keys().copied().collect();
    let among_hosts = |(index, one): (usize, &&str)| {
        names[index + 1..].iter().all(|other| {
            let first = |hosts: &HashMap<&str, Vec<(u32, u32)>>| (hosts[*one][0].0, hosts[*other][0].0);
            same(first(old), first(new))
        })
    };
    let inside = |name: &&str| {
        let (was, is) = (&old[*name], &new[*name]);
        (0..is.len()).all(|a| (0..a).all(|b| same((was[a].0, was[b].0), (is[a].0, is[b].0))))
    };
    names.iter().enumerate().all(among_hosts) && names.iter().all(inside)
}
