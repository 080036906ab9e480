//! A command that is watched until it ends, and ended with all that it started if it has to be.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How often a command is looked at.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);
/// How long to wait for the last words of a command that has ended: a process that left its group may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Most bytes of standard error that are kept.
const SAID: usize = 4096;

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) how: End,
    /// Standard output, at most one byte more than was asked for.
    pub(super) output: Vec<u8>,
    /// The end of standard error.
    pub(super) said: Vec<u8>,
}

/// Why it ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Exit(ExitStatus),
    /// It had no more time.
    TooLong,
    /// It wrote more than is read.
    TooMuch,
    /// The context asked to stop.
    Stopped,
}

/// Why a command is nothing to watch.
#[derive(Debug)]
pub(super) enum Fault {
    Start(io::Error),
    Wait(io::Error),
}

/// Runs a command in a process group of its own, and leaves nothing of that group running.
pub(super) fn run(
    command: &mut Command,
    deadline: Option<Instant>,
    most: usize,
    stop: impl Fn() -> bool,
) -> Result<Ended, Fault> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().map_err(Fault::Start)?;
    let mut group = Group { child, alive: true };
    let output = Heard::listen(group.child.stdout.take(), most + 1, false);
    let said = Heard::listen(group.child.stderr.take(), SAID, true);
    let mut look = SHORTEST_LOOK;
    let how = loop {
        if group.has_ended().map_err(Fault::Wait)? {
            break None;
        }
        if output.length() > most {
            break Some(End::TooMuch);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break Some(End::TooLong);
        }
        if stop() {
            break Some(End::Stopped);
        }
        thread::sleep(look);
        look = (look * 2).min(LONGEST_LOOK);
    };
    let status = group.end().map_err(Fault::Wait)?;
    let patience = Instant::now() + LAST_WORDS;
    let (output, said) = (output.end(patience), said.end(patience));
    let how = how.unwrap_or(if output.len() > most { End::TooMuch } else { End::Exit(status) });
    Ok(Ended { how, output, said })
}

/// A process and its group; both end with this value.
struct Group {
    child: Child,
    alive: bool,
}

impl Group {
    fn leader(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Whether the first process has ended. Its number stays taken, so that the group can still be named by it.
    fn has_ended(&self) -> io::Result<bool> {
        let Some(leader) = self.leader() else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(leader), options)?.is_some())
    }

    /// Kills what is left of the group.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(leader) = self.leader().filter(|_| self.alive) {
            // An error says that nobody is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        self.alive = false;
        self.child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.alive {
            let _ = self.end();
        }
    }
}

/// What comes through a pipe, read by a thread of its own.
#[derive(Default)]
struct Heard {
    state: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Heard {
    /// Keeps the first `most` bytes, or the last ones; reads on in any case, so that nobody waits for a full pipe.
    fn listen(pipe: Option<impl Read + Send + 'static>, most: usize, last: bool) -> Self {
        let heard = Self::default();
        let state = Arc::clone(&heard.state);
        thread::spawn(move || {
            let mut piece = [0; 1 << 14];
            let mut pipe = pipe;
            while let Some(count) = pipe.as_mut().and_then(|pipe| read(pipe, &mut piece)) {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = &mut state.0;
                let taken = if last { count } else { count.min(most - kept.len()) };
                kept.extend_from_slice(&piece[..taken]);
                let surplus = kept.len().saturating_sub(most);
                kept.drain(..surplus);
            }
            state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        });
        heard
    }

    fn length(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }

    /// What was heard when the pipe was closed, or patience ended.
    fn end(self, patience: Instant) -> Vec<u8> {
        loop {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.1 || Instant::now() >= patience {
                return std::mem::take(&mut state.0);
            }
            drop(state);
            thread::sleep(SHORTEST_LOOK);
        }
    }
}

/// Reads a piece; `None` at the end, or where nothing can be read.
fn read(pipe: &mut impl Read, piece: &mut [u8]) -> Option<usize> {
    loop {
        match pipe.read(piece) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
