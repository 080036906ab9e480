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
/// like hwloc. Tested with Hydra 4.0.2, and Slurm 22.05 with `task/affinity`, and Flux 0.88; Intel MPI by its documentation.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::mapping;

    #[test]
    fn every_launcher_has_its_file_and_its_command() {
        let mapping = mapping(&["n1", "n2"], 2, &[2, 0, 1, 3]);
        let expected = [
            (
                "open-mpi-4",
                "mpirun -n 4 --rankfile {file} {program}",
                "rank 0=n2 slot=0 | rank 1=n1 slot=0 | rank 2=n1 slot=1 | rank 3=n2 slot=1",
            ),
            (
                "open-mpi-5",
                "mpirun -n 4 --host n1:2,n2:2 --map-by rankfile:file={file} {program}",
                "rank 0=n2 slot=0 | rank 1=n1 slot=0 | rank 2=n1 slot=1 | rank 3=n2 slot=1",
            ),
            ("mpich", "mpiexec.hydra -launcher ssh -f {file} -n 4 {program}", "n2 | n1 | n1 | n2"),
            (
                "intel-mpi",
                "mpiexec.hydra -bootstrap ssh -machinefile {file} -genv I_MPI_PIN_PROCESSOR_LIST allcores -n 4 {program}",
                "n2:1 | n1:2 | n2:1",
            ),
            ("slurm", "SLURM_HOSTFILE={file} srun -m arbitrary -n 4 {program}", "n2 | n1 | n1 | n2"),
            (
                "cray-slurm",
                "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -m block:block --cpu-bind=cores -N 2 -n 4 --ntasks-per-node=2 {program}",
                "1,2 | 0,3",
            ),
            (
                "cray-pals",
                "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} mpiexec -n 4 --ppn 2 --cpu-bind core --hosts n1,n2 {program}",
                "1,2 | 0,3",
            ),
            (
                "flux",
                "flux run -N 2 -n 4 --exclusive --requires=hosts:n1,n2 --taskmap=hostfile:{file} {program}",
                "n2 | n1 | n1 | n2",
            ),
            ("fujitsu", "mpiexec -n 4 --vcoordfile {file} {program}", "(2) | (1) | (1) | (2)"),
        ];
        for (launch, command, text) in expected {
            let launch = serde_json::from_value(launch.into()).unwrap();
            let file = launch_file(&mapping, "d", launch, false).unwrap();
            let lines: Vec<&str> = file.text.lines().filter(|line| !line.starts_with('#')).collect();
            assert_eq!((file.command.as_str(), lines.join(" | ").as_str()), (command, text));
        }
    }

    #[test]
    fn commands_bind_where_one_list_of_cores_fits_all_hosts() {
        let command = |launch: &str, taken: &[u32]| {
            let mapping = mapping(&["a", "b"], 3, taken);
            let launch = serde_json::from_value(launch.into()).unwrap();
            launch_file(&mapping, "d", launch, true)
                .map_or_else(|error| error.to_string(), |file| file.command)
        };
        let hydra = "mpiexec.hydra -launcher ssh -f {file} -bind-to";
        assert_eq!(command("mpich", &[3, 4, 0]), format!("{hydra} core -n 3 {{program}}"));
        assert_eq!(command("mpich", &[5, 3, 2]), format!("{hydra} user:2,0 -n 3 {{program}}"));
        let slurm = "SLURM_HOSTFILE={file} srun -m arbitrary --cpu-bind=map_cpu";
        assert_eq!(command("slurm", &[5, 2, 3]), format!("{slurm}:2,0 -n 3 {{program}}"));
        assert!(command("flux", &[5, 2, 3]).contains(" '--setopt=cpu-affinity=map:2;0' "));
        assert!(command("intel-mpi", &[5, 2, 3]).contains(" I_MPI_PIN_PROCESSOR_LIST 2,0 -n 3 "));
        let problem = "rank number 0 of one host is on core 2, that of another on core 0, which this launcher cannot bind";
        assert_eq!(command("mpich", &[5, 2, 3]), problem);
        assert_eq!(command("open-mpi-4", &[5, 2, 3]), "mpirun -n 3 --rankfile {file} {program}");
        assert!(command("open-mpi-hosts", &[5, 2, 3]).starts_with("Open MPI does not bind"));
    }
}
