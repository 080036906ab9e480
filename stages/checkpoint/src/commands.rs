//! `hopmap checkpoint`: the commands for a store of checkpoints.

mod add;
mod amounts;
mod explain;
mod init;
mod list;
mod prune;
mod restore;
mod stats;
mod verify;
mod work;

pub use add::Add;
pub use explain::Explain;
pub use init::Init;
pub use list::List;
pub use prune::Prune;
pub use restore::Restore;
pub use stats::Stats;
pub use verify::Verify;
