//! From loose cells to a graph: selectors resolved, ports checked, cycles found.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use hopmap_model::{Arity, Direction, Port};
use serde_json::Value as Json;

use super::cells::{ArtifactReference, Need, Origin};
use super::expand::{LooseCell, unknown_input};
use super::file::{NeedBlock, StageBlock};
use super::template::{Reference, Scope, Template};
use crate::registry::StageEntry;
use crate::selector::{Choice, SELECTORS, Selector, show};
use crate::source::{Node, NodeValue, Problem, Sink};

/// Cells of a stage by the values of some of their keys: every cell is looked for in no time, however many there are.
type Lookup = HashMap<Vec<String>, Vec<usize>>;

/// A stage, and the keys by which its cells are looked up.
type Compared = (String, Vec<(String, Written)>);

/// How a [`Lookup`] compares a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Written {
    /// As people write it: the number 1 and the text `1` are alike.
    Shown,
    /// So that only equal values are alike.
    Exactly,
}

/// All cells by the name of their stage.
pub(crate) struct Index<'a> {
    lookups: RefCell<HashMap<Compared, Lookup>>,
    cells: &'a [LooseCell<'a>],
    blocks: &'a [StageBlock],
    by_stage: HashMap<&'a str, Vec<usize>>,
    scope: Scope<'a>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(cells: &'a [LooseCell<'a>], blocks: &'a [StageBlock], scope: Scope<'a>) -> Self {
        let mut by_stage: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, cell) in cells.iter().enumerate() {
            by_stage.entry(&cell.block.name).or_default().push(index);
        }
        Self { lookups: RefCell::default(), cells, blocks, by_stage, scope }
    }

    /// Everything connected to the inputs of a cell.
    pub(crate) fn needs(&self, cell: &LooseCell<'_>) -> Vec<Need> {
        let mut needs: Vec<Need> =
            cell.block.needs.iter().filter_map(|block| self.need(cell, block)).collect();
        // A misspelt name is the better message than the gap it leaves.
        let is_known = |need: &NeedBlock| cell.entry.port(Direction::In, &need.port).is_some();
        let spelt_right = cell.block.needs.iter().all(is_known);
        for port in cell.entry.ports(Direction::In).filter(|_| spelt_right) {
            let connected = cell.block.needs.iter().any(|need| need.port == port.name);
            if port.arity == Arity::One && !connected {
                self.scope.problems.push(self.unconnected(cell, port));
            }
        }
        needs.sort_by_key(|need| cell.entry.ports.iter().position(|port| port.name == need.port.name));
        needs
    }

    /// The artifacts whose folders the parameters of a cell name.
    pub(crate) fn artifacts(&self, cell: &LooseCell<'_>) -> Vec<ArtifactReference> {
        cell.with.entries.iter().flat_map(|entry| self.artifacts_in(cell, &entry.node)).collect()
    }

    fn artifacts_in(&self, cell: &LooseCell<'_>, node: &Node) -> Vec<ArtifactReference> {
        let named = |reference: &Reference| {
            let Reference::Artifact { stage, port } = reference else { return None };
            let selector = Selector::paired(stage, port.as_deref());
            let cells = self.candidates(cell, &selector, &node.span)?;
            let index = self.single(&cells, &selector, &node.span, Arity::One)?;
            let output = output_named(self.cells[index].entry, &selector, &node.span, self.scope.problems)?;
            let (stage, port) = (stage.clone(), port.clone());
            Some(ArtifactReference { stage, port, cell: index, output: output.name })
        };
        match &node.value {
            NodeValue::Scalar(Json::String(text)) => {
                // A malformed template is reported where values are resolved.
                let template = Template::parse(text);
                template.iter().flat_map(Template::references).filter_map(named).collect()
            }
            NodeValue::Scalar(_) => Vec::new(),
            NodeValue::Array(nodes) => nodes.iter().flat_map(|node| self.artifacts_in(cell, node)).collect(),
            NodeValue::Table(table) => {
                table.entries.iter().flat_map(|entry| self.artifacts_in(cell, &entry.node)).collect()
            }
        }
    }

    fn need(&self, cell: &LooseCell<'_>, block: &NeedBlock) -> Option<Need> {
        let problems = self.scope.problems;
        let Some(port) = cell.entry.port(Direction::In, &block.port) else {
            return problems.refuse(unknown_input(cell.entry, block));
        };
        let origins = block.selectors.iter().filter_map(|(text, span)| self.origins(cell, port, text, span));
        let origins: Vec<Origin> = origins.flatten().collect();
        if port.arity != Arity::Many && origins.len() > 1 {
            let (name, kind, count) = (port.name, cell.entry.kind, origins.len());
            let message = format!("input `{name}` of {kind} takes one artifact, not {count}");
            let problem = Problem::new(message, &block.port_span);
            return problems.refuse(problem.help("choose one with [min METRIC] or [key=value]"));
        }
        Some(Need { port, origins })
    }

    fn origins(
        &self,
        cell: &LooseCell<'_>,
        port: &'static Port,
        text: &str,
        span: &Range<usize>,
    ) -> Option<Vec<Origin>> {
        let problems = self.scope.problems;
        let node = Node { span: span.clone(), value: NodeValue::Scalar(text.into()) };
        let resolved = show(&self.scope.within(&cell.matrix).resolve_text(&node, text).value);
        let selector = match Selector::parse(&resolved) {
            Ok(selector) => selector,
            Err(message) => return problems.refuse(Problem::new(message, span).help(SELECTORS)),
        };
        let cells = self.candidates(cell, &selector, span)?;
        let output = |index: usize| output_for(self.cells[index].entry, &selector, port, span, problems);
        match &selector.choice {
            Choice::Best { metric, extreme } => {
                let output = output(*cells.first()?)?;
                let (metric, extreme, place) = (metric.clone(), *extreme, span.clone());
                Some(vec![Origin::Best { cells, output, metric, extreme, place }])
            }
            Choice::One if selector.wanted.is_empty() || port.arity != Arity::Many => {
                let cell = self.single(&cells, &selector, span, port.arity)?;
                Some(vec![Origin::Cell { cell, output: output(cell)? }])
            }
            Choice::One | Choice::All => {
                cells.into_iter().map(|cell| Some(Origin::Cell { cell, output: output(cell)? })).collect()
            }
        }
    }

    /// The cells a selector could mean: those whose matrix keys equal ours, and that it asks for.
    fn candidates(
        &self,
        cell: &LooseCell<'_>,
        selector: &Selector,
        span: &Range<usize>,
    ) -> Option<Vec<usize>> {
        let problems = self.scope.problems;
        let Some(cells) = self.by_stage.get(selector.stage.as_str()) else {
            // A stage that is there but broken has been reported already.
            if !self.blocks.iter().any(|block| block.name == selector.stage) {
                let known = self.blocks.iter().map(|block| block.name.as_str());
                let known = known.filter(|name| *name != cell.block.name);
                let problem = Problem::new(format!("there is no stage `{}`", selector.stage), span);
                problems.push(problem.suggest(&selector.stage, "stages", known));
            }
            return None;
        };
        let theirs = &self.cells[cells[0]].matrix;
        for (key, _) in &selector.wanted {
            let known: Vec<&str> = theirs.iter().map(|(key, _)| key.as_str()).collect();
            if !known.contains(&key.as_str()) {
                let problem = Problem::new(format!("`{}` has no matrix key `{key}`", selector.stage), span);
                return problems.refuse(problem.suggest(key, "its matrix keys", known));
            }
        }
        let found = self.fitting(cell, selector, cells);
        if found.is_empty() {
            let example = &self.cells[cells[0]].id;
            let problem = Problem::new(format!("no cell of `{}` fits `{}`", selector.stage, cell.id), span);
            let help = format!("one of its cells is {example}; cells pair up by equal matrix keys");
            return problems.refuse(problem.help(help));
        }
        Some(found)
    }

    /// The cells of a stage, in their order, that have the values a selector asks for and else share ours.
    fn fitting(&self, cell: &LooseCell<'_>, selector: &Selector, cells: &[usize]) -> Vec<usize> {
        let asked = |key: &str| selector.wanted.iter().find(|(wanted, _)| wanted == key);
        let ours = |key: &str| cell.matrix.iter().find(|(our, _)| our == key);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, _) in &self.cells[cells[0]].matrix {
            if let Some((_, value)) = asked(key) {
                keys.push((key.clone(), Written::Shown));
                values.push(value.clone());
            } else if let Some((_, resolved)) = ours(key) {
                keys.push((key.clone(), Written::Exactly));
                values.push(resolved.value.to_string());
            }
        }
        if keys.is_empty() {
            return cells.to_vec();
        }
        let mut lookups = self.lookups.borrow_mut();
        let lookup = lookups.entry((selector.stage.clone(), keys)).or_insert_with_key(|(_, keys)| {
            let mut lookup = Lookup::new();
            for &index in cells {
                lookup.entry(written(&self.cells[index], keys)).or_default().push(index);
            }
            lookup
        });
        lookup.get(&values).cloned().unwrap_or_default()
    }

    fn single(
        &self,
        cells: &[usize],
        selector: &Selector,
        span: &Range<usize>,
        arity: Arity,
    ) -> Option<usize> {
        if let [cell] = cells {
            return Some(*cell);
        }
        let stage = &selector.stage;
        let problem = Problem::new(format!("`{stage}` matches {} cells", cells.len()), span);
        // Only some inputs take all of them.
        let all = if arity == Arity::Many { format!("{stage}[*] for all, ") } else { String::new() };
        let help = format!("choose: {stage}[min F], {all}or {}", self.cells[cells[0]].id);
        self.scope.problems.refuse(problem.label("which one?").help(help))
    }

    fn unconnected(&self, cell: &LooseCell<'_>, port: &Port) -> Problem {
        let gives = |block: &&StageBlock| {
            self.by_stage.get(block.name.as_str()).is_some_and(|cells| {
                block.name != cell.block.name
                    && self.cells[cells[0]].entry.ports(Direction::Out).any(|output| output.kind == port.kind)
            })
        };
        let Port { kind, name, .. } = port;
        let message = format!("stage `{}` needs a {kind} at `{name}`", cell.block.name);
        let problem = Problem::new(message, &cell.block.name_span);
        problem.label(format!("`{name}` is not connected")).help(match self.blocks.iter().find(gives) {
            Some(block) => format!("add needs = {{ {name} = \"{}\" }}", block.name),
            None => format!("no stage of this pipeline gives a {kind}; `hopmap stages` lists those that do"),
        })
    }
}

