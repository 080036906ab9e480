//! The command that takes a new topology.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopmap_durable::DurableError;
use hopmap_process::Group;

use super::RefreshError;

/// Time that a command has to end once it was asked to.
const GRACE: Duration = Duration::from_secs(1);
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
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]);
        command.env("HOPMAP_TOPOLOGY", topology).env("HOPMAP_CHANGES", changes);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut group = Group::start(&mut command).map_err(DurableError::io("start", Path::new("sh")))?;
        let begin = Instant::now();
        let reason = group.wait(|| match cancelled.load(Ordering::Relaxed) {
            true => Some(Unfinished::Interrupted),
            false => (begin.elapsed() >= self.limit).then_some(Unfinished::TooLong),
        });
        let ended = reason.and_then(|reason| {
            // One that has ended by itself may have started a service.
            let status = if reason.is_some() { group.stop(GRACE) } else { group.leave() };
            Ok((reason, status?))
        });
        let how = match ended.map_err(DurableError::io("wait for", Path::new("sh")))? {
            (Some(Unfinished::Interrupted), _) => return Err(RefreshError::Interrupted),
            (Some(Unfinished::TooLong), _) => {
                format!("took longer than {}", humantime::format_duration(self.limit))
            }
            (None, status) if status.success() => return Ok(Ok(())),
            (None, status) => format!("ended with {status}"),
        };
        Ok(Err(Failed { how, said: end_of(log) }))
    }
}

/// Why it did not end by itself.
enum Unfinished {
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
