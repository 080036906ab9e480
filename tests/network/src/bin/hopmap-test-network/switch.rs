//! The switch: holds every frame until it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use hopmap_test_network::{Counters, Error};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::hosts::{host_of, lock};
use crate::links::Links;
use crate::port::{FRAME, Port};

/// The last nanoseconds before a frame is due are not slept: to wake up takes about that long.
const SPIN: u64 = 50_000;
/// Frames taken from one port before others have their turn.
const BATCH: usize = 32;
/// The longest header of a frame that has addresses: two of six bytes and a type.
const HEADER: usize = 14;

/// A switch with a port for every host.
#[derive(Debug)]
pub(crate) struct Switch {
    ports: Vec<Port>,
    links: Arc<Mutex<Links>>,
    counters: Arc<Mutex<Counters>>,
    waiting: BinaryHeap<Reverse<Frame>>,
    /// Frames taken so far, which orders those that are due at the same time.
    taken: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    due: u64,
    number: u64,
    to: usize,
    bytes: Box<[u8]>,
}

impl Switch {
    pub(crate) fn new(hosts: usize, links: Arc<Mutex<Links>>) -> Result<Self, Error> {
        let ports = (0..hosts).map(Port::open).collect::<Result<_, _>>()?;
        let counters = Arc::default();
        Ok(Self { ports, links, counters, waiting: BinaryHeap::new(), taken: 0 })
    }

    /// What it has done so far, for others to look at.
    pub(crate) fn counters(&self) -> Arc<Mutex<Counters>> {
        Arc::clone(&self.counters)
    }

    /// Switches for ever.
    pub(crate) fn run(mut self) {
        // Sleep is to end when it shall and not up to 50 µs later.
        let _ = prctl::set_timerslack(1);
        loop {
            let ready = self.wait();
            for port in ready {
                self.take(port);
            }
            self.deliver();
        }
    }

    /// Sleeps until shortly before a frame is due or until one comes; tells which ports have some.
    fn wait(&self) -> Vec<usize> {
        let mut polled: Vec<PollFd> =
            self.ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = self.waiting.peek().map(|Reverse(frame)| {
            let rest = frame.due.saturating_sub(now()).saturating_sub(SPIN);
            TimeSpec::new((rest / 1_000_000_000).cast_signed(), (rest % 1_000_000_000).cast_signed())
        });
        if timeout.is_none() {
            lock(&self.counters).cpu_s = seconds(ClockId::CLOCK_THREAD_CPUTIME_ID);
        }
        match ppoll(&mut polled, timeout, None) {
            Ok(count) if count > 0 => {
                let is_ready = |(port, polled): (usize, &PollFd)| polled.any()?.then_some(port);
                polled.iter().enumerate().filter_map(is_ready).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Takes what a host has sent.
    fn take(&mut self, port: usize) {
        let mut links = lock(&self.links);
        let mut bytes = [0; FRAME];
        for _ in 0..BATCH {
            let Some((length, came)) = self.ports[port].receive(&mut bytes) else { return };
            // Other frames than those from a host to a host, such as the system's own, have no business here.
            if length <= HEADER || host_of(&bytes[6..12]) != Some(port) {
                continue;
            }
            let Some(to) = host_of(&bytes[..6]) else { continue };
            let Some(due) = links.due(port, to, length, arrival(came)) else {
                lock(&self.counters).dropped += 1;
                continue;
            };
            self.taken += 1;
            self.waiting.push(Reverse(Frame { due, number: self.taken, to, bytes: bytes[..length].into() }));
        }
    }

    /// Hands on every frame that is due.
    fn deliver(&mut self) {
        while self.waiting.peek().is_some_and(|Reverse(frame)| frame.due <= now()) {
            let Some(Reverse(frame)) = self.waiting.pop() else { return };
            let delivered = self.ports[frame.to].send(&frame.bytes);
            let mut counters = lock(&self.counters);
            match delivered {
                true => counters.delivered += 1,
                false => counters.dropped += 1,
            }
        }
    }
}

/// Now, in nanoseconds of the monotonic clock.
fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// When a frame came, in nanoseconds of the monotonic clock.
///
/// The system stamps frames with the wall clock when they come, however late the switch gets to see them; a stamp that makes no
/// sense, since the wall clock was set, counts for nothing.
fn arrival(came: Option<TimeSpec>) -> u64 {
    let stamp = came
        .map(|time| u64::try_from(i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec())));
    let age = match stamp {
        Some(Ok(stamp)) => nanoseconds(ClockId::CLOCK_REALTIME).checked_sub(stamp),
        _ => None,
    };
    now() - age.filter(|&age| age < 100_000_000).unwrap_or(0)
}

fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock)
        .map_or(0, |time| time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned())
}

fn seconds(clock: ClockId) -> f64 {
    nanoseconds(clock) as f64 / 1e9
}
