//! `launch/check`: starts the command of a launch file, and compares where its ranks run with the mapping.
//!
//! # Method
//!
//! The program is `hopmap where`, which prints rank, host and logical cores of its process ([`Location`]). HPE Cray MPICH reorders
//! the ranks in `MPI_Init`, so `hopmap-ranks --where`, which calls it, prints them there. [`differences`] compares. A rank file
//! binds to cores, and so does a command with an option for it; otherwise only hosts are compared.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopmap_formats::rank_file::{self, Cores};
use hopmap_launchers::{
    COMMAND_OF_FILE, CRAY_FILE, CommandWords, PROGRAM_WORD, REORDER_FILE, heading, hosts_of_ranks,
    short_name, start_command, with_variables,
};
use hopmap_model::{
    Context, Error, InputPath, Inputs, LaunchFile, Mapping, Metrics, OutOfRange, Outcome, Outputs, Placement,
    Port, Stage, TextFile,
};
use hopmap_mpi_environment::{Location, list, system_host_name};
use hopmap_process::{Limits, on_path, run};
use hopmap_text::{FileError, counted, read_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;

/// Maximum size of a launch file, and of the output of a command.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of differences in a message.
const MOST_SHOWN: usize = 4;
/// The program that calls `MPI_Init`.
const RANKS_PROGRAM: &str = "hopmap-ranks";

/// Parameters of `launch/check`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckParams {
    /// The launch file that is really used, such as an exported one; by default the connected one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<InputPath>,
    /// The command that is really used, with `{file}` for the launch file and `{program}` for the program; by default that of the
    /// connected file.
    #[serde(default)]
    pub command: Option<String>,
    /// Launcher with options, such as `mpirun.openmpi --mca btl tcp,self`, in place of the launcher's name in the command.
    #[serde(default)]
    pub launcher: Option<String>,
    /// What the ranks run: `hopmap where` by its path on the hosts. By default the path of this hopmap, or of `hopmap-ranks` for
    /// HPE Cray MPICH.
    #[serde(default)]
    pub program: Option<String>,
    /// Whether cores are compared as well as hosts; by default if the launch file or its command names the cores.
    #[serde(default)]
    pub cores: Option<bool>,
    /// Environment variables of the launcher.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Time limit of the launcher in seconds.
    #[serde(default = "hopmap_model::number::<60, f64>")]
    pub timeout_s: f64,
}

/// `launch/check`: where the ranks really run.
#[derive(Debug)]
pub struct Check;

/// Lines of a launch file that are quoted.
const MOST_QUOTED: usize = 6;

impl Stage for Check {
    type Params = CheckParams;
    const KIND: &'static str = "launch/check";
    const SUMMARY: &'static str =
        "Start a launch file's ranks, and compare their hosts and cores with the mapping";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::input::<Mapping>("mapping"),
        Port::optional::<LaunchFile>("launch"),
        Port::output::<Metrics>("metrics"),
        Port::output::<TextFile>("places"),
    ];

    fn check(params: &CheckParams) -> Result<(), Error> {
        for (name, line) in
            [("command", &params.command), ("launcher", &params.launcher), ("program", &params.program)]
        {
            line.as_deref().map(|line| words(name, line)).transpose()?;
        }
        if !(params.timeout_s > 0.0 && params.timeout_s <= 86_400.0) {
            let allowed = "above 0 s, at most 86400 s, such as 60";
            return Err(OutOfRange::new("timeout_s", format!("{:?}", params.timeout_s), allowed).into());
        }
        Ok(())
    }

    fn reads(params: &CheckParams) -> Result<Vec<InputPath>, Error> {
        Ok(params.path.iter().cloned().collect())
    }

    fn observes(_: &CheckParams) -> bool {
        true
    }

    fn programs(params: &CheckParams) -> Vec<String> {
        let launcher = params.launcher.as_deref().and_then(|line| words("launcher", line).ok());
        launcher.map(|mut words| words.swap_remove(0)).into_iter().collect()
    }

    fn commands(params: &CheckParams) -> Vec<String> {
        // A launcher of its own takes the variables and options of the file nevertheless.
        let of_file = params.command.is_none().then(|| COMMAND_OF_FILE.to_owned());
        let given = [&params.command, &params.launcher, &params.program].into_iter().flatten().cloned();
        of_file.into_iter().chain(given).map(|command| with_variables(&params.env, &command)).collect()
    }

    fn run(params: CheckParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?;
        let connected = inputs.optional::<LaunchFile>("launch")?.map(|input| input.value);
        hosts_of_ranks(&mapping.value)?;
        let timeout = Duration::try_from_secs_f64(params.timeout_s).unwrap_or(Duration::MAX);
        let started = Started::new(&params, connected.as_deref(), &mapping.digest, cx)?;
        let (started, found) = started.run(timeout, cx)?;
        let launcher = started.command.get_program().to_string_lossy();
        let found = by_rank(found, mapping.value.ranks.len(), &launcher)?;
        let binds = params.cores.unwrap_or_else(|| binds(&started.file));
        let several = several_cores(&started.file.text);
        let differences = differences(&mapping.value, &found, binds, &several);
        if !differences.is_empty() {
            return Err(disobeyed(&differences, &started).into());
        }
        if !binds {
            cx.log("only hosts were compared: the command leaves the cores to the launcher");
        }
        let outputs =
            Outputs::new().with("metrics", metrics(&mapping.value, binds)).with("places", places(&found));
        Ok(Outcome::Done(outputs))
    }
}

