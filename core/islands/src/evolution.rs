//! Island searches that exchange solutions after every epoch (migration).

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use hopmap_model::{Context, Error};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::budget::{Budget, Candidate, Counts, Island, SearchResult, join, row};
use crate::meter::{Meter, Progress, share};
use crate::spread::{IslandState, Spread, State, load, parse, written};

/// Time before the first checkpoint of the search state; the interval then doubles up to a maximum.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const LONGEST_INTERVAL: Duration = Duration::from_secs(8);
/// Minimum number of time slices of a time limit when no state is saved.
const TURNS: u32 = 16;

/// A search whose islands exchange solutions after every epoch.
///
/// An island holds all state that its future depends on, including its random number generator: an island
/// that is saved after an epoch and loaded again continues identically.
pub trait Evolution: Sync {
    /// State of an island.
    type Island: Clone + Serialize + DeserializeOwned + Send + Sync;
    /// Candidate solution.
    type Solution: Serialize + DeserializeOwned + Clone + Send + Sync;

    /// Fraction of a time limit that is reserved for [`finish`](Self::finish).
    const FINISH_SHARE: f64 = 0.0;

    /// Creates an island before the first epoch.
    fn begin(&self, island: u32, meter: &mut Meter<'_>) -> Result<Self::Island, Error>;

    /// Runs one epoch on an island within the budget of the meter, which records improvements
    /// ([`Meter::record`]); `false` if the island has converged.
    fn advance(&self, island: &mut Self::Island, epoch: u64, meter: &mut Meter<'_>) -> Result<bool, Error>;

    /// The best solution that an island has found so far.
    fn best(&self, island: &Self::Island) -> Candidate<Self::Solution>;

    /// Improves the result after the search, for example by local search; [`Meter::begin_descent`] grants the
    /// evaluations for it.
    fn finish(&self, island: &mut Self::Island, meter: &mut Meter<'_>) -> Result<(), Error> {
        let _ = (island, meter);
        Ok(())
    }

    /// Which islands receive the solutions that an island sends after an epoch.
    fn exchange(&self, epoch: u64) -> Exchange {
        let _ = epoch;
        Exchange::Nobody
    }

    /// Solutions that an island sends after an epoch.
    fn send(&self, island: &Self::Island, epoch: u64) -> Vec<Candidate<Self::Solution>> {
        let _ = epoch;
        vec![self.best(island)]
    }

    /// Event counts of an island for the search statistics.
    fn counts(&self, island: &Self::Island) -> Counts {
        let _ = island;
        Counts::new()
    }

    /// Receives solutions of other islands.
    fn receive(&self, island: &mut Self::Island, epoch: u64, heard: Vec<Candidate<Self::Solution>>) {
        let _ = (island, epoch, heard);
    }
}

/// An island of this process and its budget.
struct LocalIsland<'m, I> {
    state: IslandState<I>,
    meter: Meter<'m>,
    /// The state before the epoch that was interrupted.
    before: Option<IslandState<I>>,
}

impl<I> LocalIsland<'_, I> {
    /// Whether the island has neither converged nor exhausted its budget.
    fn is_open(&self) -> bool {
        !self.state.is_finished && !self.meter.is_out()
    }
}

