//! What a launcher would refuse late, or wait for without end: checked before `hopmap tune` and `hopmap trial` start it.

use std::net::ToSocketAddrs;
use std::path::Path;

use hopmap_command::refuse;
use hopmap_formats::host_names::short;
use hopmap_launchers::{Launch, programs_of};

use super::hosts::Hosts;
use super::output::{Output, Result};

/// Refuses slots that a launcher cannot bind, and says which host has no address.
pub(super) fn check_hosts(launch: Launch, hosts: &Hosts, output: Output) -> Result<()> {
    check_cores(launch, hosts)?;
    note_unknown_host(hosts, output);
    Ok(())
}

/// Refuses a program that does not exist: a launcher would say so for every rank. Words with braces get their value in each run, and other
/// hosts may have files that this one lacks, but not below the folder in which all start.
pub(super) fn check_programs(words: &[String]) -> Result<()> {
    let mut paths = programs_of(words).into_iter().filter_map(<[String]>::first);
    let is_missing = |path: &&String| {
        path.contains('/') && !path.starts_with('/') && !path.contains('{') && !Path::new(path).exists()
    };
    match paths.find(is_missing) {
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

/// Hydra waits without end for a host that ssh does not know. ssh alone may know one, by its configuration: so this is a
/// note.
fn note_unknown_host(hosts: &Hosts, output: Output) {
    let is_unknown = |name: &str| (name, 0).to_socket_addrs().is_err();
    if let Some((name, _)) = hosts.hosts.iter().find(|(name, _)| !hosts.is_job && is_unknown(name)) {
        output.note(format!("`{name}` has no address here: check its name if the launcher waits or fails"));
    }
}
