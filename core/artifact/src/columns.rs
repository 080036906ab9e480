//! Contents of every artifact kind for the reference: tables, columns, metrics and files.
//! `tests/round_trip.rs` compares tables, columns and types with what is written.

mod checkpoints;
mod form;
mod machines;
mod mappings;
mod programs;
mod routes;

pub use form::{ColumnForm, KindForm, TableForm};

/// All kinds, in the order of the registry.
pub static FORMS: &[KindForm] = &[
    programs::TASK_GRAPH,
    programs::TASK_DAG,
    programs::PROGRAM,
    machines::SYSTEM_GRAPH,
    mappings::MAPPING,
    mappings::PREDICTION,
    mappings::SCHEDULE,
    routes::ROUTES,
    routes::TABLES,
    routes::DIAGNOSIS,
    routes::FAILURES,
    checkpoints::DELTAS,
    machines::MEASUREMENTS,
    mappings::METRICS,
    mappings::LAUNCH_FILE,
    mappings::TEXT_FILE,
    programs::TRACE,
    checkpoints::CHECKPOINTS,
    checkpoints::CHECKPOINT_STORE,
    programs::TRACE_SUMMARY,
    programs::EVENTS,
    mappings::TRIALS,
];

/// Contents of artifacts of a kind.
#[must_use]
pub fn form(kind: &str) -> Option<&'static KindForm> {
    FORMS.iter().find(|form| form.kind == kind)
}
