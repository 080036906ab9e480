//! Shared by several tests.

pub(crate) mod body;
pub(crate) mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hopmap_model::{Context, InputPath, Inputs, Observer, Outcome, Stage, TaskGraph};
use hopmap_trace::{Collectives, Format, Import, ImportParams, Otf, Otf2, Otf2Params, OtfParams, Reader};

/// The reader to compare the native one with.
pub(crate) const OTHER: Reader = if cfg!(feature = "libotf2") { Reader::Libotf2 } else { Reader::Native };

/// A file or folder in `sample-traces`.
pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces").join(name)
}

/// The folder with traces that are not in the repository.
pub(crate) fn data() -> Option<PathBuf> {
    hopmap_test_support::given_data().map(|data| data.join("traces"))
}

/// The OTF2 archives that are not in the repository.
pub(crate) fn archives() -> Vec<PathBuf> {
    let Some(traces) = data() else { return Vec::new() };
    let folders = fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    let archives: Vec<_> =
        folders.filter(|path| !path.ends_with("otf1") && !path.ends_with("expected")).collect();
    assert!(archives.len() > 5);
    archives
}

/// Records the log of a stage; interrupts it after some progress.
#[derive(Default)]
pub(crate) struct Listener {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) progress: Mutex<Vec<(u64, u64)>>,
    pub(crate) stop_after: Option<u64>,
}

impl Observer for Listener {
    fn progress(&self, done: u64, total: u64) {
        self.progress.lock().unwrap().push((done, total));
    }

    fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }

    fn cancelled(&self) -> bool {
        let done = self.progress.lock().unwrap().last().map_or(0, |(done, _)| *done);
        self.stop_after.is_some_and(|stop| done >= stop)
    }
}

/// The task graph of a stage.
pub(crate) fn graph<S: Stage>(params: S::Params, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    match S::run(params, Inputs::new(), cx)? {
        Outcome::Done(outputs) => {
            let graph: &TaskGraph = outputs.get("task-graph").unwrap().downcast_ref().unwrap();
            graph.check().unwrap();
            Ok(graph.clone())
        }
        other => panic!("{other:?}"),
    }
}

/// Parameters to read the messages of an archive, without its collective operations.
pub(crate) fn otf2_params(path: &Path, reader: Reader) -> Otf2Params {
    Otf2Params { reader, collectives: Collectives::Ignore, ..Otf2Params::new(InputPath::new(path)) }
}

pub(crate) fn read_with(path: &Path, reader: Reader, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    graph::<Otf2>(otf2_params(path, reader), cx)
}

/// Reads an archive natively and with the other reader: both must return the same graph or the same error.
pub(crate) fn read_asked(params: &Otf2Params, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    Otf2::check(params)?;
    let native = graph::<Otf2>(Otf2Params { reader: Reader::Native, ..params.clone() }, cx);
    let library = graph::<Otf2>(Otf2Params { reader: OTHER, ..params.clone() }, &Context::detached());
    let message = |error: &miette::Report| error.to_string();
    assert_eq!(native.as_ref().map_err(message), library.as_ref().map_err(message));
    native
}

/// Reads an archive natively and, unless interrupted, with the other reader: both must return the same graph
/// or the same error.
pub(crate) fn read_otf2(path: &Path, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    let native = read_with(path, Reader::Native, cx);
    if !native.as_ref().is_err_and(|error| error.to_string().starts_with("stopped after")) {
        let library = read_with(path, OTHER, &Context::detached());
        let message = |error: &miette::Report| error.to_string();
        assert_eq!(native.as_ref().map_err(message), library.as_ref().map_err(message), "{}", path.display());
    }
    native
}

pub(crate) fn read_otf(path: &Path, cx: &Context<'_>) -> miette::Result<TaskGraph> {
    graph::<Otf>(OtfParams::new(InputPath::new(path)), cx)
}

pub(crate) fn read_csv(path: &Path) -> miette::Result<TaskGraph> {
    let params = ImportParams { format: Format::Csv, ..ImportParams::new(InputPath::new(path)) };
    graph::<Import>(params, &Context::detached())
}

/// A copy of a sample that tests may damage.
pub(crate) struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    pub(crate) fn of(archive: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(archive, folder.path());
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the copy.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// All files of the copy.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files
    }

    /// The error message for the copy, without its path.
    pub(crate) fn refused(&self) -> String {
        let error = read_otf2(self.path(), &Context::detached()).unwrap_err();
        error.to_string().replace(&format!("{}/", self.path().display()), "")
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            // Contents only, because the source may be read-only.
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}
