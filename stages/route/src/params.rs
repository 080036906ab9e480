//! Parameters of the stages.

use std::collections::BTreeMap;
use std::time::Instant;

use hopmap_model::{Context, Error, InputPath, require};
use hopmap_routing::engine::Limits;
use hopmap_routing::error::is_above_zero;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::HIGHS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do about limits of nothing.
pub(crate) const NO_LIMIT: &str = "above 0; without it the search ends when the optimum is proven";

/// Declares the parameters of a stage; parameter groups shared by several stages are defined once. `weights` are the weights of
/// objective (11), `rules` adds constraints on a solution, and `search` adds the solver and its limits. `flatten` is not used:
/// serde would accept unknown keys.
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
            /// Weight of the hop count of the longest route in the objective (1000 in the paper).
            #[serde(default = "hopmap_model::number::<1000, f64>")]
            pub weight_max_hops: f64,
            /// Weight of every hop (10 in the paper).
            #[serde(default = "hopmap_model::number::<10, f64>")]
            pub weight_total_hops: f64,
            /// Weight of every table entry (1 in the paper).
            #[serde(default = "hopmap_model::number::<1, f64>")]
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
            /// Require deadlock-free routes: no cycle of links that wait for each other (Dally and Seitz).
            #[serde(default)]
            pub deadlock_free: bool,
            /// Maximum hops of a route; 0 keeps every stream inside a host.
            #[serde(default)]
            pub max_hops: Option<u32>,
            /// Fraction of the bandwidth of every link that stays free: at least 0, below 1.
            #[serde(default)]
            pub bandwidth_slack: f64,
            /// Fraction of the performance of every host that stays free: at least 0, below 1.
            #[serde(default)]
            pub performance_slack: f64,
            /// Limit on the total bandwidth that arrives at a switch.
            #[serde(default)]
            pub switch_load: Option<f64>,
        } }
    };
    ($(#[$meta:meta])* $name:ident: [search] { $($own:tt)* }) => {
        impl $name {
            /// Rejects rules that cannot be met, limits of zero, and solvers that this build does not have.
            pub(crate) fn check_search(&self) -> Result<(), Error> {
                Rules::from(self).check()?;
                self.method.check(HIGHS.is_built)?;
                let time = self.time_limit_s.unwrap_or(1.0);
                require(is_above_zero(time), "time_limit_s", time, NO_LIMIT)?;
                Ok(require(self.max_search_nodes != Some(0), "max_search_nodes", 0, NO_LIMIT)?)
            }

            /// The limits of a search; none extends beyond the deadline of the run.
            pub(crate) fn limits(&self, cx: &Context<'_>) -> Limits {
                let left = cx.deadline().map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
                Limits { nodes: self.max_search_nodes, seconds: self.time_limit_s.into_iter().chain(left).reduce(f64::min) }
            }
        }

        params! { $(#[$meta])* $name: [] {
            $($own)*
            /// Method of solution.
            #[serde(default)]
            pub method: Method,
            /// Maximum nodes of the search tree, for every problem if there are several.
            #[serde(default)]
            pub max_search_nodes: Option<u64>,
            /// Time limit per problem in seconds; the result is then not reproducible bit-identically.
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
    /// JSON or TOML file with hosts, switches, links, processes and streams, optionally with a mapping and tables.
    pub path: InputPath,
    /// Performance of every host, overriding the file.
    #[serde(default)]
    pub performance: Option<f64>,
    /// Switch types by switch name, overriding the file: `{ A = 1 }`.
    #[serde(default)]
    pub switch_types: BTreeMap<String, u32>,
    /// Additional links.
    #[serde(default)]
    pub links: Vec<LinkParams>,
    /// Ignore the mapping of the file, so that the solver searches for one.
    #[serde(default)]
    pub unmapped: bool,
}

/// A link in each direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkParams {
    /// Host or switch at one end.
    pub a: String,
    /// Host or switch at the other end.
    pub b: String,
    /// Bandwidth in each direction.
    pub bandwidth: f64,
}

params! {
    /// Tables of switches, followed entry by entry.
    CheckParams: [weights, rules] {
        /// Treat all streams from one host to another as one with their total bandwidth, as the paper does for a given mapping.
        ///
        /// Otherwise every stream between two processes has its own route.
        #[serde(default)]
        pub aggregate_flows: bool,
        /// Ignore the performance of hosts, as in problem 1 of the paper.
        #[serde(default)]
        pub ignore_performance: bool,
    }
}

params! {
    /// The integer program of the paper as a solver input file.
    ModelParams: [weights] {
        /// File format.
        #[serde(default)]
        pub format: ModelFormat,
    }
}

params! {
    /// Routes and tables, and a mapping if none is given.
    SolveParams: [weights, rules, search] {
        /// Primary goal, optimised before the objective.
        #[serde(default)]
        pub goal: Goal,
        /// Ignore the performance of hosts, as in problem 1 of the paper; requires a given mapping.
        #[serde(default)]
        pub ignore_performance: bool,
        /// Treat an infeasible problem as a result: a `diagnosis` with the metric `infeasible` = 1, after which the run
        /// continues.
        ///
        /// Otherwise the stages that depend on the solution do not run, and the run ends with exit code 1.
        #[serde(default)]
        pub allow_infeasible: bool,
    }
}

params! {
    /// Failures of single components.
    FailuresParams: [weights, rules, search] {
        /// Kinds of components that fail, one at a time.
        #[serde(default = "all_components")]
        pub components: Vec<Fallible>,
        /// Allow processes to move to other hosts.
        ///
        /// Otherwise they stay, and only routes change. If the instance fixes the host of every process, these hosts are only the
        /// initial mapping.
        #[serde(default)]
        pub remap: bool,
        /// Cost of moving a process to another host, added to the objective.
        #[serde(default = "hopmap_model::number::<1000, f64>")]
        pub move_cost: f64,
        /// Treat the result as infeasible if the program does not survive a failure, or if that is unknown.
        #[serde(default)]
        pub require_resilience: bool,
    }
}

params! {
    /// A machine from a component inventory.
    BuildParams: [weights, rules, search] {
        /// TOML or JSON file with nodes, switches and boards, or only with boards and their contents.
        pub path: InputPath,
        /// Kinds of components of which any single one may fail.
        #[serde(default)]
        pub tolerate_single_failure: Vec<Fallible>,
        /// Allow processes to move to other hosts when a component fails.
        ///
        /// Otherwise they stay, and only routes change.
        #[serde(default)]
        pub remap: bool,
        /// Maximum number of candidate machines.
        ///
        /// A machine is only proven optimal if this suffices for all candidates that could be better.
        #[serde(default = "hopmap_model::number::<2000, u64>")]
        pub candidates: u64,
        /// Random seed of the search when there are too many machines to enumerate.
        #[serde(default)]
        pub seed: u64,
    }
}

/// Streams from traffic, and a machine whose links have ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DemandsParams {
    /// Time in seconds in which the traffic must be transmitted; the length of the trace or phase if omitted.
    pub duration_s: Option<f64>,
    /// Phase whose traffic is used: its name, or its number from 0; the complete trace if omitted.
    pub phase: Option<String>,
    /// Use for each stream the phase in which its rate is highest.
    pub peak_phase: bool,
    /// Omit streams that need fewer bytes per second.
    pub min_bandwidth_bytes_per_s: f64,
    /// Number of streams to keep, those with the most traffic first; all if omitted.
    pub top_flows: Option<usize>,
    /// Performance that each process needs; a host without a value has as much as it has slots.
    pub performance: Performance,
    /// Bandwidth of links that specify none, in bytes per second; if omitted, that of all streams together, so that any routes fit.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Type of switches that specify none: 1 has one table, 2 has one per input port.
    pub switch_type: Option<u32>,
}

/// Performance that each process needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Performance {
    /// One slot.
    #[default]
    Slot,
    /// The fraction of the time in which it computed. A host then has a slot for every such process that fits, and communication
    /// costs hops.
    Compute,
}

