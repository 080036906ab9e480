//! Messages between the cores of a host through shared memory.
//!
//! A message of D bytes consists of D / 8 words, which one core writes and the other reads, and a sequence
//! number that announces them; the reply is a sequence number too. Up to 48 bytes share the cache line of the
//! number. MPI processes on one host communicate like this, with their protocol on top.

use std::convert::Infallible;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use miette::Diagnostic;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::protocol::CorePair;
use crate::probe::{Sampling, Timing, Wire, sample, tournament};
use hopmap_machines::params::MachineError;

/// Largest message between cores, in bytes.
pub const CORE_MESSAGE_BYTES: u64 = 16 << 20;
/// Largest total size of concurrent messages, in bytes.
const TOGETHER_BYTES: u64 = 256 << 20;
/// Words of a message in the cache line of its number.
const WORDS_IN_LINE: usize = 6;
/// Polls before the core is yielded, possibly to the process that is waited for.
const SPINS: u32 = 1 << 12;
/// Sequence number that ends the conversation.
const END: u64 = u64::MAX;

/// The system refuses to start a thread.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("cannot start a thread: {0}")]
#[diagnostic(
    code(topology::thread),
    help("raise the limits of processes and memory (`ulimit -u`, `ulimit -v`), or end other programs")
)]
pub(crate) struct ThreadError(pub(crate) std::io::Error);

fn no_thread(error: std::io::Error) -> MachineError {
    let error = ThreadError(error);
    MachineError::new(error.to_string(), error.help().map(|help| help.to_string()).unwrap_or_default())
}

/// Cores this process may run on, in the numbering of the operating system.
#[must_use]
pub fn own_cores() -> Vec<u32> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect(),
        Err(_) => (0..thread::available_parallelism().map_or(1, usize::from) as u32).collect(),
    }
}

/// Measures all pairs of cores in rounds of disjoint pairs; returns the results round by round.
pub fn measure_cores(
    cores: &[u32],
    together: bool,
    sampling: &Sampling,
    until: Instant,
    mut report: impl FnMut(Vec<CorePair>) -> bool,
) -> Result<(), MachineError> {
    check(cores)?;
    let largest = sampling.sizes.iter().copied().max().unwrap_or_default();
    if largest > CORE_MESSAGE_BYTES {
        let problem = format!("messages between cores have at most {CORE_MESSAGE_BYTES} bytes");
        return Err(MachineError::new(problem, ""));
    }
    let at_once = if together { (TOGETHER_BYTES / largest.max(1)).max(1) as usize } else { 1 };
    let all = cores.len() * cores.len().saturating_sub(1) / 2;
    let mut done = 0;
    for round in rounds(cores) {
        for pairs in round.chunks(at_once) {
            let Some(measured) = measure_at_once(pairs, sampling, until)? else {
                return Err(MachineError::new(
                    format!("the time limit was reached after {done} of {all} pairs"),
                    "",
                ));
            };
            done += measured.len();
            if !report(measured) {
                return Err(MachineError::new("the receiver of the results is gone", ""));
            }
        }
    }
    Ok(())
}

fn check(cores: &[u32]) -> Result<(), MachineError> {
    let allowed = own_cores();
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    if let Some([core, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(MachineError::new(format!("core {core} is listed twice"), ""));
    }
    match cores.iter().find(|core| !allowed.contains(core)) {
        Some(core) => {
            let problem = format!("core {core} is not available to the agent (available: {allowed:?})");
            Err(MachineError::new(problem, ""))
        }
        None => Ok(()),
    }
}

/// All pairs, in rounds in which each core has at most one partner.
fn rounds(cores: &[u32]) -> impl Iterator<Item = Vec<(u32, u32)>> + '_ {
    let count = cores.len() as u32;
    let named = |(one, other): (u32, u32)| (cores[one as usize], cores[other as usize]);
    (0..tournament::rounds(count)).map(move |round| tournament::pairs(count, round).map(named).collect())
}

