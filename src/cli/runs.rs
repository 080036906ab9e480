//! `hopmap runs` and `hopmap gc`: what a store has run, and clearing it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, shown};
use serde_json::json;

use super::open::{StoreArguments, WaitArguments, duration, existing};
use super::output::Output;
use crate::engine;
use crate::engine::{Garbage, Policy, RunSummary, Store, short};

/// Arguments of `runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
A run is named by when it began, in UTC; other commands take this name.

Example:
  hopmap runs --last 5")]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Show only this many of the newest runs.
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let root = existing(arguments.store.root_here()?)?;
    let runs = engine::read_runs_below(&root, arguments.last.unwrap_or(usize::MAX))?;
    if output.is_json() {
        output.json(&runs);
    }
    if runs.is_empty() {
        output.line("nothing ran yet");
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

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything that goes can be made again by `hopmap run`. What the pipelines of the store use now always stays,
and so does the state of a search that was stopped and can go on. A pipeline is known by its name and its file; what it had
before its last whole run is not in use any more. What a pipeline used whose file is gone stays until --gone.

Example:
  hopmap gc --keep 30d --dry-run")]
pub(crate) struct GcArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Only say what would go.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep unused results that are younger than this.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    keep: Duration,
    /// Keep this many of the newest runs.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    runs: usize,
    /// Clear also what only pipelines used whose files are gone.
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

pub(crate) fn gc(arguments: &GcArguments, output: Output) -> Result<Exit, Failure> {
    let root = existing(arguments.store.root_here()?)?;
    let mut writer = arguments.wait.writer(&root, "gc")?;
    let mut store = Store::load(&root)?;
    let policy = Policy { keep: arguments.keep, runs: arguments.runs, gone: arguments.gone };
    let garbage = engine::find_garbage(&store, policy)?;
    if !arguments.dry_run {
        engine::collect(&mut store, &mut writer, &garbage)?;
    }
    if output.is_json() {
        output.json(&json!({
            "dry_run": arguments.dry_run,
            "results": garbage.results,
            "artifacts": garbage.artifacts.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "states": garbage.states.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "runs": garbage.runs.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            "forgotten": garbage.forgotten.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "gone": garbage.gone.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "bytes": garbage.bytes(),
        }));
    }
    if output.is_talkative() {
        output.raw(listed(&garbage, &root).as_bytes());
    }
    for id in &garbage.gone {
        let why = if id.file.is_empty() { "which kept no file of it" } else { "whose file is gone" };
        output.note(format!("note: what {id}, {why}, used stays until `hopmap gc --gone`"));
    }
    let verb = if arguments.dry_run { "would free" } else { "freed" };
    output.line(match garbage.is_empty() {
        true => "nothing to clear".to_owned(),
        false => format!("{verb} {} bytes", garbage.bytes()),
    });
    // The process ends: a hundred thousand records need not be freed one by one.
    std::mem::forget(store);
    Ok(Exit::Done)
}

/// Everything that goes, a line each.
fn listed(garbage: &Garbage, root: &Path) -> String {
    let shown_root = PathBuf::from(shown(root));
    let mut text = String::new();
    for id in &garbage.forgotten {
        text.push_str(&format!("pipeline  {id}\n"));
    }
    for key in &garbage.results {
        text.push_str(&format!("result    {}\n", short(key)));
    }
    let groups = [("artifact", &garbage.artifacts), ("state", &garbage.states), ("run", &garbage.runs)];
    for (what, entries) in groups {
        for (path, bytes) in entries {
            let path = path.strip_prefix(root).map_or_else(|_| path.clone(), |path| shown_root.join(path));
            text.push_str(&format!("{what:<8}  {}  {bytes} bytes\n", path.display()));
        }
    }
    text
}
