//! Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hopmap_command::{Exit, Failure};
use miette::IntoDiagnostic;

/// A first Ctrl-C asks the stages to deliver what they have, a second one ends at once: the store is sound either way. Whoever asks
/// again gets the same flag.
pub(super) fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    static CANCELLED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut there = CANCELLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cancelled) = there.as_ref() {
        return Ok(Arc::clone(cancelled));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            #[expect(clippy::exit, reason = "the user asked twice")]
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    };
    ctrlc::set_handler(handler).into_diagnostic()?;
    Ok(Arc::clone(there.insert(cancelled)))
}
