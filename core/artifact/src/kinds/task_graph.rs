//! `task-graph`: tables `processes` and `edges`; `sizes` if lengths of messages were told apart; `phases`,
//! `phase_processes` and `phase_edges` if phases were; `communicators` and `collectives` if collective operations were
//! kept; `demands`, `demanded_capabilities`, `demanded_devices` and `streams` if something is asked for.

use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Edge, Phase, Process, SizeBin, TaskGraph,
};

use crate::kinds::traits::{decode_demands, encode_demands};
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
