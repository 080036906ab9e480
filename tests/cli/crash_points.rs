//! `kill -9` at every step that something on disk depends on: run again, everything is as if nothing had happened.
//!
//! Each scenario is run once to see which points of `hopmap_durable::CRASH_POINTS` it passes, and then once for the first and the last
//! passing of each; in a soak for every passing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap::refresh::{Publication, read_machine};
use hopmap_durable::{CRASH_POINTS, is_leftover};
use hopmap_test_support::soak;
use serde_json::Value;

use crate::checkpoint::{names, noise};
use crate::sandbox::{Sandbox, project};
use crate::topology_site::{Plan, Site};

/// A command that is killed.
struct Scenario {
    arguments: &'static [&'static str],
    /// A folder in which the command has everything it needs, the same every time.
    begin: fn() -> Sandbox,
    /// What holds whenever the command was killed.
    killed: fn(&Sandbox),
    /// Whether the command has done what it should before it was killed: it is not run again then.
    done: fn(&Sandbox) -> bool,
    /// What is there when the command has been run to its end.
    outcome: fn(&Sandbox) -> String,
    /// Beginning of the names of the points at which it is killed.
    points: &'static str,
    /// Folders in which nothing is left of the killed process then.
    tidy: &'static [&'static str],
}

/// A command on a pipeline, which has to be run again in any case.
const RUN: Scenario = Scenario {
    arguments: &["run", "ring.toml", "-j1", "--quiet"],
    begin: ring,
    killed: |_| {},
    done: |_| false,
    outcome: store_and_copies,
    points: "",
    tidy: &[".hopmap", "out"],
};

fn ring() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 2000");
    sandbox.edit(
        "ring.toml",
        "uses  = \"map/annealing\"\n",
        "uses  = \"map/annealing\"\nsave  = { mapping = \"out/placement\" }\n",
    );
    sandbox
}

fn ran() -> Sandbox {
    let sandbox = ring();
    sandbox.stdout(RUN.arguments);
    sandbox
}

/// One with results that are to be made again, and copies that are to be replaced.
fn ran_and_changed() -> Sandbox {
    let sandbox = ran();
    sandbox.edit("ring.toml", "[1, 10]", "[1, 20]");
    sandbox.edit("ring.toml", "evaluations = 2000", "evaluations = 3000");
    sandbox.write("ring.csv", crate::sandbox::ring(7));
    sandbox
}

fn with_garbage() -> Sandbox {
    let sandbox = ran_and_changed();
    sandbox.stdout(RUN.arguments);
    sandbox
}

fn exported() -> Sandbox {
    let sandbox = ran();
    sandbox.stdout(&["export", "ring.toml", "-o", "ring.zip"]);
    sandbox
}

/// The cells as a run finds them that has nothing to do, and every byte of what is in the store then and of the copies.
fn store_and_copies(sandbox: &Sandbox) -> String {
    let ran: Value = serde_json::from_str(&sandbox.stdout(&["run", "ring.toml", "--json"])).unwrap();
    let cells = ran["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["state"] == "cached"), "{ran}");
    // One line for each time that a cell has run.
    let log = sandbox.read(".hopmap/state.log");
    let results: Vec<&str> = log.lines().filter(|line| line.starts_with("{\"result\"")).collect();
    let keys: BTreeSet<String> = results
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"]["key"].to_string())
        .collect();
    assert!(!keys.is_empty() && keys.len() == results.len(), "a cell was done and ran again: {log}");
    sandbox.stdout(&["gc", "--quiet"]);
    let mut files = Vec::new();
    for folder in [".hopmap/artifacts", ".hopmap/states", "out"] {
        collect(&sandbox.path().join(folder), &mut files);
    }
    let hash = |path: &PathBuf| blake3::hash(&fs::read(path).unwrap()).to_hex();
    let name = |path: &PathBuf| path.strip_prefix(sandbox.path()).unwrap().display().to_string();
    let mut files: Vec<String> = files
        .iter()
        .filter(|path| !is_left(path))
        .map(|path| format!("{} {}\n", name(path), hash(path)))
        .collect();
    files.sort();
    files.concat()
}

fn archive(sandbox: &Sandbox) -> String {
    let seen = sandbox.stdout(&["verify", "ring.zip"]);
    // Times are in the report, so that an archive has some bytes more or less.
    seen.split(", ").next().unwrap().to_owned()
}

/// A pipeline whose last stage is a job, and a batch system whose jobs have run when they are submitted.
fn with_jobs() -> Sandbox {
    const SBATCH: &str = r#"#!/bin/sh
unset HOPMAP_CRASH_AT HOPMAP_CRASH_LOG
for word; do
  case $word in --job-name=*) name=${word#*=} ;; esac
  script=$word
done
number=$(($(grep -c . "$0.jobs") + 1))
echo "$number $name" >> "$0.jobs"
sh "$script" > /dev/null 2>&1
echo $number
"#;
    const SQUEUE: &str = r#"#!/bin/sh
while read -r number name; do
  case $* in
    *"--name $name") echo "$number" ;;
    *--jobs*) echo "$number|$name|COMPLETED|0:00|1:00|n1|None" ;;
  esac
