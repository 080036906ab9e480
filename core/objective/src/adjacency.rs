//! Who exchanges messages with whom.

/// A rank that another one exchanges messages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The rank.
    pub rank: u32,
    /// Integer weight of the edges of both directions; more than zero.
    pub weight: i64,
}

/// The neighbours of every rank, in order.
#[derive(Debug, Clone)]
pub(crate) struct Adjacency {
    /// Where the neighbours of every rank begin, and the end.
    first: Vec<usize>,
    neighbours: Vec<Neighbour>,
}

impl Adjacency {
    /// Sorts triples of rank, neighbour and weight, and joins equal pairs.
    pub(crate) fn new(ranks: usize, mut pairs: Vec<(u32, u32, i64)>) -> Self {
        pairs.sort_unstable_by_key(|&(rank, neighbour, _)| (rank, neighbour));
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        let mut first = vec![0; ranks + 1];
        for &(rank, ..) in &pairs {
            first[rank as usize + 1] += 1;
        }
        for rank in 0..ranks {
            first[rank + 1] += first[rank];
        }
        Self {
            first,
            neighbours: pairs.into_iter().map(|(_, rank, weight)| Neighbour { rank, weight }).collect(),
        }
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.first.len() - 1
    }

    #[inline]
    pub(crate) fn of(&self, rank: u32) -> &[Neighbour] {
        &self.neighbours[self.first[rank as usize]..self.first[rank as usize + 1]]
    }

    /// The neighbours of all ranks.
    pub(crate) fn all(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// Triples of rank, neighbour and weight.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u32, i64)> + '_ {
        let of_rank = |rank| self.of(rank).iter().map(move |n| (rank, n.rank, n.weight));
        (0..self.ranks() as u32).flat_map(of_rank)
    }
}
