//! Artifacts that were made before.
//!
//! Stages: [`Stored`] of a task graph, `stored/task-graph`, of a system graph, `stored/system-graph`, of a mapping,
//! `stored/mapping`, and of measurements, `stored/measurements`. A pipeline takes such an artifact as if it had just been made: its digest is the same, and so are the keys of
//! all that follows.

mod stage;

pub use stage::{Storable, Stored, StoredError, StoredParams};
