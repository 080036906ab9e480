//! Launchers without a launch file: ranks on the hosts of a job or on named ones, in the order that the launcher chooses.

use crate::Launch;

/// Options that start ranks under the default placement of a launcher; `hosts` are those of the job if none are named.
///
/// Hosts and counts: mpirun(1) of Open MPI 4.1 and 5 (`--host a:2`), "Using Hydra" of MPICH (`-hosts a:2`), Intel MPI Library
/// Developer Reference (`-hosts`, `-ppn`), srun(1), mpiexec(1) of HPE PALS. Those of Intel MPI and PALS are not tried.
#[must_use]
pub fn default_options(launch: Launch, ranks: u32, slots: u32, hosts: &[String]) -> Vec<String> {
    let mut options = vec!["-n".to_owned(), ranks.to_string()];
    if hosts.is_empty() {
        return options;
    }
    let names = hosts.join(",");
    let with_slots = || hosts.iter().map(|host| format!("{host}:{slots}")).collect::<Vec<_>>().join(",");
    let slots = slots.to_string();
    let placement: Vec<String> = match launch {
        Launch::OpenMpi4 | Launch::OpenMpi5 | Launch::OpenMpiHosts => vec!["--host".to_owned(), with_slots()],
        Launch::Mpich => {
            ["-launcher", "ssh", "-hosts"].map(str::to_owned).into_iter().chain([with_slots()]).collect()
        }
        Launch::IntelMpi => {
            vec![
                "-bootstrap".to_owned(),
                "ssh".to_owned(),
                "-hosts".to_owned(),
                names,
                "-ppn".to_owned(),
                slots,
            ]
        }
        Launch::Slurm | Launch::CraySlurm => vec![
            "-w".to_owned(),
            names,
            "-N".to_owned(),
            hosts.len().to_string(),
            format!("--ntasks-per-node={slots}"),
        ],
        Launch::CrayPals => vec!["--ppn".to_owned(), slots, "--hosts".to_owned(), names],
    };
    options.extend(placement);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_starts_ranks_on_named_hosts() {
        let hosts = ["a".to_owned(), "b".to_owned()];
        let options = |launch| default_options(launch, 4, 2, &hosts).join(" ");
        assert_eq!(options(Launch::OpenMpi4), "-n 4 --host a:2,b:2");
        assert_eq!(options(Launch::Mpich), "-n 4 -launcher ssh -hosts a:2,b:2");
        assert_eq!(options(Launch::IntelMpi), "-n 4 -bootstrap ssh -hosts a,b -ppn 2");
        assert_eq!(options(Launch::Slurm), "-n 4 -w a,b -N 2 --ntasks-per-node=2");
        assert_eq!(options(Launch::CrayPals), "-n 4 --ppn 2 --hosts a,b");
        assert_eq!(default_options(Launch::Slurm, 4, 2, &[]).join(" "), "-n 4");
    }
}
