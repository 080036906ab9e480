//! Matches the recorded operations of processes: which send belongs to which receive, and which collective
//! operations are one.
//!
//! Messages between two processes with the same tag and communicator do not overtake each other, and
//! nonblocking receives match in the order in which they were posted (MPI 4.1, 3.5). EZTrace 2.0 records
//! `MPI_COMM_WORLD` for an `MPI_Irecv` on another communicator, with the rank of the sender in that
//! communicator as the source. A receive without any send is therefore matched to a sender that has this
//! rank in a communicator with missing receives. If one communicator then lacks receives and another lacks
//! sends, they are merged: first communicators with the same members, then all.

use std::collections::{BTreeMap, HashMap};

use hopmap_collectives::{Collective, Convention, Operation};
use hopmap_model::Context;
use hopmap_text::check_stop;

use crate::archive::log_count;
use crate::error::TraceError;

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

/// Replaces the request of the receive in `MPI_Sendrecv`; an unused number (`OTF2_UNDEFINED_UINT64`).
pub(crate) const EXCHANGE: u64 = u64::MAX;

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
pub(crate) struct At {
    pub(crate) rank: u32,
    pub(crate) moment: u32,
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

/// A message that was sent and received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    /// The send.
    pub(crate) source: At,
    /// The moment at which the send completes, if recorded; that of the send if it blocks.
    pub(crate) sent: Option<u32>,
    /// The moment of the receiver at which the receive was posted.
    pub(crate) posted: u32,
    /// The moment at which the message was received.
    pub(crate) destination: At,
    /// Bytes, as the sender recorded.
    pub(crate) bytes: u64,
}

/// Matches the messages of all ranks. Those between two ranks with the same tag are in the order in which
/// they were sent.
pub(crate) fn match_messages(
    ranks: &[Vec<Moment>],
    members: &Members,
    unmatched: &mut Unmatched,
    cx: &Context<'_>,
) -> Result<Vec<Matched>, TraceError> {
    let alike = alike(members);
    let mut channels: BTreeMap<Key, Channel> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        add(rank, moments, &mut channels, cx)?;
    }
    let cancelled = channels.values().flat_map(|channel| &channel.sent).filter(|sent| sent.cancelled);
    log_count(cx, "cancelled sends, which are not counted", cancelled.count() as u64);
    channels.values_mut().for_each(|channel| channel.sent.retain(|sent| !sent.cancelled));
    renumber(&mut channels, members);
    let mut by_ends: BTreeMap<(u32, u32, u32), Vec<(u32, Channel)>> = BTreeMap::new();
    for ((source, destination, tag, communicator), channel) in channels {
        by_ends.entry((source, destination, tag)).or_default().push((communicator, channel));
    }
    let mut matched = Vec::new();
    for (place, ((source, destination, _), channels)) in by_ends.into_iter().enumerate() {
        check_stop(place, cx)?;
        let channels =
            join(channels, |communicator| alike.get(&communicator).copied().unwrap_or(communicator));
        for (_, channel) in join(channels, |_| 0) {
            pair((source, destination), channel, &mut matched, unmatched);
        }
    }
    Ok(matched)
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
    matched: &mut Vec<Matched>,
    unmatched: &mut Unmatched,
) {
    channel.sent.sort_unstable_by_key(|sent| sent.moment);
    channel.received.sort_unstable_by_key(|received| received.posted);
    let both = channel.sent.len().min(channel.received.len());
    let lost = &channel.sent[both..];
    unmatched.sent += lost.len() as u64;
    unmatched.sent_bytes += lost.iter().map(|sent| u128::from(sent.bytes)).sum::<u128>();
    unmatched.received += (channel.received.len() - both) as u64;
    unmatched.of_bytes += channel.sent.iter().map(|sent| u128::from(sent.bytes)).sum::<u128>();
    for (sent, received) in channel.sent.iter().zip(&channel.received) {
        unmatched.lengths += u64::from(sent.bytes != received.bytes);
        unmatched.communicators += u64::from(sent.communicator != received.communicator);
        matched.push(Matched {
            source: At { rank: source, moment: sent.moment },
            sent: sent.complete,
            posted: received.posted,
            destination: At { rank: destination, moment: received.moment },
            bytes: sent.bytes,
        });
    }
}

/// Adds the messages of a rank to the channels.
fn add(
    rank: u32,
    moments: &[Moment],
    channels: &mut BTreeMap<Key, Channel>,
    cx: &Context<'_>,
) -> Result<(), TraceError> {
    let mut posted = Begun::new();
    // Positions of incomplete sends.
    let mut sending: BTreeMap<u64, (Key, usize)> = BTreeMap::new();
    for (moment, what) in (0..).zip(moments.iter().map(|moment| moment.what)) {
        check_stop(moment as usize, cx)?;
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
    Ok(())
}

/// A collective operation of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// The moment at which it starts.
    pub(crate) begun: u32,
    /// The moment at which it completes.
    pub(crate) complete: u32,
    /// The operation.
    pub(crate) joint: Joint,
}

/// A collective operation with the records of all its processes.
#[derive(Debug)]
pub(crate) struct Meeting<'a> {
    /// World ranks of the group, in order.
    pub(crate) members: &'a [u32],
    /// The record of each of them.
    pub(crate) parts: &'a [Part],
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Meeting<'_> {
    /// Bytes that each member sent.
    pub(crate) fn sent(&self) -> &[u64] {
        &self.sent
    }

    /// The operation as the input of its expansion.
    pub(crate) fn collective(&self, convention: Convention) -> Collective<'_> {
        let Joint { operation, root, .. } = self.parts[0].joint;
        Collective { operation, root: Some(root), convention, sent: &self.sent, received: &self.received }
    }
}

/// Calls a function with every collective operation that all processes of its group recorded.
///
/// The n-th operations that the processes of a group recorded belong together.
pub(crate) fn match_collectives(
    ranks: &[Vec<Moment>],
    groups: &[Vec<u32>],
    unmatched: &mut Unmatched,
    cx: &Context<'_>,
    mut found: impl FnMut(&Meeting<'_>),
) -> Result<(), TraceError> {
    let mut parts: BTreeMap<u32, BTreeMap<u32, Vec<Part>>> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        check_stop(0, cx)?;
        add_parts(rank, moments, &mut parts);
    }
    for (group, by_rank) in parts {
        let members = &groups[group as usize];
        let lists: Vec<&[Part]> =
            members.iter().map(|rank| by_rank.get(rank).map_or(&[][..], Vec::as_slice)).collect();
        let most = by_rank.values().map(Vec::len).max().unwrap_or(0);
        for place in 0..most {
            check_stop(place, cx)?;
            let all: Option<Vec<Part>> = lists.iter().map(|list| list.get(place).copied()).collect();
            let Some(parts) = all.filter(|all| is_one(all)) else {
                unmatched.joints += 1;
                continue;
            };
            let sent = parts.iter().map(|part| part.joint.sent).collect();
            let received = parts.iter().map(|part| part.joint.received).collect();
            found(&Meeting { members, parts: &parts, sent, received });
        }
    }
    Ok(())
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
