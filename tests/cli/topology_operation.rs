//! What the page on refreshing the topology gives to cron, systemd and Slurm, taken from there and run.

use hopmap_test_support::{Cluster, program, system_tests};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sandbox::{Sandbox, project};
use crate::topology_site::{Plan, Site};

/// The text between a line and the end of its code block on the page.
fn block(first: &str) -> Vec<String> {
    let page = std::fs::read_to_string(project().join("docs/howto/refresh-topology.md")).unwrap();
    let mut lines = page.lines().skip_while(|line| !line.starts_with(first));
    let block: Vec<String> = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
    assert!(!block.is_empty(), "the page has no `{first}`");
    block
}

/// The same for this machine: with our folders and our hopmap.
fn here(text: &str, sandbox: &Sandbox) -> String {
    let folder = sandbox.path();
    text.replace("/var/lib/hopmap/topology", folder.join("pub").to_str().unwrap())
        .replace("/etc/hopmap", folder.to_str().unwrap())
}

fn path() -> String {
    let folder = Path::new(assert_cmd::cargo::cargo_bin!("hopmap")).parent().unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn the_line_for_cron_works_unmodified() {
    let site = Site::new(&Plan::new(8));
    let line = block("*/15").concat();
    let (times, command) = line.split_at(line.find("hopmap").unwrap());
    assert_eq!(times.split_whitespace().count(), 5);
    let run = || {
        // As cron does it: a small environment and the home of the user.
        let output = Command::new("sh")
            .args(["-c", &here(command, &site.sandbox)])
            .env_clear()
            .env("PATH", path())
            .current_dir("/")
            .output()
            .unwrap();
        (output.status.code(), output.stdout.len() + output.stderr.len())
    };
    assert_eq!(run(), (Some(0), 0));
    let (entry, _) = site.sound().1.unwrap();
    assert_eq!(run(), (Some(0), 0));
    assert_eq!(site.sound().0.unwrap().0, entry);
    std::fs::remove_dir_all(site.sandbox.path().join("machine")).unwrap();
    let (code, bytes) = run();
    assert!(code == Some(1) && bytes > 0, "a failure is silent: {code:?}");
}

#[test]
fn the_units_for_systemd_are_sound_and_run() {
    let site = Site::new(&Plan::new(8));
    let unit = |name: &str| std::fs::read_to_string(project().join("docs/systemd").join(name)).unwrap();
    let binary = assert_cmd::cargo::cargo_bin!("hopmap").to_str().unwrap();
    let service = unit("hopmap-topology.service").replace("/usr/local/bin/hopmap", binary);
    let service = here(&service, &site.sandbox);
    site.sandbox.write("hopmap-topology.service", &service);
    for name in ["hopmap-topology.timer", "hopmap-fabric.service"] {
        site.sandbox.write(name, unit(name));
    }
    let command = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let status = Command::new("sh").args(["-c", command]).current_dir("/").status().unwrap();
    assert!(status.success());
    assert!(site.sound().1.is_some());
    let Some(program) = program("systemd-analyze") else { return };
    let verified = Command::new(program)
        .args(["verify", "--man=no"])
        .args(["./hopmap-topology.service", "./hopmap-topology.timer", "./hopmap-fabric.service"])
        .current_dir(site.sandbox.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && !said.contains("hopmap-"), "{said}");
}

#[test]
fn slurm_refreshes_when_a_node_goes_down_and_comes_back() {
    if !system_tests() {
        return;
    }
    let site = Site::new(&Plan::new(4));
    site.refresh(&["--min-coverage", "0.5"]);
    let script = block("#!/bin/sh").join("\n");
    let script = here(&script, &site.sandbox).replace("--quiet", "--quiet --min-coverage 0.5");
    let script =
        script.replace("exec hopmap", &format!("exec {}", assert_cmd::cargo::cargo_bin!("hopmap").display()));
    site.sandbox.write("node-changed", script);
    let program = site.sandbox.path().join("node-changed");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let cluster = Cluster::start();
    let slurm = |command: &str| {
        let status = Command::new("sh")
            .args(["-c", command])
            .env("SLURM_CONF", cluster.configuration())
            .status()
            .unwrap();
        assert!(status.success(), "{command}");
    };
    block("strigger").iter().for_each(|line| slurm(&here(line, &site.sandbox)));
    let wait_for = |down: usize| {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let (_, machine) = site.sound().0.unwrap();
            if machine.snapshot().hosts().1.len() == down {
                return;
            }
            assert!(Instant::now() < deadline, "Slurm has not run the program");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    site.set(&Plan::down(4, &[2]));
    slurm("scontrol update nodename=n3 state=down reason=test");
    wait_for(1);
    site.set(&Plan::new(4));
    slurm("scontrol update nodename=n3 state=resume");
    wait_for(0);
}
