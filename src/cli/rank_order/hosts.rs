//! The hosts of a training job in their present order, and how many ranks each has.

use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_command::{refuse, shown};
use hopmap_formats::batch_job::BatchJob;
use hopmap_formats::host_list::{HOST_NAMES, is_host_name};
use hopmap_formats::host_names::HostNames;
use hopmap_model::SystemGraph;

use crate::cli::hosts::{NamedHosts, named};
use crate::cli::output::{Output, Result};

/// GPUs of a host, if nothing says how many.
const USUAL_GPUS: u32 = 8;

/// Hosts in their present order.
pub(super) struct Hosts {
    pub(super) names: Vec<String>,
    /// Ranks on each of them.
    pub(super) gpus: u32,
    /// Whether they are those of a Slurm job.
    pub(super) is_slurm: bool,
}

impl Hosts {
    /// The hosts of a list or a file, whose slots are the ranks of each, or those of the job, whose tasks are often one for a host.
    pub(super) fn new(
        list: Option<&str>,
        file: Option<&Path>,
        gpus: Option<u32>,
        output: Output,
    ) -> Result<Self> {
        let Some(NamedHosts { place, hosts, job }) = named(list, file, output)? else {
            return refuse(
                "no hosts are given, and this is not a batch job",
                "name them in their present order: --hosts 'node[7,66,70,8]', or --hosts-file FILE",
            );
        };
        let is_slurm = job.as_ref().is_some_and(BatchJob::is_slurm);
        let slots = if job.is_some() { None } else { Self::slots(&place, &hosts, gpus)? };
        let names: Vec<String> = hosts.into_iter().map(|(name, _)| name).collect();
        match names.iter().find(|name| !is_host_name(name)) {
            Some(name) => {
                refuse(format!("{place}: `{}` is not a host name", name.escape_debug()), HOST_NAMES)
            }
            None => Ok(Self { names, gpus: gpus.or(slots).unwrap_or(USUAL_GPUS), is_slurm }),
        }
    }

    /// The slots of every host, which have to suffice for the ranks if their number is given.
    fn slots(place: &str, hosts: &[(String, Option<u32>)], gpus: Option<u32>) -> Result<Option<u32>> {
        let known = |slots: Option<u32>| slots.unwrap_or(1);
        let Some((first, slots)) = hosts.iter().min_by_key(|(_, slots)| known(*slots)) else {
            return Ok(None);
        };
        let other = hosts.iter().find(|(_, other)| other != slots);
        match (slots, gpus, other) {
            (_, None, Some((other, of_other))) => refuse(
                format!(
                    "{place}: `{first}` has {} slots, but `{other}` has {}",
                    known(*slots),
                    known(*of_other)
                ),
                format!("every host of a job has as many ranks: give --gpus {}", known(*slots)),
            ),
            (Some(slots), Some(gpus), _) if *slots < gpus => refuse(
                format!("{place} gives `{first}` {slots} slots, but --gpus is {gpus}"),
                "omit --gpus to take the slots, or list the hosts without them",
            ),
            _ => Ok(*slots),
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
