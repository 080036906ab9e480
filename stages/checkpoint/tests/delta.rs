//! Deltas of series, compared with a slow implementation that holds whole images in memory, and consistency
//! of the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hopmap_checkpoint::delta::{Settings, WriteCost, deltas};
use hopmap_checkpoint::series::find;
use hopmap_checkpoint::{Align, Matching};
use hopmap_model::{CheckpointDelta, Context, DeltaRule, Deltas, RuleTotals};
use proptest::prelude::*;

/// A checkpoint: files by name.
type Image = BTreeMap<String, Vec<u8>>;

const OVERHEAD: u64 = 24;

fn settings(blocks: &[u32], epsilon: f64) -> Settings {
    Settings {
        blocks: blocks.to_vec(),
        rules: DeltaRule::ALL.to_vec(),
        epsilon,
        align: Align::Position,
        matching: Matching::Address,
        block_overhead: OVERHEAD,
        cost: WriteCost { latency_s: 0.5, bytes_per_s: 1000.0 },
    }
}

fn write(folder: &Path, series: &[Image]) {
    for (number, image) in (1..).zip(series) {
        let checkpoint = folder.join(format!("ckpt_{number}"));
        fs::create_dir(&checkpoint).unwrap();
        fs::write(checkpoint.join("always"), []).unwrap();
        for (name, bytes) in image {
            fs::write(checkpoint.join(name), bytes).unwrap();
        }
    }
}

fn streamed(series: &[Image], settings: &Settings) -> Deltas {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), series);
    let (deltas, complete) = deltas(&find(folder.path()).unwrap(), settings, &Context::detached()).unwrap();
    assert!(complete);
    check(&deltas, settings.cost);
    deltas
}

fn totals(deltas: &Deltas, rule: DeltaRule, block: u32) -> &RuleTotals {
    deltas.rules.iter().find(|totals| totals.rule == rule && totals.block == block).unwrap()
}

/// Derives depths, sums and E from the table of checkpoints.
fn check(deltas: &Deltas, cost: WriteCost) {
    for totals in &deltas.rules {
        let of_rule = |row: &&CheckpointDelta| (row.rule, row.block) == (totals.rule, totals.block);
        let rows: Vec<&CheckpointDelta> = deltas.checkpoints.iter().filter(of_rule).collect();
        let mut changes = 0;
        let mut deepest = 0;
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.checkpoint as usize, index + 1);
            let (mut depth, mut at) = (0, *row);
            while let Some(base) = at.base {
                assert!(base < at.checkpoint);
                at = rows[base as usize - 1];
                depth += 1;
            }
            assert_eq!(at.checkpoint, 1);
            assert_eq!(row.depth, depth);
            deepest = deepest.max(depth);
            if index > 1 && row.base != rows[index - 1].base {
                changes += 1;
            }
            assert!((row.write_s - cost.latency_s - row.stored_bytes as f64 / cost.bytes_per_s).abs() < 1e-9);
        }
        let bases: Vec<u32> = rows[1..].iter().map(|row| row.base.unwrap()).collect();
        assert_eq!(rows[0].stored_bytes, rows[0].full_bytes);
        assert_eq!(totals.bases, bases);
        assert_eq!(totals.sum_of_bases, bases.iter().map(|&base| u64::from(base)).sum::<u64>());
        assert_eq!((totals.base_changes, totals.depth), (changes, deepest));
        assert_eq!(totals.stored_bytes, rows.iter().map(|row| row.stored_bytes).sum::<u64>());
        let expected = rows.len() as f64 * cost.latency_s + totals.stored_bytes as f64 / cost.bytes_per_s;
        assert!((totals.write_s - expected).abs() < 1e-6 * expected);
    }
}

/// S(Δ(x, y)) with both images in memory.
fn size(image: &Image, base: &Image, block: usize) -> u64 {
    let mut bytes = 0;
    for (name, contents) in image {
        let other = base.get(name).map_or(&[][..], Vec::as_slice);
        for start in (0..contents.len()).step_by(block) {
            let end = contents.len().min(start + block);
            if other.get(start..other.len().min(start + block)) != Some(&contents[start..end]) {
                bytes += (end - start) as u64 + OVERHEAD;
            }
        }
    }
    bytes
}

