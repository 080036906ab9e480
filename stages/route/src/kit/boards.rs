//! Units on boards: how many boards they need, and at what cost.

use super::design::Design;
use super::stock::BoardType;

/// Steps of a search for the cheapest boards.
const MOST_STEPS: u32 = 100_000;

/// Which board every unit is on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Packing {
    pub(super) cost: f64,
    /// Type and number of the board of every unit; empty where a kit has no boards.
    pub(super) boards: Vec<(usize, usize)>,
    /// Whether there is surely no cheaper one.
    pub(super) proven: bool,
}

/// What boards for so many chips cost at least.
pub(super) fn least(types: &[BoardType], chips: usize) -> f64 {
    // Chips at the price that they have on the board where they are cheapest.
    let price = types.iter().map(|board| board.cost / board.chips as f64).fold(f64::INFINITY, f64::min);
    if types.is_empty() { 0.0 } else { price * chips as f64 }
}

/// The cheapest boards; nothing and whether that is proven where units do not fit.
pub(super) fn pack(types: &[BoardType], design: &Design<'_>) -> Result<Packing, bool> {
    if types.is_empty() {
        return Ok(Packing { proven: true, ..Packing::default() });
    }
    let mut search = Search { types, design, open: Vec::new(), of: Vec::new(), best: None, steps: 0 };
    search.place(0.0);
    let proven = search.steps < MOST_STEPS;
    search.best.map(|best| Packing { proven, ..best }).ok_or(proven)
}

struct Search<'a> {
    types: &'a [BoardType],
    design: &'a Design<'a>,
    /// Type and number, chips, and cables to other boards of the boards in use.
    open: Vec<((usize, usize), usize, u32)>,
    /// The open board of every unit so far.
    of: Vec<usize>,
    best: Option<Packing>,
    steps: u32,
}

impl Search<'_> {
    fn place(&mut self, cost: f64) {
        self.steps += 1;
        if self.steps >= MOST_STEPS || self.best.as_ref().is_some_and(|best| cost >= best.cost) {
            return;
        }
        if self.of.len() == self.design.units.len() {
            let boards = self.of.iter().map(|&board| self.open[board].0).collect();
            self.best = Some(Packing { cost, boards, proven: false });
            return;
        }
        for board in 0..self.open.len() {
            self.put(board, cost);
        }
        for (number, kind) in self.types.iter().enumerate() {
            let used = self.open.iter().filter(|(id, ..)| id.0 == number).count();
            if used < kind.names.len() {
                self.open.push(((number, used), 0, 0));
                self.put(self.open.len() - 1, cost + kind.cost);
                self.open.pop();
            }
        }
    }

    /// Puts the next unit on a board, if chips and connectors allow.
    fn put(&mut self, board: usize, cost: f64) {
        let unit = self.of.len();
        if self.open[board].1 >= self.types[self.open[board].0.0].chips {
            return;
        }
        let before = self.open.clone();
        self.open[board].1 += 1;
        for (other, cables) in self.design.neighbours(unit).filter(|(other, _)| *other < unit) {
            let there = self.of[other];
            if there != board {
                self.open[board].2 += cables;
                self.open[there].2 += cables;
            }
        }
        if self.open.iter().all(|&((kind, _), _, cables)| cables <= self.types[kind].connectors) {
            self.of.push(board);
            self.place(cost);
            self.of.pop();
        }
        self.open = before;
    }
}
