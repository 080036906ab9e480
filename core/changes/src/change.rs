//! A difference between two topologies.

use std::fmt;
use std::fmt::{Display, Formatter};

use hopmap_formats::host_list::compress;
use hopmap_formats::natural_key;
use hopmap_model::SystemGraph;
use serde::Serialize;
use serde_json::Value as Json;

/// A difference between two topologies. Written as text it is a line for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A host that was not there.
    HostNew {
        /// Its name.
        host: String,
        /// Its number of slots.
        slots: usize,
    },
    /// A host that is not there any more.
    HostGone {
        /// Its name.
        host: String,
        /// The number of slots it had.
        slots: usize,
    },
    /// A host that does not answer any more.
    HostDown {
        /// Its name.
        host: String,
    },
    /// A host that answers again.
    HostBack {
        /// Its name.
        host: String,
    },
    /// The slots of a host are others.
    Slots {
        /// Its name.
        host: String,
        /// Cores of its slots, sorted.
        before: Vec<u32>,
        /// Cores of its slots, sorted.
        after: Vec<u32>,
    },
    /// The slots of a host are nearer to each other in another way, such as by other sockets.
    Grouping {
        /// Its name.
        host: String,
    },
    /// A switch that was not there.
    SwitchNew {
        /// What it is called.
        switch: String,
    },
    /// A switch that is not there any more.
    SwitchGone {
        /// What it was called.
        switch: String,
    },
    /// A switch that does not answer any more.
    SwitchDown {
        /// What it is called.
        switch: String,
    },
    /// A switch that answers again.
    SwitchBack {
        /// What it is called.
        switch: String,
    },
    /// Hosts or a switch that hang elsewhere.
    Moved {
        /// What moved.
        nodes: Vec<String>,
        /// What it hung on: switches, or the other hosts of its group.
        before: Vec<String>,
        /// What it hangs on.
        after: Vec<String>,
    },
    /// Another number of links between two nodes.
    Links {
        /// Where they begin.
        from: String,
        /// Where they end.
        to: String,
        /// Whether it is the same the other way.
        both: bool,
        /// How many there were.
        before: usize,
        /// How many there are.
        after: usize,
    },
    /// Another latency or bandwidth of a link; missing where it is not known.
    Link {
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
        /// Whether it is the same the other way.
        both: bool,
        /// Latency or bandwidth.
        quantity: Quantity,
        /// What it was.
        before: Option<f64>,
        /// What it is.
        after: Option<f64>,
    },
    /// Costs have another form.
    CostForm {
        /// `levels`, `matrix`, or what counts of routes: `hops`, `latency` or `time`.
        before: &'static str,
        /// The same.
        after: &'static str,
    },
    /// The costs of the levels, innermost first.
    Levels {
        /// What they were.
        before: Vec<f64>,
        /// What they are.
        after: Vec<f64>,
    },
    /// Static routes that are others.
    Routes {
        /// The hosts to which they lead.
        to: Vec<String>,
    },
    /// Messages between two hosts, or between the cores of one, take another time or have another cost.
    Pair {
        /// A host.
        from: String,
        /// Another host, or the same one.
        to: String,
        /// Whether it is the same the other way.
        both: bool,
        /// Latency or cost.
        quantity: Quantity,
        /// What it was.
        before: f64,
        /// What it is.
        after: f64,
    },
}

/// What a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Seconds.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// What the cost model says.
    Cost,
}

impl Change {
    /// The change with its text, for programs and people.
    #[must_use]
    pub fn as_json(&self) -> Json {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("text".to_owned(), self.to_string().into());
        }
        value
    }

    /// Whether it says no more than that a host does not answer, or answers again.
    #[must_use]
    pub fn is_about_state(&self) -> bool {
        matches!(self, Self::HostDown { .. } | Self::HostBack { .. })
    }

    /// The two hosts between which latency has changed.
    #[must_use]
    pub fn drifted(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair { from, to, quantity: Quantity::Latency, .. } => Some((from, to)),
            _ => None,
        }
    }

    /// What it is about, so that the same change seen twice can be recognised: everything but values, and for a number whether
    /// it has grown. Lists are in this order.
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

