//! What `run`, `plan`, `report` and `accept` have in common about gates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_artifact::Folder;
use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_launchers::shell_word;
use hopmap_text::counted;
use miette::{Diagnostic, Report};
use serde_json::json;

use super::locate::locate;
use super::named::Written;
use super::open::{PipelineArguments, StoreArguments, place_or, working_directory};
use super::output::{Output, Result};
use super::summary::{first_of, print_some};
use crate::accepted::{Accepted, AcceptedError};
use crate::engine::{self, Ending, OutputRecords, PipelineId, Reason, RunReport, State, Store, short};
use crate::gates::Gate;
use crate::pipeline::{EMBEDDED, Pipeline};
use crate::source::Problems;
use crate::verdict::{self, AcceptedMetrics, GateStatus, Judged, Verdict};

/// What to judge gates by.
#[derive(Debug, Default, Args)]
pub(crate) struct GateArguments {
    /// Baseline of the gates [default: NAME.accepted.json next to the pipeline file].
    #[arg(long, value_name = "FILE")]
    accepted: Option<PathBuf>,
    /// Do not evaluate gates.
    #[arg(long, conflicts_with = "accepted")]
    no_gates: bool,
}

impl GateArguments {
    /// File of the baseline.
    pub(crate) fn place(&self, pipeline: &Pipeline) -> Result<PathBuf> {
        place_or(self.accepted.as_ref(), || pipeline.accepted_file())
    }

    /// Rejects a given file that does not exist; the one next to the pipeline file is optional.
    fn check_named(&self, pipeline: &Pipeline) -> Result<()> {
        let is_missing = |path: &&PathBuf| matches!(path.try_exists(), Ok(false));
        let Some(path) = self.accepted.as_ref().filter(is_missing) else { return Ok(()) };
        let (name, path) = (pipeline.source.name(), path.display());
        let [name, out] = [name, &*path.to_string()].map(shell_word);
        let help = format!("after a run without --accepted, `hopmap accept {name} --out {out}` writes it");
        refuse(format!("the baseline {path} does not exist"), help)
    }

    /// Reads the accepted values, after checking that the pipeline names metrics that there can be.
    pub(crate) fn prepare(&self, pipeline: &mut Pipeline, store: &Store) -> Result<BTreeMap<String, f64>> {
        self.check_named(pipeline)?;
        if self.no_gates {
            pipeline.gates.clear();
            return Ok(BTreeMap::new());
        }
        engine::check_metrics(pipeline, store)?;
        if pipeline.gates.is_empty() {
            return Ok(BTreeMap::new());
        }
        let accepted = AcceptedMetrics::read(&self.place(pipeline)?)?;
        Ok(accepted.map(|accepted| accepted.metrics).unwrap_or_default())
    }
}

/// Judges the gates by what a run or a plan found; gives metrics that do not exist.
pub(crate) fn judge(
    pipeline: &Pipeline,
    report: &mut RunReport,
    accepted: &BTreeMap<String, f64>,
) -> Option<Problems> {
    let cells = &report.cells;
    let metrics = |cell: usize, output: &str| {
        let settled = Some(&cells[cell]).filter(|settled| settled.is_usable())?;
        settled.outputs.get(output).map(|record| &record.metrics)
    };
    let judged = verdict::judge(pipeline, &metrics, accepted);
    report.gates = judged.verdicts;
    judged.problems
}

/// A gate that does not hold.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("gate {0}")]
#[diagnostic(code(gates::failed))]
struct Broken(String);

/// Prints the verdicts of all gates; failed ones are errors.
pub(crate) fn print(pipeline: &Pipeline, report: &RunReport, output: Output) {
    let of = |status: GateStatus| report.gates.iter().filter(move |verdict| verdict.status == status);
    for gate in &pipeline.gates {
        for status in [GateStatus::Holds, GateStatus::Unknown, GateStatus::Open] {
            print_cells(status.word(), gate, of(status).filter(|verdict| verdict.gate == gate.name), output);
        }
    }
    if of(GateStatus::Open).next().is_some() {
        output.line(format!("  {:<12} hopmap accept {}", "to accept", shell_word(pipeline.source.name())));
    }
    print_broken(&of(GateStatus::Broken).collect::<Vec<_>>(), output);
}

/// The first few cells of a gate with one verdict; those of a sweep would hide the other gates.
fn print_cells<'a>(word: &str, gate: &Gate, verdicts: impl Iterator<Item = &'a Verdict>, output: Output) {
    const MOST: usize = 3;
    let (first, more) = first_of(verdicts, MOST);
    first.into_iter().for_each(|verdict| output.line(format!("  {word:<12} {verdict}")));
    if more > 0 {
        output.line(format!("  {word:<12} {}: … and {more} more", gate.name));
    }
}

