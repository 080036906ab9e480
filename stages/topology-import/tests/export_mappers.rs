//! Exports for mappers are imported as the same machine.

use hopmap_model::{CostModel, Levels, Link, Matrix, Node, Routing, Slot, SystemGraph};
use proptest::prelude::*;

use hopmap_topology::export::{ExportFormat, ExportParams, write};
use hopmap_topology_import::import::{Format, ImportParams, read};

fn export(system: &SystemGraph, format: ExportFormat) -> Result<(String, Vec<String>), String> {
    let written = write(system, &ExportParams { format });
    written.map(|(file, lost)| (file.text, lost)).map_err(|error| error.to_string())
}

fn import(text: &str, format: Format) -> SystemGraph {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    let params = ImportParams { format: Some(format), ..ImportParams::default() };
    read(file.path(), &params).unwrap().system
}

fn synthetic(shape: &str, costs: &[f64]) -> SystemGraph {
    let json = serde_json::json!({ "shape": shape, "costs": costs });
    hopmap_machines::synthetic(&serde_json::from_value(json).unwrap()).unwrap()
}

fn of_matrix(count: usize, costs: Vec<f64>) -> SystemGraph {
    SystemGraph {
        nodes: (0..count).map(|host| Node::host(format!("n{host}"))).collect(),
        links: Vec::new(),
        slots: (0..count as u32).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

#[test]
fn regular_trees_are_tleaf_and_a_hierarchy() {
    let system = synthetic("tree:2x4x3", &[10.0, 110.0, 1110.0]);
    let (text, lost) = export(&system, ExportFormat::Scotch).unwrap();
    assert_eq!(text, "tleaf 3 3 1000 4 100 2 10\n");
    assert_eq!(lost.len(), 2);
    assert_eq!(export(&system, ExportFormat::Kahip).unwrap().0, "2:4:3\n10:110:1110\n");
    // Levels that merge nothing or cost as much as the next one are omitted.
    let system = synthetic("tree:2x1x4x3", &[10.0, 20.0, 30.0, 30.0]);
    assert_eq!(export(&system, ExportFormat::Scotch).unwrap().0, "tleaf 2 12 20 2 10\n");
    assert_eq!(export(&system, ExportFormat::Kahip).unwrap().0, "2:12\n10:30\n");
    assert_eq!(export(&synthetic("tree:1", &[5.0]), ExportFormat::Kahip).unwrap().0, "1\n1\n");
    assert_eq!(export(&synthetic("tree:1", &[5.0]), ExportFormat::Scotch).unwrap().0, "tleaf 0\n");
}

#[test]
fn losses_are_reported() {
    let (text, lost) = export(&synthetic("tree:2x2", &[0.0, 2.0]), ExportFormat::Scotch).unwrap();
    assert_eq!(text, "tleaf 2 2 199 2 1\n");
    assert_eq!(
        lost[2..],
        [
            "the unit of costs: they are multiplied by 100",
            "zero costs between slots: they are written as 1, the minimum for Scotch"
        ]
    );
    let (text, lost) = export(&synthetic("tree:2x2", &[0.5, 2.0]), ExportFormat::Kahip).unwrap();
    assert_eq!(text, "2:2\n5:20\n");
    assert_eq!(lost[2], "the unit of costs: they are multiplied by 10");
    let (text, lost) = export(&of_matrix(2, vec![0.0, 1.0, 2.0, 0.0]), ExportFormat::Scotch).unwrap();
    assert_eq!(text, "deco\n0\n2 3\n0 1 2\n1 1 3\n15\n");
    assert_eq!(lost[1], "direction-dependent costs: the mean of both directions is written");
    let error = export(&of_matrix(2, vec![0.0, 1.0, 2.0, 0.0]), ExportFormat::Kahip).unwrap_err();
    assert!(error.contains("do not form a regular tree"), "{error}");
    let error = export(&of_matrix(0, Vec::new()), ExportFormat::Scotch).unwrap_err();
    assert!(error.contains("no slots"), "{error}");
}

#[test]
fn leaves_out_of_order_are_ltleaf() {
    let mut system = of_matrix(4, Vec::new());
    let groups = vec![vec![0, 1, 0, 1], vec![0; 4]];
    system.cost = CostModel::Levels(Levels { costs: vec![1.0, 3.0], groups });
    let (text, _) = export(&system, ExportFormat::Scotch).unwrap();
    assert_eq!(text, "ltleaf 2 2 2 2 1\n4\n0 2 1 3\n");
    let read = import(&text, Format::Scotch);
    let by_name = |system: &SystemGraph, a: &str, b: &str| {
        let slot = |name: &str| {
            let place =
                system.slots.iter().position(|slot| system.nodes[slot.host as usize].name.ends_with(name));
            place.unwrap() as u32
        };
        system.costs().between(slot(a), slot(b))
    };
    for (a, b) in [("0", "1"), ("0", "2"), ("1", "3"), ("2", "3")] {
        assert_eq!(by_name(&read, a, b).to_bits(), by_name(&system, a, b).to_bits());
    }
    assert!(export(&system, ExportFormat::Kahip).unwrap_err().contains("are not consecutive"));
}

#[test]
fn distances_are_a_table_with_names() {
    let mut system = of_matrix(2, vec![0.0, 1.5, 2.0, 0.25]);
    assert_eq!(export(&system, ExportFormat::Distances).unwrap().0, ",n0,n1\nn0,0,1.5\nn1,2,0.25\n");
    system.slots = vec![Slot { host: 0, core: 3 }, Slot { host: 0, core: 7 }];
    system.nodes[0].name = "a,\"b".into();
    let (text, lost) = export(&system, ExportFormat::Distances).unwrap();
    assert!(text.starts_with(",\"a,\"\"b:3\",\"a,\"\"b:7\"\n"), "{text}");
    assert_eq!(lost, Vec::<String>::new());
    let large = synthetic("tree:8193", &[1.0]);
    assert!(export(&large, ExportFormat::Distances).unwrap_err().contains("8193"));
    system.nodes = vec![Node::host("a"), Node::host("b")];
    system.slots = vec![Slot { host: 0, core: 0 }, Slot { host: 1, core: 0 }];
    system.links = vec![Link::new(0, 1)];
    assert_eq!(export(&system, ExportFormat::Distances).unwrap().1.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn trees_are_read_as_they_were_written(
        levels in prop::collection::vec((2_u32..5, 1_u32..500), 1..5),
    ) {
        let shape = levels.iter().map(|level| level.0.to_string()).collect::<Vec<_>>().join("x");
        let mut sum = 0.0;
        let costs: Vec<f64> = levels.iter().map(|level| { sum += f64::from(level.1); sum }).collect();
        let json = serde_json::json!({ "shape": format!("tree:{shape}"), "costs": costs, "host_level": 0 });
        let system = hopmap_machines::synthetic(&serde_json::from_value(json).unwrap()).unwrap();
        for (to, format) in [(ExportFormat::Scotch, Format::Scotch), (ExportFormat::Kahip, Format::Kahip)] {
            let text = export(&system, to).unwrap().0;
            let read = import(&text, format);
            prop_assert_eq!(&read, &system);
            prop_assert_eq!(export(&read, to).unwrap().0, text);
        }
    }

    #[test]
    fn matrices_are_read_as_they_were_written(
        count in 2_usize..9,
        numbers in prop::collection::vec(1_u32..90, 36),
    ) {
        let cost = |a: usize, b: usize| {
            let (low, high) = (a.min(b), a.max(b));
            if low == high { 0.0 } else { f64::from(numbers[high * (high - 1) / 2 + low]) }
        };
        let system = of_matrix(count, (0..count * count).map(|pair| cost(pair / count, pair % count)).collect());
        let text = export(&system, ExportFormat::Scotch).unwrap().0;
        let read = import(&text, Format::Scotch);
        prop_assert_eq!(&read.cost, &system.cost);
        prop_assert_eq!(export(&read, ExportFormat::Scotch).unwrap().0, text);
    }
}
