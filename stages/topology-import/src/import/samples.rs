//! Files for the tests of formats.

use std::path::{Path, PathBuf};

use super::{Format, ImportError, ImportParams, Imported, Result, read, recognise};

/// A temporary folder.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    _kept: tempfile::TempDir,
}

impl Folder {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Self { path: folder.path().to_owned(), _kept: folder }
    }

    /// Errors have `F` in the place of the folder.
    pub(super) fn import(&self, path: &Path) -> Result<Imported, String> {
        said(read(path, &ImportParams::of(path)), &self.path)
    }
}

fn said<T>(result: Result<T>, path: &Path) -> Result<T, String> {
    result.map_err(|error| error.to_string().replace(&path.display().to_string(), "F"))
}

/// A text as a file `F` of a format.
pub(super) fn import_as(format: Format, text: &str, params: &ImportParams) -> Result<Imported, String> {
    let folder = Folder::new(&[("f", text)]);
    let path = folder.path.join("f");
    said(read(&path, &ImportParams { format: Some(format), ..params.clone() }), &path)
}

/// The same; a text that is read is also recognised.
pub(super) fn import_known(format: Format, text: &str, params: &ImportParams) -> Result<Imported, String> {
    let imported = import_as(format, text, params);
    assert!(imported.is_err() || is_recognised(format, text), "{text:?}");
    imported
}

pub(super) fn is_recognised(format: Format, text: &str) -> bool {
    recognise(&Folder::new(&[("f", text)]).path.join("f")).is_ok_and(|found| found == format)
}

/// A text as a file of the format that is detected.
pub(super) fn import_text(text: &str, params: &ImportParams) -> Result<Imported> {
    read(&Folder::new(&[("f", text)]).path.join("f"), params)
}

pub(super) fn import(text: &str) -> Result<Imported> {
    import_text(text, &ImportParams::default())
}

/// The line and the error without the path.
pub(super) fn fault(text: &str) -> String {
    match import(text).unwrap_err() {
        ImportError::File(hopmap_text::FileError { line, problem, .. }) => {
            format!("{}: {problem}", line.unwrap_or(0))
        }
        error => error.to_string(),
    }
}