/// The vector b of a rule as defined in the paper: the bases from the second checkpoint on.
fn slow(series: &[Image], block: usize, rule: DeltaRule, epsilon: f64) -> Vec<u32> {
    let count = series.len();
    let size = |t: usize, base: usize| size(&series[t - 1], &series[base - 1], block) as f64;
    // b[t] of the paper, from b[1]; the base of K_t is b[t - 1].
    let mut b = vec![0, 1];
    for t in 2..=count {
        let (old, new) = (size(t, b[t - 1]), size(t, t - 1));
        let fires = old != 0.0 && (old - new) / old > epsilon;
        if fires && rule == DeltaRule::AdcaImmediate {
            b[t - 1] = t - 1;
        }
        b.push(if fires { t - 1 } else { b[t - 1] });
    }
    let chosen = |t: usize| match rule {
        DeltaRule::First => 1,
        DeltaRule::Incremental => t - 1,
        DeltaRule::AdcaLiteral | DeltaRule::AdcaImmediate => b[t - 1],
        DeltaRule::Optimum => {
            (1..t).rev().min_by(|&x, &y| size(t, x).total_cmp(&size(t, y)).then(x.cmp(&y))).unwrap()
        }
    };
    (2..=count).map(|t| chosen(t) as u32).collect()
}

/// A file of tiles of 256 bytes of a few kinds, and some trailing bytes.
fn file() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(0_u8..3, 0..10), 0_usize..300).prop_map(|(tiles, rest)| {
        let mut bytes: Vec<u8> = tiles.into_iter().flat_map(|tile| [tile; 256]).collect();
        bytes.extend(std::iter::repeat_n(1, rest));
        bytes
    })
}

