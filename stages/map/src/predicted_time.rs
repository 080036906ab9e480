//! `objective = "predicted-time"` of `map/auto`: mappings of several objectives, judged and improved by replay.
//!
//! # Algorithm
//!
//! 1. The candidates are the mappings of the input `mappings`, the linear and the round-robin mapping, and those of
//!    `map/auto` for every objective that the machine and the parameters allow. With a number of evaluations, each
//!    search has the budget of a stage with that objective alone, and so the same result; of a time limit, all of
//!    them share that of [`CANDIDATES`].
//! 2. The program is replayed under every candidate, as by `predict/time`. The fastest one wins, and of those that are
//!    equally fast but for rounding ([`SAME`]) that of the least F.
//! 3. Exchanges of ranks improve it: a batch of [`BATCH`] exchanges is replayed, and the best one is made if it
//!    shortens the run time, or, at the same run time, the mean time of the ranks. `exchanges.rs` proposes them. When
//!    no new one is left, two or three at a time are replayed.
//!
//! The batch is the same for any number of threads, so the result depends on the numbers of evaluations and replays
//! only. With `blocks`, ranks and slots are blocks and hosts, except in replays. With `borders`, mappings that break
//! them are no candidates and no exchanges.

mod exchanges;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use hopmap_islands::{Budget, TimePlan, time_limit};
use hopmap_model::{
    Context, ConvergencePoint, Error, Mapping, Paths, Prediction, Program, SystemGraph, TaskGraph, Weight,
    seed_stream,
};
use hopmap_objective::{Assignment, Metric, Objective, Problem, round_robin};
use hopmap_prediction::{Options, replay};
use hopmap_random::{Pcg64, SeedableRng};
use rayon::prelude::*;

use crate::auto::Auto;
use crate::blocks::{Contraction, block_of};
use crate::borders::{Border, Bordered};
use crate::error::ProgramError;
use crate::mapper::SearchResult;
use crate::params::{AutoParams, ProblemParams, kind};
use crate::plan::{CANDIDATES, EXCHANGES, PREDICTED_TIME};
use exchanges::Exchanges;

/// Run times that are closer, relative to each other, are equal: they are sums of many values.
const SAME: f64 = 1e-9;
/// Exchanges replayed at a time.
const BATCH: u64 = 8;
/// Operations and messages of all replays of an improvement without limit: about ten seconds of a core.
const WORK: u64 = 20_000_000;
/// Bounds of the replays of an improvement without limit.
const REPLAYS: [u64; 2] = [16, 4096];

/// Predicted run time of a mapping by the objective `predicted-time`.
pub const PREDICTED: Metric = Metric {
    name: "predicted_s",
    unit: "s",
    explanation: "Predicted run time, by the objective predicted-time.",
};
/// Replays that improved the best candidate.
pub const IMPROVING_REPLAYS: Metric = Metric {
    name: "replays",
    unit: "replays",
    explanation: "Number of replays after those of the candidates, by the objective predicted-time.",
};

/// Searches for the mapping with the shortest predicted run time.
pub(crate) struct PredictedTime<'a> {
    pub(crate) params: &'a AutoParams,
    pub(crate) program: &'a Program,
    /// Mappings that are candidates, by name.
    pub(crate) given: &'a [(String, Arc<Mapping>)],
    pub(crate) graph: &'a TaskGraph,
    pub(crate) system: &'a SystemGraph,
    /// Blocks and hosts in place of ranks and slots.
    pub(crate) contraction: Option<&'a Contraction>,
    /// Borders of ranks, or of blocks.
    pub(crate) borders: Vec<Border>,
    pub(crate) weight: Weight,
    pub(crate) options: Options,
    pub(crate) cx: &'a Context<'a>,
}

/// A mapping to be judged.
struct Candidate {
    name: String,
    slots: Vec<u32>,
}

/// A replayed mapping.
#[derive(Clone)]
struct Judged {
    slots: Vec<u32>,
    prediction: Prediction,
    /// Run time, and sum of the times of all ranks.
    seconds: [f64; 2],
    /// Cost by F.
    cost: i64,
}

impl Judged {
    fn is_faster(&self, other: &Self) -> bool {
        self.seconds < other.seconds
    }

