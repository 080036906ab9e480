//! Other programs that read what is stored.

use hopmap_test_support::system_tests;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::sweep;
use crate::sandbox::{Sandbox, project};

/// Rows and the sum of one column, as `hopmap query` and two other programs read them.
#[test]
fn every_artifact_opens_in_pyarrow_and_duckdb() {
    if !system_tests() {
        return;
    }
    let python = std::env::var("HOPMAP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Some(sandbox) = sweep() else { return };
    let samples: [(&str, &[&str]); 5] = [
        ("place", &["out=out"]),
        ("schedule", &["out=times"]),
        ("route", &["out=routes"]),
        ("graph2sch", &["schedule=sch/schedule.sch", "gantt=sch/schedule.html"]),
        (
            "claims",
            &[
                "out=claims",
                "groups=[2, 2, 2]",
                "few=[2, 2, 2]",
                "processes=[1, 2]",
                "instances=1..1",
                "seeds=1..1",
            ],
        ),
    ];
    for (name, params) in samples {
        let pipeline = project().join(format!("pipelines/{name}.toml")).display().to_string();
        let params = params.iter().flat_map(|param| ["-p", param]);
        let run: Vec<&str> =
            ["run", &pipeline, "--no-report", "--store", ".hopmap"].into_iter().chain(params).collect();
        sandbox.stdout(&run);
    }
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    for entry in std::fs::read_dir(sandbox.path().join(".hopmap/artifacts")).unwrap() {
        expected.extend(tables_of(&sandbox, &entry.unwrap().path()));
    }
    assert!(expected.len() > 30, "{} tables", expected.len());
    let script = project().join("tests/cli/query/read.py");
    let mut reader = Command::new(python)
        .arg(script)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(reader.stdin.take().unwrap(), &expected).unwrap();
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "HOPMAP_PYTHON should name a Python with pyarrow and duckdb");
    let differences = String::from_utf8(output.stdout).unwrap();
    assert_eq!(differences, format!("{} tables are the same\n", expected.len()));
}

/// For every table of an artifact the path of its file, with a column, the number of rows and the sum of the column.
fn tables_of(sandbox: &Sandbox, folder: &Path) -> Vec<(String, Value)> {
    let artifact = format!("a={}", folder.display());
    let list: Value =
        serde_json::from_str(&sandbox.stdout(&["query", "--tables", "--artifact", &artifact, "--json"]))
            .unwrap();
    let tables = list.as_array().unwrap().iter().filter(|table| table["table"] != "a");
    let read = |table: &Value| {
        let name = table["table"].as_str().unwrap();
        let columns = table["columns"].as_array().unwrap();
        let number =
            columns.iter().rev().find(|column| column["type"] != "TEXT" && column["type"] != "BOOLEAN");
        let column = number.map(|column| column["name"].as_str().unwrap());
        let sum = column.map_or("0.0".to_owned(), |column| format!("SUM(CAST(\"{column}\" AS DOUBLE))"));
        let sql = format!("SELECT COUNT(*) AS rows, {sum} AS sum FROM {name}");
        let answer: Value =
            serde_json::from_str(&sandbox.stdout(&["query", &sql, "--artifact", &artifact, "--json"]))
                .unwrap();
        let file = folder.join(format!("{}.parquet", &name[2..])).display().to_string();
        (file, serde_json::json!({ "column": column, "rows": answer["rows"], "sum": answer["sum"] }))
    };
    tables.map(read).collect()
}
