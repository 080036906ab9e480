//! Machines with a regular tree network.

use std::num::IntErrorKind;

use hopmap_model::{CostModel, Levels, Link, Node, Routing, Slot, SystemGraph};

use crate::params::{
    MAX_LEVELS, MAX_SLOTS, MachineError, SyntheticParams, too_many_levels, too_many_slots, unfit,
};
use crate::rates::{cable, check_rates};

/// The tree for the parameters.
pub(crate) fn synthetic(params: &SyntheticParams) -> Result<SystemGraph, MachineError> {
    let shape = Shape::new(params)?;
    let mut nodes = host_nodes(params, shape.hosts() as usize)?;
    let mut links = Vec::new();
    if shape.hosts() > 1 {
        add_switches(&shape, params, &mut nodes, &mut links);
    }
    check_names(&nodes)?;
    let slots = shape.slots();
    let slot = |slot| Slot { host: slot / shape.cores, core: slot % shape.cores };
    let groups = |&size: &u32| (0..slots).map(|slot| slot / size).collect();
    Ok(SystemGraph {
        nodes,
        links,
        slots: (0..slots).map(slot).collect(),
        cost: CostModel::Levels(Levels {
            groups: shape.sizes.iter().map(groups).collect(),
            costs: shape.costs,
        }),
        routing: Routing::default(),
        calibration: Vec::new(),
    })
}

/// Checks the parameters without building the machine.
pub(crate) fn check(params: &SyntheticParams) -> Result<(), MachineError> {
    let shape = Shape::new(params)?;
    if params.hosts.is_empty() { Ok(()) } else { host_nodes(params, shape.hosts() as usize).map(drop) }
}

/// Adds the switches level by level, each with the links to its children.
fn add_switches(shape: &Shape, params: &SyntheticParams, nodes: &mut Vec<Node>, links: &mut Vec<Link>) {
    let mut first_child = 0;
    let mut child_size = shape.cores;
    for (level, &size) in shape.sizes[shape.host_level..].iter().enumerate() {
        let first = nodes.len() as u32;
        for index in 0..shape.slots() / size {
            nodes.push(Node::switch(format!("switch-{}-{index}", level + 1)));
        }
        for child in 0..shape.slots() / child_size {
            let parent = first + child / (size / child_size);
            links.extend(cable((first_child + child, parent, level), params));
        }
        first_child = first;
        child_size = size;
    }
}

/// A regular tree over slots with a cost for every level.
pub(crate) struct Shape {
    /// Slots per group of every level, innermost first.
    pub(crate) sizes: Vec<u32>,
    pub(crate) costs: Vec<f64>,
    /// Slots per host.
    pub(crate) cores: u32,
    /// Number of innermost levels within a host.
    pub(crate) host_level: usize,
}

impl Shape {
    /// Checks the shape, the costs and the level of the hosts.
    pub(crate) fn new(params: &SyntheticParams) -> Result<Self, MachineError> {
        let shape = params.shape.as_str();
        let sizes = sizes(shape)?;
        if let Some(parameter) = of_networks(params) {
            return Err(unfit(shape, parameter, "applies to networks with routes; use `costs` for a tree"));
        }
        let costs = match params.costs.is_empty() {
            true => std::iter::successors(Some(1.0), |cost| Some(10.0 * cost)).take(sizes.len()).collect(),
            false => params.costs.clone(),
        };
        check_costs(&costs, sizes.len(), shape)?;
        let host_level = params.host_level.unwrap_or(1) as usize;
        if host_level > sizes.len() {
            let levels = sizes.len();
            let problem = format!("host_level is {host_level}, but shape `{shape}` has {levels} levels");
            let help = "host_level is the number of innermost levels within a host, from 0 to";
            return Err(MachineError::new(problem, format!("{help} {levels}")));
        }
        check_rates(params, sizes.len() - host_level)?;
        let cores = if host_level == 0 { 1 } else { sizes[host_level - 1] };
        Ok(Self { sizes, costs, cores, host_level })
    }

    pub(crate) fn slots(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.slots() / self.cores
    }
}

/// A parameter that does not apply to trees.
fn of_networks(params: &SyntheticParams) -> Option<&'static str> {
    let given = [
        ("cores", !params.cores.is_empty()),
        ("intra_node_costs", !params.intra_node_costs.is_empty()),
        ("cost", params.cost.is_some()),
        ("bytes", params.bytes.is_some()),
    ];
    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// Slots per group of every level: the products of the branches. The trees of `KaHIP` are innermost first as