fn series() -> impl Strategy<Value = Vec<Image>> {
    prop::collection::vec(prop::collection::btree_map("[ab]", file(), 0..3), 2..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn streams_give_the_same_result_as_complete_images(series in series(), epsilon in 0.0_f64..0.6) {
        let found = streamed(&series, &settings(&[256, 512, 1024], epsilon));
        prop_assert_eq!(found.rules.len(), 15);
        for totals in &found.rules {
            let block = totals.block as usize;
            let bases = slow(&series, block, totals.rule, epsilon);
            prop_assert_eq!(&totals.bases, &bases, "{:?} {}", totals.rule, block);
            let rows = found.checkpoints.iter().filter(|row| (row.rule, row.block) == (totals.rule, totals.block));
            for (row, (index, base)) in rows.skip(1).zip(bases.iter().enumerate()) {
                let expected = size(&series[index + 1], &series[*base as usize - 1], block);
                prop_assert_eq!(row.stored_bytes, expected);
            }
        }
    }

    /// No vector is better than the optimum: all possible vectors b are tried.
    #[test]
    fn the_optimum_is_the_best_vector(series in prop::collection::vec(prop::collection::btree_map("[a]", file(), 1..2), 2..6)) {
        let found = streamed(&series, &settings(&[256], 0.2));
        let mut vectors: Vec<Vec<u32>> = vec![vec![]];
        for t in 2..=series.len() as u32 {
            vectors = vectors.iter().flat_map(|b| (1..t).map(|base| [&b[..], &[base]].concat())).collect();
        }
        let stored = |b: &Vec<u32>| -> u64 {
            let sizes = b.iter().enumerate();
            sizes.map(|(index, &base)| size(&series[index + 1], &series[base as usize - 1], 256)).sum()
        };
        let best = vectors.iter().min_by_key(|b| (stored(b), b.iter().sum::<u32>())).unwrap();
        let optimum = totals(&found, DeltaRule::Optimum, 256);
        prop_assert_eq!(&optimum.bases, best);
    }
}

/// A series like that of LAMMPS melt: `hot` blocks of 4096 bytes are new in every checkpoint; of the others
/// `fresh[t − 2]` change once, in t.
fn settling(hot: usize, fresh: &[usize]) -> Vec<Image> {
    let mut blocks = vec![[0_u8; 4096]; hot + fresh.iter().sum::<usize>() + 20];
    let mut series = vec![Image::from([("image".into(), blocks.as_flattened().to_vec())])];
    let mut next = hot;
    for (number, count) in (2..).zip(fresh) {
        blocks[..hot].fill([number; 4096]);
        blocks[next..next + count].fill([number; 4096]);
        next += count;
        series.push(Image::from([("image".into(), blocks.as_flattened().to_vec())]));
    }
    series
}

/// The vectors measured for images of LAMMPS, with aligned 4096-byte blocks. With h hot blocks and n(t) that
/// change in t only, Δ(t, s) has h + n(s + 1) + … + n(t) blocks. h = 10 and n(2 …) = 1, 9, 6, 6, 0, 1, 1, 0,
/// 1 save, compared with the current base, 1/20 at t = 3; 10/26, 6/22, 6/16 at t = 4, 5, 6; then 0/11, 1/12,
/// 2/12, 2/13: above ε = 1/5 at 4, 5 and 6.
#[test]
fn vectors_of_a_settling_series_are_those_measured() {
    let series = settling(10, &[1, 9, 6, 6, 0, 1, 1, 0, 1]);
    let found = streamed(&series, &settings(&[4096], 0.2));
    let bases = |rule| totals(&found, rule, 4096).bases.clone();
    assert_eq!(bases(DeltaRule::AdcaImmediate), [1, 1, 3, 4, 5, 5, 5, 5, 5]);
    assert_eq!(bases(DeltaRule::AdcaLiteral), [1, 1, 1, 3, 4, 5, 5, 5, 5]);
    let depth = |rule| totals(&found, rule, 4096).depth;
    assert_eq!([DeltaRule::AdcaImmediate, DeltaRule::Incremental, DeltaRule::First].map(depth), [4, 9, 1]);
    let full = series[0]["image"].len() as u64;
    let blocks = |rule| (totals(&found, rule, 4096).stored_bytes - full) / (4096 + OVERHEAD);
    // 11 + 20 and 16, 16, 10 when it switches, then 11, 12, 12 and 13.
    assert_eq!(blocks(DeltaRule::AdcaImmediate), 11 + 20 + 16 + 16 + 10 + 11 + 12 + 12 + 13);
    assert_eq!(blocks(DeltaRule::AdcaLiteral), 11 + 20 + 26 + 22 + 16 + 11 + 12 + 12 + 13);
    assert_eq!(blocks(DeltaRule::Incremental), 90 + 25);
    assert_eq!(blocks(DeltaRule::First), 11 + 20 + 26 + 32 + 32 + 33 + 34 + 34 + 35);
}

#[test]
fn nothing_changes_in_a_series_of_equal_checkpoints() {
    let image = Image::from([("image".into(), vec![7; 10_000]), ("empty".into(), vec![])]);
    let found = streamed(&vec![image; 4], &settings(&[256, 65_536], 0.0));
    for rule in &found.rules {
        assert_eq!(rule.stored_bytes, 10_000);
        let expected: &[u32] = if rule.rule == DeltaRule::Incremental { &[1, 2, 3] } else { &[1, 1, 1] };
        assert_eq!(rule.bases, expected);
    }
    assert!(found.checkpoints.iter().all(|row| row.saving.is_none()));
}

/// Blocks may be as long as the read window, and files longer.
#[test]
fn long_files_are_read_in_windows() {
    let mut image = vec![0_u8; 3 * 256 * 1024 + 17];
    let first = Image::from([("image".into(), image.clone())]);
    image[300_000] = 1;
    image[786_432 + 5] = 1;
    let found = streamed(&[first, Image::from([("image".into(), image)])], &settings(&[256, 65_536], 0.2));
    let stored = |block| totals(&found, DeltaRule::First, block).stored_bytes - 786_449;
    assert_eq!(stored(256), 256 + 17 + 2 * OVERHEAD);
    assert_eq!(stored(65_536), 65_536 + 17 + 2 * OVERHEAD);
}
