//! `hopmap trial`: a program under several placements, as a pipeline that it writes and runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopmap_artifact::Folder;
use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_launchers::{Launch, programs_of_file};
use hopmap_model::{Artifact, LaunchFile, Mapping, Trials};
use hopmap_trials::{comparisons, fails, rival, summary};
use miette::Diagnostic;
use serde_json::json;

use super::hosts::{Allocation, AllocationArguments};
use super::job::End;
use super::launchable;
use super::locate::{self, locate_newest};
use super::open::{StoreArguments, working_directory};
use super::output::{Output, Result};
use super::run::{Request, gain, some_time};
use super::written::{self, PipelineFile};
use crate::engine::{self, Store};
use crate::pipeline::is_name;
use crate::pipeline_text::{PipelineText, StageText, Value, path_text};
use crate::provenance::{FileOrigin, Memory, origin_of, trace};

/// The pipeline file in the folder of the results, its stage that measures, and its other stages.
const FILE: &str = "trial.toml";
const STAGE: &str = "trial";
const BEST: &str = "trial-best";
const HOSTS: &str = "trial-hosts";
const RANKS: &str = "trial-ranks";
/// Blocks that choose the best of several placements.
const CHOOSE: u32 = 6;
/// Largest file of programs.
const MOST_PROGRAMS_BYTES: u64 = 1 << 20;
/// Placements by name.
pub(super) const KNOWN: [&str; 3] = ["linear", "round-robin", "random"];

/// Arguments of `trial`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("ranks", |ranks| ranks.help("Number of ranks of placements by name [default: that of the first mapping, or one for every slot]")),
    after_help = "\
A PLACEMENT is a mapping, named by its stage (`placement`, `place:placement`, `placement[min F]`), by its folder, or by a launch file that \
hopmap made from it, such as out/rankfile; or one of linear, round-robin and random, or a file of another program that map/import \
reads, such as a rank file of Open MPI or a list of hosts, on the hosts of --hosts, on those of the first mapping, or on those of the job. NAME=PLACEMENT gives it another name. The first placement is the baseline. Of several others, the best one is chosen, and measured again against \
the baseline. DIR gets the pipeline file trial.toml: to change more, copy it, and use `hopmap run`.

Examples:
  hopmap trial --hosts 'node[1-4]' --slots 4 linear round-robin -- ./app input.txt
  hopmap trial --deadline 10m --precision 2% linear place:placement -- ./app input.txt
  hopmap trial --launch slurm --time-after 'Loop time of' linear a=out/rankfile b=other/mapping -- lmp -in in.melt"
)]
pub(crate) struct Arguments {
    /// Placements: at least two.
    #[arg(required = true, value_name = "PLACEMENT")]
    placements: Vec<String>,
    /// The program and its arguments, without the launcher.
    #[arg(required_unless_present = "programs", last = true, value_name = "PROGRAM")]
    program: Vec<String>,
    #[command(flatten)]
    allocation: AllocationArguments,
    #[command(flatten)]
    measurement: MeasurementArguments,
    /// Most runs of a placement [default: 96].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(6..))]
    runs: Option<u32>,
    /// Time of the whole trial: no runs are started that would not fit [default: until the Slurm job ends].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    deadline: Option<Duration>,
    /// Record every run, for the time inside MPI.
    #[arg(long)]
    record: bool,
    /// Any number; another one measures again.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    repetition: u32,
    /// Folder of the pipeline file.
    #[arg(short, long, value_name = "DIR", default_value = "trial")]
    out: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

/// How runs of a program are started, timed and judged.
#[derive(Debug, Clone, Args)]
pub(super) struct MeasurementArguments {
    /// Launcher of the program's MPI: open-mpi-4, open-mpi-5, open-mpi-hosts, mpich, intel-mpi, slurm, cray-slurm, cray-pals, flux,
    /// reorder, reorder-mpich, reorder-slurm, which need no launch file.
    #[arg(long, value_name = "NAME", default_value = "open-mpi-4", value_parser = launch)]
    pub(super) launch: Launch,
    /// Replaces the name of the launcher, and may add options: 'mpirun.openmpi --mca btl tcp,self'.
    #[arg(long, value_name = "COMMAND")]
    pub(super) launcher: Option<String>,
    /// Several programs of one job: a file with lines such as `0-3 ./a input` and `4-5 ./b`, as `srun --multi-prog` reads it. With Open
    /// MPI's rank files, MPICH, Intel MPI and Slurm; without a file: -n 4 ./a input : -n 2 ./b.
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    pub(super) programs: Option<PathBuf>,
    /// Measure until half the width of the interval of the gain is at most this, if time allows.
    #[arg(long, value_name = "GAIN", value_parser = gain, default_value = "1%")]
    pub(super) precision: f64,
    /// Take the run time from the standard output: the time after the last occurrence of this text, such as 12.5 (seconds), 12 ms,
    /// 1:02:03 or 1m 2.5s [default: the time of the launcher].
    #[arg(long, value_name = "TEXT")]
    pub(super) time_after: Option<String>,
    /// Also name a winner if more than 5 % of the runs of a placement failed. A failed run loses against one that ended.
    #[arg(long)]
    pub(super) allow_failures: bool,
}

fn launch(text: &str) -> std::result::Result<Launch, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

impl MeasurementArguments {
    /// The name of the launcher in a pipeline.
    pub(super) fn launch_name(&self) -> String {
        // Variants without fields always have a name.
        serde_json::from_value(json!(self.launch)).unwrap_or_default()
    }

