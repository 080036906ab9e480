//! Compares two artifacts of one kind.
//!
//! Some kinds are compared semantically ([`Contents`]): edges of task graphs, moves and costs of mappings,
//! hosts and links of machines, tasks of schedules. All others are compared table by table and file by file.
//!
//! Edges and rows that are sorted by a key are merged while they are read, so memory use is constant. Lines
//! of files are compared by the crate `similar`, a dependency of insta; at most five thousand lines, because
//! its time is quadratic.

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
