//! Deprecated names of stage kinds, parameters and metrics. A pipeline that has them still runs for one release, with a warning;
//! keys and artifacts only ever have the new names.
//!
//! `docs/renames.md` lists these names and those of columns; `ci/compare-versions.py` reads that page to compare the results of two versions.

use std::ops::Range;

use crate::source::{Entry, Node, NodeValue, Problem, Table};

/// A kind that was renamed, with the parameters that replace its old name.
pub struct Kind {
    /// The deprecated name.
    pub old: &'static str,
    /// Its new name.
    pub new: &'static str,
    /// Parameters to add: names and values.
    pub with: &'static [(&'static str, &'static str)],
}

/// A parameter that was renamed.
pub struct Parameter {
    /// Kind of the stage, or all of a crate: `map/*`.
    pub stage: &'static str,
    /// The deprecated name.
    pub old: &'static str,
    /// Its new name; `annealing.seed` is `seed` in the table `annealing`.
    pub new: &'static str,
}

/// A metric that was renamed.
pub struct Metric {
    /// The deprecated name.
    pub old: &'static str,
    /// Its new name.
    pub new: &'static str,
}

/// All kinds that were renamed.
// Stages that read several formats set none: they recognise the format of the file.
pub const KINDS: &[Kind] = &[
    Kind { old: "topology/netloc", new: "topology/import", with: &[] },
    Kind { old: "topology/ibnetdiscover", new: "topology/import", with: &[("format", "ibnetdiscover")] },
    Kind { old: "topology/omnipath", new: "topology/import", with: &[("format", "omnipath")] },
    Kind { old: "topology/slurm", new: "topology/import", with: &[] },
    Kind { old: "topology/simgrid", new: "topology/import", with: &[("format", "simgrid")] },
    Kind { old: "topology/scotch", new: "topology/import", with: &[] },
    Kind { old: "topology/parus", new: "topology/import", with: &[] },
    Kind { old: "topology/matrix", new: "topology/import", with: &[] },
    Kind { old: "trace/csv", new: "trace/import", with: &[("format", "csv")] },
];

