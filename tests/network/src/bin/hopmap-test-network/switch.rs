//! The network between the hosts: holds every frame until it is due.

use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use hopmap_test_network::{Counters, Error, LATE_S};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::frames::Frames;
use crate::hosts::{host_of, lock};
use crate::links::Links;
use crate::port::{FRAME, Port};

/// The last nanoseconds before a frame is due are not slept: to wake up takes about that long.
const SPIN: u64 = 50_000;
/// Frames taken from one port before others have their turn.
const BATCH: usize = 32;
/// The longest header of a frame that has addresses: two of six bytes and a type.
const HEADER: usize = 14;

/// All switches and links, with a port for every host.
#[derive(Debug)]
pub(crate) struct Switch {
    ports: Vec<Port>,
    links: Arc<Mutex<Links>>,
    counters: Arc<Mutex<Counters>>,
    frames: Frames,
}

impl Switch {
    pub(crate) fn new(hosts: usize, links: Arc<Mutex<Links>>) -> Result<Self, Error> {
        let ports = (0..hosts).map(Port::open).collect::<Result<_, _>>()?;
        Ok(Self { ports, links, counters: Arc::default(), frames: Frames::default() })
    }

    /// What it has done so far; the counters of links are those of [`Links`].
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

    /// Sleeps until shortly before an event is due or until a frame comes; returns the ports that have some.
    fn wait(&self) -> Vec<usize> {
        let mut polled: Vec<PollFd> =
            self.ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = self.frames.next().map(|(due, is_exact)| {
            let rest = due.saturating_sub(now()).saturating_sub(if is_exact { SPIN } else { 0 });
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
            if !self.frames.enter(&mut links, (port, to), bytes[..length].into(), arrival(came)) {
                lock(&self.counters).dropped += 1;
            }
        }
    }

    /// Hands on every frame that is due.
    fn deliver(&mut self) {
        let mut links = lock(&self.links);
        while let Some(arrived) = self.frames.arrive(&mut links, now()) {
            let mut counters = lock(&self.counters);
            match arrived {
                Ok(frame) if self.ports[frame.to].send(&frame.bytes) => {
                    let late_s = now().saturating_sub(frame.due()) as f64 / 1e9 - links.base_s();
                    counters.delivered += 1;
                    counters.late += u64::from(late_s > LATE_S);
                    counters.latest_s = counters.latest_s.max(late_s);
                }
                _ => counters.dropped += 1,
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
