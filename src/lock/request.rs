//! What a person asked for: a pipeline, its parameters, and where paths begin.

use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use serde::{Deserialize, Serialize};

use crate::pipeline::{Folders, Pipeline, Problems, Source};

/// Name of the file in the folder of a run that remembers what was asked for.
pub const REQUEST: &str = "request.json";

/// A pipeline, its parameters, and where paths begin. With it a run can be planned again as it was, whatever has become of
/// the pipeline file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The pipeline file as it was named, or the name of a pipeline that comes with hopmap.
    pub pipeline: String,
    /// The text of the pipeline.
    pub text: String,
    /// Folder to which paths of the pipeline are relative.
    pub folder: PathBuf,
    /// Folder to which paths among the parameters are relative.
    pub working: PathBuf,
    /// Where absolute paths begin, if not at the root of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// The parameters that were given, by name.
    pub parameters: Vec<(String, String)>,
    /// Cores in all; none if nothing has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

impl Request {
    /// The pipeline.
    pub fn open(&self) -> Result<Pipeline, Problems> {
        let source = Source::new(&self.pipeline, self.text.clone());
        let folders =
            Folders { root: self.root.clone(), ..Folders::new(self.folder.clone(), self.working.clone()) };
        Pipeline::parse_in(source, folders, &self.parameters)
    }

    /// Where the lock file is: beside the pipeline file, else in the working directory.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        let stem = Path::new(&self.pipeline).file_stem().unwrap_or_default();
        let mut name = stem.to_owned();
        name.push(".lock");
        self.folder.join(name)
    }

    /// Name of the pipeline file.
    #[must_use]
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.pipeline).file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".toml") { name.into_owned() } else { format!("{name}.toml") }
    }

    /// Remembers it in the folder of a run.
    pub fn write(&self, run: &Path) -> Result<(), DurableError> {
        // Plain data with text keys, but for paths that are not UTF-8: such a request is not remembered.
        match serde_json::to_string_pretty(self) {
            Ok(text) => replace_file(&run.join(REQUEST), format!("{text}\n").as_bytes()),
            Err(_) => Ok(()),
        }
    }

    /// What was asked for in a run; none if it was killed, or ran in a version that remembered nothing.
    #[must_use]
    pub fn read(run: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(run.join(REQUEST)).ok()?).ok()
    }
}
