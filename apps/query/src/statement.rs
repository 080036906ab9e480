//! The text of a query: parsed, checked, and prepared for Polars.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use hopmap::source::Problem;
use sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Visit, Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::{Location, Span};

use crate::expressions::name_expressions;

/// A question that reads and changes nothing.
#[derive(Debug)]
pub(crate) struct Question {
    text: String,
    /// The statement; none for `SHOW TABLES`, which does not need Polars.
    pub(crate) statement: Option<Statement>,
    /// Tables that it reads, each with its place.
    pub(crate) tables: Vec<(String, Range<usize>)>,
    /// Columns and functions that it names, each with its place.
    words: Vec<(String, Range<usize>)>,
}

impl Question {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
        let parser = Parser::new(&GenericDialect).with_options(options).try_with_sql(text);
        let statements = parser.and_then(|mut parser| parser.parse_statements());
        let mut statements = statements.map_err(|error| syntax(text, &error))?;
        let question =
            |statement| Self { text: text.to_owned(), statement, tables: Vec::new(), words: Vec::new() };
        match (statements.pop(), statements.is_empty()) {
            (Some(Statement::ShowTables { .. }), true) => Ok(question(None)),
            (Some(mut statement @ Statement::Query(_)), true) => {
                name_expressions(&mut statement);
                let mut question = question(None);
                question.look(&statement)?;
                Ok(Self { statement: Some(statement), ..question })
            }
            (Some(statement), true) => Err(refused(text, &statement)),
            (Some(_), false) => Err(Problem::new("this is more than one statement", &first_word(text))
                .help("ask one question at a time")),
            (None, _) => Err(Problem::new("the query is empty", &(0..0)).help(EXAMPLE)),
        }
    }

    /// Finds names and what only looks like a question.
    fn look(&mut self, statement: &Statement) -> Result<(), Problem> {
        let mut names = Names { text: &self.text, tables: Vec::new(), words: Vec::new(), with: Vec::new() };
        if let ControlFlow::Break(problem) = statement.visit(&mut names) {
            return Err(*problem);
        }
        let Names { tables, words, with, .. } = names;
        let with: HashSet<String> = with.into_iter().collect();
        self.tables = tables.into_iter().filter(|(name, _)| !with.contains(name)).collect();
        self.words = words;
        Ok(())
    }

    /// Where a name occurs first, if anywhere.
    pub(crate) fn place(&self, name: &str) -> Option<Range<usize>> {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        self.words.iter().chain(&self.tables).find(|(known, _)| same(known)).map(|(_, place)| place.clone())
    }

    /// What precedes a name and a point: `a` in `a.b`.
    pub(crate) fn before_point(&self, name: &Range<usize>) -> Option<&str> {
        let before = self.text.get(..name.start)?.strip_suffix('.')?;
        match before.strip_suffix('"') {
            Some(quoted) => quoted.rsplit('"').next(),
            None => before.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next(),
        }
    }

    /// The first word, for what is wrong with the whole.
    pub(crate) fn beginning(&self) -> Range<usize> {
        first_word(&self.text)
    }
}

const EXAMPLE: &str = "for example SELECT * FROM cells";

struct Names<'a> {
    text: &'a str,
    tables: Vec<(String, Range<usize>)>,
    words: Vec<(String, Range<usize>)>,
    with: Vec<String>,
}

impl Names<'_> {
    fn word(&mut self, ident: &Ident) {
        self.words.push((ident.value.clone(), range(self.text, ident.span)));
    }
}

impl Visitor for Names<'_> {
    type Break = Box<Problem>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.with.extend(with.map(|table| table.alias.name.value.clone()));
        match only_reads(&query.body) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Box::new(changes(first_word(self.text)))),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        match select.into {
            Some(_) => ControlFlow::Break(Box::new(changes(first_word(self.text)))),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, args, .. } = factor else { return ControlFlow::Continue(()) };
        let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return ControlFlow::Continue(());
        };
        let place = range(self.text, first.span).start..range(self.text, last.span).end;
        if args.is_some() {
            let problem =
                Problem::new(format!("`{name}` is a function, and only tables can be read"), &place);
            return ControlFlow::Break(Box::new(problem.help("--artifact NAME=DIR opens an artifact")));
        }
        if let [name] = parts.as_slice() {
            self.tables.push((name.value.clone(), place));
            return ControlFlow::Continue(());
        }
        let problem = Problem::new(format!("there is no table `{name}`"), &place);
        ControlFlow::Break(Box::new(problem.help("put names with a dot into double quotes")))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(ident) => self.word(ident),
            Expr::CompoundIdentifier(idents) => {
                idents.iter().rev().for_each(|ident| self.word(ident));
                if let (Some(first), Some(last)) = (idents.first(), idents.last()) {
                    let name = idents.iter().map(|ident| ident.value.as_str()).collect::<Vec<_>>().join(".");
                    let place = range(self.text, first.span).start..range(self.text, last.span).end;
                    self.words.push((name, place));
                }
            }
            Expr::Function(function) => {
                function.name.0.iter().filter_map(|part| part.as_ident()).for_each(|ident| self.word(ident));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn only_reads(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => only_reads(left) && only_reads(right),
        SetExpr::Insert(_)
        | SetExpr::Update(_)
        | SetExpr::Delete(_)
        | SetExpr::Merge(_)
        | SetExpr::Table(_) => false,
    }
}

