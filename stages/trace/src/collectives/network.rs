//! Processes that send messages to each other.

use hopmap_model::Edge;

/// The processes of a communicator, numbered from its root on, and where their messages are told.
pub(super) struct Network<F> {
    processes: u32,
    root: u32,
    transfer: F,
}

impl<F: FnMut(Edge)> Network<F> {
    /// At least one process; the root is one of them.
    pub(super) fn new(processes: u32, root: u32, transfer: F) -> Self {
        Self { processes, root, transfer }
    }

    /// The same processes numbered as the communicator does.
    pub(super) fn unrotated(&mut self) -> Network<&mut F> {
        Network { processes: self.processes, root: 0, transfer: &mut self.transfer }
    }

    /// How many processes there are.
    pub(super) fn processes(&self) -> u32 {
        self.processes
    }

    /// The distances 1, 2, 4, … below the number of processes.
    pub(super) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> + use<F> {
        powers(u32::BITS - (self.processes - 1).leading_zeros())
    }

    /// The process so many places after another, around.
    pub(super) fn after(&self, process: u32, places: u32) -> u32 {
        ((u64::from(process) + u64::from(places)) % u64::from(self.processes)) as u32
    }

    /// The process so many places before another, around.
    pub(super) fn before(&self, process: u32, places: u32) -> u32 {
        self.after(process, self.processes - places % self.processes)
    }

    /// The rank of a process in the communicator.
    pub(super) fn rank(&self, process: u32) -> u32 {
        self.after(process, self.root)
    }

    /// Sends a message, unless it is empty.
    pub(super) fn send(&mut self, source: u32, destination: u32, bytes: u64) {
        if bytes > 0 {
            self.send_all(source, destination, 1, bytes);
        }
    }

    /// Sends messages of so many bytes together, none of them if they are none.
    pub(super) fn send_all(&mut self, source: u32, destination: u32, messages: u64, bytes: u64) {
        if messages > 0 {
            let (source, destination) = (self.rank(source), self.rank(destination));
            (self.transfer)(Edge { source, destination, messages, bytes });
        }
    }
}

/// The first powers of two.
pub(super) fn powers(count: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..count).map(|exponent| 1 << exponent)
}