/// Measures disjoint pairs concurrently; `None` if the time limit was reached before all were done.
fn measure_at_once(
    pairs: &[(u32, u32)],
    sampling: &Sampling,
    until: Instant,
) -> Result<Option<Vec<CorePair>>, MachineError> {
    thread::scope(|scope| {
        let started: Vec<_> = pairs
            .iter()
            .map(|&(source, destination)| {
                let pair = move || measure_pair(source, destination, sampling, until);
                thread::Builder::new().spawn_scoped(scope, pair).map_err(no_thread)
            })
            .collect();
        let mut measured = Vec::with_capacity(pairs.len());
        for (thread, &(source, destination)) in started.into_iter().zip(pairs) {
            let timings = match thread?.join() {
                Ok(timings) => timings?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let Some(timings) = timings else { return Ok(None) };
            measured.push(CorePair { source, destination, timings });
        }
        Ok(Some(measured))
    })
}

/// Measures one pair from this thread, pinned to the first core; `None` if the time limit was reached.
fn measure_pair(
    source: u32,
    destination: u32,
    sampling: &Sampling,
    until: Instant,
) -> Result<Option<Vec<Timing>>, MachineError> {
    let largest = sampling.sizes.iter().copied().max().unwrap_or_default();
    let memory = SharedMemory::new(largest);
    thread::scope(|scope| {
        let memory = &memory;
        let (ready, is_ready) = mpsc::channel();
        let answering = move || {
            let pinned = pin(destination);
            let is_pinned = pinned.is_ok();
            // The other thread waits for it.
            let _ = ready.send(pinned);
            if is_pinned {
                memory.answer();
            }
        };
        thread::Builder::new().spawn_scoped(scope, answering).map_err(no_thread)?;
        let _ended = EndAtLast(memory);
        pin(source)?;
        is_ready.recv().unwrap_or(Ok(()))?;
        let mut wire = CoreWire { memory, until, sent: 0, clock_s: clock_seconds() };
        Ok(sample(&mut wire, sampling).ok())
    })
}

/// Pins this thread to a core.
fn pin(core: u32) -> Result<(), MachineError> {
    let fault = |error: rustix::io::Errno| {
        let error = std::io::Error::from(error);
        MachineError::new(format!("cannot pin a thread to core {core}: {error}"), "")
    };
    if core as usize >= CpuSet::MAX_CPU {
        return Err(fault(rustix::io::Errno::INVAL));
    }
    let mut set = CpuSet::new();
    set.set(core as usize);
    sched_setaffinity(None, &set).map_err(fault)
}

/// Memory shared by two cores.
struct SharedMemory {
    message: Announcement,
    answer: Answered,
    words: Vec<Line>,
}

/// Padded to two cache lines, since processors prefetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Announcement {
    number: AtomicU64,
    bytes: AtomicU64,
    words: [AtomicU64; WORDS_IN_LINE],
}

#[repr(align(128))]
#[derive(Default)]
struct Answered(AtomicU64);

#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; 8]);

impl SharedMemory {
    fn new(largest: u64) -> Self {
        let lines = largest.div_ceil(64) as usize;
        let words = std::iter::repeat_with(Line::default).take(lines).collect();
        Self { message: Announcement::default(), answer: Answered::default(), words }
    }

    fn words(&self, bytes: u64) -> impl Iterator<Item = &AtomicU64> {
        let count = bytes.div_ceil(8) as usize;
        let in_line = if count <= WORDS_IN_LINE { count } else { 0 };
        let lines = if in_line > 0 { &[][..] } else { &self.words[..count.div_ceil(8)] };
        let words = lines.iter().flat_map(|line| &line.0).take(count);
        self.message.words[..in_line].iter().chain(words)
    }

    fn send(&self, number: u64, bytes: u64) {
        // The values do not matter, but they must be new so that the other core does not have them cached.
        for word in self.words(bytes) {
            word.store(number, Ordering::Relaxed);
        }
        self.message.bytes.store(bytes, Ordering::Relaxed);
        self.message.number.store(number, Ordering::Release);
    }

    /// Replies to messages until the end is announced.
    fn answer(&self) {
        let mut answered = 0;
        loop {
            let number = wait(|| {
                let number = self.message.number.load(Ordering::Acquire);
                (number != answered).then_some(Ok::<_, Infallible>(number))
            });
            let Ok(number) = number;
            if number == END {
                return;
            }
            let bytes = self.message.bytes.load(Ordering::Relaxed);
            let sum =
                self.words(bytes).fold(0_u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
            black_box(sum);
            answered = number;
            self.answer.0.store(number, Ordering::Release);
        }
    }
}

/// Announces the end on drop, so that the other core never waits forever.
struct EndAtLast<'a>(&'a SharedMemory);

impl Drop for EndAtLast<'_> {
    fn drop(&mut self) {
        self.0.message.number.store(END, Ordering::Release);
    }
}

/// The time limit was reached.
struct OutOfTime;

/// The sending side towards another core.
struct CoreWire<'a> {
    memory: &'a SharedMemory,
    until: Instant,
    sent: u64,
    /// Duration of a clock read in seconds, a considerable part of the latency between near cores.
    clock_s: f64,
}

