//! This machine, as the program of hwloc describes it.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::super::ImportError;

/// How hwloc's program is called.
const PROGRAMS: [&str; 3] = ["lstopo", "lstopo-no-graphics", "hwloc-ls"];
/// How long it may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes that it may write.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes of its errors that are told.
const TOLD: u64 = 2000;

/// The XML of this machine, and the command that wrote it.
pub(super) fn describe() -> Result<(String, Vec<u8>), ImportError> {
    for program in PROGRAMS {
        let mut command = Command::new(program);
        command.args(["--of", "xml"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = format!("{program} --of xml");
        match command.spawn() {
            Ok(child) => return Ok((line.clone(), output(child, &line)?)),
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
fn output(mut child: Child, command: &str) -> Result<Vec<u8>, ImportError> {
    let (sender, receiver) = mpsc::channel();
    let errors = read_aside(child.stderr.take(), TOLD, None);
    read_aside(child.stdout.take(), MOST_BYTES + 1, Some(sender));
    let end = Instant::now() + LIMIT;
    let text = receiver.recv_timeout(LIMIT);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < end && text.is_ok() => std::thread::sleep(Duration::from_millis(5)),
            _ => break None,
        }
    };
    let Some((status, text)) = status.zip(text.ok()) else {
        // It is of no use any more, and nothing is lost if it has just ended.
        let _ = child.kill();
        let _ = child.wait();
        let problem = format!("does not end within {} seconds", LIMIT.as_secs());
        return Err(failed(command, problem, "try it by hand; `path` takes what it writes into a file"));
    };
    if text.len() as u64 > MOST_BYTES {
        return Err(failed(command, "writes without end".into(), "try it by hand"));
    }
    if status.success() {
        return Ok(text);
    }
    let said = errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    Err(failed(command, format!("failed ({status}): {}", said.trim()), "try it by hand"))
}

/// Reads a stream to its end, keeping the first bytes.
fn read_aside(
    stream: Option<impl Read + Send + 'static>,
    most: u64,
    sender: Option<mpsc::Sender<Vec<u8>>>,
) -> mpsc::Receiver<Vec<u8>> {
    let (own, receiver) = mpsc::channel();
    let sender = sender.unwrap_or(own);
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