/// All parameters that were renamed, by crate.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { stage: "instance/graph", old: "file", new: "path" },
    Parameter { stage: "instance/qaplib", old: "file", new: "path" },
    Parameter { stage: "checkpoint/*", old: "series", new: "path" },
    Parameter { stage: "checkpoint/*", old: "block", new: "block_bytes" },
    Parameter { stage: "checkpoint/*", old: "block_overhead", new: "block_overhead_bytes" },
    Parameter { stage: "evaluate/accuracy", old: "by", new: "group_by" },
    Parameter { stage: "evaluate/accuracy", old: "known", new: "best_known" },
    Parameter { stage: "evaluate/accuracy", old: "beside", new: "baseline" },
    Parameter { stage: "map/*", old: "seconds", new: "time_limit_s" },
    Parameter { stage: "map/exact", old: "nodes", new: "max_search_nodes" },
    Parameter { stage: "map/import", old: "file", new: "path" },
    Parameter { stage: "map/annealing", old: "successive", new: "exchange_interval" },
    Parameter { stage: "map/annealing", old: "max_neighbours", new: "moves_per_temperature" },
    Parameter { stage: "map/annealing", old: "neighbours_unit", new: "moves_unit" },
    Parameter { stage: "map/annealing", old: "neighbours", new: "move_type" },
    Parameter { stage: "map/annealing", old: "accepted", new: "max_accepted_per_temperature" },
    Parameter { stage: "map/annealing", old: "factor", new: "cooling_rate" },
    Parameter { stage: "map/annealing", old: "frozen", new: "stop_when_frozen" },
    Parameter { stage: "map/annealing", old: "after_exchange", new: "temperature_after_exchange" },
    Parameter { stage: "map/annealing", old: "genetic", new: "crossover_on_exchange" },
    Parameter { stage: "map/genetic", old: "children", new: "offspring" },
    Parameter { stage: "map/*", old: "descent", new: "local_search" },
    Parameter { stage: "map/composite", old: "annealing_iterations", new: "annealing.iterations" },
    Parameter { stage: "map/composite", old: "iteration", new: "annealing.iteration" },
    Parameter { stage: "map/composite", old: "max_neighbours", new: "annealing.moves_per_temperature" },
    Parameter { stage: "map/composite", old: "neighbours_unit", new: "annealing.moves_unit" },
    Parameter { stage: "map/composite", old: "accepted", new: "annealing.max_accepted_per_temperature" },
    Parameter { stage: "map/composite", old: "cooling", new: "annealing.cooling" },
    Parameter { stage: "map/composite", old: "factor", new: "annealing.cooling_rate" },
    Parameter { stage: "map/composite", old: "initial_temperature", new: "annealing.initial_temperature" },
    Parameter { stage: "map/composite", old: "final_temperature", new: "annealing.final_temperature" },
    Parameter { stage: "map/composite", old: "patience", new: "annealing.patience" },
    Parameter { stage: "map/composite", old: "frozen", new: "annealing.stop_when_frozen" },
    Parameter { stage: "map/composite", old: "neighbours", new: "annealing.move_type" },
    Parameter { stage: "map/composite", old: "population", new: "genetic.population" },
    Parameter { stage: "map/composite", old: "iterations", new: "genetic.iterations" },
    Parameter { stage: "map/composite", old: "children", new: "genetic.offspring" },
    Parameter { stage: "map/composite", old: "tournament", new: "genetic.tournament" },
    Parameter { stage: "map/composite", old: "crossover", new: "genetic.crossover" },
    Parameter { stage: "map/composite", old: "crossover_probability", new: "genetic.crossover_probability" },
    Parameter { stage: "map/composite", old: "mutation", new: "genetic.mutation" },
    Parameter { stage: "map/composite", old: "scheme", new: "genetic.scheme" },
    Parameter { stage: "map/composite", old: "master", new: "genetic.master" },
    Parameter { stage: "map/composite", old: "migrants", new: "genetic.migrants" },
    Parameter { stage: "map/composite", old: "mutate_clones", new: "genetic.mutate_clones" },
    Parameter { stage: "map/composite", old: "duplicate_migrants", new: "genetic.duplicate_migrants" },
    Parameter { stage: "route/*", old: "longest", new: "weight_max_hops" },
    Parameter { stage: "route/*", old: "hops", new: "weight_total_hops" },
    Parameter { stage: "route/*", old: "entries", new: "weight_table_entries" },
    Parameter { stage: "route/*", old: "most_hops", new: "max_hops" },
    Parameter { stage: "route/*", old: "nodes", new: "max_search_nodes" },
    Parameter { stage: "route/demands", old: "seconds", new: "duration_s" },
    Parameter { stage: "route/*", old: "seconds", new: "time_limit_s" },
    Parameter { stage: "route/import", old: "file", new: "path" },
    Parameter { stage: "route/build", old: "kit", new: "path" },
    Parameter { stage: "route/build", old: "survives", new: "tolerate_single_failure" },
    Parameter { stage: "route/check", old: "merged", new: "aggregate_flows" },
    Parameter { stage: "route/failures", old: "of", new: "components" },
    Parameter { stage: "route/failures", old: "must_survive", new: "require_resilience" },
    Parameter { stage: "route/demands", old: "peak", new: "peak_phase" },
    Parameter { stage: "route/demands", old: "least", new: "min_bandwidth_bytes_per_s" },
    Parameter { stage: "route/demands", old: "heaviest", new: "top_flows" },
    Parameter { stage: "route/demands", old: "bandwidth", new: "bandwidth_bytes_per_s" },
    Parameter { stage: "schedule/*", old: "seconds", new: "time_limit_s" },
    Parameter { stage: "schedule/*", old: "file", new: "path" },
    Parameter { stage: "schedule/exact", old: "evaluations", new: "max_search_nodes" },
    Parameter { stage: "schedule/genetic", old: "exchange", new: "exchange_interval" },
    Parameter { stage: "trace/dag", old: "archive", new: "path" },
    Parameter { stage: "trace/events", old: "archive", new: "path" },
    Parameter { stage: "trace/export", old: "to", new: "format" },
    Parameter { stage: "trace/import", old: "file", new: "path" },
    Parameter { stage: "trace/otf", old: "archive", new: "path" },
    Parameter { stage: "trace/otf2", old: "archive", new: "path" },
    Parameter { stage: "trace/replay", old: "to", new: "format" },
    Parameter { stage: "topology/probe", old: "inside", new: "measure_intra_node" },
    Parameter { stage: "topology/*", old: "inside", new: "intra_node_costs" },
    Parameter { stage: "topology/*", old: "threads", new: "hardware_threads" },
    Parameter { stage: "topology/*", old: "gap", new: "level_ratio" },
    Parameter { stage: "topology/*", old: "link_latency", new: "link_latency_s" },
    Parameter { stage: "topology/synthetic", old: "bandwidth", new: "bandwidth_bytes_per_s" },
    Parameter { stage: "topology/probe", old: "seconds", new: "size_time_limit_s" },
    Parameter { stage: "topology/probe", old: "timeout", new: "start_timeout_s" },
    Parameter { stage: "topology/export", old: "to", new: "format" },
    Parameter { stage: "select/hosts", old: "link_latency", new: "link_latency_s" },
    Parameter { stage: "stored/*", old: "artifact", new: "path" },
];

