//! What programs do.
//!
//! - `task-graph`: tables `processes` and `edges`; `sizes` if lengths of messages were told apart; `phases`, `phase_processes` and
//!   `phase_edges` if phases were; `communicators` and `collectives` if collective operations were kept; `demands`,
//!   `demanded_capabilities`, `demanded_devices` and `streams` if something is asked for.
//! - `task-dag`: tables `tasks` and `edges`, and `names` where tasks have names.
//! - `events`: table `messages`.
//! - `trace-summary`: tables `ranks` and `heaviest`; `phases` if phases were told apart. The totals are its metrics.

use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Dependency, Edge, Events, Phase, PhaseSummary,
    Process, RankSummary, SizeBin, Task, TaskDag, TaskGraph, TraceSummary, WorkUnit,
};

use super::traits::{decode_demands, encode_demands};
use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for TaskGraph {
    const SCHEMA: u32 = 2;

    fn encode(&self) -> Contents {
        let processes = Table::new("processes")
            .u32("rank", 0..self.processes.len() as u32)
            .optional_text("host", self.processes.iter().map(|process| process.host.as_deref()))
            .optional_f64("compute_s", self.processes.iter().map(|process| process.compute_s))
            .optional_f64("communication_s", self.processes.iter().map(|process| process.communication_s))
            .optional_f64("collective_s", self.processes.iter().map(|process| process.collective_s));
        let mut contents = Contents::new()
            .table(processes)
            .table(edge_columns(Table::new("edges"), || self.edges.iter().copied()))
            .metric("processes", self.processes.len() as f64)
            .metric("pairs", self.edges.len() as f64)
            .metric("messages", self.messages() as f64)
            .metric("bytes", self.bytes() as f64);
        if !self.sizes.is_empty() {
            contents = contents.table(encode_sizes(&self.sizes));
        }
        if !self.phases.is_empty() {
            contents = encode_phases(contents, &self.phases);
        }
        if !self.collectives.is_empty() {
            contents = encode_collectives(contents, &self.collectives);
        }
        let contents = encode_demands(contents, &self.demands);
        match self.duration_s {
            Some(duration_s) => contents.metric("duration_s", duration_s),
            None => contents,
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let processes = folder.table("processes")?;
        processes.index("rank")?;
        let hosts = processes.optional_text("host")?;
        let times = ["compute_s", "communication_s", "collective_s"].map(|name| processes.optional_f64(name));
        let [compute, communication, collective] = times;
        let times = compute?.into_iter().zip(communication?).zip(collective?);
        let graph = Self {
            processes: hosts
                .into_iter()
                .zip(times)
                .map(|(host, ((compute_s, communication_s), collective_s))| Process {
                    host,
                    compute_s,
                    communication_s,
                    collective_s,
                })
                .collect(),
            edges: decode_edges(&folder.table("edges")?)?,
            duration_s: folder.description().metrics.get("duration_s").copied(),
            sizes: decode_sizes(folder)?,
            phases: decode_phases(folder)?,
            collectives: decode_collectives(folder)?,
            demands: decode_demands(folder)?,
        };
        graph.check().map_err(|error| folder.invalid(error))?;
        Ok(graph)
    }
}

fn edge_columns<I: Iterator<Item = Edge>>(table: Table, edges: impl Fn() -> I) -> Table {
    table
        .u32("source", edges().map(|edge| edge.source))
        .u32("destination", edges().map(|edge| edge.destination))
        .u64("messages", edges().map(|edge| edge.messages))
        .u64("bytes", edges().map(|edge| edge.bytes))
}

fn decode_edges(table: &Columns) -> Result<Vec<Edge>, ArtifactError> {
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let (messages, bytes) = (table.u64("messages")?, table.u64("bytes")?);
    let edge = |row: usize| Edge {
        source: source[row],
        destination: destination[row],
        messages: messages[row],
        bytes: bytes[row],
    };
    Ok((0..table.rows()).map(edge).collect())
}

fn encode_sizes(sizes: &[SizeBin]) -> Table {
    Table::new("sizes")
        .u32("source", sizes.iter().map(|bin| bin.source))
        .u32("destination", sizes.iter().map(|bin| bin.destination))
        .u64("at_least_bytes", sizes.iter().map(|bin| bin.at_least_bytes))
        .u64("messages", sizes.iter().map(|bin| bin.messages))
        .u64("bytes", sizes.iter().map(|bin| bin.bytes))
}

fn decode_sizes(folder: &Folder) -> Result<Vec<SizeBin>, ArtifactError> {
    if !folder.description().tables.contains_key("sizes") {
        return Ok(Vec::new());
    }
    let table = folder.table("sizes")?;
    let least = table.u64("at_least_bytes")?;
    let bin = |(edge, at_least_bytes): (Edge, u64)| {
        let Edge { source, destination, messages, bytes } = edge;
        SizeBin { source, destination, at_least_bytes, messages, bytes }
    };
    Ok(decode_edges(&table)?.into_iter().zip(least).map(bin).collect())
}

fn encode_phases(contents: Contents, phases: &[Phase]) -> Contents {
    let numbered = || (0..).zip(phases);
    let list = Table::new("phases")
        .u32("phase", 0..phases.len() as u32)
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
    let edges = || numbered().flat_map(|(_, phase): (u32, _)| phase.edges.iter().copied());
    let owners = numbered().flat_map(|(number, phase)| std::iter::repeat_n(number, phase.edges.len()));
    contents
        .table(list)
        .table(processes)
        .table(edge_columns(Table::new("phase_edges").u32("phase", owners), edges))
}

fn decode_phases(folder: &Folder) -> Result<Vec<Phase>, ArtifactError> {
    if !folder.description().tables.contains_key("phases") {
        return Ok(Vec::new());
    }
    let list = folder.table("phases")?;
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
            .ok_or_else(|| processes.error("rank", "does not count the processes of every phase"))?
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
    let members =
        || (0..).zip(communicators).flat_map(|(number, all)| all.iter().map(move |rank| (number, *rank)));
    let communicators = Table::new("communicators")
        .u32("communicator", members().map(|(number, _): (u32, u32)| number))
        .u32("rank", members().map(|(_, rank)| rank));
    let operations = Table::new("collectives")
        .u32("communicator", calls.iter().map(|calls| calls.communicator))
        .text("operation", calls.iter().map(|calls| calls.operation.name()))
        .optional_u32("root", calls.iter().map(|calls| calls.root))
        .u64("bytes", calls.iter().map(|calls| calls.bytes))
        .u64("calls", calls.iter().map(|calls| calls.calls))
        .u64("uneven", calls.iter().map(|calls| calls.uneven));
    contents.table(communicators).table(operations).metric("collectives", collectives.operations() as f64)
}

fn decode_collectives(folder: &Folder) -> Result<CollectiveTable, ArtifactError> {
    if !folder.description().tables.contains_key("collectives") {
        return Ok(CollectiveTable::default());
    }
    Ok(CollectiveTable { communicators: decode_communicators(folder)?, calls: decode_calls(folder)? })
}

fn decode_communicators(folder: &Folder) -> Result<Vec<Vec<u32>>, ArtifactError> {
    let table = folder.table("communicators")?;
    let mut communicators: Vec<Vec<u32>> = Vec::new();
    for (number, rank) in table.u32("communicator")?.into_iter().zip(table.u32("rank")?) {
        if number as usize == communicators.len() {
            communicators.push(Vec::new());
        }
        match communicators.len().checked_sub(1) {
            Some(last) if last == number as usize => communicators[last].push(rank),
            _ => return Err(table.error("communicator", "does not count the communicators in their order")),
        }
    }
    Ok(communicators)
}

fn decode_calls(folder: &Folder) -> Result<Vec<CollectiveCalls>, ArtifactError> {
    let table = folder.table("collectives")?;
    let (communicators, roots) = (table.u32("communicator")?, table.optional_u32("root")?);
    let (bytes, calls, uneven) = (table.u64("bytes")?, table.u64("calls")?, table.u64("uneven")?);
    let one = |(row, name): (usize, String)| {
        let operation = CollectiveOperation::of_name(&name);
        let unknown = || table.error("operation", format!("has `{name}`, which is no collective operation"));
        Ok(CollectiveCalls {
            communicator: communicators[row],
            operation: operation.ok_or_else(unknown)?,
            root: roots[row],
            bytes: bytes[row],
            calls: calls[row],
            uneven: uneven[row],
        })
    };
    table.text("operation")?.into_iter().enumerate().map(one).collect()
}

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

impl Codec for Events {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new()
            .written_table("messages", self.table(), self.rows())
            .metric("messages", self.rows() as f64)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let rows = folder.description().tables.get("messages").map(|table| table.rows);
        let rows = rows.ok_or_else(|| ArtifactError::Damaged {
            path: folder.path().into(),
            reason: "it holds no table `messages`".into(),
        })?;
        Ok(Self::new(folder.table_path("messages"), rows))
    }
}

