//! One file per artifact kind.

mod checkpoint_series;
mod checkpoint_store;
mod deltas;
mod diagnosis;
mod events;
mod launch_file;
mod mapping;
mod measurements;
mod metrics;
mod routes;
mod schedule;
mod system_graph;
mod task_dag;
mod task_graph;
mod text_file;
mod trace_archive;
mod trace_summary;
mod traits;
