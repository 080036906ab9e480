//! `schedule`: tables `tasks`, `processors` and `convergence`.

use hopmap_model::{Processor, Schedule, ScheduledTask};

use crate::kinds::mapping::{decode_convergence, encode_convergence};
use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for Schedule {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let tasks = Table::new("tasks")
            .u32("task", 0..self.tasks.len() as u32)
            .u32("processor", self.tasks.iter().map(|task| task.processor))
            .u32("rank", self.tasks.iter().map(|task| task.turn))
            .f64("start", self.tasks.iter().map(|task| task.start))
            .f64("finish", self.tasks.iter().map(|task| task.finish))
            .optional_u32("waits_for", self.tasks.iter().map(|task| task.waits_for));
        let tasks = match self.names.is_empty() {
            true => tasks,
            false => tasks.text("name", &self.names),
        };
        let tasks = match self.tasks.iter().any(|task| task.process.is_some()) {
            true => tasks
                .optional_u32("process", self.tasks.iter().map(|task| task.process))
                .optional_u32("segment", self.segments()),
            false => tasks,
        };
        let processors = Table::new("processors")
            .u32("processor", 0..self.processors.len() as u32)
            .text("name", self.processors.iter().map(|processor| &processor.name))
            .f64("available", self.processors.iter().map(|processor| processor.available))
            .optional_u32("slot", self.processors.iter().map(|processor| processor.slot));
        Contents::new()
            .table(tasks)
            .table(processors)
            .table(encode_convergence(&self.convergence))
            .metrics(&self.metrics)
            .attribute("model", serde_json::to_value(self.model).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("tasks")?;
        table.index("task")?;
        let (processors, turns) = (table.u32("processor")?, table.u32("rank")?);
        let (starts, finishes) = (table.f64("start")?, table.f64("finish")?);
        let waits = table.optional_u32("waits_for")?;
        let processes = match table.has("process") {
            true => table.optional_u32("process")?,
            false => vec![None; table.rows()],
        };
        let task = |row: usize| ScheduledTask {
            processor: processors[row],
            turn: turns[row],
            start: starts[row],
            finish: finishes[row],
            waits_for: waits[row],
            process: processes[row],
        };
        let schedule = Self {
            tasks: (0..table.rows()).map(task).collect(),
            names: if table.has("name") { table.text("name")? } else { Vec::new() },
            processors: decode_processors(folder)?,
            model: folder.attribute("model")?,
            metrics: folder.description().metrics.clone(),
            convergence: decode_convergence(folder)?,
            complete: folder.attribute("complete")?,
        };
        schedule.check().map_err(|error| folder.invalid(error))?;
        Ok(schedule)
    }
}

fn decode_processors(folder: &Folder) -> Result<Vec<Processor>, ArtifactError> {
    let table = folder.table("processors")?;
    table.index("processor")?;
    let rows = table.text("name")?.into_iter().zip(table.f64("available")?).zip(table.optional_u32("slot")?);
    Ok(rows.map(|((name, available), slot)| Processor { name, available, slot }).collect())
}
