//! An observer that keeps the log.

use std::sync::Mutex;

use hopmap_model::Observer;

/// The lines of the log.
#[derive(Debug, Default)]
pub struct Log(pub Mutex<Vec<String>>);

impl Observer for Log {
    fn progress(&self, _: u64, _: u64) {}
    fn log(&self, line: &str) {
        self.0.lock().expect("no test fails while it logs").push(line.to_owned());
    }
    fn cancelled(&self) -> bool {
        false
    }
}
