//! `checkpoint/store`: a series in a store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_durable::{DurableError, Staging};
use hopmap_model::{
    CheckpointSeries, CheckpointStore, Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage,
    StoredCheckpoint,
};

use super::names;
use crate::series::{self, Checkpoint};
use crate::store::{AddOptions, DeltaSettings, Manifest, Settings, Source, Store};
use crate::{CheckpointError, StoreParams};

/// `checkpoint/store`: a series in a store.
#[derive(Debug)]
pub struct StoreStage;

impl Stage for StoreStage {
    type Params = StoreParams;
    const KIND: &'static str = "checkpoint/store";
    const SUMMARY: &'static str = "A series of checkpoints in a store: pages and parts of files once, the rest told by earlier versions";
    const REVISION: u32 = 4;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::optional::<CheckpointSeries>("checkpoints"),
                Port::output::<CheckpointStore>("checkpoint-store"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(settings(params).check()?)
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        match &params.series {
            Some(series) => Ok(names::of(series::all(series.path())?)),
            None => Ok(Vec::new()),
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let connected = inputs.optional::<CheckpointSeries>("checkpoints")?;
        let series = series::given(params.series.as_ref().map(InputPath::path), connected.as_ref())?;
        let staging = Staging::new(&cx.scratch())?;
        let folder = staging.path().join("store");
        let store = Store::init(&folder, settings(&params))?;
        let mut stored = Vec::new();
        for checkpoint in series {
            stored.push(add(&store, checkpoint, cx)?);
        }
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files)?;
        let store = CheckpointStore::new(stored, files).kept_by(staging);
        Ok(Outcome::Done(Outputs::new().with("checkpoint-store", store)))
    }
}

fn settings(params: &StoreParams) -> Settings {
    let deltas = DeltaSettings::of(params.rule).map(|deltas| DeltaSettings {
        block: params.block,
        matching: params.matching,
        block_overhead: params.block_overhead,
        ..deltas
    });
    Settings { depth: params.depth, epsilon: params.epsilon, deltas, ..Settings::default() }
}

fn add(store: &Store, checkpoint: Checkpoint, cx: &Context<'_>) -> Result<StoredCheckpoint, CheckpointError> {
    let lock = store.lock("hopmap", Duration::ZERO)?;
    let Checkpoint { name, files } = checkpoint;
    let only =
        |place: PathBuf| if place.as_os_str().is_empty() { PathBuf::from("checkpoint") } else { place };
    let files = files.into_iter().map(|file| (only(file.place), file.path)).collect();
    let added = store.add(&lock, Source::Files(files), &AddOptions::default(), cx)?;
    added.notes.iter().for_each(|note| cx.log(note));
    let figures = &added.manifest.figures;
    let stored_bytes = added.pack_bytes + added.manifest_bytes;
    cx.log(format_args!(
        "{name}: {stored_bytes} of {} bytes stored{}",
        figures.bytes,
        delta(&added.manifest)
    ));
    Ok(StoredCheckpoint {
        checkpoint: added.manifest.number,
        name,
        files: added.manifest.recipes.len() as u32,
        bytes: figures.bytes,
        zero_bytes: figures.zero,
        unchanged_bytes: figures.unchanged,
        known_bytes: figures.known,
        new_bytes: figures.new,
        stored_bytes,
    })
}

/// Base and size of the delta that is stored of a checkpoint, in stores with a rule.
fn delta(manifest: &Manifest) -> String {
    let Some(delta) = manifest.delta else { return String::new() };
    let base = match manifest.earlier {
        0 => "whole".to_owned(),
        base => format!("delta against {base}, depth {}", delta.depth),
    };
    format!("; {base}: {} blocks, {} bytes", delta.blocks, delta.bytes)
}

/// The files of the store by their names. Who has it locked is nobody's business later.
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), DurableError> {
    let entries = std::fs::read_dir(folder).map_err(DurableError::io("read", folder))?;
    for entry in entries {
        let path = entry.map_err(DurableError::io("read", folder))?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if name == "lock" {
            std::fs::write(&path, "").map_err(DurableError::io("write", &path))?;
        }
        files.insert(name, path);
    }
    Ok(())
}
