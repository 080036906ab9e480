//! `hopmap exec`: one stage, without a pipeline and without a store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::DurableError;
use hopmap_model::{Arity, Context, Direction, Inputs, Observer, Outcome};
use miette::Report;
use serde_json::json;

use super::exit::Exit;
use super::failure::{Failure, Mistake};
use super::open::{pairs, working_directory};
use super::output::Output;
use super::run::all_cores;
use super::stages::find;
use super::summary::shown;
use crate::engine::{short, write_outputs};
use crate::pipeline::{Folders, Source, assignments, closest, configure_alone};
use crate::registry::{self, StageEntry};

/// Arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
With one output DIR is the artifact, with several each is DIR/OUTPUT. An artifact at DIR is replaced; any other folder
that is not empty is refused.

Examples:
  hopmap exec trace/otf2 --with archive=lu/traces.otf2 --out lu.graph
  hopmap exec topology/synthetic --with shape=tree:2x4x2 --with 'costs=[1,10,100]' --out machine
  hopmap exec map/annealing --in task-graph=lu.graph --in system=machine --out lu.mapping")]
pub(crate) struct Arguments {
    /// Kind of the stage.
    kind: String,
    /// Artifact for an input.
    #[arg(long = "in", value_name = "PORT=ARTIFACT")]
    inputs: Vec<String>,
    /// Value of a parameter, read as TOML, else as text.
    #[arg(long = "with", value_name = "KEY=VALUE")]
    with: Vec<String>,
    /// Folder to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Cores to use [default: all of this machine].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let entry = find(&arguments.kind)?;
    let working = working_directory()?;
    let inputs = inputs(entry, &arguments.inputs, &working)?;
    let source = Source::new("--with", assignments(entry, &pairs(&arguments.with, "--with")?));
    let folders = Folders { file: working.clone(), working: working.clone() };
    let configured = configure_alone(entry, &source, &folders)?;
    let out = working.join(&arguments.out);
    check_place(entry, &out)?;

    let jobs = arguments.jobs.map_or_else(all_cores, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|error| miette::miette!("cannot start {jobs} threads: {error}"))?;
    let observer = Notes { output, cancelled: AtomicBool::new(false) };
    // Large files are made beside the result, so that they need not be copied.
    let scratch = out.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(&working);
    let cx = Context::new(jobs, None, &observer).with_scratch(scratch);
    let outcome = pool.install(|| configured.run(inputs, &cx))?;
    let (exit, outputs) = match outcome {
        Outcome::Done(outputs) | Outcome::Partial(outputs) => (Exit::Done, outputs),
        Outcome::Infeasible(outputs) => (Exit::Failed, outputs),
    };
    let parent = out.parent().unwrap_or(&working);
    let written = write_outputs(entry, &outputs, parent).map_err(Report::new)?;
    let several = written.len() > 1;
    for (port, _, staging, folder) in written {
        let place = if several { out.join(port) } else { out.clone() };
        staging.commit(&place).map_err(Report::new)?;
        let description = folder.description();
        if output.is_json() {
            output.json(&json!({ "output": port, "kind": description.kind, "digest": folder.digest(), "path": place }));
        }
        output.line(format!("{} {} {}", description.kind, short(folder.digest()), shown(&place)));
    }
    if exit == Exit::Failed {
        output.note("infeasible: there is no solution; the output says why");
    }
    Ok(exit)
}

fn inputs(entry: &'static StageEntry, given: &[String], working: &Path) -> Result<Inputs, Failure> {
    let mut inputs = Inputs::new();
    let mut connected: Vec<&str> = Vec::new();
    for (name, path) in pairs(given, "--in")? {
        let known: Vec<&str> = entry.ports(Direction::In).map(|port| port.name).collect();
        let Some(port) = entry.port(Direction::In, &name) else {
            let help = match closest(&name, &known) {
                Some(meant) => format!("did you mean `{meant}`? inputs: {}", known.join(", ")),
                None => format!("inputs: {}", known.join(", ")),
            };
            return Err(Mistake::new(format!("{} has no input `{name}`", entry.kind), help).into());
        };
        if port.arity != Arity::Many && connected.contains(&port.name) {
            return Err(
                Mistake::new(format!("input `{name}` is given twice"), "it takes one artifact").into()
            );
        }
        let path = working.join(path);
        let folder = Folder::open(&path).map_err(Failure::usage)?;
        if folder.description().kind != port.kind {
            let found = &folder.description().kind;
            let message = format!("{} is a {found}, but `{name}` takes a {}", shown(&path), port.kind);
            return Err(Mistake::new(
                message,
                format!("`hopmap stages {}` describes the inputs", entry.kind),
            )
            .into());
        }
        let kind = registry::kind(port.kind).ok_or_else(|| miette::miette!("unknown kind {}", port.kind))?;
        let value = kind.read(&path).map_err(Report::new)?;
        inputs.connect(port.name, value, folder.digest().to_owned(), shown(&path));
        connected.push(port.name);
    }
    for port in entry.ports(Direction::In) {
        if port.arity == Arity::One && !connected.contains(&port.name) {
            let help = format!("add --in {}=ARTIFACT with a {}", port.name, port.kind);
            return Err(Mistake::new(format!("{} needs `{}`", entry.kind, port.name), help).into());
        }
    }
    Ok(inputs)
}

/// An artifact may be replaced, an empty folder filled; anything else is not ours.
fn check_place(entry: &StageEntry, out: &Path) -> Result<(), Failure> {
    let refuse = |path: &Path, what: &str| {
        let help = "name a new folder, an empty one, or an artifact to replace";
        Err(Mistake::new(format!("{} {what}", shown(path)), help).into())
    };
    if out.is_file() {
        return refuse(out, "is a file");
    }
    let ports: Vec<&str> = entry.ports(Direction::Out).map(|port| port.name).collect();
    let names = |folder: &Path| -> Result<Vec<String>, Failure> {
        match std::fs::read_dir(folder) {
            Ok(entries) => Ok(entries
                .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                .collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Failure::Failed(Report::new(DurableError::io("read", folder)(error)))),
        }
    };
    let found = names(out)?;
    let is_artifact = |names: &[String]| names.is_empty() || names.iter().any(|name| name == DESCRIPTION);
    if ports.len() == 1 && !is_artifact(&found) {
        return refuse(out, "holds something that is not an artifact");
    }
    if ports.len() > 1 {
        for name in &found {
            let inner = out.join(name);
            if name == PROVENANCE || !ports.contains(&name.as_str()) || !is_artifact(&names(&inner)?) {
                return refuse(&inner, "is not an artifact of this stage");
            }
        }
    }
    Ok(())
}

struct Notes {
    output: Output,
    cancelled: AtomicBool,
}

impl Observer for Notes {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        self.output.note(line);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
