//! Pipeline files that commands write and run, such as `hopmap trial`: the command describes, the pipeline does the work. In their folders
//! they replace nothing but what they wrote and nobody has changed.

use std::path::{Path, PathBuf};

use hopmap_artifact::{Codec, Folder};
use hopmap_command::{Exit, Failure, holder, shown};
use hopmap_durable::{DurableError, Lock, replace_file};
use hopmap_launchers::shell_word;
use miette::{Diagnostic, Report};

use super::open::{PipelineArguments, StoreArguments, working_directory};
use super::output::{Output, Result};
use super::run;
use crate::engine::{self, OutputRecord, PipelineId, RunSummary, State, Store, Writer};
use crate::pipeline::Pipeline;
use crate::pipeline_text::{PipelineText, StageOptions};
use crate::source::Source;

/// The first line of such a file, before the digits of its text.
const FIRST_LINE: &str = "# Written by hopmap, which replaces it unless it was edited: ";

/// What has the name of a pipeline that hopmap would write is not as it was written.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{path} is not a pipeline that hopmap wrote, or it was edited")]
#[diagnostic(
    code(cli::not_written),
    help("name another folder with --out, move it away, or run it with `hopmap run {}`", shell_word(path))
)]
struct NotWritten {
    path: String,
}

/// Another command works in the folder.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("another hopmap works in {path}")]
#[diagnostic(code(cli::in_use), help("wait until it ends, or name another folder with --out"))]
struct InUse {
    path: String,
}

/// Makes the folder of a command, in which no other one works until the lock is dropped.
pub(crate) fn lock(folder: &Path) -> Result<Lock> {
    std::fs::create_dir_all(folder).map_err(DurableError::io("create", folder)).map_err(Failure::failed)?;
    Lock::of_folder(folder).map_err(|error| match error {
        DurableError::Busy { .. } => Failure::new(Exit::Locked, [Report::new(InUse { path: shown(folder) })]),
        error => Failure::failed(error),
    })
}

/// A pipeline file in the folder of a command's results, and the store that has them.
pub(crate) struct PipelineFile<'a> {
    path: PathBuf,
    store: &'a StoreArguments,
    options: StageOptions,
}

impl<'a> PipelineFile<'a> {
    /// Checks a pipeline and the parameters of its stages, and writes its file. One that was edited, or that hopmap did not write, is not
    /// replaced.
    pub(crate) fn write(path: PathBuf, pipeline: &PipelineText, store: &'a StoreArguments) -> Result<Self> {
        let digits = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
        let is_own = |there: &[u8]| {
            let there = std::str::from_utf8(there).ok().and_then(|there| there.strip_prefix(FIRST_LINE));
            there
                .and_then(|there| there.split_once("\n\n"))
                .is_some_and(|(found, text)| found == digits(text))
        };
        let text = pipeline.to_string();
        let text = format!("{FIRST_LINE}{}\n\n{text}", digits(&text));
        let is_there = match std::fs::read(&path) {
            Ok(there) if there == text.as_bytes() => true,
            Ok(there) if is_own(&there) => false,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            _ => return Err(Failure::usage(NotWritten { path: shown(&path) })),
        };
        let (working, folder) = (working_directory()?, path.parent().unwrap_or(&path));
        let source = Source::new(path.to_string_lossy(), text.clone());
        Pipeline::parse(source, folder, &working, &[]).map_err(|problems| pipeline.in_options(problems))?;
        if !is_there {
            replace_file(&path, text.as_bytes()).map_err(Report::from)?;
        }
        Ok(Self { path, store, options: pipeline.options() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn arguments(&self) -> PipelineArguments {
        PipelineArguments::new(self.path.to_string_lossy().into_owned(), Vec::new())
    }

    fn open(&self) -> Result<(Pipeline, Store)> {
        let arguments = self.arguments();
        Ok((arguments.open()?, Store::load(&self.store.root(&arguments)?)?))
    }

    /// Runs it as `hopmap run` does.
    pub(crate) fn run(&self, request: &run::Request, output: Output) -> Result {
        run::own(self.arguments(), self.store.clone(), &self.options, request, output)
    }

    /// Writes files beside it, or removes those without a text, by the rule of its `save`.
    pub(crate) fn save(&self, files: &[(&str, Option<&str>)]) -> Result<()> {
        let (pipeline, mut store) = self.open()?;
        let mut writer = Writer::open(store.root(), &holder(&pipeline.name))?;
        let files: Vec<_> =
            files.iter().map(|(name, text)| (self.path.with_file_name(name), *text)).collect();
        Ok(engine::save_texts(&files, &pipeline, &mut store, &mut writer)?)
    }

    /// The newest artifact of a kind that a cell gave; that of a run that was stopped early is one, too.
    pub(crate) fn newest<A: Codec>(&self, cell: &str) -> Result<Option<A>> {
        Ok(self.newest_or_partial(cell)?.map(|(artifact, _)| artifact))
    }

    /// The same, and whether it is of a run that was stopped early.
    pub(crate) fn newest_or_partial<A: Codec>(&self, cell: &str) -> Result<Option<(A, bool)>> {
        let newest = self.newest_record(cell, A::KIND)?;
        Ok(newest.and_then(|(folder, _, is_partial)| Some((Folder::read(&folder).ok()?, is_partial))))
    }

    /// The folder and the record of the newest artifact of a kind that a cell gave, and whether it is of a run that was stopped early.
    pub(crate) fn newest_record(
        &self,
        cell: &str,
        kind: &str,
    ) -> Result<Option<(PathBuf, OutputRecord, bool)>> {
        let (pipeline, mut store) = self.open()?;
        // What was observed by the run is what its results depend on.
        store.trust_observations();
        let planned = engine::plan(&pipeline, &mut store);
        let key = pipeline.cells.iter().position(|other| other.id == cell);
        let key = match key.and_then(|cell| planned.cells[cell].key.clone()) {
            Some(key) => Some(key),
            // Behind a search that was stopped early, and would go on, nothing is planned: what the last run gave counts.
            None => key_of_last_run(&pipeline, &store, cell)?,
        };
        let Some((outputs, is_partial)) = key.and_then(|key| store.newest(&key)) else { return Ok(None) };
        let record = outputs.values().find(|record| record.kind == kind).cloned();
        Ok(record.map(|record| (store.artifact(&record.digest), record, is_partial)))
    }

    /// Whether a cell of a stage failed in the last run.
    pub(crate) fn has_failed(&self, stage: &str) -> Result<bool> {
        let (pipeline, store) = self.open()?;
        let failed = engine::state_name(State::Failed);
        let run = last_run(&pipeline, &store)?;
        Ok(run
            .is_some_and(|run| run.stages.iter().any(|event| event.stage == stage && event.state == failed)))
    }

    /// An artifact in its store, by its digest.
    pub(crate) fn artifact<A: Codec>(&self, digest: &str) -> Result<A> {
        let (_, store) = self.open()?;
        Folder::read(&store.artifact(digest)).map_err(Failure::failed)
    }
}

/// The key of a cell in the last run of its pipeline.
fn key_of_last_run(pipeline: &Pipeline, store: &Store, cell: &str) -> Result<Option<String>> {
    let last = last_run(pipeline, store)?;
    let event = last.and_then(|run| run.stages.into_iter().rev().find(|event| event.cell == cell));
    Ok(event.and_then(|event| event.key))
}

fn last_run(pipeline: &Pipeline, store: &Store) -> Result<Option<RunSummary>> {
    let id = PipelineId::of(pipeline, store.root());
    Ok(engine::read_runs(store)?.into_iter().rev().find(|run| run.is_of(&id)))
}
