//! Verifies that everything that checkpoints need is intact, and reports which checkpoints damage affects.
//!
//! The manifests are read, then the needed blocks, each once regardless of the number of checkpoints. A deep
//! verification decodes every block, verifies its chunks by hash, and computes the digests of all files from
//! these hashes, keeping only the part that packs do not store: 4 bytes per chunk.

mod blocks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hopmap_model::Context;
use serde::Serialize;

use super::live::Live;
use super::manifest::{Manifest, Recipe};
use super::numbers::AssignedNumbers;
use super::statistics::{all_in_text, in_text};
use super::{ReadLock, Store, in_words};
use crate::chunk::{ChunkHash, ChunkId, Digest};
use crate::error::CheckpointError;
use crate::tree;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verified {
    /// Whether blocks were decoded and digests verified, or only checksums.
    pub deep: bool,
    /// The verified checkpoints.
    pub checkpoints: Vec<CheckpointState>,
    /// Damaged or missing data. Empty if everything is intact.
    pub problems: Vec<Damage>,
    /// Damage that loses nothing, or that is not needed.
    pub warnings: Vec<String>,
    /// Packs with one damaged copy of their header or end.
    pub worn: Vec<u32>,
    /// Packs that no checkpoint needs; empty when only some checkpoints were verified.
    pub unneeded: Vec<u32>,
    /// Number of verified blocks.
    pub blocks: u64,
    /// Total size of their payloads.
    pub bytes: u64,
}

/// State of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CheckpointState {
    /// Its number.
    pub number: u32,
    /// Its name; empty if it cannot be read.
    pub name: String,
    /// Whether it can be restored.
    pub whole: bool,
    /// Number of files.
    pub files: usize,
    /// Total size of the files.
    pub bytes: u64,
}

/// Damaged or missing data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Damage {
    /// The file of the store.
    #[serde(serialize_with = "in_text")]
    pub path: PathBuf,
    /// The pack, if it is one.
    pub pack: Option<u32>,
    /// The block, if a single one is affected.
    pub block: Option<u32>,
    /// Its offset in the pack, in bytes.
    pub offset: Option<u64>,
    /// The error.
    pub what: String,
    /// The affected checkpoints.
    pub checkpoints: Vec<Affected>,
}

/// The effect of damage on a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Affected {
    /// The checkpoint.
    pub number: u32,
    /// The files that cannot be restored; empty if none can.
    #[serde(serialize_with = "all_in_text")]
    pub files: Vec<PathBuf>,
    /// Total size of the lost files.
    pub bytes: u64,
}

impl Verified {
    /// The numbers of the checkpoints that can be restored.
    #[must_use]
    pub fn intact(&self) -> Vec<u32> {
        self.checkpoints.iter().filter(|state| state.whole).map(|state| state.number).collect()
    }

    /// The numbers of the checkpoints that cannot.
    #[must_use]
    pub fn damaged(&self) -> Vec<u32> {
        self.checkpoints.iter().filter(|state| !state.whole).map(|state| state.number).collect()
    }
}

impl Store {
    /// Verifies some checkpoints, or all, and everything they need. Damage is not an error, but part of the
    /// result.
    pub fn verify(
        &self,
        _lock: &ReadLock,
        deep: bool,
        numbers: Option<&[u32]>,
        cx: &Context<'_>,
    ) -> Result<Verified, CheckpointError> {
        let given = self.given()?;
        let mut there = [&given.there[..], &given.lost[..]].concat();
        there.sort_unstable();
        if let Some(&number) = numbers.unwrap_or_default().iter().find(|number| !there.contains(number)) {
            return Err(CheckpointError::NoCheckpoint { number, there: in_words(&there) });
        }
        let chosen: BTreeSet<u32> = numbers.unwrap_or(&there).iter().copied().collect();
        let mut look = Verifier {
            store: self,
            found: Verified { deep, ..Verified::default() },
            live: Live::default(),
            packs: BTreeMap::new(),
            hashes: BTreeMap::new(),
            others: BTreeMap::new(),
            blocks: BTreeMap::new(),
            unusable: BTreeSet::new(),
            rests: BTreeMap::new(),
        };
        for number in chosen {
            look.manifest(number);
        }
        // Unreadable packs are reported later, with the blocks.
        let _ = look.live.close(self);
        look.check_blocks(cx)?;
        look.check_files(cx)?;
        if numbers.is_none() {
            look.unneeded(&given, cx)?;
        }
        Ok(look.finish())
    }
}

