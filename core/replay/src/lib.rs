//! Replay of the tasks of a program on a machine.
//!
//! A program is a [`TaskDag`](hopmap_model::TaskDag) whose tasks belong to ranks. A [`Machine`] has
//! processors and message times. [`steps`] gives the actions of every rank, in order, for simulators. A
//! [`ReplayProblem`] is a program and a machine in integer ticks: a [`MakespanEvaluator`] computes the
//! makespan of a placement, and an [`ExchangeEvaluator`] updates it after exchanges.

mod costs;
mod delays;
mod distances;
mod error;
mod exchange;
mod machine;
mod pass;
mod problem;
mod program;
mod steps;
mod system;
#[cfg(test)]
mod tests;

pub use delays::{Delays, SizedMessages, TickScale};
pub use distances::{Distances, Hosts, Level, Tree};
pub use error::{MachineError, ProblemError, Refusal};
pub use exchange::ExchangeEvaluator;
pub use machine::{Linear, Lookup, MAX_PROCESSORS, Machine, Measured, Network};
pub use pass::Criticality;
pub use problem::{MakespanEvaluator, ReplayProblem, placement};
pub use program::{Channel, Channels, Incoming, Program};
pub use steps::{Message, Step, steps};
pub use system::Distance;
