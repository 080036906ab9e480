//! Where nonblocking collective operations block.
//!
//! The operations of a program block. A nonblocking collective operation does so where it completes, unless a member would
//! wait there for what another member does only before it completes its own part, such as to receive a message that the first
//! one sends later. Then it blocks where its members are at the moment at which all of them have started it, which is the
//! earliest at which it can end. To find this out, the events of all ranks are run without times, collective operations as
//! barriers, and sends until their receives are posted: in any other run, operations wait for less. Events that are still
//! stuck belong to a program that needs buffers: its sends end at once, then its collective operations without the others.
//!
//! If threads call MPI at the same time, the events of a rank are in the order of their times, and those of other threads must not
//! wait for a barrier that was none: a member then goes on as soon as those have started whose data it needs, such as the root
//! of a broadcast, and all block where they are when the last member completes.

use std::collections::{HashMap, VecDeque};

use hopmap_collectives::Operation;
use hopmap_model::{Context, to_u32};
use hopmap_text::check_stop;

use crate::error::TraceError;
use crate::matching::Matched;

/// An operation of a rank that is a part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Sends a message, by number.
    Send(u32),
    /// A nonblocking send completes.
    Sent(u32),
    /// Posts the receive of a message.
    Post(u32),
    /// Receives a message whose receive was posted before, or that blocks.
    Receive(u32),
    /// Starts a nonblocking collective operation, by the number of the call.
    Begin(u32),
    /// A collective operation, by the number of the call: it blocks, or it was started before and completes.
    Collective(u32),
}

/// The events of a rank in order, each with its moment.
pub(crate) type Events = Vec<(u32, Event)>;

/// The collective operations of a program. The calls of a meeting are numbered in the order of the members of its group.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    /// The meeting of each call.
    pub(crate) of_call: Vec<u32>,
    /// The first call of each meeting, and its group.
    pub(crate) list: Vec<(u32, u32)>,
    /// What the members of each meeting need.
    pub(crate) needs: Vec<Needs>,
}

/// The members of a meeting that have to start before one of them can complete. Roots are places in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    All,
    /// The root, whose data all get.
    Root(u32),
    /// All for the root, which gets their data, and none for the others.
    AllAtRoot(u32),
    /// Those before it.
    Before,
}

impl Needs {
    pub(crate) fn of(operation: Operation, root: u32) -> Self {
        match operation {
            Operation::Broadcast | Operation::Scatter | Operation::ScatterV => Self::Root(root),
            Operation::Reduce | Operation::Gather | Operation::GatherV => Self::AllAtRoot(root),
            Operation::Scan | Operation::ExclusiveScan => Self::Before,
            _ => Self::All,
        }
    }
}

/// The events of all ranks with collective operations where they block, and without [`Event::Begin`]; `None` if no order is
/// found in which they do not wait for each other.
pub(crate) fn ordered(
    events: Vec<Events>,
    messages: &[Matched],
    meetings: &Meetings,
    groups: &[Vec<u32>],
    are_overlapping: bool,
    cx: &Context<'_>,
) -> Result<Option<Vec<Events>>, TraceError> {
    let ranks = events.len();
    let mut run = Run {
        next: vec![0; ranks],
        done: events.iter().map(|events| Vec::with_capacity(events.len())).collect(),
        events,
        messages,
        meetings,
        groups,
        are_overlapping,
        has_reached: vec![false; meetings.of_call.len()],
        is_sent: vec![false; messages.len()],
        is_posted: vec![false; messages.len()],
        is_released: vec![false; ranks],
        begun: HashMap::new(),
        has_begun: vec![false; meetings.of_call.len()],
        is_placed: vec![false; meetings.of_call.len()],
        waiting: vec![None; ranks],
        counts: vec![(0, 0); meetings.list.len()],
        ready: (0..to_u32(ranks)).rev().collect(),
    };
    let mut steps = 0;
    loop {
        while let Some(rank) = run.ready.pop() {
            while run.step(rank) {
                steps += 1;
                check_stop(steps, cx)?;
            }
        }
        if !(run.end_begun() || run.release_sends() || run.release_collectives()) {
            break;
        }
    }
    let is_finished = run.next.iter().zip(&run.events).all(|(next, events)| *next == events.len());
    Ok(is_finished.then_some(run.done))
}

