//! What is measured once the levels are known, for predictions.
//!
//! Two pairs of every level, and one within a host, are measured alone: where others send too, times of longer
//! messages are not those of the network. Then all hosts of a group send to as many hosts of a sibling group at once: one
//! stream rarely fills a link that many hosts share. Sibling groups meet in at most two rounds of a tournament
//! and in both directions, so the number of steps depends on the levels and not on the hosts.

use hopmap_model::{CostModel, Levels, Measurements, NodeState, Pair};

use super::sampling::Sampling;
use super::tournament;
use crate::levels::levels_of_measurements;
use crate::params::ProbeParams;

/// Rounds in which sibling groups meet.
const ROUNDS: u32 = 2;
/// Duration of a stream, in time limits of a size.
const STREAM_LIMITS: f64 = 10.0;
/// Messages of a stream in its duration, at an equal share of the bandwidth of a pair.
const STREAM_MESSAGES: f64 = 128.0;
/// Messages after which a stream looks at its time, so that all streams of a step end together.
const STREAM_BATCH: u32 = 8;
/// Largest message of a stream, in bytes.
const LARGEST: f64 = (4_u64 << 20) as f64;

/// The measurements to make.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plan {
    /// Source and destination of the pairs to measure alone, innermost level first.
    pub(crate) alone: Vec<Pair>,
    /// Streams that run at once, step by step.
    pub(crate) steps: Vec<Vec<Stream>>,
}

/// Messages from one endpoint to another as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// Bytes of a message.
    pub(crate) bytes: u64,
}

impl Plan {
    /// The plan for a machine that was measured pair by pair; empty if it has no levels.
    pub(crate) fn new(measured: &Measurements, params: &ProbeParams) -> Self {
        let Ok(found) = levels_of_measurements(measured, &params.levels()) else { return Self::default() };
        let CostModel::Levels(levels) = &found.system.cost else { return Self::default() };
        let hosts = hosts(measured);
        let steps = streams(measured, levels, &hosts, params.size_time_limit_s);
        Self { alone: representatives(measured, levels, &hosts), steps }
    }
}

/// How a pair alone is measured.
pub(crate) fn alone_sampling(params: &ProbeParams) -> Sampling {
    let mut sizes = params.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    tournament::sampling(params, sizes)
}

/// How a stream is measured: for a fixed time, so that all streams of a step end together.
pub(crate) fn stream_sampling(params: &ProbeParams, stream: &Stream) -> Sampling {
    Sampling {
        sizes: vec![stream.bytes],
        warm_up: 1,
        warm_up_bytes: 0,
        batch: STREAM_BATCH,
        most: 1_000_000,
        calm_batches: u32::MAX,
        tolerance: 0.0,
        seconds: STREAM_LIMITS * params.size_time_limit_s,
    }
}

/// First endpoint and slot of every host that answered; slots are the endpoints that answered.
#[derive(Debug, Clone, Copy)]
struct Host {
    endpoint: u32,
    slot: u32,
}

fn hosts(measured: &Measurements) -> Vec<Host> {
    let (mut hosts, mut slot) = (Vec::new(), 0);
    for (_, first, count) in measured.hosts() {
        let is_up = |endpoint: &u32| measured.endpoints[*endpoint as usize].state == NodeState::Up;
        let up = (first..first + count).filter(is_up);
        if let Some(endpoint) = up.clone().next() {
            hosts.push(Host { endpoint, slot });
        }
        slot += up.count() as u32;
    }
    hosts
}

/// Two endpoints of a host, then the first and the last pair of hosts of every level, the last one from the
/// second to the first.
fn representatives(measured: &Measurements, levels: &Levels, hosts: &[Host]) -> Vec<Pair> {
    let is_up = |&endpoint: &u32| measured.endpoints[endpoint as usize].state == NodeState::Up;
    let inside = measured.hosts().find_map(|(_, first, count)| {
        let mut up = (first..first + count).filter(is_up);
        Some((up.next()?, up.next()?))
    });
    let mut found: Vec<Option<(Pair, Pair)>> = vec![None; levels.costs.len()];
    for (index, one) in hosts.iter().enumerate() {
        for other in &hosts[index + 1..] {
            let pair = (one.endpoint, other.endpoint);
            let of_level = &mut found[levels.meeting_level(one.slot, other.slot)];
            *of_level = Some((of_level.map_or(pair, |(first, _)| first), pair));
        }
    }
    let both = |(first, last): (Pair, Pair)| [first, (last.1, last.0)];
    inside.into_iter().chain(found.into_iter().flatten().flat_map(both)).collect()
}

/// The steps of all levels, innermost first.
fn streams(measured: &Measurements, levels: &Levels, hosts: &[Host], limit_s: f64) -> Vec<Vec<Stream>> {
    let bandwidths = measured.bandwidths();
    let group = |level: usize, host: &Host| levels.groups[level][host.slot as usize];
    let stream = |streams: usize, source: &Host, destination: &Host| {
        let (source, destination) = (source.endpoint, destination.endpoint);
        let share = bandwidths.get(&(source, destination))? / streams as f64;
        let bytes = share * limit_s * STREAM_LIMITS / STREAM_MESSAGES;
        Some(Stream { source, destination, bytes: bytes.clamp(1.0, LARGEST) as u64 })
    };
    let mut steps = Vec::new();
    for level in 0..levels.costs.len().saturating_sub(1) {
        // Hosts are grouped by parent, then by group.
        let mut parents: Vec<Vec<Vec<&Host>>> = Vec::new();
        let mut sorted: Vec<&Host> = hosts.iter().collect();
        sorted.sort_by_key(|host| (group(level + 1, host), group(level, host)));
        for parent in sorted.chunk_by(|a, b| group(level + 1, a) == group(level + 1, b)) {
            let groups = parent.chunk_by(|a, b| group(level, a) == group(level, b)).map(<[_]>::to_vec);
            parents.push(groups.collect());
        }
        for round in 0..ROUNDS {
            let mut there = Vec::new();
            let mut back = Vec::new();
            for groups in &parents {
                let players = groups.len() as u32;
                if round >= tournament::rounds(players) {
                    continue;
                }
                for (a, b) in tournament::pairs(players, round) {
                    let (a, b) = (&groups[a as usize], &groups[b as usize]);
                    let width = a.len().min(b.len());
                    if width > 1 {
                        there.extend(a.iter().zip(b).filter_map(|(a, b)| stream(width, a, b)));
                        back.extend(a.iter().zip(b).filter_map(|(a, b)| stream(width, b, a)));
                    }
                }
            }
            steps.extend([there, back].into_iter().filter(|step| !step.is_empty()));
        }
    }
    steps
}
