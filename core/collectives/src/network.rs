//! Processes that send messages to each other.

use hopmap_model::Edge;

/// The processes of a communicator, numbered from its root on, and where their messages are told.
///
/// Every message is told with its round: those of one round need nothing that is sent in the same round. Rounds are told
/// in any order, and some may be empty. A pair that takes turns with the same partners for several rounds may tell all
/// of them as one.
pub(crate) struct Network<F> {
    processes: u32,
    root: u32,
    /// First round of the part of the algorithm that is under way, the round that is told, and the last one told.
    rounds: (u32, u32, u32),
    transfer: F,
}

impl<F: FnMut(u32, Edge)> Network<F> {
    /// At least one process; the root is one of them.
    pub(crate) fn new(processes: u32, root: u32, transfer: F) -> Self {
        Self { processes, root, rounds: (0, 0, 0), transfer }
    }

    /// The same processes numbered as the communicator does.
    pub(crate) fn unrotated(&mut self) -> Network<&mut F> {
        Network { processes: self.processes, root: 0, rounds: self.rounds, transfer: &mut self.transfer }
    }

    /// How many processes there are.
    pub(crate) fn processes(&self) -> u32 {
        self.processes
    }

    /// What follows happens in this round of the part that is under way, counted from zero.
    pub(crate) fn round(&mut self, round: u32) {
        self.rounds.1 = self.rounds.0.saturating_add(round);
        self.rounds.2 = self.rounds.2.max(self.rounds.1);
    }

    /// What follows happens after everything before.
    pub(crate) fn next_part(&mut self) {
        self.rounds.0 = self.rounds.2 + 1;
        self.round(0);
    }

    /// How many distances there are.
    pub(crate) fn doublings(&self) -> u32 {
        u32::BITS - (self.processes - 1).leading_zeros()
    }

    /// The distances 1, 2, 4, … below the number of processes.
    pub(crate) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> + use<F> {
        powers(self.doublings())
    }

    /// The process so many places after another, around.
    pub(crate) fn after(&self, process: u32, places: u32) -> u32 {
        ((u64::from(process) + u64::from(places)) % u64::from(self.processes)) as u32
    }

    /// The process so many places before another, around.
    pub(crate) fn before(&self, process: u32, places: u32) -> u32 {
        self.after(process, self.processes - places % self.processes)
    }

    /// The rank of a process in the communicator.
    pub(crate) fn rank(&self, process: u32) -> u32 {
        self.after(process, self.root)
    }

    /// Sends a message, unless it is empty.
    pub(crate) fn send(&mut self, source: u32, destination: u32, bytes: u64) {
        if bytes > 0 {
            self.send_all(source, destination, 1, bytes);
        }
    }

    /// Sends messages of so many bytes together, none of them if they are none.
    pub(crate) fn send_all(&mut self, source: u32, destination: u32, messages: u64, bytes: u64) {
        if messages > 0 {
            let (source, destination) = (self.rank(source), self.rank(destination));
            (self.transfer)(self.rounds.1, Edge { source, destination, messages, bytes });
        }
    }
}

/// The first powers of two.
pub(crate) fn powers(count: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..count).map(|exponent| 1 << exponent)
}
