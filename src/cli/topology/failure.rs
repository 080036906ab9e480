//! What an error of a refresh means to the shell.

use hopmap_command::{Exit, Failure};
use miette::Report;

use crate::engine::StoreError;
use crate::refresh::RefreshError;

/// An error of a refresh, by what it means to the caller.
pub(super) fn failure(report: Report) -> Failure {
    match report.downcast::<RefreshError>() {
        Ok(error) => error.into(),
        Err(report) => match report.downcast::<StoreError>() {
            Ok(error) => error.into(),
            Err(report) => Failure::failed(report),
        },
    }
}

impl From<RefreshError> for Failure {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Busy { .. } => Self::new(Exit::Locked, [Report::new(error)]),
            RefreshError::Foreign { .. } | RefreshError::Nothing { .. } => Self::usage(error),
            RefreshError::Interrupted => Self::new(Exit::Interrupted, [Report::new(error)]),
            error => Self::failed(error),
        }
    }
}