    /// Whether the run is shorter, or as short at less cost.
    fn is_better(&self, other: &Self) -> bool {
        let (seconds, others) = (self.seconds[0], other.seconds[0]);
        let is_shorter = seconds < others * (1.0 - SAME);
        is_shorter || (seconds <= others * (1.0 + SAME) && self.cost < other.cost)
    }
}

impl PredictedTime<'_> {
    pub(crate) fn search(&self) -> Result<SearchResult, Error> {
        let [program, graph] = [self.program.ranks() as usize, self.graph.ranks()];
        if program != graph {
            return Err(ProgramError::OtherProgram { program, graph }.into());
        }
        let limit = time_limit(self.params.time_limit_s)?;
        let end = limit.and_then(|time| Instant::now().checked_add(time));
        let mut plan = TimePlan::begin(PREDICTED_TIME);
        let should_stop = || self.cx.should_stop() || end.is_some_and(|end| Instant::now() >= end);
        let problem = self.problem(&Objective::F, self.weight)?;
        // What cannot be predicted is an error before the searches.
        let linear = Candidate { name: "linear".to_owned(), slots: problem.linear() };
        let judged = self.judge(&problem, linear.slots.clone(), &should_stop)?;
        let (found, mut result) = self.candidates(&problem)?;
        plan.ended(&CANDIDATES);
        let others = found.into_par_iter().map(|candidate| {
            let judged = self.judge(&problem, candidate.slots.clone(), &should_stop)?;
            Ok::<_, Error>((candidate, judged))
        });
        let others = others.collect::<Result<Vec<_>, _>>()?;
        // The linear mapping alone is no choice: that of F is better, as a rule.
        let is_compared = others.iter().any(|(_, judged)| judged.is_some());
        let linear = Some((linear, judged)).filter(|(linear, _)| self.keeps_borders(&linear.slots));
        match self.best(linear.into_iter().chain(others)).filter(|_| is_compared) {
            Some(best) => {
                let (best, replays) = self.improve(&problem, best, &should_stop, &mut result.convergence)?;
                let metrics = [(PREDICTED, best.seconds[0]), (IMPROVING_REPLAYS, replays as f64)];
                result.metrics.extend(metrics.map(|(metric, value)| (metric.name.to_owned(), value)));
                result.slots = best.slots;
            }
            None => self.cx.log("warning: stopped before a candidate was replayed: the mapping is that of F"),
        }
        plan.ended(&EXCHANGES);
        plan.words(limit).iter().for_each(|line| self.cx.log(line));
        result.complete &= !self.cx.should_stop();
        result.slots = self.slots_of_ranks(&result.slots).into_owned();
        Ok(result)
    }

    /// What the searches map: ranks, or blocks.
    fn searched(&self) -> (&TaskGraph, &SystemGraph) {
        self.contraction.map_or((self.graph, self.system), |blocks| (&blocks.graph, &blocks.system))
    }

    fn problem(&self, objective: &Objective, weight: Weight) -> Result<Problem, Error> {
        let params = ProblemParams::from(self.params).with_objective(*objective);
        match self.contraction {
            Some(contraction) => params.problem_of_blocks(contraction, self.system, weight),
            None => params.problem(self.graph, self.system, weight),
        }
    }

    /// The slot of every rank of a mapping of what is searched.
    fn slots_of_ranks<'s>(&self, slots: &'s [u32]) -> Cow<'s, [u32]> {
        self.contraction.map_or(Cow::Borrowed(slots), |blocks| Cow::Owned(blocks.expand(slots)))
    }

    fn keeps_borders(&self, slots: &[u32]) -> bool {
        let (_, system) = self.searched();
        self.borders.iter().all(|border| border.is_kept(slots, system))
    }

    /// The mappings of the input that are possible.
    fn given(&self, problem: &Problem) -> Vec<Candidate> {
        let possible = self.given.iter().filter_map(|(name, mapping)| {
            let slots = mapping.slots();
            let here = Mapping::new(&slots, self.system, self.weight).ok();
            let is_of_this =
                here.is_some_and(|here| here.hosts == mapping.hosts) && slots.len() == self.graph.ranks();
            let slots = match self.contraction.filter(|_| is_of_this) {
                Some(blocks) => blocks.hosts_of(&slots),
                None => Some(slots).filter(|_| is_of_this),
            };
            let is_possible =
                |slots: &Vec<u32>| Assignment::new(problem, slots).is_ok() && self.keeps_borders(slots);
            let possible = slots.filter(is_possible);
            if possible.is_none() {
                self.cx.log(format_args!("candidate {name}: none, because it is not possible here"));
            }
            possible.map(|slots| Candidate { name: name.clone(), slots })
        });
        possible.collect()
    }

    /// The candidates beside the linear mapping, and the result that the mapping of F would be.
    fn candidates(&self, problem: &Problem) -> Result<(Vec<Candidate>, SearchResult), Error> {
        let round_robin = problem.in_order(&round_robin(self.searched().1));
        let mut found = self.given(problem);
        if self.keeps_borders(&round_robin) {
            found.push(Candidate { name: "round-robin".to_owned(), slots: round_robin });
        }
        let mut result: Option<SearchResult> = None;
        let mut searches = vec![("F", Objective::F, self.weight)];
        // The share of a rank is hidden in blocks and groups, which are mapped as a whole.
        if self.contraction.is_none() && self.borders.is_empty() {
            searches.push(("T", Objective::T, self.weight));
        }
        if self.weight != Weight::Bytes {
            searches.push(("F", Objective::F, Weight::Bytes));
        }
        if !self.system.links.is_empty() {
            searches.extend(
                [
                    ("hop-bytes", Objective::HOP_BYTES),
                    ("max-link-load", Objective::MAX_LINK_LOAD),
                    ("max-link-time", Objective::MAX_LINK_TIME),
                ]
                .map(|(name, objective)| (name, objective, Weight::Bytes)),
            );
        }
        let auto = self.auto(searches.len())?;
        for (name, objective, weight) in searches {
            let name = match (name, weight) {
                ("F" | "T", Weight::Bytes) => format!("{name} by bytes"),
                ("F" | "T", Weight::Messages) => format!("{name} by messages"),
                ("F" | "T", Weight::Time { .. }) => format!("{name} by time"),
                _ => name.to_owned(),
            };
            let problem = match self.problem(&objective, weight) {
                Ok(problem) => problem,
                Err(error) if result.is_none() => return Err(error),
                Err(error) => {
                    self.cx.log(format_args!("candidate {name}: none, because {error}"));
                    continue;
                }
            };
            let of_objective = self.bordered(&problem).solve(
                &auto,
                &self.borders,
                (&objective, weight),
                &self.cx.without_state(),
            )?;
            found.push(Candidate { name, slots: of_objective.slots.clone() });
            let all = result.get_or_insert_with(|| SearchResult::at_once(of_objective.slots));
            all.evaluations += of_objective.evaluations;
            all.complete &= of_objective.complete;
        }
        let result = result.unwrap_or_else(|| SearchResult::at_once(problem.linear()));
        Ok((found, result))
    }

    fn bordered<'p>(&'p self, problem: &'p Problem) -> Bordered<'p> {
        match self.contraction {
            None => Bordered::of_ranks(self.graph, self.system, problem),
            Some(contraction) => Bordered::of_blocks(contraction, problem),
        }
    }

    /// The search of one of several candidates.
    fn auto(&self, searches: usize) -> Result<Auto, Error> {
        let AutoParams { seed, evaluations, time_limit_s, islands, .. } = *self.params;
        let time_limit_s = time_limit_s.map(|limit| CANDIDATES.share * limit / searches as f64);
        Ok(Auto::with_budget(seed, Budget::new(evaluations, time_limit_s, islands)?))
    }

    /// Replays the program under a mapping; `None` if the replay was stopped.
    fn judge(
        &self,
        problem: &Problem,
        slots: Vec<u32>,
        should_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Judged>, Error> {
        let mapping = Mapping::new(&self.slots_of_ranks(&slots), self.system, self.weight)?;
        let prediction = replay(self.program, self.system, &mapping, &self.options, &should_stop)?;
        let total = prediction.ranks.iter().map(|rank| rank.finish_s).sum();
        let seconds = [prediction.seconds(), total];
        let cost = Assignment::new(problem, &slots)?.cost();
        Ok(prediction.complete.then_some(Judged { slots, prediction, seconds, cost }))
    }

    /// The best candidate, the first of equal ones. Logs the seconds of all.
    fn best(&self, candidates: impl Iterator<Item = (Candidate, Option<Judged>)>) -> Option<Judged> {
        let mut best: Option<(String, Judged)> = None;
        for (Candidate { name, .. }, judged) in candidates {
            let Some(judged) = judged else {
                self.cx.log(format_args!("candidate {name}: not predicted, for lack of time"));
                continue;
            };
            self.cx.log(format_args!("candidate {name}: predicted run time {:.6} s", judged.seconds[0]));
            if best.as_ref().is_none_or(|(_, best)| judged.is_better(best)) {
                best = Some((name, judged));
            }
        }
        let (name, best) = best?;
        let contention = match best.prediction.is_contended {
            true => "",
            false => "; without contention, because the machine has no links",
        };
        self.cx.log(format_args!("the fastest candidate is {name}{contention}"));
        Some(best)
    }

    /// Makes exchanges that shorten the run time until the budget is spent; returns the best mapping and the number of
    /// replays. What only shortens the mean time of the ranks is a step to a shorter run.
    fn improve(
        &self,
        problem: &Problem,
        mut chosen: Judged,
        should_stop: &(dyn Fn() -> bool + Sync),
        convergence: &mut Vec<ConvergencePoint>,
    ) -> Result<(Judged, u64), Error> {
        let seed = seed_stream(kind::AUTO, self.params.seed, u64::MAX);
        let mut random = Pcg64::from_seed(seed);
        let mut best = chosen.clone();
        let mut assignment = Assignment::new(problem, &best.slots)?;
        let paths = Paths::new(self.system);
        let (graph, system) = self.searched();
        let blocks = self.contraction.map(|contraction| block_of(&contraction.blocks));
        let mut exchanges = Exchanges::new(graph, system, paths.as_ref(), blocks);
        exchanges.follow(&assignment, &best.prediction);
        let point = |evaluations, judged: &Judged| ConvergencePoint {
            island: 0,
            evaluations,
            cost: judged.seconds[0],
        };
        convergence.push(point(0, &best));
        let (first, limit, mut spent) = (best.seconds[0], self.replays(), 0);
        while spent < limit && !should_stop() {
            let drawn = exchanges.draw(&assignment, BATCH.min(limit - spent), &mut random);
            if drawn.is_empty() {
                break;
            }
            spent += drawn.len() as u64;
            let batch: Vec<_> = drawn.into_iter().filter(|next| self.keeps_borders(next.slots())).collect();
            let replays =
                batch.par_iter().map(|next| self.judge(problem, next.slots().to_vec(), should_stop));
            let replays = replays.collect::<Result<Vec<_>, _>>()?;
            self.cx.progress(spent, if limit == u64::MAX { 0 } else { limit });
            let judged = batch.into_iter().zip(replays).filter_map(|(next, judged)| Some((next, judged?)));
            let judged = judged.inspect(|(_, next)| {
                if next.is_better(&chosen) {
                    chosen = next.clone();
                }
            });
            let fastest = judged.reduce(|best, next| if next.1.is_faster(&best.1) { next } else { best });
            if let Some((next, judged)) = fastest.filter(|(_, judged)| judged.is_faster(&best)) {
                assignment = next;
                if judged.seconds[0] < best.seconds[0] {
                    convergence.push(point(spent, &judged));
                }
                best = judged;
                exchanges.follow(&assignment, &best.prediction);
            }
        }
        self.cx.log(format_args!(
            "predicted run time {:.6} s, {first:.6} s before {spent} replays of exchanges",
            chosen.seconds[0]
        ));
        Ok((chosen, spent))
    }

    /// Limit of the replays of exchanges.
    fn replays(&self) -> u64 {
        let [least, most] = REPLAYS;
        let work = self.program.operations.len() as u64 + 2 * self.graph.messages();
        match (self.params.replays, self.params.time_limit_s) {
            (Some(replays), _) => replays,
            (None, Some(_)) => u64::MAX,
            (None, None) => (WORK / work.max(1)).clamp(least, most),
        }
    }
}
