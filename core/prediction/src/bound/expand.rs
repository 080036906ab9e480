//! Collective operations of a program as the messages that a replay sends.

use std::borrow::Cow;

use hopmap_collectives::Algorithms;
use hopmap_model::{Action, Envelope, Program, ProgramBuilder};

use super::error::BoundError;
use crate::collective::Collectives;
use crate::message::COLLECTIVE_TAG;

/// The program with its collective operations expanded: in every round, a rank posts its receives and sends,
/// and waits for them.
pub(super) fn expanded<'a>(
    program: &'a Program,
    algorithms: &Algorithms,
) -> Result<Cow<'a, Program>, BoundError> {
    if program.collectives.is_empty() {
        return Ok(Cow::Borrowed(program));
    }
    let mut collectives = Collectives::new(program, *algorithms);
    let mut builder = ProgramBuilder::new(program.ranks());
    for members in program.communicators.iter().skip(1) {
        builder.communicator(members.clone());
    }
    for rank in 0..program.ranks() {
        let mut expansion = Expansion { program, rank, requests: Vec::new(), builder: &mut builder };
        let mut calls = vec![0; program.communicators.len()];
        for operation in program.of_rank(rank) {
            match operation.action() {
                Action::Collective { collective, .. } => {
                    let communicator = program.collectives[collective as usize].communicator;
                    let call = &mut calls[communicator as usize];
                    expansion.collective(&mut collectives, collective, communicator, *call)?;
                    *call += 1;
                }
                action => expansion.copy(action),
            }
        }
    }
    Ok(Cow::Owned(builder.finish()?))
}

/// The operations of a rank, one after the other.
struct Expansion<'a> {
    program: &'a Program,
    rank: u32,
    /// Requests of the expanded program.
    requests: Vec<u32>,
    builder: &'a mut ProgramBuilder,
}

impl Expansion<'_> {
    fn copy(&mut self, action: Action) {
        let (builder, rank) = (&mut *self.builder, self.rank);
        let envelope = |envelope: u32| self.program.envelopes[envelope as usize];
        let (request, new) = match action {
            Action::Compute { seconds } => return builder.compute(rank, seconds),
            Action::Send { envelope: to, bytes } => return builder.send(rank, envelope(to), bytes),
            Action::Recv { envelope: from, bytes } => return builder.recv(rank, envelope(from), bytes),
            Action::Isend { envelope: to, bytes, request } => {
                (request, builder.isend(rank, envelope(to), bytes))
            }
            Action::Irecv { envelope: from, bytes, request } => {
                (request, builder.irecv(rank, envelope(from), bytes))
            }
            Action::Wait { request } => return builder.wait(rank, self.requests[request as usize]),
            Action::Waitall => return builder.waitall(rank),
            Action::Test { .. } | Action::Collective { .. } => return,
        };
        if self.requests.len() <= request as usize {
            self.requests.resize(request as usize + 1, 0);
        }
        self.requests[request as usize] = new;
    }

    fn collective(
        &mut self,
        collectives: &mut Collectives<'_>,
        collective: u32,
        communicator: u32,
        call: usize,
    ) -> Result<(), BoundError> {
        let schedule = collectives.schedule(collective, call)?;
        let members = &self.program.communicators[communicator as usize];
        let member = members.iter().position(|&member| member == self.rank).unwrap_or_default();
        for round in schedule.of_member(member as u32).chunk_by(|a, b| a.round == b.round) {
            let mut requests = Vec::with_capacity(round.len());
            for step in round {
                let envelope = Envelope { peer: step.peer, tag: COLLECTIVE_TAG, communicator };
                requests.push(match step.is_send {
                    true => self.builder.isend(self.rank, envelope, step.bytes),
                    false => self.builder.irecv(self.rank, envelope, step.bytes),
                });
            }
            requests.into_iter().for_each(|request| self.builder.wait(self.rank, request));
        }
        Ok(())
    }
}
