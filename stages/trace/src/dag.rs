//! Builds the task DAG of a program from the recorded moments of its processes.
//!
//! A task is an interval of computation between two moments at which a process depends on others: it waits
//! for its inputs, computes, then sends. The tasks of a process form a chain in program order. A message
//! connects the task before the send to the task after the receive. An operation in which every process
//! waits for every other is a join: a separate task without work. An operation with a root becomes edges
//! to or from the root.
//!
//! The method is that of the time-independent traces of SMPI (Desprez, Markomanolis, Quinson, Suter,
//! "Assessing the performance of MPI applications through time-independent trace replay", PSTI 2011) and of
//! `schedgen` (Hoefler, Schneider, Lumsdaine, "`LogGOPSim`", HPDC 2010), except that collective operations
//! are not expanded.
//!
//! Messages between two processes with the same tag and communicator do not overtake each other, and
//! nonblocking receives match in the order in which they were posted (MPI 4.1, 3.5). EZTrace 2.0 records
//! `MPI_COMM_WORLD` for an `MPI_Irecv` on another communicator, with the rank of the sender in that
//! communicator as the source. A receive without any send is therefore matched to a sender that has this
//! rank in a communicator with missing receives. If one communicator then lacks receives and another lacks
//! sends, they are merged: first communicators with the same members, then all.

use std::collections::{BTreeMap, HashMap};

use hopmap_collectives::{Collective, Convention, Operation, exchanged};
use hopmap_model::{Dependency, Task, TaskDag};

/// An operation of a process that others may depend on, or that depends on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Time in ticks of the common clock.
    pub(crate) time: u64,
    /// Ticks of computation since the previous moment.
    pub(crate) compute: u64,
    /// The operation.
    pub(crate) what: What,
}

/// Operation of a process at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Sends a message; with a request if nonblocking.
    Send { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// A nonblocking send completes.
    Sent { request: u64 },
    /// Posts a nonblocking receive.
    Post { request: u64 },
    /// Has received a message; with a request if nonblocking.
    Receive { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// Cancels a nonblocking send or receive.
    Cancel { request: u64 },
    /// Starts a nonblocking collective operation.
    Begin { request: u64 },
    /// A collective operation completes.
    Complete { joint: Joint, request: Option<u64> },
    /// The process ends.
    End,
}

/// Matching key of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    /// Rank of the peer.
    pub(crate) peer: u32,
    /// Id of the communicator.
    pub(crate) communicator: u32,
    /// The tag.
    pub(crate) tag: u32,
}

/// A collective operation from the view of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joint {
    /// Number of the group of processes.
    pub(crate) group: u32,
    /// The operation.
    pub(crate) operation: Operation,
    /// Index of the root in the group, if the operation has one.
    pub(crate) root: u32,
    /// Bytes that the process sent.
    pub(crate) sent: u64,
    /// Bytes that the process received.
    pub(crate) received: u64,
}

/// A moment of a process: its rank and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    rank: u32,
    moment: u32,
}

/// A dependency of one moment on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    before: At,
    after: At,
    bytes: u64,
}

/// A task that waits for all processes of a group and then releases them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Join {
    /// The rank it is assigned to.
    rank: u32,
    before: Vec<(At, u64)>,
    after: Vec<(At, u64)>,
}

/// Parameters of the conversion from moments to tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Ticks per second.
    pub(crate) ticks_per_second: f64,
    /// Computation of at most this many ticks does not start a new task.
    pub(crate) tiny: u64,
    /// Minimum bytes of rendezvous messages, whose sends wait for the receive.
    pub(crate) rendezvous: Option<u64>,
}

/// Operations without a counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unmatched {
    /// Messages without a receive event.
    pub(crate) sent: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u128,
    /// Bytes of all sent messages.
    pub(crate) of_bytes: u128,
    /// Messages without a send event.
    pub(crate) received: u64,
    /// Messages whose ends record different communicators.
    pub(crate) communicators: u64,
    /// Messages whose ends record different lengths.
    pub(crate) lengths: u64,
    /// Collective operations whose processes recorded different operations.
    pub(crate) joints: u64,
}