fn print_broken(broken: &[&Verdict], output: Output) {
    const MOST: usize = 20;
    let (first, more) = first_of(broken.iter(), MOST);
    first.into_iter().for_each(|verdict| output.error(&Report::new(Broken(verdict.to_string()))));
    if more > 0 {
        output.error(&Report::new(Broken(format!("… and {more} more failed"))));
    }
}

/// Exit code of a command whose stages succeeded.
pub(crate) fn exit(problems: Option<Problems>, report: &RunReport) -> Result {
    match problems {
        Some(problems) => Err(problems.into()),
        None if report.is_broken() => Ok(Exit::Different),
        None => Ok(Exit::Done),
    }
}

/// Arguments of `accept`.
#[derive(Debug, Args)]
#[command(after_help = "\
For a pipeline, accept records the values of its gates, computed from stored results; `run` compares with \
NAME.accepted.json next to the pipeline file. For an artifact, it records kind, digest, rows, metrics and location. Both are \
small text files for version control. A file with equal content is not rewritten.

Examples:
  hopmap accept place.toml --note 'the new mapper is 3 % worse on halos'
  hopmap accept --check place.toml           # exit code 3 if a value is not the accepted one
  hopmap accept machine --out accepted.json --note 'after the move of rack 7'
  hopmap accept quality --out quality.json   # the newest output of a stage
  hopmap accept --check machine --out accepted.json   # exit code 3 if the artifact differs")]
pub(crate) struct Arguments {
    /// Pipeline, or an artifact: its folder, the first digits of its digest, or the stage that wrote it.
    #[arg(value_name = "PIPELINE|ARTIFACT")]
    what: String,
    /// Set a parameter of the pipeline; paths are relative to the working directory.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// File of the baseline, written or, with --check, read [default for a pipeline: NAME.accepted.json next to it].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Record a note with the baseline.
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    note: Option<String>,
    /// Compare with the baseline and write nothing; exit with code 3 if something differs.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let path = Path::new(&arguments.what);
    let is_embedded = || EMBEDDED.iter().any(|embedded| embedded.name == arguments.what);
    let is_pipeline = path.is_file() || path.extension().is_some_and(|extension| extension == "toml");
    if is_pipeline || (arguments.out.is_none() && !path.exists() && is_embedded()) {
        return of_pipeline(arguments, output);
    }
    let (Some(out), []) = (&arguments.out, arguments.parameters.as_slice()) else {
        let what =
            if arguments.out.is_some() { "an artifact takes no -p" } else { "name a file with --out FILE" };
        let hint = "without --out, and with -p, name a pipeline file";
        return refuse(format!("`{}` is not a pipeline file: {what}", arguments.what), hint);
    };
    let place = working_directory()?.join(out);
    let artifact = Folder::open(&locate(&arguments.what, &arguments.store)?).map_err(Failure::usage)?;
    match arguments.check {
        true => check_artifact(&artifact, &place, output),
        false => accept_artifact(&artifact, &place, arguments.note.as_deref(), output),
    }
}

fn accept_artifact(artifact: &Folder, place: &Path, note: Option<&str>, output: Output) -> Result {
    Written::Accepted.check_place(place)?;
    let accepted = Accepted::of(artifact, place, note)?;
    let written = accepted.write(place)?;
    output.json(&json!({ "file": place, "written": written, "accepted": accepted }));
    let verb = verb(written);
    output.line(format!("{verb}: {} {} in {}", accepted.kind, short(&accepted.digest), shown(place)));
    Ok(Exit::Done)
}

fn verb(written: bool) -> &'static str {
    if written { "accepted" } else { "accepted already" }
}

fn check_artifact(artifact: &Folder, place: &Path, output: Output) -> Result {
    let accepted = Accepted::read(place)?;
    artifact.verify().map_err(Report::new)?;
    let same = format!("{} {} is the accepted one", accepted.kind, short(&accepted.digest));
    let other = format!("{} is not", shown(artifact.path()));
    Ok(print_differences(&accepted.differences(artifact), &same, &other, place, output))
}

/// Prints differences from a baseline.
fn print_differences(differences: &[String], same: &str, other: &str, place: &Path, output: Output) -> Exit {
    output.json(&json!({ "file": place, "same": differences.is_empty(), "differences": differences }));
    if differences.is_empty() {
        output.line(same);
        return Exit::Done;
    }
    output.fault(format!("{other} what {} accepts", shown(place)));
    differences.iter().for_each(|line| output.fault(format!("  {line}")));
    Exit::Different
}

