//! The pipeline file as it is written: keys known, values of the right form, nothing expanded yet. With
//! what a stage takes of a machine, and how a pipeline deals with batch systems (`memory`, `retries`, `[batch]`), and `[tables.NAME]`:
//! questions in SQL that are asked after every run.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Problem;
use super::matrix::Key;
use super::node::{Entry, Node, NodeValue, Table, sub_table, unknown_keys, wrong_form};
use super::template::{Resolved, Scope};
use crate::query;
use crate::query::{Form, TableQuestion};

const TOP_KEYS: &[&str] =
    &["name", "description", "params", "stages", "tables", "gates", "batch", "save_on_failure"];
const STAGE_KEYS: &[&str] = &[
    "uses", "with", "needs", "foreach", "matrix", "zip", "exclude", "save", "threads", "memory", "launcher",
    "retries",
];
const FOREACH_KEYS: &[&str] = &["glob", "key"];
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
        /// Where it stands.
        span: Range<usize>,
    },
    /// Something that cannot be understood, which has been reported.
    Broken {
        /// Where it stands.
        span: Range<usize>,
    },
}

impl Foreach {
    /// Where it stands.
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

impl File {
    /// Reads a file; `None` if it is not TOML, for then nothing else that could be said of it is sure.
    pub(crate) fn parse(text: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let table = Table::parse(text, problems);
        if !problems.is_empty() {
            return None;
        }
        unknown_keys(&table, TOP_KEYS, "keys of a pipeline file", problems);
        let mut stages = Vec::new();
        for entry in sub_table(&table, "stages", problems).entries {
            check_name(&entry, "a stage", problems);
            stages.extend(StageBlock::parse(entry, problems));
        }
        if stages.is_empty() && problems.is_empty() {
            let end = text.len();
            let problem = Problem::new("the pipeline has no stages", &(end..end));
            problems.push(
                problem.help(
                    "a stage is a table [stages.NAME] with a key `uses`; `hopmap stages` lists the kinds",
                ),
            );
        }
        Some(Self {
            name: text_of(&table, "name", problems),
            description: text_of(&table, "description", problems),
            parameters: sub_table(&table, "params", problems),
            stages,
            tables: sub_table(&table, "tables", problems),
            gates: gates(&table, problems),
            batch: batch(&table, problems),
            save_on_failure: value(&table, "save_on_failure", "true or false", problems, |node| {
                node.plain().as_bool()
            })
            .unwrap_or(false),
        })
    }
}

impl StageBlock {
    fn parse(entry: Entry, problems: &mut Vec<Problem>) -> Option<Self> {
        let Entry { key: name, key_span: name_span, node } = entry;
        let NodeValue::Table(table) = &node.value else {
            problems.push(wrong_form("a stage", "a table", &node));
            return None;
        };
        unknown_keys(table, STAGE_KEYS, "keys of a stage", problems);
        let Some(uses) = table.get("uses") else {
            let problem = Problem::new(format!("stage `{name}` does not say what it uses"), &name_span);
            problems.push(problem.label("`uses` is missing").help("`hopmap stages` lists the kinds"));
            return None;
        };
        if uses.node.text().is_none() {
            problems.push(wrong_form("`uses`", "text such as \"map/annealing\"", &uses.node));
            return None;
        }
        let with_span = table.get("with").map_or_else(|| name_span.clone(), |entry| entry.key_span.clone());
        Some(Self {
            uses: uses.node.clone(),
            with: sub_table(table, "with", problems),
            with_span,
            needs: needs(&sub_table(table, "needs", problems), problems),
            foreach: foreach(table, problems),
            matrix: sub_table(table, "matrix", problems),
            zip: sub_table(table, "zip", problems),
            exclude: exclude(table, problems),
            save: sub_table(table, "save", problems),
            threads: threads(table, problems),
            memory: memory(table, problems),
            launcher: launcher(table, problems),
            retries: retries(table, problems),
            name,
            name_span,
        })
    }
}

fn needs(table: &Table, problems: &mut Vec<Problem>) -> Vec<NeedBlock> {
    let mut selector = |node: &Node| match node.text() {
        Some(text) => Some((text.to_owned(), node.span.clone())),
        None => {
            problems.push(wrong_form("a value of `needs`", "the name of a stage, or a list of names", node));
            None
        }
    };
    let mut need = |entry: &Entry| NeedBlock {
        port: entry.key.clone(),
        port_span: entry.key_span.clone(),
        selectors: match &entry.node.value {
            NodeValue::Array(nodes) => nodes.iter().filter_map(&mut selector).collect(),
            _ => selector(&entry.node).into_iter().collect(),
        },
    };
    table.entries.iter().map(&mut need).collect()
}

fn foreach(table: &Table, problems: &mut Vec<Problem>) -> Option<Foreach> {
    let node = &table.get("foreach")?.node;
    if let Some(name) = node.text() {
        return Some(Foreach::Stage { name: name.to_owned(), span: node.span.clone() });
    }
    let files = files(node, problems);
    Some(files.unwrap_or_else(|| Foreach::Broken { span: node.span.clone() }))
}

fn files(node: &Node, problems: &mut Vec<Problem>) -> Option<Foreach> {
    let Some(files) = node.table() else {
        problems.push(wrong_form("`foreach`", "the name of a stage, or { glob = \"…\" }", node));
        return None;
    };
    unknown_keys(files, FOREACH_KEYS, "keys of `foreach`", problems);
    let Some(Entry { node: pattern, .. }) = files.get("glob") else {
        let problem = Problem::new("`foreach` does not say which files", &node.span);
        let problem = problem.label("`glob` is missing");
        problems.push(problem.help("for example { glob = \"traces/**/*.otf2\" }"));
        return None;
    };
    if pattern.text().is_none() {
        problems.push(wrong_form("`glob`", "text such as \"traces/**/*.otf2\"", pattern));
        return None;
    }
    let key = files.get("key").map(|entry| &entry.node);
    let name = key.map_or(Some(FILE_KEY), |key| key.text().filter(|name| is_name(name)));
    let span = key.map_or(&node.span, |key| &key.span).clone();
    match (name, key) {
        (Some(name), _) => Some(Foreach::Files {
            pattern: pattern.clone(),
            key: Key { name: name.into(), span, is_parameter: false },
        }),
        (None, key) => {
            problems.push(wrong_form("`key`", "a name of letters, digits, `-` and `_`", key.unwrap_or(node)));
            None
        }
    }
}

fn exclude(table: &Table, problems: &mut Vec<Problem>) -> Vec<Node> {
    let tables = |node: &Node| match &node.value {
        NodeValue::Array(nodes) if nodes.iter().all(|node| node.table().is_some()) => Some(nodes.clone()),
        _ => None,
    };
    value(table, "exclude", "a list of tables such as [{ seed = 3 }]", problems, tables).unwrap_or_default()
}

/// The value of a key as `read` takes it; one of another form is reported.
fn value<'a, T>(
    table: &'a Table,
    key: &str,
    wanted: &str,
    problems: &mut Vec<Problem>,
    read: impl FnOnce(&'a Node) -> Option<T>,
) -> Option<T> {
    let node = &table.get(key)?.node;
    let value = read(node);
    if value.is_none() {
        problems.push(wrong_form(&format!("`{key}`"), wanted, node));
    }
    value
}

fn threads(table: &Table, problems: &mut Vec<Problem>) -> Option<usize> {
    let threads = number(table, "threads", "a number of cores, at least 1", 1..=u64::MAX, problems);
    threads.map(|threads| threads as usize)
}

fn launcher(table: &Table, problems: &mut Vec<Problem>) -> Option<Entry> {
    value(table, "launcher", "a command such as \"mpirun -n 4\"", problems, Node::text)?;
    table.get("launcher").cloned()
}

fn text_of(table: &Table, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
    value(table, key, "text", problems, |node| node.text().map(str::to_owned))
}

fn gates(table: &Table, problems: &mut Vec<Problem>) -> Table {
    let gates = sub_table(table, "gates", problems);
    gates.entries.iter().for_each(|entry| check_name(entry, "a gate", problems));
    gates
}

fn check_name(entry: &Entry, of_what: &str, problems: &mut Vec<Problem>) {
    if !is_name(&entry.key) {
        let problem = Problem::new(format!("`{}` is not a name for {of_what}", entry.key), &entry.key_span);
        problems.push(problem.help("names have letters, digits, `-` and `_`"));
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}

/// Retries of a stage that does not say how many.
pub(crate) const RETRIES: u32 = 2;

/// `[batch]`: how a pipeline deals with batch systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Jobs that are in the queue at once.
    pub jobs: usize,
    /// Time without an answer after which a batch system is given up.
    pub patience: Duration,
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
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size; write for example 4 GB or 512 MiB");
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
    let bytes = (number * *factor as f64).round();
    match (1.0..=i64::MAX as f64).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err(wrong()),
    }
}

