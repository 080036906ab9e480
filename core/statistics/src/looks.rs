//! Intervals of the median that hold at every look at a growing sample.
//!
//! An interval of 95 % misses the median in 5 % of all samples; who looks several times and stops at the look that pleases misses it
//! more often. Repeated confidence intervals (Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach",
//! JRSS B 51, 1989) hold at all looks at once, so that any reason may end the sample. Each look spends a part of the 5 % (Lan and
//! `DeMets`, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983): planned looks have equal parts, a look
//! between two of them has its share of the part of the later one, and what a look cannot spend goes to the next one. The
//! probabilities are exact, since the number of values below the median is a binomial walk.
//!
//! Six values exclude the median with probability 2 · 2⁻⁶ = 3.1 %: more than the part of the first of several looks, which therefore
//! has an interval only if it is the last.

use crate::TAIL;

/// Smallest sample with an interval.
const FIRST: usize = 6;

/// Looks at a growing sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// Sizes of the sample at the planned looks; the last one is its largest.
    planned: Vec<usize>,
    /// Sizes at all looks, and rank of the interval or 0 without one.
    looks: Vec<(usize, usize)>,
}

impl Looks {
    /// Looks after 6, 12, 24, … values, up to the largest sample.
    #[must_use]
    pub fn doubling(most: usize) -> Self {
        let doubled = std::iter::successors(Some(FIRST), |size| size.checked_mul(2));
        Self::planned(doubled.take_while(|size| *size < most).chain([most]).collect())
    }

    /// One look, at the largest sample.
    #[must_use]
    pub fn at_the_end(most: usize) -> Self {
        Self::planned(vec![most])
    }

    fn planned(planned: Vec<usize>) -> Self {
        Self { planned, looks: Vec::new() }.with(&[])
    }

    /// The same with looks at these sizes, too: those of samples that were shown before they were complete.
    #[must_use]
    pub fn with(mut self, shown: &[usize]) -> Self {
        let mut sizes = [&self.planned, shown].concat();
        sizes.sort_unstable();
        sizes.dedup();
        let mut walk = Walk::new();
        self.looks = sizes.into_iter().map(|size| (size, walk.look(size, self.part(size)))).collect();
        self
    }

    /// What all looks up to a size may spend at each side.
    fn part(&self, size: usize) -> f64 {
        let done = self.planned.partition_point(|planned| *planned <= size);
        let Some(next) = self.planned.get(done) else { return TAIL };
        let before = done.checked_sub(1).map_or(0, |before| self.planned[before]);
        let share = (size - before) as f64 / (next - before) as f64;
        TAIL * (done as f64 + share) / self.planned.len() as f64
    }

    /// Whether there is a look at this size.
    #[must_use]
    pub fn is_look(&self, size: usize) -> bool {
        self.looks.iter().any(|look| look.0 == size)
    }

    /// The rank k of the interval from the k-th smallest to the k-th largest value at a look.
    #[must_use]
    pub fn rank(&self, size: usize) -> Option<usize> {
        self.looks.iter().find(|look| look.0 == size).map(|look| look.1).filter(|rank| *rank > 0)
    }

    /// The rank at the last look, at any size: what the looks before it left is spent.
    #[must_use]
    pub fn last_rank(&self, size: usize) -> Option<usize> {
        let mut walk = Walk::new();
        for &(before, rank) in self.looks.iter().take_while(|look| look.0 < size) {
            walk.to(before);
            walk.exclude(rank);
        }
        Some(walk.look(size, TAIL)).filter(|rank| *rank > 0)
    }
}

/// The number of values below the median, of all samples whose intervals have held so far.
struct Walk {
    /// Probability by number.
    held: Vec<f64>,
    /// Probability that the interval of a look was above the median. That it was below is as likely.
    missed: f64,
}

impl Walk {
    fn new() -> Self {
        Self { held: vec![1.0], missed: 0.0 }
    }

    /// Lets the sample grow.
    fn to(&mut self, size: usize) {
        while self.held.len() <= size {
            self.held.push(0.0);
            for below in (1..self.held.len()).rev() {
                self.held[below] = f64::midpoint(self.held[below], self.held[below - 1]);
            }
            self.held[0] /= 2.0;
        }
    }

