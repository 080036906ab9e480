//! Measured machines from the folder `HOPMAP_DATA`.

use std::path::Path;

use hopmap_model::SystemGraph;
use hopmap_test_support::given_data;
use hopmap_topology_import::import::{Format, ImportParams, Imported, files, read, recognise};
use proptest::prelude::*;

fn import(path: &Path, format: Format) -> Imported {
    assert_eq!(recognise(path).unwrap(), format, "{}", path.display());
    let imported = read(path, &ImportParams::default()).unwrap();
    imported.system.check().unwrap();
    imported
}

fn costs(system: &SystemGraph) -> Vec<f64> {
    system.costs().block(&(0..system.slots.len() as u32).collect::<Vec<_>>())
}

#[test]
fn cores_of_real_processors_are_slots() {
    let Some(data) = given_data() else { return };
    let expected = [
        ("AMD Ryzen 9 5950X @ 3.40 GHz", 32),
        ("AWS Graviton3", 64),
        ("Dual AMD EPYC 7742 64-Core Processor", 256),
        ("Dual Intel(R) Xeon Gold 6242 @ 2.8GHz", 64),
    ];
    for (name, cores) in expected {
        let path = data.join("topology/core-to-core").join(format!("{name}.csv"));
        let system = import(&path, Format::CoreToCore).system;
        assert_eq!((system.nodes.len(), system.slots.len()), (1, cores), "{name}");
        let (costs, text) = (costs(&system), std::fs::read_to_string(&path).unwrap());
        for (row, line) in text.lines().enumerate() {
            for (column, cell) in line.split(',').enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let cost: f64 = cell.parse().unwrap();
                let places = [row * cores + column, column * cores + row];
                assert!(places.iter().all(|&place| costs[place].to_bits() == cost.to_bits()));
            }
        }
    }
}

#[test]
fn the_output_of_mpigraph_is_a_matrix_of_times() {
    let Some(data) = given_data() else { return };
    let imported = import(&data.join("topology/probe-samples/mpiGraph-n4.out"), Format::Mpigraph);
    assert_eq!((imported.system.nodes.len(), imported.system.slots.len()), (1, 4));
    let costs = costs(&imported.system);
    // 0 sends to 1 at 1886.661 and 1 receives it at 2427.712; 3 sends to 0 at 1967.190 and 0 receives at
    // 1887.972.
    assert!((costs[1] - 1e6 / 1886.661).abs() < 1e-9 && (costs[12] - 1e6 / 1887.972).abs() < 1e-9);
}

/// Median times between eight emulated hosts with injected latencies of 50, 200 and 800 µs. The measuring
/// machine was busy: no time is below the injected latency, but only the faster quarter of the pairs comes
/// close to it.
#[test]
fn injected_latencies_are_found_in_measurements_of_parus() {
    let Some(data) = given_data() else { return };
    let samples = data.join("topology/probe-samples");
    let path = samples.join("netns8_median.nc");
    let Imported { system, notes } = import(&path, Format::ParusNetcdf);
    let names: Vec<_> = system.nodes.iter().map(|node| node.name.clone()).collect();
    assert_eq!(names, (0..8).map(|host| format!("tp{host}")).collect::<Vec<_>>());
    assert_eq!(files(&path, None).unwrap().len(), 2);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let truth = std::fs::read_to_string(samples.join("injected-8.txt")).unwrap();
    let truth: Vec<f64> = truth.split_whitespace().take(64).map(|cell| cell.parse().unwrap()).collect();
    let costs = costs(&system);
    for injected in [50.0_f64, 200.0, 800.0] {
        let pairs = costs.iter().zip(&truth).filter(|(_, truth)| truth.to_bits() == injected.to_bits());
        let mut found: Vec<f64> = pairs.map(|(cost, _)| *cost).collect();
        found.sort_by(f64::total_cmp);
        let quarter = found[found.len() / 4];
        eprintln!(
            "injected {injected} µs: half the median of PARUS from {:.0}, first quarter to {quarter:.0} µs",
            found[0]
        );
        assert!(found[0] >= injected && quarter < injected + 100.0, "{injected}: {found:?}");
    }

    let minima = import(&samples.join("netns8_min.nc"), Format::ParusNetcdf);
    assert!(minima.notes.iter().any(|note| note.contains("minima")));
    import(&samples.join("netns8_average.nc"), Format::ParusNetcdf);
    let deviations = read(&samples.join("netns8_deviation.nc"), &ImportParams::default());
    assert!(deviations.unwrap_err().to_string().contains("standard deviations"));
}

