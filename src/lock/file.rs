//! The lock file: TOML, sorted, a line for every cell of a sweep; and what can be wrong with one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopmap_durable::{DurableError, replace_file};
use hopmap_model::{InputError, read_input};
use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::toml_line::{inline, key, quoted};

/// The version of the file that is written and read.
pub(super) const FORMAT: u32 = 1;
/// No such file is larger.
const MOST_BYTES: u64 = 256 << 20;
/// Tables whose entries are looked at one by one when what cells have in common is written once.
const PARTS: [&str; 3] = ["parameters", "needs", "outputs"];
const CELLS: &str = "cells";

pub(crate) const HEADING: &str = "\
# What the results of this pipeline were made of, and what they are. Made by `hopmap lock`; `hopmap run --locked` and
# `hopmap verify --lock` hold results against it. Digests are BLAKE3. Keep it in version control, do not edit it.
";

/// What the results of a pipeline were made of, and what they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lock {
    /// Version of hopmap that wrote it.
    pub(crate) hopmap: String,
    /// Name of the pipeline.
    pub(crate) pipeline: String,
    /// BLAKE3 of the text of the pipeline file.
    pub(crate) text: String,
    /// The parameters that were given, by name.
    pub(crate) parameters: BTreeMap<String, String>,
    /// All cells, in the order of their stages and of the values of their matrices.
    pub(crate) cells: Vec<LockedCell>,
}

/// What a cell was made of, and what it gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LockedCell {
    /// Its stage.
    #[serde(skip)]
    pub(crate) stage: String,
    /// The text in the brackets of its name; empty without a matrix.
    #[serde(skip)]
    pub(crate) label: String,
    /// Kind of the stage.
    pub(crate) uses: String,
    /// Revision of the stage.
    pub(crate) revision: u32,
    /// Whether it looked at the world.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) observes: bool,
    /// Whether it depends on a time limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) timed: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Ending::is_done")]
    pub(crate) ending: Ending,
    /// Where its inputs come from, by port.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) needs: BTreeMap<String, String>,
    /// The files it read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<LockedFile>,
    /// Digests of its outputs, by port.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) outputs: BTreeMap<String, String>,
    /// Its parameters, defaults filled in and paths left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<String, Value>,
}

/// A file that a cell read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LockedFile {
    /// Its name, relative to the parameter that names it.
    pub(crate) name: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// BLAKE3 of its contents.
    pub(crate) blake3: String,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    /// With an answer.
    #[default]
    Done,
    /// With the proof that there is none.
    Infeasible,
    /// Not at all, for something it needs has no answer.
    Blocked,
}

impl Ending {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl LockedCell {
    /// Name of the cell.
    pub(crate) fn id(&self) -> String {
        match self.label.as_str() {
            "" => self.stage.clone(),
            label => format!("{}[{label}]", self.stage),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "format")]
    _format: u32,
    hopmap: String,
    pipeline: String,
    text: String,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    #[serde(default)]
    stages: Table,
}

impl Lock {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, LockError> {
        let not_text = |reason: String| LockError::NotText { path: path.into(), reason };
        let bytes = read_input(path, MOST_BYTES).map_err(|error| match InputError::of(&error) {
            Some(fault) => not_text(fault.to_string()),
            None if error.kind() == std::io::ErrorKind::NotFound => LockError::Missing(path.into()),
            None => DurableError::io("read", path)(error).into(),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| not_text("it is not text".into()))?;
        Self::parse(path, &text)
    }

