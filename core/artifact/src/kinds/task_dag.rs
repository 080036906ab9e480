//! `task-dag`: tables `tasks` and `edges`, and `names` where tasks have names.

use hopmap_model::{Dependency, Task, TaskDag, WorkUnit};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for TaskDag {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let tasks = Table::new("tasks")
            .u32("task", 0..self.tasks.len() as u32)
            .optional_u32("rank", self.tasks.iter().map(|task| task.rank))
            .f64("work", self.tasks.iter().map(|task| task.work));
        let edges = Table::new("edges")
            .u32("source", self.dependencies.iter().map(|edge| edge.source))
            .u32("destination", self.dependencies.iter().map(|edge| edge.destination))
            .u64("bytes", self.dependencies.iter().map(|edge| edge.bytes));
        let bytes: u128 = self.dependencies.iter().map(|edge| u128::from(edge.bytes)).sum();
        let contents = Contents::new().table(tasks).table(edges);
        let contents = match self.names.is_empty() {
            true => contents,
            false => contents.table(Table::new("names").text("name", &self.names)),
        };
        let contents = match self.unit {
            WorkUnit::Seconds => contents,
            WorkUnit::Time => contents.attribute("unit", "time".into()),
        };
        contents
            .metric("tasks", self.tasks.len() as f64)
            .metric("edges", self.dependencies.len() as f64)
            .metric("ranks", f64::from(self.ranks()))
            .metric("bytes", bytes as f64)
            .metric("work", self.work())
            .metric("critical_work", self.critical_work().unwrap_or(f64::NAN))
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let tasks = folder.table("tasks")?;
        tasks.index("task")?;
        let ranks = tasks.optional_u32("rank")?;
        let task = |(rank, work)| Task { rank, work };
        let edges = folder.table("edges")?;
        let (sources, destinations, bytes) =
            (edges.u32("source")?, edges.u32("destination")?, edges.u64("bytes")?);
        let dependency = |((source, destination), bytes)| Dependency { source, destination, bytes };
        let has_names = folder.description().tables.contains_key("names");
        let unit = match folder.description().attributes.get("unit").and_then(|unit| unit.as_str()) {
            None => WorkUnit::Seconds,
            Some("time") => WorkUnit::Time,
            Some(other) => return Err(folder.invalid(UnknownUnit(other.to_owned()))),
        };
        let dag = Self {
            names: if has_names { folder.table("names")?.text("name")? } else { Vec::new() },
            unit,
            tasks: ranks.into_iter().zip(tasks.f64("work")?).map(task).collect(),
            dependencies: sources.into_iter().zip(destinations).zip(bytes).map(dependency).collect(),
        };
        dag.check().map_err(|error| folder.invalid(error))?;
        Ok(dag)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the unit of its work is `{0}`, which this version does not know")]
struct UnknownUnit(String);
