//! Processes that outlive this one because it is killed. A second process ends them: `awk`, which reads their numbers from a pipe of
//! which only this process holds the other end. `PR_SET_PDEATHSIG` would reach the leader alone, and already if the thread ends that
//! started it. If `awk` is killed as well, a later process ends a group by what [`note`] wrote down.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::Pid;

use crate::family::{Family, started};

const WATCHDOG: &str = include_str!("watchdog.awk");

static WATCHED: LazyLock<Option<ChildStdin>> = LazyLock::new(|| {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap '' HUP INT TERM; exec awk "$0""#, WATCHDOG]).env("LC_ALL", "C");
    shell.current_dir("/").process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?.stdin.take()
});

/// Starts the second process, so that families can be watched from their first moment.
pub(crate) fn prepare() {
    LazyLock::force(&WATCHED);
}

/// From now on a family ends with this process, or not any more.
pub(crate) fn watch(family: &Family, is_watched: bool) {
    if let Some(mut watchdog) = WATCHED.as_ref() {
        let change = if is_watched { '+' } else { '-' };
        let (root, group) = (family.root.as_raw_pid(), family.group);
        // Without a watchdog, it outlives a killed process as any other does.
        let began = family.began.unwrap_or_default();
        let _ = watchdog.write_all(format!("{change} {root} {group} {began}\n").as_bytes());
    }
}

/// Writes down the boot of the host, the namespace of process numbers, the leader of a group, and when it was started. Where that fails, the
/// group is as one that was never noted.
pub(crate) fn note(group: Pid, file: &Path) {
    if let Some(identity) = started(group).and_then(|started| identity_of(group, started)) {
        let _ = fs::write(file, identity);
    }
}

fn identity_of(group: Pid, started: u64) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {} {} {started}", boot.trim(), namespace.display(), group.as_raw_nonzero()))
}

/// Ends the group that an earlier process has [noted](crate::Group::note) in a file and left: SIGTERM, and SIGKILL after `grace`. Removes the
/// file. Returns whether there was one. The number of a group is not given to another one while a process is in it, also after its leader
/// has ended.
pub fn end_survivors(file: &Path, grace: Duration) -> bool {
    let left = fs::read_to_string(file).unwrap_or_default();
    let _ = fs::remove_file(file);
    let words: Vec<&str> = left.split_whitespace().collect();
    let [_, _, leader, began] = words[..] else { return false };
    let Some(group) = leader.parse().ok().filter(|leader| *leader > 1).and_then(Pid::from_raw) else {
        return false;
    };
    let here = |started: &u64| identity_of(group, *started).is_some_and(|here| here == left.trim());
    let Some(began) = began.parse().ok().filter(here) else { return false };
    let mut family = Family::new(group, group.as_raw_pid(), Some(began));
    let is_left = family.look();
    family.end(grace);
    is_left
}
