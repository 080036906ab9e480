//! `${…}` in the values of a pipeline file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use crate::source::{Entry, Node, NodeValue, Problem, Sink};
use crate::toml_line::inline;

/// A text that may hold references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Reference(Reference),
}

/// The text between `${` and `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// `params.NAME`
    Parameter(String),
    /// `matrix.NAME`
    Matrix(String),
    /// `stages.NAME.path` or `stages.NAME.PORT.path`: the folder of an artifact.
    Artifact {
        /// The stage.
        stage: String,
        /// Its output, if it has several.
        port: Option<String>,
    },
}

impl Template {
    /// Splits a text. `$${` is a literal `${`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            literal.push_str(&rest[..start]);
            if literal.ends_with('$') {
                literal.push('{');
                rest = &rest[start + 2..];
                continue;
            }
            let inside = &rest[start + 2..];
            let end = inside.find('}').ok_or("`${` without a closing `}`")?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Reference(Reference::parse(&inside[..end])?));
            rest = &inside[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self(pieces))
    }

    /// The references in it.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })
    }

    fn resolve(&self, scope: &Scope<'_>, span: &Range<usize>) -> Result<Resolved, Problem> {
        if let [Piece::Reference(reference)] = self.0.as_slice() {
            return scope.look_up(reference, span);
        }
        let mut text = String::new();
        let mut base = Base::File;
        for (index, piece) in self.0.iter().enumerate() {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Reference(reference) => {
                    let resolved = scope.look_up(reference, span)?;
                    if index == 0 {
                        base = resolved.base;
                    }
                    match resolved.value {
                        Json::String(value) => text.push_str(&value),
                        value => text.push_str(&value.to_string()),
                    }
                }
            }
        }
        Ok(Resolved { value: text.into(), base })
    }
}

impl Reference {
    fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        match parts.as_slice() {
            ["params", name] => Ok(Self::Parameter((*name).to_owned())),
            ["matrix", name] => Ok(Self::Matrix((*name).to_owned())),
            ["stages", stage, "path"] => Ok(Self::Artifact { stage: (*stage).to_owned(), port: None }),
            ["stages", stage, port, "path"] => {
                Ok(Self::Artifact { stage: (*stage).to_owned(), port: Some((*port).to_owned()) })
            }
            _ => Err(format!("`${{{text}}}` is not a reference")),
        }
    }
}

/// A value of a pipeline file, of which nothing is a reference.
pub(crate) fn literal(value: &toml::Value) -> String {
    match value {
        // `toml` writes 1e-6 as 0.000001.
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Array(values) => {
            format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        value => without_references(&inline(value)),
    }
}

/// A value in TOML as a pipeline file has it, of which nothing is a reference.
pub(crate) fn without_references(toml: &str) -> String {
    toml.replace("${", "$${")
}

/// How references are written, for messages.
pub(crate) const REFERENCES: &str =
    "references: ${params.NAME}, ${matrix.NAME}, ${stages.NAME.path}; $${ is a literal ${";

/// What a relative path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The folder of the pipeline file.
    File,
    /// The working directory.
    WorkingDirectory,
    /// Nothing: it is the folder of an artifact.
    Store,
}

/// A value with its references filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    pub(crate) value: Json,
    pub(crate) base: Base,
}

/// The folder of an artifact by stage and output; `None` if the stage or the output does not exist.
pub(crate) type Lookup<'a> = dyn Fn(&str, Option<&str>) -> Option<PathBuf> + 'a;

/// What references can name at some place, and who hears of those to nothing.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Parameters of the pipeline.
    pub(crate) parameters: &'a [(String, Resolved)],
    /// Keys and values of the cell.
    pub(crate) matrix: &'a [(String, Resolved)],
    pub(crate) artifact: &'a Lookup<'a>,
    /// Folders against which paths are resolved.
    pub(crate) folders: &'a Folders,
    pub(crate) problems: &'a Sink,
}

/// The folders against which paths are resolved.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    /// Folder of the pipeline file.
    pub(crate) file: PathBuf,
    /// The working directory.
    pub(crate) working: PathBuf,
    /// Where absolute paths begin, if not at the root of the file system: so in a run that was unpacked from an archive.
    pub(crate) root: Option<PathBuf>,
}

impl Folders {
    /// Folders of a pipeline file on this machine.
    pub(crate) fn new(file: impl Into<PathBuf>, working: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), working: working.into(), root: None }
    }

    pub(crate) fn resolve(&self, path: &Path, base: Base) -> PathBuf {
        match (base, &self.root) {
            (Base::Store, _) => path.to_owned(),
            (_, Some(root)) if path.is_absolute() => root.join(path.strip_prefix("/").unwrap_or(path)),
            (Base::File, _) => self.file.join(path),
            (Base::WorkingDirectory, _) => self.working.join(path),
        }
    }
}

