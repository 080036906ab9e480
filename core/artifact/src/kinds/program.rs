//! Programs as operations of ranks:
//!
//! - `program`: tables `operations` and `communicators`. Columns without a meaning for an operation are null.

use std::ops::Range;
use std::time::Duration;

use hopmap_model::{
    APPROXIMATE, Action, Collective, CollectiveOperation, Envelope, Interned, Operation, OperationKind,
    Program, ProgramTotals, to_u32,
};

use super::task_graph::{decode_communicators, encode_communicators};
use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

/// Rows of a part of the table `operations` in memory.
const ROWS: usize = 1 << 16;

impl Codec for Program {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let all = self.operations.len();
        let part = |begin: usize| operations(self, begin..all.min(begin + ROWS));
        let others = (ROWS..all).step_by(ROWS).map(part);
        let ProgramTotals { messages, bytes, collectives, compute_s } = self.totals();
        let contents = Contents::new()
            .table_in_parts(part(0), others)
            .table(encode_communicators(&self.communicators))
            .metric("ranks", f64::from(self.ranks()))
            .metric("operations", all as f64)
            .metric("messages", messages as f64)
            .metric("bytes", bytes as f64)
            .metric("collectives", collectives as f64)
            .metric("compute_s", compute_s);
        let contents = match self.left_out.is_zero() {
            true => contents,
            false => contents.metric("left_out_s", self.left_out.as_secs_f64()),
        };
        let contents = match self.recorded {
            None => contents,
            Some(recorded) => contents.metric("recorded_s", recorded.as_secs_f64()),
        };
        if self.is_approximate { contents.metric(APPROXIMATE, 1.0) } else { contents }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let mut communicators = decode_communicators(folder)?;
        if communicators.is_empty() {
            communicators.push(Vec::new());
        }
        let mut reading = Reading {
            starts: vec![0],
            operations: Vec::new(),
            envelopes: Interned::new(),
            collectives: Interned::new(),
        };
        for part in folder.stream("operations")?.columns() {
            reading.part(&part?, communicators[0].len())?;
        }
        let Reading { mut starts, operations, envelopes, collectives } = reading;
        starts.resize(communicators[0].len() + 1, operations.len());
        let (envelopes, collectives) = (envelopes.into_values(), collectives.into_values());
        let metrics = &folder.description().metrics;
        let duration =
            |name| metrics.get(name).map(|&seconds| Duration::try_from_secs_f64(seconds)).transpose();
        let recorded = duration("recorded_s").map_err(|error| folder.invalid(error))?;
        let left_out = duration("left_out_s").map_err(|error| folder.invalid(error))?.unwrap_or_default();
        let is_approximate = metrics.contains_key(APPROXIMATE);
        let program = Self {
            starts,
            operations,
            envelopes,
            collectives,
            communicators,
            left_out,
            recorded,
            is_approximate,
        };
        program.check().map_err(|error| folder.invalid(error))?;
        Ok(program)
    }
}

/// The values of a row that depend on the kind of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Row {
    envelope: Option<Envelope>,
    collective: Option<Collective>,
    bytes: Option<u64>,
    seconds: Option<f64>,
    request: Option<u32>,
}

impl Row {
    fn of(program: &Program, operation: Operation) -> Self {
        let envelope = |place: u32| Some(program.envelopes[place as usize]);
        let none = Self::default();
        match operation.action() {
            Action::Compute { seconds } => Self { seconds: Some(seconds), ..none },
            Action::Send { envelope: place, bytes } | Action::Recv { envelope: place, bytes } => {
                Self { envelope: envelope(place), bytes: Some(bytes), ..none }
            }
            Action::Isend { envelope: place, bytes, request }
            | Action::Irecv { envelope: place, bytes, request } => {
                Self { envelope: envelope(place), bytes: Some(bytes), request: Some(request), ..none }
            }
            Action::Wait { request } | Action::Test { request } => Self { request: Some(request), ..none },
            Action::Waitall => none,
            Action::Collective { collective, bytes } => {
                let collective = Some(program.collectives[collective as usize]);
                Self { collective, bytes: Some(bytes), ..none }
            }
        }
    }

    fn communicator(&self) -> Option<u32> {
        let envelope = self.envelope.map(|envelope| envelope.communicator);
        envelope.or(self.collective.map(|collective| collective.communicator))
    }
}

/// The rows of operations at these places.
fn operations(program: &Program, places: Range<usize>) -> Table {
    let rank_of = |place| to_u32(program.starts.partition_point(|start| *start <= place) - 1);
    let mut rank = if places.is_empty() { 0 } else { rank_of(places.start) };
    let mut ranks = Vec::with_capacity(places.len());
    for place in places.clone() {
        while program.starts[rank as usize + 1] <= place {
            rank += 1;
        }
        ranks.push(rank);
    }
    let index = |(rank, place): (&u32, usize)| (place - program.starts[*rank as usize]) as u64;
    let operations = &program.operations[places.clone()];
    let rows: Vec<Row> = operations.iter().map(|operation| Row::of(program, *operation)).collect();
    let rows = || rows.iter();
    Table::new("operations")
        .u32("rank", ranks.iter().copied())
        .u64("index", ranks.iter().zip(places).map(index))
        .text("kind", operations.iter().map(|operation| operation.kind().name()))
        .optional_u32("peer", rows().map(|row| Some(row.envelope?.peer)))
        .optional_u32("tag", rows().map(|row| Some(row.envelope?.tag)))
        .optional_u32("communicator", rows().map(Row::communicator))
        .optional_u64("bytes", rows().map(|row| row.bytes))
        .optional_text("operation", rows().map(|row| Some(row.collective?.operation.name())))
        .optional_u32("root", rows().map(|row| row.collective?.root))
        .optional_f64("seconds", rows().map(|row| row.seconds))
        .optional_u32("request", rows().map(|row| row.request))
}

