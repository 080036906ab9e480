//! A stage on several processes: the folder through which the engine and the processes talk, and what each process does.
//!
//! The engine writes [`Task`] into a folder that all processes can read and starts `LAUNCHER hopmap-ranks FOLDER`. The first
//! process writes its outputs into `out/` and then `done`; whoever fails first says so in `fault.json`. A file `stop` asks all to
//! deliver what they have. Nothing here knows MPI: a process is given a [`Communicator`](hopmap_model::Communicator).
//!
//! # Protocol
//!
//! `launcher` is never part of a key. The engine (`engine/launch.rs`) writes `work/KEY/task.json` (kind, revision, parameters with their
//! paths, folders of the inputs, cores per process, seconds left, state file), finds `hopmap-ranks` (`HOPMAP_RANKS`, beside `hopmap`, on
//! `PATH`) and runs `LAUNCHER hopmap-ranks work/KEY`. Everything the two sides tell each other is in `src/ranks`, which knows no MPI:
//!
//! | in `work/KEY` | written by | says |
//! |---|---|---|
//! | `task.json` | engine | what to do, and what the input files were; a process whose task is gone stops |
//! | `begun` | first process | MPI has started; a second first process (a launcher of another MPI) is refused |
//! | `stop` | engine | deliver what you have: Ctrl-C or deadline; all processes look for it ten times a second |
//! | `out/PORT/`, then `done` | first process | the outputs, and whether they are complete, feasible, timed |
//! | `fault.json` | whoever fails first | message and hint; that process then aborts all |
//!
//! Lines of standard output that begin with `hopmap-ranks:` carry progress and log; all others go into the log as they are. The launcher
//! has a process group of its own, so that Ctrl-C on a terminal does not end it before the ranks have delivered. The engine holds the
//! other end of the first rank's standard input: when it is gone, the ranks stop. A launcher whose ranks have not begun, in a queue, is
//! ended by a stop. No `done`, an exit status other than zero or a rank that died is a failure; the state stays.
//!
//! `hopmap-ranks` (`src/bin/hopmap-ranks`, feature `mpi`) implements `Communicator` with the crate `mpi`: the stage runs in a thread,
//! and hands what it wants to send to the main thread, the only one that calls MPI, so `MPI_THREAD_FUNNELED` is enough.

mod process;
mod task;

pub use process::{blame, observes, run, stop_with_the_engine};
pub(crate) use task::{DONE, FAULT, GREETING, Message, OUT, has_begun, is_stopped, read, write};
pub use task::{Done, Fault, Task, TaskInput, stop};
