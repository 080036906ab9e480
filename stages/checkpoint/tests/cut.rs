//! Files cut into chunks: any file is reproduced from its chunks, and unchanged data is found again.

use hopmap_checkpoint::chunk::{Chunk, Earlier, PAGE, Position, Space};
use hopmap_checkpoint::cut::{CutError, Format, PageMap, page_maps};
use proptest::prelude::*;

use crate::support::images::{Area, Cut, Slow, cut, cut_all, dmtcp, is_same, noise, places, record, sample};

/// Size of the meaningful part of a record.
const FIELDS: usize = 1112;

fn memory(address: u64) -> Position {
    Position { space: Space::Memory, address }
}

#[test]
fn an_image_is_cut_at_its_pages() {
    let image = dmtcp(&[
        Area::File(0x1000, noise(1, PAGE + 100), PAGE as u64 - 100),
        Area::Parts(0x9000, vec![Err(7), Ok([noise(2, PAGE), vec![0; 3 * PAGE]].concat())]),
    ]);
    let result = cut_all(&image, None).unwrap();
    assert_eq!(result.format, Format::Dmtcp);
    let file = |address| Position { space: Space::File, address };
    let record = |address| Position { space: Space::Record, address };
    let expected = [
        (file(0), PAGE),
        (file(4096), PAGE),
        (record(0x1000), FIELDS),
        (record(0x1000 + 1112), PAGE - FIELDS),
        (memory(0x1000), PAGE),
        (memory(0x2000), 100),
        (record(0x9001), FIELDS),
        (record(0x9001 + 1112), PAGE - FIELDS),
        (record(0x9000), FIELDS),
        (record(0x9000 + 1112), PAGE - FIELDS),
        (record(0x1_0000), FIELDS),
        (record(0x1_0000 + 1112), PAGE - FIELDS),
        (memory(0x1_0000), PAGE),
        (memory(0x1_1000), 3 * PAGE),
        (record(0), FIELDS),
        (record(1112), PAGE - FIELDS),
    ];
    assert_eq!(places(&result), expected);
    assert!(result.chunks[13].zero);
}

#[test]
fn uninitialized_bytes_of_records_do_not_change_all_records() {
    let before = sample();
    let earlier = cut_all(&before, None).unwrap().earlier();
    let after: Vec<u8> = before.iter().map(|&byte| if byte == 0xaa { 0xab } else { byte }).collect();
    let before_of = |chunk: &Chunk| *earlier.get(chunk.base_chunk.unwrap()).unwrap();
    let result = cut_all(&after, Some(&earlier)).unwrap();
    let records = result.chunks.iter().filter(|chunk| chunk.place.space == Space::Record);
    let (fields, rests): (Vec<_>, Vec<_>) = records.partition(|chunk| chunk.length == FIELDS);
    assert!(fields.iter().all(|chunk| before_of(chunk).hash == chunk.hash.kept()));
    assert!(rests.iter().all(|chunk| chunk.hash == rests[0].hash && before_of(chunk).place == chunk.place));
    assert_eq!((fields.len(), rests.len()), (9, 9));
}

#[test]
fn data_keeps_its_alignment_to_addresses() {
    let image = dmtcp(&[Area::File(0x1ff0, noise(1, 2 * PAGE), 0)]);
    let result = cut_all(&image, None).unwrap();
    let expected = [(memory(0x1ff0), 16), (memory(0x2000), PAGE), (memory(0x3000), PAGE - 16)];
    assert_eq!(places(&result)[4..7], expected);
}

#[test]
fn pages_are_found_again_after_new_records() {
    let data = noise(1, 40 * PAGE);
    let before = dmtcp(&[Area::Parts(0x10_0000, vec![Ok(data.clone()), Err(3)])]);
    let (head, tail) = data.split_at(20 * PAGE);
    let mut changed = tail.to_vec();
    changed[5 * PAGE + 7] ^= 1;
    let after = dmtcp(&[
        Area::Parts(0x8_0000, vec![Ok(noise(2, PAGE))]),
        Area::Parts(0x10_0000, vec![Ok(head.to_vec()), Ok(changed), Err(3)]),
    ]);
    let earlier = cut_all(&before, None).unwrap().earlier();
    let result = cut_all(&after, Some(&earlier)).unwrap();
    let new: Vec<Position> =
        result.chunks.iter().filter(|chunk| !is_same(chunk, &earlier)).map(|c| c.place).collect();
    let record = |address| Position { space: Space::Record, address };
    let expected = [
        record(0x8_0001),
        record(0x8_0001 + 1112),
        record(0x8_0000),
        record(0x8_0000 + 1112),
        memory(0x8_0000),
        record(0x10_0000),
        record(0x11_4000),
        memory(0x11_9000),
    ];
    assert_eq!(new, expected);
    let page = result.chunks.iter().find(|chunk| chunk.place == memory(0x11_9000)).unwrap();
    assert_eq!(earlier.get(page.base_chunk.unwrap()).unwrap().place, memory(0x11_9000));
    let new_record = result.chunks.iter().find(|chunk| chunk.place == record(0x11_4000)).unwrap();
    assert_eq!(earlier.get(new_record.base_chunk.unwrap()).unwrap().place.space, Space::Record);
}

