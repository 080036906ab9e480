//! The hosts of a job of Slurm, LSF, Grid Engine or PBS, and how many ranks it may start on each, as in its environment.

use std::io::{Error, ErrorKind};
use std::path::Path;

use hopmap_model::read_input;

use crate::host_file::{self, Hosts};
use crate::host_list::{self, HostListError};
use crate::slots::numbers;

/// Variable with the nodes of a Slurm job, as a host list.
pub const NODES: &str = "SLURM_JOB_NODELIST";
/// Variables with the tasks and the processors of its nodes, in their order: `2(x3),1`.
pub const TASKS: &str = "SLURM_TASKS_PER_NODE";
const PROCESSORS: &str = "SLURM_JOB_CPUS_PER_NODE";
const PROCESSORS_PER_TASK: &str = "SLURM_CPUS_PER_TASK";
/// Variables of LSF, Grid Engine and PBS, and whether they name a file.
const OTHERS: [(&str, bool); 3] = [("LSB_MCPU_HOSTS", false), ("PE_HOSTFILE", true), ("PBS_NODEFILE", true)];
/// Most bytes of such a file.
const MAX_BYTES: u64 = 1 << 28;

/// What is set in a job, for messages.
pub const VARIABLES: &str = "SLURM_JOB_NODELIST, LSB_MCPU_HOSTS, PE_HOSTFILE or PBS_NODEFILE";

/// Hosts of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
    /// The variable that names them.
    pub variable: &'static str,
    /// What gives their slots.
    pub slots_of: &'static str,
    /// The hosts, and the slots of each where they are known.
    pub hosts: Hosts,
    /// How many ranks a host can have at most, if the batch system starts no more.
    pub most: Vec<Option<u32>>,
}

/// The variables of a job do not name its hosts.
#[derive(Debug, thiserror::Error)]
pub enum BatchJobError {
    /// A list or file is invalid.
    #[error("{list}")]
    List {
        /// The variable that holds or names it.
        variable: &'static str,
        /// What is wrong.
        list: Box<HostListError>,
    },
    /// A file cannot be read.
    #[error("cannot read `{file}`, which is ${variable}: {source}")]
    Read {
        /// The variable that names it.
        variable: &'static str,
        /// The file.
        file: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl BatchJob {
    /// The job in which this process runs, if it is in one.
    #[must_use]
    pub fn of_environment() -> Option<Result<Self, BatchJobError>> {
        Self::of(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty()))
    }

    /// The job with these variables. A Slurm job has at most the tasks of a node, or its processors if these are more.
    ///
    /// Sources: sbatch(1), `sge_pe(5)`, "Environment variables set for job execution" of LSF, the PBS Professional User's Guide.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Result<Self, BatchJobError>> {
        if let Some(list) = variable(NODES) {
            let job = |error| BatchJobError::List { variable: NODES, list: Box::new(error) };
            return Some(slurm(&list, variable).map_err(job));
        }
        let (name, is_file) = *OTHERS.iter().find(|(name, _)| variable(name).is_some())?;
        Some(other(name, is_file, variable(name).unwrap_or_default()))
    }

    /// Whether it is a job of Slurm, whose launchers know the hosts by themselves.
    #[must_use]
    pub fn is_slurm(&self) -> bool {
        self.variable == NODES
    }
}

/// The numbers of tasks are unknown where they are not those of the nodes, as in a step on some of them.
fn slurm(list: &str, variable: impl Fn(&str) -> Option<String>) -> Result<BatchJob, HostListError> {
    let names = host_list::expand(list)?;
    let of_nodes =
        |name: &str| variable(name).and_then(|text| numbers(&text)).filter(|all| all.len() == names.len());
    let per_task =
        variable(PROCESSORS_PER_TASK).and_then(|text| text.trim().parse().ok()).unwrap_or(1).max(1);
    let processors: Option<Vec<u32>> =
        of_nodes(PROCESSORS).map(|all| all.into_iter().map(|number| (number / per_task).max(1)).collect());
    let tasks = of_nodes(TASKS);
    let slots_of = if tasks.is_none() && processors.is_some() { PROCESSORS } else { TASKS };
    let at = |numbers: &Option<Vec<u32>>, node: usize| numbers.as_ref().map(|numbers| numbers[node]);
    let most = (0..names.len()).map(|node| at(&tasks, node).max(at(&processors, node))).collect();
    let tasks = tasks.or(processors);
    let hosts = names.into_iter().enumerate().map(|(node, name)| (name, at(&tasks, node))).collect();
    Ok(BatchJob { variable: NODES, slots_of, hosts, most })
}

