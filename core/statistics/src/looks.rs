//! Intervals of the median that hold at every look at a growing sample.
//!
//! An interval of 95 % misses the median in 5 % of all samples; who looks several times and stops at the look that pleases misses it
//! more often. Repeated confidence intervals (Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach",
//! JRSS B 51, 1989) hold at all looks at once, so that any reason may end the sample. Each look spends a part of the 5 % (Lan and
//! `DeMets`, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983): here equal parts, and what a look cannot
//! spend goes to the next one. The probabilities are exact, since the number of values below the median is a binomial walk.
//!
//! Six values exclude the median with probability 2 · 2⁻⁶ = 3.1 %: more than the part of the first of several looks, which therefore
//! has an interval only if it is the last.

use crate::TAIL;

/// Smallest sample with an interval.
const FIRST: usize = 6;

/// Looks after 6, 12, 24, … values, up to the largest sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// Size of the sample, and rank of its interval or 0 without one.
    planned: Vec<(usize, usize)>,
}

impl Looks {
    /// Looks at a sample that grows to at most this size.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let doubled = std::iter::successors(Some(FIRST), |size| size.checked_mul(2));
        let mut planned: Vec<(usize, usize)> =
            doubled.take_while(|size| *size < most).chain([most]).map(|size| (size, 0)).collect();
        let mut walk = Walk::new();
        let looks = planned.len();
        for (index, (size, rank)) in planned.iter_mut().enumerate() {
            *rank = walk.look(*size, TAIL * (index + 1) as f64 / looks as f64);
        }
        Self { planned }
    }

    /// The rank k of the interval from the k-th smallest to the k-th largest value at a planned look.
    #[must_use]
    pub fn rank(&self, size: usize) -> Option<usize> {
        self.planned.iter().find(|look| look.0 == size).map(|look| look.1).filter(|rank| *rank > 0)
    }

    /// The rank at the last look, at any size: what the looks before it left is spent.
    #[must_use]
    pub fn last_rank(&self, size: usize) -> Option<usize> {
        let mut walk = Walk::new();
        for &(before, rank) in self.planned.iter().take_while(|look| look.0 < size) {
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
            let alone = Looks { planned: Vec::new() };
            assert_eq!(alone.last_rank(size), interval_rank(size), "{size}");
        }
        assert_eq!((Looks::new(6).rank(6), Looks::new(5).rank(5)), (Some(1), None));
    }

    /// Against all 2¹² samples.
    #[test]
    fn looks_miss_in_at_most_five_percent_together() {
        let looks = Looks::new(12);
        let (first, second) = (looks.rank(6), looks.rank(12));
        assert_eq!((first, second), (None, Some(3)));
        let missed = |rank: usize, size: u32, sample: u32| {
            let below = (sample & ((1 << size) - 1)).count_ones() as usize;
            below < rank || below > size as usize - rank
        };
        let after_twelve = (0..1 << 12).filter(|sample| missed(3, 12, *sample)).count();
        assert!(after_twelve as f64 / 4096.0 <= 0.05);

        let mut walk = Walk::new();
        assert_eq!((walk.look(6, 0.02), walk.look(12, 0.025)), (1, 2));
        let either = (0..1 << 12).filter(|sample| missed(1, 6, *sample) || missed(2, 12, *sample)).count();
        assert!((2.0 * walk.missed - either as f64 / 4096.0).abs() < 1e-12);
    }

    #[test]
    fn looks_share_what_may_be_missed() {
        let looks = Looks::new(96);
        let ranks = [6, 12, 24, 48, 96].map(|size| looks.rank(size));
        assert_eq!(ranks, [None, Some(2), Some(7), Some(16), Some(37)]);
        assert_eq!(looks.rank(47), None);
        // A sample that ends at a look may spend what is left there.
        assert_eq!([6, 12, 20, 24].map(|size| looks.last_rank(size)), [Some(1), Some(3), Some(6), Some(7)]);
    }
}
