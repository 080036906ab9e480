//! Parses statements of DOT into nodes and edges.

use std::collections::HashMap;
use std::rc::Rc;

use hopmap_text::{FileError, shown};

use super::lexer::{Lexer, Token};

/// Maximum nesting depth of subgraphs.
const DEEPEST: usize = 100;

/// Maximum number of edges and subgraph members, so that a short file cannot exhaust the memory.
const MOST: usize = 1 << 26;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    /// A number, or the text that is not one.
    pub(super) value: Result<f64, String>,
    pub(super) line: usize,
}

impl Attribute {
    fn new(text: &str, line: usize) -> Self {
        Self { value: text.trim().parse().map_err(|_| shown(text)), line }
    }
}

/// The values of the weight attributes in a statement or in the defaults of a subgraph: one entry for each attribute.
type Attributes = Vec<Option<Attribute>>;

/// The values of a weight attribute for all elements.
pub(super) type Weights = Vec<Option<Attribute>>;

/// The values set for nodes or for edges, by attribute.
#[derive(Debug)]
pub(super) struct Table {
    /// The candidate attributes, in order of preference.
    pub(super) names: Rc<[String]>,
    /// For every attribute the values of elements, and whether each is a default.
    found: Vec<Vec<(u32, Attribute, bool)>>,
}

impl Table {
    pub(super) fn new(names: impl Into<Rc<[String]>>) -> Self {
        let names = names.into();
        let found = names.iter().map(|_| Vec::new()).collect();
        Self { names, found }
    }

    fn set(&mut self, element: u32, attributes: &Attributes, is_default: bool) {
        for (found, given) in self.found.iter_mut().zip(attributes) {
            found.extend(given.iter().map(|given| (element, given.clone(), is_default)));
        }
    }

    /// The first attribute with any value, and the values of all elements; `what` names an element.
    pub(super) fn weights(
        &self,
        elements: usize,
        what: impl Fn(usize) -> String,
    ) -> Result<Option<(&str, Weights)>, FileError> {
        let Some((name, found)) = self.names.iter().zip(&self.found).find(|(_, found)| !found.is_empty())
        else {
            return Ok(None);
        };
        let mut weights: Weights = vec![None; elements];
        let mut is_settled = vec![false; elements];
        for (element, given, is_default) in found {
            let element = *element as usize;
            match &weights[element] {
                Some(first) if is_settled[element] && !is_default && first.value != given.value => {
                    let problem =
                        format!("{} has a different `{name}` in line {}", what(element), first.line);
                    return Err(FileError::at(given.line, problem, "set it once"));
                }
                // A default does not override an explicit value.
                Some(_) if *is_default => {}
                _ => weights[element] = Some(given.clone()),
            }
            is_settled[element] |= !is_default;
        }
        Ok(Some((name, weights)))
    }
}

/// The contents of a directed graph.
#[derive(Debug)]
pub(super) struct Graph {
    is_strict: bool,
    /// The nodes in order of appearance.
    pub(super) names: Vec<String>,
    /// The line in which every node first appears.
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
    fn new(of_nodes: Table, of_edges: Table) -> Self {
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

    /// Counts the additions of a statement.
    fn spend(&mut self, amount: usize, line: usize) -> Result<(), FileError> {
        self.spent = self.spent.saturating_add(amount);
        match self.spent <= MOST {
            true => Ok(()),
            false => Err(FileError::at(
                line,
                format!("the graph has more than {MOST} edges"),
                "the file may be damaged",
            )),
        }
    }

    /// The node of a name, created if necessary.
    fn node(&mut self, name: &str, defaults: &Attributes, line: usize) -> u32 {
        if let Some(&node) = self.index.get(name) {
            return node;
        }
        let node = self.names.len() as u32;
        self.index.insert(name.to_owned(), node);
        self.names.push(name.to_owned());
        self.lines.push(line);
        self.of_nodes.set(node, defaults, true);
        node
    }

    /// Adds an edge; in a strict graph, returns the existing one.
    fn edge(&mut self, ends: (u32, u32), defaults: &Attributes, given: &Attributes, line: usize) {
        let next = self.edges.len() as u32;
        let edge = if self.is_strict { *self.strict.entry(ends).or_insert(next) } else { next };
        if edge == next {
            self.edges.push((ends.0, ends.1, line));
            self.of_edges.set(edge, defaults, true);
        }
        self.of_edges.set(edge, given, false);
    }
}

/// The scope of a pair of braces.
#[derive(Debug, Clone, Default)]
struct Scope {
    node_defaults: Attributes,
    edge_defaults: Attributes,
    /// Nodes that appear in it, with duplicates.
    members: Vec<u32>,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// The line of the token.
    line: usize,
    graph: Graph,
    scopes: Vec<Scope>,
    subgraphs: HashMap<String, Vec<u32>>,
}

/// Reads one directed graph.
pub(super) fn parse(text: &str, of_nodes: Table, of_edges: Table) -> Result<Graph, FileError> {
    let graph = Graph::new(of_nodes, of_edges);
    let lexer = Lexer::new(text);
    let (scopes, subgraphs) = (Vec::new(), HashMap::new());
    let mut parser = Parser { lexer, token: Token::End, line: 1, graph, scopes, subgraphs };
    parser.advance()?;
    parser.document()?;
    Ok(parser.graph)
}

impl<'a> Parser<'a> {
    /// Returns the token and advances to the next one.
    fn advance(&mut self) -> Result<Token<'a>, FileError> {
        let next = self.lexer.next()?;
        self.line = self.lexer.line;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn wrong(&self, expected: &str) -> FileError {
        let help = "https://graphviz.org/doc/info/lang.html describes DOT";
        FileError::at(self.line, format!("expected {expected}, found {}", self.token.shown()), help)
    }

