//! What an agent does with a connection, once it is known who is there.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::frames::{FrameError, Frames, REQUEST_BYTES};
use super::link::Link;
use super::protocol::{Answer, CorePair, Description, Request, refusal};
use crate::probe::{Sampling, Timing};

/// Most requests in the life of an agent.
pub const REQUESTS: u64 = 1_000_000;
/// Most sizes of all pairs in one frame of an answer.
const TIMINGS_IN_FRAME: usize = 2048;

/// What an agent is able to do.
pub trait Work {
    /// Who it is.
    fn describe(&self) -> Description;

    /// Times messages to another agent; else what failed, in words.
    fn measure(
        &self,
        address: SocketAddr,
        sampling: &Sampling,
        until: Instant,
    ) -> Result<Vec<Timing>, String>;

    /// Times messages between cores, all of them if none are given, and hands over the results as they come, as long as they are
    /// taken; else what failed, in words.
    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        together: bool,
        sampling: &Sampling,
        until: Instant,
        tell: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String>;
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The coordinator asked the agent to end.
    End,
    /// The coordinator closed the connection and may come back.
    Closed,
}

/// Does what a coordinator asks for, until it closes the connection or time is over.
pub fn converse<L: Link, W: Work>(
    link: &mut L,
    frames: &mut Frames,
    work: &W,
    requests: &AtomicU64,
    until: Instant,
) -> Result<Parting, FrameError> {
    let mut parting = Parting::Closed;
    loop {
        let body = match frames.read(link, REQUEST_BYTES, until) {
            Err(FrameError::Closed) => return Ok(parting),
            // Who asked for the end may leave as it likes.
            Err(_) if parting == Parting::End => return Ok(parting),
            body => body?,
        };
        let answer = match serde_json::from_slice(&body) {
            _ if requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS => {
                Answer::Failed(format!("an agent does {REQUESTS} requests at most"))
            }
            Err(error) => Answer::Failed(format!("the request is not understood: {error}")),
            Ok(Request::Describe) => Answer::Description(work.describe()),
            Ok(Request::End) => {
                parting = Parting::End;
                Answer::Done
            }
            Ok(request) => {
                let mut tell = |answer: &Answer| say(link, frames, answer);
                measured(request, work, until, &mut tell)?
            }
        };
        say(link, frames, &answer)?;
    }
}

/// Measures; the last answer.
fn measured<W: Work>(
    request: Request,
    work: &W,
    until: Instant,
    tell: &mut dyn FnMut(&Answer) -> Result<(), FrameError>,
) -> Result<Answer, FrameError> {
    let (Request::Measure { ref sampling, seconds, .. } | Request::Cores { ref sampling, seconds, .. }) =
        request
    else {
        return Ok(Answer::Done);
    };
    if let Some(refusal) = refusal(sampling, seconds) {
        return Ok(Answer::Failed(refusal));
    }
    let until = until.min(Instant::now() + Duration::from_secs_f64(seconds));
    match request {
        Request::Measure { address, sampling, .. } => {
            Ok(work.measure(address, &sampling, until).map_or_else(Answer::Failed, Answer::Timings))
        }
        Request::Cores { cores, together, sampling, .. } => {
            let in_frame = (TIMINGS_IN_FRAME / sampling.sizes.len().max(1)).max(1);
            let mut told = Ok(());
            let mut tell_pairs = |pairs: Vec<CorePair>| {
                for part in pairs.chunks(in_frame) {
                    if told.is_ok() {
                        told = tell(&Answer::Cores(part.to_vec()));
                    }
                }
                told.is_ok()
            };
            let done = work.cores(cores, together, &sampling, until, &mut tell_pairs);
            told?;
            Ok(done.map_or_else(Answer::Failed, |()| Answer::Done))
        }
        Request::Describe | Request::End => Ok(Answer::Done),
    }
}

fn say<L: Link>(link: &mut L, frames: &mut Frames, answer: &Answer) -> Result<(), FrameError> {
    // Answers are plain data with finite numbers: they always have a form in JSON.
    let body = serde_json::to_vec(answer).map_err(std::io::Error::from)?;
    Ok(frames.write(link, &body)?)
}