    /// Reads a text; `path` is what messages call it.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, LockError> {
        let malformed = |reason: String, place: Option<std::ops::Range<usize>>| LockError::Malformed {
            path: path.into(),
            reason,
            text: Arc::new(NamedSource::new(path.display().to_string(), text.to_owned())),
            place: place.map(Into::into),
        };
        let syntax = |error: toml::de::Error| malformed(error.message().to_owned(), error.span());
        let table: Table = toml::from_str(text).map_err(syntax)?;
        match table.get("format") {
            Some(Value::Integer(found)) if *found == i64::from(FORMAT) => {}
            Some(found) => {
                let found = found.to_string();
                return Err(LockError::Format { path: path.into(), found, known: FORMAT });
            }
            None => return Err(malformed("it has no `format`".into(), None)),
        }
        let written: Written = toml::from_str(text).map_err(syntax)?;
        let mut cells = Vec::new();
        for (stage, value) in written.stages {
            let wrong = |reason: String| malformed(format!("stage `{stage}`: {reason}"), None);
            let Value::Table(table) = value else { return Err(wrong("it should be a table".into())) };
            for (label, table) in cell_tables(table).map_err(wrong)? {
                let cell = Value::Table(table).try_into::<LockedCell>();
                let cell = cell.map_err(|error| wrong(error.message().to_owned()))?;
                if let Some(digest) = strange_digest(&cell) {
                    return Err(wrong(format!("`{digest}` is not 64 hexadecimal digits")));
                }
                cells.push(LockedCell { stage: stage.clone(), label, ..cell });
            }
        }
        let Written { hopmap, pipeline, text, parameters, .. } = written;
        Ok(Self { hopmap, pipeline, text, parameters, cells })
    }

    /// Writes a file atomically, unless it has the same content already; whether it was written.
    pub(crate) fn write(&self, path: &Path) -> Result<bool, LockError> {
        let text = self.to_string();
        if std::fs::read(path).is_ok_and(|found| found == text.as_bytes()) {
            return Ok(false);
        }
        replace_file(path, text.as_bytes())?;
        Ok(true)
    }

    /// Cells by name.
    pub(crate) fn by_name(&self) -> BTreeMap<String, &LockedCell> {
        self.cells.iter().map(|cell| (cell.id(), cell)).collect()
    }
}

impl std::fmt::Display for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{HEADING}")?;
        writeln!(f, "format = {FORMAT}")?;
        for (key, text) in [("hopmap", &self.hopmap), ("pipeline", &self.pipeline), ("text", &self.text)] {
            writeln!(f, "{key} = {}", quoted(text))?;
        }
        if !self.parameters.is_empty() {
            writeln!(f, "\n[parameters]")?;
            self.parameters
                .iter()
                .try_for_each(|(name, value)| writeln!(f, "{} = {}", key(name), quoted(value)))?;
        }
        for cells in self.cells.chunk_by(|one, other| one.stage == other.stage) {
            write_stage(f, cells)?;
        }
        Ok(())
    }
}

/// A stage: what its cells have in common, then a line for each of them.
fn write_stage(f: &mut std::fmt::Formatter<'_>, cells: &[LockedCell]) -> std::fmt::Result {
    let stage = key(&cells[0].stage);
    let tables: Vec<Table> = cells.iter().map(as_table).collect();
    let has_matrix = cells.iter().any(|cell| !cell.label.is_empty());
    let (mut common, own) = match has_matrix {
        true => split(tables),
        false => (tables.into_iter().next().unwrap_or_default(), Vec::new()),
    };
    let parameters = common.remove("parameters");
    writeln!(f, "\n[stages.{stage}]")?;
    for (name, value) in &common {
        match value {
            Value::Array(files) if name == "files" => {
                writeln!(f, "files = [")?;
                files.iter().try_for_each(|file| writeln!(f, "  {},", inline(file)))?;
                writeln!(f, "]")?;
            }
            value => writeln!(f, "{} = {}", key(name), inline(value))?,
        }
    }
    if let Some(Value::Table(parameters)) = parameters {
        writeln!(f, "\n[stages.{stage}.parameters]")?;
        let sorted: BTreeMap<_, _> = parameters.iter().collect();
        sorted.iter().try_for_each(|(name, value)| writeln!(f, "{} = {}", key(name), inline(value)))?;
    }
    if has_matrix {
        writeln!(f, "\n[stages.{stage}.{CELLS}]")?;
        for (cell, table) in cells.iter().zip(own) {
            writeln!(f, "{} = {}", quoted(&cell.label), inline(&Value::Table(table)))?;
        }
    }
    Ok(())
}

