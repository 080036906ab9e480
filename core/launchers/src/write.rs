//! The file of each launcher.

use hopmap_model::{LaunchFile, Mapping};

use crate::error::LaunchError;
use crate::files::{
    cray_rank_order, hostfile, intel_machinefile, mpich_machinefile, pals_rank_order, rankfile, reordered,
    slurm_hostfile,
};
use crate::flux::flux_hostfile;
use crate::fujitsu::fujitsu_vcoordfile;
use crate::launch::Launch;

/// The file that a launcher reads, and the command; one that binds starts every rank on its core, where the launcher can do so.
///
/// Rank files always bind, and so do the commands of HPE Cray MPICH. The others take one list for all hosts: its i-th entry is the
/// core of the i-th rank of a host, or for Hydra of a proxy. `-bind-to core` binds the i-th rank to the i-th core by logical index.
/// The other lists have the numbers of the operating system, which are the logical indexes only where it numbers the processors
/// like hwloc. Tested with Hydra 4.0.2, and Slurm 22.05 with `task/affinity`; Intel MPI by its documentation.
pub fn launch_file(
    mapping: &Mapping,
    digest: &str,
    launch: Launch,
    binds: bool,
) -> Result<LaunchFile, LaunchError> {
    match launch {
        Launch::OpenMpi4 => rankfile(mapping, digest, false),
        Launch::OpenMpi5 => rankfile(mapping, digest, true),
        Launch::OpenMpiHosts | Launch::OpenMpi5Hosts if binds => {
            let problem = "Open MPI does not bind ranks to the cores of a host file";
            Err(LaunchError::new(problem, "use a rank file, or set `bind = false`"))
        }
        Launch::OpenMpiHosts => hostfile(mapping, digest, false),
        Launch::OpenMpi5Hosts => hostfile(mapping, digest, true),
        Launch::Mpich => mpich_machinefile(mapping, digest, binds),
        Launch::IntelMpi => intel_machinefile(mapping, digest, binds),
        Launch::Slurm => slurm_hostfile(mapping, digest, binds),
        Launch::CraySlurm => cray_rank_order(mapping, digest),
        Launch::CrayPals => pals_rank_order(mapping, digest),
        Launch::Flux => flux_hostfile(mapping, digest, binds),
        Launch::Fujitsu => fujitsu_vcoordfile(mapping),
        Launch::Reorder | Launch::ReorderMpich | Launch::ReorderSlurm => reordered(mapping, digest, launch),
    }
}
