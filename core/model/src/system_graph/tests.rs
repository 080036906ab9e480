use super::*;

/// Two switches under a root, two hosts each, two cores per host.
pub(crate) fn small_tree() -> SystemGraph {
    let node = |name: &str, kind| Node::new(name, kind);
    let mut nodes: Vec<Node> = (0..4).map(|i| node(&format!("h{i}"), NodeKind::Host)).collect();
    nodes.extend(["s0", "s1", "root"].map(|name| node(name, NodeKind::Switch)));
    let both = |a, b| [(a, b), (b, a)];
    let links = [both(0, 4), both(1, 4), both(2, 5), both(3, 5), both(4, 6), both(5, 6)];
    let link = |(source, destination)| Link::new(source, destination);
    SystemGraph {
        nodes,
        links: links.into_iter().flatten().map(link).collect(),
        slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: vec![
                (0..8).map(|slot| slot / 2).collect(),
                (0..8).map(|slot| slot / 4).collect(),
                vec![0; 8],
            ],
        }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

#[test]
fn cost_is_that_of_the_level_where_two_slots_meet() {
    let system = small_tree();
    system.check().unwrap();
    assert_eq!([0, 1, 2, 4].map(|b| system.costs().between(0, b) as u32), [0, 1, 10, 100]);
    assert_eq!(system.costs().block(&[0, 7]), [0.0, 100.0, 100.0, 0.0]);
    assert_eq!(system.hosts().collect::<Vec<_>>(), [(0, 0, 2), (1, 2, 2), (2, 4, 2), (3, 6, 2)]);
}

#[test]
fn hosts_may_have_different_numbers_of_slots() {
    let uneven = small_tree().with_slots_per_host(|host| [2, 1, 9, 0][host]);
    uneven.check().unwrap();
    assert_eq!(uneven.hosts().collect::<Vec<_>>(), [(0, 0, 2), (1, 2, 1), (2, 3, 2)]);
    assert_eq!([1, 2, 3].map(|b| uneven.costs().between(0, b) as u32), [1, 10, 100]);
}

#[test]
fn a_matrix_distinguishes_directions_and_the_diagonal() {
    let mut system = small_tree();
    system.slots.truncate(2);
    system.cost = CostModel::Matrix(Matrix { costs: vec![0.5, 1.0, 2.0, 0.0] });
    system.check().unwrap();
    assert_eq!(system.costs().block(&[0, 1]), [0.5, 1.0, 2.0, 0.0]);
    assert_eq!(system.costs().block(&[1, 0]), [0.0, 2.0, 1.0, 0.5]);
    for costs in [vec![0.0; 3], vec![0.0, 1.0, -1.0, 0.0], vec![0.0, f64::NAN, 1.0, 0.0]] {
        system.cost = CostModel::Matrix(Matrix { costs });
        assert!(system.check().unwrap_err().to_string().contains("cost matrix"));
    }
}

#[test]
fn inconsistencies_are_reported() {
    let broken = |change: fn(&mut SystemGraph)| {
        let mut system = small_tree();
        change(&mut system);
        system.check().unwrap_err().to_string()
    };
    assert!(broken(|s| s.nodes[1].name = "h0".into()).contains("two nodes"));
    assert!(broken(|s| s.links[0].source = 9).contains("link 0 refers to node 9"));
    assert!(broken(|s| s.slots[0].host = 4).contains("switch"));
    assert!(broken(|s| s.slots[7].host = 0).contains("not consecutive"));
    assert!(
        broken(|s| {
            if let CostModel::Levels(levels) = &mut s.cost {
                levels.costs[2] = 5.0;
            }
        })
        .contains("cost levels")
    );
}
