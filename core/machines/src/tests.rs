//! Tests of networks other than trees.

use hopmap_model::{CostModel, NodeKind, Paths};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn machine(params: Value) -> Result<SystemGraph, String> {
    let params: SyntheticParams = serde_json::from_value(params).map_err(|error| error.to_string())?;
    check(&params).map_err(|error| error.to_string())?;
    let system = synthetic(&params).map_err(|error| error.to_string())?;
    system.check().unwrap();
    Ok(system)
}

fn of_shape(shape: &str) -> SystemGraph {
    machine(json!({ "shape": shape })).unwrap()
}

fn count(system: &SystemGraph, kind: NodeKind) -> usize {
    system.nodes.iter().filter(|node| node.kind == kind).count()
}

/// The largest number of messages on a link if every host sends one to the host at a given offset (shift
/// pattern).
fn busiest(system: &SystemGraph, paths: &Paths, shift: u32) -> u32 {
    let hosts = count(system, NodeKind::Host) as u32;
    let mut loads = vec![0; system.links.len()];
    for host in 0..hosts {
        assert!(paths.walk(host, (host + shift) % hosts, |link| loads[link as usize] += 1));
    }
    loads.into_iter().max().unwrap()
}

#[test]
fn a_fat_tree_has_the_nodes_and_links_of_its_numbers() {
    let system = of_shape("fat-tree:4x4/1x2");
    assert_eq!((count(&system, NodeKind::Host), count(&system, NodeKind::Switch)), (16, 6));
    assert_eq!(system.links.len(), 2 * (16 + 8));
    let paths = Paths::new(&system).unwrap();
    assert_eq!([0, 3, 4, 15].map(|host| paths.hops(0, host).unwrap()), [0, 2, 4, 4]);
    let doubled = of_shape("fat-tree:4,4;1,2;1,2");
    assert_eq!(doubled.links.len(), 2 * (16 + 16));
    assert_eq!(of_shape("fat-tree:4x4x2"), of_shape("fat-tree:4x4x2/1x1x1/1x1x1"));
    let single = of_shape("fat-tree:4x4x2");
    assert!(Paths::new(&single).unwrap().tree().is_some());
}

/// Static routes by destination carry every shift of all hosts without two messages on one link, in trees
/// with equal numbers of upward and downward links (Zahavi 2012).
#[test]
fn shifts_do_not_collide_in_fat_trees_of_full_width() {
    for shape in ["fat-tree:4x4/1x4", "fat-tree:3x5/1x3", "fat-tree:4x2/1x2/1x2", "fat-tree:3x3x3/1x3x3"] {
        let system = of_shape(shape);
        let paths = Paths::new(&system).unwrap();
        let hosts = count(&system, NodeKind::Host) as u32;
        for shift in 1..hosts {
            assert_eq!(busiest(&system, &paths, shift), 1, "{shape}, shift {shift}");
        }
    }
    let half = of_shape("fat-tree:4x4/1x2");
    assert_eq!(busiest(&half, &Paths::new(&half).unwrap(), 4), 2);
}

#[test]
fn the_costs_of_a_fat_tree_are_levels_whatever_its_size() {
    let system = of_shape("fat-tree:20x20x25/1x20x20");
    assert_eq!((count(&system, NodeKind::Host), count(&system, NodeKind::Switch)), (10_000, 500 + 500 + 400));
    let explicit = system.explicit(0).unwrap();
    let CostModel::Levels(levels) = &explicit.cost else { panic!("no levels") };
    assert_eq!(levels.costs, [0.0, 2.0, 4.0, 6.0]);
    let places = [(0, 19), (0, 20), (0, 399), (0, 400), (9_999, 0)];
    assert_eq!(places.map(|(a, b)| levels.meeting_level(a, b)), [1, 2, 2, 3, 3]);
}

