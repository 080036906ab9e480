//! Series of images: dumps of real programs, and images of DMTCP itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hopmap_checkpoint::series::dmtcp::{Area, ImageWriter, MappedFile, Part, Program};
use hopmap_checkpoint::store::{AddOptions, Settings, Source, Store};
use hopmap_model::Context;

use crate::dumps::{self, Kind};
use crate::image_records::{Record, pages, records};

/// Differences of two images: nonzero pages, new or changed pages among them, and changed words.
struct Difference {
    pages: usize,
    changed: usize,
    words: usize,
}

fn difference(earlier: &Path, later: &Path) -> Difference {
    let (earlier, later) = (fs::read(earlier).unwrap(), fs::read(later).unwrap());
    let before =
        pages(&earlier, &records(&earlier)).into_iter().collect::<std::collections::BTreeMap<_, _>>();
    let after = pages(&later, &records(&later));
    let mut difference = Difference { pages: after.len(), changed: 0, words: 0 };
    for (address, page) in after {
        match before.get(&address) {
            Some(&before) if before == page => {}
            Some(before) => {
                difference.changed += 1;
                let words = before.chunks(8).zip(page.chunks(8));
                difference.words += words.filter(|(before, after)| before != after).count();
            }
            None => difference.changed += 1,
        }
    }
    difference
}

/// Each program changes as much memory as expected, and little outside of its data.
#[test]
fn real_programs_change_their_memory_each_in_its_way() {
    for kind in Kind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let series = dumps::dump_series(folder.path(), kind, 3);
        let images: Vec<_> = series.iter().map(|checkpoint| dumps::image(checkpoint, kind)).collect();
        for pair in images.windows(2) {
            let Difference { pages, changed, words } = difference(&pair[0], &pair[1]);
            let megabytes = pages * 4096 / 1_000_000;
            assert!((5..60).contains(&megabytes), "{kind:?}: {megabytes} MB");
            let (least_pages, most_words) = match kind {
                // Two planes of 704 pages.
                Kind::Heat => (1300, 512),
                // Every fifth entry of 56 bytes: most pages, few words of each.
                Kind::Map => (400, 200),
                // 1172 pages, shifted from the first insertion on.
                Kind::Sorted => (1000, 512),
            };
            assert!((least_pages..pages).contains(&changed), "{kind:?}: {changed} of {pages} pages");
            assert!(words <= most_words * changed, "{kind:?}: {words} words of {changed} pages");
        }
    }
}

/// An image that is read and written again is identical, except for the header and the bytes after names in
/// records.
fn written_again(image: &[u8]) -> Vec<u8> {
    let program =
        Program { name: "solver".into(), executable: "/opt/solver".into(), process: 4000, peers: 1 };
    let mut writer = ImageWriter::new(Vec::new(), &program).unwrap();
    let records = records(image);
    let mut rest = records.as_slice();
    while let Some((record, behind)) = rest.split_first() {
        let area = area(record);
        let parts = behind.iter().take_while(|part| part.properties & 4 != 0).count();
        let (parts, behind) = behind.split_at(parts);
        rest = behind;
        match record.is_parent() {
            false => writer.mapped(&area, &image[record.contents.clone()]).unwrap(),
            true => writer.parts(&area, parts.iter().map(|part| self::part(image, part))).unwrap(),
        }
    }
    writer.finish().unwrap()
}

fn part<'a>(image: &'a [u8], record: &Record) -> Part<'a> {
    let contents = (record.properties & 1 == 0).then(|| &image[record.contents.clone()]);
    Part { length: record.length, contents }
}

fn area(record: &Record) -> Area {
    let [offset, protection, flags, major, minor, inode] = record.fields;
    let anonymous = flags & 0x20 != 0;
    Area {
        start: record.start,
        length: record.length,
        protection: protection as u32,
        shared: flags & 1 == 1,
        name: record.name.clone(),
        file: (!anonymous).then_some(MappedFile { offset, device: (major, minor), inode }),
    }
}

#[test]
fn an_image_is_reproduced_from_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let series = dumps::dump_series(folder.path(), Kind::Sorted, 1);
    let image = fs::read(dumps::image(&series[0], Kind::Sorted)).unwrap();
    assert!(written_again(&image)[8192..] == image[8192..]);
}

/// `HOPMAP_DMTCP_IMAGE` is the path of an uncompressed image of DMTCP 4.
#[test]
#[ignore = "needs an image of DMTCP"]
fn the_records_of_an_image_of_dmtcp_are_written_as_dmtcp_does() {
    let image = fs::read(std::env::var_os("HOPMAP_DMTCP_IMAGE").unwrap()).unwrap();
    let again = written_again(&image);
    assert_eq!(again.len(), image.len());
    let (theirs, ours) = (records(&image), records(&again));
    assert!(theirs == ours);
    for record in theirs {
        let contents = record.contents.clone();
        assert!(image[contents.clone()] == again[contents], "{:#x}", record.start);
        let meaningful = record.at..record.at + 88 + record.name.len() + 1;
        assert!(image[meaningful.clone()] == again[meaningful], "{:#x}", record.start);
    }
}

/// Every image of a real series is restored exactly from a store, which keeps little of all but the first.
#[test]
fn real_series_are_restored_from_a_store() {
    for kind in Kind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let series = dumps::dump_series(folder.path(), kind, 3);
        let store = Store::init(&folder.path().join("store"), Settings::default()).unwrap();
        let cx = Context::detached();
        for checkpoint in &series {
            let lock = store.lock("a test", Duration::ZERO).unwrap();
            let options = AddOptions { name: "program".into(), ..AddOptions::default() };
            store.add(&lock, Source::Folder(checkpoint), &options, &cx).unwrap();
        }
        let lock = store.read_lock(Duration::ZERO).unwrap();
        for (number, checkpoint) in (1..).zip(&series) {
            let image = dumps::image(checkpoint, kind);
            let mut restored = Vec::new();
            let name = Path::new(image.file_name().unwrap());
            store.restore_file(&lock, number, Some(name), &mut restored, &cx).unwrap();
            assert!(restored == fs::read(&image).unwrap(), "{kind:?} {number}");
        }
        let stored = |number| fs::metadata(store.pack_path(number)).unwrap().len();
        // A few words in each page of the map; a shifted list; doubles with changed low bits.
        let most = match kind {
            Kind::Map => 0.25,
            Kind::Sorted => 0.05,
            Kind::Heat => 0.75,
        };
        for number in [2, 3] {
            let part = stored(number) as f64 / stored(1) as f64;
            assert!(part < most, "{kind:?}: checkpoint {number} takes {part:.3} of the first");
        }
    }
}
