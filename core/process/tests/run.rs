//! Commands that succeed, and all kinds of failure. None leaves a process behind.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hopmap_process::{Cause, Group, Limits, Output, RunError, end_survivors, run};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn ran(script: &str, limits: &Limits<'_>) -> Result<Output, RunError> {
    run(&mut shell(script), limits)
}

fn refused(script: &str, limits: &Limits<'_>) -> String {
    ran(script, limits).unwrap_err().to_string()
}

fn short() -> Limits<'static> {
    Limits { time: Some(Duration::from_millis(200)), ..Limits::default() }
}

#[test]
fn output_of_a_successful_command_is_returned() {
    let output = ran("cat; echo answer; echo remark >&2", &Limits::default()).unwrap();
    assert_eq!(output, Output { stdout: b"answer\n".to_vec(), stderr: "remark".into() });
}

#[test]
fn an_error_has_the_command_and_its_last_lines() {
    let none = Limits::default();
    let error = refused("echo 1 >&2; seq 2 9 >&2; echo >&2; exit 3", &none);
    let last_lines = (2..=9).map(|number| format!("\n{number}")).collect::<Vec<_>>().concat();
    let line = "`sh -c 'echo 1 >&2; seq 2 9 >&2; echo >&2; exit 3'`";
    assert_eq!(error, format!("{line} ended with exit status: 3; standard error:{last_lines}"));
    assert!(refused("kill -9 $$", &none).ends_with("ended with signal: 9 (SIGKILL)"));
    assert!(
        refused(&format!("false {}", "x".repeat(500)), &none).contains("xxx…` ended with exit status: 1")
    );
    let error = run(&mut Command::new("/no/such program"), &none).unwrap_err();
    assert!(error.is_missing() && error.to_string().starts_with("`'/no/such program'` cannot be started: "));
}

#[test]
fn time_and_output_are_limited() {
    assert!(refused("sleep 60", &short()).ends_with("did not finish within 0.2 s and was stopped"));
    // One closes its streams and continues, another one ignores SIGTERM.
    assert!(refused("exec >&- 2>&-; sleep 60", &short()).contains("within 0.2 s"));
    assert!(refused("trap '' TERM; while :; do sleep 1; done", &short()).contains("within 0.2 s"));
    let few = Limits { output: 1000, ..Limits::default() };
    assert!(refused("yes", &few).ends_with("wrote more than 1000 bytes to standard output"));
    assert!(
        refused("head -c 1001 /dev/zero", &few).ends_with("wrote more than 1000 bytes to standard output")
    );
    assert_eq!(ran("head -c 1000 /dev/zero; yes | head -c 100000 >&2", &few).unwrap().stdout.len(), 1000);
    let stopped = Limits { stop: &|| true, ..Limits::default() };
    assert!(matches!(ran("sleep 60", &stopped), Err(RunError { cause: Cause::Stopped, .. })));
}

#[test]
fn a_stopped_command_can_clean_up() {
    let folder = tempfile::tempdir().unwrap();
    let [begun, tidy] = ["begun", "tidy"].map(|name| folder.path().join(name));
    let rest = format!("touch {}; while :; do sleep 0.01; done", begun.display());
    let script = format!("trap 'touch {}; exit' TERM; {rest}", tidy.display());
    refused(&script, &Limits { stop: &|| begun.exists(), ..Limits::default() });
    assert!(tidy.exists());
}

/// A launcher that ends at once on SIGTERM, while what it has started needs a second to clean up and another one ignores SIGTERM. With
/// `setsid`, they are in groups of their own, as the ranks of Open MPI are.
fn launcher(folder: &Path, prefix: &str) -> Command {
    let [begun, tidy, rank] = ["begun", "tidy", "rank"].map(|name| folder.join(name).display().to_string());
    let tidies = format!("trap \"sleep 1; echo >{tidy}; exit\" TERM; echo >{begun}");
    let ignores = format!("trap \"\" TERM; echo $$ >{rank}");
    let [tidies, ignores] =
        [tidies, ignores].map(|begin| format!("{prefix} sh -c '{begin}; while :; do sleep 0.1; done' &"));
    // Goes on with its next command if its child ends first.
    let goes_on = format!("sh -c 'sleep 77; echo >{}' &", folder.join("went-on").display());
    let mut launcher = shell(&format!("{tidies} {ignores} {goes_on} wait"));
    launcher.stdout(Stdio::null()).stderr(Stdio::null());
    launcher
}

