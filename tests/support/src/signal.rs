//! Signals to processes of a test.

use std::fmt::Display;
use std::process::Command;

/// Sends a signal such as `INT` through the shell, because not every machine has a `kill` program.
///
/// # Panics
///
/// If there is no such process.
pub fn signal(process: impl Display, signal: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -s {signal} {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot send {signal} to {process}");
}
