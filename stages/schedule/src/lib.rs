//! When every task runs, and on which processor.
//!
//! A program is a [`TaskDag`](hopmap_model::TaskDag), a [`Machine`](hopmap_replay::Machine) is processors and what messages between them
//! take, and a [`Problem`] is both in whole ticks. Where tasks may run anywhere a [`Scheduler`] looks for a [`Plan`]: for every task its
//! processor and its turn there. Where tasks belong to the ranks of a program, as those of a trace do, all tasks of a rank stay together and
//! in order, and what is looked for is the slot of every rank: see [`ranks`].
//!
//! [`check`] shares no code with the schedulers: it recomputes all times from the program and the machine.
//!
//! # Algorithms
//!
//! `stages/schedule` counts in whole ticks: a `Problem` is a task graph on a `Machine`, a `Plan` the processor of every task and
//! one order of all of them, so that every plan is admissible by construction. Lists (`list/`) and bounds (`bounds/`) come first;
//! `auto/` anneals plans on a timeline that recomputes only what a step changes, and branch and bound (`exact/`) gets a quarter of
//! the first island's budget. A bound is the best of heads and tails that know which messages have to come from elsewhere, of what
//! fits between them on so many processors, and of the search tree. Tasks of a trace are bound to ranks (`ranks/`): those in a row
//! without messages are one node, a placement is evaluated in one pass, and what is looked for is the slot of every rank.

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
mod problem;
pub mod ranks;
mod stage;
#[cfg(test)]
mod tests;
mod timeline;

pub use error::InvalidInput;
pub use params::{
    Admissible, AutoParams, CheckParams, ExactParams, ExportFormat, ExportParams, GeneticParams, GraphFormat,
    Heuristic, ImportParams, ListParams, MachineParams, MappingParams, Ranks,
};
pub use plan::{Evaluator, Plan, Scheduler, SearchResult, Times};
pub use problem::{Message, Problem};
pub use stage::{
    AutoStage, CheckStage, ExactStage, ExportStage, GeneticStage, ImportStage, ListStage, MappingStage,
};
