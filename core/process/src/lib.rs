//! Runs other programs in their own process groups and never leaves a process behind. See the `README.md`.
//!
//! [`on_path`] finds a program, [`run`] runs one command to its end, [`Group`] is a program with all that it started; [`Capture`]
//! and [`for_each_line`] read output, so that programs never block on a full pipe. If this process is killed, its groups end as well; what
//! is left nevertheless, [`end_survivors`] ends in a later process.

mod family;
mod survivors;

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use family::{Family, LONGEST_LOOK, SHORTEST_LOOK};
pub use survivors::end_survivors;

/// Time from SIGTERM to SIGKILL: mpirun ends its ranks meanwhile, to which it gives one to three seconds.
const GRACE: Duration = Duration::from_secs(5);
/// Time for the streams to close after the group has ended: a process that left the group may hold them open.
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of standard error that are kept, and of lines that are quoted.
const STDERR_BYTES: usize = 4096;
const STDERR_LINES: usize = 8;
/// Maximum length of a quoted command line.
const COMMAND_CHARACTERS: usize = 200;

/// Limits of a command.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Time limit.
    pub time: Option<Duration>,
    /// Maximum number of bytes of standard output.
    pub output: usize,
    /// Polled; the command is stopped when this is true.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for Limits<'_> {
    /// No time limit, and 64 MiB of output.
    fn default() -> Self {
        Self { time: None, output: 64 << 20, stop: &|| false }
    }
}

