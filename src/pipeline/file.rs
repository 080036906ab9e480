//! The parsed pipeline file before expansion: all keys are known and values have the right form. It includes
//! the resources of stages (`memory`), settings of batch systems (`retries`, `[batch]`), and `[tables.NAME]`:
//! SQL queries that run after every run.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::matrix::Key;
use super::template::{Resolved, Scope};
use crate::query::{self, Form, TableQuestion};
use crate::selector::show;
use crate::source::{Entry, Node, NodeValue, Problem, Sink, Table, sub_table, unknown_keys, wrong_form};

const TOP_KEYS: &[&str] =
    &["name", "description", "params", "stages", "tables", "gates", "batch", "save_on_failure"];
const STAGE_KEYS: &[&str] = &[
    "uses", "with", "needs", "foreach", "matrix", "zip", "exclude", "save", "threads", "memory", "launcher",
    "retries",
];
/// The matrix key of files, if a pipeline gives it no name.
const FILE_KEY: &str = "file";

/// A pipeline file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Table,
    pub(crate) stages: Vec<StageBlock>,
    pub(crate) tables: Table,
    pub(crate) gates: Table,
    pub(crate) batch: Batch,
    pub(crate) save_on_failure: bool,
}

/// One `[stages.NAME]`.
#[derive(Debug, Clone)]
pub(crate) struct StageBlock {
    pub(crate) name: String,
    pub(crate) name_span: Range<usize>,
    pub(crate) uses: Node,
    pub(crate) with: Table,
    pub(crate) with_span: Range<usize>,
    pub(crate) needs: Vec<NeedBlock>,
    pub(crate) foreach: Option<Foreach>,
    pub(crate) matrix: Table,
    pub(crate) zip: Table,
    pub(crate) exclude: Vec<Node>,
    pub(crate) save: Table,
    pub(crate) threads: Option<usize>,
    pub(crate) memory: Option<u64>,
    pub(crate) launcher: Option<Entry>,
    pub(crate) retries: Option<u32>,
}

/// What a stage follows: it has a cell for each.
#[derive(Debug, Clone)]
pub(crate) enum Foreach {
    /// Files and folders.
    Files {
        /// The pattern of their names.
        pattern: Node,
        /// The matrix key that has the name.
        key: Key,
    },
    /// Cells of another stage.
    Stage {
        /// Its name.
        name: String,
        /// Its place.
        span: Range<usize>,
    },
    /// Something that cannot be understood, which has been reported.
    Broken {
        /// Its place.
        span: Range<usize>,
    },
}

impl Foreach {
    /// Its place.
    pub(crate) fn span(&self) -> &Range<usize> {
        match self {
            Self::Files { pattern, .. } => &pattern.span,
            Self::Stage { span, .. } | Self::Broken { span } => span,
        }
    }
}

/// One entry of `needs`: a port of ours and the selectors connected to it.
#[derive(Debug, Clone)]
pub(crate) struct NeedBlock {
    pub(crate) port: String,
    pub(crate) port_span: Range<usize>,
    pub(crate) selectors: Vec<(String, Range<usize>)>,
}

/// The keys of a table, each of which has to have a value of the right form.
struct Keys<'a> {
    table: &'a Table,
    problems: &'a Sink,
}

impl<'a> Keys<'a> {
    /// The keys of a table that has no others than `known`, which are the keys of `what`.
    fn of(table: &'a Table, known: &[&str], what: &str, problems: &'a Sink) -> Self {
        unknown_keys(table, known, what, problems);
        Self { table, problems }
    }

