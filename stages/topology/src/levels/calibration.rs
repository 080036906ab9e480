//! Capacities of links and costs of messages, from pairs that were measured alone and groups that sent at once.
//!
//! Every measured rate is a lower bound of the capacity of all links on its route, and so are the bytes of streams that
//! ran at once over the time until the last one ended: the capacity of a link is the largest bound. A group whose uplink is wider than the links
//! of its hosts together fills these, and the bound of the uplink is their sum, which no traffic exceeds.
//!
//! A message of D bytes takes send(D) + a · latency + D / (b · bandwidth) + recv(D), with the latency and the
//! bandwidth of its route. Send and receive are measured; a and b by size are fitted to the pairs alone, those of
//! eager messages and those of larger ones, which wait for their receiver, apart. Larger messages have no
//! overheads: these are part of a.

use hopmap_model::{
    CalibratedCost, Call, CostName, Fit, Link, Measurements, NodeKind, Pair, Paths, ProbePhase, Sample,
    StreamRate, SystemGraph,
};
use hopmap_statistics::lower_median;

use crate::fit::{Piece, Point, fits, pieces_of};

/// Links at the same height whose bounds are at least this part of the largest one have the same capacity.
const EQUAL: f64 = 0.8;
/// Smallest factor of a latency.
const LEAST_FACTOR: f64 = 1e-3;

/// Replaces the rates of the links, and sets the calibration, if pairs were measured alone.
pub(super) fn calibrate(system: &mut SystemGraph, measured: &Measurements) {
    if measured.samples.iter().all(|sample| sample.phase != ProbePhase::Alone) || system.links.is_empty() {
        return;
    }
    let own = if measured.fits.is_empty() { fits(&measured.samples) } else { Vec::new() };
    let fits = if measured.fits.is_empty() { &own } else { &measured.fits };
    let calls = Calls::new(measured);
    let both_ends = calls.seconds(Call::Send, 1) + calls.seconds(Call::Recv, 1);
    for index in 0..system.links.len() {
        let link = system.links[index];
        let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
        if is_host(link.source) || is_host(link.destination) {
            system.links[index].latency_s =
                link.latency_s.map(|latency| (latency - both_ends / 2.0).max(0.0));
        }
    }
    let routes = Routes::new(system, measured);
    let capacities = capacities(system, &routes, measured);
    for (link, capacity) in system.links.iter_mut().zip(capacities) {
        link.bandwidth_bytes_per_s = capacity.or(link.bandwidth_bytes_per_s);
    }
    let mut calibration = calls.costs();
    calibration.extend(factors(system, &routes, measured, &calls));
    let row = |cost, value| CalibratedCost { cost, above_bytes: 0, value, per_byte: 0.0 };
    calibration.extend(measured.eager_limit.map(|bytes| row(CostName::EagerLimit, bytes as f64)));
    let (latency, bandwidth) = memory(measured, fits);
    let latency = latency.map(|latency| (latency - both_ends).max(0.0));
    calibration.extend(latency.map(|latency| row(CostName::MemoryLatency, latency)));
    calibration.extend(bandwidth.map(|bandwidth| row(CostName::MemoryBandwidth, bandwidth)));
    system.calibration = calibration;
}

/// The links between endpoints of different hosts.
struct Routes {
    /// By source, then by destination host.
    links: Vec<Vec<u32>>,
    hosts: usize,
    host_of: Vec<usize>,
}

impl Routes {
    /// Hosts are the first nodes, in the order of the endpoints.
    fn new(system: &SystemGraph, measured: &Measurements) -> Self {
        let mut host_of = Vec::new();
        for (host, (_, _, count)) in measured.hosts().enumerate() {
            host_of.resize(host_of.len() + count as usize, host);
        }
        let hosts = measured.hosts().count();
        let paths = Paths::new(system);
        let path = |from: usize, to: usize| {
            let path = paths.as_ref().and_then(|paths| paths.path(from as u32, to as u32));
            path.map_or_else(Vec::new, |path| path.into_iter().collect())
        };
        let links = (0..hosts * hosts).map(|pair| match (pair / hosts, pair % hosts) {
            (from, to) if from == to => Vec::new(),
            (from, to) => path(from, to),
        });
        Self { links: links.collect(), hosts, host_of }
    }

    fn between(&self, source: u32, destination: u32) -> &[u32] {
        let [from, to] = [source, destination].map(|endpoint| self.host_of[endpoint as usize]);
        &self.links[from * self.hosts + to]
    }
}

