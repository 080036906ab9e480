//! The stages of this crate: deltas by published rules, a series in a store, and generated series.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopmap_durable::{DurableError, Staging};
use hopmap_model::{
    CheckpointSeries, CheckpointStore, Context, DeltaRule, Deltas, Error, InputPath, Inputs, OutOfRange,
    Outcome, Outputs, Port, RuleTotals, Stage, StoredCheckpoint, first_as_base, require,
};

use crate::delta::{DeltaError, Settings, WriteCost, deltas};
use crate::error::CheckpointError;
use crate::params::{DeltaParams, GenerateParams, Reading, Rule, StoreParams};
use crate::series::{self, Checkpoint, CheckpointFile, SeriesError, generate};
use crate::store::{self, AddOptions, DeltaSettings, Manifest, Source, Store};

/// Supported block lengths.
const BLOCKS: std::ops::RangeInclusive<u32> = 256..=65_536;

/// Number of bases in a log line.
const MOST_BASES: usize = 24;

/// `checkpoint/delta`: the size of a series with published delta rules.
#[derive(Debug)]
pub struct DeltaStage;

impl Stage for DeltaStage {
    type Params = DeltaParams;
    const KIND: &'static str = "checkpoint/delta";
    const SUMMARY: &'static str =
        "Compute the size of a checkpoint series with the delta rules first, incremental and ADCA";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] =
        &[Port::optional::<CheckpointSeries>("checkpoints"), Port::output::<Deltas>("deltas")];

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_delta(params)
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        match &params.path {
            Some(series) => Ok(input_files(series::find(series.path())?)),
            None => Ok(Vec::new()),
        }
    }

    fn observes(params: &Self::Params) -> bool {
        params.target.is_some()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let connected = inputs.optional::<CheckpointSeries>("checkpoints")?;
        let series = series::given(params.path.as_ref().map(InputPath::path), connected.as_ref())?;
        if let [only] = series.as_slice() {
            let path = params.path.as_ref().map(|series| series.path().to_owned()).unwrap_or_default();
            return Err(SeriesError::One { path, name: only.name.clone() }.into());
        }
        let settings = delta_settings(&params)?;
        let (deltas, complete) = deltas(&series, &settings, cx)?;
        deltas.rules.iter().for_each(|rule| cx.log(sentence(rule)));
        first_as_base(&deltas.metrics).into_iter().for_each(|line| cx.log(line));
        let outputs = Outputs::new().with("deltas", deltas);
        Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

fn check_delta(params: &DeltaParams) -> Result<(), Error> {
    for (name, empty) in [
        ("block_bytes", params.block_bytes.is_empty()),
        ("rules", params.rules.is_empty() && !params.optimum),
        ("reading", params.reading.is_empty() && params.rules.contains(&Rule::Adca)),
    ] {
        if empty {
            return Err(DeltaError::Nothing(name).into());
        }
    }
    let there_is = |block: &u32| block.is_power_of_two() && BLOCKS.contains(block);
    if let Some(&block) = params.block_bytes.iter().find(|block| !there_is(block)) {
        return Err(OutOfRange::new("block_bytes", block, "256, 512, 1024, … or 65536").into());
    }
    let epsilon = params.epsilon;
    require(
        (0.0..1.0).contains(&epsilon),
        "epsilon",
        epsilon,
        "0 or more and below 1: a fraction of the delta",
    )?;
    check_cost(params)
}

fn check_cost(params: &DeltaParams) -> Result<(), Error> {
    let (latency, bandwidth) = ("write_latency_s", "write_bytes_per_s");
    for (name, value) in [(latency, params.write_latency_s), (bandwidth, params.write_bytes_per_s)] {
        if value.is_some() && params.target.is_some() {
            return Err(DeltaError::MeasuredAndGiven(name).into());
        }
    }
    let (time, speed) = (params.write_latency_s.unwrap_or(0.0), params.write_bytes_per_s.unwrap_or(1.0));
    require(time.is_finite() && time >= 0.0, latency, time, "0 or more seconds")?;
    Ok(require(speed.is_finite() && speed > 0.0, bandwidth, speed, "above 0 bytes per second")?)
}

fn delta_settings(params: &DeltaParams) -> Result<Settings, DeltaError> {
    let given = WriteCost::default();
    let cost = match &params.target {
        Some(target) => WriteCost::measure(target.path())?,
        None => WriteCost {
            latency_s: params.write_latency_s.unwrap_or(given.latency_s),
            bytes_per_s: params.write_bytes_per_s.unwrap_or(given.bytes_per_s),
        },
    };
    let mut blocks = params.block_bytes.clone();
    blocks.sort_unstable();
    blocks.dedup();
    Ok(Settings {
        blocks,
        rules: rules(params),
        epsilon: params.epsilon,
        align: params.align,
        matching: params.matching,
        block_overhead: u64::from(params.block_overhead_bytes),
        cost,
    })
}

/// Rules with their readings, each once and in table order.
fn rules(params: &DeltaParams) -> Vec<DeltaRule> {
    let asked = |rule: &DeltaRule| match rule {
        DeltaRule::First => params.rules.contains(&Rule::First),
        DeltaRule::Incremental => params.rules.contains(&Rule::Incremental),
        DeltaRule::AdcaLiteral => {
            params.rules.contains(&Rule::Adca) && params.reading.contains(&Reading::Literal)
        }
        DeltaRule::AdcaImmediate => {
            params.rules.contains(&Rule::Adca) && params.reading.contains(&Reading::Immediate)
        }
        DeltaRule::Optimum => params.optimum,
    };
    DeltaRule::ALL.into_iter().filter(asked).collect()
}

/// The results of a rule in one line.
fn sentence(rule: &RuleTotals) -> String {
    let bases: Vec<String> = rule.bases.iter().take(MOST_BASES).map(u32::to_string).collect();
    let rest = if rule.bases.len() > MOST_BASES { " …" } else { "" };
    format!(
        "{}, blocks of {} bytes: {} of {} bytes stored, {:.3} s of writing, depth {}, bases {}{rest}",
        rule.rule.name(),
        rule.block,
        rule.stored_bytes,
        rule.full_bytes,
        rule.write_s,
        rule.depth,
        bases.join(" ")
    )
}

/// `checkpoint/store`: a series in a store.
#[derive(Debug)]
pub struct StoreStage;

impl Stage for StoreStage {
    type Params = StoreParams;
    const KIND: &'static str = "checkpoint/store";
    const SUMMARY: &'static str = "Store a checkpoint series with deduplication and delta compression";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = &[
        Port::optional::<CheckpointSeries>("checkpoints"),
        Port::output::<CheckpointStore>("checkpoint-store"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(store_settings(params).check()?)
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        match &params.path {
            Some(series) => Ok(input_files(series::all(series.path())?)),
            None => Ok(Vec::new()),
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let connected = inputs.optional::<CheckpointSeries>("checkpoints")?;
        let series = series::given(params.path.as_ref().map(InputPath::path), connected.as_ref())?;
        let staging = Staging::new(&cx.scratch())?;
        let folder = staging.path().join("store");
        let store = Store::init(&folder, store_settings(&params))?;
        let mut stored = Vec::new();
        for checkpoint in series {
            stored.push(add(&store, checkpoint, cx)?);
        }
        let store = CheckpointStore::new(stored, collect(&folder)?).kept_by(staging);
        Ok(Outcome::Done(Outputs::new().with("checkpoint-store", store)))
    }
}

fn store_settings(params: &StoreParams) -> store::Settings {
    let deltas = DeltaSettings::of(params.rule).map(|deltas| DeltaSettings {
        block: params.block_bytes,
        matching: params.matching,
        block_overhead: params.block_overhead_bytes,
        ..deltas
    });
    store::Settings { depth: params.depth, epsilon: params.epsilon, deltas, ..store::Settings::default() }
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
        delta_sentence(&added.manifest)
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

/// Base and size of the delta of a checkpoint, in stores with a rule.
fn delta_sentence(manifest: &Manifest) -> String {
    let Some(delta) = manifest.delta else { return String::new() };
    let base = match manifest.earlier {
        0 => "in full".to_owned(),
        base => format!("delta against {base}, depth {}", delta.depth),
    };
    format!("; {base}: {} blocks, {} bytes", delta.blocks, delta.bytes)
}

/// The files of the store by name. The lock file is emptied, because its holder is of no interest in an
/// artifact.
fn collect(folder: &Path) -> Result<BTreeMap<String, PathBuf>, DurableError> {
    let lock = folder.join("lock");
    std::fs::write(&lock, "").map_err(DurableError::io("write", &lock))?;
    let named = |file: CheckpointFile| (file.place.to_string_lossy().into_owned(), file.path);
    Ok(series::below(folder)?.into_iter().map(named).collect())
}

/// The stage `checkpoint/generate`.
///
/// The memory of a rank has libraries (`shared`), a heap, areas next to it and fields of floating-point
/// numbers. Its initial contents are generated once and changed by `changes` between checkpoints. Files are
/// `CHECKPOINT/rank-RANK.dmtcp`, or `.bin` with the layout `plain`.
#[derive(Debug)]
pub struct Generate;

impl Stage for Generate {
    type Params = GenerateParams;
    const KIND: &'static str = "checkpoint/generate";
    const SUMMARY: &'static str = "Generate a checkpoint series with known changes";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[Port::output::<CheckpointSeries>("checkpoints")];

    fn check(params: &GenerateParams) -> Result<(), Error> {
        Ok(generate::check(params)?)
    }

    fn run(params: GenerateParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let series = generate::generate(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("checkpoints", series)))
    }
}

/// All files, by their names in the folder of the series.
fn input_files(series: Vec<Checkpoint>) -> Vec<InputPath> {
    let files = series.into_iter().flat_map(|checkpoint| {
        let name = checkpoint.name;
        let named = move |place: &Path| match place.as_os_str().is_empty() {
            true => name.clone(),
            false => Path::new(&name).join(place).to_string_lossy().into_owned(),
        };
        checkpoint.files.into_iter().map(move |file| InputPath::named(file.path, named(&file.place)))
    });
    files.collect()
}
