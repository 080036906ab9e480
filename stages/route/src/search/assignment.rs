//! Processes to classes with limited room, as cheaply as possible: a bound and what each choice costs beyond it.

/// A choice that there is not.
pub(super) const NEVER: f64 = f64::INFINITY;

/// The cheapest assignment of rows to columns that hold several; shortest augmenting paths. Keeps its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Assignment {
    columns: usize,
    /// Prices of rows and columns.
    rows: Vec<f64>,
    prices: Vec<f64>,
    /// The rows in every column, and the column of every row.
    inside: Vec<Vec<usize>>,
    column_of: Vec<usize>,
    distance: Vec<f64>,
    before: Vec<usize>,
    is_done: Vec<bool>,
}

impl Assignment {
    /// The least cost of an assignment, `costs` row by row; nothing if there is none.
    pub(super) fn solve(&mut self, costs: &[f64], room: &[usize]) -> Option<f64> {
        self.columns = room.len();
        let rows = costs.len().checked_div(self.columns).unwrap_or_default();
        self.rows.clear();
        self.rows.resize(rows, 0.0);
        self.prices.clear();
        self.prices.resize(self.columns, 0.0);
        self.column_of.clear();
        self.column_of.resize(rows, usize::MAX);
        self.inside.resize(self.columns, Vec::new());
        self.inside.iter_mut().for_each(Vec::clear);
        for row in 0..rows {
            self.insert(row, costs, room)?;
        }
        let full = self.prices.iter().zip(room).map(|(price, room)| price * *room as f64);
        Some(self.rows.iter().sum::<f64>() + full.sum::<f64>())
    }

    /// By how much the least cost grows at least if a row goes to a column.
    pub(super) fn extra(&self, costs: &[f64], row: usize, column: usize) -> f64 {
        (costs[row * self.columns + column] - self.rows[row] - self.prices[column]).max(0.0)
    }

    fn insert(&mut self, row: usize, costs: &[f64], room: &[usize]) -> Option<()> {
        let columns = self.columns;
        self.distance.clear();
        self.distance.resize(columns, NEVER);
        self.before.clear();
        self.before.resize(columns, usize::MAX);
        self.is_done.clear();
        self.is_done.resize(columns, false);
        // The row's own price is what the shortest path to a free column is.
        for column in 0..columns {
            self.distance[column] = costs[row * columns + column] - self.prices[column];
            self.before[column] = row;
        }
        let end = loop {
            let open = (0..columns).filter(|&column| !self.is_done[column]);
            let next = open.min_by(|&a, &b| self.distance[a].total_cmp(&self.distance[b]))?;
            if self.distance[next].is_infinite() {
                return None;
            }
            if self.inside[next].len() < room[next] {
                break next;
            }
            self.is_done[next] = true;
            for &other in &self.inside[next] {
                let base = self.distance[next] - self.rows[other];
                for column in (0..columns).filter(|&column| !self.is_done[column]) {
                    let reached = base + costs[other * columns + column] - self.prices[column];
                    if reached < self.distance[column] {
                        self.distance[column] = reached;
                        self.before[column] = other;
                    }
                }
            }
        };
        self.reprice(row, end);
        self.shift(row, end);
        Some(())
    }

    fn reprice(&mut self, row: usize, end: usize) {
        let length = self.distance[end];
        self.rows[row] = length;
        for column in (0..self.columns).filter(|&column| self.is_done[column]) {
            let change = length - self.distance[column];
            self.prices[column] -= change;
            for &other in &self.inside[column] {
                self.rows[other] += change;
            }
        }
    }

    /// Moves the rows on the path to the free column, each to the next one.
    fn shift(&mut self, row: usize, end: usize) {
        let mut column = end;
        loop {
            let moved = self.before[column];
            let from = self.column_of[moved];
            self.column_of[moved] = column;
            self.inside[column].push(moved);
            if moved == row {
                return;
            }
            self.inside[from].retain(|&other| other != moved);
            column = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least cost over all assignments.
    fn least(costs: &[f64], room: &mut [usize], row: usize) -> f64 {
        let columns = room.len();
        if row * columns == costs.len() {
            return 0.0;
        }
        let mut best = NEVER;
        for column in 0..columns {
            if room[column] > 0 {
                room[column] -= 1;
                best = best.min(costs[row * columns + column] + least(costs, room, row + 1));
                room[column] += 1;
            }
        }
        best
    }

    #[test]
    fn it_is_the_least_of_all_assignments() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut solver = Assignment::default();
        for _ in 0..300 {
            let (rows, columns) = (random(6) as usize, 1 + random(4) as usize);
            let mut room: Vec<usize> = (0..columns).map(|_| random(4) as usize).collect();
            let costs: Vec<f64> =
                (0..rows * columns).map(|_| if random(5) == 0 { NEVER } else { random(20) as f64 }).collect();
            let expected = least(&costs, &mut room, 0);
            let is_none = expected.is_infinite();
            let found = solver.solve(&costs, &room);
            assert_eq!(found.is_none(), is_none);
            let Some(found) = found else { continue };
            assert!((found - expected).abs() < 1e-6);
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let mut forced = costs.clone();
                for other in (0..columns).filter(|&other| other != column) {
                    forced[row * columns + other] = NEVER;
                }
                let there = least(&forced, &mut room, 0);
                assert!(found + solver.extra(&costs, row, column) <= there + 1e-6);
            }
        }
    }
}
