//! Ten million messages, as `trace/events` writes them: reading their columns, grouping what is read, and both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use divan::Bencher;
use divan::counter::ItemsCount;
use hopmap_query::{Source, TableFile, Tables};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

/// Rows of the table. `HOPMAP_BENCH_ROWS` says otherwise.
const ROWS: usize = 10_000_000;
/// Ranks of the program.
const RANKS: u64 = 256;
/// Rows of a row group, as artifacts have them.
const GROUP: usize = 1 << 20;

static FILE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder for the table");
    let path = folder.path().join("messages.parquet");
    generate(&path);
    (folder, path)
});

fn main() {
    divan::main();
}

fn rows() -> usize {
    std::env::var("HOPMAP_BENCH_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(ROWS)
}

/// Messages of random pairs and sizes, in the order of their times.
fn generate(path: &Path) {
    let schema = Arc::new(Schema::new(vec![
        Field::new("time_s", DataType::Float64, true),
        Field::new("source", DataType::UInt32, false),
        Field::new("destination", DataType::UInt32, false),
        Field::new("bytes", DataType::UInt64, false),
        Field::new("communicator", DataType::Utf8, false),
    ]));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP))
        .build();
    let file = std::fs::File::create(path).expect("a file for the table");
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).expect("a writer");
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let all = rows();
    for start in (0..all).step_by(GROUP) {
        let rows = GROUP.min(all - start);
        let mut ranks = || UInt32Array::from_iter_values((0..rows).map(|_| (random() % RANKS) as u32));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from_iter_values((0..rows).map(|row| (start + row) as f64 * 1e-6))),
            Arc::new(ranks()),
            Arc::new(ranks()),
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|_| random() % 65_536))),
            Arc::new(StringArray::from_iter_values((0..rows).map(|_| "MPI_COMM_WORLD"))),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of equal length");
        writer.write(&batch).expect("room for the table");
    }
    writer.close().expect("room for the table");
}

fn file() -> Source {
    let path = FILE.1.clone();
    Source::Files(vec![TableFile { path, blake3: None, before: [].into(), after: [].into() }])
}

/// The columns of a question as a table in memory, so that what is measured is the grouping, and copying them once.
fn memory(columns: &str) -> Source {
    let mut tables = Tables::new();
    tables.insert("messages", file());
    let answer = tables.query(&format!("SELECT {columns} FROM messages"), None).expect("an answer");
    let batches = answer.batches();
    Source::Rows(arrow::compute::concat_batches(answer.schema(), batches).expect("batches of one table"))
}

fn ask(bencher: Bencher<'_, '_>, source: Source, sql: &str) {
    let mut tables = Tables::new();
    tables.insert("messages", source);
    bencher.counter(ItemsCount::new(rows())).bench(|| tables.query(sql, None).expect("an answer").rows());
}

const PAIRS: &str = "SELECT source, destination, COUNT(*) AS messages, SUM(bytes) AS bytes FROM messages GROUP BY source, destination";
const SOURCES: &str =
    "SELECT source, COUNT(*) AS messages, SUM(bytes) AS bytes FROM messages GROUP BY source";

#[divan::bench(sample_count = 5)]
fn read_three_columns(bencher: Bencher) {
    ask(bencher, file(), "SELECT MAX(source), MAX(destination), MAX(bytes) FROM messages");
}

#[divan::bench(sample_count = 5)]
fn group_by_source_in_memory(bencher: Bencher) {
    ask(bencher, memory("source, bytes"), SOURCES);
}

#[divan::bench(sample_count = 5)]
fn group_by_pair_in_memory(bencher: Bencher) {
    ask(bencher, memory("source, destination, bytes"), PAIRS);
}

#[divan::bench(sample_count = 5)]
fn read_and_group_by_source(bencher: Bencher) {
    ask(bencher, file(), SOURCES);
}

#[divan::bench(sample_count = 5)]
fn read_and_group_by_pair(bencher: Bencher) {
    ask(bencher, file(), PAIRS);
}
