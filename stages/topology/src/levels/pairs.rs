//! A number for every pair of things.

/// A number for every unordered pair; `NaN` where it is not known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairs {
    count: usize,
    /// Row by row of the upper triangle.
    values: Vec<f64>,
}

impl Pairs {
    /// Nothing is known.
    pub(super) fn unknown(count: usize) -> Self {
        Self { count, values: vec![f64::NAN; count * count.saturating_sub(1) / 2] }
    }

    /// Number of things.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All numbers, row by row of the upper triangle.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    fn index(&self, a: usize, b: usize) -> usize {
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        a * (2 * self.count - a - 1) / 2 + b - a - 1
    }

    /// The number of two different things.
    pub(super) fn get(&self, a: usize, b: usize) -> f64 {
        self.values[self.index(a, b)]
    }

    /// Sets the number of two different things.
    pub(super) fn set(&mut self, a: usize, b: usize, value: f64) {
        let index = self.index(a, b);
        self.values[index] = value;
    }

    /// Every pair with its number, the smaller one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let pairs = (0..self.count).flat_map(|a| (a + 1..self.count).map(move |b| (a, b)));
        pairs.zip(&self.values).map(|((a, b), &value)| (a, b, value))
    }

    /// Estimates what is not known: the smallest number such that a way over known pairs exceeds it nowhere, which is the height at
    /// which the two would join if numbers were those of a tree. Says how many there were, or which two no way joins.
    pub(super) fn complete(&mut self) -> Result<usize, (usize, usize)> {
        let unknown = self.values.iter().filter(|value| value.is_nan()).count();
        if unknown == 0 {
            return Ok(0);
        }
        let mut known: Vec<(usize, usize, f64)> = self.iter().filter(|(.., value)| !value.is_nan()).collect();
        known.sort_by(|a, b| a.2.total_cmp(&b.2));
        let mut group: Vec<usize> = (0..self.count).collect();
        let mut members: Vec<Vec<usize>> = (0..self.count).map(|thing| vec![thing]).collect();
        for (a, b, value) in known {
            let (a, b) = (group[a], group[b]);
            if a == b {
                continue;
            }
            let (large, small) = if members[a].len() >= members[b].len() { (a, b) } else { (b, a) };
            let joining = std::mem::take(&mut members[small]);
            for &one in &joining {
                group[one] = large;
                for &other in &members[large] {
                    let index = self.index(one, other);
                    if self.values[index].is_nan() {
                        self.values[index] = value;
                    }
                }
            }
            members[large].extend(joining);
        }
        match (1..self.count).find(|&thing| group[thing] != group[0]) {
            Some(other) => Err((0, other)),
            None => Ok(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_pairs_are_as_far_apart_as_the_worst_step_on_the_best_way() {
        let mut pairs = Pairs::unknown(4);
        for (a, b, value) in [(0, 1, 1.0), (2, 3, 2.0), (1, 2, 5.0), (0, 3, 7.0)] {
            pairs.set(b, a, value);
        }
        assert_eq!(pairs.complete(), Ok(2));
        let all: Vec<_> = pairs.iter().map(|(a, b, value)| (a, b, value as u32)).collect();
        assert_eq!(all, [(0, 1, 1), (0, 2, 5), (0, 3, 7), (1, 2, 5), (1, 3, 5), (2, 3, 2)]);
    }

    #[test]
    fn pieces_are_named() {
        let mut pairs = Pairs::unknown(3);
        pairs.set(0, 1, 1.0);
        assert_eq!(pairs.complete(), Err((0, 2)));
        assert_eq!(Pairs::unknown(0).complete(), Ok(0));
        assert_eq!(Pairs::unknown(1).complete(), Ok(0));
    }
}
