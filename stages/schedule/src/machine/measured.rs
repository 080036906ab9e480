//! What messages take, as it was measured between every two processes.

use std::ops::Range;

use crate::Lookup;

/// Times of messages between every two processors for some lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Number of processors.
    processors: usize,
    /// Lengths in bytes, rising.
    lengths: Vec<u64>,
    /// For every length the time from `from` to `to` at `to * processors + from`.
    times: Vec<Vec<f64>>,
    lookup: Lookup,
}

impl Measured {
    /// Times for at least one length; the time from `from` to `to` of `processors` is at `to * processors + from`.
    #[must_use]
    pub fn new(processors: usize, lengths: Vec<u64>, times: Vec<Vec<f64>>, lookup: Lookup) -> Self {
        Self { processors, lengths, times, lookup }
    }

    /// The lengths that were measured, rising, for each of them the times in the order of [`Measured::new`], and what is done between.
    #[must_use]
    pub fn parts(&self) -> (&[u64], &[Vec<f64>], Lookup) {
        (&self.lengths, &self.times, self.lookup)
    }

    /// What a message takes.
    #[must_use]
    pub fn time(&self, from: u32, to: u32, bytes: u64) -> f64 {
        let at = |index: usize| self.times[index][to as usize * self.processors + from as usize];
        let last = self.lengths.len() - 1;
        let above = self.lengths.partition_point(|&length| length < bytes);
        if self.lookup == Lookup::Parus || self.lengths.get(above) == Some(&bytes) || last == 0 {
            return at(above.min(last));
        }
        // Below the shortest as much as that: a latency does not vanish.
        if above == 0 {
            return at(0);
        }
        let (low, high) = if above > last { (last - 1, last) } else { (above - 1, above) };
        let [begin, end] = [self.lengths[low], self.lengths[high]].map(|length| length as f64);
        let part = (bytes as f64 - begin) / (end - begin);
        (at(low) + part * (at(high) - at(low))).max(0.0)
    }

    /// What a message takes between all processors.
    pub(super) fn times(&self, bytes: u64) -> impl Iterator<Item = f64> + '_ {
        let all = 0..self.processors as u32;
        all.clone().flat_map(move |from| all.clone().map(move |to| self.time(from, to, bytes)))
    }

    /// Leaves only some processors.
    pub(super) fn keep(&mut self, kept: Range<usize>) {
        let processors = self.processors;
        for times in &mut self.times {
            let rows = times.chunks(processors).skip(kept.start).take(kept.len());
            *times = rows.flat_map(|row| row[kept.clone()].iter().copied()).collect();
        }
        self.processors = kept.len();
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these times are whole")]
mod tests {
    use super::*;

    fn measured(lookup: Lookup) -> Measured {
        let times = vec![vec![0.0, 1.0, 2.0, 0.0], vec![0.0, 3.0, 6.0, 0.5]];
        Measured::new(2, vec![10, 20], times, lookup)
    }

    #[test]
    fn times_lie_between_those_measured() {
        let linear = measured(Lookup::Linear);
        assert_eq!([0, 10, 15, 20, 30].map(|bytes| linear.time(1, 0, bytes)), [1.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!(linear.time(0, 1, 15), 4.0);
        let steps = measured(Lookup::Parus);
        assert_eq!([0, 10, 15, 20, 30].map(|bytes| steps.time(0, 1, bytes)), [2.0, 2.0, 6.0, 6.0, 6.0]);
    }

    #[test]
    fn what_is_left_keeps_its_times() {
        let mut right = measured(Lookup::Parus);
        right.keep(1..2);
        assert_eq!(right.time(0, 0, 20), 0.5);
    }
}
