//! `hopmap query`: questions in SQL.

use std::collections::HashSet;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Failure, Mistake, refuse, shown};
use hopmap_text::closest;

use super::open::{PipelineArguments, StoreArguments, existing, pairs, working_directory};
use super::output::{Output, Result};
use super::runs::find_run;
use super::summary::first_of;
use crate::engine::{self, Catalogue, PipelineId, RunSummary, Store};
use crate::lock::Request as RunRequest;
use crate::pipeline::Pipeline;
use crate::query::Form;
use crate::source::Source;

/// Cells that a note names.
const MOST_NAMED: usize = 3;

/// Arguments of `query`.
#[derive(Debug, Args)]
#[command(after_help = "\
Tables: one per stage (a row per cell: matrix, parameters, metrics, state, seconds, digest), STAGE_TABLE for every table \
of its artifacts (with matrix and parameters of the cell), `cells` (a row per cell, also of those that have not run yet) \
and `runs`. --tables lists them.

Examples:
  hopmap query 'SELECT mapper, AVG(F), MIN(F) FROM placement GROUP BY mapper'
  hopmap query 'SELECT host, COUNT(*) AS n FROM placement_ranks GROUP BY host' sweep.toml
  hopmap query 'SELECT run, seed, F FROM placement' --run all --out placements.parquet
  hopmap query 'SELECT SUM(bytes) FROM graph_edges' --artifact graph=lu.graph
  hopmap query --tables")]
pub(crate) struct Arguments {
    /// SQL query: SELECT, WITH or SHOW TABLES.
    #[arg(value_name = "SQL", required_unless_present_any = ["file", "tables"])]
    sql: Option<String>,
    /// Pipeline file, or the name of a bundled pipeline [default: the pipeline that ran last].
    pipeline: Option<String>,
    /// Read the query from this file; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// List the tables with their columns and rows.
    #[arg(long, conflicts_with = "file")]
    tables: bool,
    /// Query the results of a run instead of the current ones: its name, `latest`, `previous` or `-2`, as for `hopmap diff`. May be
    /// repeated, or be `all`; tables then have a column `run`.
    #[arg(long = "run", value_name = "RUN", allow_negative_numbers = true)]
    runs: Vec<String>,
    /// Add an artifact from outside the store: its tables become `NAME_TABLE`; may be repeated.
    #[arg(long = "artifact", value_name = "NAME=DIR")]
    artifacts: Vec<String>,
    /// Format of the result [default: by the file extension of --out, else table].
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Write the result to this file.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Maximum number of rows [default: 40 in a table on standard output, else all].
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    #[command(flatten)]
    store: StoreArguments,
}

/// What a command line asks.
pub struct Request {
    /// The question; none if the tables are to be listed.
    pub question: Option<Source>,
    /// The form of the answer.
    pub form: Form,
    /// What it is about of a store; none if it is about artifacts alone.
    pub stored: Option<Stored>,
    /// Artifacts that it is about: name and folder.
    pub artifacts: Vec<(String, PathBuf)>,
    /// File for the answer.
    pub out: Option<PathBuf>,
    /// Most rows.
    pub limit: Option<usize>,
}

/// Cells of a store.
pub struct Stored {
    /// The store.
    pub store: Store,
    /// The cells of a pipeline, now or as runs left them.
    pub catalogues: Vec<Catalogue>,
    /// All runs of the pipeline.
    pub runs: Vec<RunSummary>,
}

impl Arguments {
    /// What is asked, with everything found that is named.
    pub(crate) fn request(&self, output: Output) -> Result<Request> {
        let (question, pipeline) = self.question()?;
        let form = self.form(output)?;
        let only_artifacts = pipeline.is_none() && self.runs.is_empty() && !self.artifacts.is_empty();
        let stored = (!only_artifacts).then(|| self.stored(pipeline, output)).transpose()?;
        let working = working_directory()?;
        let artifacts = pairs(&self.artifacts, "--artifact")?.into_iter();
        let artifacts = artifacts.map(|(name, path)| (name, working.join(path))).collect();
        let out = self.out.as_ref().map(|path| working.join(path));
        Ok(Request { question, form, stored, artifacts, out, limit: self.limit })
    }