/// The capacity of every link in bytes per second, as far as known.
fn capacities(system: &SystemGraph, routes: &Routes, measured: &Measurements) -> Vec<Option<f64>> {
    let mut bounds = vec![0.0_f64; system.links.len()];
    for (source, destination, rate) in rates_of_pairs(measured) {
        for &link in routes.between(source, destination) {
            bounds[link as usize] = bounds[link as usize].max(rate);
        }
    }
    for step in measured.streams.chunk_by(|a, b| a.step == b.step) {
        let rates = rates_of_step(step, routes, system.links.len());
        bounds.iter_mut().zip(rates).for_each(|(bound, rate)| *bound = bound.max(rate));
    }
    let heights = heights(system);
    let mut order: Vec<usize> = (0..bounds.len()).filter(|&link| bounds[link] > 0.0).collect();
    order.sort_by_key(|&link| heights[link]);
    let mut capacities = vec![None; bounds.len()];
    for level in order.chunk_by(|&a, &b| heights[a] == heights[b]) {
        let largest = level.iter().map(|&link| bounds[link]).fold(0.0, f64::max);
        let is_equal = |link: usize| bounds[link] >= EQUAL * largest;
        let median =
            lower_median(level.iter().filter(|&&link| is_equal(link)).map(|&link| bounds[link]).collect());
        for &link in level {
            capacities[link] = median.filter(|_| is_equal(link)).or(Some(bounds[link]));
        }
    }
    capacities
}

/// What the streams of a step sent over every link, by the time until the last one ended: a stream that ends late has the
/// links for itself in the end, so that the sum of all rates may exceed the capacity.
fn rates_of_step(step: &[StreamRate], routes: &Routes, links: usize) -> Vec<f64> {
    let mut sent = vec![(0.0, f64::MIN_POSITIVE); links];
    for stream in step {
        for &link in routes.between(stream.source, stream.destination) {
            let (bytes, seconds) = &mut sent[link as usize];
            *bytes += stream.bytes as f64;
            *seconds = stream.seconds.max(*seconds);
        }
    }
    sent.into_iter().map(|(bytes, seconds)| bytes / seconds).collect()
}

