//! The files of an archive and their names.

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_model::InputPath;

use crate::Otf2Error;

/// How many folders below the one that is given an anchor file is looked for.
const DEEPEST: usize = 2;

/// Where the files of an archive lie.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveFiles {
    anchor: PathBuf,
}

impl ArchiveFiles {
    /// The archive of an anchor file, or the only one in a folder; if there is none in it, the only one below it, for
    /// EZTrace 2.0 writes `trace/PROGRAM_trace/eztrace_log.otf2`.
    pub(crate) fn find(path: &Path) -> Result<Self, Otf2Error> {
        let metadata = fs::metadata(path).map_err(|source| unreadable(path, source))?;
        if !metadata.is_dir() {
            return Self::of_anchor(path.to_owned());
        }
        let mut anchors = anchors_in(path, DEEPEST)?;
        match anchors.as_mut_slice() {
            [anchor] => Self::of_anchor(std::mem::take(anchor)),
            _ => Err(Otf2Error::Folder {
                path: path.to_owned(),
                names: anchors
                    .iter()
                    .map(|anchor| anchor.strip_prefix(path).unwrap_or(anchor).display().to_string())
                    .collect(),
            }),
        }
    }

    /// Those of an archive that is to be made.
    pub(crate) fn named(folder: &Path, name: &str) -> Self {
        Self { anchor: folder.join(format!("{name}.otf2")) }
    }

    fn of_anchor(anchor: PathBuf) -> Result<Self, Otf2Error> {
        if has_extension(&anchor, "otf2") {
            return Ok(Self { anchor });
        }
        if has_extension(&anchor, "otf") {
            return Err(Otf2Error::Otf1 { path: anchor });
        }
        Err(Otf2Error::NotAnAnchor { path: anchor, reason: "its name does not end in `.otf2`" })
    }

    /// The anchor file.
    pub(crate) fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// The definitions of the archive.
    pub(crate) fn definitions(&self) -> PathBuf {
        self.anchor.with_extension("def")
    }

    /// The folder with the files of the locations.
    pub(crate) fn folder(&self) -> PathBuf {
        self.anchor.with_extension("")
    }

    /// The events of a location.
    pub(crate) fn events_of(&self, location: u64) -> PathBuf {
        self.folder().join(format!("{location}.evt"))
    }

    /// The definitions of a location.
    pub(crate) fn definitions_of(&self, location: u64) -> PathBuf {
        self.folder().join(format!("{location}.def"))
    }

    /// All of them, sorted by names in which the archive is always called `archive`.
    pub(crate) fn list(&self) -> Result<Vec<InputPath>, Otf2Error> {
        let definitions = self.definitions();
        if !definitions.is_file() {
            return Err(Otf2Error::Missing { path: definitions, location: None });
        }
        let mut files = vec![
            InputPath::named(&self.anchor, "archive.otf2"),
            InputPath::named(definitions, "archive.def"),
        ];
        for path in self.local_files()? {
            let name = format!("archive/{}", file_name(&path));
            files.push(InputPath::named(path, name));
        }
        files.sort_by(|one, other| one.name().cmp(&other.name()));
        Ok(files)
    }

    /// Definitions and events of locations, in no particular order.
    pub(crate) fn local_files(&self) -> Result<Vec<PathBuf>, Otf2Error> {
        let folder = self.folder();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut files = entries(&folder)?;
        files.retain(|file| has_extension(file, "def") || has_extension(file, "evt"));
        Ok(files)
    }
}

/// The anchor files in a folder; if there are none, those in its folders.
fn anchors_in(folder: &Path, deeper: usize) -> Result<Vec<PathBuf>, Otf2Error> {
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries(folder)?.into_iter().partition(|entry| entry.is_dir());
    files.retain(|entry| has_extension(entry, "otf2") && entry.is_file());
    if !files.is_empty() || deeper == 0 {
        return Ok(files);
    }
    for below in folders {
        files.extend(anchors_in(&below, deeper - 1)?);
    }
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Otf2Error> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
    });
    let mut entries = entries.map_err(|source| unreadable(folder, source))?;
    entries.sort_unstable();
    Ok(entries)
}

fn unreadable(path: &Path, source: std::io::Error) -> Otf2Error {
    Otf2Error::Read { path: path.to_owned(), source }
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn names(path: &Path) -> Vec<String> {
        let files = ArchiveFiles::find(path).unwrap().list().unwrap();
        files.iter().map(|file| file.name().into_owned()).collect()
    }

    #[test]
    fn files_are_named_without_the_name_of_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        touch(
            folder.path(),
            &["lu.8.otf2", "lu.8.def", "lu.8/12.evt", "lu.8/0.evt", "lu.8/0.def", "lu.8/0.snap"],
        );
        let expected = ["archive.def", "archive.otf2", "archive/0.def", "archive/0.evt", "archive/12.evt"];
        assert_eq!(names(&folder.path().join("lu.8.otf2")), expected);
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn an_archive_may_lack_local_files_but_not_definitions() {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["a.otf2"]);
        let missing = ArchiveFiles::find(folder.path()).unwrap().list().unwrap_err();
        assert!(missing.to_string().contains("a.def` is missing"));
        touch(folder.path(), &["a.def"]);
        assert_eq!(names(folder.path()), ["archive.def", "archive.otf2"]);
    }

    #[test]
    fn folders_must_hold_exactly_one_anchor() {
        let folder = tempfile::tempdir().unwrap();
        let error = || ArchiveFiles::find(folder.path()).unwrap_err().to_string();
        assert!(error().ends_with("holds no anchor files"));
        touch(folder.path(), &["b.otf2", "a.otf2"]);
        assert!(error().ends_with("holds several anchor files: a.otf2, b.otf2"));
    }

    #[test]
    fn the_only_archive_below_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        touch(
            folder.path(),
            &["lu_trace/eztrace_log.otf2", "lu_trace/eztrace_log.def", "lu_trace/eztrace_log/0.evt"],
        );
        let expected = ["archive.def", "archive.otf2", "archive/0.evt"];
        assert_eq!(names(folder.path()), expected);
        touch(folder.path(), &["cg_trace/eztrace_log.otf2"]);
        let error = ArchiveFiles::find(folder.path()).unwrap_err().to_string();
        let several = "holds several anchor files: cg_trace/eztrace_log.otf2, lu_trace/eztrace_log.otf2";
        assert!(error.ends_with(several), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["a.otf", "a.def"]);
        let error = |name: &str| ArchiveFiles::find(&folder.path().join(name)).unwrap_err();
        assert!(matches!(error("a.otf"), Otf2Error::Otf1 { .. }));
        assert!(matches!(error("a.def"), Otf2Error::NotAnAnchor { .. }));
        assert!(matches!(error("a.otf2"), Otf2Error::Read { .. }));
    }
}
