//! The processes that a distributed stage runs on.

use crate::Error;

/// The processes that a distributed stage runs on, numbered from zero. All call the same functions in the same order.
///
/// What a search does with it must not show in its result: a fixed number of islands gives the same answer on any number of
/// processes. MPI implements it in the binary `hopmap-ranks`; a stage without a launcher runs without one.
pub trait Communicator: Sync {
    /// Number of this process.
    fn process(&self) -> u32;

    /// Number of processes.
    fn processes(&self) -> u32;

    /// Sends bytes to the next process of the ring and gives what the one before sent.
    fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error>;

    /// What every process gives, in their order, on every process.
    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;

    /// Sends bytes to one process, which calls [`receive`](Self::receive).
    fn send(&self, process: u32, bytes: Vec<u8>) -> Result<(), Error>;

    /// The next bytes that one process sends.
    fn receive(&self, process: u32) -> Result<Vec<u8>, Error>;

    /// Sends so many messages of so many bytes to a process, each after the answer of one byte to the one before, and gives
    /// how many seconds each took with its answer. The other process calls [`answer`](Self::answer) at the same time.
    fn time(&self, process: u32, bytes: u64, messages: u32) -> Result<Vec<f64>, Error>;

    /// The other side of [`time`](Self::time).
    fn answer(&self, process: u32, bytes: u64, messages: u32) -> Result<(), Error>;
}
