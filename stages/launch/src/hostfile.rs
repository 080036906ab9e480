//! Open MPI's host file, read by its sequential mapper.

use hopmap_model::{LaunchFile, Mapping};

use crate::LaunchError;
use crate::hosts::{check_for_open_mpi, host_per_line, hosts_of_ranks};

/// Open MPI's host file with one line per rank, for the sequential mapper: rank `i` runs on the host of line `i`.
///
/// There is no form with `slots=`: it adds up the slots of repeated lines, so that it has no order of ranks, and when
/// `mpirun` runs on one of the hosts, that host comes first wherever it stands in the file (measured on 4.1.4).
///
/// Ranks are not bound to the cores of the mapping; [`rankfile`](crate::rankfile()) does that.
/// Format: mpirun(1) of Open MPI 4.1, "Sequential mapping"; the same in 5.0.
pub fn hostfile(mapping: &Mapping, digest: &str) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    check_for_open_mpi(&hosts)?;
    if let Some(host) = hosts.iter().find(|host| is_loopback(host)) {
        return Err(LaunchError::Loopback { host: (*host).to_owned() });
    }
    Ok(LaunchFile {
        name: "hostfile".into(),
        text: host_per_line(digest, &hosts),
        command: format!("mpirun -n {} --hostfile {{file}} --map-by seq {{program}}", hosts.len()),
    })
}

/// Whether it is a name of this machine which the sequential mapper of Open MPI 4.1.4 does not know.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::{lines, mapping, mappings};
    use proptest::prelude::*;

    #[test]
    fn rank_i_is_on_line_i() {
        let file = hostfile(&mapping(&["a", "b"], 2, &[2, 0, 3]), "d1").unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\na\nb\n");
        assert_eq!(file.command, "mpirun -n 3 --hostfile {file} --map-by seq {program}");
    }

    #[test]
    fn localhost_is_refused() {
        for host in ["localhost", "127.0.0.1"] {
            let error = hostfile(&mapping(&[host], 1, &[0]), "d").unwrap_err();
            assert_eq!(error.to_string(), format!("Open MPI's sequential mapper does not know `{host}`"));
        }
    }

    proptest! {
        #[test]
        fn the_file_tells_the_host_of_every_rank(mapping in mappings()) {
            let file = hostfile(&mapping, "d").unwrap();
            let expected: Vec<&str> = (0..mapping.ranks.len()).map(|rank| mapping.host_of(rank)).collect();
            prop_assert_eq!(lines(&file.text, "d"), expected);
        }
    }
}
