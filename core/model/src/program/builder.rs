//! Builds a [`Program`] from operations in the order of each rank.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use super::{Action, Collective, Envelope, Operation, Program, ProgramError};

/// Appends operations to ranks, in any order of the ranks.
///
/// It numbers envelopes and collective operations, and assigns requests: the lowest one that is inactive.
/// [`ProgramBuilder::finish`] checks the program. Equal operations give equal programs, in whichever order
/// the ranks were filled.
#[derive(Debug)]
pub struct ProgramBuilder {
    ranks: Vec<RankBuilder>,
    envelopes: Interned<Envelope>,
    collectives: Interned<Collective>,
    communicators: Vec<Vec<u32>>,
}

#[derive(Debug, Default)]
struct RankBuilder {
    operations: Vec<Operation>,
    /// Inactive requests below `requests`.
    free: BinaryHeap<Reverse<u32>>,
    /// Number of requests that were ever active.
    requests: u32,
}

/// Different values, numbered by first use.
#[derive(Debug)]
pub struct Interned<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Copy + Eq + Hash> Interned<T> {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }

    /// The number of a value, which is new or known.
    pub fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            (self.values.len() - 1) as u32
        })
    }

    /// The values by number.
    #[must_use]
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<T: Copy + Eq + Hash> Default for Interned<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl RankBuilder {
    fn activate(&mut self) -> u32 {
        if let Some(Reverse(request)) = self.free.pop() {
            return request;
        }
        self.requests += 1;
        self.requests - 1
    }
}

impl ProgramBuilder {
    /// A program of ranks that do nothing; `MPI_COMM_WORLD` is communicator 0.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks: (0..ranks).map(|_| RankBuilder::default()).collect(),
            envelopes: Interned::new(),
            collectives: Interned::new(),
            communicators: vec![(0..ranks).collect()],
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Adds a communicator by the world ranks of its members, in the order of their ranks in it. Gives its
    /// index. Communicators with equal members are different communicators.
    pub fn communicator(&mut self, members: Vec<u32>) -> u32 {
        self.communicators.push(members);
        (self.communicators.len() - 1) as u32
    }

    /// The world ranks of the members of a communicator.
    #[must_use]
    pub fn members(&self, communicator: u32) -> Option<&[u32]> {
        self.communicators.get(communicator as usize).map(Vec::as_slice)
    }

    fn push(&mut self, rank: u32, action: Action) {
        self.ranks[rank as usize].operations.push(Operation::new(action));
    }

    /// Appends computation. Consecutive computation is one operation, and none takes zero seconds.
    pub fn compute(&mut self, rank: u32, seconds: f64) {
        if seconds == 0.0 {
            return;
        }
        match self.ranks[rank as usize].operations.last_mut() {
            Some(last) if let Action::Compute { seconds: before } = last.action() => {
                *last = Operation::new(Action::Compute { seconds: before + seconds });
            }
            _ => self.push(rank, Action::Compute { seconds }),
        }
    }

    /// Appends a blocking send.
    pub fn send(&mut self, rank: u32, envelope: Envelope, bytes: u64) {
        let envelope = self.envelopes.number(envelope);
        self.push(rank, Action::Send { envelope, bytes });
    }

    /// Appends a blocking receive.
    pub fn recv(&mut self, rank: u32, envelope: Envelope, bytes: u64) {
        let envelope = self.envelopes.number(envelope);
        self.push(rank, Action::Recv { envelope, bytes });
    }

    /// Appends a nonblocking send, and gives its request.
    pub fn isend(&mut self, rank: u32, envelope: Envelope, bytes: u64) -> u32 {
        let envelope = self.envelopes.number(envelope);
        let request = self.ranks[rank as usize].activate();
        self.push(rank, Action::Isend { envelope, bytes, request });
        request
    }

    /// Appends a nonblocking receive, and gives its request.
    pub fn irecv(&mut self, rank: u32, envelope: Envelope, bytes: u64) -> u32 {
        let envelope = self.envelopes.number(envelope);
        let request = self.ranks[rank as usize].activate();
        self.push(rank, Action::Irecv { envelope, bytes, request });
        request
    }