/// The words of a command line; no expansion.
fn words(name: &'static str, line: &str) -> Result<Vec<String>, CheckError> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    words.ok_or_else(|| CheckError::Command { name, line: line.to_owned() })
}

/// The launch file that is checked, and the command that uses it.
struct Started {
    file: LaunchFile,
    /// Where it is, if the user named a place.
    place: Option<PathBuf>,
    command: Command,
    /// Keeps the file that the command reads.
    _folder: tempfile::TempDir,
}

impl Started {
    fn new(
        params: &CheckParams,
        connected: Option<&LaunchFile>,
        digest: &str,
        cx: &Context<'_>,
    ) -> Result<Self, CheckError> {
        let mut file = match (connected, &params.path, &params.command) {
            (Some(file), ..) => file.clone(),
            (None, Some(path), Some(_)) => {
                LaunchFile { name: path.name().into_owned(), text: String::new(), command: String::new() }
            }
            (None, ..) => return Err(CheckError::NoFile),
        };
        if let Some(path) = &params.path {
            file.text = read_text(path.path(), MOST_BYTES as u64)?;
            if file.text.trim().is_empty() {
                return Err(FileError::new("it is empty", "give the launch file")
                    .in_file(path.path())
                    .into());
            }
        }
        if let Some(command) = &params.command {
            file.command.clone_from(command);
        }
        check_heading(&file, digest)?;
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| CheckError::File { path, source }
        };
        let scratch = std::path::absolute(cx.scratch()).map_err(fault(&cx.scratch()))?;
        let folder =
            tempfile::Builder::new().prefix("launch-").tempdir_in(&scratch).map_err(fault(&scratch))?;
        let path = folder.path().join(if file.name.contains('/') { "launch" } else { &file.name });
        std::fs::write(&path, &file.text).map_err(fault(&path))?;
        let command = command(params, &file, &path)?;
        let place = params.path.as_ref().map(|path| path.path().to_owned());
        Ok(Self { file, place, command, _folder: folder })
    }

    /// Starts the ranks; returns where they were.
    fn run(mut self, timeout: Duration, cx: &Context<'_>) -> Result<(Self, Vec<Location>), CheckError> {
        let limits = Limits { time: Some(timeout), output: MOST_BYTES, stop: &|| cx.should_stop() };
        let output = run(&mut self.command, &limits)
            .map_err(|error| CheckError::Run { error, lines: first_lines(&self.file.text) })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Vec<Location> = text.lines().filter_map(Location::parse).collect();
        if found.is_empty() {
            return Err(CheckError::Silent { command: self.shown(), quoted: output.quoted() });
        }
        Ok((self, found))
    }

    /// The command as a message shows it.
    fn shown(&self) -> String {
        start_command(&self.file.command, &self.name())
    }

    /// What the message calls the file.
    fn name(&self) -> String {
        self.place.as_deref().map_or_else(|| self.file.name.clone(), |place| place.display().to_string())
    }
}

/// The first lines of a launch file, to append to a message.
fn first_lines(text: &str) -> String {
    let more = if text.lines().count() > MOST_QUOTED { "\n  …" } else { "" };
    let lines: Vec<String> = text.lines().take(MOST_QUOTED).map(|line| format!("  {line}")).collect();
    lines.join("\n") + more
}

