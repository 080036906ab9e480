//! Which message is received where: messages between two processes with one tag and communicator overtake none of
//! each other, and receives that do not block are served in the order in which they were posted (MPI 4.1, 3.5).

use std::collections::BTreeMap;

use super::{At, Begun, Link, Moment, Unmatched, What};

/// Communicator, sender, receiver and tag.
type Key = (u32, u32, u32, u32);

/// A message that is sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    moment: u32,
    /// The moment at which the send is complete.
    complete: Option<u32>,
    bytes: u64,
    cancelled: bool,
}

/// A message that is received.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// The moment at which it was asked for.
    posted: u32,
    moment: u32,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Channel {
    sent: Vec<Sent>,
    received: Vec<Received>,
}

/// A link for every message, and one back for those that wait until they are asked for.
pub(super) fn links(ranks: &[Vec<Moment>], rendezvous: Option<u64>, unmatched: &mut Unmatched) -> Vec<Link> {
    let mut channels: BTreeMap<Key, Channel> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        add(rank, moments, &mut channels);
    }
    let mut links = Vec::new();
    for ((_, source, destination, _), mut channel) in channels {
        channel.sent.retain(|sent| !sent.cancelled);
        channel.received.sort_unstable_by_key(|received| received.posted);
        let matched = channel.sent.len().min(channel.received.len());
        unmatched.sent += (channel.sent.len() - matched) as u64;
        unmatched.received += (channel.received.len() - matched) as u64;
        for (sent, received) in channel.sent.iter().zip(&channel.received) {
            let sender = |moment| At { rank: source, moment };
            let receiver = |moment| At { rank: destination, moment };
            let bytes = sent.bytes;
            unmatched.lengths += u64::from(bytes != received.bytes);
            links.push(Link { before: sender(sent.moment), after: receiver(received.moment), bytes });
            if let Some(complete) = sent.complete.filter(|_| rendezvous.is_some_and(|least| bytes >= least)) {
                links.push(Link { before: receiver(received.posted), after: sender(complete), bytes: 0 });
            }
        }
    }
    links
}

/// Adds the messages of a rank to the channels.
fn add(rank: u32, moments: &[Moment], channels: &mut BTreeMap<Key, Channel>) {
    let mut posted = Begun::new();
    // Where the sends that are not complete stand.
    let mut sending: BTreeMap<u64, (Key, usize)> = BTreeMap::new();
    for (moment, what) in (0..).zip(moments.iter().map(|moment| moment.what)) {
        match what {
            What::Send { envelope, bytes, request } => {
                let key = (envelope.communicator, rank, envelope.peer, envelope.tag);
                let sent = &mut channels.entry(key).or_default().sent;
                if let Some(request) = request {
                    sending.insert(request, (key, sent.len()));
                }
                let complete = request.is_none().then_some(moment);
                sent.push(Sent { moment, complete, bytes, cancelled: false });
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
                let key = (envelope.communicator, envelope.peer, rank, envelope.tag);
                let posted = request.and_then(|request| posted.remove(&request)).unwrap_or(moment);
                channels.entry(key).or_default().received.push(Received { posted, moment, bytes });
            }
            What::Begin { .. } | What::Complete { .. } | What::End => {}
        }
    }
}
