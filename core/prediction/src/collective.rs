//! Collective operations as messages, by rank and round.

use std::collections::HashMap;
use std::rc::Rc;

use hopmap_collectives::{Algorithms, Call, CollectiveError};
use hopmap_model::{Action, Program};

/// Entries of all schedules that are kept for later calls.
const MOST_KEPT: usize = 1 << 24;

/// A message of one rank in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// Round of the algorithm, and index among the messages that a pair exchanges one after the other.
    pub(crate) round: (u32, u32),
    /// Receives come first, so that they are posted before the sends.
    pub(crate) is_send: bool,
    /// World rank of the other end.
    pub(crate) peer: u32,
    pub(crate) bytes: u64,
}

/// The messages of all members of a communicator.
#[derive(Debug)]
pub(crate) struct Schedule {
    starts: Vec<u32>,
    steps: Vec<Step>,
}

impl Schedule {
    pub(crate) fn of_member(&self, member: u32) -> &[Step] {
        let [start, end] = [member, member + 1].map(|member| self.starts[member as usize] as usize);
        &self.steps[start..end]
    }

    fn new(call: Call, algorithms: &Algorithms, members: &[u32]) -> Result<Self, CollectiveError> {
        let chosen = algorithms.of(call.operation).filter(|algorithm| call.suits(*algorithm));
        let mut steps: Vec<(u32, Step)> = Vec::new();
        call.messages(chosen.unwrap_or_else(|| call.usual(algorithms.rules)), |round, edge| {
            let messages = edge.messages.max(1);
            for part in 0..messages {
                let bytes = edge.bytes / messages + u64::from(part < edge.bytes % messages);
                for (member, peer, is_send) in
                    [(edge.source, edge.destination, true), (edge.destination, edge.source, false)]
                {
                    let peer = members[peer as usize];
                    steps.push((member, Step { round: (round, part as u32), is_send, peer, bytes }));
                }
            }
        })?;
        steps.sort_unstable();
        let mut starts = vec![0; members.len() + 1];
        steps.iter().for_each(|(member, _)| starts[*member as usize + 1] += 1);
        (0..members.len()).for_each(|member| starts[member + 1] += starts[member]);
        Ok(Self { starts, steps: steps.into_iter().map(|(_, step)| step).collect() })
    }
}

/// The collective operations of a program.
#[derive(Debug)]
pub(crate) struct Collectives<'a> {
    program: &'a Program,
    algorithms: Algorithms,
    /// For every communicator, the sum of the bytes of every call over its members.
    bytes: Vec<Vec<u64>>,
    schedules: HashMap<(u32, u64), Rc<Schedule>>,
    kept: usize,
}

impl<'a> Collectives<'a> {
    /// Of a program that passed its check.
    pub(crate) fn new(program: &'a Program, algorithms: Algorithms) -> Self {
        let mut bytes = vec![Vec::new(); program.communicators.len()];
        if !program.collectives.is_empty() {
            for rank in 0..program.ranks() {
                add_bytes(program, rank, &mut bytes);
            }
        }
        Self { program, algorithms, bytes, schedules: HashMap::new(), kept: 0 }
    }

    /// The messages of a call, counted among those of its communicator. All blocks have the mean length of those
    /// of all members, rounded up.
    pub(crate) fn schedule(&mut self, collective: u32, call: usize) -> Result<Rc<Schedule>, CollectiveError> {
        let hopmap_model::Collective { communicator, operation, root } =
            self.program.collectives[collective as usize];
        let members = &self.program.communicators[communicator as usize];
        let bytes = self.bytes[communicator as usize][call].div_ceil(members.len() as u64);
        if let Some(schedule) = self.schedules.get(&(collective, bytes)) {
            return Ok(Rc::clone(schedule));
        }
        let call = Call { operation, processes: members.len() as u32, root, bytes };
        let schedule = Rc::new(Schedule::new(call, &self.algorithms, members)?);
        self.kept += schedule.steps.len();
        if self.kept > MOST_KEPT {
            self.schedules.clear();
            self.kept = schedule.steps.len();
        }
        self.schedules.insert((collective, bytes), Rc::clone(&schedule));
        Ok(schedule)
    }
}

fn add_bytes(program: &Program, rank: u32, bytes: &mut [Vec<u64>]) {
    let mut calls = vec![0; bytes.len()];
    for operation in program.of_rank(rank) {
        if let Action::Collective { collective, bytes: own } = operation.action() {
            let communicator = program.collectives[collective as usize].communicator as usize;
            let call = &mut calls[communicator];
            match bytes[communicator].get_mut(*call) {
                Some(sum) => *sum = sum.saturating_add(own),
                None => bytes[communicator].push(own),
            }
            *call += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use hopmap_collectives::Algorithm;
    use hopmap_model::{Collective, CollectiveOperation, ProgramBuilder};

    use super::*;

    fn program(collective: Collective, bytes: &[u64]) -> Program {
        let mut program = ProgramBuilder::new(bytes.len() as u32);
        (0..).zip(bytes).for_each(|(rank, bytes)| program.collective(rank, collective, *bytes));
        program.finish().unwrap()
    }

    #[test]
    fn the_messages_of_a_ring_follow_each_other() {
        let ring = Algorithms { allgather: Some(Algorithm::Ring), ..Algorithms::default() };
        let collective =
            Collective { communicator: 0, operation: CollectiveOperation::AllGather, root: None };
        let program = program(collective, &[8; 4]);
        let schedule = Collectives::new(&program, ring).schedule(0, 0).unwrap();
        let steps = schedule.of_member(0);
        let rounds: Vec<u32> = steps.iter().map(|step| step.round.1).collect();
        assert_eq!(rounds, [0, 0, 1, 1, 2, 2]);
        let ends: Vec<(bool, u32, u64)> =
            steps[..2].iter().map(|step| (step.is_send, step.peer, step.bytes)).collect();
        assert_eq!(ends, [(false, 3, 8), (true, 1, 8)]);
    }

    #[test]
    fn blocks_of_different_lengths_have_their_mean() {
        let collective =
            Collective { communicator: 0, operation: CollectiveOperation::GatherV, root: Some(1) };
        let program = program(collective, &[10, 0, 5]);
        let mut collectives = Collectives::new(&program, Algorithms::default());
        let schedule = collectives.schedule(0, 0).unwrap();
        assert_eq!(schedule.of_member(0)[0].bytes, 5);
        assert!(Rc::ptr_eq(&schedule, &collectives.schedule(0, 0).unwrap()));
    }
}
