//! `hopmap checkpoint`: the commands for a checkpoint store.

mod change;
mod inspect;
mod restore;
mod work;

pub use change::{Add, Init, Prune};
pub use inspect::{Explain, List, Stats};
pub use restore::{Restore, Verify};
