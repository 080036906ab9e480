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

use std::collections::BTreeMap;

use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Dependency, Edge, Events, Phase, PhaseSummary,
    Process, ProcessDemand, RankSummary, SizeBin, Stream, Task, TaskDag, TaskGraph, TraceSummary, WorkUnit,
};

use super::traits::{DemandedCapability, DemandedDevice, decode_demands, encode_demands};
use crate::codec::{Codec, Contents, joined};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;
use crate::table::Table;
use crate::value::column;

impl Codec for TaskGraph {
    const SCHEMA: u32 = 2;
    const CONTENTS: &'static str = "The communication matrix of a program: who sends how much to whom.";
    const TABLES: &'static [TableForm] = &[
        Process::TABLE,
        Edge::TABLE,
        SizeBin::TABLE,
        Phase::TABLE,
        PhaseProcess::TABLE,
        PhaseEdge::TABLE,
        TableForm { when: CollectiveCalls::TABLE.when, ..Member::TABLE },
        CollectiveCalls::TABLE,
        ProcessDemand::TABLE,
        DemandedCapability::TABLE,
        DemandedDevice::TABLE,
        Stream::TABLE,
    ];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("processes", "number of ranks"),
        ("pairs", "ordered pairs of ranks that exchange messages"),
        ("messages", "number of messages"),
        ("bytes", "sum of their lengths"),
        ("duration_s", "seconds from the first event of the trace to the last"),
        ("collectives", "calls of collective operations, where they are kept"),
        (
            "collective_bytes",
            "bytes of collective operations among those of all messages, where `hopmap record` counted them",
        ),
        ("incomplete", "1 where parts of the recording are missing"),
    ];

    fn encode(&self) -> Contents {
        let contents = Contents::new()
            .table(Process::table(&self.processes))
            .table(Edge::table(&self.edges))
            .given(SizeBin::table(&self.sizes))
            .metric("processes", self.processes.len() as f64)
            .metric("pairs", self.edges.len() as f64)
            .metric("messages", self.messages() as f64)
            .metric("bytes", self.bytes() as f64);
        let contents = encode_collectives(encode_phases(contents, &self.phases), &self.collectives);
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
        let metric = |name| folder.description().metrics.get(name).copied();
        let graph = Self {
            processes: folder.rows()?,
            edges: folder.rows()?,
            duration_s: metric("duration_s"),
            sizes: folder.given_rows()?,
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

table_rows!("processes": Process [rank = "MPI rank"] {
    host: Option<String> = "host on which the rank ran",
    compute_s: Option<f64> = "seconds outside of communication",
    communication_s: Option<f64> = "seconds in communication calls",
    collective_s: Option<f64> = "of these, seconds in collective operations",
});

table_rows!("edges": Edge {
    source: u32 = "rank that sends",
    destination: u32 = "rank that receives",
    messages: u64 = "number of messages",
    bytes: u64 = "sum of their lengths",
});

table_rows!("sizes" if "with `sizes = true`, and of recordings": SizeBin {
    source: u32 = "rank that sends",
    destination: u32 = "rank that receives",
    at_least_bytes: u64 = "lower end of the bin",
    messages: u64 = "messages in the bin",
    bytes: u64 = "sum of their lengths",
});

table_rows!("phases" if "with `phases`": Phase [phase = "phase, from 0"] {
    name: Option<String> = "region that defines the phase",
    begin_s: Option<f64> = "begin, in seconds after the first event",
    end_s: Option<f64> = "end, in seconds after the first event",
} other compute_s edges);

table_rows!("phase_processes" if "with `phases`": struct PhaseProcess {
    phase: u32 = "phase",
    rank: u32 = "MPI rank",
    compute_s: Option<f64> = "seconds outside of communication in this phase",
});

table_rows!("phase_edges" if "with `phases`": struct PhaseEdge {
    phase: u32 = "phase",
    source: u32 = "rank that sends",
    destination: u32 = "rank that receives",
    messages: u64 = "number of messages in this phase",
    bytes: u64 = "sum of their lengths",
});

fn encode_phases(contents: Contents, phases: &[Phase]) -> Contents {
    if phases.is_empty() {
        return contents;
    }
    let numbered = || (0..).zip(phases);
    let processes = numbered().flat_map(|(phase, of)| {
        (0..).zip(&of.compute_s).map(move |(rank, &compute_s)| PhaseProcess { phase, rank, compute_s })
    });
    let edges = numbered().flat_map(|(phase, of)| {
        of.edges.iter().map(move |&Edge { source, destination, messages, bytes }| PhaseEdge {
            phase,
            source,
            destination,
            messages,
            bytes,
        })
    });
    contents.table(Phase::table(phases)).table(PhaseProcess::table(processes)).table(PhaseEdge::table(edges))
}

fn decode_phases(folder: &Folder) -> Result<Vec<Phase>, ArtifactError> {
    let mut phases: Vec<Phase> = folder.given_rows()?;
    if !folder.description().tables.contains_key(Phase::TABLE.name) {
        return Ok(phases);
    }
    let table = folder.table(PhaseProcess::TABLE.name)?;
    for PhaseProcess { phase, rank, compute_s } in PhaseProcess::read(&table)? {
        let times = phases.get_mut(phase as usize).map(|phase| &mut phase.compute_s);
        let times = times.filter(|times| times.len() == rank as usize);
        let wrong = || table.error("rank", "does not number the processes of every phase consecutively");
        times.ok_or_else(wrong)?.push(compute_s);
    }
    for PhaseEdge { phase, source, destination, messages, bytes } in folder.rows()? {
        let phase = folder.owner::<PhaseEdge, _>(&mut phases, phase)?;
        phase.edges.push(Edge { source, destination, messages, bytes });
    }
    Ok(phases)
}

fn encode_collectives(contents: Contents, collectives: &CollectiveTable) -> Contents {
    if collectives.is_empty() {
        return contents;
    }
    contents
        .table(encode_communicators(&collectives.communicators))
        .table(CollectiveCalls::table(&collectives.calls))
        .metric("collectives", collectives.operations() as f64)
}

fn decode_collectives(folder: &Folder) -> Result<CollectiveTable, ArtifactError> {
    if !folder.description().tables.contains_key(CollectiveCalls::TABLE.name) {
        return Ok(CollectiveTable::default());
    }
    Ok(CollectiveTable { communicators: decode_communicators(folder)?, calls: folder.rows()? })
}

table_rows!("communicators": pub(super) struct Member {
    communicator: u32 = "number of the communicator",
    rank: u32 = "a member, as a rank in MPI_COMM_WORLD",
});

pub(super) fn encode_communicators(communicators: &[Vec<u32>]) -> Table {
    let members = (0..)
        .zip(communicators)
        .flat_map(|(communicator, ranks)| ranks.iter().map(move |&rank| Member { communicator, rank }));
    Member::table(members)
}

pub(super) fn decode_communicators(folder: &Folder) -> Result<Vec<Vec<u32>>, ArtifactError> {
    let table = folder.table(Member::TABLE.name)?;
    let mut communicators: Vec<Vec<u32>> = Vec::new();
    for Member { communicator, rank } in Member::read(&table)? {
        if communicator as usize == communicators.len() {
            communicators.push(Vec::new());
        }
        match communicators.len().checked_sub(1) {
            Some(last) if last == communicator as usize => communicators[last].push(rank),
            _ => return Err(table.error("communicator", "does not number the communicators consecutively")),
        }
    }
    Ok(communicators)
}

value_names!(CollectiveOperation = &CollectiveOperation::NAMES);

table_rows!("collectives" if "where collective operations are kept": CollectiveCalls {
    communicator: u32 = "number of the communicator",
    operation: CollectiveOperation = "operation, such as `allreduce`",
    root: Option<u32> = "root, for operations that have one",
    bytes: u64 = "bytes of a block",
    calls: u64 = "number of calls",
    uneven: u64 = "of these, calls whose blocks differ in length",
});

impl Codec for TaskDag {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "Tasks, the work of each, and the dependencies between them.";
    const TABLES: &'static [TableForm] = &[Task::TABLE, Dependency::TABLE, TaskName::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("tasks", "number of tasks"),
        ("edges", "number of dependencies"),
        ("ranks", "number of ranks of the traced program"),
        ("bytes", "sum over all dependencies"),
        ("work", "sum of the work of all tasks"),
        ("critical_work", "work along the critical path, without communication"),
        (
            "recorded_s",
            "run time of the traced program: of its longest process, from the first to the last event",
        ),
    ];

    fn encode(&self) -> Contents {
        let bytes: u128 = self.dependencies.iter().map(|edge| u128::from(edge.bytes)).sum();
        let names = self.names.iter().map(|name| TaskName { name: name.clone() });
        let contents = Contents::new()
            .table(Task::table(&self.tasks))
            .table(Dependency::table(&self.dependencies))
            .given(TaskName::table(names));
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
        let unit = match folder.description().attributes.get("unit").and_then(|unit| unit.as_str()) {
            None => WorkUnit::Seconds,
            Some("time") => WorkUnit::Time,
            Some(other) => return Err(folder.invalid(UnknownUnit(other.to_owned()))),
        };
        let dag = Self {
            names: folder.given_rows()?.into_iter().map(|TaskName { name }| name).collect(),
            unit,
            recorded_s: folder.description().metrics.get("recorded_s").copied(),
            tasks: folder.rows()?,
            dependencies: folder.rows()?,
        };
        dag.check().map_err(|error| folder.invalid(error))?;
        Ok(dag)
    }
}

table_rows!("tasks": Task [task = "task, from 0"] {
    rank: Option<u32> = "MPI rank that runs it, in a traced program",
    work: f64 = "seconds, or the unit of the file",
});

table_rows!("edges": Dependency {
    source: u32 = "task that has to be done first",
    destination: u32 = "task that depends on it",
    bytes: u64 = "bytes sent from one to the other",
});

table_rows!("names" if "where tasks have names": struct TaskName { name: String = "name of the task of this row" });

#[derive(Debug, thiserror::Error)]
#[error("unknown unit of work `{0}`")]
struct UnknownUnit(String);

impl Codec for Events {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "Every message of a trace.";
    const TABLES: &'static [TableForm] = &[TableForm {
        name: "messages",
        when: "",
        columns: &[&[
            column::<Option<f64>>("time_s", "seconds after the first event of the trace"),
            column::<u32>("source", "rank that sends"),
            column::<u32>("destination", "rank that receives"),
            column::<Option<u32>>("tag", "MPI tag"),
            column::<u64>("bytes", "length"),
            column::<String>("communicator", "name of the communicator, else its number"),
            column::<Option<String>>("operation", "MPI call that sends it"),
            column::<Option<String>>("region", "function around the call"),
        ]],
    }];
    const METRICS: &'static [(&'static str, &'static str)] = &[("messages", "number of messages")];

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
    const CONTENTS: &'static str = "A program in a few numbers.";
    const TABLES: &'static [TableForm] =
        &[RankSummary::TABLE, TableForm { name: HEAVIEST, ..Edge::TABLE }, PhaseSummary::TABLE];

    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        let count = |name: &str| Some(format!("{} {name}", metrics.get(name)?));
        let percent =
            |name: &str, what: &str| Some(format!("{what} {:.1} % of the time", 100.0 * metrics.get(name)?));
        joined([
            count("ranks"),
            count("messages"),
            count("bytes"),
            percent("communication_share", "communication"),
            percent("collective_share", "collectives"),
            metrics.get("compute_imbalance").map(|value| format!("imbalance {value:.2}")),
        ])
    }

    fn encode(&self) -> Contents {
        Contents::new()
            .table(RankSummary::table(&self.ranks))
            .table(Edge::add(Table::new(HEAVIEST), self.heaviest.iter()))
            .given(PhaseSummary::table(&self.phases))
            .metrics(&self.totals)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self {
            totals: folder.description().metrics.clone(),
            ranks: folder.rows()?,
            heaviest: Edge::read(&folder.table(HEAVIEST)?)?.collect(),
            phases: folder.given_rows()?,
        })
    }
}

/// The table of the pairs that exchange most.
const HEAVIEST: &str = "heaviest";

table_rows!("ranks": RankSummary [rank = "MPI rank"] {
    messages_sent: u64 = "messages it sends",
    bytes_sent: u64 = "bytes it sends",
    messages_received: u64 = "messages it receives",
    bytes_received: u64 = "bytes it receives",
    partners: u32 = "ranks it exchanges messages with",
    compute_s: Option<f64> = "seconds outside of communication",
    communication_s: Option<f64> = "seconds in communication calls",
    collective_s: Option<f64> = "of these, seconds in collective operations",
});

table_rows!("phases" if "where the communication matrix has phases": PhaseSummary [phase = "phase"] {
    name: Option<String> = "region that defines it",
    messages: u64 = "messages in this phase",
    bytes: u64 = "sum of their lengths",
    compute_s: Option<f64> = "seconds outside of communication, over all ranks",
});
