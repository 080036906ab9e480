//! Probing by agents, which measure each other on request.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Context, Endpoint, NodeState, Pair, ProbePhase};

use super::calibrate::{Plan, Stream, alone_sampling, stream_sampling};
use super::ranks::groups;
use super::sampling::{Record, Sampling, Timing};
use super::tournament::{Part, Steps, parts, phases};
use crate::params::ProbeParams;

/// Failed meetings after which a host is given up, if they are more than half of its meetings.
const MOST_FAILURES: u32 = 3;
/// Number of hosts that measure their cores concurrently.
const HOSTS_AT_ONCE: usize = 64;

/// Agents by host.
pub(crate) trait Agents: Sync {
    /// Measures from one host to another.
    fn measure(&self, source: usize, destination: usize, sampling: &Sampling) -> Result<Vec<Timing>, Fault>;

    /// Checks whether a host still answers.
    fn answers(&self, host: usize) -> Result<(), Fault>;

    /// Measures between the cores of a host in a phase; pairs are list indexes.
    fn inside(
        &self,
        host: usize,
        cores: &[u32],
        phase: ProbePhase,
        sampling: &Sampling,
    ) -> Result<Vec<(Pair, Vec<Timing>)>, Fault>;
}

/// Why a measurement is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The two hosts cannot reach each other.
    Connection(String),
    /// The measuring host no longer answers, or sends invalid data.
    Host(String),
}

/// A host to measure.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Its cores; empty if it is down.
    pub(crate) cores: Vec<u32>,
}

/// The state of a probing.
struct Probing<'a> {
    hosts: &'a [Host],
    agents: &'a dyn Agents,
    cx: &'a Context<'a>,
    /// First endpoint of each host.
    first: Vec<u32>,
    record: Record,
    /// Meetings and failed meetings by host.
    met: Vec<(u32, u32)>,
    /// Why pairs of hosts are missing.
    failed: BTreeMap<Pair, String>,
}

/// Measures between hosts, and inside each if requested; `false` if it was stopped early.
pub(crate) fn probe_hosts(
    params: &ProbeParams,
    hosts: &[Host],
    agents: &dyn Agents,
    cx: &Context<'_>,
) -> (Record, bool) {
    let mut probing = Probing::new(params, hosts, agents, cx);
    let up = |endpoint: &u32| probing.record.is_up(*endpoint);
    let group: Vec<u32> = groups(probing.record.endpoints()).0.concat().into_iter().filter(up).collect();
    let all = parts(params, &[group]);
    let mut steps = Steps::new(&all, cx);
    let mut complete = probing.cores(params);
    for part in &all {
        for pairs in part.steps() {
            if cx.should_stop() {
                complete = false;
                break;
            }
            probing.step(part, &pairs);
            steps.done();
        }
    }
    complete = complete && (!params.calibrate || probing.calibrate(params));
    (probing.finish(), complete)
}

impl<'a> Probing<'a> {
    fn new(params: &ProbeParams, hosts: &'a [Host], agents: &'a dyn Agents, cx: &'a Context<'a>) -> Self {
        let (mut endpoints, mut first) = (Vec::new(), Vec::new());
        for host in hosts {
            first.push(endpoints.len() as u32);
            let width = if params.measure_intra_node { host.cores.len() } else { 1 };
            let state = if host.cores.is_empty() { NodeState::Down } else { NodeState::Up };
            let cores =
                host.cores.iter().copied().chain(host.cores.is_empty().then_some(0)).take(width.max(1));
            endpoints.extend(cores.map(|core| Endpoint { host: host.name.clone(), core, state }));
        }
        let (met, failed) = (vec![(0, 0); hosts.len()], BTreeMap::new());
        Self { hosts, agents, cx, first, record: Record::new(endpoints), met, failed }
    }

    /// The host of an endpoint.
    fn host(&self, endpoint: u32) -> usize {
        self.first.partition_point(|&first| first <= endpoint) - 1
    }

    /// Measures the cores of many hosts concurrently; `false` if it was stopped early.
    fn cores(&mut self, params: &ProbeParams) -> bool {
        let up: Vec<usize> = (0..self.hosts.len()).filter(|&host| self.hosts[host].cores.len() > 1).collect();
        if !params.measure_intra_node {
            return true;
        }
        for (phase, sampling) in phases(params) {
            for some in up.chunks(HOSTS_AT_ONCE) {
                if self.cx.should_stop() {
                    return false;
                }
                let inside = |&host: &usize| {
                    (host, self.agents.inside(host, &self.hosts[host].cores, phase, &sampling))
                };
                for (host, answer) in side_by_side(some, inside) {
                    self.take_inside(host, phase, answer);
                }
            }
        }
        true
    }

    fn take_inside(
        &mut self,
        host: usize,
        phase: ProbePhase,
        answer: Result<Vec<(Pair, Vec<Timing>)>, Fault>,
    ) {
        let (first, cores) = (self.first[host], self.hosts[host].cores.len() as u32);
        let taken = answer.and_then(|all| {
            all.iter().try_for_each(|((a, b), timings)| match a != b && *a.max(b) < cores {
                true => self.record.add((first + a, first + b), phase, timings).map_err(Fault::Host),
                false => Err(Fault::Host(format!("cores {a} and {b} of {cores}"))),
            })
        });
        match taken {
            Ok(()) => {}
            Err(Fault::Connection(problem)) => {
                self.cx.log(format!("{}: its cores are not measured: {problem}", self.hosts[host].name));
            }
            Err(Fault::Host(problem)) => self.lose(host, &problem),
        }
    }

