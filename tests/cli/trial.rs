//! `run/trial`: runs in blocks, their output, what is kept, and programs that fail. A script is the launcher, and Open MPI and MPICH in
//! system tests.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use hopmap_artifact::Folder;
use hopmap_model::{Mapping, NOT_PREPARED, TIMED_OUT, TrialRun, Trials};
use hopmap_test_support::{program, signal, system_tests};

use crate::sandbox::Sandbox;

/// Two mappings of four ranks on two hosts, and their trial.
const PIPELINE: &str = r#"name = "t"

[stages.program]
uses = "trace/import"
with = { path = "ring.csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2", hosts = ["a", "b"] }

[stages.linear]
uses  = "map/linear"
needs = { task-graph = "program", system = "machine" }

[stages.other]
uses  = "map/round-robin"
needs = { task-graph = "program", system = "machine" }

[stages.trial]
uses  = "run/trial"
needs = { mappings = ["linear", "other"] }
with  = { program = "./app x", launch = "open-mpi-hosts", launcher = "./launcher -v" }
"#;

/// Finds the host file and the program among its arguments; the host of rank 1 tells the mappings apart.
const LAUNCHER: &str = r#"#!/bin/sh
while [ "$1" != ./app ]; do
  [ "$1" = --hostfile ] && second=$(sed -n 3p "$2")
  shift
done
export second
exec "$@"
"#;

/// Says that it ran, and prints a time by mapping and number of the run.
const APP: &str = r#"#!/bin/sh
echo run >> started
echo "arguments: $*"
echo "$second" > "$HOPMAP_TRIAL/second"
case $second in a) echo "time: 2.$(wc -l < started)" ;; *) echo "time: 1.0" ;; esac
"#;

struct Trial(Sandbox);

impl Trial {
    fn new() -> Self {
        let trial = Self(Sandbox::new());
        trial.0.write("t.toml", PIPELINE);
        trial.0.write("ring.csv", "source,destination,messages,bytes\n0,1,1,10\n1,2,1,10\n2,3,1,10\n");
        trial.script("launcher", LAUNCHER);
        trial.script("app", APP);
        trial
    }

    fn script(&self, name: &str, text: &str) {
        self.0.write(name, text);
        std::fs::set_permissions(self.0.path().join(name), Permissions::from_mode(0o755)).unwrap();
    }

    fn with(&self, parameters: &str) {
        self.0.edit("t.toml", "./launcher -v\"", &format!("./launcher -v\", {parameters}"));
    }

    fn run(&self) -> String {
        self.0.seen(&["run", "t.toml", "--no-report", "--quiet"])
    }

    fn trials(&self) -> Trials {
        Folder::read(&self.0.artifact("trial")).unwrap()
    }

    fn started(&self) -> usize {
        self.0.read("started").lines().count()
    }
}

fn order(runs: &[TrialRun]) -> Vec<(&str, Option<u32>)> {
    runs.iter().map(|run| (run.mapping.as_str(), run.block)).collect()
}

#[test]
fn mappings_run_in_blocks_of_drawn_order_and_their_output_is_kept() {
    let trial = Trial::new();
    trial.with("runs = 3, time_after = \"time:\"");
    trial.run();
    let trials = trial.trials();
    assert_eq!(order(&trials.runs[..2]), [("linear", None), ("other", None)]);
    for (block, runs) in (0..3).zip(trials.runs[2..].chunks(2)) {
        let mut runs = order(runs);
        runs.sort_unstable();
        assert_eq!(runs, [("linear", Some(block)), ("other", Some(block))]);
    }
    // `linear` prints the number of its run.
    let place = |row: usize| trials.runs[row].mapping == "linear";
    let times: Vec<f64> = (2..8).filter(|row| place(*row)).map(|row| 2.1 + 0.1 * row as f64).collect();
    let near =
        |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-9);
    assert!(near(&trials.seconds("linear"), &times), "{trials:?}");
    assert_eq!(trials.seconds("other"), [1.0; 3]);
    for run in &trials.runs {
        assert_eq!((run.exit, run.complete, run.mpi_s, run.lateness_s), (Some(0), true, None, None));
    }
    let file = |name: &str| std::fs::read_to_string(&trials.files.files()[name]).unwrap();
    assert_eq!(file("1/stdout"), "arguments: x\ntime: 1.0\n");
    assert_eq!((file("1/second").as_str(), file("0/second").as_str()), ("b\n", "a\n"));
    assert_eq!(trials.files.files().len(), 3 * 8);
    assert!((trials.metrics["gain"] - (1.0 - 1.0 / times[1])).abs() < 1e-9);
}

