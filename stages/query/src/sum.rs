//! Sums of whole numbers that never wrap around in silence.
//!
//! Polars adds whole numbers modulo 2^64. So `SUM(x)` is asked as `checked_sum(SUM(x), SUM(CAST(x AS DOUBLE)))`: the
//! real sum is never further from the true one than its rounding, and a sum that has wrapped is off by 2^64.

use std::sync::Arc;

use polars::prelude::{
    BaseColumnUdf, Column, DataType, Field, FunctionOptions, PolarsError, PolarsResult, Schema,
    UserDefinedFunction,
};
use polars::sql::function_registry::FunctionRegistry;

/// Name of the function in SQL.
pub(crate) const CHECKED_SUM: &str = "checked_sum";

/// The functions that questions have beside those of Polars.
pub(crate) struct Functions;

impl FunctionRegistry for Functions {
    fn register(&mut self, _: &str, _: UserDefinedFunction) -> PolarsResult<()> {
        Ok(())
    }

    fn get_udf(&self, name: &str) -> PolarsResult<Option<UserDefinedFunction>> {
        let kind = |_: &Schema, fields: &[Field]| Ok(fields[0].clone());
        let function = || {
            let mut function = UserDefinedFunction::new(CHECKED_SUM.into(), BaseColumnUdf::new(check, kind));
            function.options = FunctionOptions::elementwise();
            function
        };
        Ok((name == CHECKED_SUM).then(function))
    }

    fn contains(&self, name: &str) -> bool {
        name == CHECKED_SUM
    }
}

/// The functions, as a context takes them.
pub(crate) fn functions() -> Arc<dyn FunctionRegistry> {
    Arc::new(Functions)
}

/// The first column, if it is as far as rounding allows what the second one says.
fn check(columns: &mut [Column]) -> PolarsResult<Column> {
    let [sums, reals] = columns else {
        return Err(PolarsError::ComputeError("checked_sum takes two columns".into()));
    };
    // Half of what a sum is off by when it has wrapped.
    let far = match sums.dtype() {
        DataType::Int64 | DataType::UInt64 => 2_f64.powi(63),
        DataType::Int32 | DataType::UInt32 => 2_f64.powi(31),
        _ => return Ok(sums.clone()),
    };
    let exact = sums.cast(&DataType::Float64)?;
    let pairs = exact.f64()?.iter().zip(reals.f64()?.iter());
    let mut differences = pairs.filter_map(|(exact, real)| Some((exact? - real?).abs()));
    match differences.any(|difference| difference > far) {
        true => Err(PolarsError::ComputeError(TOO_LARGE.into())),
        false => Ok(sums.clone()),
    }
}

/// What is said of a sum that does not fit.
pub(crate) const TOO_LARGE: &str = "a sum of whole numbers does not fit into 64 bits";