/// Waits until all of it runs; the number of what ignores SIGTERM.
fn rank_of_launcher(folder: &Path) -> String {
    line_of(&folder.join("begun"));
    line_of(&folder.join("rank"))
}

/// An mpirun behind a script was killed before it had ended its ranks, or went on.
#[test]
fn a_launcher_ends_with_all_that_it_started_and_they_can_clean_up() {
    type Start = fn(&mut Command) -> std::io::Result<Group>;
    let ends = |start: Start, prefix: &str, is_told: bool| {
        let folder = tempfile::tempdir().unwrap();
        let mut group = start(&mut launcher(folder.path(), prefix)).unwrap();
        let rank = rank_of_launcher(folder.path());
        if is_told {
            group.terminate();
            group.wait(|| None::<()>).unwrap();
        }
        assert!(!group.end().unwrap().success());
        assert!(!folder.path().join("went-on").exists());
        let is_tidy = folder.path().join("tidy").exists();
        assert!(is_tidy && is_gone(&rank), "{prefix} {is_told} {is_tidy} {rank}");
    };
    std::thread::scope(|scope| {
        for start in [Group::start as Start, Group::start_beside] {
            for (prefix, is_told) in [("", false), ("", true), ("setsid", false), ("setsid", true)] {
                scope.spawn(move || ends(start, prefix, is_told));
            }
        }
    });
}

#[test]
fn what_a_terminal_has_told_has_time_to_end_by_itself() {
    let mut group = Group::start_beside(&mut shell("sleep 0.3; exit 3")).unwrap();
    assert_eq!(group.stop_after(Duration::from_mins(1)).unwrap().code(), Some(3));
}

/// Whether a process is gone or a zombie.
fn is_gone(process: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(process).join("stat"));
    status.map_or(true, |status| status.contains(") Z "))
}

/// Uses a script that leaves a grandchild behind; returns whether the grandchild ends within some time.
fn grandchild_ends(end: &str, within: Duration, use_it: impl FnOnce(&str)) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("process");
    use_it(&format!("sleep 300 & echo $! > {}; {end}", file.display()));
    let process = fs::read_to_string(file).unwrap();
    let until = Instant::now() + within;
    while !is_gone(process.trim()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_gone = is_gone(process.trim());
    // The `kill` of the shell: not every machine has the program.
    shell(&format!("kill {process}")).stderr(Stdio::null()).status().unwrap();
    is_gone
}

#[test]
fn grandchildren_end_with_the_command() {
    let ends = |end: &str, use_it: &dyn Fn(&str)| grandchild_ends(end, Duration::from_mins(1), use_it);
    assert!(ends("exit 0", &|script| drop(ran(script, &Limits::default()).unwrap())));
    assert!(ends("exit 3", &|script| drop(ran(script, &Limits::default()).unwrap_err())));
    assert!(ends("echo; wait", &|script| drop(
        ran(script, &Limits { output: 0, ..Limits::default() }).unwrap_err()
    )));
    assert!(ends("exit 0", &|script| {
        let group = Group::start(&mut shell(script)).unwrap();
        assert_eq!(group.wait(|| None::<()>).unwrap(), None);
    }));
    // Only an explicit request leaves a process behind.
    let leave = |script: &str| assert!(Group::start(&mut shell(script)).unwrap().leave().unwrap().success());
    assert!(!grandchild_ends("exit 0", Duration::from_millis(100), leave));
}

