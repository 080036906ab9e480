//! Artifacts that were computed before.
//!
//! Stages: [`Stored`] of a task graph, `stored/task-graph`, of a system graph, `stored/system-graph`, of a
//! mapping, `stored/mapping`, and of measurements, `stored/measurements`. A pipeline uses such an artifact
//! as if it had just been computed: its digest is the same, and so are the keys of all dependent stages.

mod stage;

pub use stage::{Storable, Stored, StoredError, StoredParams};
