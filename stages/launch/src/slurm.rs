//! Slurm's host file for `srun -m arbitrary`.

use hopmap_model::{LaunchFile, Mapping};

use crate::LaunchError;
use crate::hosts::{host_per_line, hosts_of_ranks};

/// The file behind `SLURM_HOSTFILE`: task `i` of `srun -m arbitrary` runs on the host of line `i`.
///
/// Slurm decides on which cores of the host. Works inside an allocation that has the hosts and without one.
/// With `--mpi=pmi2` MPICH 4.0.2 used no shared memory between ranks placed like this (Slurm 22.05, nodes emulated on
/// one machine).
///
/// Format: srun(1), `--distribution=arbitrary`; comments tried with Slurm 22.05.
pub fn slurm_hostfile(mapping: &Mapping, digest: &str) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    Ok(LaunchFile {
        name: "slurm-hostfile".into(),
        text: host_per_line(digest, &hosts),
        command: format!("SLURM_HOSTFILE={{file}} srun -m arbitrary -n {} {{program}}", hosts.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::mapping;

    #[test]
    fn rank_i_is_on_line_i() {
        let file = slurm_hostfile(&mapping(&["a", "b"], 2, &[2, 0, 3]), "d1").unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\na\nb\n");
        assert_eq!(file.command, "SLURM_HOSTFILE={file} srun -m arbitrary -n 3 {program}");
    }
}