    /// The words of the program, or of those of `--programs`.
    pub(super) fn programs(&self, program: &[String]) -> Result<Vec<String>> {
        let Some(path) = &self.programs else { return Ok(program.to_vec()) };
        let text = hopmap_text::read_text(path, MOST_PROGRAMS_BYTES).map_err(Failure::usage)?;
        programs_of_file(self.launch, &text, &path.to_string_lossy()).or_else(|(line, problem)| {
            let place = if line == 0 { String::new() } else { format!(":{line}") };
            let help = "a line is a range of ranks and a program, such as 0-3 ./a; ranges follow each other";
            refuse(format!("{}{place}: {problem}", shown(path)), help)
        })
    }

    /// The stage that measures mappings in this folder.
    pub(super) fn trial(&self, mappings: Value) -> Result<StageText> {
        Ok(StageText::new(STAGE, "run/trial")
            .need("mappings", mappings)
            .with("folder", path_text(&working_directory()?))
            .given("--launcher", "launcher", self.launcher.as_deref())
            .given("--time-after", "time_after", self.time_after.as_deref()))
    }

    /// The stage of the mapping to use.
    pub(super) fn best(&self, name: &str, mappings: Value) -> StageText {
        let allow_failures = self.allow_failures.then_some(true);
        let best = StageText::new(name, "run/best").need("trials", STAGE).need("mappings", mappings);
        best.given("--allow-failures", "allow_failures", allow_failures)
    }
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    // The deadline ends the trial as planned, by `time_s`.
    let end = End::new(None);
    let placements = placements(arguments, output)?;
    let text = pipeline(arguments, &placements, output)?;
    let out = working_directory()?.join(&arguments.out);
    let _lock = written::lock(&out)?;
    let file = PipelineFile::write(out.join(FILE), &text, &arguments.store)?;
    let exit = file.run(&Request { end: end.map(|end| end.at), ..Request::default() }, output)?;
    let Some((trials, is_partial)) = file.newest_or_partial::<Trials>(STAGE)? else { return Ok(exit) };
    said(&trials, arguments.measurement.allow_failures).iter().for_each(|line| output.line(line));
    if exit == Exit::Done && is_partial && end.is_some_and(|end| end.is_of_job) {
        output.line("stopped early, because the job ends; the same command goes on in another job");
        return Ok(Exit::Interrupted);
    }
    let compared = [trials.mappings.first(), rival(&trials)];
    let fails = compared.iter().flatten().any(|mapping| fails(&trials, &mapping.name));
    let fails = fails && !arguments.measurement.allow_failures;
    let is_compared = trials.mappings.len() < 2
        || fails
        || compared.iter().flatten().any(|mapping| !trials.seconds(&mapping.name).is_empty());
    match exit {
        Exit::Done if !is_compared => Err(Failure::failed(NoTime)),
        Exit::Done if fails => Ok(Exit::Failed),
        exit => Ok(exit),
    }
}

/// Not even one run was measured.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the trial ended before any placement had a run time")]
#[diagnostic(
    code(trial::no_time),
    help("give a longer --deadline: the first runs of each placement warm up, and do not count")
)]
struct NoTime;

