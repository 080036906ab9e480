//! Questions whose answers are known.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{Field, Schema};
use hopmap::query::Form;
use hopmap_query::{
    ColumnType, Constant, QueryError, Record, Source, TableFile, Tables, Value, check, table_of,
};
use parquet::arrow::ArrowWriter;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn ranks(hosts: &[Option<&str>]) -> RecordBatch {
    batch(vec![
        ("rank", Arc::new(UInt32Array::from_iter_values(0..hosts.len() as u32))),
        ("host", Arc::new(StringArray::from(hosts.to_vec()))),
        ("cost", Arc::new(Float64Array::from_iter_values((0..hosts.len()).map(|rank| rank as f64 / 2.0)))),
        ("bytes", Arc::new(UInt64Array::from_iter_values((0..hosts.len() as u64).map(|rank| rank * 1000)))),
    ])
}

fn write(path: &Path, batch: &RecordBatch) {
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn one(name: &str, source: Source) -> Tables {
    let mut tables = Tables::new();
    assert!(tables.insert(name, source));
    tables
}

fn csv(tables: &Tables, sql: &str) -> String {
    String::from_utf8(tables.query(sql, None).unwrap().encode(Form::Csv).unwrap()).unwrap()
}

fn problem(tables: &Tables, sql: &str) -> (String, String, String) {
    match tables.query(sql, None).unwrap_err() {
        QueryError::Sql(problem) => (
            problem.message,
            sql[problem.span].to_owned(),
            format!("{} / {}", problem.label, problem.help.unwrap_or_default()),
        ),
        error => panic!("{error}"),
    }
}

#[test]
fn files_of_different_columns_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, batch: &RecordBatch, seed: Value| {
        let path = folder.path().join(name);
        write(&path, batch);
        let blake3 = Some(blake3::hash(&std::fs::read(&path).unwrap()).to_hex().to_string());
        let constant =
            |name: &str, value| Constant { name: name.into(), otherwise: format!("parameter_{name}"), value };
        let before = [constant("cell", Value::Text(name.into())), constant("seed", seed)].into();
        let after = [constant("cooling", Value::Real(0.5)), constant("host", Value::Truth(true))].into();
        TableFile { path, blake3, before, after }
    };
    let other = batch(vec![
        ("rank", Arc::new(UInt32Array::from(vec![7]))),
        ("extra", Arc::new(StringArray::from(vec!["x"]))),
    ]);
    let files =
        vec![file("a", &ranks(&[Some("n1"), None]), Value::Whole(1)), file("b", &other, Value::Real(2.5))];
    let tables = one("placement_ranks", Source::Files(files));
    assert_eq!(
        csv(&tables, "SELECT * FROM placement_ranks"),
        "cell,seed,rank,host,cost,bytes,extra,cooling,parameter_host\n\
         a,1.0,0,n1,0.0,0,,0.5,true\na,1.0,1,,0.5,1000,,0.5,true\nb,2.5,7,,,,x,0.5,true\n"
    );
    assert_eq!(csv(&tables, "SELECT COUNT(*) AS n FROM placement_ranks"), "n\n3\n");
    assert_eq!(csv(&tables, "SELECT cell FROM placement_ranks LIMIT 1"), "cell\na\n");
    let info = &tables.list().unwrap()[0];
    assert_eq!((info.rows, info.columns[2].clone()), (3, ("rank".to_owned(), ColumnType::Whole)));
}

#[test]
fn a_damaged_file_is_an_error_and_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, &ranks(&[Some("n1"); 100]));
    let bytes = std::fs::read(&path).unwrap();
    let blake3 = Some(blake3::hash(&bytes).to_hex().to_string());
    let tables = || {
        one(
            "t",
            Source::Files(vec![TableFile {
                path: path.clone(),
                blake3: blake3.clone(),
                before: [].into(),
                after: [].into(),
            }]),
        )
    };
    for place in [0, 10, bytes.len() / 2, bytes.len() - 20, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        std::fs::write(&path, damaged).unwrap();
        let error = tables().query("SELECT SUM(cost) FROM t", None).unwrap_err();
        assert!(matches!(error, QueryError::Damaged { .. }), "byte {place}: {error}");
    }
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(matches!(tables().query("SELECT 1 AS a FROM t", None).unwrap_err(), QueryError::Damaged { .. }));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(tables().list().unwrap_err(), QueryError::Damaged { .. }));
}

