//! Parameters of the stages.

use std::collections::BTreeMap;

use hopmap_model::{InputPath, NotBuilt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Rules;
use crate::error::ParameterError;
use crate::solver::HIGHS;

/// A program and a network from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// A file of JSON or TOML with hosts, switches, links, processes and streams, and perhaps a mapping and tables.
    pub file: InputPath,
    /// Performance of every host, in place of what the file says.
    #[serde(default)]
    pub performance: Option<f64>,
    /// Types of switches by their names, in place of what the file says: `{ A = 1 }`.
    #[serde(default)]
    pub switch_types: BTreeMap<String, u32>,
    /// Links beside those of the file.
    #[serde(default)]
    pub links: Vec<LinkParams>,
    /// Whether the file's `mapping` is left out, so that it is looked for.
    #[serde(default)]
    pub unmapped: bool,
}

/// A link in each direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkParams {
    /// The host or switch at one end.
    pub a: String,
    /// The one at the other end.
    pub b: String,
    /// What it carries in a second in each direction.
    pub bandwidth: f64,
}

/// Tables of switches, followed entry by entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckParams {
    /// What a hop of the longest route weighs in the objective; 1000 in the paper.
    #[serde(default = "thousand")]
    pub longest: f64,
    /// What every hop weighs; 10 in the paper.
    #[serde(default = "ten")]
    pub hops: f64,
    /// What every entry of a table weighs; 1 in the paper.
    #[serde(default = "one")]
    pub entries: f64,
    /// Whether all streams from one host to another count as one of their bandwidth together, as the paper does where the mapping is
    /// given. Otherwise every stream between two processes has a route of its own.
    #[serde(default)]
    pub merged: bool,
    /// Whether links that can wait for each other in a circle are an error. They are always reported.
    #[serde(default)]
    pub deadlock_free: bool,
    /// Most hops of a route; 0 keeps every stream inside a host.
    #[serde(default)]
    pub most_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub performance_slack: f64,
    /// Most that arrives at a switch in a second.
    #[serde(default)]
    pub switch_load: Option<f64>,
    /// Whether it does not matter what processes need of the performance of hosts, as in problem 1 of the paper.
    #[serde(default)]
    pub ignore_performance: bool,
}

/// What the parts of the objective weigh (11).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// A hop of the longest route.
    pub longest: f64,
    /// Every hop.
    pub hops: f64,
    /// Every entry of a table.
    pub entries: f64,
}

/// The integer program of the paper as a file for solvers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelParams {
    /// Which file.
    #[serde(default)]
    pub format: ModelFormat,
    /// What a hop of the longest route weighs in the objective; 1000 in the paper.
    #[serde(default = "thousand")]
    pub longest: f64,
    /// What every hop weighs; 10 in the paper.
    #[serde(default = "ten")]
    pub hops: f64,
    /// What every entry of a table weighs; 1 in the paper.
    #[serde(default = "one")]
    pub entries: f64,
}

/// Routes and tables, and where it is looked for the mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SolveParams {
    /// What a hop of the longest route weighs in the objective; 1000 in the paper.
    #[serde(default = "thousand")]
    pub longest: f64,
    /// What every hop weighs; 10 in the paper.
    #[serde(default = "ten")]
    pub hops: f64,
    /// What every entry of a table weighs; 1 in the paper.
    #[serde(default = "one")]
    pub entries: f64,
    /// Whether no links may be able to wait for each other in a circle.
    #[serde(default)]
    pub deadlock_free: bool,
    /// Most hops of a route; 0 keeps every stream inside a host.
    #[serde(default)]
    pub most_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub performance_slack: f64,
    /// Most that arrives at a switch in a second.
    #[serde(default)]
    pub switch_load: Option<f64>,
    /// What is as good as possible before the objective is.
    #[serde(default)]
    pub goal: Goal,
    /// What looks for an answer.
    #[serde(default)]
    pub method: Method,
    /// How many nodes the search may look at.
    #[serde(default)]
    pub nodes: Option<u64>,
    /// How long the search may take, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Whether it does not matter what processes need of the performance of hosts, as in problem 1 of the paper: only where
    /// the mapping is given.
    #[serde(default)]
    pub ignore_performance: bool,
    /// Whether no answer is a result like another: a `diagnosis` whose metric `infeasible` is 1, after which the run goes on. Otherwise
    /// what needs an answer does not run, and the run ends with 1.
    #[serde(default)]
    pub allow_infeasible: bool,
}

/// What is as good as possible before the objective is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The objective alone.
    #[default]
    Objective,
    /// The part of its bandwidth that stays free on the link where it is least is as large as can be.
    BandwidthSlack,
    /// The part of its performance that stays free on the host where it is least is as large as can be.
    PerformanceSlack,
    /// What arrives at the switch where most arrives is as little as can be.
    SwitchLoad,
}