/// All metrics that were renamed.
pub const METRICS: &[Metric] = &[];

/// The new kind and parameters of a deprecated kind.
#[must_use]
pub fn kind(old: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.old == old)
}

/// The current name of a kind.
#[must_use]
pub fn current_kind(name: &str) -> &str {
    kind(name).map_or(name, |renamed| renamed.new)
}

/// The current name of a metric.
#[must_use]
pub fn metric(name: &str) -> &str {
    METRICS.iter().find(|metric| metric.old == name).map_or(name, |metric| metric.new)
}

/// The new name of a parameter of a stage, if it is deprecated.
#[must_use]
pub fn parameter(stage: &str, name: &str) -> Option<&'static str> {
    renamed(PARAMETERS, stage, name)
}

fn renamed(parameters: &[Parameter], stage: &str, name: &str) -> Option<&'static str> {
    let is_of = |pattern: &str| match pattern.strip_suffix('*') {
        Some(of_crate) => stage.starts_with(of_crate),
        None => stage == pattern,
    };
    parameters.iter().find(|entry| entry.old == name && is_of(entry.stage)).map(|entry| entry.new)
}

/// Replaces deprecated names in the parameters of a stage, and gives a warning for each. `written` is the kind as the user wrote it, at
/// `span`; a deprecated kind adds its own parameters, unless they are given.
pub(crate) fn renew(written: &str, span: &Range<usize>, with: &mut Table) -> Vec<Problem> {
    let Some(renamed) = kind(written) else { return renew_by(PARAMETERS, written, with) };
    let added: Vec<String> =
        renamed.with.iter().map(|(key, value)| format!(" with {key} = \"{value}\"")).collect();
    let warning = Problem::new(format!("the stage kind `{written}` is deprecated"), span);
    let mut warnings = vec![warning.help(format!("it is `{}`{} now", renamed.new, added.concat()))];
    warnings.extend(renew_by(PARAMETERS, renamed.new, with));
    for (key, value) in renamed.with {
        if with.get(key).is_none() {
            let node = Node { span: span.clone(), value: NodeValue::Scalar((*value).into()) };
            with.entries.push(Entry { key: (*key).to_owned(), key_span: span.clone(), node, old_key: None });
        }
    }
    warnings
}

fn renew_by(parameters: &[Parameter], stage: &str, with: &mut Table) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let new_name = |entry: &Entry| renamed(parameters, stage, &entry.key);
    let (old, current): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(&mut with.entries).into_iter().partition(|entry| new_name(entry).is_some());
    with.entries = current;
    for entry in old {
        match new_name(&entry).filter(|new| !has(with, new)) {
            // Where the parameter has its new name too, the old one is rejected as unknown: one of the values would be ignored.
            None => with.entries.push(entry),
            Some(new) => {
                let message = format!("`{}` of {stage} is deprecated", entry.key);
                warnings
                    .push(Problem::new(message, &entry.key_span).help(format!("it is called `{new}` now")));
                insert(with, new, Entry { old_key: Some(entry.key.clone()), ..entry });
            }
        }
    }
    warnings
}

/// Whether a table has a value under a dotted name.
fn has(table: &Table, name: &str) -> bool {
    match name.split_once('.') {
        None => table.get(name).is_some(),
        Some((outer, inner)) => table.get(outer).is_some_and(|entry| match &entry.node.value {
            NodeValue::Table(table) => has(table, inner),
            _ => false,
        }),
    }
}

