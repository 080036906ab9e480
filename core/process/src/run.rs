//! One command from its start to its end.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{Capture, Group};

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
