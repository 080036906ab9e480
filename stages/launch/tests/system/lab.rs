//! Runs the commands of launch files on emulated hosts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_launchers::{Launch, PROGRAM_WORD, with_programs};
use hopmap_model::{HostSlots, LaunchFile, Mapping, Placement, Weight};
use tempfile::TempDir;

/// Replaces ssh: runs the command here and passes the host name in `LAB_HOST`.
const AGENT: &str = "#!/bin/sh
while [ \"${1#-}\" != \"$1\" ]; do shift; done
export LAB_HOST=$1
# Daemons of several hosts on one machine must not make or clear away each other's session folders.
export TMPDIR=\"${0%/*}/$1\"
mkdir -p \"$TMPDIR\"
shift
exec sh -c \"$*\"
";

/// Hosts with `slots` slots each, rank `i` on slot `taken[i]`, core = slot on the host.
pub(crate) fn mapping(hosts: &[&str], slots: u32, taken: &[u32]) -> Mapping {
    let host = |(index, name): (usize, &&str)| HostSlots {
        host: (*name).to_owned(),
        first_slot: index as u32 * slots,
        slots,
    };
    let placement = |&slot: &u32| Placement { slot, host: slot / slots, core: Some(slot % slots) };
    Mapping {
        ranks: taken.iter().map(placement).collect(),
        hosts: hosts.iter().enumerate().map(host).collect(),
        weight: Weight::Bytes,
        metrics: BTreeMap::new(),
        convergence: Vec::new(),
        complete: true,
    }
}

/// The host of each rank according to the mapping.
pub(crate) fn expected_hosts(mapping: &Mapping) -> Vec<String> {
    (0..mapping.ranks.len()).map(|rank| mapping.host_of(rank).to_owned()).collect()
}

/// A launch file of this number of ranks whose command starts two programs, one for the first rank.
pub(crate) fn of_two_programs(file: LaunchFile, launch: Launch, ranks: usize) -> LaunchFile {
    let options = file.command.split(' ').filter(|word| *word != PROGRAM_WORD).map(str::to_owned).collect();
    let programs = format!("-n 1 {PROGRAM_WORD} : -n {} {PROGRAM_WORD}", ranks - 1);
    let programs: Vec<String> = programs.split(' ').map(str::to_owned).collect();
    LaunchFile { command: with_programs(launch, options, &programs).unwrap().join(" "), ..file }
}

/// A folder with the files of a run.
pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lab = Self { folder };
        fs::set_permissions(lab.write("agent", AGENT), fs::Permissions::from_mode(0o755)).unwrap();
        lab
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.path().join("agent")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs the command of a launch file literally, with a program that prints its rank and `what`.
    ///
    /// Returns what each rank printed, in rank order.
    pub(crate) fn run(&self, file: &LaunchFile, what: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let path = self.write(&file.name, &file.text);
        let program = self.write("program", &format!("echo RANK {what}\n"));
        let program = format!("sh {}", program.display());
        let command =
            file.command.replace("{file}", &path.display().to_string()).replace("{program}", &program);
        let output = Command::new("timeout")
            .args(["120", "sh", "-c", &command])
            .env("TMPDIR", self.path())
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{command}: {}\n{printed}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let line = |line: &str| {
            let (rank, what) = line.strip_prefix("RANK ")?.split_once(' ')?;
            Some((rank.parse::<usize>().ok()?, what.to_owned()))
        };
        let ranks: BTreeMap<usize, String> = printed.lines().filter_map(line).collect();
        assert!(ranks.keys().copied().eq(0..ranks.len()), "some ranks are missing:\n{printed}");
        ranks.into_values().collect()
    }
}