/// A verification in progress.
struct Verifier<'a> {
    store: &'a Store,
    found: Verified,
    live: Live,
    /// Problems of unreadable packs: none of their blocks can be used.
    packs: BTreeMap<u32, usize>,
    /// Problems of packs with unreadable hashes: their chunks can only be bases.
    hashes: BTreeMap<u32, usize>,
    /// Problems of packs that differ from those of some checkpoint.
    others: BTreeMap<u32, usize>,
    /// The problems of blocks.
    blocks: BTreeMap<(u32, u32), usize>,
    /// Blocks that cannot be decoded, because of themselves or of bases.
    unusable: BTreeSet<(u32, u32)>,
    /// The part of the chunk hashes that packs do not store, by pack.
    rests: BTreeMap<u32, Vec<[u8; 4]>>,
}

impl Verifier<'_> {
    /// Reads a manifest and marks its blocks as needed.
    fn manifest(&mut self, number: u32) {
        let mut state = CheckpointState { number, whole: true, ..CheckpointState::default() };
        let wrong = match self.store.manifest(number) {
            Ok(manifest) => {
                self.live.take(&manifest);
                state.name.clone_from(&manifest.name);
                state.files = manifest.recipes.len();
                state.bytes = manifest.bytes();
                tree::check(&manifest.entries).err().map(|error| error.to_string())
            }
            Err(error) => Some(reason_of(&error)),
        };
        if let Some(what) = wrong {
            state.whole = false;
            self.problem_of_manifest(number, what, Affected { number, ..Affected::default() });
        }
        self.found.checkpoints.push(state);
    }

    fn problem_of_manifest(&mut self, number: u32, what: String, affected: Affected) {
        let (path, checkpoints) = (self.store.manifest_path(number), vec![affected]);
        self.found.problems.push(Damage { path, what, checkpoints, ..Damage::default() });
    }

    /// Verifies that the chunks of all files match the manifests, as far as blocks are intact, and reports
    /// the affected files.
    fn check_files(&mut self, cx: &Context<'_>) -> Result<(), CheckpointError> {
        let tainted = self.tainted();
        let numbers: Vec<u32> = self.found.checkpoints.iter().map(|state| state.number).collect();
        for (place, number) in numbers.into_iter().enumerate() {
            if cx.should_stop() {
                return Err(CheckpointError::Interrupted);
            }
            let Ok(manifest) = self.store.manifest(number) else { continue };
            let mut touched = self.touched(&manifest, &tainted);
            self.touch_by_other_packs(&manifest, &mut touched);
            let lost: BTreeSet<u32> =
                touched.values().flat_map(|touch| touch.files.iter().copied()).collect();
            let mut intact = lost.is_empty();
            self.note(&manifest, touched);
            for (&entry, recipe) in manifest.recipes.iter().filter(|(entry, _)| !lost.contains(entry)) {
                if let Err(what) = self.check_file(recipe) {
                    intact = false;
                    let files = manifest.entries.get(entry as usize).map(|entry| entry.path.clone());
                    let affected =
                        Affected { number, files: files.into_iter().collect(), bytes: recipe.bytes() };
                    self.problem_of_manifest(number, what.to_owned(), affected);
                }
            }
            if let Some(state) = self.found.checkpoints.get_mut(place) {
                state.whole &= intact;
            }
        }
        Ok(())
    }

    /// Verifies that all chunks of a file exist with its lengths, and give its digest.
    fn check_file(&self, recipe: &Recipe) -> Result<(), &'static str> {
        const OTHER: &str = "it lists chunks that its packs do not have: it belongs to other packs";
        let mut digest = Digest::default();
        for run in &recipe.runs {
            let Some(first) = run.first else {
                digest.zeros(run.length);
                continue;
            };
            let pack = self.store.pack(first.pack).map_err(|_| OTHER)?;
            let block = pack.block(first.block).ok_or(OTHER)?;
            let hashes = self.store.hashes(first.pack).map_err(|_| OTHER)?;
            for step in 0..run.chunks {
                let chunk = first.chunk.saturating_add(step);
                let length = block.lengths.get(usize::from(chunk)).copied().map(u64::from);
                if length != Some(run.length) {
                    return Err(OTHER);
                }
                let hash = hashes.of(block, chunk).ok_or(OTHER)?;
                let rest = self
                    .rests
                    .get(&first.pack)
                    .and_then(|rests| rests.get(block.first_hash + usize::from(chunk)));
                digest.chunk(run.length, ChunkHash::of_parts(hash, rest.copied().unwrap_or_default()));
            }
        }
        if self.found.deep && digest.finish() != recipe.digest {
            return Err("the digest of a file does not match");
        }
        Ok(())
    }

    /// Records a problem of a pack.
    fn problem(&mut self, pack: u32, block: Option<u32>, offset: Option<u64>, what: String) -> usize {
        let (path, pack) = (self.store.pack_path(pack), Some(pack));
        self.found.problems.push(Damage { path, pack, block, offset, what, ..Damage::default() });
        self.found.problems.len() - 1
    }

    /// Checks data that no checkpoint needs.
    fn unneeded(&mut self, given: &AssignedNumbers, cx: &Context<'_>) -> Result<(), CheckpointError> {
        // A pack after the last checkpoint is being added, or removed by the next writer.
        let latest = self.store.latest()?.unwrap_or(0);
        let (mut packs, behind): (Vec<u32>, Vec<u32>) =
            self.store.pack_numbers()?.into_iter().partition(|&pack| pack <= latest);
        for pack in behind.into_iter().filter(|&pack| !given.is_lost(pack)) {
            let why = match pack < given.next {
                true => "a prune was stopped before it removed the pack; the next writer removes it",
                false => "it is being added, or its `add` was killed; the next `add` removes the pack",
            };
            self.warn_of_missing_manifest(pack, why);
        }
        for &pack in &packs {
            self.check_unneeded(pack, cx)?;
        }
        packs.retain(|&pack| self.live.blocks(pack).is_none() && !given.is_lost(pack));
        for &pack in &packs {
            self.warn_of_missing_manifest(pack, "a prune was stopped before it removed the pack");
        }
        self.found.unneeded = packs;
        Ok(())
    }

    /// Reports a checkpoint that has a pack and no manifest. A prune removes both.
    fn warn_of_missing_manifest(&mut self, number: u32, why: &str) {
        let path = self.store.manifest_path(number);
        if !path.exists() {
            let pack = self.store.pack_path(number);
            let warning = format!("{} is missing, but {} exists: {why}", path.display(), pack.display());
            self.found.warnings.push(warning);
        }
    }

    fn finish(mut self) -> Verified {
        // Damage that affects no checkpoint, such as hashes of chunks that are only bases, is a warning.
        let (touching, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.found.problems)
            .into_iter()
            .partition(|problem| !problem.checkpoints.is_empty());
        self.found.problems = touching;
        let warnings = others.iter().map(|problem| {
            format!("{}: {}; no checkpoint is affected", problem.path.display(), problem.what)
        });
        self.found.warnings.extend(warnings);
        self.found
    }
}

