//! What messages take between processors that are not known yet.

use std::collections::BTreeMap;

use super::Delays;

/// Most pairs of processors that are all looked at.
const MOST_PAIRS: usize = 1 << 22;
/// Most times that are looked up for all sizes together.
const MOST_TIMES: usize = 1 << 24;

/// What messages of every size take, as far as it does not depend on who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DelaySummary {
    /// The mean over pairs of different processors; of some of them where there are too many.
    pub(crate) mean: Vec<i64>,
    /// The shortest between two different processors; 0 where there are too many pairs.
    pub(crate) shortest: Vec<i64>,
    /// The shortest from a processor to itself; 0 where there are too many.
    pub(crate) local: Vec<i64>,
}

impl DelaySummary {
    /// The summary for sizes 0 to `sizes` on so many processors.
    pub(crate) fn new(delays: &Delays, sizes: usize, processors: usize) -> Self {
        if let Some(mut far) = delays.uniform() {
            far.resize(sizes, 0);
            let far = if processors > 1 { far } else { vec![0; sizes] };
            return Self { mean: far.clone(), shortest: far, local: vec![0; sizes] };
        }
        let (pairs, all) = pairs(delays, sizes, processors);
        let total = pairs.iter().map(|pair| i128::from(pair.2)).sum::<i128>().max(1);
        let size = |size: u32| {
            let times = pairs.iter().map(|&(from, to, count)| (delays.ticks(size, from, to), count));
            let sum: i128 = times.clone().map(|(time, count)| i128::from(time) * i128::from(count)).sum();
            let shortest = if all { times.map(|(time, _)| time).min().unwrap_or(0) } else { 0 };
            let own = (0..processors as u32).map(|processor| delays.ticks(size, processor, processor));
            let local = if all { own.min().unwrap_or(0) } else { 0 };
            ((sum / total) as i64, shortest, local.min(shortest))
        };
        let mut summary = Self { mean: vec![], shortest: vec![], local: vec![] };
        for (mean, shortest, local) in (0..sizes as u32).map(size) {
            summary.mean.push(mean);
            summary.shortest.push(shortest);
            summary.local.push(local);
        }
        summary
    }
}

/// A pair of different processors of every class with the number of pairs in it, and whether these are all.
fn pairs(delays: &Delays, sizes: usize, processors: usize) -> (Vec<(u32, u32, u64)>, bool) {
    let all = processors.saturating_mul(processors) <= MOST_PAIRS;
    let step = if all { 1 } else { processors.div_ceil(64) };
    let mut classes: BTreeMap<usize, (u32, u32, u64)> = BTreeMap::new();
    for from in (0..processors as u32).step_by(step) {
        for to in (0..processors as u32).step_by(step).filter(|&to| to != from) {
            let class = delays.distances.class(from, to);
            classes.entry(class).or_insert((from, to, 0)).2 += 1;
        }
    }
    let pairs: Vec<_> = classes.into_values().collect();
    let every = pairs.len().saturating_mul(sizes).div_ceil(MOST_TIMES).max(1);
    let all = all && every == 1;
    (pairs.into_iter().step_by(every).collect(), all)
}
