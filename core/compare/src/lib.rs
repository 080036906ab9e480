//! What is different between two artifacts of a kind.
//!
//! Kinds with a meaning are compared by it ([`Contents`]): edges of task graphs, moves and costs of mappings, hosts and links of
//! machines, tasks of schedules. All others are compared table by table and file by file.
//!
//! Edges and rows that stand in the order of a key are merged as they are read, so memory does not grow with them. Lines of files are
//! compared by the crate `similar`, which insta brings anyway; five thousand lines are the most, as its time grows with their square.

mod artifact;
mod common;
mod edges;
mod mapping;
mod schedule;
mod tables;

pub use artifact::{ArtifactChanges, Contents, MetricChange, MetricChanges, compare, metric_changes};
pub use common::{Compared, MOST_SHOWN, differing, more, percent};
pub use edges::{EdgeChange, GraphChanges, Traffic};
pub use mapping::{LevelCost, LevelShare, MappingChanges, Move};
pub use schedule::{ScheduleChanges, TaskChange};
pub use tables::{FileChange, RowChange, TableChanges, first_differences};
