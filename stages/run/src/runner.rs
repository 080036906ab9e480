//! Runs a program under several mappings, block by block.
//!
//! Each mapping runs once in a block, in an order that is drawn for every block. What disturbs the machine, such as other jobs, its
//! temperature or a periodic task, then slows either run of a block as likely, and runs of a block are compared with each other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hopmap_model::{Context, FileSet, NOT_PREPARED, TIMED_OUT, TrialMapping, TrialRun, Trials, open_input};
use hopmap_process::{Capture, Group, end_survivors};
use hopmap_trials::{Order, TIME_STEP};
use tempfile::TempDir;

use crate::candidates::Candidate;
use crate::command::{LaunchCommand, prepare, program_files};
use crate::error::TrialError;
use crate::measure::{Processors, lateness, time_inside_mpi};
use crate::params::{TrialParams, words};
use crate::printed::{NoTime, printed_time};

/// Names of files in the folder of a run.
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const RECORDING: &str = "recording";
/// Placeholder for the folder of a recording in the words before the launcher.
pub(crate) const RECORDING_WORD: &str = "{recording}";
/// Time of a launcher to end its ranks: Open MPI kills them three seconds after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Failures in a row after which a mapping is given up: before its first success, and later, as after a host has died.
const MOST_FAILURES: u32 = 2;
const MOST_LATER: u32 = 4;
/// Bytes and lines of standard error that are quoted.
const QUOTED_BYTES: usize = 4096;
const QUOTED_LINES: usize = 12;

/// Runs a program, and keeps what was measured.
#[derive(Debug)]
pub struct Runner<'a> {
    params: &'a TrialParams,
    begin: Instant,
    commands: Vec<(TrialMapping, LaunchCommand)>,
    lateness: Option<Vec<String>>,
    /// Words before the launcher.
    wrapper: Vec<String>,
    folder: TempDir,
    order: Order,
    runs: Vec<TrialRun>,
    looks: Vec<u32>,
    /// Failures since the last success, by mapping.
    failures: Vec<u32>,
    /// Whether a run succeeded, by mapping.
    succeeded: Vec<bool>,
    /// How the first run ended that failed.
    first_failure: Option<String>,
    /// The slowest run by mapping, from the start of the launcher to its end.
    slowest: Vec<f64>,
    blocks: u32,
    /// The coarsest last digit of a printed time, in seconds.
    step_s: Option<f64>,
}

/// Which run of a trial it is.
#[derive(Debug, Clone, Copy)]
struct RunPosition {
    /// Number of the block; `None` for the warm-up.
    block: Option<u32>,
    /// Whether the block serves to choose the best mapping.
    choice: bool,
}

/// A block that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Whether it served to choose the best mapping.
    pub choice: bool,
    /// The time by mapping that ran, infinite if it failed.
    pub times: Vec<Option<f64>>,
    /// Whether the trial was stopped after it, and its results were shown.
    pub was_shown: bool,
}

/// How a run ended.
enum Ending {
    Exited(ExitStatus),
    /// It took longer than this, in seconds.
    Timeout(f64),
    /// A command before it failed.
    NotPrepared(TrialError),
    Stopped,
}