/// The output of a successful command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// The last lines of standard error.
    pub stderr: String,
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` {cause}{}", quoted(stderr))]
pub struct RunError {
    /// The command line.
    pub command: String,
    /// The cause.
    pub cause: Cause,
    /// The last lines of standard error.
    pub stderr: String,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The program does not exist or is not executable.
    #[error("cannot be started: {0}")]
    Start(io::Error),
    /// Its exit status is not available.
    #[error("cannot be waited for: {0}")]
    Wait(io::Error),
    /// It failed.
    #[error("ended with {0}")]
    Failed(ExitStatus),
    /// It exceeded its time limit.
    #[error("did not finish within {} s and was stopped", .0.as_secs_f64())]
    Time(Duration),
    /// It wrote too much.
    #[error("wrote more than {0} bytes to standard output")]
    Output(usize),
    /// It was stopped.
    #[error("was stopped before it finished")]
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
    /// The last lines of standard error, to append to a message.
    #[must_use]
    pub fn quoted(&self) -> String {
        quoted(&self.stderr)
    }
}

fn quoted(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; standard error:\n{stderr}") }
}

/// The file of a program as `execvp` finds it: a name with a slash is a path, any other one is looked up in the
/// folders of `PATH`.
#[must_use]
pub fn on_path(program: &str) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| is_executable(path))
}

/// Runs a command without standard input in its own process group, of which no process remains. Any failure
/// of the command is an error.
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
        let status = if cause.is_some() { group.stop() } else { group.end() };
        Ok((cause, status?))
    });
    let deadline = Instant::now() + STREAM_TIMEOUT;
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

/// The command line quoted for a shell, truncated if it is too long.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let words = words.iter().map(AsRef::as_ref);
    // Only a NUL cannot be quoted, and a program with a NUL in its arguments cannot be started.
    let line = shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(COMMAND_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A running program and all that it started, which it ends at the latest when it is dropped.
#[derive(Debug)]
pub struct Group {
    leader: Child,
    family: Family,
    is_over: bool,
}

impl Group {
    /// Starts a program as the leader of a new group. A Ctrl-C in the terminal then reaches only hopmap,
    /// which decides what happens to the program.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::begin(command.process_group(0))
    }

    /// Starts a program in the process group of this one: a terminal interrupts both, and gives it input.
    pub fn start_beside(command: &mut Command) -> io::Result<Self> {
        Self::begin(command)
    }

    fn begin(command: &mut Command) -> io::Result<Self> {
        survivors::prepare();
        let leader = command.spawn()?;
        let family = Family::of(Pid::from_child(&leader));
        survivors::watch(&family, true);
        Ok(Self { leader, family, is_over: false })
    }

    /// Notes in a file by what [`end_survivors`] finds the group. Errors are ignored.
    pub fn note(&self, file: &Path) {
        survivors::note(Pid::from_child(&self.leader), file);
    }

    /// Takes the program's standard input, if it is a pipe.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.leader.stdin.take()
    }

    /// Takes the program's standard output, if it is a pipe.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    /// Takes the program's standard error, if it is a pipe.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// The exit status of the leader, if it has ended. It is not reaped yet, so its process group id stays
    /// reserved.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.leader)), options)?;
        // The encoding of wait(2): the exit code in the second byte, or the signal in the first.
        Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitStatus::from_raw(code << 8),
            (None, signal) => ExitStatus::from_raw(signal.unwrap_or_default()),
        }))
    }

    /// Waits until the leader has ended, or until `reason` returns something, which is returned.
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

    /// The same without a polling interval: also returns when the leader ended, or when it was found running and `reason`
    /// returned something. For measurements.
    pub fn wait_for_end<R>(&self, mut reason: impl FnMut() -> Option<R>) -> io::Result<(Instant, Option<R>)> {
        let (sender, ended) = mpsc::channel();
        let leader = Pid::from_child(&self.leader);
        // Not joined: it ends with the leader, which the caller stops.
        thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = retry_on_intr(|| waitid(WaitId::Pid(leader), options));
            let _ = sender.send((Instant::now(), waited));
        });
        loop {
            match ended.recv_timeout(LONGEST_LOOK) {
                Ok((end, waited)) => return waited.map(|_| (end, None)).map_err(io::Error::from),
                Err(RecvTimeoutError::Disconnected) => return Ok((Instant::now(), self.wait(reason)?)),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(reason) = reason() {
                        return Ok((Instant::now(), Some(reason)));
                    }
                }
            }
        }
    }

    /// Waits for the leader until `deadline`; returns whether it has ended.
    pub fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        Ok(self.wait(|| (Instant::now() >= deadline).then_some(()))?.is_none())
    }

    /// Sends SIGTERM; the leader may end before the others.
    pub fn terminate(&mut self) {
        self.family.terminate();
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.family.kill();
    }

    /// Sends SIGTERM, then kills what is left after five seconds.
    pub fn stop(&mut self) -> io::Result<ExitStatus> {
        let end = Instant::now() + GRACE;
        self.family.terminate();
        self.wait_until(end)?;
        self.family.end(end.saturating_duration_since(Instant::now()));
        self.leave()
    }

    /// The same if all may have been told already, by a terminal: before, they have `patience` to end by themselves.
    pub fn stop_after(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        let end = Instant::now() + patience;
        self.family.look();
        self.wait_until(end)?;
        self.family.is_gone_within(end.saturating_duration_since(Instant::now()), Family::look);
        if self.ended()?.is_some() { self.end() } else { self.stop() }
    }

    /// Stops the leader if it is running, or what it has left; returns its exit status.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if self.ended()?.is_none() {
            return self.stop();
        }
        let status = self.leave()?;
        if self.family.may_be_left() {
            self.family.end(GRACE);
        }
        Ok(status)
    }

    /// Waits for the leader only: the processes that it started may go on, also without this one.
    pub fn leave(&mut self) -> io::Result<ExitStatus> {
        self.is_over = true;
        let group = Pid::from_child(&self.leader);
        // Before it is reaped: afterwards its number may be that of another group.
        retry_on_intr(|| waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
        survivors::watch(&self.family, false);
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

/// Maximum length of a line; longer ones are split.
const LONGEST_LINE: u64 = 1 << 16;

/// The bytes of a stream, collected by a separate thread up to a limit.
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
    /// Keeps the first `most` bytes and drops the rest.
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

    /// Number of bytes kept so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shared.lock().bytes.len()
    }

    /// The kept bytes when the stream is closed, or at `deadline`: another process may hold it open.
    #[must_use]
    pub fn bytes(&self, deadline: Instant) -> Vec<u8> {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_open = |state: &mut State| !state.is_closed;
        let state = self.shared.closed.wait_timeout_while(self.shared.lock(), left, is_open);
        state.unwrap_or_else(PoisonError::into_inner).0.bytes.clone()
    }

    /// The last non-blank lines, without control characters, when the stream is closed or at `deadline`.
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

/// Calls `each` with every line of a stream, without trailing white space.
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
    fn programs_are_found_and_other_files_are_not() {
        let shell = on_path("sh").unwrap();
        assert!(shell.is_absolute() && shell.ends_with("sh"));
        assert_eq!(on_path(shell.to_str().unwrap()), Some(shell));
        assert_eq!(on_path("/etc/passwd"), None);
        assert_eq!(on_path("/etc"), None);
        assert_eq!(on_path("hopmap-no-such-program"), None);
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
    fn long_lines_are_split() {
        let mut text = vec![b'x'; LONGEST_LINE as usize + 1];
        text.extend_from_slice(b"\r\nshort\nlast");
        let mut lengths = Vec::new();
        for_each_line(text.as_slice(), |line| lengths.push(line.len()));
        assert_eq!(lengths, [LONGEST_LINE as usize, 1, 5, 4]);
    }
}
