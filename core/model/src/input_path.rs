//! Paths among the parameters of a stage.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// `format` of a path parameter in the JSON Schema of a stage: the engine resolves such values.
pub const INPUT_PATH_FORMAT: &str = "input-path";

/// A file or folder named by a parameter.
///
/// The engine resolves it against the pipeline file or the working directory before the stage sees it. It
/// serialises to nothing but a marker: what enters a key are the names and contents of the files that
/// [`Stage::reads`](crate::Stage::reads) lists, never where they lie.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct InputPath {
    path: PathBuf,
    #[serde(skip)]
    name: Option<String>,
}

impl InputPath {
    /// A path whose name for the key is its file name.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: None }
    }

    /// A file found behind a path parameter, under the name by which it enters the key.
    #[must_use]
    pub fn named(path: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self { path: path.into(), name: Some(name.into()) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name by which it enters the key: relative to the parameter, with `/` between folders.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Borrowed(name),
            None => self.path.file_name().unwrap_or_default().to_string_lossy(),
        }
    }
}

impl AsRef<Path> for InputPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Serialize for InputPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(path)")
    }
}

impl JsonSchema for InputPath {
    fn schema_name() -> Cow<'static, str> {
        "InputPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": INPUT_PATH_FORMAT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_never_shows_when_serialised() {
        let one = serde_json::to_string(&InputPath::new("/a/x.otf2")).unwrap();
        let other = serde_json::to_string(&InputPath::new("/b/y.otf2")).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn the_name_is_the_file_name_unless_given() {
        assert_eq!(InputPath::new("/a/x.otf2").name(), "x.otf2");
        assert_eq!(InputPath::named("/a/traces/0.evt", "traces/0.evt").name(), "traces/0.evt");
    }
}