    fn takes(&mut self, sign: &'static str) -> Result<bool, FileError> {
        let is_there = self.token == Token::Sign(sign);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn id(&mut self, expected: &str) -> Result<String, FileError> {
        if !matches!(self.token, Token::Id(_)) {
            return Err(self.wrong(expected));
        }
        match self.advance()? {
            Token::Id(id) => Ok(id.into_owned()),
            _ => Ok(String::new()),
        }
    }

    fn document(&mut self) -> Result<(), FileError> {
        if self.token == Token::End {
            return Err(FileError::new("the file is empty", "a directed graph has the form `digraph { … }`"));
        }
        self.graph.is_strict = self.takes("strict")?;
        if self.token == Token::Sign("graph") {
            let help = "dependencies are directed: use `digraph`, and `->` between nodes";
            return Err(FileError::at(self.line, "the graph is undirected", help));
        }
        if !self.takes("digraph")? {
            return Err(self.wrong("`digraph`"));
        }
        if matches!(self.token, Token::Id(_)) {
            self.advance()?;
        }
        let empty = |table: &Table| vec![None; table.names.len()];
        let scope = Scope {
            node_defaults: empty(&self.graph.of_nodes),
            edge_defaults: empty(&self.graph.of_edges),
            members: Vec::new(),
        };
        self.braces(scope)?;
        match self.token {
            Token::End => Ok(()),
            _ => Err(FileError::at(
                self.line,
                format!("unexpected {} after the graph", self.token.shown()),
                "a file must contain one graph",
            )),
        }
    }

    /// Statements in braces; returns the nodes in them.
    fn braces(&mut self, scope: Scope) -> Result<Vec<u32>, FileError> {
        if self.scopes.len() > DEEPEST {
            let problem = format!("more than {DEEPEST} nested subgraphs");
            return Err(FileError::at(self.line, problem, "the file may be damaged"));
        }
        self.scopes.push(scope);
        if !self.takes("{")? {
            return Err(self.wrong("`{`"));
        }
        while !self.takes("}")? {
            if !self.takes(";")? {
                self.statement()?;
            }
        }
        Ok(self.scopes.pop().map(|scope| scope.members).unwrap_or_default())
    }

    fn statement(&mut self) -> Result<(), FileError> {
        match self.token {
            Token::Sign("graph") => {
                self.advance()?;
                self.attributes(&[]).map(drop)
            }
            Token::Sign("node") => {
                self.advance()?;
                let given = self.attributes(&Rc::clone(&self.graph.of_nodes.names))?;
                self.set_defaults(|scope| &mut scope.node_defaults, given);
                Ok(())
            }
            Token::Sign("edge") => {
                self.advance()?;
                let given = self.attributes(&Rc::clone(&self.graph.of_edges.names))?;
                self.set_defaults(|scope| &mut scope.edge_defaults, given);
                Ok(())
            }
            Token::Sign("subgraph" | "{") => {
                let members = self.subgraph()?;
                self.chain(members, false)
            }
            Token::Id(_) => {
                let line = self.line;
                let name = self.id("a name")?;
                if self.takes("=")? {
                    return self.id("a value").map(drop);
                }
                let node = self.node(&name, line)?;
                self.chain(vec![node], true)
            }
            _ => Err(self.wrong("a node, an edge, a subgraph or an attribute")),
        }
    }

    fn set_defaults(&mut self, of: impl Fn(&mut Scope) -> &mut Attributes, given: Attributes) {
        if let Some(scope) = self.scopes.last_mut() {
            for (default, given) in of(scope).iter_mut().zip(given) {
                if given.is_some() {
                    *default = given;
                }
            }
        }
    }

    /// The node whose name precedes the token, with an optional port.
    fn node(&mut self, name: &str, line: usize) -> Result<u32, FileError> {
        for _ in 0..2 {
            if self.takes(":")? {
                self.id("a port")?;
            }
        }
        let Some(scope) = self.scopes.last_mut() else { return Ok(0) };
        let node = self.graph.node(name, &scope.node_defaults, line);
        scope.members.push(node);
        Ok(node)
    }

    /// The nodes of a subgraph, which belong to the enclosing scope, too.
    fn subgraph(&mut self) -> Result<Vec<u32>, FileError> {
        let mut name = None;
        if self.takes("subgraph")? && matches!(self.token, Token::Id(_)) {
            name = Some(self.id("a name")?);
        }
        let mut members = name.as_ref().and_then(|name| self.subgraphs.remove(name)).unwrap_or_default();
        // Without braces it refers to an earlier subgraph.
        if name.is_none() || self.token == Token::Sign("{") {
            let outer =
                self.scopes.last().map(|scope| (scope.node_defaults.clone(), scope.edge_defaults.clone()));
            let (node_defaults, edge_defaults) = outer.unwrap_or_default();
            members.extend(self.braces(Scope { node_defaults, edge_defaults, members: Vec::new() })?);
            members.sort_unstable();
            members.dedup();
        }
        self.graph.spend(members.len(), self.line)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.members.extend(&members);
        }
        if let Some(name) = name {
            self.subgraphs.insert(name, members.clone());
        }
        Ok(members)
    }

