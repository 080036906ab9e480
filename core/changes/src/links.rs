//! Links that are new, gone, or slower. A link that is down counts as gone.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{CostModel, Link, LinkState};

use crate::change::{Change, Quantity};
use crate::drift::spread_of_large;
use crate::nodes::Moves;
use crate::pair::{Both, Key, Side};
use crate::snapshot::Thresholds;

type Ends<'k> = (&'k Key, &'k Key);

/// Links between nodes that both machines have, except those that a move explains.
pub(crate) fn changes(both: &Both<'_>, moves: &Moves, thresholds: &Thresholds) -> Vec<Change> {
    let (before, after) = (links(both, &both.before, &both.after), links(both, &both.after, &both.before));
    let mut found: BTreeMap<Ends<'_>, Vec<Difference>> = BTreeMap::new();
    let none = Vec::new();
    let spread = spread(both);
    for &ends in before.keys().chain(after.keys().filter(|ends| !before.contains_key(*ends))) {
        if moves.explains(ends.0, ends.1) {
            continue;
        }
        let (old, new) = (before.get(&ends).unwrap_or(&none), after.get(&ends).unwrap_or(&none));
        let differences = differences(old, new, spread, thresholds);
        if !differences.is_empty() {
            found.insert(ends, differences);
        }
    }
    let labels = Labels::new(both);
    let mut changes = Vec::new();
    for (&(from, to), differences) in &found {
        for difference in differences {
            let same_back = found.get(&(to, from)).is_some_and(|back| back.contains(difference));
            if !same_back || labels.of(from) < labels.of(to) {
                changes.push(difference.change(labels.of(from), labels.of(to), same_back));
            }
        }
    }
    changes
}

/// Labels of nodes, by key.
struct Labels<'b>(BTreeMap<&'b Key, &'b String>);

impl<'b> Labels<'b> {
    fn new(both: &'b Both<'_>) -> Self {
        let of = |side: &'b Side<'_>| side.keys.iter().zip(&side.labels);
        Self(of(&both.after).chain(of(&both.before)).collect())
    }

    fn of(&self, key: &Key) -> String {
        self.0.get(key).map_or(String::new(), |label| (*label).clone())
    }
}

/// Links by pair of nodes, in canonical order.
fn links<'s>(both: &Both<'_>, side: &'s Side<'_>, other: &Side<'_>) -> BTreeMap<Ends<'s>, Vec<Link>> {
    let known = other.by_key();
    let mut links: BTreeMap<Ends<'_>, Vec<Link>> = BTreeMap::new();
    for link in side.snapshot.system.links.iter().filter(|link| link.state == LinkState::Up) {
        let ends = (&side.keys[link.source as usize], &side.keys[link.destination as usize]);
        if both.is_comparable(ends.0, &known) && both.is_comparable(ends.1, &known) {
            links.entry(ends).or_default().push(*link);
        }
    }
    let order = |number: Option<f64>| number.map(f64::to_bits);
    for links in links.values_mut() {
        links.sort_by_key(|link| (order(link.bandwidth_bytes_per_s), order(link.latency_s)));
    }
    links
}

#[derive(Debug, PartialEq)]
enum Difference {
    Count { before: usize, after: usize },
    Value { quantity: Quantity, before: Option<f64>, after: Option<f64> },
}

impl Difference {
    fn change(&self, from: String, to: String, both: bool) -> Change {
        match *self {
            Self::Count { before, after } => Change::Links { from, to, both, before, after },
            Self::Value { quantity, before, after } => {
                Change::Link { from, to, both, quantity, before, after }
            }
        }
    }
}

/// Larger spread of large messages of the two machines; `None` if they were not measured.
fn spread(both: &Both<'_>) -> Option<f64> {
    let of = |side: &Side<'_>| side.snapshot.measurements.map(spread_of_large);
    Some(of(&both.before)?.max(of(&both.after)?))
}

