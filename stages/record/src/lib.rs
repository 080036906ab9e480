//! Records the messages of any MPI program. See the `README.md`.

mod command;
mod error;
mod events;
mod folder;
mod launch;
pub mod library;
mod program;
pub mod source;
pub mod table;

pub use command::RecordCommand;
pub use error::RecordError;