/// The files of a checkpoint that a problem affects, and their size.
#[derive(Debug, Default)]
struct Touch {
    files: BTreeSet<u32>,
    bytes: u64,
}

/// The problems that prevent decoding a block; blocks without problems are not included.
type Tainted = BTreeMap<(u32, u32), BTreeSet<usize>>;

impl Verifier<'_> {
    /// Blocks that cannot be decoded, and why.
    fn tainted(&self) -> Tainted {
        let mut tainted = Tainted::new();
        if self.packs.is_empty() && self.blocks.is_empty() {
            return tainted;
        }
        // Bases are in earlier packs, so their problems are known already.
        for (number, blocks) in self.live.packs() {
            let pack = self.store.pack(number).ok();
            for &block in blocks {
                let mut problems = BTreeSet::new();
                problems.extend(self.packs.get(&number));
                problems.extend(self.blocks.get(&(number, block)));
                let entry = pack.as_ref().and_then(|pack| pack.block(block));
                for base in entry.iter().flat_map(|entry| entry.bases.iter().flatten()) {
                    problems.extend(tainted.get(&block_of(*base)).into_iter().flatten());
                }
                if !problems.is_empty() {
                    tainted.insert((number, block), problems);
                }
            }
        }
        tainted
    }

    /// The files of a checkpoint in packs that differ from those at the time of adding it.
    fn touch_by_other_packs(&mut self, manifest: &Manifest, touched: &mut BTreeMap<usize, Touch>) {
        for pack in self.store.other_packs(manifest, |_| true) {
            let problem = match self.others.get(&pack) {
                Some(&problem) => problem,
                None => self.problem(pack, None, None, reason_of(&self.store.other_pack(pack))),
            };
            self.others.insert(pack, problem);
            let touch = touched.entry(problem).or_default();
            for (&entry, recipe) in &manifest.recipes {
                let runs = recipe.runs.iter().filter(|run| run.first.is_some_and(|first| first.pack == pack));
                let bytes = runs.fold(0u64, |sum, run| sum.saturating_add(run.bytes()));
                if bytes > 0 {
                    touch.files.insert(entry);
                    touch.bytes = touch.bytes.saturating_add(bytes);
                }
            }
        }
    }

    /// The effect of problems on a checkpoint.
    fn touched(&self, manifest: &Manifest, tainted: &Tainted) -> BTreeMap<usize, Touch> {
        let mut touched: BTreeMap<usize, Touch> = BTreeMap::new();
        if tainted.is_empty() && self.hashes.is_empty() {
            return touched;
        }
        for (&entry, recipe) in &manifest.recipes {
            for run in &recipe.runs {
                let Some(first) = run.first else { continue };
                let problems = tainted.get(&block_of(first)).into_iter().flatten();
                for &problem in problems.chain(self.hashes.get(&first.pack)) {
                    let touch = touched.entry(problem).or_default();
                    touch.files.insert(entry);
                    touch.bytes = touch.bytes.saturating_add(run.bytes());
                }
            }
        }
        touched
    }

    fn note(&mut self, manifest: &Manifest, touched: BTreeMap<usize, Touch>) {
        for (problem, touch) in touched {
            let path = |entry: &u32| Some(manifest.entries.get(*entry as usize)?.path.clone());
            let files = touch.files.iter().filter_map(path).collect();
            let affected = Affected { number: manifest.number, files, bytes: touch.bytes };
            if let Some(problem) = self.found.problems.get_mut(problem) {
                problem.checkpoints.push(affected);
            }
        }
    }
}

/// An error without the path, which is reported separately.
fn reason_of(error: &CheckpointError) -> String {
    match error {
        CheckpointError::DamagedManifest { reason, .. }
        | CheckpointError::DamagedPack { reason, .. }
        | CheckpointError::DamagedBlock { reason, .. } => (*reason).to_owned(),
        other => {
            let source = std::error::Error::source(other).map(|source| format!(": {source}"));
            format!("{other}{}", source.unwrap_or_default())
        }
    }
}

/// The block of a chunk.
fn block_of(chunk: ChunkId) -> (u32, u32) {
    (chunk.pack, chunk.block)
}
