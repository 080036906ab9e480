//! The hosts of a job of Slurm, LSF, Grid Engine or PBS, and how many ranks it may start on each, as in its environment.

use std::collections::{HashMap, HashSet};

use hopmap_text::{FileError, counted, shown};

use crate::host_file::{self, HostFile, Hosts};
use crate::host_list;
use crate::slots::numbers;

/// Variables with the nodes of a Slurm job and of a step in it, as host lists.
pub const NODES: &str = "SLURM_JOB_NODELIST";
const STEP_NODES: &str = "SLURM_STEP_NODELIST";
/// Variables with the tasks and the processors of nodes, in their order: `2(x3),1`. In a step, `TASKS` may be those of the step.
const TASKS: &str = "SLURM_TASKS_PER_NODE";
const STEP_TASKS: &str = "SLURM_STEP_TASKS_PER_NODE";
const PROCESSORS: &str = "SLURM_JOB_CPUS_PER_NODE";
const PROCESSORS_PER_TASK: &str = "SLURM_CPUS_PER_TASK";
/// Variables with the GPUs of a node, and whether they list their numbers, `0,2-3`, rather than count them, `4` or `a100:4`.
const GPUS: [(&str, bool); 3] =
    [("SLURM_GPUS_ON_NODE", false), ("SLURM_GPUS_PER_NODE", false), ("SLURM_JOB_GPUS", true)];
/// Variables of LSF, Grid Engine and PBS, and whether they name a file.
const OTHERS: [(&str, bool); 3] = [("LSB_MCPU_HOSTS", false), ("PE_HOSTFILE", true), ("PBS_NODEFILE", true)];

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
    /// The GPUs of each host by every variable that says a number above 0.
    pub gpus: Vec<(&'static str, u32)>,
    /// What a user must hear of it.
    pub remarks: Vec<String>,
}

/// A variable of a job does not name its hosts or their slots.
#[derive(Debug, thiserror::Error)]
#[error("{variable} is `{}`: {problem}", shown(text))]
pub struct BatchJobError {
    variable: &'static str,
    text: String,
    problem: String,
    /// The way out.
    pub help: String,
}

impl BatchJob {
    /// The job in which this process runs, if it is in one.
    #[must_use]
    pub fn of_environment() -> Option<Result<Self, BatchJobError>> {
        Self::of(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty()))
    }

    /// The job with these variables. A Slurm job has at most the tasks of a node, or its processors if these are more. A step with
    /// several tasks has only its own nodes; one task is only this process, such as a shell, which may start others on all nodes.
    ///
    /// Sources: sbatch(1), srun(1), `env_array_for_step` of Slurm, `sge_pe(5)`, "Environment variables set for job execution" of LSF,
    /// the PBS Professional User's Guide.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Result<Self, BatchJobError>> {
        if let Some(list) = variable(NODES) {
            return Some(slurm(&list, &Variables(&variable)));
        }
        let (name, is_file) = *OTHERS.iter().find(|(name, _)| variable(name).is_some())?;
        Some(other(name, is_file, &variable(name).unwrap_or_default()))
    }

    /// Whether the slots are tasks rather than processors.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.slots_of != PROCESSORS
    }

    /// Whether it is a job of Slurm, whose launchers know the hosts by themselves.
    #[must_use]
    pub fn is_slurm(&self) -> bool {
        [NODES, STEP_NODES].contains(&self.variable)
    }
}

/// Nodes and the tasks of each.
type Step = (Vec<String>, Vec<u32>);

/// The variables of a Slurm job.
struct Variables<'v>(&'v dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// The numbers of as many nodes as a variable names, if they are set.
    fn numbers(
        &self,
        variable: &'static str,
        of: &str,
        nodes: usize,
    ) -> Result<Option<Vec<u32>>, BatchJobError> {
        let Some(text) = (self.0)(variable) else { return Ok(None) };
        let problem = match numbers(&text) {
            Some(all) if all.len() == nodes => return Ok(Some(all)),
            Some(all) => format!("numbers of {}, but {of} has {nodes}", counted(all.len(), "node")),
            None => "no numbers above 0 such as 2(x3),1".to_owned(),
        };
        let help = format!("unset {variable}, or name the hosts and the slots of each");
        Err(BatchJobError { variable, text, problem, help })
    }

    /// Whether the step is a batch script or the shell of salloc (above `SLURM_MAX_NORMAL_STEP_ID`).
    fn is_shell(&self) -> bool {
        (self.0)("SLURM_STEP_ID").is_some_and(|id| id.trim().parse::<u32>().is_ok_and(|id| id > 0xffff_fff0))
    }

    /// The nodes of the step and their tasks, if these variables are of a step of this job: sbatch passes on those of its caller.
    fn step(&self, job: &[String]) -> Result<Option<Step>, BatchJobError> {
        let Some(list) = (self.0)(STEP_NODES) else { return Ok(None) };
        let nodes = nodes(STEP_NODES, &list)?;
        let of_job: HashSet<&String> = job.iter().collect();
        if !nodes.iter().all(|node| of_job.contains(node)) {
            return Ok(None);
        }
        let tasks = self.numbers(STEP_TASKS, STEP_NODES, nodes.len())?;
        Ok(tasks.map(|tasks| (nodes, tasks)))
    }
}

