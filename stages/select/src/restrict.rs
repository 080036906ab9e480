//! Machines with some of their hosts.

use hopmap_model::SystemGraph;

/// The machine topology with the slots of some hosts only, given by ascending index among the hosts with
/// slots.
#[must_use]
pub fn restrict(system: &SystemGraph, hosts: &[u32]) -> SystemGraph {
    let all: Vec<_> = system.hosts().collect();
    let slots = |&host: &u32| {
        let (_, first, count) = all[host as usize];
        first..first + count
    };
    system.with_slots(&hosts.iter().flat_map(slots).collect::<Vec<u32>>())
}
