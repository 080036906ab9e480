//! Regression tests.

use std::path::Path;

use crate::support::samples::Mesh;
use hopmap_model::NodeState;
use hopmap_route::Instance;
use hopmap_routing::answer::{Answer, answer};
use hopmap_routing::engine::StopCondition;
use hopmap_routing::goals::reach;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};

const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// Two switches with two hosts each; three processes that send in a ring.
const NETWORK: &str = r#"
hosts     = [{ name = "h1", performance = 2 }, { name = "h2", performance = 2 }, { name = "h3", performance = 2 }, { name = "h4", performance = 2 }]
switches  = [{ name = "A", type = 1 }, { name = "B", type = 1 }]
links     = [
    { a = "A", b = "B", bandwidth = 100 }, { a = "A", b = "h1", bandwidth = 100 }, { a = "A", b = "h2", bandwidth = 100 },
    { a = "B", b = "h3", bandwidth = 100 }, { a = "B", b = "h4", bandwidth = 100 },
]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 30 }, { from = "P2", to = "P3", bandwidth = 20 }, { from = "P3", to = "P1", bandwidth = 10 }]
"#;

fn instance(text: &str) -> Instance {
    Instance::parse(text.as_bytes(), Path::new("instance")).unwrap()
}

fn searched(instance: &Instance, weights: Weights) -> Answer {
    let rules = Rules::from(weights);
    let problem = Problem::new(&instance.graph, &instance.system, None, rules).unwrap();
    answer(&problem, None, Method::Search, None, &StopCondition::endless()).unwrap().unwrap()
}

#[test]
fn hosts_that_are_down_hold_no_process() {
    let mut whole = instance(NETWORK);
    for down in [0, 4] {
        whole.system.nodes[down].state = NodeState::Down;
    }
    let answer = searched(&whole, WEIGHTS);
    let hosts: Vec<&str> = (0..3).map(|rank| answer.mapping.host_of(rank)).collect();
    assert!(hosts.iter().all(|host| ["h3", "h4"].contains(host)), "{hosts:?}");
}

#[test]
fn processes_without_slots_are_reported() {
    let mut narrow = instance(NETWORK);
    narrow.system.slots.retain(|slot| slot.core == 0);
    if let hopmap_model::CostModel::Routes(costs) = &mut narrow.system.cost {
        costs.inside.groups = vec![(0..4).collect()];
    }
    let problem = Problem::new(&narrow.graph, &narrow.system, None, Rules::from(WEIGHTS)).unwrap();
    let error = answer(&problem, None, Method::Search, None, &StopCondition::endless()).unwrap_err();
    assert!(
        error.to_string().ends_with("has enough performance for more processes than it has slots"),
        "{error}"
    );
}

/// Eight processes with random streams on a square of four switches.
fn square() -> Instance {
    let mesh = Mesh {
        rows: 2,
        columns: 2,
        hosts: 2,
        processes: 8,
        streams: 9,
        bandwidth: 100,
        switch_type: 1,
        seed: 1,
    };
    mesh.instance(false).unwrap()
}

#[test]
fn large_weights_do_not_hide_an_entry() {
    let found = |longest: f64| {
        let answer = searched(&square(), Weights { longest_route: longest, ..WEIGHTS });
        ["longest", "hops", "entries", "proven"].map(|metric| answer.routes.metrics[metric].to_bits())
    };
    assert_eq!(found(1e10), found(1e4));
}

#[test]
fn an_unlimited_link_does_not_hide_a_load() {
    let goal = |instance: &Instance| {
        let problem = Problem::new(&instance.graph, &instance.system, None, Rules::from(WEIGHTS)).unwrap();
        let stop = StopCondition::endless();
        let answer = reach(&problem, None, Goal::SwitchLoad, Method::Search, None, &stop).unwrap().unwrap();
        answer.routes.metrics["goal"]
    };
    let mut wide = square();
    wide.system.links[0].bandwidth_bytes_per_s = Some(1e15);
    assert_eq!(goal(&wide).to_bits(), goal(&square()).to_bits());
}
