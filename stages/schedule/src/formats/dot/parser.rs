//! Statements of DOT.

use hopmap_text::FileError;
use std::collections::HashMap;
use std::rc::Rc;

use super::graph::{Attributes, Given, Graph, Table};
use super::lexer::{Keyword, Lexer, Token};

/// How deep subgraphs stand in each other at most.
const DEEPEST: usize = 100;

/// What holds within a pair of braces.
#[derive(Debug, Clone, Default)]
struct Scope {
    node_defaults: Attributes,
    edge_defaults: Attributes,
    /// Nodes that are named within; some more than once.
    members: Vec<u32>,
}

pub(super) struct Parser<'a> {
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

    fn takes(&mut self, token: &Token<'_>) -> Result<bool, FileError> {
        let is_there = self.token == *token;
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, mark: char) -> Result<(), FileError> {
        match self.takes(&Token::Mark(mark))? {
            true => Ok(()),
            false => Err(self.wrong(&format!("`{mark}`"))),
        }
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
        self.graph.is_strict = self.takes(&Token::Keyword(Keyword::Strict))?;
        if self.token == Token::Keyword(Keyword::Graph) {
            let help = "what waits for what has a direction: write `digraph`, and `->` between nodes";
            return Err(FileError::at(self.line, "the graph has no directions", help));
        }
        if !self.takes(&Token::Keyword(Keyword::Digraph))? {
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
        self.expect('{')?;
        while !self.takes(&Token::Mark('}'))? {
            if !self.takes(&Token::Mark(';'))? {
                self.statement()?;
            }
        }
        Ok(self.scopes.pop().map(|scope| scope.members).unwrap_or_default())
    }

    fn statement(&mut self) -> Result<(), FileError> {
        match self.token {
            Token::Keyword(Keyword::Graph) => {
                self.advance()?;
                self.attributes(&[]).map(drop)
            }
            Token::Keyword(Keyword::Node) => {
                self.advance()?;
                let names = Rc::clone(&self.graph.of_nodes.names);
                let given = self.attributes(&names)?;
                self.set_defaults(|scope| &mut scope.node_defaults, given);
                Ok(())
            }
            Token::Keyword(Keyword::Edge) => {
                self.advance()?;
                let names = Rc::clone(&self.graph.of_edges.names);
                let given = self.attributes(&names)?;
                self.set_defaults(|scope| &mut scope.edge_defaults, given);
                Ok(())
            }
            Token::Keyword(Keyword::Subgraph) | Token::Mark('{') => {
                let members = self.subgraph()?;
                self.chain(members, false)
            }
            Token::Id(_) => {
                let line = self.line;
                let name = self.id("a name")?;
                if self.takes(&Token::Mark('='))? {
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
            if self.takes(&Token::Mark(':'))? {
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
        if self.takes(&Token::Keyword(Keyword::Subgraph))? && matches!(self.token, Token::Id(_)) {
            name = Some(self.id("a name")?);
        }
        let mut members = name.as_ref().and_then(|name| self.subgraphs.remove(name)).unwrap_or_default();
        // Without braces it is one that was described before.
        if name.is_none() || self.token == Token::Mark('{') {
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
        while self.takes(&Token::Arrow)? {
            ends.push(self.end()?);
        }
        if self.token == Token::Line {
            let help = "edges of a `digraph` are written `->`";
            return Err(FileError::at(self.line, "`--` joins nodes of a graph without directions", help));
        }
        if let [nodes] = &ends[..] {
            if is_node {
                let names = Rc::clone(&self.graph.of_nodes.names);
                let given = self.attributes(&names)?;
                nodes.iter().for_each(|&node| self.graph.of_nodes.say(node, &given, false));
            }
            return Ok(());
        }
        let names = Rc::clone(&self.graph.of_edges.names);
        let given = self.attributes(&names)?;
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
        if matches!(self.token, Token::Keyword(Keyword::Subgraph) | Token::Mark('{')) {
            return self.subgraph();
        }
        let line = self.line;
        let name = self.id("a node or a subgraph")?;
        Ok(vec![self.node(&name, line)?])
    }

    /// Lists of attributes, `[a = 1, b = 2][c]`, if there are any: those of some names.
    fn attributes(&mut self, names: &[String]) -> Result<Attributes, FileError> {
        let mut found = vec![None; names.len()];
        while self.takes(&Token::Mark('['))? {
            while !self.takes(&Token::Mark(']'))? {
                let line = self.line;
                let name = self.id("an attribute or `]`")?;
                let value = if self.takes(&Token::Mark('='))? { self.id("a value")? } else { "true".into() };
                if let Some(place) = names.iter().position(|known| *known == name) {
                    found[place] = Some(Given::new(&value, line));
                }
                if !self.takes(&Token::Mark(','))? {
                    self.takes(&Token::Mark(';'))?;
                }
            }
        }
        Ok(found)
    }
}