/// Tasks and dependencies from the moments of every rank, in order, and the ranks of every group and
/// communicator.
pub(crate) fn build(
    ranks: &[Vec<Moment>],
    groups: &[Vec<u32>],
    members: &Members,
    convention: Convention,
    rules: Rules,
) -> (TaskDag, Unmatched) {
    let mut unmatched = Unmatched::default();
    let mut links = links(ranks, rules.rendezvous, members, &mut unmatched);
    let joins = joins(ranks, (groups, convention), &mut links, &mut unmatched);
    let segments = cut(ranks, &marks(ranks, &links, &joins), rules);
    (assemble(segments, &links, joins), unmatched)
}

fn assemble(segments: Segments, links: &[Link], joins: Vec<Join>) -> TaskDag {
    let mut dag = TaskDag::default();
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    let links =
        links.iter().map(|link| edge(segments.before(link.before), segments.after(link.after), link.bytes));
    dag.dependencies.extend(links);
    let mut ranks = Vec::with_capacity(joins.len());
    for (next, join) in (segments.tasks.len() as u32..).zip(joins) {
        dag.dependencies
            .extend(join.before.iter().map(|&(at, bytes)| edge(segments.before(at), next, bytes)));
        dag.dependencies.extend(join.after.iter().map(|&(at, bytes)| edge(next, segments.after(at), bytes)));
        ranks.push(join.rank);
    }
    dag.dependencies.extend(segments.order().map(|(source, destination)| edge(source, destination, 0)));
    dag.dependencies.sort_unstable();
    dag.tasks = segments.tasks;
    dag.tasks.extend(ranks.into_iter().map(|rank| hopmap_model::Task { rank: Some(rank), work: 0.0 }));
    dag
}

/// Moments at which open requests began.
type Begun = BTreeMap<u64, u32>;

/// The ranks of every communicator in order.
pub(crate) type Members = BTreeMap<u32, Vec<u32>>;

/// Sender, receiver, tag and communicator.
type Key = (u32, u32, u32, u32);

/// A sent message.
#[derive(Debug, Clone, Copy)]
struct Sent {
    moment: u32,
    /// The moment at which the send completes.
    complete: Option<u32>,
    communicator: u32,
    bytes: u64,
    cancelled: bool,
}

/// A received message.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// The moment at which the receive was posted.
    posted: u32,
    moment: u32,
    communicator: u32,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Channel {
    sent: Vec<Sent>,
    received: Vec<Received>,
}

impl Channel {
    fn lacks_receives(&self) -> bool {
        self.sent.len() > self.received.len()
    }

    fn lacks_sends(&self) -> bool {
        self.sent.len() < self.received.len()
    }

    fn with(mut self, other: Self) -> Self {
        self.sent.extend(other.sent);
        self.received.extend(other.received);
        self
    }
}

/// A dependency per message, and one back for rendezvous messages.
fn links(
    ranks: &[Vec<Moment>],
    rendezvous: Option<u64>,
    members: &Members,
    unmatched: &mut Unmatched,
) -> Vec<Link> {
    let alike = alike(members);
    let mut channels: BTreeMap<Key, Channel> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        add(rank, moments, &mut channels);
    }
    channels.values_mut().for_each(|channel| channel.sent.retain(|sent| !sent.cancelled));
    renumber(&mut channels, members);
    let mut by_ends: BTreeMap<(u32, u32, u32), Vec<(u32, Channel)>> = BTreeMap::new();
    for ((source, destination, tag, communicator), channel) in channels {
        by_ends.entry((source, destination, tag)).or_default().push((communicator, channel));
    }
    let mut links = Vec::new();
    for ((source, destination, _), channels) in by_ends {
        let channels =
            join(channels, |communicator| alike.get(&communicator).copied().unwrap_or(communicator));
        for (_, channel) in join(channels, |_| 0) {
            pair((source, destination), channel, rendezvous, &mut links, unmatched);
        }
    }
    links
}

/// The first communicator with the same members as each, in any order.
fn alike(members: &Members) -> BTreeMap<u32, u32> {
    let mut first = HashMap::new();
    let sorted = |members: &[u32]| {
        let mut members = members.to_vec();
        members.sort_unstable();
        members
    };
    members.iter().map(|(&id, members)| (id, *first.entry(sorted(members)).or_insert(id))).collect()
}

