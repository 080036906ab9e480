//! `hopmap tune`: from a program to the measured gain of a placement. It records the program, measures the machine, writes a pipeline
//! file and runs it, each by the command that a user would take.

mod kept;
mod machine;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Duration;

use clap::Args;
use hopmap_artifact::Folder;
use hopmap_command::{CommandEntry, Exit, Failure, Mistake, refuse, shown};
use hopmap_durable::{Staging, adopt_folder};
use hopmap_formats::host_list;
use hopmap_launchers::{Launch, default_options, launch_file};
use hopmap_model::{Context, MOST_GAIN, Mapping, Metrics, Prediction, Trials};
use hopmap_mpi_environment::LauncherKind;
use hopmap_recording::{DESCRIPTION, Description, Recording};
use hopmap_trials::{best, comparison, fails, gain as gain_of, rival};
use miette::Diagnostic;

use super::job::{End, HOST_FILE, Hosts};
use super::open::{StoreArguments, on_interrupt, working_directory};
use super::output::{Output, Result};
use super::run::{gain, some_time};
use super::{exec, written};
use crate::engine::SHARE_OF_EXPERIMENTS;
use crate::registry::COMMANDS;
use crate::tune::{CHOOSE, MachineSource, TuneFile};
use kept::Kept;
use machine::{Machine, is_to_measure, machine, objectives};

/// Names in the folder of the results.
const PIPELINE: &str = "tune.toml";
const RECORDING: &str = "recording";
const RECORDED_HOSTS: &str = "default.hosts";
const MACHINE: &str = "machine";
const BEST_SO_FAR: &str = "best-so-far";
/// Pairs of runs that an interval needs.
const LEAST_PAIRS: u64 = 6;
/// A run is stopped after this multiple of the recorded time and the time of a launcher to start: some launchers wait forever for ranks that
/// have failed.
const LONGEST: f64 = 10.0;
const START_S: f64 = 60.0;

/// Arguments of `tune`.
#[derive(Debug, Args)]
#[command(after_help = "\
The program is recorded once under the default placement of its launcher. Everything is in the folder --out: the recording, the \
measured machine, the pipeline file tune.toml, and the launch file. The next call goes on where this one ended.

Examples:
  hopmap tune --deadline 1h -- ./app input                              # in a Slurm job
  hopmap tune --hosts 'node[1-8]' --slots 2 -- ./app input
  hopmap tune --launch slurm --time-after 'Loop time of' -- lmp -in in.melt")]
pub(crate) struct Arguments {
    /// Hosts, such as node[1-8] [default: those of the Slurm job].
    #[arg(long, value_name = "LIST", requires = "slots")]
    hosts: Option<String>,
    /// Slots of each host [default: the tasks per node of the Slurm job].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    slots: Option<u32>,
    /// Number of ranks [default: one for every slot].
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Launcher of the program's MPI: open-mpi-4, open-mpi-5, open-mpi-hosts, mpich, intel-mpi, slurm, cray-slurm or cray-pals.
    #[arg(long, default_value = "open-mpi-4", value_parser = launch)]
    launch: Launch,
    /// Replaces the name of the launcher, and may add options: 'mpirun.openmpi --mca btl tcp,self'.
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// Compiler of the recorder and the prober: that of the program's MPI, if the program is a script [default: that of the program's
    /// library, and that of the launcher].
    #[arg(long, value_name = "COMMAND")]
    mpicc: Option<String>,
    /// Write everything to this folder, which all hosts must share.
    #[arg(short, long, value_name = "DIR", default_value = "tune")]
    out: PathBuf,
    /// Import the machine from this file instead of measuring it; or the folder of a stored topology.
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    topology: Option<PathBuf>,
    /// Take this shape of the network, such as tree:2x4x2, instead of measuring it.
    #[arg(long, requires_all = ["latency", "bandwidth"])]
    shape: Option<String>,
    /// Latency in seconds of the links of --shape, or of those of --topology that have none: a number, or for --shape a list by
    /// level such as [2e-6, 5e-6].
    #[arg(long, value_name = "SECONDS", value_parser = numbers)]
    latency: Option<String>,
    /// Bandwidth of these links in bytes per second: a number, or a list by level.
    #[arg(long, value_name = "RATE", value_parser = numbers)]
    bandwidth: Option<String>,
    /// Take the run time from the standard output: the time after the last occurrence of this text, such as 12.5 (seconds), 12 ms,
    /// 1:02:03 or 1m 2.5s [default: the time of the launcher].
    #[arg(long, value_name = "TEXT")]
    time_after: Option<String>,
    /// Also name a winner if more than 5 % of the runs of a placement failed. A failed run loses against one that ended.
    #[arg(long)]
    allow_failures: bool,
    /// Run this shell command before every run, as to restore its inputs.
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Files and folders of the working directory that runs change: they are as they are now before every run.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    keep: Vec<PathBuf>,
    /// Time for everything; most of it is for runs [default: until the Slurm job ends]. A run that hangs is stopped after ten times
    /// the recorded time and a minute.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    deadline: Option<Duration>,
    /// Search no placement that cannot gain this much of the run time.
    #[arg(long, value_name = "GAIN", value_parser = gain, default_value = "2%")]
    worth: f64,
    /// Search and try placements whatever they can gain.
    #[arg(long)]
    force: bool,
    /// Search a candidate for each of these objectives of map/auto.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "F,T,max-link-time,predicted-time"
    )]
    objectives: Vec<String>,
    /// Number of candidates that run: those with the shortest predicted time.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    best: u32,
    /// Measure until the interval of the gain is this narrow, if time allows.
    #[arg(long, value_name = "GAIN", value_parser = gain, default_value = "1%")]
    precision: f64,
    #[command(flatten)]
    store: StoreArguments,
    /// The program and its arguments, without the launcher.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

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

