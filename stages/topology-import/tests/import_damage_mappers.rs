//! Damages targets of mappers: importing ends in an error or in a consistent machine.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use hopmap_test_support::{Random, damage, has_little_memory, only_seed, seeds, with_extreme_numbers};
use hopmap_topology_import::import::{Format, ImportParams, read};

const TELLING: &[u8] = b" \n\t:0123.-+ehtwDX#";

const SAMPLES: &[(Format, &str)] = &[
    (Format::Scotch, "tleaf 3 4 500 4 100 2 10\n"),
    (Format::Scotch, "ltleaf\n2 2 10 3 1\n6 5 4 3 2 1 0\n"),
    (Format::Scotch, "mesh3D 3 4 2\n"),
    (Format::Scotch, "torusXD 4 2 3 4 2\n"),
    (Format::Scotch, "hcub 4\n"),
    (Format::Scotch, "cmpltw 4 1 2 3 4\n"),
    (Format::Scotch, "sub 3 1 5 0\nsub 8 7 6 5 4 3 2 1 0\nmesh2D 3 4\n"),
    (Format::Scotch, "deco 0\n3 5\n0 1 4\n1 1 5\n2 1 3\n1\n2 3\n"),
    (Format::Scotch, "deco\n1\n3\t5\n0 3 3\n0 2 2\n2 1 1\n0 1 1\n1 1 1\n1 2 2 0 1 2 1 1 3 1\n"),
    (Format::Kahip, "4:16:8\n1:10:100\n"),
    (Format::Kahip, "--hierarchy_parameter_string=4:2\n--distance_parameter_string=0.5:1e2\n"),
    (Format::Topomatch, "tleaf 3 4 500 4 100 2 10\n"),
];

#[test]
fn damaged_targets_end_in_an_error_or_a_machine() {
    let file = std::env::temp_dir().join(format!("hopmap-damage-mappers-{}", std::process::id()));
    let (mut read_well, mut refused) = (0, 0);
    for seed in seeds(1000, 50_000) {
        let mut random = Random(seed);
        let (format, sample) = SAMPLES[random.below(SAMPLES.len())];
        let mut bytes = sample.as_bytes().to_vec();
        damage(&mut bytes, &mut random, TELLING);
        std::fs::write(&file, &bytes).unwrap();
        // The format is detected half of the time.
        let format = (random.below(2) == 0).then_some(format);
        match read(&file, &ImportParams { format, ..ImportParams::of(&file) }) {
            Ok(imported) => {
                imported.system.check().unwrap_or_else(|error| panic!("{error}"));
                read_well += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    std::fs::remove_file(&file).unwrap();
    assert!(only_seed().is_some() || (read_well > 0 && refused > 0), "{read_well} read, {refused} refused");
}

#[test]
fn extreme_numbers_end_in_an_error_or_a_machine_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    for (format, sample) in SAMPLES {
        for bytes in with_extreme_numbers(sample.as_bytes()) {
            std::fs::write(file.path(), bytes).unwrap();
            crate::support::description::description(file.path(), *format);
        }
    }
}
