//! The processes of a communicator, and the rounds of messages of all operations except reductions: along a
//! binomial tree, a chain, or directly to and from the root, process 0; barriers; allgather; alltoall.
//!
//! In the binomial tree, the parent of a process is the process with its lowest one bit cleared; that bit is
//! the size of its subtree. Going down, a process serves its largest subtree first; going up, its smallest.

use std::ops::Range;

use hopmap_model::Edge;

use crate::sizes::Blocks;

/// The processes of a communicator, numbered from its root, and the receiver of their messages.
///
/// Every message is reported with its round: messages of one round do not depend on each other. Rounds are
/// reported in any order, and some may be empty. Several rounds with the same pairs may be reported as one.
pub(crate) struct Network<F> {
    processes: u32,
    root: u32,
    /// First round of the current part of the algorithm, the current round, and the highest round so far.
    rounds: (u32, u32, u32),
    transfer: F,
}

impl<F: FnMut(u32, Edge)> Network<F> {
    /// At least one process; the root is one of them.
    pub(crate) fn new(processes: u32, root: u32, transfer: F) -> Self {
        Self { processes, root, rounds: (0, 0, 0), transfer }
    }

    /// Runs a part in which processes are numbered as in the communicator.
    pub(crate) fn unrotated(&mut self, part: impl FnOnce(&mut Network<&mut F>)) {
        let (processes, rounds) = (self.processes, self.rounds);
        let mut unrotated = Network { processes, root: 0, rounds, transfer: &mut self.transfer };
        part(&mut unrotated);
        self.rounds = unrotated.rounds;
    }

    /// Number of processes.
    pub(crate) fn processes(&self) -> u32 {
        self.processes
    }

    /// Sets the current round, counted from zero within the current part.
    pub(crate) fn round(&mut self, round: u32) {
        self.rounds.1 = self.rounds.0.saturating_add(round);
        self.rounds.2 = self.rounds.2.max(self.rounds.1);
    }

    /// Starts a part that follows all previous rounds.
    pub(crate) fn next_part(&mut self) {
        self.rounds.0 = self.rounds.2 + 1;
        self.round(0);
    }

    /// Number of distances.
    pub(crate) fn doublings(&self) -> u32 {
        u32::BITS - (self.processes - 1).leading_zeros()
    }

    /// The distances 1, 2, 4, … below the number of processes.
    pub(crate) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> + use<F> {
        powers(self.doublings())
    }

    /// The process this many places after another, cyclically.
    pub(crate) fn after(&self, process: u32, places: u32) -> u32 {
        ((u64::from(process) + u64::from(places)) % u64::from(self.processes)) as u32
    }

    /// The process this many places before another, cyclically.
    pub(crate) fn before(&self, process: u32, places: u32) -> u32 {
        self.after(process, self.processes - places % self.processes)
    }

    /// Rank of a process in the communicator.
    pub(crate) fn rank(&self, process: u32) -> u32 {
        self.after(process, self.root)
    }

    /// Sends a message, unless it is empty.
    pub(crate) fn send(&mut self, source: u32, destination: u32, bytes: u64) {
        if bytes > 0 {
            self.send_all(source, destination, 1, bytes);
        }
    }

    /// Sends several messages with this many bytes together, unless they are empty.
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

/// The parent of a process other than the root.
pub(crate) fn parent(process: u32) -> u32 {
    process & (process - 1)
}

/// A process other than the root and all its descendants.
fn subtree(process: u32, processes: u32) -> Range<u32> {
    process..process.saturating_add(1 << process.trailing_zeros()).min(processes)
}

/// A message from every parent to every child.
fn down(network: &mut Network<impl FnMut(u32, Edge)>, bytes: impl Fn(u32) -> u64) {
    let rounds = network.doublings();
    for process in 1..network.processes() {
        network.round(rounds - 1 - process.trailing_zeros());
        network.send(parent(process), process, bytes(process));
    }
}

/// A message from every child to every parent.
fn up(network: &mut Network<impl FnMut(u32, Edge)>, bytes: impl Fn(u32) -> u64) {
    for process in (1..network.processes()).rev() {
        network.round(process.trailing_zeros());
        network.send(process, parent(process), bytes(process));
    }
}

/// Every process forwards what it received. P − 1 messages.
pub(crate) fn broadcast(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    down(network, |_| bytes);
}

/// Every process forwards what it received to the next. P − 1 messages in sequence: a chain without
/// segments.
pub(crate) fn chain(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in 1..network.processes() {
        network.round(process - 1);
        network.send(process - 1, process, bytes);
    }
}

/// Every process reduces what it received and forwards the result. P − 1 messages.
pub(crate) fn reduce(bytes: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    up(network, |_| bytes);
}

/// Every process forwards the blocks of its descendants. P − 1 messages.
pub(crate) fn scatter(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    down(network, |process| blocks.several(subtree(process, processes)));
}

/// Every process forwards its block and those of its descendants. P − 1 messages.
pub(crate) fn gather(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    up(network, |process| blocks.several(subtree(process, processes)));
}

/// Every process sends its block to the root. P − 1 messages.
pub(crate) fn to_root(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    for process in 1..network.processes() {
        network.send(process, 0, blocks.one(process));
    }
}

/// The root asks one process after the other for its block, with an empty message, and each sends it in two
/// segments, of which the second is empty. 3 · (P − 1) messages. `gather_intra_linear_sync` of Open MPI.
pub(crate) fn to_root_in_turn(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in (1..network.processes()).filter(|&process| blocks.one(process) > 0) {
        for (source, destination, bytes) in
            [(0, process, 0), (process, 0, blocks.one(process)), (process, 0, 0)]
        {
            network.send_all(source, destination, 1, bytes);
            network.next_part();
        }
    }
}

/// The root sends every process its block. P − 1 messages.
pub(crate) fn from_root(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    for process in 1..network.processes() {
        network.send(0, process, blocks.one(process));
    }
}

/// Every process notifies the processes 1, 2, 4, … ranks ahead: ⌈log₂ P⌉ empty messages each. Hensgen,
/// Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988.
pub(crate) fn disseminate(network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        for process in 0..network.processes() {
            network.send_all(process, network.after(process, distance), 1, 0);
        }
    }
}

