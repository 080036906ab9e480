//! The network between the hosts: holds every frame until it is due.

use std::io::PipeReader;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

use hopmap_test_network::{Error, LATE_S};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::frames::Frames;
use crate::hosts::{destination, for_hosts, lock};
use crate::port::{self, FRAME, Port};

/// The last nanoseconds before a frame is due are not slept: to wake up takes about that long.
const SPIN: u64 = 50_000;
/// Frames taken from one port before others have their turn.
const BATCH: usize = 32;

/// All switches and links, with a port for every host.
#[derive(Debug)]
pub(crate) struct Switch {
    ports: Vec<Port>,
    frames: Arc<Mutex<Frames>>,
}

impl Switch {
    pub(crate) fn new(hosts: usize, frames: Arc<Mutex<Frames>>) -> Result<Self, Error> {
        Ok(Self { ports: port::open_all(hosts)?, frames })
    }

    /// Switches until the other end of a pipe is closed.
    pub(crate) fn run(&mut self, until: &PipeReader) {
        // Sleep is to end when it shall and not up to 50 µs later.
        let _ = prctl::set_timerslack(1);
        let begin = cpu_s();
        while let Some(ready) = self.wait(until, begin) {
            let mut frames = lock(&self.frames);
            for from in ready {
                take(&mut self.ports[from], from, &mut frames);
            }
            deliver(&self.ports, &mut frames);
        }
    }

    /// Sleeps until shortly before an event is due or until a frame comes; returns the ports that have some, and none at the end.
    fn wait(&self, until: &PipeReader, begin: f64) -> Option<Vec<usize>> {
        let polled = |end| PollFd::new(end, PollFlags::POLLIN);
        let ports = self.ports.iter().map(|port| polled(port.as_fd()));
        let mut ends: Vec<PollFd> = std::iter::once(polled(until.as_fd())).chain(ports).collect();
        let next = lock(&self.frames).next();
        let timeout = next.map(|(due, is_exact)| {
            let rest = due.saturating_sub(now()).saturating_sub(if is_exact { SPIN } else { 0 });
            TimeSpec::new((rest / 1_000_000_000).cast_signed(), (rest % 1_000_000_000).cast_signed())
        });
        if timeout.is_none() {
            lock(&self.frames).counters.cpu_s = cpu_s() - begin;
        }
        let is_ready = |end: &PollFd| end.any() == Some(true);
        match ppoll(&mut ends, timeout, None) {
            Ok(count) if count > 0 => match is_ready(&ends[0]) {
                true => None,
                false => Some((0..self.ports.len()).filter(|port| is_ready(&ends[port + 1])).collect()),
            },
            _ => Some(Vec::new()),
        }
    }

    /// Closes the ports, all at once.
    pub(crate) fn close(self) -> Result<(), Error> {
        let (count, ports) = (self.ports.len(), Mutex::new(self.ports));
        for_hosts(count, |_| {
            let port = lock(&ports).pop();
            drop(port);
            Ok(())
        })
        .map(drop)
    }
}

/// Takes what a host has sent.
fn take(port: &mut Port, from: usize, frames: &mut Frames) {
    let mut bytes = [0; FRAME];
    for _ in 0..BATCH {
        let Some((length, came)) = port.receive(&mut bytes) else { return };
        // Other frames than packets to a host, such as the system's own, have no business here.
        if let Some(to) = destination(&bytes[..length]) {
            frames.enter(from, to, bytes[..length].into(), arrival(came));
        }
    }
}

/// Hands on every frame that is due.
fn deliver(ports: &[Port], frames: &mut Frames) {
    while let Some(frame) = frames.arrive(now()) {
        let is_taken = ports[frame.to].send(&frame.bytes);
        let counters = &mut frames.counters;
        if is_taken {
            let late_s = now().saturating_sub(frame.due()) as f64 / 1e9 - counters.base_s;
            counters.delivered += 1;
            counters.late += u64::from(late_s > LATE_S);
            counters.latest_s = counters.latest_s.max(late_s);
            frames.lateness.add(late_s);
        } else {
            counters.dropped += 1;
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

/// Seconds of processor time of this thread.
fn cpu_s() -> f64 {
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID) as f64 / 1e9
}

fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock)
        .map_or(0, |time| time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned())
}
