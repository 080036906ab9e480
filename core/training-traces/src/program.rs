//! A job as a program: computation between communication, with their overlap.
//!
//! An operation that something waits for before the rank computes again is a blocking collective operation. What
//! overlaps with computation on any member becomes the messages of NCCL's algorithm, posted at its start and
//! awaited where it is needed; all its rounds are in flight at once, as in a pipeline of many chunks.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use hopmap_collectives::{Algorithms, Rules};
use hopmap_model::{
    Collective, CollectiveOperation as Operation, Context, Envelope, Program, ProgramBuilder, to_u32,
};
use hopmap_text::check_stop;

use crate::calls::{Moment, Rank, What};
use crate::error::TrainingError;
use crate::job::Checked;

/// Bytes that a member sends to a peer and receives from it, by member.
type Exchanges = Vec<Vec<(u32, u64, u64)>>;

/// An operation of a group: its number among those of the group.
type Number = (u32, u32);

/// The program of a job.
pub fn program(job: &Checked, cx: &Context<'_>) -> Result<Program, TrainingError> {
    let timelines: Vec<Timeline> = job.ranks.iter().map(Timeline::new).collect();
    let mut overlapped: HashMap<Number, u64> =
        timelines.iter().flat_map(|timeline| &timeline.overlapped).map(|number| (*number, 0)).collect();
    for (rank, timeline) in job.ranks.iter().zip(&timelines) {
        for (call, number) in rank.calls.iter().zip(&timeline.numbers) {
            let (What::Collective { sent, .. }, Some(number)) = (*call, number) else { continue };
            // Members may pass different amounts to an alltoall; all take the largest.
            overlapped.entry(*number).and_modify(|most| *most = sent.max(*most));
        }
    }
    let mut builder = ProgramBuilder::new(to_u32(job.ranks.len()));
    let communicators = job.groups.iter().map(|members| builder.communicator(members.clone())).collect();
    let mut building = Building { job, overlapped, communicators, exchanges: HashMap::new(), builder };
    for (rank, timeline) in (0..).zip(&timelines) {
        check_stop(0, cx)?;
        building.rank(rank, timeline)?;
    }
    building.builder.finish().map_err(|error| {
        let problem = format!("the messages of the job contradict each other: {error}");
        TrainingError::refused(problem, super::error::RECORD_ALL)
    })
}

#[derive(Debug, Default)]
struct Timeline {
    /// Moments with the computation before each.
    moments: Vec<(f64, Moment)>,
    /// Computation after the last one.
    rest: f64,
    /// Numbers of the collective operations of each call; `None` of messages.
    numbers: Vec<Option<Number>>,
    /// Operations that overlap with computation or other calls.
    overlapped: Vec<Number>,
}

impl Timeline {
    fn new(rank: &Rank) -> Self {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        let number = |call: &What| match *call {
            What::Collective { group, .. } => {
                let count = counts.entry(group).or_default();
                *count += 1;
                Some((group, *count - 1))
            }
            _ => None,
        };
        let mut timeline = Self { numbers: rank.calls.iter().map(number).collect(), ..Self::default() };
        let mut busy = Busy { spans: &rank.computing, next: 0, until: 0.0 };
        for &(time, moment) in &rank.moments {
            let seconds = busy.until(time);
            let follows = timeline.moments.last().is_some_and(|(_, last)| match (*last, moment) {
                (Moment::Start(start), Moment::Needed(needed)) => start == needed,
                _ => false,
            });
            if let (Moment::Needed(call), false) = (moment, follows && seconds == 0.0) {
                timeline.overlapped.extend(timeline.numbers[call as usize]);
            }
            timeline.moments.push((seconds, moment));
        }
        timeline.rest = busy.until(f64::INFINITY);
        timeline
    }
}

/// Computation that is passed in order.
struct Busy<'a> {
    spans: &'a [(f64, f64)],
    next: usize,
    until: f64,
}

impl Busy<'_> {
    /// Seconds of computation from the last moment to this one.
    fn until(&mut self, time: f64) -> f64 {
        let mut seconds = 0.0;
        while let Some((begin, end)) = self.spans.get(self.next).filter(|(begin, _)| *begin < time) {
            seconds += (end.min(time) - begin.max(self.until)).max(0.0);
            if *end > time {
                break;
            }
            self.next += 1;
        }
        self.until = time;
        seconds
    }
}

