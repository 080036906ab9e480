//! The hosts of a training job in their present order, and how many ranks each has.

use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_command::{refuse, shown};
use hopmap_formats::batch_job::BatchJob;
use hopmap_formats::host_list::{help_on_name, is_host_name};
use hopmap_formats::host_names::HostNames;
use hopmap_model::SystemGraph;

use crate::cli::hosts::{Hosts, NamedHosts};
use crate::cli::output::{Output, Result};

/// GPUs of a host, if nothing says how many.
const USUAL_GPUS: u32 = 8;

/// The hosts of a list or a file, whose slots are the ranks of each, or those of the job with its GPUs or tasks.
pub(super) fn hosts(named: NamedHosts, gpus: Option<u32>, output: Output) -> Result<Hosts> {
    let NamedHosts { place, hosts, job } = named;
    let slots = match &job {
        Some(job) => slots_of_job(job, &place, gpus, output)?,
        None => slots(&place, &hosts, gpus)?,
    };
    if let Some((name, _)) = hosts.iter().find(|(name, _)| !is_host_name(name)) {
        return refuse(format!("{place}: `{}` is not a host name", name.escape_debug()), help_on_name(name));
    }
    let gpus = gpus.or(slots).unwrap_or(USUAL_GPUS);
    let hosts = hosts.into_iter().map(|(name, _)| (name, gpus)).collect();
    Ok(Hosts { hosts, is_job: job.as_ref().is_some_and(BatchJob::is_slurm) })
}

/// The GPUs of every host of a job, or else its tasks, of which there often is one for a host. What contradicts is said.
fn slots_of_job(job: &BatchJob, place: &str, given: Option<u32>, output: Output) -> Result<Option<u32>> {
    let known = |(name, gpus): &(&'static str, u32)| (*name, *gpus, gpus.to_string());
    let mut known: Vec<_> = job.gpus.iter().map(known).collect();
    let tasks = || job.hosts.iter().filter_map(|(_, tasks)| *tasks);
    if let Some((fewest, most)) = tasks().min().zip(tasks().max())
        && job.has_tasks()
        && most > 1
    {
        if given.is_none() && known.is_empty() {
            slots(place, &job.hosts, None)?;
        }
        let text = if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
        known.push((job.slots_of, fewest, text));
    }
    let first = known.first().map(|(name, ranks, _)| (*name, *ranks));
    let Some((variable, ranks)) = given.map(|given| ("--gpus", given)).or(first) else {
        return Ok(None);
    };
    let others = known.iter().filter(|(_, _, other)| *other != ranks.to_string());
    let others = others.map(|(name, _, other)| (name, other));
    let but = others.map(|(name, other)| format!(", but {name} says {other}")).collect::<Vec<_>>().concat();
    if given.is_none() || !but.is_empty() {
        output.note(format_args!("ranks on every host: {ranks}, as {variable} says{but}"));
    }
    Ok(Some(ranks))
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
            format!("{place}: `{first}` has {} slots, but `{other}` has {}", known(*slots), known(*of_other)),
            format!("every host of a job has as many ranks: give --gpus {}", known(*slots)),
        ),
        (Some(slots), Some(gpus), _) if *slots < gpus => refuse(
            format!("{place} gives `{first}` {slots} slots, but --gpus is {gpus}"),
            "omit --gpus to take the slots, or list the hosts without them",
        ),
        _ => Ok(*slots),
    }
}

/// Checks that the hosts of a stored topology have a slot for every rank. Imported ones get as many.
pub(super) fn check_slots(topology: &Path, hosts: &Hosts) -> Result<()> {
    let Ok(system) = Folder::read::<SystemGraph>(topology) else { return Ok(()) };
    let known: Vec<(&str, u32)> =
        system.hosts().map(|(node, _, slots)| (system.nodes[node as usize].name.as_str(), slots)).collect();
    let names: HostNames = known.iter().map(|(name, _)| *name).collect();
    let gpus = hosts.most();
    let found = hosts.hosts.iter().filter_map(|(host, _)| names.find(host)).map(|index| known[index]);
    match found.into_iter().find(|(_, slots)| *slots < gpus) {
        None => Ok(()),
        Some((host, slots)) => refuse(
            format!("{}: the host `{host}` has {slots} slots, too few for {gpus} ranks", shown(topology)),
            format!("give --gpus {slots}, or import the topology again with `-p slots={gpus}`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It was 8 whatever the job had.
    #[test]
    fn ranks_of_a_job_are_its_gpus_or_else_its_tasks() {
        let (tasks, gpus) = ("SLURM_TASKS_PER_NODE", "SLURM_GPUS_ON_NODE");
        for (given, variables, expected) in [
            (None, &[][..], Some(None)),
            (None, &[(tasks, "1(x2)")], Some(None)),
            (None, &[(tasks, "1(x2)"), (gpus, "4")], Some(Some(4))),
            (None, &[(tasks, "6(x2)")], Some(Some(6))),
            (None, &[(tasks, "6(x2)"), ("SLURM_JOB_GPUS", "0-3")], Some(Some(4))),
            (Some(2), &[(tasks, "6,3"), (gpus, "4")], Some(Some(2))),
            (None, &[(tasks, "6,3"), (gpus, "4")], Some(Some(4))),
            (None, &[(tasks, "6,3")], None),
        ] {
            let known = [("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_JOB_CPUS_PER_NODE", "96(x2)")];
            let all = [&known, variables].concat();
            let find =
                |name: &str| all.iter().find(|(known, _)| *known == name).map(|known| known.1.to_owned());
            let job = BatchJob::of(find).unwrap().unwrap();
            let ranks = slots_of_job(&job, "the list", given, Output::new(false, true));
            assert_eq!(ranks.ok(), expected, "{variables:?}");
        }
    }
}
