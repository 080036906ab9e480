//! Traces of training jobs: the collective operations and messages of every rank.
//!
//! The readers of formats fill a [`Job`]; it is checked, and becomes recordings, from which task graphs are made
//! as from recordings of MPI programs, or a [`Program`](hopmap_model::Program). What NCCL calls a communicator and
//! PyTorch a process group is a group here: the ranks of its members, in the order of their ranks in it.

mod agreement;
mod calls;
pub(crate) mod chakra;
mod documents;
mod error;
pub(crate) mod flight_recorder;
pub(crate) mod inspector;
mod job;
mod json;
mod kinds;
pub(crate) mod kineto;
mod lenient;
mod names;
mod program;
mod ranks;
mod recording;
mod spans;

pub(crate) use job::Checked;
pub(crate) use program::program;
pub(crate) use ranks::{begins, inputs};