/// A number of bytes as people read it.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let (unit, factor) = UNITS[..5].iter().rev().find(|(_, factor)| bytes >= *factor).unwrap_or(&UNITS[0]);
    let rounded = format!("{:.1}", bytes as f64 / *factor as f64);
    format!("{} {unit}", rounded.trim_end_matches(".0"))
}

fn memory(table: &Table, problems: &mut Vec<Problem>) -> Option<u64> {
    let node = &table.get("memory")?.node;
    let Some(text) = node.text() else {
        problems.push(wrong_form("`memory`", "a size such as \"4 GB\"", node));
        return None;
    };
    bytes(text).map_err(|message| problems.push(Problem::new(message, &node.span))).ok()
}

fn retries(table: &Table, problems: &mut Vec<Problem>) -> Option<u32> {
    number(table, "retries", "a number such as 2; 0 for none", 0..=100, problems).map(|number| number as u32)
}

fn number(
    table: &Table,
    key: &str,
    wanted: &str,
    range: RangeInclusive<u64>,
    problems: &mut Vec<Problem>,
) -> Option<u64> {
    value(table, key, wanted, problems, |node| node.plain().as_u64().filter(|number| range.contains(number)))
}

fn batch(table: &Table, problems: &mut Vec<Problem>) -> Batch {
    let table = sub_table(table, "batch", problems);
    unknown_keys(&table, &["jobs", "patience"], "keys of [batch]", problems);
    let mut batch = Batch::default();
    if let Some(jobs) = number(&table, "jobs", "a number of jobs, at least 1", 1..=100_000, problems) {
        batch.jobs = jobs as usize;
    }
    let time = |node: &Node| humantime::parse_duration(node.text()?).ok();
    if let Some(patience) = value(&table, "patience", "a time such as \"10 min\"", problems, time) {
        batch.patience = patience;
    }
    batch
}

