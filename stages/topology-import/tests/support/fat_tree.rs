//! Fat trees of any size in the formats of `ibnetdiscover` and `dump_fts`.

use std::io::{Result, Write};

/// A fat tree of three levels with switches of one size: pods of leaves and spines, every spine with equal
/// numbers of up and down links, and D-mod-K forwarding tables.
pub(crate) struct FatTree {
    /// Half the ports of a switch.
    half: usize,
    hosts: usize,
    pods: usize,
}

/// A switch or a host.
#[derive(Clone, Copy)]
enum Node {
    Host(usize),
    Leaf(usize),
    Spine(usize),
    Core(usize),
}

impl FatTree {
    /// With a given number of ports per switch and of hosts.
    pub(crate) fn new(radix: usize, hosts: usize) -> Self {
        let half = radix / 2;
        Self { half, hosts, pods: hosts.div_ceil(half * half).max(2) }
    }

    fn switches(&self) -> impl Iterator<Item = Node> + use<> {
        let (inner, cores) = (self.pods * self.half, self.half * self.half);
        (0..inner).map(Node::Leaf).chain((0..inner).map(Node::Spine)).chain((0..cores).map(Node::Core))
    }

    fn lid(&self, node: Node) -> usize {
        let inner = self.pods * self.half;
        1 + match node {
            Node::Host(host) => host,
            Node::Leaf(leaf) => self.hosts + leaf,
            Node::Spine(spine) => self.hosts + inner + spine,
            Node::Core(core) => self.hosts + 2 * inner + core,
        }
    }

    fn guid(&self, node: Node) -> usize {
        let first = if matches!(node, Node::Host(_)) { 0x10_0000_0000_0000 } else { 0x20_0000_0000_0000 };
        first + 2 * self.lid(node)
    }

    fn port_guid(&self, node: Node) -> usize {
        self.guid(node) + usize::from(matches!(node, Node::Host(_)))
    }

    fn description(node: Node) -> String {
        match node {
            Node::Host(host) => format!("n{host:05} mlx5_0"),
            Node::Leaf(leaf) => format!("leaf-{leaf}"),
            Node::Spine(spine) => format!("spine-{spine}"),
            Node::Core(core) => format!("core-{core}"),
        }
    }

    /// The cables of a node: port, peer and port of the peer.
    fn cables(&self, node: Node) -> Vec<(usize, Node, usize)> {
        let half = self.half;
        match node {
            Node::Host(host) => vec![(1, Node::Leaf(host / half), 1 + host % half)],
            Node::Leaf(leaf) => {
                let hosts = (leaf * half..(leaf + 1) * half).filter(|&host| host < self.hosts);
                let down = hosts.map(|host| (1 + host % half, Node::Host(host), 1));
                let spine = |up| Node::Spine(leaf / half * half + up);
                down.chain((0..half).map(|up| (1 + half + up, spine(up), 1 + leaf % half))).collect()
            }
            Node::Spine(spine) => {
                let pod = spine / half;
                let down =
                    (0..half).map(|leaf| (1 + leaf, Node::Leaf(pod * half + leaf), 1 + half + spine % half));
                let core = |up| Node::Core(spine % half * half + up);
                down.chain((0..half).map(|up| (1 + half + up, core(up), 1 + pod))).collect()
            }
            Node::Core(core) => (0..self.pods)
                .map(|pod| (1 + pod, Node::Spine(pod * half + core / half), 1 + half + core % half))
                .collect(),
        }
    }

    /// The port over which a switch sends to a host.
    fn port(&self, switch: Node, host: usize) -> usize {
        let (half, leaf) = (self.half, host / self.half);
        match switch {
            Node::Leaf(own) if own == leaf => 1 + host % half,
            Node::Spine(spine) if spine / half == leaf / half => 1 + leaf % half,
            Node::Leaf(_) => 1 + half + host % half,
            Node::Spine(_) => 1 + half + leaf % half,
            Node::Core(_) | Node::Host(_) => 1 + leaf / half,
        }
    }

    /// Output without options.
    pub(crate) fn blocks(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "#\n# Topology file: generated\n#")?;
        for node in self.switches().chain((0..self.hosts).map(Node::Host)) {
            let (guid, description, lid) = (self.guid(node), Self::description(node), self.lid(node));
            match node {
                Node::Host(_) => {
                    writeln!(out, "\ncaguid={guid:#x}\nCa\t1 \"H-{guid:016x}\"\t\t# \"{description}\"")?;
                }
                _ => writeln!(
                    out,
                    "\nswitchguid={guid:#x}({guid:x})\nSwitch\t{} \"S-{guid:016x}\"\t\t# \"{description}\" enhanced port 0 lid {lid} lmc 0",
                    2 * self.half
                )?,
            }
            for (port, peer, at) in self.cables(node) {
                let (to, name, peer_lid) = (self.guid(peer), Self::description(peer), self.lid(peer));
                let own = self.port_guid(node);
                match (node, peer) {
                    (Node::Host(_), _) => writeln!(
                        out,
                        "[{port}]({own:x}) \t\"S-{to:016x}\"[{at}]\t\t# lid {lid} lmc 0 \"{name}\" lid {peer_lid} 4xNDR"
                    )?,
                    (_, Node::Host(_)) => {
                        let there = self.port_guid(peer);
                        writeln!(
                            out,
                            "[{port}]\t\"H-{to:016x}\"[{at}]({there:x}) \t\t# \"{name}\" lid {peer_lid} 4xNDR"
                        )?;
                    }
                    _ => {
                        writeln!(
                            out,
                            "[{port}]\t\"S-{to:016x}\"[{at}]\t\t# \"{name}\" lid {peer_lid} 4xNDR"
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Output with `-p`.
    pub(crate) fn columns(&self, out: &mut impl Write) -> Result<()> {
        let kind = |node| if matches!(node, Node::Host(_)) { "CA" } else { "SW" };
        for node in self.switches().chain((0..self.hosts).map(Node::Host)) {
            for (port, peer, at) in self.cables(node) {
                writeln!(
                    out,
                    "{} {:5} {port:2} 0x{:016x} 4x NDR - {} {:5} {at:2} 0x{:016x} ( '{}' - '{}' )",
                    kind(node),
                    self.lid(node),
                    self.port_guid(node),
                    kind(peer),
                    self.lid(peer),
                    self.port_guid(peer),
                    Self::description(node),
                    Self::description(peer)
                )?;
            }
        }
        Ok(())
    }

    /// The tables of all switches.
    pub(crate) fn tables(&self, out: &mut impl Write) -> Result<()> {
        for switch in self.switches() {
            let (lid, guid, name) = (self.lid(switch), self.guid(switch), Self::description(switch));
            writeln!(
                out,
                "Unicast lids [0x0-{:#x}] of switch Lid {lid} guid 0x{guid:016x} ({name}):\n  Lid  Out   Destination\n       Port     Info",
                self.hosts
            )?;
            for host in 0..self.hosts {
                let port = self.port(switch, host);
                let node = Node::Host(host);
                writeln!(
                    out,
                    "0x{:04x} {port:03} : (Channel Adapter portguid 0x{:016x}: '{}')",
                    self.lid(node),
                    self.port_guid(node),
                    Self::description(node)
                )?;
            }
            writeln!(out, "{} valid lids dumped ", self.hosts)?;
        }
        Ok(())
    }
}
