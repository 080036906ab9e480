//! The fast way for dense problems of small integers.
//!
//! Weights and costs are stored in the smallest integers in which their differences and the sums of their products fit. A
//! placement keeps the costs in the order of the ranks, so that what an exchange changes is a sum over four rows that lie in
//! one piece:
//!
//! `Δ(r, s) = Σ_k (a_sk − a_rk) · (c_rk − c_sk)` with `c_ik = b(φ(i), φ(k))`, for symmetric problems, but for the pair itself.

mod avx2;
mod element;

use crate::matrix::bound;
use crate::{Matrix, ObjectiveError};
use element::{Element, Rows, Way};

/// Weights and costs of a problem in the smallest integers that hold them. There are as many ranks as slots.
#[derive(Debug, Clone)]
pub struct Dense {
    tables: Tables,
    size: usize,
    way: Way,
}

#[derive(Debug, Clone)]
enum Tables {
    I8(Table<i8>),
    I16(Table<i16>),
    I32(Table<i32>),
    I64(Table<i64>),
}

#[derive(Clone)]
struct Table<E: Element> {
    weights: Rows<E>,
    costs: Rows<E>,
    /// The columns of weights and costs as rows; `None` if both are symmetric and zero on the diagonal.
    columns: Option<[Rows<E>; 2]>,
}

impl<E: Element> std::fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{0} × {0}, {1} bytes each", self.weights.size(), size_of::<E>())
    }
}

/// Does the same with the table or the costs of every type.
macro_rules! with {
    ($kinds:ident, $value:expr, $inner:pat => $result:expr) => {
        match $value {
            $kinds::I8($inner) => $result,
            $kinds::I16($inner) => $result,
            $kinds::I32($inner) => $result,
            $kinds::I64($inner) => $result,
        }
    };
}

impl Dense {
    /// Takes the weights between ranks and the costs between slots. Fewer ranks than slots are filled up with ranks that send
    /// nothing. F must fit 64 bits.
    pub fn new(weights: &Matrix<i64>, costs: &Matrix<i64>) -> Result<Self, ObjectiveError> {
        let (ranks, size) = (weights.size(), costs.size());
        if ranks == 0 {
            return Err(ObjectiveError::NoRanks);
        }
        if ranks > size {
            return Err(ObjectiveError::TooManyRanks { ranks, slots: size });
        }
        let largest = bound(weights.values().iter().copied(), costs.values().iter().copied());
        let largest = largest.filter(|&bound| bound <= i64::MAX as u128 / 8);
        let spreads = (spread(weights), spread(costs));
        let (Some(_), (Some(weight), Some(cost))) = (largest, spreads) else {
            return Err(ObjectiveError::TooLarge);
        };
        let tables = if i8::fits(weight, cost, size) && all::<i8>(weights, costs) {
            Tables::I8(Table::new(weights, costs))
        } else if i16::fits(weight, cost, size) && all::<i16>(weights, costs) {
            Tables::I16(Table::new(weights, costs))
        } else if i32::fits(weight, cost, size) && all::<i32>(weights, costs) {
            Tables::I32(Table::new(weights, costs))
        } else if i64::fits(weight, cost, size) {
            Tables::I64(Table::new(weights, costs))
        } else {
            return Err(ObjectiveError::TooLarge);
        };
        Ok(Self { tables, size, way: Way::detect() })
    }

    /// The same, computed without vectors whatever the processor has.
    #[must_use]
    pub fn scalar(self) -> Self {
        Self { way: Way::Scalar, ..self }
    }

    /// Whether sums are computed with vectors.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.way != Way::Scalar && self.bytes() < 8
    }

    /// Number of ranks, and of slots.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that a weight or a cost takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.tables {
            Tables::I8(_) => 1,
            Tables::I16(_) => 2,
            Tables::I32(_) => 4,
            Tables::I64(_) => 8,
        }
    }

    /// F of rank `i` on `slots[i]`, summed anew.
    #[must_use]
    pub fn cost(&self, slots: &[u32]) -> i64 {
        with!(Tables, &self.tables, table => table.cost(slots))
    }
}

/// The largest minus the smallest of all values and zero, if it fits.
fn spread(matrix: &Matrix<i64>) -> Option<u64> {
    let bounds = |(low, high): (i64, i64), &value: &i64| (low.min(value), high.max(value));
    let (low, high) = matrix.values().iter().fold((0, 0), bounds);
    high.checked_sub(low).map(i64::unsigned_abs)
}

/// Whether every value fits a type.
fn all<E: Element>(weights: &Matrix<i64>, costs: &Matrix<i64>) -> bool {
    weights.values().iter().chain(costs.values()).all(|&value| E::try_from(value).is_ok())
}

impl<E: Element> Table<E> {
    /// Stores values that all fit the type.
    fn new(weights: &Matrix<i64>, costs: &Matrix<i64>) -> Self {
        let hollow = |matrix: &Matrix<i64>| (0..matrix.size() as u32).all(|at| matrix.get(at, at) == 0);
        let simple = [weights, costs].into_iter().all(|matrix| hollow(matrix) && matrix.is_symmetric());
        let element = |value| E::try_from(value).unwrap_or_default();
        let size = costs.size();
        let weight = |row: usize, column: usize| match row.max(column) < weights.size() {
            true => element(weights.get(row as u32, column as u32)),
            false => E::default(),
        };
        let cost = |row: usize, column: usize| element(costs.get(row as u32, column as u32));
        let columns = || {
            [
                Rows::new(size, |row, column| weight(column, row)),
                Rows::new(size, |row, column| cost(column, row)),
            ]
        };
        Self {
            weights: Rows::new(size, weight),
            costs: Rows::new(size, cost),
            columns: (!simple).then(columns),
        }
    }

