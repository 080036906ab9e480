//! An archive as a store and a pipeline again, in a temporary folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, Staging, crash_point};
use miette::Report;

use super::error::ArchiveError;
use super::export::{PackedRequest, PackedResult};
use super::read::Archive;
use super::{ARTIFACTS, RESULTS, inputs};
use crate::engine::{PipelineId, STORE_FOLDER, Store, Writer};
use crate::lock::Request;

/// What an archive was unpacked to; removed when dropped.
#[derive(Debug)]
pub struct Unpacked {
    /// What was asked for, with folders that lie here.
    pub request: Request,
    staging: Staging,
    results: Vec<PackedResult>,
}

impl Archive {
    /// Unpacks the inputs, the pipeline and the artifacts. The archive has been checked: nothing in it is believed else.
    pub fn unpack(&mut self) -> Result<Unpacked, Report> {
        let packed = self.request()?;
        if !packed.inputs {
            return Err(ArchiveError::NoInputs { path: self.path.clone() }.into());
        }
        let staging = Staging::new(&std::env::temp_dir())?;
        let store = staging.path().join(STORE_FOLDER);
        for (name, entry) in self.entries.clone() {
            let place = match name.strip_prefix(ARTIFACTS) {
                Some(rest) => store.join(ARTIFACTS).join(rest.trim_start_matches('/')),
                None if inputs::is_input(&name) => staging.path().join(&name),
                None => continue,
            };
            self.write(&name, entry.index, &place)?;
        }
        let results = self.results();
        let results = results.map_err(|reason| self.damaged(RESULTS, reason))?;
        let text = self.text(&packed.pipeline);
        let text = text.map_err(|reason| self.damaged(&packed.pipeline, reason))?;
        let request = here(staging.path(), packed, text)?;
        Ok(Unpacked { request, staging, results })
    }

    fn damaged(&self, place: &str, reason: String) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.clone(), place: place.to_owned(), reason }
    }

    fn write(&mut self, name: &str, index: usize, place: &Path) -> Result<(), Report> {
        let parent = place.parent().unwrap_or(place);
        std::fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
        let mut file = BufWriter::new(File::create_new(place).map_err(DurableError::io("create", place))?);
        let written = self.copy(index, &mut |bytes| file.write_all(bytes));
        written.map_err(|reason| self.damaged(name, reason))?;
        file.flush().map_err(DurableError::io("write", place))?;
        Ok(())
    }
}

/// The request with folders in a place.
fn here(place: &Path, packed: PackedRequest, text: String) -> Result<Request, Report> {
    let folder = |name: &str| match super::names::flaw(name) {
        None => Ok(place.join(name)),
        Some(reason) => Err(miette::miette!("request.json names the folder `{name}`: {reason}")),
    };
    Ok(Request {
        pipeline: packed.pipeline.rsplit('/').next().unwrap_or_default().to_owned(),
        text,
        folder: folder(&packed.folder)?,
        working: folder(&packed.working)?,
        root: Some(place.join("absolute")),
        parameters: packed.parameters,
        jobs: None,
    })
}

impl Unpacked {
    /// The store with the results of the archive.
    pub fn store(&self) -> Result<Store, Report> {
        let root = self.staging.path().join(STORE_FOLDER);
        let pipeline = self.request.open().map_err(|mut problems| match problems.0.is_empty() {
            true => miette::miette!("the pipeline cannot be read"),
            false => Report::new(problems.0.remove(0)),
        })?;
        let mut writer = Writer::open(&root, "hopmap verify")?;
        let mut store = Store::load(&root)?;
        let id = PipelineId::of(&pipeline, &root);
        for PackedResult { cell, result } in &self.results {
            let key = result.key.clone();
            writer.record(&mut store, result.clone(), false)?;
            if let Some(cell) = pipeline.cells.iter().find(|known| known.id == *cell) {
                writer.set_current(&mut store, &id, cell, &key)?;
            }
        }
        writer.sync(&mut store)?;
        Ok(store)
    }

    /// Keeps everything, under a name that is no longer a temporary one.
    #[must_use]
    pub fn keep(&self) -> PathBuf {
        let parent = self.staging.path().parent().unwrap_or(Path::new("."));
        let place = parent.join(format!("hopmap-verify-{}", std::process::id()));
        match std::fs::rename(self.staging.path(), &place) {
            Ok(()) => {
                crash_point("archive.kept", &place);
                place
            }
            Err(_) => self.staging.path().to_owned(),
        }
    }
}