fn as_table(cell: &LockedCell) -> Table {
    // Plain data with text keys: it always has a form in TOML.
    Table::try_from(cell).unwrap_or_default()
}

/// What tables have in common, and what is left of each.
fn split(mut tables: Vec<Table>) -> (Table, Vec<Table>) {
    let mut common = Table::new();
    let names: Vec<String> = tables.first().map(|table| table.keys().cloned().collect()).unwrap_or_default();
    for name in names {
        let Some(first) = tables[0].get(&name).cloned() else { continue };
        if tables.iter().all(|table| table.get(&name) == Some(&first)) {
            tables.iter_mut().for_each(|table| drop(table.remove(&name)));
            common.insert(name, first);
        } else if PARTS.contains(&name.as_str()) {
            let part = |table: &mut Table| match table.remove(&name) {
                Some(Value::Table(part)) => part,
                _ => Table::new(),
            };
            let (shared, own) = split(tables.iter_mut().map(part).collect());
            for (table, own) in tables.iter_mut().zip(own).filter(|(_, own)| !own.is_empty()) {
                table.insert(name.clone(), Value::Table(own));
            }
            if !shared.is_empty() {
                common.insert(name, Value::Table(shared));
            }
        }
    }
    (common, tables)
}

/// The cells of a stage with what they have in common put back.
fn cell_tables(mut stage: Table) -> Result<Vec<(String, Table)>, String> {
    let cells = match stage.remove(CELLS) {
        None => return Ok(vec![(String::new(), stage)]),
        Some(Value::Table(cells)) => cells,
        Some(_) => return Err("`cells` should be a table".to_owned()),
    };
    let whole = |(label, own): (String, Value)| {
        let Value::Table(own) = own else { return Err(format!("cell `{label}` should be a table")) };
        let mut table = stage.clone();
        for (name, value) in own {
            match (table.get_mut(&name), value) {
                (Some(Value::Table(shared)), Value::Table(own)) if PARTS.contains(&name.as_str()) => {
                    shared.extend(own);
                }
                (_, value) => drop(table.insert(name, value)),
            }
        }
        Ok((label, table))
    };
    cells.into_iter().map(whole).collect()
}

fn strange_digest(cell: &LockedCell) -> Option<&str> {
    let digests = cell.outputs.values().chain(cell.files.iter().map(|file| &file.blake3));
    let is_strange = |digest: &&String| digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit());
    digests.into_iter().find(is_strange).map(String::as_str)
}

