//! `record.json`, the description of a recording.

use std::path::Path;

use hopmap_durable::replace_file;
use hopmap_text::FileError;
use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::names::DESCRIPTION;
use crate::rank::MAX_RANKS;

/// Value of `format`.
const FORMAT: &str = "hopmap-record";

/// Largest `record.json`.
const MOST_BYTES: u64 = 256 << 20;

/// How a program is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By an interposer in every rank.
    Preload,
    /// By Open MPI's own monitoring.
    Openmpi,
}

/// Content of `record.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// `hopmap-record`
    pub format: String,
    /// Version of the format, 1.
    pub version: u32,
    /// How the program was recorded.
    pub method: Method,
    /// MPI and version, such as `Open MPI 4.1.4`.
    #[serde(default)]
    pub mpi: String,
    /// Number of ranks.
    pub ranks: u32,
    /// The recorded command.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Begin of the recording.
    #[serde(default)]
    pub started: String,
    /// Whether the program ended without an error; `None` where that is not known, as inside a rank. What is
    /// missing is then seen in the files of the ranks.
    pub complete: Option<bool>,
    /// Whether every call was recorded, in the files `events-N.bin`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub events: bool,
    /// Why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Description {
    /// The description of a complete recording.
    #[must_use]
    pub fn new(method: Method, ranks: u32) -> Self {
        Self {
            format: FORMAT.into(),
            version: 1,
            method,
            mpi: String::new(),
            ranks,
            arguments: Vec::new(),
            started: String::new(),
            complete: Some(true),
            events: false,
            reason: None,
        }
    }

    /// Writes it as the `record.json` of a recording.
    pub fn write(&self, folder: &Path) -> Result<(), RecordingError> {
        let path = folder.join(DESCRIPTION);
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            FileError::new(error.to_string(), "report this as a bug of hopmap").in_file(&path)
        })?;
        Ok(replace_file(&path, text.as_bytes())?)
    }

    /// Reads `record.json`.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let text = hopmap_text::read_text(path, MOST_BYTES)?;
        if text.trim().is_empty() {
            let help = "record the program again, or copy the folder again";
            return Err(FileError::new("the file is empty", help).in_file(path).into());
        }
        let description: Self = serde_json::from_str(&text).map_err(|error| {
            let help = "it is written by `hopmap record`; record the program again if it is damaged";
            let problem = error.to_string();
            let problem = problem.split(" at line ").next().unwrap_or_default();
            let column = Some(error.column()).filter(|column| *column > 0);
            FileError { column, ..FileError::at(error.line(), problem, help) }.in_file(path)
        })?;
        let refuse = |problem: String, help: &str| Err(FileError::new(problem, help).in_file(path).into());
        match description {
            Self { ref format, .. } if format != FORMAT => {
                refuse(format!("its format is `{format}`"), "expected `hopmap-record`")
            }
            Self { version, .. } if version != 1 => {
                Err(RecordingError::Version { path: path.into(), version, reads: 1 })
            }
            Self { ranks, .. } if !(1..=MAX_RANKS).contains(&ranks) => {
                refuse(format!("`ranks` is {ranks}"), &format!("allowed: 1 to {MAX_RANKS}"))
            }
            description => Ok(description),
        }
    }

    /// Why the recording is not complete, if it is not.
    pub(crate) fn incomplete(&self) -> Option<String> {
        let reason = || self.reason.clone().unwrap_or_else(|| "the program did not end regularly".into());
        (self.complete == Some(false)).then(reason)
    }
}
