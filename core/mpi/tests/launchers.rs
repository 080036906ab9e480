//! Tests with Debian's Open MPI, MPICH and Slurm: identification, exported variables, and the variables of
//! ranks.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use hopmap_mpi_environment::{AS_ROOT, Identity, Implementation, Rank, host_name, system_host_name};
use hopmap_test_support::{Cluster, NODES, system_tests};

/// Launchers and a compiler of each MPI.
const MPIS: [(Implementation, [&str; 2], &str); 2] = [
    (Implementation::OpenMpi, ["mpirun.openmpi", "orterun"], "mpicc.openmpi"),
    (Implementation::Mpich, ["mpirun.mpich", "mpiexec.hydra"], "mpicc.mpich"),
];

/// Makes a process print its rank.
const PRINT_RANK: &str = "HOPMAP_TEST_PRINT_RANK";

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text.into_owned()
}

/// A launcher that may start more ranks than there are cores.
fn launcher(program: &str, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["120", program]).envs(AS_ROOT).env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.env("TMPDIR", folder);
    command
}

#[test]
fn launchers_and_compilers_are_identified() {
    if !system_tests() {
        return;
    }
    for (implementation, launchers, compiler) in MPIS {
        let version = Identity::of_compiler(compiler).unwrap();
        assert_eq!(version.implementation, implementation);
        assert!(version.version.split('.').count() >= 2, "{version:?}");
        for launcher in launchers {
            assert_eq!(Identity::of_launcher(launcher).unwrap(), version, "{launcher}");
        }
    }
}

/// Not a test by itself: the program that [`print_ranks`] starts; each process prints a line.
#[test]
fn a_process_prints_its_rank() {
    if std::env::var_os(PRINT_RANK).is_some() {
        println!("\nRANK {:?} on {}", Rank::of_this_process(), host_name());
    }
}

/// Starts this test binary so that all processes print their ranks.
fn print_ranks(command: &mut Command) -> String {
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "a_process_prints_its_rank",
        "--nocapture",
    ]);
    printed(command.env(PRINT_RANK, "1"))
}

/// The lines of all processes, in the order of their ranks.
fn lines_of(text: &str) -> Vec<String> {
    let line = |line: &str| Some(line.split_once("RANK ")?.1.to_owned());
    let mut lines: Vec<String> = text.lines().filter_map(line).collect();
    lines.sort_unstable();
    lines
}

fn ranks(hosts: &[&str]) -> Vec<String> {
    let size = Some(hosts.len() as u32);
    let rank = |(rank, host)| format!("{:?} on {host}", Some(Rank { rank, size }));
    (0..).zip(hosts).map(rank).collect()
}

#[test]
fn ranks_know_their_rank_and_size() {
    if !system_tests() {
        return;
    }
    let (folder, host) = (tempfile::tempdir().unwrap(), system_host_name());
    for launcher_name in MPIS.iter().flat_map(|(_, launchers, _)| launchers) {
        let mut command = launcher(launcher_name, folder.path());
        assert_eq!(
            lines_of(&print_ranks(command.args(["-n", "3"]))),
            ranks(&[host.as_str(); 3]),
            "{launcher_name}"
        );
    }
}

#[test]
fn tasks_and_ranks_in_slurm_jobs_know_their_rank_and_node() {
    if !system_tests() {
        return;
    }
    let (cluster, folder, host) = (Cluster::start(), tempfile::tempdir().unwrap(), system_host_name());
    let start = |words: &[&str]| {
        let mut command = launcher(words[0], folder.path());
        command.args(&words[1..]).env("SLURM_CONF", cluster.configuration()).current_dir(folder.path());
        command
    };
    // Nodes by name: those of the step before may not be idle yet.
    for words in [
        &["srun", "--mpi=none", "-wn1,n2", "--ntasks-per-node=2"],
        &["srun", "--mpi=pmi2", "-wn1,n2", "--ntasks-per-node=2"],
    ] {
        assert_eq!(lines_of(&print_ranks(&mut start(words))), ranks(&["n1", "n1", "n2", "n2"]), "{words:?}");
    }
    let open_mpi = ["salloc", "-Q", "-N4", "-n4", "mpirun.openmpi", "-n", "4"];
    assert_eq!(lines_of(&print_ranks(&mut start(&open_mpi))), ranks(&NODES));

    fs::write(folder.path().join("script"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
    let batch = |words: &[&str]| {
        let log = folder.path().join("log");
        let _ = fs::remove_file(&log);
        print_ranks(start(&["sbatch", "-Q", "--wait", "-N4", "-n4", "-o", "log", "script"]).args(words));
        lines_of(&fs::read_to_string(log).unwrap())
    };
    assert_eq!(batch(&[]), ["None on n1"]);
    // Hydra gives its ranks the name of the node that runs the script.
    assert_eq!(batch(&["mpiexec.hydra", "-n", "4"]), ranks(&[host.as_str(); 4]));
}

/// Replacement for ssh that drops all variables of this host.
const AGENT: &str = "#!/bin/sh
while [ \"${1#-}\" != \"$1\" ]; do shift; done
tmp=\"${0%/*}/$1\"
mkdir -p \"$tmp\"
shift
exec env -i PATH=\"$PATH\" TMPDIR=\"$tmp\" sh -c \"$*\"
";

#[test]
fn variables_reach_ranks_on_other_hosts() {
    if !system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("agent");
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    for (implementation, launchers, _) in MPIS {
        let values = |options: &[String]| {
            let mut command = launcher(launchers[0], folder.path());
            command.env("OMPI_MCA_plm_rsh_agent", &agent);
            command.env("HYDRA_LAUNCHER", "ssh").env("HYDRA_LAUNCHER_EXEC", &agent);
            command.env("LAB_VALUE", "1 2").env("OMPI_MCA_lab_value", "3");
            let script = "echo \"$LAB_VALUE, $OMPI_MCA_lab_value\"";
            printed(command.args(options).args(["-host", "aa", "-n", "1", "sh", "-c", script]))
        };
        let options = implementation.options_to_hand_on(&["LAB_VALUE", "OMPI_MCA_lab_value"]);
        assert_eq!(values(&options).trim(), "1 2, 3", "{implementation:?}");
        // Without these options Open MPI exports only its own variables.
        let alone = if options.is_empty() { "1 2, 3" } else { ", 3" };
        assert_eq!(values(&[]).trim(), alone, "{implementation:?}");
    }
}
