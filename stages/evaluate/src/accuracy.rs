//! Searches of problems whose best costs are known, as a table.

mod group;
mod known;
mod table;

use hopmap_model::{Context, Mapping};

use crate::{AccuracyParams, EvaluateError};
pub use group::Search;
use group::groups;
use known::Known;
pub use table::Table;

/// A row for every group of mappings: how many there are, the best, mean and median of a metric, and how far these are from
/// known values, in percent: A1 = 100 · (F − F0) / F0 (GraphHunter).
pub fn accuracy(
    searches: &[Search<'_>],
    params: &AccuracyParams,
    cx: &Context<'_>,
) -> Result<Table, EvaluateError> {
    let known = params.known.as_ref().map(|file| Known::read(file.path(), &params.by)).transpose()?;
    if let Some(column) =
        params.beside.iter().find(|name| !known.as_ref().is_some_and(|known| known.has(name)))
    {
        return Err(EvaluateError::NoColumn { column: column.clone() });
    }
    let groups = groups(searches, &params.by, &params.metric)?;
    let table = Table::new(&groups, params, known.as_ref())?;
    for line in table.beaten() {
        cx.log(line);
    }
    Ok(table)
}

/// A mapping with the name of the stage that made it.
impl<'m> Search<'m> {
    /// `label` is such as `placement[instance=tai27e01, seed=3]`.
    #[must_use]
    pub fn new(label: &'m str, mapping: &'m Mapping) -> Self {
        Self { label, mapping }
    }
}