/// Inserts a value under a dotted name.
fn insert(table: &mut Table, name: &str, entry: Entry) {
    let Some((outer, inner)) = name.split_once('.') else {
        return table.entries.push(Entry { key: name.to_owned(), ..entry });
    };
    let span = entry.key_span.clone();
    let place = match table.entries.iter().position(|entry| entry.key == outer) {
        Some(place) => place,
        None => {
            let node = Node { span: entry.node.span.clone(), value: NodeValue::Table(Table::default()) };
            table.entries.push(Entry { key: outer.to_owned(), key_span: span, node, old_key: None });
            table.entries.len() - 1
        }
    };
    // A value that is not a table is rejected with the other invalid ones.
    if let NodeValue::Table(inside) = &mut table.entries[place].node.value {
        insert(inside, inner, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry;
    use crate::source::Sink;

    #[test]
    fn values_move_to_their_new_names() {
        let parameters = [
            Parameter { stage: "map/*", old: "seconds", new: "time_limit_s" },
            Parameter { stage: "map/composite", old: "candidates", new: "annealing.candidates" },
            Parameter { stage: "map/composite", old: "cooling", new: "annealing.cooling" },
        ];
        let text = "seconds = 2\ncandidates = 5\ncooling = \"cauchy\"\nseed = 1";
        let mut with = Table::parse(text, &Sink::default());
        let warnings = renew_by(&parameters, "map/composite", &mut with);
        let node = Node { span: 0..0, value: NodeValue::Table(with) };
        let expected = serde_json::json!({ "time_limit_s": 2, "seed": 1,
            "annealing": { "candidates": 5, "cooling": "cauchy" } });
        assert_eq!(node.plain(), expected);
        assert_eq!(warnings.len(), 3);
        assert_eq!(warnings[0].message, "`seconds` of map/composite is deprecated");
        let mut other = Table::parse("seconds = 2", &Sink::default());
        assert!(renew_by(&parameters, "route/map", &mut other).is_empty());
    }

    /// Once one of the values was ignored.
    #[test]
    fn a_parameter_with_both_names_keeps_both() {
        for text in ["file = \"a\"\npath = \"b\"", "path = \"b\"\nfile = \"a\""] {
            let mut with = Table::parse(text, &Sink::default());
            assert!(renew("trace/import", &(0..0), &mut with).is_empty());
            assert!(with.get("file").is_some() && with.get("path").is_some());
        }
        let mut with = Table::parse("population = 5\ngenetic = { population = 6 }", &Sink::default());
        assert!(renew("map/composite", &(0..0), &mut with).is_empty());
    }

    #[test]
    fn a_deprecated_kind_adds_its_parameters_unless_they_are_given() {
        for (text, format) in [("file = \"a\"", "csv"), ("path = \"a\"\nformat = \"other\"", "other")] {
            let mut with = Table::parse(text, &Sink::default());
            let warnings = renew("trace/csv", &(0..0), &mut with);
            assert_eq!(warnings[0].message, "the stage kind `trace/csv` is deprecated");
            let node = Node { span: 0..0, value: NodeValue::Table(with) };
            assert_eq!(node.plain(), serde_json::json!({ "path": "a", "format": format }));
        }
    }

    #[test]
    fn new_names_exist_and_old_ones_do_not() {
        let known: BTreeSet<_> = registry::STAGES.iter().map(|entry| entry.kind).collect();
        for Kind { old, new, .. } in KINDS {
            assert!(known.contains(new) && !known.contains(old), "{old} → {new}");
        }
        for Parameter { stage, old, new } in PARAMETERS {
            let stages = registry::STAGES.iter().filter(|entry| match stage.strip_suffix('*') {
                Some(of_crate) => entry.kind.starts_with(of_crate),
                None => entry.kind == *stage,
            });
            let names = |schema: &serde_json::Value, name: &str| schema["properties"].get(name).is_some();
            let first = new.split('.').next().unwrap_or_default();
            let mut having = 0;
            for entry in stages {
                assert!(!names(&entry.schema, old) || *old == first, "{} still has `{old}`", entry.kind);
                having += usize::from(names(&entry.schema, first));
            }
            assert!(having > 0, "no stage of {stage} has `{new}`");
        }
    }
}
