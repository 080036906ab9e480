//! `mapping`: tables `ranks`, `hosts` and `convergence`; `metrics`: table `placements`, one column per metric; `schedule`: tables `tasks`,
//! `processors` and `convergence`.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{
    ConvergencePoint, HostSlots, Mapping, Metrics, Placement, PlacementMetrics, PlacementOrigin, Processor,
    Schedule, ScheduledTask, to_u32,
};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for Mapping {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = Table::new("ranks")
            .u32("rank", 0..to_u32(self.ranks.len()))
            .u32("slot", self.ranks.iter().map(|placement| placement.slot))
            .text("host", (0..self.ranks.len()).map(|rank| self.host_of(rank)))
            .optional_u32("core", self.ranks.iter().map(|placement| placement.core));
        Contents::new()
            .table(ranks)
            .table(encode_hosts(Table::new("hosts"), &self.hosts))
            .table(encode_convergence(Table::new("convergence"), &self.convergence))
            .metrics(&self.metrics)
            .attribute("weight", serde_json::to_value(self.weight).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let hosts = decode_hosts(&folder.table("hosts")?)?;
        let index: BTreeMap<&str, u32> =
            hosts.iter().enumerate().map(|(index, host)| (host.host.as_str(), to_u32(index))).collect();
        let table = folder.table("ranks")?;
        table.index("rank")?;
        let (slots, names, cores) = (table.u32("slot")?, table.text("host")?, table.optional_u32("core")?);
        let placement = |((slot, name), core): ((u32, String), Option<u32>)| match index.get(name.as_str()) {
            Some(&host) => Ok(Placement { slot, host, core }),
            None => Err(table.error("host", format!("names `{name}`, which is not in the table `hosts`"))),
        };
        let ranks = slots.into_iter().zip(names).zip(cores).map(placement).collect::<Result<_, _>>()?;
        let mapping = Self {
            ranks,
            weight: folder.attribute("weight")?,
            metrics: folder.description().metrics.clone(),
            convergence: decode_convergence(&folder.table("convergence")?)?,
            complete: folder.attribute("complete")?,
            hosts,
        };
        mapping.check().map_err(|error| folder.invalid(error))?;
        Ok(mapping)
    }
}

rows!(encode_hosts, decode_hosts: HostSlots { text host, u32 first_slot, u32 slots });

rows!(encode_convergence, decode_convergence: ConvergencePoint { u32 island, u64 evaluations, f64 cost });

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
    const SCHEMA: u32 = 2;

    fn encode(&self) -> Contents {
        let tasks = Table::new("tasks")
            .u32("task", 0..to_u32(self.tasks.len()))
            .u32("processor", self.tasks.iter().map(|task| task.processor))
            .u32("turn", self.tasks.iter().map(|task| task.turn))
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
        let processors = Table::new("processors").u32("processor", 0..to_u32(self.processors.len()));
        Contents::new()
            .table(tasks)
            .table(encode_processors(processors, &self.processors))
            .table(encode_convergence(Table::new("convergence"), &self.convergence))
            .metrics(&self.metrics)
            .attribute("model", serde_json::to_value(self.model).unwrap_or_default())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("tasks")?;
        table.index("task")?;
        let (processors, turns) = (table.u32("processor")?, table.u32("turn")?);
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
        let processors = folder.table("processors")?;
        processors.index("processor")?;
        let schedule = Self {
            tasks: (0..table.rows()).map(task).collect(),
            names: if table.has("name") { table.text("name")? } else { Vec::new() },
            processors: decode_processors(&processors)?,
            model: folder.attribute("model")?,
            metrics: folder.description().metrics.clone(),
            convergence: decode_convergence(&folder.table("convergence")?)?,
            complete: folder.attribute("complete")?,
        };
        schedule.check().map_err(|error| folder.invalid(error))?;
        Ok(schedule)
    }
}

rows!(encode_processors, decode_processors: Processor { text name, f64 available, optional_u32 slot });
