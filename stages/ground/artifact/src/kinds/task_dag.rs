//! `task-dag`: tables `tasks` and `edges`.

use hopmap_model::{Dependency, Task, TaskDag};

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
        Contents::new()
            .table(tasks)
            .table(edges)
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
        let dag = Self {
            tasks: ranks.into_iter().zip(tasks.f64("work")?).map(task).collect(),
            dependencies: sources.into_iter().zip(destinations).zip(bytes).map(dependency).collect(),
        };
        dag.check().map_err(|error| folder.invalid(error))?;
        Ok(dag)
    }
}
