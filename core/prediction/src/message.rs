//! Messages between posting and completion, and the queues in which sends and receives match.

use std::collections::HashMap;

use foldhash::fast::FixedState;

const NONE: u32 = u32::MAX;

/// How a message is transferred; see [`Costs`](crate::Costs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    /// At once; the sender does not wait.
    Eager,
    /// When the receive is posted; the sender does not wait.
    Detached,
    /// When the receive is posted; both ends wait.
    Rendezvous,
}

/// Seconds by kind along the longest path to an event; what is missing to the time of the event is waiting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Path {
    pub(crate) computation: f64,
    pub(crate) overhead: f64,
    pub(crate) latency: f64,
    pub(crate) bandwidth: f64,
}

/// The matching key of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) tag: u32,
    pub(crate) communicator: u32,
}

/// A tag for messages of collective operations, above those of MPI.
pub(crate) const COLLECTIVE_TAG: u32 = u32::MAX;

/// A message of which at least one end is posted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) bytes: u64,
    /// Of the transfer, as far as known.
    pub(crate) start: f64,
    /// Of the transfer; not a number while unknown.
    pub(crate) end: f64,
    /// To the start of the transfer; when it has started, to its end.
    pub(crate) path: Path,
    queue: u32,
    pub(crate) protocol: Protocol,
    pub(crate) is_sender_blocked: bool,
    pub(crate) is_receiver_blocked: bool,
    /// The transfer, and the ends that wait for it.
    references: u8,
    next: u32,
}

/// One end of a message. The lowest bit tells a receive from a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End(u32);

impl End {
    pub(crate) fn of_send(message: u32) -> Self {
        Self(message << 1)
    }

    pub(crate) fn of_receive(message: u32) -> Self {
        Self(message << 1 | 1)
    }

    pub(crate) fn message(self) -> u32 {
        self.0 >> 1
    }

    pub(crate) fn is_receive(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A posted send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Send {
    pub(crate) bytes: u64,
    pub(crate) protocol: Protocol,
}

/// Messages in progress.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    slab: Vec<Message>,
    vacant: Vec<u32>,
    queues: Vec<Queue>,
    keys: HashMap<Key, u32, FixedState>,
}

/// Sends that wait for receives, or receives that wait for sends.
#[derive(Debug, Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
    is_sends: bool,
    /// Of its messages, once known.
    route: Option<u32>,
}

/// What posting an end leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) message: u32,
    /// Whether both ends are posted now.
    pub(crate) is_matched: bool,
}

impl Messages {
    pub(crate) fn get(&self, message: u32) -> &Message {
        &self.slab[message as usize]
    }

    pub(crate) fn get_mut(&mut self, message: u32) -> &mut Message {
        &mut self.slab[message as usize]
    }

    /// The route of a message, if it or one with the same key was given one.
    pub(crate) fn route(&self, message: u32) -> Option<u32> {
        self.queues[self.get(message).queue as usize].route
    }

    /// Sets the route of all messages with the key of a message.
    pub(crate) fn set_route(&mut self, message: u32, route: u32) {
        let queue = self.get(message).queue;
        self.queues[queue as usize].route = Some(route);
    }

    /// Posts a send, or a receive if `send` is empty.
    pub(crate) fn post(&mut self, key: Key, send: Option<Send>, time: f64, path: &Path) -> Posted {
        let queues = &mut self.queues;
        let queue = *self.keys.entry(key).or_insert_with(|| {
            queues.push(Queue { first: NONE, last: NONE, is_sends: false, route: None });
            queues.len() as u32 - 1
        });
        let Queue { first, is_sends, .. } = self.queues[queue as usize];
        if first == NONE || is_sends == send.is_some() {
            let message = self.add((key, queue), send, time, *path);
            self.enqueue(queue, message, send.is_some());
            return Posted { message, is_matched: false };
        }
        let message = &mut self.slab[first as usize];
        self.queues[queue as usize].first = message.next;
        if let Some(Send { bytes, protocol }) = send {
            (message.bytes, message.protocol) = (bytes, protocol);
            message.references += u8::from(protocol == Protocol::Rendezvous);
        }
        // The transfer of an eager message starts with its send, whenever the receive is posted.
        let is_later = match (message.protocol, send) {
            (Protocol::Eager, send) => send.is_some(),
            _ => time > message.start,
        };
        if is_later {
            (message.start, message.path) = (time, *path);
        }
        Posted { message: first, is_matched: true }
    }

    fn add(&mut self, (key, queue): (Key, u32), send: Option<Send>, start: f64, path: Path) -> u32 {
        let protocol = send.map_or(Protocol::Rendezvous, |send| send.protocol);
        let is_awaited = send.is_some() && protocol == Protocol::Rendezvous;
        let message = Message {
            source: key.source,
            destination: key.destination,
            bytes: send.map_or(0, |send| send.bytes),
            start,
            end: f64::NAN,
            path,
            queue,
            protocol,
            is_sender_blocked: false,
            is_receiver_blocked: false,
            references: 2 + u8::from(is_awaited),
            next: NONE,
        };
        if let Some(place) = self.vacant.pop() {
            self.slab[place as usize] = message;
            return place;
        }
        self.slab.push(message);
        self.slab.len() as u32 - 1
    }

    fn enqueue(&mut self, queue: u32, message: u32, is_send: bool) {
        let queue = &mut self.queues[queue as usize];
        if queue.first == NONE {
            (queue.first, queue.is_sends) = (message, is_send);
        } else {
            self.slab[queue.last as usize].next = message;
        }
        queue.last = message;
    }

    /// Ends the use of a message by its transfer, sender or receiver.
    pub(crate) fn release(&mut self, message: u32) {
        let references = &mut self.slab[message as usize].references;
        *references -= 1;
        if *references == 0 {
            self.vacant.push(message);
        }
    }

    /// The first message of the queues that has one end only.
    pub(crate) fn unmatched(&self) -> Option<&Message> {
        let queue = self.queues.iter().find(|queue| queue.first != NONE)?;
        Some(self.get(queue.first))
    }
}
