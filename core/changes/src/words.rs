//! Changes as lines for people.

use std::fmt::{self, Display, Formatter};

use hopmap_formats::host_list::compress;
use hopmap_formats::natural_key;
use hopmap_model::SystemGraph;

use crate::units::{bandwidth, number, percent, seconds};
use crate::{Change, Quantity};

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
