//! Programs.
//!
//! - `task-graph`: tables `processes` and `edges`; `sizes` if message lengths were recorded; `phases`,
//!   `phase_processes` and `phase_edges` if phases were recorded; `communicators` and `collectives` if
//!   collective operations were kept; `demands`, `demanded_capabilities`, `demanded_devices` and `streams`
//!   if processes have demands.
//! - `task-dag`: tables `tasks` and `edges`, and `names` where tasks have names.
//! - `events`: table `messages`.
//! - `trace-summary`: tables `ranks` and `heaviest`; `phases` if phases were recorded. The totals are its
//!   metrics.

use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Dependency, Edge, Events, Phase, PhaseSummary,
    Process, RankSummary, SizeBin, Task, TaskDag, TaskGraph, TraceSummary, WorkUnit, to_u32,
};

use super::traits::{decode_demands, encode_demands};
use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for TaskGraph {
    const SCHEMA: u32 = 2;

    fn encode(&self) -> Contents {
        let processes = Table::new("processes").u32("rank", 0..to_u32(self.processes.len()));
        let mut contents = Contents::new()
            .table(encode_processes(processes, &self.processes))
            .table(encode_edges(Table::new("edges"), &self.edges))
            .metric("processes", self.processes.len() as f64)
            .metric("pairs", self.edges.len() as f64)
            .metric("messages", self.messages() as f64)
            .metric("bytes", self.bytes() as f64);
        if !self.sizes.is_empty() {
            contents = contents.table(encode_sizes(Table::new("sizes"), &self.sizes));
        }
        if !self.phases.is_empty() {
            contents = encode_phases(contents, &self.phases);
        }
        if !self.collectives.is_empty() {
            contents = encode_collectives(contents, &self.collectives);
        }
        let mut contents = encode_demands(contents, &self.demands);
        if let Some(bytes) = self.collective_bytes {
            contents = contents.metric("collective_bytes", bytes);
        }
        if self.is_incomplete {
            contents = contents.metric("incomplete", 1.0);
        }
        match self.duration_s {
            Some(duration_s) => contents.metric("duration_s", duration_s),
            None => contents,
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let processes = folder.table("processes")?;
        processes.index("rank")?;
        let metric = |name| folder.description().metrics.get(name).copied();
        let graph = Self {
            processes: decode_processes(&processes)?,
            edges: decode_edges(&folder.table("edges")?)?,
            duration_s: metric("duration_s"),
            sizes: optional(folder, "sizes", decode_sizes)?,
            phases: decode_phases(folder)?,
            collectives: decode_collectives(folder)?,
            collective_bytes: metric("collective_bytes"),
            is_incomplete: metric("incomplete").is_some(),
            demands: decode_demands(folder)?,
        };
        graph.check().map_err(|error| folder.invalid(error))?;
        Ok(graph)
    }
}

/// The rows of a table that is written only if it has rows.
fn optional<T>(
    folder: &Folder,
    table: &str,
    decode: impl FnOnce(&Columns) -> Result<Vec<T>, ArtifactError>,
) -> Result<Vec<T>, ArtifactError> {
    folder.optional_table(table)?.map_or_else(|| Ok(Vec::new()), |table| decode(&table))
}

rows!(encode_processes, decode_processes: Process {
    optional_text host,
    optional_f64 compute_s,
    optional_f64 communication_s,
    optional_f64 collective_s,
});

rows!(encode_edges, decode_edges: Edge { u32 source, u32 destination, u64 messages, u64 bytes });

rows!(encode_sizes, decode_sizes: SizeBin {
    u32 source,
    u32 destination,
    u64 at_least_bytes,
    u64 messages,
    u64 bytes,
});

fn encode_phases(contents: Contents, phases: &[Phase]) -> Contents {
    let numbered = || (0..).zip(phases);
    let list = Table::new("phases")
        .u32("phase", 0..to_u32(phases.len()))
        .optional_text("name", phases.iter().map(|phase| phase.name.as_deref()))
        .optional_f64("begin_s", phases.iter().map(|phase| phase.begin_s))
        .optional_f64("end_s", phases.iter().map(|phase| phase.end_s));
    let times = || {
        numbered().flat_map(|(number, phase)| {
            (0..).zip(&phase.compute_s).map(move |(rank, time)| (number, rank, *time))
        })
    };
    let processes = Table::new("phase_processes")
        .u32("phase", times().map(|(phase, ..)| phase))
        .u32("rank", times().map(|(_, rank, _)| rank))
        .optional_f64("compute_s", times().map(|(.., time)| time));
    let edges = phases.iter().flat_map(|phase| &phase.edges);
    let owners = numbered().flat_map(|(number, phase)| std::iter::repeat_n(number, phase.edges.len()));
    contents
        .table(list)
        .table(processes)
        .table(encode_edges(Table::new("phase_edges").u32("phase", owners), edges))
}

fn decode_phases(folder: &Folder) -> Result<Vec<Phase>, ArtifactError> {
    let Some(list) = folder.optional_table("phases")? else { return Ok(Vec::new()) };
    list.index("phase")?;
    let (names, begins, ends) =
        (list.optional_text("name")?, list.optional_f64("begin_s")?, list.optional_f64("end_s")?);
    let mut phases: Vec<Phase> = names
        .into_iter()
        .zip(begins.into_iter().zip(ends))
        .map(|(name, (begin_s, end_s))| Phase { name, begin_s, end_s, ..Phase::default() })
        .collect();
    let processes = folder.table("phase_processes")?;
    let rows = processes.u32("phase")?.into_iter().zip(processes.u32("rank")?);
    for ((phase, rank), time) in rows.zip(processes.optional_f64("compute_s")?) {
        let place = phases.get_mut(phase as usize).filter(|place| place.compute_s.len() == rank as usize);
        place
            .ok_or_else(|| {
                processes.error("rank", "does not number the processes of every phase consecutively")
            })?
            .compute_s
            .push(time);
    }
    let edges = folder.table("phase_edges")?;
    for (phase, edge) in edges.u32("phase")?.into_iter().zip(decode_edges(&edges)?) {
        let place = phases.get_mut(phase as usize);
        place.ok_or_else(|| edges.error("phase", "names a phase that is not in `phases`"))?.edges.push(edge);
    }
    Ok(phases)
}

fn encode_collectives(contents: Contents, collectives: &CollectiveTable) -> Contents {
    let CollectiveTable { communicators, calls } = collectives;
    let communicators = encode_communicators(communicators);
    let operations = encode_calls(Table::new("collectives"), calls);
    contents.table(communicators).table(operations).metric("collectives", collectives.operations() as f64)
}

fn decode_collectives(folder: &Folder) -> Result<CollectiveTable, ArtifactError> {
    if !folder.description().tables.contains_key("collectives") {
        return Ok(CollectiveTable::default());
    }
    Ok(CollectiveTable {
        communicators: decode_communicators(folder)?,
        calls: decode_calls(&folder.table("collectives")?)?,
    })
}

/// The table `communicators`: a row per member of each communicator.
pub(super) fn encode_communicators(communicators: &[Vec<u32>]) -> Table {
    let members =
        || (0..).zip(communicators).flat_map(|(number, all)| all.iter().map(move |rank| (number, *rank)));
    Table::new("communicators")
        .u32("communicator", members().map(|(number, _): (u32, u32)| number))
        .u32("rank", members().map(|(_, rank)| rank))
}

pub(super) fn decode_communicators(folder: &Folder) -> Result<Vec<Vec<u32>>, ArtifactError> {
    let table = folder.table("communicators")?;
    let mut communicators: Vec<Vec<u32>> = Vec::new();
    for (number, rank) in table.u32("communicator")?.into_iter().zip(table.u32("rank")?) {
        if number as usize == communicators.len() {
            communicators.push(Vec::new());
        }
        match communicators.len().checked_sub(1) {
            Some(last) if last == number as usize => communicators[last].push(rank),
            _ => return Err(table.error("communicator", "does not number the communicators consecutively")),
        }
    }
    Ok(communicators)
}

const OPERATIONS: [(CollectiveOperation, &str); 17] = CollectiveOperation::NAMES;

rows!(encode_calls, decode_calls: CollectiveCalls {
    u32 communicator,
    text operation in OPERATIONS,
    optional_u32 root,
    u64 bytes,
    u64 calls,
    u64 uneven,
});

impl Codec for TaskDag {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let tasks = Table::new("tasks").u32("task", 0..to_u32(self.tasks.len()));
        let bytes: u128 = self.dependencies.iter().map(|edge| u128::from(edge.bytes)).sum();
        let contents = Contents::new()
            .table(encode_tasks(tasks, &self.tasks))
            .table(encode_dependencies(Table::new("edges"), &self.dependencies));
        let contents = match self.names.is_empty() {
            true => contents,
            false => contents.table(Table::new("names").text("name", &self.names)),
        };
        let contents = match self.unit {
            WorkUnit::Seconds => contents,
            WorkUnit::Time => contents.attribute("unit", "time".into()),
        };
        let contents = match self.recorded_s {
            None => contents,
            Some(seconds) => contents.metric("recorded_s", seconds),
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
        let unit = match folder.description().attributes.get("unit").and_then(|unit| unit.as_str()) {
            None => WorkUnit::Seconds,
            Some("time") => WorkUnit::Time,
            Some(other) => return Err(folder.invalid(UnknownUnit(other.to_owned()))),
        };
        let dag = Self {
            names: folder
                .optional_table("names")?
                .map_or_else(|| Ok(Vec::new()), |table| table.text("name"))?,
            unit,
            recorded_s: folder.description().metrics.get("recorded_s").copied(),
            tasks: decode_tasks(&tasks)?,
            dependencies: decode_dependencies(&folder.table("edges")?)?,
        };
        dag.check().map_err(|error| folder.invalid(error))?;
        Ok(dag)
    }
}

rows!(encode_tasks, decode_tasks: Task { optional_u32 rank, f64 work });

rows!(encode_dependencies, decode_dependencies: Dependency { u32 source, u32 destination, u64 bytes });

#[derive(Debug, thiserror::Error)]
#[error("unknown unit of work `{0}`")]
struct UnknownUnit(String);

impl Codec for Events {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .written_table("messages", self.table(), self.rows())
            .metric("messages", self.rows() as f64)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let rows = folder.description().tables.get("messages").map(|table| table.rows);
        let rows = rows.ok_or_else(|| {
            ArtifactError::damaged(folder.path(), &"it does not contain the table `messages`")
        })?;
        Ok(Self::new(folder.table_path("messages"), rows))
    }
}

