//! `map/import`: mappings of other tools, and invalid files.

use hopmap_map::{ImportParams, ImportStage, PlacementFormat, read_placement};
use hopmap_model::{CostModel, RouteCosts, RouteMetric, Stage, SystemGraph};
use hopmap_test_support::{PREFIXES, Random, damage, seeds, with_prefix};
use proptest::prelude::*;

use crate::common::{self, double_sums, grid, run, tree};
use crate::support::placement::{self, machine};

fn read_on(text: &str, ranks: usize, system: &SystemGraph) -> Result<(Vec<u32>, PlacementFormat), String> {
    let placed = read_placement(text.as_bytes(), PlacementFormat::Auto, ranks, system);
    placed
        .map(|placed| (placed.slots, placed.format))
        .map_err(|fault| format!("{}: {}", fault.line.unwrap_or_default(), fault.problem))
}

fn read(text: &str, ranks: usize) -> Result<(Vec<u32>, PlacementFormat), String> {
    read_on(text, ranks, &machine())
}

fn slots(text: &str, format: PlacementFormat) -> Vec<u32> {
    let (slots, found) = read(text, 4).unwrap();
    assert_eq!(found, format, "{text}");
    slots
}

fn refused(text: &str, ranks: usize) -> String {
    read(text, ranks).unwrap_err()
}

#[test]
fn ranks_have_their_hosts_and_cores() {
    for text in ["3 a.x 0\n0 a.x 3\n1 10.0.0.3 2 # far\n2 b 0\n", "0 a.x 3\n1 10.0.0.3 2\n2 b 0\n3 a.x 0\n"] {
        assert_eq!(slots(text, PlacementFormat::Ranks), [3, 7, 4, 0]);
    }
    assert_eq!(slots("2 a.x\n0 b\n1 a.x\n3 10.0.0.3\n", PlacementFormat::Ranks), [4, 0, 1, 5]);
    for (text, expected) in [
        ("0 b\n1 b\n2 a.x\n3 a.x\n", "2: host `b` has only 1 slots, too few for rank 1"),
        ("0 b\n0 a.x\n", "2: rank 0 has a host already, in line 1"),
        ("0 b\n2 a.x\n3 a.x\n", "3: rank 1 is missing"),
        ("0 b\n1 a.x 0\n", "2: `1 a.x 0` does not have the 2 words of the line of a rank"),
        ("0 b\n4 a.x\n", "2: rank `4`, expected 0 to 3"),
    ] {
        assert_eq!(refused(text, 4), expected);
    }
}

#[test]
fn partitions_have_one_pe_per_line() {
    for text in ["3\n7\n0\n4\n", " 3\r\n7\r\n\r\n0\r\n4", "% KaHIP\n3\n7 # rank 1\n0\n# none\n4\n\n"] {
        assert_eq!(slots(text, PlacementFormat::Kahip), [3, 7, 0, 4]);
    }
    assert_eq!(refused("3\n7\n0\n", 4), "3: the file ends after 3 ranks, but the program has 4");
    assert_eq!(refused("3\n7\n0\n4\n5\n", 4), "5: the file has more lines than the 4 ranks of the program");
    assert_eq!(refused("3\n8\n0\n4\n", 4), "2: rank 1 is on PE `8`, expected 0 to 7");
    assert_eq!(refused("3\n-1\n0\n4\n", 4), "2: rank 1 is on PE `-1`, expected 0 to 7");
    assert_eq!(refused("3\nx\n0\n4\n", 4), "2: rank 1 is on PE `x`, expected 0 to 7");
    assert_eq!(refused("3\n\n\n7\n0 4\n1\n", 4), "5: expected 1 number, found `0 4`");
}

/// Once the ranks of such a host were lost, as a shell writes its name.
#[test]
fn hosts_of_launch_files_have_any_name() {
    for name in ["exit", "logout", "Killed"] {
        let mut system = machine();
        let host = system.nodes.iter_mut().find(|node| node.name == "b").unwrap();
        host.name = name.to_owned();
        for text in [
            "# hopmap mapping 12\na\nb\na\n",
            "# hopmap mapping 12\nb:1\na:2\n",
            "# hopmap mapping 12\nrank 0=a slot=0\nrank 1=b slot=0\nrank 2=a slot=1\n",
        ] {
            let renamed = text
                .replace("b\n", &format!("{name}\n"))
                .replace("b:", &format!("{name}:"))
                .replace("=b ", &format!("={name} "));
            assert_eq!(read_on(&renamed, 3, &system), read(text, 3), "{renamed}");
        }
    }
}

