//! A program as the leader of a process group.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Time between two looks at a program: short at first, as most programs end soon.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// A running program and all processes of the group that it leads. They are killed when this is dropped.
#[derive(Debug)]
pub struct Group {
    leader: Child,
    is_over: bool,
}

impl Group {
    /// Starts a program as the leader of a new group. A Ctrl-C in the terminal then reaches hopmap alone, which decides what
    /// becomes of the program.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { leader: command.process_group(0).spawn()?, is_over: false })
    }

    /// The program's standard input, if it is a pipe, once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.leader.stdin.take()
    }

    /// The program's standard output, if it is a pipe, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    /// The program's standard error, if it is a pipe, once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// How the leader ended, if it has. It is not reaped: while it is there, no other group can get its number.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.leader)), options)?;
        // The encoding of wait(2): the exit code in the second byte, or the signal in the first.
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitStatus::from_raw(code << 8),
            (None, signal) => ExitStatus::from_raw(signal.unwrap_or_default()),
        }))
    }

    /// Waits until the leader has ended, or until there is a reason to wait no longer, which is given back.
    pub fn wait<R>(&self, mut reason: impl FnMut() -> Option<R>) -> io::Result<Option<R>> {
        let mut look = SHORTEST_LOOK;
        while self.ended()?.is_none() {
            if let Some(reason) = reason() {
                return Ok(Some(reason));
            }
            thread::sleep(look);
            look = (look * 2).min(LONGEST_LOOK);
        }
        Ok(None)
    }

    /// Waits for the leader until `deadline`; whether it has ended.
    pub fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        Ok(self.wait(|| (Instant::now() >= deadline).then_some(()))?.is_none())
    }

    /// Asks all processes of the group to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all processes of the group at once (SIGKILL).
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if !self.is_over {
            // An error says that nobody is left.
            let _ = kill_process_group(Pid::from_child(&self.leader), signal);
        }
    }

    /// Asks the group to end, and kills what is left of it when the leader has ended or `grace` is over.
    pub fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.terminate();
        self.wait_until(Instant::now() + grace)?;
        self.end()
    }

    /// Kills what is left of the group; how the leader ended.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.leave()
    }

    /// Waits for the leader alone: what it has started may go on.
    pub fn leave(&mut self) -> io::Result<ExitStatus> {
        self.is_over = true;
        self.leader.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.end();
        }
    }
}
