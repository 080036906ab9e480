//! Generated series have the requested layout and changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use hopmap_checkpoint::{Change, Generate, GenerateParams, Layout, Width};
use hopmap_model::{CheckpointSeries, Context, Inputs, Outcome, Stage};
use proptest::prelude::*;

use crate::image_records::{Record, pages, records};

const PAGE: usize = 4096;

fn generate(params: GenerateParams) -> Result<CheckpointSeries, String> {
    Generate::check(&params).map_err(|error| error.to_string())?;
    match Generate::run(params, Inputs::new(), &Context::detached()).map_err(|error| error.to_string())? {
        Outcome::Done(outputs) => {
            Ok(outputs.get("checkpoints").unwrap().downcast_ref::<CheckpointSeries>().unwrap().clone())
        }
        other => panic!("{other:?}"),
    }
}

/// Two checkpoints of one rank with 400 pages, all of them heap and areas.
fn params(changes: &[Change]) -> GenerateParams {
    GenerateParams {
        checkpoints: 2,
        ranks: 1,
        bytes: 400 * PAGE as u64,
        layout: Layout::Dmtcp,
        shared: 0.0,
        changes: changes.to_vec(),
        seed: 7,
    }
}

fn all() -> Vec<Change> {
    vec![
        Change::Moves { pages: 0.1, areas: 1 },
        Change::Insertions { count: 3, bytes: 100 },
        Change::Words { pages: 0.3, words: 0.1 },
        Change::Drift { share: 0.2, step: 1e-4, width: Width::Double },
        Change::Growth { pages: 0.05 },
        Change::Zeros { pages: 0.05 },
        Change::Drift { share: 0.1, step: 1e-3, width: Width::Single },
    ]
}

fn bytes_of(series: &CheckpointSeries) -> BTreeMap<String, Vec<u8>> {
    series.files().iter().map(|(name, path)| (name.clone(), fs::read(path).unwrap())).collect()
}

/// The images of a rank, in order.
fn images(params: GenerateParams) -> Vec<Vec<u8>> {
    bytes_of(&generate(params).unwrap()).into_values().collect()
}

/// The pages of an image with contents, by their addresses.
fn memory(image: &[u8]) -> BTreeMap<u64, &[u8]> {
    pages(image, &records(image)).into_iter().collect()
}

fn areas(image: &[u8]) -> Vec<Record> {
    records(image).into_iter().filter(|record| record.properties & 4 == 0).collect()
}

#[test]
fn a_series_has_one_file_per_rank_and_checkpoint_and_is_reproducible() {
    let params = GenerateParams { checkpoints: 3, ranks: 2, shared: 0.2, ..params(&all()) };
    let series = generate(params.clone()).unwrap();
    assert_eq!(series.checkpoints().into_iter().collect::<Vec<_>>(), ["0001", "0002", "0003"]);
    let names: Vec<_> = series.files_of("0002").map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["rank-0000.dmtcp", "rank-0001.dmtcp"]);
    let bytes = bytes_of(&series);
    assert_eq!(bytes.values().collect::<BTreeSet<_>>().len(), 6, "two files are the same");
    assert_eq!(bytes_of(&generate(params.clone()).unwrap()), bytes);
    let other = bytes_of(&generate(GenerateParams { seed: 8, ..params }).unwrap());
    assert!(bytes.iter().all(|(name, image)| *image != other[name]));
    // If the bytes change, `REVISION` has to change.
    let mut hasher = blake3::Hasher::new();
    for image in bytes.values() {
        hasher.update(image);
    }
    assert_eq!(hasher.finalize().to_hex()[..16], *"dfb37dbb9342aad2");
}

#[test]
fn a_plain_file_is_the_memory_of_the_image() {
    let plain = GenerateParams { shared: 0.2, layout: Layout::Plain, ..params(&all()) };
    let image = images(GenerateParams { layout: Layout::Dmtcp, ..plain.clone() });
    let plain = images(plain);
    assert!(plain[0].len().abs_diff(400 * PAGE) < PAGE, "the end of a file is not in its last page");
    // No insertions and no zeros yet, so the contents are those of the records in order.
    let joined: Vec<u8> =
        records(&image[0]).into_iter().flat_map(|record| image[0][record.contents].to_vec()).collect();
    assert!(joined == plain[0]);
}