/// The values of some keys of a cell.
fn written(cell: &LooseCell<'_>, keys: &[(String, Written)]) -> Vec<String> {
    let value = |(key, how): &(String, Written)| {
        let found = cell.matrix.iter().find(|(other, _)| other == key);
        found.map_or_else(String::new, |(_, resolved)| match how {
            Written::Shown => show(&resolved.value),
            Written::Exactly => resolved.value.to_string(),
        })
    };
    keys.iter().map(value).collect()
}

/// The output a selector names, or the only one.
fn output_named(
    entry: &'static StageEntry,
    selector: &Selector,
    span: &Range<usize>,
    problems: &Sink,
) -> Option<&'static Port> {
    let outputs: Vec<&'static Port> = entry.ports(Direction::Out).collect();
    let found = match &selector.port {
        Some(name) => outputs.iter().find(|port| port.name == name),
        None if outputs.len() == 1 => outputs.first(),
        None => None,
    };
    found.copied().or_else(|| {
        let names = outputs.iter().map(|port| port.name);
        let wrong = selector.port.as_deref().unwrap_or_default();
        let problem = match &selector.port {
            Some(name) => Problem::new(format!("{} has no output `{name}`", entry.kind), span),
            None => Problem::new(format!("{} has several outputs", entry.kind), span).label("which one?"),
        };
        problems.refuse(problem.suggest(wrong, "outputs", names))
    })
}