#[test]
fn a_trial_is_kept_until_the_program_changes_and_a_verification_starts_none() {
    let trial = Trial::new();
    trial.with("runs = 1, warm_up = 0");
    trial.run();
    assert_eq!(trial.started(), 2);
    let again = trial.0.seen(&["run", "t.toml", "--no-report"]);
    assert!(again.contains("nothing to do"), "{again}");
    let verified = trial.0.seen(&["verify", "t.toml"]);
    assert!(verified.contains("measures a program; not compared"), "{verified}");
    trial.0.stdout(&["report", "t.toml"]);
    trial.0.stdout(&["export", "t.toml", "-o", "t.crate.zip"]);
    let verified = trial.0.seen(&["verify", "t.crate.zip", "--rerun"]);
    assert!(verified.contains("4 the same, 1 not comparable"), "{verified}");
    // A lock without the result that it names.
    trial.0.stdout(&["run", "t.toml", "--no-report", "--lock"]);
    std::fs::remove_dir_all(trial.0.path().join(".hopmap")).unwrap();
    let verified = trial.0.seen(&["verify", "t.toml", "--lock"]);
    assert!(verified.contains("which was not asked for, and its result is not in the store"), "{verified}");
    assert_eq!(trial.started(), 2);
    trial.script("app", &APP.replace("arguments", "words"));
    trial.run();
    assert_eq!(trial.started(), 4);
}

#[test]
fn the_program_of_an_imported_trial_is_shown_and_starts_only_when_allowed() {
    let trial = Trial::new();
    trial.with("runs = 1, warm_up = 0, env = { A = \"x y\" }");
    trial.run();
    trial.0.stdout(&["export", "t.toml", "-o", "t.zip"]);
    trial.0.stdout(&["import", "t.zip", "new"]);
    let run = ["run", "new/t.toml", "--no-report"];
    // All results are in the archive.
    trial.0.stdout(&run);
    trial.script("app", &APP.replace("arguments", "words"));
    for arguments in [
        &["plan", "new/t.toml"][..],
        &["report", "new/t.toml"],
        &["show", "trial", "--store", "new/.hopmap"],
        &["verify", "new/t.toml"],
    ] {
        trial.0.stdout(arguments);
    }
    let seen = trial.0.seen(&run);
    assert!(seen.contains("stage `trial`: A='x y' ./launcher -v ./app x"), "{seen}");
    assert!(seen.contains("--allow-programs") && seen.ends_with("[exit code 2]\n"), "{seen}");
    assert_eq!(trial.started(), 2);
    trial.0.stdout(&[&run[..], &["--allow-programs"]].concat());
    assert_eq!(trial.started(), 4);
    trial.script("app", &APP.replace("arguments", "other words"));
    let seen = trial.0.seen(&run);
    assert_eq!(trial.started(), 6, "it is asked only once: {seen}");
}

#[test]
fn what_cannot_run_is_one_message() {
    let message = |change: (&str, &str)| {
        let trial = Trial::new();
        trial.0.edit("t.toml", change.0, change.1);
        trial.run()
    };
    for (change, expected) in [
        (("./app x", "./none x"), "the program `./none` does not exist"),
        (("./app x", "./ring.csv"), "the program `./ring.csv` is not executable"),
        (("./app x", "hopmap-none"), "the program `hopmap-none` is not on PATH"),
        (("./launcher -v", "./none"), "the launcher `./none` cannot be started"),
        (("[\"linear\", \"other\"]", "[]"), "no mapping"),
        (("\"a\", \"b\"", "\"a.x\", \"a.y\""), "Open MPI treats `a.x` and `a.y` as one host"),
    ] {
        let seen = message(change);
        assert!(seen.contains(expected), "{expected}:\n{seen}");
    }
}

#[test]
fn a_program_that_always_fails_ends_the_trial_with_its_message() {
    let trial = Trial::new();
    trial.script("app", "#!/bin/sh\necho run >> started\necho no licence >&2\nexit 3\n");
    let seen = trial.run();
    assert!(seen.contains("the program fails under every mapping"), "{seen}");
    assert!(seen.contains("exit status: 3") && seen.contains("no licence"), "{seen}");
    assert_eq!(trial.started(), 2);
}

