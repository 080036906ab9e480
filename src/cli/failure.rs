//! Failures of commands: which exit status an error of the app has, and how failures are printed.

use hopmap_command::{Exit, Failure};
use hopmap_durable::DurableError;
use miette::Report;
use serde_json::json;

use super::output::Output;
use crate::engine::StoreError;
use crate::pipeline::Problems;

/// Prints a failure to standard error, after what was found out before it.
pub(super) fn report(failure: &Failure, output: Output) -> Exit {
    output.answer(&failure.answer);
    let reports = &failure.reports;
    if output.is_json() {
        let errors: Vec<_> = reports
            .iter()
            .map(|report| json!({ "message": message(report), "help": report.help().map(|help| help.to_string()) }))
            .collect();
        output.json(&json!({ "errors": errors }));
    }
    for report in reports {
        output.error(report);
    }
    if reports.len() > 1 {
        output.problem_count(reports.len());
    }
    failure.exit
}

/// An error with its causes, in one line.
pub(crate) fn message(report: &Report) -> String {
    report.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Usage, problems.0.into_iter().map(Report::new))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::Durable(DurableError::Busy { .. }) => Exit::Locked,
            StoreError::Missing { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, [Report::new(error)])
    }
}
