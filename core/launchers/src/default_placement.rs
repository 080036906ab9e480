//! Launchers without a launch file: ranks on the hosts of a job or on named ones, in the order that the launcher chooses.

use hopmap_mpi_environment::Implementation;

use crate::launch::Launch;

/// Options that start ranks under the default placement of a launcher on hosts with as many slots each; `hosts` are those of the job if
/// none are named. None if they have different numbers of slots, and the launcher takes one number for all.
///
/// Hosts and counts: mpirun(1) of Open MPI 4.1 and 5 (`--host a:2`), "Using Hydra" of MPICH (`-hosts a:2`), Intel MPI Library
/// Developer Reference (`-hosts`, `-ppn`), srun(1), mpiexec(1) of HPE PALS, flux-run(1). Those of Intel MPI, PALS and Fujitsu are not
/// tried.
#[must_use]
pub fn default_options(launch: Launch, ranks: u32, hosts: &[(String, u32)]) -> Option<Vec<String>> {
    let ranks = ranks.to_string();
    let all =
        |placement: &[&str]| ["-n", &ranks].iter().chain(placement).map(|&word| word.to_owned()).collect();
    let Some((_, slots)) = hosts.first() else { return Some(all(&[])) };
    let takes_each = launch.implementation() == Implementation::OpenMpi
        || matches!(launch, Launch::Mpich | Launch::ReorderMpich);
    if !takes_each && hosts.iter().any(|(_, other)| other != slots) {
        return None;
    }
    let listed = |text: fn(&(String, u32)) -> String| hosts.iter().map(text).collect::<Vec<_>>().join(",");
    let names = listed(|(host, _)| host.clone());
    let with_slots = listed(|(host, slots)| format!("{host}:{slots}"));
    let (count, slots) = (hosts.len().to_string(), slots.to_string());
    Some(match launch {
        Launch::OpenMpi4
        | Launch::OpenMpi5
        | Launch::OpenMpiHosts
        | Launch::OpenMpi5Hosts
        | Launch::Reorder => all(&["--host", &with_slots]),
        Launch::Mpich | Launch::ReorderMpich => all(&["-launcher", "ssh", "-hosts", &with_slots]),
        Launch::IntelMpi => all(&["-bootstrap", "ssh", "-hosts", &names, "-ppn", &slots]),
        Launch::Slurm | Launch::CraySlurm | Launch::ReorderSlurm => {
            all(&["-w", &names, "-N", &count, &format!("--ntasks-per-node={slots}")])
        }
        Launch::Flux => all(&["-N", &count, "--exclusive", &format!("--requires=hosts:{names}")]),
        // The job decides: no option takes names.
        Launch::Fujitsu => all(&[]),
        Launch::CrayPals => all(&["--ppn", &slots, "--hosts", &names]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_starts_ranks_on_named_hosts() {
        let hosts = |slots: [u32; 2]| [("a".to_owned(), slots[0]), ("b".to_owned(), slots[1])];
        let options = |launch| default_options(launch, 4, &hosts([2, 2])).unwrap().join(" ");
        assert_eq!(options(Launch::OpenMpi4), "-n 4 --host a:2,b:2");
        assert_eq!(options(Launch::Mpich), "-n 4 -launcher ssh -hosts a:2,b:2");
        assert_eq!(options(Launch::IntelMpi), "-n 4 -bootstrap ssh -hosts a,b -ppn 2");
        assert_eq!(options(Launch::Slurm), "-n 4 -w a,b -N 2 --ntasks-per-node=2");
        assert_eq!(options(Launch::CrayPals), "-n 4 --ppn 2 --hosts a,b");
        assert_eq!(options(Launch::Flux), "-n 4 -N 2 --exclusive --requires=hosts:a,b");
        assert_eq!(default_options(Launch::Slurm, 4, &[]).unwrap().join(" "), "-n 4");
        let uneven = |launch| default_options(launch, 4, &hosts([3, 1])).map(|options| options.join(" "));
        assert_eq!(uneven(Launch::OpenMpi4).unwrap(), "-n 4 --host a:3,b:1");
        assert_eq!(uneven(Launch::Mpich).unwrap(), "-n 4 -launcher ssh -hosts a:3,b:1");
        assert_eq!([Launch::Slurm, Launch::IntelMpi, Launch::CrayPals].map(uneven), [None, None, None]);
    }
}
