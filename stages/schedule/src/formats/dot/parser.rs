//! Statements of DOT, and the nodes and edges that they make.

use std::collections::HashMap;
use std::rc::Rc;

use hopmap_text::{FileError, shown};

use super::lexer::{Lexer, Token};

/// How deep subgraphs stand in each other at most.
const DEEPEST: usize = 100;

/// Edges and members of subgraphs that a graph may have, so that a short file cannot fill the memory.
const MOST: usize = 1 << 26;

/// What an attribute is set to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    /// A number, or the text that is none.
    pub(super) value: Result<f64, String>,
    pub(super) line: usize,
}

impl Attribute {
    fn new(text: &str, line: usize) -> Self {
        Self { value: text.trim().parse().map_err(|_| shown(text)), line }
    }
}

/// What a statement, or the defaults of a subgraph, say of the attributes that count: one entry for each of them.
type Attributes = Vec<Option<Attribute>>;

/// What every element has of the attribute that counts.
pub(super) type Weights = Vec<Option<Attribute>>;

/// What is set for nodes or for edges, attribute by attribute.
#[derive(Debug)]
pub(super) struct Table {
    /// The attributes that count, the best first.
    pub(super) names: Rc<[String]>,
    /// For every attribute what was said of which element, and whether that is a default.
    said: Vec<Vec<(u32, Attribute, bool)>>,
}

impl Table {
    pub(super) fn new(names: impl Into<Rc<[String]>>) -> Self {
        let names = names.into();
        let said = names.iter().map(|_| Vec::new()).collect();
        Self { names, said }
    }

    fn say(&mut self, element: u32, attributes: &Attributes, is_default: bool) {
        for (said, given) in self.said.iter_mut().zip(attributes) {
            said.extend(given.iter().map(|given| (element, given.clone(), is_default)));
        }
    }

    /// The first attribute that anything was said of, and what every element has; `what` names an element.
    pub(super) fn weights(
        &self,
        elements: usize,
        what: impl Fn(usize) -> String,
    ) -> Result<Option<(&str, Weights)>, FileError> {
        let Some((name, said)) = self.names.iter().zip(&self.said).find(|(_, said)| !said.is_empty()) else {
            return Ok(None);
        };
        let mut weights: Weights = vec![None; elements];
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
        Ok(Some((name, weights)))
    }
}

/// A directed graph as DOT says it.
#[derive(Debug)]
pub(super) struct Graph {
    is_strict: bool,
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

    /// Counts what a statement adds.
    fn spend(&mut self, amount: usize, line: usize) -> Result<(), FileError> {
        self.spent = self.spent.saturating_add(amount);
        match self.spent <= MOST {
            true => Ok(()),
            false => {
                Err(FileError::at(line, format!("there are more than {MOST} edges"), "is the file damaged?"))
            }
        }
    }

    /// The node of a name, which is there from now on.
    fn node(&mut self, name: &str, defaults: &Attributes, line: usize) -> u32 {
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
    fn edge(&mut self, ends: (u32, u32), defaults: &Attributes, given: &Attributes, line: usize) {
        let next = self.edges.len() as u32;
        let edge = if self.is_strict { *self.strict.entry(ends).or_insert(next) } else { next };
        if edge == next {
            self.edges.push((ends.0, ends.1, line));
            self.of_edges.say(edge, defaults, true);
        }
        self.of_edges.say(edge, given, false);
    }
}

/// What holds within a pair of braces.
#[derive(Debug, Clone, Default)]
struct Scope {
    node_defaults: Attributes,
    edge_defaults: Attributes,
    /// Nodes that are named within; some more than once.
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
    parser.whole()?;
    Ok(parser.graph)
}

impl<'a> Parser<'a> {
    /// The token, with the next one in its place.
    fn advance(&mut self) -> Result<Token<'a>, FileError> {
        let next = self.lexer.next()?;
        self.line = self.lexer.line;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn wrong(&self, expected: &str) -> FileError {
        let help = "https://graphviz.org/doc/info/lang.html describes DOT";
        FileError::at(self.line, format!("{} stands where {expected} should be", self.token.shown()), help)
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

    fn whole(&mut self) -> Result<(), FileError> {
        if self.token == Token::End {
            return Err(FileError::new("the file is empty", "a directed graph is `digraph { … }`"));
        }
        self.graph.is_strict = self.takes("strict")?;
        if self.token == Token::Sign("graph") {
            let help = "what waits for what has a direction: write `digraph`, and `->` between nodes";
            return Err(FileError::at(self.line, "the graph has no directions", help));
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
                format!("{} stands behind the graph", self.token.shown()),
                "there is one graph in a file",
            )),
        }
    }

    /// Statements in braces; gives the nodes that are named there.
    fn braces(&mut self, scope: Scope) -> Result<Vec<u32>, FileError> {
        if self.scopes.len() > DEEPEST {
            let problem = format!("more than {DEEPEST} subgraphs stand in each other");
            return Err(FileError::at(self.line, problem, "is the file damaged?"));
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

    /// A node by its name, which stands before the token, perhaps with a port.
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

    /// The nodes of a subgraph, which belong to what it stands in, too.
    fn subgraph(&mut self) -> Result<Vec<u32>, FileError> {
        let mut name = None;
        if self.takes("subgraph")? && matches!(self.token, Token::Id(_)) {
            name = Some(self.id("a name")?);
        }
        let mut members = name.as_ref().and_then(|name| self.subgraphs.remove(name)).unwrap_or_default();
        // Without braces it is one that was described before.
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

    /// What may come behind a node or a subgraph: arrows to others, and attributes.
    fn chain(&mut self, first: Vec<u32>, is_node: bool) -> Result<(), FileError> {
        let line = self.line;
        let mut ends = vec![first];
        while self.takes("->")? {
            ends.push(self.end()?);
        }
        if self.token == Token::Sign("--") {
            let help = "edges of a `digraph` are written `->`";
            return Err(FileError::at(self.line, "`--` joins nodes of a graph without directions", help));
        }
        if let [nodes] = &ends[..] {
            if is_node {
                let given = self.attributes(&Rc::clone(&self.graph.of_nodes.names))?;
                nodes.iter().for_each(|&node| self.graph.of_nodes.say(node, &given, false));
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

    /// A node or a subgraph behind an arrow.
    fn end(&mut self) -> Result<Vec<u32>, FileError> {
        if matches!(self.token, Token::Sign("subgraph" | "{")) {
            return self.subgraph();
        }
        let line = self.line;
        let name = self.id("a node or a subgraph")?;
        Ok(vec![self.node(&name, line)?])
    }

    /// Lists of attributes, `[a = 1, b = 2][c]`, if there are any: those of some names.
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
