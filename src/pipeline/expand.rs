//! From stages to cells: which cells every stage has (what `foreach` gives, times `matrix`, times `zip`, without what `exclude`
//! leaves out), kinds looked up, places of copies checked.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use hopmap_model::{Direction, Port};
use hopmap_text::grouped;
use serde_json::Value as Json;

use super::cells::{Cell, Pipeline, Save};
use super::file::{Foreach, NeedBlock, StageBlock};
use super::label::{cell_name, labels};
use super::matrix::{
    Combination, Dimension, Key, MOST_CELLS, count, of_matrix, of_zip, product, without_excluded,
};
use super::project::{default_in, give_your_own, is_embedded};
use super::template::{Base, Reference, Resolved, SchemaView, Scope, Template};
use super::{Source, glob};
use crate::registry::{self, StageEntry};
use crate::selector::{Selector, show};
use crate::source::{Entry, Node, NodeValue, Problem, Sink, Table};

/// A cell whose kind and parameters are known, not yet connected.
pub(crate) struct LooseCell<'a> {
    pub(crate) id: String,
    /// The short name.
    pub(crate) name: String,
    pub(crate) block: &'a StageBlock,
    pub(crate) matrix: Combination,
    pub(crate) entry: &'static StageEntry,
    pub(crate) with: Table,
}

/// All cells of all stages.
pub(crate) fn expand<'a>(blocks: &'a [StageBlock], sweeps: &[Sweep], scope: Scope<'_>) -> Vec<LooseCell<'a>> {
    let mut all = Vec::new();
    for (block, sweep) in blocks.iter().zip(sweeps) {
        let cells = cells_of(block, sweep, scope);
        match cells.is_empty() {
            false => unused_keys((block, sweep), (blocks, sweeps), &cells, scope.problems),
            true => check_names(block, scope.problems),
        }
        all.extend(cells);
    }
    all
}

fn cells_of<'a>(block: &'a StageBlock, sweep: &Sweep, scope: Scope<'_>) -> Vec<LooseCell<'a>> {
    let mut cells = Vec::new();
    let labels = labels(&sweep.cells.iter().map(pairs).collect::<Vec<_>>());
    for (matrix, label) in sweep.cells.iter().zip(labels) {
        let scope = scope.within(matrix);
        let Some(entry) = stage_of(block, &scope) else {
            check_references(block, &scope);
            continue;
        };
        let with = with_matrix(block, entry, &sweep.keys);
        let (id, name) = (cell_id(&block.name, matrix), cell_name(&block.name, &label));
        cells.push(LooseCell { id, name, block, matrix: matrix.clone(), entry, with });
    }
    cells
}

