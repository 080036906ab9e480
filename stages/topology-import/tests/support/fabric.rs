//! Fabrics whose hosts and networks are known, as the programs that list fabrics print them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Switches by name, and adapters on them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fabric {
    pub(crate) switches: Vec<String>,
    pub(crate) adapters: Vec<Adapter>,
    /// Pairs of switches.
    pub(crate) trunks: Vec<(usize, usize)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Adapter {
    pub(crate) description: String,
    pub(crate) switch: usize,
    /// Whether it has half the rate of the others.
    pub(crate) is_slow: bool,
}

/// One end of a cable.
#[derive(Clone, Copy)]
struct End {
    /// Switches first, then adapters.
    node: usize,
    port: usize,
}

impl Fabric {
    pub(crate) fn switch(&mut self, name: impl Into<String>) -> usize {
        self.switches.push(name.into());
        self.switches.len() - 1
    }

    pub(crate) fn adapter(&mut self, description: impl Into<String>, switch: usize, is_slow: bool) {
        self.adapters.push(Adapter { description: description.into(), switch, is_slow });
    }

    /// The cables with their rates.
    fn cables(&self) -> Vec<(End, End, bool)> {
        let mut used = vec![0; self.switches.len()];
        let mut next = |switch: usize| {
            used[switch] += 1;
            End { node: switch, port: used[switch] }
        };
        let mut cables = Vec::new();
        for (number, adapter) in self.adapters.iter().enumerate() {
            let own = End { node: self.switches.len() + number, port: 1 };
            cables.push((own, next(adapter.switch), adapter.is_slow));
        }
        cables.extend(self.trunks.iter().map(|&(a, b)| (next(a), next(b), false)));
        cables
    }

    /// The ends of a node, with their peers.
    fn ends(&self, node: usize) -> Vec<(End, End, bool)> {
        let both = self.cables().into_iter().flat_map(|(a, b, slow)| [(a, b, slow), (b, a, slow)]);
        both.filter(|(own, ..)| own.node == node).collect()
    }

    pub(crate) fn guid(node: usize) -> u64 {
        // Spread, so that no two are neighbours.
        0x0c42_a103_0000_0000 + ((node as u64 + 1) * 0x1_0010)
    }

    fn name(&self, node: usize) -> &str {
        match node.checked_sub(self.switches.len()) {
            None => &self.switches[node],
            Some(adapter) => &self.adapters[adapter].description,
        }
    }

    fn is_switch(&self, node: usize) -> bool {
        node < self.switches.len()
    }

    fn nodes(&self) -> std::ops::Range<usize> {
        0..self.switches.len() + self.adapters.len()
    }

    /// `ibnetdiscover`.
    pub(crate) fn blocks(&self) -> String {
        let mut text = "#\n# Topology file: generated\n#\n".to_owned();
        for node in self.nodes() {
            let (guid, name) = (Self::guid(node), self.name(node));
            let (word, letter, key) =
                if self.is_switch(node) { ("Switch", 'S', "switchguid") } else { ("Ca", 'H', "caguid") };
            let lid = if self.is_switch(node) {
                format!(" enhanced port 0 lid {} lmc 0", node + 1)
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "\nvendid=0x2c9\nsysimgguid={guid:#x}\n{key}={guid:#x}\n{word}\t9 \"{letter}-{guid:016x}\"\t\t# \"{name}\"{lid}"
            );
            for (own, peer, slow) in self.ends(node) {
                let (to, name, lid) = (Self::guid(peer.node), self.name(peer.node), peer.node + 1);
                let rate = if slow { "2xHDR" } else { "4xHDR" };
                let _ = match (self.is_switch(node), self.is_switch(peer.node)) {
                    (true, false) => writeln!(
                        text,
                        "[{}]\t\"H-{to:016x}\"[{}]({to:x}) \t\t# \"{name}\" lid {lid} {rate}",
                        own.port, peer.port
                    ),
                    (true, true) => writeln!(
                        text,
                        "[{}]\t\"S-{to:016x}\"[{}]\t\t# \"{name}\" lid {lid} {rate}",
                        own.port, peer.port
                    ),
                    _ => writeln!(
                        text,
                        "[{}]({guid:x}) \t\"S-{to:016x}\"[{}]\t\t# lid {} lmc 0 \"{name}\" lid {lid} {rate}",
                        own.port,
                        peer.port,
                        node + 1
                    ),
                };
            }
        }
        text
    }

    /// The host or switch of a node.
    fn short(&self, node: usize) -> &str {
        if self.is_switch(node) { self.name(node) } else { self.name(node).split(' ').next().unwrap_or("") }
    }