/// The questions of a pipeline file, checked as far as that is possible before there are results.
pub(crate) fn questions(
    tables: &Table,
    stages: &[StageBlock],
    scope: &Scope<'_>,
    text: &str,
    problems: &mut Vec<Problem>,
) -> Vec<TableQuestion> {
    let stages: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let mut questions: Vec<TableQuestion> =
        tables.entries.iter().filter_map(|entry| parse(entry, scope, problems)).collect();
    let mut checked = query::check(&questions, &stages).into_iter();
    questions.retain(|question| match checked.next() {
        Some(Err(problem)) => {
            problems.push(question.located(problem, text));
            false
        }
        _ => true,
    });
    repeated_saves(&questions, problems);
    questions
}

fn parse(entry: &Entry, scope: &Scope<'_>, problems: &mut Vec<Problem>) -> Option<TableQuestion> {
    check_name(entry, "a table", problems);
    let NodeValue::Table(table) = &entry.node.value else {
        problems.push(wrong_form("an entry of `tables`", "a table with the key `sql`", &entry.node));
        return None;
    };
    unknown_keys(table, &["sql", "save"], "keys of a table", problems);
    let Some(sql) = table.get("sql") else {
        let problem = Problem::new(format!("table `{}` asks nothing", entry.key), &entry.key_span);
        problems.push(problem.label("`sql` is missing").help("for example sql = \"SELECT * FROM cells\""));
        return None;
    };
    let Some(text) = sql.node.text() else {
        problems.push(wrong_form("`sql`", "text such as \"SELECT * FROM cells\"", &sql.node));
        return None;
    };
    let save = table.get("save");
    Some(TableQuestion {
        name: entry.key.clone(),
        sql: text.to_owned(),
        save: save.and_then(|entry| place(&entry.node, scope, problems)),
        span: sql.node.span.clone(),
        save_span: save.map_or(0..0, |entry| entry.node.span.clone()),
    })
}

fn place(node: &Node, scope: &Scope<'_>, problems: &mut Vec<Problem>) -> Option<PathBuf> {
    let Some(text) = node.text() else {
        problems.push(wrong_form("`save`", "a path such as \"out/summary.csv\"", node));
        return None;
    };
    let Resolved { value, base } = scope.resolve_text(node, text, problems);
    let path = scope.folders.resolve(Path::new(&super::matrix::show(&value)), base);
    if Form::of_path(&path).is_none() {
        let problem = Problem::new("the ending of this file stands for no form", &node.span);
        problems.push(problem.help("endings: .csv, .json, .parquet, .arrow, .txt"));
        return None;
    }
    Some(path)
}

fn repeated_saves(questions: &[TableQuestion], problems: &mut Vec<Problem>) {
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