#[test]
fn only_libraries_are_the_same_in_all_ranks_and_checkpoints() {
    let params = GenerateParams { ranks: 2, shared: 0.25, ..params(&[]) };
    let files = bytes_of(&generate(params).unwrap());
    let mapped = |image: &[u8]| -> Vec<(Record, Vec<u8>)> {
        let mapped = areas(image).into_iter().filter(|area| !area.is_parent());
        mapped
            .map(|area| (Record { at: 0, contents: 0..0, ..area.clone() }, image[area.contents].to_vec()))
            .collect()
    };
    let first = mapped(&files["0001/rank-0000.dmtcp"]);
    assert_eq!(first.iter().map(|(area, _)| area.length).sum::<u64>(), 100 * PAGE as u64);
    assert!(files.values().all(|image| mapped(image) == first));
    let own = |name: &str| {
        let image = &files[name];
        let pages = memory(image).into_iter().filter(|&(address, _)| address < first[0].0.start);
        pages.map(|(_, page)| page.to_vec()).collect::<BTreeSet<_>>()
    };
    assert_eq!(own("0001/rank-0000.dmtcp").len(), 300);
    assert!(own("0001/rank-0000.dmtcp").is_disjoint(&own("0001/rank-0001.dmtcp")));
    // The libraries do not change.
    assert!(own("0001/rank-0000.dmtcp") == own("0002/rank-0000.dmtcp"));
}

#[test]
fn words_change_in_the_requested_fractions_of_pages_and_words() {
    let images = images(params(&[Change::Words { pages: 0.25, words: 0.125 }]));
    let (before, after) = (memory(&images[0]), memory(&images[1]));
    assert!(before.keys().eq(after.keys()));
    let changed: Vec<_> = before.iter().filter(|&(address, page)| after[address] != *page).collect();
    assert!((70..130).contains(&changed.len()), "{} of 400 pages", changed.len());
    for (address, page) in changed {
        let words = page.chunks(8).zip(after[address].chunks(8)).filter(|(one, other)| one != other).count();
        assert!((30..110).contains(&words), "{words} of 512 words");
    }
}

#[test]
fn moved_pages_are_where_others_were() {
    let images = images(params(&[Change::Moves { pages: 0.2, areas: 0 }]));
    let (before, after) = (memory(&images[0]), memory(&images[1]));
    let moved = before.iter().filter(|&(address, page)| after[address] != *page).count();
    assert!((60..=80).contains(&moved), "{moved} of 400 pages");
    assert!(before.values().collect::<BTreeSet<_>>() == after.values().collect::<BTreeSet<_>>());
}

#[test]
fn moved_areas_keep_their_contents() {
    let images = images(params(&[Change::Moves { pages: 0.0, areas: 1 }]));
    let starts = |image: &[u8]| areas(image).iter().map(|area| area.start).collect::<BTreeSet<_>>();
    let (before, after) = (starts(&images[0]), starts(&images[1]));
    assert_eq!((before.len(), before.intersection(&after).count()), (9, 8));
    let pages = |image| memory(image).into_values().map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
    assert!(pages(&images[0]) == pages(&images[1]));
}

#[test]
fn insertions_shift_everything_after_them() {
    let plain =
        GenerateParams { layout: Layout::Plain, ..params(&[Change::Insertions { count: 1, bytes: 100 }]) };
    let images = images(plain);
    let (before, after) = (&images[0], &images[1]);
    assert_eq!(after.len(), before.len() + 100);
    let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    assert!(before[same..] == after[same + 100..]);
}

#[test]
fn an_image_grows_by_pages_and_an_area() {
    let images = images(params(&[Change::Growth { pages: 0.1 }, Change::Insertions { count: 1, bytes: 1 }]));
    let pages = |image: &[u8]| areas(image).iter().map(|area| area.length / PAGE as u64).sum::<u64>();
    assert_eq!((pages(&images[0]), pages(&images[1])), (400, 441));
    assert_eq!((areas(&images[0]).len(), areas(&images[1]).len()), (9, 10));
}

#[test]
fn pages_become_zero_and_get_contents_again() {
    let params = GenerateParams { checkpoints: 3, ..params(&[Change::Zeros { pages: 0.1 }]) };
    let images = images(params);
    let memories: Vec<_> = images.iter().map(|image| memory(image)).collect();
    assert_eq!(memories.iter().map(BTreeMap::len).collect::<Vec<_>>(), [400, 360, 360]);
    let filled = memories[2].keys().filter(|&address| !memories[1].contains_key(address)).count();
    assert_eq!(filled, 40);
    // Added and removed records shift later data in the file.
    assert_ne!(records(&images[1]).len(), records(&images[0]).len());
}

#[test]
fn only_fields_change_and_by_small_steps() {
    for (width, bytes) in [(Width::Double, 8), (Width::Single, 4)] {
        let images = images(params(&[Change::Drift { share: 0.5, step: 1e-3, width }]));
        let (before, after) = (memory(&images[0]), memory(&images[1]));
        let changed: Vec<_> = before.iter().filter(|&(address, page)| after[address] != *page).collect();
        assert_eq!(changed.len(), 200);
        for (address, page) in changed {
            let numbers = page.chunks(bytes).zip(after[address].chunks(bytes));
            let steps = numbers.map(|(before, after)| (number(after) - number(before)).abs());
            assert!(steps.clone().all(|step| step < 1.001e-3));
            assert!(steps.fold(0.0, f64::max) > 0.0);
        }
        assert!(before.iter().any(|(_, page)| number(&page[..bytes]).abs() > 0.1));
    }
}

