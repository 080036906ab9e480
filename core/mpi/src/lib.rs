//! MPI as it shows itself to programs that link none: launchers, compilers, variables. See the `README.md`.

mod implementation;
mod launcher;
mod rank;

pub use implementation::{Identity, Implementation, MpiError};
pub use launcher::{AS_ROOT, LauncherKind};
pub use rank::{Rank, host_name, system_host_name};
