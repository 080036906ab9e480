//! Which message is received where: messages between two processes with one tag and communicator overtake none of
//! each other, and receives that do not block are served in the order in which they were posted (MPI 4.1, 3.5).
//!
//! EZTrace 2.0 writes `MPI_COMM_WORLD` for an `MPI_Irecv` on another communicator, and as its source the number that the sender has
//! in that one. Receives without any send are looked for where a sender has their number in a communicator that lacks
//! receives. Where then one communicator lacks receives and another one sends, both count as one: first those with the same
//! members, then all.

use std::collections::{BTreeMap, HashMap};

use super::{At, Begun, Link, Moment, Unmatched, What};

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
pub(super) fn links(
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
