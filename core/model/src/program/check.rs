//! Consistency of a [`Program`].

use std::collections::BTreeMap;

use super::{Action, Collective, Envelope, Operation, OperationProblem, Program, ProgramError};
use crate::faults::is_time;

/// Source, destination, tag and communicator of messages.
type Channel = (u32, u32, u32, u32);

/// State of the check over all ranks.
struct Check<'a> {
    program: &'a Program,
    /// Members of each communicator, sorted.
    members: Vec<Vec<u32>>,
    /// Sent and received messages.
    messages: BTreeMap<Channel, (u64, u64)>,
    /// The collective operations of the first member of each communicator.
    expected: Vec<Vec<Collective>>,
    /// Sends and receives of the current rank by envelope; an array, because every message looks them up.
    counts: Vec<(u64, u64)>,
}

/// State of the check of one rank.
struct RankCheck {
    rank: u32,
    /// Index of the operation that started each request, if it is active.
    active: Vec<Option<usize>>,
    /// Envelopes that it uses.
    envelopes: Vec<u32>,
    /// Number of collective operations by communicator.
    calls: BTreeMap<u32, usize>,
}

impl Program {
    /// Checks that
    ///
    /// - communicator 0 has all ranks, and communicators have distinct members that exist;
    /// - seconds are finite and non-negative;
    /// - both ends of messages, and all callers of collective operations, are in the communicator;
    /// - requests are active when they are completed or tested, and all receives are completed;
    /// - every send has a receive, and every receive a send;
    /// - the members of a communicator call the same collective operations in the same order.
    ///
    /// Time O(operations), and memory proportional to different envelopes and to the collective operations of one
    /// rank of each communicator. Deadlocks are found by a replay only.
    pub fn check(&self) -> Result<(), ProgramError> {
        self.check_starts()?;
        let members = self.sorted_members()?;
        let expected = vec![Vec::new(); members.len()];
        let counts = vec![(0, 0); self.envelopes.len()];
        let mut check = Check { program: self, members, messages: BTreeMap::new(), expected, counts };
        check.expect_collectives();
        (0..self.ranks()).try_for_each(|rank| check.rank(rank))?;
        for ((source_rank, destination, tag, communicator), (sent, received)) in check.messages {
            if sent != received {
                return Err(ProgramError::Messages {
                    source_rank,
                    destination,
                    tag,
                    communicator,
                    sent,
                    received,
                });
            }
        }
        Ok(())
    }

    fn check_starts(&self) -> Result<(), ProgramError> {
        if let Some(rank) = self.starts.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(ProgramError::Starts { rank: rank as u32 });
        }
        if self.starts.first() != Some(&0) {
            return Err(ProgramError::Starts { rank: 0 });
        }
        match self.starts.last() == Some(&self.operations.len()) {
            true => Ok(()),
            false => Err(ProgramError::Starts { rank: self.ranks().saturating_sub(1) }),
        }
    }

    fn sorted_members(&self) -> Result<Vec<Vec<u32>>, ProgramError> {
        let ranks = self.ranks();
        if !self.communicators.first().is_some_and(|world| world.iter().copied().eq(0..ranks)) {
            return Err(ProgramError::World { ranks });
        }
        let sorted = |(communicator, members): (usize, &Vec<u32>)| {
            let mut sorted = members.clone();
            sorted.sort_unstable();
            let is_valid = sorted.last().is_none_or(|last| *last < ranks)
                && sorted.windows(2).all(|pair| pair[0] < pair[1])
                && (communicator == 0 || !sorted.is_empty());
            if is_valid { Ok(sorted) } else { Err(ProgramError::Communicator { communicator }) }
        };
        self.communicators.iter().enumerate().map(sorted).collect()
    }
}