/// What the trial shows.
fn said(trials: &Trials, allow_failures: bool) -> Vec<String> {
    if trials.mappings.len() < 2 {
        return vec![
            "all placements put every rank on the same host and core: nothing to compare".to_owned(),
        ];
    }
    let sentences = comparisons(trials, allow_failures);
    if sentences.is_empty() { summary(trials) } else { sentences }
}

/// A placement and its name.
struct Placement {
    name: String,
    source: Source,
}

/// Where a placement comes from.
enum Source {
    Known(String),
    Folder(PathBuf, Mapping),
    /// A launch file, or a mapping, of another program.
    File(PathBuf),
}

fn placements(arguments: &Arguments, output: Output) -> Result<Vec<Placement>> {
    let texts = &arguments.placements;
    if texts.len() < 2 {
        return refuse("a trial compares placements, and there is one", "add another one, such as linear");
    }
    let placements = texts.iter().map(|text| placement(text, &arguments.store, output));
    let placements = placements.collect::<Result<Vec<_>>>()?;
    for (index, placement) in placements.iter().enumerate() {
        if placements[..index].iter().any(|other| other.name == placement.name) {
            let message = format!("two placements are named `{}`", placement.name);
            return refuse(message, "give them names: NAME=PLACEMENT");
        }
    }
    Ok(placements)
}

fn placement(text: &str, store: &StoreArguments, output: Output) -> Result<Placement> {
    let (name, source) = match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, source)) => (Some(name), source),
        None => (None, text),
    };
    if KNOWN.contains(&source) {
        let name = checked_name(name.unwrap_or(source))?;
        return Ok(Placement { name, source: Source::Known(source.to_owned()) });
    }
    let path = working_directory()?.join(source);
    let found = match folder_of(source, &path, store, output)? {
        Some(folder) => {
            let mapping = Folder::read::<Mapping>(&folder).map_err(Failure::usage)?;
            Source::Folder(folder, mapping)
        }
        None => Source::File(path),
    };
    let name = checked_name(name.unwrap_or(&own_name(source)))?;
    Ok(Placement { name, source: found })
}

/// The folder of the mapping that a word means: the folder itself, that of a stage or cell, or the one from which a launch file was made.
/// None if it is a file of another program.
fn folder_of(
    source: &str,
    path: &Path,
    arguments: &StoreArguments,
    output: Output,
) -> Result<Option<PathBuf>> {
    let is_launch_file =
        || Folder::open(path).is_ok_and(|found| found.description().kind == LaunchFile::KIND);
    // Only what was made from a mapping needs the store, which may not be there yet.
    if path.is_dir() && !is_launch_file() {
        return Ok(Some(path.to_owned()));
    }
    let root = arguments.readable_root()?;
    let store = Store::load(&root)?;
    let digest = if path.is_file() {
        match origin_of(path, Some(&store)).map_err(Failure::usage)? {
            Some(FileOrigin::Bytes { digest }) => digest,
            Some(FileOrigin::Comment { .. }) => {
                let message = format!("{} was edited since hopmap wrote it", shown(path));
                return refuse(message, "name the stage of its mapping, such as place:placement");
            }
            None => return Ok(None),
        }
    } else {
        if !path.is_dir() && locate::cells(source, &store)?.is_none() {
            return no_placement(source);
        }
        let folder = locate_newest(source, arguments, output)?;
        match Folder::open(&folder) {
            Ok(found) if found.description().kind == LaunchFile::KIND => found.digest().to_owned(),
            // Reading it says what is wrong with another one.
            _ => return Ok(Some(folder)),
        }
    };
    let runs = engine::read_runs(&store)?;
    let origins = trace(&digest, None, &Memory::of(&store, &runs)).artifacts;
    let mapping = origins.into_iter().find(|origin| origin.kind.as_deref() == Some(Mapping::KIND));
    match mapping.and_then(|origin| origin.path) {
        Some(folder) => Ok(Some(folder)),
        None => {
            let message = format!("the mapping from which `{source}` was made is not in {}", shown(&root));
            refuse(message, "run its pipeline again, or name another store with --store")
        }
    }
}

