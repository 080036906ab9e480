//! A pipeline file as TOML with the place of every value; what is wrong with it, and where.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::ops::Range;
use std::sync::Arc;

use hopmap_command::Mistake;
use hopmap_model::InternalError;
use hopmap_text::closest;
use miette::{Diagnostic, LabeledSpan, NamedSource, Report, SourceCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Problems of one kind that are reported one by one: at one place, and in a text.
const MOST_AT_A_PLACE: usize = 3;
const MOST_IN_A_TEXT: usize = 10;
/// Names that a hint lists although it suggests one of them.
const MOST_NAMES: usize = 12;

/// One thing that is wrong, not yet tied to a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What to say at that place.
    pub label: String,
    /// Hint.
    pub help: Option<String>,
}

/// Label of a problem that says nothing in particular at its place.
const NO_LABEL: &str = "here";

impl Problem {
    /// A problem at a place.
    pub fn new(message: impl Into<String>, span: &Range<usize>) -> Self {
        Self { message: message.into(), span: span.clone(), label: NO_LABEL.into(), help: None }
    }

    /// Whether nothing in particular is said at the place.
    pub(crate) fn is_unlabelled(&self) -> bool {
        self.label == NO_LABEL
    }

    /// Sets the label at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Suggests the name that was probably meant, and lists the others.
    #[must_use]
    pub fn suggest<'a>(self, wrong: &str, what: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let meant = closest(wrong, &known);
        let problem = match meant {
            Some(meant) => self.label(format!("did you mean `{meant}`?")),
            None => self,
        };
        let is_enough = known.is_empty() || (meant.is_some() && known.len() > MOST_NAMES);
        if is_enough { problem } else { problem.help(format!("{what}: {}", known.join(", "))) }
    }
}

/// Mistakes that are found while a file is read. Callers compare counts to see whether there are new ones.
#[derive(Debug, Default)]
pub(crate) struct Sink(RefCell<Vec<Problem>>);

