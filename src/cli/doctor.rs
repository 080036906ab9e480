//! `hopmap doctor`: what is installed here, and what that enables.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, all_cores, holder, shown};
use hopmap_durable::{Lock, Staging};
use hopmap_mpi_environment::{Identity, MpiError, host_name};
use hopmap_process::{Limits, RunError, on_path, run};
use miette::Report;
use serde::Serialize;
use serde_json::json;

use super::open::StoreArguments;
use super::output::{Output, Result, message};
use crate::engine::{memory, ranks_program};
use crate::pipeline::show_bytes;
use crate::query;
use crate::registry::{HWLOC_PROGRAMS, STAGES};

/// Time limit of every program that is run.
const TIME: Duration = Duration::from_secs(10);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every component is optional. For a missing one, the second line says how to get it. The exit code is 1 only if results cannot be \
stored: the folder of the store is not writable, or its file system does not support flock.

Examples:
  hopmap doctor
  salloc -N 2 hopmap doctor      # inside a job
  hopmap doctor --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Found,
    Missing,
    Broken,
}

/// A component, what it enables, and how to get it.
#[derive(Debug, Serialize)]
struct Check {
    group: &'static str,
    name: String,
    state: State,
    detail: Option<String>,
    enables: String,
    help: Option<String>,
}

/// What was found: a description, nothing, or a fault.
type Found = Result<Option<String>, String>;

impl Check {
    fn new(group: &'static str, name: &str, enables: &str, help: &str, found: Found) -> Self {
        let (state, detail) = match found {
            Ok(Some(detail)) => (State::Found, Some(detail)),
            Ok(None) => (State::Missing, None),
            Err(fault) => (State::Broken, Some(fault)),
        };
        let help = (state != State::Found && !help.is_empty()).then(|| help.to_owned());
        Self { group, name: name.to_owned(), state, detail, enables: enables.to_owned(), help }
    }

    /// Says which programs were looked for, if none of them was found.
    fn of_programs(self, programs: &[&str]) -> Self {
        let names: Vec<String> = programs.iter().map(|program| format!("`{program}`")).collect();
        let detail = match self.state {
            State::Missing => Some(format!("no {} on PATH", names.join(" or "))),
            State::Found | State::Broken => self.detail,
        };
        Self { detail, ..self }
    }
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let root = arguments.store.root_here()?;
    let store = store(&root);
    let is_usable = store.state == State::Found;
    let groups = [programs(), libraries(), mpi(), slurm(), tools(), this_host(), vec![store]];
    let checks: Vec<Check> = groups.into_iter().flatten().collect();
    output.json(&json!({ "version": VERSION, "checks": checks }));
    print(&checks, output);
    Ok(if is_usable { Exit::Done } else { Exit::Failed })
}

fn print(checks: &[Check], output: Output) {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut group = "";
    for check in checks {
        if check.group != group {
            output.line(check.group);
            group = check.group;
        }
        let state = match check.state {
            State::Found => "found",
            State::Missing => "missing",
            State::Broken => "broken",
        };
        let enables = Some(&check.enables).filter(|enables| !enables.is_empty());
        let enables = enables.map(|enables| format!("for {enables}"));
        let text: Vec<String> = check.detail.clone().into_iter().chain(enables).collect();
        output.line(format!("  {state:<7}  {:<width$}  {}", check.name, text.join("; ")));
        if let Some(help) = &check.help {
            output.line(format!("  {:<7}  {:<width$}  {help}", "", ""));
        }
    }
}