/// Once such a line was one of another program, and its rank was lost.
#[test]
fn no_rank_is_lost_behind_a_prefix() {
    for text in [
        "3\n7\n0\n4\n",
        "4\n0 3\n1 7\n2 0\n3 4\n",
        "rank 0=a slot=0\nrank 1=b slot=0\n",
        "a slots=3\nb slots=1\n",
        "a:3\nb:1\n",
    ] {
        let ranks = if text.contains("rank") { 2 } else { 4 };
        let whole = read(text, ranks).unwrap();
        for (prefix, line) in PREFIXES.iter().flat_map(|prefix| (0..5).map(move |line| (prefix, line))) {
            let read = read(&with_prefix(text, prefix, Some(line)), ranks);
            assert!(read.is_err() || read.as_ref() == Ok(&whole), "{text} {prefix} {line} {read:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mapping");
        for prefix in PREFIXES {
            std::fs::write(&path, with_prefix(text, prefix, None)).unwrap();
            let error = hopmap_map::import(&path, PlacementFormat::Auto, ranks, &machine()).unwrap_err();
            assert!(error.problem.contains(prefix.trim()), "{text} {prefix} {error}");
        }
    }
}

#[test]
fn two_ranks_on_a_slot_are_named() {
    assert_eq!(
        refused("3\n7\n% x\n3\n4\n", 4),
        "4: ranks 0 (line 1) and 2 are both on slot 3; all other ranks have distinct slots"
    );
    assert_eq!(
        refused("4\n0 5\n1 2\n2 5\n3 5\n", 4),
        "4: ranks 0 (line 2) and 2 are both on slot 5; 2 ranks in total share a slot with an earlier rank"
    );
    let fault = read_placement(b"1\n1\n", PlacementFormat::Auto, 2, &machine()).unwrap_err();
    assert!(fault.help_text().contains("KaHIP and Scotch only balance loads"), "{}", fault.help_text());
    assert_eq!(
        refused("rank 0=b slot=0\nrank 1=b slot=0:0\n", 2),
        "2: ranks 0 (line 1) and 1 are both on slot 4; all other ranks have distinct slots"
    );
}

#[test]
fn scotch_mappings_count_vertices_from_zero_or_one() {
    assert_eq!(slots("4\n0\t3\n1\t7\n2\t0\n3\t4\n", PlacementFormat::Scotch), [3, 7, 0, 4]);
    assert_eq!(slots("4\n2 7\n1 3\n4 4\n3 0\n", PlacementFormat::Scotch), [3, 7, 0, 4]);
    assert_eq!(refused("3\n0 1\n1 2\n2 3\n", 4), "1: the file has `3` vertices, but the program has 4 ranks");
    assert_eq!(
        refused("99999999999999999999\n0 1\n", 4),
        "1: the file has `99999999999999999999` vertices, but the program has 4 ranks"
    );
    assert_eq!(refused("3\n0 1\n1 2\n1 3\n", 3), "4: duplicate vertex 1, first on line 3");
    assert_eq!(refused("3\n0 1\n2 2\n", 3), "3: vertex 1 is missing");
    assert_eq!(refused("3\n0 1\n1 2\n3 3\n", 3), "4: vertex `3`, expected 0 to 2");
    assert_eq!(
        refused("2\n0 1\n1 2\n2 3\n", 2),
        "4: the file has more lines than the 2 vertices of its first line"
    );
    // Scotch writes -1 for a vertex that is not mapped.
    assert_eq!(refused("2\n0 1\n1 -1\n", 2), "3: vertex 1 is on PE `-1`, expected 0 to 7");
    assert_eq!(refused("2\n0 1\n1 2 3\n", 2), "3: expected 2 numbers, found `1 2 3`");
}

#[test]
fn rank_files_name_cores_of_hosts_or_of_sockets() {
    let text =
        "# hopmap mapping 12\nrank 1=10.0.0.3 slot=2\nrank 0=a.x slot=3\nrank 3=b slot=0\nrank 2=a slot=0\n";
    assert_eq!(slots(text, PlacementFormat::Rankfile), [3, 7, 0, 4]);
    let text = "\u{feff}mpirun: done\nrank 0=a slot=1:1\nsrun: warning: a\nrank 1=+n2  slots=0:2\nrank 2 = a slot = 0:0\nrank 3=+n1 slot=0\n";
    assert_eq!(slots(text, PlacementFormat::Rankfile), [3, 7, 0, 4]);
    for (line, error) in [
        ("rank 1=c slot=0", "the machine has no host `c`; its first host is `a.x`"),
        ("rank 1=a.y slot=0", "the machine has no host `a.y`; its first host is `a.x`"),
        ("rank 1=10.0.0.4 slot=0", "the machine has no host `10.0.0.4`; its first host is `a.x`"),
        ("rank 1=a slot=4", "host `a.x` with 4 slots has no core `4`"),
        ("rank 1=a slot=2:0", "host `a.x` with 4 slots has no core `2:0`"),
        ("rank 1=a slot=0:2", "host `a.x` with 4 slots has no core `0:2`"),
        ("rank 1=10.0.0.3 slot=1:0", "host `10.0.0.3` with 3 slots of one socket has no core `1:0`"),
        ("rank 1=a slot=0:0:0", "`0:0:0` is not a list of cores"),
        ("rank 1=a slot=", "`` is not a list of cores"),
        ("rank 1=a slot=1-4", "host `a.x` with 4 slots has no core `1-4`"),
        ("rank 1=a slot=0:0-2", "host `a.x` with 4 slots has no core `0:0-2`"),
        ("rank 1=a slot=9:*", "host `a.x` with 4 slots has no core `9:*`"),
        ("rank 1=a slot=p1", "`p1` is a physical core number"),
        ("rank 1=a slot=x", "`x` is not a list of cores"),
        ("rank 1=+n3 slot=0", "host +n `3`, expected 0 to 2"),
        ("rank 1=a", "`rank 1=a` is not a line of a rank file"),
        ("rang 1=a slot=0", "`rang 1=a slot=0` is not a line of a rank file"),
        ("rank 2=a slot=0", "rank `2`, expected 0 to 1"),
        ("rank 0=a slot=1", "duplicate rank 0, first on line 1"),
    ] {
        assert_eq!(refused(&format!("rank 0=a slot=0\n{line}\n"), 2), format!("2: {error}"));
    }
    let flat =
        read_placement(b"rank 0=10.0.0.3 slot=0:0;1:0", PlacementFormat::Auto, 1, &machine()).unwrap_err();
    assert!(flat.help_text().contains("`slot=0,2` in place of `slot=0:0;1:0`"), "{}", flat.help_text());
    assert_eq!(
        refused("rank 0=a slot=0\nrank 2=a slot=1\n", 3),
        "2: rank 1 is missing; the program has 3 ranks"
    );
}

/// Only one core was allowed, which programs with threads never have.
#[test]
fn a_rank_with_several_cores_takes_the_first_that_is_free() {
    for (text, expected) in [
        ("rank 0=a slot=0-1\nrank 1=a slot=2-3\n", [0, 2]),
        ("rank 0=a slot=1:0-1\nrank 1=a slot=0:0,1\n", [2, 0]),
        ("rank 0=a slot=0:*\nrank 1=root@a slot=0:*\n", [0, 1]),
        ("rank 0=a slot=0,3\nrank 1=a slot=0\n", [3, 0]),
        ("rank 0=a slot=0:1;1:1\nrank 1=10.0.0.3 slot=0,1\n", [1, 5]),
    ] {
        assert_eq!(read(text, 2).unwrap().0, expected, "{text}");
    }
    let shared = refused("rank 0=a slot=0-1\nrank 1=a slot=1,0\nrank 2=a slot=0-1\n", 3);
    assert_eq!(shared, "3: ranks 0 (line 1) and 2 are both on slot 0; all other ranks have distinct slots");
}

/// A machine with routes has the levels inside its hosts beside the routes.
#[test]
fn sockets_of_machines_with_routes_are_those_inside_their_hosts() {
    let mut system = tree(&[2, 2, 2]);
    for slot in &mut system.slots {
        (slot.host, slot.core) = (slot.host / 2, slot.core + 2 * (slot.host % 2));
    }
    let CostModel::Levels(mut inside) = system.cost else { panic!("a tree has levels") };
    inside.costs.truncate(2);
    inside.groups.truncate(2);
    system.cost = CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside });
    let read = |text: &str| read_on(text, 2, &system).map(|(slots, _)| slots);
    assert_eq!(read("rank 0=host0 slot=1:0\nrank 1=host1 slot=0:1\n"), Ok(vec![2, 5]));
    let missing = read("rank 0=host0 slot=0:3\nrank 1=host1 slot=0:1\n");
    assert_eq!(missing, Err("1: host `host0` with 4 slots has no core `0:3`".into()));
}