fn fault(variable: &'static str, text: &str) -> impl FnOnce(FileError) -> BatchJobError {
    move |error| {
        let help = error.help_text().to_owned();
        BatchJobError { variable, text: text.to_owned(), problem: error.to_string(), help }
    }
}

fn nodes(variable: &'static str, list: &str) -> Result<Vec<String>, BatchJobError> {
    host_list::expand(list).map_err(|error| error.in_file("".as_ref())).map_err(fault(variable, list))
}

fn slurm(list: &str, variables: &Variables<'_>) -> Result<BatchJob, BatchJobError> {
    let of_job = nodes(NODES, list)?;
    let per_task = variables.numbers(PROCESSORS_PER_TASK, "a task", 1)?.map_or(1, |all| all[0]);
    let processors = variables.numbers(PROCESSORS, NODES, of_job.len())?.unwrap_or_default();
    let per_node = |number: u32| (number / per_task).max(1);
    let processors: HashMap<String, u32> =
        of_job.iter().cloned().zip(processors.into_iter().map(per_node)).collect();
    let (variable, names, tasks, tasks_of) = match variables.step(&of_job)? {
        Some((nodes, tasks)) if tasks != [1] && !variables.is_shell() => {
            (STEP_NODES, nodes, Some(tasks), STEP_TASKS)
        }
        // The tasks are those of the step, unless srun has left them.
        Some(_) if (variables.0)(TASKS) == (variables.0)(STEP_TASKS) => (NODES, of_job, None, TASKS),
        _ => {
            let tasks = variables.numbers(TASKS, NODES, of_job.len())?;
            (NODES, of_job, tasks, TASKS)
        }
    };
    let slots_of = if tasks.is_none() && !processors.is_empty() { PROCESSORS } else { tasks_of };
    let mut most = Vec::with_capacity(names.len());
    let host = |(node, name): (usize, String)| {
        let (tasks, processors) = (tasks.as_ref().map(|tasks| tasks[node]), processors.get(&name).copied());
        most.push(tasks.max(processors));
        (name, tasks.or(processors))
    };
    let hosts = names.into_iter().enumerate().map(host).collect();
    let components = (variables.0)("SLURM_HET_SIZE").filter(|size| size.trim() != "1");
    let is_part = |size| {
        format!(
            "the job has {size} components, and only the hosts of this one are used: name all with `hosts`"
        )
    };
    let remarks = components.map(is_part).into_iter().collect();
    let known = |(name, is_list): (&'static str, bool)| Some((name, gpus(&(variables.0)(name)?, is_list)?));
    let gpus = GPUS.into_iter().filter_map(known).collect();
    Ok(BatchJob { variable, slots_of, hosts, most, gpus, remarks })
}

/// The number of GPUs that are counted or listed.
fn gpus(text: &str, is_list: bool) -> Option<u32> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let part = |part: &str| match part.split_once('-') {
        _ if !is_list => number(part.rsplit(':').next()?),
        Some((first, last)) => number(last)?.checked_sub(number(first)?)?.checked_add(1),
        None => number(part).map(|_| 1),
    };
    let all = text.split(',').map(part).try_fold(0u32, |all, more| all.checked_add(more?));
    all.filter(|&all| all > 0)
}