struct Building<'a> {
    job: &'a Checked,
    /// Operations that are messages, with the bytes that a member passes.
    overlapped: HashMap<Number, u64>,
    /// Communicators of the groups.
    communicators: Vec<u32>,
    exchanges: HashMap<(u32, Operation, Option<u32>, u64), Rc<Exchanges>>,
    builder: ProgramBuilder,
}

impl Building<'_> {
    fn rank(&mut self, rank: u32, timeline: &Timeline) -> Result<(), TrainingError> {
        let mut requests: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (seconds, moment) in &timeline.moments {
            self.builder.compute(rank, *seconds);
            match *moment {
                Moment::Start(call) => {
                    let number = timeline.numbers[call as usize];
                    requests.insert(call, self.start(rank, call, number)?);
                }
                Moment::Needed(call) => {
                    let requests = requests.remove(&call).unwrap_or_default();
                    requests.into_iter().for_each(|request| self.builder.wait(rank, request));
                }
            }
        }
        self.builder.compute(rank, timeline.rest);
        Ok(())
    }

    /// Starts a call; gives the requests to wait for.
    fn start(&mut self, rank: u32, call: u32, number: Option<Number>) -> Result<Vec<u32>, TrainingError> {
        let what = self.job.ranks[rank as usize].calls[call as usize];
        let (group, operation, root, sent) = match what {
            What::Send { peer, tag, bytes, .. } => {
                return Ok(vec![self.builder.isend(rank, Envelope { peer, tag, communicator: 0 }, bytes)]);
            }
            What::Receive { peer, tag, bytes } => {
                return Ok(vec![self.builder.irecv(rank, Envelope { peer, tag, communicator: 0 }, bytes)]);
            }
            What::Collective { group, operation, root, sent, .. } => (group, operation, root, sent),
        };
        let communicator = self.communicators[group as usize];
        let overlapped = number.and_then(|number| Some((number.1, *self.overlapped.get(&number)?)));
        let Some((tag, sent)) = overlapped else {
            let bytes = self.job.blocks(group, operation, root, sent).bytes;
            self.builder.collective(rank, Collective { communicator, operation, root }, bytes);
            return Ok(Vec::new());
        };
        let exchanges = self.exchanges(group, operation, root, sent)?;
        let members = &self.job.groups[group as usize];
        let member = members.iter().position(|member| *member == rank).unwrap_or_default();
        let mut requests = Vec::new();
        let envelope = |peer: u32| Envelope { peer: members[peer as usize], tag, communicator };
        for (peer, _, received) in exchanges[member].iter().filter(|(.., received)| *received > 0) {
            requests.push(self.builder.irecv(rank, envelope(*peer), *received));
        }
        for (peer, sent, _) in exchanges[member].iter().filter(|(_, sent, _)| *sent > 0) {
            requests.push(self.builder.isend(rank, envelope(*peer), *sent));
        }
        Ok(requests)
    }

    /// What all members of a group exchange in an operation.
    fn exchanges(
        &mut self,
        group: u32,
        operation: Operation,
        root: Option<u32>,
        sent: u64,
    ) -> Result<Rc<Exchanges>, TrainingError> {
        let key = (group, operation, root, sent);
        if let Some(known) = self.exchanges.get(&key) {
            return Ok(Rc::clone(known));
        }
        let call = self.job.blocks(group, operation, root, sent);
        let rules = Algorithms { rules: Rules::Nccl, ..Algorithms::default() };
        let mut pairs: Vec<BTreeMap<u32, (u64, u64)>> = vec![BTreeMap::new(); call.processes as usize];
        let messages = call.messages(call.usual(rules.rules), |_, edge| {
            // An empty message still says that its sender has come so far.
            let bytes = edge.bytes.max(1);
            let pair = pairs[edge.source as usize].entry(edge.destination).or_default();
            pair.0 = pair.0.saturating_add(bytes);
            let pair = pairs[edge.destination as usize].entry(edge.source).or_default();
            pair.1 = pair.1.saturating_add(bytes);
        });
        messages.map_err(|error| TrainingError::refused(error.to_string(), ""))?;
        let rows = pairs
            .into_iter()
            .map(|pairs| pairs.into_iter().map(|(peer, (out, back))| (peer, out, back)).collect());
        let exchanges: Rc<Exchanges> = Rc::new(rows.collect());
        self.exchanges.insert(key, Rc::clone(&exchanges));
        Ok(exchanges)
    }
}