#[test]
fn hosts_of_a_machine_file_give_their_slots_in_order() {
    let format = PlacementFormat::Machinefile;
    assert_eq!(slots("a.x\n10.0.0.3\na\nb\n", format), [0, 5, 1, 4]);
    assert_eq!(slots("b.x:1\na.x:2\n10.0.0.3:3\n", format), [4, 0, 1, 5]);
    assert_eq!(slots("10.0.0.3 slots=3 max_slots=4\na\n", format), [5, 6, 7, 0]);
    assert_eq!(slots("me@10.0.0.3 cpu = 3\na,b\n", format), [5, 6, 7, 0]);
    assert_eq!(slots("10.0.0.3 3 all.q@x UNDEFINED\na 1 all.q@a UNDEFINED\n", format), [5, 6, 7, 0]);
    // A host file has room for more.
    assert_eq!(slots("a slots=999999999\nb slots=1\n", format), [0, 1, 2, 3]);
    assert_eq!(refused("a\nb\na\nb\n", 4), "4: host `b` has only 1 slots, too few for rank 3");
    assert_eq!(refused("b:2\n", 2), "1: host `b` has only 1 slots, too few for rank 1");
    assert_eq!(refused("a\nb\n", 4), "2: the file ends after 2 ranks, but the program has 4");
    assert_eq!(refused("a\nb\na\n", 2), "3: the file has more lines than the 2 ranks of the program");
    assert_eq!(refused("a\nc\n", 2), "2: the machine has no host `c`; its first host is `a.x`");
    for (line, error) in [
        ("a:0", "`0` is not a number of slots"),
        ("a:x", "`x` is not a number of slots"),
        ("a slots=-1", "`-1` is not a number of slots"),
        ("a:1 slots=2", "the slots of the host are given twice"),
        ("a cores=2", "`cores` is not an attribute of a host"),
        ("a core", "the machine has no host `core`; its first host is `a.x`"),
    ] {
        assert_eq!(refused(&format!("b\n{line}\n"), 2), format!("2: {error}"));
    }
}

