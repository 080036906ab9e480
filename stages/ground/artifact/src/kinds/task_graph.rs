//! `task-graph`: tables `processes` and `edges`.

use hopmap_model::{Edge, Process, TaskGraph};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for TaskGraph {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let processes = Table::new("processes")
            .u32("rank", 0..self.processes.len() as u32)
            .optional_text("host", self.processes.iter().map(|process| process.host.as_deref()))
            .optional_f64("compute_s", self.processes.iter().map(|process| process.compute_s));
        let edges = Table::new("edges")
            .u32("source", self.edges.iter().map(|edge| edge.source))
            .u32("destination", self.edges.iter().map(|edge| edge.destination))
            .u64("messages", self.edges.iter().map(|edge| edge.messages))
            .u64("bytes", self.edges.iter().map(|edge| edge.bytes));
        let contents = Contents::new()
            .table(processes)
            .table(edges)
            .metric("processes", self.processes.len() as f64)
            .metric("pairs", self.edges.len() as f64)
            .metric("messages", self.messages() as f64)
            .metric("bytes", self.bytes() as f64);
        match self.duration_s {
            Some(duration_s) => contents.metric("duration_s", duration_s),
            None => contents,
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let processes = folder.table("processes")?;
        processes.index("rank")?;
        let hosts = processes.optional_text("host")?;
        let compute = processes.optional_f64("compute_s")?;
        let edges = folder.table("edges")?;
        let (source, destination) = (edges.u32("source")?, edges.u32("destination")?);
        let (messages, bytes) = (edges.u64("messages")?, edges.u64("bytes")?);
        let edge = |index: usize| Edge {
            source: source[index],
            destination: destination[index],
            messages: messages[index],
            bytes: bytes[index],
        };
        let graph = Self {
            processes: hosts
                .into_iter()
                .zip(compute)
                .map(|(host, compute_s)| Process { host, compute_s })
                .collect(),
            edges: (0..edges.rows()).map(edge).collect(),
            duration_s: folder.description().metrics.get("duration_s").copied(),
        };
        graph.check().map_err(|error| folder.invalid(error))?;
        Ok(graph)
    }
}
