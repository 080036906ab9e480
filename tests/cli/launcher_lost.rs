//! Launchers that lose their hosts, and batch systems that do not answer: what is tried again and what is not. Shell scripts play
//! them; `batch.rs` has the real ones.

use std::path::Path;
use std::process::Output;

use crate::launcher::{PROCESS, complaint, launched, placement, sandbox};
use crate::sandbox::Sandbox;

/// Loses its host as often as a file has lines; the second attempt may not find the folder of the first.
const FRAGILE: &str = r#"if [ -s losses ]; then
  sed -i 1d losses
  echo "$2" >> folders
  echo 'srun: error: Node failure on n4' >&2
  exit 1
fi
for folder in $(cat folders); do
  [ ! -e "$folder" ] || exit 9
done
exec sh "$@"
"#;

/// The log of the placement.
fn log(sandbox: &Sandbox, output: &Output) -> String {
    let place = placement(output)["log"].as_str().unwrap().to_owned();
    std::fs::read_to_string(sandbox.path().join(place)).unwrap()
}

fn succeeded(sandbox: &Sandbox) -> Output {
    let output = launched(sandbox).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_launcher_that_loses_its_host_is_started_again_in_a_folder_of_its_own() {
    let sandbox = sandbox(PROCESS);
    sandbox.write("launcher", FRAGILE);
    sandbox.write("losses", "1\n2\n3\n");
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::failed]: stage `placement` (p.toml:16)
      `-> `sh launcher HERE/process HERE/.hopmap/work/KEY/3` was lost: its node failed
            srun: error: Node failure on n4
      help: it was started 3 times; run again, or raise `retries` of the stage in its pipeline
    ");
    sandbox.write("losses", "1\n2\n");
    sandbox.write("folders", "");
    let output = succeeded(&sandbox);
    let log = log(&sandbox, &output);
    assert!(log.contains("was lost: its node failed; retry 2 of 2"), "{log}");
}

#[test]
fn a_failed_stage_is_not_restarted_whatever_its_launcher_prints() {
    let sandbox = sandbox(
        "echo x >> starts\necho '{\"rank\":0,\"message\":\"it cannot be done\",\"help\":null}' > $1/fault.json\n\
         echo 'ORTE has lost communication with a remote daemon.'\nexit 1\n",
    );
    let said = complaint(&sandbox, &mut launched(&sandbox));
    assert!(said.contains("it cannot be done"), "{said}");
    assert_eq!(sandbox.read("starts"), "x\n");
}

#[test]
fn a_process_that_a_signal_ends_where_it_runs_is_started_again_and_its_best_is_used_at_last() {
    let cut_short = PROCESS
        .replace("\"complete\":true", "\"complete\":false")
        .replace("touch", "echo x >> starts; touch");
    // `hopmap-ranks` writes the file `stop` when it gets a signal. A budget in seconds makes no result of that.
    let with_a_budget =
        cut_short.replace("\"timed\":false", "\"timed\":true").replace("mkdir", "touch $folder/stop; mkdir");
    for process in [&cut_short, &with_a_budget] {
        let sandbox = sandbox(process);
        let output = succeeded(&sandbox);
        assert_eq!(placement(&output)["state"], "partial");
        assert_eq!(sandbox.read("starts"), "x\nx\nx\n");
        let log = log(&sandbox, &output);
        assert!(log.contains("was terminated on its host: this is the best so far"), "{log}");
    }
    // One whose budget ran out is started once.
    let sandbox = sandbox(&cut_short.replace("\"timed\":false", "\"timed\":true"));
    assert_eq!(placement(&succeeded(&sandbox))["state"], "partial");
    assert_eq!(sandbox.read("starts"), "x\n");
}

#[test]
fn a_result_without_an_output_is_none() {
    let sandbox =
        sandbox("touch $1/begun\necho '{\"feasible\":true,\"complete\":true,\"timed\":false}' > $1/done\n");
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::no_output]: stage `placement` (p.toml:16)
      `-> its processes wrote nothing to the output `mapping`
      help: check that all hosts see the same store folder, then run again
    ");
}

/// A command that is found before those of the system.
fn play(sandbox: &Sandbox, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = sandbox.path().join("played");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), script).unwrap();
    std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

const ONE: &str = r#"[params]
launcher = ""

[stages.program]
uses     = "instance/stencil"
with     = { shape = "4x4" }
launcher = "${params.launcher}"

[batch]
patience = "3 s"
"#;

#[test]
fn a_shell_behind_ssh_gets_paths_with_spaces_as_they_are() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", ONE);
    let path = play(&sandbox, "ssh", "#!/bin/sh\nshift\nexec sh -c \"$*\"\n");
    let arguments = ["run", "p.toml", "--no-report", "--store", "of two words", "-p", "launcher=ssh node1"];
    let output = sandbox.command(&arguments).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(Path::new(&sandbox.path().join("of two words/artifacts")).exists());
}

#[test]
fn a_batch_system_that_never_takes_a_job_is_given_up() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", ONE);
    play(
        &sandbox,
        "sbatch",
        "#!/bin/sh\necho 'sbatch: error: Job violates accounting/QOS policy (job submit limit, user size and/or time limits)' >&2\nexit 1\n",
    );
    let path = play(&sandbox, "squeue", "#!/bin/sh\n");
    let arguments = ["run", "p.toml", "--no-report", "-p", "launcher=sbatch --time 100-0"];
    let output = sandbox.command(&arguments).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("program: not submitted yet: sbatch: error: Job violates"), "{said}");
    assert!(said.contains("the batch system does not answer: sbatch: error: Job violates"), "{said}");
}

#[test]
fn a_batch_system_that_cannot_be_asked_is_given_up() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", ONE);
    play(&sandbox, "sbatch", "#!/bin/sh\necho 7\n");
    let path = play(&sandbox, "squeue", "#!/nowhere/sh\n");
    let arguments = ["run", "p.toml", "--no-report", "-p", "launcher=sbatch -n 1"];
    let output = sandbox.command(&arguments).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the batch system does not answer"), "{said}");
}
