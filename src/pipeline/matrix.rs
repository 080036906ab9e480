//! Matrices: keys, their values, every combination of them, and the combinations that `exclude` leaves out.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range as Span;

use hopmap_text::{closest, grouped};
use serde_json::Value as Json;

use super::range::{Bounds, RANGES, Range};
use super::template::{Base, Resolved, SchemaView, Scope};
use crate::selector::show;
use crate::source::{Entry, Node, NodeValue, Problem, Sink, Table};

/// Cells of a stage, and of a pipeline, beyond this number are more likely a slip than a wish.
pub(crate) const MOST_CELLS: usize = 100_000;

/// A key of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span<usize>,
    /// Whether its values come from a parameter, so that they are not known here.
    pub(crate) is_parameter: bool,
}

/// Keys whose values go side by side: one key of `matrix`, all of `zip`, or those that `foreach` gives.
#[derive(Debug)]
pub(crate) struct Dimension {
    pub(crate) keys: Vec<Key>,
    /// Number of its rows.
    pub(crate) count: u128,
    /// A value for each key in every row. None at all if they are more than a stage may have cells.
    pub(crate) rows: Vec<Vec<Resolved>>,
}

/// The keys of a cell and their values.
pub(crate) type Combination = Vec<(String, Resolved)>;

/// Values of a key; listed only if they are not too many.
struct Values {
    count: u128,
    listed: Vec<Resolved>,
}

/// The keys of `matrix`, each varying by itself.
pub(crate) fn of_matrix(matrix: &Table, scope: &Scope<'_>) -> Vec<Dimension> {
    let dimension = |entry: &Entry| {
        let Values { count, listed } = values(&entry.node, scope);
        let rows: Vec<Vec<Resolved>> = listed.into_iter().map(|value| vec![value]).collect();
        distinct(&rows, &entry.node.span, scope.problems);
        Dimension { keys: vec![key(entry)], count, rows }
    };
    matrix.entries.iter().map(dimension).collect()
}

/// The keys of `zip`, whose values go side by side.
pub(crate) fn of_zip(zip: &Table, scope: &Scope<'_>) -> Option<Dimension> {
    let columns: Vec<Values> = zip.entries.iter().map(|entry| values(&entry.node, scope)).collect();
    let (first, entry) = (columns.first()?, zip.entries.first()?);
    for (other, column) in zip.entries.iter().zip(&columns).skip(1) {
        // One without values has been reported already.
        if column.count != first.count && column.count > 0 && first.count > 0 {
            let (few, many) = (grouped(first.count), grouped(column.count));
            let message = format!("`{}` has {few} values, `{}` has {many}", entry.key, other.key);
            let problem = Problem::new(message, &other.key_span).label("not the same number");
            let help = "values of `zip` go side by side; `matrix` has every combination";
            return scope.problems.refuse(problem.help(help));
        }
    }
    let length = columns.iter().map(|column| column.listed.len()).min()?;
    let row = |index: usize| columns.iter().map(|column| column.listed[index].clone()).collect();
    let rows: Vec<Vec<Resolved>> = (0..length).map(row).collect();
    distinct(&rows, &entry.node.span, scope.problems);
    Some(Dimension { keys: zip.entries.iter().map(key).collect(), count: first.count, rows })
}

fn key(entry: &Entry) -> Key {
    let names_one = |node: &Node| node.text().is_some_and(|text| text.contains("${params."));
    let is_parameter = match &entry.node.value {
        NodeValue::Array(nodes) => nodes.iter().any(names_one),
        _ => names_one(&entry.node),
    };
    Key { name: entry.key.clone(), span: entry.key_span.clone(), is_parameter }
}

/// The values of a key: a list, or a range. References are filled in.
fn values(node: &Node, scope: &Scope<'_>) -> Values {
    let problems = scope.problems;
    let before = problems.count();
    let listed = match &node.value {
        NodeValue::Array(nodes) => nodes.iter().map(|node| value(node, scope)).collect(),
        NodeValue::Scalar(Json::String(text)) => {
            let Resolved { value, base } = scope.resolve_text(node, text);
            match value {
                _ if problems.count() > before => Vec::new(),
                Json::Array(values) => {
                    values.into_iter().map(|value| plain(Resolved { value, base }, node, problems)).collect()
                }
                Json::String(text) => return range(&text, node, problems),
                _ => vec![no_values(node, problems)],
            }
        }
        _ => vec![no_values(node, problems)],
    };
    if problems.count() > before {
        return Values { count: 0, listed: Vec::new() };
    }
    if listed.is_empty() {
        problems.push(Problem::new("a matrix key needs at least one value", &node.span));
    }
    Values { count: listed.len() as u128, listed }
}

/// Reports duplicate rows, which would be two cells with one name.
fn distinct(rows: &[Vec<Resolved>], span: &Span<usize>, problems: &Sink) {
    let mut seen = HashSet::new();
    let shown =
        |row: &Vec<Resolved>| row.iter().map(|resolved| resolved.value.to_string()).collect::<Vec<_>>();
    if let Some(repeated) = rows.iter().map(shown).find(|row| !seen.insert(row.clone())) {
        problems.push(Problem::new(format!("the value {} occurs twice", repeated.join(", ")), span));
    }
}

