//! The command that takes a new topology.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopmap_durable::DurableError;
use rustix::process::{Pid, Signal, kill_process_group};

use super::RefreshError;

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of what it said that are shown.
const SAID: usize = 2000;

/// A command that takes a new topology.
#[derive(Debug, Clone)]
pub struct Consumer {
    /// Run by `sh -c`.
    pub command: String,
    /// It is ended when it takes longer.
    pub limit: Duration,
}

/// How it ended, where it did not succeed.
pub(super) struct Failed {
    pub(super) how: String,
    pub(super) said: String,
}

impl Consumer {
    /// Runs it in a process group of its own. What it says goes to `log`, so that whatever it leaves running holds nobody up.
    pub(super) fn run(
        &self,
        topology: &Path,
        changes: &Path,
        log: &Path,
        cancelled: &AtomicBool,
    ) -> Result<Result<(), Failed>, RefreshError> {
        let output = File::create(log).map_err(DurableError::io("create", log))?;
        let errors = output.try_clone().map_err(DurableError::io("create", log))?;
        let child = Command::new("sh")
            .args(["-c", &self.command])
            .env("HOPMAP_TOPOLOGY", topology)
            .env("HOPMAP_CHANGES", changes)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(DurableError::io("start", Path::new("sh")))?;
        let how = match self.wait(child, cancelled)? {
            Ended::Interrupted => return Err(RefreshError::Interrupted),
            Ended::Status(status) if status.success() => return Ok(Ok(())),
            Ended::Status(status) => format!("ended with {status}"),
            Ended::TooLong => format!("took longer than {}", humantime::format_duration(self.limit)),
        };
        Ok(Err(Failed { how, said: end_of(log) }))
    }

    fn wait(&self, mut child: Child, cancelled: &AtomicBool) -> Result<Ended, RefreshError> {
        let begin = Instant::now();
        let failed = DurableError::io("wait for", Path::new("sh"));
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(Ended::Status(status)),
                Ok(None) => {}
                Err(error) => return Err(failed(error).into()),
            }
            if cancelled.load(Ordering::Relaxed) {
                break Ended::Interrupted;
            }
            if begin.elapsed() >= self.limit {
                break Ended::TooLong;
            }
            std::thread::sleep(LOOK);
        };
        if let Some(leader) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // An error says that nobody is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        let _ = child.wait();
        Ok(ended)
    }
}

enum Ended {
    Status(ExitStatus),
    TooLong,
    Interrupted,
}

/// The end of what it said.
fn end_of(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let begin = bytes.len().saturating_sub(SAID);
    let text = String::from_utf8_lossy(&bytes[begin..]).trim_end().to_owned();
    if text.is_empty() { "nothing".to_owned() } else { text }
}
