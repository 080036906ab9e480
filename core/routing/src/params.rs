//! What callers choose: the goal and the method.

use hopmap_model::NotBuilt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::solver::HIGHS;

/// Primary goal, optimised before the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The objective only.
    #[default]
    Objective,
    /// Maximise the free fraction of bandwidth on the narrowest link.
    BandwidthSlack,
    /// Maximise the free fraction of performance on the busiest host.
    PerformanceSlack,
    /// Minimise the load of the busiest switch.
    SwitchLoad,
}

/// Method of solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// hopmap's search first, then the compact program for what the search does not prove.
    #[default]
    Auto,
    /// hopmap's search only; needs no solver of linear programs.
    Search,
    /// Integer program in which hosts are parts of their switches.
    Compact,
    /// Integer program of the paper, for reference.
    Paper,
}

impl Method {
    /// Rejects methods that solve linear programs if this build has no solver.
    pub fn check(self, has_solver: bool) -> Result<(), NotBuilt> {
        let what = match self {
            Self::Compact => "`method = \"compact\"` solves linear programs with",
            Self::Paper => "`method = \"paper\"` solves linear programs with",
            Self::Auto | Self::Search => return Ok(()),
        };
        if has_solver { Ok(()) } else { Err(HIGHS.missing(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_need_a_solver_are_rejected_without_one() {
        assert_eq!(Method::Auto.check(false), Ok(()));
        assert_eq!(Method::Search.check(false), Ok(()));
        assert_eq!(Method::Paper.check(true), Ok(()));
        assert_eq!(
            Method::Compact.check(false).unwrap_err().to_string(),
            "`method = \"compact\"` solves linear programs with HiGHS, which this build does not have"
        );
    }
}