#[test]
fn a_mapping_that_fails_is_given_up_and_the_others_go_on() {
    let trial = Trial::new();
    trial.with("runs = 3, timeout_s = 0.2");
    trial.script("app", "#!/bin/sh\n[ $second = b ] && sleep 30\nexit 0\n");
    let seen = trial.run();
    assert!(!seen.contains('×'), "{seen}");
    let trials = trial.trials();
    let of = |name: &str| -> Vec<(Option<u32>, bool)> {
        let runs = trials.runs.iter().filter(|run| run.mapping == name);
        runs.map(|run| (run.exit, run.complete)).collect()
    };
    assert_eq!(of("linear"), [(Some(0), true); 4]);
    assert_eq!(of("other"), [(Some(TIMED_OUT), false); 2]);
    assert!((trials.metrics["incomplete"] - 2.0).abs() < 1e-9);
}

#[test]
fn what_was_measured_is_kept_if_a_host_dies_and_the_next_run_goes_on() {
    let trial = Trial::new();
    trial.with("precision = 0.000001, warm_up = 0");
    let app = "#!/bin/sh\necho run >> started\n[ $(wc -l < started) -gt 14 ] && [ $second = b ] && exit 1\nexit 0\n";
    trial.script("app", app);
    let seen = trial.0.seen(&["run", "t.toml", "--no-report"]);
    assert!(seen.contains("no winner is named: other failed in 4 of 11 runs, more than 5 %"), "{seen}");
    let trials = trial.trials();
    let complete = |name: &str| trials.runs.iter().filter(|run| run.mapping == name && run.complete).count();
    assert_eq!((complete("linear"), complete("other")), (11, 7));
    assert_eq!(trials.runs.len(), 22);
    // Nothing has changed, but such a result is not kept for good.
    std::fs::remove_file(trial.0.path().join("started")).unwrap();
    let seen = trial.0.seen(&["run", "t.toml", "--no-report"]);
    assert!(
        seen.contains("goes on after 11 blocks") && seen.contains("other failed in 8 of 22 runs"),
        "{seen}"
    );
    assert_eq!((trial.started(), trial.trials().runs.len()), (22, 44));
}

/// A `prepare` that failed in the middle of a trial, as on a full disk, lost all its runs.
#[test]
fn what_was_measured_is_kept_if_what_prepares_a_run_fails() {
    let trial = Trial::new();
    trial.with(
        "precision = 0.000001, warm_up = 0, prepare = \"test ! -e full || { echo no space >&2; exit 3; }\"",
    );
    trial.script("app", "#!/bin/sh\necho run >> started\n[ $(wc -l < started) -lt 10 ] || touch full\n");
    let seen = trial.0.seen(&["run", "t.toml", "--no-report"]);
    assert!(seen.contains("was not started: `prepare`: ") && seen.contains("no space"), "{seen}");
    let runs = trial.trials().runs;
    let (complete, failed) = runs.split_at(10);
    assert!(complete.iter().all(|run| run.complete), "{complete:?}");
    assert!(failed.iter().all(|run| run.exit == Some(NOT_PREPARED)), "{failed:?}");
}

#[test]
fn an_interrupted_trial_keeps_what_was_measured() {
    let trial = Trial::new();
    trial.with("runs = 3, warm_up = 0");
    // A rank that outlives its launcher and writes later, as those on other hosts do.
    let late = "(setsid sh -c 'sleep 2; echo late' &); sleep 60";
    let app =
        format!("#!/bin/sh\necho run >> started\n[ $(wc -l < started) = 4 ] && {{ {late}; }}\nexit 0\n");
    trial.script("app", &app);
    let mut child = trial.0.command(&["run", "t.toml", "--no-report", "--quiet"]).spawn().unwrap();
    let since = Instant::now();
    let started = || std::fs::read_to_string(trial.0.path().join("started")).unwrap_or_default();
    while started().lines().count() < 4 && since.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(child.id(), "INT");
    assert!(!child.wait().unwrap().success());
    let runs = trial.trials().runs;
    assert_eq!(runs.iter().filter(|run| run.complete).count(), 3);
    assert_eq!(runs.len(), 4);
    assert_eq!((runs[3].exit, runs[3].complete), (None, false));
    assert!(trial.trials().is_stopped());
    std::thread::sleep(Duration::from_millis(2500));
    // The block that was stopped runs again, after the one before it.
    trial.run();
    let trials = trial.trials();
    assert_eq!((trial.started(), trials.runs.len()), (8, 8));
    assert_eq!(trials.pairs("linear", "other").len(), 3);
    assert_eq!((trials.looks.as_slice(), trials.is_stopped()), (&[4][..], false));
    let files = trials.files.files();
    assert!((0..8).all(|run| files.contains_key(&format!("{run}/stdout"))), "{files:?}");
}

