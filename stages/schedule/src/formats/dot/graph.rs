//! Nodes and edges with what might be their weights.

use hopmap_text::{FileError, shown};
use std::collections::HashMap;
use std::rc::Rc;

/// Edges and members of subgraphs that a graph may have, so that a short file cannot fill the memory.
const MOST: usize = 1 << 26;

/// What an attribute is set to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    /// A number, or the text that is none.
    pub(super) value: Result<f64, String>,
    pub(super) line: usize,
}

impl Given {
    pub(super) fn new(text: &str, line: usize) -> Self {
        Self { value: text.trim().parse().map_err(|_| shown(text)), line }
    }
}

/// What a statement, or the defaults of a subgraph, say of the attributes that count: one entry for each of them.
pub(super) type Attributes = Vec<Option<Given>>;

/// What is set for nodes or for edges, attribute by attribute.
#[derive(Debug)]
pub(super) struct Table {
    /// The attributes that count, the best first.
    pub(super) names: Rc<[String]>,
    /// For every attribute what was said of which element, and whether that is a default.
    said: Vec<Vec<(u32, Given, bool)>>,
}

/// What every element has of the attribute that counts.
#[derive(Debug)]
pub(super) struct Weights<'a> {
    pub(super) name: &'a str,
    pub(super) of: Vec<Option<Given>>,
}

impl Table {
    pub(super) fn new(names: impl Into<Rc<[String]>>) -> Self {
        let names = names.into();
        let said = names.iter().map(|_| Vec::new()).collect();
        Self { names, said }
    }

    pub(super) fn say(&mut self, element: u32, attributes: &Attributes, is_default: bool) {
        for (said, given) in self.said.iter_mut().zip(attributes) {
            said.extend(given.iter().map(|given| (element, given.clone(), is_default)));
        }
    }

    /// The first attribute that anything was said of, and what every element has; `what` names an element.
    pub(super) fn weights(
        &self,
        elements: usize,
        what: impl Fn(usize) -> String,
    ) -> Result<Option<Weights<'_>>, FileError> {
        let Some((name, said)) = self.names.iter().zip(&self.said).find(|(_, said)| !said.is_empty()) else {
            return Ok(None);
        };
        let mut weights: Vec<Option<Given>> = vec![None; elements];
        let mut is_settled = vec![false; elements];
        for (element, given, is_default) in said {
            let element = *element as usize;
            match &weights[element] {
                Some(first) if is_settled[element] && !is_default && first.value != given.value => {
                    let problem = format!("{} has another `{name}` in line {}", what(element), first.line);
                    return Err(FileError::at(given.line, problem, "say it once"));
                }
                // A default does not take back what is said.
                Some(_) if *is_default => {}
                _ => weights[element] = Some(given.clone()),
            }
            is_settled[element] |= !is_default;
        }
        Ok(Some(Weights { name, of: weights }))
    }
}

/// A directed graph as DOT says it.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) is_strict: bool,
    /// The nodes in the order in which they come up.
    pub(super) names: Vec<String>,
    /// The line in which every node comes up.
    pub(super) lines: Vec<usize>,
    index: HashMap<String, u32>,
    /// Source, destination and line of every edge.
    pub(super) edges: Vec<(u32, u32, usize)>,
    strict: HashMap<(u32, u32), u32>,
    pub(super) of_nodes: Table,
    pub(super) of_edges: Table,
    spent: usize,
}

impl Graph {
    pub(super) fn new(of_nodes: Table, of_edges: Table) -> Self {
        Self {
            is_strict: false,
            names: Vec::new(),
            lines: Vec::new(),
            index: HashMap::new(),
            edges: Vec::new(),
            strict: HashMap::new(),
            of_nodes,
            of_edges,
            spent: 0,
        }
    }

    /// Counts what a statement adds.
    pub(super) fn spend(&mut self, amount: usize, line: usize) -> Result<(), FileError> {
        self.spent = self.spent.saturating_add(amount);
        match self.spent <= MOST {
            true => Ok(()),
            false => {
                Err(FileError::at(line, format!("there are more than {MOST} edges"), "is the file damaged?"))
            }
        }
    }

    /// The node of a name, which is there from now on.
    pub(super) fn node(&mut self, name: &str, defaults: &Attributes, line: usize) -> u32 {
        if let Some(&node) = self.index.get(name) {
            return node;
        }
        let node = self.names.len() as u32;
        self.index.insert(name.to_owned(), node);
        self.names.push(name.to_owned());
        self.lines.push(line);
        self.of_nodes.say(node, defaults, true);
        node
    }

    /// An edge; where the graph is strict, the one that is there already.
    pub(super) fn edge(&mut self, ends: (u32, u32), defaults: &Attributes, given: &Attributes, line: usize) {
        let next = self.edges.len() as u32;
        let edge = if self.is_strict { *self.strict.entry(ends).or_insert(next) } else { next };
        if edge == next {
            self.edges.push((ends.0, ends.1, line));
            self.of_edges.say(edge, defaults, true);
        }
        self.of_edges.say(edge, given, false);
    }
}