/// well.
fn sizes(shape: &str) -> Result<Vec<u32>, MachineError> {
    let branches: Vec<&str> = if let Some(tree) = shape.strip_prefix("tree:") {
        tree.split(['x', ':']).collect()
    } else if let Some(hierarchy) = shape.strip_prefix("kahip:") {
        hierarchy.split(':').collect()
    } else {
        let help = "give `tree:2x4x2` (or `kahip:2:4:2`), `fat-tree:4x4/1x2`, `torus:4x4x4`, `mesh:8x8`, `ring:12` or \
                    `dragonfly:4x8x4`";
        return Err(MachineError::new(format!("shape `{shape}` is unknown"), help));
    };
    if branches.len() > MAX_LEVELS {
        return Err(too_many_levels(shape, branches.len()));
    }
    let malformed = |level, text: &str| {
        let problem =
            format!("level {level} of shape `{shape}` is `{text}`, which is not a positive integer");
        MachineError::new(problem, "give the branches of every level, innermost first: `tree:2x4x2`")
    };
    let mut size = 1u32;
    let mut next = |(level, text): (usize, &&str)| {
        let branches = match text.parse::<u64>() {
            Ok(branches) if branches > 0 => branches,
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => u64::MAX,
            _ => return Err(malformed(level, text)),
        };
        size = u64::from(size)
            .checked_mul(branches)
            .filter(|&size| size <= u64::from(MAX_SLOTS))
            .ok_or_else(|| too_many_slots(shape))? as u32;
        Ok(size)
    };
    branches.iter().enumerate().map(&mut next).collect()
}

fn check_costs(costs: &[f64], levels: usize, shape: &str) -> Result<(), MachineError> {
    if costs.len() != levels {
        let problem = format!("shape `{shape}` has {levels} levels, but costs are {costs:?}");
        let help = "give one cost for every level of the shape, innermost first, or omit `costs` for 1, 10, 100, and so on";
        return Err(MachineError::new(problem, help));
    }
    let mut inner = 0.0;
    for (level, &cost) in costs.iter().enumerate() {
        if !(cost.is_finite() && cost >= 0.0) {
            let problem = format!("the cost of level {level} is {cost}");
            return Err(MachineError::new(problem, "costs must be finite and non-negative"));
        }
        if cost < inner {
            let problem =
                format!("the cost of level {level} is {cost}, less than {inner} on the level inside it");
            let help = "costs must not decrease outwards; give them innermost first";
            return Err(MachineError::new(problem, help));
        }
        inner = cost;
    }
    Ok(())
}

/// The hosts, with given names or numbered with a fixed width.
pub(crate) fn host_nodes(params: &SyntheticParams, hosts: usize) -> Result<Vec<Node>, MachineError> {
    let names = if params.hosts.is_empty() {
        let width = hosts.saturating_sub(1).to_string().len();
        (0..hosts).map(|host| format!("{}{host:0width$}", params.host_prefix)).collect()
    } else if params.hosts.len() == hosts {
        params.hosts.clone()
    } else {
        let (names, shape) = (params.hosts.len(), &params.shape);
        let problem = format!("shape `{shape}` has {hosts} hosts, but {names} are named");
        let help = "name every host of the shape in slot order; `shape = \"auto\"` is one switch with all named hosts";
        return Err(MachineError::new(problem, help));
    };
    Ok(names.into_iter().map(Node::host).collect())
}