impl<'a> Scope<'a> {
    /// The scope of what belongs to no cell.
    pub(crate) fn new(
        parameters: &'a [(String, Resolved)],
        folders: &'a Folders,
        problems: &'a Sink,
    ) -> Self {
        Self { parameters, matrix: &[], artifact: &|_, _| None, folders, problems }
    }

    /// The same within a cell.
    pub(crate) fn within(self, matrix: &'a [(String, Resolved)]) -> Self {
        Self { matrix, ..self }
    }

    /// The value of a reference, or the problem at its place if there is none.
    fn look_up(&self, reference: &Reference, span: &Range<usize>) -> Result<Resolved, Problem> {
        let value = |values: &[(String, Resolved)], name: &str, what: &str, here: &str| {
            let found = values.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
            found.ok_or_else(|| {
                let known = values.iter().map(|(key, _)| key.as_str());
                let problem = Problem::new(format!("there is no {what} `{name}`{here}"), span);
                problem.suggest(name, &format!("{what}s"), known)
            })
        };
        match reference {
            Reference::Parameter(name) => value(self.parameters, name, "parameter", ""),
            Reference::Matrix(name) => value(self.matrix, name, "matrix key", " here"),
            Reference::Artifact { stage, port } => {
                let path = (self.artifact)(stage, port.as_deref()).ok_or_else(|| {
                    let output = match port {
                        Some(port) => format!("an output `{port}`"),
                        None => "exactly one output".to_owned(),
                    };
                    Problem::new(format!("there is no stage `{stage}` with {output}"), span)
                })?;
                Ok(Resolved { value: path.to_string_lossy().into_owned().into(), base: Base::Store })
            }
        }
    }

    /// A value with its references filled in, and paths resolved wherever `schema` asks for one.
    pub(crate) fn resolve(&self, node: &Node, schema: &SchemaView<'_>) -> Json {
        match &node.value {
            NodeValue::Scalar(Json::String(text)) => {
                let Resolved { value, base } = self.resolve_text(node, text);
                self.resolve_paths(value, base, schema)
            }
            NodeValue::Scalar(value) => value.clone(),
            NodeValue::Array(nodes) => nodes.iter().map(|node| self.resolve(node, &schema.items())).collect(),
            NodeValue::Table(table) => {
                let value = |entry: &Entry| self.resolve(&entry.node, &schema.property(&entry.key));
                let pairs = table.entries.iter().map(|entry| (entry.key.clone(), value(entry)));
                Json::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// A text with its references filled in. Problems are reported and leave the text unchanged.
    pub(crate) fn resolve_text(&self, node: &Node, text: &str) -> Resolved {
        let problem = match Template::parse(text) {
            Err(message) => Problem::new(message, &node.span).help(REFERENCES),
            Ok(template) => match template.resolve(self, &node.span) {
                Ok(resolved) => return resolved,
                Err(problem) => problem,
            },
        };
        self.problems.push(problem);
        Resolved { value: text.into(), base: Base::File }
    }

    fn resolve_paths(&self, value: Json, base: Base, schema: &SchemaView<'_>) -> Json {
        match value {
            // `-p ini=` takes a file away that a pipeline names; a path that has to be there stays, and is reported as empty.
            Json::String(path) if path.is_empty() && schema.is_path() && schema.is_optional() => Json::Null,
            Json::String(path) if schema.is_path() => {
                self.folders.resolve(Path::new(&path), base).to_string_lossy().into_owned().into()
            }
            Json::Array(values) => {
                values.into_iter().map(|value| self.resolve_paths(value, base, &schema.items())).collect()
            }
            value => value,
        }
    }
}

/// A part of a JSON Schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaView<'a> {
    root: &'a Json,
    part: &'a Json,
}

impl<'a> SchemaView<'a> {
    pub(crate) fn new(root: &'a Json) -> Self {
        Self { root, part: root }
    }

    fn inner(&self, part: &'a Json) -> Self {
        let reference = part["$ref"].as_str().and_then(|path| path.strip_prefix("#"));
        let part = reference.and_then(|path| self.root.pointer(path)).unwrap_or(part);
        Self { root: self.root, part }
    }

    pub(crate) fn property(&self, name: &str) -> Self {
        self.inner(&self.part["properties"][name])
    }

    pub(crate) fn items(&self) -> Self {
        self.inner(&self.part["items"])
    }

    /// What it has at a path of keys and indexes.
    pub(crate) fn at(self, path: &[String]) -> Self {
        path.iter().fold(self, |schema, part| {
            // An optional table is one of two: the table and null.
            let table = schema.part.pointer("/anyOf/0").map_or(schema, |table| schema.inner(table));
            match ["items", "additionalProperties"].map(|any| &table.part[any]) {
                _ if table.has_property(part) => table.property(part),
                [Json::Null, values] => table.inner(values),
                [items, _] => table.inner(items),
            }
        })
    }

    /// The smallest and the largest integer that a file can have for it, if it is an integer: those of its type.
    pub(crate) fn integers(&self) -> Option<[i64; 2]> {
        let (kind, bits) = self.part["format"].as_str()?.split_once("int")?;
        let bits = if bits.is_empty() { u64::BITS } else { bits.parse().ok()? };
        let most =
            i64::MAX.checked_shr((63 + u32::from(kind.is_empty())).saturating_sub(bits)).unwrap_or_default();
        Some([if kind == "u" { 0 } else { -most - 1 }, most])
    }

    pub(crate) fn property_names(&self) -> Vec<&'a str> {
        self.part["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    pub(crate) fn has_property(&self, name: &str) -> bool {
        self.part["properties"].get(name).is_some()
    }

    pub(crate) fn required(&self) -> Vec<&'a str> {
        self.part["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect()
    }

    pub(crate) fn description(&self) -> Option<&'a str> {
        self.part["description"].as_str()
    }

    /// The value that it has where none is given.
    pub(crate) fn default(&self) -> Option<&'a Json> {
        self.part.get("default").filter(|value| !value.is_null())
    }