/// A script ended at once, and the mpirun that it had started was killed before it had ended its ranks.
#[test]
fn an_interrupted_trial_leaves_the_launcher_of_a_script_time_to_end_its_ranks() {
    let trial = Trial::new();
    trial.with("runs = 1, warm_up = 0");
    trial.script("launcher", &LAUNCHER.replace("exec ", ""));
    let app = "#!/bin/sh\ntrap 'sleep 1; echo ended > tidy; exit 1' TERM\necho > begun\nwhile :; do sleep 0.1; done\n";
    trial.script("app", app);
    let mut child = trial.0.command(&["run", "t.toml", "--no-report", "--quiet"]).spawn().unwrap();
    let since = Instant::now();
    while !trial.0.path().join("begun").exists() && since.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(child.id(), "INT");
    assert!(!child.wait().unwrap().success());
    assert_eq!(trial.0.read("tidy"), "ended\n");
}

/// Gives the program the hosts of all ranks, such as `aabb`.
const ORDER_LAUNCHER: &str = r#"#!/bin/sh
while [ "$1" != ./app ]; do
  [ "$1" = --hostfile ] && order=$(sed 's/ .*//;/^#/d' "$2" | tr -d '\n')
  shift
done
export order
exec "$@"
"#;

/// Three mappings: `linear`, `other` and the fastest one, `random`; the fourth one, `again`, is `linear`.
fn with_choice(times: &str, parameters: &str) -> Trial {
    let trial = Trial::new();
    trial.script("launcher", ORDER_LAUNCHER);
    trial.script("app", &format!("#!/bin/sh\ncase $order in {times} esac\n"));
    let more = r#"
[stages.random]
uses  = "map/random"
with  = { seed = 2 }
needs = { task-graph = "program", system = "machine" }

[stages.again]
uses  = "stored/mapping"
with  = { path = "${stages.linear.path}" }

[stages.best]
uses  = "run/best"
needs = { trials = "trial", mappings = ["linear", "other", "random"] }

[gates]
faster = "trial.gain >= 0.05"
"#;
    trial.0.write("t.toml", trial.0.read("t.toml") + more);
    trial.0.edit("t.toml", "\"linear\", \"other\"", "\"linear\", \"other\", \"random\", \"again\"");
    trial.with(&format!("warm_up = 0, time_after = \"time:\", {parameters}"));
    trial
}

#[test]
fn the_best_of_several_mappings_is_measured_again_in_fresh_blocks() {
    let times = "aabb) echo time: 2.0 ;; abab) echo time: 1.5 ;; *) echo time: 1.0 ;;";
    let trial = with_choice(times, "precision = 0.01, choose = 2");
    let seen = trial.0.seen(&["run", "t.toml", "--no-report"]);
    let sentence = "random is 50.0 % faster than linear (95 % interval 45.0 to 53.7, 12 pairs)";
    assert!(seen.contains(sentence) && !seen.contains("other is"), "{seen}");
    let trials = trial.trials();
    let names: Vec<&str> = trials.mappings.iter().map(|mapping| mapping.name.as_str()).collect();
    assert_eq!(names, ["linear", "other", "random"]);
    let runs = |choice: bool| {
        trials.runs.iter().filter(move |run| run.choice == choice).map(|run| run.mapping.as_str())
    };
    for block in runs(true).collect::<Vec<_>>().chunks_mut(3) {
        block.sort_unstable();
        assert_eq!(block, ["linear", "other", "random"]);
    }
    assert_eq!(runs(true).count(), 6);
    assert_eq!(runs(false).filter(|name| *name == "random").count(), 12);
    assert_eq!(runs(false).count(), 24);
    let digest = |stage: &str| Folder::open(&trial.0.artifact(stage)).unwrap().digest().to_owned();
    assert_eq!(digest("best"), digest("random"));
}

#[test]
fn a_gate_wants_a_gain_and_without_one_the_first_mapping_is_the_best() {
    let trial = with_choice("*) echo time: 1.0 ;;", "runs = 6, choose = 1");
    let output = trial.0.output(&["run", "t.toml", "--no-report"]);
    assert_eq!(output.status.code(), Some(3));
    let digest = |stage: &str| Folder::open(&trial.0.artifact(stage)).unwrap().digest().to_owned();
    assert_eq!(digest("best"), digest("linear"));
}

#[test]
fn a_trial_starts_no_block_that_does_not_fit_into_its_time() {
    let trial = Trial::new();
    trial.with("runs = 3, time_s = 0.001");
    trial.run();
    assert_eq!(order(&trial.trials().runs), [("linear", None), ("other", None)]);
}

