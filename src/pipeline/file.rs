//! The pipeline file as it is written: keys known, values of the right form, nothing expanded yet.

use std::ops::Range;

use super::Problem;
use super::node::{Entry, Node, NodeValue, Table};

const TOP_KEYS: &[&str] = &["name", "description", "params", "stages", "gates"];
const STAGE_KEYS: &[&str] = &["uses", "with", "needs", "matrix", "save", "threads", "launcher"];

/// A pipeline file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Table,
    pub(crate) stages: Vec<StageBlock>,
    pub(crate) gates: Table,
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
    pub(crate) matrix: Table,
    pub(crate) save: Table,
    pub(crate) threads: Option<usize>,
    pub(crate) launcher: Option<Entry>,
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
            gates: gates(&table, problems),
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
            matrix: sub_table(table, "matrix", problems),
            save: sub_table(table, "save", problems),
            threads: threads(table, problems),
            launcher: launcher(table, problems),
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

fn sub_table(table: &Table, key: &str, problems: &mut Vec<Problem>) -> Table {
    match table.get(key).map(|entry| &entry.node) {
        None => Table::default(),
        Some(node) => node.table().cloned().unwrap_or_else(|| {
            problems.push(wrong_form(&format!("`{key}`"), "a table", node));
            Table::default()
        }),
    }
}

fn text_of(table: &Table, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let node = &table.get(key)?.node;
    let text = node.text().map(str::to_owned);
    if text.is_none() {
        problems.push(wrong_form(&format!("`{key}`"), "text", node));
    }
    text
}

pub(crate) fn wrong_form(what: &str, wanted: &str, node: &Node) -> Problem {
    Problem::new(format!("{what} should be {wanted}"), &node.span)
        .label(format!("this is {}", node.describe()))
}

fn unknown_keys(table: &Table, known: &[&str], what: &str, problems: &mut Vec<Problem>) {
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let problem = Problem::new(format!("unknown key `{}`", entry.key), &entry.key_span);
        problems.push(problem.suggest(&entry.key, what, known.iter().copied()));
    }
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

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}
