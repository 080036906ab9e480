//! Groups that outlive this process because it is killed. A second process ends them: a shell that reads their numbers from a pipe of
//! which only this process holds the other end. `PR_SET_PDEATHSIG` would reach the leader alone, and already if the thread ends that
//! started it. If the shell is killed as well, a later process ends a group by what [`note`] wrote down.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Time between two looks at a group, and to end after SIGKILL.
const LOOK: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(1);

/// Reads `+ GROUP` and `- GROUP`, where a group is negative, as `kill` takes it, and a process is not. At the end of its input, groups that are left have five seconds from SIGTERM to SIGKILL: launchers end
/// their ranks on other hosts meanwhile.
const WATCHDOG: &str = r#"trap '' HUP INT TERM
groups=
while read -r change group; do
  others=
  for other in $groups; do [ "$other" = "$group" ] || others="$others $other"; done
  groups=$others
  [ "$change" = + ] && groups="$groups $group"
done
signal() { left=; for group in $groups; do kill -s "$1" -- "$group" && left=1; done; [ -n "$left" ]; }
signal TERM || exit
looks=50
while signal 0 && [ "$looks" -gt 0 ]; do sleep 0.1; looks=$((looks - 1)); done
signal KILL
"#;

static WATCHED: LazyLock<Option<ChildStdin>> = LazyLock::new(|| {
    let mut shell = Command::new("sh");
    shell.args(["-c", WATCHDOG]).current_dir("/").process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?.stdin.take()
});

/// Starts the second process, so that groups can be watched from their first moment.
pub(crate) fn prepare() {
    LazyLock::force(&WATCHED);
}

/// What ends with this process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Watched {
    Group(Pid),
    Process(Pid),
}

/// From now on a group or a process ends with this one, or not any more.
pub(crate) fn watch(watched: Watched, is_watched: bool) {
    if let Some(mut watchdog) = WATCHED.as_ref() {
        let change = if is_watched { '+' } else { '-' };
        let number = match watched {
            Watched::Group(leader) => -leader.as_raw_nonzero().get(),
            Watched::Process(process) => process.as_raw_nonzero().get(),
        };
        // Without a watchdog, it outlives a killed process as any other does.
        let _ = watchdog.write_all(format!("{change} {number}\n").as_bytes());
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

/// When a process was started, in ticks since the boot.
fn started(process: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name, in parentheses, may hold anything.
    status.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
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
    let here = |started: u64| identity_of(group, started).is_some_and(|here| here == left.trim());
    let is_it = began.parse().is_ok_and(here) && started(group).is_none_or(|now| now.to_string() == began);
    if !is_it || kill_process_group(group, Signal::TERM).is_err() {
        return false;
    }
    let is_left = |until: Instant| {
        while test_kill_process_group(group).is_ok() {
            if Instant::now() >= until {
                return true;
            }
            thread::sleep(LOOK);
        }
        false
    };
    if is_left(Instant::now() + grace) {
        let _ = kill_process_group(group, Signal::KILL);
        is_left(Instant::now() + LAST);
    }
    true
}