fn number(bytes: &[u8]) -> f64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(double) => f64::from_le_bytes(double),
        Err(_) => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = |change: fn(&mut GenerateParams)| {
        let mut params = params(&[]);
        change(&mut params);
        generate(params).unwrap_err()
    };
    assert_eq!(refused(|params| params.ranks = 0), "`ranks` = 0 is out of range");
    assert_eq!(refused(|params| params.checkpoints = 10_000), "`checkpoints` = 10000 is out of range");
    assert_eq!(refused(|params| params.bytes = 1 << 60), "`bytes` = 1152921504606846976 is out of range");
    assert_eq!(refused(|params| params.shared = f64::NAN), "`shared` = NaN is out of range");
    assert_eq!(
        refused(|params| params.changes = vec![Change::Zeros { pages: 1.5 }]),
        "`zeros: pages` = 1.5 is out of range"
    );
    assert_eq!(
        refused(|params| params.changes = vec![Change::Insertions { count: 1, bytes: 0 }]),
        "`insertions` = 1 of 0 bytes each is out of range"
    );
    let growing = |params: &mut GenerateParams| {
        params.checkpoints = 9999;
        params.changes = vec![Change::Insertions { count: 10_000, bytes: 1 << 20 }];
    };
    assert_eq!(refused(growing), "the memory of a rank grows to 1.048e14 bytes");
    let much = |params: &mut GenerateParams| {
        params.shared = 0.5;
        params.changes = vec![Change::Drift { share: 0.75, step: 0.1, width: Width::Single }];
    };
    assert_eq!(refused(much), "libraries and fields take 1.25 of the memory, more than 1");
}

#[test]
fn changes_are_read_from_json() {
    let text = r#"{
        "checkpoints": 5, "bytes": 65536,
        "changes": [{ "kind": "drift", "share": 0.5, "width": "single" }, { "kind": "moves", "areas": 2 }]
    }"#;
    let params: GenerateParams = serde_json::from_str(text).unwrap();
    let drift = Change::Drift { share: 0.5, step: 1e-4, width: Width::Single };
    assert_eq!(params.changes, [drift, Change::Moves { pages: 0.0, areas: 2 }]);
    assert_eq!((params.ranks, params.layout, params.seed), (1, Layout::Dmtcp, 1));
    let wrong = text.replace("areas", "zones");
    assert!(
        serde_json::from_str::<GenerateParams>(&wrong)
            .unwrap_err()
            .to_string()
            .contains("unknown field `zones`")
    );
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..0.4]
}

fn change() -> impl Strategy<Value = Change> {
    let width = prop_oneof![Just(Width::Single), Just(Width::Double)];
    prop_oneof![
        (share(), 0..5_u32).prop_map(|(pages, areas)| Change::Moves { pages, areas }),
        (0..5_u32, 1..9000_u32).prop_map(|(count, bytes)| Change::Insertions { count, bytes }),
        (share(), share()).prop_map(|(pages, words)| Change::Words { pages, words }),
        (0.0..0.2, share(), width).prop_map(|(share, step, width)| Change::Drift { share, step, width }),
        share().prop_map(|pages| Change::Growth { pages }),
        share().prop_map(|pages| Change::Zeros { pages }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_image_is_valid_and_has_the_contents_of_the_plain_file(
        changes in prop::collection::vec(change(), 0..5),
        shared in share(),
        pages in 16..80_u64,
        checkpoints in 1..4_u32,
    ) {
        let params = GenerateParams { checkpoints, bytes: pages * PAGE as u64 + 5, shared, ..params(&changes) };
        prop_assume!(Generate::check(&params).is_ok());
        let plain = images(GenerateParams { layout: Layout::Plain, ..params.clone() });
        let images = images(params);
        prop_assert_eq!(images.len(), checkpoints as usize);
        for (image, plain) in images.iter().zip(plain) {
            let joined: Vec<u8> = records(image).into_iter().filter(|record| !record.is_parent()).flat_map(|record| {
                match record.properties & 1 {
                    0 => image[record.contents].to_vec(),
                    _ => vec![0; record.length as usize],
                }
            }).collect();
            // In the image, the heap is padded to a multiple of the page size.
            let missing = joined.len() - plain.len();
            prop_assert!(missing < PAGE);
            let heap = areas(image).first().filter(|area| area.name == "[heap]").map_or(0, |area| area.length as usize);
            let end = heap.saturating_sub(missing);
            prop_assert!(joined[..end] == plain[..end] && joined[end + missing..] == plain[end..]);
        }
    }
}
