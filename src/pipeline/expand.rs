//! From stages to cells: matrices multiplied out, kinds looked up.

use serde_json::Value as Json;

use super::Problem;
use super::file::{Foreach, StageBlock};
use super::matrix::{Combination, Key, show};
use super::node::{Entry, Node, NodeValue, Table};
use super::selector::Selector;
use super::sweep::Sweep;
use super::template::{Folders, Reference, Resolved, SchemaView, Scope, Template};
use crate::registry::{self, StageEntry};
use crate::renames;

/// A cell whose kind and parameters are known, not yet connected.
pub(crate) struct LooseCell<'a> {
    pub(crate) id: String,
    pub(crate) block: &'a StageBlock,
    pub(crate) matrix: Combination,
    pub(crate) entry: &'static StageEntry,
    pub(crate) with: Table,
    /// Deprecated names that it is written with.
    pub(crate) warnings: Vec<Problem>,
}

/// What a value of one stage may refer to.
pub(crate) struct Surroundings<'a> {
    pub(crate) blocks: &'a [StageBlock],
    pub(crate) sweeps: &'a [Sweep],
    pub(crate) parameters: &'a [(String, Resolved)],
    pub(crate) folders: &'a Folders,
}

/// All cells of a stage.
pub(crate) fn expand<'a>(
    block: &'a StageBlock,
    sweep: &Sweep,
    around: &Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<LooseCell<'a>> {
    let Surroundings { parameters, folders, .. } = *around;
    let mut cells = Vec::new();
    for matrix in &sweep.cells {
        let scope = Scope { parameters, matrix, artifact: &|_, _| None, folders };
        let mut warnings = Vec::new();
        let Some((entry, renamed)) = kind_of(block, &scope, &mut warnings, problems) else {
            check_references(block, &scope, problems);
            continue;
        };
        let mut with = with_matrix(block, entry, &sweep.keys);
        for (key, value) in renamed.map_or(&[][..], |kind| kind.with) {
            let span = block.uses.span.clone();
            let node = Node { span: span.clone(), value: NodeValue::Scalar((*value).into()) };
            with.entries.push(Entry { key: (*key).to_owned(), key_span: span, node });
        }
        warnings.extend(renames::renew(entry.kind, &mut with));
        let id = cell_id(&block.name, matrix);
        cells.push(LooseCell { id, block, matrix: matrix.clone(), entry, with, warnings });
    }
    if !cells.is_empty() {
        unused_keys(block, sweep, around, &cells, problems);
    }
    cells
}

fn kind_of(
    block: &StageBlock,
    scope: &Scope<'_>,
    warnings: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> Option<(&'static StageEntry, Option<&'static renames::Kind>)> {
    let text = block.uses.text()?;
    let before = problems.len();
    let kind = show(&scope.resolve_text(&block.uses, text, problems).value);
    if problems.len() > before {
        return None;
    }
    let renamed = renames::kind(&kind);
    if let Some(renamed) = renamed {
        let warning = Problem::new(format!("the stage kind `{kind}` is deprecated"), &block.uses.span);
        let with = renamed.with.iter().map(|(key, value)| format!(" with {key} = \"{value}\""));
        let with = with.collect::<Vec<_>>().concat();
        warnings.push(warning.help(format!("it is `{}`{with} now", renamed.new)));
    }
    let entry = registry::stage(renamed.map_or(&kind, |renamed| renamed.new));
    if entry.is_none() {
        let known = registry::STAGES.iter().map(|entry| entry.kind);
        problems.push(
            Problem::new(format!("there is no stage kind `{kind}`"), &block.uses.span)
                .suggest(&kind, "kinds", known),
        );
    }
    Some((entry?, renamed))
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
fn with_matrix(block: &StageBlock, entry: &StageEntry, keys: &[Key]) -> Table {
    let mut with = block.with.clone();
    for Key { name, span, .. } in keys.iter().filter(|key| is_parameter(entry, &key.name)) {
        // A reference, so that a path keeps the folder that it is relative to.
        let value = NodeValue::Scalar(format!("${{matrix.{name}}}").into());
        with.entries.retain(|entry| entry.key != *name);
        let node = Node { span: span.clone(), value };
        with.entries.push(Entry { key: name.clone(), key_span: span.clone(), node });
    }
    with
}

/// Whether a stage has a parameter of this name, or had one.
fn is_parameter(entry: &StageEntry, name: &str) -> bool {
    SchemaView::new(&entry.schema).has_property(name) || renames::parameter(entry.kind, name).is_some()
}

/// A matrix key has to make a difference: as a parameter of some cell, or through a reference.
fn unused_keys(
    block: &StageBlock,
    sweep: &Sweep,
    around: &Surroundings<'_>,
    cells: &[LooseCell<'_>],
    problems: &mut Vec<Problem>,
) {
    let mut referenced = Vec::new();
    matrix_references(&block.uses, &mut referenced);
    for entry in block.with.entries.iter().chain(&block.save.entries) {
        matrix_references(&entry.node, &mut referenced);
    }
    let needed = block.needs.iter().flat_map(|need| &need.selectors).map(|(text, _)| text);
    for text in needed {
        text_references(text, &mut referenced);
        // A key that a stage we need has too pairs our cells with its cells.
        let stage = Selector::parse(text).ok().map(|selector| selector.stage);
        let stage = around.blocks.iter().position(|block| Some(&block.name) == stage.as_ref());
        let keys = stage.into_iter().flat_map(|stage| &around.sweeps[stage].keys);
        referenced.extend(keys.map(|key| key.name.clone()));
    }
    let is_used = |key: &Key| {
        // A switch: its value chooses what is left out.
        let mut excluded = block.exclude.iter().filter_map(Node::table).flat_map(|table| &table.entries);
        referenced.contains(&key.name)
            || cells.iter().any(|cell| is_parameter(cell.entry, &key.name))
            || excluded.any(|entry| entry.key == key.name)
    };
    let (followed, own): (Vec<&Key>, Vec<&Key>) = match &block.foreach {
        Some(Foreach::Stage { span, .. }) => sweep.keys.iter().partition(|key| key.span == *span),
        _ => (Vec::new(), sweep.keys.iter().collect()),
    };
    // Keys that come from a stage come together: one of them is enough.
    if let (Some(first), true) = (followed.first(), followed.iter().all(|key| !is_used(key))) {
        let names: Vec<String> = followed.iter().map(|key| format!("${{matrix.{}}}", key.name)).collect();
        let problem = Problem::new("`foreach` changes nothing: every cell would be the same", &first.span);
        problems.push(problem.help(format!("need the stage that it names, or use {}", names.join(", "))));
    }
    for key in own.into_iter().filter(|key| !is_used(key)) {
        let known = SchemaView::new(&cells[0].entry.schema).property_names();
        let problem = Problem::new(format!("matrix key `{}` changes nothing", key.name), &key.span);
        let problem = problem.suggest(&key.name, "parameters", known);
        problems.push(match problem.help.is_some() {
            true => problem,
            false => problem.help(format!("use it as ${{matrix.{}}}", key.name)),
        });
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

fn cell_id(stage: &str, matrix: &Combination) -> String {
    if matrix.is_empty() {
        return stage.to_owned();
    }
    let pairs: Vec<String> =
        matrix.iter().map(|(key, resolved)| format!("{key}={}", show(&resolved.value))).collect();
    format!("{stage}[{}]", pairs.join(","))
}
