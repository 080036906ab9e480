//! A problem as the matrices that other programs read.

use std::io::{self, Write};

use hopmap_objective::Problem;

/// What ranks send and what slots cost as two square matrices of one size, the rows of ranks that are not there zero.
///
/// The only place that reads a [`Problem`] for another program. Values are the integers of the problem, of which both
/// directions of a pair are added; half of each is written if all are even, so that a problem of QAPLIB stays what it was.
#[derive(Debug)]
pub(super) struct Matrices<'p> {
    problem: &'p Problem,
    halved: bool,
}

impl<'p> Matrices<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let neighbours = (0..problem.ranks() as u32).flat_map(|rank| problem.neighbours(rank));
        Self { problem, halved: neighbours.into_iter().all(|neighbour| neighbour.weight % 2 == 0) }
    }

    /// Rows and columns of each.
    pub(super) fn size(&self) -> usize {
        self.problem.slots()
    }

    /// What the double sum over both matrices gives for a placement.
    pub(super) fn cost(&self, slots: &[u32]) -> f64 {
        self.problem.cost(slots) as f64 * if self.halved { 1.0 } else { 2.0 }
    }

    /// What a cost of the double sum is in the units of the trace.
    pub(super) fn real(&self, cost: f64) -> f64 {
        cost / self.problem.scale() / if self.halved { 1.0 } else { 2.0 }
    }

    /// Writes what ranks send to each other, row by row.
    pub(super) fn write_program(&self, to: &mut impl Write) -> io::Result<()> {
        let mut row = vec![0; self.size()];
        for rank in 0..self.size() {
            row.fill(0);
            if rank < self.problem.ranks() {
                for neighbour in self.problem.neighbours(rank as u32) {
                    row[neighbour.rank as usize] = neighbour.weight >> u32::from(self.halved);
                }
            }
            write_row(to, row.iter().copied())?;
        }
        Ok(())
    }

    /// Writes what slots cost, row by row.
    pub(super) fn write_machine(&self, to: &mut impl Write) -> io::Result<()> {
        let slots = 0..self.size() as u32;
        let distance = self.problem.distance();
        slots.clone().try_for_each(|a| write_row(to, slots.clone().map(|b| distance.cost(a, b))))
    }
}

fn write_row(to: &mut impl Write, values: impl Iterator<Item = i64>) -> io::Result<()> {
    for (column, value) in values.enumerate() {
        write!(to, "{}{value}", if column == 0 { "" } else { " " })?;
    }
    writeln!(to)
}
