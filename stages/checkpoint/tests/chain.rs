//! Stores with a rule for whole checkpoints, compared with the published deltas.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hopmap_checkpoint::delta::{Settings as Rules, WriteCost, deltas};
use hopmap_checkpoint::series::all;
use hopmap_checkpoint::store::{AddOptions, DeltaSettings, Keep, Manifest, Settings, Source, Store};
use hopmap_checkpoint::{Align, CheckpointError, Matching, StoreRule};
use hopmap_model::{CheckpointDelta, Context};

use crate::support::store::{Dice, Files, Sample, noise, plant, restore_folder};

const RULES: [StoreRule; 4] =
    [StoreRule::First, StoreRule::Incremental, StoreRule::AdcaLiteral, StoreRule::AdcaImmediate];
const OVERHEAD: u32 = 24;

fn settings(rule: StoreRule, block: u32, matching: Matching) -> Settings {
    let deltas = DeltaSettings { rule, block, matching, block_overhead: OVERHEAD };
    Settings { deltas: Some(deltas), seed: 20_261_124, ..Settings::default() }
}

/// Checkpoints of a program that settles down, occasionally restarts, moves a table, and gets zeros: ADCA
/// changes its base several times, but never for all of it.
fn series(checkpoints: u64) -> Vec<Files> {
    let mut dice = Dice(7);
    let mut image = noise(1, 60 * 1024 + 77);
    let mut table = noise(2, 16 * 1024);
    let mut found = Vec::new();
    for number in 1..=checkpoints {
        let files =
            [("image", &image), ("part/table", &table)].map(|(name, bytes)| (name.into(), bytes.clone()));
        found.push(Files::from(files));
        // Data that changes once, decreasing over time, and data that always changes.
        let fresh = if number % 7 == 1 { 20 } else { 12 / (number as usize % 7 + 1) };
        for _ in 0..fresh {
            let page = dice.below(60) * 1024;
            image[page..page + 1024].copy_from_slice(&noise(dice.next(), 1024));
        }
        image[..2048].copy_from_slice(&noise(dice.next(), 2048));
        table.rotate_right(1024);
        image.extend(vec![0; 300]);
    }
    found
}

/// The results of `checkpoint/delta` for a series and a rule.
fn published(series: &[Files], rule: StoreRule, block: u32, matching: Matching) -> Vec<CheckpointDelta> {
    let folder = tempfile::tempdir().unwrap();
    for (number, files) in (1..).zip(series) {
        plant(&folder.path().join(format!("ckpt_{number}")), files);
    }
    let rules = Rules {
        blocks: vec![block],
        rules: rule.of_deltas().into_iter().collect(),
        epsilon: 0.2,
        align: Align::Position,
        matching,
        block_overhead: OVERHEAD.into(),
        cost: WriteCost::default(),
    };
    deltas(&all(folder.path()).unwrap(), &rules, &Context::detached()).unwrap().0.checkpoints
}

/// A store of all checkpoints of a series.
fn stored(series: &[Files], settings: Settings) -> Sample {
    let mut sample = Sample::of(settings);
    series.iter().for_each(|files| sample.add_files(files.clone()));
    sample
}

fn manifests(sample: &Sample) -> Vec<Manifest> {
    let store = sample.store();
    store.numbers().unwrap().into_iter().map(|number| store.manifest(number).unwrap()).collect()
}

fn add(store: &Store, folder: &Path, options: &AddOptions) -> Result<u32, CheckpointError> {
    let lock = store.lock("a test", Duration::ZERO).unwrap();
    let added = store.add(&lock, Source::Folder(folder), options, &Context::detached())?;
    Ok(added.manifest.number)
}