#[test]
fn a_dragonfly_connects_all_its_groups() {
    let system = of_shape("dragonfly:2x4x2");
    assert_eq!((count(&system, NodeKind::Host), count(&system, NodeKind::Switch)), (72, 36));
    assert_eq!(system.links.len(), 2 * (72 + 9 * 6 + 36));
    let smaller = of_shape("dragonfly:2x4x2x3");
    assert_eq!(smaller.links.len(), 2 * (24 + 3 * 6 + 3 * 4));
    assert_eq!(of_shape("dragonfly:4x1x1x1").links.len(), 8);
    for system in [system, smaller, of_shape("dragonfly:1x3x1x4"), of_shape("dragonfly:1x1x3")] {
        let paths = Paths::new(&system).unwrap();
        let group = |node: u32| system.nodes[node as usize].name.split('-').nth(1).map(str::to_owned);
        let hosts = count(&system, NodeKind::Host) as u32;
        for a in 0..hosts {
            for b in (0..hosts).filter(|&b| b != a) {
                let path = paths.path(a, b).unwrap();
                let ends = path.iter().map(|&link| system.links[link as usize]);
                let between_groups = |link: &hopmap_model::Link| {
                    let groups = (group(link.source), group(link.destination));
                    groups.0.is_some() && groups.1.is_some() && groups.0 != groups.1
                };
                assert!(path.len() <= 5 && ends.filter(between_groups).count() <= 1);
            }
        }
    }
}

#[test]
fn links_have_the_attributes_of_their_kind() {
    let shape = json!({
        "shape": "dragonfly:1x2x1", "link_latency_s": [1e-7, 2e-7, 1e-6], "bandwidth_bytes_per_s": [1e9, 2e9, 4e9],
        "cost": "time", "bytes": 1000, "cores": [2, 2],
    });
    let system = machine(shape).unwrap();
    let latencies: Vec<_> = [0, 12, 18].iter().map(|&link: &usize| system.links[link].latency_s).collect();
    assert_eq!(latencies, [Some(1e-7), Some(2e-7), Some(1e-6)]);
    let costs = system.costs();
    let near = |cost: f64, expected: f64| (cost - expected).abs() < 1e-9;
    assert!(near(costs.between(0, 4), 0.1 + 0.2 + 0.1 + 1.0));
    // Inside hosts, equal steps below the cheapest link, which is the one within groups with 0.7 µs.
    assert!(near(costs.between(0, 1), 0.0) && near(costs.between(0, 2), 0.35));
    let torus =
        machine(json!({ "shape": "torus:4x4", "link_latency_s": [1e-6], "cost": "latency" })).unwrap();
    assert!(near(torus.costs().between(0, 10), 4.0));
    // One number for all links is a list of one.
    let numbers = |latency: Value, bandwidth: Value| {
        machine(
            json!({ "shape": "torus:4x4", "link_latency_s": latency, "bandwidth_bytes_per_s": bandwidth }),
        )
        .unwrap()
    };
    assert_eq!(numbers(json!(1e-6), json!(12_500_000_000_u64)), numbers(json!([1e-6]), json!([1.25e10])));
}

