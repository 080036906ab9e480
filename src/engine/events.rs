//! What the engine tells those who watch a run.

use super::reason::Reason;
use super::settled::Settled;
use crate::pipeline::Cell;

/// Hears what happens during a run.
pub trait Events: Sync {
    /// A cell begins.
    fn started(&self, cell: &Cell, reasons: &[Reason]);
    /// A cell has finished `done` of `total` units; `total` is zero when it is not known.
    fn progress(&self, cell: &Cell, done: u64, total: u64);
    /// A cell has something to say.
    fn log(&self, cell: &Cell, line: &str);
    /// A cell has settled; `remaining` have not.
    fn settled(&self, cell: &Cell, settled: &Settled, remaining: usize);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoEvents;

impl Events for NoEvents {
    fn started(&self, _: &Cell, _: &[Reason]) {}
    fn progress(&self, _: &Cell, _: u64, _: u64) {}
    fn log(&self, _: &Cell, _: &str) {}
    fn settled(&self, _: &Cell, _: &Settled, _: usize) {}
}