    /// The question, none if the tables are to be listed, and the pipeline.
    fn question(&self) -> Result<(Option<Source>, Option<&str>)> {
        if !self.tables && self.file.is_none() {
            let question = self.sql.as_ref().map(|sql| Source::new("SQL", sql));
            return Ok((question, self.pipeline.as_deref()));
        }
        if let Some(extra) = &self.pipeline {
            let message = format!("`{extra}` is not expected");
            return refuse(message, "with --tables or --file the only argument is a pipeline");
        }
        let question = self.file.as_deref().map(read_question).transpose()?;
        Ok((question, self.sql.as_deref()))
    }

    fn form(&self, output: Output) -> Result<Form> {
        let of_path = self.out.as_deref().and_then(Form::of_path);
        let is_said = self.format.is_some() || of_path.is_some() || output.is_json();
        if let Some(path) = self.out.as_deref().filter(|_| !is_said) {
            let message = format!("unknown file extension of {}", path.display());
            let help = "extensions: .csv, .json, .parquet, .arrow, .txt; or choose one with --format";
            return refuse(message, help);
        }
        let form = match self.format.or(of_path) {
            Some(form) => form,
            None if output.is_json() => Form::Json,
            None => Form::Table,
        };
        if form.is_binary() && self.out.is_none() && std::io::stdout().is_terminal() {
            let help = "name a file with --out, or redirect standard output";
            return refuse("refusing to write binary data to a terminal", help);
        }
        Ok(form)
    }

    fn stored(&self, pipeline: Option<&str>, output: Output) -> Result<Stored> {
        let named = pipeline.map(|name| PipelineArguments::new(name.to_owned(), Vec::new()));
        let root = match &named {
            Some(named) => self.store.root(named)?,
            None => self.store.root_here()?,
        };
        // Before its first run a pipeline has empty tables; a store that is named has to exist.
        let is_new = pipeline.is_some_and(|name| Path::new(name).is_file()) && !self.store.is_named();
        let root = if is_new { root } else { existing(root)? };
        let store = Store::load(&root)?;
        let runs = engine::read_runs(&store)?;
        let (id, opened) = match (pipeline, named) {
            (Some(pipeline), Some(named)) if Path::new(pipeline).is_file() => {
                let pipeline = named.as_last_run(&root, output)?.open()?;
                (PipelineId::of(&pipeline, store.root()), Some(pipeline))
            }
            (Some(pipeline), _) => (known(&store, pipeline, &runs, output)?, None),
            (None, _) => (self.newest(&store, &runs, output)?, None),
        };
        let runs: Vec<RunSummary> = runs.into_iter().filter(|run| run.is_of(&id)).collect();
        let catalogues = match self.runs.is_empty() {
            true => {
                let opened = opened.or_else(|| as_last_run(&store, &id, runs.last()));
                vec![current(&store, &id, opened.as_ref(), output)]
            }
            false => self.of_runs(&store, &runs)?,
        };
        Ok(Stored { store, catalogues, runs })
    }

    /// The pipeline that is meant if none is named: that of the runs, the only one, or the one that ran last.
    fn newest(&self, store: &Store, runs: &[RunSummary], output: Output) -> Result<PipelineId> {
        match self.runs.iter().find_map(|name| find_run(name, runs)) {
            Some(run) => Ok(run.id()),
            None => {
                last_of(&store.pipelines().collect::<Vec<_>>(), runs, output).ok_or_else(|| nothing(store))
            }
        }
    }