#[test]
fn a_chain_of_twenty_follows_the_published_rules_and_is_restored() {
    let series = series(20);
    for matching in [Matching::Address, Matching::Anywhere] {
        for rule in RULES {
            let expected = published(&series, rule, 1024, matching);
            let sample = stored(&series, settings(rule, 1024, matching));
            let found = manifests(&sample);
            assert_eq!(found.len(), 20);
            for (row, manifest) in expected.iter().zip(&found) {
                let delta = manifest.delta.unwrap();
                let place = (rule, matching, manifest.number);
                assert_eq!(row.base.unwrap_or(0), manifest.earlier, "{place:?}");
                assert_eq!(row.changed_blocks, delta.blocks, "{place:?}");
                assert_eq!(row.stored_bytes, delta.bytes, "{place:?}");
                assert_eq!(row.depth, delta.depth, "{place:?}");
                // The pack has only the changed blocks, uncompressed.
                let places = row.base.map_or(0, |_| u64::from(OVERHEAD) * delta.blocks);
                assert_eq!(manifest.figures.stored + places, row.stored_bytes, "{place:?}");
            }
            sample.assert_restores(&(1..=20).collect::<Vec<u32>>());
            assert!(sample.verify(true).problems.is_empty());
        }
    }
}

#[test]
fn rules_and_matchings_differ_on_the_series() {
    let series = series(20);
    let bases = |rule| -> Vec<u32> {
        published(&series, rule, 1024, Matching::Address).iter().filter_map(|row| row.base).collect()
    };
    let all = RULES.map(bases);
    assert!(all.iter().enumerate().all(|(index, one)| !all[index + 1..].contains(one)), "{all:?}");
    let stored = |matching| -> u64 {
        published(&series, StoreRule::First, 1024, matching).iter().map(|row| row.stored_bytes).sum()
    };
    assert!(stored(Matching::Anywhere) < stored(Matching::Address));
}

/// `K_t = Δ⁻¹(C_t, K_b)`: only the packs of the chain are needed.
#[test]
fn a_checkpoint_needs_only_the_deltas_of_its_chain() {
    let series = series(12);
    let sample = stored(&series, settings(StoreRule::AdcaImmediate, 1024, Matching::Address));
    let manifests = manifests(&sample);
    let mut chain = vec![12];
    while let Some(base) = manifests.get(chain[chain.len() - 1] as usize - 1).map(|found| found.earlier)
        && base > 0
    {
        chain.push(base);
    }
    assert!(chain.len() > 2 && chain.len() < 12, "{chain:?}");
    for number in (1..=12).filter(|number| !chain.contains(number)) {
        fs::remove_file(sample.path().join(format!("packs/{number}.pack"))).unwrap();
    }
    restore_folder(&sample.store(), 12, sample.folder.path(), &series[11]).unwrap();
}

#[test]
fn damage_in_a_chain_is_reported_with_all_dependents() {
    let series = series(10);
    let sample = stored(&series, settings(StoreRule::Incremental, 1024, Matching::Address));
    let pack = sample.path().join("packs/4.pack");
    let mut bytes = fs::read(&pack).unwrap();
    bytes[40] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let verified = sample.verify(false);
    let touched: Vec<u32> = verified.problems[0].checkpoints.iter().map(|found| found.number).collect();
    assert!(touched.starts_with(&[4, 5]), "{touched:?}");
    assert_eq!(verified.damaged(), touched);
    assert!(verified.intact().starts_with(&[1, 2, 3]));
    let error = restore_folder(&sample.store(), 5, sample.folder.path(), &series[4]).unwrap_err();
    assert!(matches!(error, CheckpointError::DamagedChain { number: 5, damaged: 4, .. }), "{error:?}");
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.contains("depend on it: 4-"), "{help}");
    restore_folder(&sample.store(), 3, sample.folder.path(), &series[2]).unwrap();
    // Checkpoints added after damage are intact: lost data is stored again.
    let mut sample = sample;
    sample.add_files(series[9].clone());
    restore_folder(&sample.store(), 11, sample.folder.path(), &series[9]).unwrap();
}

#[test]
fn prune_keeps_what_later_checkpoints_need_and_the_base_of_the_next() {
    let series = series(12);
    for rule in RULES {
        let mut sample = stored(&series[..10], settings(rule, 1024, Matching::Address));
        let held = manifests(&sample)[9].delta.unwrap().held;
        let refused = sample.prune(&Keep { remove: vec![held], ..Keep::default() });
        assert!(matches!(refused, Err(CheckpointError::IsBase(number)) if number == held), "{rule:?}");
        let pruned = sample.prune(&Keep { last: Some(1), ..Keep::default() }).unwrap();
        let mut kept = vec![held, 10];
        kept.dedup();
        assert_eq!(pruned.kept, kept, "{rule:?}");
        sample.assert_restores(&kept);
        // The rule continues as if nothing had been removed, except for the base of its base.
        let expected = published(&series, rule, 1024, Matching::Address);
        for number in [10, 11] {
            sample.add_files(series[number].clone());
            let store = sample.store();
            let manifest = store.manifest(number as u32 + 1).unwrap();
            assert_eq!(Some(manifest.earlier), expected[number].base, "{rule:?}");
            assert_eq!(manifest.delta.unwrap().bytes, expected[number].stored_bytes, "{rule:?}");
            restore_folder(&store, number as u32 + 1, sample.folder.path(), &series[number]).unwrap();
        }
        assert!(sample.verify(true).problems.is_empty());
    }
}