/// Rejects the launch file of another mapping.
fn check_heading(file: &LaunchFile, digest: &str) -> Result<(), CheckError> {
    let first = file.text.lines().next().unwrap_or_default();
    let is_heading = first.starts_with(heading("").trim_end());
    if is_heading && first != heading(digest).trim_end() {
        return Err(CheckError::OtherMapping { file: file.name.clone(), heading: first.to_owned() });
    }
    Ok(())
}

/// The command of a launch file, with a program that prints where it runs.
fn command(params: &CheckParams, file: &LaunchFile, path: &Path) -> Result<Command, CheckError> {
    let program = match &params.program {
        Some(program) => words("program", program)?,
        None => own_program(file)?,
    };
    let fault = || CheckError::Command { name: "command", line: file.command.clone() };
    let CommandWords { variables, launcher: named, options } =
        CommandWords::split(&file.command, path).ok_or_else(fault)?;
    let launcher = match &params.launcher {
        Some(launcher) => words("launcher", launcher)?,
        None => named,
    };
    let hosts = || file.text.lines().filter(|line| !line.starts_with('#')).count();
    if launcher == ["sh"] && ranks_of_torchrun(&file.command).is_some() && hosts() > 1 {
        return Err(CheckError::OneHost { file: file.name.clone() });
    }
    let mut command = Command::new(&launcher[0]);
    command.args(&launcher[1..]);
    for option in &options {
        match option == PROGRAM_WORD {
            true => command.args(&program),
            false => command.arg(option),
        };
    }
    command.envs(variables).envs(&params.env);
    Ok(command)
}

/// This hopmap, or the program beside it that has the ranks of MPI.
fn own_program(file: &LaunchFile) -> Result<Vec<String>, CheckError> {
    let own = std::env::current_exe().map_err(|source| CheckError::File { path: "hopmap".into(), source })?;
    if file.name == REORDER_FILE {
        return Ok(vec!["--where".to_owned()]);
    }
    if file.name != CRAY_FILE {
        // `torchrun` starts scripts of Python by default.
        let option = ranks_of_torchrun(&file.command).map(|_| "--no-python".to_owned());
        let program = [own.to_string_lossy().into_owned(), "where".to_owned()];
        return Ok(option.into_iter().chain(program).collect());
    }
    let beside = own.with_file_name(RANKS_PROGRAM);
    let found = on_path(&beside.to_string_lossy()).or_else(|| on_path(RANKS_PROGRAM));
    let found = found.ok_or(CheckError::NoRanksProgram)?;
    Ok(vec![found.to_string_lossy().into_owned(), "--where".to_owned()])
}

/// Whether a launch file asks for the cores of the mapping.
fn binds(file: &LaunchFile) -> bool {
    let has = |option: &str| file.command.contains(option);
    ["--rankfile ", "rankfile:", " -bind-to ", "map_cpu:", "mask_cpu:", "cpu-affinity=map:"]
        .into_iter()
        .any(has)
        || has("PROCESSOR_LIST ") && !has("PROCESSOR_LIST allcores")
        || has("--cpu-bind") && file.name == CRAY_FILE
}

/// The location of every rank; an error if one has none or several.
fn by_rank(found: Vec<Location>, ranks: usize, launcher: &str) -> Result<Vec<Location>, CheckError> {
    let problem = |problem: String| CheckError::Ranks { problem, launcher: launcher.to_owned() };
    let mut places: Vec<Vec<Location>> = vec![Vec::new(); ranks];
    for location in found {
        let host = &location.host;
        let Some(rank) = location.rank else {
            return Err(problem(format!("a process on `{host}` has no rank")));
        };
        let Some(place) = places.get_mut(rank as usize) else {
            return Err(problem(format!(
                "rank {rank} was started on `{host}`, but the mapping has {ranks} ranks"
            )));
        };
        place.push(location);
    }
    if let Some((rank, several)) = places.iter().enumerate().find(|(_, places)| places.len() > 1) {
        let times = several.len();
        return Err(problem(format!("rank {rank} was started {times} times")));
    }
    let missing: Vec<u32> = places
        .iter()
        .enumerate()
        .filter(|(_, places)| places.is_empty())
        .map(|(rank, _)| rank as u32)
        .collect();
    if !missing.is_empty() {
        return Err(problem(format!("of {ranks} ranks, {} did not say where they run", list(&missing))));
    }
    Ok(places.into_iter().flatten().collect())
}

