//! `hopmap gc`: remove results that no pipeline uses any more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, shown};
use serde_json::json;

use super::open::{StoreArguments, WaitArguments, duration, existing};
use super::output::{Output, Result};
use crate::engine::{self, Garbage, Policy, Store, short};

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
`hopmap run` can recompute everything that gc removes. Results that the pipelines of the store use now are always kept, and so \
is the state of an interrupted search that can continue. A pipeline is identified by its name and its file; results from \
before its last complete run are unused. Results of pipelines whose files are deleted are kept unless --gone is given.

Example:
  hopmap gc --keep-for 30d --dry-run")]
pub(crate) struct GcArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Show what would be removed, and remove nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep unused results that are younger than TIME, such as 30d.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    keep_for: Duration,
    /// Keep journals and logs of the newest COUNT runs.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    keep_runs: usize,
    /// Also remove results that only pipelines with deleted files used.
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

pub(crate) fn gc(arguments: &GcArguments, output: Output) -> Result {
    let root = existing(arguments.store.root_here()?)?;
    // A dry run only reads.
    let mut writer = (!arguments.dry_run).then(|| arguments.wait.writer(&root, "gc")).transpose()?;
    let mut store = Store::load(&root)?;
    let policy = Policy { keep: arguments.keep_for, runs: arguments.keep_runs, gone: arguments.gone };
    let garbage = engine::find_garbage(&store, policy)?;
    if let Some(writer) = &mut writer {
        engine::collect(&mut store, writer, &garbage)?;
    }
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
    if output.is_talkative() {
        output.raw(listed(&garbage, &root).as_bytes());
    }
    for id in &garbage.gone {
        let why = if id.file.is_empty() { "whose file was not recorded" } else { "whose file is deleted" };
        output.note(format!("note: results of {id}, {why}, are kept until `hopmap gc --gone`"));
    }
    let verb = if arguments.dry_run { "would free" } else { "freed" };
    output.line(match garbage.is_empty() {
        true => "nothing to remove".to_owned(),
        false => format!("{verb} {} bytes", garbage.bytes()),
    });
    // The process ends: a hundred thousand records need not be freed one by one.
    std::mem::forget(store);
    Ok(Exit::Done)
}

/// Everything that is removed, one line each.
fn listed(garbage: &Garbage, root: &Path) -> String {
    let shown_root = PathBuf::from(shown(root));
    let mut text = String::new();
    garbage.forgotten.iter().for_each(|id| text.push_str(&format!("pipeline  {id}\n")));
    garbage.results.iter().for_each(|key| text.push_str(&format!("result    {}\n", short(key))));
    let groups = [("artifact", &garbage.artifacts), ("state", &garbage.states), ("run", &garbage.runs)];
    for (what, entries) in groups {
        for (path, bytes) in entries {
            let path = path.strip_prefix(root).map_or_else(|_| path.clone(), |path| shown_root.join(path));
            text.push_str(&format!("{what:<8}  {}  {bytes} bytes\n", path.display()));
        }
    }
    text
}
