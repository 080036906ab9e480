//! Neighbours of ranks, for symmetric problems and for directed ones.

/// A rank with which another one exchanges messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The rank.
    pub rank: u32,
    /// Positive integer weight of the edges of both directions.
    pub weight: i64,
}

/// The neighbours of every rank, sorted.
#[derive(Debug, Clone)]
pub(crate) struct Adjacency {
    /// Offsets of the neighbours of every rank, and the end.
    first: Vec<usize>,
    pub(crate) neighbours: Vec<Neighbour>,
}

impl Adjacency {
    /// Sorts triples of rank, neighbour and weight, and merges equal pairs.
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

    /// Triples of rank, neighbour and weight.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u32, i64)> + '_ {
        let of_rank = |rank| self.of(rank).iter().map(move |n| (rank, n.rank, n.weight));
        (0..self.ranks() as u32).flat_map(of_rank)
    }
}

/// Weights and costs of every ordered pair, including the diagonal.
#[derive(Debug, Clone)]
pub(crate) struct Directed {
    /// Destinations and sources of a rank, without itself.
    sent: Adjacency,
    received: Adjacency,
    /// Weight that every rank sends to itself.
    own: Vec<i64>,
    /// Costs of all ordered pairs of slots, row by row.
    pub(crate) costs: Vec<i64>,
    pub(crate) slots: usize,
}

/// A direction of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
}

impl Directed {
    /// Creates it from triples of source, destination and weight, and the costs of all ordered pairs of
    /// slots.
    pub(crate) fn new(ranks: usize, edges: &[(u32, u32, i64)], costs: Vec<i64>, slots: usize) -> Self {
        let mut own = vec![0; ranks];
        edges.iter().filter(|edge| edge.0 == edge.1).for_each(|edge| own[edge.0 as usize] += edge.2);
        let between = || edges.iter().filter(|edge| edge.0 != edge.1);
        Self {
            sent: Adjacency::new(ranks, between().copied().collect()),
            received: Adjacency::new(ranks, between().map(|&(a, b, weight)| (b, a, weight)).collect()),
            own,
            costs,
            slots,
        }
    }

    /// Triples of source, destination and weight, including the diagonal.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u32, i64)> + '_ {
        let own = self.own.iter().enumerate().filter(|entry| *entry.1 > 0);
        self.sent.entries().chain(own.map(|(rank, &weight)| (rank as u32, rank as u32, weight)))
    }

    pub(crate) fn ranks(&self) -> usize {
        self.own.len()
    }

    /// Weight that a rank sends to itself.
    pub(crate) fn own(&self, rank: u32) -> i64 {
        self.own[rank as usize]
    }

    /// Destinations or sources of a rank.
    #[inline]
    pub(crate) fn neighbours(&self, direction: Direction, rank: u32) -> &[Neighbour] {
        match direction {
            Direction::Sent => self.sent.of(rank),
            Direction::Received => self.received.of(rank),
        }
    }

    /// The cost from a slot to another one, in either direction.
    #[inline]
    pub(crate) fn cost(&self, direction: Direction, slot: u32, other: u32) -> i64 {
        let (from, to) = match direction {
            Direction::Sent => (slot, other),
            Direction::Received => (other, slot),
        };
        self.costs[from as usize * self.slots + to as usize]
    }

    /// F of rank `i` on `slots[i]`.
    pub(crate) fn total(&self, slots: &[u32]) -> i64 {
        let mut total = 0;
        self.each(slots, |_, _, cost| total += cost);
        total
    }

    /// Calls `visit` with every source, destination and cost, including the diagonal.
    pub(crate) fn each(&self, slots: &[u32], mut visit: impl FnMut(u32, u32, i64)) {
        for (source, destination, weight) in self.entries() {
            let cost = self.cost(Direction::Sent, slots[source as usize], slots[destination as usize]);
            visit(source, destination, weight * cost);
        }
    }

    /// Calls `changed` with every rank whose cost with this one changes, and by how much, if this rank moves
    /// to slot `there` and `partner` to its slot; the rank itself is included. Messages received from the
    /// partner are skipped, because the partner reports them.
    pub(crate) fn changes(
        &self,
        slots: &[u32],
        rank: u32,
        partner: Option<u32>,
        there: u32,
        mut changed: impl FnMut(u32, i64),
    ) {
        let here = slots[rank as usize];
        for direction in [Direction::Sent, Direction::Received] {
            let cost = |slot, other| self.cost(direction, slot, other);
            for neighbour in self.neighbours(direction, rank) {
                if partner != Some(neighbour.rank) {
                    let other = slots[neighbour.rank as usize];
                    changed(neighbour.rank, neighbour.weight * (cost(there, other) - cost(here, other)));
                } else if direction == Direction::Sent {
                    changed(neighbour.rank, neighbour.weight * (cost(there, here) - cost(here, there)));
                }
            }
        }
        let own = self.own(rank);
        if own > 0 {
            let cost = |slot| self.cost(Direction::Sent, slot, slot);
            changed(rank, own * (cost(there) - cost(here)));
        }
    }
}