    /// Whether it is a table whose keys are all known.
    pub(crate) fn is_closed_table(&self) -> bool {
        self.part["properties"].is_object() && self.part["additionalProperties"] == Json::Bool(false)
    }

    /// Whether it takes a path, or nothing.
    pub(crate) fn is_path(&self) -> bool {
        self.part["format"] == hopmap_model::INPUT_PATH_FORMAT
    }

    /// Whether it may be left out.
    fn is_optional(&self) -> bool {
        self.part["type"].as_array().is_some_and(|types| types.iter().any(|name| name == "null"))
    }

    /// Whether it takes text and nothing else.
    pub(crate) fn is_text(&self) -> bool {
        self.part["type"] == "string" || self.part["type"] == serde_json::json!(["string", "null"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolve(text: &str) -> Result<Resolved, Problem> {
        let parameters = [
            ("n".to_owned(), Resolved { value: 4.into(), base: Base::File }),
            ("dir".to_owned(), Resolved { value: "in".into(), base: Base::WorkingDirectory }),
        ];
        let (folders, problems) = (Folders::new("/file", "/work"), Sink::default());
        let scope = Scope {
            parameters: &parameters,
            matrix: &[("seed".to_owned(), Resolved { value: 7.into(), base: Base::File })],
            artifact: &|stage, _| (stage == "s").then(|| "/store/a".into()),
            folders: &folders,
            problems: &problems,
        };
        Template::parse(text).unwrap().resolve(&scope, &(0..0))
    }

    #[test]
    fn a_lone_reference_keeps_its_type_and_a_mixed_one_becomes_text() {
        assert_eq!(resolve("${params.n}").unwrap().value, Json::from(4));
        assert_eq!(resolve("run-${matrix.seed}-${params.n}").unwrap().value, Json::from("run-7-4"));
        assert_eq!(resolve("${stages.s.path}/x").unwrap().value, Json::from("/store/a/x"));
        assert_eq!(resolve("$${params.n}").unwrap().value, Json::from("${params.n}"));
        assert_eq!(resolve("").unwrap().value, Json::from(""));
    }

    #[test]
    fn the_range_of_an_integer_is_that_of_its_type() {
        let range = |format: &str| SchemaView::new(&serde_json::json!({ "format": format })).integers();
        assert_eq!(range("uint32"), Some([0, u32::MAX.into()]));
        assert_eq!(range("int8"), Some([-128, 127]));
        assert_eq!(range("uint"), Some([0, i64::MAX]));
        assert_eq!(range("int64"), Some([i64::MIN, i64::MAX]));
        assert_eq!(range("double"), None);
    }

    #[test]
    fn a_path_from_the_command_line_is_relative_to_the_working_directory() {
        assert_eq!(resolve("${params.dir}/x").unwrap().base, Base::WorkingDirectory);
        assert_eq!(resolve("x/${params.dir}").unwrap().base, Base::File);
    }

    proptest! {
        /// A program that was given `${HOME}` failed, and one that was given `$${HOME}` got `${HOME}`.
        #[test]
        fn a_literal_text_is_read_as_it_is(parts in prop::collection::vec("(\\$|\\{|\\}|\\$\\{params.n\\}|\"|'|\\\\|\n|[ -~])", 0..12)) {
            let text = parts.concat();
            let file: toml::Table = format!("value = {}", literal(&text.as_str().into())).parse().unwrap();
            let read = resolve(file["value"].as_str().unwrap());
            prop_assert_eq!(read.unwrap().value, Json::from(text));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert!(Template::parse("${params.n").is_err());
        assert!(Template::parse("${parms.n}").is_err());
        assert!(resolve("${params.m}").is_err());
        assert!(resolve("${stages.t.path}").is_err());
    }
}
