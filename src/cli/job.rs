//! The hosts of a command, named or of the Slurm job in which it runs, and the time that is left of that job.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hopmap_command::refuse;
use hopmap_formats::{host_list, slurm_job};
use hopmap_model::Mapping;

use super::output::Result;
use crate::engine::time_left_of_job;

/// Host file that a command writes for hosts with different numbers of slots.
pub(super) const HOST_FILE: &str = "job.hosts";
/// A command has to be done this long before the job ends, which kills everything.
const MARGIN: Duration = Duration::from_secs(5);

/// Hosts in the order in which they were named, and the slots of each.
#[derive(Debug, PartialEq)]
pub(super) struct Hosts {
    pub(super) hosts: Vec<(String, u32)>,
    /// Whether the launcher knows them by itself.
    pub(super) is_job: bool,
}

impl Hosts {
    /// Those of a list with as many slots each, or those of the job, whose tasks per node are the slots unless a number is given.
    /// None where nothing names hosts.
    pub(super) fn new(list: Option<&str>, slots: Option<u32>) -> Result<Option<Self>> {
        let of_list =
            |text| host_list::expand(text).map(|hosts| hosts.into_iter().map(|name| (name, None)).collect());
        let named = match list {
            Some(text) => Some((of_list(text), format!("hosts `{text}`"))),
            None => {
                slurm_job::of_environment().map(|hosts| (hosts, format!("the list {}", slurm_job::NODES)))
            }
        };
        let Some((hosts, place)) = named else { return Ok(None) };
        let hosts: Vec<(String, Option<u32>)> = match hosts {
            Ok(hosts) => hosts,
            Err(error) => return refuse(format!("{place}: {error}"), "for example node[1-8] or a,b,c"),
        };
        let mut seen = HashSet::new();
        if let Some((host, _)) = hosts.iter().find(|(host, _)| !seen.insert(host.as_str())) {
            return refuse(format!("{place} has `{host}` twice"), "name every host once");
        }
        if hosts.is_empty() {
            return refuse(format!("{place} names no host"), "for example node[1-8] or a,b,c");
        }
        let with_slots = hosts.into_iter().map(|(host, tasks)| Some((host, slots.or(tasks)?)));
        match with_slots.collect() {
            Some(hosts) => Ok(Some(Self { hosts, is_job: list.is_none() })),
            None => refuse("the number of slots per host is not known", "give it with --slots"),
        }
    }

    /// The hosts of a mapping.
    pub(super) fn of_mapping(mapping: &Mapping) -> Self {
        let hosts = mapping.hosts.iter().map(|host| (host.host.clone(), host.slots)).collect();
        Self { hosts, is_job: false }
    }

    /// The text of a host file with the slots of each.
    pub(super) fn host_file(&self) -> String {
        let lines: Vec<String> =
            self.hosts.iter().map(|(name, slots)| format!("{name} slots={slots}")).collect();
        lines.join("\n") + "\n"
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

    /// Whether all hosts have as many slots.
    pub(super) fn are_equal(&self) -> bool {
        self.hosts.iter().all(|(_, slots)| *slots == self.hosts[0].1)
    }
}

/// When a command has to be done, and whether that is because its job ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) at: Instant,
    pub(super) is_of_job: bool,
}

impl End {
    /// The earlier of a deadline from now and the end of the Slurm job, as far as there is any.
    pub(super) fn new(deadline: Option<Duration>) -> Option<Self> {
        let now = Instant::now();
        let own = deadline.and_then(|time| now.checked_add(time)).map(|at| Self { at, is_of_job: false });
        let job =
            std::env::var("SLURM_JOB_ID").ok().and_then(|job| time_left_of_job(job.trim().parse().ok()?));
        let job = job.and_then(|left| now.checked_add(left.saturating_sub(MARGIN)));
        let job = job.map(|at| Self { at, is_of_job: true });
        own.into_iter().chain(job).min_by_key(|end| end.at)
    }

    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_the_slots_of_the_option() {
        let hosts = Hosts::new(Some("n[1-2],m"), Some(3)).ok().flatten().unwrap();
        assert_eq!(hosts.names(), ["n1", "n2", "m"]);
        assert_eq!((hosts.slots(), hosts.most(), hosts.are_equal(), hosts.is_job), (9, 3, true, false));
        for list in ["n[1-", "a,a", ""] {
            assert!(Hosts::new(Some(list), Some(1)).is_err(), "{list}");
        }
        assert!(Hosts::new(Some("a"), None).is_err());
    }

    #[test]
    fn slots_may_differ_between_hosts() {
        let hosts = Hosts { hosts: vec![("a".into(), 4), ("b".into(), 1)], is_job: true };
        assert_eq!((hosts.slots(), hosts.most(), hosts.are_equal()), (5, 4, false));
    }
}
