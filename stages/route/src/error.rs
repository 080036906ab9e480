//! What can be wrong with instances, tables and what they are written as.

use miette::Diagnostic;

/// Tables that do not bring every stream where it belongs, or take more than there is.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(help("{help}"))]
pub struct CheckError {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub help: String,
}

impl CheckError {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }
}

/// Tables that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(help("{help}"))]
pub struct ExportError {
    /// What it cannot hold.
    pub problem: String,
    /// What to do.
    pub help: String,
}

impl ExportError {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }
}

/// Parameters that make no search.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub(crate) enum ParameterError {
    /// Weights that make no objective.
    #[error("a weight of the objective is below zero, or no number")]
    #[diagnostic(help("`weight_max_hops`, `weight_total_hops` and `weight_table_entries` are 0 or more"))]
    Weights,
    /// Something that has to be above 0.
    #[error("{name} is {value}")]
    #[diagnostic(help("it is above 0"))]
    NotAbove {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Something that cannot be below 0.
    #[error("{name} is {value}")]
    #[diagnostic(help("it is 0 or more"))]
    Below {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A type that switches do not have.
    #[error("`switch_type` is {switch_type}")]
    #[diagnostic(help("1: one table for the whole switch; 2: a table for every port"))]
    SwitchType {
        /// The type.
        switch_type: u32,
    },
    /// A part of the machine that is none.
    #[error("{name} is {value}")]
    #[diagnostic(help("it is the part that stays free: from 0 up to but not including 1"))]
    Slack {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Switches through which nothing may go.
    #[error("switch_load is {value}")]
    #[diagnostic(help("it is what may arrive at a switch in a second: above 0; leave it out where all may"))]
    SwitchLoad {
        /// Its value.
        value: f64,
    },
    /// No time or no nodes.
    #[error("{name} is {value}")]
    #[diagnostic(help("it is above 0; leave it out to search until the optimum is proven"))]
    Limit {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Hosts that could hold everything.
    #[error("`ignore_performance` is for a mapping that is given")]
    #[diagnostic(help("`route/tables` takes one; without performance the best mapping would be one host"))]
    IgnoresPerformance,
    /// A move that costs less than nothing.
    #[error("`move_cost` is {value}")]
    #[diagnostic(help("it is 0 or more, in units of the objective"))]
    MoveCost {
        /// Its value.
        value: f64,
    },
}

/// A solver that does not solve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum SolverError {
    /// It failed.
    #[error("{problem}")]
    #[diagnostic(help(
        "this is a fault of the solver or of hopmap; route/model writes the program, to look at it with another one"
    ))]
    Failed {
        /// What it says.
        problem: String,
    },
}