impl Codec for TraceSummary {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = Table::new("ranks").u32("rank", 0..to_u32(self.ranks.len()));
        let contents = Contents::new()
            .table(encode_ranks(ranks, &self.ranks))
            .table(encode_edges(Table::new("heaviest"), &self.heaviest))
            .metrics(&self.totals);
        if self.phases.is_empty() {
            return contents;
        }
        let phases = Table::new("phases").u32("phase", 0..to_u32(self.phases.len()));
        contents.table(encode_summaries(phases, &self.phases))
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let ranks = folder.table("ranks")?;
        ranks.index("rank")?;
        Ok(Self {
            totals: folder.description().metrics.clone(),
            ranks: decode_ranks(&ranks)?,
            heaviest: decode_edges(&folder.table("heaviest")?)?,
            phases: optional(folder, "phases", |table| {
                table.index("phase")?;
                decode_summaries(table)
            })?,
        })
    }
}

rows!(encode_ranks, decode_ranks: RankSummary {
    u64 messages_sent,
    u64 bytes_sent,
    u64 messages_received,
    u64 bytes_received,
    u32 partners,
    optional_f64 compute_s,
    optional_f64 communication_s,
    optional_f64 collective_s,
});

rows!(encode_summaries, decode_summaries: PhaseSummary {
    optional_text name,
    u64 messages,
    u64 bytes,
    optional_f64 compute_s,
});