/// A lock file that cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum LockError {
    /// The system is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// There is none.
    #[error("there is no lock file {}", .0.display())]
    #[diagnostic(
        code(lock::missing),
        help("`hopmap lock` writes one from what is in the store, `hopmap run --lock` after a run")
    )]
    Missing(PathBuf),
    /// It is damaged.
    #[error("{} is not a lock file, or is damaged: {reason}", path.display())]
    #[diagnostic(
        code(lock::malformed),
        help("take it from version control, or write it again with `hopmap lock`")
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// The text.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// The place, if it is known.
        #[label("here")]
        place: Option<SourceSpan>,
    },
    /// It is not text, or too long.
    #[error("{} is not a lock file: {reason}", path.display())]
    #[diagnostic(
        code(lock::not_text),
        help("take it from version control, or write it again with `hopmap lock`")
    )]
    NotText {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is of another version.
    #[error("{} has format {found}, this hopmap reads format {known}", path.display())]
    #[diagnostic(
        code(lock::format),
        help("use the hopmap that wrote it, or write it again with `hopmap lock`")
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The format that is known.
        known: u32,
    },
    /// It belongs to another pipeline.
    #[error("{} is the lock file of the pipeline `{found}`, not of `{wanted}`", path.display())]
    #[diagnostic(
        code(lock::foreign),
        help("name the right one with `=FILE`, or write it with `hopmap lock`")
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The pipeline it belongs to.
        found: String,
        /// The pipeline that was asked for.
        wanted: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(stage: &str, label: &str, seed: i64) -> LockedCell {
        let parameters = [
            ("seed".to_owned(), Value::Integer(seed)),
            ("weight".to_owned(), Value::String("bytes".into())),
            ("costs".to_owned(), Value::Array(vec![Value::Float(1.0), Value::Float(10.5)])),
        ]
        .into();
        LockedCell {
            stage: stage.into(),
            label: label.into(),
            uses: "map/annealing".into(),
            revision: 3,
            observes: false,
            timed: seed == 2,
            ending: Ending::Done,
            needs: [("system".to_owned(), "machine".to_owned())].into(),
            files: vec![LockedFile { name: "a b.csv".into(), bytes: 7, blake3: "0".repeat(64) }],
            outputs: [("mapping".to_owned(), format!("{seed:064x}"))].into(),
            parameters,
        }
    }

    fn lock(cells: Vec<LockedCell>) -> Lock {
        Lock {
            hopmap: "0.1.0".into(),
            pipeline: "p".into(),
            text: "f".repeat(64),
            parameters: [("ranks".to_owned(), "x y.csv".to_owned())].into(),
            cells,
        }
    }

    #[test]
    fn a_sweep_takes_a_line_for_each_cell() {
        let cells = (1..=3).map(|seed| cell("placement", &format!("seed={seed}"), seed)).collect();
        let text = lock(cells).to_string();
        assert_eq!(text.lines().filter(|line| line.starts_with("\"seed=")).count(), 3, "{text}");
        insta::assert_snapshot!(text.split_once("\n[stages.placement]").unwrap().1.replace(&"0".repeat(40), "0…"), @r#"
        uses = "map/annealing"
        revision = 3
        needs = { system = "machine" }
        files = [
          { name = "a b.csv", bytes = 7, blake3 = "0…000000000000000000000000" },
        ]

        [stages.placement.parameters]
        costs = [1.0, 10.5]
        weight = "bytes"

        [stages.placement.cells]
        "seed=1" = { outputs = { mapping = "0…000000000000000000000001" }, parameters = { seed = 1 } }
        "seed=2" = { timed = true, outputs = { mapping = "0…000000000000000000000002" }, parameters = { seed = 2 } }
        "seed=3" = { outputs = { mapping = "0…000000000000000000000003" }, parameters = { seed = 3 } }
        "#);
    }

    #[test]
    fn one_that_says_the_same_stays_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.lock");
        let lock = lock(vec![cell("a", "", 1)]);
        assert!(lock.write(&path).unwrap());
        assert!(!lock.write(&path).unwrap());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            names in prop::collection::vec(("[a-c]", ".{0,6}", 0_i64..3, ".{0,6}"), 0..6),
        ) {
            let cells = names.iter().map(|(stage, label, seed, text)| {
                let mut cell = cell(stage, label, *seed);
                cell.parameters.insert(text.clone(), Value::String(label.clone()));
                if *seed == 0 {
                    cell.needs.clear();
                    cell.ending = Ending::Infeasible;
                }
                cell
            });
            let mut cells: Vec<LockedCell> = cells.collect();
            cells.sort_by_key(|cell| (cell.stage.clone(), cell.label.clone()));
            cells.dedup_by_key(|cell| cell.id());
            // A stage has a matrix or it has none.
            cells.retain(|cell| !cell.label.is_empty());
            let lock = lock(cells);
            let read = Lock::parse(Path::new("p.lock"), &lock.to_string()).unwrap();
            prop_assert_eq!(&read, &lock);
            prop_assert_eq!(read.to_string(), lock.to_string());
        }
    }
}
