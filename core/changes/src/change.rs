//! Differences between two topologies.

use std::fmt::{self, Display, Formatter};

use hopmap_formats::host_list::compress;
use hopmap_formats::natural_key;
use hopmap_model::SystemGraph;
use hopmap_text::{counted, duration};
use serde::Serialize;
use serde_json::Value as Json;

/// A difference between two topologies. `Display` formats it as one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A new host.
    HostNew {
        /// Its name.
        host: String,
        /// Its number of slots.
        slots: usize,
    },
    /// A host that was removed.
    HostGone {
        /// Its name.
        host: String,
        /// The number of slots it had.
        slots: usize,
    },
    /// A host that stopped answering.
    HostDown {
        /// Its name.
        host: String,
    },
    /// A host that answers again.
    HostBack {
        /// Its name.
        host: String,
    },
    /// A host has different slots.
    Slots {
        /// Its name.
        host: String,
        /// Cores of its slots before, sorted.
        before: Vec<u32>,
        /// Cores of its slots after, sorted.
        after: Vec<u32>,
    },
    /// The slots of a host are grouped differently, for example by other sockets.
    Grouping {
        /// Its name.
        host: String,
    },
    /// A new switch.
    SwitchNew {
        /// Its name.
        switch: String,
    },
    /// A switch that was removed.
    SwitchGone {
        /// Its name.
        switch: String,
    },
    /// A switch that stopped answering.
    SwitchDown {
        /// Its name.
        switch: String,
    },
    /// A switch that answers again.
    SwitchBack {
        /// Its name.
        switch: String,
    },
    /// Hosts or a switch that are attached elsewhere.
    Moved {
        /// The nodes that moved.
        nodes: Vec<String>,
        /// Where they were attached: switches, or the other hosts of their group.
        before: Vec<String>,
        /// Where they are attached now.
        after: Vec<String>,
    },
    /// The number of links between two nodes changed.
    Links {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// Whether the reverse direction changed in the same way.
        both: bool,
        /// The number before.
        before: usize,
        /// The number after.
        after: usize,
    },
    /// The latency or bandwidth of a link changed; `None` if unknown.
    Link {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// Whether the reverse direction changed in the same way.
        both: bool,
        /// Latency or bandwidth.
        quantity: Quantity,
        /// The value before.
        before: Option<f64>,
        /// The value after.
        after: Option<f64>,
    },
    /// The cost model has another form.
    CostForm {
        /// `levels`, `matrix`, or the cost of routes: `hops`, `latency` or `time`.
        before: &'static str,
        /// The form after.
        after: &'static str,
    },
    /// The costs of the levels changed, innermost first.
    Levels {
        /// Costs before.
        before: Vec<f64>,
        /// Costs after.
        after: Vec<f64>,
    },
    /// Static routes changed.
    Routes {
        /// The destination hosts.
        to: Vec<String>,
    },
    /// The message time or cost between two hosts, or between the cores of one host, changed.
    Pair {
        /// A host.
        from: String,
        /// Another host, or the same one.
        to: String,
        /// Whether the reverse direction changed in the same way.
        both: bool,
        /// Latency or cost.
        quantity: Quantity,
        /// The value before.
        before: f64,
        /// The value after.
        after: f64,
    },
}

/// The quantity of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Seconds.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// Cost in the cost model.
    Cost,
}

impl Change {
    /// The change as JSON with its `Display` text as `text`.
    #[must_use]
    pub fn as_json(&self) -> Json {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("text".to_owned(), self.to_string().into());
        }
        value
    }

    /// Whether only the state of a node changed: it stopped answering, or answers again.
    #[must_use]
    pub fn is_about_state(&self) -> bool {
        matches!(self, Self::HostDown { .. } | Self::HostBack { .. })
    }

    /// The two hosts whose latency changed.
    #[must_use]
    pub fn drifted(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair { from, to, quantity: Quantity::Latency, .. } => Some((from, to)),
            _ => None,
        }
    }

    /// Key that identifies a change across two comparisons: everything but the values, and for a number
    /// whether it increased. Changes are sorted by it.
    pub(crate) fn subject(&self) -> (u8, Vec<String>, bool) {
        let one = |name: &String| vec![natural_key(name)];
        let two = |from, to| vec![natural_key(from), natural_key(to)];
        match self {
            Self::HostNew { host, .. } => (0, one(host), false),
            Self::HostGone { host, .. } => (1, one(host), false),
            Self::HostDown { host } => (2, one(host), false),
            Self::HostBack { host } => (3, one(host), false),
            Self::Slots { host, .. } => (4, one(host), false),
            Self::Grouping { host } => (5, one(host), false),
            Self::SwitchNew { switch } => (6, one(switch), false),
            Self::SwitchGone { switch } => (7, one(switch), false),
            Self::SwitchDown { switch } => (8, one(switch), false),
            Self::SwitchBack { switch } => (9, one(switch), false),
            Self::Moved { nodes, .. } => (10, nodes.iter().map(|node| natural_key(node)).collect(), false),
            Self::Links { from, to, before, after, .. } => (11, two(from, to), after > before),
            Self::Link { from, to, quantity, before, after, .. } => {
                (12 + *quantity as u8, two(from, to), after > before)
            }
            Self::CostForm { .. } => (15, Vec::new(), false),
            Self::Levels { .. } => (16, Vec::new(), false),
            Self::Routes { .. } => (17, Vec::new(), false),
            Self::Pair { from, to, quantity, before, after, .. } => {
                (18 + *quantity as u8, two(from, to), after > before)
            }
        }
    }
}

