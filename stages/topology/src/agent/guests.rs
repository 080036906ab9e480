//! Who is connected to an agent, how many may be, and telling who was turned away without letting strangers fill a log.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections at once.
const STRANGERS: usize = 8;
const COORDINATORS: usize = 1;
const PEERS: usize = 4;
const HOSTS: usize = 4;

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Has not proven anything yet.
    Stranger,
    /// Gives orders.
    Coordinator,
    /// Times messages that are answered here.
    Peer,
    /// Answers messages that are timed here.
    Host,
}

impl Standing {
    fn most(self) -> usize {
        match self {
            Self::Stranger => STRANGERS,
            Self::Coordinator => COORDINATORS,
            Self::Peer => PEERS,
            Self::Host => HOSTS,
        }
    }
}

/// All connections of an agent.
#[derive(Default)]
pub(super) struct Guests {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    number: u64,
    is_closed: bool,
    guests: BTreeMap<u64, (Standing, TcpStream)>,
}

impl Book {
    fn has_room(&self, standing: Standing) -> bool {
        let present = self.guests.values().filter(|(found, _)| *found == standing).count();
        !self.is_closed && present < standing.most()
    }

    /// Drops the oldest stranger of the address that has most of them, so that a crowd only keeps itself out.
    fn displace_stranger(&mut self) {
        let address = |stream: &TcpStream| stream.peer_addr().ok().map(|caller| caller.ip());
        let mut crowds: BTreeMap<Option<IpAddr>, Vec<u64>> = BTreeMap::new();
        for (&number, (standing, stream)) in &self.guests {
            if *standing == Standing::Stranger {
                crowds.entry(address(stream)).or_default().push(number);
            }
        }
        let largest = crowds.into_values().max_by_key(|crowd| (crowd.len(), Reverse(crowd[0])));
        let oldest = largest.and_then(|crowd| self.guests.remove(&crowd[0]));
        if let Some((_, stream)) = oldest {
            // One that is gone need not be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// One connection, which is forgotten when this goes.
pub(super) struct Guest {
    guests: Arc<Guests>,
    number: u64,
}

impl Guests {
    /// Writes a connection down; nothing where there are too many of the kind, or the agent is about to end. A stranger
    /// takes the place of an older one.
    pub(super) fn enter(
        self: &Arc<Self>,
        standing: Standing,
        stream: &TcpStream,
    ) -> io::Result<Option<Guest>> {
        let stream = stream.try_clone()?;
        let mut book = self.book();
        if standing == Standing::Stranger && !book.has_room(standing) {
            book.displace_stranger();
        }
        if !book.has_room(standing) {
            return Ok(None);
        }
        book.number += 1;
        let number = book.number;
        book.guests.insert(number, (standing, stream));
        Ok(Some(Guest { guests: Arc::clone(self), number }))
    }

    /// Closes all connections, and lets nobody in any more.
    pub(super) fn close(&self) {
        let mut book = self.book();
        book.is_closed = true;
        for (_, stream) in book.guests.values() {
            // One that is gone need not be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // The book is in order between any two statements that could panic.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Gives a connection another standing, if there is room and it was not displaced.
    pub(super) fn rise(&self, standing: Standing) -> bool {
        let mut book = self.guests.book();
        let has_room = book.has_room(standing);
        match book.guests.get_mut(&self.number).filter(|_| has_room) {
            Some(guest) => {
                guest.0 = standing;
                true
            }
            None => false,
        }
    }

    /// Whether it had to make room for a newer stranger.
    pub(super) fn is_displaced(&self) -> bool {
        let book = self.guests.book();
        !book.is_closed && !book.guests.contains_key(&self.number)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.book().guests.remove(&self.number);
    }
}

/// So many are told of ...
const MOST: u64 = 5;
/// ... in such a span.
const SPAN: Duration = Duration::from_secs(10);

/// Tells of refusals, the first few of every span one by one, the others by number.
pub(super) struct Refusals {
    told: Mutex<Told>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

struct Told {
    since: Instant,
    count: u64,
}

impl Refusals {
    pub(super) fn new(tell: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { told: Mutex::new(Told { since: Instant::now(), count: 0 }), tell }
    }

    /// Tells of a refusal, unless there were many just now.
    pub(super) fn tell(&self, refusal: &str) {
        let (silent, is_told) = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let silent = if told.since.elapsed() > SPAN { told.restart() } else { 0 };
            told.count += 1;
            (silent, told.count <= MOST)
        };
        self.tell_number(silent);
        if is_told {
            (self.tell)(refusal);
        }
    }

    /// Tells how many were not told of.
    pub(super) fn tell_rest(&self) {
        let silent = self.told.lock().unwrap_or_else(PoisonError::into_inner).restart();
        self.tell_number(silent);
    }

    fn tell_number(&self, silent: u64) {
        if silent > 0 {
            (self.tell)(&format!("refused {silent} more"));
        }
    }
}

impl Told {
    /// Begins a new span; how many were not told of in the last one.
    fn restart(&mut self) -> u64 {
        let silent = self.count.saturating_sub(MOST);
        *self = Self { since: Instant::now(), count: 0 };
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_are_told_of_by_number() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let refusals = Refusals::new(Box::new(move |line| seen.lock().unwrap().push(line.to_owned())));
        (0..100).for_each(|number| refusals.tell(&format!("refused {number}")));
        refusals.tell_rest();
        refusals.tell_rest();
        let lines = lines.lock().unwrap();
        assert_eq!(lines[..2], ["refused 0", "refused 1"]);
        assert_eq!(lines[5..], ["refused 95 more"]);
    }
}