#[test]
fn invalid_networks_are_reported() {
    let message = |params: Value| machine(params).unwrap_err();
    let of_shape = |shape: &str| message(json!({ "shape": shape }));
    assert_eq!(of_shape("cube:3x3"), "shape `cube:3x3` is unknown");
    assert_eq!(of_shape("torus"), "shape `torus` is unknown");
    assert_eq!(
        of_shape("torus:4x0"),
        "number 1 of shape `torus:4x0` is `0`, which is not a positive integer"
    );
    assert!(of_shape("ring:4x4").contains("`4x4`"));
    assert!(of_shape("mesh:99999x99999").contains("more than"));
    assert!(of_shape("mesh:100000").contains("more than"));
    assert!(of_shape("torus:99999999999999999999").contains("not a positive integer"));
    for shape in
        ["fat-tree:4x4/1", "fat-tree:2/1/1/1", "dragonfly:2x2", "dragonfly:1x2x1x9", "dragonfly:1x1x1x1x1"]
    {
        assert!(of_shape(shape).ends_with("are inconsistent"), "{shape}");
    }
    assert!(of_shape("fat-tree:4096x4096/4096x4096").contains("more than"));
    assert!(of_shape("dragonfly:16x32x16").contains("entries"));
    let torus = |key: &str, value: Value| message(json!({ "shape": "torus:4x4", key: value }));
    assert!(torus("costs", json!([1])).contains("applies to trees only"));
    assert!(torus("host_level", json!(1)).contains("applies to trees only"));
    assert!(torus("cores", json!([0])).contains("above zero"));
    assert!(torus("bandwidth_bytes_per_s", json!([1.0, 2.0, 3.0])).contains("2 kinds"));
    assert!(
        torus("bandwidth_bytes_per_s", json!([0.0])).contains("has the value 0, but must be more than 0")
    );
    assert!(torus("cost", json!("latency")).contains("`link_latency_s`"));
    assert!(torus("cost", json!("time")).contains("`bytes`"));
    assert!(torus("bytes", json!(8)).contains("applies only if"));
    assert!(torus("intra_node_costs", json!([1.0, 2.0])).contains("level of `cores`"));
    assert!(torus("hosts", json!(["a"])).contains("16 hosts"));
    assert!(
        message(json!({ "shape": "tree:2x2", "costs": [1, 2], "cores": [2] }))
            .contains("applies to networks")
    );
    assert!(message(json!({ "shape": "tree:2x2", "costs": 1 })).contains("costs are [1.0]"));
}

proptest! {
    #[test]
    fn distances_in_grids_are_those_along_their_dimensions(
        sizes in prop::collection::vec(1_u32..5, 1..4), wraps: bool,
    ) {
        let text = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        let system = of_shape(&format!("{}:{text}", if wraps { "torus" } else { "mesh" }));
        let hosts = sizes.iter().product::<u32>();
        prop_assert_eq!(count(&system, NodeKind::Host) as u32, hosts);
        let Some(paths) = Paths::new(&system) else { return Ok(()) };
        let place = |host: u32| {
            let mut rest = host;
            sizes.iter().map(|size| { let place = rest % size; rest /= size; place }).collect::<Vec<_>>()
        };
        let dimension = |a: u32, b: u32| (0..sizes.len()).find(|&d| place(a)[d] != place(b)[d]).unwrap();
        for a in 0..hosts {
            for b in 0..hosts {
                let along = |((x, y), size): ((u32, u32), &u32)| {
                    let straight = x.abs_diff(y);
                    if wraps { straight.min(size - straight) } else { straight }
                };
                let expected: u32 = place(a).into_iter().zip(place(b)).zip(&sizes).map(along).sum();
                let path = paths.path(a, b).unwrap();
                prop_assert_eq!(path.len() as u32, expected);
                let turns: Vec<usize> = path.iter()
                    .map(|&link| dimension(system.links[link as usize].source, system.links[link as usize].destination))
                    .collect();
                prop_assert!(paths.tree().is_some() || turns.is_sorted());
            }
        }
    }
}

/// Costs have a custom deserializer and thus a custom schema.
#[test]
fn costs_are_described() {
    let schema = schemars::schema_for!(SyntheticParams);
    let costs = &schema.as_value()["properties"]["costs"];
    assert!(costs["description"].as_str().unwrap().starts_with("Costs between slots of a tree"), "{costs}");
    assert_eq!(costs["type"], serde_json::json!(["number", "array", "string"]));
}

#[test]
fn unknown_parameters_are_rejected() {
    let wrong = r#"{"shape": "tree:2x2", "costs": [1, 10], "hsot_level": 1}"#;
    assert!(serde_json::from_str::<SyntheticParams>(wrong).is_err());
}
