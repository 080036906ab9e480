//! Errors that every stage has: a parameter that is out of its range, and what must not happen.

use std::fmt::Display;
use std::panic::Location;

use miette::Diagnostic;

/// Whether a number of seconds can be a time: above 30,000 years, sums of times could be no numbers.
#[must_use]
pub fn is_time(seconds: f64) -> bool {
    (0.0..=1e12).contains(&seconds)
}

/// Whether a number of seconds, bytes or a factor can be a cost of messages.
#[must_use]
pub fn is_cost(value: f64) -> bool {
    (0.0..=1e30).contains(&value)
}

/// Whether a number of bytes per second can be a bandwidth: bytes divided by it are times.
#[must_use]
pub fn is_bandwidth(bytes_per_s: f64) -> bool {
    (1e-9..=1e30).contains(&bytes_per_s)
}

/// A number of things in memory, such as ranks: below 2^32 by contract, and as 2^32 of them fit in no memory. Beyond, it is the
/// number of nothing, and not of another thing as after `as`.
#[must_use]
pub fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A parameter whose value is not in its range. No error of a stage wraps it: whoever checks parameters finds it in the report, and
/// with it the parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("`{name}` = {value} is out of range")]
#[diagnostic(code(model::out_of_range), help("allowed: {allowed}"))]
pub struct OutOfRange {
    name: String,
    value: String,
    allowed: String,
}

impl OutOfRange {
    /// A value of a parameter, and what it may be.
    #[cold]
    pub fn new(name: &str, value: impl Display, allowed: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.to_string(), allowed: allowed.into() }
    }

    /// The parameter, with its tables: `weight.time.latency_s`.
    #[must_use]
    pub fn parameter(&self) -> &str {
        &self.name
    }
}

/// Refuses the value of a parameter unless it is in its range.
pub fn require(
    is_right: bool,
    name: &str,
    value: impl Display,
    allowed: impl Into<String>,
) -> Result<(), OutOfRange> {
    if is_right { Ok(()) } else { Err(OutOfRange::new(name, value, allowed)) }
}

/// Refuses zero.
pub fn require_above_zero(name: &str, value: Option<u64>) -> Result<(), OutOfRange> {
    require(value != Some(0), name, 0, "1 or more")
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What must not happen: a fault of hopmap, wherever it shows.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
#[error("internal error: {problem}")]
#[diagnostic(
    code(model::internal),
    help(
        "this is a bug in hopmap {VERSION} ({place}): report it to the maintainers of this installation, with this message, the \
         output of `hopmap doctor`, and the pipeline file if possible"
    )
)]
pub struct InternalError {
    problem: String,
    place: &'static Location<'static>,
}

impl InternalError {
    /// What must not happen, at the place of the caller.
    #[cold]
    #[track_caller]
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), place: Location::caller() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_out_of_range_is_named_with_its_range() {
        let error = require(false, "islands", 0, "1 to 1024").unwrap_err();
        assert_eq!(error.to_string(), "`islands` = 0 is out of range");
        assert_eq!(error.help().unwrap().to_string(), "allowed: 1 to 1024");
        assert_eq!(error.parameter(), "islands");
    }

    #[test]
    fn an_internal_error_names_version_and_place() {
        let error = InternalError::new("no answer");
        let help = error.help().unwrap().to_string();
        assert!(error.to_string() == "internal error: no answer" && help.contains("faults.rs:"), "{help}");
        assert!(
            help.contains(env!("CARGO_PKG_VERSION")) && help.contains("maintainers of this installation"),
            "{help}"
        );
    }
}