/// What looks for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A search of our own first; what it does not prove, the compact program.
    #[default]
    Auto,
    /// The search alone, which needs no solver of linear programs.
    Search,
    /// A program in which hosts are parts of their switches.
    Compact,
    /// The program of the paper, for reference.
    Paper,
}

impl Method {
    /// Refuses to solve linear programs without a solver.
    pub(crate) fn check(self, has_solver: bool) -> Result<(), NotBuilt> {
        match self {
            Self::Compact if !has_solver => {
                Err(HIGHS.missing("`method = \"compact\"` solves linear programs with"))
            }
            Self::Paper if !has_solver => {
                Err(HIGHS.missing("`method = \"paper\"` solves linear programs with"))
            }
            _ => Ok(()),
        }
    }
}

/// A file of a linear program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFormat {
    /// The LP format of CPLEX.
    #[default]
    Lp,
    /// Free MPS.
    Mps,
}

impl Weights {
    /// Refuses weights below zero.
    pub(crate) fn check(self) -> Result<(), ParameterError> {
        match [self.longest, self.hops, self.entries]
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0)
        {
            true => Ok(()),
            false => Err(ParameterError::Weights),
        }
    }
}

impl CheckParams {
    /// What the check holds an answer to that was looked for under rules.
    #[must_use]
    pub fn of(rules: &Rules, merged: bool) -> Self {
        let Rules { weights, deadlock_free, most_hops, bandwidth_slack, performance_slack, switch_load } =
            *rules;
        let Weights { longest, hops, entries } = weights;
        Self {
            longest,
            hops,
            entries,
            merged,
            deadlock_free,
            most_hops,
            bandwidth_slack,
            performance_slack,
            switch_load,
            // What a problem that ignores it is asked about has none.
            ignore_performance: false,
        }
    }
}

impl From<&SolveParams> for Rules {
    fn from(params: &SolveParams) -> Self {
        Self {
            weights: Weights::from(params),
            deadlock_free: params.deadlock_free,
            most_hops: params.most_hops,
            bandwidth_slack: params.bandwidth_slack,
            performance_slack: params.performance_slack,
            switch_load: params.switch_load,
        }
    }
}

impl From<&CheckParams> for Rules {
    fn from(params: &CheckParams) -> Self {
        Self {
            weights: Weights::from(params),
            deadlock_free: params.deadlock_free,
            most_hops: params.most_hops,
            bandwidth_slack: params.bandwidth_slack,
            performance_slack: params.performance_slack,
            switch_load: params.switch_load,
        }
    }
}

impl From<&CheckParams> for Weights {
    fn from(&CheckParams { longest, hops, entries, .. }: &CheckParams) -> Self {
        Self { longest, hops, entries }
    }
}

impl From<&SolveParams> for Weights {
    fn from(&SolveParams { longest, hops, entries, .. }: &SolveParams) -> Self {
        Self { longest, hops, entries }
    }
}

impl From<&ModelParams> for Weights {
    fn from(&ModelParams { longest, hops, entries, .. }: &ModelParams) -> Self {
        Self { longest, hops, entries }
    }
}

/// Tables of switches as text that networks load, or as a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Which text.
    pub format: ExportFormat,
    /// The family of switches whose registers `registers` writes.
    #[serde(default)]
    pub family: Family,
    /// What `dump_lfts` or opensm's `opensm-lfts.dump` says of the running network, for `lft`: which LIDs the nodes have.
    #[serde(default)]
    pub lids: Option<InputPath>,
}

/// A text that tables are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// The configuration of the fabric management daemon of `RapidIO`, which knows both types of switches.
    Fmd,
    /// Linear forwarding tables as `dump_lfts` of InfiniBand prints them and `opensm -R file -U` loads them; for type 1.
    Lft,
    /// Lines of the `routes` files of Linux's `RapidIO` devices; for type 1.
    Rio,
    /// What to write into which register of every switch.
    Registers,
    /// A picture of the routes on the network with the load of every link; needs `routes`.
    Svg,
    /// A page with that picture, the busiest links and the metrics; needs `routes`.
    Html,
}

/// A family of `RapidIO` switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IDT CPS of the second generation, and the registers of the standard.
    #[default]
    Cps,
    /// Tundra Tsi57x.
    Tsi57x,
    /// IDT RXS of the third generation.
    Rxs,
}

pub(crate) fn thousand() -> f64 {
    1000.0
}

pub(crate) fn ten() -> f64 {
    10.0
}

pub(crate) fn one() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_solved_without_a_solver() {
        assert_eq!(Method::Auto.check(false), Ok(()));
        assert_eq!(Method::Search.check(false), Ok(()));
        assert_eq!(Method::Paper.check(true), Ok(()));
        assert_eq!(
            Method::Compact.check(false).unwrap_err().to_string(),
            "`method = \"compact\"` solves linear programs with HiGHS, which this build does not have"
        );
    }
}