#[test]
fn unknown_formats_are_refused() {
    assert_eq!(refused("", 4), "0: the file is empty");
    assert_eq!(refused("# only\n\n", 4), "0: the file is empty");
    assert_eq!(refused("0 3\n1 7\n", 2), "1: `0 3` does not start a known mapping format");
    assert_eq!(
        refused("\u{1f}\u{fffd}\u{8}\n", 2),
        "1: `\\u{1f}\u{fffd}\\u{8}` does not start a known mapping format"
    );
    assert_eq!(refused("[1, 2]\n", 2), "1: `[1, 2]` does not start a known mapping format");
}

fn params(file: &std::path::Path) -> ImportParams {
    serde_json::from_value(serde_json::json!({ "path": file })).unwrap()
}

#[test]
fn an_imported_mapping_is_measured_like_any_other() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (graph, system) = (grid(3, 3), tree(&[2, 4, 2]));
    let placed = [15, 3, 2, 1, 0, 8, 9, 4, 12];
    std::fs::write(file.path(), placed.map(|slot| format!("{slot}\n")).concat()).unwrap();
    let mapping = run::<ImportStage>(params(file.path()), &graph, &system);
    assert_eq!(mapping.slots(), placed);
    let (f, t) = double_sums(&graph, &[2, 4, 2], &placed);
    assert!((mapping.metrics["F"] - f).abs() < 1e-9 && (mapping.metrics["T"] - t).abs() < 1e-9);
    assert!(mapping.complete && mapping.metrics.contains_key("max_link_load_bytes"));
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "1\n16\n").unwrap();
    let inputs = common::inputs(&grid(1, 2), &tree(&[2, 4, 2]));
    let error =
        ImportStage::run(params(file.path()), inputs, &hopmap_model::Context::detached()).unwrap_err();
    let name = file.path().display();
    assert_eq!(error.to_string(), format!("{name}:2:1: rank 1 is on PE `16`, expected 0 to 15"));
    assert!(error.help().unwrap().to_string().starts_with("PE i is slot i of the machine"));
    let missing = file.path().with_extension("none");
    let inputs = common::inputs(&grid(1, 2), &tree(&[2, 4, 2]));
    let error = ImportStage::run(params(&missing), inputs, &hopmap_model::Context::detached()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: cannot be read: No such file or directory (os error 2)", missing.display())
    );
}