    /// The cells as the chosen runs left them. One run that is named needs no column `run`.
    fn of_runs(&self, store: &Store, runs: &[RunSummary]) -> Result<Vec<Catalogue>> {
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

    fn chosen<'a>(&self, runs: &'a [RunSummary]) -> Result<Vec<&'a RunSummary>> {
        if self.runs.iter().any(|name| name == "all") {
            return Ok(runs.iter().collect());
        }
        let mut chosen = Vec::new();
        for name in &self.runs {
            let Some(run) = find_run(name, runs) else {
                let known: Vec<&str> = runs.iter().rev().map(|run| run.run.as_str()).take(5).collect();
                let help = match known.is_empty() {
                    true => "no runs yet".to_owned(),
                    false => {
                        format!("the newest: {}; `hopmap runs --json` lists them all", known.join(", "))
                    }
                };
                return refuse(format!("there is no run `{name}`"), help);
            };
            chosen.push(run);
        }
        Ok(chosen)
    }
}

fn read_question(path: &Path) -> Result<Source> {
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

/// The pipeline with the parameters of its last run, but with the text that its file has now. None if that cannot be read any more.
/// Runs with nothing to do are in no list.
fn as_last_run(store: &Store, id: &PipelineId, run: Option<&RunSummary>) -> Option<Pipeline> {
    let listed = || RunRequest::read(&store.runs().join(&run?.run));
    let request = RunRequest::last_of(store.root(), id).or_else(listed)?;
    let file = request.working.join(&request.pipeline);
    let text = if file.is_file() { std::fs::read_to_string(file).ok()? } else { request.text.clone() };
    RunRequest { text, ..request }.open().ok()
}

/// What the store has now of a pipeline: the cells that it has, where that is known.
fn current(store: &Store, id: &PipelineId, pipeline: Option<&Pipeline>, output: Output) -> Catalogue {
    let mut catalogue = Catalogue::now(store, id);
    if let Some(pipeline) = pipeline {
        let known: HashSet<&str> = pipeline.cells.iter().map(|cell| cell.id.as_str()).collect();
        let (kept, gone): (Vec<_>, Vec<_>) =
            catalogue.cells.into_iter().partition(|cell| known.contains(cell.id.as_str()));
        if !gone.is_empty() {
            let (first, more) = first_of(gone.iter().map(|cell| cell.id.as_str()), MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = first.join(", ");
            output.note(format!("left out, as {} no longer has these cells: {names}{more}", id.name));
        }
        catalogue = Catalogue { cells: kept, ..catalogue }.with_stages(pipeline);
    }
    catalogue
}

/// Of several pipelines the one that ran last, and which one that is.
fn last_of(ids: &[&PipelineId], runs: &[RunSummary], output: Output) -> Option<PipelineId> {
    let last = runs.iter().rev().find_map(|run| ids.iter().find(|id| run.is_of(id)));
    let last = last.or_else(|| ids.last()).copied()?;
    if ids.len() > 1 {
        let shown = |id: &PipelineId| match ids.iter().filter(|other| other.name == id.name).count() {
            1 => id.name.clone(),
            _ => id.to_string(),
        };
        let all: Vec<String> = ids.iter().map(|id| shown(id)).collect();
        output.note(format!("asking {}, which ran last, of {}", shown(last), all.join(", ")));
    }
    Some(last.clone())
}

fn known(store: &Store, name: &str, runs: &[RunSummary], output: Output) -> Result<PipelineId> {
    let of_name: Vec<&PipelineId> = store.pipelines().filter(|id| id.name == name).collect();
    if let Some(id) = last_of(&of_name, runs, output) {
        return Ok(id);
    }
    let mut known: Vec<&str> = store.pipelines().map(|id| id.name.as_str()).collect();
    known.dedup();
    if known.is_empty() {
        return Err(nothing(store));
    }
    let meant = closest(name, &known).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
    let help = format!("{meant}pipelines of {}: {}", shown(store.root()), known.join(", "));
    refuse(format!("there is no pipeline `{name}`"), help)
}

fn nothing(store: &Store) -> Failure {
    Mistake::new(format!("nothing is stored in {} yet", shown(store.root())), "`hopmap run` runs a pipeline")
        .into()
}
