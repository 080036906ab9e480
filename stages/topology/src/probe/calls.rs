//! Measurements between two processes: round trips, calls that cost their caller time, and the eager limit.
//!
//! The replying side receives a header before every batch. Calls are measured as in the calibration of SMPI
//! (Degomme et al., TPDS 28, 2017): a send to a process that receives at once, and the receive of a message that
//! arrived while the receiver slept. A message is eager if its blocking send returns before the receiver, which
//! sleeps, has posted its receive.

use std::time::Duration;

use hopmap_model::{Call, Communicator, Error, Timed, TimedCall};
use serde::{Deserialize, Serialize};

use super::sampling::{Sampling, Timing, Wire, sample, summary};
use crate::MachineError;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    /// Round trips of a part, by its index.
    Part(usize),
    /// Round trips of a pair alone.
    Alone,
    /// A call, by its index in [`CALLS`].
    Call(usize),
    /// The smallest message whose send waits.
    EagerLimit,
    /// A stream of a step.
    Stream(u32),
}

pub(super) const CALLS: [(Call, TimedCall); 3] =
    [(Call::Send, TimedCall::Send), (Call::Isend, TimedCall::Isend), (Call::Recv, TimedCall::Recv)];

/// A connection to another process.
pub(super) struct RankWire<'a> {
    pub(super) communicator: &'a dyn Communicator,
    pub(super) process: u32,
    /// Round trips, or a stream.
    pub(super) what: TimedCall,
}

impl Wire for RankWire<'_> {
    type Error = Error;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Error> {
        let call = Timed { what: self.what, bytes, messages, pause: Duration::ZERO };
        times.extend(self.timed(call)?);
        Ok(())
    }
}

impl RankWire<'_> {
    /// Ends the measurement.
    pub(super) fn end(self) -> Result<(), Error> {
        self.communicator.send(self.process, header(None))
    }

    /// Measures a batch, which the other process answers after it has read the header.
    fn timed(&self, timed: Timed) -> Result<Vec<f64>, Error> {
        self.communicator.send(self.process, header(Some(timed)))?;
        self.communicator.time(self.process, timed)
    }
}

const TIMED: [TimedCall; 5] =
    [TimedCall::RoundTrip, TimedCall::Send, TimedCall::Isend, TimedCall::Recv, TimedCall::Stream];

/// What the next batch is: bytes, messages, call and nanoseconds of the pause. No batch ends the measurement of
/// a pair.
fn header(timed: Option<Timed>) -> Vec<u8> {
    let Some(Timed { what, bytes, messages, pause }) = timed else { return Vec::new() };
    let what = TIMED.iter().position(|call| *call == what).unwrap_or_default() as u64;
    [bytes, u64::from(messages), what, pause.as_nanos() as u64].map(u64::to_le_bytes).concat()
}

fn read_header(header: &[u8]) -> Option<Timed> {
    let (words, []) = header.as_chunks::<8>() else { return None };
    let [bytes, messages, what, pause] = <[_; 4]>::try_from(words).ok()?.map(u64::from_le_bytes);
    let (what, messages) = (*TIMED.get(what as usize)?, messages.try_into().ok()?);
    Some(Timed { what, bytes, messages, pause: Duration::from_nanos(pause) })
}

/// A process sent invalid data.
pub(super) fn nonsense(process: u32) -> MachineError {
    let help = "build or install hopmap-ranks from the same sources on every host";
    MachineError::new(format!("process {process} sent invalid measurements"), help)
}

/// Replies to the batches of a partner until it is done.
pub(super) fn answer(communicator: &dyn Communicator, process: u32) -> Result<(), Error> {
    loop {
        let header = communicator.receive(process)?;
        if header.is_empty() {
            return Ok(());
        }
        let timed = read_header(&header).ok_or_else(|| nonsense(process))?;
        communicator.answer(process, timed)?;
    }
}

/// Repetitions of a call.
const CALLS_PER_SIZE: u32 = 30;
/// Sends to a late receiver by size; the shortest one counts.
const LATE_SENDS: u32 = 3;
/// Smallest and largest message of the search for the eager limit.
const EAGER_RANGE: [u64; 2] = [1 << 10, 1 << 22];
/// How much later than its message a receive is posted, at least.
const LATE: Duration = Duration::from_millis(10);

/// Round trips and calls of a pair that nobody disturbs, and the eager limit if requested.
pub(super) fn measure_alone(
    wire: &mut RankWire<'_>,
    sampling: &Sampling,
    with_eager_limit: bool,
) -> Result<Vec<(What, Vec<Timing>)>, Error> {
    let round_trips = sample(wire, sampling)?;
    let mut results = Vec::new();
    for (index, (_, what)) in CALLS.iter().enumerate() {
        let mut timings = Vec::new();
        for round_trip in &round_trips {
            let Timing { bytes, times, .. } = *round_trip;
            let arrival = Duration::try_from_secs_f64(2.0 * times[2]).unwrap_or(LATE);
            let pause = if *what == TimedCall::Recv { arrival } else { Duration::ZERO };
            let affordable = (sampling.seconds / times[2].max(1e-9)).min(f64::from(CALLS_PER_SIZE)) as u32;
            let messages = affordable.max(5);
            let seconds = wire.timed(Timed { what: *what, bytes, messages, pause })?;
            timings.push(summary(bytes, seconds));
        }
        results.push((What::Call(index), timings));
    }
    if with_eager_limit && let Some(bytes) = eager_limit(wire, &round_trips)? {
        results.push((What::EagerLimit, vec![Timing { bytes, messages: 1, times: [0.0; 5] }]));
    }
    results.push((What::Alone, round_trips));
    Ok(results)
}

/// The shortest message whose send waits for its receive, by bisection; none if none does.
fn eager_limit(wire: &RankWire<'_>, round_trips: &[Timing]) -> Result<Option<u64>, Error> {
    let per_byte = round_trips.last().map_or(0.0, |last| last.times[2] / last.bytes as f64);
    let waits = |bytes: u64| {
        let pause = Duration::try_from_secs_f64(2.0 * per_byte * bytes as f64).unwrap_or(LATE).max(LATE);
        let timed = Timed { what: TimedCall::Send, bytes, messages: LATE_SENDS, pause };
        let shortest = wire.timed(timed)?.into_iter().fold(f64::INFINITY, f64::min);
        Ok::<_, Error>(shortest >= pause.as_secs_f64() / 2.0)
    };
    let [mut eager, most] = EAGER_RANGE;
    let mut waiting = 2 * eager;
    while !waits(waiting)? {
        (eager, waiting) = (waiting, 2 * waiting);
        if waiting > most {
            return Ok(None);
        }
    }
    if eager == EAGER_RANGE[0] && waits(eager)? {
        (eager, waiting) = (0, eager);
    }
    while waiting - eager > 1 {
        let middle = eager.midpoint(waiting);
        match waits(middle)? {
            true => waiting = middle,
            false => eager = middle,
        }
    }
    Ok(Some(waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_back_and_others_are_refused() {
        for what in TIMED {
            let timed = Timed { what, bytes: 1 << 40, messages: 7, pause: LATE };
            assert_eq!(read_header(&header(Some(timed))), Some(timed));
        }
        let unknown = [1_u64, 1, TIMED.len() as u64, 0].map(u64::to_le_bytes).concat();
        for header in [&[0; 11][..], &[0; 33], &[0xff; 32], &unknown] {
            assert_eq!(read_header(header), None);
        }
    }
}
