//! From where on a number counts as another one.

/// From where on a number counts as another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// A time, a bandwidth or a cost has drifted when it has grown or shrunk by more than this part of the smaller value.
    pub drift: f64,
    /// A latency that was measured has to differ by this many seconds at least: clocks and schedulers are not finer.
    pub least_s: f64,
    /// It also has to differ by more than the first tenth of the measured times varies; variation beyond this many seconds
    /// counts as this.
    pub noisiest_s: f64,
    /// The rate of a link that was measured has to differ by more than the times of large messages vary; variation by more than
    /// this factor counts as this.
    pub noisiest_rate: f64,
}

impl Default for Thresholds {
    /// 30 %, and between 0.2 and 20 µs. Shortest times of pairs that do not change vary by up to 5 % from run to run on busy
    /// hosts, and by 20 µs at most where a switch is a process. Rates there differ by a factor of 1.4 from run to run.
    fn default() -> Self {
        Self { drift: 0.3, least_s: 2e-7, noisiest_s: 20e-6, noisiest_rate: 2.0 }
    }
}

impl Thresholds {
    /// Whether a number has become another one, the same in both directions of time.
    pub(crate) fn differ(&self, before: f64, after: f64) -> bool {
        before.max(after) > before.min(after) * (1.0 + self.drift)
    }

    /// Whether a rate has, where large messages take `spread` times the shortest time of theirs.
    pub(crate) fn rates_differ(&self, before: f64, after: f64, spread: f64) -> bool {
        self.differ(before, after) && before.max(after) > before.min(after) * spread.min(self.noisiest_rate)
    }

    /// Whether a latency has, where the first tenth of the times varies by `spread_s`.
    pub(crate) fn latencies_differ(&self, before: f64, after: f64, spread_s: f64) -> bool {
        let floor = spread_s.min(self.noisiest_s).max(self.least_s);
        (before - after).abs() > floor && self.differ(before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_same_in_both_directions_and_needs_more_than_noise() {
        let thresholds = Thresholds::default();
        for (before, after, spread, differs) in [
            (305e-6, 412e-6, 0.0, true),
            (300e-6, 380e-6, 0.0, false),
            (0.3e-6, 0.45e-6, 0.0, false),
            (1.2e-6, 1.8e-6, 1e-6, false),
            (1.2e-6, 1.8e-6, 0.0, true),
            (40e-6, 55e-6, 18e-6, false),
            (40e-6, 65e-6, 1.0, true),
            (0.0, 3e-6, 0.0, true),
        ] {
            assert_eq!(thresholds.latencies_differ(before, after, spread), differs, "{before} {after}");
            assert_eq!(thresholds.latencies_differ(after, before, spread), differs, "{after} {before}");
        }
        assert!(!thresholds.differ(0.0, 0.0));
        for (before, after, spread, differs) in
            [(6e8, 8e8, 1.0, true), (6e8, 8e8, 1.5, false), (6e8, 13e8, 9.0, true), (6e8, 7e8, 1.0, false)]
        {
            assert_eq!(thresholds.rates_differ(before, after, spread), differs, "{before} {after}");
            assert_eq!(thresholds.rates_differ(after, before, spread), differs, "{after} {before}");
        }
    }
}
