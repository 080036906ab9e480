//! Records the messages of any MPI program, and renumbers its ranks. See the `README.md`.

mod command;
mod error;
mod events;
mod folder;
mod launch;
pub mod library;
mod order;
mod program;
pub mod reorder;
mod reorder_command;
pub mod source;
mod start;
pub mod table;

pub use command::RecordCommand;
pub use error::{RecordError, ReorderError};
pub use reorder_command::ReorderCommand;