impl Sink {
    pub(crate) fn push(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    /// Reports why there is nothing.
    pub(crate) fn refuse<T>(&self, problem: Problem) -> Option<T> {
        self.push(problem);
        None
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn take(&self) -> Vec<Problem> {
        self.0.take()
    }
}

/// A text that people wrote: a pipeline file, or the values of a command line.
#[derive(Debug, Clone)]
pub struct Source(Arc<NamedSource<String>>);

impl Source {
    /// A text and the name under which people know it.
    pub fn new(name: impl AsRef<str>, text: impl Into<String>) -> Self {
        Self(Arc::new(NamedSource::new(name, text.into())))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.inner()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The name without its folder and extension.
    pub(crate) fn stem(&self) -> String {
        let stem = std::path::Path::new(self.name()).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Ties problems to this text, in the order of their places, each once.
    #[must_use]
    pub fn tie(&self, mut problems: Vec<Problem>) -> Problems {
        problems.sort_by_key(|problem| problem.span.start);
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert(problem.clone()));
        // What every cell of a large matrix has again, and what many stages have.
        let line = |problem: &Problem| line_of(self.text(), &problem.span);
        let problems = summed_up(problems, MOST_AT_A_PLACE, |problem| (kind(problem), line(problem)), &line);
        let problems = summed_up(problems, MOST_IN_A_TEXT, kind, &line);
        let located = |problem| LocatedProblem { problem, source: self.clone(), code: "pipeline::invalid" };
        Problems(problems.into_iter().map(located).collect())
    }
}

/// What is wrong, without what is named: such problems are of one kind.
fn kind(problem: &Problem) -> String {
    let unquoted = problem.message.split('`').step_by(2).collect::<Vec<_>>().join("`");
    unquoted.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// Problems of which groups that are too large have become their first, which counts the others and names their lines.
fn summed_up<K: Eq + std::hash::Hash>(
    problems: Vec<Problem>,
    most: usize,
    group: impl Fn(&Problem) -> K,
    line: &impl Fn(&Problem) -> usize,
) -> Vec<Problem> {
    let mut lines: HashMap<K, Vec<usize>> = HashMap::new();
    for problem in &problems {
        lines.entry(group(problem)).or_default().push(line(problem));
    }
    let summed_up = |mut problem: Problem| {
        let key = group(&problem);
        let Some(others) = lines.get_mut(&key).filter(|lines| lines.len() > most || lines.is_empty()) else {
            return Some(problem);
        };
        // The first takes the lines of all.
        let mut others = std::mem::take(others).into_iter();
        let first = others.next()?;
        let count = others.len();
        let mut others: Vec<String> =
            others.filter(|line| *line != first).map(|line| line.to_string()).collect();
        others.dedup();
        let more = if others.len() > MOST_IN_A_TEXT { ", …" } else { "" };
        others.truncate(MOST_IN_A_TEXT);
        let place =
            if others.is_empty() { String::new() } else { format!(" in lines {}{more}", others.join(", ")) };
        problem.message.push_str(&format!(" (and {count} more like this{place})"));
        Some(problem)
    };
    problems.into_iter().filter_map(summed_up).collect()
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
}

/// Everything that is wrong with one text; at least one thing.
#[derive(Debug)]
pub struct Problems(pub Vec<LocatedProblem>);

impl Problems {
    /// The same with another stable code, for texts that are not part of a pipeline.
    #[must_use]
    pub fn coded(mut self, code: &'static str) -> Self {
        self.0.iter_mut().for_each(|problem| problem.code = code);
        self
    }

    /// The first of them, where a list would be too much.
    pub(crate) fn first(self) -> Report {
        let mut problems = self.0.into_iter();
        problems.next().map_or_else(|| InternalError::new("problems without a problem").into(), Report::new)
    }
}

/// A problem and the text it is in.
#[derive(Debug, Clone)]
pub struct LocatedProblem {
    problem: Problem,
    source: Source,
    code: &'static str,
}

impl LocatedProblem {
    /// The text that has it.
    pub(crate) fn text(&self) -> &str {
        self.source.text()
    }

    /// Its place in the text.
    pub(crate) fn span(&self) -> &Range<usize> {
        &self.problem.span
    }

    /// The same as a mistake in options of a command: in one, or in the values of several together.
    pub(crate) fn mistake(&self, options: &[String]) -> Mistake {
        let Problem { message, label, help, .. } = &self.problem;
        let label = Some(label).filter(|_| !self.problem.is_unlabelled()).cloned();
        let (message, together) = match options {
            [option] => (format!("{option}: {message}"), None),
            several => (message.clone(), Some(format!("check {}", several.join(", ")))),
        };
        let help: Vec<String> = label.into_iter().chain(help.clone()).chain(together).collect();
        Mistake::new(message, if help.is_empty() { "see --help".to_owned() } else { help.join("; ") })
    }

    /// File, line, problem and help in one line of text.
    pub(crate) fn one_line(&self) -> String {
        let Problem { message, span, help, .. } = &self.problem;
        let line = line_of(self.source.text(), span);
        let help = help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}:{line}: {message}{help}", self.source.name())
    }
}

impl Display for LocatedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for LocatedProblem {}

impl Diagnostic for LocatedProblem {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source.0)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Range { start, end } = self.problem.span;
        let label = LabeledSpan::new(Some(self.problem.label.clone()), start, end - start);
        Some(Box::new(std::iter::once(label)))
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Place in bytes of the text.
    pub(crate) span: Range<usize>,
    /// The value.
    pub(crate) value: NodeValue,
}

/// A value of a TOML file.
#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    /// Text, a number, or a truth value.
    Scalar(Json),
    /// A list.
    Array(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// The entries.
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Place of the key.
    pub(crate) key_span: Range<usize>,
    /// The value.
    pub(crate) node: Node,
}

impl Table {
    /// Parses a text; what cannot be read is reported and left out.
    pub(crate) fn parse(text: &str, problems: &Sink) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let errors =
            errors.iter().map(|error| (error.message(), clamp(error.span().unwrap_or(0..0), text.len())));
        syntax_problems(text, errors).into_iter().for_each(|problem| problems.push(problem));
        Self::from_toml(table.get_ref(), problems)
    }

    fn from_toml(table: &DeTable<'_>, problems: &Sink) -> Self {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| Entry {
            key: AsRef::<str>::as_ref(key.get_ref() as &std::borrow::Cow<'_, str>).to_owned(),
            key_span: key.span(),
            node: Node::from_toml(value, problems),
        };
        Self { entries: table.iter().map(entry).collect() }
    }

    /// The entry of a key.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Node {
    fn from_toml(value: &Spanned<DeValue<'_>>, problems: &Sink) -> Self {
        let span = value.span();
        let value = match value.get_ref() {
            DeValue::String(text) => NodeValue::Scalar(text.to_string().into()),
            DeValue::Boolean(value) => NodeValue::Scalar((*value).into()),
            DeValue::Datetime(time) => NodeValue::Scalar(time.to_string().into()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => NodeValue::Scalar(number.into()),
                Err(_) => {
                    let problem = Problem::new("this number is too large", &span);
                    problems.push(problem.help("integers have 64 bits"));
                    NodeValue::Scalar(0.into())
                }
            },
            DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => NodeValue::Scalar(number.into()),
                None => {
                    problems.push(Problem::new("this is not a finite number", &span));
                    NodeValue::Scalar(0.into())
                }
            },
            DeValue::Array(array) => {
                NodeValue::Array(array.iter().map(|value| Self::from_toml(value, problems)).collect())
            }
            DeValue::Table(table) => NodeValue::Table(Table::from_toml(table, problems)),
        };
        Self { span, value }
    }

