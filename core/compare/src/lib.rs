//! What is different between two artifacts of a kind.
//!
//! Kinds with a meaning are compared by it ([`Contents`]): edges of task graphs, moves and costs of mappings, hosts and links of
//! machines, tasks of schedules. All others are compared table by table and file by file.
//!
//! Edges and rows that stand in the order of a key are merged as they are read, so memory does not grow with them. Lines of files are
//! compared by the crate `similar`, which insta brings anyway; five thousand lines are the most, as its time grows with their square.

mod artifact;
mod compared;
mod edges;
mod files;
mod first;
mod levels;
mod mapping;
mod merge;
mod metrics;
mod schedule;
mod tables;
mod words;

pub use artifact::{ArtifactChanges, Contents, compare};
pub use compared::Compared;
pub use edges::{EdgeChange, GraphChanges, Traffic};
pub use files::FileChange;
pub use first::first_differences;
pub use levels::{LevelCost, LevelShare};
pub use mapping::{MappingChanges, Move};
pub use metrics::{MetricChange, MetricChanges, metric_changes};
pub use schedule::{ScheduleChanges, TaskChange};
pub use tables::{RowChange, TableChanges};
pub use words::{MOST_SHOWN, more, percent};