    fn cost(&self, slots: &[u32]) -> i64 {
        let of_rank = |(rank, &slot): (usize, &u32)| -> i64 {
            let costs = self.costs.row(slot as usize);
            let pairs = self.weights.row(rank).iter().zip(slots);
            pairs.map(|(&weight, &other)| weight.into() * costs[other as usize].into()).sum()
        };
        slots.iter().enumerate().map(of_rank).sum()
    }

    fn place(&self, slots: &[u32]) -> Placed<'_, E> {
        let order = |rows: &Rows<E>| {
            Rows::new(slots.len(), |row, column| rows.at(slots[row] as usize, slots[column] as usize))
        };
        let columns = self.columns.as_ref().map(|[_, costs]| order(costs));
        Placed { table: self, rows: order(&self.costs), columns }
    }
}

/// The costs between the slots of all ranks.
#[derive(Clone)]
struct Placed<'p, E: Element> {
    table: &'p Table<E>,
    rows: Rows<E>,
    columns: Option<Rows<E>>,
}

impl<E: Element> Placed<'_, E> {
    #[inline]
    fn delta(&self, way: Way, r: usize, s: usize) -> i64 {
        let (weights, costs) = (&self.table.weights, &self.rows);
        let dot = |weights: &Rows<E>, costs: &Rows<E>| {
            E::dot(way, [weights.row(r), weights.row(s)], [costs.row(r), costs.row(s)])
        };
        let sum = dot(weights, costs);
        let (Some([sent_to, _]), Some(columns)) = (&self.table.columns, &self.columns) else {
            return 2 * (sum + 2 * weights.at(r, s).into() * costs.at(r, s).into());
        };
        let a = |row, column| -> i64 { weights.at(row, column).into() };
        let c = |row, column| -> i64 { costs.at(row, column).into() };
        // The terms of the two with themselves and each other, as they are and as the sums have them.
        let own = (a(r, r) - a(s, s)) * (c(s, s) - c(r, r)) + (a(r, s) - a(s, r)) * (c(s, r) - c(r, s));
        let rows = (a(s, r) - a(r, r)) * (c(r, r) - c(s, r)) + (a(s, s) - a(r, s)) * (c(r, s) - c(s, s));
        let turned = (a(r, s) - a(r, r)) * (c(r, r) - c(r, s)) + (a(s, s) - a(s, r)) * (c(s, r) - c(s, s));
        sum + dot(sent_to, columns) + own - rows - turned
    }

    fn exchange(&mut self, r: usize, s: usize) {
        self.rows.exchange(r, s);
        if let Some(columns) = &mut self.columns {
            columns.exchange(r, s);
        }
    }
}

/// A placement of a dense problem that knows its cost and what every exchange would change.
#[derive(Clone)]
pub struct DenseAssignment<'p> {
    placed: PlacedAs<'p>,
    way: Way,
    /// Slot of every rank.
    slots: Vec<u32>,
    cost: i64,
}

#[derive(Clone)]
enum PlacedAs<'p> {
    I8(Placed<'p, i8>),
    I16(Placed<'p, i16>),
    I32(Placed<'p, i32>),
    I64(Placed<'p, i64>),
}

impl std::fmt::Debug for DenseAssignment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DenseAssignment")
            .field("slots", &self.slots)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

impl<'p> DenseAssignment<'p> {
    /// Puts rank `i` on `slots[i]`: a permutation of all slots.
    pub fn new(problem: &'p Dense, slots: &[u32]) -> Result<Self, ObjectiveError> {
        let size = problem.size();
        if slots.len() != size {
            return Err(ObjectiveError::WrongLength { placed: slots.len(), ranks: size });
        }
        let mut rank_at = vec![None; size];
        for (rank, &slot) in slots.iter().enumerate() {
            let place = rank_at.get_mut(slot as usize).ok_or(ObjectiveError::NoSuchSlot {
                rank,
                slot,
                slots: size,
            })?;
            if let Some(first) = place.replace(rank as u32) {
                return Err(ObjectiveError::SharedSlot { slot, first, second: rank as u32 });
            }
        }
        let placed = match &problem.tables {
            Tables::I8(table) => PlacedAs::I8(table.place(slots)),
            Tables::I16(table) => PlacedAs::I16(table.place(slots)),
            Tables::I32(table) => PlacedAs::I32(table.place(slots)),
            Tables::I64(table) => PlacedAs::I64(table.place(slots)),
        };
        Ok(Self { placed, way: problem.way, slots: slots.to_vec(), cost: problem.cost(slots) })
    }

    /// F.
    #[must_use]
    pub fn cost(&self) -> i64 {
        self.cost
    }

    /// The slot of every rank.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// By how much F changes when two ranks change places.
    #[inline]
    #[must_use]
    pub fn delta(&self, first: u32, second: u32) -> i64 {
        with!(PlacedAs, &self.placed, placed => placed.delta(self.way, first as usize, second as usize))
    }

    /// Exchanges two ranks; `delta` is what [`delta`](Self::delta) gave for them. Takes two steps for every rank.
    pub fn exchange(&mut self, first: u32, second: u32, delta: i64) {
        with!(PlacedAs, &mut self.placed, placed => placed.exchange(first as usize, second as usize));
        self.slots.swap(first as usize, second as usize);
        self.cost += delta;
    }
}