#[test]
fn bytes_after_the_last_record_are_kept() {
    let mut image = sample();
    image.extend(noise(9, 5000));
    let result = cut_all(&image, None).unwrap();
    let last = places(&result).pop().unwrap().0;
    assert_eq!(last, Position { space: Space::File, address: (image.len() as u64 - 1) / 4096 * 4096 });
}

#[test]
fn truncated_images_are_rejected() {
    let image = sample();
    for end in (28..image.len()).step_by(511).chain([image.len() - 1]) {
        let error = cut_all(&image[..end], None).err().unwrap();
        assert!(
            matches!(error, CutError::Incomplete { offset, .. } if offset == end as u64),
            "{end}: {error}"
        );
    }
}

#[test]
fn inconsistent_images_are_rejected() {
    let header = sample()[..2 * PAGE].to_vec();
    let page = PAGE as u64;
    let cases: [(&str, &[[u64; 4]]); 12] = [
        ("larger than memory", &[[u64::MAX - 5, page, u64::MAX, 0]]),
        ("inconsistent", &[[page, 0, u64::MAX, 0]]),
        ("properties", &[[page, page, u64::MAX, 8]]),
        ("properties", &[[page, page, u64::MAX, 3]]),
        ("properties", &[[page, page, u64::MAX, 1 << 40]]),
        ("smaller than the file", &[[page, page, page + 1, 0]]),
        ("out of place", &[[page, page, u64::MAX, 4]]),
        ("out of place", &[[page, page, u64::MAX, 2], [2 * page, page, u64::MAX, 5]]),
        ("out of place", &[[page, page, u64::MAX, 2], [page, 2 * page, u64::MAX, 5]]),
        (
            "missing",
            &[[page, 2 * page, u64::MAX, 2], [page, page, u64::MAX, 5], [4 * page, page, u64::MAX, 2]],
        ),
        ("missing", &[[page, 2 * page, u64::MAX, 2], [0, u64::MAX, u64::MAX, 0]]),
        ("two areas overlap", &[[4 * page, page, u64::MAX, 1], [2 * page, page, u64::MAX, 1]]),
    ];
    for (reason, records) in cases {
        let mut image = header.clone();
        for &[address, size, file, properties] in records {
            image.extend(record(address, size, file.cast_signed(), properties, b"/a"));
        }
        let offset = (image.len() - PAGE) as u64;
        let error = cut_all(&image, None).err().unwrap();
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert!(matches!(error, CutError::Damaged { offset: at, .. } if at == offset), "{error}");
    }
    let mut image = header;
    image[PAGE + 3] = b'X';
    assert!(matches!(cut_all(&image, None), Err(CutError::Damaged { offset: 4096, .. })));
}

#[test]
fn an_area_with_excessive_length_ends_early() {
    let mut image = sample()[..2 * PAGE].to_vec();
    image.extend(record(0x1000, u64::MAX - 0x1000, -1, 0, b"/a"));
    image.extend(noise(1, 10 * PAGE));
    assert!(matches!(cut_all(&image, None), Err(CutError::Incomplete { .. })));
}

#[test]
fn other_versions_and_compressed_images_are_plain_files() {
    let mut image = sample();
    image[25] = b'5';
    assert_eq!(cut_all(&image, None).unwrap().format, Format::Plain);
    let packed = [b"\x1f\x8b\x08".to_vec(), noise(1, 9000)].concat();
    assert_eq!(cut_all(&packed, None).unwrap().format, Format::Gzip);
    assert_eq!(cut_all(b"", None).unwrap().chunks, []);
}

#[test]
fn a_change_in_place_costs_one_chunk() {
    let before = noise(1, 2_000_000);
    let earlier = cut_all(&before, None).unwrap().earlier();
    let mut after = before;
    for at in (100_000..2_000_000).step_by(200_000) {
        after[at] ^= 0x55;
    }
    let result = cut_all(&after, Some(&earlier)).unwrap();
    let new: Vec<_> = result.chunks.iter().filter(|chunk| !is_same(chunk, &earlier)).collect();
    assert_eq!(new.len(), 10);
    for chunk in new {
        let base_chunk = earlier.get(chunk.base_chunk.unwrap()).unwrap();
        assert_eq!((base_chunk.place, base_chunk.length), (chunk.place, chunk.length));
    }
}