fn other(variable: &'static str, is_file: bool, text: String) -> Result<BatchJob, BatchJobError> {
    let text = match is_file {
        true => read(text.trim().as_ref()).map_err(|source| BatchJobError::Read {
            variable,
            file: text,
            source,
        })?,
        false => text,
    };
    let hosts =
        host_file::expand(&text).map_err(|list| BatchJobError::List { variable, list: Box::new(list) })?;
    let most = vec![None; hosts.len()];
    Ok(BatchJob { variable, slots_of: variable, hosts, most })
}

fn read(path: &Path) -> std::io::Result<String> {
    String::from_utf8(read_input(path, MAX_BYTES)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> BatchJob {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        BatchJob::of(variable).unwrap().unwrap()
    }

    fn slots(variables: &[(&str, &str)]) -> Vec<Option<u32>> {
        job(variables).hosts.into_iter().map(|(_, slots)| slots).collect()
    }

    #[test]
    fn every_node_of_a_job_has_its_tasks() {
        for (list, tasks, expected) in [
            ("n[1-4]", "2(x4)", &[2, 2, 2, 2][..]),
            ("n1", "16", &[16]),
            ("n[1-3]", "4,1,3", &[4, 1, 3]),
            ("n[1-4]", "4(x3),3", &[4, 4, 4, 3]),
        ] {
            assert!(
                slots(&[(NODES, list), (TASKS, tasks)]).into_iter().flatten().eq(expected.iter().copied()),
                "{tasks}"
            );
        }
        let unknown = job(&[(NODES, "n[1-2],m7")]);
        assert_eq!(unknown.hosts, ["n1", "n2", "m7"].map(|name| (name.to_owned(), None)));
        assert_eq!(unknown.most, [None; 3]);
    }

    #[test]
    fn numbers_that_are_not_those_of_the_nodes_are_unknown() {
        for text in ["2(x3)", "2(x5)", "2(x99999999999)", "2,2,2,2,2", "0(x4)", "2(4)", "2(x4", "", "many"] {
            assert_eq!(slots(&[(NODES, "n[1-4]"), (TASKS, text)]), [None; 4], "{text}");
        }
    }

    #[test]
    fn processors_count_where_tasks_are_not_known_and_are_the_most_there_can_be() {
        let variables = [(NODES, "n[1-3]"), ("SLURM_JOB_CPUS_PER_NODE", "8(x2),4")];
        assert_eq!(slots(&variables), [Some(8), Some(8), Some(4)]);
        assert_eq!(
            slots(&[variables[0], variables[1], ("SLURM_CPUS_PER_TASK", "4")]),
            [Some(2), Some(2), Some(1)]
        );
        let both = job(&[variables[0], variables[1], (TASKS, "2(x3)")]);
        assert_eq!((both.hosts[2].1, &both.most[..]), (Some(2), &[Some(8), Some(8), Some(4)][..]));
    }

    #[test]
    fn other_batch_systems_name_hosts_and_slots() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        let path = file.to_str().unwrap();
        let named =
            |hosts: Hosts| assert_eq!(hosts, [("n1".to_owned(), Some(2)), ("n2".to_owned(), Some(1))]);
        named(job(&[("LSB_MCPU_HOSTS", "n1 2 n2 1 ")]).hosts);
        std::fs::write(&file, "n1\nn1\nn2\n").unwrap();
        named(job(&[("PBS_NODEFILE", path)]).hosts);
        std::fs::write(&file, "n1 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n").unwrap();
        named(job(&[("PE_HOSTFILE", path)]).hosts);
        let missing = BatchJob::of(|name| (name == "PBS_NODEFILE").then(|| "/none".to_owned())).unwrap();
        assert!(missing.unwrap_err().to_string().starts_with("cannot read `/none`, which is $PBS_NODEFILE"));
    }
}
