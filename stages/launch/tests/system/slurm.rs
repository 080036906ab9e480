//! Slurm places every rank on the node of the mapping.

use hopmap_launchers::{TorchStart, cray_rank_order, slurm_hostfile, torch_file};
use hopmap_model::{LaunchFile, Mapping};
use hopmap_test_support::{Cluster, NODES, system_tests};

use crate::lab::{Lab, expected_hosts, mapping};

const PLACE: &str = "$SLURM_PROCID $SLURMD_NODENAME";

/// The host on which every rank of a Cray program runs: process `i` is given the `i`-th rank of the file.
fn hosts_after_reordering(file_text: &str, hosts_of_processes: &[String]) -> Vec<String> {
    let order: Vec<&str> =
        file_text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(',')).collect();
    let mut hosts = vec![String::new(); order.len()];
    for (rank, host) in order.iter().zip(hosts_of_processes) {
        hosts[rank.parse::<usize>().unwrap()].clone_from(host);
    }
    hosts
}

#[test]
fn slurm_starts_every_rank_on_the_host_of_the_mapping() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let configuration = cluster.configuration().display().to_string();
    let lab = Lab::new();
    let run = |file: &LaunchFile| lab.run(file, PLACE, &[("SLURM_CONF", &configuration)]);

    let arbitrary = mapping(&NODES, 4, &[8, 0, 1, 12, 4, 9, 15, 2]);
    let file = slurm_hostfile(&arbitrary, "d").unwrap();
    assert_eq!(run(&file), expected_hosts(&arbitrary));

    let machines: [Mapping; 3] = [
        mapping(&NODES, 4, &[5, 3, 14, 0, 9, 1, 4, 2, 15, 7, 8, 6, 13, 10, 11, 12]),
        mapping(&NODES, 4, &[8, 4, 5, 0, 1, 9]),
        mapping(&NODES, 4, &[12, 4, 0, 8]),
    ];
    for machine in &machines {
        let file = cray_rank_order(machine, "d").unwrap();
        assert_eq!(hosts_after_reordering(&file.text, &run(&file)), expected_hosts(machine));
    }
}

/// Starts the local ranks of a host as `torchrun` does with static rendezvous.
const TORCHRUN: &str = r#"#!/bin/sh
shift 2; gpus=$2; node=$4; shift 6
for local in $(seq 0 $((gpus - 1))); do
    TORCHELASTIC_RUN_ID=none RANK=$((node * gpus + local)) LOCAL_RANK=$local "$@"
done
"#;

#[test]
fn slurm_starts_torchrun_on_the_hosts_in_the_order_of_node_ranks() {
    if !system_tests() {
        return;
    }
    let cluster = Cluster::start();
    let configuration = cluster.configuration().display().to_string();
    let lab = Lab::new();
    let torchrun = lab.write("torchrun", TORCHRUN);
    std::fs::set_permissions(&torchrun, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", lab.path().display(), std::env::var("PATH").unwrap());
    let blocks = mapping(&NODES, 4, &[8, 9, 10, 0, 1, 2, 12, 13, 14]);
    let file = torch_file(&blocks, "d", TorchStart::Slurm).unwrap();
    let place = "$RANK $SLURMD_NODENAME";
    let ran = lab.run(&file, place, &[("SLURM_CONF", &configuration), ("PATH", &path)]);
    assert_eq!(ran, expected_hosts(&blocks));
}
