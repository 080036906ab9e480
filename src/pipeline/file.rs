//! The pipeline file as it is written: keys known, values of the right form, nothing expanded yet.

use std::ops::Range;

use super::Problem;
use super::matrix::Key;
use super::node::{Entry, Node, NodeValue, Table, sub_table, unknown_keys, wrong_form};
use super::resources::{Batch, batch, memory, retries};

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
            save_on_failure: save_on_failure(&table, problems),
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
    let Some(entry) = table.get("exclude") else { return Vec::new() };
    match &entry.node.value {
        NodeValue::Array(nodes) if nodes.iter().all(|node| node.table().is_some()) => nodes.clone(),
        _ => {
            problems.push(wrong_form("`exclude`", "a list of tables such as [{ seed = 3 }]", &entry.node));
            Vec::new()
        }
    }
}

fn threads(table: &Table, problems: &mut Vec<Problem>) -> Option<usize> {
    let entry = table.get("threads")?;
    let threads = entry.node.plain().as_u64().filter(|&threads| threads > 0);
    if threads.is_none() {
        problems.push(wrong_form("`threads`", "a number of cores, at least 1", &entry.node));
    }
    threads.map(|threads| threads as usize)
}

fn launcher(table: &Table, problems: &mut Vec<Problem>) -> Option<Entry> {
    let entry = table.get("launcher")?;
    if entry.node.text().is_none() {
        problems.push(wrong_form("`launcher`", "a command such as \"mpirun -n 4\"", &entry.node));
        return None;
    }
    Some(entry.clone())
}

fn text_of(table: &Table, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let node = &table.get(key)?.node;
    let text = node.text().map(str::to_owned);
    if text.is_none() {
        problems.push(wrong_form(&format!("`{key}`"), "text", node));
    }
    text
}

fn save_on_failure(table: &Table, problems: &mut Vec<Problem>) -> bool {
    let Some(node) = table.get("save_on_failure").map(|entry| &entry.node) else { return false };
    let value = node.plain().as_bool();
    if value.is_none() {
        problems.push(wrong_form("`save_on_failure`", "true or false", node));
    }
    value.unwrap_or(false)
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
