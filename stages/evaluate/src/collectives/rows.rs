//! Operations of a communicator, and every algorithm for them.

use hopmap_collectives::{Algorithm, Operation};

use super::measure::Measure;

/// An algorithm for some operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) algorithm: Algorithm,
    /// Whether MPICH would take it.
    pub(super) usual: bool,
    pub(super) mapped: Measure,
    pub(super) linear: Measure,
}

/// Operations of one communicator and size.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Index of the communicator.
    pub(super) communicator: u32,
    pub(super) operation: Operation,
    /// Bytes of a block.
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) rows: Vec<Row>,
}

impl Group {
    /// The row of an algorithm; that of MPICH's choice where the communicator cannot use it.
    fn row(&self, algorithm: Algorithm) -> Option<&Row> {
        let of = |row: &&Row| row.algorithm == algorithm;
        self.rows.iter().find(of).or_else(|| self.rows.iter().find(|row| row.usual))
    }

    /// Total of MPICH's choice under the mapping, by which operations matter.
    pub(super) fn size(&self) -> f64 {
        self.rows.iter().find(|row| row.usual).map_or(0.0, |row| row.mapped.total)
    }
}

/// Whether an algorithm has the least total and the least path of all for the same operations.
pub(super) fn best(row: &Row, rows: &[Row]) -> &'static str {
    let least = |of: fn(&Measure) -> f64| {
        let least = rows.iter().map(|other| of(&other.mapped)).fold(f64::INFINITY, f64::min);
        of(&row.mapped) <= least
    };
    match (least(|measure| measure.total), least(|measure| measure.path)) {
        (true, true) => "both",
        (true, false) => "total",
        (false, true) => "path",
        (false, false) => "",
    }
}

/// Every algorithm for all operations of a kind, whatever the communicator and size. Operations that cannot use one
/// take MPICH's choice, as `trace/otf2` does; `usual` says that MPICH takes it everywhere.
pub(super) fn together(groups: &[&Group], operation: Operation) -> Vec<Row> {
    let row = |&algorithm: &Algorithm| {
        let mut sum = Row { algorithm, usual: true, mapped: Measure::default(), linear: Measure::default() };
        for group in groups {
            let row = group.row(algorithm)?;
            sum.usual &= row.usual;
            sum.mapped.add(&row.mapped, 1);
            sum.linear.add(&row.linear, 1);
        }
        Some(sum)
    };
    let used = |algorithm: &&Algorithm| {
        groups.iter().any(|group| group.rows.iter().any(|row| row.algorithm == **algorithm))
    };
    Algorithm::of(operation).iter().filter(used).filter_map(row).collect()
}