/// The deadline of a run cut a trial in the middle of a run.
#[test]
fn the_deadline_of_a_run_ends_a_trial_between_its_runs_and_the_next_goes_on() {
    let trial = Trial::new();
    trial.script("app", "#!/bin/sh\necho run >> started\nsleep 0.3\necho time: 1\n");
    trial.with("runs = 40, time_after = \"time:\"");
    let seen = trial.0.seen(&["run", "t.toml", "--no-report", "--deadline", "4s"]);
    assert!(seen.contains("a further block would not fit before the deadline"), "{seen}");
    let trials = trial.trials();
    assert!(trials.runs.len() > 4 && trials.runs.len().is_multiple_of(2), "{seen}");
    assert!(trials.runs.iter().all(|run| run.complete), "{seen}");
    let seen = trial.0.seen(&["run", "t.toml", "--no-report", "--deadline", "4s"]);
    assert!(seen.contains("goes on after "), "{seen}");
}

/// The hosts were those of --hosts or of a mapping only.
#[test]
fn the_hosts_of_a_job_are_those_of_a_trial() {
    let trial = Trial::new();
    let command = "trial --launch open-mpi-hosts --launcher ./launcher --time-after time: --runs 6 linear rr=round-robin -- ./app x";
    let mut command = trial.0.command(&command.split_whitespace().collect::<Vec<_>>());
    let output =
        command.env("SLURM_JOB_NODELIST", "a,b").env("SLURM_TASKS_PER_NODE", "3,1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let best: Mapping = Folder::read(&trial.0.path().join("trial/best")).unwrap();
    let slots: Vec<_> = best.hosts.iter().map(|host| (host.host.as_str(), host.slots)).collect();
    assert_eq!(slots, [("a", 3), ("b", 1)]);
    // The same hosts by name.
    let command = "trial --hosts a,b --slots 3,1 -o named --launch open-mpi-hosts --launcher ./launcher --time-after time: --runs 6 linear rr=round-robin -- ./app x";
    trial.0.seen(&command.split_whitespace().collect::<Vec<_>>());
    let named: Mapping = Folder::read(&trial.0.path().join("named/best")).unwrap();
    assert_eq!(named.hosts, best.hosts);
}

#[test]
fn one_command_writes_a_pipeline_and_measures_placements() {
    let trial = Trial::new();
    let command = "trial --hosts a,b --slots 2 -n 4 --launch open-mpi-hosts --launcher ./launcher --time-after time: linear \
                   rr=round-robin -- ./app x";
    let command: Vec<&str> = command.split_whitespace().collect();
    trial.script(
        "app",
        "#!/bin/sh\necho run >> started\n[ $second = a ] && echo time: 2.0 || echo time: 1.0\n",
    );
    let seen = trial.0.stdout(&command);
    let sentence = "rr is 50.0 % faster than linear (95 % interval 45.0 to 53.7, 12 pairs)\n";
    assert!(seen.ends_with(sentence), "{seen}");
    assert_eq!(trial.started(), 26);
    let best: Mapping = Folder::read(&trial.0.path().join("trial/best")).unwrap();
    assert_eq!(best.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 1, 0, 1]);
    // The same again is there already, also as a pipeline; the mapping is a placement.
    assert!(trial.0.stdout(&command).ends_with(sentence));
    trial.0.stdout(&["run", "trial/trial.toml", "--no-report"]);
    assert_eq!(trial.started(), 26);
    let again = "trial --launch open-mpi-hosts --launcher ./launcher --time-after time: --runs 6 linear trial/best -o again \
                 -- ./app";
    let seen = trial.0.stdout(&again.split_whitespace().collect::<Vec<_>>());
    assert!(
        seen.ends_with("best is 50.0 % faster than linear (95 % interval 45.0 to 53.7, 6 pairs)\n"),
        "{seen}"
    );
}

/// Arguments with `${…}` were taken for references, and names of placements met those of other stages.
#[test]
fn arguments_reach_the_program_as_they_were_typed_and_names_meet_no_stage() {
    let trial = Trial::new();
    trial.script("app", "#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\necho '${t} 1.0'\n");
    let typed = ["${HOME}", "$${HOME}", "$$$${a", "a\"'b\\c", "${params.x}", "}$"];
    let options =
        ["--hosts", "a,b", "--slots", "2", "--launch", "open-mpi-hosts", "--launcher", "./launcher '${v}'"];
    let options =
        [&["trial", "-o", "o ${x}"][..], &options, &["--time-after", "${t}", "--runs", "6"]].concat();
    let placements = ["linear", "rr=round-robin", "--", "./app"];
    trial.0.stdout(&[&options[..], &placements, &typed].concat());
    assert_eq!(trial.0.read("arguments").lines().collect::<Vec<_>>(), typed);
    for name in ["trial", "trial-best", "trial-hosts", "trial-ranks"] {
        let placement = format!("{name}=round-robin");
        let seen = trial.0.seen(&[&options[..], &["linear", &placement, "--", "./app"]].concat());
        assert!(seen.contains(&format!("`{name}` cannot be the name of a placement")), "{seen}");
    }
}