impl<'a> Runner<'a> {
    /// Checks the program and the mappings, and writes the launch files. The runs have folders below `scratch`.
    pub fn new(
        params: &'a TrialParams,
        candidates: &[Candidate],
        scratch: &Path,
    ) -> Result<Self, TrialError> {
        program_files(params)?;
        let fault = |source| TrialError::File { path: scratch.to_owned(), source };
        let scratch = std::path::absolute(scratch).map_err(fault)?;
        let folder = tempfile::Builder::new().prefix("trial-").tempdir_in(&scratch).map_err(fault)?;
        let command = |(index, candidate): (usize, &Candidate)| {
            let Candidate { name, digest, mapping } = candidate;
            let launch_folder = folder.path().join("launch").join(index.to_string());
            create(&launch_folder)?;
            let command = LaunchCommand::new(params, name, mapping, digest, &launch_folder)?;
            Ok((TrialMapping { name: name.clone(), digest: digest.clone() }, command))
        };
        let commands = candidates.iter().enumerate().map(command).collect::<Result<_, TrialError>>()?;
        let runner = Self {
            params,
            begin: Instant::now(),
            order: Order::new(identity(params, candidates), params.repetition),
            commands,
            lateness: params.lateness.as_deref().map(|text| words("lateness", text)).transpose()?,
            wrapper: Vec::new(),
            folder,
            runs: Vec::new(),
            looks: Vec::new(),
            failures: vec![0; candidates.len()],
            succeeded: vec![false; candidates.len()],
            first_failure: None,
            slowest: vec![0.0; candidates.len()],
            blocks: 0,
            step_s: None,
        };
        // A command that does not work is found before the first run.
        runner.lateness()?;
        Ok(runner)
    }

    /// Goes on after the runs of a trial of the same mappings that was stopped early, and keeps their output. Returns their blocks.
    /// One in which the trial was stopped before a mapping could be compared with the first is left out, and runs again.
    pub fn resume(&mut self, earlier: &Trials) -> Result<Vec<Block>, TrialError> {
        if !self.commands.iter().map(|(mapping, _)| mapping).eq(&earlier.mappings) {
            return Ok(Vec::new());
        }
        self.step_s = earlier.metrics.get(TIME_STEP).copied();
        for (name, source) in earlier.files.files() {
            let path = self.folder.path().join(name);
            path.parent().map(create).transpose()?;
            let fault = |error| TrialError::File { path: source.clone(), source: error };
            fs::copy(source, &path).map_err(fault)?;
        }
        self.runs.clone_from(&earlier.runs);
        self.looks.clone_from(&earlier.looks);
        let Some(last) = self.runs.iter().filter_map(|run| run.block).max() else { return Ok(Vec::new()) };
        self.blocks = last + 1;
        let shown: Vec<u32> = self.looks.iter().filter_map(|runs| self.block_before(*runs)).collect();
        let mut blocks: Vec<Block> = Vec::new();
        for number in 0..=last {
            let mut block = self.measured(number);
            block.was_shown = shown.contains(&number);
            let is_whole = block.ran() >= blocks.last().map_or(self.commands.len(), Block::ran);
            match blocks.last_mut() {
                _ if is_whole || block.has_pair() || !block.was_shown => blocks.push(block),
                Some(before) => before.was_shown = true,
                None => {}
            }
        }
        Ok(blocks)
    }

    /// The last block within the first runs.
    fn block_before(&self, runs: u32) -> Option<u32> {
        self.runs.iter().take(runs as usize).filter_map(|run| run.block).max()
    }

    /// Starts the launchers by a command, such as `hopmap record -o {recording} --`; `{recording}` is a folder of the run.
    #[must_use]
    pub fn wrapped_in(mut self, words: Vec<String>) -> Self {
        self.wrapper = words;
        self
    }

