//! Paired comparison of run times: the median of the log ratios, with a distribution-free interval.
//!
//! Times are skewed, and disturbances of a machine last longer than a run. Ratios within pairs of neighbouring runs cancel what both
//! have in common, and the interval of their median (that of the sign test) assumes nothing about their distribution but
//! independence.

use crate::looks::Looks;
use crate::{Sample, interval_rank, median};

/// By how much the second of two paired times is shorter than the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedGain {
    /// Number of pairs.
    pub pairs: usize,
    /// 1 − second / first, in the median of the finite ratios: 0.1 for 10 % less time, negative if the second takes longer.
    pub gain: f64,
    /// Confidence interval of `gain` at 95 % or more; `None` for fewer than six pairs. An end is −∞ or 1 where infinite times reach
    /// that far.
    pub interval: Option<(f64, f64)>,
}

/// Compares paired times. A time that is infinite loses its pair. Pairs in which both are infinite, or one is not positive, are
/// dropped; `None` without any finite one.
#[must_use]
pub fn paired_gain(pairs: &[(f64, f64)]) -> Option<PairedGain> {
    gain_of(pairs, interval_rank)
}

/// Compares paired times at one of several looks; without a look at this number, there is no interval.
#[must_use]
pub fn gain_at_look(pairs: &[(f64, f64)], looks: &Looks) -> Option<PairedGain> {
    gain_of(pairs, |size| looks.rank(size))
}

/// Compares paired times that have ended: at a look at which half the width of the interval was at most `precision`, or else for
/// another reason, such as a time limit, with the interval of the last look.
#[must_use]
pub fn gain_at_end(pairs: &[(f64, f64)], looks: &Looks, precision: Option<f64>) -> Option<PairedGain> {
    let at_look =
        precision.and_then(|precision| gain_at_look(pairs, looks).filter(|gain| gain.is_precise(precision)));
    at_look.or_else(|| gain_of(pairs, |size| looks.last_rank(size)))
}

fn gain_of(pairs: &[(f64, f64)], rank: impl Fn(usize) -> Option<usize>) -> Option<PairedGain> {
    let times = pairs.iter().filter(|(first, second)| *first > 0.0 && *second > 0.0);
    let ratios = times.map(|(first, second)| (second / first).ln()).filter(|ratio| !ratio.is_nan());
    let mut logarithms: Vec<f64> = ratios.collect();
    logarithms.sort_by(f64::total_cmp);
    let logarithms = Sample(logarithms);
    let gain = |logarithm: f64| -logarithm.exp_m1();
    let finite = logarithms.0.iter().copied().filter(|ratio| ratio.is_finite());
    Some(PairedGain {
        pairs: logarithms.len(),
        gain: gain(median(finite.collect())?),
        interval: rank(logarithms.len()).map(|rank| {
            let (low, high) = logarithms.interval(rank);
            (gain(high), gain(low))
        }),
    })
}

impl PairedGain {
    /// Whether the interval excludes that both take the same time.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Whether half the width of the interval is at most this.
    #[must_use]
    pub fn is_precise(&self, precision: f64) -> bool {
        self.interval.is_some_and(|(low, high)| high - low <= 2.0 * precision)
    }

    /// The same, of times whose last digits are twice these shares of them: the interval covers what their ratios may have been, whether
    /// the program rounded or cut them.
    #[must_use]
    pub fn of_rounded(self, [first, second]: [f64; 2]) -> Self {
        // Times that may just have been equal are not told apart by the rounding of this.
        const ROUNDING: f64 = 1e-9;
        let widen = |(low, high): (f64, f64)| {
            let longer = ((1.0 + second) / (1.0 - first)).max(1.0 + 2.0 * second);
            let shorter = ((1.0 - second) / (1.0 + first)).min(1.0 / (1.0 + 2.0 * first));
            let (longer, shorter) = (longer * (1.0 + ROUNDING), shorter * (1.0 - ROUNDING));
            (1.0 - (1.0 - low) * longer, 1.0 - (1.0 - high) * shorter)
        };
        let is_exact = first <= 0.0 && second <= 0.0;
        Self { interval: if is_exact { self.interval } else { self.interval.map(widen) }, ..self }
    }

