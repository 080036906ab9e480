//! Communication patterns of generated programs.

use hopmap_model::seed_stream;

use crate::params::{GenerateParams, Pattern};

/// Number of receivers per rank in [`Pattern::Random`], if there are enough ranks.
const PARTNERS: u32 = 8;

/// Messages of the ranks in one round. Rounds of several phases alternate.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pattern: Pattern,
    pub(super) ranks: u32,
    key: u64,
    /// Extents of the grid of ranks, last one fastest.
    grid: [u32; 3],
    /// Receivers and senders of every rank in [`Pattern::Random`].
    partners: [Vec<Vec<u32>>; 2],
}

impl Program {
    pub(super) fn new(params: &GenerateParams) -> Self {
        let ranks = params.ranks;
        let grid = match params.pattern {
            Pattern::Stencil3d | Pattern::Multigrid => cube(ranks),
            _ => [1, square(ranks), ranks / square(ranks)],
        };
        let stream = seed_stream("trace/generate", params.seed, 0);
        let mut program = Self {
            pattern: params.pattern,
            ranks,
            key: stream.iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte)),
            grid,
            partners: Default::default(),
        };
        if params.pattern == Pattern::Random {
            program.partners = program.draw_partners();
        }
        program
    }

    /// A pseudo-random number derived from two others (the finaliser of `SplitMix64`, twice).
    pub(super) fn mix(&self, one: u64, other: u64) -> u64 {
        let mix = |mut z: u64| {
            z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        mix(mix(self.key ^ one) ^ other)
    }

    fn draw_partners(&self) -> [Vec<Vec<u32>>; 2] {
        let mut sources = vec![Vec::new(); self.ranks as usize];
        let draw = |source: u32| {
            let mut drawn = Vec::new();
            let mut tries = 0;
            while (drawn.len() as u32) < PARTNERS.min(self.ranks - 1) {
                let rank = (self.mix((1 << 40) + u64::from(source), tries) % u64::from(self.ranks)) as u32;
                tries += 1;
                if rank != source && !drawn.contains(&rank) {
                    drawn.push(rank);
                }
            }
            drawn
        };
        let destinations: Vec<Vec<u32>> = (0..self.ranks).map(draw).collect();
        for (source, destinations) in (0..).zip(&destinations) {
            for destination in destinations {
                sources[*destination as usize].push(source);
            }
        }
        [destinations, sources]
    }

    /// Number of different rounds.
    pub(super) fn phases(&self) -> u64 {
        let halvings = |most: u32| u64::from(most.max(2).ilog2());
        match self.pattern {
            Pattern::Wavefront => 2,
            Pattern::Halo => 1 + halvings(self.ranks),
            // Down to two ranks in a row.
            Pattern::Multigrid => halvings(self.grid[2]),
            _ => 1,
        }
    }

    /// Messages of all ranks in one round.
    pub(super) fn messages(&self, phase: u64) -> u64 {
        match self.pattern {
            Pattern::AllToAll => u64::from(self.ranks) * u64::from(self.ranks - 1),
            _ => (0..self.ranks).map(|rank| self.destinations(rank, phase).len() as u64).sum(),
        }
    }

    /// Receivers of a rank in a round, in order.
    pub(super) fn destinations(&self, rank: u32, phase: u64) -> Vec<u32> {
        match self.pattern {
            Pattern::Stencil2d | Pattern::Stencil3d => {
                let steps = [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)];
                self.neighbours(rank, &steps)
            }
            Pattern::Wavefront => self.neighbours(rank, &[(1, phase == 0), (2, phase == 0)]),
            Pattern::Rows => self.row_neighbours(rank),
            Pattern::AllToAll => (1..self.ranks).map(|step| (rank + step) % self.ranks).collect(),
            Pattern::Random => self.partners[0][rank as usize].clone(),
            Pattern::Halo => self.halo(rank, phase),
            Pattern::Multigrid => self.coarse_neighbours(rank, 1 << phase),
        }
    }

    /// Senders to a rank in a round, in order.
    pub(super) fn sources(&self, rank: u32, phase: u64) -> Vec<u32> {
        match self.pattern {
            Pattern::Random => self.partners[1][rank as usize].clone(),
            Pattern::Wavefront => self.destinations(rank, 1 - phase),
            // These patterns are symmetric.
            _ => self.destinations(rank, phase),
        }
    }

    /// Neighbours along some axes of the grid, which has borders.
    fn neighbours(&self, rank: u32, steps: &[(usize, bool)]) -> Vec<u32> {
        let strides = [self.grid[1] * self.grid[2], self.grid[2], 1];
        let neighbour = |&(axis, up): &(usize, bool)| {
            let coordinate = rank / strides[axis] % self.grid[axis];
            match up {
                true => (coordinate + 1 < self.grid[axis]).then(|| rank + strides[axis]),
                false => (coordinate > 0).then(|| rank - strides[axis]),
            }
        };
        steps.iter().filter_map(neighbour).collect()
    }

    /// The eight neighbours on a grid whose rows are rings, then the partners of an allreduce by recursive
    /// doubling.
    fn halo(&self, rank: u32, phase: u64) -> Vec<u32> {
        if let Some(bit) = phase.checked_sub(1) {
            let partner = rank ^ (1 << bit);
            return if partner < self.ranks { vec![partner] } else { Vec::new() };
        }
        let [_, rows, columns] = self.grid;
        let (row, column) = (rank / columns, rank % columns);
        let near = row.saturating_sub(1)..=(row + 1).min(rows - 1);
        let columns_near = [column + columns - 1, column, column + 1];
        let all = near.flat_map(|row| columns_near.map(|column| row * columns + column % columns));
        others(rank, all)
    }

    /// Ranks at a stride along the axes of a torus; none if the rank is not on the grid of that stride.
    fn coarse_neighbours(&self, rank: u32, stride: u32) -> Vec<u32> {
        let strides = [self.grid[1] * self.grid[2], self.grid[2], 1];
        let coordinates: Vec<u32> = (0..3).map(|axis| rank / strides[axis] % self.grid[axis]).collect();
        if coordinates.iter().any(|coordinate| !coordinate.is_multiple_of(stride)) {
            return Vec::new();
        }
        // The last step of a ring is shorter if the stride does not divide it.
        let last = |axis: usize| (self.grid[axis] - 1) / stride * stride;
        let along = (0..3).flat_map(|axis| {
            let here = coordinates[axis];
            let up = if here == last(axis) { 0 } else { here + stride };
            let down = here.checked_sub(stride).unwrap_or(last(axis));
            [down, up].map(|there| rank - here * strides[axis] + there * strides[axis])
        });
        others(rank, along)
    }

    /// Neighbours in the row, which is a ring.
    fn row_neighbours(&self, rank: u32) -> Vec<u32> {
        let columns = self.grid[2];
        let (row, column) = (rank / columns, rank % columns);
        let at = |column: u32| row * columns + column % columns;
        let (left, right) = (at(column + columns - 1), at(column + 1));
        if left == right { vec![left] } else { vec![left, right] }
    }

    /// Bytes of a message.
    pub(super) fn bytes(&self, source: u32, destination: u32) -> u64 {
        8 * (1 + self.mix(u64::from(source) << 32 | u64::from(destination), 1) % 4096)
    }

    /// The members of all communicators in rank order, `MPI_COMM_WORLD` first. Communicators of rows number
    /// their ranks backwards, so that a reader that confuses them with world ranks fails.
    pub(super) fn communicators(&self) -> Vec<Vec<u64>> {
        let mut all = vec![(0..u64::from(self.ranks)).collect()];
        if self.pattern == Pattern::Rows {
            let columns = self.grid[2];
            let row = |row: u32| (row * columns..(row + 1) * columns).rev().map(u64::from).collect();
            all.extend((0..self.grid[1]).map(row));
        }
        all
    }

    /// The communicator of messages to or from a rank, and that rank in it.
    pub(super) fn address(&self, rank: u32) -> (u32, u32) {
        let columns = self.grid[2];
        match self.pattern {
            Pattern::Rows => (1 + rank / columns, columns - 1 - rank % columns),
            _ => (0, rank),
        }
    }
}

