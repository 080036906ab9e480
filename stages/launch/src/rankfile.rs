//! Open MPI's rank file.

use std::fmt::Write;

use hopmap_model::{LaunchFile, Mapping};

use crate::hosts::{check_for_open_mpi, heading, hosts_of_ranks};
use crate::{LaunchError, OpenMpi};

/// Open MPI's rank file: host and core of every rank. `mpirun` takes the hosts from it and needs no other list.
///
/// Cores are logical indexes, as in the mapping.
/// Format: mpirun(1) of Open MPI 4.1, "Rankfiles"; PRRTE 3.0 documentation, "Rankfiles", for 5.x.
pub fn rankfile(mapping: &Mapping, digest: &str, version: OpenMpi) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    check_for_open_mpi(&hosts)?;
    let mut text = heading(digest);
    for (rank, (host, placement)) in hosts.iter().zip(&mapping.ranks).enumerate() {
        let core = placement.core.ok_or_else(|| LaunchError::NoCore { rank, host: (*host).to_owned() })?;
        // Writing to a string does not fail.
        let _ = writeln!(text, "rank {rank}={host} slot={core}");
    }
    let option = match version {
        OpenMpi::V4 => "--rankfile {file}",
        OpenMpi::V5 => "--map-by rankfile:file={file}",
    };
    Ok(LaunchFile {
        name: "rankfile".into(),
        text,
        command: format!("mpirun -n {} {option} {{program}}", hosts.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::{lines, mapping, mappings};
    use proptest::prelude::*;

    #[test]
    fn every_rank_has_its_host_and_core() {
        let mapping = mapping(&["a", "b"], 2, &[2, 0, 3]);
        let file = rankfile(&mapping, "d1", OpenMpi::V4).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nrank 0=b slot=0\nrank 1=a slot=0\nrank 2=b slot=1\n");
        assert_eq!(file.command, "mpirun -n 3 --rankfile {file} {program}");
        let newer = rankfile(&mapping, "d1", OpenMpi::V5).unwrap();
        assert_eq!(newer.text, file.text);
        assert_eq!(newer.command, "mpirun -n 3 --map-by rankfile:file={file} {program}");
    }

    #[test]
    fn a_rank_without_a_core_is_refused() {
        let mut mapping = mapping(&["a", "b"], 2, &[2, 0, 3]);
        mapping.ranks[1].core = None;
        let error = rankfile(&mapping, "d", OpenMpi::V4).unwrap_err();
        assert_eq!(error.to_string(), "the mapping does not say on which core of `a` rank 1 runs");
    }

    proptest! {
        #[test]
        fn the_file_tells_host_and_core_of_every_rank(mapping in mappings()) {
            let file = rankfile(&mapping, "d", OpenMpi::V4).unwrap();
            let read = lines(&file.text, "d").into_iter().map(|line| {
                let (rank, place) = line.strip_prefix("rank ").unwrap().split_once('=').unwrap();
                let (host, core) = place.split_once(" slot=").unwrap();
                (rank.parse().unwrap(), host.to_owned(), core.parse().unwrap())
            });
            let expected = mapping.ranks.iter().enumerate().map(|(rank, placement)| {
                (rank, mapping.host_of(rank).to_owned(), placement.core.unwrap())
            });
            prop_assert_eq!(read.collect::<Vec<(usize, String, u32)>>(), expected.collect::<Vec<_>>());
        }
    }
}