fn other(variable: &'static str, is_file: bool, text: &str) -> Result<BatchJob, BatchJobError> {
    let hosts = match is_file {
        true => host_file::read(text.trim().as_ref()),
        false => host_file::expand(text).map_err(|error| error.in_file("".as_ref())),
    };
    let HostFile { hosts, remarks, .. } = hosts.map_err(fault(variable, text))?;
    let most = vec![None; hosts.len()];
    Ok(BatchJob { variable, slots_of: variable, hosts, most, gpus: Vec::new(), remarks })
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
        for (tasks, expected) in [("2(x4)", [2; 4]), ("4,1,3,1", [4, 1, 3, 1]), ("4(x3),3", [4, 4, 4, 3])] {
            assert_eq!(slots(&[(NODES, "n[1-4]"), (TASKS, tasks)]), expected.map(Some), "{tasks}");
        }
        let unknown = job(&[(NODES, "n[1-2],m7")]);
        assert_eq!(unknown.hosts, ["n1", "n2", "m7"].map(|name| (name.to_owned(), None)));
        assert_eq!(unknown.most, [None; 3]);
    }

    #[test]
    fn gpus_of_a_job_are_what_its_variables_say() {
        let of = |text| job(&[(NODES, "n1"), (GPUS[0].0, text)]).gpus.first().map(|gpus| gpus.1);
        assert_eq!(
            ["4", "a100:4", "a100:2,v100:1", "0", "gpu"].map(of),
            [Some(4), Some(4), Some(3), None, None]
        );
        let of = |text| job(&[(NODES, "n1"), (GPUS[2].0, text)]).gpus.first().map(|gpus| gpus.1);
        assert_eq!(["0,1,2,3", "0-2,7", "3-1", "0-4294967295"].map(of), [Some(4), Some(4), None, None]);
    }

    /// Its other hosts were left out without a word.
    #[test]
    fn a_component_of_a_job_is_said() {
        let remarks = |size| job(&[(NODES, "n[1-2]"), ("SLURM_HET_SIZE", size)]).remarks;
        assert!(remarks("1").is_empty() && remarks("2")[0].starts_with("the job has 2 components"));
    }

    /// They were ignored, and ranks went to processors instead.
    #[test]
    fn numbers_that_are_not_those_of_the_nodes_are_refused() {
        let message = |name: &str, text: &str| {
            let known = |variable: &str| match variable {
                NODES => Some("n[1-4]".to_owned()),
                _ => (variable == name).then(|| text.to_owned()),
            };
            BatchJob::of(known).unwrap().unwrap_err().to_string()
        };
        for name in [TASKS, PROCESSORS, PROCESSORS_PER_TASK] {
            for text in ["2(x99999999999)", "0(x4)", "2(4)", "2(x4", "many", "2(x3),", "99999999999", "-1"] {
                let expected = format!("{name} is `{text}`: no numbers above 0 such as 2(x3),1");
                assert_eq!(message(name, text), expected);
            }
        }
        for (text, has) in [("2(x3)", "3 nodes"), ("2(x5)", "5 nodes"), ("2", "1 node")] {
            let expected = format!("{TASKS} is `{text}`: numbers of {has}, but {NODES} has 4");
            assert_eq!(message(TASKS, text), expected);
        }
    }

    /// srun of Slurm 22.05 sets these, and `TASKS` unless it has `--preserve-env`.
    #[test]
    fn a_step_has_its_own_nodes_and_tasks() {
        let step_of = |id, nodes, tasks, tasks_of_job| {
            let job = job(&[
                (NODES, "n[1-4]"),
                (PROCESSORS, "8(x3),4"),
                ("SLURM_STEP_ID", id),
                (STEP_NODES, nodes),
                (STEP_TASKS, tasks),
                (TASKS, tasks_of_job),
            ]);
            assert!(job.is_slurm());
            let hosts: Vec<String> =
                job.hosts.iter().map(|(name, slots)| format!("{name} {}", slots.unwrap())).collect();
            (hosts.join(" "), job.slots_of)
        };
        let step = |nodes, tasks, tasks_of_job| step_of("0", nodes, tasks, tasks_of_job);
        for of_job in ["2,3", "6(x4)"] {
            assert_eq!(step("n[3-4]", "2,3", of_job), ("n3 2 n4 3".to_owned(), STEP_TASKS));
        }
        // Other ranks do not start in a task such as a shell.
        assert_eq!(step("n1", "1", "1"), ("n1 8 n2 8 n3 8 n4 4".to_owned(), PROCESSORS));
        assert_eq!(step("n1", "1", "6(x3),3"), ("n1 6 n2 6 n3 6 n4 3".to_owned(), TASKS));
        assert_eq!(step_of("4294967290", "n1", "6", "6(x3),3"), ("n1 6 n2 6 n3 6 n4 3".to_owned(), TASKS));
        // A step of another job started this one.
        assert_eq!(step("m[1-9]", "4(x9)", "6(x3),3"), ("n1 6 n2 6 n3 6 n4 3".to_owned(), TASKS));
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
        assert!(
            missing.unwrap_err().to_string().starts_with("PBS_NODEFILE is `/none`: /none: cannot be read: ")
        );
    }
}
