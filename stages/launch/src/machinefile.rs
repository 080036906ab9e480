//! Machine files of MPICH and Intel MPI.

use std::fmt::Write;

use hopmap_model::{LaunchFile, Mapping};

use crate::hosts::{heading, host_per_line, hosts_of_ranks};
use crate::{LaunchError, MachinefileStyle};

/// A machine file for Hydra, which gives out ranks line by line.
///
/// For MPICH it is the plain file of one host per line and rank (GraphHunter's). Hydra 4.0.2 puts every rank where the
/// file says as long as `-ppn` is not given. But a host that comes up again after another counts as a further node:
/// Hydra starts one more proxy there, and MPICH uses shared memory only among the ranks of one run of lines. Above eight
/// proxies per host Hydra's ssh launcher waits 15 seconds each time; `-launcher rsh -launcher-exec ssh` does not.
/// Open MPI has neither limit.
///
/// Intel MPI uses a host of `-f` once, however often it is repeated, but keeps the order of `host:count` lines of
/// `-machinefile` (Intel MPI Library Developer Reference, "Global Hydra Options"). Not tried: it cannot be had freely.
pub fn machinefile(
    mapping: &Mapping,
    digest: &str,
    style: MachinefileStyle,
) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let (text, option) = match style {
        MachinefileStyle::Mpich => (host_per_line(digest, &hosts), "-f"),
        MachinefileStyle::Intel => (host_counts(digest, &hosts), "-machinefile"),
    };
    Ok(LaunchFile {
        name: "machinefile".into(),
        text,
        command: format!("mpiexec.hydra {option} {{file}} -n {} {{program}}", hosts.len()),
    })
}

fn host_counts(digest: &str, hosts: &[&str]) -> String {
    let mut text = heading(digest);
    for run in hosts.chunk_by(|a, b| a == b) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}:{}", run[0], run.len());
    }
    text
}

/// Number of runs of ranks that follow each other on one host, and of hosts with ranks.
pub(crate) fn runs(mapping: &Mapping) -> (usize, usize) {
    let hosts: Vec<u32> = mapping.ranks.iter().map(|placement| placement.host).collect();
    let used: std::collections::HashSet<u32> = hosts.iter().copied().collect();
    (hosts.chunk_by(|a, b| a == b).count(), used.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::{lines, mapping, mappings};
    use proptest::prelude::*;

    #[test]
    fn mpich_reads_one_line_per_rank() {
        let mapping = mapping(&["a", "b"], 3, &[4, 3, 0, 5]);
        let file = machinefile(&mapping, "d1", MachinefileStyle::Mpich).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\nb\na\nb\n");
        assert_eq!(file.command, "mpiexec.hydra -f {file} -n 4 {program}");
        assert_eq!(runs(&mapping), (3, 2));
    }

    #[test]
    fn intel_reads_counts_of_consecutive_ranks() {
        let file =
            machinefile(&mapping(&["a", "b"], 3, &[4, 3, 0, 5]), "d1", MachinefileStyle::Intel).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb:2\na:1\nb:1\n");
        assert_eq!(file.command, "mpiexec.hydra -machinefile {file} -n 4 {program}");
    }

    proptest! {
        #[test]
        fn counts_unfold_to_the_host_of_every_rank(mapping in mappings()) {
            let file = machinefile(&mapping, "d", MachinefileStyle::Intel).unwrap();
            let read = lines(&file.text, "d").into_iter().flat_map(|line| {
                let (host, count) = line.split_once(':').unwrap();
                vec![host; count.parse().unwrap()]
            });
            let expected = (0..mapping.ranks.len()).map(|rank| mapping.host_of(rank));
            prop_assert_eq!(read.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