/// The changes of a second comparison that a first one contains with the same subject and direction, with the
/// values of the second.
#[must_use]
pub fn confirmed(first: &[Change], second: Vec<Change>) -> Vec<Change> {
    let seen: std::collections::BTreeSet<_> = first.iter().map(Change::subject).collect();
    second.into_iter().filter(|change| seen.contains(&change.subject())).collect()
}

/// Bytes per second: `12.5 GB/s`.
pub(crate) fn bandwidth(bytes_per_s: f64) -> String {
    let (scale, unit) = match bytes_per_s {
        size if size >= 1e9 => (1e-9, "GB/s"),
        size if size >= 1e6 => (1e-6, "MB/s"),
        size if size >= 1e3 => (1e-3, "kB/s"),
        _ => (1.0, "B/s"),
    };
    format!("{} {unit}", number(bytes_per_s * scale))
}

/// A number with three digits, or all digits before the decimal point.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Relative change: `+35 %`; empty if the value was zero.
pub(crate) fn percent(before: f64, after: f64) -> String {
    match before == 0.0 {
        true => String::new(),
        false => format!(" ({:+.0} %)", (after / before - 1.0) * 100.0),
    }
}

/// Names as a host list in natural order: `h[1-3,10]`.
#[must_use]
pub fn host_list<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut names: Vec<S> = names.into_iter().collect();
    names.sort_by_cached_key(|name| natural_key(name.as_ref()));
    compress(names.iter().map(AsRef::as_ref))
}

/// Names of nodes by their ids.
pub(crate) fn name(system: &SystemGraph, node: u32) -> &str {
    &system.nodes[node as usize].name
}

/// A number with its unit.
fn value(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Latency => duration(value),
        Quantity::Bandwidth => bandwidth(value),
        Quantity::Cost => format!("cost {}", number(value)),
    }
}

fn known(quantity: Quantity, number: Option<f64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| value(quantity, number))
}

fn between(from: &str, to: &str, both: bool) -> String {
    match (from == to, both) {
        (true, _) => format!("inside {from}"),
        (_, true) => format!("{from} – {to}"),
        (_, false) => format!("{from} → {to}"),
    }
}

/// Compact list of cores: `0-3,8`.
fn cores(cores: &[u32]) -> String {
    let run = |run: &[u32]| match run {
        [one] => one.to_string(),
        more => format!("{}-{}", more[0], more[more.len() - 1]),
    };
    let runs: Vec<String> = cores.chunk_by(|a, b| a + 1 == *b).map(run).collect();
    match runs.is_empty() {
        true => "none".to_owned(),
        false => runs.join(","),
    }
}

