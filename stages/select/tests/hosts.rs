//! `select/hosts` as a stage.

use std::sync::Arc;

use hopmap_model::{
    Context, CostModel, Inputs, Levels, Link, Node, Outcome, Paths, RouteCosts, RouteMetric, Routing, Slot,
    Stage, SystemGraph,
};
use hopmap_select::{Hosts, HostsParams};
use proptest::prelude::*;
use serde_json::json;

/// Leaves with hosts of two slots each, every leaf connected to every spine.
fn fat_tree(leaves: u32, hosts_of_leaf: u32, spines: u32) -> SystemGraph {
    let hosts = leaves * hosts_of_leaf;
    let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::host(format!("n{host}"))).collect();
    nodes.extend((0..leaves).map(|leaf| Node::switch(format!("leaf{leaf}"))));
    nodes.extend((0..spines).map(|spine| Node::switch(format!("spine{spine}"))));
    let down = (0..hosts).map(|host| (host, hosts + host / hosts_of_leaf));
    let up =
        (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (hosts + leaf, hosts + leaves + spine)));
    let both = |(a, b)| [Link::new(a, b), Link::new(b, a)];
    let wide = |link| Link { bandwidth_bytes_per_s: Some(4e9), ..link };
    let inside = Levels {
        costs: vec![0.0, 0.5],
        groups: vec![(0..2 * hosts).collect(), (0..2 * hosts).map(|slot| slot / 2).collect()],
    };
    SystemGraph {
        nodes,
        links: down.chain(up).flat_map(both).map(wide).collect(),
        slots: (0..2 * hosts).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
        cost: CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

fn thousandths(cost: f64) -> u64 {
    (cost * 1000.0).round() as u64
}

fn run(system: &SystemGraph, params: serde_json::Value) -> Result<SystemGraph, String> {
    let params: HostsParams = serde_json::from_value(params).unwrap();
    Hosts::check(&params).map_err(|error| error.to_string())?;
    let mut inputs = Inputs::new();
    inputs.connect("system", Arc::new(system.clone()), "d".into(), "machine".into());
    match Hosts::run(params, inputs, &Context::detached()) {
        Ok(Outcome::Done(outputs)) => {
            let chosen = outputs.get("system").unwrap().downcast_ref::<SystemGraph>().unwrap().clone();
            chosen.check().unwrap();
            Ok(chosen)
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn named_hosts_keep_their_slots_and_routes() {
    let machine = fat_tree(3, 4, 2);
    let chosen = run(&machine, json!({ "hosts": "n[1,4-5]" })).unwrap();
    assert_eq!(chosen.links, machine.links);
    assert_eq!(chosen.slots.iter().map(|slot| slot.host).collect::<Vec<_>>(), [1, 1, 4, 4, 5, 5]);
    let costs = chosen.costs();
    assert_eq!([1, 2, 3].map(|slot| thousandths(costs.between(0, slot))), [500, 4000, 4000]);
    assert_eq!(run(&machine, json!({})).unwrap(), machine);
    assert_eq!(run(&machine, json!({ "exclude": "n[0-9]" })).unwrap().slots.len(), 4);
}

#[test]
fn trimmed_machines_keep_only_connecting_nodes() {
    let machine = fat_tree(3, 4, 2);
    let names = |params| {
        let chosen = run(&machine, params).unwrap();
        chosen.nodes.into_iter().map(|node| node.name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(json!({ "hosts": "n[1,4]", "trim": true })),
        ["n1", "n4", "leaf0", "leaf1", "leaf2", "spine0", "spine1"]
    );
    let mut tree = fat_tree(3, 4, 1);
    tree.nodes[2].state = hopmap_model::NodeState::Down;
    let chosen = run(&tree, json!({ "hosts": "n[1-2,4]", "trim": true })).unwrap();
    assert_eq!(
        chosen.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
        ["n1", "n4", "leaf0", "leaf1", "spine0"]
    );
}

#[test]
fn costs_are_hops_latency_or_time() {
    let machine = fat_tree(2, 2, 2);
    let cost = |params| {
        let chosen = run(&machine, params).unwrap();
        let costs = chosen.costs();
        [1, 2, 4].map(|slot| thousandths(costs.between(0, slot)))
    };
    assert_eq!(cost(json!({ "cost": "hops" })), [500, 2000, 4000]);
    assert_eq!(cost(json!({ "cost": "latency", "link_latency_s": 1e-7 })), [50, 200, 400]);
    let time = json!({ "cost": "time", "bytes": 4000, "link_latency_s": 1e-7 });
    assert_eq!(cost(time), [550, 1200, 1400]);
    let matrix =
        run(&machine, json!({ "cost": "latency", "link_latency_s": 1e-7, "form": "matrix" })).unwrap();
    let CostModel::Matrix(costs) = &matrix.cost else { panic!("{:?}", matrix.cost) };
    assert_eq!(costs.costs.len(), 64);
    let levels = run(&machine, json!({ "form": "levels" })).unwrap();
    let CostModel::Levels(levels) = &levels.cost else { panic!("{:?}", levels.cost) };
    assert_eq!(levels.costs, [0.0, 0.5, 2.0, 4.0]);
}

#[test]
fn impossible_parameters_are_explained() {
    let machine = fat_tree(2, 2, 2);
    let message = |params| run(&machine, params).unwrap_err();
    assert_eq!(
        message(json!({ "hosts": "n0", "hosts_file": "x" })),
        "`hosts` and `hosts_file` are mutually exclusive"
    );
    assert_eq!(message(json!({ "cost": "time" })), "`bytes` is missing");
    assert_eq!(message(json!({ "bytes": 1 })), "`bytes` has no effect here");
    assert_eq!(message(json!({ "link_latency_s": -1.0 })), "`link_latency_s` = -1 is out of range");
    assert_eq!(message(json!({ "cost": "latency" })), "the link from `n0` to `leaf0` has no latency");
    assert!(message(json!({ "hosts": "m1" })).starts_with("`m1` is not a host with slots"));
    let without =
        SystemGraph { links: Vec::new(), cost: machine.explicit(0).unwrap().into_owned().cost, ..machine };
    assert!(run(&without, json!({ "cost": "hops" })).unwrap_err().contains("no links"));
}

proptest! {
    /// Costs between the chosen hosts equal those of the machine in any representation. This includes trimmed
    /// machines, since hops do not depend on the choice among shortest routes.
    #[test]
    fn costs_between_the_chosen_stay(
        leaves in 1_u32..5, hosts in 1_u32..5, spines in 1_u32..4, keep in prop::collection::vec(any::<bool>(), 16), trim: bool,
        form in prop::sample::select(vec!["keep", "levels", "matrix"]),
    ) {
        let machine = fat_tree(leaves, hosts, spines);
        let count = leaves * hosts;
        let mut kept: Vec<u32> = (0..count).filter(|&host| keep[host as usize]).collect();
        if kept.is_empty() {
            kept.push(0);
        }
        let list = kept.iter().map(|host| format!("n{host}")).collect::<Vec<_>>().join(",");
        let chosen = run(&machine, json!({ "hosts": list, "trim": trim, "form": form })).unwrap();
        let (all, some) = (machine.costs(), chosen.costs());
        let slot = |index: usize| 2 * kept[index / 2] + (index % 2) as u32;
        prop_assert_eq!(chosen.slots.len(), 2 * kept.len());
        for a in 0..chosen.slots.len() {
            for b in 0..chosen.slots.len() {
                prop_assert_eq!(some.between(a as u32, b as u32).to_bits(), all.between(slot(a), slot(b)).to_bits());
            }
        }
        if kept.len() > 1 {
            prop_assert!(Paths::new(&chosen).is_some());
        }
    }
}
