//! `hopmap runs`, and the run of a name.

use clap::Args;
use hopmap_command::Exit;

use super::open::{StoreArguments, existing};
use super::output::{Output, Result};
use crate::engine::{self, RunSummary};

/// Arguments of `runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
The name of a run is its start time in UTC; other commands accept this name.

Example:
  hopmap runs --last 5")]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Show only the newest COUNT runs.
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
}

pub(crate) fn runs(arguments: &RunsArguments, output: Output) -> Result {
    let root = existing(arguments.store.root_here()?)?;
    let runs = engine::read_runs_below(&root, arguments.last.unwrap_or(usize::MAX))?;
    output.json(&runs);
    if runs.is_empty() {
        output.line("no runs yet");
    }
    runs.iter().for_each(|run| output.line(line(run)));
    Ok(Exit::Done)
}

/// The run of a name; `previous` and `-N` count back those of the pipeline that ran last.
pub(super) fn find_run<'a>(name: &str, all: &'a [RunSummary]) -> Option<&'a RunSummary> {
    let back = match name {
        "latest" => Some(0),
        "previous" => Some(1),
        _ => name.strip_prefix('-').and_then(|number| number.parse::<usize>().ok()),
    };
    let Some(back) = back else { return all.iter().find(|run| run.run == name || run.time == name) };
    let latest = all.last()?;
    let id = latest.id();
    all.iter().rev().filter(|run| run.is_of(&id)).nth(back)
}

fn line(run: &RunSummary) -> String {
    let count = |state: &str| run.stages.iter().filter(|stage| stage.state == state).count();
    let end = match (run.exit, run.seconds) {
        (Some(exit), Some(seconds)) => format!("exit {exit} after {seconds:.2} s"),
        _ => "did not end".to_owned(),
    };
    let (ran, cached, failed) = (count("ran"), count("cached"), count("failed") + count("infeasible"));
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{:<21}  {:<20} {ran} ran, {cached} cached{failed}, {end}", run.run, run.pipeline)
}
