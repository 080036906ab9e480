//! `hopmap query`: questions in SQL.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::failure::Failure;
#[cfg(not(feature = "analytics"))]
use super::failure::Mistake;
use super::open::StoreArguments;
use super::output::Output;

/// Arguments of `query`.
#[derive(Debug, Args)]
#[command(after_help = "\
Tables: one for every stage (a row for each cell: matrix, parameters, metrics, state, seconds, digest), STAGE_TABLE for
every table of its artifacts (with matrix and parameters of the cell), `cells` and `runs`. --tables lists them.

Examples:
  hopmap query 'SELECT mapper, AVG(F), MIN(F) FROM placement GROUP BY mapper'
  hopmap query 'SELECT host, COUNT(*) AS ranks FROM placement_ranks GROUP BY host' sweep.toml --format csv
  hopmap query 'SELECT run, seed, F FROM placement' --run all --out placements.parquet
  hopmap query 'SELECT SUM(bytes) FROM graph_edges' --artifact graph=lu.graph
  hopmap query --tables")]
pub(crate) struct Arguments {
    /// The question: SELECT, WITH or SHOW TABLES.
    #[arg(value_name = "SQL", required_unless_present_any = ["file", "tables"])]
    sql: Option<String>,
    /// File or name of the pipeline [default: the one that ran last].
    pipeline: Option<String>,
    /// File with the question; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// List the tables with their columns and rows.
    #[arg(long, conflicts_with = "file")]
    tables: bool,
    /// Ask about what a run left, not about what the store has now: its name, `latest`, `previous` or `-2` as for `hopmap diff`. May be
    /// repeated, or be `all`; tables then have a column `run`.
    #[arg(long = "run", value_name = "RUN", allow_negative_numbers = true)]
    runs: Vec<String>,
    /// Add an artifact that is in no store: its tables become `NAME_TABLE`; may be repeated.
    #[arg(long = "artifact", value_name = "NAME=FOLDER")]
    artifacts: Vec<String>,
    /// Form of the answer [default: by the ending of --out; without --out, table].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// File for the answer.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Most rows [default: 40 in a table on standard output, else all].
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    #[command(flatten)]
    store: StoreArguments,
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per row and line.
    Json,
    /// An Arrow IPC file.
    Arrow,
    /// A Parquet file.
    Parquet,
}

#[cfg(not(feature = "analytics"))]
pub(crate) fn main(_: &Arguments, _: Output) -> Result<Exit, Failure> {
    Err(Mistake::new("this hopmap was built without SQL", crate::query::WITHOUT_ANALYTICS).into())
}

#[cfg(feature = "analytics")]
pub(crate) use with_analytics::main;

#[cfg(feature = "analytics")]
mod with_analytics {
    use std::io::{IsTerminal, Read};
    use std::path::Path;

    use hopmap_query::{Answer, Form, QueryError, TableInfo, Tables};
    use miette::Report;
    use serde_json::json;

    use super::{Arguments, Exit, Failure, Format, Output};
    use crate::cli::failure::Mistake;
    use crate::cli::open::{PipelineArguments, pairs, working_directory};
    use crate::cli::runs::find_run;
    use crate::cli::summary::shown;
    use crate::engine::{self, Catalogue, RunSummary, Store, StoreError};
    use crate::pipeline::{Source, closest};
    use crate::query;

    /// Rows of a table that are shown unless more are asked for.
    const ROWS: usize = 40;

    pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
        let (question, pipeline) = arguments.question()?;
        let form = arguments.form(output)?;
        let tables = arguments.gathered(pipeline, output)?;
        let Some(question) = question else {
            list(&tables, output)?;
            return Ok(Exit::Done);
        };
        let is_shown = form == Form::Table && arguments.out.is_none();
        let most = arguments.limit.or(is_shown.then_some(ROWS));
        let answer = without_panics(|| tables.query(question.text(), most));
        let answer = answer.map_err(|error| failure(error, &question))?;
        arguments.deliver(&answer, form, output)?;
        if answer.has_more() && arguments.limit.is_none() {
            output.note(format!(
                "{} rows are shown of more; --limit shows more, --format csv all",
                answer.rows()
            ));
        }
        Ok(Exit::Done)
    }

    impl Arguments {
        /// The question, none if the tables are to be listed, and the pipeline.
        fn question(&self) -> Result<(Option<Source>, Option<&str>), Failure> {
            if !self.tables && self.file.is_none() {
                let question = self.sql.as_ref().map(|sql| Source::new("SQL", sql));
                return Ok((question, self.pipeline.as_deref()));
            }
            if let Some(extra) = &self.pipeline {
                let message = format!("`{extra}` is one argument too many");
                return Err(Mistake::new(message, "with --tables or --file only a pipeline is named").into());
            }
            let question = self.file.as_deref().map(read_question).transpose()?;
            Ok((question, self.sql.as_deref()))
        }

        fn form(&self, output: Output) -> Result<Form, Failure> {
            let of_path = self.out.as_deref().and_then(Form::of_path);
            let is_said = self.format.is_some() || of_path.is_some() || output.is_json();
            if let Some(path) = self.out.as_deref().filter(|_| !is_said) {
                let message = format!("the ending of {} stands for no form", path.display());
                let help = "endings: .csv, .json, .parquet, .arrow, .txt; --format says it without one";
                return Err(Mistake::new(message, help).into());
            }
            let form = match (self.format, of_path) {
                (Some(Format::Csv), _) => Form::Csv,
                (Some(Format::Json), _) => Form::Json,
                (Some(Format::Arrow), _) => Form::Arrow,
                (Some(Format::Parquet), _) => Form::Parquet,
                (None, Some(form)) => form,
                (None, None) if output.is_json() => Form::Json,
                (Some(Format::Table), _) | (None, None) => Form::Table,
            };
            if form.is_binary() && self.out.is_none() && std::io::stdout().is_terminal() {
                let help = "name a file with --out, or redirect standard output";
                return Err(Mistake::new("Arrow and Parquet are nothing for a terminal", help).into());
            }
            Ok(form)
        }

        /// All tables that there are to ask about.
        fn gathered(&self, pipeline: Option<&str>, output: Output) -> Result<Tables, Failure> {
            let mut tables = match pipeline.is_none() && self.runs.is_empty() && !self.artifacts.is_empty() {
                true => Tables::new(),
                false => self.stored(pipeline, output)?,
            };
            for (name, path) in pairs(&self.artifacts, "--artifact")? {
                let place = working_directory()?.join(path);
                let added = query::add_artifact(&mut tables, &name, &place).map_err(Failure::usage)?;
                if added.is_none() {
                    let message = format!("there is already a table with the name of --artifact {name}");
                    return Err(Mistake::new(message, "give it another name").into());
                }
            }
            Ok(tables)
        }

        fn stored(&self, pipeline: Option<&str>, output: Output) -> Result<Tables, Failure> {
            let named = pipeline.map(|name| PipelineArguments::new(name.to_owned(), Vec::new()));
            let root = match &named {
                Some(named) => self.store.root(named)?,
                None => self.store.root_here()?,
            };
            if !root.is_dir() {
                return Err(StoreError::Missing { path: root }.into());
            }
            let store = Store::load(&root)?;
            let runs = engine::read_runs(&store)?;
            let (name, cells) = match (pipeline, named) {
                (Some(pipeline), Some(named)) if Path::new(pipeline).is_file() => {
                    let pipeline = named.open()?;
                    let cells = pipeline.cells.iter().map(|cell| cell.id.clone()).collect();
                    (pipeline.name, Some(cells))
                }
                (Some(pipeline), _) => (known(&store, pipeline)?, None),
                (None, _) => (self.newest(&store, &runs, output)?, None),
            };
            let runs: Vec<RunSummary> = runs.into_iter().filter(|run| run.pipeline == name).collect();
            let catalogues = match self.runs.is_empty() {
                true => vec![current(&store, &name, cells, output)?],
                false => self.of_runs(&store, &runs)?,
            };
            Ok(query::tables(&store, &catalogues, &runs))
        }

        /// The pipeline that is meant if none is named: that of the runs, the only one, or the one that ran last.
        fn newest(&self, store: &Store, runs: &[RunSummary], output: Output) -> Result<String, Failure> {
            if let Some(run) = self.runs.iter().find_map(|name| find_run(name, runs)) {
                return Ok(run.pipeline.clone());
            }
            let names = Catalogue::pipelines(store);
            let last = runs.iter().rev().map(|run| &run.pipeline).find(|name| names.contains(name));
            match (names.as_slice(), last) {
                ([], _) => Err(nothing(store)),
                ([only], _) => Ok(only.clone()),
                ([.., name], last) => {
                    let name = last.unwrap_or(name);
                    output.note(format!("asking {name}, which ran last, of {}", names.join(", ")));
                    Ok(name.clone())
                }
            }
        }

        /// The cells as the chosen runs left them. Where it is said that it is one run, nothing has to tell it from others.
        fn of_runs(&self, store: &Store, runs: &[RunSummary]) -> Result<Vec<Catalogue>, Failure> {
            let chosen = self.chosen(runs)?;
            let mut catalogues: Vec<Catalogue> =
                chosen.into_iter().map(|run| Catalogue::of_run(store, run)).collect();
            if let ([name], [only]) = (self.runs.as_slice(), catalogues.as_mut_slice())
                && name != "all"
            {
                only.run = None;
            }
            Ok(catalogues)
        }

        fn chosen<'a>(&self, runs: &'a [RunSummary]) -> Result<Vec<&'a RunSummary>, Failure> {
            if self.runs.iter().any(|name| name == "all") {
                return Ok(runs.iter().collect());
            }
            let mut chosen = Vec::new();
            for name in &self.runs {
                let Some(run) = find_run(name, runs) else {
                    let known: Vec<&str> = runs.iter().rev().map(|run| run.run.as_str()).take(5).collect();
                    let help = match known.is_empty() {
                        true => "nothing ran yet".to_owned(),
                        false => {
                            format!("the newest: {}; `hopmap runs --json` lists them all", known.join(", "))
                        }
                    };
                    return Err(Mistake::new(format!("there is no run `{name}`"), help).into());
                };
                chosen.push(run);
            }
            Ok(chosen)
        }

        fn deliver(&self, answer: &Answer, form: Form, output: Output) -> Result<(), Failure> {
            let bytes = answer.encode(form).map_err(Report::new)?;
            match &self.out {
                None => output.raw(&bytes),
                Some(path) => {
                    let path = working_directory()?.join(path);
                    hopmap_durable::replace_file(&path, &bytes).map_err(Report::new)?;
                    output.note(format!("{} rows in {}", answer.rows(), shown(&path)));
                }
            }
            Ok(())
        }
    }

    fn read_question(path: &Path) -> Result<Source, Failure> {
        let mut text = String::new();
        let read = match path == Path::new("-") {
            true => std::io::stdin().read_to_string(&mut text).map(drop),
            false => std::fs::read_to_string(path).map(|read| text = read),
        };
        read.map_err(|error| {
            Mistake::new(
                format!("cannot read {}: {error}", path.display()),
                "--file names a text with one question",
            )
        })?;
        Ok(Source::new(path.display().to_string(), text))
    }

    /// What the store has now of a pipeline; of a file only the cells that it still has.
    fn current(
        store: &Store,
        name: &str,
        cells: Option<std::collections::HashSet<String>>,
        output: Output,
    ) -> Result<Catalogue, Failure> {
        let mut catalogue = Catalogue::now(store, name);
        let all = catalogue.cells.len();
        if let Some(cells) = cells {
            catalogue.cells.retain(|cell| cells.contains(&cell.id));
        }
        let left_out = all - catalogue.cells.len();
        if left_out > 0 {
            output.note(format!(
                "{left_out} cells of the store are left out, which {name} does not have any more"
            ));
        }
        match catalogue.cells.is_empty() {
            true => {
                Err(Mistake::new(format!("nothing of {name} is stored yet"), "`hopmap run` runs it").into())
            }
            false => Ok(catalogue),
        }
    }

    fn known(store: &Store, name: &str) -> Result<String, Failure> {
        let names = Catalogue::pipelines(store);
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        if known.contains(&name) {
            return Ok(name.to_owned());
        }
        if known.is_empty() {
            return Err(nothing(store));
        }
        let meant =
            closest(name, &known).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        let help = format!("{meant}pipelines of {}: {}", shown(store.root()), known.join(", "));
        Err(Mistake::new(format!("there is no pipeline `{name}`"), help).into())
    }

    fn nothing(store: &Store) -> Failure {
        Mistake::new(
            format!("nothing is stored in {} yet", shown(store.root())),
            "`hopmap run` runs a pipeline",
        )
        .into()
    }

    fn list(tables: &Tables, output: Output) -> Result<(), Failure> {
        let list = tables.list().map_err(|error| Failure::Failed(Report::new(error)))?;
        if output.is_json() {
            let column = |(name, kind): &(String, hopmap_query::ColumnType)| json!({ "name": name, "type": kind.name() });
            let table = |table: &TableInfo| {
                let columns: Vec<_> = table.columns.iter().map(column).collect();
                json!({ "table": table.name, "rows": table.rows, "columns": columns })
            };
            output.json(&list.iter().map(table).collect::<Vec<_>>());
        }
        for table in &list {
            output.line(format!("{}: {} rows", table.name, table.rows));
            for (name, kind) in &table.columns {
                output.line(format!("  {name:<28} {}", kind.name()));
            }
        }
        Ok(())
    }

    /// What Polars panics about is told as an error, and not twice.
    fn without_panics<T>(ask: impl FnOnce() -> T) -> T {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let answer = ask();
        std::panic::set_hook(hook);
        answer
    }

    fn failure(error: QueryError, question: &Source) -> Failure {
        match error {
            QueryError::Sql(complaint) => question.tie(vec![query::problem(complaint)]).into(),
            error => Failure::Failed(Report::new(error)),
        }
    }
}