    /// Measures all pairs of a step, first in one direction, then in the other.
    fn step(&mut self, part: &Part, pairs: &[Pair]) {
        let is_up = |&(a, b): &Pair| self.record.is_up(a) && self.record.is_up(b);
        let pairs: Vec<Pair> = pairs.iter().copied().filter(is_up).collect();
        let both = |&(a, b): &Pair| {
            let (one, other) = (self.host(a), self.host(b));
            let there = self.agents.measure(one, other, &part.sampling);
            let back = match &there {
                Ok(_) => self.agents.measure(other, one, &part.sampling),
                // A lost host must not delay the next rounds.
                Err(Fault::Connection(problem)) => {
                    self.agents.answers(other).and_then(|()| Err(Fault::Connection(problem.clone())))
                }
                Err(fault) => Err(fault.clone()),
            };
            ((a, b), there, back)
        };
        for ((a, b), there, back) in side_by_side(&pairs, both) {
            self.take((a, b), part.phase, there);
            self.take((b, a), part.phase, back);
        }
    }

    /// Measures pairs alone and groups that send at once; `false` if it was stopped early.
    fn calibrate(&mut self, params: &ProbeParams) -> bool {
        let plan = Plan::new(&self.record.clone().finish(), params);
        let sampling = alone_sampling(params);
        for &(source, destination) in &plan.alone {
            if self.cx.should_stop() {
                return false;
            }
            let is_between = self.host(source) != self.host(destination);
            if is_between && self.record.is_up(source) && self.record.is_up(destination) {
                let timings = self.agents.measure(self.host(source), self.host(destination), &sampling);
                self.take((source, destination), ProbePhase::Alone, timings);
            }
        }
        for (step, streams) in (0..).zip(&plan.steps) {
            if self.cx.should_stop() {
                return false;
            }
            let measure = |stream: &Stream| {
                let ends = (self.host(stream.source), self.host(stream.destination));
                self.agents.measure(ends.0, ends.1, &stream_sampling(params, stream))
            };
            let rates = side_by_side(streams, measure);
            for (&Stream { source, destination, .. }, timings) in streams.iter().zip(rates) {
                let added = timings.and_then(|timings| {
                    self.record.add_stream((source, destination), step, &timings).map_err(Fault::Host)
                });
                if let Err(Fault::Connection(problem) | Fault::Host(problem)) = added {
                    let [one, other] = [source, destination].map(|end| &self.hosts[self.host(end)].name);
                    self.cx.log(format!("the stream from {one} to {other} is not measured: {problem}"));
                }
            }
        }
        true
    }

    fn take(&mut self, (a, b): Pair, phase: ProbePhase, answer: Result<Vec<Timing>, Fault>) {
        let (one, other) = (self.host(a), self.host(b));
        // The partner may have been lost in the same step.
        if !self.record.is_up(a) || !self.record.is_up(b) {
            return;
        }
        let taken = answer.and_then(|timings| self.record.add((a, b), phase, &timings).map_err(Fault::Host));
        for host in [one, other] {
            self.met[host].0 += 1;
            self.met[host].1 += u32::from(taken.is_err());
        }
        match taken {
            Ok(()) => {}
            Err(Fault::Host(problem)) => self.lose(one, &problem),
            Err(Fault::Connection(problem)) => {
                self.failed.insert((a.min(b), a.max(b)), problem);
                self.give_up(one, other);
            }
        }
    }

    /// Gives up a host that failed too often, so that it does not delay every round.
    fn give_up(&mut self, one: usize, other: usize) {
        for host in [one, other] {
            let (met, failed) = self.met[host];
            // Both directions of a pair count.
            if failed >= 2 * MOST_FAILURES && 2 * failed > met {
                self.lose(host, "it reaches too few other hosts");
            }
        }
    }

    fn lose(&mut self, host: usize, problem: &str) {
        let name = &self.hosts[host].name;
        self.cx.log(format!("{name} is excluded: {problem}"));
        self.record.lose(name);
    }

    /// Marks a host that reached no other as down, if there are others. Logs missing pairs.
    fn finish(mut self) -> Record {
        let up = |probing: &Self, host: usize| probing.record.is_up(probing.first[host]);
        let all_up = (0..self.hosts.len()).filter(|&host| up(&self, host)).count();
        for host in 0..self.hosts.len() {
            let (met, failed) = self.met[host];
            if all_up > 1 && up(&self, host) && met > 0 && met == failed {
                self.lose(host, "it reached no other host");
            }
        }
        let missing = self.failed.iter().filter(|((a, b), _)| self.record.is_up(*a) && self.record.is_up(*b));
        for ((a, b), problem) in missing {
            let [one, other] = [a, b].map(|&endpoint| &self.hosts[self.host(endpoint)].name);
            self.cx.log(format!("{one} and {other} were not measured: {problem}"));
        }
        self.record
    }
}

/// Runs a function on all items, each in its own thread, since they mostly wait.
pub(crate) fn side_by_side<I: Sync, O: Send>(items: &[I], work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let done: Mutex<Vec<(usize, O)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for (index, item) in items.iter().enumerate() {
            let (done, work) = (&done, &work);
            scope.spawn(move || {
                let result = work(item);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