impl Check<'_> {
    /// Collects the collective operations of the first member of each communicator.
    fn expect_collectives(&mut self) {
        let mut first: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (communicator, members) in (0..).zip(&self.program.communicators) {
            if let Some(&rank) = members.first() {
                first.entry(rank).or_default().push(communicator);
            }
        }
        for (rank, communicators) in first {
            for operation in self.program.of_rank(rank) {
                let Action::Collective { collective, .. } = operation.action() else { continue };
                let Some(&collective) = self.program.collectives.get(collective as usize) else { continue };
                if communicators.binary_search(&collective.communicator).is_ok() {
                    self.expected[collective.communicator as usize].push(collective);
                }
            }
        }
    }

    fn rank(&mut self, rank: u32) -> Result<(), ProgramError> {
        let mut state = RankCheck { rank, active: Vec::new(), envelopes: Vec::new(), calls: BTreeMap::new() };
        let operations = self.program.of_rank(rank);
        for (index, operation) in operations.iter().enumerate() {
            self.operation(&mut state, index, operation.action())
                .map_err(|problem| ProgramError::Operation { rank, index, problem })?;
        }
        for (request, index) in (0..).zip(&state.active) {
            if let Some(index) = *index
                && matches!(operations[index].action(), Action::Irecv { .. })
            {
                let problem = OperationProblem::NeverCompleted(request);
                return Err(ProgramError::Operation { rank, index, problem });
            }
        }
        self.count_messages(&mut state);
        self.count_collectives(&state)
    }

    fn operation(
        &mut self,
        state: &mut RankCheck,
        index: usize,
        action: Action,
    ) -> Result<(), OperationProblem> {
        match action {
            Action::Compute { seconds } if is_time(seconds) => Ok(()),
            Action::Compute { seconds } => Err(OperationProblem::Seconds(seconds)),
            Action::Send { envelope, .. } => self.message(state, envelope, true),
            Action::Recv { envelope, .. } => self.message(state, envelope, false),
            Action::Isend { envelope, request, .. } => {
                self.message(state, envelope, true)?;
                state.activate(request, index)
            }
            Action::Irecv { envelope, request, .. } => {
                self.message(state, envelope, false)?;
                state.activate(request, index)
            }
            Action::Wait { request } => {
                state.active(request)?.take();
                Ok(())
            }
            Action::Test { request } => state.active(request).map(drop),
            Action::Waitall => {
                state.active.clear();
                Ok(())
            }
            Action::Collective { collective, .. } => self.collective(state, collective),
        }
    }

    /// Checks the ends of a message at its first use by a rank.
    fn message(&mut self, state: &mut RankCheck, envelope: u32, sends: bool) -> Result<(), OperationProblem> {
        let place = envelope as usize;
        if *self.counts.get(place).ok_or(OperationProblem::NoTarget)? == (0, 0) {
            let Envelope { peer, communicator, .. } = self.program.envelopes[place];
            self.member(communicator, state.rank)?;
            self.member(communicator, peer)?;
            state.envelopes.push(envelope);
        }
        match (sends, &mut self.counts[place]) {
            (true, (sent, _)) => *sent += 1,
            (false, (_, received)) => *received += 1,
        }
        Ok(())
    }

    fn member(&self, communicator: u32, rank: u32) -> Result<(), OperationProblem> {
        let members = self.members.get(communicator as usize);
        let members = members.ok_or(OperationProblem::NoCommunicator(communicator))?;
        match members.binary_search(&rank) {
            Ok(_) => Ok(()),
            Err(_) => Err(OperationProblem::NotMember { rank, communicator }),
        }
    }

    fn collective(&self, state: &mut RankCheck, collective: u32) -> Result<(), OperationProblem> {
        let collective =
            *self.program.collectives.get(collective as usize).ok_or(OperationProblem::NoTarget)?;
        let Collective { communicator, operation, root } = collective;
        self.member(communicator, state.rank)?;
        if root.is_some() != operation.has_root() {
            return Err(OperationProblem::Root { operation });
        }
        let members = &self.program.communicators[communicator as usize];
        if let Some(root) = root.filter(|&root| root as usize >= members.len()) {
            return Err(OperationProblem::NoSuchRoot { root, members: members.len() });
        }
        let calls = state.calls.entry(communicator).or_default();
        if self.expected[communicator as usize].get(*calls) != Some(&collective) {
            return Err(OperationProblem::OtherCollective { collective, other: members[0] });
        }
        *calls += 1;
        Ok(())
    }

    fn count_messages(&mut self, state: &mut RankCheck) {
        for envelope in state.envelopes.drain(..) {
            let (sent, received) = std::mem::take(&mut self.counts[envelope as usize]);
            let Envelope { peer, tag, communicator } = self.program.envelopes[envelope as usize];
            if sent > 0 {
                self.messages.entry((state.rank, peer, tag, communicator)).or_default().0 += sent;
            }
            if received > 0 {
                self.messages.entry((peer, state.rank, tag, communicator)).or_default().1 += received;
            }
        }
    }

    fn count_collectives(&self, state: &RankCheck) -> Result<(), ProgramError> {
        for (communicator, expected) in (0..).zip(&self.expected) {
            let (rank, expected) = (state.rank, expected.len());
            let calls = state.calls.get(&communicator).copied().unwrap_or(0);
            if calls != expected && self.members[communicator as usize].binary_search(&rank).is_ok() {
                let other = self.program.communicators[communicator as usize][0];
                return Err(ProgramError::Collectives { rank, communicator, calls, other, expected });
            }
        }
        Ok(())
    }
}