fn of_pipeline(arguments: &Arguments, output: Output) -> Result {
    let opened = PipelineArguments::new(arguments.what.clone(), arguments.parameters.clone());
    let pipeline = opened.open()?;
    if !pipeline.gates.iter().any(|gate| gate.formula.right.needs_accepted()) {
        let what = if pipeline.gates.is_empty() { "no gates" } else { "no gate that names `accepted`" };
        let message = format!("{} has {what}, so there is nothing to accept", pipeline.source.name());
        return refuse(
            message,
            "a gate is a line below [gates], such as quality = \"placement.F <= 1.02 * accepted\"",
        );
    }
    let place = place_or(arguments.out.as_ref(), || pipeline.accepted_file())?;
    let mut store = Store::load(&arguments.store.root(&opened)?)?;
    let before = AcceptedMetrics::read(&place)?;
    let judged = values_of_gates(&pipeline, &mut store)?;
    match arguments.check {
        true => check_values(&pipeline, &judged, before.as_ref(), &place, output),
        false => {
            accept_values(&pipeline, judged, before.as_ref(), (&place, arguments.note.as_deref()), output)
        }
    }
}

/// The values of the gates, by the results that are in the store.
fn values_of_gates(pipeline: &Pipeline, store: &mut Store) -> Result<Judged> {
    engine::check_metrics(pipeline, store)?;
    let planned = engine::plan(pipeline, store);
    let outputs = (0..pipeline.cells.len()).map(|cell| outputs(cell, pipeline, store, &planned));
    let outputs: Vec<OutputRecords> = outputs.collect::<Result<_>>()?;
    let metrics = |cell: usize, output: &str| outputs[cell].get(output).map(|record| &record.metrics);
    let mut judged = verdict::judge(pipeline, &metrics, &BTreeMap::new());
    match judged.problems.take() {
        Some(problems) => Err(problems.into()),
        None => Ok(judged),
    }
}

/// The last results of a cell. Only results of the current pipeline can be accepted.
fn outputs(cell: usize, pipeline: &Pipeline, store: &Store, planned: &RunReport) -> Result<OutputRecords> {
    let settled = &planned.cells[cell];
    let name = &pipeline.cells[cell].name;
    let because = match settled.state {
        State::Cached => return Ok(settled.outputs.clone()),
        State::WouldRun | State::Waits => match last(cell, pipeline, store, planned) {
            Some(outputs) => return Ok(outputs),
            None => match settled.reasons.first() {
                Some(reason) => format!("{name} has to run: {reason}"),
                None => format!("{name} has to run"),
            },
        },
        State::Infeasible => format!("{name} has no solution"),
        _ => match settled.because_of {
            Some(other) => format!("{name} is blocked by {}", pipeline.cells[other].name),
            None => format!("{name} failed"),
        },
    };
    let hint = format!(
        "only a run in which every stage has a result can be accepted: `hopmap run {}`",
        shell_word(pipeline.source.name())
    );
    refuse(format!("cannot accept: {because}"), hint)
}

/// The last result of a cell that would run only because a live stage always runs.
fn last(cell: usize, pipeline: &Pipeline, store: &Store, planned: &RunReport) -> Option<OutputRecords> {
    let mut root = cell;
    while planned.cells[root].state == State::Waits {
        root = planned.cells[root].because_of?;
    }
    let only_looks = planned.cells[root].reasons.iter().all(|reason| *reason == Reason::Observes);
    let id = PipelineId::of(pipeline, store.root());
    let key = store.current(&id, &pipeline.cells[cell].id).filter(|_| only_looks)?;
    let result = store.result(key).filter(|result| result.ending == Ending::Done)?;
    Some(result.outputs.clone())
}

fn accept_values(
    pipeline: &Pipeline,
    judged: Judged,
    before: Option<&AcceptedMetrics>,
    (place, note): (&Path, Option<&str>),
    output: Output,
) -> Result {
    Written::AcceptedValues.check_place(place)?;
    let changes = before.map(|before| before.differences(&judged.values)).unwrap_or_default();
    let accepted = AcceptedMetrics::new(&pipeline.name, judged.values, note);
    let written = accepted.write(place)?;
    output.json(&json!({ "file": place, "written": written, "accepted": accepted }));
    let values = counted(accepted.metrics.len(), "value");
    output.line(format!("{}: {values} in {}", verb(written), shown(place)));
    print_some(changes.into_iter(), 6, |line| format!("  {line} before"), output);
    Ok(Exit::Done)
}

fn check_values(
    pipeline: &Pipeline,
    judged: &Judged,
    before: Option<&AcceptedMetrics>,
    place: &Path,
    output: Output,
) -> Result {
    let Some(before) = before else {
        let hint = format!("accept the values with `hopmap accept {}`", shell_word(pipeline.source.name()));
        return refuse(format!("nothing is accepted yet: {} does not exist", shown(place)), hint);
    };
    let same = format!("{}: these are the accepted values", pipeline.name);
    let other = format!("{}: not", pipeline.name);
    Ok(print_differences(&before.differences(&judged.values), &same, &other, place, output))
}

impl From<AcceptedError> for Failure {
    fn from(error: AcceptedError) -> Self {
        match error {
            AcceptedError::Missing(_) | AcceptedError::Malformed { .. } | AcceptedError::Format { .. } => {
                Self::usage(error)
            }
            error => Self::failed(error),
        }
    }
}
