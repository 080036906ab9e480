//! What is measured beside the run time: idle processors, lateness of the network, and time inside MPI.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopmap_model::read_input;
use hopmap_process::{Limits, run};
use hopmap_recording::Recording;

use crate::error::TrialError;

/// Time limit of the command that prints the lateness.
const LATENESS_TIME: Duration = Duration::from_secs(10);
/// Most bytes of `/proc/stat`.
const MOST_OUTPUT: u64 = 1 << 28;

/// Idle and all time of the processors of this host so far, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processors {
    idle: u64,
    all: u64,
}

impl Processors {
    /// From `/proc/stat`; `None` where there is none.
    pub(crate) fn now() -> Option<Self> {
        let text = read_input(Path::new("/proc/stat"), MOST_OUTPUT).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Idle, and idle while it waits for a disk, come after user, nice and system time (`proc_stat(5)`). Guests are part of
    /// user time.
    fn parse(text: &str) -> Option<Self> {
        let words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { idle: ticks.iter().skip(3).take(2).sum(), all: ticks.iter().sum() })
    }

    /// The idle fraction since then; `None` if no tick has passed.
    pub(crate) fn idle_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some((self.idle.saturating_sub(before.idle) as f64 / all as f64).min(1.0))
    }
}

/// Runs the command that prints how late frames were since it ran last.
pub(crate) fn lateness(words: &[String]) -> Result<f64, TrialError> {
    let failed = |reason: String| TrialError::Lateness { reason };
    let limits = Limits { time: Some(LATENESS_TIME), ..Limits::default() };
    let output =
        run(Command::new(&words[0]).args(&words[1..]), &limits).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    seconds
        .ok_or_else(|| failed(format!("`{}` printed `{}`, not a number of seconds", words[0], text.trim())))
}

/// The mean time of the ranks inside MPI, in seconds; `None` if a rank did not record it.
pub(crate) fn time_inside_mpi(folder: &Path) -> Option<f64> {
    let recording = Recording::read(folder).ok()?;
    let inside: Option<Vec<f64>> =
        recording.processes.iter().map(|process| process.times.map(|(_, inside)| inside)).collect();
    let inside = inside.filter(|inside| !inside.is_empty())?;
    Some(inside.iter().sum::<f64>() / inside.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_a_fraction_of_all_ticks() {
        let before = Processors::parse("cpu  10 0 10 100 5 0 0 0 3 0\ncpu0 …").unwrap();
        let after = Processors::parse("cpu  70 0 20 120 15 0 0 0 3 0\n").unwrap();
        assert_eq!(after.idle_since(before), Some(0.3));
        assert_eq!(after.idle_since(after), None);
        assert!(Processors::parse("intr 1 2").is_none());
    }

    #[test]
    fn a_lateness_that_is_no_number_is_reported() {
        let words = |text: &str| ["echo".to_owned(), text.to_owned()];
        assert_eq!(lateness(&words("0.0015")).ok(), Some(0.0015));
        let error = lateness(&words("late")).unwrap_err().to_string();
        assert_eq!(error, "`lateness`: `echo` printed `late`, not a number of seconds");
    }
}
