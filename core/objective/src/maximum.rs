//! The largest of many numbers, or a smooth norm in its place, updated incrementally.

/// Sparse changes of numbers. One is reused for many evaluations, which therefore allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Change of every number, and whether it is listed.
    of: Vec<(i64, bool)>,
    listed: Vec<u32>,
}

impl Changes {
    pub(crate) fn clear(&mut self) {
        self.listed.drain(..).for_each(|index| self.of[index as usize] = (0, false));
    }

    /// Adds to the change of a number.
    #[inline]
    pub(crate) fn add(&mut self, index: u32, change: i64) {
        let at = index as usize;
        if at >= self.of.len() {
            self.of.resize(at + 1, (0, false));
        }
        let (sum, is_listed) = &mut self.of[at];
        *sum += change;
        if !std::mem::replace(is_listed, true) {
            self.listed.push(index);
        }
    }

    /// The numbers that change.
    fn iter(&self) -> impl Iterator<Item = (u32, i64)> {
        let changes = self.listed.iter().map(|&index| (index, self.of[index as usize].0));
        changes.filter(|change| change.1 != 0)
    }

    fn has(&self, index: usize) -> bool {
        self.of.get(index).is_some_and(|change| change.0 != 0)
    }
}

/// A norm of numbers with exponent p = 2^`doublings`, as a fixed-point number.
///
/// It is at least the maximum, and for n numbers at most n^(1/p) times it. Unlike the maximum it changes with
/// every number, so a search finds its way where the maximum is flat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Smoothing {
    pub(crate) doublings: u32,
    /// Fractional bits of the norm.
    pub(crate) bits: u32,
}

/// Non-negative numbers and their maximum or norm.
#[derive(Debug, Clone)]
pub(crate) enum Maximum {
    Largest(Tournament),
    Norm(Norm),
}

impl Maximum {
    /// Of numbers that never exceed `bound`.
    pub(crate) fn new(values: &[i64], smoothing: Option<Smoothing>, bound: f64) -> Self {
        match smoothing {
            None => Self::Largest(Tournament::new(values)),
            Some(smoothing) => Self::Norm(Norm::new(values, smoothing, bound)),
        }
    }

    pub(crate) fn value(&self) -> i64 {
        match self {
            Self::Largest(tournament) => tournament.largest(),
            Self::Norm(norm) => norm.of_sum(norm.powers[1]),
        }
    }

    /// The value after changes, each scaled.
    pub(crate) fn after(&self, changes: &Changes, scale: impl Fn(u32, i64) -> i64) -> i64 {
        match self {
            Self::Largest(tournament) => tournament.largest_after(changes, scale),
            Self::Norm(norm) => norm.after(changes, scale),
        }
    }

    /// Adds changes, each scaled.
    pub(crate) fn add(&mut self, changes: &Changes, scale: impl Fn(u32, i64) -> i64) {
        for (index, change) in changes.iter() {
            let change = scale(index, change);
            match self {
                Self::Largest(tournament) => tournament.add(index as usize, change),
                Self::Norm(norm) => norm.add(index as usize, change),
            }
        }
    }
}

/// A tournament tree: an update takes logarithmic time.
#[derive(Debug, Clone)]
pub(crate) struct Tournament {
    /// The root has index 1, the children of node i have indices 2i and 2i + 1; the numbers are the leaves.
    nodes: Vec<i64>,
    leaves: usize,
}

impl Tournament {
    fn new(values: &[i64]) -> Self {
        let leaves = values.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        nodes[leaves..leaves + values.len()].copy_from_slice(values);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The largest number; zero if there is none.
    fn largest(&self) -> i64 {
        self.nodes[1]
    }

    fn add(&mut self, index: usize, change: i64) {
        let mut node = self.leaves + index;
        self.nodes[node] += change;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
        }
    }

    fn largest_after(&self, changes: &Changes, scale: impl Fn(u32, i64) -> i64) -> i64 {
        let after = |(index, change)| self.nodes[self.leaves + index as usize] + scale(index, change);
        self.largest_of_others(changes, changes.iter().map(after).max().unwrap_or(0).max(0))
    }

