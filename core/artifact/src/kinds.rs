//! The forms of all kinds of artifacts, related ones in one file.

mod deltas;
mod files;
mod mapping;
mod measurements;
mod routes;
mod system_graph;
mod task_graph;
mod traits;
