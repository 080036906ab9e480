//! Gates: what the results of a pipeline have to keep, and whether they do.
//!
//! A gate compares two sums of numbers and metrics. `pipeline` ties its metrics to cells, [`judge`] looks at what the cells
//! gave, and [`AcceptedMetrics`] is the small file with the values that were right before.
//!
//! # Parts
//!
//! `src/gates`: `parse` makes a `Formula` of a gate's text (recursive descent, with places), `pipeline/gates.rs` ties its terms to cells
//! when the file is read, `metrics` asks the store for metrics that do not exist, `judge` looks at the outputs of all cells after a run
//! or a plan and gives a `Verdict` for each cell. Accepted values are kept by what they are of (`placement[seed=1].F`), not by gate, so
//! that a gate may be renamed or rewritten. Gates enter no key.
//!
//! `src/provenance.rs` follows digests from one `provenance.json` to the next. One whose manifest does not give its key is not
//! believed (`a_changed_provenance_is_not_believed`). Where an artifact was cleared, `state.log` still tells what its key was made of.

mod accepted;
mod formula;
mod judge;
mod metrics;
mod parse;

use std::ops::Range;

pub use accepted::AcceptedMetrics;
pub use formula::{Choice, Comparison, Expression, Formula, Function, Operator, Term};
pub use judge::{Judged, Standing, Verdict, judge, number};
pub use metrics::check_metrics;
pub(crate) use parse::FORM;

/// A gate of a pipeline.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Its name.
    pub name: String,
    /// Where it stands in the pipeline file.
    pub place: Range<usize>,
    /// What it says.
    pub formula: Formula,
    /// The cells of each term of the formula.
    pub bounds: Vec<Bound>,
}

/// The cells that a term of a gate is about.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Where the term stands in the pipeline file.
    pub place: Range<usize>,
    /// The output port whose metrics are meant.
    pub output: &'static str,
    /// The cells.
    pub cells: Cells,
}

/// Cells of a term, as indexes.
#[derive(Debug, Clone)]
pub enum Cells {
    /// The gate holds for each; those of all terms of a gate stand in the same order.
    Each(Vec<usize>),
    /// They have one value together.
    Together(Vec<usize>),
}

impl Cells {
    /// Their indexes.
    #[must_use]
    pub fn indexes(&self) -> &[usize] {
        let (Self::Each(cells) | Self::Together(cells)) = self;
        cells
    }
}

impl Gate {
    /// How many times it is judged: once for each cell of a sweep.
    #[must_use]
    pub fn count(&self) -> usize {
        let each = |bound: &Bound| match &bound.cells {
            Cells::Each(cells) => Some(cells.len()),
            Cells::Together(_) => None,
        };
        self.bounds.iter().find_map(each).unwrap_or(1)
    }
}
