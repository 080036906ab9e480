//! The accepted state of an artifact: a small file that says which artifact is the right one, for gates to compare with.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use hopmap_artifact::{ArtifactError, Folder};
use hopmap_compare::differing;
use hopmap_durable::{DurableError, replace_file};
use hopmap_launchers::shell_word;
use hopmap_model::{InputError, read_input};
use jiff::Timestamp;
use miette::Diagnostic;
use serde::{Deserialize, Serialize};

/// The version of the file that is written and read.
const FORMAT: u32 = 1;
/// No such file is larger.
const MOST_BYTES: u64 = 16 << 20;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// Version of the file.
    pub(crate) format: u32,
    /// Kind of the artifact.
    pub(crate) kind: String,
    /// Its digest.
    pub(crate) digest: String,
    /// Its folder, from that of the file.
    pub(crate) artifact: PathBuf,
    /// Rows of each of its tables.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, u64>,
    /// Its metrics.
    #[serde(default)]
    pub(crate) metrics: BTreeMap<String, f64>,
    /// What was said when it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Version of hopmap that wrote the file.
    pub(crate) hopmap: String,
    /// When it was accepted, in UTC.
    pub(crate) time: String,
}

/// An accepted state that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum AcceptedError {
    /// The system is in the way.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// The artifact is damaged.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Artifact(#[from] ArtifactError),
    /// Nothing has been accepted yet.
    #[error("nothing is accepted yet: {} does not exist", .0.display())]
    #[diagnostic(code(accepted::missing), help("accept an artifact with `hopmap accept ARTIFACT --out {}`", shell_word(&.0.to_string_lossy())))]
    Missing(PathBuf),
    /// The file is not an accepted state.
    #[error("{} is not an accepted state: {reason}", path.display())]
    #[diagnostic(
        code(accepted::malformed),
        help("restore it from a backup or version control, or move it away, and accept the artifact again")
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The file is of another version.
    #[error("{} has format {found}, this hopmap reads format {FORMAT}", path.display())]
    #[diagnostic(
        code(accepted::format),
        help("use the version of hopmap that wrote it, or move it away, and accept the artifact again")
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// A path cannot be written as text.
    #[error("the path {} is not UTF-8", .0.display())]
    #[diagnostic(code(accepted::path))]
    Path(PathBuf),
}

