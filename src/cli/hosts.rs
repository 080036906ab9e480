//! The hosts of a command, and the slots of each: named, in a file, or those of the job in which it runs.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Failure, refuse, shown};
use hopmap_formats::batch_job::BatchJob;
use hopmap_formats::host_file::{self, WITHOUT_SLOTS};
use hopmap_formats::host_names::named_twice;
use hopmap_formats::slots::{SLOTS, Slots};
use hopmap_model::Mapping;

use super::output::{Output, Result};

/// Options that name hosts.
#[derive(Debug, Clone, Args)]
pub(super) struct HostArguments {
    /// Hosts, such as node[1-8], or with the slots of each: a:8,b:4 [default: those of the Slurm, LSF, Grid Engine or PBS job].
    #[arg(long, value_name = "LIST")]
    hosts: Option<String>,
    /// Host file of a launcher or batch system: host lists, `node1 slots=8`, a line for every slot.
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    hosts_file: Option<PathBuf>,
}

/// Options that name hosts and their slots, and say how many ranks run there.
#[derive(Debug, Clone, Args)]
pub(super) struct AllocationArguments {
    #[command(flatten)]
    hosts: HostArguments,
    /// Slots of each host: a number, or a list such as 8,4,4 [default: those of the hosts file, or the tasks per node of the job].
    #[arg(long, value_name = "COUNT", value_parser = slots)]
    slots: Option<Slots>,
    /// Number of ranks [default: one for every slot].
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
}

fn slots(text: &str) -> std::result::Result<Slots, String> {
    text.parse().and_then(|slots: Slots| if slots.is_empty() { Err(SLOTS.to_owned()) } else { Ok(slots) })
}

impl AllocationArguments {
    /// The hosts that are named, else those of a mapping, else those of the job; and as many ranks as are given, as the mapping has, or
    /// as there are slots.
    pub(super) fn allocation(&self, mapping: Option<&Mapping>, output: Output) -> Result<Allocation> {
        let is_named = self.hosts.hosts.is_some() || self.hosts.hosts_file.is_some();
        let hosts = match mapping.filter(|_| !is_named) {
            Some(mapping) => Hosts::of_mapping(mapping),
            None => {
                let slots = self.slots.clone().unwrap_or_default();
                Hosts::new(self.hosts.named(output)?, &slots, self.hosts.hosts.is_some())?
            }
        };
        let ranks = self.ranks.or(mapping.map(|mapping| mapping.ranks.len() as u32));
        let ranks = ranks.map_or(hosts.slots(), u64::from);
        hosts.check_room(ranks, "give fewer --ranks, more --slots or more hosts")?;
        Ok(Allocation { hosts, ranks: u32::try_from(ranks).unwrap_or(u32::MAX) })
    }
}

/// Hosts, and the number of ranks that run on their slots.
pub(super) struct Allocation {
    pub(super) hosts: Hosts,
    pub(super) ranks: u32,
}

/// Hosts as they are named.
pub(super) struct NamedHosts {
    /// The option, file or variable.
    pub(super) place: String,
    /// Every host once, and its slots where they are known.
    pub(super) hosts: host_file::Hosts,
    /// The job whose hosts they are.
    pub(super) job: Option<BatchJob>,
}

impl HostArguments {
    /// The hosts of the list or the file, or those of the job.
    pub(super) fn named(&self, output: Output) -> Result<NamedHosts> {
        named(self.hosts.as_deref(), self.hosts_file.as_deref(), output)
    }
}

fn named(list: Option<&str>, file: Option<&Path>, output: Output) -> Result<NamedHosts> {
    let named = match (list, file, BatchJob::of_environment()) {
        (Some(list), ..) => {
            let place = format!("hosts `{list}`");
            match host_file::expand_list(list) {
                Ok(hosts) => NamedHosts { place, hosts, job: None },
                Err(error) => return refuse(format!("{place}: {error}"), error.hint),
            }
        }
        (None, Some(path), _) => {
            let file = host_file::read(path).map_err(Failure::usage)?;
            for remark in file.remarks {
                output.note(format_args!("{}: {remark}", shown(path)));
            }
            NamedHosts { place: shown(path), hosts: file.hosts, job: None }
        }
        (None, None, Some(Ok(job))) => {
            let (place, hosts) = (format!("the list {}", job.variable), job.hosts.clone());
            job.remarks.iter().for_each(|remark| output.note(format_args!("{place}: {remark}")));
            NamedHosts { place, hosts, job: Some(job) }
        }
        (None, None, Some(Err(error))) => return refuse(error.to_string(), error.help),
        (None, None, None) => {
            return refuse(
                "no hosts are given, and this is not a batch job",
                "name them in their order with --hosts, such as 'node[1-8]', or with --hosts-file; or start hopmap in a job",
            );
        }
    };
    let (place, hosts) = (&named.place, &named.hosts);
    let all: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(twice) = named_twice(&all) {
        return refuse(format!("{place} has {twice}"), "name every host once");
    }
    match hosts.is_empty() {
        true => refuse(format!("{place}: no hosts are given"), "for example node[1-8] or a,b,c"),
        false => Ok(named),
    }
}