/// Arrivals are reported up a binomial tree and the release down: 2 · (P − 1) empty messages.
/// `barrier_intra_tree` of Open MPI.
pub(crate) fn tree(network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in (1..network.processes()).rev() {
        network.round(process.trailing_zeros());
        network.send_all(process, parent(process), 1, 0);
    }
    network.next_part();
    let rounds = network.doublings();
    for process in 1..network.processes() {
        network.round(rounds - 1 - process.trailing_zeros());
        network.send_all(parent(process), process, 1, 0);
    }
}

/// Every process notifies the root, which releases all: 2 · (P − 1) empty messages.
pub(crate) fn notify_root(network: &mut Network<impl FnMut(u32, Edge)>) {
    for process in 1..network.processes() {
        network.send_all(process, 0, 1, 0);
    }
    network.next_part();
    for process in 1..network.processes() {
        network.send_all(0, process, 1, 0);
    }
}

/// The first 2ᵏ processes notify each other over the distances 1, 2, 4, …; each of the others notifies one of
/// them before, and is released after: 2ᵏ · k + 2 · (P − 2ᵏ) empty messages.
/// `barrier_intra_recursivedoubling` of Open MPI.
pub(crate) fn notify_by_doubling(network: &mut Network<impl FnMut(u32, Edge)>) {
    let members = 1 << network.processes().ilog2();
    for process in members..network.processes() {
        network.send_all(process, process - members, 1, 0);
    }
    for distance in powers(members.ilog2()) {
        network.next_part();
        for process in 0..members {
            network.send_all(process, process ^ distance, 1, 0);
        }
    }
    network.next_part();
    for process in members..network.processes() {
        network.send_all(process - members, process, 1, 0);
    }
}

/// Processes exchange over the distances 1, 2, 4, …, so that after each the two groups of this length know the
/// same. If the second group is incomplete, some processes of the first have no partner: those that have one
/// forward to them what they received. `bytes` is what a group with a given range of processes knows and the
/// other does not. P · k messages for 2ᵏ processes.
pub(crate) fn exchange_by_doubling(
    bytes: impl Fn(Range<u32>) -> u64,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let processes = network.processes();
    for distance in network.distances() {
        let group = |process: u32| {
            let first = process & !(distance - 1);
            first..first.saturating_add(distance).min(processes)
        };
        for process in 0..processes {
            if process ^ distance < processes {
                network.send(process, process ^ distance, bytes(group(process)));
            }
        }
        network.next_part();
        let last = group(processes - 1);
        let partners = last.end - last.start;
        if last.start & distance == 0 || partners == distance {
            continue;
        }
        for step in powers(distance.ilog2()).rev() {
            // Of every 2 · step processes without a gap, the first ones know it already.
            for process in last.start - distance..last.start {
                let known = process % (2 * step);
                if known < partners.min(step) && known + step >= partners {
                    network.send(process, process + step, bytes(last.clone()));
                }
            }
            network.next_part();
        }
    }
}

/// Processes exchange all blocks they hold.
pub(crate) fn recursive_doubling(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    exchange_by_doubling(|group| blocks.several(group), network);
}

/// Every process sends all blocks it holds, in the last round only the missing ones, to the processes 1, 2,
/// 4, … places before: P · ⌈log₂ P⌉ messages. Bruck et al., "Efficient Algorithms for All-to-All
/// Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997.
pub(crate) fn bruck(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        let count = distance.min(network.processes() - distance);
        for process in 0..network.processes() {
            network.send(process, network.before(process, distance), blocks.around(process, count));
        }
    }
}