/// After `kill -9`, the ranks of a trial ran on beside those of the next one.
#[test]
fn a_trial_that_is_killed_takes_its_run_with_it_before_the_next_one_runs() {
    let trial = Trial::new();
    trial.with("runs = 1, warm_up = 0");
    // A rank that does not hear SIGTERM.
    let app = "#!/bin/sh\n[ -f first ] && { grep -v ') Z ' /proc/$(cat first)/stat >> beside; exit 0; }\n\
               trap '' TERM\necho $$ > first\nwhile :; do sleep 0.1; done\n";
    trial.script("app", app);
    let run = ["run", "t.toml", "--no-report", "--quiet"];
    let mut killed = trial.0.command(&run).spawn().unwrap();
    let since = Instant::now();
    while !trial.0.path().join("first").exists() && since.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Time for the group to be noted.
    std::thread::sleep(Duration::from_millis(500));
    killed.kill().unwrap();
    killed.wait().unwrap();
    trial.0.stdout(&run);
    assert_eq!(trial.0.read("beside"), "");
}

/// `hopmap trial` of two placements whose program prints a time.
fn command_with(trial: &Trial, app: &str, options: &str) -> std::process::Output {
    trial.script("app", &format!("#!/bin/sh\necho run >> started\n{app}"));
    let command = format!(
        "trial --hosts a,b --slots 2 -n 4 --launch open-mpi-hosts --launcher ./launcher --time-after time: {options} linear \
         rr=round-robin -- ./app x"
    );
    trial.0.output(&command.split_whitespace().collect::<Vec<_>>())
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_placement_that_fails_in_every_second_run_does_not_win() {
    let trial = Trial::new();
    let app = "[ $second = a ] && { echo time: 10; exit; }\necho b >> b\n\
               [ $(($(wc -l < b) % 2)) = 1 ] && echo time: 9.5 || { echo crash >&2; exit 1; }\n";
    let output = command_with(&trial, app, "--runs 12");
    let seen = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(seen.ends_with("no winner is named: rr failed in 6 of 12 runs, more than 5 %\n"), "{seen}");
    let best = || Folder::read::<Mapping>(&trial.0.path().join("trial/best")).unwrap();
    assert_eq!(best().ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 0, 1, 1]);
    // Nothing is measured again.
    let started = trial.started();
    let output = command_with(&trial, app, "--runs 12 --allow-failures");
    let seen = stdout(&output);
    assert!(output.status.success() && seen.ends_with("; rr failed in 6 of 12 runs\n"), "{seen}");
    assert_eq!((trial.started(), started), (26, 26));
}

#[test]
fn a_baseline_that_fails_is_not_the_mapping_to_use() {
    let trial = Trial::new();
    let app = "[ $second = b ] && { echo time: 10; exit; }\necho a >> a\n[ $(($(wc -l < a) % 3)) = 0 ] && exit 1\necho time: 9\n";
    let output = command_with(&trial, app, "--runs 12");
    let seen = trial.0.seen(&["run", "trial/trial.toml", "--no-report"]);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(seen.contains("`linear` is the mapping to use, but failed in 4 of 12 runs"), "{seen}");
    assert!(!trial.0.path().join("trial/best").exists());
}

/// It ran until somebody noticed.
#[test]
fn a_run_that_hangs_ends_with_the_time_of_the_trial() {
    let trial = Trial::new();
    let app = "[ $second = a ] || [ $(wc -l < started) -lt 3 ] || sleep 600\necho time: 1.00 s\n";
    let output = command_with(&trial, app, "--runs 500 --deadline 6s");
    let seen = format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
    assert!(seen.contains("of `rr`, did not end within "), "{seen}");
    // One run of each is more than the time, and none of them hangs.
    let slow = command_with(&trial, "sleep 1.5\necho time: 1.00 s\n", "--deadline 1s -o slow");
    let seen = format!("{}{}", stdout(&slow), String::from_utf8_lossy(&slow.stderr));
    assert!(!seen.contains("did not end"), "{seen}");
    // It ended with 0.
    assert!(slow.status.code() == Some(1) && seen.contains("trial::no_time"), "{seen}");
}