fn changes(place: Range<usize>) -> Problem {
    Problem::new("only SELECT, WITH and SHOW TABLES are supported", &place)
        .help("artifacts are never changed; `hopmap run` makes new ones")
}

fn refused(text: &str, statement: &Statement) -> Problem {
    let problem = changes(first_word(text));
    match statement {
        Statement::ShowColumns { .. } | Statement::ExplainTable { .. } => {
            problem.help("`hopmap query --tables` lists the tables with their columns")
        }
        _ => problem,
    }
}

/// The message of the parser without the place at its end.
fn syntax(text: &str, error: &ParserError) -> Problem {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.clone(),
        ParserError::RecursionLimitExceeded => "this is nested too deeply".to_owned(),
    };
    let located = message.rsplit_once(" at Line: ").and_then(|(said, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        let location = Location { line: line.parse().ok()?, column: column.trim().parse().ok()? };
        Some((said.to_owned(), offset(text, location)))
    });
    let (said, start) = located.unwrap_or_else(|| (message, text.trim_end().len()));
    let said = match said.split_once(", found: ") {
        Some((expected, found)) => {
            let expected = expected.trim_start_matches("Expected: ");
            let found = if found == "EOF" { "the end".to_owned() } else { format!("`{found}`") };
            format!("expected {expected}, found {found}")
        }
        None => said,
    };
    let end = start + word_length(text.get(start..).unwrap_or_default());
    Problem::new(said, &(start..end))
}

fn first_word(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    start..start + word_length(&text[start..])
}

fn word_length(text: &str) -> usize {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    match text.find(|letter| !is_part(letter)).unwrap_or(text.len()) {
        0 => text.chars().next().filter(|letter| !letter.is_whitespace()).map_or(0, char::len_utf8),
        length => length,
    }
}

fn range(text: &str, span: Span) -> Range<usize> {
    let start = offset(text, span.start);
    start..offset(text, span.end).max(start)
}

/// The place in bytes; lines and columns count from one, columns in characters.
fn offset(text: &str, location: Location) -> usize {
    let line = usize::try_from(location.line.saturating_sub(1)).unwrap_or(0);
    let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(0);
    let start = match line {
        0 => 0,
        line => text.match_indices('\n').nth(line - 1).map_or(text.len(), |(end, _)| end + 1),
    };
    let rest = &text[start..];
    start + rest.char_indices().nth(column).map_or(rest.len(), |(place, _)| place)
}

/// Columns of a SELECT, if it says how many there are.
pub(crate) fn columns_of(select: &Select) -> Option<usize> {
    let is_one =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    select.projection.iter().all(is_one).then_some(select.projection.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (String, String) {
        let problem = Question::parse(text).unwrap_err();
        (problem.message, text[problem.span].to_owned())
    }

    #[test]
    fn faults_know_their_place() {
        assert_eq!(fault("SELECT * FORM b").1, "FORM");
        assert_eq!(fault("SELECT 'a FROM b").1, "'");
        assert_eq!(fault("SELECT a FROM").1, "");
        assert_eq!(fault("SELECT * FROM a.b").1, "a.b");
        assert_eq!(fault("SELECT * FROM read_csv('x')").1, "read_csv");
    }

    #[test]
    fn only_questions_are_answered() {
        for text in [
            "DELETE FROM a",
            "DROP TABLE a",
            "CREATE TABLE a AS SELECT 1",
            "INSERT INTO a SELECT * FROM b",
            "SELECT * INTO a FROM b",
            "WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x",
            "TRUNCATE a",
            "EXPLAIN SELECT 1",
        ] {
            assert!(fault(text).0.starts_with("only SELECT"), "{text}: {:?}", fault(text));
        }
        assert!(fault("SELECT 1; SELECT 2").0.starts_with("this is more"));
        assert!(fault(" -- nothing\n").0.starts_with("the query is empty"));
        assert!(Question::parse("SHOW TABLES").unwrap().statement.is_none());
    }

    #[test]
    fn tables_are_found_wherever_they_stand() {
        let text = "WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN \"b-c\" ON x.k = \"b-c\".k WHERE k IN (SELECT k FROM d)";
        let question = Question::parse(text).unwrap();
        let names: Vec<&str> = question.tables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b-c", "d"]);
        assert_eq!(&text[question.tables[1].1.clone()], "\"b-c\"");
    }
}
