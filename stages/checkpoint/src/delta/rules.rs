//! Rules for the base of a delta (Seed 002): the first checkpoint, the previous one, ADCA.

use hopmap_model::DeltaRule;

/// A rule on its way through a series, checkpoint by checkpoint.
///
/// ADCA keeps b of t − 1 and compares, for every checkpoint t from the second on, C = Δ(t, b) with C' = Δ(t, t − 1). If
/// (S(C) − S(C')) / S(C) > ε, b becomes t − 1. The paper leaves open what is stored then. Read literally it is C, and only
/// what follows is told by t − 1, which is two steps back by then; read as `immediate` it is C'. Nothing divides by S(C) = 0.
#[derive(Debug, Clone)]
pub struct Walk {
    rule: DeltaRule,
    epsilon: f64,
    /// b, the base that ADCA holds on to.
    held: u32,
}

/// What a rule decides for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Number of the base.
    pub base: u32,
    /// Bytes that are stored.
    pub bytes: u64,
    /// What ADCA's test compares with ε.
    pub saving: Option<f64>,
}

impl Walk {
    /// A rule before the second checkpoint.
    #[must_use]
    pub fn new(rule: DeltaRule, epsilon: f64) -> Self {
        Self::resume(rule, epsilon, 1)
    }

    /// A rule that goes on with the base it held: the first checkpoint until it has chosen another.
    #[must_use]
    pub fn resume(rule: DeltaRule, epsilon: f64, held: u32) -> Self {
        Self { rule, epsilon, held }
    }

    /// The base that it holds on to, by which the next checkpoint may be told.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> DeltaRule {
        self.rule
    }

    /// Whether checkpoint `number`, which is not the last one seen, may be asked for again.
    #[must_use]
    pub fn needs(&self, number: u32) -> bool {
        match self.rule {
            DeltaRule::Incremental => false,
            DeltaRule::First | DeltaRule::AdcaLiteral | DeltaRule::AdcaImmediate => number == self.held,
            DeltaRule::Optimum => true,
        }
    }

    /// Chooses the base of the checkpoint after `previous`; `size` gives the bytes of its delta against an earlier one.
    pub fn step(&mut self, previous: u32, mut size: impl FnMut(u32) -> u64) -> Choice {
        let simple = |base, bytes| Choice { base, bytes, saving: None };
        match self.rule {
            DeltaRule::First => simple(self.held, size(self.held)),
            DeltaRule::Incremental => simple(previous, size(previous)),
            DeltaRule::AdcaLiteral => self.adapt(previous, size).0,
            DeltaRule::AdcaImmediate => {
                let (held, switched) = self.adapt(previous, size);
                switched.map_or(held, |bytes| Choice { base: previous, bytes, ..held })
            }
            // What is stored of a checkpoint depends on its own base alone, so the best of each is the best of all.
            DeltaRule::Optimum => {
                let sizes = (1..=previous).map(|base| (size(base), base));
                let (bytes, base) = sizes.min().unwrap_or_default();
                simple(base, bytes)
            }
        }
    }

    /// A step of ADCA: the delta against the base it held, and if it switches the bytes of that against the previous checkpoint.
    fn adapt(&mut self, previous: u32, mut size: impl FnMut(u32) -> u64) -> (Choice, Option<u64>) {
        let (base, held, other) = (self.held, size(self.held), size(previous));
        let saving = (held > 0).then(|| (held as f64 - other as f64) / held as f64);
        let fires = saving.is_some_and(|saving| saving > self.epsilon);
        if fires {
            self.held = previous;
        }
        (Choice { base, bytes: held, saving }, fires.then_some(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bases that a rule chooses when sizes stand in a table: row t − 2 has those of t against 1, 2, …
    fn bases(rule: DeltaRule, sizes: &[&[u64]]) -> Vec<u32> {
        let mut walk = Walk::new(rule, 0.2);
        let step = |(row, sizes): (usize, &&[u64])| {
            let choice = walk.step(row as u32 + 1, |base| sizes[base as usize - 1]);
            assert_eq!(choice.bytes, sizes[choice.base as usize - 1]);
            choice.base
        };
        sizes.iter().enumerate().map(step).collect()
    }

    #[test]
    fn the_readings_differ_by_what_is_stored_when_the_test_fires() {
        let sizes: [&[u64]; 3] = [&[100], &[100, 50], &[100, 40, 90]];
        assert_eq!(bases(DeltaRule::First, &sizes), [1, 1, 1]);
        assert_eq!(bases(DeltaRule::Incremental, &sizes), [1, 2, 3]);
        assert_eq!(bases(DeltaRule::AdcaLiteral, &sizes), [1, 1, 2]);
        assert_eq!(bases(DeltaRule::AdcaImmediate, &sizes), [1, 2, 2]);
        assert_eq!(bases(DeltaRule::Optimum, &sizes), [1, 2, 2]);
    }

    #[test]
    fn a_saving_of_exactly_epsilon_switches_nothing() {
        assert_eq!(bases(DeltaRule::AdcaImmediate, &[&[10], &[100, 80]]), [1, 1]);
        assert_eq!(bases(DeltaRule::AdcaImmediate, &[&[10], &[100, 79]]), [1, 2]);
    }

    #[test]
    fn nothing_divides_by_an_empty_delta() {
        let mut walk = Walk::new(DeltaRule::AdcaImmediate, 0.0);
        assert_eq!(walk.step(1, |_| 0), Choice { base: 1, bytes: 0, saving: None });
        assert_eq!(walk.step(2, |base| u64::from(base) - 1).base, 1);
    }

    #[test]
    fn of_equal_bases_the_oldest_is_best() {
        assert_eq!(bases(DeltaRule::Optimum, &[&[7], &[7, 7], &[9, 7, 7]]), [1, 1, 2]);
    }

    #[test]
    fn the_second_checkpoint_is_always_told_by_the_first() {
        for rule in DeltaRule::ALL {
            assert_eq!(Walk::new(rule, 0.0).step(1, |_| 100).base, 1);
        }
    }
}