/// The output that goes into a port: the one that is named, or the only one of the right kind.
fn output_for(
    entry: &'static StageEntry,
    selector: &Selector,
    port: &Port,
    span: &Range<usize>,
    problems: &Sink,
) -> Option<&'static str> {
    let fitting: Vec<&'static Port> =
        entry.ports(Direction::Out).filter(|output| output.kind == port.kind).collect();
    if let (None, [output]) = (&selector.port, fitting.as_slice()) {
        return Some(output.name);
    }
    let output = output_named(entry, selector, span, problems)?;
    if output.kind != port.kind {
        let (stage, kind) = (&selector.stage, output.kind);
        let message = format!("`{stage}` gives a {kind}, but `{}` takes a {}", port.name, port.kind);
        return problems.refuse(Problem::new(message, span).label(format!("this is a {kind}")));
    }
    Some(output.name)
}

/// A topological order of cells, or the cells of a cycle.
pub(crate) fn order(dependencies: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; dependencies.len()];
    let mut order = Vec::with_capacity(dependencies.len());
    for start in 0..dependencies.len() {
        // Depth first with a stack of our own: chains can be long.
        let mut stack = vec![(start, 0)];
        while let Some((cell, next)) = stack.pop() {
            if next == 0 {
                if marks[cell] == Mark::Done {
                    continue;
                }
                marks[cell] = Mark::Open;
            }
            match dependencies[cell].get(next) {
                None => {
                    marks[cell] = Mark::Done;
                    order.push(cell);
                }
                Some(&needed) => {
                    stack.push((cell, next + 1));
                    match marks[needed] {
                        Mark::Done => {}
                        Mark::New => stack.push((needed, 0)),
                        Mark::Open => {
                            let path: Vec<usize> = stack.iter().map(|(cell, _)| *cell).collect();
                            let begin = path.iter().position(|&cell| cell == needed).unwrap_or(0);
                            return Err(path[begin..].to_vec());
                        }
                    }
                }
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_come_after_what_they_need() {
        assert_eq!(order(&[vec![2], vec![0, 2], vec![]]).unwrap(), [2, 0, 1]);
    }

    #[test]
    fn a_cycle_is_named_from_end_to_end() {
        assert_eq!(order(&[vec![], vec![0, 3], vec![1], vec![2]]).unwrap_err(), [1, 3, 2]);
        assert_eq!(order(&[vec![0]]).unwrap_err(), [0]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let chain: Vec<Vec<usize>> =
            (0..200_000).map(|cell| (cell + 1 < 200_000).then_some(cell + 1).into_iter().collect()).collect();
        assert_eq!(order(&chain).unwrap().len(), 200_000);
    }
}
