//! `launcher`: what a stage needs that runs as several processes, and what is said when it fails. No MPI is needed here: shell
//! scripts play launcher and processes.

use std::process::{Child, Command, Output, Stdio};

use hopmap_test_support::system_tests;
use serde_json::Value;

use crate::sandbox::{Sandbox, ring};

/// A pipeline whose placement has a launcher.
const PIPELINE: &str = r#"name = "launched"

[params]
launcher = ""

[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses     = "map/tabu"
with     = { evaluations = 20000, islands = 3 }
needs    = { task-graph = "program", system = "machine" }
launcher = "${params.launcher}"
"#;

/// Plays `hopmap-ranks`: does the same stage in one process, in the place of the first.
pub(crate) const PROCESS: &str = r#"#!/bin/sh
folder=$1
touch $folder/begun
echo "hopmap-ranks: log one process plays all"
echo "hopmap-ranks: progress 1 2"
mkdir $folder/out
"$HOPMAP" exec map/tabu -p evaluations=20000 -p islands=3 --in task-graph=g --in system=m \
  --out $folder/out/mapping --quiet
echo '{"feasible":true,"complete":true,"timed":false}' > $folder/done
"#;

/// A folder with the pipeline, its inputs as artifacts `g` and `m`, and a script that plays a process.
pub(crate) fn sandbox(process: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("ring.csv", ring(8));
    sandbox.write("p.toml", PIPELINE);
    sandbox.write("process", process);
    sandbox.write("launcher", "#!/bin/sh\nexec sh \"$@\"\n");
    sandbox.stdout(&["exec", "trace/import", "-p", "path=ring.csv", "-p", "format=csv", "--out", "g"]);
    let machine = ["-p", "shape=tree:2x4", "-p", "costs=[1, 10]", "--out", "m"];
    sandbox.stdout(&[&["exec", "topology/synthetic"], &machine[..]].concat());
    sandbox
}

/// A run whose launcher is `sh launcher` and whose processes are played by the script `process`.
pub(crate) fn launched(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(&["run", "p.toml", "-p", "launcher=sh launcher", "--no-report"]);
    command.env("HOPMAP_RANKS", sandbox.path().join("process"));
    command.env("HOPMAP", assert_cmd::cargo::cargo_bin!("hopmap"));
    command
}

/// The standard error of the run of a script, without its folder.
pub(crate) fn complaint(sandbox: &Sandbox, command: &mut Command) -> String {
    let output = command.arg("--quiet").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.replace(sandbox.path().to_str().unwrap(), "HERE");
    // Keys are long and say nothing here.
    let mut words: Vec<String> = Vec::new();
    for word in text.split_inclusive([' ', '\n']) {
        let cut = word.find("/work/").map_or(word.len(), |begin| begin + "/work/".len());
        let end = word[cut..].find(|letter: char| !letter.is_ascii_hexdigit());
        let rest = end.map_or("", |end| &word[cut + end..]);
        words.push(if cut < word.len() { format!("{}KEY{rest}", &word[..cut]) } else { word.to_owned() });
    }
    words.concat()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The cell of the placement in the output of a run with `--json`.
pub(crate) fn placement(output: &Output) -> Value {
    let cells = json(output)["cells"].as_array().unwrap().clone();
    cells.into_iter().find(|cell| cell["cell"] == "placement").unwrap()
}

#[test]
fn a_launched_stage_is_the_same_stage() {
    let sandbox = sandbox(PROCESS);
    let output = launched(&sandbox).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let launched_cell = placement(&output);
    assert_eq!(launched_cell["state"], "ran");
    // Without a launcher the key is the same: there is nothing left to do, and a run of its own gives the same digest.
    assert!(sandbox.stdout(&["run", "p.toml"]).contains("nothing to do"));
    let alone = sandbox.command(&["run", "p.toml", "--json", "--store", "other"]).output().unwrap();
    let digest = |cell: &Value| cell["outputs"]["mapping"]["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest(&placement(&alone)), digest(&launched_cell));
    assert_eq!(std::fs::read_dir(sandbox.path().join(".hopmap/work")).unwrap().count(), 0);
}

/// A straggling process holds the folder of the task: here something is mounted in it.
#[test]
fn a_folder_that_stays_takes_no_result_away() {
    if !system_tests() {
        return;
    }
    let straggler = "mkdir $folder/straggler && mount -t tmpfs none $folder/straggler\n";
    let sandbox = sandbox(&format!("{PROCESS}{straggler}"));
    let run = launched(&sandbox);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).arg(run.get_program()).args(run.get_args());
    command.arg("--json").envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.current_dir(run.get_current_dir().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(placement(&output)["state"], "ran");
    assert_eq!(std::fs::read_dir(sandbox.path().join(".hopmap/work")).unwrap().count(), 1);
    assert!(sandbox.stdout(&["run", "p.toml"]).contains("nothing to do"));
}

#[test]
fn what_the_processes_say_goes_into_the_log() {
    let sandbox = sandbox(PROCESS);
    let output = launched(&sandbox).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("placement: one process plays all"), "{said}");
    assert!(!said.contains("progress"), "{said}");
}

#[test]
fn exec_launches_too() {
    let sandbox = sandbox(PROCESS);
    let stage = ["map/tabu", "-p", "evaluations=20000", "-p", "islands=3"];
    let inputs = ["--in", "task-graph=g", "--in", "system=m", "--json", "--out"];
    let run = |more: &[&str], out: &str| {
        let mut command = sandbox.command(&[&["exec"], &stage[..], &inputs, &[out], more].concat());
        command.env("HOPMAP_RANKS", sandbox.path().join("process"));
        let output = command.env("HOPMAP", assert_cmd::cargo::cargo_bin!("hopmap")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&output)["digest"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(&["--launcher", "sh launcher"], "a"), run(&[], "b"));
    let left: Vec<String> = std::fs::read_dir(sandbox.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    insta::assert_snapshot!(
        sandbox.seen(&["exec", "map/linear", "--launcher", "mpirun", "--in", "task-graph=g", "--in", "system=m", "--out", "c"]), @r"
    ------- stderr -------
    error[command::mistake]: map/linear cannot run as several processes
      help: stages that can: topology/probe, map/annealing, map/genetic, map/composite, map/tabu, map/auto, schedule/genetic, schedule/auto; as one process `srun -n 1` and `sbatch -n 1` start all others
    [exit code 2]
    "
    );
}

/// Cells of a stage that is one process, started by a script that lets no two of them run side by side.
const ONE_BY_ONE: &str = r#"[stages.program]
uses     = "instance/stencil"
with     = { shape = "4x4" }
matrix   = { bytes = [1, 2, 3, 4] }
launcher = "sh alone"
memory   = "6 GB"
"#;

const ALONE: &str = "mkdir lock || exit 9\nsleep 0.2\n\"$@\" && rmdir lock\n";

#[test]
fn any_stage_can_be_one_process_elsewhere_and_cells_share_the_memory() {
    let sandbox = Sandbox::new();
    sandbox.write("alone", ALONE);
    sandbox.write("p.toml", ONE_BY_ONE);
    let run = |more: &[&str]| {
        let output = sandbox.output(&[&["run", "p.toml", "--json", "--no-report", "-j4"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let cells = json(&output)["cells"].as_array().unwrap().clone();
        let digest = |cell: &Value| cell["outputs"]["task-graph"]["digest"].as_str().unwrap().to_owned();
        cells.iter().map(digest).collect::<Vec<_>>()
    };
    let launched = run(&["--memory", "10 GB"]);
    sandbox.edit("p.toml", "launcher = \"sh alone\"\n", "");
    assert_eq!(run(&["--memory", "12 GB", "--store", "other"]), launched);
}

#[test]
fn a_cell_that_is_larger_than_the_memory_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("alone", ALONE);
    sandbox.write("p.toml", ONE_BY_ONE);
    for command in ["run", "plan"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.seen(&[command, "p.toml", "--memory", "4GB"]), @r#"
            ------- stderr -------
            error[engine::too_large]: stage `program[bytes=1]` (p.toml:3) needs 6 GB of memory, but only 4 GB are available
              help: run it on a larger host, for example with `launcher = "sbatch -n 1"`; --memory sets the memory that may be used here
            [exit code 2]
            "#);
        }
    }
    // What is in the store needs no memory.
    sandbox.stdout(&["run", "p.toml", "--memory", "6GB"]);
    assert!(sandbox.stdout(&["run", "p.toml", "--memory", "4GB"]).contains("nothing to do"));
}

#[test]
fn a_stage_that_is_one_process_is_not_started_twice() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", ONE_BY_ONE.replace("[1, 2, 3, 4]", "[1]"));
    sandbox.write("alone", "\"$@\" &\nfirst=$!\n\"$@\"\nsecond=$?\nwait $first && exit $second\n");
    let output = sandbox.output(&["run", "p.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("instance/stencil runs as one process here, but the launcher starts several"),
        "{said}"
    );
}

#[test]
fn a_launcher_that_does_not_exist() {
    let sandbox = sandbox(PROCESS);
    let mut command = sandbox.command(&["run", "p.toml", "-p", "launcher=mpirunn -n 4"]);
    command.env("HOPMAP_RANKS", sandbox.path().join("process"));
    insta::assert_snapshot!(complaint(&sandbox, &mut command), @r"
    error[engine::no_launcher]: stage `placement` (p.toml:16)
      |-> the launcher `mpirunn` cannot be started
      `-> No such file or directory (os error 2)
      help: install it (on Debian `apt-get install openmpi-bin` has mpirun, `slurm-client` has srun), load its module, or correct `launcher`
    ");
}

#[test]
fn processes_that_are_not_there() {
    let sandbox = sandbox(PROCESS);
    let mut command = launched(&sandbox);
    command.env("HOPMAP_RANKS", "nowhere/hopmap-ranks");
    insta::assert_snapshot!(complaint(&sandbox, &mut command), @r"
    error[engine::no_program]: stage `placement` (p.toml:16)
      `-> hopmap-ranks, which runs stages as MPI ranks, is missing: HOPMAP_RANKS names nowhere/hopmap-ranks
      help: build it from the sources of hopmap with `cargo build --release -p hopmap-ranks` (on Debian after `apt-get install libopenmpi-dev libclang-dev`), then put it next to hopmap or on PATH, or name it in HOPMAP_RANKS
    ");

    // Neither beside the binary nor on the path.
    let hopmap = sandbox.path().join("bin/hopmap");
    sandbox.write("bin/hopmap", std::fs::read(assert_cmd::cargo::cargo_bin!("hopmap")).unwrap());
    std::fs::set_permissions(&hopmap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(hopmap);
    command.args(["run", "p.toml", "-p", "launcher=sh launcher"]).current_dir(sandbox.path());
    command.env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1").env_remove("HOPMAP_RANKS");
    insta::assert_snapshot!(complaint(&sandbox, &mut command), @r"
    error[engine::no_program]: stage `placement` (p.toml:16)
      `-> hopmap-ranks, which runs stages as MPI ranks, is missing: not at HERE/bin/hopmap-ranks, not on PATH
      help: build it from the sources of hopmap with `cargo build --release -p hopmap-ranks` (on Debian after `apt-get install libopenmpi-dev libclang-dev`), then put it next to hopmap or on PATH, or name it in HOPMAP_RANKS
    ");
}

/// Not only the run that needs it, hours later.
#[test]
fn check_finds_that_the_processes_are_not_there() {
    let sandbox = sandbox(PROCESS);
    let mut command = sandbox.command(&["check", "p.toml", "-p", "launcher=sh launcher"]);
    command.env("HOPMAP_RANKS", "nowhere/hopmap-ranks");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("stage `placement` (p.toml:16)") && said.contains("nowhere/hopmap-ranks"),
        "{said}"
    );
}

/// `check` looked for hopmap-ranks only.
#[test]
fn check_finds_launchers_and_programs_that_do_not_exist() {
    let sandbox = sandbox(PROCESS);
    sandbox.edit("p.toml", "launcher = \"${params.launcher}\"", "launcher = \"mpirunn -n 4\"");
    let mut command = sandbox.command(&["check", "p.toml"]);
    command.env("HOPMAP_RANKS", sandbox.path().join("process"));
    insta::assert_snapshot!(complaint(&sandbox, &mut command), @r"
    error[engine::missing_program]: stage `placement` (p.toml:16)
      `-> the launcher `mpirunn` is not on PATH
      help: install it, load its module, or correct its name in the pipeline file
    ");
    for (command, program) in [
        ("[\"./solver\", \"{input}\"]", Some("the program `./solver` does not exist")),
        ("\"qap-solver {input} | tail -1\"", Some("the program `qap-solver` is not on PATH")),
        ("\"cd /tmp && sh {input}\"", None),
        ("\"sh {input}\"", None),
    ] {
        let stage = format!(
            "[stages.machine]\nuses = \"topology/synthetic\"\nwith = {{ shape = \"tree:2\", costs = [1] }}\n\
             [stages.program]\nuses = \"trace/import\"\nwith = {{ path = \"ring.csv\", format = \"csv\" }}\n\
             [stages.a]\nuses = \"map/external\"\nneeds = {{ task-graph = \"program\", system = \"machine\" }}\n\
             with = {{ command = {command} }}\n"
        );
        sandbox.write("external.toml", stage);
        let said = sandbox.seen(&["check", "external.toml"]);
        match program {
            Some(fault) => {
                assert!(said.contains(fault) && said.contains("stage `a` (external.toml:"), "{said}");
            }
            None => assert!(said.contains("is valid"), "{said}"),
        }
    }
}

#[test]
fn processes_that_fail() {
    let sandbox = sandbox("echo something is wrong >&2\nexit 3\n");
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::failed]: stage `placement` (p.toml:16)
      `-> `sh launcher HERE/process HERE/.hopmap/work/KEY/1` ended without a result: exit status: 3
            something is wrong
      help: test the launcher with a simple program such as `hostname`
    ");
    sandbox.write("process", "exit 0\n");
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::failed]: stage `placement` (p.toml:16)
      `-> `sh launcher HERE/process HERE/.hopmap/work/KEY/1` ended without a result: exit status: 0
      help: test the launcher with a simple program such as `hostname`
    ");
    // Done, but not every process came to its end.
    sandbox.write("process", format!("{PROCESS}kill -9 $$\n"));
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::failed]: stage `placement` (p.toml:16)
      `-> `sh launcher HERE/process HERE/.hopmap/work/KEY/1` ended without a result: signal: 9 (SIGKILL)
      help: test the launcher with a simple program such as `hostname`
    ");
    let fault = r#"{"rank":2,"code":"map::invalid","message":"the machine has 4 slots for 8 ranks","help":"take a larger one"}"#;
    sandbox.write("process", format!("echo '{fault}' > $1/fault.json\nexit 1\n"));
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @"
    error[map::invalid]: stage `placement` (p.toml:16)
      |-> rank 2 of `sh launcher HERE/process HERE/.hopmap/work/KEY/1`
      `-> the machine has 4 slots for 8 ranks
      help: take a larger one
    ");
}

#[test]
fn a_saved_state_is_lent_to_the_next_processes() {
    // The state is in the task; what is in it is the stage's own.
    let save = "state=$(sed -n 's/.*\"state\": \"\\(.*\\)\".*/\\1/p' $1/task.json)\n";
    let sandbox = sandbox(&format!("{save}echo half > $state\nkill -9 $$\n"));
    insta::assert_snapshot!(complaint(&sandbox, &mut launched(&sandbox)), @r"
    error[engine::failed]: stage `placement` (p.toml:16)
      `-> `sh launcher HERE/process HERE/.hopmap/work/KEY/1` ended without a result: signal: 9 (SIGKILL)
      help: the state of the search is saved, and the next run resumes it
    ");
    sandbox.stdout(&["gc"]);
    sandbox.write("process", format!("{save}cp $state seen\n{PROCESS}"));
    let output = launched(&sandbox).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sandbox.read("seen"), "half\n");
    assert_eq!(std::fs::read_dir(sandbox.path().join(".hopmap/states")).unwrap().count(), 0);
}

/// A process that delivers a partial result once it is asked to stop.
fn until_stopped() -> String {
    let wait = "touch $folder/begun\nwhile [ ! -e $folder/stop ]; do sleep 0.05; done\n";
    PROCESS.replace("touch $folder/begun\n", wait).replace("\"complete\":true", "\"complete\":false")
}

/// Waits until the processes of a run have begun; fails if the run ends before.
pub(crate) fn wait_until_begun(sandbox: &Sandbox, run: &mut Child) {
    let work = sandbox.path().join(".hopmap/work");
    let has_begun = || {
        let mut folders = std::fs::read_dir(&work).into_iter().flatten().flatten();
        folders.any(|folder| folder.path().join("1/begun").exists())
    };
    while !has_begun() {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_asks_the_processes_for_what_they_have() {
    let sandbox = sandbox(&until_stopped());
    let mut run =
        launched(&sandbox).arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until_begun(&sandbox, &mut run);
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(placement(&output)["state"], "partial");
}

#[test]
fn a_deadline_asks_the_processes_for_what_they_have() {
    let sandbox = sandbox(&format!("trap '' TERM\n{}", until_stopped()));
    let output = launched(&sandbox).args(["--json", "--deadline", "2s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(placement(&output)["state"], "partial");
}

#[test]
fn an_interrupt_ends_a_launcher_that_waits_in_a_queue() {
    let sandbox = sandbox(PROCESS);
    sandbox.write("launcher", "touch queued\nexec sleep 1000\n");
    let mut run = launched(&sandbox).arg("--quiet").stderr(Stdio::piped()).spawn().unwrap();
    while !sandbox.path().join("queued").exists() {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    hopmap_test_support::signal(run.id(), "INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("was stopped before its processes began"), "{said}");
}