#[test]
fn differences_of_numbers_without_sign_may_be_negative() {
    let tables = one("t", Source::Rows(ranks(&[None, None, None])));
    assert_eq!(
        csv(&tables, "SELECT rank - 2 AS d, bytes - 1500 AS b FROM t"),
        "d,b\n-2,-1500\n-1,-500\n0,500\n"
    );
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let large = |values: Vec<u64>| {
        one(
            "t",
            Source::Rows(batch(vec![
                ("k", Arc::new(UInt32Array::from_iter_values(0..values.len() as u32))),
                ("n", Arc::new(UInt64Array::from(values))),
            ])),
        )
    };
    let fits = large(vec![1 << 62, (1 << 62) - 1]);
    assert_eq!(csv(&fits, "SELECT SUM(n) AS n FROM t"), "n\n9223372036854775807\n");
    for tables in [large(vec![1 << 62; 3]), large(vec![u64::MAX; 2]), large(vec![1 << 62; 4])] {
        for sql in [
            "SELECT SUM(n) FROM t",
            "SELECT k - k AS g, sum(n) AS n FROM t GROUP BY k - k",
            "SELECT k, Sum(n) OVER (PARTITION BY k - k) AS n FROM t",
            "SELECT k - k AS g FROM t GROUP BY k - k HAVING SUM(n) > 0",
        ] {
            let (message, place, _) = problem(&tables, sql);
            assert_eq!(message, "a sum of integers does not fit into 64 bits", "{sql}");
            assert_eq!(place.to_lowercase(), "sum", "{sql}");
        }
    }
    let real = large(vec![u64::MAX; 2]);
    assert_eq!(csv(&real, "SELECT SUM(CAST(n AS DOUBLE)) AS n FROM t"), "n\n3.6893488147419103e19\n");
    assert_eq!(csv(&real, "SELECT MAX(n) AS n FROM t"), "n\n18446744073709551615\n");
}

#[test]
fn wrong_names_are_found_and_the_right_ones_listed() {
    let mut tables = one("placement", Source::Rows(ranks(&[None])));
    tables.insert(
        "task-graph",
        Source::Rows(table_of(&[vec![("budget.evaluations".to_owned(), Value::Whole(7))]])),
    );
    let (message, place, hint) = problem(&tables, "SELECT rank\nFROM placment");
    assert_eq!((message.as_str(), place.as_str()), ("there is no table `placment`", "placment"));
    assert_eq!(hint, "did you mean `placement`? / tables: placement, task_graph");
    for sql in [
        "SELECT rnk FROM placement",
        "SELECT MAX(rnk) FROM placement",
        "SELECT host FROM placement WHERE rnk > 1",
        "SELECT host, COUNT(*) FROM placement GROUP BY host, rnk",
        "SELECT host FROM placement ORDER BY rnk",
        "SELECT p.rnk FROM placement AS p",
        "SELECT host FROM (SELECT rnk, host FROM placement) AS x",
    ] {
        let (message, place, hint) = problem(&tables, sql);
        assert_eq!((message.as_str(), place.as_str()), ("there is no column `rnk`", "rnk"), "{sql}");
        assert_eq!(hint, "did you mean `rank`? / columns: rank, host, cost, bytes", "{sql}");
    }
    let joined = "SELECT placement.evaluations FROM placement JOIN task_graph AS t ON placement.rank = t.\"budget.evaluations\"";
    assert!(problem(&tables, joined).2.ends_with("/ columns: rank, host, cost, bytes"));
    let joined = joined.replace("SELECT placement", "SELECT \"placement\"");
    assert!(problem(&tables, &joined).2.ends_with("/ columns: rank, host, cost, bytes"));
    let (_, place, hint) = problem(&tables, "SELECT budget.evaluations FROM task_graph");
    assert!(hint.contains("write \"budget.evaluations\", with the quotes"), "{place} {hint}");
    assert_eq!(csv(&tables, "SELECT \"budget.evaluations\" AS e FROM \"task-graph\""), "e\n7\n");
    let (message, place, _) = problem(&tables, "SELECT frobnicate(rank) FROM placement");
    assert!(message.contains("frobnicate"), "{message}");
    assert_eq!(place, "frobnicate");
}

