//! Semantic comparison of two topologies of a machine.
//!
//! Hosts and switches are matched by name, switches with generated names by the hosts below them; order, ids
//! and group numbers are ignored. [`changes`] lists what is new, gone, moved or slower; [`keep_down`]
//! restores the data of hosts that do not answer; [`health`] checks a single topology; [`confirmed`] drops
//! changes that a second comparison did not find.

mod change;
mod down;
mod drift;
mod health;
mod links;
mod nodes;
mod pair;
mod snapshot;

pub use change::{Change, Quantity, confirmed, host_list};
pub use down::{Missing, keep_down};
pub use drift::keep_times;
pub use health::{Finding, health};
pub use snapshot::{Machine, Snapshot, Thresholds};

use pair::Both;

/// All differences in canonical order: hosts, switches, moves, links, costs, latencies.
///
/// Only the state of a host that is down and has no slots is compared.
#[must_use]
pub fn changes(before: &Snapshot<'_>, after: &Snapshot<'_>, thresholds: &Thresholds) -> Vec<Change> {
    let both = Both::new(before, after);
    let mut found = nodes::changes(&both);
    let moves = nodes::of_links(&both);
    found.extend(links::changes(&both, &moves, thresholds));
    found.extend(nodes::of_groups(&both, &moves));
    found.extend(moves.changes);
    found.extend(links::costs(&both, thresholds));
    found.extend(links::routes(&both));
    found.extend(drift::changes(&both, thresholds));
    found.sort_by_cached_key(Change::subject);
    found
}
