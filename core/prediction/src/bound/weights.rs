//! Weights between ranks.

/// Weights of ordered pairs of ranks.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// Positive weights to other ranks, by rank, sorted by the other.
    pub(super) to: Vec<Vec<(u32, f64)>>,
}

impl Weights {
    /// Sums weights of ordered pairs.
    pub(super) fn new(ranks: usize, pairs: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let mut to = vec![Vec::new(); ranks];
        for (source, destination, weight) in pairs {
            if source != destination && weight > 0.0 {
                to[source as usize].push((destination, weight));
            }
        }
        for row in &mut to {
            row.sort_by_key(|&(destination, _)| destination);
            row.dedup_by(|next, sum| {
                let is_same = next.0 == sum.0;
                sum.1 += if is_same { next.1 } else { 0.0 };
                is_same
            });
        }
        Self { to }
    }

    pub(super) fn ranks(&self) -> usize {
        self.to.len()
    }

    /// The opposite direction of every pair.
    pub(super) fn reversed(&self) -> Self {
        Self::new(
            self.ranks(),
            self.iter().map(|(source, destination, weight)| (destination, source, weight)),
        )
    }

    /// Both directions of every pair added up, in each direction.
    pub(super) fn symmetric(&self) -> Self {
        let both = self.iter().flat_map(|(a, b, weight)| [(a, b, weight), (b, a, weight)]);
        Self::new(self.ranks(), both)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        let rows = (0..).zip(&self.to);
        rows.flat_map(|(source, row)| {
            row.iter().map(move |&(destination, weight)| (source, destination, weight))
        })
    }

    /// The sum of the weights of a rank to all but `count` others, those with the highest weights.
    pub(super) fn beyond(&self, rank: usize, count: usize) -> f64 {
        let mut weights: Vec<f64> = self.to[rank].iter().map(|&(_, weight)| weight).collect();
        weights.sort_unstable_by(|a, b| b.total_cmp(a));
        weights.iter().skip(count).sum()
    }
}
