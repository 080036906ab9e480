//! Machines for tests.

use hopmap_model::{CostModel, Levels, Link, Matrix, Node, NodeKind, Slot, SystemGraph};

/// A machine of hosts `n0`, `n1`, … with a tree of links: host `i` is attached to switch `leaf_of[i]`, which
/// is attached to switch `pod_of[leaf]`, below one root. Host `i` has `slots[i]` slots.
pub(crate) fn tree(leaf_of: &[usize], pod_of: &[usize], slots: &[u32], widths: &[f64]) -> SystemGraph {
    let hosts = leaf_of.len();
    let pods = pod_of.iter().max().map_or(0, |last| last + 1);
    let node = |name: String, kind| Node::new(name, kind);
    let mut nodes: Vec<Node> = (0..hosts).map(|i| node(format!("n{i}"), NodeKind::Host)).collect();
    nodes.extend((0..pod_of.len()).map(|i| node(format!("leaf{i}"), NodeKind::Switch)));
    nodes.extend((0..pods).map(|i| node(format!("pod{i}"), NodeKind::Switch)));
    nodes.push(node("root".to_owned(), NodeKind::Switch));
    let up = leaf_of.iter().enumerate().map(|(host, leaf)| (host, hosts + leaf));
    let up =
        up.chain(pod_of.iter().enumerate().map(|(leaf, pod)| (hosts + leaf, hosts + pod_of.len() + pod)));
    let up = up.chain((0..pods).map(|pod| (hosts + pod_of.len() + pod, hosts + pod_of.len() + pods)));
    let link = |a: usize, b: usize, width| Link {
        bandwidth_bytes_per_s: Some(width),
        ..Link::new(a as u32, b as u32)
    };
    let links =
        up.zip(widths.iter().cycle()).flat_map(|((a, b), &w)| [link(a, b, w), link(b, a, w)]).collect();
    let host_of: Vec<usize> =
        slots.iter().enumerate().flat_map(|(host, &n)| std::iter::repeat_n(host, n as usize)).collect();
    let mut list: Vec<Slot> = Vec::new();
    for &host in &host_of {
        let core = list.iter().filter(|slot| slot.host == host as u32).count() as u32;
        list.push(Slot { host: host as u32, core });
    }
    let group = |of: &dyn Fn(usize) -> usize| host_of.iter().map(|&host| of(host) as u32).collect();
    let groups = vec![
        group(&|host| host),
        group(&|host| leaf_of[host]),
        group(&|host| pod_of[leaf_of[host]]),
        group(&|_| 0),
    ];
    let cost = CostModel::Levels(Levels { costs: vec![0.5, 1.0, 10.0, 25.0], groups });
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes,
        links,
        slots: list,
        cost,
        calibration: Vec::new(),
    }
}

/// A machine of hosts with one slot each and any costs, without links.
pub(crate) fn matrix(costs: Vec<f64>) -> SystemGraph {
    let hosts = costs.len().isqrt();
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..hosts).map(|i| Node::host(format!("n{i}"))).collect(),
        links: Vec::new(),
        slots: (0..hosts as u32).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs }),
        calibration: Vec::new(),
    }
}