fn launch(text: &str) -> std::result::Result<Launch, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// A number, or a list of numbers, as TOML.
fn numbers(text: &str) -> std::result::Result<String, String> {
    let is_number =
        |text: &str| text.trim().parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0);
    let list = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match list.split(',').all(is_number) {
        true => Ok(text.trim().to_owned()),
        false => Err("give a number above 0 such as 2e-6, or a list such as [2e-6, 5e-6]".to_owned()),
    }
}

/// The time was over before anything could be compared.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the time was over before {what} had ended")]
#[diagnostic(code(tune::deadline), help("{help}"))]
struct OutOfTime {
    what: &'static str,
    help: &'static str,
}

impl OutOfTime {
    /// The error of a step, if it is one: the end of a job is like an interrupt.
    fn check(end: Option<End>, what: &'static str, help: &'static str) -> Result<()> {
        match end.filter(|end| end.is_over()) {
            Some(end) => {
                let exit = if end.is_of_job { Exit::Interrupted } else { Exit::Failed };
                Err(Failure::new(exit, [Self { what, help }.into()]))
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let end = End::new(arguments.deadline);
    let out = working_directory()?.join(&arguments.out);
    let place = Place::of(arguments)?;
    let _lock = written::lock(&out)?;
    let kept = Kept::new(&arguments.keep, &out)?;
    let restores = kept.as_ref().map(Kept::command).into_iter().chain(arguments.prepare.clone());
    let prepare = restores.reduce(|restore, own| format!("{restore} && {own}"));
    check(arguments, &place, &out, prepare.clone())?;
    // A machine that is known, or a single host, may end all before the program has run.
    let is_early = !is_to_measure(arguments, &out) || place.hosts.hosts.len() == 1;
    let early = if is_early { Some(machine(arguments, &place, &out, end, output)?) } else { None };
    if let Some(Machine { nothing_to_place: Some(reason), .. }) = &early {
        output.line(reason);
        return Ok(Exit::Done);
    }
    kept.as_ref().map_or(Ok(()), Kept::put_aside)?;
    let exit = tune(arguments, &place, early, prepare, (&out, end), output);
    kept.as_ref().map_or(Ok(()), Kept::note_left)?;
    exit
}

fn tune(
    arguments: &Arguments,
    place: &Place,
    early: Option<Machine>,
    prepare: Option<String>,
    (out, end): (&Path, Option<End>),
    output: Output,
) -> Result {
    let exit = record(arguments, place, prepare.as_deref(), out, end, output)?;
    if exit != Exit::Done {
        output.line("the recorded run failed: nothing is tuned");
        return Ok(exit);
    }
    let recording = Recording::read(&out.join(RECORDING)).map_err(Failure::failed)?;
    let machine = match early {
        Some(machine) => machine,
        None => machine(arguments, place, out, end, output)?,
    };
    say_what_fits(arguments, &recording, end, output);
    let hosts = recorded_hosts(&recording, place, output);
    let recorded_hosts = hosts.as_ref().map(|_| RECORDED_HOSTS.to_owned());
    let mut tune = tune_file(arguments, place, Some(&recording), recorded_hosts, prepare)?;
    (tune.machine, tune.objectives) = (machine.source, objectives(arguments, &machine.system, output)?);
    let (text, is_default_known) = (tune.text(), tune.is_default_known);
    let shares = shares_processors(&recording);
    if shares {
        output.note("the recorded ranks shared processors, which the bound leaves out: it ends nothing");
    }
    let file = out.join(PIPELINE);
    written::write(&file, &text)?;
    if let Some(hosts) = &hosts {
        written::save(&file, &arguments.store, &[(RECORDED_HOSTS, Some(hosts))])?;
    }
    let (worth, store) = (arguments.worth.to_string(), arguments.store.named(&working_directory()?));
    let is_bounded = is_default_known && !shares && !arguments.force;
    let worth = if is_bounded { vec!["--worth", &worth] } else { Vec::new() };
    let store = store.iter().flat_map(|store| ["--store", store.as_str()]);
    let options: Vec<&str> = worth.into_iter().chain(store).collect();
    let exit = written::run(&file, &options, end.map(End::left), output)?;
    let trials = written::newest_or_partial::<Trials>(&file, &arguments.store, "trial")?;
    let is_partial = trials.as_ref().is_some_and(|(_, is_partial)| *is_partial);
    conclude(arguments, &file, (is_default_known, is_bounded), trials.map(|(trials, _)| trials), output)?;
    match exit {
        Exit::Interrupted => leave_best(arguments, &file, output)?,
        Exit::Done if is_partial && end.is_some_and(|end| end.is_of_job) => {
            output.line("stopped early, because the job ends; the same command goes on in another job");
            return Ok(Exit::Interrupted);
        }
        _ => {}
    }
    Ok(exit)
}

/// Checks options before the program is recorded, which may take long: as a pipeline file, but for what a recording is needed for.
fn check(arguments: &Arguments, place: &Place, out: &Path, prepare: Option<String>) -> Result<()> {
    if let Some(path) = arguments.topology.as_ref().filter(|path| !path.exists()) {
        return refuse(format!("`--topology {}` does not exist", shown(path)), "check the path");
    }
    let has_rates = arguments.latency.is_some() || arguments.bandwidth.is_some();
    if has_rates && arguments.topology.is_none() && arguments.shape.is_none() {
        return refuse(
            "`--latency` and `--bandwidth` are those of a machine that is given",
            "add --shape, such as tree:2x4x2, or --topology; without them, the machine is measured",
        );
    }
    let is_list = |text: &String| text.starts_with('[');
    if arguments.topology.is_some() && arguments.latency.as_ref().is_some_and(is_list) {
        return refuse(
            "`--latency` is one number with `--topology`",
            "give the latency of links that have none",
        );
    }
    if LauncherKind::of(&arguments.program[0]).is_some() {
        let launcher = &arguments.program[0];
        return refuse(
            format!("`{launcher}` is a launcher, and tune starts the program by itself"),
            format!("give the program without it, and its options with --launcher '{launcher} …'"),
        );
    }
    check_cores(arguments, place)?;
    if out.join(RECORDING).exists() {
        return Ok(());
    }
    let file = out.join(PIPELINE);
    written::write(&file, &tune_file(arguments, place, None, None, prepare)?.text())?;
    written::check(&file)
}

/// Rejects more slots on this host than it has cores where the launcher binds every rank to a core: it would end without a word.
fn check_cores(arguments: &Arguments, place: &Place) -> Result<()> {
    // A batch system gives no more slots than cores, and may have bound this process to few of them.
    let binds = matches!(arguments.launch, Launch::OpenMpi4 | Launch::OpenMpi5) && !place.hosts.is_job;
    let cores = std::thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32);
    let own = hopmap_mpi_environment::host_name();
    let is_own = |name: &str| name == "localhost" || short(name) == short(&own);
    match place.hosts.hosts.iter().find(|(name, slots)| binds && *slots > cores && is_own(name)) {
        None => Ok(()),
        Some((name, slots)) => refuse(
            format!(
                "`{name}` has {cores} cores, too few for {slots} slots: the rank files of Open MPI bind every rank to a core"
            ),
            format!("give --slots {cores}, or --launch open-mpi-hosts, which does not bind them"),
        ),
    }
}

/// The name of a host without its domain.
fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Where ranks run.
struct Place {
    hosts: Hosts,
    ranks: u32,
}

impl Place {
    fn of(arguments: &Arguments) -> Result<Self> {
        let Some(hosts) = Hosts::new(arguments.hosts.as_deref(), arguments.slots)? else {
            return refuse(
                "no hosts are given, and this is not a Slurm job",
                "name them: --hosts 'node[1-8]' --slots 2, or start hopmap in a job",
            );
        };
        let all = hosts.slots();
        let ranks = arguments.ranks.map_or(all, u64::from);
        if ranks > all {
            return refuse(
                format!("{ranks} ranks do not fit into {all} slots"),
                "give fewer --ranks or more --slots",
            );
        }
        Ok(Self { hosts, ranks: u32::try_from(ranks).unwrap_or(u32::MAX) })
    }

    /// The launcher and its options, under its default placement.
    fn launcher(&self, arguments: &Arguments) -> Result<Vec<String>> {
        let hosts = if self.hosts.is_job { Vec::new() } else { self.hosts.names() };
        let mut words = match &arguments.launcher {
            None => vec![arguments.launch.program().to_owned()],
            Some(text) => match shlex::split(text).filter(|words| !words.is_empty()) {
                Some(words) => words,
                None => {
                    return refuse(format!("`--launcher {text}` is not a command"), "quotes must be closed");
                }
            },
        };
        words.extend(default_options(arguments.launch, self.ranks, self.hosts.most(), &hosts));
        Ok(words)
    }
}

/// Records the program, unless that is done. A recording that was interrupted does not count.
fn record(
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
        run_prepare(command)?;
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
    keep(recorded, &unfinished, &recording, end, "the recorded run")
}

fn run_prepare(command: &str) -> Result<()> {
    let ended = Process::new("sh").args(["-c", command]).status();
    let how = match ended {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("ended with {status}"),
        Err(error) => format!("cannot be started: {error}"),
    };
    Err(Failure::failed(NotPrepared { command: command.to_owned(), how }))
}

fn command_line<'a>(words: impl Iterator<Item = &'a String>) -> String {
    words
        .map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The longest time of a rank between `MPI_Init` and `MPI_Finalize`.
fn run_time(recording: &Recording) -> Option<f64> {
    recording
        .processes
        .iter()
        .filter_map(|process| process.times)
        .map(|(seconds, _)| seconds)
        .reduce(f64::max)
}

/// The time for runs, which ends a trial as planned: the deadline of all would stop it, with a wider interval. It depends on what is
/// given and recorded alone, so that the next call writes the same file.
fn runs_time(arguments: &Arguments, recording: &Recording) -> Option<f64> {
    let recorded = run_time(recording).unwrap_or_default();
    let time_s = |deadline: Duration| deadline.as_secs_f64() * SHARE_OF_EXPERIMENTS - recorded;
    arguments.deadline.map(|deadline| time_s(deadline).max(1.0).round())
}

/// Says how long a run takes and how many fit into the time that is left.
fn say_what_fits(arguments: &Arguments, recording: &Recording, end: Option<End>, output: Output) {
    let Some(seconds) = run_time(recording) else { return };
    let ranks = recording.processes.len();
    let Some(end) = end else {
        return output.line(format!("a run of {ranks} ranks takes {seconds:.2} s"));
    };
    let left_s = SHARE_OF_EXPERIMENTS * end.left().as_secs_f64();
    let time_s = runs_time(arguments, recording).map_or(left_s, |time_s| time_s.min(left_s));
    let runs = (time_s / seconds.max(1e-3)) as u64;
    let candidates = u64::from(arguments.best).min(arguments.objectives.len() as u64);
    // One candidate needs no choice, only its warm-up and that of the default.
    let choice = (candidates + 1) * if candidates > 1 { u64::from(CHOOSE + 1) } else { 1 };
    let least = choice + 2 * LEAST_PAIRS;
    let before = if end.is_of_job { "before the job ends" } else { "before the deadline" };
    output.line(format!("a run of {ranks} ranks takes {seconds:.2} s and the start of the launcher: about {runs} fit in {before}"));
    if runs < least {
        output.line(format!(
            "{least} are needed: {choice} to warm up and choose the candidate, {LEAST_PAIRS} pairs for an interval; give a longer \
             --deadline or a shorter program"
        ));
    }
}

/// A command of the registry, with `hopmap` as the first word.
fn run_command(words: &[&str], end: Option<End>, output: Output) -> Result {
    let hopmap = clap::Command::new("hopmap").subcommands(COMMANDS.iter().map(CommandEntry::definition));
    let matches = hopmap.try_get_matches_from(words);
    let command = matches
        .and_then(|mut matches| CommandEntry::parse(COMMANDS, &mut matches))
        .map_err(|error| usage(&error))?;
    let cancelled = on_interrupt()?;
    let observer = exec::Notes { output, cancelled: &cancelled };
    Ok(command.run(&Context::new(1, end.map(|end| end.at), &observer), &mut std::io::sink())?.exit)
}

fn usage(error: &clap::Error) -> Failure {
    Mistake::new(error.to_string(), "`hopmap tune --help` lists the options").into()
}

/// Gives what a command has finished its name, unless somebody else has taken it meanwhile. What was out of time has not finished.
fn keep(ended: Result, unfinished: &Path, place: &Path, end: Option<End>, what: &'static str) -> Result {
    OutOfTime::check(end, what, "give a longer --deadline, or a shorter run of the program")?;
    if matches!(ended, Ok(Exit::Done)) {
        if place.exists() {
            return refuse(format!("{} is there already", shown(place)), "move it away if it is yours");
        }
        adopt_folder(unfinished, place).map_err(Failure::failed)?;
    }
    ended
}

/// The host of every recorded rank for `map/import`, if all are hosts of this call.
fn recorded_hosts(recording: &Recording, place: &Place, output: Output) -> Option<String> {
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
fn shares_processors(recording: &Recording) -> bool {
    let mut hosts: HashMap<&Option<String>, (usize, HashSet<u32>)> = HashMap::new();
    for process in &recording.processes {
        let (ranks, cores) = hosts.entry(&process.host).or_default();
        *ranks += 1;
        cores.extend(&process.cores);
    }
    hosts.into_values().any(|(ranks, cores)| !cores.is_empty() && ranks > cores.len())
}

/// Whether no host had more ranks than slots.
fn fits(recording: &Recording, hosts: &Hosts) -> bool {
    let mut ranks: HashMap<&str, u32> = HashMap::new();
    let names = recording.processes.iter().filter_map(|process| process.host.as_deref());
    names.for_each(|name| *ranks.entry(short(name)).or_default() += 1);
    let ranks_of = |name: &str| ranks.get(short(name)).copied().unwrap_or_default();
    hosts.hosts.iter().all(|(name, slots)| ranks_of(name) <= *slots)
}

fn tune_file(
    arguments: &Arguments,
    place: &Place,
    recording: Option<&Recording>,
    recorded_hosts: Option<String>,
    prepare: Option<String>,
) -> Result<TuneFile> {
    let machine = match (&arguments.topology, &arguments.shape) {
        (Some(path), _) => {
            let path = working_directory()?.join(path);
            let uses = if Folder::open(&path).is_ok() { "stored/system-graph" } else { "topology/import" };
            let list = |rates: &String| match rates.starts_with('[') {
                true => rates.clone(),
                false => format!("[{rates}]"),
            };
            MachineSource::File {
                uses,
                path: path.to_string_lossy().into_owned(),
                slots: None,
                latency: arguments.latency.clone(),
                bandwidth: arguments.bandwidth.as_ref().map(list),
            }
        }
        (None, Some(shape)) => MachineSource::Shape {
            shape: shape.clone(),
            latency: arguments.latency.clone().unwrap_or_default(),
            bandwidth: arguments.bandwidth.clone().unwrap_or_default(),
        },
        (None, None) => MachineSource::Stored(format!("{MACHINE}/system")),
    };
    Ok(TuneFile {
        program: command_line(arguments.program.iter()),
        folder: working_directory()?.to_string_lossy().into_owned(),
        launch: arguments.launch,
        launcher: arguments.launcher.clone(),
        hosts: host_list::compress(place.hosts.names()),
        slots: place.hosts.most(),
        hosts_file: (!place.hosts.are_equal()).then(|| HOST_FILE.to_owned()),
        machine,
        is_default_known: recorded_hosts.is_some()
            && recording.is_some_and(|recording| fits(recording, &place.hosts)),
        recorded_hosts,
        objectives: arguments.objectives.clone(),
        best: arguments.best,
        precision: arguments.precision,
        time_s: recording.and_then(|recording| runs_time(arguments, recording)),
        timeout_s: recording.and_then(run_time).map(|seconds| (LONGEST * seconds + START_S).round()),
        time_after: arguments.time_after.clone(),
        allow_failures: arguments.allow_failures,
        prepare,
    })
}

/// Says what came out, in one sentence.
fn conclude(
    arguments: &Arguments,
    file: &Path,
    (is_default_known, is_bounded): (bool, bool),
    trials: Option<Trials>,
    output: Output,
) -> Result<()> {
    let bound = written::newest::<Metrics>(file, &arguments.store, "bound")?;
    let most = bound.and_then(|bound| bound.summary.get(MOST_GAIN).copied());
    if let Some(most) = most.filter(|most| is_bounded && *most < arguments.worth) {
        output.line(format!("no placement gains more than {:.1} %: leave it", 100.0 * most));
        return Ok(());
    }
    let predicted = |cell: &str| -> Result<Option<f64>> {
        Ok(written::newest::<Prediction>(file, &arguments.store, cell)?
            .map(|prediction| prediction.seconds()))
    };
    let Some(trials) = trials else {
        output.line("nothing was measured: the default placement stays");
        return Ok(());
    };
    let Some(chosen) = rival(&trials) else {
        output.line(match is_default_known {
            true => "no candidate is predicted to be faster than the default placement: leave it",
            false => "no candidate is predicted to be faster than the linear mapping; the default placement is not known",
        });
        return Ok(());
    };
    let names = ("the default placement", "placed");
    let Some(mut sentence) = comparison(&trials, chosen, names, arguments.allow_failures) else {
        output.line("no candidate ran to its end as well as the default placement: the launch file is the default placement");
        return Ok(());
    };
    let (default_fails, fails) = match trials.mappings.first() {
        Some(default) if !arguments.allow_failures => {
            (fails(&trials, &default.name), fails(&trials, &default.name) || fails(&trials, &chosen.name))
        }
        _ => (false, false),
    };
    if default_fails {
        sentence.push_str("; there is no launch file: with --allow-failures there is one");
    } else if fails {
        sentence.push_str(
            "; so the launch file is the default placement: --allow-failures compares them nevertheless",
        );
    } else {
        let candidate = chosen.name.replacen("placed", "predicted", 1);
        if let (Some(default), Some(placed)) = (predicted("predicted-default")?, predicted(&candidate)?) {
            sentence.push_str(&format!(", predicted {:.1} %", 100.0 * (1.0 - placed / default)));
        }
        if gain_of(&trials, &chosen.name).is_none_or(|gain| gain.interval.is_none()) {
            sentence.push_str("; so the launch file is the default placement: give a longer --deadline");
        }
    }
    output.line(sentence);
    Ok(())
}

/// Writes the launch file of the best placement of a trial that was stopped early.
fn leave_best(arguments: &Arguments, file: &Path, output: Output) -> Result<()> {
    let Some(trials) = written::newest::<Trials>(file, &arguments.store, "trial")? else { return Ok(()) };
    let Some(best) =
        best(&trials, arguments.allow_failures).filter(|best| trials.mappings.first() != Some(best))
    else {
        output.line("stopped early: no placement is faster for certain so far; the same command goes on");
        return Ok(());
    };
    let mapping = written::artifact::<Mapping>(file, &arguments.store, &best.digest)?;
    let launch = launch_file(&mapping, &best.digest, arguments.launch).map_err(Failure::failed)?;
    let path = file.with_file_name(BEST_SO_FAR);
    written::save(file, &arguments.store, &[(BEST_SO_FAR, Some(&launch.text))])?;
    let command = launch.command.replace("{file}", &shown(&path)).replace("{program}", "PROGRAM");
    output.line(format!("stopped early: the best placement so far is `{command}`; the same command goes on"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_lists() {
        assert_eq!(numbers("2e-6"), Ok("2e-6".to_owned()));
        assert_eq!(numbers("[1e9, 5e8]"), Ok("[1e9, 5e8]".to_owned()));
        assert!(numbers("fast").is_err() && numbers("-1").is_err() && numbers("[]").is_err());
    }
}
