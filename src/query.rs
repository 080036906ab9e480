//! Questions in SQL: what is asked of `hopmap-query`, the program that answers them.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use hopmap_process::on_path;
use miette::Diagnostic;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::source::Problem;

/// Name of the program.
const PROGRAM: &str = "hopmap-query";
/// Variable that names the program.
const VARIABLE: &str = "HOPMAP_QUERY";
/// The argument with which the program reads [`QueryRequest`] and writes a `Result` for every question, both as JSON.
pub const TABLES: &str = "tables";

/// The questions of a pipeline file, and the catalogue `C` of its cells.
#[derive(Debug, Serialize, Deserialize)]
pub enum QueryRequest<C> {
    /// What is wrong with them, as far as that can be known before there are results?
    Check {
        /// Names of the stages.
        stages: Vec<String>,
        /// The questions.
        questions: Vec<String>,
    },
    /// What are their answers? Every answer is an [`AnsweredTable`].
    Answer {
        /// Folder of the store.
        store: PathBuf,
        /// The cells that they are about, without their results.
        catalogue: C,
        /// The questions.
        questions: Vec<TableQuestion>,
    },
}

/// A question that is asked after every run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableQuestion {
    /// Its name.
    pub name: String,
    /// The question.
    pub sql: String,
    /// File for the answer.
    pub save: Option<PathBuf>,
    /// Place of the SQL in the file, which only the process knows that has read it.
    #[serde(skip)]
    pub(crate) span: Range<usize>,
    /// The same of its file.
    #[serde(skip)]
    pub(crate) save_span: Range<usize>,
}

impl TableQuestion {
    /// A problem with the SQL as a problem of the pipeline file.
    #[must_use]
    pub fn located(&self, problem: Problem, text: &str) -> Problem {
        located(problem, &self.sql, &self.span, text)
    }
}

/// Maps a problem from the SQL to the pipeline file, if the file has the SQL without escapes.
fn located(problem: Problem, sql: &str, span: &Range<usize>, text: &str) -> Problem {
    let written = text.get(span.clone()).unwrap_or_default();
    let span = match written.find(sql).filter(|_| !sql.is_empty()) {
        Some(begin) => {
            let begin = span.start + begin;
            begin + problem.span.start..begin + problem.span.end
        }
        None => span.clone(),
    };
    Problem { span, ..problem }
}

/// The answer to a question of a pipeline file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnsweredTable {
    /// Name of the table.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The first rows, as text.
    pub rows: Vec<Vec<String>>,
    /// Number of all rows.
    pub all_rows: usize,
    /// Where the complete answer was saved.
    pub saved: Option<PathBuf>,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
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

impl Form {
    /// The form that the extension of a file names.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Self::Table,
            "csv" => Self::Csv,
            "json" | "jsonl" | "ndjson" => Self::Json,
            "arrow" | "feather" => Self::Arrow,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }

    /// Whether it is made of bytes that no terminal should see.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

/// A program that does not answer.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum ProgramError {
    #[error("{PROGRAM}, which runs SQL queries, is missing: {places}")]
    #[diagnostic(
        code(query::missing),
        help(
            "`make install FEATURES=full` builds it from the sources of hopmap, and so does \
         `cargo install --locked --path apps/query`; {VARIABLE} may name it"
        )
    )]
    Missing { places: String },
    #[error("{} cannot be started: {reason}", path.display())]
    #[diagnostic(code(query::not_started), help("{VARIABLE} and PATH say which {PROGRAM} is started"))]
    NotStarted { path: PathBuf, reason: std::io::Error },
    #[error("{PROGRAM} failed: {reason}")]
    #[diagnostic(code(query::no_answer))]
    NoAnswer { reason: String },
}

/// Becomes the program, with the arguments of `hopmap query`; comes back only where that fails.
pub(crate) fn exec(arguments: &[OsString]) -> ProgramError {
    match program() {
        Ok((path, mut command)) => {
            let reason = command.args(arguments).exec();
            ProgramError::NotStarted { path, reason }
        }
        Err(error) => error,
    }
}