/// Moves receives without any send to the only communicator that lacks receives from a sender whose rank in
/// it is the recorded source.
fn renumber(channels: &mut BTreeMap<Key, Channel>, members: &Members) {
    let strays: Vec<Key> =
        channels.iter().filter(|(_, channel)| channel.sent.is_empty()).map(|(key, _)| *key).collect();
    if strays.is_empty() {
        return;
    }
    let numbered = |(&id, ranks): (&u32, &Vec<u32>)| {
        let numbers: HashMap<u32, u32> = ranks.iter().copied().zip(0..).collect();
        (id, numbers)
    };
    let numbers: HashMap<u32, HashMap<u32, u32>> = members.iter().map(numbered).collect();
    let place = |&(source, destination, tag, communicator): &Key| {
        Some((*numbers.get(&communicator)?.get(&source)?, destination, tag))
    };
    let mut lacking: HashMap<_, Vec<Key>> = HashMap::new();
    for (key, _) in channels.iter().filter(|(_, channel)| channel.lacks_receives()) {
        if let Some(place) = place(key) {
            lacking.entry(place).or_default().push(*key);
        }
    }
    for stray in strays {
        let meant = place(&stray).and_then(|place| lacking.get(&place));
        let Some([meant]) = meant.map(Vec::as_slice) else { continue };
        let received = channels.remove(&stray).unwrap_or_default().received;
        channels.entry(*meant).or_default().received.extend(received);
    }
}

/// Merges the unbalanced channels of each kind if some lack receives and others lack sends.
fn join(channels: Vec<(u32, Channel)>, kind: impl Fn(u32) -> u32) -> Vec<(u32, Channel)> {
    let mut kinds: BTreeMap<u32, Vec<Channel>> = BTreeMap::new();
    for (communicator, channel) in channels {
        kinds.entry(kind(communicator)).or_default().push(channel);
    }
    let join_kind = |(kind, channels): (u32, Vec<Channel>)| {
        let both = channels.iter().any(Channel::lacks_receives) && channels.iter().any(Channel::lacks_sends);
        let is_apart = |channel: &Channel| !both || !(channel.lacks_receives() || channel.lacks_sends());
        let (mut channels, uneven): (Vec<_>, Vec<_>) = channels.into_iter().partition(is_apart);
        channels.extend(uneven.into_iter().reduce(Channel::with));
        channels.into_iter().map(move |channel| (kind, channel))
    };
    kinds.into_iter().flat_map(join_kind).collect()
}

/// Matches sends and receives in order.
fn pair(
    (source, destination): (u32, u32),
    mut channel: Channel,
    rendezvous: Option<u64>,
    links: &mut Vec<Link>,
    unmatched: &mut Unmatched,
) {
    channel.sent.sort_unstable_by_key(|sent| sent.moment);
    channel.received.sort_unstable_by_key(|received| received.posted);
    let matched = channel.sent.len().min(channel.received.len());
    let lost = &channel.sent[matched..];
    unmatched.sent += lost.len() as u64;
    unmatched.sent_bytes += lost.iter().map(|sent| u128::from(sent.bytes)).sum::<u128>();
    unmatched.received += (channel.received.len() - matched) as u64;
    unmatched.of_bytes += channel.sent.iter().map(|sent| u128::from(sent.bytes)).sum::<u128>();
    for (sent, received) in channel.sent.iter().zip(&channel.received) {
        let sender = |moment| At { rank: source, moment };
        let receiver = |moment| At { rank: destination, moment };
        let bytes = sent.bytes;
        unmatched.lengths += u64::from(bytes != received.bytes);
        unmatched.communicators += u64::from(sent.communicator != received.communicator);
        links.push(Link { before: sender(sent.moment), after: receiver(received.moment), bytes });
        if let Some(complete) = sent.complete.filter(|_| rendezvous.is_some_and(|least| bytes >= least)) {
            links.push(Link { before: receiver(received.posted), after: sender(complete), bytes: 0 });
        }
    }
}