fn range(text: &str, node: &Node, problems: &Sink) -> Values {
    let problem = match Range::parse(text) {
        Some(Ok(range)) => {
            let count = range.count();
            let values = if count > MOST_CELLS as u128 { Vec::new() } else { range.values() };
            let resolved = |value| Resolved { value, base: Base::File };
            return Values { count, listed: values.into_iter().map(resolved).collect() };
        }
        Some(Err(message)) => Problem::new(message, &node.span),
        None => Problem::new(format!("`{text}` is neither a list nor a range"), &node.span),
    };
    problems.push(problem.help(RANGES));
    Values { count: 0, listed: Vec::new() }
}

fn value(node: &Node, scope: &Scope<'_>) -> Resolved {
    let resolved = match &node.value {
        NodeValue::Scalar(Json::String(text)) => scope.resolve_text(node, text),
        _ => Resolved { value: scope.resolve(node, &SchemaView::new(&Json::Null)), base: Base::File },
    };
    plain(resolved, node, scope.problems)
}

fn plain(resolved: Resolved, node: &Node, problems: &Sink) -> Resolved {
    let is_scalar = |value: &Json| value.is_string() || value.is_number() || value.is_boolean();
    let is_list = resolved.value.as_array().is_some_and(|values| values.iter().all(is_scalar));
    if !is_scalar(&resolved.value) && !is_list {
        let message = "a value of a matrix key is text, a number, a truth value, or a list of these";
        problems.push(Problem::new(message, &node.span));
    }
    resolved
}

fn no_values(node: &Node, problems: &Sink) -> Resolved {
    let message = format!("a matrix key takes a list of values, not {}", node.describe());
    problems.push(Problem::new(message, &node.span).help(RANGES));
    Resolved { value: Json::Null, base: Base::File }
}

/// All combinations, the last dimension varying fastest.
pub(crate) fn product(dimensions: &[Dimension]) -> Vec<Combination> {
    let mut combinations = vec![Vec::new()];
    for Dimension { keys, rows, .. } in dimensions {
        let extended = |combination: &Combination| {
            let combination = combination.clone();
            rows.iter().map(move |row| {
                let pairs = keys.iter().zip(row).map(|(key, value)| (key.name.clone(), value.clone()));
                combination.iter().cloned().chain(pairs).collect()
            })
        };
        combinations = combinations.iter().flat_map(extended).collect();
    }
    combinations
}

/// Number of all combinations.
pub(crate) fn count(dimensions: &[Dimension]) -> u128 {
    // None at all is none, however many the others have.
    let counts = dimensions.iter().map(|dimension| dimension.count);
    if counts.clone().any(|count| count == 0) { 0 } else { counts.fold(1, u128::saturating_mul) }
}

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
) -> Vec<Combination> {
    let exclusions: Vec<Exclusion<'_>> =
        entries.iter().filter_map(|entry| exclusion(entry, keys, scope)).collect();
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
        scope.problems.push(Problem::new("every combination of the matrix is left out", &last.span));
    }
    let is_known = |exclusion: &Exclusion<'_>| {
        !exclusion.conditions.iter().any(|condition| keys[condition.key].is_parameter)
    };
    let unused_ones = exclusions.iter().zip(&used).filter(|(_, used)| had_some && !**used);
    for (exclusion, _) in unused_ones.filter(|(exclusion, _)| is_known(exclusion)) {
        scope.problems.push(unused(exclusion, keys, || left.iter().chain(&gone)));
    }
    left
}

fn exclusion<'a>(node: &'a Node, keys: &[Key], scope: &Scope<'_>) -> Option<Exclusion<'a>> {
    let entries = node.table().map_or(&[][..], |table| &table.entries);
    let mut conditions = Vec::new();
    for entry in entries {
        let Some(key) = keys.iter().position(|key| key.name == entry.key) else {
            let problem = Problem::new(format!("the matrix has no key `{}`", entry.key), &entry.key_span);
            let known = keys.iter().map(|key| key.name.as_str());
            return scope.problems.refuse(problem.suggest(&entry.key, "its keys", known));
        };
        let wanted = match scope.resolve(&entry.node, &SchemaView::new(&Json::Null)) {
            Json::Array(values) => values.into_iter().map(Wanted::new).collect(),
            value => vec![Wanted::new(value)],
        };
        conditions.push(Condition { key, node: &entry.node, wanted });
    }
    if conditions.is_empty() {
        return scope.problems.refuse(Problem::new("this would leave out every combination", &node.span));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(keys: &[&str], rows: &[&[i64]]) -> Dimension {
        let value = |&value: &i64| Resolved { value: value.into(), base: Base::File };
        Dimension {
            keys: keys
                .iter()
                .map(|&name| Key { name: name.into(), span: 0..0, is_parameter: false })
                .collect(),
            count: rows.len() as u128,
            rows: rows.iter().map(|row| row.iter().map(value).collect()).collect(),
        }
    }

    #[test]
    fn the_product_has_every_combination_once() {
        let dimensions = [dimension(&["a"], &[&[1], &[2]]), dimension(&["b", "c"], &[&[3, 4], &[5, 6]])];
        let shown = |combination: &Combination| {
            combination
                .iter()
                .map(|(key, value)| format!("{key}{}", value.value))
                .collect::<Vec<_>>()
                .concat()
        };
        let shown: Vec<String> = product(&dimensions).iter().map(shown).collect();
        assert_eq!(shown, ["a1b3c4", "a1b5c6", "a2b3c4", "a2b5c6"]);
        assert_eq!(count(&dimensions), 4);
        assert_eq!(product(&[]).len(), 1);
    }
}