/// A kind of component that can fail.
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

/// File format of a linear program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFormat {
    /// The LP format of CPLEX.
    #[default]
    Lp,
    /// Free MPS.
    Mps,
}

/// Tables of switches as text for networks, or as a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Output format.
    pub format: ExportFormat,
    /// Switch family whose registers `registers` writes.
    #[serde(default)]
    pub family: Family,
    /// Output of `dump_lfts` or opensm's `opensm-lfts.dump` from the running network, with the LIDs of its nodes; for `lft`.
    #[serde(default)]
    pub lids: Option<InputPath>,
}

/// An output format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// Configuration of the `RapidIO` fabric management daemon, which supports both types of switches.
    Fmd,
    /// InfiniBand linear forwarding tables as `dump_lfts` prints and `opensm -R file -U` loads them; for type 1.
    Lft,
    /// Lines of the `routes` files of Linux's `RapidIO` devices; for type 1.
    Rio,
    /// Register writes of every switch.
    Registers,
    /// SVG of the network with the routes and the load of every link; needs `routes`.
    Svg,
    /// HTML page with that picture, the busiest links and the metrics; needs `routes`.
    Html,
}

/// A family of `RapidIO` switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// IDT CPS, second generation, and the registers of the standard.
    #[default]
    Cps,
    /// Tundra Tsi57x.
    Tsi57x,
    /// IDT RXS, third generation.
    Rxs,
}

fn all_components() -> Vec<Fallible> {
    vec![Fallible::Link, Fallible::Switch, Fallible::Host]
}
