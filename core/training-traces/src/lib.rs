//! Traces of training jobs: the collective operations and messages of every rank.
//!
//! The readers of formats fill a job; it is checked, and becomes recordings, from which task graphs are made
//! as from recordings of MPI programs, or a [`Program`](hopmap_model::Program). What NCCL calls a communicator and
//! PyTorch a process group is a group here: the ranks of its members, in the order of their ranks in it.

mod agreement;
mod calls;
pub mod chakra;
mod documents;
pub mod error;
pub mod flight_recorder;
pub mod inspector;
pub mod job;
mod json;
mod kinds;
pub mod kineto;
mod lenient;
mod names;
pub mod program;
pub mod ranks;
mod recording;
mod spans;
