//! `hopmap topology diff`: what is different between two topologies.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_artifact::{DESCRIPTION, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes};
use hopmap_command::{Exit, Failure, Mistake, shown};
use hopmap_model::{Artifact, CostModel, Levels, Measurements, Node, NodeState, SystemGraph};
use serde_json::json;

use super::values::drift;
use crate::cli::open::working_directory;
use crate::cli::output::Output;
use crate::refresh::read_machine;

/// Arguments of `topology diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Hosts and switches are compared by name, switches with made-up names (level-1-0, switch-1-0) by the hosts below them; order and
numbers never matter.

Examples:
  hopmap topology diff machine machine.new
  hopmap topology diff topology/history/2026-11-20T03-00-04Z-5bd6a1c2e4f0 topology
  hopmap topology diff --exit-code yesterday today   # 0 if they are the same, 3 if not")]
pub(crate) struct Arguments {
    /// Folder of a system graph, of measurements, of an entry of a history, or in which a topology is published.
    before: PathBuf,
    /// The same, of what to compare with it.
    after: PathBuf,
    /// End with 3 if something is different.
    #[arg(long)]
    exit_code: bool,
    /// By which part a latency, a bandwidth or a cost may change without being another one.
    #[arg(long, value_name = "PART", default_value = "0.3", value_parser = drift)]
    drift: f64,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let working = working_directory()?;
    let read = |path: &Path| read(&working.join(path));
    let ((before, before_kind), (after, after_kind)) = (read(&arguments.before)?, read(&arguments.after)?);
    if before_kind != after_kind {
        let (before, after) = (shown(&arguments.before), shown(&arguments.after));
        let message = format!("{before} is {}, but {after} is {}", before_kind.words(), after_kind.words());
        return Err(Mistake::new(message, "compare two of the same kind").into());
    }
    let thresholds = Thresholds { drift: arguments.drift, ..Thresholds::default() };
    let found = changes(&before.snapshot(), &after.snapshot(), &thresholds);
    if output.is_json() {
        output.json(&json!({ "changes": found.iter().map(Change::as_json).collect::<Vec<_>>() }));
    }
    found.iter().for_each(|change| output.line(change));
    if found.is_empty() {
        output.line("no changes");
    }
    Ok(if found.is_empty() || !arguments.exit_code { Exit::Done } else { Exit::Different })
}

/// What was found in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    System,
    Measurements,
}

impl Found {
    fn words(self) -> &'static str {
        match self {
            Self::System => "a system graph",
            Self::Measurements => "measurements alone",
        }
    }
}

fn read(folder: &Path) -> Result<(Machine, Found), Failure> {
    for entry in [folder.join("current"), folder.to_owned()] {
        if entry.join("system").is_dir() {
            return Ok((read_machine(&entry)?, Found::System));
        }
    }
    if !folder.join(DESCRIPTION).is_file() {
        let help = "name a system graph, measurements, a publish folder or an entry of its history";
        return Err(Mistake::new(format!("{} holds no topology", shown(folder)), help).into());
    }
    let kind = Folder::open(folder).map_err(Failure::usage)?.description().kind.clone();
    match kind.as_str() {
        SystemGraph::KIND => {
            let system = Folder::read(folder).map_err(Failure::usage)?;
            Ok((Machine { system, measurements: None }, Found::System))
        }
        Measurements::KIND => {
            let measured: Measurements = Folder::read(folder).map_err(Failure::usage)?;
            let system = hosts_of(&measured);
            Ok((Machine { system, measurements: Some(measured) }, Found::Measurements))
        }
        other => {
            let help = "name a system graph, measurements, a publish folder or an entry of its history";
            Err(Mistake::new(format!("{} is a {other}", shown(folder)), help).into())
        }
    }
}

/// A machine of which nothing is known but the hosts that were measured.
fn hosts_of(measured: &Measurements) -> SystemGraph {
    let node = |(name, first, _): (&str, u32, u32)| Node {
        state: measured.endpoints.get(first as usize).map_or(NodeState::Down, |endpoint| endpoint.state),
        ..Node::host(name)
    };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: measured.hosts().map(node).collect(),
        links: Vec::new(),
        slots: Vec::new(),
        cost: CostModel::Levels(Levels::default()),
    }
}
