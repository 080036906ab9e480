//! `.sch` of PARUS: the tasks of every process in their turns.

use super::ReadError;

/// A schedule as PARUS writes it: who runs what, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sch {
    /// The processes.
    pub processors: Vec<SchProcessor>,
}

/// A process and what it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchProcessor {
    /// Its name: rank in MPI, which counts from 1, since process 0 is the coordinator of PARUS.
    pub name: u64,
    /// Numbers of the nodes that it runs, in their turns.
    pub nodes: Vec<u64>,
}

impl Sch {
    /// Reads a `.sch` file.
    pub fn read(_bytes: &[u8]) -> Result<Self, ReadError> {
        Err(ReadError::whole("not read yet", "not yet"))
    }

    /// The file as `graph2sch` writes it, byte for byte; `comment` gives a line to stand before a process, if any.
    #[must_use]
    pub fn write(&self, _comment: impl Fn(&SchProcessor) -> Option<String>) -> String {
        String::new()
    }
}