pub(crate) fn check_names(nodes: &[Node]) -> Result<(), MachineError> {
    let mut names = std::collections::HashSet::with_capacity(nodes.len());
    match nodes.iter().find(|node| !names.insert(&node.name)) {
        Some(node) => {
            let help = "give every host a unique name; switches are named `switch-1-0` and so on";
            Err(MachineError::new(format!("two nodes are named `{}`", node.name), help))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use hopmap_model::{NodeKind, Paths};
    use proptest::prelude::*;

    fn params(shape: &str, costs: &[f64]) -> SyntheticParams {
        let json = serde_json::json!({ "shape": shape, "costs": costs });
        serde_json::from_value(json).unwrap()
    }

    fn message(change: impl FnOnce(&mut SyntheticParams)) -> String {
        let mut params = params("tree:2x4x2", &[1.0, 10.0, 100.0]);
        change(&mut params);
        synthetic(&params).unwrap_err().to_string()
    }

    fn names(system: &SystemGraph, kind: NodeKind) -> Vec<&str> {
        system.nodes.iter().filter(|node| node.kind == kind).map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn two_cores_per_host_four_hosts_per_switch_two_switches() {
        let system = synthetic(&params("tree:2x4x2", &[1.0, 10.0, 100.0])).unwrap();
        system.check().unwrap();
        let hosts = ["host0", "host1", "host2", "host3", "host4", "host5", "host6", "host7"];
        assert_eq!(names(&system, NodeKind::Host), hosts);
        assert_eq!(names(&system, NodeKind::Switch), ["switch-1-0", "switch-1-1", "switch-2-0"]);
        assert_eq!((system.slots.len(), system.links.len()), (16, 20));
        assert_eq!(system.slots[5], Slot { host: 2, core: 1 });
        assert_eq!([0, 1, 2, 8].map(|slot| system.costs().between(0, slot) as u32), [0, 1, 10, 100]);
        let paths = Paths::new(&system).unwrap();
        assert_eq!([0, 1, 4].map(|host| paths.hops(0, host)), [0, 2, 4].map(Some));
    }

    #[test]
    fn links_have_the_rates_of_their_level() {
        let mut params = params("tree:2x4x2", &[]);
        (params.link_latency_s, params.bandwidth_bytes_per_s) = (vec![1e-6, 2e-6], vec![1e9]);
        let system = synthetic(&params).unwrap();
        let latency = |a: u32, b: u32| {
            let path = Paths::new(&system).unwrap().path(a, b).unwrap();
            path.iter().map(|&link| system.links[link as usize].latency_s.unwrap()).sum::<f64>()
        };
        assert!((latency(0, 1) - 2e-6).abs() < 1e-12);
        assert!((latency(7, 0) - 6e-6).abs() < 1e-12);
        assert!(system.links.iter().all(|link| link.bandwidth_bytes_per_s == Some(1e9)));
        params.link_latency_s.push(3e-6);
        let error = synthetic(&params).unwrap_err().to_string();
        assert!(error.contains("has 3 values, but there are 2 kinds of links"), "{error}");
    }

    #[test]
    fn costs_follow_from_the_shape() {
        for (shape, costs) in [("tree:2x4", &[1.0, 10.0][..]), ("tree:2x4x2x3", &[1.0, 10.0, 100.0, 1000.0])]
        {
            assert_eq!(synthetic(&params(shape, &[])).unwrap(), synthetic(&params(shape, costs)).unwrap());
        }
    }

    #[test]
    fn colons_separate_levels_too() {
        let costs = [1.0, 10.0, 100.0];
        assert_eq!(
            synthetic(&params("tree:2:4:2", &costs)).unwrap(),
            synthetic(&params("tree:2x4x2", &costs)).unwrap()
        );
    }

    /// 4:16:64 is 4 cores per processor, 16 processors per node, 64 nodes: cores that first meet in a node
    /// cost 10.
    #[test]
    fn the_hierarchies_of_kahip_are_trees() {
        let kahip = |json: serde_json::Value| synthetic(&serde_json::from_value(json).unwrap()).unwrap();
        let text = kahip(serde_json::json!({ "shape": "kahip:4:16:64", "costs": "1:10:100" }));
        let list = kahip(serde_json::json!({ "shape": "kahip:4:16:64", "costs": [1, 10, 100] }));
        assert_eq!(text, synthetic(&params("tree:4x16x64", &[1.0, 10.0, 100.0])).unwrap());
        assert_eq!(list, text);
        assert_eq!(text.slots.len(), 4096);
        assert_eq!(
            [3, 4, 63, 64, 4095].map(|slot| text.costs().between(0, slot) as u32),
            [1, 10, 10, 100, 100]
        );
        assert_eq!(
            message(|p| p.shape = "kahip:2x4:2".into()),
            "level 0 of shape `kahip:2x4:2` is `2x4`, which is not a positive integer"
        );
        let wrong = serde_json::json!({ "shape": "kahip:4:4", "costs": "1:ten" });
        let error = serde_json::from_value::<SyntheticParams>(wrong).unwrap_err().to_string();
        assert_eq!(error, "`ten` in `1:ten` is not a number");
        assert!(
            message(|p| p.costs = vec![1.0, 10.0, f64::INFINITY]).starts_with("the cost of level 2 is inf")
        );
    }

    #[test]
    fn a_million_slots() {
        let system = synthetic(&params("kahip:4:16:16384", &[1.0, 10.0, 100.0])).unwrap();
        assert_eq!((system.slots.len(), system.hosts().count()), (1 << 20, 1 << 18));
        assert!(system.check().is_ok());
    }

    #[test]
    fn hosts_can_be_slots_or_the_whole_machine() {
        let mut params = params("tree:2x3", &[1.0, 10.0]);
        params.host_level = Some(0);
        let system = synthetic(&params).unwrap();
        assert_eq!(
            names(&system, NodeKind::Switch),
            ["switch-1-0", "switch-1-1", "switch-1-2", "switch-2-0"]
        );
        params.host_level = Some(2);
        let system = synthetic(&params).unwrap();
        assert_eq!((names(&system, NodeKind::Host), system.links.len()), (vec!["host0"], 0));
        assert_eq!(system.slots[5], Slot { host: 0, core: 5 });
    }

    #[test]
    fn names_are_numbered_with_one_width_or_given() {
        let mut params = params("tree:1x11", &[0.0, 1.0]);
        params.host_prefix = "node-".to_owned();
        let system = synthetic(&params).unwrap();
        assert_eq!((system.nodes[1].name.as_str(), system.nodes[10].name.as_str()), ("node-01", "node-10"));
        params.hosts = (0..11).map(|host| format!("n{host}")).collect();
        assert_eq!(synthetic(&params).unwrap().nodes[10].name, "n10");
    }

    #[test]
    fn malformed_shapes_are_reported() {
        assert_eq!(message(|p| p.shape = "cube:4x4".into()), "shape `cube:4x4` is unknown");
        for (shape, level, branches) in
            [("tree:", 0, ""), ("tree:2x0x2", 1, "0"), ("tree:2x4xtwo", 2, "two"), ("tree:2x-1", 1, "-1")]
        {
            let expected =
                format!("level {level} of shape `{shape}` is `{branches}`, which is not a positive integer");
            assert_eq!(message(|p| p.shape = shape.into()), expected);
        }
        assert!(message(|p| p.shape = "tree:4096x4097".into()).ends_with("more than 16777216 slots"));
        assert!(message(|p| p.shape = "tree:99999999999x99999999999".into()).contains("more than"));
        assert!(
            message(|p| p.shape = format!("tree:1{}", "x1".repeat(40)))
                .ends_with("has 41 levels, more than 32")
        );
    }

    #[test]
    fn malformed_costs_are_reported() {
        assert!(message(|p| p.costs = vec![1.0, 2.0]).contains("has 3 levels, but costs are [1.0, 2.0]"));
        assert_eq!(message(|p| p.costs[1] = f64::NAN), "the cost of level 1 is NaN");
        assert_eq!(message(|p| p.costs[0] = -1.0), "the cost of level 0 is -1");
        assert_eq!(
            message(|p| p.costs[2] = 9.5),
            "the cost of level 2 is 9.5, less than 10 on the level inside it"
        );
    }

    #[test]
    fn malformed_hosts_are_reported() {
        assert_eq!(
            message(|p| p.host_level = Some(4)),
            "host_level is 4, but shape `tree:2x4x2` has 3 levels"
        );
        let named = |names: [&str; 8]| message(|p| p.hosts = names.map(str::to_owned).to_vec());
        let few = message(|p| p.hosts = vec!["a".into()]);
        assert_eq!(few, "shape `tree:2x4x2` has 8 hosts, but 1 are named");
        assert_eq!(named(["a", "b", "c", "a", "e", "f", "g", "h"]), "`hosts` has the host `a` twice");
        assert_eq!(
            named(["a", "b", "c", "switch-1-1", "e", "f", "g", "h"]),
            "two nodes are named `switch-1-1`"
        );
        assert!(named(["a", "", "c", "d", "e", "f", "g", "h"]).ends_with("but 7 are named"));
        assert!(named(["a", "b c", "d", "e", "f", "g", "h", "i"]).ends_with("but 9 are named"));
        assert_eq!(
            named(["a", "b\u{1}", "c", "d", "e", "f", "g", "h"]),
            "`hosts` is not a host list: host list, line 2, column 2: the character '\\u{1}' is not allowed in a name"
        );
    }

    proptest! {
        #[test]
        fn every_machine_is_valid_and_its_costs_match_its_shape(
            shape in prop::collection::vec(1u32..5, 1..5),
            host_level in 0usize..5,
        ) {
            let text = shape.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
            let mut params = params(&format!("tree:{text}"), &[1.0, 2.0, 4.0, 8.0][..shape.len()]);
            params.host_level = Some(host_level.min(shape.len()) as u32);
            let system = synthetic(&params).unwrap();
            prop_assert!(system.check().is_ok());
            prop_assert_eq!(Paths::new(&system).is_some(), system.hosts().count() > 1);
            for a in 0..system.slots.len() as u32 {
                let (mut x, mut y, mut expected) = (a, 0, 0.0);
                for (&branches, cost) in shape.iter().zip(&params.costs) {
                    if x != y {
                        expected = *cost;
                    }
                    (x, y) = (x / branches, y / branches);
                }
                prop_assert!((system.costs().between(a, 0) - expected).abs() < f64::EPSILON);
            }
        }
    }
}