#[test]
fn insertions_and_removals_cost_a_few_chunks() {
    let before = noise(1, 2_000_000);
    let earlier = cut_all(&before, None).unwrap().earlier();
    let mut after = before.clone();
    after.splice(1_500_000..1_500_000, noise(2, 100_000));
    after.drain(700_000..900_000);
    after.splice(300_000..300_000, *b"some words");
    let result = cut_all(&after, Some(&earlier)).unwrap();
    assert!(result.new_bytes(&earlier) < 100_010 + 100_000, "{}", result.new_bytes(&earlier));
    let longer = [before.clone(), noise(3, 50_000)].concat();
    assert!(cut_all(&longer, Some(&earlier)).unwrap().new_bytes(&earlier) < 50_000 + 16_384);
    assert!(cut_all(&before[..1_000_000], Some(&earlier)).unwrap().new_bytes(&earlier) < 16_384);
}

#[test]
fn data_that_changes_everywhere_keeps_its_positions() {
    let before = noise(1, 1_000_000);
    let earlier = cut_all(&before, None).unwrap().earlier();
    let after: Vec<u8> = before.iter().map(|byte| byte ^ 1).collect();
    let result = cut_all(&after, Some(&earlier)).unwrap();
    for chunk in &result.chunks {
        let base_chunk = earlier.get(chunk.base_chunk.unwrap()).unwrap();
        assert_eq!((base_chunk.place, base_chunk.length), (chunk.place, chunk.length));
    }
}

#[test]
fn runs_of_zeros_are_skipped() {
    let mut bytes = noise(1, 300_000);
    bytes[10_001..14_097].fill(0);
    bytes[100_000..280_000].fill(0);
    let result = cut_all(&bytes, None).unwrap();
    let zeros: Vec<_> =
        result.chunks.iter().filter(|chunk| chunk.zero).map(|c| (c.place.address, c.length)).collect();
    assert_eq!(zeros, [(10_001, 4096), (100_000, 180_000)]);
}

#[test]
fn chunks_do_not_depend_on_the_sizes_of_reads() {
    for bytes in [sample(), noise(1, 200_000)] {
        let result = cut_all(&bytes, None).unwrap();
        for (step, amount) in [(1, 16 << 20), (300, 16 << 20), (3, 100_000), (77, 5000)] {
            let slow = cut(&bytes, None, None, amount, Box::new(Slow { bytes: &bytes, step })).unwrap();
            // Runs of zeros may be split.
            assert_eq!(data_places(&result), data_places(&slow));
        }
    }
}

fn data_places(cut: &Cut) -> Vec<(Position, usize)> {
    cut.chunks.iter().filter(|chunk| !chunk.zero).map(|chunk| (chunk.place, chunk.length)).collect()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let body: Vec<u8> =
        fields.iter().flat_map(|&(number, value)| [varint(number << 3), varint(value)].concat()).collect();
    [(body.len() as u32).to_le_bytes().to_vec(), body].concat()
}

fn page_map(pages: u64, entries: &[&[(u64, u64)]]) -> Vec<u8> {
    let mut bytes = [0x5456_4319_u32.to_le_bytes(), 0x5608_4025_u32.to_le_bytes()].concat();
    bytes.extend(message(&[(1, pages)]));
    entries.iter().for_each(|entry| bytes.extend(message(entry)));
    bytes
}

/// The page maps of a folder with these files.
fn maps(files: &[(&str, Vec<u8>)]) -> Vec<(String, PageMap)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    page_maps(folder.path()).into_iter().map(|(name, map)| (name.to_str().unwrap().to_owned(), map)).collect()
}

const STACK: u64 = 0x7ffc_1234_5000;

#[test]
fn criu_page_maps_are_read() {
    let entries: [&[(u64, u64)]; 6] = [
        &[(1, 0x40_0000), (2, 3), (4, 4)],
        &[(1, 0x40_3000), (2, 2), (4, 6)],
        &[(1, 0x50_0000), (2, 9), (3, 1)],
        &[(1, 0x60_0000), (2, 9), (4, 2)],
        &[(1, 0x70_0000), (2, 0), (4, 4), (5, 8)],
        &[(1, STACK), (2, 1)],
    ];
    let files = [
        ("pagemap-17.img", page_map(1, &entries)),
        ("pagemap-18.img", page_map(2, &[&[(1, 0x40_0000), (2, 1), (4, 4)]])),
        ("pagemap-shmem-5.img", page_map(3, &[&[(1, 0), (2, 2), (4, 4)]])),
        ("core-17.img", page_map(9, &entries)),
    ];
    let expected = [
        ("pages-1.img", vec![(0x40_0000, 5), (0x70_0000, 8), (STACK, 1)]),
        ("pages-2.img", vec![(0x40_0000, 1)]),
        ("pages-3.img", vec![(0, 2)]),
    ];
    assert_eq!(maps(&files), expected.map(|(name, runs)| (String::from(name), PageMap { runs })));
}

