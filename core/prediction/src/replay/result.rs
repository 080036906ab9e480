//! The result of a replay.

use std::collections::BTreeMap;

use hopmap_model::{LinkUse, Prediction, RankTimes, SystemGraph};

use super::Replay;
use crate::rank::Rank;

impl Replay<'_> {
    /// The prediction, of what was replayed.
    pub(super) fn prediction(mut self, system: &SystemGraph) -> Prediction {
        let slots = self.slots.iter().zip(&self.ranks);
        let ranks: Vec<RankTimes> = slots.map(|(slot, rank)| times(*slot, rank)).collect();
        let seconds = ranks.iter().map(|rank| rank.finish_s).fold(0.0, f64::max);
        let links = match self.network.is_contended() {
            true => self.link_uses(system, seconds),
            false => Vec::new(),
        };
        let mut intervals = std::mem::take(&mut self.intervals.intervals);
        intervals.sort_by(|a, b| {
            (a.rank, a.start_s).partial_cmp(&(b.rank, b.start_s)).unwrap_or(std::cmp::Ordering::Equal)
        });
        Prediction {
            metrics: self.metrics(seconds),
            ranks,
            links,
            intervals,
            is_contended: self.network.is_contended(),
            is_calibrated: self.options.costs.has_overheads(),
            complete: !self.is_stopped,
        }
    }

    fn link_uses(&self, system: &SystemGraph, seconds: f64) -> Vec<LinkUse> {
        let name = |node: u32| system.nodes[node as usize].name.clone();
        let links = system.links.iter().zip(self.network.bytes_of_links()).enumerate();
        let used = links.filter(|(_, (_, bytes))| *bytes > 0.0);
        used.map(|(link, (ends, bytes))| {
            let busy = self.flows.saturated_s(link as u32, self.clock) + self.packets.busy_s(link as u32);
            let saturated = busy / seconds;
            LinkUse {
                link: link as u32,
                source: name(ends.source),
                destination: name(ends.destination),
                bytes,
                saturated: if saturated.is_finite() { saturated.clamp(0.0, 1.0) } else { 0.0 },
            }
        })
        .collect()
    }

    /// The run time, and the parts of the path to the end of the last rank.
    fn metrics(&self, seconds: f64) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::from([("seconds".to_owned(), seconds)]);
        if let Some(last) = self.ranks.iter().find(|rank| rank.time >= seconds) {
            let path = &last.path;
            let known = path.computation + path.overhead + path.latency + path.bandwidth;
            let parts = [
                ("critical_computation_s", path.computation),
                ("critical_overhead_s", path.overhead),
                ("critical_latency_s", path.latency),
                ("critical_bandwidth_s", path.bandwidth),
                ("critical_waiting_s", (seconds - known).max(0.0)),
            ];
            metrics.extend(parts.map(|(name, part)| (name.to_owned(), part)));
        }
        metrics
    }
}

fn times(slot: u32, rank: &Rank) -> RankTimes {
    let Rank { computing_s, sending_s, waiting_s, time, .. } = *rank;
    RankTimes { slot, computing_s, sending_s, waiting_s, finish_s: time }
}