    /// Cables as CSV, with or without rates.
    pub(crate) fn csv(&self, has_rates: bool) -> String {
        let mut text = "source,source_type,destination,destination_type,bandwidth\n".to_owned();
        for (own, peer, slow) in self.cables() {
            let kind = |node: usize| if self.is_switch(node) { "switch" } else { "host" };
            let rate = if slow { "100G" } else { "200G" };
            let ends = [own, peer].map(|end| format!("{},{},", self.short(end.node), kind(end.node)));
            let _ = writeln!(text, "{}{}", ends.concat(), if has_rates { rate } else { "" });
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn json(&self, has_rates: bool) -> String {
        let csv = self.csv(has_rates);
        let (mut nodes, mut links) = (BTreeMap::new(), Vec::new());
        for row in csv.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            nodes.extend([(cells[0], cells[1]), (cells[2], cells[3])]);
            let rate = if has_rates { format!(r#","bandwidth":"{}""#, cells[4]) } else { String::new() };
            links.push(format!(r#"{{"source":"{}","target":"{}"{rate}}}"#, cells[0], cells[2]));
        }
        let nodes: Vec<_> =
            nodes.iter().map(|(name, kind)| format!(r#"{{"id":"{name}","kind":"{kind}"}}"#)).collect();
        format!(r#"{{"nodes":[{}],"links":[{}]}}"#, nodes.join(","), links.join(","))
    }

    /// `topology.conf` of Slurm.
    pub(crate) fn slurm(&self) -> String {
        let mut text = String::new();
        for (switch, name) in self.switches.iter().enumerate() {
            let on_it = self.adapters.iter().zip(self.switches.len()..);
            let on_it =
                on_it.filter(|(adapter, _)| adapter.switch == switch).map(|(_, node)| self.short(node));
            let hosts: Vec<&str> = on_it.collect::<BTreeSet<_>>().into_iter().collect();
            let below = self.trunks.iter().filter(|(top, _)| *top == switch);
            let below: Vec<&str> = below.map(|(_, below)| &*self.switches[*below]).collect();
            let _ = write!(text, "SwitchName={name}");
            for (key, list) in [("Nodes", hosts), ("Switches", below)] {
                let list = list.join(",");
                let _ = if list.is_empty() { Ok(()) } else { write!(text, " {key}={list}") };
            }
            text.push('\n');
        }
        text
    }

    /// `opareport -o links`.
    pub(crate) fn report(&self) -> String {
        let cables = self.cables();
        let mut text = format!(
            "Link Summary\n{} Links in Fabric:\nRate NodeGUID          Port Type Name\n",
            cables.len()
        );
        for (own, peer, slow) in cables {
            for (end, rate) in [(own, if slow { "100g" } else { "200g" }), (peer, "<-> ")] {
                let kind = if self.is_switch(end.node) { "SW" } else { "FI" };
                let _ = writeln!(
                    text,
                    "{rate} 0x{:016x} {:3} {kind}   {}",
                    Self::guid(end.node),
                    end.port,
                    self.name(end.node)
                );
            }
        }
        text
    }

    /// `iblinkinfo`, with everything in one line with `-l`.
    pub(crate) fn link_info(&self, in_lines: bool) -> String {
        let mut text = String::new();
        for node in self.nodes() {
            let (guid, name) = (Self::guid(node), self.name(node));
            if !in_lines {
                let _ = match self.is_switch(node) {
                    true => writeln!(text, "Switch: 0x{guid:016x} {name}:"),
                    false => writeln!(text, "CA: {name}:"),
                };
            }
            for (own, peer, slow) in self.ends(node) {
                let start = match (in_lines, self.is_switch(node)) {
                    (true, _) => format!("0x{guid:016x} \"{name:>30}\" "),
                    (false, true) => "      ".to_owned(),
                    (false, false) => format!("      0x{guid:016x} "),
                };
                let to = if in_lines { format!("0x{:016x} ", Self::guid(peer.node)) } else { String::new() };
                let width = if slow { "2X" } else { "4X" };
                let _ = writeln!(
                    text,
                    "{start}{:6} {:4}[  ] ==( {width}        53.125 Gbps Active/  LinkUp)==>  {to}{:6} {:4}[  ] \"{}\" ( )",
                    node + 1,
                    own.port,
                    peer.node + 1,
                    peer.port,
                    self.name(peer.node)
                );
            }
            if self.is_switch(node) {
                let start =
                    if in_lines { format!("0x{guid:016x} \"{name:>30}\" ") } else { "      ".to_owned() };
                let _ = writeln!(
                    text,
                    "{start}{:6}   40[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )",
                    node + 1
                );
            }
        }
        text
    }
}