/// A run in progress.
struct Run<'a> {
    events: Vec<Events>,
    messages: &'a [Matched],
    meetings: &'a Meetings,
    groups: &'a [Vec<u32>],
    /// Whether threads call MPI at the same time.
    are_overlapping: bool,
    /// Whether a call has come to its end. Used only if they do.
    has_reached: Vec<bool>,
    /// Index of the next event of each rank.
    next: Vec<usize>,
    /// What each rank has done, in order.
    done: Vec<Events>,
    /// By message.
    is_sent: Vec<bool>,
    is_posted: Vec<bool>,
    /// Whether the send at which a rank waits ends nevertheless.
    is_released: Vec<bool>,
    /// Calls by rank and group that have started, and that block nowhere yet.
    begun: HashMap<(u32, u32), VecDeque<u32>>,
    /// By call.
    has_begun: Vec<bool>,
    is_placed: Vec<bool>,
    /// The call at which a rank waits.
    waiting: Vec<Option<u32>>,
    /// Members of each meeting that have started it, and that have waited for it.
    counts: Vec<(usize, usize)>,
    ready: Vec<u32>,
}

impl Run<'_> {
    /// Does the next event of a rank; `false` if it waits or has ended.
    fn step(&mut self, rank: u32) -> bool {
        let at = rank as usize;
        let Some(&(moment, event)) = self.events[at].get(self.next[at]) else { return false };
        let is_over = match event {
            Event::Send(message) => {
                let Matched { source, sent, destination, .. } = self.messages[message as usize];
                if !std::mem::replace(&mut self.is_sent[message as usize], true) {
                    self.ready.push(destination.rank);
                }
                sent != Some(source.moment) || self.may_end(rank, message)
            }
            Event::Sent(message) => self.may_end(rank, message),
            Event::Post(message) | Event::Receive(message) => {
                if !std::mem::replace(&mut self.is_posted[message as usize], true) {
                    self.ready.push(self.messages[message as usize].source.rank);
                }
                matches!(event, Event::Post(_)) || self.is_sent[message as usize]
            }
            Event::Begin(call) => {
                self.begin(rank, call);
                self.next[at] += 1;
                return true;
            }
            Event::Collective(call) if self.is_placed[call as usize] => {
                self.next[at] += 1;
                return true;
            }
            Event::Collective(call) if self.are_overlapping => return self.reach(rank, call),
            Event::Collective(call) => return self.meet(rank, call),
        };
        if is_over {
            self.done[at].push((moment, event));
            self.next[at] += 1;
            self.is_released[at] = false;
        }
        is_over
    }

    fn may_end(&self, rank: u32, message: u32) -> bool {
        self.is_posted[message as usize] || self.is_released[rank as usize]
    }

    /// The meeting of a call: its number and its group.
    fn meeting(&self, call: u32) -> (usize, u32) {
        let meeting = self.meetings.of_call[call as usize] as usize;
        (meeting, self.meetings.list[meeting].1)
    }

    fn begin(&mut self, rank: u32, call: u32) {
        let (meeting, group) = self.meeting(call);
        if !std::mem::replace(&mut self.has_begun[call as usize], true) {
            self.counts[meeting].0 += 1;
            if self.are_overlapping {
                let members = &self.groups[group as usize];
                let place = call - self.meetings.list[meeting].0;
                let is_news = match self.meetings.needs[meeting] {
                    Needs::All | Needs::AllAtRoot(_) => self.counts[meeting].0 == members.len(),
                    Needs::Root(root) => place == root,
                    Needs::Before => true,
                };
                self.ready.extend(members.iter().filter(|_| is_news));
            } else {
                self.begun.entry((rank, group)).or_default().push_back(call);
            }
        }
    }

    /// Goes on behind an operation of one of several threads, if those have started whose data it needs; `false` if it waits.
    fn reach(&mut self, rank: u32, call: u32) -> bool {
        self.begin(rank, call);
        let (meeting, group) = self.meeting(call);
        if !std::mem::replace(&mut self.has_reached[call as usize], true) {
            self.counts[meeting].1 += 1;
        }
        let members = to_u32(self.groups[group as usize].len());
        if self.counts[meeting].1 == members as usize {
            self.end(meeting);
            return true;
        }
        let first = self.meetings.list[meeting].0;
        let have_begun = |places: std::ops::Range<u32>| {
            places.into_iter().all(|place| self.has_begun[(first + place) as usize])
        };
        let may_go_on = match self.meetings.needs[meeting] {
            Needs::All => have_begun(0..members),
            Needs::Root(root) => have_begun(root..root + 1),
            Needs::AllAtRoot(root) => call - first != root || have_begun(0..members),
            Needs::Before => have_begun(0..call - first),
        };
        self.next[rank as usize] += usize::from(may_go_on);
        may_go_on
    }

    /// Waits for the first operation of the group that has started; `false` if others have not come yet.
    fn meet(&mut self, rank: u32, call: u32) -> bool {
        self.begin(rank, call);
        let (_, group) = self.meeting(call);
        let first = self.begun[&(rank, group)].front().copied().unwrap_or(call);
        let (meeting, _) = self.meeting(first);
        if self.waiting[rank as usize].replace(first) != Some(first) {
            self.counts[meeting].1 += 1;
        }
        let is_complete = self.counts[meeting].1 == self.groups[group as usize].len();
        if is_complete {
            self.end(meeting);
        }
        is_complete
    }

    /// All members of a meeting block where they are.
    fn end(&mut self, meeting: usize) {
        let (first, group) = self.meetings.list[meeting];
        let groups = self.groups;
        for (call, rank) in (first..).zip(&groups[group as usize]) {
            if !self.is_placed[call as usize] {
                self.place(*rank, call);
            }
        }
    }

    /// A rank blocks in a call before its next event.
    fn place(&mut self, rank: u32, call: u32) {
        let at = rank as usize;
        let event = self.events[at].get(self.next[at]).or(self.events[at].last());
        let Some(&(moment, _)) = event else { return };
        self.done[at].push((moment, Event::Collective(call)));
        self.is_placed[call as usize] = true;
        let (_, group) = self.meeting(call);
        if let Some(begun) = self.begun.get_mut(&(rank, group)) {
            begun.retain(|other| *other != call);
        }
        if self.waiting[at] == Some(call) {
            self.waiting[at] = None;
        }
        self.ready.push(rank);
    }

    /// Ends the first operation that all members have started, and for which one waits.
    fn end_begun(&mut self) -> bool {
        let is_next = |call: u32, rank: u32, group: u32| {
            let first = self.begun.get(&(rank, group)).and_then(VecDeque::front);
            self.is_placed[call as usize] || first == Some(&call)
        };
        let has_begun = |call: &u32| {
            let (meeting, group) = self.meeting(*call);
            let (first, members) = (self.meetings.list[meeting].0, &self.groups[group as usize]);
            self.counts[meeting].0 == members.len()
                && (first..).zip(members).all(|(call, rank)| is_next(call, *rank, group))
        };
        let Some(call) = self.waiting.iter().flatten().copied().find(has_begun) else { return false };
        self.end(self.meeting(call).0);
        true
    }

    /// Ends all sends for which a rank waits.
    fn release_sends(&mut self) -> bool {
        for (rank, (next, events)) in (0..).zip(self.next.iter().zip(&self.events)) {
            if let Some((_, Event::Send(_) | Event::Sent(_))) = events.get(*next) {
                self.is_released[rank as usize] = true;
                self.ready.push(rank);
            }
        }
        !self.ready.is_empty()
    }

    /// Ends all collective operations for which a rank waits, at this rank.
    fn release_collectives(&mut self) -> bool {
        for rank in 0..to_u32(self.next.len()) {
            if let Some(call) = self.waiting[rank as usize] {
                self.place(rank, call);
            }
        }
        !self.ready.is_empty()
    }
}
