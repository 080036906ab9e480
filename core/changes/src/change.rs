//! A difference between two topologies.

use hopmap_formats::natural_key;
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
    /// it has grown.
    fn subject(&self) -> (u8, Vec<String>, bool) {
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

    /// Where it stands in a list.
    pub(crate) fn order(&self) -> (u8, Vec<String>, bool) {
        self.subject()
    }
}

/// The changes of a second look that a first look saw as well: about the same, in the same direction. Values are those of the
/// second look.
#[must_use]
pub fn confirmed(first: &[Change], second: Vec<Change>) -> Vec<Change> {
    let seen: std::collections::BTreeSet<_> = first.iter().map(Change::subject).collect();
    second.into_iter().filter(|change| seen.contains(&change.subject())).collect()
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
}
