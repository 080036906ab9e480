//! `hopmap diff`: what is different between two artifacts, cells or runs, and why.

use std::path::Path;

use clap::Args;
use hopmap_artifact::DESCRIPTION;
use hopmap_command::{Exit, Failure, Mistake, refuse};
use hopmap_compare::{Contents, MetricChange, MetricChanges};
use miette::Report;
use serde_json::json;

use super::locate::{self, locate};
use super::open::{StoreArguments, working_directory};
use super::output::{Output, Result};
use super::runs::find_run;
use crate::compare::{Cause, Comparison, RunChanges, Settings, Side, artifacts, runs};
use crate::engine::{self, Catalogue, RunSummary, Store, StoredCell, short};

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Name an artifact as for `hopmap show`: by its folder, the first digits of its digest, or its stage or cell. Name a run by its start \
time (`hopmap runs`), or as `latest`, `previous` (or `-1`: the run of the same pipeline before the latest), `-2` and so on. \
Write a folder that has the name of a run as ./NAME.

Examples:
  hopmap diff 'placement[seed=1]' 'placement[seed=2]'
  hopmap diff lu.graph lu-new.graph --exit-code      # exit code 3 if they differ
  hopmap diff previous latest --threshold 1%
  hopmap diff placement --run previous --run latest")]
pub(crate) struct Arguments {
    /// Artifact, cell, output (`tables.routes`), each also with its pipeline (`place:placement`), or run; with --run, a stage or cell of
    /// these runs.
    #[arg(value_name = "A", allow_negative_numbers = true)]
    before: String,
    /// Artifact, cell or run to compare with it.
    #[arg(
        value_name = "B",
        allow_negative_numbers = true,
        required_unless_present = "runs",
        conflicts_with = "runs"
    )]
    after: Option<String>,
    /// Compare the stage in two runs: give this option twice.
    #[arg(long = "run", value_name = "RUN", allow_negative_numbers = true)]
    runs: Vec<String>,
    /// Follow differing inputs to the first cause.
    #[arg(long)]
    deep: bool,
    /// Ignore relative changes of metrics below this, such as 1% or 0.01.
    #[arg(long, value_name = "FRACTION", default_value = "0", value_parser = part)]
    threshold: f64,
    /// Exit with code 3 if something differs.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let is_different = match (&arguments.after, arguments.runs.as_slice()) {
        (Some(after), _) => of_names(arguments, after, output)?,
        (None, [before, after]) => of_stage(arguments, [before, after], output)?,
        (None, _) => {
            let help = "for example --run previous --run latest";
            return refuse("comparing a stage needs two runs: give --run twice", help);
        }
    };
    if !is_different || !arguments.exit_code {
        return Ok(Exit::Done);
    }
    output.fault_when_quiet(match &arguments.after {
        Some(after) => format!("{} and {after} are different", arguments.before),
        None => format!("{} is different in {}", arguments.before, arguments.runs.join(" and ")),
    });
    Ok(Exit::Different)
}

/// A share: `1%` or `0.01`.
fn part(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let value = number.trim().parse::<f64>().ok().map(|number| number * scale);
    let value = value.filter(|part| part.is_finite() && *part >= 0.0);
    value.ok_or_else(|| "for example 1% or 0.01".to_owned())
}

/// What a name means.
enum Named {
    Run(Box<RunSummary>),
    Artifact(Box<Side>),
}

fn of_names(arguments: &Arguments, after: &str, output: Output) -> Result<bool> {
    let store = Store::load(&arguments.store.root_here()?)?;
    let all = engine::read_runs(&store)?;
    let named = |name: &str| named(name, arguments, &store, &all);
    match (named(&arguments.before)?, named(after)?) {
        (Named::Artifact(old), Named::Artifact(new)) => of_artifacts(arguments, (&old, &new), output),
        (Named::Run(old), Named::Run(new)) => {
            let catalogues = [old, new].map(|run| Catalogue::of_run(&store, &run));
            Ok(of_catalogues(arguments, &catalogues, None, output))
        }
        (Named::Run(_), _) => Err(mixed(&arguments.before, after)),
        (_, Named::Run(_)) => Err(mixed(after, &arguments.before)),
    }
}

fn mixed(run: &str, other: &str) -> Failure {
    let message = format!("`{run}` is a run, but `{other}` is an artifact");
    Mistake::new(message, "compare two runs, or two artifacts; `hopmap runs` lists the runs").into()
}

/// A run or an artifact, whichever fits.
fn named(name: &str, arguments: &Arguments, store: &Store, all: &[RunSummary]) -> Result<Named> {
    let run = find_run(name, all);
    let path = working_directory()?.join(name);
    let is_stored = store.all_current().any(|(_, cell, _)| cell == name);
    match run {
        Some(run) if !path.join(DESCRIPTION).is_file() && !is_stored => Ok(Named::Run(Box::new(run.clone()))),
        Some(_) => {
            let message =
                format!("`{name}` is a run and also a {}", if is_stored { "stage" } else { "folder" });
            let help = "name the run by its start time (`hopmap runs`), the folder as ./NAME, the stage as PIPELINE:NAME";
            refuse(message, help)
        }
        None if is_word_for_run(name) && !path.exists() => {
            let message = format!("there is no run `{name}`: {} are known", all.len());
            refuse(message, "`hopmap runs` lists them")
        }
        None => {
            let mut side = open(&locate(name, &arguments.store)?)?;
            side.manifest = manifest_of_cell(name, store, &side).or(side.manifest);
            Ok(Named::Artifact(Box::new(side)))
        }
    }
}