#[test]
fn what_polars_cannot_do_is_no_panic() {
    let tables = one("t", Source::Rows(ranks(&[Some("a"), Some("b")])));
    for sql in [
        "SELECT CAST(rank AS TINYINT) FROM t",
        "SELECT CAST(host AS DOUBLE) FROM t",
        "SELECT SUM(host) FROM t",
        "SELECT host FROM t WHERE host",
        "SELECT rank FROM t WHERE rank = (SELECT rank, cost FROM t)",
        "SELECT rank FROM t GROUP BY host",
        "SELECT * FROM t LIMIT -1",
        "SELECT a FROM t UNION SELECT b, c FROM t",
    ] {
        if let Err(error) = tables.query(sql, None) {
            assert!(matches!(error, QueryError::Sql(_)), "{sql}: {error}");
            assert!(!error.to_string().contains('\n'), "{sql}: {error}");
        }
    }
}

#[test]
fn computed_columns_need_no_names() {
    let tables = one("t", Source::Rows(ranks(&[Some("a"), Some("b"), Some("b"), Some("c")])));
    assert_eq!(
        csv(&tables, "SELECT host, MIN(rank), MAX(rank), SUM(rank) FROM t GROUP BY host"),
        "host,MIN(rank),MAX(rank),SUM(rank)\na,0,0,0\nb,1,2,3\nc,3,3,3\n"
    );
    assert_eq!(
        csv(&tables, "SELECT host, COUNT(*) FROM t GROUP BY host HAVING COUNT(*) > 0 ORDER BY COUNT(*) DESC"),
        "host,COUNT(*)\nb,2\na,1\nc,1\n"
    );
    assert_eq!(csv(&tables, "SELECT host FROM t WHERE rank = (SELECT MAX(rank) FROM t)"), "host\nc\n");
    assert_eq!(csv(&tables, "SELECT rank + 1, rank * 2 FROM t WHERE rank = 3"), "rank + 1,rank * 2\n4,6\n");
    assert_eq!(
        csv(&tables, "SELECT rank / 2, COUNT(*) FROM t WHERE rank = 3 GROUP BY rank / 2"),
        "rank / 2,COUNT(*)\n1.5,1\n"
    );
    let (message, place, _) = problem(&tables, "SELECT host AS x, rank AS x FROM t");
    assert_eq!((message.as_str(), place.as_str()), ("there are two columns `x`", "SELECT"), "{place}");
    let (message, place, _) = problem(&tables, "SELECT host FROM t GROUP BY host ORDER BY MAX(rank)");
    assert_eq!((message.as_str(), place.as_str()), ("the column `rank` is not known here", "rank"));
}

#[test]
fn an_expression_may_have_the_name_of_the_table_that_it_reads() {
    let tables = one("cells", Source::Rows(ranks(&[None, None, None, None])));
    let answers = [
        ("WITH cells AS (SELECT * FROM cells WHERE rank > 1) SELECT COUNT(*) AS n FROM cells", "2"),
        ("WITH cells AS (SELECT * FROM cells WHERE rank > 1) SELECT MAX(cells.rank) AS n FROM cells", "3"),
        // The table is there beside the expression.
        (
            "WITH a AS (SELECT * FROM cells), cells AS (SELECT * FROM a WHERE rank < 1) \
             SELECT COUNT(*) AS n FROM cells JOIN a ON cells.rank = a.rank",
            "1",
        ),
        (
            "SELECT COUNT(*) AS n FROM cells JOIN \
             (WITH cells AS (SELECT * FROM cells WHERE rank = 2) SELECT * FROM cells) few ON cells.rank <> few.rank",
            "3",
        ),
        // The inner of two expressions of one name reads the outer one.
        (
            "WITH cells AS (SELECT * FROM cells WHERE rank > 0) SELECT COUNT(*) AS n FROM \
             (WITH cells AS (SELECT * FROM cells WHERE rank < 3) SELECT * FROM cells) few",
            "2",
        ),
    ];
    for (sql, answer) in answers {
        assert_eq!(csv(&tables, sql), format!("n\n{answer}\n"), "{sql}");
    }
}