    /// Runs the warm-up: each of the mappings as often as the parameters say. `false` if it was stopped.
    pub fn warm_up(&mut self, mappings: &[usize], cx: &Context<'_>) -> Result<bool, TrialError> {
        for _ in 0..self.params.warm_up {
            if !self.each(mappings, RunPosition { block: None, choice: false }, cx)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a block: each of the mappings once. `None` if it was stopped; otherwise the time by mapping, infinite if it failed.
    pub fn block(
        &mut self,
        mappings: &[usize],
        choice: bool,
        cx: &Context<'_>,
    ) -> Result<Option<Vec<Option<f64>>>, TrialError> {
        let block = self.blocks;
        self.blocks += 1;
        let is_complete = self.each(mappings, RunPosition { block: Some(block), choice }, cx)?;
        Ok(is_complete.then(|| self.measured(block).times))
    }

    fn measured(&self, block: u32) -> Block {
        let runs = || self.runs.iter().filter(|run| run.block == Some(block));
        let times: BTreeMap<&str, f64> =
            runs().filter_map(|run| Some((run.mapping.as_str(), run.time()?))).collect();
        let time = |(mapping, _): &(TrialMapping, _)| times.get(mapping.name.as_str()).copied();
        let times = self.commands.iter().map(time).collect();
        Block { choice: runs().any(|run| run.choice), times, was_shown: false }
    }

    /// Whether a mapping is not run again, because its last runs failed.
    #[must_use]
    pub fn gave_up(&self, mapping: usize) -> bool {
        self.failures[mapping] >= if self.succeeded[mapping] { MOST_LATER } else { MOST_FAILURES }
    }

    /// Whether a mapping failed that had run before: the hosts are not what they were.
    #[must_use]
    pub fn lost_one(&self) -> bool {
        (0..self.commands.len()).any(|mapping| self.succeeded[mapping] && self.gave_up(mapping))
    }

    /// The slowest run by mapping, from the start of the launcher to its end; 0 if there is none.
    #[must_use]
    pub fn slowest(&self) -> &[f64] {
        &self.slowest
    }

    /// Runs, and output of all runs. If the trial was stopped, its results are shown as they are now.
    pub fn finish(mut self, was_stopped: bool) -> Result<Trials, TrialError> {
        let runs = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        if was_stopped && self.looks.last() != Some(&runs) {
            self.looks.push(runs);
        }
        let mut files = BTreeMap::new();
        for run in 0..self.runs.len() {
            let folder = self.folder.path().join(run.to_string());
            collect(&folder, &run.to_string(), &mut files)
                .map_err(|source| TrialError::File { path: folder, source })?;
        }
        Ok(Trials {
            mappings: self.commands.into_iter().map(|(mapping, _)| mapping).collect(),
            runs: self.runs,
            looks: self.looks,
            metrics: self.step_s.map(|step_s| (TIME_STEP.to_owned(), step_s)).into_iter().collect(),
            files: FileSet::new(files).kept_by(self.folder),
        })
    }

    fn each(
        &mut self,
        mappings: &[usize],
        position: RunPosition,
        cx: &Context<'_>,
    ) -> Result<bool, TrialError> {
        let order = position.block.map(|block| self.order.of_block(block, mappings));
        for mapping in order.unwrap_or_else(|| mappings.to_vec()) {
            if cx.should_stop() {
                return Ok(false);
            }
            if self.gave_up(mapping) {
                continue;
            }
            if !self.run(mapping, position, cx)? {
                return Ok(false);
            }
        }
        if !self.succeeded.contains(&true) && self.failures.iter().all(|failures| *failures > 0) {
            let first = self.first_failure.clone().unwrap_or_default();
            return Err(TrialError::AllFailed { first });
        }
        Ok(true)
    }

    /// Runs the program once; `false` if it was stopped.
    fn run(&mut self, mapping: usize, position: RunPosition, cx: &Context<'_>) -> Result<bool, TrialError> {
        let folder = self.folder.path().join(self.runs.len().to_string());
        create(&folder)?;
        let (TrialMapping { name, .. }, launch) = &self.commands[mapping];
        let recording = folder.join(RECORDING);
        let below = |word: &String| word.replace(RECORDING_WORD, &recording.to_string_lossy());
        let mut command = launch.command(&folder, &self.wrapper.iter().map(below).collect::<Vec<_>>());
        let (stdout, stderr) = (folder.join(STDOUT), folder.join(STDERR));
        command.stdin(Stdio::null()).stdout(create_file(&stdout)?).stderr(create_file(&stderr)?);
        match prepare(self.params, &folder, cx).and_then(|is_ready| Ok((is_ready, self.lateness()?))) {
            Ok((true, _)) => {}
            Ok((false, _)) => return Ok(false),
            // What was measured is not lost.
            Err(error) if self.succeeded.contains(&true) => {
                let (mapping_name, exit) = (name.clone(), Some(NOT_PREPARED));
                let run = TrialRun::without_time(mapping_name, (position.block, position.choice), exit);
                self.note(mapping, &run, (&Ending::NotPrepared(error), None), &stderr, cx);
                self.runs.push(run);
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        let processors = Processors::now();
        let (seconds, ending) = self.wait(&mut command, cx).map_err(|source| {
            let launcher = launch.launcher().to_owned();
            TrialError::Start { launcher, source }
        })?;
        self.slowest[mapping] = self.slowest[mapping].max(seconds);
        let idle = processors.zip(Processors::now()).and_then(|(before, now)| now.idle_since(before));
        let lateness_s = self.lateness()?;
        let succeeded = matches!(&ending, Ending::Exited(status) if status.success());
        if !succeeded {
            detach(&folder).map_err(|source| TrialError::File { path: folder.clone(), source })?;
        }
        let time = match &self.params.time_after {
            Some(label) => printed_time(&stdout, label).map(|time| {
                // Only of a run that counts.
                if succeeded && position.block.is_some() {
                    self.step_s = Some(self.step_s.map_or(time.step_s, |step_s| step_s.max(time.step_s)));
                }
                time.seconds
            }),
            None => Ok(seconds),
        };
        let seconds = time.as_ref().ok().copied();
        let run = TrialRun {
            mapping: name.clone(),
            block: position.block,
            choice: position.choice,
            seconds,
            mpi_s: time_inside_mpi(&recording),
            lateness_s,
            idle,
            exit: exit(&ending),
            complete: succeeded && seconds.is_some(),
        };
        self.note(mapping, &run, (&ending, time.err()), &stderr, cx);
        self.runs.push(run);
        Ok(!matches!(ending, Ending::Stopped))
    }

    /// Runs a command until it ends, takes too long, or the user interrupts it.
    fn wait(&self, command: &mut Command, cx: &Context<'_>) -> io::Result<(f64, Ending)> {
        let timeout = self.params.timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let begin = Instant::now();
        let mut group = Group::start(command)?;
        let mut is_noted = false;
        let (end, stopped) = group.wait_for_end(|| {
            // Asked only of a run that lasts, so that nothing delays the end of a short one.
            if !std::mem::replace(&mut is_noted, true) {
                cx.state().inspect(|file| group.note(file));
            }
            match timeout {
                _ if cx.should_stop() => Some(Ending::Stopped),
                Some(timeout) if begin.elapsed() >= timeout => Some(Ending::Timeout(timeout.as_secs_f64())),
                _ => self.hangs_for(begin).map(Ending::Timeout),
            }
        })?;
        let status = if stopped.is_some() { group.stop() } else { group.end() }?;
        let _ = cx.state().map(fs::remove_file);
        Ok((end.duration_since(begin).as_secs_f64(), stopped.unwrap_or(Ending::Exited(status))))
    }

    /// The seconds for which a run has lasted if it hangs: the time of the trial is over, and the slowest run before did not take
    /// half as long. Of a first run it is not known.
    fn hangs_for(&self, begin: Instant) -> Option<f64> {
        let is_over = self.params.time_s.is_some_and(|time_s| self.begin.elapsed().as_secs_f64() >= time_s);
        let slowest = self.slowest.iter().copied().fold(0.0, f64::max);
        let seconds = begin.elapsed().as_secs_f64();
        (is_over && slowest > 0.0 && seconds > 2.0 * slowest).then_some((10.0 * seconds).round() / 10.0)
    }

    fn lateness(&self) -> Result<Option<f64>, TrialError> {
        self.lateness.as_deref().map(lateness).transpose()
    }

    /// Logs a run, and remembers failures.
    fn note(
        &mut self,
        mapping: usize,
        run: &TrialRun,
        (ending, no_time): (&Ending, Option<NoTime>),
        stderr: &Path,
        cx: &Context<'_>,
    ) {
        let number = self.runs.len();
        let name = &run.mapping;
        if run.complete {
            self.failures[mapping] = 0;
            self.succeeded[mapping] = true;
            return;
        }
        let (what, quoted) = match ending {
            Ending::Stopped => return cx.log(format!("run {number} of `{name}` was stopped")),
            Ending::NotPrepared(error) => (format!("was not started: {error}"), String::new()),
            Ending::Timeout(limit) => {
                (format!("did not end within {limit} s and was stopped"), last_lines(stderr))
            }
            Ending::Exited(status) if status.success() => {
                (no_time.map(|fault| fault.to_string()).unwrap_or_default(), String::new())
            }
            Ending::Exited(status) => (format!("ended with {status}"), last_lines(stderr)),
        };
        let failure = format!("Run {number}, of `{name}`, {what}{quoted}");
        cx.log(&failure);
        self.first_failure.get_or_insert(failure);
        self.failures[mapping] += 1;
        if self.gave_up(mapping) {
            let failures = self.failures[mapping];
            cx.log(format!("`{name}` is not run again, because it failed {failures} times in a row"));
        }
    }
}

impl Block {
    /// How many mappings ran.
    fn ran(&self) -> usize {
        self.times.iter().flatten().count()
    }

    /// Whether a mapping can be compared with the first.
    fn has_pair(&self) -> bool {
        self.times.first().is_some_and(Option::is_some) && self.ran() > 1
    }
}

/// Ends the run of an earlier trial that was killed: its ranks would disturb this one. Its group is in the file of the state.
pub(crate) fn end_earlier_run(cx: &Context<'_>) {
    if cx.state().is_some_and(|file| end_survivors(file, GRACE)) {
        cx.log("the run of a trial that was killed went on, and was stopped");
    }
}

/// What a trial is of: other programs and mappings have other orders of their runs.
fn identity(params: &TrialParams, candidates: &[Candidate]) -> String {
    let mappings = candidates.iter().map(|candidate| format!("\n{} {}", candidate.digest, candidate.name));
    format!("run/trial\n{}{}", params.program, mappings.collect::<String>())
}

/// The exit status as shells give it.
fn exit(ending: &Ending) -> Option<u32> {
    let status = match ending {
        Ending::Exited(status) => status,
        Ending::Timeout(_) => return Some(TIMED_OUT),
        Ending::NotPrepared(_) => return Some(NOT_PREPARED),
        Ending::Stopped => return None,
    };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal))?;
    u32::try_from(code).ok()
}

/// The last lines of a file, to append to a message.
fn last_lines(path: &Path) -> String {
    let capture = Capture::last(open_input(path).ok(), QUOTED_BYTES);
    let lines = capture.last_lines(QUOTED_LINES, Instant::now() + GRACE);
    if lines.is_empty() { String::new() } else { format!("; standard error:\n{}", lines.join("\n")) }
}

fn create(folder: &Path) -> Result<(), TrialError> {
    fs::create_dir_all(folder).map_err(|source| TrialError::File { path: folder.to_owned(), source })
}

fn create_file(path: &Path) -> Result<File, TrialError> {
    File::create(path).map_err(|source| TrialError::File { path: path.to_owned(), source })
}

/// Puts copies in the place of the files of a folder: a rank that outlives its launcher may still write into files that it has open.
fn detach(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        if kind.is_dir() {
            detach(&path)?;
        } else if kind.is_file() {
            let copy = tempfile::NamedTempFile::new_in(folder)?;
            fs::copy(&path, copy.path())?;
            copy.persist(&path)?;
        }
    }
    Ok(())
}

/// Adds the regular files of a folder, named by their paths in it.
fn collect(folder: &Path, name: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // Names that are not text cannot be those of an artifact.
        let Ok(own) = entry.file_name().into_string() else { continue };
        let name = format!("{name}/{own}");
        if kind.is_dir() {
            collect(&entry.path(), &name, files)?;
        } else if kind.is_file() {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}