#[test]
fn a_store_keeps_its_rule() {
    let sample = stored(&series(2), settings(StoreRule::First, 4096, Matching::Address));
    let from = sample.folder.path().join("from");
    let with = |rule| AddOptions { rule, ..AddOptions::default() };
    let refused = add(&sample.store(), &from, &with(Some(StoreRule::Incremental))).unwrap_err();
    assert!(refused.to_string().contains("is `first`, not `incremental`"), "{refused}");
    assert_eq!(add(&sample.store(), &from, &with(Some(StoreRule::First))).unwrap(), 3);
    assert_eq!(add(&sample.store(), &from, &with(None)).unwrap(), 4);
    let text = fs::read_to_string(sample.path().join("store.json")).unwrap();
    assert!(text.contains("\"format\": 3") && text.contains("\"rule\": \"first\""), "{text}");
    // A block-wise store is not affected by rules.
    let blocks = Sample::new(1, 5);
    let text = fs::read_to_string(blocks.path().join("store.json")).unwrap();
    assert!(text.contains("\"format\": 2") && !text.contains("rule"), "{text}");
    let refused = add(&blocks.store(), &blocks.folder.path().join("from"), &with(Some(StoreRule::First)));
    assert!(matches!(refused, Err(CheckpointError::OtherRule { rule: "block-wise", .. })), "{refused:?}");
}

#[test]
fn a_new_series_and_a_new_chain_are_stored_in_full() {
    let series = series(3);
    let sample = stored(&series, settings(StoreRule::AdcaLiteral, 4096, Matching::Address));
    let (store, from) = (sample.store(), sample.folder.path().join("from"));
    let other = add(&store, &from, &AddOptions { name: "other".into(), ..AddOptions::default() }).unwrap();
    let anew = add(&store, &from, &AddOptions { whole: true, ..AddOptions::default() }).unwrap();
    let after = add(&store, &from, &AddOptions::default()).unwrap();
    let bases = [other, anew, after].map(|number| store.manifest(number).unwrap().earlier);
    assert_eq!(bases, [0, 0, anew]);
    let delta = store.manifest(after).unwrap().delta.unwrap();
    assert_eq!((delta.blocks, delta.bytes, delta.depth, delta.held), (0, 0, 1, anew));
}

#[test]
fn streams_need_rules_that_read_once() {
    let stream = |store: &Store, bytes: &'static [u8]| {
        let lock = store.lock("a test", Duration::ZERO).unwrap();
        let source = Source::Stream("image".into(), Box::new(bytes));
        store.add(&lock, source, &AddOptions::default(), &Context::detached())
    };
    for rule in RULES {
        let sample = Sample::of(settings(rule, 256, Matching::Address));
        let store = sample.store();
        stream(&store, &[7; 1000]).unwrap();
        let second = stream(&store, &[7; 900]);
        match rule {
            StoreRule::First | StoreRule::Incremental => {
                let delta = second.unwrap().manifest.delta.unwrap();
                assert_eq!((delta.blocks, delta.bytes), (1, 900 - 768 + u64::from(OVERHEAD)));
            }
            _ => assert!(matches!(second, Err(CheckpointError::ReadTwice)), "{second:?}"),
        }
    }
}

#[test]
fn invalid_block_lengths_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for block in [0, 128, 1000, 32_768] {
        let refused = Store::init(folder.path(), settings(StoreRule::First, block, Matching::Address));
        assert!(matches!(refused, Err(CheckpointError::Setting { name: "block_bytes", .. })), "{refused:?}");
    }
}