/// A rank that is not where the mapping has it.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    rank: usize,
    what: String,
}

/// The cores of ranks that have several in a rank file that somebody else wrote.
fn several_cores(text: &str) -> HashMap<usize, Vec<Cores>> {
    let of_line = |line: &str| {
        let (rank, place) = line.trim().strip_prefix("rank")?.split_once('=')?;
        let (_, cores) = place.rsplit_once('=')?;
        let cores = rank_file::cores(cores.trim()).ok()?;
        let is_one = matches!(cores[..], [Cores { range: Some((first, last)), .. }] if first == last);
        (!is_one).then_some((rank.trim().parse().ok()?, cores))
    };
    text.lines().filter_map(of_line).collect()
}

/// Whether a rank that is bound to these cores has them in the file, where only cores that are not numbered by socket are known; without
/// several cores, it has that of the mapping.
fn is_bound(found: &[u32], core: u32, several: Option<&Vec<Cores>>) -> bool {
    let Some(several) = several else { return found == [core] };
    let is_in = |cores: &Cores, core: u32| match (cores.socket, cores.range) {
        (None, Some((first, last))) => (first..=last).contains(&core),
        _ => true,
    };
    let of_range = |cores: &Cores| cores.range.filter(|_| cores.socket.is_none());
    let all =
        several.iter().map(of_range).map(|range| range.map(|(first, last)| u64::from(last - first) + 1));
    let count = all.sum::<Option<u64>>();
    found.contains(&core)
        && found.iter().all(|&core| several.iter().any(|cores| is_in(cores, core)))
        && count.is_none_or(|count| count == found.len() as u64)
}

/// The ranks that are not on their hosts, or, if the launch file binds, not on their cores.
fn differences(
    mapping: &Mapping,
    found: &[Location],
    binds: bool,
    several: &HashMap<usize, Vec<Cores>>,
) -> Vec<Difference> {
    let names = HostNames::of(mapping);
    let one = |(rank, location): (usize, &Location)| {
        let Placement { host, core, .. } = mapping.ranks[rank];
        let expected = mapping.host_of(rank);
        let actual = &location.host;
        let what = match (names.index(actual), core) {
            (index, _) if index != Some(host) => format!("runs on `{actual}`, not on `{expected}`"),
            (_, Some(core)) if binds && !is_bound(&location.cores, core, several.get(&rank)) => {
                let cores = if location.cores.len() == 1 { "core" } else { "cores" };
                let wanted = match several.contains_key(&rank) {
                    true => format!("the cores of its line, which have to include core {core}"),
                    false => format!("core {core}"),
                };
                format!("runs on {cores} {} of `{actual}`, not on {wanted}", list(&location.cores))
            }
            _ => return None,
        };
        Some(Difference { rank, what })
    };
    found.iter().enumerate().filter_map(one).collect()
}

/// The hosts of a mapping by their names.
struct HostNames<'m> {
    full: HashMap<&'m str, u32>,
    /// By the name before the first dot, with the full name; no index if several hosts share it.
    short: HashMap<&'m str, (&'m str, Option<u32>)>,
}

impl<'m> HostNames<'m> {
    fn of(mapping: &'m Mapping) -> Self {
        let mut names = Self { full: HashMap::new(), short: HashMap::new() };
        for (index, host) in mapping.hosts.iter().enumerate() {
            let name = host.host.as_str();
            names.full.insert(name, index as u32);
            let entry = names.short.entry(short_name(name)).or_insert((name, Some(index as u32)));
            if entry.0 != name {
                entry.1 = None;
            }
        }
        names
    }

    /// The host of a name. A short and a full name are the same if no other host has that short name.
    fn index(&self, name: &str) -> Option<u32> {
        if let Some(&index) = self.full.get(name) {
            return Some(index);
        }
        if let Some(&index) = self.full.get("localhost").filter(|_| name == system_host_name()) {
            return Some(index);
        }
        let &(full, index) = self.short.get(short_name(name))?;
        index.filter(|_| full == short_name(name) || name == short_name(name))
    }
}

