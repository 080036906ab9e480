//! `mapping`: tables `ranks`, `hosts` and `convergence`; `metrics`: table `placements`, one column per metric; `schedule`: tables `tasks`,
//! `processors` and `convergence`.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    ConvergencePoint, HostSlots, Mapping, Metrics, Placement, PlacementMetrics, PlacementOrigin, Processor,
    Schedule, ScheduledTask,
};

use crate::{ArtifactError, Codec, Contents, Folder, Table};

impl Codec for Mapping {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = Table::new("ranks")
            .u32("rank", 0..self.ranks.len() as u32)
            .u32("slot", self.ranks.iter().map(|placement| placement.slot))
            .text("host", (0..self.ranks.len()).map(|rank| self.host_of(rank)))
            .optional_u32("core", self.ranks.iter().map(|placement| placement.core));
        let hosts = Table::new("hosts")
            .text("host", self.hosts.iter().map(|host| &host.host))
            .u32("first_slot", self.hosts.iter().map(|host| host.first_slot))
            .u32("slots", self.hosts.iter().map(|host| host.slots));
        Contents::new()
            .table(ranks)
            .table(hosts)
            .table(encode_convergence(&self.convergence))
            .metrics(&self.metrics)
            .attribute("weight", serde_json::to_value(self.weight).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let hosts = folder.table("hosts")?;
        let (names, first, counts) = (hosts.text("host")?, hosts.u32("first_slot")?, hosts.u32("slots")?);
        let hosts: Vec<HostSlots> = names
            .into_iter()
            .zip(first.into_iter().zip(counts))
            .map(|(host, (first_slot, slots))| HostSlots { host, first_slot, slots })
            .collect();
        let index: BTreeMap<&str, u32> =
            hosts.iter().enumerate().map(|(index, host)| (host.host.as_str(), index as u32)).collect();
        let table = folder.table("ranks")?;
        table.index("rank")?;
        let (slots, names, cores) = (table.u32("slot")?, table.text("host")?, table.optional_u32("core")?);
        let placement = |((slot, name), core): ((u32, String), Option<u32>)| match index.get(name.as_str()) {
            Some(&host) => Ok(Placement { slot, host, core }),
            None => Err(table.error("host", format!("names `{name}`, which the table `hosts` lacks"))),
        };
        let ranks = slots.into_iter().zip(names).zip(cores).map(placement).collect::<Result<_, _>>()?;
        let mapping = Self {
            ranks,
            weight: folder.attribute("weight")?,
            metrics: folder.description().metrics.clone(),
            convergence: decode_convergence(folder)?,
            complete: folder.attribute("complete")?,
            hosts,
        };
        mapping.check().map_err(|error| folder.invalid(error))?;
        Ok(mapping)
    }
}

pub(super) fn encode_convergence(points: &[ConvergencePoint]) -> Table {
    Table::new("convergence")
        .u32("island", points.iter().map(|point| point.island))
        .u64("evaluations", points.iter().map(|point| point.evaluations))
        .f64("cost", points.iter().map(|point| point.cost))
}

pub(super) fn decode_convergence(folder: &Folder) -> Result<Vec<ConvergencePoint>, ArtifactError> {
    let table = folder.table("convergence")?;
    let (island, evaluations, cost) = (table.u32("island")?, table.u64("evaluations")?, table.f64("cost")?);
    let point =
        |row: usize| ConvergencePoint { island: island[row], evaluations: evaluations[row], cost: cost[row] };
    Ok((0..table.rows()).map(point).collect())
}

impl Codec for Metrics {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let names: BTreeSet<&String> = self.placements.iter().flat_map(|row| row.values.keys()).collect();
        let table = Table::new("placements")
            .text("placement", self.placements.iter().map(|row| row.origin.name()))
            .u32("sample", self.placements.iter().map(|row| row.sample));
        let table = names.into_iter().fold(table, |table, name| {
            table.optional_f64(name, self.placements.iter().map(|row| row.values.get(name).copied()))
        });
        Contents::new().table(table).metrics(&self.summary)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("placements")?;
        let origin = |name: String| {
            let origin = PlacementOrigin::ALL.into_iter().find(|origin| origin.name() == name);
            origin
                .ok_or_else(|| table.error("placement", format!("holds `{name}`, which is not a placement")))
        };
        let origins: Vec<PlacementOrigin> =
            table.text("placement")?.into_iter().map(origin).collect::<Result<_, _>>()?;
        let mut placements: Vec<PlacementMetrics> = origins
            .into_iter()
            .zip(table.u32("sample")?)
            .map(|(origin, sample)| PlacementMetrics { origin, sample, values: BTreeMap::new() })
            .collect();
        for name in table.names().into_iter().filter(|name| name != "placement" && name != "sample") {
            for (row, value) in placements.iter_mut().zip(table.optional_f64(&name)?) {
                row.values.extend(value.map(|value| (name.clone(), value)));
            }
        }
        Ok(Self { placements, summary: folder.description().metrics.clone() })
    }
}

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
