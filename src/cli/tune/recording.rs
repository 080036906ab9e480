//! The recorded run of `hopmap tune`, under the default placement of the launcher, and what it says of that placement.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hopmap_command::{Exit, Failure, shown};
use hopmap_durable::{DurableError, Staging, replace_file};
use hopmap_formats::host_names::short;
use hopmap_launchers::{MULTI_PROG, programs_of};
use hopmap_model::SystemGraph;
use hopmap_process::{Cause, Limits, RunError, on_path, run};
use hopmap_recording::{DESCRIPTION, Description, Recording};
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::launcher::{command_line, started};
use super::step::{OutOfTime, keep, run_command};
use crate::cli::hosts::{Allocation, Hosts};
use crate::cli::job::End;
use crate::cli::open::{on_interrupt, working_directory};
use crate::cli::output::{Output, Result};
use crate::registry::recorder;

/// Its folder in that of the results.
pub(super) const RECORDING: &str = "recording";
/// The folder of the recorded run, which replaces `{trial}` as those of the trial's runs do.
const RECORDED_RUN: &str = "recorded-run";
const TRIAL_WORD: &str = "{trial}";

fn names_run(text: &str) -> bool {
    text.contains(TRIAL_WORD)
}

/// A recording of another program, or of another number of ranks, is in the way.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{path} is a recording of `{recorded}`, {which}")]
#[diagnostic(code(tune::other_program), help("name another folder with --out, or remove this one"))]
struct OtherProgram {
    path: String,
    recorded: String,
    which: &'static str,
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
    allocation: &Allocation,
    prepare: Option<&str>,
    out: &Path,
    end: Option<End>,
    output: Output,
) -> Result {
    let recording = out.join(RECORDING);
    let folder_of_run = out.join(RECORDED_RUN).to_string_lossy().into_owned();
    let program: Vec<String> =
        arguments.program.iter().map(|word| word.replace(TRIAL_WORD, &folder_of_run)).collect();
    if recording.exists() {
        let description = Description::read(&recording.join(DESCRIPTION)).map_err(Failure::failed)?;
        let words = started(arguments, allocation, &program)?;
        let known = Origin::read(&recording);
        let now = Origin::of(arguments)?;
        let which = match known {
            _ if description.arguments != words => "which is not what is asked for",
            Some(known) if known.folder != now.folder => "started in another folder",
            Some(known) if known.blake3 != now.blake3 => "and the file of the program has changed since",
            _ => return Ok(Exit::Done),
        };
        let recorded = command_line(description.arguments.iter());
        return Err(Failure::usage(OtherProgram { path: shown(&recording), recorded, which }));
    }
    if [prepare].into_iter().flatten().chain(arguments.program.iter().map(String::as_str)).any(names_run) {
        let folder = Path::new(&folder_of_run);
        fs::create_dir_all(folder).map_err(DurableError::io("create", folder)).map_err(Failure::failed)?;
    }
    if let Some(command) = prepare {
        // Only a NUL cannot be quoted, and no path has one.
        let folder = shlex::try_quote(&folder_of_run).unwrap_or_default();
        run_prepare(&command.replace(TRIAL_WORD, &folder), end)?;
    }
    let words = started(arguments, allocation, &program)?;
    output.note(format!("recording {}", command_line(words.iter())));
    let staging = Staging::beside(&recording).map_err(Failure::failed)?;
    let unfinished = staging.path().join(RECORDING);
    let command = recorder(unfinished.clone(), arguments.mpicc.clone(), words);
    let begin = Instant::now();
    let recorded = run_command(&*command, end, output);
    if !matches!(recorded, Ok(Exit::Done)) {
        OutOfTime::check(end, "the recorded run")?;
    }
    if matches!(recorded, Ok(Exit::Done)) {
        let seconds = Some((10.0 * begin.elapsed().as_secs_f64()).round() / 10.0);
        Origin { seconds, ..Origin::of(arguments)? }.write(&unfinished)?;
    }
    keep(recorded, &unfinished, &recording)
}

/// Where a recording comes from, beyond the words of its command.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    /// The working directory.
    folder: PathBuf,
    /// BLAKE3 of the file of the program, and of programs among its arguments such as `python3 x.py`; none if the file is not on this
    /// host.
    blake3: Option<String>,
    /// Seconds of the recorded run from the start of the launcher to its end.
    #[serde(default)]
    seconds: Option<f64>,
}

