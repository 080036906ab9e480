//! What a launcher would refuse late, or wait for without end: checked before `hopmap tune` and `hopmap trial` start it.

use std::net::ToSocketAddrs;
use std::path::Path;

use hopmap_command::refuse;
use hopmap_formats::host_names::short;
use hopmap_launchers::{Launch, NEXT};

use super::hosts::Hosts;
use super::output::{Output, Result};

/// Refuses a program that cannot be started, and slots that a launcher cannot bind; says which host has no address.
pub(super) fn check(launch: Launch, program: &[String], hosts: &Hosts, output: Output) -> Result<()> {
    check_program(program)?;
    check_cores(launch, hosts)?;
    note_unknown_host(hosts, output);
    Ok(())
}

/// A launcher would say so for every rank. Words with braces get their value in each run, and other hosts may have files that this one lacks,
/// but not below the folder in which all start.
fn check_program(words: &[String]) -> Result<()> {
    let programs = words.split(|word| word == NEXT).filter_map(|program| match program {
        [option, _, program, ..] if ["-n", "-np"].contains(&option.as_str()) => Some(program),
        program => program.first(),
    });
    let mut paths =
        programs.filter(|path| path.contains('/') && !path.starts_with('/') && !path.contains('{'));
    match paths.find(|path| !Path::new(path).exists()) {
        None => Ok(()),
        Some(path) => refuse(format!("the program `{path}` does not exist"), "check the path, or build it"),
    }
}

/// Rejects more slots on this host than it has cores where the launcher binds every rank to a core: it would end without a word.
fn check_cores(launch: Launch, hosts: &Hosts) -> Result<()> {
    // A batch system gives no more slots than cores, and may have bound this process to few of them.
    let binds = matches!(launch, Launch::OpenMpi4 | Launch::OpenMpi5) && !hosts.is_job;
    let cores = std::thread::available_parallelism().map_or(u32::MAX, |cores| cores.get() as u32);
    let own = hopmap_mpi_environment::host_name();
    let is_own = |name: &str| name == "localhost" || short(name) == short(&own);
    match hosts.hosts.iter().find(|(name, slots)| binds && *slots > cores && is_own(name)) {
        None => Ok(()),
        Some((name, slots)) => refuse(
            format!(
                "`{name}` has {cores} cores, too few for {slots} slots: the rank files of Open MPI bind every rank to a core"
            ),
            match hosts.hosts.len() {
                1 => format!("give --slots {cores}"),
                _ => format!(
                    "give --slots {cores}, or --launch open-mpi-hosts or reorder, which do not bind them"
                ),
            },
        ),
    }
}

/// Hydra waits without end for a host that ssh does not know. One that ssh alone knows, by its configuration, is no error.
fn note_unknown_host(hosts: &Hosts, output: Output) {
    let is_unknown = |name: &str| (name, 0).to_socket_addrs().is_err();
    if let Some((name, _)) = hosts.hosts.iter().find(|(name, _)| !hosts.is_job && is_unknown(name)) {
        output.note(format!("`{name}` has no address here: check its name if the launcher waits or fails"));
    }
}