impl Codec for TraceSummary {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let ranks = || self.ranks.iter();
        let by_rank = Table::new("ranks")
            .u32("rank", 0..self.ranks.len() as u32)
            .u64("messages_sent", ranks().map(|rank| rank.messages_sent))
            .u64("bytes_sent", ranks().map(|rank| rank.bytes_sent))
            .u64("messages_received", ranks().map(|rank| rank.messages_received))
            .u64("bytes_received", ranks().map(|rank| rank.bytes_received))
            .u32("partners", ranks().map(|rank| rank.partners))
            .optional_f64("compute_s", ranks().map(|rank| rank.compute_s))
            .optional_f64("communication_s", ranks().map(|rank| rank.communication_s))
            .optional_f64("collective_s", ranks().map(|rank| rank.collective_s));
        let pairs = || self.heaviest.iter();
        let heaviest = Table::new("heaviest")
            .u32("source", pairs().map(|pair| pair.source))
            .u32("destination", pairs().map(|pair| pair.destination))
            .u64("messages", pairs().map(|pair| pair.messages))
            .u64("bytes", pairs().map(|pair| pair.bytes));
        let contents = Contents::new().table(by_rank).table(heaviest).metrics(&self.totals);
        if self.phases.is_empty() {
            return contents;
        }
        let phases = || self.phases.iter();
        contents.table(
            Table::new("phases")
                .u32("phase", 0..self.phases.len() as u32)
                .optional_text("name", phases().map(|phase| phase.name.as_deref()))
                .u64("messages", phases().map(|phase| phase.messages))
                .u64("bytes", phases().map(|phase| phase.bytes))
                .optional_f64("compute_s", phases().map(|phase| phase.compute_s)),
        )
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self {
            totals: folder.description().metrics.clone(),
            ranks: ranks(folder)?,
            heaviest: heaviest(folder)?,
            phases: phases(folder)?,
        })
    }
}