/// Other ranks in this order, without duplicates.
fn others(rank: u32, all: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut found = Vec::new();
    for other in all {
        if other != rank && !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

/// The largest divisor up to the square root.
fn square(number: u32) -> u32 {
    let most = f64::from(number).sqrt() as u32;
    (1..=most.max(1)).rev().find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(1)
}

/// Three nearly equal factors, in ascending order.
fn cube(number: u32) -> [u32; 3] {
    let most = f64::from(number).cbrt().round() as u32;
    let first = (1..=most.max(1)).rev().find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(1);
    let second = square(number / first);
    [first, second, number / first / second]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pattern: Pattern, ranks: u32) -> Program {
        Program::new(&GenerateParams { pattern, ranks, events: 1000, seed: 1 })
    }

    #[test]
    fn grids_are_nearly_square() {
        assert_eq!([1, 2, 12, 13, 64].map(square), [1, 1, 3, 1, 8]);
        assert_eq!([2, 27, 64, 24].map(cube), [[1, 1, 2], [3, 3, 3], [4, 4, 4], [3, 2, 4]]);
    }

    #[test]
    fn neighbours_are_those_of_the_grid() {
        assert_eq!(program(Pattern::Stencil2d, 12).destinations(5, 0), [1, 9, 4, 6]);
        assert_eq!(program(Pattern::Stencil2d, 12).destinations(0, 0), [4, 1]);
        assert_eq!(program(Pattern::Stencil3d, 27).destinations(13, 0), [4, 22, 10, 16, 12, 14]);
        assert_eq!(program(Pattern::Rows, 12).destinations(4, 0), [7, 5]);
        assert_eq!(program(Pattern::Wavefront, 12).destinations(0, 0), [4, 1]);
        assert_eq!(program(Pattern::Wavefront, 12).destinations(0, 1), [0; 0]);
        assert_eq!(program(Pattern::AllToAll, 3).destinations(1, 0), [2, 0]);
        assert_eq!(program(Pattern::Random, 3).destinations(1, 0).len(), 2);
        // A row is a ring; a column is not.
        assert_eq!(program(Pattern::Halo, 16).destinations(0, 0), [3, 1, 7, 4, 5]);
        assert_eq!(program(Pattern::Halo, 16).destinations(5, 2), [7]);
        assert_eq!(program(Pattern::Multigrid, 64).destinations(0, 0), [48, 16, 12, 4, 3, 1]);
        assert_eq!(program(Pattern::Multigrid, 64).destinations(0, 1), [32, 8, 2]);
        assert_eq!(program(Pattern::Multigrid, 64).destinations(1, 1), [0; 0]);
    }

    #[test]
    fn every_sent_message_is_received() {
        for pattern in Pattern::ALL {
            for ranks in [2, 5, 16, 36] {
                let program = program(pattern, ranks);
                for phase in 0..program.phases() {
                    let pairs = |of: &dyn Fn(u32) -> Vec<(u32, u32)>| {
                        let mut pairs: Vec<_> = (0..ranks).flat_map(of).collect();
                        pairs.sort_unstable();
                        pairs
                    };
                    let sent = pairs(&|rank| {
                        program.destinations(rank, phase).into_iter().map(|other| (rank, other)).collect()
                    });
                    let received = pairs(&|rank| {
                        program.sources(rank, phase).into_iter().map(|other| (other, rank)).collect()
                    });
                    assert_eq!(sent, received, "{pattern:?} {ranks}");
                    assert_eq!(sent.len() as u64, program.messages(phase), "{pattern:?} {ranks}");
                    assert!(sent.windows(2).all(|pair| pair[0] != pair[1]), "{pattern:?} {ranks}");
                }
            }
        }
    }

    #[test]
    fn addresses_are_ranks_in_communicators() {
        for pattern in Pattern::ALL {
            let program = program(pattern, 12);
            let communicators = program.communicators();
            for rank in 0..12 {
                let (communicator, place) = program.address(rank);
                assert_eq!(communicators[communicator as usize][place as usize], u64::from(rank));
            }
        }
    }
}