    /// The rest of a statement after a node or a subgraph: arrows and attributes.
    fn chain(&mut self, first: Vec<u32>, is_node: bool) -> Result<(), FileError> {
        let line = self.line;
        let mut ends = vec![first];
        while self.takes("->")? {
            ends.push(self.end()?);
        }
        if self.token == Token::Sign("--") {
            let help = "use `->` for edges of a `digraph`";
            return Err(FileError::at(self.line, "`--` is an edge of an undirected graph", help));
        }
        if let [nodes] = &ends[..] {
            if is_node {
                let given = self.attributes(&Rc::clone(&self.graph.of_nodes.names))?;
                nodes.iter().for_each(|&node| self.graph.of_nodes.set(node, &given, false));
            }
            return Ok(());
        }
        let given = self.attributes(&Rc::clone(&self.graph.of_edges.names))?;
        let defaults = self.scopes.last().map(|scope| scope.edge_defaults.clone()).unwrap_or_default();
        for pair in ends.windows(2) {
            let [sources, destinations] = [&pair[0], &pair[1]];
            self.graph.spend(sources.len().saturating_mul(destinations.len()), line)?;
            for &source in sources {
                for &destination in destinations {
                    self.graph.edge((source, destination), &defaults, &given, line);
                }
            }
        }
        Ok(())
    }

    /// A node or a subgraph after an arrow.
    fn end(&mut self) -> Result<Vec<u32>, FileError> {
        if matches!(self.token, Token::Sign("subgraph" | "{")) {
            return self.subgraph();
        }
        let line = self.line;
        let name = self.id("a node or a subgraph")?;
        Ok(vec![self.node(&name, line)?])
    }

    /// Optional lists of attributes, `[a = 1, b = 2][c]`: the values of the given names.
    fn attributes(&mut self, names: &[String]) -> Result<Attributes, FileError> {
        let mut found = vec![None; names.len()];
        while self.takes("[")? {
            while !self.takes("]")? {
                let line = self.line;
                let name = self.id("an attribute or `]`")?;
                let value = if self.takes("=")? { self.id("a value")? } else { "true".into() };
                if let Some(place) = names.iter().position(|known| *known == name) {
                    found[place] = Some(Attribute::new(&value, line));
                }
                if !self.takes(",")? {
                    self.takes(";")?;
                }
            }
        }
        Ok(found)
    }
}
