//! Open MPI reads the rank files and host files.

use hopmap_launchers::{Launch, launch_file};
use hopmap_mpi_environment::AS_ROOT;
use hopmap_test_support::system_tests;

use crate::lab::{Lab, expected_hosts, mapping, of_two_programs};

fn environment(agent: &str) -> Vec<(&str, &str)> {
    [&AS_ROOT[..], &[("OMPI_MCA_plm_rsh_agent", agent)]].concat()
}

const HOST: &str = "$OMPI_COMM_WORLD_RANK $LAB_HOST";
const CORES: &str = "$OMPI_COMM_WORLD_RANK $(sed -n 's/Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)";

#[test]
fn a_rankfile_binds_ranks_to_the_cores_of_the_mapping() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let cores = |taken: &[u32]| {
        let file = launch_file(&mapping(&["localhost"], 2, taken), "d", Launch::OpenMpi4, false).unwrap();
        lab.run(&file, CORES, &environment(&agent))
    };
    let straight = cores(&[0, 1]);
    let crossed = cores(&[1, 0]);
    assert_ne!(straight[0], straight[1]);
    assert_eq!([&crossed[1], &crossed[0]], [&straight[0], &straight[1]]);
}

#[test]
fn a_rankfile_puts_ranks_on_the_hosts_of_the_mapping() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let mapping = mapping(&["aa", "bb", "cc"], 2, &[1, 2, 0, 5, 3]);
    let file = launch_file(&mapping, "d", Launch::OpenMpi4, false).unwrap();
    assert_eq!(lab.run(&file, HOST, &environment(&agent)), expected_hosts(&mapping));
    let file = of_two_programs(file, Launch::OpenMpi4, 5);
    assert_eq!(lab.run(&file, HOST, &environment(&agent)), expected_hosts(&mapping));
}

#[test]
fn the_sequential_mapper_follows_the_hostfile() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let mapping = mapping(&["aa", "bb", "cc"], 4, &[1, 4, 0, 9, 5, 7, 2, 8]);
    let file = launch_file(&mapping, "d", Launch::OpenMpiHosts, false).unwrap();
    assert_eq!(lab.run(&file, HOST, &environment(&agent)), expected_hosts(&mapping));
}

#[test]
fn the_host_of_mpirun_does_not_come_first() {
    if !system_tests() {
        return;
    }
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mapping = mapping(&["aa", name.trim()], 2, &[0, 3, 1, 2]);
    let file = launch_file(&mapping, "d", Launch::OpenMpiHosts, false).unwrap();
    // mpirun starts no agent on its own host.
    let environment = [environment(&agent).as_slice(), &[("LAB_HOST", name.trim())]].concat();
    assert_eq!(lab.run(&file, HOST, &environment), expected_hosts(&mapping));
}
