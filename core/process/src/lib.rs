//! Other programs, started in process groups of their own and never left behind. See the `README.md`.
//!
//! [`run`] is one command from its start to its end, [`Group`] a program as the leader of a process group; [`Capture`] and [`for_each_line`]
//! read what programs write without ever making them wait for a full pipe.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Time for the end of the streams once the group is gone: a process that has left the group may hold them open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Most bytes of standard error that are kept, and most lines that are quoted.
const STDERR_BYTES: usize = 4096;
const STDERR_LINES: usize = 8;
/// Longest command line that is quoted.
const COMMAND_CHARACTERS: usize = 200;

/// What a command may take.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Its time.
    pub time: Option<Duration>,
    /// Bytes of standard output.
    pub output: usize,
    /// Whether it is to be ended before.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for Limits<'_> {
    /// All the time in the world, and 64 megabytes.
    fn default() -> Self {
        Self { time: None, output: 64 << 20, stop: &|| false }
    }
}

/// What a command wrote that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// The last lines of standard error.
    pub stderr: String,
}

/// A command without an answer.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` {cause}{}", quoted(stderr))]
pub struct RunError {
    /// What was run.
    pub command: String,
    /// Why there is no answer.
    pub cause: Cause,
    /// The last lines of standard error.
    pub stderr: String,
}

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// There is no such program, or it is none.
    #[error("cannot be started: {0}")]
    Start(io::Error),
    /// The operating system does not say how it ended.
    #[error("cannot be waited for: {0}")]
    Wait(io::Error),
    /// It says itself that it failed.
    #[error("ended with {0}")]
    Failed(ExitStatus),
    /// Its time was over.
    #[error("did not end within {} s and was ended", .0.as_secs_f64())]
    Time(Duration),
    /// It wrote more than is read.
    #[error("wrote more than {0} bytes to standard output")]
    Output(usize),
    /// It was to be ended.
    #[error("was ended before it had an answer")]
    Stopped,
}

impl RunError {
    /// Whether the program is not installed.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&self.cause, Cause::Start(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl Output {
    /// The last lines of standard error, to be put behind a sentence.
    #[must_use]
    pub fn quoted(&self) -> String {
        quoted(&self.stderr)
    }
}

fn quoted(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it said:\n{stderr}") }
}

/// Runs a command without standard input in a process group of its own, of which nothing is left in the end. Anything but success
/// is an error.
pub fn run(command: &mut Command, limits: &Limits<'_>) -> Result<Output, RunError> {
    let begin = Instant::now();
    let failed =
        |cause, stderr, command: &Command| RunError { command: command_line(command), cause, stderr };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group =
        Group::start(command).map_err(|error| failed(Cause::Start(error), String::new(), command))?;
    let stdout = Capture::first(group.take_stdout(), limits.output + 1);
    let stderr = Capture::last(group.take_stderr(), STDERR_BYTES);
    let waited = group.wait(|| match limits.time {
        _ if stdout.length() > limits.output => Some(Cause::Output(limits.output)),
        Some(time) if begin.elapsed() >= time => Some(Cause::Time(time)),
        _ => (limits.stop)().then_some(Cause::Stopped),
    });
    let ended = waited.and_then(|cause| {
        let status = if cause.is_some() { group.stop(GRACE) } else { group.end() };
        Ok((cause, status?))
    });
    let deadline = Instant::now() + LAST_WORDS;
    let (stdout, stderr) = (stdout.bytes(deadline), stderr.last_lines(STDERR_LINES, deadline).join("\n"));
    let cause = match ended {
        Err(error) => Cause::Wait(error),
        Ok((Some(cause), _)) => cause,
        Ok((None, _)) if stdout.len() > limits.output => Cause::Output(limits.output),
        Ok((None, status)) if !status.success() => Cause::Failed(status),
        Ok((None, _)) => return Ok(Output { stdout, stderr }),
    };
    Err(failed(cause, stderr, command))
}

/// A command as people type it, cut where it is too long to be read.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let words = words.iter().map(AsRef::as_ref);
    // Only a NUL cannot be quoted, and no program with one in its arguments starts.
    let line = shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(COMMAND_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

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

/// Longest line; a longer one comes in pieces.
const LONGEST_LINE: u64 = 1 << 16;

/// The bytes of a stream, collected by a thread of its own up to a bound.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Capture {
    /// Keeps the first `most` bytes. The rest is read and dropped.
    pub fn first(stream: Option<impl Read + Send + 'static>, most: usize) -> Self {
        Self::collect(stream, move |bytes, piece| {
            let room = most - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        })
    }

    /// Keeps the last `most` bytes.
    pub fn last(stream: Option<impl Read + Send + 'static>, most: usize) -> Self {
        Self::collect(stream, move |bytes, piece| {
            bytes.extend_from_slice(piece);
            bytes.drain(..bytes.len().saturating_sub(most));
        })
    }

    fn collect(
        stream: Option<impl Read + Send + 'static>,
        keep: impl Fn(&mut Vec<u8>, &[u8]) + Send + 'static,
    ) -> Self {
        let capture = Self::default();
        let Self { shared } = capture.clone();
        thread::spawn(move || {
            if let Some(mut stream) = stream {
                let mut piece = [0; 1 << 14];
                loop {
                    match stream.read(&mut piece) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok(0) | Err(_) => break,
                        Ok(count) => keep(&mut shared.lock().bytes, &piece[..count]),
                    }
                }
            }
            shared.lock().is_closed = true;
            shared.closed.notify_all();
        });
        capture
    }

    /// Number of bytes that are kept so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shared.lock().bytes.len()
    }

    /// What is kept when the stream is closed, or at `deadline`: a process elsewhere may hold it open.
    #[must_use]
    pub fn bytes(&self, deadline: Instant) -> Vec<u8> {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_open = |state: &mut State| !state.is_closed;
        let state = self.shared.closed.wait_timeout_while(self.shared.lock(), left, is_open);
        state.unwrap_or_else(PoisonError::into_inner).0.bytes.clone()
    }

    /// The last lines that are not blank, without control characters, when the stream is closed or at `deadline`.
    #[must_use]
    pub fn last_lines(&self, most: usize, deadline: Instant) -> Vec<String> {
        let bytes = self.bytes(deadline);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(most)..];
        last.iter().map(|line| line.chars().filter(|letter| !letter.is_control()).collect()).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `each` with every line of a stream, without white space at its end, until the stream ends.
pub fn for_each_line(stream: impl Read, mut each: impl FnMut(&str)) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(read) if read > 0) {
        each(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn the_first_or_the_last_bytes_are_kept() {
        let text = || Some(&b"one\n\ntwo\x1b[0m \nthree\n"[..]);
        assert_eq!(Capture::first(text(), 5).bytes(soon()), b"one\n\n");
        assert_eq!(Capture::last(text(), 4).bytes(soon()), b"ree\n");
        assert_eq!(Capture::last(text(), 100).last_lines(2, soon()), ["two[0m", "three"]);
        assert_eq!(Capture::first(None::<&[u8]>, 5).bytes(soon()), b"");
    }

    #[test]
    fn lines_have_a_bound() {
        let mut text = vec![b'x'; LONGEST_LINE as usize + 1];
        text.extend_from_slice(b"\r\nshort\nlast");
        let mut lengths = Vec::new();
        for_each_line(text.as_slice(), |line| lengths.push(line.len()));
        assert_eq!(lengths, [LONGEST_LINE as usize, 1, 5, 4]);
    }
}