/// Hosts in the order in which they were named, and the slots of each.
#[derive(Debug, PartialEq)]
pub(super) struct Hosts {
    pub(super) hosts: Vec<(String, u32)>,
    /// Whether the launcher knows them by itself.
    pub(super) is_job: bool,
}

impl Hosts {
    /// The slots that are given count more than those of the source, but a job starts no more ranks than it has room for.
    fn new(named: NamedHosts, slots: &Slots, is_list: bool) -> Result<Self> {
        let NamedHosts { place, hosts, job } = named;
        let given = match slots.of_hosts("--slots", &hosts, &place, is_list) {
            Ok(given) => given,
            Err(problem) => return refuse(problem, SLOTS),
        };
        let help = match hosts.iter().any(|(_, slots)| slots.is_some()) {
            true => WITHOUT_SLOTS,
            false => "give it with --slots",
        };
        let mut with_slots = Vec::with_capacity(hosts.len());
        for (index, ((host, known), given)) in hosts.into_iter().zip(given).enumerate() {
            let room = job.as_ref().and_then(|job| job.most[index]);
            if let (Some(given), Some(room)) = (given, room)
                && given > room
            {
                let problem = format!(
                    "--slots gives `{host}` {given} slots, but the job starts at most {room} ranks there"
                );
                let hint = "omit --slots to take the tasks of the job, or ask for more tasks per node";
                return refuse(problem, hint);
            }
            let Some(slots) = given.or(known) else {
                return refuse(format!("the number of slots of `{host}` is not known"), help);
            };
            with_slots.push((host, slots));
        }
        Ok(Self { hosts: with_slots, is_job: job.is_some_and(|job| job.is_slurm()) })
    }

    /// The hosts of a mapping.
    pub(super) fn of_mapping(mapping: &Mapping) -> Self {
        let hosts = mapping.hosts.iter().map(|host| (host.host.clone(), host.slots)).collect();
        Self { hosts, is_job: false }
    }

    /// Refuses more ranks than there are slots.
    pub(super) fn check_room(&self, ranks: u64, help: &str) -> Result<()> {
        let (slots, hosts) = (self.slots(), self.hosts.len());
        match ranks > slots {
            true => refuse(format!("{ranks} ranks do not fit into {slots} slots of {hosts} hosts"), help),
            false => Ok(()),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Slots of all hosts.
    pub(super) fn slots(&self) -> u64 {
        self.hosts.iter().map(|(_, slots)| u64::from(*slots)).sum()
    }

    /// Slots of the largest host.
    pub(super) fn most(&self) -> u32 {
        self.hosts.iter().map(|(_, slots)| *slots).max().unwrap_or_default()
    }

    /// The slots of each as a parameter: one number if all have as many.
    pub(super) fn slots_of_each(&self) -> toml::Value {
        let slots: Vec<u32> = self.hosts.iter().map(|(_, slots)| *slots).collect();
        if self.are_equal() { slots[0].into() } else { slots.into() }
    }

    /// Whether all hosts have as many slots.
    pub(super) fn are_equal(&self) -> bool {
        self.hosts.iter().all(|(_, slots)| *slots == self.hosts[0].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &str, count: &str) -> Option<Hosts> {
        let slots = if count.is_empty() { Slots::default() } else { slots(count).ok()? };
        Hosts::new(named(Some(list), None, Output::new(false, true)).ok()?, &slots, true).ok()
    }

    #[test]
    fn every_host_has_the_slots_of_the_option_or_its_own() {
        let equal = hosts("n[1-2],m", "3").unwrap();
        assert_eq!(equal.names(), ["n1", "n2", "m"]);
        assert_eq!(
            (equal.slots(), equal.most(), equal.slots_of_each(), equal.is_job),
            (9, 3, 3.into(), false)
        );
        for (list, slots) in [("n[1-2],m", "4,1,2"), ("n1:4,n2:1 m:2", ""), ("n1 4 n2 1 m 2", "")] {
            let uneven = hosts(list, slots).unwrap();
            assert_eq!((uneven.slots(), uneven.most(), uneven.are_equal()), (7, 4, false));
            assert_eq!(uneven.slots_of_each(), vec![4, 1, 2].into());
        }
        for (list, slots) in [
            ("n[1-", "1"),
            ("a,a", "1"),
            ("", "1"),
            ("a", ""),
            ("a", "0"),
            ("a,b", "1,2,3"),
            ("a:2,b:4", "2"),
            ("a,a.x", "1"),
        ] {
            assert!(hosts(list, slots).is_none(), "{list}");
        }
    }

    #[test]
    fn a_job_starts_no_more_than_it_has_room_for() {
        let job = |slots: &str| {
            let variable = |name: &str| match name {
                "SLURM_JOB_NODELIST" => Some("n[1-2]".to_owned()),
                "SLURM_TASKS_PER_NODE" => Some("4,2".to_owned()),
                _ => None,
            };
            let job = BatchJob::of(variable).unwrap().unwrap();
            let named = NamedHosts { place: String::new(), hosts: job.hosts.clone(), job: Some(job) };
            Hosts::new(named, &slots.parse().unwrap(), false)
                .ok()
                .map(|hosts| hosts.slots_of_each().to_string())
        };
        assert_eq!(["", "2", "3,1"].map(|slots| job(slots).unwrap()), ["[4, 2]", "2", "[3, 1]"]);
        assert_eq!(job("4"), None);
    }
}
