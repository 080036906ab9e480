//! Files that survive a crash: written beside their place, synced and renamed; locks that die with their holder;
//! logs that are only ever appended to.

mod crash;
mod error;
mod lock;
mod log;
mod replace;

pub use crash::{CRASH_POINTS, crash_point};
pub use error::DurableError;
pub use lock::{Lock, lock_within};
pub use log::AppendLog;
pub use replace::{
    Staging, adopt_folder, copy_file, is_leftover, replace_file, replace_folder, replace_symlink,
    sync_folder, sync_tree,
};