impl Budget {
    /// Runs a search until every island has converged or spent its budget, `default` evaluations without a
    /// limit. If the context has a state file, the state is saved periodically and an interrupted search
    /// resumes from it.
    pub fn evolve<E: Evolution>(
        &self,
        evolution: &E,
        default: u64,
        cx: &Context<'_>,
    ) -> Result<SearchResult<E::Solution>, Error> {
        let spread = Spread::new(self.islands(), cx.communicator());
        let evaluations = self.evaluations(default);
        let progress = Progress::new(evaluations.checked_mul(spread.own().len() as u64));
        let state = resume::<E::Island>(&spread, self.islands(), cx)?;
        let elapsed = Duration::try_from_secs_f64(state.as_ref().map_or(0.0, |state| state.seconds));
        let elapsed = elapsed.unwrap_or_default();
        let begin = Instant::now();
        let left = self.time().map(|time| time.saturating_sub(elapsed));
        let after = |share: f64| left.and_then(|left| begin.checked_add(left.mul_f64(share)));
        let deadlines = [after(1.0 - E::FINISH_SHARE), after(1.0)];
        let meter = |spent| Meter::new(evaluations, deadlines, *cx, &progress).after(spent);
        let mut own = match state {
            Some(state) => {
                let range = spread.own();
                let own = state.islands.into_iter().skip(range.start as usize).take(range.len());
                own.map(|state| LocalIsland { meter: meter(state.evaluations), state, before: None })
                    .collect()
            }
            None => begin_all(evolution, spread.own(), cx, meter)?,
        };
        // An island whose initialization was interrupted cannot be resumed identically.
        let spoiled = own.iter().any(|own| own.meter.interrupted());
        let (mut saved, mut interval) = (Instant::now(), FIRST_INTERVAL);
        loop {
            let pause = match cx.state() {
                Some(_) => Some(saved + interval),
                // Islands on one thread alternate often, so that each can soon estimate how many evaluations
                // it will get.
                None => match left {
                    Some(left) => Some(Instant::now() + (left / TURNS).min(LONGEST_INTERVAL)),
                    None => spread.is_shared().then(|| Instant::now() + LONGEST_INTERVAL),
                },
            };
            advance(evolution, &mut own, deadlines[0].into_iter().chain(pause).min(), cx)?;
            if let Some(file) = cx.state() {
                let interrupted = own.iter().any(|own| own.meter.interrupted());
                let all = spread.gather(vec![(interrupted, spoiled)])?;
                if all.iter().any(|all| all.0) && !all.iter().any(|all| all.1) {
                    save(&spread, elapsed + begin.elapsed(), &own, file, cx);
                }
            }
            if !meet(evolution, &spread, &mut own)? {
                break;
            }
            if let Some(file) = cx.state() {
                let due = saved.elapsed() >= interval;
                if spread.gather(vec![due])?.first() == Some(&true) {
                    (saved, interval) = (Instant::now(), LONGEST_INTERVAL.min(2 * interval));
                    save(&spread, elapsed + begin.elapsed(), &own, file, cx);
                }
            }
        }
        take_turns(&mut own, cx, |LocalIsland { state, meter, .. }, turns| {
            meter.leave_turns(turns);
            state.recording(meter, |state, meter| evolution.finish(&mut state.island, meter))?;
            state.note(evolution.best(&state.island).cost, meter.spent());
            Ok(())
        })?;
        let islands = own.into_iter().map(|own| Island {
            best: evolution.best(&own.state.island),
            evaluations: own.meter.spent(),
            interrupted: own.meter.interrupted(),
            counts: evolution.counts(&own.state.island),
            convergence: own.state.convergence.into_points(),
        });
        join(&spread, islands.collect())
    }
}

