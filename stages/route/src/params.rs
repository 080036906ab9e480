//! Parameters of the stages.

use std::collections::BTreeMap;
use std::time::Instant;

use hopmap_model::{Context, Error, InputPath, NotBuilt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Limits;
use crate::error::{is_above_zero, require};
use crate::problem::{Rules, Weights};
use crate::solver::HIGHS;

/// What to do about limits of nothing.
pub(crate) const NO_LIMIT: &str = "it is above 0; leave it out to search until the optimum is proven";

/// Declares the parameters of a stage; groups that several stages have are written once. `weights` are those of the objective (11),
/// `rules` adds what an answer has to keep, `search` adds the solver and its limits. Not `flatten`: unknown keys are refused.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident: [weights $(, $more:ident)*] { $($own:tt)* }) => {
        impl From<&$name> for Weights {
            fn from(params: &$name) -> Self {
                Self {
                    longest_route: params.weight_max_hops,
                    total_hops: params.weight_total_hops,
                    table_entries: params.weight_table_entries,
                }
            }
        }

        params! { $(#[$meta])* $name: [$($more),*] {
            $($own)*
            /// What a hop of the longest route weighs in the objective; 1000 in the paper.
            #[serde(default = "number::<1000, f64>")]
            pub weight_max_hops: f64,
            /// What every hop weighs; 10 in the paper.
            #[serde(default = "number::<10, f64>")]
            pub weight_total_hops: f64,
            /// What every entry of a table weighs; 1 in the paper.
            #[serde(default = "number::<1, f64>")]
            pub weight_table_entries: f64,
        } }
    };
    ($(#[$meta:meta])* $name:ident: [rules $(, $more:ident)*] { $($own:tt)* }) => {
        impl From<&$name> for Rules {
            fn from(params: &$name) -> Self {
                Self {
                    weights: Weights::from(params),
                    deadlock_free: params.deadlock_free,
                    max_hops: params.max_hops,
                    bandwidth_slack: params.bandwidth_slack,
                    performance_slack: params.performance_slack,
                    switch_load: params.switch_load,
                }
            }
        }

        params! { $(#[$meta])* $name: [$($more),*] {
            $($own)*
            /// Whether links must not be able to wait for each other in a cycle (Dally and Seitz).
            #[serde(default)]
            pub deadlock_free: bool,
            /// Most hops of a route; 0 keeps every stream inside a host.
            #[serde(default)]
            pub max_hops: Option<u32>,
            /// Fraction of the bandwidth of every link that stays free, from 0 up to but not including 1.
            #[serde(default)]
            pub bandwidth_slack: f64,
            /// Fraction of the performance of every host that stays free, from 0 up to but not including 1.
            #[serde(default)]
            pub performance_slack: f64,
            /// Most that arrives at a switch in a second.
            #[serde(default)]
            pub switch_load: Option<f64>,
        } }
    };
    ($(#[$meta:meta])* $name:ident: [search] { $($own:tt)* }) => {
        impl $name {
            /// Refuses rules that none can keep, limits of nothing, and solvers that this build does not have.
            pub(crate) fn check_search(&self) -> Result<(), Error> {
                Rules::from(self).check()?;
                self.method.check(HIGHS.is_built)?;
                let time = self.time_limit_s.unwrap_or(1.0);
                require(is_above_zero(time), "time_limit_s", time, NO_LIMIT)?;
                Ok(require(self.max_search_nodes != Some(0), "max_search_nodes", 0, NO_LIMIT)?)
            }

            /// The limits of a search, none of which goes beyond the deadline of the run.
            pub(crate) fn limits(&self, cx: &Context<'_>) -> Limits {
                let left = cx.deadline().map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
                Limits { nodes: self.max_search_nodes, seconds: self.time_limit_s.into_iter().chain(left).reduce(f64::min) }
            }
        }

        params! { $(#[$meta])* $name: [] {
            $($own)*
            /// What looks for an answer.
            #[serde(default)]
            pub method: Method,
            /// How many nodes the search may look at: for every problem, where there are several.
            #[serde(default)]
            pub max_search_nodes: Option<u64>,
            /// How long the search may take for a problem, in seconds. The result is not reproducible bit for bit.
            #[serde(default)]
            pub time_limit_s: Option<f64>,
        } }
    };
    ($(#[$meta:meta])* $name:ident: [] { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
        }
    };
}

/// A program and a network from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// A file of JSON or TOML with hosts, switches, links, processes and streams, and perhaps a mapping and tables.
    pub path: InputPath,
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

params! {
    /// Tables of switches, followed entry by entry.
    CheckParams: [weights, rules] {
        /// Whether all streams from one host to another count as one of their bandwidth together, as the paper does where the mapping
        /// is given. Otherwise every stream between two processes has a route of its own.
        #[serde(default)]
        pub aggregate_flows: bool,
        /// Whether it does not matter what processes need of the performance of hosts, as in problem 1 of the paper.
        #[serde(default)]
        pub ignore_performance: bool,
    }
}

params! {
    /// The integer program of the paper as a file for solvers.
    ModelParams: [weights] {
        /// Which file.
        #[serde(default)]
        pub format: ModelFormat,
    }
}

params! {
    /// Routes and tables, and the mapping where none is given.
    SolveParams: [weights, rules, search] {
        /// What is as good as possible before the objective is.
        #[serde(default)]
        pub goal: Goal,
        /// Whether it does not matter what processes need of the performance of hosts, as in problem 1 of the paper: only where the mapping is given.
        #[serde(default)]
        pub ignore_performance: bool,
        /// Whether no answer is a result like another: a `diagnosis` whose metric `infeasible` is 1, after which the run goes on.
        /// Otherwise what needs an answer does not run, and the run ends with 1.
        #[serde(default)]
        pub allow_infeasible: bool,
    }
}

params! {
    /// Failures of single parts.
    FailuresParams: [weights, rules, search] {
        /// Which parts are taken away.
        #[serde(default = "all_components")]
        pub components: Vec<Fallible>,
        /// Whether processes may go to other hosts. Otherwise they stay, and only routes change. A program whose processes are all
        /// settled on hosts is then settled on none.
        #[serde(default)]
        pub remap: bool,
        /// What a process costs that goes to another host, beside the objective.
        #[serde(default = "number::<1000, f64>")]
        pub move_cost: f64,
        /// Whether it counts as infeasible if some failure is not survived, or it is not known.
        #[serde(default)]
        pub require_resilience: bool,
    }
}

params! {
    /// A machine from a bill of materials.
    BuildParams: [weights, rules, search] {
        /// A file of TOML or JSON with nodes, switches and boards, or with boards and what is on each of them.
        pub path: InputPath,
        /// Parts any one of which may fail: of each kind every single one.
        #[serde(default)]
        pub tolerate_single_failure: Vec<Fallible>,
        /// Whether processes may go to other hosts when a part fails. Otherwise they stay, and only routes change.
        #[serde(default)]
        pub remap: bool,
        /// How many machines are looked at. A machine is only proven best if that is enough for all that could be better.
        #[serde(default = "number::<2000, u64>")]
        pub candidates: u64,
        /// What random steps are drawn with, where there are too many machines to look at all.
        #[serde(default)]
        pub seed: u64,
    }
}

/// Streams from traffic, and a machine whose links have ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DemandsParams {
    /// Seconds in which the traffic has to get through. Without it as long as the trace is, or the phase.
    pub duration_s: Option<f64>,
    /// The phase of the program whose traffic counts: its name, or its number from 0. Without it that of the whole trace.
    pub phase: Option<String>,
    /// Whether each stream needs what it sends in the phase in which it sends most in a second.
    pub peak_phase: bool,
    /// Streams that need less bytes per second than this are left out.
    pub min_bandwidth_bytes_per_s: f64,
    /// How many streams are left, the heaviest ones. Without it all.
    pub top_flows: Option<usize>,
    /// What processes need of a host, which has as much as it has slots if it does not say.
    pub performance: Performance,
    /// Bytes per second of links that do not say it. Without it they carry everything.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Type of switches that do not say it: 1 has one table, 2 has one for every port.
    pub switch_type: Option<u32>,
}

/// What processes need of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Performance {
    /// A slot each.
    #[default]
    Slot,
    /// The part of a slot in which it computed. Hosts then have as many slots as such processes fit on them, and slots cost hops.
    Compute,
}

/// A kind of part that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fallible {
    /// A cable, in both directions.
    Link,
    /// A switch with all its cables.
    Switch,
    /// A host with all its cables.
    Host,
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
        let what = match self {
            Self::Compact => "`method = \"compact\"` solves linear programs with",
            Self::Paper => "`method = \"paper\"` solves linear programs with",
            Self::Auto | Self::Search => return Ok(()),
        };
        if has_solver { Ok(()) } else { Err(HIGHS.missing(what)) }
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

fn all_components() -> Vec<Fallible> {
    vec![Fallible::Link, Fallible::Switch, Fallible::Host]
}

fn number<const N: u32, T: From<u32>>() -> T {
    N.into()
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
