//! From stages to cells: matrices multiplied out, kinds looked up.

use serde_json::Value as Json;

use super::Problem;
use super::file::StageBlock;
use super::matrix::{Axis, axis_values, product, show};
use super::node::{Entry, Node, NodeValue, Table};
use super::selector::Selector;
use super::template::{Folders, Reference, Resolved, SchemaView, Scope, Template};
use crate::registry::{self, StageEntry};

/// A cell whose kind and parameters are known, not yet connected.
pub(crate) struct LooseCell<'a> {
    pub(crate) id: String,
    pub(crate) block: &'a StageBlock,
    pub(crate) matrix: Vec<(String, Json)>,
    pub(crate) entry: &'static StageEntry,
    pub(crate) with: Table,
}

/// All cells of a stage.
pub(crate) fn expand<'a>(
    block: &'a StageBlock,
    blocks: &[StageBlock],
    parameters: &[(String, Resolved)],
    folders: &Folders,
    problems: &mut Vec<Problem>,
) -> Vec<LooseCell<'a>> {
    let scope = Scope { parameters, matrix: &[], artifact: &|_, _| None, folders };
    let nothing = Json::Null;
    let mut read_axis = |entry: &Entry| {
        let resolved = scope.resolve(&entry.node, &SchemaView::new(&nothing), problems);
        let values = axis_values(&entry.node, resolved, problems);
        Axis { key: entry.key.clone(), key_span: entry.key_span.clone(), values }
    };
    let axes: Vec<Axis> = block.matrix.entries.iter().map(&mut read_axis).collect();
    let Some(combinations) = product(&axes) else {
        problems.push(Problem::new(
            format!("the matrix of `{}` has more than 100,000 cells", block.name),
            &block.name_span,
        ));
        return Vec::new();
    };
    let mut cells = Vec::new();
    for matrix in combinations {
        let scope = Scope { parameters, matrix: &matrix, artifact: &|_, _| None, folders };
        let Some(entry) = kind_of(block, &scope, problems) else {
            check_references(block, &scope, problems);
            continue;
        };
        let with = with_matrix(block, entry, &axes, &matrix);
        cells.push(LooseCell { id: cell_id(&block.name, &matrix), block, matrix, entry, with });
    }
    if !cells.is_empty() {
        unused_axes(block, blocks, &axes, &cells, problems);
    }
    cells
}

fn kind_of(
    block: &StageBlock,
    scope: &Scope<'_>,
    problems: &mut Vec<Problem>,
) -> Option<&'static StageEntry> {
    let text = block.uses.text()?;
    let before = problems.len();
    let kind = show(&scope.resolve_text(&block.uses, text, problems).value);
    if problems.len() > before {
        return None;
    }
    let entry = registry::stage(&kind);
    if entry.is_none() {
        let known = registry::STAGES.iter().map(|entry| entry.kind);
        problems.push(
            Problem::new(format!("there is no stage kind `{kind}`"), &block.uses.span)
                .suggest(&kind, "kinds", known),
        );
    }
    entry
}

/// Reports references to nothing even where the kind is unknown, so that they are found at once.
fn check_references(block: &StageBlock, scope: &Scope<'_>, problems: &mut Vec<Problem>) {
    let any = |_: &str, _: Option<&str>| Some(std::path::PathBuf::new());
    let scope = Scope { artifact: &any, ..*scope };
    for entry in &block.with.entries {
        scope.resolve(&entry.node, &SchemaView::new(&Json::Null), problems);
    }
}

/// The values of `with`, those that the stage shares with the matrix replaced.
fn with_matrix(block: &StageBlock, entry: &StageEntry, axes: &[Axis], matrix: &[(String, Json)]) -> Table {
    let parameters = SchemaView::new(&entry.schema).property_names();
    let mut with = block.with.clone();
    for (axis, (key, value)) in axes.iter().zip(matrix) {
        if !parameters.contains(&key.as_str()) {
            continue;
        }
        let node = Node { span: axis.key_span.clone(), value: NodeValue::Scalar(value.clone()) };
        with.entries.retain(|entry| entry.key != *key);
        with.entries.push(Entry { key: key.clone(), key_span: axis.key_span.clone(), node });
    }
    with
}

/// A matrix key has to make a difference: as a parameter of some cell, or through a reference.
fn unused_axes(
    block: &StageBlock,
    blocks: &[StageBlock],
    axes: &[Axis],
    cells: &[LooseCell<'_>],
    problems: &mut Vec<Problem>,
) {
    let mut referenced = Vec::new();
    matrix_references(&block.uses, &mut referenced);
    for entry in block.with.entries.iter().chain(&block.save.entries) {
        matrix_references(&entry.node, &mut referenced);
    }
    for (text, _) in block.needs.iter().flat_map(|need| &need.selectors) {
        text_references(text, &mut referenced);
        // A key that a stage we need has too pairs our cells with its cells.
        let needed =
            Selector::parse(text).ok().and_then(|it| blocks.iter().find(|block| block.name == it.stage));
        referenced.extend(
            needed.into_iter().flat_map(|block| &block.matrix.entries).map(|entry| entry.key.clone()),
        );
    }
    for axis in axes {
        let is_parameter = |cell: &LooseCell<'_>| {
            SchemaView::new(&cell.entry.schema).property_names().contains(&axis.key.as_str())
        };
        if !referenced.contains(&axis.key) && !cells.iter().any(is_parameter) {
            let known = SchemaView::new(&cells[0].entry.schema).property_names();
            let problem = Problem::new(format!("matrix key `{}` changes nothing", axis.key), &axis.key_span);
            let problem = problem.suggest(&axis.key, "parameters", known);
            problems.push(match problem.help.is_some() {
                true => problem,
                false => problem.help(format!("use it as ${{matrix.{}}}", axis.key)),
            });
        }
    }
}

fn matrix_references(node: &Node, found: &mut Vec<String>) {
    match &node.value {
        NodeValue::Scalar(Json::String(text)) => text_references(text, found),
        NodeValue::Scalar(_) => {}
        NodeValue::Array(nodes) => nodes.iter().for_each(|node| matrix_references(node, found)),
        NodeValue::Table(table) => {
            table.entries.iter().for_each(|entry| matrix_references(&entry.node, found));
        }
    }
}

fn text_references(text: &str, found: &mut Vec<String>) {
    let Ok(template) = Template::parse(text) else { return };
    found.extend(template.references().filter_map(|reference| match reference {
        Reference::Matrix(name) => Some(name.clone()),
        _ => None,
    }));
}

fn cell_id(stage: &str, matrix: &[(String, Json)]) -> String {
    if matrix.is_empty() {
        return stage.to_owned();
    }
    let pairs: Vec<String> = matrix.iter().map(|(key, value)| format!("{key}={}", show(value))).collect();
    format!("{stage}[{}]", pairs.join(","))
}
