//! Sums of integers that never wrap around silently.
//!
//! Polars adds integers modulo 2^64. So `SUM(x)` is asked as `checked_sum(SUM(x), SUM(CAST(x AS DOUBLE)))`: the
//! real sum is never further from the true one than its rounding, and a sum that has wrapped is off by 2^64.

use std::sync::Arc;

use polars::prelude::{
    BaseColumnUdf, Column, DataType, Field, PolarsError, PolarsResult, Schema, UserDefinedFunction,
};
use polars::sql::{FunctionOptions, FunctionRegistry};

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
pub(crate) const TOO_LARGE: &str = "a sum of integers does not fit into 64 bits";

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a sum that wraps, and what it should have been.
    fn checked(sums: Column, reals: &[f64]) -> bool {
        check(&mut [sums, Column::new("real".into(), reals)]).is_ok()
    }

    #[test]
    fn sums_that_wrapped_are_found_and_rounding_is_not() {
        let large = 2_f64.powi(62);
        let wrapped = i64::MAX.wrapping_add(2);
        assert!(checked(Column::new("n".into(), [5, i64::MAX]), &[5.0, 2.0 * large]));
        assert!(!checked(Column::new("n".into(), [5, wrapped]), &[5.0, 2.0 * large]));
        assert!(!checked(Column::new("n".into(), [0_i64]), &[4.0 * large]));
        assert!(!checked(Column::new("n".into(), [u64::MAX - 1]), &[8.0 * large - 2.0]));
        assert!(!checked(Column::new("n".into(), [7_u32]), &[7.0 + 2_f64.powi(32)]));
        assert!(checked(Column::new("n".into(), [Some(1_000_000_i64), None]), &[1_000_000.5, 0.0]));
        assert!(checked(Column::new("x".into(), [1e300]), &[0.0]));
    }
}