    /// What the pairs show, in one sentence: `b is 9.4 % faster than a (95 % interval 8.1 to 10.6, 12 pairs)`.
    #[must_use]
    pub fn sentence(&self, first: &str, second: &str) -> String {
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let pairs = match self.pairs {
            1 => "1 pair".to_owned(),
            pairs => format!("{pairs} pairs"),
        };
        let (direction, size) = (if self.gain >= 0.0 { "faster" } else { "slower" }, self.gain.abs());
        match self.interval {
            None => {
                let least = if self.pairs < 6 { "6" } else { "more" };
                format!(
                    "{second} is {} % {direction} than {first} in the median of {pairs}; an interval needs {least}",
                    percent(size)
                )
            }
            // Infinite times decide: the median of the others says nothing.
            Some((low, high)) if low.is_infinite() || !(low..=high).contains(&self.gain) => match () {
                () if high < 0.0 => {
                    format!("{second} loses against {first}, because its runs fail ({pairs})")
                }
                () if low > 0.0 => format!("{second} wins against {first}, whose runs fail ({pairs})"),
                () => format!(
                    "no difference between {first} and {second} could be seen, and runs that failed leave no limit ({pairs})"
                ),
            },
            Some((low, high)) if self.is_seen() => {
                let (low, high) = if self.gain >= 0.0 { (low, high) } else { (-high, -low) };
                let (low, high) = (percent(low), percent(high));
                format!(
                    "{second} is {} % {direction} than {first} (95 % interval {low} to {high}, {pairs})",
                    percent(size)
                )
            }
            Some((low, high)) => format!(
                "no difference between {first} and {second} could be seen: at most ±{} % ({pairs})",
                percent(low.abs().max(high.abs()))
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ratios: &[f64]) -> Vec<(f64, f64)> {
        // What both times of a pair have in common does not matter.
        (1..).map(f64::from).zip(ratios).map(|(first, ratio)| (first, first * ratio)).collect()
    }

    /// Two programs of 30 and 31 ms that print hundredths of a second were 25 % apart "for certain".
    #[test]
    fn rounded_times_are_as_far_apart_as_the_times_may_have_been() {
        let printed = paired_gain(&[(0.04, 0.03); 8]).unwrap();
        let gain = printed.of_rounded([0.005 / 0.04, 0.005 / 0.03]);
        let (low, high) = gain.interval.unwrap();
        assert!((low - (1.0 - 0.035 / 0.035)).abs() < 1e-8 && (high - (1.0 - 0.025 / 0.045)).abs() < 1e-8);
        assert!(printed.is_seen() && !gain.is_seen());
        assert_eq!(printed.of_rounded([0.0; 2]), printed);
        // Cut after the point, 3 s and 1 s may have been 3 s and 2 s.
        let (low, _) = paired_gain(&[(3.0, 1.0); 8]).unwrap().of_rounded([0.5 / 3.0, 0.5]).interval.unwrap();
        assert!((low - (1.0 - 2.0 / 3.0)).abs() < 1e-8, "{low}");
    }

    #[test]
    fn the_gain_is_that_of_the_median_ratio_within_the_interval_of_the_sign_test() {
        let gain = paired_gain(&times(&[0.9, 0.88, 0.93, 0.9, 0.91, 0.9])).unwrap();
        assert_eq!(gain.pairs, 6);
        assert!((gain.gain - 0.1).abs() < 1e-12);
        let (low, high) = gain.interval.unwrap();
        assert!((low - 0.07).abs() < 1e-12 && (high - 0.12).abs() < 1e-12);
        assert_eq!(gain.sentence("a", "b"), "b is 10.0 % faster than a (95 % interval 7.0 to 12.0, 6 pairs)");
    }

    #[test]
    fn a_slower_mapping_and_no_difference_are_said() {
        let slower = paired_gain(&times(&[1.05, 1.04, 1.06, 1.05, 1.05, 1.07])).unwrap();
        assert_eq!(slower.sentence("a", "b"), "b is 5.0 % slower than a (95 % interval 4.0 to 7.0, 6 pairs)");
        let same = paired_gain(&times(&[1.02, 0.99, 1.0, 1.01, 0.985, 1.0])).unwrap();
        assert!(!same.is_seen());
        assert_eq!(
            same.sentence("a", "b"),
            "no difference between a and b could be seen: at most ±2.0 % (6 pairs)"
        );
    }

    #[test]
    fn five_pairs_have_no_interval_and_none_no_gain() {
        let gain = paired_gain(&times(&[0.5])).unwrap();
        assert_eq!(
            gain.sentence("a", "b"),
            "b is 50.0 % faster than a in the median of 1 pair; an interval needs 6"
        );
        let same = paired_gain(&times(&[1.0; 4])).unwrap().sentence("a", "b");
        assert_eq!(same, "b is 0.0 % faster than a in the median of 4 pairs; an interval needs 6");
        assert_eq!(paired_gain(&times(&[0.5; 5])).unwrap().interval, None);
        assert_eq!(paired_gain(&[]), None);
        assert_eq!(paired_gain(&[(0.0, 1.0), (1.0, f64::NAN), (f64::INFINITY, f64::INFINITY)]), None);
    }

    #[test]
    fn infinite_times_lose_their_pairs_and_are_in_no_median() {
        let failed = f64::INFINITY;
        let with = |failures: &[(f64, f64)]| paired_gain(&[&times(&[0.9; 12]), failures].concat()).unwrap();
        assert_eq!(with(&[(failed, failed)]), with(&[]));
        let few = with(&[(1.0, failed), (1.0, failed)]);
        assert_eq!((few.pairs, few.gain), (14, with(&[]).gain));
        assert!((few.interval.unwrap().0 - 0.1).abs() < 1e-12);
        let sentences = [(1.0, failed), (failed, 1.0)].map(|failure| with(&[failure; 11]).sentence("a", "b"));
        assert_eq!(
            sentences[0],
            "no difference between a and b could be seen, and runs that failed leave no limit (23 pairs)"
        );
        assert_eq!(sentences[1], "b is 10.0 % faster than a (95 % interval 10.0 to 100.0, 23 pairs)");
        assert_eq!(
            with(&[(1.0, failed); 48]).sentence("a", "b"),
            "b loses against a, because its runs fail (60 pairs)"
        );
        assert_eq!(paired_gain(&[(1.0, failed); 8]), None);
    }

    #[test]
    fn drift_in_blocks_of_any_order_stays_within_the_interval() {
        let second_by_second = |index: u32| 1.0 + 0.01 * f64::from(index);
        let pairs: Vec<(f64, f64)> = (0..12)
            .map(|block: u32| {
                let times = (second_by_second(2 * block), second_by_second(2 * block + 1));
                let (first, second) = if block.is_multiple_of(3) { times } else { (times.1, times.0) };
                (first, second * 0.9)
            })
            .collect();
        let (low, high) = paired_gain(&pairs).unwrap().interval.unwrap();
        assert!(low <= 0.1 && 0.1 <= high && high - low < 0.02, "{low} {high}");
    }
}