    /// The text, if it is text.
    #[must_use]
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The table, if it is one.
    #[must_use]
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            NodeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// What it is, in words.
    #[must_use]
    pub(crate) fn describe(&self) -> &'static str {
        match &self.value {
            NodeValue::Scalar(Json::String(_)) => "text",
            NodeValue::Scalar(Json::Number(_)) => "a number",
            NodeValue::Scalar(_) => "a truth value",
            NodeValue::Array(_) => "a list",
            NodeValue::Table(_) => "a table",
        }
    }

    /// The value without places.
    #[must_use]
    pub(crate) fn plain(&self) -> Json {
        match &self.value {
            NodeValue::Scalar(value) => value.clone(),
            NodeValue::Array(nodes) => nodes.iter().map(Self::plain).collect(),
            NodeValue::Table(table) => {
                let pairs = table.entries.iter().map(|entry| (entry.key.clone(), entry.node.plain()));
                Json::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Place of the value at a path of keys and indexes; the innermost place known.
    #[must_use]
    pub(crate) fn span_at(&self, path: &[String]) -> Range<usize> {
        let Some((first, rest)) = path.split_first() else {
            return self.span.clone();
        };
        let inner = match &self.value {
            NodeValue::Table(table) => table.get(first).map(|entry| &entry.node),
            NodeValue::Array(nodes) => first.parse::<usize>().ok().and_then(|index| nodes.get(index)),
            NodeValue::Scalar(_) => None,
        };
        inner.map_or_else(|| self.span.clone(), |node| node.span_at(rest))
    }
}

/// A bracket that is never closed makes every line after it look wrong: the first faults say enough.
const MOST_SYNTAX_PROBLEMS: usize = 3;

/// Syntax errors. A table that is defined twice is one error, and its contents are not reported again.
fn syntax_problems<'a>(text: &str, errors: impl Iterator<Item = (&'a str, Range<usize>)>) -> Vec<Problem> {
    let mut repeated_tables = Vec::new();
    let mut problems = Vec::new();
    for (message, span) in errors {
        if problems.len() == MOST_SYNTAX_PROBLEMS {
            break;
        }
        if message != "duplicate key" {
            problems.push(Problem::new(message, &span));
            continue;
        }
        let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let header = if text[line..].starts_with('[') {
            line
        } else {
            text[..line].rfind("\n[").map_or(0, |end| end + 1)
        };
        if header == line {
            repeated_tables.push(header);
        } else if repeated_tables.contains(&header) {
            continue;
        }
        let name = text[span.clone()].to_owned();
        problems.push(Problem::new(format!("`{name}` is defined twice"), &span).label("this is the second"));
    }
    problems
}

