//! `procs.vct` of PARUS: how long a test took on every process.

use super::ReadError;

/// How long a test took on every process.
#[derive(Debug, Clone, PartialEq)]
pub struct Procs {
    /// The host of every process.
    pub hosts: Vec<String>,
    /// The size of the test.
    pub size: f64,
    /// Seconds that it took on every process.
    pub durations: Vec<f64>,
}

impl Procs {
    /// Reads `procs.vct`.
    pub fn read(_bytes: &[u8]) -> Result<Self, ReadError> {
        Err(ReadError::whole("not read yet", "not yet"))
    }
}