/// Every block travels around the ring to the predecessor of its owner: P · (P − 1) messages, reported as
/// one round.
pub(crate) fn ring(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    network.round(0);
    around(blocks, 1, network);
}

/// Every process forwards all blocks around the ring but that of the process `kept` places after it.
pub(crate) fn around(blocks: &Blocks, kept: u32, network: &mut Network<impl FnMut(u32, Edge)>) {
    let filled = blocks.filled();
    for process in 0..network.processes() {
        let (next, kept) = (network.after(process, 1), network.after(process, kept));
        let messages = filled - u64::from(blocks.one(kept) > 0);
        network.send_all(process, next, messages, blocks.all_but(kept));
    }
}

/// An even number of processes exchange in pairs, alternating between the two neighbours: first their own
/// blocks, then the two blocks received last. P / 2 · P messages. Chen et al., "Performance Evaluation of
/// Allgather Algorithms on Terascale Linux Cluster with Fast Ethernet", HPC Asia 2005.
pub(crate) fn neighbour_exchange(blocks: &Blocks, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    network.round(0);
    for process in 0..processes {
        network.send(process, process ^ 1, blocks.one(process));
    }
    for round in 1..processes / 2 {
        network.round(round);
        for process in 0..processes {
            // In odd rounds even processes exchange with the predecessor and odd ones with the successor;
            // each round moves the pair of blocks one pair further.
            let backwards = (process % 2 == 0) == (round % 2 == 1);
            let partner = if backwards { network.before(process, 1) } else { network.after(process, 1) };
            let way = 2 * (round / 2);
            let own = process & !1;
            let first = if backwards { network.after(own, way) } else { network.before(own, way) };
            network.send(process, partner, blocks.around(first, 2));
        }
    }
}

/// Order of the messages between all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All at once.
    AtOnce,
    /// In P − 1 rounds, in each of which every process sends one message and receives one.
    InRounds,
}

impl Order {
    /// The round of a message.
    fn round(self, source: u32, destination: u32, processes: u32) -> u32 {
        match self {
            Self::AtOnce => 0,
            Self::InRounds if destination > source => destination - source - 1,
            Self::InRounds => processes - (source - destination) - 1,
        }
    }
}

/// Over each distance 1, 2, 4, … every process sends the blocks whose distance contains that power of two: P
/// · ⌈log₂ P⌉ messages. Bruck et al., 1997.
pub(crate) fn bruck_all_to_all(block: u64, network: &mut Network<impl FnMut(u32, Edge)>) {
    for (round, distance) in (0..).zip(network.distances()) {
        network.round(round);
        let bytes = block.saturating_mul(numbers_with(distance, network.processes()));
        for process in 0..network.processes() {
            network.send(process, network.after(process, distance), bytes);
        }
    }
}

/// How many numbers below `limit` have `bit` set.
fn numbers_with(bit: u32, limit: u32) -> u64 {
    let (bit, limit) = (u64::from(bit), u64::from(limit));
    limit / (2 * bit) * bit + (limit % (2 * bit)).saturating_sub(bit)
}

/// Every process sends every other process its block: P · (P − 1) messages.
pub(crate) fn to_each(blocks: &Blocks, order: Order, network: &mut Network<impl FnMut(u32, Edge)>) {
    let processes = network.processes();
    for source in 0..processes {
        for destination in (0..processes).filter(|&destination| destination != source) {
            network.round(order.round(source, destination, processes));
            network.send(source, destination, blocks.one(destination));
        }
    }
}

/// `MPI_Alltoallv` and `MPI_Alltoallw`: P · (P − 1) messages.
///
/// A trace records what a process sends to all and receives from all, itself included, but not the bytes per
/// pair. The estimate is sent(i) · received(j) / total received. Rounding keeps the row sums: what i sends,
/// its share for itself included, adds up to sent(i). Column sums are off by less than a byte per process.
/// If no process received anything, all shares are equal.
pub(crate) fn shares(
    sent: &[u64],
    received: &[u64],
    order: Order,
    network: &mut Network<impl FnMut(u32, Edge)>,
) {
    let silent = received.iter().all(|&bytes| bytes == 0);
    let weights = Blocks::of(received.iter().map(|&bytes| if silent { 1 } else { bytes }));
    let processes = network.processes();
    for (source, &bytes) in (0..).zip(sent) {
        let mut given = 0;
        for destination in 0..processes {
            let due = weights.portion(bytes, destination + 1);
            if destination != source {
                network.round(order.round(source, destination, processes));
                network.send(source, destination, due - given);
            }
            given = due;
        }
    }
}
