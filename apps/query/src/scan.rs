//! A table as Polars reads it: only the columns that a question needs, and only as many rows.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, DataFrame, Field, LazyFrame, PlSmallStr, PolarsError, PolarsResult,
    ScanArgsAnonymous, Schema, SchemaRef,
};

use crate::error::QueryError;
use crate::source::Opened;

/// What went wrong while reading; Polars itself carries no more than a text.
pub(crate) type Fault = Arc<Mutex<Option<QueryError>>>;

struct Scan {
    table: Arc<Opened>,
    fault: Fault,
}

/// A table for a question.
pub(crate) fn scan(table: Arc<Opened>, fault: Fault) -> PolarsResult<LazyFrame> {
    LazyFrame::anonymous_scan(Arc::new(Scan { table, fault }), ScanArgsAnonymous::default())
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, wanted: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let all = || self.table.columns.iter().map(|(name, _)| name.as_str()).collect();
        let some = wanted.with_columns.as_ref();
        let names: Vec<&str> = some.map_or_else(all, |names| names.iter().map(PlSmallStr::as_str).collect());
        self.table.read(&names, wanted.n_rows.unwrap_or(usize::MAX)).map_err(|error| {
            let text = error.to_string();
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            PolarsError::ComputeError(text.into())
        })
    }

    fn schema(&self, _: Option<usize>) -> PolarsResult<SchemaRef> {
        let fields = self.table.columns.iter().map(|(name, kind)| Field::new(name.into(), kind.polars()));
        Ok(Arc::new(fields.collect::<Schema>()))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}