impl Accepted {
    /// The state of an artifact whose bytes have been checked, for a file at `place`.
    pub(crate) fn of(artifact: &Folder, place: &Path, note: Option<&str>) -> Result<Self, AcceptedError> {
        artifact.verify()?;
        let description = artifact.description();
        let path = relative(&absolute(artifact.path())?, &absolute(parent(place))?);
        if path.to_str().is_none() {
            return Err(AcceptedError::Path(path));
        }
        Ok(Self {
            format: FORMAT,
            kind: description.kind.clone(),
            digest: artifact.digest().to_owned(),
            artifact: path,
            tables: description.tables.iter().map(|(name, table)| (name.clone(), table.rows)).collect(),
            metrics: description.metrics.clone(),
            note: note.map(str::to_owned),
            hopmap: env!("CARGO_PKG_VERSION").to_owned(),
            time: now(),
        })
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, AcceptedError> {
        let value = read_json(path, FORMAT)?;
        let malformed = |reason: String| AcceptedError::Malformed { path: path.into(), reason };
        let accepted: Self = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        let is_digest = accepted.digest.len() == 64 && accepted.digest.bytes().all(|b| b.is_ascii_hexdigit());
        if is_digest { Ok(accepted) } else { Err(malformed("`digest` is not 64 hexadecimal digits".into())) }
    }

    /// Writes a file atomically, unless it has the same content already; whether it was written.
    pub(crate) fn write(&self, path: &Path) -> Result<bool, AcceptedError> {
        if Self::read(path).is_ok_and(|found| found.says_the_same(self)) {
            return Ok(false);
        }
        write_json(path, self)?;
        Ok(true)
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let timeless = |state: &Self| Self { hopmap: String::new(), time: String::new(), ..state.clone() };
        timeless(self) == timeless(other)
    }

    /// What is different about an artifact, for people; nothing if it is the accepted one.
    pub(crate) fn differences(&self, artifact: &Folder) -> Vec<String> {
        let found = artifact.description();
        let mut lines = Vec::new();
        if found.kind != self.kind {
            lines.push(format!("kind {}, accepted {}", found.kind, self.kind));
        }
        if artifact.digest() != self.digest {
            let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
            lines.push(format!("digest {} instead of {}", short(artifact.digest()), short(&self.digest)));
        }
        let rows = found.tables.iter().map(|(name, table)| (name.clone(), table.rows)).collect();
        lines.extend(unequal("rows of ", &rows, &self.tables));
        lines.extend(unequal("", &found.metrics, &self.metrics));
        lines
    }
}

/// A file of JSON that says of which format it is, and is of this one.
pub(crate) fn read_json(path: &Path, wanted: u32) -> Result<serde_json::Value, AcceptedError> {
    let malformed = |reason: String| AcceptedError::Malformed { path: path.into(), reason };
    let bytes = read_input(path, MOST_BYTES).map_err(|error| match InputError::of(&error) {
        Some(fault) => malformed(fault.to_string()),
        None if error.kind() == std::io::ErrorKind::NotFound => AcceptedError::Missing(path.into()),
        None => DurableError::io("read", path)(error).into(),
    })?;
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(wanted) => Ok(value),
        Some(found) => Err(AcceptedError::Format { path: path.into(), found }),
        None => Err(malformed("it has no `format`".into())),
    }
}

/// Writes a JSON file atomically.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), DurableError> {
    // Plain data with text keys always have a form in JSON.
    let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    replace_file(path, text.as_bytes())
}

/// Now, as files of JSON say it.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Numbers that are not the same, by name.
fn unequal<T: PartialEq + std::fmt::Display>(
    what: &str,
    found: &BTreeMap<String, T>,
    accepted: &BTreeMap<String, T>,
) -> Vec<String> {
    let said = |value: Option<&T>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
    let line = |(name, found, accepted)| format!("{what}{name} {}, accepted {}", said(found), said(accepted));
    differing(found, accepted).map(line).collect()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A path without links where it exists, and from the root in any case.
fn absolute(path: &Path) -> Result<PathBuf, DurableError> {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).map_err(DurableError::io("find", path))
}

/// A path as seen from a folder; both from the root.
pub(crate) fn relative(path: &Path, folder: &Path) -> PathBuf {
    let common = folder.components().zip(path.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(common)).collect();
    if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_the_folder_of_the_file() {
        let seen = |path: &str, folder: &str| relative(Path::new(path), Path::new(folder));
        assert_eq!(seen("/a/b/c", "/a"), Path::new("b/c"));
        assert_eq!(seen("/a/b", "/a/c/d"), Path::new("../../b"));
        assert_eq!(seen("/a", "/a"), Path::new("."));
    }

    #[test]
    fn damaged_files_are_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accepted.json");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Accepted::read(&path).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
        };
        assert!(error("").starts_with("FILE is not an accepted state: EOF while parsing"));
        assert_eq!(error("{}"), "FILE is not an accepted state: it has no `format`");
        assert_eq!(error(r#"{"format": 7}"#), "FILE has format 7, this hopmap reads format 1");
        assert!(error(r#"{"format": 1}"#).contains("missing field `kind`"));
        let whole = r#"{"format":1,"kind":"k","digest":"xx","artifact":"a","hopmap":"0","time":"t"}"#;
        assert!(error(whole).ends_with("`digest` is not 64 hexadecimal digits"));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Accepted::read(&path), Err(AcceptedError::Missing(_))));
        assert!(matches!(Accepted::read(folder.path()), Err(AcceptedError::Malformed { .. })));
    }
}