/// Seconds of the recorded run from the start of its launcher to its end: much of that may be outside of MPI.
pub(super) fn launched_s(out: &Path) -> Option<f64> {
    Origin::read(&out.join(RECORDING))?.seconds
}

impl Origin {
    const NAME: &str = "tune.json";

    fn of(arguments: &Arguments) -> Result<Self> {
        Ok(Self { folder: working_directory()?, blake3: hash(&arguments.program), seconds: None })
    }

    /// That of a recording; none of one that `tune` did not make.
    fn read(recording: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(recording.join(Self::NAME)).ok()?).ok()
    }

    fn write(&self, recording: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        Ok(replace_file(&recording.join(Self::NAME), text.as_bytes()).map_err(Report::from)?)
    }
}

/// The hash of the files of all programs and of the scripts among their arguments; none if one cannot be read.
fn hash(words: &[String]) -> Option<String> {
    let is_list = words.first().is_some_and(|word| word == MULTI_PROG);
    let mut hasher = blake3::Hasher::new();
    for program in programs_of(words) {
        let (first, others) = program.split_first()?;
        let first = if is_list { PathBuf::from(first) } else { on_path(first)? };
        let scripts = others.iter().map(PathBuf::from).filter(|file| is_program(file));
        for file in std::iter::once(first).chain(scripts) {
            hasher.update_reader(File::open(file).ok()?).ok()?;
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}

/// Whether an argument names a program for an interpreter or a tool such as numactl: a script by its name, or an executable file.
fn is_program(file: &Path) -> bool {
    const SCRIPTS: [&str; 8] = ["py", "jl", "r", "R", "sh", "pl", "lua", "rb"];
    let has_name = || file.extension().is_some_and(|end| SCRIPTS.iter().any(|script| end == *script));
    let is_executable = |found: &Metadata| found.permissions().mode() & 0o111 != 0;
    file.metadata().is_ok_and(|found| found.is_file() && (has_name() || is_executable(&found)))
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

/// The host of every recorded rank for `map/import`, by its name in the machine, if all are hosts of this call.
pub(super) fn recorded_hosts(recording: &Recording, system: &SystemGraph, output: Output) -> Option<String> {
    let own = hopmap_mpi_environment::host_name();
    let host_of = |host: &Option<String>| {
        let host = short(host.as_deref()?);
        let is_it = |known: &str| short(known) == host || known == "localhost" && host == short(&own);
        let mut known = system.hosts().map(|(node, ..)| system.nodes[node as usize].name.as_str());
        known.find(|known| is_it(known))
    };
    let hosts: Option<Vec<&str>> = recording.processes.iter().map(|process| host_of(&process.host)).collect();
    let Some(hosts) = hosts else {
        output.note(
            "recorded on other hosts, so the default placement is not known: the linear mapping takes its part, also for the bound",
        );
        return None;
    };
    Some(format!("# hosts of the recorded ranks\n{}\n", hosts.join("\n")))
}

/// Whether no host had more ranks than slots.
pub(super) fn fits(recording: &Recording, hosts: &Hosts) -> bool {
    let mut ranks: HashMap<&str, u32> = HashMap::new();
    let names = recording.processes.iter().filter_map(|process| process.host.as_deref());
    names.for_each(|name| *ranks.entry(short(name)).or_default() += 1);
    let ranks_of = |name: &str| ranks.get(short(name)).copied().unwrap_or_default();
    hosts.hosts.iter().all(|(name, slots)| ranks_of(name) <= *slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the first program was looked at, so that a changed second one kept the recording of the old one.
    #[test]
    fn a_change_of_any_program_is_another_hash() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.to_string_lossy().into_owned()
        };
        let (first, second) = (write("a", "1"), write("b", "2"));
        let words = ["-n", "2", &first, ":", "-n", "1", &second].map(str::to_owned);
        let before = hash(&words).unwrap();
        assert_eq!(hash(&words).unwrap(), before);
        write("b", "3");
        assert_ne!(hash(&words).unwrap(), before);
    }
}