fn no_placement<T>(source: &str) -> Result<T> {
    let message =
        format!("the placement `{source}` is neither a folder of a mapping nor a stage nor a launch file");
    refuse(message, format!("such as place:placement, out/rankfile, or one of: {}", KNOWN.join(", ")))
}

/// The last part of a path without its extension, or the stage.
fn own_name(source: &str) -> String {
    let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or(source);
    let name = name.rsplit(':').next().unwrap_or(name);
    name.split(['.', '[']).next().unwrap_or(name).to_owned()
}

/// The name of a placement is that of a stage, beside those of the trial.
fn checked_name(name: &str) -> Result<String> {
    if is_name(name) && ![STAGE, BEST, HOSTS, RANKS].contains(&name) {
        return Ok(name.to_owned());
    }
    let message = format!("`{name}` cannot be the name of a placement");
    refuse(message, "give it another one: NAME=PLACEMENT")
}

/// The pipeline: mappings, the trial, and the mapping to use.
fn pipeline(arguments: &Arguments, placements: &[Placement], output: Output) -> Result<PipelineText> {
    let programs = arguments.measurement.programs(&arguments.program)?;
    let Ok(program) = shlex::try_join(programs.iter().map(String::as_str)) else {
        return refuse("the program has a NUL in its arguments", "leave it out");
    };
    let names: Vec<&str> = placements.iter().map(|placement| placement.name.as_str()).collect();
    let needs_machine = |placement: &Placement| !matches!(placement.source, Source::Folder(..));
    let mut stages = match placements.iter().any(needs_machine) {
        true => machine(arguments, placements, output)?.to_vec(),
        false => Vec::new(),
    };
    let on_hosts =
        |name: &str, kind: &str| StageText::new(name, kind).need("task-graph", RANKS).need("system", HOSTS);
    stages.extend(placements.iter().map(|Placement { name, source }| match source {
        Source::Folder(folder, _) => {
            StageText::new(name, "stored/mapping").given("PLACEMENT", "path", Some(path_text(folder)))
        }
        Source::File(file) => on_hosts(name, "map/import").given("PLACEMENT", "path", Some(path_text(file))),
        Source::Known(known) => on_hosts(name, &format!("map/{known}")),
    }));
    let measurement = &arguments.measurement;
    let trial = measurement
        .trial(names.clone().into())?
        .given("PROGRAM", "program", Some(program))
        .given("--launch", "launch", Some(measurement.launch_name()))
        .given("--precision", "precision", Some(measurement.precision))
        .given("--runs", "runs", arguments.runs)
        .given("--deadline", "time_s", arguments.deadline.map(|time| time.as_secs_f64()))
        .given("PLACEMENT", "choose", (names.len() > 2).then_some(CHOOSE))
        .given("--record", "record", arguments.record.then_some(true))
        .given("--repetition", "repetition", Some(arguments.repetition).filter(|number| *number > 0));
    stages.extend([trial, measurement.best(BEST, names.into()).save("mapping", "best")]);
    let description = "The run times of a program under several placements";
    Ok(PipelineText { name: "trial", description, stages, ..PipelineText::default() })
}

/// Stages of the hosts and the ranks of placements by name.
fn machine(arguments: &Arguments, placements: &[Placement], output: Output) -> Result<[StageText; 2]> {
    let first = placements.iter().find_map(|placement| match &placement.source {
        Source::Folder(_, mapping) => Some(mapping),
        Source::Known(_) | Source::File(_) => None,
    });
    let Allocation { hosts, ranks } = arguments.allocation.allocation(first, output)?;
    launchable::check_hosts(arguments.measurement.launch, &hosts, output)?;
    let machine = StageText::new(HOSTS, "topology/synthetic")
        .given("--hosts", "hosts", Some(hosts.names()))
        .given("--slots", "slots", Some(hosts.slots_of_each()));
    let ranks = StageText::new(RANKS, "instance/stencil")
        .comment("These placements depend on the number of ranks alone.")
        .given("--ranks", "shape", Some(format!("1x{ranks}")));
    Ok([machine, ranks])
}