/// The stage of a cell.
fn stage_of(block: &StageBlock, scope: &Scope<'_>) -> Option<&'static StageEntry> {
    let text = block.uses.text()?;
    let before = scope.problems.count();
    let kind = show(&scope.resolve_text(&block.uses, text).value);
    if scope.problems.count() > before {
        return None;
    }
    registry::stage(&kind).or_else(|| {
        let known = registry::STAGES.iter().map(|entry| entry.kind);
        let problem = Problem::new(format!("there is no stage kind `{kind}`"), &block.uses.span);
        scope.problems.refuse(match registry::left_out(&kind) {
            Some(help) => problem.help(help),
            None => problem.suggest(&kind, "kinds", known),
        })
    })
}

/// Reports names that a stage without cells has wrong: what is wrong with its matrix does not hide them.
fn check_names(block: &StageBlock, problems: &Sink) {
    let Some(entry) = block.uses.text().and_then(registry::stage) else { return };
    for save in &block.save.entries {
        let _ = output_of(entry, save, problems);
    }
    for need in block.needs.iter().filter(|need| entry.port(Direction::In, &need.port).is_none()) {
        problems.push(unknown_input(entry, need));
    }
}

/// The output that an entry of `save` names.
fn output_of(entry: &'static StageEntry, save: &Entry, problems: &Sink) -> Option<&'static Port> {
    entry.port(Direction::Out, &save.key).or_else(|| {
        let known = entry.ports(Direction::Out).map(|port| port.name);
        let problem = Problem::new(format!("{} has no output `{}`", entry.kind, save.key), &save.key_span);
        problems.refuse(problem.suggest(&save.key, "outputs", known))
    })
}

/// Says that a stage has no such input.
pub(super) fn unknown_input(entry: &StageEntry, need: &NeedBlock) -> Problem {
    let known = entry.ports(Direction::In).map(|port| port.name);
    let problem = Problem::new(format!("{} has no input `{}`", entry.kind, need.port), &need.port_span);
    problem.suggest(&need.port, "inputs", known)
}

/// Reports references to nothing even where the kind is unknown, so that they are found at once.
fn check_references(block: &StageBlock, scope: &Scope<'_>) {
    let scope = Scope { artifact: &|_, _| Some(PathBuf::new()), ..*scope };
    for entry in &block.with.entries {
        scope.resolve(&entry.node, &SchemaView::new(&Json::Null));
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

/// Whether a stage has a parameter of this name.
fn is_parameter(entry: &StageEntry, name: &str) -> bool {
    SchemaView::new(&entry.schema).has_property(name)
}

/// A matrix key has to make a difference: as a parameter of some cell, or through a reference.
fn unused_keys(
    (block, sweep): (&StageBlock, &Sweep),
    (blocks, sweeps): (&[StageBlock], &[Sweep]),
    cells: &[LooseCell<'_>],
    problems: &Sink,
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
        let stage = blocks.iter().position(|block| Some(&block.name) == stage.as_ref());
        let keys = stage.into_iter().flat_map(|stage| &sweeps[stage].keys);
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
        let help = problem.help.clone().unwrap_or_else(|| format!("use it as ${{matrix.{}}}", key.name));
        problems.push(problem.help(help));
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

fn pairs(matrix: &Combination) -> Vec<(&str, &Json)> {
    matrix.iter().map(|(key, resolved)| (key.as_str(), &resolved.value)).collect()
}

fn cell_id(stage: &str, matrix: &Combination) -> String {
    let pairs: Vec<(&str, String)> =
        pairs(matrix).into_iter().map(|(key, value)| (key, show(value))).collect();
    cell_name(stage, &pairs)
}

/// The matrix of a stage, multiplied out.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) keys: Vec<Key>,
    /// Number of cells.
    pub(crate) count: u128,
    /// The cells; none if something is wrong with the stage, or if the pipeline has too many.
    pub(crate) cells: Vec<Combination>,
}

/// The sweeps of all stages, in their order. What is wrong is reported, and such a stage has no cells.
pub(crate) fn sweeps(blocks: &[StageBlock], scope: Scope<'_>, source: &Source) -> Vec<Sweep> {
    let made = blocks.iter().map(|_| None).collect();
    let mut sweeper = Sweeper { blocks, scope, source, made, total: 0 };
    (0..blocks.len()).for_each(|stage| sweeper.make_with_origins(stage));
    let Sweeper { made, total, .. } = sweeper;
    let mut sweeps: Vec<Sweep> = made.into_iter().map(Option::unwrap_or_default).collect();
    if total > MOST_CELLS as u128 {
        let largest = (0..blocks.len()).max_by_key(|&stage| sweeps[stage].count).unwrap_or(0);
        // A stage that is too large by itself has been reported already.
        if let Some(block) = blocks.get(largest).filter(|_| sweeps[largest].count <= MOST_CELLS as u128) {
            let message = format!("the pipeline has {} cells, more than {}", grouped(total), most());
            let problem = Problem::new(message, &block.name_span);
            let label = format!("the most are here: {}", grouped(sweeps[largest].count));
            scope.problems.push(problem.label(label));
        }
        sweeps.iter_mut().for_each(|sweep| sweep.cells.clear());
    }
    sweeps
}

struct Sweeper<'a> {
    blocks: &'a [StageBlock],
    scope: Scope<'a>,
    source: &'a Source,
    made: Vec<Option<Sweep>>,
    /// Number of cells so far.
    total: u128,
}

impl Sweeper<'_> {
    /// Makes the sweep of a stage, after those that its `foreach` follows.
    fn make_with_origins(&mut self, stage: usize) {
        let mut chain = vec![stage];
        while let Some(origin) = chain.last().and_then(|&last| self.origin(last)) {
            if let Some(begin) = chain.iter().position(|&other| other == origin) {
                self.report_cycle(&chain[begin..]);
                chain.into_iter().for_each(|stage| self.made[stage] = Some(Sweep::default()));
                return;
            }
            if self.made[origin].is_some() {
                break;
            }
            chain.push(origin);
        }
        while let Some(stage) = chain.pop() {
            if self.made[stage].is_none() {
                let sweep = self.make(&self.blocks[stage]);
                self.total = self.total.saturating_add(sweep.count);
                self.made[stage] = Some(sweep);
            }
        }
    }

    /// The stage whose cells a stage follows.
    fn origin(&self, stage: usize) -> Option<usize> {
        match &self.blocks[stage].foreach {
            Some(Foreach::Stage { name, .. }) => self.blocks.iter().position(|block| block.name == *name),
            _ => None,
        }
    }

    fn report_cycle(&self, cycle: &[usize]) {
        let mut names: Vec<&str> = cycle.iter().map(|&stage| self.blocks[stage].name.as_str()).collect();
        names.push(names[0]);
        let block = &self.blocks[cycle[0]];
        let span = block.foreach.as_ref().map_or(&block.name_span, Foreach::span);
        let problem = Problem::new("`foreach` forms a cycle", span).label("part of the cycle");
        self.scope.problems.push(problem.help(format!("{} (read: follows)", names.join(" → "))));
    }

    fn make(&self, block: &StageBlock) -> Sweep {
        let problems = self.scope.problems;
        let before = problems.count();
        let mut dimensions = Vec::new();
        if let Some(foreach) = &block.foreach {
            let Some(dimension) = self.followed(foreach) else { return Sweep::default() };
            dimensions.push(dimension);
        }
        dimensions.extend(of_matrix(&block.matrix, &self.scope));
        dimensions.extend(of_zip(&block.zip, &self.scope));
        repeated_keys(&dimensions, problems);
        if problems.count() > before {
            return Sweep::default();
        }
        let count = count(&dimensions);
        let keys = dimensions.iter().flat_map(|dimension| dimension.keys.iter().cloned()).collect();
        if count > MOST_CELLS as u128 {
            problems.push(too_many(block, count, &dimensions));
            return Sweep { keys, count, cells: Vec::new() };
        }
        let is_full = self.total.saturating_add(count) > MOST_CELLS as u128;
        if is_full && block.exclude.is_empty() {
            // There are too many already; the number is all that anybody wants to know.
            return Sweep { keys, count, cells: Vec::new() };
        }
        let cells = without_excluded(product(&dimensions), &keys, &block.exclude, &self.scope);
        Sweep { keys, count: cells.len() as u128, cells }
    }

    /// What `foreach` gives; `None` if there is nothing.
    fn followed(&self, foreach: &Foreach) -> Option<Dimension> {
        match foreach {
            Foreach::Files { pattern, key } => self.files(pattern, key),
            Foreach::Stage { name, span } => self.cells_of(name, span),
            Foreach::Broken { .. } => None,
        }
    }

    fn files(&self, pattern: &Node, key: &Key) -> Option<Dimension> {
        let problems = self.scope.problems;
        let before = problems.count();
        let Resolved { value, base } = self.scope.resolve_text(pattern, pattern.text()?);
        if problems.count() > before {
            return None;
        }
        let text = show(&value);
        let folder = self.scope.folders.resolve(Path::new(""), base);
        let problem = match glob::find(&folder, &text) {
            Ok(files) if !files.is_empty() => {
                let row = |file: String| vec![Resolved { value: file.into(), base }];
                let rows: Vec<_> = files.into_iter().map(row).collect();
                return Some(Dimension { keys: vec![key.clone()], count: rows.len() as u128, rows });
            }
            Ok(_) => {
                let whose = match base {
                    Base::File => "the folder of the pipeline file",
                    Base::WorkingDirectory => "the working directory",
                    Base::Store => "the store",
                };
                let default = default_in(pattern, self.scope.parameters).filter(|_| is_embedded(self.source));
                let help = match default {
                    Some(name) => give_your_own(self.source.name(), std::iter::once(name), "PATTERN"),
                    None => format!("it is relative to {whose}; hidden files do not count"),
                };
                Problem::new(format!("`{text}` matches nothing"), &pattern.span).help(help)
            }
            Err(message) => Problem::new(message, &pattern.span),
        };
        problems.refuse(problem)
    }

    fn cells_of(&self, name: &str, span: &Range<usize>) -> Option<Dimension> {
        let Some(origin) = self.blocks.iter().position(|block| block.name == name) else {
            let known = self.blocks.iter().map(|block| block.name.as_str());
            let problem = Problem::new(format!("there is no stage `{name}`"), span);
            return self.scope.problems.refuse(match name.contains(['*', '/']) {
                true => problem.help(format!("files are written as foreach = {{ glob = \"{name}\" }}")),
                false => problem.suggest(name, "stages", known),
            });
        };
        // One without cells is broken, which has been reported.
        let sweep = self.made[origin].as_ref().filter(|sweep| sweep.count > 0)?;
        let keys = sweep.keys.iter().map(|key| Key { span: span.clone(), ..key.clone() }).collect();
        let row = |cell: &Combination| cell.iter().map(|(_, value)| value.clone()).collect();
        Some(Dimension { keys, count: sweep.count, rows: sweep.cells.iter().map(row).collect() })
    }
}

fn repeated_keys(dimensions: &[Dimension], problems: &Sink) {
    let mut seen = HashSet::new();
    for key in dimensions.iter().flat_map(|dimension| &dimension.keys) {
        if !seen.insert(&key.name) {
            let problem = Problem::new(format!("the matrix has the key `{}` twice", key.name), &key.span);
            let help = "`foreach`, `matrix` and `zip` are multiplied: each has keys of its own";
            problems.push(problem.help(help));
        }
    }
}

fn too_many(block: &StageBlock, count: u128, dimensions: &[Dimension]) -> Problem {
    let factor = |dimension: &Dimension| {
        let names: Vec<&str> = dimension.keys.iter().map(|key| key.name.as_str()).collect();
        format!("{} {}", grouped(dimension.count), names.join("+"))
    };
    let factors: Vec<String> = dimensions.iter().map(factor).collect();
    // Nobody needs the exact number of atoms in the universe.
    let number = if count == u128::MAX { "far more".to_owned() } else { grouped(count) };
    let message = format!("the matrix of `{}` has {number} cells, more than {}", block.name, most());
    Problem::new(message, &block.name_span).help(factors.join(" × "))
}

fn most() -> String {
    grouped(MOST_CELLS)
}

/// A copy as the file has it.
struct Copy<'a> {
    whose: String,
    span: &'a Range<usize>,
    cell: Option<&'a Cell>,
}

/// The copies of a cell's outputs.
pub(super) fn saves(cell: &LooseCell<'_>, scope: &Scope<'_>) -> Vec<Save> {
    let problems = scope.problems;
    let save = |entry: &Entry| {
        let port = output_of(cell.entry, entry, problems)?;
        let span = &entry.node.span;
        let Some(text) = entry.node.text() else {
            return problems.refuse(Problem::new("a value of `save` should be a path", span));
        };
        let Resolved { value, base } = scope.resolve_text(&entry.node, text);
        let path = PathBuf::from(show(&value));
        if path.file_name().is_none() {
            return problems.refuse(Problem::new("this path names no file", span));
        }
        let path = scope.folders.resolve(&path, base);
        Some(Save { output: port.name, kind: port.kind, path, span: span.clone() })
    };
    cell.block.save.entries.iter().filter_map(save).collect()
}

/// Finds exports that collide with each other or with the pipeline's own files; reports the first.
pub(super) fn check(pipeline: &Pipeline, problems: &Sink) {
    let mut copies: BTreeMap<PathBuf, Copy<'_>> = BTreeMap::new();
    let of_cells = pipeline.cells.iter().flat_map(|cell| cell.saves.iter().map(move |save| (cell, save)));
    for (cell, save) in of_cells {
        let copy = Copy { whose: format!("`{}`", cell.id), span: &save.span, cell: Some(cell) };
        if let Some(problem) = repeated(copies.insert(plain(&save.path), copy), cell, &save.span) {
            problems.push(problem);
            return;
        }
    }
    for table in &pipeline.tables {
        let Some(path) = &table.save else { continue };
        let copy = Copy { whose: format!("table `{}`", table.name), span: &table.save_span, cell: None };
        // Tables that save to one place were found when they were read.
        if let Some(Copy { whose, cell: Some(_), .. }) = copies.insert(plain(path), copy) {
            let message = format!("{whose} and table `{}` save to the same place", table.name);
            problems.push(Problem::new(message, &table.save_span).help("give each its own path"));
            return;
        }
    }
    for (path, copy) in &copies {
        let within = path.ancestors().skip(1).find_map(|folder| copies.get(folder));
        if let Some(outer) = within {
            let message = format!("the path of {} is inside the folder of {}", copy.whose, outer.whose);
            problems.push(Problem::new(message, copy.span).help("give each a folder of its own"));
            return;
        }
    }
    for (what, file) in own_files(pipeline) {
        if let Some(copy) = copies.get(&plain(&file)) {
            let problem = Problem::new(format!("{} would replace {what}", copy.whose), copy.span);
            problems.push(problem.help("give the copy a different path"));
        }
    }
}

fn repeated(other: Option<Copy<'_>>, cell: &Cell, span: &Range<usize>) -> Option<Problem> {
    let message = format!("{} and `{}` save to the same place", other?.whose, cell.id);
    let problem = Problem::new(message, span);
    Some(match cell.matrix.first() {
        Some((key, _)) => {
            problem.help(format!("give every cell its own path, for example with ${{matrix.{key}}}"))
        }
        None => problem.help("give each its own path"),
    })
}

/// Files of a pipeline other than results.
fn own_files(pipeline: &Pipeline) -> Vec<(&'static str, PathBuf)> {
    let lock = pipeline.folders.file.join(format!("{}.lock", pipeline.source.stem()));
    let mut files = vec![("its lock file", lock), ("its accepted values", pipeline.accepted_file())];
    files.extend(pipeline.file().map(|file| ("its own pipeline file", file)));
    files
}

/// A path without `.` and `..`, without looking at the file system.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            component => plain.push(component),
        }
    }
    plain
}