/// Rates that pairs of hosts reached with their largest messages. The slope of a fit may be too small where smaller
/// messages were disturbed, and its rate above the capacity.
fn rates_of_pairs(measured: &Measurements) -> Vec<(u32, u32, f64)> {
    let latencies = measured.latencies();
    let mut rates = Vec::new();
    for pair in measured.samples.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination)) {
        let Sample { source, destination, .. } = pair[0];
        let largest = pair.iter().max_by(|a, b| {
            (a.bytes, b.minimum_s).partial_cmp(&(b.bytes, a.minimum_s)).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let (Some(largest), Some(latency)) =
            (largest, latencies.get(&(source.min(destination), source.max(destination))))
        {
            let transfer = largest.minimum_s - 2.0 * latency;
            if transfer > 0.0 {
                rates.push((source, destination, largest.bytes as f64 / transfer));
            }
        }
    }
    rates
}

/// The number of switches below the lower end of every link of a tree, along the longest path.
fn heights(system: &SystemGraph) -> Vec<usize> {
    let mut height = vec![0; system.nodes.len()];
    // Switches follow their children.
    let lower = |link: &Link| link.source.min(link.destination) as usize;
    let upper = |link: &Link| link.source.max(link.destination) as usize;
    let mut sorted: Vec<&Link> = system.links.iter().collect();
    sorted.sort_by_key(|link| upper(link));
    for link in sorted {
        height[upper(link)] = height[upper(link)].max(height[lower(link)] + 1);
    }
    system.links.iter().map(|link| height[lower(link)]).collect()
}

/// Medians of measured calls between hosts, by size.
struct Calls {
    eager_limit: u64,
    pieces: Vec<(Call, Vec<Piece>)>,
}

const CALLS: [(Call, CostName); 3] =
    [(Call::Send, CostName::Send), (Call::Isend, CostName::Isend), (Call::Recv, CostName::Recv)];

impl Calls {
    fn new(measured: &Measurements) -> Self {
        let eager_limit = measured.eager_limit.unwrap_or(u64::MAX);
        let host = |endpoint: u32| &measured.endpoints[endpoint as usize].host;
        let pieces = CALLS.map(|(call, _)| {
            let is_used = |bytes: u64| bytes < eager_limit || call == Call::Isend;
            let mut rows: Vec<(u64, f64)> = measured
                .calls
                .iter()
                .filter(|row| {
                    row.call == call && is_used(row.bytes) && host(row.source) != host(row.destination)
                })
                .map(|row| (row.bytes, row.median_s))
                .collect();
            rows.sort_by_key(|row| row.0);
            let point = |of_size: &[(u64, f64)]| {
                let seconds = lower_median(of_size.iter().map(|row| row.1).collect())?;
                Some(Point::new(of_size[0].0, seconds, seconds))
            };
            let points: Vec<Point> = rows.chunk_by(|a, b| a.0 == b.0).filter_map(point).collect();
            (call, pieces_of(&points))
        });
        Self { eager_limit, pieces: pieces.into() }
    }

    /// Seconds of a call.
    fn seconds(&self, call: Call, bytes: u64) -> f64 {
        let pieces =
            self.pieces.iter().find(|(known, _)| *known == call).map_or(&[][..], |(_, pieces)| pieces);
        let piece = pieces.iter().rev().find(|piece| piece.from_bytes <= bytes).or(pieces.first());
        piece.map_or(0.0, |piece| {
            piece.latency_s + piece.bandwidth_bytes_per_s.map_or(0.0, |bandwidth| bytes as f64 / bandwidth)
        })
    }

    fn costs(&self) -> Vec<CalibratedCost> {
        let costs = CALLS.iter().zip(&self.pieces).flat_map(|(&(_, cost), (_, pieces))| {
            pieces.iter().enumerate().map(move |(index, piece)| CalibratedCost {
                cost,
                above_bytes: if index == 0 { 0 } else { piece.from_bytes - 1 },
                value: piece.latency_s,
                per_byte: piece.bandwidth_bytes_per_s.map_or(0.0, f64::recip),
            })
        });
        costs.collect()
    }
}

/// Factors of latency and bandwidth by size, from the pairs that were measured alone.
fn factors(
    system: &SystemGraph,
    routes: &Routes,
    measured: &Measurements,
    calls: &Calls,
) -> Vec<CalibratedCost> {
    let latencies = measured.latencies();
    let mut points: Vec<Point> = Vec::new();
    for sample in measured.samples.iter().filter(|sample| sample.phase == ProbePhase::Alone) {
        let links = routes.between(sample.source, sample.destination).iter();
        let links = links.map(|&link| &system.links[link as usize]);
        let unit: f64 = links.clone().filter_map(|link| link.latency_s).sum();
        let bandwidth = links.filter_map(|link| link.bandwidth_bytes_per_s).fold(f64::INFINITY, f64::min);
        let pair: Pair = (sample.source.min(sample.destination), sample.source.max(sample.destination));
        let Some(&reply) = latencies.get(&pair) else { continue };
        if bandwidth.is_finite() {
            let one_way_s = (sample.minimum_s - reply).max(sample.minimum_s / 2.0);
            let overheads = match sample.bytes < calls.eager_limit {
                true => calls.seconds(Call::Send, sample.bytes) + calls.seconds(Call::Recv, sample.bytes),
                false => 0.0,
            };
            let (bytes, load) = (sample.bytes, sample.bytes as f64 / bandwidth);
            points.push(Point {
                unit,
                load,
                one_way_s: (one_way_s - overheads).max(0.0),
                ..Point::new(bytes, one_way_s, one_way_s)
            });
        }
    }
    points.sort_by_key(|point| point.bytes);
    let (eager, waiting) = points.split_at(points.partition_point(|point| point.bytes < calls.eager_limit));
    let mut rows = Vec::new();
    for (index, piece) in pieces_of(eager).into_iter().enumerate() {
        rows.push((if index == 0 { 0 } else { piece.from_bytes - 1 }, piece));
    }
    for (index, piece) in pieces_of(waiting).into_iter().enumerate() {
        rows.push((if index == 0 { calls.eager_limit - 1 } else { piece.from_bytes - 1 }, piece));
    }
    let row = |cost, above_bytes, value| CalibratedCost { cost, above_bytes, value, per_byte: 0.0 };
    let latency = |&(above, piece): &(u64, Piece)| {
        row(CostName::LatencyFactor, above, piece.latency_s.max(LEAST_FACTOR))
    };
    let bandwidth = |&(above, piece): &(u64, Piece)| {
        row(CostName::BandwidthFactor, above, piece.bandwidth_bytes_per_s.unwrap_or(1.0))
    };
    rows.iter().map(latency).chain(rows.iter().map(bandwidth)).collect()
}

/// Medians of latency and bandwidth within hosts, of the pairs that were measured alone if there are any.
fn memory(measured: &Measurements, fits: &[Fit]) -> (Option<f64>, Option<f64>) {
    let host = |endpoint: u32| &measured.endpoints[endpoint as usize].host;
    let is_alone = |fit: &Fit| {
        let alone = measured.samples.iter().filter(|sample| sample.phase == ProbePhase::Alone);
        let mut ends = alone.map(|sample| (sample.source, sample.destination));
        ends.any(|ends| ends == (fit.source, fit.destination))
    };
    let mut inside: Vec<&Fit> = fits.iter().filter(|fit| host(fit.source) == host(fit.destination)).collect();
    if inside.iter().any(|fit| is_alone(fit)) {
        inside.retain(|fit| is_alone(fit));
    }
    let pairs = || inside.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination));
    let latency = lower_median(pairs().map(|fits| fits[0].latency_s).collect());
    let bandwidth = pairs().filter_map(|fits| fits.iter().rev().find_map(|fit| fit.bandwidth_bytes_per_s));
    (latency, lower_median(bandwidth.collect()))
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
