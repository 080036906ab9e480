//! Random tables through Parquet and SQL, beside plain loops.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use hopmap_query::{Answer, Constant, Source, TableFile, Tables, Value};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

type Row = (u32, Option<u64>, Option<f64>, Option<String>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        0_u32..5,
        prop::option::of(0_u64..1 << 40),
        prop::option::of(-1e6..1e6),
        prop::option::of("[a-cü\"', ]{0,3}"),
    );
    prop::collection::vec(row, 0..60)
}

/// The rows in files of several row groups each.
fn tables(folder: &std::path::Path, rows: &[Row], files: usize, group: usize) -> Tables {
    let schema = Arc::new(Schema::new(vec![
        Field::new("key", DataType::UInt32, false),
        Field::new("bytes", DataType::UInt64, true),
        Field::new("cost", DataType::Float64, true),
        Field::new("name", DataType::Utf8, true),
    ]));
    let size = rows.len().div_ceil(files).max(1);
    let file = |(number, rows): (usize, &[Row])| {
        let path = folder.join(format!("{number}.parquet"));
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
        let content = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(content, Arc::clone(&schema), Some(properties)).unwrap();
        let batch = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![
                Arc::new(rows.iter().map(|row| Some(row.0)).collect::<UInt32Array>()),
                Arc::new(rows.iter().map(|row| row.1).collect::<UInt64Array>()),
                Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>()),
                Arc::new(rows.iter().map(|row| row.3.clone()).collect::<StringArray>()),
            ],
        );
        writer.write(&batch.unwrap()).unwrap();
        writer.close().unwrap();
        let file =
            Constant { name: "file".into(), otherwise: "number".into(), value: Value::Whole(number as i128) };
        TableFile { path, blake3: None, before: [file].into(), after: [].into() }
    };
    let mut files: Vec<TableFile> = rows.chunks(size).enumerate().map(file).collect();
    if files.is_empty() {
        files.push(file((0, &[])));
    }
    let mut tables = Tables::new();
    tables.insert("t", Source::Files(files));
    tables
}

fn answer(tables: &Tables, sql: &str) -> RecordBatch {
    let answer: Answer = tables.query(sql, None).unwrap();
    arrow::compute::concat_batches(answer.schema(), answer.batches()).unwrap()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let whole = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
    let (keys, bytes) = (whole("key"), whole("bytes"));
    let costs = batch.column_by_name("cost").unwrap().as_primitive::<Float64Type>();
    let names = batch.column_by_name("name").unwrap().as_string::<i32>();
    let row = |row: usize| {
        (
            keys.value(row) as u32,
            bytes.is_valid(row).then(|| bytes.value(row) as u64),
            costs.is_valid(row).then(|| costs.value(row)),
            names.is_valid(row).then(|| names.value(row).to_owned()),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_rows_come_back_as_they_were(rows in rows(), files in 1_usize..4, group in 1_usize..30) {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables(folder.path(), &rows, files, group);
        prop_assert_eq!(rows_of(&answer(&tables, "SELECT * FROM t")), rows);
    }

    #[test]
    fn sums_of_groups_are_those_of_a_loop(rows in rows(), files in 1_usize..4, group in 1_usize..30) {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables(folder.path(), &rows, files, group);
        let mut expected: BTreeMap<u32, (i64, i64, i64)> = BTreeMap::new();
        for (key, bytes, _, name) in &rows {
            let sums = expected.entry(*key).or_default();
            *sums = (sums.0 + 1, sums.1 + bytes.unwrap_or(0).cast_signed(), sums.2 + i64::from(name.is_some()));
        }
        let sql = "SELECT key, COUNT(*) AS rows, SUM(bytes) AS bytes, COUNT(name) AS names FROM t GROUP BY key";
        let batch = answer(&tables, sql);
        let column = |place: usize| batch.column(place).as_primitive::<Int64Type>().values().to_vec();
        let found: Vec<_> = (0..batch.num_rows())
            .map(|row| (column(0)[row] as u32, (column(1)[row], column(2)[row], column(3)[row])))
            .collect();
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn filters_are_those_of_a_loop(rows in rows(), least in 0_u64..1 << 40) {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables(folder.path(), &rows, 2, 10);
        let sql = format!("SELECT key, bytes, cost, name FROM t WHERE bytes >= {least} AND key <> 2");
        let expected: Vec<Row> =
            rows.into_iter().filter(|row| row.1.is_some_and(|bytes| bytes >= least) && row.0 != 2).collect();
        prop_assert_eq!(rows_of(&answer(&tables, &sql)), expected);
    }

    /// Whatever the text: an answer or an error.
    #[test]
    fn no_text_is_too_strange(text in "(SELECT|FROM|t|key|\\*|,|\\(|\\)|SUM|GROUP BY|WHERE|'|\"|ü|1| |\n|JOIN|ON|=|ORDER BY|LIMIT|;|--|\\.){0,14}") {
        let folder = tempfile::tempdir().unwrap();
        let tables = tables(folder.path(), &[], 1, 10);
        if let Err(hopmap_query::QueryError::Sql(problem)) = tables.query(&text, Some(10)) {
            prop_assert!(text.get(problem.span.clone()).is_some(), "{:?}", problem);
        }
    }
}