done < "${0%squeue}sbatch.jobs"
"#;
    let sandbox = ran();
    for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", "#!/bin/sh\n")] {
        let name = format!("bin/{name}");
        sandbox.write(&name, text);
        fs::set_permissions(sandbox.path().join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    sandbox.write("bin/sbatch.jobs", "");
    let machinefile = "uses  = \"launch/machinefile\"\nlauncher = \"sbatch -n 1\"";
    sandbox.edit("ring.toml", "uses  = \"launch/rankfile\"", machinefile);
    sandbox.edit("ring.toml", "{ rankfile = ", "{ machinefile = ");
    sandbox
}

/// A store in which half of the first checkpoint is needed by the last, and nothing else of those before. One more is to be added.
fn stored() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["checkpoint", "init", "store"]);
    sandbox.write("ckpt/same", noise(1, 50_000));
    for number in 1..=4 {
        sandbox.write("ckpt/image", image(number));
        if number < 4 {
            sandbox.stdout(&["checkpoint", "add", "store", "ckpt", "--quiet"]);
        }
    }
    sandbox
}

fn image(number: u64) -> Vec<u8> {
    noise(1000 + number, 50_000)
}

fn restore(sandbox: &Sandbox, number: &str) -> Vec<u8> {
    let output =
        sandbox.output(&["checkpoint", "restore", "store", number, "-o", "-", "--file", "image", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Everything in the store is whole.
fn sound_store(sandbox: &Sandbox) {
    sandbox.stdout(&["checkpoint", "verify", "store", "--quiet"]);
    assert!(restore(sandbox, "3") == image(3));
}

fn added(sandbox: &Sandbox) -> String {
    sound_store(sandbox);
    assert!(restore(sandbox, "latest") == image(4));
    String::new()
}

fn pruned(sandbox: &Sandbox) -> String {
    sound_store(sandbox);
    let packs = sandbox.path().join("store/packs");
    let sizes = names(&packs).into_iter().map(|name| (fs::metadata(packs.join(&name)).unwrap().len(), name));
    format!("{:?} {:?}", names(&sandbox.path().join("store/checkpoints")), sizes.collect::<Vec<_>>())
}

fn restored(sandbox: &Sandbox) -> bool {
    let is_there = sandbox.path().join("out").exists();
    assert!(!is_there || fs::read(sandbox.path().join("out/image")).unwrap() == image(2));
    is_there
}

const CONSUMER: &str = "cat \"$HOPMAP_TOPOLOGY/system/artifact.json\" > consumed";
const REFRESH: Scenario = Scenario {
    arguments: &[
        "topology",
        "refresh",
        "topology.toml",
        "--publish",
        "pub",
        "--quiet",
        "--keep-entries",
        "1",
        "--consumer",
        CONSUMER,
    ],
    begin: || Site::new(&Plan::new(4)).sandbox,
    killed: |sandbox| drop(sound_publication(sandbox)),
    done: |_| false,
    outcome: published,
    points: "",
    tidy: &["pub"],
};

/// One with something published, and another machine.
fn refreshed() -> Sandbox {
    let site = Site::new(&Plan::new(4));
    site.sandbox.stdout(REFRESH.arguments);
    site.set(&Plan { rails: 2, ..Plan::new(4) });
    site.sandbox
}

/// What is published and what is accepted is there, and every entry is whole.
fn sound_publication(sandbox: &Sandbox) -> Publication {
    let publication = Publication::at(sandbox.path().join("pub"));
    for entry in publication.entries().unwrap() {
        read_machine(&publication.folder(&entry)).unwrap();
    }
    publication.current().unwrap();
    publication.accepted().unwrap();
    publication
}

fn published(sandbox: &Sandbox) -> String {
    let publication = sound_publication(sandbox);
    assert!(!publication.is_pending());
    let published = sandbox.read("pub/current/system/artifact.json");
    assert_eq!(sandbox.read("consumed"), published);
    format!("{} entries, {published}", publication.entries().unwrap().len())
}

#[test]
fn a_command_that_is_killed_at_any_point_is_run_again_and_all_is_well() {
    let checkpoint = |arguments, outcome| Scenario {
        arguments,
        begin: stored,
        killed: sound_store,
        outcome,
        tidy: &["store"],
        ..RUN
    };
    let scenarios = [
        RUN,
        Scenario { begin: ran_and_changed, ..RUN },
        Scenario { begin: with_jobs, ..RUN },
        Scenario { arguments: &["gc", "--keep-runs", "0"], begin: with_garbage, ..RUN },
        Scenario {
            arguments: &["export", "ring.toml", "-o", "ring.zip"],
            tidy: &["."],
            begin: ran,
            outcome: archive,
            ..RUN
        },
        Scenario {
            arguments: &["verify", "ring.zip", "--rerun", "--keep", "-j1"],
            begin: exported,
            outcome: archive,
            points: "archive.",
            ..RUN
        },
        checkpoint(&["checkpoint", "add", "store", "ckpt"], added),
        checkpoint(&["checkpoint", "prune", "store", "--keep-last", "1"], pruned),
        Scenario {
            done: restored,
            tidy: &["."],
            ..checkpoint(&["checkpoint", "restore", "store", "2", "--out", "out"], |sandbox| {
                restored(sandbox).to_string()
            })
        },
        REFRESH,
        Scenario { begin: refreshed, ..REFRESH },
    ];
    let passed: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        // Side by side, since most of the time is spent on syncs.
        let walks: Vec<_> = scenarios.iter().map(|scenario| scope.spawn(|| walk(scenario))).collect();
        walks.into_iter().map(|walk| walk.join().unwrap()).collect()
    });
    let passings: usize = passed.iter().map(BTreeSet::len).sum();
    let points: BTreeSet<&str> =
        passed.iter().flatten().filter_map(|passing| passing.split(':').next()).collect();
    eprintln!("{passings} kills at {} points", points.len());
    let missed: Vec<&&str> = CRASH_POINTS.iter().filter(|point| !points.contains(**point)).collect();
    assert!(missed.is_empty(), "no scenario passes {missed:?}");
}

/// Kills the command at every point that it passes, each time in a copy of the same folder: the points with the numbers of the passings.
fn walk(scenario: &Scenario) -> BTreeSet<String> {
    let begin = (scenario.begin)();
    let sandbox = copy(&begin);
    let log = sandbox.path().join("crash.log");
    run(scenario, &sandbox, &[("HOPMAP_CRASH_LOG", log.to_str().unwrap())]);
    let log = fs::read_to_string(log).unwrap();
    let expected = (scenario.outcome)(&sandbox);
    let mut passed: BTreeSet<String> = BTreeSet::new();
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with(scenario.points)).collect();
    let point = |line: &str| line.split(':').next().unwrap().to_owned();
    for (index, line) in lines.iter().enumerate() {
        let pass_it = |others: &[&str]| others.iter().any(|other| point(other) == point(line));
        if pass_it(&lines[..index]) && pass_it(&lines[index + 1..]) && !soak() {
            continue;
        }
        let passing = line.split(' ').next().unwrap();
        let sandbox = copy(&begin);
        let at = format!("{:?} killed at {line}", scenario.arguments);
        let mut command = command(scenario, &sandbox);
        let killed = command.env("HOPMAP_CRASH_AT", passing).output().unwrap();
        let said = String::from_utf8_lossy(&killed.stderr);
        // How often a log is written depends on how long a search takes: a later run may have ended before the last passing.
        if killed.status.success() && passed.iter().any(|passing| point(passing) == point(line)) {
            assert_eq!((scenario.outcome)(&sandbox), expected, "{at}, and not killed");
            continue;
        }
        passed.insert(passing.to_owned());
        assert_eq!(killed.status.signal(), Some(9), "{at}: {} {said}", killed.status);
        (scenario.killed)(&sandbox);
        if !(scenario.done)(&sandbox) {
            run(scenario, &sandbox, &[]);
        }
        assert_eq!((scenario.outcome)(&sandbox), expected, "{at}");
        let mut files = Vec::new();
        scenario.tidy.iter().for_each(|folder| collect(&sandbox.path().join(folder), &mut files));
        // What is left in the folder of a run goes with it; a copy that was replaced, when there is another one.
        let goes_later = |file: &PathBuf| {
            file.to_string_lossy().contains("/runs/") || line.starts_with("folder.replaced:")
        };
        files.retain(|file| is_left(file) && !goes_later(file));
        assert!(files.is_empty(), "{at}: {files:?} are left");
    }
    passed
}