#[test]
fn printed_times_of_minutes_are_read_and_ambiguous_ones_quoted() {
    let trial = Trial::new();
    let output = command_with(&trial, "[ $second = a ] && echo time: 0:01:01 || echo time: 0:02:02\n", "");
    assert!(
        stdout(&output)
            .ends_with("rr is 100.0 % slower than linear (95 % interval 96.8 to 102.5, 12 pairs)\n"),
        "{output:?}"
    );
    // Two programs of about 35 ms were 25 % apart "for certain".
    let output = command_with(&trial, "[ $second = a ] && echo time: 0.04 || echo time: 0.03\n", "");
    let seen = format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
    assert!(
        seen.contains("times are printed in steps of 0.01 s, which hide differences of up to 33.3 %"),
        "{seen}"
    );
    assert!(seen.contains("no difference between linear and rr could be seen: at most ±44.4 %"), "{seen}");
    let output = command_with(&trial, "echo time: 1,61.5 s\n", "");
    let seen = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{seen}");
    assert!(
        seen.contains("the program fails under every mapping") && seen.contains("`time: 1,61.5 s`"),
        "{seen}"
    );
}

#[test]
fn what_is_no_placement_is_one_message() {
    let sandbox = Sandbox::new();
    sandbox.write("trial/trial.toml", "name = \"mine\"\n");
    sandbox.write("app", "");
    for (words, expected) in [
        ("linear", "there is one"),
        ("linear none", "the placement `none` is neither a folder of a mapping nor a stage"),
        ("linear linear", "two placements are named `linear`"),
        ("linear trial", "artifact.json"),
        ("linear random", "no hosts are given"),
        ("--hosts a --slots 1 -n 2 linear random", "2 ranks do not fit into 1 slots"),
        ("--hosts a --slots 1 linear random", "trial/trial.toml is not a pipeline that hopmap wrote"),
        ("--hosts a --slots 2 --launch none --out other linear random", "unknown variant `none`"),
        ("--hosts localhost --slots 999 --out other linear random", "too few for 999 slots"),
    ] {
        let arguments: Vec<&str> =
            ["trial"].into_iter().chain(words.split(' ')).chain(["--", "./app"]).collect();
        let seen = sandbox.seen(&arguments);
        assert!(seen.contains(expected), "{expected}:\n{seen}");
    }
}

/// Errors were at a line of the file that the command had written.
#[test]
fn a_wrong_value_names_its_option_and_no_line_of_the_pipeline() {
    let sandbox = Sandbox::new();
    sandbox.write("app", "");
    for (option, value) in [
        ("--slots", "0"),
        ("--ranks", "0"),
        ("--launch", "none"),
        ("--launcher", "'x"),
        ("--precision", "0"),
        ("--runs", "20000"),
        ("--deadline", "40years"),
        ("--time-after", " "),
        ("--repetition", "x"),
    ] {
        let words = ["trial", "--hosts", "a:2,b:2", option, value, "linear", "random", "--", "./app"];
        let seen = sandbox.seen(&words);
        assert!(seen.contains(option) && !seen.contains(".toml"), "{option}:\n{seen}");
        assert!(seen.ends_with("[exit code 2]\n"), "{option}:\n{seen}");
    }
}

#[test]
fn one_command_measures_with_open_mpi() {
    if !system_tests() || program("mpirun.openmpi").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    for command in [
        "exec topology/synthetic -p hosts=localhost -p slots=2 --out machine",
        "exec instance/stencil -p shape=1x2 --out ranks",
        "exec map/random -p seed=0 --in task-graph=ranks --in system=machine --out swapped",
    ] {
        sandbox.stdout(&command.split(' ').collect::<Vec<_>>());
    }
    let command = "trial --out out --store .hopmap --launcher mpirun.openmpi --runs 6 linear swapped -- true";
    let mut command = sandbox.command(&command.split(' ').collect::<Vec<_>>());
    let output = command.envs(hopmap_mpi_environment::AS_ROOT).output().unwrap();
    let seen = String::from_utf8(output.stdout).unwrap();
    let last = seen.lines().last().unwrap_or_default();
    assert!(output.status.success() && last.contains("linear") && last.contains("6 pairs"), "{seen}");
    let trials: Trials = Folder::read(&sandbox.artifact("trial")).unwrap();
    assert!(trials.runs.iter().all(|run| run.complete));
    assert!(trials.metrics.contains_key("gain_low") && trials.metrics.contains_key("gain_high"));
}

