//! Vectorised evaluation of dense problems with small integers.
//!
//! Weights and costs are stored in the smallest integers that hold their differences and sums of products. A
//! mapping keeps the costs in rank order, so that the delta of an exchange is a sum over four contiguous
//! rows:
//!
//! `Δ(r, s) = Σ_k (a_sk − a_rk) · (c_rk − c_sk)` with `c_ik = b(φ(i), φ(k))`, for symmetric problems and
//! without the pair itself.
//!
//! [`Compact`] is the dense form of a mapping problem with many communicating pairs.

mod avx2;
mod element;

use crate::adjacency::{Adjacency, Directed};
use crate::distance::{Distance, divisor};
use crate::error::{ObjectiveError, check_length, check_size, ranks_by_slot};
use element::{Element, Kernel, Rows};

pub(crate) use avx2::{Token, add_products};

/// A square matrix of weights or costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    size: usize,
    /// In row-major order.
    values: Vec<i64>,
}

impl Matrix {
    /// Creates it from values in row-major order.
    pub fn new(size: usize, values: Vec<i64>) -> Result<Self, ObjectiveError> {
        match size.checked_mul(size) == Some(values.len()) {
            true => Ok(Self { size, values }),
            false => {
                let problem = format!("{} values are not a matrix of {size} × {size}", values.len());
                Err(ObjectiveError::new(problem, ""))
            }
        }
    }

    fn get(&self, row: usize, column: usize) -> i64 {
        self.values[row * self.size + column]
    }

    /// Whether it is symmetric with a zero diagonal.
    fn is_simple(&self) -> bool {
        let same = |row, column| self.get(row, column) == self.get(column, row);
        (0..self.size).all(|row| self.get(row, row) == 0 && (0..row).all(|column| same(row, column)))
    }
}

/// `Σ |weight| · max |cost|`, if it fits.
fn bound(weights: &Matrix, costs: &Matrix) -> Option<u128> {
    let mut weights = weights.values.iter();
    let total = weights.try_fold(0u128, |sum, weight| sum.checked_add(weight.unsigned_abs().into()))?;
    total.checked_mul(costs.values.iter().map(|cost| cost.unsigned_abs()).max().unwrap_or(0).into())
}

/// Weights and costs in the smallest integer types. The number of ranks equals that of slots.
#[derive(Debug, Clone)]
pub struct Dense {
    tables: Tables,
    size: usize,
    kernel: Kernel,
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
    /// The transposes; `None` if both matrices are symmetric with zero diagonals.
    columns: Option<[Rows<E>; 2]>,
}

impl<E: Element> std::fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{0} × {0}, {1} bytes each", self.weights.size(), size_of::<E>())
    }
}

/// Dispatches over the integer types.
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
    /// Creates it from weights and costs. Missing ranks are added as silent ones. F must fit 64 bits.
    pub fn new(weights: &Matrix, costs: &Matrix) -> Result<Self, ObjectiveError> {
        let (ranks, size) = (weights.size, costs.size);
        check_size(ranks, size)?;
        let largest = bound(weights, costs).filter(|&bound| bound <= i64::MAX as u128 / 8);
        let spreads = (spread(weights), spread(costs));
        let (Some(_), (Some(weight), Some(cost))) = (largest, spreads) else {
            return Err(ObjectiveError::too_large());
        };
        macro_rules! first_fitting {
            ($($kind:ident($element:ty)),+) => {
                $(if <$element>::fits(weight, cost, size) && all::<$element>(weights, costs) {
                    let tables = Tables::$kind(Table::new(weights, costs));
                    return Ok(Self { tables, size, kernel: Kernel::detect() });
                })+
            };
        }
        first_fitting!(I8(i8), I16(i16), I32(i32), I64(i64));
        Err(ObjectiveError::too_large())
    }

    /// The same with the scalar kernel on any processor.
    #[must_use]
    pub fn scalar(self) -> Self {
        Self { kernel: Kernel::Scalar, ..self }
    }

    /// Whether the vector kernel is used.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.kernel != Kernel::Scalar && self.bytes() < 8
    }

    /// Number of ranks, and of slots.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Size of a weight or cost in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.tables {
            Tables::I8(_) => 1,
            Tables::I16(_) => 2,
            Tables::I32(_) => 4,
            Tables::I64(_) => 8,
        }
    }

    /// Whether both matrices are symmetric with zero diagonals.
    fn is_simple(&self) -> bool {
        with!(Tables, &self.tables, table => table.columns.is_none())
    }

    /// F of rank `i` on `slots[i]`, recomputed.
    #[must_use]
    pub fn cost(&self, slots: &[u32]) -> i64 {
        with!(Tables, &self.tables, table => table.cost(slots))
    }
}

