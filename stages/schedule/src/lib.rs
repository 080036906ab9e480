//! Scheduling: the processor and the start time of every task.
//!
//! A program is a [`TaskDag`](hopmap_model::TaskDag), a [`Machine`](hopmap_replay::Machine) is processors with message times, and
//! a [`Problem`] is both in integer ticks. A [`Scheduler`] searches for a [`Plan`]: the processor of every task and its turn
//! there. The tasks of a trace belong to ranks, which stay on their slots; [`ReplayStage`] gives their times under a mapping.
//!
//! [`check`] shares no code with the schedulers: it recomputes all times from the program and the machine.
//!
//! # Algorithms
//!
//! `stages/schedule` counts in integer ticks. A `Problem` is a task graph on a `Machine`. A `Plan` is the processor of every task
//! and one order of all tasks, so every plan is feasible by construction. List heuristics (`list/`) and bounds (`bounds/`) come
//! first. `auto/` anneals plans on a timeline that recomputes only what a step changes, and branch and bound (`exact/`) gets a
//! quarter of the first island's budget. The lower bound is the best of three: heads and tails that account for messages from
//! other processors, energetic reasoning over intervals, and the search tree.

mod auto;
pub mod bounds;
pub mod check;
mod costs;
mod error;
pub mod exact;
pub mod export;
pub mod formats;
mod genetic;
pub mod list;
mod machine;
mod params;
mod plan;
mod predicted;
mod problem;
mod stage;
#[cfg(test)]
mod tests;
mod timeline;

pub use error::InvalidInput;
pub use params::{
    Admissible, AutoParams, CheckParams, ExactParams, ExportFormat, ExportParams, GeneticParams, GraphFormat,
    Heuristic, ImportParams, ListParams, MachineParams, Ranks, ReplayParams,
};
pub use plan::{Evaluator, Plan, Scheduler, SearchResult, Times};
pub use problem::{Message, Problem};
pub use stage::{
    AutoStage, CheckStage, ExactStage, ExportStage, GeneticStage, ImportStage, ListStage, ReplayStage,
};