fn clamp(span: Range<usize>, length: usize) -> Range<usize> {
    span.start.min(length)..span.end.min(length)
}

pub(crate) fn sub_table(table: &Table, key: &str, problems: &Sink) -> Table {
    match table.get(key).map(|entry| &entry.node) {
        None => Table::default(),
        Some(node) => node.table().cloned().unwrap_or_else(|| {
            problems.push(wrong_form(&format!("`{key}`"), "a table", node));
            Table::default()
        }),
    }
}

pub(crate) fn wrong_form(what: &str, wanted: &str, node: &Node) -> Problem {
    Problem::new(format!("{what} should be {wanted}"), &node.span)
        .label(format!("this is {}", node.describe()))
}

pub(crate) fn unknown_keys(table: &Table, known: &[&str], what: &str, problems: &Sink) {
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let problem = Problem::new(format!("unknown key `{}`", entry.key), &entry.key_span);
        problems.push(problem.suggest(&entry.key, what, known.iter().copied()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_suggested_and_a_strange_one_is_not() {
        assert_eq!(closest("shap", &["costs", "shape"]), Some("shape"));
        assert_eq!(closest("annealling", &["linear", "annealing"]), Some("annealing"));
        assert_eq!(closest("f", &["T", "F"]), Some("F"));
        assert_eq!(closest("qqq", &["costs", "shape"]), None);
    }

    #[test]
    fn many_problems_of_one_kind_are_one_message_with_a_count() {
        let at = |message: String, place: usize| Problem::new(message, &(place..place + 1));
        let shown = |text: &str, problems: Vec<Problem>| -> Vec<String> {
            Source::new("p", text).tie(problems).0.iter().map(ToString::to_string).collect()
        };
        // Every cell of a sweep has it again.
        let cells = (0..1000).map(|number| at(format!("cell `{number}` is wrong"), 0));
        let found = shown("text", cells.chain([at("another".to_owned(), 0)]).collect());
        assert_eq!(found, ["cell `0` is wrong (and 999 more like this)", "another"]);
        // Every stage has it.
        let stages = (0..12).map(|line| at(format!("there is no kind `{line}`"), 2 * line));
        let found = shown(&"x\n".repeat(12), stages.collect());
        let lines = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …";
        assert_eq!(found, [format!("there is no kind `0` (and 11 more like this in lines {lines})")]);
        let few = (0..4).map(|line| at(format!("there is no kind `{line}`"), 2 * line));
        assert_eq!(shown(&"x\n".repeat(4), few.collect()).len(), 4);
    }

    #[test]
    fn a_long_list_of_names_is_only_for_those_who_get_no_suggestion() {
        let names: Vec<String> = (0..60).map(|number| format!("map/kind-{number}")).collect();
        let suggest =
            |wrong: &str| Problem::new("", &(0..0)).suggest(wrong, "kinds", names.iter().map(String::as_str));
        assert_eq!((suggest("map/kind-7x").help, suggest("zzz").help.is_some()), (None, true));
    }

    #[test]
    fn values_have_their_positions() {
        let text = "[a]\nb = [1, 2.5]\n";
        let problems = Sink::default();
        let table = Table::parse(text, &problems);
        assert_eq!(problems.count(), 0);
        let node = &table.get("a").unwrap().node;
        assert_eq!(&text[node.span_at(&["b".into(), "1".into()])], "2.5");
        assert_eq!(node.plain(), serde_json::json!({"b": [1, 2.5]}));
    }

    #[test]
    fn several_faults_of_syntax_are_all_reported() {
        let problems = Sink::default();
        Table::parse("a = \nb = 1\nb = 2\nc = 99999999999999999999\n", &problems);
        assert!(problems.count() >= 3, "{problems:?}");
    }
}