/// The number and the text of the line for a rank.
fn line_of(file: &LaunchFile, rank: usize) -> Option<(usize, &str)> {
    let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut lines =
        lines.filter(|(_, line)| !(line.is_empty() || line.starts_with('#') || *line == "index,host"));
    let of_line = ranks_of_torchrun(&file.command).unwrap_or(1);
    let mut first = 0;
    lines.find(|(_, line)| {
        if let Some((number, _)) = line.strip_prefix("rank ").and_then(|rest| rest.split_once('=')) {
            return number.trim().parse() == Ok(rank);
        }
        if file.name == CRAY_FILE {
            return line.split(',').any(|number| number.trim().parse() == Ok(rank));
        }
        let count = line.split_once(':').and_then(|(_, count)| count.trim().parse::<usize>().ok());
        first += count.unwrap_or(of_line);
        rank < first
    })
}

/// The ranks that `torchrun` starts on each host, if it is in the command.
fn ranks_of_torchrun(command: &str) -> Option<usize> {
    let (_, options) = command.split_once("torchrun ")?;
    let (_, count) = options.split_once("--nproc-per-node ")?;
    count.split_whitespace().next()?.parse().ok()
}

fn disobeyed(differences: &[Difference], started: &Started) -> CheckError {
    let mut problem = String::new();
    for Difference { rank, what } in differences.iter().take(MOST_SHOWN) {
        // Writing to a string does not fail.
        let _ = write!(problem, "rank {rank} {what}");
        let _ = match line_of(&started.file, *rank) {
            Some((number, line)) => {
                writeln!(problem, ": line {number} of {} was not obeyed: `{line}`", started.name())
            }
            None => writeln!(problem, ": {} has no line for it", started.name()),
        };
    }
    if differences.len() > MOST_SHOWN {
        let _ = writeln!(problem, "and {} more", counted(differences.len() - MOST_SHOWN, "rank"));
    }
    CheckError::Disobeyed { problem: problem.trim_end().to_owned(), command: started.shown() }
}

fn metrics(mapping: &Mapping, binds: bool) -> Metrics {
    let hosts: HashSet<u32> = mapping.ranks.iter().map(|placement| placement.host).collect();
    let bound = mapping.ranks.iter().filter(|placement| binds && placement.core.is_some()).count();
    let values = [("ranks", mapping.ranks.len()), ("hosts", hosts.len()), ("bound_ranks", bound)];
    let summary = values.map(|(name, value)| (name.to_owned(), value as f64)).into();
    Metrics { summary, placements: Vec::new() }
}

/// A table of what the ranks printed.
fn places(found: &[Location]) -> TextFile {
    let row = |(rank, location): (usize, &Location)| {
        format!("{rank},{},{}\n", location.host, list(&location.cores).replace(',', " "))
    };
    let text = "rank,host,cores\n".to_owned() + &found.iter().enumerate().map(row).collect::<String>();
    TextFile { name: "places.csv".to_owned(), text }
}

#[cfg(test)]
mod tests {
    use hopmap_launchers::{Launch, launch_file};
    use hopmap_model::{HostSlots, Weight};
    use hopmap_training::{TorchStart, torch_file};

    use super::*;

