//! The nodes of a Slurm job and the tasks of each, as in its environment.

use crate::host_list::{self, HostListError};

/// Variable with the nodes of a job, as a host list.
pub const NODES: &str = "SLURM_JOB_NODELIST";
/// Variable with the tasks per node, in the order of the nodes: `2(x3),1`.
pub const TASKS: &str = "SLURM_TASKS_PER_NODE";

/// Names of hosts, and the slots of each as far as they are known.
pub type Hosts = Vec<(String, Option<u32>)>;

/// The nodes of a job, and how many tasks it may start on each; unknown where the numbers are not those of these nodes,
/// as in a step on some of them.
///
/// Source: sbatch(1), output environment variables.
pub fn nodes(list: &str, tasks: Option<&str>) -> Result<Hosts, HostListError> {
    let names = host_list::expand(list)?;
    let tasks = tasks.and_then(|tasks| counts(tasks, names.len())).unwrap_or_else(|| vec![None; names.len()]);
    Ok(names.into_iter().zip(tasks).collect())
}

/// The nodes of the job in which this process runs; none outside of a job.
#[must_use]
pub fn of_environment() -> Option<Result<Hosts, HostListError>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
    Some(nodes(&variable(NODES)?, variable(TASKS).as_deref()))
}

/// Numbers of tasks, if there is one for every node.
fn counts(text: &str, nodes: usize) -> Option<Vec<Option<u32>>> {
    let mut counts = Vec::new();
    for part in text.trim().split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let count = count.parse().ok().filter(|&count: &u32| count > 0)?;
        if times > nodes - counts.len() {
            return None;
        }
        counts.resize(counts.len() + times, Some(count));
    }
    (counts.len() == nodes).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(list: &str, tasks: &str) -> Vec<Option<u32>> {
        nodes(list, Some(tasks)).unwrap().into_iter().map(|(_, tasks)| tasks).collect()
    }

    #[test]
    fn every_node_of_a_job_has_its_tasks() {
        assert_eq!(tasks("n[1-4]", "2(x4)"), [Some(2); 4]);
        assert_eq!(tasks("n1", "16"), [Some(16)]);
        assert_eq!(tasks("n[1-3]", "4,1,3"), [Some(4), Some(1), Some(3)]);
        assert_eq!(tasks("n[1-4]", "2(x3),1"), [Some(2), Some(2), Some(2), Some(1)]);
        let named = nodes("n[1-2],m7", None).unwrap();
        assert_eq!(named, ["n1", "n2", "m7"].map(|name| (name.to_owned(), None)));
    }

    #[test]
    fn numbers_that_are_not_those_of_the_nodes_are_unknown() {
        for text in ["2(x3)", "2(x5)", "2(x99999999999)", "2,2,2,2,2", "0(x4)", "2(4)", "2(x4", "", "many"] {
            assert_eq!(tasks("n[1-4]", text), [None; 4], "{text}");
        }
    }
}