    /// The value of a key as `read` takes it; one of another form is reported.
    fn value<T>(&self, key: &str, wanted: &str, read: impl FnOnce(&'a Node) -> Option<T>) -> Option<T> {
        let node = &self.table.get(key)?.node;
        read(node).or_else(|| self.problems.refuse(wrong_form(&format!("`{key}`"), wanted, node)))
    }

    fn table(&self, key: &str) -> Table {
        sub_table(self.table, key, self.problems)
    }

    fn text(&self, key: &str) -> Option<String> {
        self.value(key, "text", |node| node.text().map(str::to_owned))
    }

    fn number(&self, key: &str, wanted: &str, range: RangeInclusive<u64>) -> Option<u64> {
        self.value(key, wanted, |node| node.plain().as_u64().filter(|number| range.contains(number)))
    }
}

impl File {
    /// Reads a file; `None` if it is not TOML, for then nothing else that could be said of it is sure.
    pub(crate) fn parse(text: &str, problems: &Sink) -> Option<Self> {
        let table = Table::parse(text, problems);
        if problems.count() > 0 {
            return None;
        }
        let keys = Keys::of(&table, TOP_KEYS, "keys of a pipeline file", problems);
        let mut stages = Vec::new();
        for entry in keys.table("stages").entries {
            check_name(&entry, "a stage", problems);
            stages.extend(StageBlock::parse(entry, problems));
        }
        if stages.is_empty() && problems.count() == 0 {
            let problem = Problem::new("the pipeline has no stages", &(text.len()..text.len()));
            let help = "a stage is a table [stages.NAME] with a key `uses`; `hopmap stages` lists the kinds";
            problems.push(problem.help(help));
        }
        let name = keys.text("name");
        let description = keys.text("description");
        let (parameters, tables, gates) = (keys.table("params"), keys.table("tables"), keys.table("gates"));
        gates.entries.iter().for_each(|entry| check_name(entry, "a gate", problems));
        let batch = batch(&keys.table("batch"), problems);
        let save_on_failure = keys.value("save_on_failure", "true or false", |node| node.plain().as_bool());
        let save_on_failure = save_on_failure.unwrap_or(false);
        Some(Self { name, description, parameters, stages, tables, gates, batch, save_on_failure })
    }
}

impl StageBlock {
    fn parse(entry: Entry, problems: &Sink) -> Option<Self> {
        let Entry { key: name, key_span: name_span, node, .. } = entry;
        let NodeValue::Table(table) = &node.value else {
            return problems.refuse(wrong_form("a stage", "a table", &node));
        };
        let keys = Keys::of(table, STAGE_KEYS, "keys of a stage", problems);
        let Some(uses) = table.get("uses") else {
            let problem = Problem::new(format!("stage `{name}` does not say what it uses"), &name_span);
            let problem = problem.label("`uses` is missing").help("`hopmap stages` lists the kinds");
            return problems.refuse(problem);
        };
        keys.value("uses", "text such as \"map/annealing\"", Node::text)?;
        let with_span = table.get("with").map_or_else(|| name_span.clone(), |entry| entry.key_span.clone());
        let tables = |node: &Node| match &node.value {
            NodeValue::Array(nodes) if nodes.iter().all(|node| node.table().is_some()) => Some(nodes.clone()),
            _ => None,
        };
        let exclude = "a list of tables such as [{ seed = 3 }]";
        let launcher = "a command such as \"mpirun -n 4\"";
        Some(Self {
            uses: uses.node.clone(),
            with: keys.table("with"),
            with_span,
            needs: needs(&keys.table("needs"), problems),
            foreach: table.get("foreach").map(|entry| foreach(&entry.node, problems)),
            matrix: keys.table("matrix"),
            zip: keys.table("zip"),
            exclude: keys.value("exclude", exclude, tables).unwrap_or_default(),
            save: keys.table("save"),
            threads: keys
                .number("threads", "a number of cores, at least 1", 1..=u64::MAX)
                .map(|threads| threads as usize),
            memory: memory(&keys),
            launcher: keys
                .value("launcher", launcher, Node::text)
                .and_then(|_| table.get("launcher").cloned()),
            retries: keys
                .number("retries", "a number such as 2; 0 for none", 0..=100)
                .map(|number| number as u32),
            name,
            name_span,
        })
    }
}

fn needs(table: &Table, problems: &Sink) -> Vec<NeedBlock> {
    let wanted = "the name of a stage, or a list of names";
    let selector = |node: &Node| match node.text() {
        Some(text) => Some((text.to_owned(), node.span.clone())),
        None => problems.refuse(wrong_form("a value of `needs`", wanted, node)),
    };
    let need = |entry: &Entry| NeedBlock {
        port: entry.key.clone(),
        port_span: entry.key_span.clone(),
        selectors: match &entry.node.value {
            NodeValue::Array(nodes) => nodes.iter().filter_map(selector).collect(),
            _ => selector(&entry.node).into_iter().collect(),
        },
    };
    table.entries.iter().map(need).collect()
}

fn foreach(node: &Node, problems: &Sink) -> Foreach {
    let span = node.span.clone();
    match node.text() {
        Some(name) => Foreach::Stage { name: name.to_owned(), span },
        None => files(node, problems).unwrap_or(Foreach::Broken { span }),
    }
}

fn files(node: &Node, problems: &Sink) -> Option<Foreach> {
    let Some(files) = node.table() else {
        let wanted = "the name of a stage, or { glob = \"…\" }";
        return problems.refuse(wrong_form("`foreach`", wanted, node));
    };
    let keys = Keys::of(files, &["glob", "key"], "keys of `foreach`", problems);
    if files.get("glob").is_none() {
        let problem = Problem::new("`foreach` does not say which files", &node.span);
        let problem = problem.label("`glob` is missing").help("for example { glob = \"traces/**/*.otf2\" }");
        return problems.refuse(problem);
    }
    let glob = |node: &Node| node.text().map(|_| node.clone());
    let pattern = keys.value("glob", "text such as \"traces/**/*.otf2\"", glob)?;
    let named = |node: &Node| {
        let name = node.text().filter(|name| is_name(name))?;
        Some(Key { name: name.to_owned(), span: node.span.clone(), is_parameter: false })
    };
    let key = match files.get("key") {
        Some(_) => keys.value("key", "a name of letters, digits, `-` and `_`", named)?,
        None => Key { name: FILE_KEY.to_owned(), span: node.span.clone(), is_parameter: false },
    };
    Some(Foreach::Files { pattern, key })
}

fn check_name(entry: &Entry, of_what: &str, problems: &Sink) {
    if !is_name(&entry.key) {
        let problem = Problem::new(format!("`{}` is not a name for {of_what}", entry.key), &entry.key_span);
        problems.push(problem.help("names have letters, digits, `-` and `_`"));
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !text.is_empty() && text.chars().all(is_part)
}

/// Retries of a stage that does not say how many.
pub(crate) const RETRIES: u32 = 2;

/// `[batch]`: how a pipeline deals with batch systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Jobs that are in the queue at once.
    pub(crate) jobs: usize,
    /// Time without an answer after which a batch system is given up.
    pub(crate) patience: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self { jobs: 20, patience: Duration::from_mins(10) }
    }
}

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Bytes of a size such as `4 GB` or `512MiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write for example 4 GB or 512 MiB");
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
    let bytes = (number * *factor as f64).round();
    if (1.0..=i64::MAX as f64).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// A number of bytes as people read it.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let (unit, factor) = UNITS[..5].iter().rev().find(|(_, factor)| bytes >= *factor).unwrap_or(&UNITS[0]);
    let rounded = format!("{:.1}", bytes as f64 / *factor as f64);
    format!("{} {unit}", rounded.trim_end_matches(".0"))
}

fn memory(keys: &Keys<'_>) -> Option<u64> {
    let (text, span) =
        keys.value("memory", "a size such as \"4 GB\"", |node| Some((node.text()?, &node.span)))?;
    bytes(text).map_or_else(|message| keys.problems.refuse(Problem::new(message, span)), Some)
}

fn batch(table: &Table, problems: &Sink) -> Batch {
    let keys = Keys::of(table, &["jobs", "patience"], "keys of [batch]", problems);
    let default = Batch::default();
    let jobs = keys.number("jobs", "a number of jobs, at least 1", 1..=100_000);
    let time = |node: &Node| hopmap_command::duration(node.text()?).ok();
    let patience = keys.value("patience", "a time such as \"10 min\"", time);
    Batch {
        jobs: jobs.map_or(default.jobs, |jobs| jobs as usize),
        patience: patience.unwrap_or(default.patience),
    }
}

/// The questions of a pipeline file, checked as far as that is possible before there are results; or why they are not.
pub(crate) fn questions(
    tables: &Table,
    stages: &[StageBlock],
    scope: &Scope<'_>,
    text: &str,
) -> (Vec<TableQuestion>, Option<Problem>) {
    let stages: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let mut questions: Vec<TableQuestion> =
        tables.entries.iter().filter_map(|entry| parse(entry, scope)).collect();
    let missing = query::missing(&questions);
    if missing.is_none() {
        let mut checked = query::check(&questions, &stages).into_iter();
        questions.retain(|question| match checked.next() {
            Some(Err(problem)) => {
                scope.problems.push(question.located(problem, text));
                false
            }
            _ => true,
        });
    }
    repeated_saves(&questions, scope.problems);
    (questions, missing)
}

fn parse(entry: &Entry, scope: &Scope<'_>) -> Option<TableQuestion> {
    let problems = scope.problems;
    check_name(entry, "a table", problems);
    let NodeValue::Table(table) = &entry.node.value else {
        return problems.refuse(wrong_form(
            "an entry of `tables`",
            "a table with the key `sql`",
            &entry.node,
        ));
    };
    let keys = Keys::of(table, &["sql", "save"], "keys of a table", problems);
    let Some(Entry { node: sql, .. }) = table.get("sql") else {
        let problem = Problem::new(format!("table `{}` asks nothing", entry.key), &entry.key_span);
        let problem = problem.label("`sql` is missing").help("for example sql = \"SELECT * FROM cells\"");
        return problems.refuse(problem);
    };
    let text = keys.value("sql", "text such as \"SELECT * FROM cells\"", Node::text)?;
    let save = table.get("save").map(|entry| &entry.node);
    let path = keys.value("save", "a path such as \"out/summary.csv\"", Node::text);
    Some(TableQuestion {
        name: entry.key.clone(),
        sql: text.to_owned(),
        save: save.zip(path).and_then(|(node, path)| place(node, path, scope)),
        span: sql.span.clone(),
        save_span: save.map_or(0..0, |node| node.span.clone()),
    })
}

fn place(node: &Node, text: &str, scope: &Scope<'_>) -> Option<PathBuf> {
    let Resolved { value, base } = scope.resolve_text(node, text);
    let path = scope.folders.resolve(Path::new(&show(&value)), base);
    if Form::of_path(&path).is_none() {
        let problem = Problem::new("this file extension is unknown", &node.span);
        return scope.problems.refuse(problem.help("extensions: .csv, .json, .parquet, .arrow, .txt"));
    }
    Some(path)
}

fn repeated_saves(questions: &[TableQuestion], problems: &Sink) {
    for (place, question) in questions.iter().enumerate() {
        let same = |other: &&TableQuestion| other.save.is_some() && other.save == question.save;
        if let Some(other) = questions[..place].iter().find(same) {
            let message = format!("tables `{}` and `{}` save to the same place", other.name, question.name);
            problems.push(Problem::new(message, &question.span).help("give each its own path"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, size) in [
            ("4 GB", 4_000_000_000),
            ("512MiB", 536_870_912),
            ("1.5 kB", 1_500),
            ("1 b", 1),
            ("2tb", 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "4", "GB", "4 XB", "-1 GB", "0 GB", "1e9 B", "9999999999 TB", "1.2.3 GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        let shown = [(1, "1 B"), (1_500, "1.5 kB"), (4_000_000_000, "4 GB"), (17_179_869_184, "17.2 GB")];
        for (size, text) in shown {
            assert_eq!(show_bytes(size), text);
        }
    }
}
