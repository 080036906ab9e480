//! The recorded run of `hopmap tune`, under the default placement of the launcher, and what it says of that placement.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hopmap_command::{Exit, Failure, shown};
use hopmap_durable::Staging;
use hopmap_process::{Cause, Limits, RunError, run};
use hopmap_recording::{DESCRIPTION, Description, Recording};
use miette::Diagnostic;

use super::arguments::Arguments;
use super::place::{Place, command_line, short};
use super::step::{OutOfTime, keep, run_command};
use crate::cli::job::{End, Hosts};
use crate::cli::open::on_interrupt;
use crate::cli::output::{Output, Result};

/// Its folder in that of the results.
pub(super) const RECORDING: &str = "recording";

/// A recording of another program, or of another number of ranks, is in the way.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{path} is a recording of `{recorded}`, which is not what is asked for")]
#[diagnostic(code(tune::other_program), help("name another folder with --out, or remove this one"))]
struct OtherProgram {
    path: String,
    recorded: String,
}

/// The command of `--prepare` failed.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`--prepare`: `{command}` {how}")]
#[diagnostic(code(tune::prepare), help("it runs in a shell, in the working directory"))]
struct NotPrepared {
    command: String,
    how: String,
}

/// Records the program, unless that is done. A recording that was interrupted does not count.
pub(super) fn record(
    arguments: &Arguments,
    place: &Place,
    prepare: Option<&str>,
    out: &Path,
    end: Option<End>,
    output: Output,
) -> Result {
    let recording = out.join(RECORDING);
    if recording.exists() {
        let description = Description::read(&recording.join(DESCRIPTION)).map_err(Failure::failed)?;
        let launcher = place.launcher(arguments)?;
        if !description.arguments.iter().eq(launcher.iter().chain(&arguments.program)) {
            let recorded = command_line(description.arguments.iter());
            return Err(Failure::usage(OtherProgram { path: shown(&recording), recorded }));
        }
        return Ok(Exit::Done);
    }
    if let Some(command) = prepare {
        run_prepare(command, end)?;
    }
    let launcher = place.launcher(arguments)?;
    output.note(format!("recording {}", command_line(launcher.iter().chain(&arguments.program))));
    let staging = Staging::beside(&recording).map_err(Failure::failed)?;
    let unfinished = staging.path().join(RECORDING);
    let folder = unfinished.to_string_lossy().into_owned();
    let mut words = vec!["hopmap", "record", "--events", "-o", &folder];
    words.extend(arguments.mpicc.iter().flat_map(|mpicc| ["--mpicc", mpicc]));
    words.push("--");
    words.extend(launcher.iter().chain(&arguments.program).map(String::as_str));
    let recorded = run_command(&words, end, output);
    if !matches!(recorded, Ok(Exit::Done)) {
        OutOfTime::check(end, "the recorded run")?;
    }
    keep(recorded, &unfinished, &recording)
}

fn run_prepare(command: &str, end: Option<End>) -> Result<()> {
    let interrupted = on_interrupt()?;
    let time = end.map(|end| end.at.saturating_duration_since(Instant::now()));
    let limits = Limits { time, stop: &|| interrupted.load(Ordering::Relaxed), ..Limits::default() };
    let Err(RunError { cause, stderr, .. }) = run(Command::new("sh").args(["-c", command]), &limits) else {
        return Ok(());
    };
    match cause {
        Cause::Stopped => return Err(Failure::new(Exit::Interrupted, [])),
        Cause::Time(_) => OutOfTime::check(end, "`--prepare`")?,
        _ => {}
    }
    let stderr = if stderr.is_empty() { stderr } else { format!(": {stderr}") };
    Err(Failure::failed(NotPrepared { command: command.to_owned(), how: format!("{cause}{stderr}") }))
}

/// The longest time of a rank between `MPI_Init` and `MPI_Finalize`.
pub(super) fn run_time(recording: &Recording) -> Option<f64> {
    recording
        .processes
        .iter()
        .filter_map(|process| process.times)
        .map(|(seconds, _)| seconds)
        .reduce(f64::max)
}

/// The host of every recorded rank for `map/import`, if all are hosts of this call.
pub(super) fn recorded_hosts(recording: &Recording, place: &Place, output: Output) -> Option<String> {
    let host_of = |host: &Option<String>| {
        let host = short(host.as_deref()?);
        let known = place.hosts.hosts.iter().find(|(known, _)| short(known) == host);
        known.map(|(known, _)| known.as_str())
    };
    let hosts: Option<Vec<&str>> = recording.processes.iter().map(|process| host_of(&process.host)).collect();
    let Some(hosts) = hosts else {
        output.note(
            "the recorded hosts are not those of this call: the linear mapping stands for the default placement, which is not \
             known, and the bound is compared with linear",
        );
        return None;
    };
    Some(format!("# hosts of the recorded ranks\n{}\n", hosts.join("\n")))
}

/// Whether a host had more ranks than cores in the recorded run.
pub(super) fn shares_processors(recording: &Recording) -> bool {
    let mut hosts: HashMap<&Option<String>, (usize, HashSet<u32>)> = HashMap::new();
    for process in &recording.processes {
        let (ranks, cores) = hosts.entry(&process.host).or_default();
        *ranks += 1;
        cores.extend(&process.cores);
    }
    hosts.into_values().any(|(ranks, cores)| !cores.is_empty() && ranks > cores.len())
}

/// Whether no host had more ranks than slots.
pub(super) fn fits(recording: &Recording, hosts: &Hosts) -> bool {
    let mut ranks: HashMap<&str, u32> = HashMap::new();
    let names = recording.processes.iter().filter_map(|process| process.host.as_deref());
    names.for_each(|name| *ranks.entry(short(name)).or_default() += 1);
    let ranks_of = |name: &str| ranks.get(short(name)).copied().unwrap_or_default();
    hosts.hosts.iter().all(|(name, slots)| ranks_of(name) <= *slots)
}
