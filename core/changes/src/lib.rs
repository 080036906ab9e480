//! What is different between two topologies of a machine, by meaning.
//!
//! Hosts and switches are compared by name, switches with made-up names by the hosts below them; order, ids and numbers of groups
//! never matter. [`changes`] lists what is new, gone, moved or slower; [`keep_down`] gives hosts that do not answer the data
//! that they had; [`health`] looks at one topology alone; [`confirmed`] drops what a second look did not see again.

mod change;
mod down;
mod drift;
mod health;
mod links;
mod nodes;
mod pair;
mod snapshot;

pub use change::{Change, Quantity, confirmed, host_list, number, seconds};
pub use down::{Missing, keep_down};
pub use drift::keep_times;
pub use health::{Finding, health};
pub use snapshot::{Machine, Snapshot, Thresholds};

use pair::Both;

/// What is different, in canonical order: hosts, switches, moves, links, costs, latencies.
///
/// A host that is down and has no slots is compared by its state alone.
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