fn costs(costs: &[f64]) -> String {
    costs.iter().map(|&cost| number(cost)).collect::<Vec<_>>().join(", ")
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostNew { host, slots: count } => write!(f, "{host} is new, {}", counted(*count, "slot")),
            Self::HostGone { host, slots: count } => {
                write!(f, "{host} is gone, it had {}", counted(*count, "slot"))
            }
            Self::HostDown { host } => write!(f, "{host} is down"),
            Self::HostBack { host } => write!(f, "{host} is back"),
            Self::Slots { host, before, after } => {
                write!(f, "{host} has cores {}, had {}", cores(after), cores(before))
            }
            Self::Grouping { host } => write!(f, "{host} groups its cores differently"),
            Self::SwitchNew { switch } => write!(f, "{switch} is new"),
            Self::SwitchGone { switch } => write!(f, "{switch} is gone"),
            Self::SwitchDown { switch } => write!(f, "{switch} is down"),
            Self::SwitchBack { switch } => write!(f, "{switch} is back"),
            Self::Moved { nodes, before, after } => {
                let place = |names: &[String]| match names.is_empty() {
                    true => "a separate group".to_owned(),
                    false => host_list(names),
                };
                write!(f, "{} moved from {} to {}", host_list(nodes), place(before), place(after))
            }
            Self::Links { from, to, both, before, after } => {
                let place = between(from, to, *both);
                match (before, after) {
                    (0, 1) => write!(f, "{place}: link is new"),
                    (0, more) => write!(f, "{place}: {more} links are new"),
                    (1, 0) => write!(f, "{place}: link is gone"),
                    (more, 0) => write!(f, "{place}: {more} links are gone"),
                    _ => write!(f, "{place}: {after} links, were {before}"),
                }
            }
            Self::Link { from, to, both, quantity, before, after } => {
                let percent = before.zip(*after).map_or(String::new(), |(b, a)| percent(b, a));
                let (now, was) = (known(*quantity, *after), known(*quantity, *before));
                write!(f, "{}: link of {now}, was {was}{percent}", between(from, to, *both))
            }
            Self::CostForm { before, after } => write!(f, "the cost model is {after}, was {before}"),
            Self::Levels { before, after } => {
                write!(f, "level costs are {}, were {}", costs(after), costs(before))
            }
            Self::Routes { to } => write!(f, "routes to {} have changed", host_list(to)),
            Self::Pair { from, to, both, quantity, before, after } => {
                let (now, was) = (value(*quantity, *after), value(*quantity, *before));
                let place = between(from, to, *both);
                write!(f, "{place}: {now}, was {was}{}", percent(*before, *after))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(to: &str, before: f64, after: f64) -> Change {
        let (from, to) = ("h0".to_owned(), to.to_owned());
        Change::Pair { from, to, both: true, quantity: Quantity::Latency, before, after }
    }

    #[test]
    fn only_changes_seen_twice_in_the_same_direction_are_confirmed() {
        let first = [pair("h1", 1.0, 2.0), pair("h2", 1.0, 2.0), pair("h3", 1.0, 2.0)];
        let second = vec![pair("h1", 1.0, 3.0), pair("h2", 2.0, 1.0), pair("h4", 1.0, 2.0)];
        assert_eq!(confirmed(&first, second), [pair("h1", 1.0, 3.0)]);
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([412e-6, 1.25e-3, 2.0, 95e-9].map(duration), ["412 µs", "1.25 ms", "2 s", "95 ns"]);
        assert_eq!([12.5e9, 1e6, 3.0].map(bandwidth), ["12.5 GB/s", "1 MB/s", "3 B/s"]);
        assert_eq!([1e6, 100.0, 10.05, 0.0].map(number), ["1000000", "100", "10.1", "0"]);
        assert_eq!(percent(305.0, 412.0), " (+35 %)");
        assert_eq!(percent(0.0, 1.0), "");
    }

    #[test]
    fn a_change_is_formatted_as_one_line() {
        let pair = |from: &str, to: &str, both, quantity, before, after| {
            let (from, to) = (from.to_owned(), to.to_owned());
            Change::Pair { from, to, both, quantity, before, after }.to_string()
        };
        assert_eq!(
            pair("h3", "h7", true, Quantity::Latency, 305e-6, 412e-6),
            "h3 – h7: 412 µs, was 305 µs (+35 %)"
        );
        assert_eq!(pair("h3", "h3", false, Quantity::Cost, 0.0, 2.0), "inside h3: cost 2, was cost 0");
        let moved = Change::Moved {
            nodes: vec!["h2".into(), "h10".into(), "h1".into()],
            before: Vec::new(),
            after: vec!["s1".into()],
        };
        assert_eq!(moved.to_string(), "h[1-2,10] moved from a separate group to s1");
        let host = "n1".to_owned();
        let slots = Change::Slots { host, before: vec![0, 1, 2, 8], after: Vec::new() };
        assert_eq!(slots.to_string(), "n1 has cores none, had 0-2,8");
        assert_eq!(
            serde_json::to_string(&Change::HostDown { host: "n1".into() }).unwrap(),
            r#"{"change":"host-down","host":"n1"}"#
        );
    }
}
