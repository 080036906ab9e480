//! Slurm places every rank on the node of the mapping.

use hopmap_launchers::{cray_rank_order, slurm_hostfile};
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
