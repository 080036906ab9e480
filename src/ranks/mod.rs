//! A stage on several processes: the folder through which the engine and the processes talk, and what each process does.
//!
//! The engine writes [`Task`] into a folder that all processes can read and starts `LAUNCHER hopmap-ranks FOLDER`. The first
//! process writes its outputs into `out/` and then `done`; whoever fails first says so in `fault.json`. A file `stop` asks all to
//! deliver what they have. Nothing here knows MPI: a process is given a [`Communicator`](hopmap_model::Communicator).

mod observer;
mod process;
mod task;

pub use process::{blame, observes, run, stop_with_the_engine};
pub(crate) use task::{DONE, FAULT, GREETING, Message, OUT, has_begun, is_stopped, read, write};
pub use task::{Done, Fault, Task, TaskInput, stop};
