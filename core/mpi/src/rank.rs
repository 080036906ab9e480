//! This process as a rank: which of how many, and where.
//!
//! What launchers set was measured with Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05.8:
//!
//! | started by | rank | number of ranks |
//! |---|---|---|
//! | Open MPI's `mpirun`, in a job of Slurm too | `OMPI_COMM_WORLD_RANK`, `PMIX_RANK` | `OMPI_COMM_WORLD_SIZE` |
//! | MPICH's Hydra | `PMI_RANK` | `PMI_SIZE` |
//! | `srun --mpi=pmi2` | `PMI_RANK`, `SLURM_PROCID` | `PMI_SIZE`, `SLURM_STEP_NUM_TASKS` |
//! | `srun --mpi=pmix` (its source) | `PMIX_RANK`, `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` |
//! | `srun` | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` |
//!
//! Slurm's own variables come last: inside a job, ranks of an `mpirun` inherit those of the step that started its daemons, one a
//! node. A batch script has `SLURM_PROCID=0` as well and is no rank.

use std::env;

/// One of several processes that a launcher started together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from zero.
    pub rank: u32,
    /// How many there are, where the launcher says so.
    pub size: Option<u32>,
}

/// Largest number of a step that runs what a user wants; those above are batch scripts, shells of `salloc` and the like
/// (`SLURM_MAX_NORMAL_STEP_ID` of `slurm.h`).
const LAST_STEP: u32 = 0xffff_fff0;

impl Rank {
    /// The rank of this process; none if no launcher started it.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        Self::from(&variable)
    }

    fn from(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let is_step = number("SLURM_STEP_ID").is_some_and(|step| step < LAST_STEP);
        let is_of_slurm = variable("PMIX_NAMESPACE").is_some_and(|name| name.starts_with("slurm.pmix."));
        [
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true),
            ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", is_of_slurm),
            ("PMI_RANK", "PMI_SIZE", true),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true),
        ]
        .into_iter()
        .filter(|(rank, ..)| *rank != "SLURM_PROCID" || is_step)
        .find_map(|(rank, size, has_size)| {
            Some(Self { rank: number(rank)?, size: number(size).filter(|_| has_size) })
        })
    }
}

/// The name of this host: that of its Slurm node, which may be one of several on a machine, else what the operating system says.
#[must_use]
pub fn host_name() -> String {
    node(&variable).unwrap_or_else(system_host_name)
}

/// The name that the operating system has for this host.
#[must_use]
pub fn system_host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The node that Slurm says this process is on. Hydra in a batch script gives all ranks the variables of the script, and so the
/// name of the first node; it also sets `MPI_LOCALRANKID`, which nobody else does.
fn node(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    variable("SLURMD_NODENAME").filter(|_| variable("MPI_LOCALRANKID").is_none())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rank as variables such as `A=1 B=2` have it.
    fn rank(variables: &str) -> Option<(u32, Option<u32>)> {
        Rank::from(&lookup(variables)).map(|rank| (rank.rank, rank.size))
    }

    fn lookup(variables: &str) -> impl Fn(&str) -> Option<String> {
        let pairs: Vec<(String, String)> = variables
            .split_whitespace()
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        move |name| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn every_launcher_has_its_variables() {
        // As printed by the launchers, in a job of four nodes where Slurm is part of it.
        let step = "SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3";
        for (variables, expected) in [
            ("OMPI_COMM_WORLD_RANK=5 PMIX_RANK=5 OMPI_COMM_WORLD_SIZE=8", Some((5, Some(8)))),
            ("PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=2", Some((2, Some(3)))),
            (
                &format!("OMPI_COMM_WORLD_RANK=5 PMIX_RANK=5 OMPI_COMM_WORLD_SIZE=8 {step}"),
                Some((5, Some(8))),
            ),
            (&format!("PMI_RANK=5 PMI_SIZE=8 {step}"), Some((5, Some(8)))),
            (&format!("PMIX_RANK=3 PMIX_NAMESPACE=slurm.pmix.7.1 {step}"), Some((3, Some(4)))),
            // PRRTE alone: Slurm counts its daemons.
            (&format!("PMIX_RANK=5 PMIX_NAMESPACE=prterun-n1-2@1 {step}"), Some((5, None))),
            (step, Some((3, Some(4)))),
            ("", None),
            ("OMPI_COMM_WORLD_RANK=x", None),
        ] {
            assert_eq!(rank(variables), expected, "{variables}");
        }
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        assert_eq!(rank("SLURM_PROCID=0 SLURM_NTASKS=4"), None);
        for special in ["4294967290", "4294967291", "4294967292", "4294967293", "batch", ""] {
            assert_eq!(rank(&format!("SLURM_PROCID=0 SLURM_STEP_ID={special}")), None, "{special}");
        }
        // Its own mpirun starts ranks all the same.
        assert_eq!(rank("SLURM_PROCID=0 PMI_RANK=1 PMI_SIZE=2"), Some((1, Some(2))));
    }

    #[test]
    fn a_node_of_slurm_comes_before_the_host() {
        assert_eq!(node(&lookup("SLURMD_NODENAME=n2")), Some("n2".into()));
        assert_eq!(node(&lookup("SLURMD_NODENAME=n1 PMI_RANK=1 MPI_LOCALRANKID=0")), None);
        assert_eq!(node(&lookup("")), None);
        assert!(!system_host_name().is_empty());
    }
}
