//! Fuzzes the importers: reading must return a graph or an error for any bytes.
//!
//! `HOPMAP_SOAK=1` runs thousands of cases instead of some hundred; `HOPMAP_SEED=N` repeats one.

use std::fs;

use hopmap_trace::Format;

use super::flight_recorder::flight_recorder;
use super::kineto::kineto;
use super::paraver::{HEADER, RECORDS};
use super::simgrid::{INDEX, TAGGED};
use super::{Files, clog2, import_path, ipm, record, tau, training};
use hopmap_test_support::{Random, damage, has_little_memory, with_extreme_numbers};

/// A sample, bytes with a meaning in it, and its format.
struct Sample {
    name: &'static str,
    files: Files,
    telling: &'static [u8],
    format: Format,
}

fn samples() -> Vec<Sample> {
    let sample = |name, files, telling: &'static [u8], format| Sample { name, files, telling, format };
    vec![
        sample(
            "csv",
            Files::one("# a\nsource,destination,messages,bytes\n0,1,2,3\n1,0,4,5\n"),
            b"0129,\n\r#\" -",
            Format::Csv,
        ),
        sample(
            "matrix-market",
            Files::one(
                "%%MatrixMarket matrix coordinate integer general\n% a\n%hopmap messages 1 2 3\n4 4 3\n1 2 100\n4 1 \
                 7\n2 3 8\n",
            ),
            b"0129 \n%.eE-",
            Format::MatrixMarket,
        ),
        sample("paraver", Files::one(format!("{HEADER}{RECORDS}")), b"0129:,()\n#_ns", Format::Paraver),
        sample("ipm", Files::one(ipm::sample()), b"0129 \n<>\"=/", Format::Ipm),
        sample("clog2", clog2::sample(), &[0, 1, 2, 5, 7, 9, 11, 100, 101, 102, 155, 255], Format::Clog2),
        sample("hopmap-record", record::sample(), &[0, 1, 2, 3, 17, 22, 64, 255], Format::HopmapRecord),
        sample("openmpi-monitoring", record::profiles(), b"0129 \t\n,EISRC#", Format::OpenmpiMonitoring),
        sample("tau", tau::sample(), b"0129 \n\"=#.e", Format::Tau),
        sample("chakra", training::chakra(), &[0, 1, 7, 8, 0x12, 0x48, 0x52, 0x80, 0xff], Format::Chakra),
        sample("kineto", kineto(), b"0129\"{}[]:,.-e", Format::Kineto),
        sample("flight-recorder", flight_recorder(), b"0129\"{}[]:,.-e", Format::FlightRecorder),
        sample("nccl-inspector", training::inspector(), b"0129\"{}[]:,\n", Format::NcclInspector),
        sample("simgrid", Files::one(TAGGED), b"0129 \n#.e-", Format::Simgrid),
        sample("simgrid index", Files::new(&INDEX), b"0129 \n#.e-", Format::Simgrid),
    ]
}

/// Damages one file of a sample, reads the sample and repairs it.
fn fuzz_import(sample: &Sample, seed: u64) {
    let mut random = Random(seed);
    let names = &sample.files.names;
    let file = sample.files.path(&names[random.below(names.len())]);
    let original = fs::read(&file).unwrap();
    let mut bytes = original.clone();
    damage(&mut bytes, &mut random, sample.telling);
    fs::write(&file, bytes).unwrap();
    let path = sample.files.trace();
    eprintln!("{}, seed {seed}", sample.name);
    // Files that are no longer recognised are still passed to the reader.
    crate::support::body::import(&path, sample.format);
    fs::write(file, original).unwrap();
}

#[test]
fn damaged_files_end_in_an_error_or_a_graph() {
    let soak = hopmap_test_support::soak();
    let only = std::env::var("HOPMAP_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let cases = if soak { 4000 } else { 200 };
    for sample in samples() {
        import_path(&sample.files.trace(), Format::Auto).unwrap();
        (0..cases)
            .filter(|seed| only.is_none_or(|only| only == *seed))
            .for_each(|seed| fuzz_import(&sample, seed));
    }
}

/// One file of a sample has an extreme number, or all of them have it in the same place.
#[test]
fn extreme_numbers_end_in_an_error_or_a_graph_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    for sample in samples() {
        let paths: Vec<_> = sample.files.names.iter().map(|name| sample.files.path(name)).collect();
        let original: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        let changed: Vec<_> = original.iter().map(|bytes| with_extreme_numbers(bytes)).collect();
        let read = |what: &str| {
            eprintln!("{}, {what}", sample.name);
            crate::support::body::import(&sample.files.trace(), sample.format);
        };
        for (file, path) in paths.iter().enumerate() {
            for (index, bytes) in changed[file].iter().enumerate() {
                fs::write(path, bytes).unwrap();
                read(&format!("{}: change {index}", sample.files.names[file]));
            }
            fs::write(path, &original[file]).unwrap();
        }
        let least = changed.iter().map(Vec::len).min().unwrap_or_default();
        for index in (0..least).filter(|_| paths.len() > 1) {
            paths.iter().zip(&changed).for_each(|(path, changed)| fs::write(path, &changed[index]).unwrap());
            read(&format!("all files: change {index}"));
        }
    }
}
