//! Reading a folder of `hopmap record`.

use std::path::{Path, PathBuf};

use crate::description::{Description, Method};
use crate::error::RecordingError;
use crate::monitoring;
use crate::ranks::rank_files;
use crate::recording::Recording;

const DESCRIPTION: &str = "record.json";

/// Folder and prefix of the profiles of the method `openmpi`.
const MONITORING: &str = "monitoring";

/// Whether a folder is a recording of `hopmap record`.
#[must_use]
pub fn is_recording(path: &Path) -> bool {
    path.is_dir() && (path.join(DESCRIPTION).is_file() || rank_files(path).is_ok_and(|all| !all.is_empty()))
}

/// All files of a recording, with their names in it.
pub fn files(folder: &Path) -> Result<Vec<(PathBuf, String)>, RecordingError> {
    let description = folder.join(DESCRIPTION);
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let method = if description.is_file() {
        let method = Description::read(&description)?.method;
        files.push((description, DESCRIPTION.into()));
        method
    } else {
        Method::Preload
    };
    let (folder, prefix) = match method {
        Method::Preload => (folder.to_owned(), String::new()),
        Method::Openmpi => (folder.join(MONITORING), format!("{MONITORING}/")),
    };
    let ranks = match method {
        Method::Preload => rank_files(&folder)?,
        Method::Openmpi => monitoring::profiles(&folder)?,
    };
    files.extend(ranks.into_iter().map(|(_, path)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        (path, name)
    }));
    Ok(files)
}

impl Recording {
    /// Reads a folder of `hopmap record`.
    pub fn read(folder: &Path) -> Result<Self, RecordingError> {
        let description = folder.join(DESCRIPTION);
        let described = description.is_file().then(|| Description::read(&description)).transpose()?;
        let recording = match &described {
            Some(Description { method: Method::Openmpi, ranks, .. }) => {
                Self::of_profiles(&folder.join(MONITORING), Some(*ranks))?
            }
            described => Self::of_ranks(folder, described.as_ref().map(|description| description.ranks))?,
        };
        Ok(match described {
            Some(description) => recording.described(&description),
            None => recording.with_reasons(vec!["`record.json` is missing".into()]),
        })
    }

    /// Adds what the description knows.
    fn described(mut self, description: &Description) -> Self {
        for host in &description.hosts {
            let process = self.processes.get_mut(host.rank as usize).filter(|process| process.host.is_none());
            if let Some(process) = process {
                process.host = Some(host.host.clone());
                process.cores.clone_from(&host.cores);
            }
        }
        self.with_reasons(description.incomplete().into_iter().collect())
    }
}
