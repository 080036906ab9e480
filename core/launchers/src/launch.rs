//! Launchers.

use hopmap_mpi_environment::Implementation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What starts an MPI program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// `mpirun` of Open MPI 4 with a rank file.
    #[default]
    #[serde(rename = "open-mpi-4")]
    OpenMpi4,
    /// `mpirun` of Open MPI 5 with a rank file.
    #[serde(rename = "open-mpi-5")]
    OpenMpi5,
    /// `mpirun` of Open MPI 4 with a host file, which leaves the cores to Open MPI.
    #[serde(rename = "open-mpi-hosts")]
    OpenMpiHosts,
    /// `mpirun` of Open MPI 5 with a host file; it binds no rank.
    #[serde(rename = "open-mpi-5-hosts")]
    OpenMpi5Hosts,
    /// `mpiexec.hydra` of MPICH with a machine file.
    Mpich,
    /// `mpiexec.hydra` of Intel MPI with a machine file.
    IntelMpi,
    /// `srun -m arbitrary` with a host file.
    Slurm,
    /// `srun` with a rank order of HPE Cray MPICH.
    CraySlurm,
    /// `mpiexec` of HPE PALS with a rank order of HPE Cray MPICH.
    CrayPals,
    /// `flux run` with a host file of its task map.
    Flux,
    /// `mpiexec` of Fujitsu MPI with a file of node coordinates. The numbers in the name of a host are its coordinates in the job.
    Fujitsu,
    /// `mpirun` of Open MPI, whose ranks `hopmap reorder` renumbers: no launch file has to be obeyed.
    Reorder,
    /// `mpiexec.hydra` of MPICH with `hopmap reorder`.
    ReorderMpich,
    /// `srun` with `hopmap reorder`.
    ReorderSlurm,
}

impl Launch {
    /// Name of the launcher.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::OpenMpi4 | Self::OpenMpi5 | Self::OpenMpiHosts | Self::OpenMpi5Hosts | Self::Reorder => {
                "mpirun"
            }
            Self::Mpich | Self::IntelMpi | Self::ReorderMpich => "mpiexec.hydra",
            Self::Slurm | Self::CraySlurm | Self::ReorderSlurm => "srun",
            Self::CrayPals | Self::Fujitsu => "mpiexec",
            Self::Flux => "flux",
        }
    }

    /// Words that start it.
    #[must_use]
    pub fn words(self) -> Vec<String> {
        let command = (self == Self::Flux).then_some("run");
        std::iter::once(self.program()).chain(command).map(str::to_owned).collect()
    }

    /// What reads the file: it decides how variables reach the ranks. HPE's launchers and Flux hand the environment on, as Hydra
    /// does; Fujitsu MPI is a descendant of Open MPI.
    #[must_use]
    pub fn implementation(self) -> Implementation {
        match self {
            Self::OpenMpi4
            | Self::OpenMpi5
            | Self::OpenMpiHosts
            | Self::OpenMpi5Hosts
            | Self::Fujitsu
            | Self::Reorder => Implementation::OpenMpi,
            Self::Mpich | Self::CrayPals | Self::Flux | Self::ReorderMpich => Implementation::Mpich,
            Self::IntelMpi => Implementation::IntelMpi,
            Self::Slurm | Self::CraySlurm | Self::ReorderSlurm => Implementation::Slurm,
        }
    }

    /// Whether the file always names cores; that of any other launcher only decides the hosts of the ranks.
    #[must_use]
    pub fn chooses_cores(self) -> bool {
        matches!(self, Self::OpenMpi4 | Self::OpenMpi5 | Self::CraySlurm | Self::CrayPals)
            || self.is_reordered()
    }

    /// The same launcher with `hopmap reorder`; none if it is not tried.
    #[must_use]
    pub fn reordered(self) -> Option<Self> {
        match self {
            Self::OpenMpi4 | Self::OpenMpi5 | Self::OpenMpiHosts | Self::OpenMpi5Hosts => Some(Self::Reorder),
            Self::Mpich => Some(Self::ReorderMpich),
            Self::Slurm => Some(Self::ReorderSlurm),
            _ => None,
        }
    }

    /// Whether `hopmap reorder` renumbers the ranks, so that the launcher starts them under its default placement.
    #[must_use]
    pub fn is_reordered(self) -> bool {
        matches!(self, Self::Reorder | Self::ReorderMpich | Self::ReorderSlurm)
    }
}