#[test]
fn the_newer_schema_of_netcdf_is_read() {
    let Some(data) = given_data() else { return };
    let folder = data.join("topology/network-tests2");
    let of_kind = |kind: &str| folder.join(format!("delays-MSK-2024-05-16_{kind}.nc"));
    for kind in ["median", "average", "min"] {
        let system = import(&of_kind(kind), Format::ParusNetcdf).system;
        assert_eq!((system.nodes.len(), system.slots.len()), (1, 4), "{kind}");
        assert_eq!(system.nodes[0].name, "aleks-Redmi-G-2022");
    }
    for kind in ["deviation", "measurements_amount", "all"] {
        assert_eq!(recognise(&of_kind(kind)).unwrap(), Format::ParusNetcdf);
        read(&of_kind(kind), &ImportParams::default()).unwrap_err();
    }
}

#[test]
fn text_of_parus_is_read() {
    let Some(data) = given_data() else { return };
    for (name, processes, hosts) in [("r10c01p2", 3, 3), ("r16c10p6", 7, 7), ("stg50_rand0000_p4", 5, 5)] {
        let path = data.join("schedule/parus").join(name).join("network.average");
        let Imported { system, .. } = import(&path, Format::Parus);
        assert_eq!((system.slots.len(), system.nodes.len()), (processes, hosts), "{name}");
    }
}

/// Which given files are detected as a matrix or a measured machine.
#[test]
fn no_other_file_is_detected_as_a_matrix() {
    let Some(data) = given_data() else { return };
    let mut folders = vec![data];
    let mut wrong = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            let is_right = |format| match format {
                Format::CoreToCore => name.contains("/core-to-core/"),
                Format::Mpigraph => name.ends_with("mpiGraph-n4.out"),
                Format::ParusNetcdf => path.extension().is_some_and(|end| end == "nc"),
                Format::Parus => name.contains("/network."),
                Format::Hwloc => path.extension().is_some_and(|end| end == "xml"),
                // Messages of a program, row by row, and injected latencies.
                Format::Matrix => name.ends_with("/injected-8.txt") || name.ends_with("/app.mat"),
                _ => true,
            };
            if recognise(&path).is_ok_and(|format| !is_right(format)) {
                wrong.push((name, recognise(&path).unwrap()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn matrices_are_read_as_they_were_written(
        hosts in proptest::collection::vec(1..4_usize, 1..6),
        numbers in proptest::collection::vec(0_u64..0x7ff0_0000_0000_0000, 400),
        (separator, header, column) in (0..4_usize, any::<bool>(), any::<bool>()),
    ) {
        let slots = || hosts.iter().enumerate().flat_map(|(host, slots)| (0..*slots).map(move |core| (host, core)));
        let count = slots().count();
        prop_assume!(count >= 2);
        // Any finite non-negative number.
        let cost = |a: usize, b: usize| f64::from_bits(numbers[(a * count + b) % numbers.len()]);
        let separator = [",", ";", "\t", " "][separator];
        let mut lines = Vec::new();
        let name = |(host, core): (usize, usize)| format!("n{host}:{core}");
        if header {
            // With blanks as separators an empty cell is invisible.
            let corner = if column && separator != " " { format!("name{separator}") } else { String::new() };
            lines.push(corner + &slots().map(name).collect::<Vec<_>>().join(separator));
        }
        for (row, slot) in slots().enumerate() {
            let cells = (0..count).map(|column| format!("{:e}", cost(row, column)));
            let own = column.then(|| name(slot));
            lines.push(own.into_iter().chain(cells).collect::<Vec<_>>().join(separator));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let system = import(file.path(), Format::Matrix).system;
        prop_assert_eq!(costs(&system), (0..count * count).map(|pair| cost(pair / count, pair % count)).collect::<Vec<_>>());
        let found = system.slots.iter().map(|slot| (slot.host as usize, slot.core as usize));
        match header || column {
            true => prop_assert!(found.eq(slots())),
            false => prop_assert!(found.eq((0..count).map(|row| (row, 0)))),
        }
    }
}