    /// Appends the completion of an active request, which may be reused afterwards.
    pub fn wait(&mut self, rank: u32, request: u32) {
        self.push(rank, Action::Wait { request });
        self.ranks[rank as usize].free.push(Reverse(request));
    }

    /// Appends the completion of all active requests.
    pub fn waitall(&mut self, rank: u32) {
        self.push(rank, Action::Waitall);
        let rank = &mut self.ranks[rank as usize];
        rank.free.clear();
        rank.requests = 0;
    }

    /// Appends an unsuccessful test of an active request.
    pub fn test(&mut self, rank: u32, request: u32) {
        self.push(rank, Action::Test { request });
    }

    /// Appends a collective operation; for `bytes` see [`Action::Collective`].
    pub fn collective(&mut self, rank: u32, collective: Collective, bytes: u64) {
        let collective = self.collectives.number(collective);
        self.push(rank, Action::Collective { collective, bytes });
    }

    /// The program, checked. Envelopes and collective operations are numbered by first use, rank by rank.
    pub fn finish(self) -> Result<Program, ProgramError> {
        let Self { ranks, envelopes, collectives, communicators } = self;
        let mut starts = vec![0];
        let mut operations = Vec::with_capacity(ranks.iter().map(|rank| rank.operations.len()).sum());
        let mut envelopes = Renumbered::new(envelopes.values);
        let mut collectives = Renumbered::new(collectives.values);
        for rank in ranks {
            operations.extend(rank.operations.into_iter().map(|operation| match operation.action() {
                Action::Send { envelope, .. }
                | Action::Isend { envelope, .. }
                | Action::Recv { envelope, .. }
                | Action::Irecv { envelope, .. } => operation.with_target(envelopes.number(envelope)),
                Action::Collective { collective, .. } => {
                    operation.with_target(collectives.number(collective))
                }
                _ => operation,
            }));
            starts.push(operations.len());
        }
        let (envelopes, collectives) = (envelopes.values, collectives.values);
        let left_out = Duration::ZERO;
        let (recorded, is_approximate) = (None, false);
        let program = Program {
            starts,
            operations,
            envelopes,
            collectives,
            communicators,
            left_out,
            recorded,
            is_approximate,
        };
        program.check()?;
        Ok(program)
    }
}

/// Numbers by first use for values that have others.
struct Renumbered<T> {
    before: Vec<T>,
    /// New number of each value, `u32::MAX` before its first use.
    numbers: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy> Renumbered<T> {
    fn new(before: Vec<T>) -> Self {
        Self { numbers: vec![u32::MAX; before.len()], values: Vec::with_capacity(before.len()), before }
    }

    fn number(&mut self, before: u32) -> u32 {
        let number = &mut self.numbers[before as usize];
        if *number == u32::MAX {
            *number = self.values.len() as u32;
            self.values.push(self.before[before as usize]);
        }
        *number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(peer: u32) -> Envelope {
        Envelope { peer, tag: 0, communicator: 0 }
    }

    #[test]
    fn the_order_of_ranks_does_not_matter() {
        let fill = |order: [u32; 3]| {
            let mut builder = ProgramBuilder::new(3);
            for rank in order {
                let request = builder.irecv(rank, envelope((rank + 2) % 3), 8);
                builder.send(rank, envelope((rank + 1) % 3), 8);
                builder.wait(rank, request);
            }
            builder.finish().unwrap()
        };
        assert_eq!(fill([0, 1, 2]), fill([2, 0, 1]));
    }

    #[test]
    fn requests_are_reused_and_computation_is_merged() {
        let mut builder = ProgramBuilder::new(1);
        builder.compute(0, 1.0);
        builder.compute(0, 0.0);
        builder.compute(0, 2.0);
        let post = |builder: &mut ProgramBuilder| {
            (builder.irecv(0, envelope(0), 1), builder.isend(0, envelope(0), 1))
        };
        assert_eq!(post(&mut builder), (0, 1));
        builder.wait(0, 0);
        assert_eq!(post(&mut builder), (0, 2));
        builder.waitall(0);
        assert_eq!(post(&mut builder), (0, 1));
        builder.waitall(0);
        let program = builder.finish().unwrap();
        assert_eq!(program.operations[0].action(), Action::Compute { seconds: 3.0 });
        assert_eq!((program.operations.len(), program.envelopes.len()), (10, 1));
    }
}