/// The programs of hopmap itself.
fn programs() -> Vec<Check> {
    let here = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let hopmap = Check::new("hopmap", "hopmap", "", "", Ok(Some(format!("{VERSION}, {here}"))));
    let sql = "SQL: `hopmap query` and [tables]";
    let query = match query::path() {
        Ok(path) => {
            let help = "install hopmap and hopmap-query from the same sources";
            Check::new("hopmap", "hopmap-query", sql, help, query_version(&path).map(Some))
        }
        Err(error) => Check::new("hopmap", "hopmap-query", sql, &help(&error.into()), Ok(None)),
    };
    let ranks = "searches as MPI ranks: `launcher = \"mpirun -n 8\"`";
    let ranks = match ranks_program() {
        Ok(path) => {
            let help = "load the module of the MPI that hopmap-ranks was built with, or rebuild hopmap-ranks";
            Check::new("hopmap", "hopmap-ranks", ranks, help, linked_mpi(&path).map(Some))
        }
        Err(error) => Check::new("hopmap", "hopmap-ranks", ranks, &help(&error), Ok(None)),
    };
    vec![hopmap, query, ranks]
}

fn query_version(path: &Path) -> Result<String, String> {
    let said = ask(Command::new(path).arg("--version")).map_err(|error| first_line(&error))?;
    let path = path.display();
    if said == format!("hopmap-query {VERSION}") {
        Ok(path.to_string())
    } else {
        Err(format!("{path} is {said}, not version {VERSION}"))
    }
}

/// The MPI library that a program is linked with.
fn linked_mpi(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let said = ask(Command::new("ldd").arg(path)).unwrap_or_default();
    match said.lines().map(str::trim).find(|line| line.starts_with("libmpi")) {
        Some(line) if line.ends_with("not found") => Err(format!("{shown}: {line}")),
        Some(line) => {
            let (name, place) = line.split_once(" => ").unwrap_or((line, ""));
            let place = place.split(" (").next().unwrap_or_default();
            Ok(format!("{shown}, linked with {}", if place.is_empty() { name } else { place }))
        }
        None => Ok(shown.to_string()),
    }
}

/// Optional libraries, with the stages that use them.
fn libraries() -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for library in STAGES.iter().flat_map(|entry| entry.libraries) {
        if checks.iter().any(|check| check.name == library.name) {
            continue;
        }
        let users =
            STAGES.iter().filter(|entry| entry.libraries.iter().any(|other| other.name == library.name));
        let users: Vec<&str> = users.map(|entry| entry.kind).collect();
        let found = library.is_built.then(|| "in this build".to_owned());
        let enables = format!("other methods of {}, next to those of hopmap", users.join(", "));
        checks.push(Check::new("libraries", library.name, &enables, &library.hint(), Ok(found)));
    }
    checks
}

const MPI_HELP: &str =
    "install one (Debian: openmpi-bin or mpich), or load its module: `module load openmpi`";

fn mpi() -> Vec<Check> {
    let enables = "starting ranks with a rankfile or machinefile";
    let programs = ["mpirun", "mpiexec"];
    let check = |name| Check::new("MPI", name, enables, MPI_HELP, launcher(name)).of_programs(&programs);
    let (present, missing): (Vec<Check>, Vec<Check>) =
        programs.map(check).into_iter().partition(|check| check.state != State::Missing);
    let launchers = if present.is_empty() { missing.into_iter().take(1).collect() } else { present };
    let enables = "building the recorder and the prober: `hopmap record`, `hopmap tune`, `topology/probe` with a `launcher`";
    let help = "install it (Debian: libopenmpi-dev or libmpich-dev), or load its module; what was built before is used without it";
    let compiler = Check::new("MPI", "mpicc", enables, help, identified("mpicc", Identity::of_compiler));
    launchers.into_iter().chain([compiler.of_programs(&["mpicc"])]).collect()
}