/// Two ranks on this host, in both orders of its cores.
fn with_mpi(launch: &str, launcher: &str) {
    if !system_tests() || program(launcher).is_none() {
        return;
    }
    let trial = Trial::new();
    let pipeline = PIPELINE.replace("tree:2x2", "tree:2x1").replace("\"a\", \"b\"", "\"localhost\"");
    let pipeline = pipeline
        .replace("map/round-robin\"", "map/random\"\nwith  = { seed = 0 }")
        .replace("./app x", "sh app");
    trial.0.write("t.toml", pipeline.replace("open-mpi-hosts", launch).replace("./launcher -v", launcher));
    trial.0.write("ring.csv", "source,destination,messages,bytes\n0,1,1,10\n");
    trial.0.write("app", "echo ran >> \"$HOPMAP_TRIAL/ranks\"\necho $MARK\n");
    trial.0.edit(
        "t.toml",
        &format!("\"{launcher}\""),
        &format!("\"{launcher}\", runs = 1, warm_up = 0, env = {{ MARK = \"m\" }}"),
    );
    let mut command: Command = trial.0.command(&["run", "t.toml", "--no-report", "--quiet"]);
    let output = command.envs(hopmap_mpi_environment::AS_ROOT).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ran(&trial.trials());
}

fn ran(trials: &Trials) {
    assert_eq!(trials.runs.len(), 2);
    for (index, run) in trials.runs.iter().enumerate() {
        // Processors count in ticks of 10 ms.
        let is_short = run.seconds < Some(0.1);
        assert!(run.complete && run.seconds > Some(0.0) && (is_short || run.idle.is_some()), "{run:?}");
        let file =
            |name: &str| std::fs::read_to_string(&trials.files.files()[&format!("{index}/{name}")]).unwrap();
        assert_eq!((file("stdout").as_str(), file("ranks").as_str()), ("m\nm\n", "ran\nran\n"));
    }
}

#[test]
fn open_mpi_runs_a_trial() {
    with_mpi("open-mpi-4", "mpirun.openmpi");
}

#[test]
fn mpich_runs_a_trial() {
    with_mpi("mpich", "mpiexec.mpich");
}

/// `place` and `trial` did not meet: only the folder of an artifact was a placement.
#[test]
fn a_placement_is_named_by_its_stage_or_by_its_launch_file() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    let tried =
        |words: &[&str]| sandbox.seen(&[&["trial", "--launcher", "true"], words, &["--", "true"]].concat());
    // Equal mappings need no run.
    let seen = tried(&["ring:placement", "again=out/rankfile", "rankfile"]);
    assert!(seen.contains("again is not run: it is the same as placement"), "{seen}");
    let file = sandbox.read("trial/trial.toml");
    let paths: Vec<&str> = file.lines().filter(|line| line.contains(".hopmap/artifacts/")).collect();
    assert!(paths.len() == 3 && paths.iter().all(|path| *path == paths[0]), "{file}");
    for name in ["[stages.placement]", "[stages.again]", "[stages.rankfile]"] {
        assert!(file.contains(name), "{file}");
    }
    let ranks = sandbox.read("out/rankfile");
    sandbox.write("out/rankfile", ranks + "# edited\n");
    let edited = tried(&["linear", "out/rankfile"]);
    assert!(edited.contains("out/rankfile was edited since hopmap wrote it"), "{edited}");
    let matrix = tried(&["--hosts", "a,b", "--slots", "2", "linear", "ring.csv"]);
    assert!(matrix.contains("ring.csv:1: the machine has no host `source`"), "{matrix}");
    let none = tried(&["linear", "nothing"]);
    assert!(
        none.contains(
            "the placement `nothing` is neither a folder of a mapping nor a stage nor a launch file"
        ),
        "{none}"
    );
}

/// Only launch files that hopmap wrote were placements.
#[test]
fn launch_files_of_other_tools_are_placements() {
    let sandbox = Sandbox::new();
    for (name, text) in [
        ("rankfile", "rank 0=b slot=0\nrank 1=a slot=0\n"),
        ("machinefile", "b:1\na:1\n"),
        ("slurm-hostfile", "b\na\n"),
        ("reordered", "1 a\n0 b\n"),
        ("reordered-cores", "1 a 0\n0 b 0\n"),
    ] {
        sandbox.write(name, text);
        let options = ["--launcher", "true", "--runs", "6", "--hosts", "a,b", "--slots", "1"];
        sandbox.stdout(&[&["trial"], &options[..], &["linear", name, "--", "true"]].concat());
        let stage = format!("trial:{name}");
        let table = ["--table", "ranks", "--format", "csv", "--store", "trial/.hopmap"];
        let ranks = sandbox.stdout(&[&["show", &stage], &table[..]].concat());
        assert!(ranks.contains("\n0,1,"), "{name}: {ranks}");
    }
}
