//! Commands on hosts are commands like others.

use std::io::Write as _;
use std::process::{Command, Stdio};

use hopmap_test_network::{Counters, Description, Error, Limits, LinkCounters, Network};

use crate::support::{program, start, succeeded, wanted};

#[test]
fn hosts_know_their_own_name_and_those_of_others() {
    let Some(_alone) = wanted() else { return };
    // The library finds the program beside this test.
    let network = Network::start(&Description::uniform(9, 0.0)).unwrap();
    for host in 0..network.hosts() {
        assert_eq!(succeeded(network.command(host, "hostname").output().unwrap()), format!("h{host}\n"));
    }
    let found = succeeded(network.command(8, "getent").args(["hosts", "h3"]).output().unwrap());
    assert_eq!(found.split_whitespace().collect::<Vec<_>>(), ["10.77.0.4", "h3"]);
}

#[test]
fn commands_have_folder_environment_streams_and_status() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let folder = tempfile::tempdir().unwrap();
    let mut child = network
        .command(1, "sh")
        .args(["-c", "cat; echo $WORD; pwd; exit 7"])
        .current_dir(folder.path())
        .env("WORD", "a b")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"input\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let expected = format!("input\na b\n{}\n", folder.path().display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(7));
}

/// Open MPI of two networks took the same session folder and removed it from under the other one.
#[test]
fn each_network_has_temporary_files_of_its_own_unless_it_is_told_where() {
    let Some(_alone) = wanted() else { return };
    let networks = [0.0, 1e-4].map(|seconds| start(&Description::uniform(2, seconds)));
    let list = |network: &Network, host: usize, name: &str| {
        let script = format!("touch $TMPDIR/{name}; ls $TMPDIR");
        let mut command = network.command(host, "sh");
        succeeded(command.env_remove("TMPDIR").args(["-c", &script]).output().unwrap())
    };
    assert_eq!(list(&networks[0], 0, "a"), "a\n");
    assert_eq!(list(&networks[1], 0, "b"), "b\n");
    assert_eq!(list(&networks[0], 1, "c"), "a\nc\n");
    let mut told = networks[0].command(0, "sh");
    let told = told.env("TMPDIR", "/there").args(["-c", "echo $TMPDIR"]);
    assert_eq!(succeeded(told.output().unwrap()), "/there\n");
}

#[test]
fn scripts_make_and_change_networks() {
    let Some(_alone) = wanted() else { return };
    let script = "hostname && $PROGRAM on h1 hostname '&&' echo there && ip netns exec h2 true \
                  && $PROGRAM set-latency h0 h1 0.0001 && $PROGRAM set-rate h0 h1 1e6 && $PROGRAM set-rate h0 h1 \
                  && $PROGRAM cut h1 && $PROGRAM join h1 && ! $PROGRAM cut h3 && exit 3";
    let output = Command::new(program())
        .args(["run", "--tree", "3", "--microseconds", "100", "--rate", "1e9", "--", "sh", "-c", script])
        .env("PROGRAM", program())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "h0\nh1\nthere\n");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint, "hopmap-test-network: there is no node h3: the network has h0, h1, h2\n");
    assert_eq!(output.status.code(), Some(3));
}

/// Frames of the calibration counted.
#[test]
fn a_network_on_which_nothing_was_sent_has_counted_nothing() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::tree_links(&[2, 2], &[], &[100e-6]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let counters = network.counters().unwrap();
    let (links, cpu_s, base_s) = (vec![LinkCounters::default(); 12], counters.cpu_s, counters.base_s);
    assert_eq!(counters, Counters { links, cpu_s, base_s, ..Counters::default() });
}

#[test]
fn who_measures_may_say_how_busy_the_machine_may_be() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let any = Limits { max_late: 1.0, min_idle: 0.0 };
    assert_eq!(network.measure_within(any, || 7).unwrap().0, 7);
    let refused = network.measure_within(Limits { min_idle: 1.1, ..any }, || ());
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
}