#[test]
fn unreliable_page_maps_are_not_used() {
    let good: &[(u64, u64)] = &[(1, 0x1000), (2, 1), (4, 4)];
    let bad: [&[(u64, u64)]; 5] = [
        &[(1, 0x1001), (2, 1), (4, 4)],
        &[(1, 0x1000), (2, 1), (4, 12)],
        &[(1, 0x1000), (2, 1), (4, 4), (6, 1)],
        &[(1, u64::MAX - 4095), (2, 1 << 60), (4, 4)],
        &[(1, 0x1000), (4, 4)],
    ];
    for entry in bad {
        assert_eq!(maps(&[("pagemap-1.img", page_map(1, &[good, entry]))]), []);
    }
    let twice = [("pagemap-1.img", page_map(1, &[good])), ("pagemap-2.img", page_map(1, &[good]))];
    assert_eq!(maps(&twice), []);
    let result = page_map(1, &[good, good]);
    for end in 0..result.len() {
        let read = maps(&[("pagemap-1.img", result[..end].to_vec())]);
        assert!(read.is_empty() || end == 14 || end == result.len() - 11, "{end}: {read:?}");
    }
}

#[test]
fn criu_pages_are_at_their_addresses() {
    let bytes = noise(1, 5 * PAGE);
    let map = PageMap { runs: vec![(0x40_0000, 2), (0x50_0000, 0), (STACK, 3)] };
    let one = |bytes| cut(bytes, None, Some(map.clone()), 5000, Box::new(bytes));
    let result = one(&bytes).unwrap();
    assert_eq!(result.format, Format::Criu);
    let addresses = [0x40_0000, 0x40_1000, STACK, STACK + 0x1000, STACK + 0x2000];
    assert_eq!(places(&result), addresses.map(|address| (memory(address), PAGE)));
    assert!(matches!(one(&bytes[..=3 * PAGE]), Err(CutError::Incomplete { offset: 12289, .. })));
    let longer = noise(1, 6 * PAGE + 5);
    let last = places(&one(&longer).unwrap()).pop().unwrap();
    assert_eq!(last, (Position { space: Space::File, address: 6 * 4096 }, 5));
}

/// Bytes with structure: pieces of noise, zeros and repetitions.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = (0..4_u8, 0..30_000_usize, 0..6_u64);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| {
        let pieces = pieces.into_iter().map(|(kind, length, seed)| match kind {
            0 => vec![0; length],
            1 => vec![seed as u8; length],
            _ => noise(seed, length),
        });
        pieces.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_file_is_reproduced(before in bytes(), after in bytes(), amount in 1..200_000_usize, step in 1..9999_usize) {
        let first = cut(&before, None, None, amount, Box::new(before.as_slice())).unwrap();
        let earlier = first.earlier();
        let same = cut(&before, Some(&earlier), None, amount * 2, Box::new(Slow { bytes: &before, step })).unwrap();
        prop_assert_eq!(same.new_bytes(&earlier), 0);
        cut(&after, Some(&earlier), None, amount, Box::new(Slow { bytes: &after, step })).unwrap();
    }

    #[test]
    fn any_earlier_version_is_accepted(before in bytes(), pages in 0..9_u64) {
        let image = sample();
        let strange = cut_all(&before, None).unwrap().earlier();
        cut_all(&image, Some(&strange)).unwrap();
        let image = cut_all(&image, None).unwrap().earlier();
        cut_all(&before, Some(&image)).unwrap();
        let map = PageMap { runs: vec![(0x60_0000, pages)] };
        let cut = cut(&before, Some(&image), Some(map), 4096, Box::new(before.as_slice()));
        prop_assert_eq!(cut.is_ok(), before.len() as u64 >= pages * 4096);
    }
}

#[test]
fn the_chunk_at_a_position_is_found() {
    let earlier = cut_all(&sample(), None).unwrap().earlier();
    for (index, chunk) in (0..).zip(earlier.chunks()) {
        assert_eq!(earlier.at(chunk.place), Some(index));
    }
    assert_eq!(earlier.at(memory(5)), None);
    assert_eq!(Earlier::default().at(memory(5)), None);
}
