//! From damaged blocks to the files they touch.

use std::collections::{BTreeMap, BTreeSet};

use super::super::manifest::Manifest;
use super::{Look, Touch, block_of, reason_of};

/// The problems that keep a block from being decoded; blocks without any are not in it.
pub(super) type Tainted = BTreeMap<(u32, u32), BTreeSet<usize>>;

impl Look<'_> {
    /// What cannot be decoded, and why.
    pub(super) fn tainted(&self) -> Tainted {
        let mut tainted = Tainted::new();
        if self.packs.is_empty() && self.blocks.is_empty() {
            return tainted;
        }
        // Blocks are told by those of packs before, so what these lack is known already.
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

    /// The files of a checkpoint that are in packs which are not those it was added with.
    pub(super) fn touch_by_other_packs(&mut self, manifest: &Manifest, touched: &mut BTreeMap<usize, Touch>) {
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

    /// What problems mean to a checkpoint.
    pub(super) fn touched(&self, manifest: &Manifest, tainted: &Tainted) -> BTreeMap<usize, Touch> {
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
}