/// Waits until a file has a line.
fn line_of(file: &Path) -> String {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if text.ends_with('\n') || Instant::now() > until {
            return text.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// As another process, starts a group whose leader ends and leaves a grandchild, and waits for it; `None` in that process.
fn other_process(name: &str, folder: &Path) -> Option<std::process::Child> {
    let variable = "HOPMAP_TEST_FOLDER";
    let Some(folder) = std::env::var_os(variable) else {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).env(variable, folder).stdout(Stdio::null());
        return Some(command.spawn().unwrap());
    };
    let folder = Path::new(&folder);
    // A later process finds the group alone.
    let prefix = if name.starts_with("a_group") { "" } else { "setsid" };
    let mut launcher = launcher(folder, prefix);
    let is_companion = name.starts_with("companions");
    let group = if is_companion { Group::start_beside(&mut launcher) } else { Group::start(&mut launcher) };
    let group = group.unwrap();
    group.note(&folder.join("group"));
    fs::write(folder.join("noted"), "\n").unwrap();
    group.wait(|| None::<()>).unwrap();
    None
}

/// A killed trial left its ranks running beside those of the next one.
#[test]
fn groups_end_with_a_process_that_is_killed() {
    ends_when_killed("groups_end_with_a_process_that_is_killed");
}

/// So did a killed `hopmap record`, whose launcher is in its own group.
#[test]
fn companions_end_with_a_process_that_is_killed() {
    ends_when_killed("companions_end_with_a_process_that_is_killed");
}

fn ends_when_killed(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut other) = other_process(test, folder.path()) else { return };
    let rank = rank_of_launcher(folder.path());
    line_of(&folder.path().join("noted"));
    other.kill().unwrap();
    other.wait().unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while !is_gone(&rank) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_gone(&rank), "{rank} is alive");
    assert!(folder.path().join("tidy").exists() && !folder.path().join("went-on").exists());
}

#[test]
fn a_group_that_was_left_is_found_and_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut other) = other_process("a_group_that_was_left_is_found_and_no_other_one", folder.path())
    else {
        return;
    };
    let rank = rank_of_launcher(folder.path());
    line_of(&folder.path().join("noted"));
    let file = folder.path().join("group");
    let left = fs::read_to_string(&file).unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    let words: Vec<&str> = left.split(' ').collect();
    let with = |place: usize, word: &str| {
        let mut words = words.clone();
        words[place] = word;
        words.join(" ")
    };
    let others = [with(0, "boot"), with(1, "pid:[1]"), with(2, "1"), String::new()];
    let ends = |noted: &String| {
        fs::write(&file, noted).unwrap();
        end_survivors(&file, Duration::ZERO)
    };
    assert!(!others.iter().any(ends));
    assert!(!is_gone(&rank));
    assert!(ends(&left) && !file.exists());
    assert!(is_gone(&rank));
}

#[test]
fn the_exit_status_of_a_leader_is_known_before_it_is_reaped() {
    let mut group = Group::start(&mut shell("exit 3")).unwrap();
    assert!(group.wait_until(Instant::now() + Duration::from_secs(10)).unwrap());
    assert_eq!(group.ended().unwrap().and_then(|status| status.code()), Some(3));
    assert_eq!(group.end().unwrap().code(), Some(3));
    let mut group = Group::start(&mut shell("kill -9 $$")).unwrap();
    assert!(group.wait_until(Instant::now() + Duration::from_secs(10)).unwrap());
    assert_eq!(group.ended().unwrap().unwrap(), group.end().unwrap());
    group.terminate();
}

#[test]
fn the_end_of_a_leader_is_known_without_polling_and_a_reason_ends_the_wait() {
    let mut group = Group::start(&mut shell("exit 3")).unwrap();
    let (_, stopped) = group.wait_for_end(|| None::<()>).unwrap();
    assert_eq!((stopped, group.end().unwrap().code()), (None, Some(3)));
    let mut group = Group::start(&mut shell("sleep 300")).unwrap();
    assert_eq!(group.wait_for_end(|| Some(7)).unwrap().1, Some(7));
    assert_eq!(group.stop().unwrap().code(), None);
}
