//! However a network ends, nothing is left of it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hopmap_test_network::{CONTROL, Description, Network, Request, ask};
use hopmap_test_support::signal;

use crate::support::{eventually, ping, program, start, wanted};

/// Whether a process runs with these words on its command line.
fn runs(words: &[&str]) -> bool {
    let line = words.join("\0") + "\0";
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        fs::read(process.path().join("cmdline")).is_ok_and(|found| found.ends_with(line.as_bytes()))
    })
}

/// Starts a program on a host that would run for long, also as an orphan.
fn start_sleepers(network: &Network, seconds: &str) -> Child {
    let line = format!("sleep {seconds} & exec setsid sleep {seconds}");
    let child = network.command(1, "sh").args(["-c", &line]).stdin(Stdio::null()).spawn().unwrap();
    eventually("a command starts", || runs(&["sleep", seconds]));
    child
}

fn assert_gone(first: u32, mut command: Child, seconds: &str) {
    assert!(!command.wait().unwrap().success());
    eventually("the first process ends", || !Path::new(&format!("/proc/{first}/ns/net")).exists());
    eventually("all programs end", || !runs(&["sleep", seconds]));
}

#[test]
fn a_network_that_is_dropped_leaves_nothing() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let first = network.process();
    let command = start_sleepers(&network, "7101");
    drop(network);
    assert_gone(first, command, "7101");
}

#[test]
fn a_network_whose_maker_is_killed_leaves_nothing() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let command = start_sleepers(&network, "7102");
    signal(network.maker(), "KILL");
    assert_gone(network.process(), command, "7102");
    assert_eq!(network.cut(0).unwrap_err().to_string(), "the network does not answer");
}

#[test]
fn a_network_whose_first_process_is_killed_leaves_nothing() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let command = start_sleepers(&network, "7103");
    signal(network.process(), "KILL");
    assert_gone(network.process(), command, "7103");
}

#[test]
fn a_network_whose_user_is_killed_leaves_nothing() {
    let Some(_alone) = wanted() else { return };
    let mut user = Command::new(program()).args(["run", "--", "sleep", "7104"]).spawn().unwrap();
    eventually("a command starts", || runs(&["sleep", "7104"]));
    signal(user.id(), "KILL");
    user.wait().unwrap();
    eventually("all programs end", || !runs(&["sleep", "7104"]));
    eventually("the network ends", || !runs(&[&program().display().to_string(), "serve"]));
    eventually("the network ends", || !runs(&[&program().display().to_string(), "first"]));
}

/// Requests were answered while no frame was, and programs waited for ever.
#[test]
fn a_network_whose_switch_panics_ends() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let command = start_sleepers(&network, "7107");
    let socket = format!("/proc/{}/root{CONTROL}", network.process());
    ask(Path::new(&socket), &Request::Fault).unwrap();
    assert!(!ping(&network, 0, 1, &["1"]).status.success());
    assert_gone(network.process(), command, "7107");
    assert_eq!(network.counters().unwrap_err().to_string(), "the network does not answer");
}

#[test]
fn a_command_that_is_killed_is_gone_on_its_host() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    let mut child = network.command(0, "sleep").arg("7105").spawn().unwrap();
    eventually("a command starts", || runs(&["sleep", "7105"]));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the program ends", || !runs(&["sleep", "7105"]));
}

/// Of all moments some fall between the start of the process and what binds it to its parent.
#[test]
fn a_command_that_is_killed_while_it_starts_is_gone_on_its_host() {
    let Some(_alone) = wanted() else { return };
    let network = start(&Description::uniform(2, 0.0));
    for moment in 0..40 {
        let mut child = network.command(0, "sleep").arg("7106").spawn().unwrap();
        std::thread::sleep(Duration::from_micros(150 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    eventually("the programs end", || !runs(&["sleep", "7106"]));
}

#[test]
fn systems_that_forbid_networks_are_told_of() {
    let Some(_alone) = wanted() else { return };
    if hopmap_test_support::program("unshare").is_none() {
        return;
    }
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" run -- true";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program())
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("this system forbids user namespaces"), "{complaint}");
    assert!(complaint.contains("sysctl user.max_user_namespaces=10000"), "{complaint}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_builds_it() {
    let missing = Path::new("/nowhere/hopmap-test-network");
    let error = Network::start_with(missing, &Description::uniform(2, 0.0)).unwrap_err();
    assert_eq!(error.to_string(), "no program hopmap-test-network at /nowhere/hopmap-test-network");
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.contains("cargo build -p hopmap-test-network"), "{help}");
}