#[test]
fn a_file_has_one_name_in_the_key() {
    let reads = ImportStage::reads(&params("a/b.map".as_ref())).unwrap();
    assert_eq!(reads[0].name(), "placement");
    assert!(serde_json::from_str::<ImportParams>(r#"{"path": "a", "format": "metis"}"#).is_err());
}

proptest! {
    #[test]
    fn written_files_are_read(
        placed in Just((0..16u32).collect::<Vec<_>>()).prop_shuffle(), ranks in 1usize..=16, base in 0usize..2,
    ) {
        let system = tree(&[2, 4, 2]);
        let placed = &placed[..ranks];
        let lines = |line: &dyn Fn(usize, u32) -> String| -> String {
            placed.iter().enumerate().map(|(rank, &slot)| line(rank, slot) + "\n").collect()
        };
        let read = |text: String| read_on(&text, ranks, &system).map(|(slots, _)| slots);
        let expected = Ok(placed.to_vec());
        prop_assert_eq!(read(lines(&|_, slot| slot.to_string())), expected.clone());
        let scotch = lines(&|rank, slot| format!("{}\t{slot}", rank + base));
        prop_assert_eq!(read(format!("{ranks}\n{scotch}")), expected.clone());
        let cores = lines(&|rank, slot| format!("rank {rank}=host{} slot={}", slot / 2, slot % 2));
        prop_assert_eq!(read(cores), expected);
        // A machine file gives hosts only.
        let hosts = read(lines(&|_, slot| format!("host{}", slot / 2))).unwrap();
        prop_assert!(hosts.iter().zip(placed).all(|(read, slot)| read / 2 == slot / 2));
    }
}

const SAMPLES: [&str; 6] = [
    "3\n7\n0\n4\n",
    "4\n0 3\n1 7\n2 0\n3 4\n",
    "rank 0=a slot=1:1\nrank 1=10.0.0.3 slot=2\nrank 2=+n0 slot=0\nrank 3=b slot=0\n",
    "a.x\n10.0.0.3\na\nb\n",
    "b:1\na:2\n10.0.0.3:3\n",
    "# hosts\n10.0.0.3 slots=3 max_slots=4\na slots=2\n",
];

/// `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.
#[test]
fn damaged_files_give_an_error_or_a_mapping() {
    for seed in seeds(5000, 500_000) {
        let mut random = Random(seed);
        let mut bytes = SAMPLES[random.below(SAMPLES.len())].as_bytes().to_vec();
        damage(&mut bytes, &mut random, b"0123456789 \n\t:=,-+*.#%ab\xff");
        placement::placement(&bytes, 4);
    }
}

#[test]
fn intact_files_are_read() {
    for text in SAMPLES {
        read(text, 4).unwrap();
    }
    placement::placement(b"", 0);
}
