//! MPICH's Hydra reads the machine files.

use hopmap_launchers::{Launch, launch_file};
use hopmap_test_support::system_tests;

use crate::lab::{Lab, expected_hosts, mapping, of_two_programs};

const HOST: &str = "$PMI_RANK $LAB_HOST";

fn check(taken: &[u32], launch: Launch, launcher: &str) {
    let lab = Lab::new();
    let agent = lab.agent().display().to_string();
    let environment = [("HYDRA_LAUNCHER", launcher), ("HYDRA_LAUNCHER_EXEC", agent.as_str())];
    let mapping = mapping(&["aa", "bb", "cc"], 16, taken);
    let mut file = launch_file(&mapping, "d", launch, false).unwrap();
    file.command = file.command.replacen("-launcher ssh", &format!("-launcher {launcher}"), 1);
    assert_eq!(lab.run(&file, HOST, &environment), expected_hosts(&mapping));
    let file = of_two_programs(file, launch, taken.len());
    assert_eq!(lab.run(&file, HOST, &environment), expected_hosts(&mapping));
}

#[test]
fn hosts_that_reappear_keep_their_ranks() {
    if !system_tests() {
        return;
    }
    check(&[1, 16, 0, 33, 17, 18, 2], Launch::Mpich, "ssh");
}

#[test]
fn hydra_reads_the_form_with_counts_as_well() {
    if !system_tests() {
        return;
    }
    check(&[1, 16, 0, 33, 17, 18, 2], Launch::IntelMpi, "ssh");
}

#[test]
fn many_changes_of_host_need_the_launcher_without_a_limit() {
    if !system_tests() {
        return;
    }
    let taken: Vec<u32> = (0..48).map(|rank| rank % 3 * 16 + rank / 3).collect();
    check(&taken, Launch::Mpich, "rsh");
}
