//! Matrices: every combination of some values is a cell of its own.

use serde_json::Value as Json;

use super::Problem;
use super::node::{Node, NodeValue};

/// Cells beyond this number are more likely a slip than a wish.
const MOST_CELLS: usize = 100_000;

/// A key of a matrix and its values.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) key: String,
    pub(crate) key_span: std::ops::Range<usize>,
    pub(crate) values: Vec<Json>,
}

/// The values of an axis: a list, or an inclusive range such as `"1..10"`. References are filled in already.
pub(crate) fn axis_values(node: &Node, resolved: Json, problems: &mut Vec<Problem>) -> Vec<Json> {
    let values = match resolved {
        Json::Array(values) => values,
        Json::String(text) => match range(&text) {
            Some(values) if values.len() <= MOST_CELLS => values,
            Some(_) => {
                problems
                    .push(Problem::new(format!("`{text}` has more than {MOST_CELLS} values"), &node.span));
                Vec::new()
            }
            None => {
                let problem = Problem::new(format!("`{text}` is neither a list nor a range"), &node.span);
                problems.push(
                    problem.help("write a list, or an inclusive range of whole numbers such as \"1..10\""),
                );
                return Vec::new();
            }
        },
        _ => {
            let problem = Problem::new(
                format!("a matrix key takes a list of values, not {}", node.describe()),
                &node.span,
            );
            problems
                .push(problem.help("write a list, or an inclusive range of whole numbers such as \"1..10\""));
            return Vec::new();
        }
    };
    if values.is_empty() {
        problems.push(Problem::new("a matrix key needs at least one value", &node.span));
    }
    if let Some(position) =
        values.iter().position(|value| value.is_object() || value.is_array() || value.is_null())
    {
        let span = match &node.value {
            NodeValue::Array(nodes) => nodes.get(position).map_or(&node.span, |node| &node.span),
            _ => &node.span,
        };
        problems.push(Problem::new("a value of a matrix key is text, a number or a truth value", span));
        return Vec::new();
    }
    if let Some(repeated) =
        values.iter().enumerate().find_map(|(i, value)| values[..i].contains(value).then_some(value))
    {
        problems.push(Problem::new(format!("the value {repeated} stands twice"), &node.span));
    }
    values
}

fn range(text: &str) -> Option<Vec<Json>> {
    let (first, last) = text.split_once("..")?;
    let (first, last): (i64, i64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let last = last.min(first.saturating_add(MOST_CELLS.cast_signed() as i64));
    Some((first..=last).map(Json::from).collect())
}

/// All combinations, the last key varying fastest. `None` if there are too many.
pub(crate) fn product(axes: &[Axis]) -> Option<Vec<Vec<(String, Json)>>> {
    let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.values.len()))?;
    if count > MOST_CELLS {
        return None;
    }
    let mut cells = vec![Vec::new()];
    for axis in axes {
        cells = cells
            .iter()
            .flat_map(|cell| {
                axis.values.iter().map(move |value| {
                    let mut cell: Vec<(String, Json)> = cell.clone();
                    cell.push((axis.key.clone(), value.clone()));
                    cell
                })
            })
            .collect();
    }
    Some(cells)
}

/// A value of a matrix key as people write it.
pub(crate) fn show(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[i64]) -> Axis {
        Axis { key: key.into(), key_span: 0..0, values: values.iter().map(|&value| value.into()).collect() }
    }

    #[test]
    fn the_product_has_every_combination_once() {
        let cells = product(&[axis("a", &[1, 2]), axis("b", &[3, 4, 5])]).unwrap();
        let shown: Vec<String> = cells.iter().map(|cell| format!("{}{}", cell[0].1, cell[1].1)).collect();
        assert_eq!(shown, ["13", "14", "15", "23", "24", "25"]);
        assert!(product(&[axis("a", &[0; 1000]), axis("b", &[0; 1000])]).is_none());
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(range("1..3").unwrap(), [1, 2, 3].map(Json::from));
        assert_eq!(range("3..1").unwrap().len(), 0);
        assert!(range("1-3").is_none());
    }
}