fn slurm() -> Vec<Check> {
    let help = "Debian: slurm-client; on a cluster, log in to a node that submits jobs";
    let srun =
        Check::new("Slurm", "srun", "starting ranks in a job", help, launcher("srun")).of_programs(&["srun"]);
    let partitions = match ask(Command::new("sinfo").args(["--noheader", "--format=%R"])) {
        Ok(said) => Ok(Some(format!("partitions: {}", said.lines().collect::<Vec<_>>().join(", ")))),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(first_line(&error)),
    };
    let enables = "cells as batch jobs: `launcher = \"sbatch\"`, and the list of idle nodes";
    let sinfo = Check::new("Slurm", "sinfo", enables, help, partitions).of_programs(&["sinfo"]);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let job = variable("SLURM_JOB_ID").map(|id| {
        let nodes = variable("SLURM_JOB_NODELIST").map(|nodes| format!(" on {nodes}")).unwrap_or_default();
        format!("job {id}{nodes}")
    });
    let (enables, help) =
        ("choosing nodes of the job: `hopmap run job`", "start a job: `salloc` or `sbatch`");
    vec![srun, sinfo, Check::new("Slurm", "job", enables, help, Ok(job))]
}

/// Programs of others that stages run.
fn tools() -> Vec<Check> {
    let check = |programs: &[&str], enables: &str, help: &str| {
        let found =
            programs.iter().find_map(|program| on_path(program)).map(|path| path.display().to_string());
        Check::new("tools", programs[0], enables, help, Ok(found)).of_programs(programs)
    };
    let ssh = "measuring nodes without MPI: `topology/probe`, `hopmap topology refresh`";
    vec![
        check(&["ssh"], ssh, "Debian: openssh-client"),
        check(
            &HWLOC_PROGRAMS,
            "importing the cores and caches of this host: `topology/hwloc` without `path`",
            "Debian: hwloc; on a cluster: `module load hwloc`",
        ),
    ]
}

fn this_host() -> Vec<Check> {
    let check = |name, enables, found| Check::new("this host", name, enables, "", Ok(found));
    let temporary = std::env::temp_dir();
    let free = rustix::fs::statvfs(&temporary).ok().map(|disk| disk.f_bavail * disk.f_frsize);
    let free = free.map(|free| format!("{} free in {}", show_bytes(free), temporary.display()));
    vec![
        check("host", "", Some(host_name())),
        check("PATH", "", std::env::var("PATH").ok()),
        check("cores", "`--jobs` by default", Some(all_cores().to_string())),
        check("memory", "`--memory` by default", memory().map(show_bytes)),
        check("temporary files", "", free),
    ]
}

fn store(root: &Path) -> Check {
    let help = "name a writable folder with --store, on a file system that supports flock";
    let found = try_store(root).map(|()| Some(format!("{} is writable and supports flock", shown(root))));
    Check::new("this host", "store", "", help, found.map_err(|error| message(&error)))
}

/// Writes and locks a file in the store, or in the folder in which it would be created.
fn try_store(root: &Path) -> Result<(), Report> {
    let folder = root.ancestors().find(|folder| folder.is_dir()).unwrap_or(root);
    let staging = Staging::new(folder)?;
    Lock::try_exclusive(&staging.path().join("lock"), &holder("doctor"))?;
    Ok(())
}

/// Implementation and version of a launcher, and where it is.
fn launcher(program: &str) -> Found {
    identified(program, Identity::of_launcher)
}

fn identified(program: &str, version_of: fn(&str) -> Result<Identity, MpiError>) -> Found {
    let Some(path) = on_path(program) else { return Ok(None) };
    match version_of(program) {
        Ok(identity) => {
            Ok(Some(format!("{} {}, {}", identity.implementation, identity.version, path.display())))
        }
        Err(MpiError::Run(error)) => Err(first_line(&error)),
        Err(error) => Err(error.to_string()),
    }
}

/// What a program writes to standard output.
fn ask(command: &mut Command) -> Result<String, RunError> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    run(command, &limits).map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The error and the first line of what the program wrote.
fn first_line(error: &RunError) -> String {
    error.to_string().lines().take(2).collect::<Vec<_>>().join(" ")
}

fn help(error: &Report) -> String {
    error.help().map(|help| help.to_string()).unwrap_or_default()
}
