//! Replay of a program's tasks on a machine.
//!
//! A program is a [`TaskDag`](hopmap_model::TaskDag) whose tasks belong to ranks, a [`Machine`] is processors and what messages between them
//! take. [`steps`] says what every rank does, in order, for simulators. A [`ReplayProblem`] is program and machine in whole ticks: a
//! [`MakespanEvaluator`] computes when the last task is done in a placement, and an [`ExchangeEvaluator`] what exchanges change of it.

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