/// The range of all values and zero, if it fits.
fn spread(matrix: &Matrix) -> Option<u64> {
    let bounds = |(low, high): (i64, i64), &value: &i64| (low.min(value), high.max(value));
    let (low, high) = matrix.values.iter().fold((0, 0), bounds);
    high.checked_sub(low).map(i64::unsigned_abs)
}

/// Whether every value fits a type.
fn all<E: Element>(weights: &Matrix, costs: &Matrix) -> bool {
    weights.values.iter().chain(&costs.values).all(|&value| E::try_from(value).is_ok())
}

impl<E: Element> Table<E> {
    /// Stores values in a type that fits them.
    fn new(weights: &Matrix, costs: &Matrix) -> Self {
        let simple = weights.is_simple() && costs.is_simple();
        let element = |value| E::try_from(value).unwrap_or_default();
        let size = costs.size;
        let weight = |row: usize, column: usize| match row.max(column) < weights.size {
            true => element(weights.get(row, column)),
            false => E::default(),
        };
        let cost = |row: usize, column: usize| element(costs.get(row, column));
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
    fn delta(&self, kernel: Kernel, r: usize, s: usize) -> i64 {
        let (weights, costs) = (&self.table.weights, &self.rows);
        let dot = |weights: &Rows<E>, costs: &Rows<E>| {
            E::dot(kernel, [weights.row(r), weights.row(s)], [costs.row(r), costs.row(s)])
        };
        let sum = dot(weights, costs);
        let (Some([sent_to, _]), Some(columns)) = (&self.table.columns, &self.columns) else {
            return 2 * (sum + 2 * weights.at(r, s).into() * costs.at(r, s).into());
        };
        let a = |row, column| -> i64 { weights.at(row, column).into() };
        let c = |row, column| -> i64 { costs.at(row, column).into() };
        // Correct the terms of the two ranks with themselves and each other.
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

/// A mapping of a dense problem with its cost and the deltas of exchanges.
#[derive(Clone)]
pub struct DenseAssignment<'p> {
    placed: PlacedAs<'p>,
    kernel: Kernel,
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
    /// Maps rank `i` to `slots[i]`, a permutation of all slots.
    pub fn new(problem: &'p Dense, slots: &[u32]) -> Result<Self, ObjectiveError> {
        check_length(slots.len(), problem.size())?;
        ranks_by_slot(slots, problem.size())?;
        let placed = match &problem.tables {
            Tables::I8(table) => PlacedAs::I8(table.place(slots)),
            Tables::I16(table) => PlacedAs::I16(table.place(slots)),
            Tables::I32(table) => PlacedAs::I32(table.place(slots)),
            Tables::I64(table) => PlacedAs::I64(table.place(slots)),
        };
        Ok(Self { placed, kernel: problem.kernel, slots: slots.to_vec(), cost: problem.cost(slots) })
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

    /// Change of F if two ranks are exchanged.
    #[inline]
    #[must_use]
    pub fn delta(&self, first: u32, second: u32) -> i64 {
        with!(PlacedAs, &self.placed, placed => placed.delta(self.kernel, first as usize, second as usize))
    }

    /// Exchanges two ranks; `delta` is from [`delta`](Self::delta). Takes two steps per rank.
    pub fn exchange(&mut self, first: u32, second: u32, delta: i64) {
        with!(PlacedAs, &mut self.placed, placed => placed.exchange(first as usize, second as usize));
        self.slots.swap(first as usize, second as usize);
        self.cost += delta;
    }
}

/// Maximum slots for a matrix of all pairs.
const MOST_SLOTS: usize = 2048;

/// Dense form of a mapping problem.
#[derive(Debug, Clone)]
pub(crate) struct Compact {
    dense: Dense,
    /// Common divisor by which F of the dense problem is multiplied.
    unit: i64,
    /// One if the dense problem counts both directions of every pair, so that F is halved.
    doubled: u32,
}

impl Compact {
    /// `None` if visiting neighbours one by one is faster or the numbers are too large.
    pub(crate) fn new(neighbours: &Adjacency, distance: &Distance) -> Option<Self> {
        let size = Size {
            neighbours: neighbours.neighbours.len(),
            ranks: neighbours.ranks(),
            slots: distance.order().len(),
        };
        let cost = |at: usize| distance.cost((at / size.slots) as u32, (at % size.slots) as u32);
        let weights = || neighbours.entries().collect();
        size.pays(1).then(|| Self::of(size, weights(), cost, distance.unit(), 1)).flatten()
    }

    /// The same for directed problems.
    pub(crate) fn directed(directed: &Directed) -> Option<Self> {
        let (ranks, slots) = (directed.ranks(), directed.slots);
        let weights: Vec<_> = directed.entries().collect();
        let size = Size { neighbours: weights.len(), ranks, slots };
        let unit = directed.costs.iter().fold(0, |unit, &cost| divisor(unit, cost));
        size.pays(1).then(|| Self::of(size, weights, |at| directed.costs[at], unit, 0)).flatten()
    }

    /// Memory of the costs in rank order.
    pub(crate) fn mapping_bytes(&self) -> u64 {
        let directions = if self.dense.is_simple() { 1 } else { 2 };
        (directions * self.dense.size() * self.dense.size() * self.dense.bytes()) as u64
    }

    fn of(
        size: Size,
        entries: Vec<(u32, u32, i64)>,
        cost: impl Fn(usize) -> i64,
        cost_unit: i64,
        doubled: u32,
    ) -> Option<Self> {
        let weight_unit = entries.iter().fold(0, |unit, entry| divisor(unit, entry.2));
        if weight_unit == 0 || cost_unit == 0 {
            return None;
        }
        let mut weights = vec![0; size.ranks * size.ranks];
        for (row, column, weight) in entries {
            weights[row as usize * size.ranks + column as usize] = weight / weight_unit;
        }
        let weights = Matrix { size: size.ranks, values: weights };
        let costs = (0..size.slots * size.slots).map(|at| cost(at) / cost_unit).collect();
        let dense = Dense::new(&weights, &Matrix { size: size.slots, values: costs }).ok()?;
        let unit = weight_unit.checked_mul(cost_unit)?;
        let fast = dense.has_vectors() && size.pays(dense.bytes());
        fast.then_some(Self { dense, unit, doubled })
    }
}

/// Size of a problem.
#[derive(Clone, Copy)]
struct Size {
    /// Total neighbours of all ranks.
    neighbours: usize,
    ranks: usize,
    slots: usize,
}

impl Size {
    /// Whether rows of this many bytes per slot are faster than neighbour lists: if an average rank
    /// communicates with a quarter of all slots; wider numbers need more (measured; annealing also has to
    /// keep the rows in order).
    fn pays(self, bytes: usize) -> bool {
        self.slots <= MOST_SLOTS && 16 * self.neighbours >= self.ranks * self.slots * (3 + bytes)
    }
}

/// A mapping of a compact problem.
#[derive(Debug, Clone)]
pub(crate) struct CompactAssignment<'p> {
    assignment: DenseAssignment<'p>,
    /// The rank on every slot; free slots hold silent ranks.
    ranks: Vec<u32>,
    problem: &'p Compact,
}

impl<'p> CompactAssignment<'p> {
    /// Maps rank `i` to `slots[i]`; slots are distinct.
    pub(crate) fn new(problem: &'p Compact, slots: &[u32]) -> Result<Self, ObjectiveError> {
        let size = problem.dense.size();
        let mut taken = vec![false; size];
        slots.iter().for_each(|&slot| taken[slot as usize] = true);
        let free = (0..size as u32).filter(|&slot| !taken[slot as usize]);
        let all: Vec<u32> = slots.iter().copied().chain(free).collect();
        let mut ranks = vec![0; size];
        for (rank, &slot) in all.iter().enumerate() {
            ranks[slot as usize] = rank as u32;
        }
        let assignment = DenseAssignment::new(&problem.dense, &all)?;
        Ok(Self { assignment, ranks, problem })
    }

    #[inline]
    pub(crate) fn delta(&self, rank: u32, slot: u32) -> i64 {
        // The number is even if it is halved.
        (self.assignment.delta(rank, self.ranks[slot as usize]) >> self.problem.doubled) * self.problem.unit
    }

    pub(crate) fn exchange(&mut self, rank: u32, slot: u32) {
        let own = self.assignment.slots()[rank as usize];
        let other = self.ranks[slot as usize];
        self.assignment.exchange(rank, other, 0);
        self.ranks[slot as usize] = rank;
        self.ranks[own as usize] = other;
    }
}
