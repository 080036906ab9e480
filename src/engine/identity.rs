//! By what a store knows a pipeline: its name and its file. A name alone would make one pipeline of two files.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::pipeline::{EMBEDDED, Pipeline};

/// Begins the place of a pipeline that comes with hopmap.
const EMBEDDED_PLACE: &str = "embedded:";

/// By what a store knows a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipelineId {
    /// Its name.
    pub name: String,
    /// Its file: relative to the folder that holds the store, absolute if it is not below that. `embedded:NAME` if it comes
    /// with hopmap, empty if an older version ran it, which wrote down the name alone.
    pub file: String,
}

impl PipelineId {
    /// What the store in a folder knows a pipeline by.
    #[must_use]
    pub fn of(pipeline: &Pipeline, root: &Path) -> Self {
        let file = match pipeline.file() {
            Some(file) => beside(root, &file),
            None => format!("{EMBEDDED_PLACE}{}", pipeline.source.name()),
        };
        Self { name: pipeline.name.clone(), file }
    }

    /// What an older version knew it by.
    pub(super) fn without_file(&self) -> Self {
        Self { name: self.name.clone(), file: String::new() }
    }

    /// Those whose copies it may replace: itself, and the pipeline of its name that comes with hopmap, as which it may have begun.
    pub(super) fn and_embedded(&self) -> [Self; 2] {
        let file = format!("{EMBEDDED_PLACE}{}", self.name);
        [self.clone(), Self { name: self.name.clone(), file }]
    }

    /// What a copy that it saves is marked with: its name, and the way from the copy to its file, which is the same whatever store it
    /// is run with.
    pub(super) fn beside_copy(&self, copy: &Path, root: &Path) -> String {
        let file = match self.file.is_empty() || self.file.starts_with(EMBEDDED_PLACE) {
            true => PathBuf::from(&self.file),
            false => way(copy, &holder(root).join(&self.file)),
        };
        format!("{}\n{}", self.name, file.display())
    }

    /// Whether its file is not there any more, or was never written down: nobody can tell what it still uses.
    #[must_use]
    pub fn is_gone(&self, root: &Path) -> bool {
        match self.file.strip_prefix(EMBEDDED_PLACE) {
            Some(name) => EMBEDDED.iter().all(|embedded| embedded.name != name),
            None => self.file.is_empty() || !holder(root).join(&self.file).is_file(),
        }
    }

    /// Eight digits that tell it from others of its name.
    #[must_use]
    pub fn digits(&self) -> String {
        let text = format!("{}\n{}", self.name, self.file);
        blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
    }
}

impl fmt::Display for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.strip_prefix(EMBEDDED_PLACE) {
            Some(_) => write!(f, "`{}`, which comes with hopmap", self.name),
            None if self.file.is_empty() => write!(f, "`{}` of an older version of hopmap", self.name),
            None => write!(f, "`{}` of {}", self.name, self.file),
        }
    }
}

/// The folder that holds a store.
fn holder(root: &Path) -> PathBuf {
    canonical(root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// A path as it is written in a store, which may be moved together with what is beside it.
pub(super) fn beside(root: &Path, path: &Path) -> String {
    let path = canonical(path);
    path.strip_prefix(holder(root)).unwrap_or(&path).display().to_string()
}

/// The way from the folder of one file to another file, whose path has no links.
fn way(from: &Path, to: &Path) -> PathBuf {
    let from = canonical(from);
    let folder: Vec<Component<'_>> = from.parent().into_iter().flat_map(Path::components).collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = folder.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n(Component::ParentDir, folder.len() - shared);
    up.chain(to[shared..].iter().copied()).collect()
}

/// A path without links; of something that is not there, as far as its folder is.
fn canonical(path: &Path) -> PathBuf {
    let of_folder = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    std::fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_a_store_moves_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".hopmap");
        std::fs::create_dir(folder.path().join("lu")).unwrap();
        assert_eq!(beside(&root, &folder.path().join("lu/../lu/place.toml")), "lu/place.toml");
        assert_eq!(beside(&folder.path().join("lu/.hopmap"), Path::new("/etc/hosts")), "/etc/hosts");
    }

    #[test]
    fn a_copy_tells_pipelines_of_one_name_from_each_other_in_any_store() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        std::fs::create_dir(here.join("out")).unwrap();
        let copy = here.join("out/rankfile");
        let seen = |file: &str, root: &str| {
            let id = PipelineId { name: "place".into(), file: file.into() };
            id.beside_copy(&copy, &here.join(root))
        };
        assert_eq!(seen("place.toml", ".hopmap"), "place\n../place.toml");
        assert_eq!(seen("out/place.toml", ".hopmap"), "place\nplace.toml");
        let absolute = here.join("place.toml").display().to_string();
        assert_eq!(seen(&absolute, "out/.hopmap"), "place\n../place.toml");
        assert_eq!(seen("embedded:place", ".hopmap"), "place\nembedded:place");
    }

    #[test]
    fn pipelines_of_one_name_have_other_digits() {
        let id = |file: &str| PipelineId { name: "place".into(), file: file.into() };
        assert_ne!(id("a/place.toml").digits(), id("b/place.toml").digits());
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".hopmap");
        assert!(!id("embedded:place").is_gone(&root) && id("embedded:no").is_gone(&root));
        assert!(id("").is_gone(&root) && id("place.toml").is_gone(&root));
        std::fs::write(folder.path().join("place.toml"), "").unwrap();
        assert!(!id("place.toml").is_gone(&root));
    }
}
