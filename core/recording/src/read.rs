//! Reading a folder of `hopmap record`.

use hopmap_model::to_u32;
use std::path::{Path, PathBuf};

use crate::description::{Description, Method};
use crate::error::RecordingError;
use crate::events::cut_off;
use crate::monitoring::{is_profiles, profiles};
use crate::names::{DESCRIPTION, MONITORING};
use crate::ranks::rank_files;
use crate::recording::Recording;

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
        Method::Openmpi => (monitoring_of(folder)?, format!("{MONITORING}/")),
    };
    let ranks = match method {
        Method::Preload => rank_files(&folder)?,
        Method::Openmpi => profiles(&folder)?,
    };
    files.extend(ranks.into_iter().map(|(_, path)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        (path, name)
    }));
    Ok(files)
}

/// The folder of the profiles of a recording that has any.
fn monitoring_of(folder: &Path) -> Result<PathBuf, RecordingError> {
    let monitoring = folder.join(MONITORING);
    if is_profiles(&monitoring) { Ok(monitoring) } else { Err(RecordingError::Empty { path: folder.into() }) }
}

impl Recording {
    /// Reads a folder of `hopmap record`.
    pub fn read(folder: &Path) -> Result<Self, RecordingError> {
        let description = folder.join(DESCRIPTION);
        let described = description.is_file().then(|| Description::read(&description)).transpose()?;
        let recording = match &described {
            Some(Description { method: Method::Openmpi, ranks, .. }) => {
                Self::of_profiles(&monitoring_of(folder)?, Some(*ranks))?
            }
            described => Self::of_ranks(folder, described.as_ref().map(|description| description.ranks))?,
        };
        Ok(match described {
            Some(description) => recording.with_reasons(description.incomplete().into_iter().collect()),
            None => recording.with_reasons(vec!["`record.json` is missing".into()]),
        })
    }

    /// Ends a recording: reads what the ranks have written, and writes the description with their number. `None`
    /// if no rank has written anything.
    pub fn finish(folder: &Path, description: Description) -> Result<Option<Self>, RecordingError> {
        let monitoring = folder.join(MONITORING);
        let recording = match description.method {
            Method::Preload if rank_files(folder)?.is_empty() => return Ok(None),
            Method::Preload => Self::of_ranks(folder, None)?,
            Method::Openmpi if !is_profiles(&monitoring) => return Ok(None),
            Method::Openmpi => Self::of_profiles(&monitoring, None)?,
        };
        let description = Description { ranks: to_u32(recording.processes.len()), ..description };
        description.write(folder)?;
        let cut = if description.events { cut_off(folder)? } else { None };
        Ok(Some(recording.with_reasons(description.incomplete().into_iter().chain(cut).collect())))
    }
}
