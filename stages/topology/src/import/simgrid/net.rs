//! Nodes and directed links as a platform is read.

use std::collections::HashSet;

use hopmap_model::{Link, Node, NodeKind};

/// Nodes and links; every link knows the one of the platform that it stands for.
#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) nodes: Vec<Node>,
    /// Cores of every node that is a host.
    pub(super) cores: Vec<u32>,
    pub(super) links: Vec<Link>,
    /// By link, which of the platform's it is.
    pub(super) origin: Vec<u32>,
    names: HashSet<String>,
}

impl Net {
    pub(super) fn host(&mut self, name: &str, cores: u32) -> Option<u32> {
        self.names.insert(name.to_owned()).then(|| self.push(Node::host(name), cores))
    }

    /// A switch; its name gets a `_` as long as another node has it.
    pub(super) fn switch(&mut self, name: &str) -> u32 {
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.push(Node::switch(name), 0)
    }

    fn push(&mut self, node: Node, cores: u32) -> u32 {
        self.nodes.push(node);
        self.cores.push(cores);
        self.nodes.len() as u32 - 1
    }

    /// A directed link.
    pub(super) fn link(
        &mut self,
        source: u32,
        destination: u32,
        (latency, bandwidth): (f64, f64),
        origin: u32,
    ) {
        let known = Some(bandwidth).filter(|bandwidth| *bandwidth > 0.0);
        self.links.push(Link {
            latency_s: Some(latency),
            bandwidth_bytes_per_s: known,
            ..Link::new(source, destination)
        });
        self.origin.push(origin);
    }

    /// Puts hosts first; where every node went.
    pub(super) fn hosts_first(&mut self) -> Vec<u32> {
        let is_host = |node: &u32| self.nodes[*node as usize].kind == NodeKind::Host;
        let all: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let (hosts, switches): (Vec<u32>, Vec<u32>) = all.iter().partition(|node| is_host(node));
        let order: Vec<u32> = hosts.into_iter().chain(switches).collect();
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &old)| place[old as usize] = new);
        self.nodes = order.iter().map(|&old| self.nodes[old as usize].clone()).collect();
        self.cores = order.iter().map(|&old| self.cores[old as usize]).collect();
        for link in &mut self.links {
            link.source = place[link.source as usize];
            link.destination = place[link.destination as usize];
        }
        place
    }
}
