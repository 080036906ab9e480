//! The table of messages, one row each, written as it is read.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use hopmap_artifact::{ArtifactError, TableWriter};

/// Rows of a batch.
const BATCH: usize = 1 << 15;

/// No region.
pub(crate) const NONE: u32 = u32::MAX;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Ticks of the common clock.
    pub(crate) time: u64,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) tag: Option<u32>,
    pub(crate) bytes: u64,
    /// Id of the communicator.
    pub(crate) communicator: u32,
    /// Id of the region of the call, or [`NONE`].
    pub(crate) operation: u32,
    /// Id of the region that called it, or [`NONE`].
    pub(crate) region: u32,
}

/// A batch of messages.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    pub(crate) fn push(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Whether it is time to give the batch away.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= BATCH
    }
}

/// What the numbers in rows stand for.
#[derive(Debug)]
pub(crate) struct Names {
    /// First tick of the trace, and ticks per second if they are known.
    pub(crate) clock: (u64, Option<f64>),
    pub(crate) communicators: HashMap<u32, String>,
    pub(crate) regions: HashMap<u32, String>,
}

/// Writes the table.
pub(crate) struct MessageWriter {
    names: Names,
    table: TableWriter,
}

impl MessageWriter {
    /// Begins a table.
    pub(crate) fn create(path: &Path, names: Names) -> Result<Self, ArtifactError> {
        let column = |name: &str, kind: DataType, nullable| Field::new(name, kind, nullable);
        let schema = Schema::new(vec![
            column("time_s", DataType::Float64, true),
            column("source", DataType::UInt32, false),
            column("destination", DataType::UInt32, false),
            column("tag", DataType::UInt32, true),
            column("bytes", DataType::UInt64, false),
            column("communicator", DataType::Utf8, false),
            column("operation", DataType::Utf8, true),
            column("region", DataType::Utf8, true),
        ]);
        Ok(Self { names, table: TableWriter::create(path, schema)? })
    }

    /// Writes a batch, and empties it.
    pub(crate) fn write(&mut self, rows: &mut Rows) -> Result<(), ArtifactError> {
        let all = rows.0.as_slice();
        let (start, per_second) = self.names.clock;
        // Times before the first event are those of clocks that go back.
        let time = |row: &Row| {
            let ticks =
                if row.time >= start { (row.time - start) as f64 } else { -((start - row.time) as f64) };
            per_second.map(|per_second| ticks / per_second)
        };
        let region = |id: u32| self.names.regions.get(&id).map(String::as_str);
        let unnamed: HashMap<u32, String> = all
            .iter()
            .filter(|row| !self.names.communicators.contains_key(&row.communicator))
            .map(|row| (row.communicator, row.communicator.to_string()))
            .collect();
        let communicator = |row: &Row| {
            let id = &row.communicator;
            self.names.communicators.get(id).or_else(|| unnamed.get(id)).map(String::as_str)
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(all.iter().map(time).collect::<Float64Array>()),
            Arc::new(UInt32Array::from_iter_values(all.iter().map(|row| row.source))),
            Arc::new(UInt32Array::from_iter_values(all.iter().map(|row| row.destination))),
            Arc::new(all.iter().map(|row| row.tag).collect::<UInt32Array>()),
            Arc::new(UInt64Array::from_iter_values(all.iter().map(|row| row.bytes))),
            Arc::new(all.iter().map(communicator).collect::<StringArray>()),
            Arc::new(all.iter().map(|row| region(row.operation)).collect::<StringArray>()),
            Arc::new(all.iter().map(|row| region(row.region)).collect::<StringArray>()),
        ];
        self.table.add(columns)?;
        rows.0.clear();
        Ok(())
    }

    /// Ends the table; gives the number of rows.
    pub(crate) fn close(self) -> Result<u64, ArtifactError> {
        self.table.close()
    }
}
