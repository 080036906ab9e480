//! `hopmap topology`: what keeps the topology of a machine true.

mod diff;
mod measure;
mod refresh;
mod status;

use clap::{Args, Subcommand};
use miette::Report;

use super::exit::Exit;
use super::failure::Failure;
use super::output::Output;
use crate::engine::StoreError;
use crate::refresh::RefreshError;

/// Arguments of `topology`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at the machine, publish what has changed, and tell whoever uses it.
    Refresh(Box<refresh::Arguments>),
    /// Say in words what is different between two topologies.
    Diff(diff::Arguments),
    /// Say what is published, since when, and whether it is kept up to date.
    Status(status::Arguments),
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Refresh(arguments) => refresh::main(arguments, output),
        Command::Diff(arguments) => diff::main(arguments, output),
        Command::Status(arguments) => status::main(arguments, output),
    }
}

/// A part of one, from 0 to 1.
fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("it is a number from 0 to 1, such as 0.95".to_owned()),
    }
}

/// A drift: a part that may be more than one.
fn drift(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it is a number of zero or more, such as 0.3 for 30 %".to_owned()),
    }
}

/// An error of a refresh, by what it means to the caller.
fn failure(report: Report) -> Failure {
    match report.downcast::<RefreshError>() {
        Ok(error) => error.into(),
        Err(report) => match report.downcast::<StoreError>() {
            Ok(error) => error.into(),
            Err(report) => Failure::Failed(report),
        },
    }
}

impl From<RefreshError> for Failure {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Busy { .. } => Self::Locked(Report::new(error)),
            RefreshError::Foreign { .. } | RefreshError::Nothing { .. } => Self::usage(error),
            RefreshError::Interrupted => Self::Interrupted(Report::new(error)),
            error => Self::Failed(Report::new(error)),
        }
    }
}