    /// The largest of `largest` and all numbers that do not change, depth first from the root.
    fn largest_of_others(&self, changes: &Changes, mut largest: i64) -> i64 {
        let mut node = 1;
        loop {
            let is_open = self.nodes[node] > largest;
            if is_open && node < self.leaves {
                node *= 2;
                continue;
            }
            if is_open && !changes.has(node - self.leaves) {
                largest = self.nodes[node];
            }
            // The next subtree to the right: the sibling of the nearest left child above.
            node = (node + 1) >> (node + 1).trailing_zeros();
            if node == 1 {
                return largest;
            }
        }
    }
}

/// Powers of numbers and their sum, as a tree: the sum depends on the numbers alone, not on earlier changes,
/// although floating-point numbers are rounded.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    values: Vec<i64>,
    /// Sums of powers, with the indices of a tournament tree.
    powers: Vec<f64>,
    leaves: usize,
    smoothing: Smoothing,
    /// Inverse of the bound: powers are of numbers up to 1.
    unit: f64,
}

impl Norm {
    fn new(values: &[i64], smoothing: Smoothing, bound: f64) -> Self {
        let leaves = values.len().next_power_of_two();
        let powers = vec![0.0; 2 * leaves];
        let mut norm =
            Self { values: values.to_vec(), powers, leaves, smoothing, unit: 1.0 / bound.max(1.0) };
        for (index, &value) in values.iter().enumerate() {
            norm.powers[leaves + index] = norm.power(value);
        }
        for node in (1..leaves).rev() {
            norm.powers[node] = norm.powers[2 * node] + norm.powers[2 * node + 1];
        }
        norm
    }

    #[inline]
    fn power(&self, value: i64) -> f64 {
        (0..self.smoothing.doublings).fold(value as f64 * self.unit, |power, _| power * power)
    }

    /// The norm as a fixed-point number.
    #[inline]
    fn of_sum(&self, sum: f64) -> i64 {
        let root = (0..self.smoothing.doublings).fold(sum.max(0.0), |root, _| root.sqrt());
        (root / self.unit * f64::from(1u32 << self.smoothing.bits)).round() as i64
    }

    /// Where the largest numbers fall to a small part, the sum loses the digits of all others; such a change
    /// is a gain in any case.
    fn after(&self, changes: &Changes, scale: impl Fn(u32, i64) -> i64) -> i64 {
        let mut sum = self.powers[1];
        for (index, change) in changes.iter() {
            let at = index as usize;
            sum += self.power(self.values[at] + scale(index, change)) - self.powers[self.leaves + at];
        }
        self.of_sum(sum)
    }

    fn add(&mut self, index: usize, change: i64) {
        self.values[index] += change;
        let mut node = self.leaves + index;
        self.powers[node] = self.power(self.values[index]);
        while node > 1 {
            node /= 2;
            self.powers[node] = self.powers[2 * node] + self.powers[2 * node + 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_maximum_and_the_norm_equal_those_of_a_list(
            mut values in prop::collection::vec(0i64..50, 1..20),
            rounds in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0i64..50), 0..6), 0..10),
        ) {
            let smoothing = Smoothing { doublings: 3, bits: 10 };
            let mut largest = Maximum::new(&values, None, 50.0);
            let mut norm = Maximum::new(&values, Some(smoothing), 50.0);
            for round in rounds {
                let mut after = values.clone();
                round.iter().for_each(|(index, value)| after[index.index(values.len())] = *value);
                let mut changes = Changes::default();
                for (index, (after, before)) in (0..).zip(after.iter().zip(&values)) {
                    // Changes may come in parts that cancel each other.
                    [7, after - before, -7].into_iter().for_each(|part| changes.add(index, part));
                }
                let expected = after.iter().copied().max().unwrap();
                let expected_norm = after.iter().map(|&value| (value as f64).powi(8)).sum::<f64>().powf(0.125);
                let is_near = |norm: i64| (norm as f64 / 1024.0 - expected_norm).abs() < 0.01;
                let scale = |_, change| change;
                prop_assert_eq!(largest.after(&changes, scale), expected);
                prop_assert!(is_near(norm.after(&changes, scale)));
                largest.add(&changes, scale);
                norm.add(&changes, scale);
                prop_assert_eq!(largest.value(), expected);
                prop_assert_eq!(norm.value(), Maximum::new(&after, Some(smoothing), 50.0).value());
                prop_assert!(is_near(norm.value()));
                values = after;
            }
        }
    }
}