fn ranks(folder: &Folder) -> Result<Vec<RankSummary>, ArtifactError> {
    let table = folder.table("ranks")?;
    table.index("rank")?;
    let (messages_sent, bytes_sent) = (table.u64("messages_sent")?, table.u64("bytes_sent")?);
    let (messages_received, bytes_received) = (table.u64("messages_received")?, table.u64("bytes_received")?);
    let partners = table.u32("partners")?;
    let (compute, communication) = (table.optional_f64("compute_s")?, table.optional_f64("communication_s")?);
    let collective = table.optional_f64("collective_s")?;
    let rank = |row: usize| RankSummary {
        messages_sent: messages_sent[row],
        bytes_sent: bytes_sent[row],
        messages_received: messages_received[row],
        bytes_received: bytes_received[row],
        partners: partners[row],
        compute_s: compute[row],
        communication_s: communication[row],
        collective_s: collective[row],
    };
    Ok((0..table.rows()).map(rank).collect())
}

fn heaviest(folder: &Folder) -> Result<Vec<Edge>, ArtifactError> {
    let table = folder.table("heaviest")?;
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let (messages, bytes) = (table.u64("messages")?, table.u64("bytes")?);
    let pair = |row: usize| Edge {
        source: source[row],
        destination: destination[row],
        messages: messages[row],
        bytes: bytes[row],
    };
    Ok((0..table.rows()).map(pair).collect())
}

fn phases(folder: &Folder) -> Result<Vec<PhaseSummary>, ArtifactError> {
    if !folder.description().tables.contains_key("phases") {
        return Ok(Vec::new());
    }
    let table = folder.table("phases")?;
    table.index("phase")?;
    let (messages, bytes) = (table.u64("messages")?, table.u64("bytes")?);
    let rows = table.optional_text("name")?.into_iter().zip(table.optional_f64("compute_s")?);
    let phase = |((name, compute_s), (messages, bytes))| PhaseSummary { name, messages, bytes, compute_s };
    Ok(rows.zip(messages.into_iter().zip(bytes)).map(phase).collect())
}