    /// Looks at a sample of a size with the narrowest interval that misses with at most this probability at each side,
    /// looks before included.
    fn look(&mut self, size: usize, tail: f64) -> usize {
        self.to(size);
        let mut sum = self.missed;
        let within = |below: &&f64| {
            sum += **below;
            sum <= tail
        };
        let rank = self.held[..=size / 2].iter().take_while(within).count().min(size / 2);
        self.exclude(rank);
        rank
    }

    /// Takes out the samples whose interval of this rank misses.
    fn exclude(&mut self, rank: usize) {
        let size = self.held.len() - 1;
        self.missed += self.held[..rank].iter().sum::<f64>();
        self.held[..rank].fill(0.0);
        self.held[size + 1 - rank..].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval_rank;

    #[test]
    fn one_look_has_the_interval_of_the_sign_test() {
        for size in [1, 5, 6, 9, 12, 17, 50, 100, 1000] {
            let end = Looks::at_the_end(size);
            assert_eq!((end.rank(size), end.last_rank(size)), (interval_rank(size), interval_rank(size)));
        }
        assert_eq!((Looks::doubling(6).rank(6), Looks::doubling(5).rank(5)), (Some(1), None));
    }

    /// Against all samples of a size: how many are excluded by a look.
    fn missed(size: u32, looks: &[(usize, Option<usize>)]) -> f64 {
        let excludes = |sample: u32, (size, rank): (usize, Option<usize>)| {
            let below = (sample & ((1 << size) - 1)).count_ones() as usize;
            rank.is_some_and(|rank| below < rank || below > size - rank)
        };
        let is_missed = |sample: &u32| looks.iter().any(|look| excludes(*sample, *look));
        (0..1 << size).filter(is_missed).count() as f64 / f64::from(1 << size)
    }

    #[test]
    fn looks_miss_in_at_most_five_percent_together() {
        let looks = Looks::doubling(12);
        assert_eq!((looks.rank(6), looks.rank(12)), (None, Some(3)));
        assert!(missed(12, &[(12, Some(3))]) <= 0.05);

        let mut walk = Walk::new();
        assert_eq!((walk.look(6, 0.02), walk.look(12, 0.025)), (1, 2));
        let either = missed(12, &[(6, Some(1)), (12, Some(2))]);
        assert!((2.0 * walk.missed - either).abs() < 1e-12);
    }

    /// A sample may be shown at any moments, and end at any.
    #[test]
    fn looks_that_were_shown_count() {
        for planned in [Looks::doubling(18), Looks::at_the_end(18)] {
            for shown in [&[9][..], &[10, 14], &[7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17], &[17, 18]] {
                let looks = planned.clone().with(shown);
                let sizes = shown.iter().copied().chain([6, 12]).filter(|size| looks.is_look(*size));
                let seen: Vec<_> = sizes.map(|size| (size, looks.rank(size))).collect();
                for end in [13, 18] {
                    let last = (end, looks.last_rank(end));
                    let all: Vec<_> =
                        seen.iter().copied().filter(|look| look.0 < end).chain([last]).collect();
                    let missed = missed(18, &all);
                    assert!(missed <= 0.05, "{planned:?}, {shown:?}, {end}: {missed}");
                }
            }
        }
        // Whoever looks after every pair has wider intervals, but has some.
        let looks = Looks::doubling(96).with(&(1..=96).collect::<Vec<_>>());
        assert_eq!(
            [6, 12, 24, 48, 96].map(|size| looks.rank(size)),
            [None, Some(2), Some(6), Some(15), Some(35)]
        );
    }

    #[test]
    fn looks_share_what_may_be_missed() {
        let looks = Looks::doubling(96);
        let ranks = [6, 12, 24, 48, 96].map(|size| looks.rank(size));
        assert_eq!(ranks, [None, Some(2), Some(7), Some(16), Some(37)]);
        assert_eq!(looks.rank(47), None);
        // A sample that ends at a look may spend what is left there.
        assert_eq!([6, 12, 20, 24].map(|size| looks.last_rank(size)), [Some(1), Some(3), Some(6), Some(7)]);
    }
}
