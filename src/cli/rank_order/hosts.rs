//! The hosts of a training job in their present order, and how many ranks each has.

use std::collections::HashSet;
use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_command::{Failure, refuse, shown};
use hopmap_formats::host_file;
use hopmap_formats::host_list::{self, HOST_NAMES, HostListError, is_host_name};
use hopmap_formats::host_names::HostNames;
use hopmap_model::SystemGraph;
use hopmap_text::FileError;
use miette::Report;

use crate::cli::output::Result;

/// GPUs of a host, if nothing says how many.
const USUAL_GPUS: u32 = 8;
/// Bytes of a file with hosts.
const MOST_BYTES: u64 = 1 << 26;

/// Hosts in their present order.
pub(super) struct Hosts {
    pub(super) names: Vec<String>,
    /// Ranks on each of them.
    pub(super) gpus: u32,
}

impl Hosts {
    /// The hosts of a list or a file, or those of the Slurm job.
    pub(super) fn new(list: Option<&str>, file: Option<&Path>, gpus: Option<u32>) -> Result<Self> {
        if let Some(path) = file {
            return Self::of_file(path, gpus);
        }
        let of_job = std::env::var("SLURM_JOB_NODELIST").ok().filter(|list| !list.trim().is_empty());
        let Some(list) = list.map(str::to_owned).or(of_job) else {
            return refuse(
                "no hosts are given, and this is not a Slurm job",
                "name them in their present order: --hosts 'node[7,66,70,8]', or --hosts-file FILE",
            );
        };
        let names = match host_list::expand(&list) {
            Ok(names) => names,
            Err(error) => return refuse(format!("hosts: {error}"), error.hint),
        };
        let mut seen = HashSet::new();
        match names.iter().find(|host| !seen.insert(host.as_str())) {
            Some(host) => refuse(format!("the host `{host}` is listed twice"), "list every host once"),
            None => Self::checked(names, gpus.unwrap_or(USUAL_GPUS), "hosts"),
        }
    }

    /// A file has host lists, or hosts with their slots as for the launchers of MPI.
    fn of_file(path: &Path, gpus: Option<u32>) -> Result<Self> {
        let (text, place) = (hopmap_text::read_text(path, MOST_BYTES).map_err(Report::from)?, shown(path));
        let hosts = host_file::expand(text.trim_start_matches('\u{feff}'));
        let hosts = hosts.map_err(|HostListError { what, line, column, hint, .. }| {
            let error = FileError { column: Some(column), ..FileError::at(line, what, hint) };
            Failure::usage(error.in_file(path))
        })?;
        let slots = hosts.first().and_then(|(_, slots)| *slots);
        if let Some((other, of_other)) = hosts.iter().find(|(_, other)| *other != slots) {
            let (first, slots, of_other) = (&hosts[0].0, slots.unwrap_or(1), of_other.unwrap_or(1));
            let problem = format!("{place}: `{first}` has {slots} slots, but `{other}` has {of_other}");
            return refuse(
                problem,
                "every host of a job has as many ranks: list each once, or with the same slots",
            );
        }
        match (slots, gpus) {
            (Some(slots), Some(gpus)) if slots != gpus => refuse(
                format!("{place} gives every host {slots} slots, but --gpus is {gpus}"),
                "omit --gpus to take the slots, or list the hosts without them",
            ),
            _ => {
                let names = hosts.into_iter().map(|(name, _)| name).collect();
                Self::checked(names, gpus.or(slots).unwrap_or(USUAL_GPUS), &place)
            }
        }
    }

    fn checked(names: Vec<String>, gpus: u32, place: &str) -> Result<Self> {
        match names.iter().find(|name| !is_host_name(name)) {
            Some(name) => {
                refuse(format!("{place}: `{}` is not a host name", name.escape_debug()), HOST_NAMES)
            }
            None if names.is_empty() => refuse(format!("{place}: no hosts are given"), "such as node[1-8]"),
            None => Ok(Self { names, gpus }),
        }
    }
}

/// Checks that the hosts of a stored topology have a slot for every rank. Imported ones get as many.
pub(super) fn check_slots(topology: &Path, hosts: &[String], gpus: u32) -> Result<()> {
    let Ok(system) = Folder::read::<SystemGraph>(topology) else { return Ok(()) };
    let known: Vec<(&str, u32)> =
        system.hosts().map(|(node, _, slots)| (system.nodes[node as usize].name.as_str(), slots)).collect();
    let names: HostNames = known.iter().map(|(name, _)| *name).collect();
    let found = hosts.iter().filter_map(|host| names.find(host)).map(|index| known[index]);
    match found.into_iter().find(|(_, slots)| *slots < gpus) {
        None => Ok(()),
        Some((host, slots)) => refuse(
            format!("{}: the host `{host}` has {slots} slots, too few for {gpus} ranks", shown(topology)),
            format!("give --gpus {slots}, or import the topology again with `-p slots={gpus}`"),
        ),
    }
}