/// Initializes all islands of this process.
fn begin_all<'m, E: Evolution>(
    evolution: &E,
    islands: Range<u32>,
    cx: &Context<'_>,
    meter: impl Fn(u64) -> Meter<'m> + Sync,
) -> Result<Vec<LocalIsland<'m, E::Island>>, Error> {
    let islands: Vec<u32> = islands.collect();
    let begin = |&island: &u32| {
        let mut meter = meter(0);
        let island = evolution.begin(island, &mut meter)?;
        meter.record(evolution.best(&island).cost);
        let convergence = std::mem::take(&mut meter.curve);
        let state = IslandState {
            island,
            epoch: 0,
            waits: false,
            evaluations: meter.spent(),
            is_finished: false,
            convergence,
        };
        Ok(LocalIsland { state, meter, before: None })
    };
    let rows = islands.par_chunks(row(islands.len(), cx));
    let rows = rows.map(|row| row.iter().map(begin).collect::<Result<Vec<_>, Error>>());
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Advances every island of this process to its next exchange, unless a checkpoint is due or another island
/// on the same thread has its turn. Islands synchronize at exchanges and checkpoints only.
fn advance<E: Evolution>(
    evolution: &E,
    own: &mut [LocalIsland<'_, E::Island>],
    end: Option<Instant>,
    cx: &Context<'_>,
) -> Result<(), Error> {
    take_turns(own, cx, |own, turns| {
        let now = Instant::now();
        let end = end.map(|end| now + share(end.saturating_duration_since(now), turns));
        own.advance(evolution, end, cx)
    })
}

/// Runs every island of this process once; passes the number of islands left on its thread, including the
/// current one.
fn take_turns<'m, I: Send>(
    own: &mut [LocalIsland<'m, I>],
    cx: &Context<'_>,
    turn: impl Fn(&mut LocalIsland<'m, I>, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let in_row = row(own.len(), cx);
    own.par_chunks_mut(in_row).try_for_each(|row| {
        let turns = (1..=row.len()).rev();
        row.iter_mut().zip(turns).try_for_each(|(own, turns)| turn(own, turns))
    })
}

impl<I: Clone> LocalIsland<'_, I> {
    /// Advances to the next exchange or to the end of the time slice, by at least one epoch.
    fn advance<E: Evolution<Island = I>>(
        &mut self,
        evolution: &E,
        end: Option<Instant>,
        cx: &Context<'_>,
    ) -> Result<(), Error> {
        while self.is_open() && !self.state.waits {
            let Self { state, meter, before } = &mut *self;
            *before = cx.state().map(|_| state.clone());
            let goes_on = state
                .recording(meter, |state, meter| evolution.advance(&mut state.island, state.epoch, meter));
            state.is_finished = !goes_on?;
            state.note(evolution.best(&state.island).cost, meter.spent());
            state.waits = evolution.exchange(state.epoch) != Exchange::Nobody;
            state.epoch += 1;
            if !meter.interrupted() {
                *before = None;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        Ok(())
    }
}

/// Performs the exchange if every active island has reached it; `false` if no island can continue.
fn meet<E: Evolution>(
    evolution: &E,
    spread: &Spread<'_>,
    own: &mut [LocalIsland<'_, E::Island>],
) -> Result<bool, Error> {
    // Islands that stopped at a deadline or an interrupt stop all others, which must not wait for them.
    let open = own.iter().any(LocalIsland::is_open);
    let under_way = own.iter().any(|own| own.is_open() && !own.state.waits);
    let stopped = own.iter().any(|own| own.meter.was_stopped());
    let waits = own.iter().filter(|own| own.state.waits).map(|own| own.state.epoch - 1).max();
    let all = spread.gather(vec![(open, under_way, stopped, waits)])?;
    let stopped = all.iter().any(|&(.., stopped, _)| stopped);
    if let Some(epoch) = all.iter().filter_map(|&(.., waits)| waits).max()
        && (stopped || !all.iter().any(|&(_, under_way, ..)| under_way))
    {
        let sent = own.iter().map(|own| evolution.send(&own.state.island, epoch)).collect();
        let exchange = evolution.exchange(epoch);
        for (LocalIsland { state, meter, .. }, heard) in own.iter_mut().zip(deliver(exchange, spread, sent)?)
        {
            evolution.receive(&mut state.island, epoch, heard);
            state.note(evolution.best(&state.island).cost, meter.spent());
            state.waits = false;
        }
    }
    Ok(!stopped && all.iter().any(|&(open, ..)| open))
}

impl<I> IslandState<I> {
    /// Searches, and adds the improvements that the meter records to the curve of the island.
    fn recording<R>(
        &mut self,
        meter: &mut Meter<'_>,
        search: impl FnOnce(&mut Self, &mut Meter<'_>) -> R,
    ) -> R {
        meter.curve = std::mem::take(&mut self.convergence);
        let found = search(self, meter);
        self.convergence = std::mem::take(&mut meter.curve);
        found
    }

    /// Records the best cost after `evaluations`.
    fn note(&mut self, cost: i64, evaluations: u64) {
        self.evaluations = evaluations;
        self.convergence.record(evaluations, cost);
    }
}

/// Loads the state of an interrupted run; the first process reads the file for all.
fn resume<I: DeserializeOwned>(
    spread: &Spread<'_>,
    islands: u32,
    cx: &Context<'_>,
) -> Result<Option<State<IslandState<I>>>, Error> {
    let Some(file) = cx.state() else { return Ok(None) };
    let own = if spread.is_first() { load(file) } else { None };
    let Some(text) = spread.gather(vec![own])?.into_iter().flatten().next() else { return Ok(None) };
    let state = parse(&text, islands);
    match &state {
        Some(state) => {
            let epoch = state.islands.iter().map(|island| island.epoch).max().unwrap_or(0);
            cx.log(format!("resumes an interrupted search after epoch {epoch}"));
        }
        None => cx.log("cannot read the state of the interrupted search; starting over"),
    }
    Ok(state)
}

/// Saves the state of all islands; an interrupted island is saved as it was before its epoch. The first
/// process writes the file. A search goes on without a state that cannot be written, or is too large to
/// gather.
fn save<I: Serialize>(
    spread: &Spread<'_>,
    elapsed: Duration,
    own: &[LocalIsland<'_, I>],
    file: &Path,
    cx: &Context<'_>,
) {
    let islands = own.iter().map(|own| written(own.before.as_ref().unwrap_or(&own.state)));
    let saved = islands.collect::<Result<Vec<_>, _>>().map_err(Error::from);
    let saved = saved.and_then(|islands| {
        let islands = spread.gather(islands)?;
        match spread.is_first() {
            true => State { seconds: elapsed.as_secs_f64(), islands }.save(file),
            false => Ok(()),
        }
    });
    if let Err(error) = saved {
        cx.log(format!("cannot save the state of the search, which goes on: {error}"));
    }
}

/// Which islands receive the solutions that an island sends after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// No exchange.
    Nobody,
    /// The next island of the ring.
    Ring,
    /// All islands receive the best solution of all; ties go to the lowest island.
    Best,
    /// All islands receive all solutions, ordered by island.
    Everybody,
}

/// The solutions that each island of this process receives; `sent` holds those that each of them sends.
fn deliver<S>(
    exchange: Exchange,
    spread: &Spread<'_>,
    sent: Vec<Vec<Candidate<S>>>,
) -> Result<Vec<Vec<Candidate<S>>>, Error>
where
    S: Clone + Serialize + DeserializeOwned,
{
    let islands = sent.len();
    match exchange {
        Exchange::Nobody => Ok(sent.into_iter().map(|_| Vec::new()).collect()),
        Exchange::Ring => spread.rotate(sent),
        Exchange::Best => {
            let best = sent.into_iter().flatten().min_by_key(|candidate| candidate.cost);
            let best =
                spread.gather(vec![best])?.into_iter().flatten().min_by_key(|candidate| candidate.cost);
            Ok(vec![best.into_iter().collect(); islands])
        }
        Exchange::Everybody => {
            let all: Vec<_> = spread.gather(sent)?.into_iter().flatten().collect();
            Ok(vec![all; islands])
        }
    }
}