/// Adds the messages of a rank to the channels.
fn add(rank: u32, moments: &[Moment], channels: &mut BTreeMap<Key, Channel>) {
    let mut posted = Begun::new();
    // Positions of incomplete sends.
    let mut sending: BTreeMap<u64, (Key, usize)> = BTreeMap::new();
    for (moment, what) in (0..).zip(moments.iter().map(|moment| moment.what)) {
        match what {
            What::Send { envelope, bytes, request } => {
                let communicator = envelope.communicator;
                let key = (rank, envelope.peer, envelope.tag, communicator);
                let sent = &mut channels.entry(key).or_default().sent;
                if let Some(request) = request {
                    sending.insert(request, (key, sent.len()));
                }
                let complete = request.is_none().then_some(moment);
                sent.push(Sent { moment, complete, communicator, bytes, cancelled: false });
            }
            What::Sent { request } | What::Cancel { request } => {
                posted.remove(&request);
                if let Some((key, place)) = sending.remove(&request)
                    && let Some(channel) = channels.get_mut(&key)
                {
                    let sent = &mut channel.sent[place];
                    sent.complete = Some(moment);
                    sent.cancelled = matches!(what, What::Cancel { .. });
                }
            }
            What::Post { request } => {
                posted.insert(request, moment);
            }
            What::Receive { envelope, bytes, request } => {
                let communicator = envelope.communicator;
                let key = (envelope.peer, rank, envelope.tag, communicator);
                let posted = request.and_then(|request| posted.remove(&request)).unwrap_or(moment);
                channels.entry(key).or_default().received.push(Received {
                    posted,
                    moment,
                    communicator,
                    bytes,
                });
            }
            What::Begin { .. } | What::Complete { .. } | What::End => {}
        }
    }
}

/// A collective operation of one process.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The moment at which it starts.
    begun: u32,
    complete: u32,
    joint: Joint,
}

/// Joins of the operations in which every process waits for every other. Operations with a root become
/// dependencies.
///
/// The n-th operations that the processes of a group recorded belong together.
fn joins(
    ranks: &[Vec<Moment>],
    (groups, convention): (&[Vec<u32>], Convention),
    links: &mut Vec<Link>,
    unmatched: &mut Unmatched,
) -> Vec<Join> {
    let mut parts: BTreeMap<u32, BTreeMap<u32, Vec<Part>>> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        add_parts(rank, moments, &mut parts);
    }
    let mut joins = Vec::new();
    for (group, by_rank) in parts {
        let members = &groups[group as usize];
        let lists: Vec<&[Part]> =
            members.iter().map(|rank| by_rank.get(rank).map_or(&[][..], Vec::as_slice)).collect();
        let most = by_rank.values().map(Vec::len).max().unwrap_or(0);
        for place in 0..most {
            let all: Option<Vec<Part>> = lists.iter().map(|list| list.get(place).copied()).collect();
            match all.filter(|all| is_one(all)) {
                Some(all) => connect(members, &all, convention, links, &mut joins),
                None => unmatched.joints += 1,
            }
        }
    }
    joins
}

/// Whether all processes recorded the same operation.
fn is_one(all: &[Part]) -> bool {
    let Some(first) = all.first() else { return false };
    let same = |part: &Part| {
        part.joint.operation == first.joint.operation
            && (!first.joint.operation.has_root() || part.joint.root == first.joint.root)
    };
    all.iter().all(same) && (!first.joint.operation.has_root() || (first.joint.root as usize) < all.len())
}

fn connect(
    members: &[u32],
    all: &[Part],
    convention: Convention,
    links: &mut Vec<Link>,
    joins: &mut Vec<Join>,
) {
    if all.len() == 1 {
        return;
    }
    let first = all[0].joint;
    let sent: Vec<u64> = all.iter().map(|part| part.joint.sent).collect();
    let received: Vec<u64> = all.iter().map(|part| part.joint.received).collect();
    let root = Some(first.root);
    let collective =
        Collective { operation: first.operation, root, convention, sent: &sent, received: &received };
    // Bytes that each process sends to and receives from the others.
    let (given, got) = exchanged(&collective);
    let places = || 0..all.len();
    let begun = |place: usize| At { rank: members[place], moment: all[place].begun };
    let complete = |place: usize| At { rank: members[place], moment: all[place].complete };
    if !first.operation.has_root() {
        let before = places().map(|place| (begun(place), given[place])).collect();
        let after = places().map(|place| (complete(place), got[place])).collect();
        return joins.push(Join { rank: members[0], before, after });
    }
    let root = first.root as usize;
    let from_root =
        matches!(first.operation, Operation::Broadcast | Operation::Scatter | Operation::ScatterV);
    links.extend(places().filter(|place| *place != root).map(|place| match from_root {
        true => Link { before: begun(root), after: complete(place), bytes: got[place] },
        false => Link { before: begun(place), after: complete(root), bytes: given[place] },
    }));
}