#[test]
fn lists_come_as_text_although_they_have_no_order() {
    let tables = one("t", Source::Rows(ranks(&[Some("a"), Some("b"), Some("a")])));
    let text = csv(&tables, "SELECT host, ARRAY_AGG(rank) AS ranks FROM t WHERE host = 'a' GROUP BY host");
    assert!(text.starts_with("host,ranks\na,"), "{text}");
}

#[test]
fn no_more_rows_than_wanted_are_made() {
    let row = |number: i128| -> Record { vec![("n".into(), Value::Whole(number))] };
    let tables = one("t", Source::Rows(table_of(&(0..60_000).map(row).collect::<Vec<_>>())));
    let answer = tables.query("SELECT a.n, b.n AS m FROM t AS a CROSS JOIN t AS b", Some(40)).unwrap();
    assert_eq!((answer.rows(), answer.has_more()), (40, true));
    let answer = tables.query("SELECT n FROM t WHERE n < 40", Some(40)).unwrap();
    assert_eq!((answer.rows(), answer.has_more()), (40, false));
}

#[test]
fn a_product_of_too_many_rows_is_refused() {
    let rows: Vec<Record> = (0..70_000).map(|number| vec![("n".into(), Value::Whole(number))]).collect();
    let tables = one("t", Source::Rows(table_of(&rows)));
    let (message, _, _) = problem(&tables, "SELECT a.n FROM t AS a CROSS JOIN t AS b");
    assert_eq!(message, "cross joins would produce more rows than fits into 2^32");
}

#[test]
fn every_form_has_every_row_and_null() {
    let tables = one("t", Source::Rows(ranks(&[Some("a"), None])));
    let answer = tables.query("SELECT rank, host, cost FROM t", None).unwrap();
    let text = |form| String::from_utf8(answer.encode(form).unwrap()).unwrap();
    assert_eq!(text(Form::Csv), "rank,host,cost\n0,a,0.0\n1,,0.5\n");
    assert_eq!(
        text(Form::Json),
        "{\"rank\":0,\"host\":\"a\",\"cost\":0.0}\n{\"rank\":1,\"host\":null,\"cost\":0.5}\n"
    );
    assert_eq!(text(Form::Table).lines().count(), 6);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answer.parquet");
    std::fs::write(&path, answer.encode(Form::Parquet).unwrap()).unwrap();
    let again =
        one("t", Source::Files(vec![TableFile { path, blake3: None, before: [].into(), after: [].into() }]));
    assert_eq!(csv(&again, "SELECT * FROM t"), text(Form::Csv));
    let ipc = arrow_ipc::reader::FileReader::try_new(
        std::io::Cursor::new(answer.encode(Form::Arrow).unwrap()),
        None,
    );
    assert_eq!(ipc.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
    for form in [Form::Arrow, Form::Parquet] {
        let once_more = tables.query("SELECT rank, host, cost FROM t", None).unwrap();
        assert_eq!(answer.encode(form).unwrap(), once_more.encode(form).unwrap());
    }
}

#[test]
fn no_rows_are_an_answer_with_columns() {
    let tables = one("t", Source::Rows(ranks(&[Some("a")])));
    assert_eq!(csv(&tables, "SELECT rank, host FROM t WHERE rank > 5"), "rank,host\n");
}

#[test]
fn what_is_known_before_there_are_tables() {
    let known = ["program", "placement"];
    let is_table = |name: &str| known.contains(&name);
    assert!(check("SELECT F FROM placement", is_table, &known).is_ok());
    assert_eq!(
        check("SELECT F FROM placements", is_table, &known).unwrap_err().label,
        "did you mean `placement`?"
    );
    assert!(check("SELECT FROM", is_table, &known).is_err());
}