/// What the key of a cell was made of: equal artifacts can have several origins, and the one asked for is this.
fn manifest_of_cell(name: &str, store: &Store, side: &Side) -> Option<engine::Manifest> {
    let is_output = |result: &&engine::ResultRecord| {
        result.outputs.values().any(|output| output.digest == side.folder.digest())
    };
    let found = locate::in_store(name, store, store.all_current()).ok()?;
    found.cells.into_iter().filter_map(|cell| store.result(&cell.current.key)).find(is_output)?.manifest()
}

fn is_word_for_run(name: &str) -> bool {
    ["latest", "previous"].contains(&name) || name.parse::<i64>().is_ok_and(|number| number < 0)
}

fn open(path: &Path) -> Result<Side> {
    Side::open(path).map_err(Failure::usage)
}

/// A stage of two runs: its artifact if it has one cell with one output in both, else all of its cells.
fn of_stage(arguments: &Arguments, names: [&String; 2], output: Output) -> Result<bool> {
    let store = Store::load(&arguments.store.root_here()?)?;
    let all = engine::read_runs(&store)?;
    let stage = arguments.before.as_str();
    let mut catalogues = Vec::new();
    for name in names {
        let run = find_run(name, &all).ok_or_else(|| {
            Failure::from(Mistake::new(format!("there is no run `{name}`"), "`hopmap runs` lists them"))
        })?;
        let catalogue = Catalogue::of_run(&store, run);
        let found = locate::in_catalogue(stage, &catalogue)?;
        if found.is_empty() {
            let mut stages: Vec<&str> = catalogue.cells.iter().map(|cell| cell.stage.as_str()).collect();
            stages.dedup();
            let message = format!("the run {} has no stage or cell `{stage}`", run.run);
            return refuse(message, format!("its stages: {}", stages.join(", ")));
        }
        let cells: Vec<StoredCell> = found.into_iter().map(|index| catalogue.cells[index].clone()).collect();
        catalogues.push((catalogue, cells));
    }
    let [(old, old_cells), (new, new_cells)] = [&catalogues[0], &catalogues[1]];
    if let (Some(old), Some(new)) = (only_artifact(&store, old_cells)?, only_artifact(&store, new_cells)?) {
        return of_artifacts(arguments, (&old, &new), output);
    }
    let stage = old_cells[0].stage.as_str();
    Ok(of_catalogues(arguments, &[old.clone(), new.clone()], Some(stage), output))
}

/// The only output of the only cell.
fn only_artifact(store: &Store, cells: &[StoredCell]) -> Result<Option<Side>> {
    let outputs = match cells {
        [StoredCell { result: Some(result), .. }] => &result.outputs,
        _ => return Ok(None),
    };
    match outputs.values().collect::<Vec<_>>().as_slice() {
        [output] => {
            let side = open(&store.artifact(&output.digest))?;
            Ok(Some(Side { manifest: cells[0].manifest().or(side.manifest), ..side }))
        }
        _ => Ok(None),
    }
}

fn of_artifacts(arguments: &Arguments, (before, after): (&Side, &Side), output: Output) -> Result<bool> {
    let kinds = [before, after].map(|side| side.folder.description().kind.as_str());
    if kinds[0] != kinds[1] {
        let message = format!("cannot compare artifacts of the kinds {} and {}", kinds[0], kinds[1]);
        let help = "compare two artifacts of the same kind; `hopmap show` prints the kind";
        return refuse(message, help);
    }
    let settings = Settings { threshold: arguments.threshold, is_deep: arguments.deep };
    let found = artifacts(before, after, settings).map_err(|error| Failure::from(Report::new(error)))?;
    output.json(&json!({ "version": VERSION, "artifacts": found }));
    print(&found, output);
    Ok(found.is_different())
}

fn print(found: &Comparison, output: Output) {
    let (kind, before, after) = (&found.kind, short(&found.before), short(&found.after));
    output.line(match found.is_different() {
        true => format!("{kind} {before} → {after}"),
        false => format!("the same {kind}: {before}"),
    });
    let subjects = found.subjects();
    if found.is_different() && !subjects.is_empty() {
        output.line(format!("  {}: the metrics are not of the same problem", subjects.join(" and ")));
    }
    found.causes.iter().flat_map(Cause::words).for_each(|line| output.line(format!("  {line}")));
    if found.is_different() && found.causes.is_empty() {
        output.line(match found.origin_known {
            true => "  same inputs and parameters: a time limit or an observation of the machine differs",
            false => "  the origin of at least one of them is unknown",
        });
    }
    print_metrics(&found.changes.metrics, output);
    for (name, old, new) in &found.changes.attributes {
        output.line(format!("{name}: {old} → {new}"));
    }
    found.changes.contents.iter().flat_map(Contents::words).for_each(|line| output.line(line));
}

fn print_metrics(metrics: &MetricChanges, output: Output) {
    if !metrics.changed.is_empty() {
        output.line("metrics:");
    }
    metrics.changed.iter().map(MetricChange::words).for_each(|line| output.line(format!("  {line}")));
    if metrics.below_threshold > 0 {
        output.line(format!("  {} more changed by less than the threshold", metrics.below_threshold));
    }
}

fn of_catalogues(arguments: &Arguments, both: &[Catalogue; 2], stage: Option<&str>, output: Output) -> bool {
    let found: RunChanges = runs(&both[0], &both[1], stage, arguments.threshold);
    output.json(&json!({ "version": VERSION, "runs": found }));
    output.line(format!("{} {} → {}", found.pipelines[1], found.runs[0], found.runs[1]));
    found.words().into_iter().for_each(|line| output.line(line));
    if !found.is_different() {
        output.line("no result is different");
    }
    found.is_different()
}
