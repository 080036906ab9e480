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
}
