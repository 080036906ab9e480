//! `hopmap-query VERSION`, started by hopmap of that version: answers what `hopmap query` and pipeline files ask.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use hopmap::cli::{self, Output, QueryRequest, Stored};
use hopmap::query::{Form, TABLES};
use hopmap::source::Source;
use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_durable::{DurableError, replace_file};
use hopmap_query::{Answer, ColumnType, QueryError, TableInfo, Tables, add_artifact, reply, tables};
use hopmap_text::counted;
use miette::Report;
use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Rows of a table that are shown unless more are asked for.
const ROWS: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((version, arguments)) = arguments.split_first() else {
        return complain(Exit::Usage, "", "hopmap-query is started by `hopmap query`");
    };
    if version == "--version" {
        return write(format!("hopmap-query {VERSION}\n").as_bytes())
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if version != VERSION {
        let version = version.display();
        let line = format!(
            "this hopmap-query is of hopmap {VERSION} and cannot answer hopmap {version}: install both from the same sources"
        );
        return complain(Exit::Usage, "error[query::version]: ", &line);
    }
    if arguments == [TABLES] {
        return match read().and_then(|request| reply(&request)).and_then(|answers| write(&answers)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(report) => {
                let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
                complain(Exit::Failed, "error: ", &causes.join(": "))
            }
        };
    }
    let arguments: Vec<OsString> =
        std::iter::once("hopmap".into()).chain(arguments.iter().cloned()).collect();
    cli::query(&arguments, answer)
}

fn read() -> Result<Vec<u8>, Report> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(DurableError::io("read", Path::new("standard input")))?;
    Ok(bytes)
}

fn write(bytes: &[u8]) -> Result<(), Report> {
    Ok(std::io::stdout()
        .write_all(bytes)
        .map_err(DurableError::io("write to", Path::new("standard output")))?)
}

fn complain(exit: Exit, begin: &str, line: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{begin}{line}");
    exit.into()
}

fn answer(request: &QueryRequest, output: Output) -> Result<Exit, Failure> {
    let tables = gathered(request)?;
    let Some(question) = &request.question else {
        list(&tables, output)?;
        return Ok(Exit::Done);
    };
    let is_shown = request.form == Form::Table && request.out.is_none();
    let most = request.limit.or(is_shown.then_some(ROWS));
    let answer = without_panics(|| tables.query(question.text(), most));
    let answer = answer.map_err(|error| failure(error, question))?;
    deliver(&answer, request, output)?;
    if answer.has_more() && request.limit.is_none() {
        output.note(format!(
            "the first {}; --limit shows more, --format csv all",
            counted(answer.rows(), "row")
        ));
    }
    Ok(Exit::Done)
}

/// All tables that there are to ask about.
fn gathered(request: &QueryRequest) -> Result<Tables, Failure> {
    let mut tables = match &request.stored {
        Some(Stored { store, catalogues, runs }) => tables(store, catalogues, runs),
        None => Tables::new(),
    };
    for (name, path) in &request.artifacts {
        if add_artifact(&mut tables, name, path).map_err(Failure::usage)?.is_none() {
            let message = format!("there is already a table with the name of --artifact {name}");
            return refuse(message, "give it another name");
        }
    }
    Ok(tables)
}

fn deliver(answer: &Answer, request: &QueryRequest, output: Output) -> Result<(), Failure> {
    let bytes = answer.encode(request.form).map_err(Report::new)?;
    match &request.out {
        None => output.raw(&bytes),
        Some(path) => {
            replace_file(path, &bytes).map_err(Report::new)?;
            output.note(format!("{} in {}", counted(answer.rows(), "row"), shown(path)));
        }
    }
    Ok(())
}

fn list(tables: &Tables, output: Output) -> Result<(), Failure> {
    let list = tables.list().map_err(Report::new)?;
    if output.is_json() {
        let column = |(name, kind): &(String, ColumnType)| json!({ "name": name, "type": kind.name() });
        let table = |table: &TableInfo| {
            let columns: Vec<_> = table.columns.iter().map(column).collect();
            json!({ "table": table.name, "rows": table.rows, "columns": columns })
        };
        output.json(&list.iter().map(table).collect::<Vec<_>>());
    }
    for table in &list {
        output.line(format!("{}: {}", table.name, counted(table.rows, "row")));
        for (name, kind) in &table.columns {
            output.line(format!("  {name:<28} {}", kind.name()));
        }
    }
    Ok(())
}

/// A panic of Polars becomes an error, and is not printed twice.
fn without_panics<T>(ask: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = ask();
    std::panic::set_hook(hook);
    answer
}

fn failure(error: QueryError, question: &Source) -> Failure {
    match error {
        QueryError::Sql(problem) => question.tie(vec![problem]).coded("query::sql").into(),
        error => Report::new(error).into(),
    }
}