impl Wire for CoreWire<'_> {
    type Error = OutOfTime;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), OutOfTime> {
        for _ in 0..messages {
            self.sent += 1;
            let begun = Instant::now();
            self.memory.send(self.sent, bytes);
            let mut looks = 0_u32;
            wait(|| {
                looks = looks.wrapping_add(1);
                let is_answered = self.memory.answer.0.load(Ordering::Acquire) == self.sent;
                match () {
                    () if is_answered => Some(Ok(())),
                    () if looks.is_multiple_of(SPINS) && Instant::now() > self.until => Some(Err(OutOfTime)),
                    () => None,
                }
            })?;
            let ended = Instant::now();
            times.push(((ended - begun).as_secs_f64() - self.clock_s).max(1e-9));
            if ended > self.until {
                return Err(OutOfTime);
            }
        }
        Ok(())
    }
}

/// The shortest time between two clock reads.
fn clock_seconds() -> f64 {
    let question = |_| {
        let begun = Instant::now();
        begun.elapsed().as_secs_f64()
    };
    (0..1000).map(question).fold(f64::INFINITY, f64::min)
}

/// Polls until a value is available: first in a busy loop, then yielding the core between polls.
fn wait<T, E>(mut look: impl FnMut() -> Option<Result<T, E>>) -> Result<T, E> {
    let mut looks = 0;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if looks < SPINS {
            looks += 1;
            spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sampling(sizes: &[u64]) -> Sampling {
        Sampling {
            sizes: sizes.to_vec(),
            warm_up: 10,
            warm_up_bytes: 0,
            batch: 20,
            most: 200,
            calm_batches: 3,
            tolerance: 0.02,
            seconds: 0.2,
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn all_pairs_of_cores_are_measured_one_by_one_or_concurrently() {
        let cores = own_cores();
        let cores = &cores[..cores.len().min(4)];
        for together in [false, true] {
            let mut found = Vec::new();
            let sampling = sampling(&[1, 48, 49, 4096, 1 << 20]);
            measure_cores(cores, together, &sampling, soon(), |pairs| {
                found.extend(pairs);
                true
            })
            .unwrap();
            assert_eq!(found.len(), cores.len() * (cores.len() - 1) / 2);
            for pair in found {
                assert!(pair.source < pair.destination);
                let sizes: Vec<u64> = pair.timings.iter().map(|timing| timing.bytes).collect();
                assert_eq!(sizes, sampling.sizes);
                assert!(pair.timings.iter().all(|timing| timing.messages > 0 && timing.times[0] > 0.0));
            }
        }
    }

    #[test]
    fn messages_arrive_intact() {
        for bytes in [1, 8, 47, 48, 49, 64, 65, 1000, 4096] {
            let memory = SharedMemory::new(bytes);
            memory.send(7, bytes);
            let words = memory.words(bytes);
            let words: Vec<u64> = words.map(|word| word.load(Ordering::Relaxed)).collect();
            assert_eq!(words, vec![7; bytes.div_ceil(8) as usize]);
        }
    }

    #[test]
    fn one_core_has_no_pairs() {
        let one = &own_cores()[..1];
        measure_cores(one, false, &sampling(&[1]), soon(), |_| panic!("no pair")).unwrap();
        measure_cores(&[], true, &sampling(&[1]), soon(), |_| panic!("no pair")).unwrap();
    }

    #[test]
    fn missing_cores_and_sizes_beyond_memory_are_rejected() {
        let message = |cores: &[u32], bytes| {
            measure_cores(cores, false, &sampling(&[bytes]), soon(), |_| true).unwrap_err().to_string()
        };
        assert!(message(&[1 << 30], 1).starts_with("core 1073741824 is not available"));
        let one = own_cores()[0];
        assert!(message(&[one, one], 1).ends_with("is listed twice"));
        assert!(message(&[one], CORE_MESSAGE_BYTES + 1).contains("at most"));
        assert!(pin(u32::MAX >> 1).is_err() || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn measurements_end_at_the_time_limit() {
        let cores = own_cores();
        if cores.len() < 2 {
            return;
        }
        let past = Instant::now();
        let error = measure_cores(&cores[..2], false, &sampling(&[1]), past, |_| true).unwrap_err();
        assert_eq!(error.to_string(), "the time limit was reached after 0 of 1 pairs");
        let error = measure_cores(&cores[..2], false, &sampling(&[1]), soon(), |_| false).unwrap_err();
        assert_eq!(error.to_string(), "the receiver of the results is gone");
    }
}
