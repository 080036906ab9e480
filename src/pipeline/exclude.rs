//! `exclude`: combinations of a matrix that are left out.

use std::collections::BTreeSet;

use hopmap_text::closest;
use serde_json::Value as Json;

use super::Problem;
use super::matrix::{Combination, Key, show};
use super::node::{Node, NodeValue};
use super::range::Bounds;
use super::template::{SchemaView, Scope};

/// Combinations that are left out: those that meet all conditions.
struct Exclusion<'a> {
    node: &'a Node,
    conditions: Vec<Condition<'a>>,
}

/// What the value of a key has to be.
struct Condition<'a> {
    /// Place of the key among all.
    key: usize,
    node: &'a Node,
    wanted: Vec<Wanted>,
}

enum Wanted {
    Value(Json),
    Within(Bounds, Json),
}

impl Wanted {
    fn new(value: Json) -> Self {
        match value.as_str().and_then(Bounds::parse) {
            Some(bounds) => Self::Within(bounds, value),
            None => Self::Value(value),
        }
    }

    fn fits(&self, value: &Json) -> bool {
        match self {
            Self::Value(wanted) => same(wanted, value),
            Self::Within(bounds, wanted) => bounds.contains(value) || same(wanted, value),
        }
    }

    fn written(&self) -> &Json {
        let (Self::Value(value) | Self::Within(_, value)) = self;
        value
    }
}

/// Whether two values are written alike, or are the same number.
fn same(one: &Json, other: &Json) -> bool {
    let numbers = one.as_f64().zip(other.as_f64());
    numbers.map_or_else(|| show(one) == show(other), |(one, other)| one.total_cmp(&other).is_eq())
}

impl Condition<'_> {
    fn fits(&self, combination: &Combination) -> bool {
        self.wanted.iter().any(|wanted| wanted.fits(&combination[self.key].1.value))
    }
}

/// The combinations without those that are left out. An entry that leaves out nothing is a mistake unless a parameter gives the
/// values of one of its keys, and so is leaving out all.
pub(crate) fn without_excluded(
    combinations: Vec<Combination>,
    keys: &[Key],
    entries: &[Node],
    scope: &Scope<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Combination> {
    let exclusions: Vec<Exclusion<'_>> =
        entries.iter().filter_map(|entry| exclusion(entry, keys, scope, problems)).collect();
    let mut used = vec![false; exclusions.len()];
    let had_some = !combinations.is_empty();
    let stays = |combination: &Combination| {
        let mut stays = true;
        for (exclusion, used) in exclusions.iter().zip(&mut used) {
            if exclusion.conditions.iter().all(|condition| condition.fits(combination)) {
                (*used, stays) = (true, false);
            }
        }
        stays
    };
    let (left, gone): (Vec<Combination>, Vec<Combination>) = combinations.into_iter().partition(stays);
    if let (true, Some(last)) = (left.is_empty() && had_some, entries.last()) {
        problems.push(Problem::new("every combination of the matrix is left out", &last.span));
    }
    let is_known = |exclusion: &Exclusion<'_>| {
        !exclusion.conditions.iter().any(|condition| keys[condition.key].is_parameter)
    };
    let unused_ones = exclusions.iter().zip(&used).filter(|(_, used)| had_some && !**used);
    for (exclusion, _) in unused_ones.filter(|(exclusion, _)| is_known(exclusion)) {
        problems.push(unused(exclusion, keys, || left.iter().chain(&gone)));
    }
    left
}

fn exclusion<'a>(
    node: &'a Node,
    keys: &[Key],
    scope: &Scope<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Exclusion<'a>> {
    let entries = node.table().map_or(&[][..], |table| &table.entries);
    let mut conditions = Vec::new();
    for entry in entries {
        let Some(key) = keys.iter().position(|key| key.name == entry.key) else {
            let problem = Problem::new(format!("the matrix has no key `{}`", entry.key), &entry.key_span);
            problems.push(problem.suggest(&entry.key, "its keys", keys.iter().map(|key| key.name.as_str())));
            return None;
        };
        let wanted = match scope.resolve(&entry.node, &SchemaView::new(&Json::Null), problems) {
            Json::Array(values) => values.into_iter().map(Wanted::new).collect(),
            value => vec![Wanted::new(value)],
        };
        conditions.push(Condition { key, node: &entry.node, wanted });
    }
    if conditions.is_empty() {
        problems.push(Problem::new("this would leave out every combination", &node.span));
        return None;
    }
    Some(Exclusion { node, conditions })
}

/// Says why an entry leaves out nothing: a value that no combination has, or values that no combination has together.
fn unused<'a, I: Iterator<Item = &'a Combination>>(
    exclusion: &Exclusion<'_>,
    keys: &[Key],
    combinations: impl Fn() -> I,
) -> Problem {
    for Condition { key, node, wanted } in &exclusion.conditions {
        let has = |wanted: &Wanted| combinations().any(|combination| wanted.fits(&combination[*key].1.value));
        if wanted.iter().any(has) {
            continue;
        }
        let values: BTreeSet<String> =
            combinations().map(|combination| show(&combination[*key].1.value)).collect();
        let written = wanted.first().map_or_else(String::new, |wanted| show(wanted.written()));
        let known: Vec<&str> = values.iter().map(String::as_str).collect();
        let name = &keys[*key].name;
        let place = if let NodeValue::Array(nodes) = &node.value { nodes.first() } else { None };
        let problem = Problem::new(
            format!("this leaves out nothing: `{name}` is never {written}"),
            &place.unwrap_or(node).span,
        );
        return match closest(&written, &known) {
            Some(meant) => problem.label(format!("did you mean `{meant}`?")),
            None => problem,
        }
        .help(format!("values of `{name}`: {}", first_few(&known)));
    }
    Problem::new("this leaves out nothing: no combination has all of these values", &exclusion.node.span)
}

fn first_few(values: &[&str]) -> String {
    const FEW: usize = 10;
    let shown = values.iter().take(FEW).copied().collect::<Vec<_>>().join(", ");
    if values.len() > FEW { format!("{shown}, … ({} in all)", values.len()) } else { shown }
}