/// The same folder again, with times and links.
fn copy(sandbox: &Sandbox) -> Sandbox {
    let copy = Sandbox::new();
    let copied = Command::new("cp").arg("-a").arg(sandbox.path().join(".")).arg(copy.path()).status();
    assert!(copied.unwrap().success());
    copy
}

fn command(scenario: &Scenario, sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(scenario.arguments);
    let path = std::env::var("PATH").unwrap();
    let temporary = sandbox.path().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    command.env("PATH", format!("{}:{path}", sandbox.path().join("bin").display())).env("TMPDIR", temporary);
    command
}

fn run(scenario: &Scenario, sandbox: &Sandbox, variables: &[(&str, &str)]) {
    let output = command(scenario, sandbox).envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", scenario.arguments);
}

/// All files below a folder, and what killed processes left.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() && !is_left(&entry.path()) {
            true => collect(&entry.path(), files),
            false => files.push(entry.path()),
        }
    }
}

fn is_left(path: &Path) -> bool {
    is_leftover(&path.file_name().unwrap().to_string_lossy())
}

/// A full disk, say: here a file is where artifacts go, from when the job has ended.
#[test]
fn a_job_whose_result_could_not_be_stored_is_taken_over_by_the_next_run() {
    let sandbox = with_jobs();
    let obstacle = "mv .hopmap/artifacts .hopmap/aside && touch .hopmap/artifacts\necho $number\n";
    sandbox.edit("bin/sbatch", "echo $number\n", obstacle);
    let failed = command(&RUN, &sandbox).output().unwrap();
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot create") && said.contains(".hopmap/artifacts"), "{said}");
    fs::remove_file(sandbox.path().join(".hopmap/artifacts")).unwrap();
    fs::rename(sandbox.path().join(".hopmap/aside"), sandbox.path().join(".hopmap/artifacts")).unwrap();
    run(&RUN, &sandbox, &[]);
    assert_eq!(sandbox.read("bin/sbatch.jobs").lines().count(), 1, "its work was thrown away");
    assert!(sandbox.read("out/rankfile").contains("host"));
    store_and_copies(&sandbox);
}

/// As `make release` and `make dist` ask of what they have built. The binary of the tests has crash points, so it is refused.
#[test]
fn a_binary_with_crash_points_is_rejected_as_a_release() {
    let binaries = assert_cmd::cargo::cargo_bin!("hopmap").parent().unwrap();
    let script = project().join("ci/no-crash-points.sh");
    let asked = |folder: &Path| Command::new("sh").arg(&script).arg(folder).output().unwrap();
    let refused = asked(binaries);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has the crash points of tests"));
    let sandbox = Sandbox::new();
    sandbox.write("hopmap", "no crash points");
    assert!(asked(&sandbox.path()).status.success());
}