/// The changes of a second look that a first look saw as well: about the same, in the same direction. Values are those of the
/// second look.
#[must_use]
pub fn confirmed(first: &[Change], second: Vec<Change>) -> Vec<Change> {
    let seen: std::collections::BTreeSet<_> = first.iter().map(Change::subject).collect();
    second.into_iter().filter(|change| seen.contains(&change.subject())).collect()
}

/// Seconds in the unit that suits them, with three digits: `412 µs`, `1.2 ms`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let (scale, unit) = match seconds.abs() {
        size if size >= 1.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        size if size >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", number(seconds * scale))
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

/// A number with three digits, or all before the point.
#[must_use]
pub fn number(value: f64) -> String {
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

/// How much a number has changed: `+35 %`; nothing where it was zero.
pub(crate) fn percent(before: f64, after: f64) -> String {
    match before == 0.0 {
        true => String::new(),
        false => format!(" ({:+.0} %)", (after / before - 1.0) * 100.0),
    }
}

/// Names as a host list, in the order in which people count: `h[1-3,10]`.
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
        Quantity::Latency => seconds(value),
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

fn slots(count: usize) -> String {
    format!("{count} slot{}", if count == 1 { "" } else { "s" })
}

/// Cores in short: `0-3,8`.
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
            Self::HostNew { host, slots: count } => write!(f, "{host} is new, {}", slots(*count)),
            Self::HostGone { host, slots: count } => write!(f, "{host} is gone, it had {}", slots(*count)),
            Self::HostDown { host } => write!(f, "{host} is down"),
            Self::HostBack { host } => write!(f, "{host} is back"),
            Self::Slots { host, before, after } => {
                write!(f, "{host} has cores {}, had {}", cores(after), cores(before))
            }
            Self::Grouping { host } => write!(f, "{host} groups its cores in another way"),
            Self::SwitchNew { switch } => write!(f, "{switch} is new"),
            Self::SwitchGone { switch } => write!(f, "{switch} is gone"),
            Self::SwitchDown { switch } => write!(f, "{switch} is down"),
            Self::SwitchBack { switch } => write!(f, "{switch} is back"),
            Self::Moved { nodes, before, after } => {
                let place = |names: &[String]| match names.is_empty() {
                    true => "a group of its own".to_owned(),
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
            Self::CostForm { before, after } => write!(f, "costs are {after}, were {before}"),
            Self::Levels { before, after } => {
                write!(f, "levels cost {}, were {}", costs(after), costs(before))
            }
            Self::Routes { to } => write!(f, "routes to {} are others", host_list(to)),
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
    fn only_what_was_seen_twice_in_the_same_direction_is_confirmed() {
        let first = [pair("h1", 1.0, 2.0), pair("h2", 1.0, 2.0), pair("h3", 1.0, 2.0)];
        let second = vec![pair("h1", 1.0, 3.0), pair("h2", 2.0, 1.0), pair("h4", 1.0, 2.0)];
        assert_eq!(confirmed(&first, second), [pair("h1", 1.0, 3.0)]);
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([412e-6, 1.25e-3, 2.0, 95e-9].map(seconds), ["412 µs", "1.25 ms", "2 s", "95 ns"]);
        assert_eq!([12.5e9, 1e6, 3.0].map(bandwidth), ["12.5 GB/s", "1 MB/s", "3 B/s"]);
        assert_eq!([1e6, 100.0, 10.05, 0.0].map(number), ["1000000", "100", "10.1", "0"]);
        assert_eq!(percent(305.0, 412.0), " (+35 %)");
        assert_eq!(percent(0.0, 1.0), "");
    }

    #[test]
    fn a_change_is_a_line_for_people() {
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
        assert_eq!(moved.to_string(), "h[1-2,10] moved from a group of its own to s1");
        let host = "n1".to_owned();
        let slots = Change::Slots { host, before: vec![0, 1, 2, 8], after: Vec::new() };
        assert_eq!(slots.to_string(), "n1 has cores none, had 0-2,8");
        assert_eq!(
            serde_json::to_string(&Change::HostDown { host: "n1".into() }).unwrap(),
            r#"{"change":"host-down","host":"n1"}"#
        );
    }
}
