//! This machine, as the program of hwloc describes it.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::super::ImportError;

/// How hwloc's program is called.
const PROGRAMS: [&str; 3] = ["lstopo", "lstopo-no-graphics", "hwloc-ls"];
/// How long it may take, and how many bytes it may write.
const LIMITS: Limits = Limits { time: Duration::from_secs(30), bytes: 64 << 20 };
/// Bytes of its errors that are told.
const TOLD: u64 = 2000;

struct Limits {
    time: Duration,
    bytes: u64,
}

/// The XML of this machine, and the command that wrote it.
pub(super) fn describe() -> Result<(String, Vec<u8>), ImportError> {
    first_of(&PROGRAMS, &LIMITS)
}

/// What the first program writes that is there.
fn first_of(programs: &[&str], limits: &Limits) -> Result<(String, Vec<u8>), ImportError> {
    for program in programs {
        let mut command = Command::new(program);
        command.args(["--of", "xml"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = format!("{program} --of xml");
        match command.spawn() {
            Ok(child) => return output(child, &line, limits).map(|output| (line, output)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&line, format!("cannot be started: {error}"), INSTALLED)),
        }
    }
    Err(failed("lstopo", "is not there".into(), INSTALLED))
}

const INSTALLED: &str =
    "hwloc says what this machine is like inside; on Debian and Ubuntu: `apt install hwloc-nox`";

fn failed(command: &str, problem: String, help: &str) -> ImportError {
    ImportError::Command { command: command.to_owned(), problem, help: help.to_owned() }
}

/// What a program writes, if it ends in time and well.
fn output(mut child: Child, command: &str, limits: &Limits) -> Result<Vec<u8>, ImportError> {
    const BY_HAND: &str = "try it by hand; `path` takes a file that it has written";
    let errors = read_aside(child.stderr.take(), TOLD);
    let texts = read_aside(child.stdout.take(), limits.bytes + 1);
    let end = Instant::now() + limits.time;
    let text = texts.recv_timeout(limits.time).ok();
    let is_too_long = text.as_ref().is_some_and(|text| text.len() as u64 > limits.bytes);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < end && text.is_some() && !is_too_long => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => break None,
        }
    };
    let Some((status, text)) = status.zip(text).filter(|_| !is_too_long) else {
        // It is of no use any more; nothing is lost if it has just ended.
        let _ = child.kill();
        let _ = child.wait();
        let problem = match is_too_long {
            true => format!("writes more than {} bytes", limits.bytes),
            false => format!("does not end within {} seconds", limits.time.as_secs_f64()),
        };
        return Err(failed(command, problem, BY_HAND));
    };
    if status.success() {
        return Ok(text);
    }
    let said = errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    Err(failed(command, format!("failed ({status}): {}", said.trim()), BY_HAND))
}

/// Reads a stream to its end, keeping the first bytes.
fn read_aside(stream: Option<impl Read + Send + 'static>, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What could be read is told, however it ended; nobody may be waiting any more.
            let _ = stream.by_ref().take(most).read_to_end(&mut bytes);
            let _ = sender.send(bytes);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Limits = Limits { time: Duration::from_secs(10), bytes: 1000 };

    /// What becomes of a program that is a script of a shell.
    fn script(text: &str, limits: &Limits) -> Result<Vec<u8>, String> {
        let shell = Command::new("sh")
            .args(["-c", text])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        output(shell.unwrap(), "lstopo", limits).map_err(|error| error.to_string())
    }

    #[test]
    fn programs_end_in_time_and_well_or_are_ended() {
        assert_eq!(script("echo text; cat", &SHORT).unwrap(), b"text\n");
        assert!(script("echo text; echo no hwloc >&2; exit 3", &SHORT).unwrap_err().contains("3): no hwloc"));
        assert!(script("while :; do echo text; done", &SHORT).unwrap_err().contains("more than 1000 bytes"));
        let short = Limits { time: Duration::from_millis(100), ..SHORT };
        assert!(script("exec sleep 60", &short).unwrap_err().contains("within 0.1 seconds"));
        assert!(script("exec >&-; exec sleep 60", &short).unwrap_err().contains("within 0.1 seconds"));
    }

    #[test]
    fn what_to_install_is_said() {
        let error = first_of(&["hopmap-no-such-program"], &SHORT).unwrap_err();
        assert_eq!(error.to_string(), "`lstopo` is not there");
        assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("apt install hwloc-nox"));
    }
}