/// Differences of links; a rate has to change by more than the spread of measured rates.
fn differences(old: &[Link], new: &[Link], spread: Option<f64>, thresholds: &Thresholds) -> Vec<Difference> {
    if old.len() != new.len() {
        return vec![Difference::Count { before: old.len(), after: new.len() }];
    }
    let of = |link: &Link, quantity| match quantity {
        Quantity::Bandwidth => link.bandwidth_bytes_per_s,
        _ => link.latency_s,
    };
    let numbers_differ = |quantity, a: f64, b: f64| match (spread, quantity) {
        (Some(_), Quantity::Latency) => thresholds.latencies_differ(a, b, 0.0),
        (Some(spread), _) => thresholds.rates_differ(a, b, spread),
        (None, _) => thresholds.differ(a, b),
    };
    let mut found = Vec::new();
    for quantity in [Quantity::Bandwidth, Quantity::Latency] {
        let differ = |(a, b): &(Option<f64>, Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => numbers_differ(quantity, *a, *b),
            (a, b) => a.is_some() != b.is_some(),
        };
        // Parallel links are compared in the order of their values; the first difference is reported.
        let mut values = old.iter().zip(new).map(|(old, new)| (of(old, quantity), of(new, quantity)));
        if let Some((before, after)) = values.find(differ) {
            found.push(Difference::Value { quantity, before, after });
        }
    }
    found
}

/// Costs of levels are compared exactly unless both machines were measured.
pub(crate) fn costs(both: &Both<'_>, thresholds: &Thresholds) -> Option<Change> {
    let form = |cost: &CostModel| match cost {
        CostModel::Levels(_) => "levels",
        CostModel::Matrix(_) => "matrix",
        CostModel::Routes(routes) => routes.metric.name(),
    };
    let (before, after) = (both.before.snapshot.system, both.after.snapshot.system);
    let (old, new) = match (&before.cost, &after.cost) {
        (CostModel::Levels(old), CostModel::Levels(new)) => (old, new),
        (CostModel::Routes(old), CostModel::Routes(new)) if old.metric == new.metric => {
            (&old.inside, &new.inside)
        }
        (before, after) => {
            let (before, after) = (form(before), form(after));
            return (before != after).then_some(Change::CostForm { before, after });
        }
    };
    let differ = |(a, b): (&f64, &f64)| match both.is_measured() {
        true => thresholds.differ(*a, *b),
        false => a.to_bits() != b.to_bits(),
    };
    let same = old.costs.len() == new.costs.len() && !old.costs.iter().zip(&new.costs).any(differ);
    (!same).then(|| Change::Levels { before: old.costs.clone(), after: new.costs.clone() })
}

/// A table entry: node and port of the destination, next node, and outgoing port.
type Entries<'s> = BTreeMap<(&'s Key, &'s Key, Option<u32>), (&'s Key, Option<u32>)>;

/// The destinations whose routes changed, on nodes that both machines have.
pub(crate) fn routes(both: &Both<'_>) -> Option<Change> {
    let (before, after) =
        (entries(both, &both.before, &both.after), entries(both, &both.after, &both.before));
    let is_other = |key: &&(&Key, &Key, Option<u32>)| before.get(*key) != after.get(*key);
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).filter(is_other).collect();
    let hosts: BTreeSet<&String> = keys
        .iter()
        .filter_map(|(_, host, _)| match host {
            Key::Host(name) => Some(name),
            _ => None,
        })
        .collect();
    (!hosts.is_empty()).then(|| Change::Routes { to: hosts.into_iter().cloned().collect() })
}

fn entries<'s>(both: &Both<'_>, side: &'s Side<'_>, other: &Side<'_>) -> Entries<'s> {
    let known = other.by_key();
    let system = side.snapshot.system;
    let key = |node: u32| &side.keys[node as usize];
    let mut entries = Entries::new();
    for entry in &system.routing.forwarding {
        let (last, link) = (&system.links[entry.last as usize], &system.links[entry.link as usize]);
        let ends = [entry.node, last.destination];
        if ends.iter().all(|&node| both.is_comparable(key(node), &known)) {
            let purpose = (key(entry.node), key(last.destination), last.destination_port);
            entries.insert(purpose, (key(link.destination), link.source_port));
        }
    }
    entries
}