/// Which tables cannot be made, because the program that answers their questions is not here. Stages run without it.
pub(crate) fn missing(questions: &[TableQuestion]) -> Option<Problem> {
    let first = questions.first()?;
    let error = path().err()?;
    let names: Vec<String> = questions.iter().map(|question| format!("`{}`", question.name)).collect();
    let tables = if names.len() == 1 { "table" } else { "tables" };
    let problem = Problem::new(format!("no {tables} {}: {error}", names.join(", ")), &first.span);
    let help = error.help().map(|help| format!("{help}; then `hopmap run` makes what is missing"));
    Some(Problem { help, ..problem })
}

/// What is wrong with questions, as far as that can be known before there are results.
pub(crate) fn check(questions: &[TableQuestion], stages: &[&str]) -> Vec<Result<(), Problem>> {
    let stages = stages.iter().copied().map(str::to_owned).collect();
    let texts = questions.iter().map(|question| question.sql.clone()).collect();
    ask(&QueryRequest::<()>::Check { stages, questions: texts }, questions)
}

/// Asks questions about what there is of a pipeline now; the program saves the answers.
pub(crate) fn answer(
    questions: &[TableQuestion],
    store: &Path,
    catalogue: impl Serialize,
) -> Vec<Result<AnsweredTable, Problem>> {
    let (store, owned) = (store.to_owned(), questions.to_vec());
    ask(&QueryRequest::Answer { store, catalogue, questions: owned }, questions)
}

/// Asks all questions at once, none if there are none. What is wrong with the program is wrong with each of them.
fn ask<T: DeserializeOwned>(
    request: &impl Serialize,
    questions: &[TableQuestion],
) -> Vec<Result<T, Problem>> {
    if questions.is_empty() {
        return Vec::new();
    }
    exchange(request, questions.len()).unwrap_or_else(|error| {
        let help = error.help().map(|help| help.to_string());
        let problem = |_: &_| Err(Problem { help: help.clone(), ..Problem::new(error.to_string(), &(0..0)) });
        questions.iter().map(problem).collect()
    })
}

fn exchange<T: DeserializeOwned>(
    request: &impl Serialize,
    count: usize,
) -> Result<Vec<Result<T, Problem>>, ProgramError> {
    let no_answer = |reason: String| ProgramError::NoAnswer { reason };
    // Fails for paths that are not UTF-8.
    let request = serde_json::to_vec(request).map_err(|error| no_answer(error.to_string()))?;
    let (path, mut command) = program()?;
    // Our own program, so it stays in our process group, where Ctrl-C on the terminal ends it as well.
    let mut child = command
        .arg(TABLES)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|reason| ProgramError::NotStarted { path, reason })?;
    // One that ends before it has read everything says why.
    let _ = child.stdin.take().map(|mut input| input.write_all(&request));
    let output = child.wait_with_output().map_err(|error| no_answer(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        // Without what begins an error: `error[query::version]: `.
        let said = said.strip_prefix("error").and_then(|said| Some(said.split_once(": ")?.1)).unwrap_or(said);
        return Err(no_answer(if said.is_empty() { output.status.to_string() } else { said.to_owned() }));
    }
    match serde_json::from_slice::<Vec<_>>(&output.stdout) {
        Ok(answers) if answers.len() == count => Ok(answers),
        _ => Err(no_answer("its output is not valid".to_owned())),
    }
}

/// Path of the program.
pub(crate) fn path() -> Result<PathBuf, ProgramError> {
    find(PROGRAM, VARIABLE).map_err(|places| ProgramError::Missing { places })
}

/// The program, with the version of hopmap as its first argument: it has to have the same.
fn program() -> Result<(PathBuf, Command), ProgramError> {
    let path = path()?;
    let mut command = Command::new(&path);
    command.arg(env!("CARGO_PKG_VERSION"));
    Ok((path, command))
}

/// Where a program is: where the variable says, else next to this program, else on PATH; otherwise the places that were searched.
pub(crate) fn find(program: &str, variable: &str) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(variable) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => Ok(std::path::absolute(&path).unwrap_or(path)),
            false => Err(format!("{variable} names {}", path.display())),
        };
    }
    let beside = env::current_exe().ok().map(|hopmap| hopmap.with_file_name(program));
    let found = beside.iter().find(|path| path.is_file()).cloned();
    found.or_else(|| on_path(program)).ok_or_else(|| {
        let beside = beside.map(|path| format!("not at {}, ", path.display())).unwrap_or_default();
        format!("{beside}not on PATH")
    })
}