impl RankCheck {
    fn activate(&mut self, request: u32, index: usize) -> Result<(), OperationProblem> {
        if request > Operation::MAX_REQUEST {
            return Err(OperationProblem::TooManyRequests);
        }
        if self.active.len() <= request as usize {
            self.active.resize(request as usize + 1, None);
        }
        match self.active[request as usize].replace(index) {
            None => Ok(()),
            Some(_) => Err(OperationProblem::Active(request)),
        }
    }

    /// An active request.
    fn active(&mut self, request: u32) -> Result<&mut Option<usize>, OperationProblem> {
        let active = self.active.get_mut(request as usize).filter(|active| active.is_some());
        active.ok_or(OperationProblem::Inactive(request))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collectives::CollectiveOperation;
    use crate::program::ProgramBuilder;

    fn program(ranks: u32, fill: impl FnOnce(&mut ProgramBuilder)) -> Result<Program, ProgramError> {
        let mut builder = ProgramBuilder::new(ranks);
        fill(&mut builder);
        builder.finish()
    }

    fn envelope(peer: u32, communicator: u32) -> Envelope {
        Envelope { peer, tag: 5, communicator }
    }

    fn problem(found: Result<Program, ProgramError>) -> (u32, usize, OperationProblem) {
        match found {
            Err(ProgramError::Operation { rank, index, problem }) => (rank, index, problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_program_is_consistent() {
        assert!(program(0, |_| {}).is_ok() && program(3, |_| {}).is_ok());
    }

    #[test]
    fn every_message_needs_both_ends() {
        let lost = program(2, |builder| builder.send(0, envelope(1, 0), 8)).unwrap_err();
        assert_eq!(
            lost.to_string(),
            "rank 0 sends 1 messages to rank 1 with tag 5 in communicator 0, which receives 0"
        );
        let excess = program(2, |builder| builder.recv(0, envelope(1, 0), 8)).unwrap_err();
        assert!(matches!(excess, ProgramError::Messages { source_rank: 1, sent: 0, received: 1, .. }));
    }

    #[test]
    fn ends_of_messages_must_be_in_the_communicator() {
        let pair = |peer, communicator| {
            problem(program(3, |builder| {
                builder.communicator(vec![2, 0]);
                builder.send(0, envelope(peer, communicator), 8);
            }))
        };
        let stranger = |rank, communicator| OperationProblem::NotMember { rank, communicator };
        assert_eq!(pair(1, 1), (0, 0, stranger(1, 1)));
        assert_eq!(pair(3, 0), (0, 0, stranger(3, 0)));
        assert_eq!(pair(1, 2), (0, 0, OperationProblem::NoCommunicator(2)));
    }

    #[test]
    fn requests_must_be_active() {
        let wait = problem(program(1, |builder| builder.wait(0, 4)));
        assert_eq!(wait, (0, 0, OperationProblem::Inactive(4)));
        let again = problem(program(1, |builder| {
            let request = builder.isend(0, envelope(0, 0), 1);
            builder.recv(0, envelope(0, 0), 1);
            builder.wait(0, request);
            builder.test(0, request);
        }));
        assert_eq!(again, (0, 3, OperationProblem::Inactive(0)));
        let open = problem(program(1, |builder| {
            builder.irecv(0, envelope(0, 0), 1);
            builder.isend(0, envelope(0, 0), 1);
        }));
        assert_eq!(open, (0, 0, OperationProblem::NeverCompleted(0)));
        // A send that is never completed is not an error.
        let freed = program(1, |builder| {
            builder.isend(0, envelope(0, 0), 1);
            builder.recv(0, envelope(0, 0), 1);
        });
        assert!(freed.is_ok());
    }

    #[test]
    fn requests_have_24_bits() {
        let mut found = program(1, |builder| {
            builder.isend(0, envelope(0, 0), 1);
            builder.recv(0, envelope(0, 0), 1);
        })
        .unwrap();
        found.operations[0] =
            Operation::new(Action::Isend { envelope: 0, bytes: 1, request: Operation::MAX_REQUEST + 5 });
        let expected =
            ProgramError::Operation { rank: 0, index: 0, problem: OperationProblem::TooManyRequests };
        assert_eq!(found.check(), Err(expected));
    }

    #[test]
    fn collective_operations_must_be_called_by_all_in_one_order() {
        let collective = |operation, root| Collective { communicator: 1, operation, root };
        let barrier = collective(CollectiveOperation::Barrier, None);
        let broadcast = |root| collective(CollectiveOperation::Broadcast, Some(root));
        let called = |calls: [&[Collective]; 2]| {
            program(3, |builder| {
                builder.communicator(vec![2, 1]);
                for (rank, calls) in [2, 1].into_iter().zip(calls) {
                    calls.iter().for_each(|collective| builder.collective(rank, *collective, 8));
                }
            })
        };
        assert!(called([&[barrier, broadcast(1)], &[barrier, broadcast(1)]]).is_ok());
        let other = |collective| OperationProblem::OtherCollective { collective, other: 2 };
        assert_eq!(problem(called([&[broadcast(0)], &[broadcast(1)]])), (1, 0, other(broadcast(1))));
        assert_eq!(problem(called([&[], &[barrier]])), (1, 0, other(barrier)));
        let fewer = called([&[barrier], &[]]).unwrap_err();
        assert_eq!(
            fewer.to_string(),
            "rank 1 calls 0 collective operations of communicator 1, but rank 2 calls 1"
        );
        let far = OperationProblem::NoSuchRoot { root: 2, members: 2 };
        assert_eq!(problem(called([&[broadcast(2)], &[broadcast(2)]])).2, far);
        let rootless = collective(CollectiveOperation::Broadcast, None);
        assert_eq!(
            problem(called([&[rootless], &[rootless]])).2,
            OperationProblem::Root { operation: CollectiveOperation::Broadcast }
        );
    }

    #[test]
    fn communicators_have_distinct_ranks_that_exist() {
        for members in [vec![], vec![0, 0], vec![0, 2]] {
            let found = program(2, |builder| {
                builder.communicator(members);
            });
            assert_eq!(found, Err(ProgramError::Communicator { communicator: 1 }));
        }
        let mut shuffled = program(2, |_| {}).unwrap();
        shuffled.communicators[0] = vec![1, 0];
        assert_eq!(shuffled.check(), Err(ProgramError::World { ranks: 2 }));
    }

    /// A message, a collective operation or computation of a random program.
    #[derive(Debug, Clone)]
    enum Piece {
        Message { source: u32, destination: u32, tag: u32, nonblocking: (bool, bool) },
        Collective { pair: bool, operation: CollectiveOperation },
        Compute { rank: u32, seconds: f64 },
    }

    const RANKS: u32 = 4;

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let rank = || 0..RANKS;
        let message = (rank(), rank(), 0..3u32, any::<(bool, bool)>()).prop_map(
            |(source, destination, tag, nonblocking)| Piece::Message {
                source,
                destination,
                tag,
                nonblocking,
            },
        );
        let collective = (any::<bool>(), 0..CollectiveOperation::ALL.len())
            .prop_map(|(pair, place)| Piece::Collective { pair, operation: CollectiveOperation::ALL[place] });
        let compute = (rank(), 0.0..9.0).prop_map(|(rank, seconds)| Piece::Compute { rank, seconds });
        prop::collection::vec(prop_oneof![4 => message, 1 => collective, 1 => compute], 1..40)
    }

    fn build(pieces: &[Piece]) -> Program {
        let mut builder = ProgramBuilder::new(RANKS);
        let pair = builder.communicator(vec![3, 1]);
        let mut open = Vec::new();
        for piece in pieces {
            match *piece {
                Piece::Message { source, destination, tag, nonblocking } => {
                    let ends = |peer| Envelope { peer, tag, communicator: 0 };
                    match nonblocking.0 {
                        true => {
                            open.push((source, builder.isend(source, ends(destination), 8)));
                        }
                        false => builder.send(source, ends(destination), 8),
                    }
                    match nonblocking.1 {
                        true => open.push((destination, builder.irecv(destination, ends(source), 8))),
                        false => builder.recv(destination, ends(source), 8),
                    }
                    if tag == 2
                        && let Some((rank, request)) = open.pop()
                    {
                        builder.test(rank, request);
                        builder.wait(rank, request);
                    }
                }
                Piece::Collective { pair: is_pair, operation } => {
                    let communicator = if is_pair { pair } else { 0 };
                    let root = operation.has_root().then_some(1);
                    let members = builder.members(communicator).unwrap().to_vec();
                    for rank in members {
                        builder.collective(rank, Collective { communicator, operation, root }, 8);
                    }
                }
                Piece::Compute { rank, seconds } => builder.compute(rank, seconds),
            }
        }
        (0..RANKS).for_each(|rank| builder.waitall(rank));
        builder.finish().unwrap()
    }

    /// Changes an operation so that the program is inconsistent; `None` if this kind has no such change.
    fn damaged(action: Action) -> Option<Action> {
        Some(match action {
            Action::Compute { seconds } => Action::Compute { seconds: -1.0 - seconds },
            Action::Send { envelope, bytes } => Action::Recv { envelope, bytes },
            Action::Recv { envelope, bytes } => Action::Send { envelope, bytes },
            Action::Isend { bytes, request, .. } => Action::Isend { envelope: 999, bytes, request },
            Action::Irecv { envelope, bytes, .. } => {
                Action::Irecv { envelope, bytes, request: Operation::MAX_REQUEST + 1 }
            }
            Action::Wait { .. } => Action::Wait { request: 999 },
            Action::Test { .. } => Action::Test { request: 999 },
            Action::Collective { .. } => Action::Waitall,
            Action::Waitall => return None,
        })
    }

    proptest! {
        #[test]
        fn what_is_built_is_accepted_and_single_changes_are_not(pieces in pieces(), place in any::<prop::sample::Index>()) {
            let mut program = build(&pieces);
            let place = place.index(program.operations.len());
            if let Some(action) = damaged(program.operations[place].action()) {
                program.operations[place] = Operation::new(action);
                prop_assert!(program.check().is_err(), "{:?}", action);
            }
        }
    }
}
