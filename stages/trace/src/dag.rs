//! From what the processes of a program did, moment by moment, to tasks that wait for each other.
//!
//! A task is the time that a process computes between two moments at which it depends on others. Until then it waits
//! for what comes in, and when it is done it sends; what a process does follows in the order in which it did it. A
//! message leads from the task before it was sent to the task after it was received. An operation in which everybody
//! waits for everybody is a task of its own without work, a join; one with a root leads straight to or from the root.
//!
//! The recipe is that of the time-independent traces of SMPI (Desprez, Markomanolis, Quinson, Suter, "Assessing the
//! performance of MPI applications through time-independent trace replay", PSTI 2011) and of `schedgen` (Hoefler,
//! Schneider, Lumsdaine, "`LogGOPSim`", HPDC 2010), but for collective operations, which stay whole.
//!
//! Messages between two processes with one tag and communicator overtake none of each other, and receives that do not block
//! are served in the order in which they were posted (MPI 4.1, 3.5). EZTrace 2.0 writes `MPI_COMM_WORLD` for an `MPI_Irecv`
//! on another communicator, and as its source the number that the sender has in that one. Receives without any send are
//! looked for where a sender has their number in a communicator that lacks receives. Where then one communicator lacks
//! receives and another one sends, both count as one: first those with the same members, then all.

use std::collections::{BTreeMap, HashMap};

use hopmap_collectives::{Collective, Convention, Operation, exchanged};
use hopmap_model::{Dependency, Task, TaskDag};

/// Something a process does that others may wait for, or that waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// When, by the common clock.
    pub(crate) time: u64,
    /// Ticks that the process computed since the moment before.
    pub(crate) compute: u64,
    /// What it is.
    pub(crate) what: What,
}

/// What a process does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// It sends a message; the request if it does not block.
    Send { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// A send that does not block is complete.
    Sent { request: u64 },
    /// It asks for a message and does not wait.
    Post { request: u64 },
    /// It has received a message.
    Receive { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// A send or receive that does not block will not take place.
    Cancel { request: u64 },
    /// It takes part in a collective operation and does not wait.
    Begin { request: u64 },
    /// A collective operation is complete.
    Complete { joint: Joint, request: Option<u64> },
    /// It ends.
    End,
}

/// What tells messages between two processes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    /// Rank of the other end.
    pub(crate) peer: u32,
    /// Id of the communicator.
    pub(crate) communicator: u32,
    /// The tag.
    pub(crate) tag: u32,
}

/// A collective operation as one process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joint {
    /// Number of the group of processes.
    pub(crate) group: u32,
    /// What it does.
    pub(crate) operation: Operation,
    /// Place of the root in the group, if it has one.
    pub(crate) root: u32,
    /// Bytes that the process sent.
    pub(crate) sent: u64,
    /// Bytes that the process received.
    pub(crate) received: u64,
}

/// A moment of a process: its rank, and which of its moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    rank: u32,
    moment: u32,
}

/// What happens after the one moment waits for what happened before the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    before: At,
    after: At,
    bytes: u64,
}

/// A task that waits for all processes of a group, and lets all of them go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Join {
    /// The rank at which it is done.
    rank: u32,
    before: Vec<(At, u64)>,
    after: Vec<(At, u64)>,
}

/// How tasks are made of moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Ticks per second.
    pub(crate) ticks_per_second: f64,
    /// Computing for no more than these ticks makes no task of its own.
    pub(crate) tiny: u64,
    /// Messages of at least so many bytes wait until they are asked for.
    pub(crate) rendezvous: Option<u64>,
}

/// What has no counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unmatched {
    /// Messages that nobody received.
    pub(crate) sent: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u128,
    /// Bytes of all messages that were sent.
    pub(crate) of_bytes: u128,
    /// Messages that nobody sent.
    pub(crate) received: u64,
    /// Messages whose ends tell different communicators.
    pub(crate) communicators: u64,
    /// Messages whose ends tell different lengths.
    pub(crate) lengths: u64,
    /// Collective operations that not all processes of their group recorded alike.
    pub(crate) joints: u64,
}

/// Tasks and what they wait for, from the moments of every rank in their order and the ranks of every group and communicator.
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

/// Moments of requests that have begun and are not complete.
type Begun = BTreeMap<u64, u32>;

/// The ranks of every communicator in the order of their numbers there.
pub(crate) type Members = BTreeMap<u32, Vec<u32>>;

/// Sender, receiver, tag and communicator.
type Key = (u32, u32, u32, u32);

/// A message that is sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    moment: u32,
    /// The moment at which the send is complete.
    complete: Option<u32>,
    communicator: u32,
    bytes: u64,
    cancelled: bool,
}

/// A message that is received.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// The moment at which it was asked for.
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

/// A link for every message, and one back for those that wait until they are asked for.
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

/// The first communicator that has the same members as each, in whatever order.
fn alike(members: &Members) -> BTreeMap<u32, u32> {
    let mut first = HashMap::new();
    let sorted = |members: &[u32]| {
        let mut members = members.to_vec();
        members.sort_unstable();
        members
    };
    members.iter().map(|(&id, members)| (id, *first.entry(sorted(members)).or_insert(id))).collect()
}

/// Gives receives without any send to the one communicator in which a sender that lacks receives has the number that their source
/// has in the communicator that they name.
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

/// Makes one of those channels of a kind that are not even, if some lack receives and others sends.
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

/// Links sends and receives in their order.
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
    // Where the sends that are not complete stand.
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

/// A collective operation of a process.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The moment at which it began.
    begun: u32,
    complete: u32,
    joint: Joint,
}

/// Joins of the operations in which everybody waits for everybody. Those with a root become links.
///
/// The first that each process of a group recorded belong together, then the second, and so on.
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

/// Whether all processes tell of the same operation.
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
    // What each gives to the others and gets from them.
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

/// Adds the operations of a rank to those of its groups, in the order in which they began.
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

/// Something waits for the moment.
const AWAITED: u8 = 1;
/// The moment waits for something.
const WAITS: u8 = 2;

/// Which moments depend on others, and others on them, by rank.
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

/// The tasks of all ranks, those of a rank one after the other.
struct Segments {
    tasks: Vec<Task>,
    /// The task before every moment, and the one after it, by rank.
    places: Vec<Vec<(u32, u32)>>,
    /// The first task of every rank.
    first: Vec<u32>,
}

impl Segments {
    /// The task that is done when the moment comes.
    fn before(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].0
    }

    /// The task that begins when the moment has passed.
    fn after(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].1
    }

    /// Each task of a rank with the next.
    fn order(&self) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.first.iter().skip(1).copied().chain([self.tasks.len() as u32]);
        self.first.iter().zip(ends).flat_map(|(first, end)| (*first + 1..end).map(|task| (task - 1, task)))
    }
}

/// A task while it is made.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    work: u64,
    /// Ticks of that since something waits for it.
    since: Option<u64>,
}

/// Cuts the time of every rank: a task waits, then computes, then is waited for.
///
/// Where a task is waited for and then computes a little more, it goes on, and what waits for it comes a little later;
/// where it has only just begun and waits again, it waits from the beginning. Neither makes a cycle: a task that goes
/// on waits for nothing new, and one that waits again is not waited for yet.
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