/// A program while its operations are read.
struct Reading {
    starts: Vec<usize>,
    operations: Vec<Operation>,
    envelopes: Interned<Envelope>,
    collectives: Interned<Collective>,
}

impl Reading {
    /// Adds rows of a program with this number of ranks.
    fn part(&mut self, table: &Columns, ranks: usize) -> Result<(), ArtifactError> {
        let kinds = table.optional_known("kind", &OperationKind::NAMES)?;
        let rows = rows(table)?;
        let places = table.u32("rank")?.into_iter().zip(table.u64("index")?);
        // Doubling would waste up to half of the memory.
        self.operations.reserve_exact(kinds.len());
        for ((kind, row), (rank, index)) in kinds.into_iter().zip(rows).zip(places) {
            if rank as usize >= ranks {
                let reason = format!("has rank {rank}, but MPI_COMM_WORLD has {ranks} members");
                return Err(table.error("rank", reason));
            }
            if (rank as usize) < self.starts.len() - 1 {
                return Err(table.error("rank", "is out of order"));
            }
            self.starts.resize(rank as usize + 1, self.operations.len());
            if index != (self.operations.len() - self.starts[rank as usize]) as u64 {
                return Err(table.error("index", "does not number the operations of a rank from zero"));
            }
            let kind = kind.ok_or_else(|| table.error("kind", "has missing values"))?;
            let operation = self.operation(kind, row).ok_or_else(|| {
                let reason = format!("is `{}` in a row that lacks values, or has others", kind.name());
                table.error("kind", reason)
            })?;
            self.operations.push(operation);
        }
        Ok(())
    }

    /// The operation of a row; `None` if it has other values than those of its kind.
    fn operation(&mut self, kind: OperationKind, row: Row) -> Option<Operation> {
        let Row { envelope, collective, bytes, seconds, request } = row;
        let mut number = || Some(self.envelopes.number(envelope?));
        let none = Row::default();
        let (action, expected) = match kind {
            OperationKind::Compute => (Action::Compute { seconds: seconds? }, Row { seconds, ..none }),
            OperationKind::Send => {
                let action = Action::Send { envelope: number()?, bytes: bytes? };
                (action, Row { envelope, bytes, ..none })
            }
            OperationKind::Recv => {
                let action = Action::Recv { envelope: number()?, bytes: bytes? };
                (action, Row { envelope, bytes, ..none })
            }
            OperationKind::Isend => {
                let action = Action::Isend { envelope: number()?, bytes: bytes?, request: request? };
                (action, Row { envelope, bytes, request, ..none })
            }
            OperationKind::Irecv => {
                let action = Action::Irecv { envelope: number()?, bytes: bytes?, request: request? };
                (action, Row { envelope, bytes, request, ..none })
            }
            OperationKind::Wait => (Action::Wait { request: request? }, Row { request, ..none }),
            OperationKind::Test => (Action::Test { request: request? }, Row { request, ..none }),
            OperationKind::Waitall => (Action::Waitall, none),
            OperationKind::Collective => {
                let action =
                    Action::Collective { collective: self.collectives.number(collective?), bytes: bytes? };
                (action, Row { collective, bytes, ..none })
            }
        };
        // NaN differs from itself, and is rejected here as well.
        (row == expected).then(|| Operation::new(action))
    }
}

/// The values of rows by kind. A row with only a part of an envelope or collective operation is an error.
fn rows(table: &Columns) -> Result<Vec<Row>, ArtifactError> {
    let (peers, tags) = (table.optional_u32("peer")?, table.optional_u32("tag")?);
    let communicators = table.optional_u32("communicator")?;
    let names = table.optional_known("operation", &CollectiveOperation::NAMES)?;
    let (roots, requests) = (table.optional_u32("root")?, table.optional_u32("request")?);
    let (bytes, seconds) = (table.optional_u64("bytes")?, table.optional_f64("seconds")?);
    let row = |row: usize| {
        let (envelope, collective) = match (peers[row], tags[row], communicators[row], names[row], roots[row])
        {
            (None, None, None, None, None) => (None, None),
            (Some(peer), Some(tag), Some(communicator), None, None) => {
                (Some(Envelope { peer, tag, communicator }), None)
            }
            (None, None, Some(communicator), Some(operation), root) => {
                (None, Some(Collective { communicator, operation, root }))
            }
            _ => return Err(table.error("communicator", "does not fit the peer, tag, operation or root")),
        };
        Ok(Row { envelope, collective, bytes: bytes[row], seconds: seconds[row], request: requests[row] })
    };
    (0..table.rows()).map(row).collect()
}