/// Adds the operations of a rank to those of its groups, in the order of their starts.
fn add_parts(rank: u32, moments: &[Moment], parts: &mut BTreeMap<u32, BTreeMap<u32, Vec<Part>>>) {
    let mut begun = Begun::new();
    let mut own: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
    for (moment, what) in (0..).zip(moments.iter().map(|moment| moment.what)) {
        match what {
            What::Begin { request } => drop(begun.insert(request, moment)),
            What::Complete { joint, request } => {
                let begun = request.and_then(|request| begun.remove(&request)).unwrap_or(moment);
                own.entry(joint.group).or_default().push(Part { begun, complete: moment, joint });
            }
            _ => {}
        }
    }
    for (group, mut list) in own {
        list.sort_by_key(|part| part.begun);
        parts.entry(group).or_default().insert(rank, list);
    }
}

/// Another moment depends on it.
const AWAITED: u8 = 1;
/// It depends on another moment.
const WAITS: u8 = 2;

/// Marks of every moment, by rank.
fn marks(ranks: &[Vec<Moment>], links: &[Link], joins: &[Join]) -> Vec<Vec<u8>> {
    let mut marks: Vec<Vec<u8>> = ranks.iter().map(|moments| vec![0; moments.len()]).collect();
    let mut add = |at: At, mark: u8| marks[at.rank as usize][at.moment as usize] |= mark;
    for link in links {
        add(link.before, AWAITED);
        add(link.after, WAITS);
    }
    for join in joins {
        join.before.iter().for_each(|(at, _)| add(*at, AWAITED));
        join.after.iter().for_each(|(at, _)| add(*at, WAITS));
    }
    marks
}

/// The tasks of all ranks, grouped by rank.
struct Segments {
    tasks: Vec<Task>,
    /// The task before and the task after every moment, by rank.
    places: Vec<Vec<(u32, u32)>>,
    /// First task of every rank.
    first: Vec<u32>,
}

impl Segments {
    /// The task that ends before the moment.
    fn before(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].0
    }

    /// The task that starts after the moment.
    fn after(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].1
    }

    /// Each task of a rank with its successor.
    fn order(&self) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.first.iter().skip(1).copied().chain([self.tasks.len() as u32]);
        self.first.iter().zip(ends).flat_map(|(first, end)| (*first + 1..end).map(|task| (task - 1, task)))
    }
}

/// A task under construction.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    work: u64,
    /// Ticks of computation since another task depends on it.
    since: Option<u64>,
}

/// Cuts the time of every rank into tasks: a task waits, computes, and then others depend on it.
///
/// If others depend on a task and it then computes only a tiny interval, the task continues, and the others
/// start slightly later. If a task has just started and waits again, it waits from its start. Neither
/// creates a cycle: a task that continues does not wait for anything new, and nothing depends yet on a task
/// that waits again.
fn cut(ranks: &[Vec<Moment>], marks: &[Vec<u8>], rules: Rules) -> Segments {
    let mut segments = Segments { tasks: Vec::new(), places: Vec::new(), first: Vec::new() };
    for ((rank, moments), marks) in (0..).zip(ranks).zip(marks) {
        segments.first.push(segments.tasks.len() as u32);
        let mut open = Open::default();
        let mut close = |open: &mut Open| {
            let work = open.work as f64 / rules.ticks_per_second;
            segments.tasks.push(Task { rank: Some(rank), work });
            *open = Open::default();
            segments.tasks.len() as u32
        };
        let mut number = segments.first[rank as usize];
        let mut places = Vec::with_capacity(moments.len());
        for (moment, mark) in moments.iter().zip(marks) {
            let compute = moment.compute;
            if open.since.is_some_and(|since| since.saturating_add(compute) > rules.tiny) {
                number = close(&mut open);
            }
            open.work = open.work.saturating_add(compute);
            open.since = open.since.map(|since| since.saturating_add(compute));
            let before = number;
            if mark & AWAITED != 0 {
                open.since.get_or_insert(0);
            }
            if mark & WAITS != 0 && (open.since.is_some() || open.work > rules.tiny) {
                number = close(&mut open);
            }
            places.push((before, number));
        }
        close(&mut open);
        segments.places.push(places);
    }
    segments
}
