//! Connections of an agent: their limits, and a rate-limited log of rejected callers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of unauthenticated connections.
const STRANGERS: usize = 8;
const COORDINATORS: usize = 1;
const PEERS: usize = 4;
const HOSTS: usize = 4;

/// Role of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthState {
    /// Not authenticated yet.
    Stranger,
    /// Sends requests.
    Coordinator,
    /// Sends messages that are answered here.
    Peer,
    /// Answers messages that are measured here.
    Host,
}

impl AuthState {
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
    guests: BTreeMap<u64, (AuthState, TcpStream)>,
}

impl Book {
    fn has_room(&self, state: AuthState) -> bool {
        let present = self.guests.values().filter(|(found, _)| *found == state).count();
        !self.is_closed && present < state.most()
    }

    /// Drops the oldest stranger of the address with most strangers, so that a flood displaces only itself.
    fn displace_stranger(&mut self) {
        let address = |stream: &TcpStream| stream.peer_addr().ok().map(|caller| caller.ip());
        let mut crowds: BTreeMap<Option<IpAddr>, Vec<u64>> = BTreeMap::new();
        for (&number, (state, stream)) in &self.guests {
            if *state == AuthState::Stranger {
                crowds.entry(address(stream)).or_default().push(number);
            }
        }
        let largest = crowds.into_values().max_by_key(|crowd| (crowd.len(), Reverse(crowd[0])));
        let oldest = largest.and_then(|crowd| self.guests.remove(&crowd[0]));
        if let Some((_, stream)) = oldest {
            // Errors mean that the connection is already closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A connection, removed from the table on drop.
pub(super) struct Guest {
    guests: Arc<Guests>,
    number: u64,
}

impl Guests {
    /// Registers a connection; `None` if there are too many of its role or the agent is about to stop. A
    /// stranger displaces an older one.
    pub(super) fn enter(self: &Arc<Self>, state: AuthState, stream: &TcpStream) -> io::Result<Option<Guest>> {
        let stream = stream.try_clone()?;
        let mut book = self.book();
        if state == AuthState::Stranger && !book.has_room(state) {
            book.displace_stranger();
        }
        if !book.has_room(state) {
            return Ok(None);
        }
        book.number += 1;
        let number = book.number;
        book.guests.insert(number, (state, stream));
        Ok(Some(Guest { guests: Arc::clone(self), number }))
    }

    /// Closes all connections and rejects new ones.
    pub(super) fn close(&self) {
        let mut book = self.book();
        book.is_closed = true;
        for (_, stream) in book.guests.values() {
            // Errors mean that the connection is already closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // The table is consistent between any two statements that could panic.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Changes the role of a connection, if there is room and it was not displaced.
    pub(super) fn rise(&self, state: AuthState) -> bool {
        let mut book = self.guests.book();
        let has_room = book.has_room(state);
        match book.guests.get_mut(&self.number).filter(|_| has_room) {
            Some(guest) => {
                guest.0 = state;
                true
            }
            None => false,
        }
    }

    /// Whether a newer stranger displaced it.
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

/// Number of rejections that are logged ...
const MOST: u64 = 5;
/// ... per interval.
const INTERVAL: Duration = Duration::from_secs(10);

/// Logs rejections: the first few of every interval individually, the others as a count.
pub(super) struct Refusals {
    interval: Mutex<Interval>,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

struct Interval {
    since: Instant,
    count: u64,
}

impl Refusals {
    pub(super) fn new(log: Box<dyn Fn(&str) + Send + Sync>) -> Self {
        Self { interval: Mutex::new(Interval { since: Instant::now(), count: 0 }), log }
    }

    /// Logs a rejection, unless there were too many recently.
    pub(super) fn log(&self, refusal: &str) {
        let (silent, is_logged) = {
            let mut interval = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
            let silent = if interval.since.elapsed() > INTERVAL { interval.restart() } else { 0 };
            interval.count += 1;
            (silent, interval.count <= MOST)
        };
        self.log_count(silent);
        if is_logged {
            (self.log)(refusal);
        }
    }

    /// Logs the number of unlogged rejections.
    pub(super) fn log_rest(&self) {
        let silent = self.interval.lock().unwrap_or_else(PoisonError::into_inner).restart();
        self.log_count(silent);
    }

    fn log_count(&self, silent: u64) {
        if silent > 0 {
            (self.log)(&format!("rejected {silent} more"));
        }
    }
}

impl Interval {
    /// Starts a new interval; returns the number of unlogged rejections of the last one.
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
    fn many_rejections_are_logged_as_a_count() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let refusals = Refusals::new(Box::new(move |line| seen.lock().unwrap().push(line.to_owned())));
        (0..100).for_each(|number| refusals.log(&format!("refused {number}")));
        refusals.log_rest();
        refusals.log_rest();
        let lines = lines.lock().unwrap();
        assert_eq!(lines[..2], ["refused 0", "refused 1"]);
        assert_eq!(lines[5..], ["rejected 95 more"]);
    }
}
