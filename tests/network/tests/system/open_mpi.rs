//! Open MPI runs across the hosts.

use std::process::Command;

use crate::support::{assert_near, has, racks, start, succeeded, wanted};

#[test]
fn ranks_are_as_far_from_each_other_as_their_hosts() {
    let Some(_alone) = wanted() else { return };
    if !has("mpicc") || !has("mpirun.openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ping");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/ping.c");
    succeeded(Command::new("mpicc.openmpi").args(["-O1", "-o"]).arg(&program).arg(source).output().unwrap());
    let description = racks();
    let network = start(&description);
    let text = succeeded(network.mpirun(&[0, 1, 2, 5, 6, 7, 3, 4]).arg(&program).output().unwrap());
    for (rank, host) in [0, 1, 2, 5, 6, 7, 3, 4].into_iter().enumerate() {
        assert!(text.contains(&format!("rank {rank} on h{host}\n")), "{text}");
        let Some(half) = text.lines().find_map(|line| line.strip_prefix(&format!("to {rank}: "))) else {
            assert_eq!(rank, 0, "{text}");
            continue;
        };
        assert_near(half.parse().unwrap(), description.latencies_s[0][host], 0.2);
    }
}