    /// Hosts with `slots` slots each, rank `i` on slot `taken[i]`, core = slot on the host.
    fn mapping(hosts: &[&str], slots: u32, taken: &[u32]) -> Mapping {
        let host = |(index, name): (u32, &&str)| HostSlots {
            host: (*name).to_owned(),
            first_slot: index * slots,
            slots,
        };
        let placement = |&slot: &u32| Placement { slot, host: slot / slots, core: Some(slot % slots) };
        Mapping {
            ranks: taken.iter().map(placement).collect(),
            hosts: (0..).zip(hosts).map(host).collect(),
            weight: Weight::Bytes,
            metrics: BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }

    fn found(lines: &[&str]) -> Vec<Location> {
        lines.iter().map(|line| Location::parse(line).unwrap()).collect()
    }

    fn of_mapping(hosts: &[&str], taken: &[u32], lines: &[&str], binds: bool) -> Vec<String> {
        let found = differences(&mapping(hosts, 2, taken), &found(lines), binds, &HashMap::new());
        found.into_iter().map(|Difference { rank, what }| format!("rank {rank} {what}")).collect()
    }

    /// A launcher of its own hid the options of the file from whom was asked for consent.
    #[test]
    fn the_command_of_the_file_is_shown_unless_it_is_replaced() {
        let commands = |params: serde_json::Value| Check::commands(&serde_json::from_value(params).unwrap());
        assert_eq!(commands(serde_json::json!({ "launcher": "nice" })), [COMMAND_OF_FILE, "nice"]);
        assert_eq!(commands(serde_json::json!({ "command": "mpirun {program}" })), ["mpirun {program}"]);
    }

    /// `--bind-to none` was taken for `-bind-to` of Hydra.
    #[test]
    fn a_command_that_binds_names_the_cores() {
        let binds = |command: &str| {
            binds(&LaunchFile { name: "f".into(), text: String::new(), command: command.into() })
        };
        for command in [
            "mpiexec.hydra -bind-to core -n 2",
            "mpirun --rankfile f",
            "flux run '--setopt=cpu-affinity=map:1'",
        ] {
            assert!(binds(command), "{command}");
        }
        for command in ["mpirun --map-by seq --bind-to none -n 2", "srun -m arbitrary", "flux run -n 2"] {
            assert!(!binds(command), "{command}");
        }
    }

    #[test]
    fn ranks_on_other_hosts_and_cores_are_found() {
        let lines = ["rank 0 on a, cores 0 of 2", "rank 1 on b, cores 0 of 2", "rank 2 on b, cores 0-1 of 2"];
        assert_eq!(
            of_mapping(&["a", "b"], &[0, 1, 3], &lines, true),
            ["rank 1 runs on `b`, not on `a`", "rank 2 runs on cores 0-1 of `b`, not on core 1"]
        );
        assert_eq!(of_mapping(&["a", "b"], &[0, 1, 3], &lines, false), ["rank 1 runs on `b`, not on `a`"]);
        assert_eq!(of_mapping(&["a", "b"], &[0, 2, 3], &lines, false), [""; 0]);
    }

    /// Ranks of programs with threads were all said to be on other cores than their line.
    #[test]
    fn a_rank_may_have_several_cores_in_a_file_of_the_user() {
        let several = several_cores("# mine\nrank 0=a slot=0-1\nrank 1=a slot=1:0,1\nrank 2 = b slot = 0\n");
        assert_eq!(several.len(), 2);
        let is_bound = |rank, core, found: &[u32]| is_bound(found, core, several.get(&rank));
        assert!(is_bound(0, 0, &[0, 1]) && !is_bound(0, 0, &[0]) && !is_bound(0, 2, &[0, 1]));
        assert!(!is_bound(0, 0, &[0, 2]));
        // Where sockets begin is not known.
        assert!(is_bound(1, 4, &[4, 5]) && !is_bound(1, 0, &[4, 5]));
        assert!(is_bound(2, 0, &[0]) && !is_bound(2, 0, &[0, 1]));
    }

    #[test]
    fn short_and_full_names_are_the_same_host_if_no_other_has_that_short_name() {
        let on = |host: &str| format!("rank 0 on {host}, cores 0 of 2");
        let is_found = |hosts: &[&str], host: &str| of_mapping(hosts, &[0], &[&on(host)], false).is_empty();
        assert!(is_found(&["n1", "n2"], "n1.cluster"));
        assert!(is_found(&["n1.cluster", "n2.cluster"], "n1"));
        assert!(!is_found(&["n1.cluster", "n1.other"], "n1"));
        assert!(is_found(&["n1.cluster", "n1.other"], "n1.cluster"));
        assert!(!is_found(&["n1.cluster"], "n1.other"));
        assert!(!is_found(&["10.0.0.1"], "10.0.0.2"));
        assert!(is_found(&["localhost"], &system_host_name()));
    }

    #[test]
    fn every_command_is_named_before_it_starts() {
        let commands = |params: &str| Check::commands(&serde_json::from_str(params).unwrap());
        assert_eq!(commands("{}"), ["the command of its launch file"]);
        let all = r#"{"command": "a {program}", "launcher": "b", "program": "c", "env": {"D": "1"}}"#;
        assert_eq!(commands(all), ["D=1 a {program}", "D=1 b", "D=1 c"]);
    }

    #[test]
    fn ranks_without_a_place_or_with_several_are_reported() {
        let message = |lines: &[&str]| by_rank(found(lines), 3, "mpirun").unwrap_err().to_string();
        let zero = "rank 0 on a, cores 0 of 1";
        assert_eq!(message(&[zero, zero, zero]), "rank 0 was started 3 times");
        assert_eq!(message(&[zero]), "of 3 ranks, 1-2 did not say where they run");
        assert_eq!(message(&["no rank on a, cores 0 of 1"]), "a process on `a` has no rank");
        assert_eq!(
            message(&["rank 3 on a, cores 0 of 1"]),
            "rank 3 was started on `a`, but the mapping has 3 ranks"
        );
    }

    #[test]
    fn every_kind_of_file_has_a_line_for_every_rank() {
        let mapping = mapping(&["a", "b"], 2, &[2, 3, 0, 1]);
        let file = |launch: &str| {
            let launch: Launch = serde_json::from_value(launch.into()).unwrap();
            launch_file(&mapping, "d", launch, false).unwrap()
        };
        let line =
            |file: &LaunchFile, rank| line_of(file, rank).map(|(number, line)| format!("{number} {line}"));
        let lines = |file: LaunchFile| [0, 1, 2, 3].map(|rank| line(&file, rank).unwrap());
        assert_eq!(
            lines(file("open-mpi-4")),
            ["2 rank 0=b slot=0", "3 rank 1=b slot=1", "4 rank 2=a slot=0", "5 rank 3=a slot=1"]
        );
        assert_eq!(
            lines(launch_file(&mapping, "d", Launch::OpenMpiHosts, false).unwrap()),
            ["2 b", "3 b", "4 a", "5 a"]
        );
        assert_eq!(
            lines(launch_file(&mapping, "d", Launch::IntelMpi, false).unwrap()),
            ["2 b:2", "2 b:2", "3 a:2", "3 a:2"]
        );
        assert_eq!(lines(file("cray-slurm")), ["3 0,1", "3 0,1", "2 2,3", "2 2,3"]);
        assert_eq!(line(&file("slurm"), 4), None);
    }

    /// Every line was taken for that of one rank.
    #[test]
    fn a_line_for_torchrun_is_that_of_all_ranks_of_its_host() {
        let mapping = mapping(&["a", "b"], 2, &[2, 3, 0, 1]);
        for (start, expected) in [
            (TorchStart::Slurm, ["2 b", "2 b", "3 a", "3 a"]),
            (TorchStart::NodeRanks, ["2 0 b", "2 0 b", "3 1 a", "3 1 a"]),
            (TorchStart::Indexes, ["3 0,b", "3 0,b", "4 1,a", "4 1,a"]),
        ] {
            let file = torch_file(&mapping, "d", start).unwrap();
            let line = |rank| line_of(&file, rank).map(|(number, line)| format!("{number} {line}"));
            assert_eq!([0, 1, 2, 3].map(|rank| line(rank).unwrap()), expected);
            assert_eq!(line(4), None);
        }
    }

    #[test]
    fn a_command_for_one_host_needs_a_launcher_that_starts_it_on_all() {
        let folder = tempfile::tempdir().unwrap();
        let torchrun = folder.path().join("torchrun");
        // A stand-in that starts no more than a host has: `--no-python` and the program are the last words.
        let script = "#!/bin/sh\nfor local in 0 1; do echo rank $((2 * $6 + local)) on $SLURMD_NODENAME, cores 0 of 1; done\n";
        std::fs::write(&torchrun, script).unwrap();
        std::fs::set_permissions(&torchrun, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mapping = mapping(&["a", "b"], 2, &[2, 3, 0, 1]);
        let run = |launcher: Option<&str>| {
            let mut inputs = Inputs::new();
            let file = torch_file(&mapping, "d1", TorchStart::NodeRanks).unwrap();
            inputs.connect("mapping", std::sync::Arc::new(mapping.clone()), "d1".into(), "placement".into());
            inputs.connect("launch", std::sync::Arc::new(file), "d2".into(), "launch".into());
            let params = serde_json::json!({ "launcher": launcher, "env": { "PATH": &path } });
            Check::run(serde_json::from_value(params).unwrap(), inputs, &Context::detached())
        };
        let message = "the command of node-ranks starts the ranks of one host, and nothing here starts it on the others";
        assert_eq!(run(None).unwrap_err().to_string(), message);
        let on_all = "sh -c 'for host in a b; do SLURMD_NODENAME=$host sh \"$@\"; done' sh";
        assert!(run(Some(on_all)).is_ok());
        let other = on_all.replace("sh \"$@\"", "sh \"$@\" | sed s/b,/c,/");
        assert_eq!(
            run(Some(&other)).unwrap_err().to_string().lines().next().unwrap(),
            "rank 0 runs on `c`, not on `b`: line 2 of node-ranks was not obeyed: `0 b`"
        );
    }

    /// Runs the stage with a shell line in place of the launcher.
    fn check(launcher: &str, heading: &str, timeout_s: f64) -> Result<(f64, String), Error> {
        let mapping = mapping(&["a", "b"], 2, &[2, 0]);
        let file = launch_file(&mapping, heading, Launch::OpenMpiHosts, false).unwrap();
        let mut inputs = Inputs::new();
        inputs.connect("mapping", std::sync::Arc::new(mapping), "d1".into(), "placement".into());
        inputs.connect("launch", std::sync::Arc::new(file), "d2".into(), "launch".into());
        let launcher = shlex::try_quote(launcher).unwrap();
        let params = serde_json::json!({ "launcher": format!("sh -c {launcher}"), "timeout_s": timeout_s });
        let Outcome::Done(outputs) =
            Check::run(serde_json::from_value(params).unwrap(), inputs, &Context::detached())?
        else {
            panic!("not done");
        };
        let ranks = outputs.get("metrics").unwrap().downcast_ref::<Metrics>().unwrap().summary["ranks"];
        Ok((ranks, outputs.get("places").unwrap().downcast_ref::<TextFile>().unwrap().text.clone()))
    }

    #[test]
    fn a_launcher_that_obeys_passes_and_others_are_stopped() {
        let good = "echo rank 1 on a, cores 0,2 of 4; echo rank 0 on b.x, cores 0 of 4";
        assert_eq!(check(good, "d1", 60.0).unwrap(), (2.0, "rank,host,cores\n0,b.x,0\n1,a,0 2\n".to_owned()));
        let message = |launcher: &str, heading: &str, timeout_s: f64| {
            check(launcher, heading, timeout_s).unwrap_err().to_string()
        };
        let wrong = "for rank in 0 1; do echo rank $rank on a, cores 0 of 4; done";
        assert_eq!(
            message(wrong, "d1", 60.0),
            "rank 0 runs on `a`, not on `b`: line 2 of hostfile was not obeyed: `b`"
        );
        assert!(message("exec sleep 60", "d1", 0.1).contains("did not finish within 0.1 s"));
        let failed = message("echo no slots >&2; exit 3", "d1", 60.0);
        assert!(
            failed.contains("standard error:\nno slots; its launch file, which is gone now:\n"),
            "{failed}"
        );
        let silent = message("echo hello", "d1", 60.0);
        assert!(
            silent.starts_with("no rank said where it runs: `mpirun -n 2 --hostfile hostfile "),
            "{silent}"
        );
        assert!(message(good, "d9", 60.0).starts_with("hostfile is of another mapping"));
    }

    #[test]
    fn the_exported_file_and_command_replace_the_connected_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my-hosts");
        std::fs::write(&path, "a\n").unwrap();
        let run = |params: serde_json::Value| {
            let mut inputs = Inputs::new();
            let mapping = mapping(&["b"], 1, &[0]);
            inputs.connect("mapping", std::sync::Arc::new(mapping), "d1".into(), "placement".into());
            let params: CheckParams = serde_json::from_value(params).unwrap();
            Check::check(&params)?;
            Check::run(params, inputs, &Context::detached())
        };
        let command = "X=rank sh -c 'echo $X 0 on $(cat $2), cores 0 of 1' {program} {file}";
        let error = run(serde_json::json!({ "path": &path, "command": command })).unwrap_err().to_string();
        let expected =
            format!("rank 0 runs on `a`, not on `b`: line 1 of {} was not obeyed: `a`", path.display());
        assert_eq!(error, expected);
        let nothing = run(serde_json::json!({})).unwrap_err().to_string();
        assert_eq!(nothing, "neither a launch file nor `path` with `command` is given");
        let incomplete =
            run(serde_json::json!({ "path": &path, "command": "mpirun -f {file}" })).unwrap_err();
        assert_eq!(incomplete.to_string(), "`command` is `mpirun -f {file}`, which does not start a program");
        let quote = run(serde_json::json!({ "launcher": "mpirun '" })).unwrap_err().to_string();
        assert_eq!(quote, "`launcher` is `mpirun '`, which does not start a program");
    }
}
