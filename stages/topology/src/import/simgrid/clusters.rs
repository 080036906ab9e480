//! Clusters and cabinets, whose hosts are numbers.

use hopmap_formats::host_list::MAX_NAMES;

use super::super::ImportError;
use super::super::xml::Element;
use super::platform::{Builder, Routing};
use super::shapes::{Wire, dragonfly, fat_tree, torus};

impl Builder<'_> {
    /// The numbers of a `radical`.
    fn radical(&self, element: Element<'_>) -> Result<Vec<u32>, ImportError> {
        let text = element.need(self.path, "radical")?;
        let wrong = |part: &str| {
            self.wrong(
                element.line(),
                format!("`{part}` is no range of hosts"),
                "such as `radical=\"0-15,20\"`",
            )
        };
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let ends = (low.trim().parse::<u32>(), high.trim().parse::<u32>());
            let (Ok(low), Ok(high)) = ends else { return Err(wrong(part)) };
            let count = (u64::from(high) + 1).saturating_sub(u64::from(low))
                + numbers.len() as u64
                + self.platform.points.len() as u64;
            if count > MAX_NAMES as u64 {
                return Err(self.wrong(
                    element.line(),
                    format!("more than {MAX_NAMES} hosts"),
                    "is the range longer than meant?",
                ));
            }
            numbers.extend(low..=high);
        }
        Ok(numbers)
    }

    pub(super) fn cabinet(&mut self, element: Element<'_>, zone: usize) -> Result<(), ImportError> {
        let wire = (self.latency(element, "lat")?, self.bandwidth(element, "bw")?);
        let (prefix, suffix) = (element.get("prefix").unwrap_or(""), element.get("suffix").unwrap_or(""));
        for number in self.radical(element)? {
            let name = format!("{prefix}{number}{suffix}");
            let host = self.host(element.line(), &name, 1, zone)?;
            let up = self.wire(format!("link_{name}_UP"), wire);
            let down = self.wire(format!("link_{name}_DOWN"), wire);
            self.spoke(zone, host, up, down);
        }
        Ok(())
    }

    pub(super) fn cluster(&mut self, element: Element<'_>, parent: usize) -> Result<(), ImportError> {
        let (id, cores, numbers) =
            (element.need(self.path, "id")?, self.cores(element)?, self.radical(element)?);
        let wire = (self.latency(element, "lat")?, self.bandwidth(element, "bw")?);
        let (prefix, suffix) = (element.get("prefix").unwrap_or(""), element.get("suffix").unwrap_or(""));
        let topology = element.get("topology").unwrap_or("FLAT").to_ascii_uppercase();
        let routing = if topology == "FLAT" { Routing::Star } else { Routing::Shape };
        let zone = self.zone(element.line(), id, routing, Some(parent))?;
        let (bb_latency, has_bb) = (self.latency(element, "bb_lat")?, element.get("bb_bw").is_some());
        if routing == Routing::Star && (has_bb || bb_latency > 0.0) {
            let bandwidth = if has_bb { self.bandwidth(element, "bb_bw")? } else { 0.0 };
            let backbone = self.wire(format!("{id}_backbone"), (bb_latency, bandwidth));
            self.platform.zones[zone].backbone = Some(backbone);
        }
        for (name, what) in
            [("limiter_link", "limiters of clusters"), ("loopback_bw", "loopbacks of clusters")]
        {
            if element.get(name).is_some() {
                self.ignore(what);
            }
        }
        let mut nodes = Vec::with_capacity(numbers.len());
        for number in numbers {
            let host = self.host(element.line(), &format!("{prefix}{number}{suffix}"), cores, zone)?;
            nodes.push(self.platform.points[host].leave);
            if routing == Routing::Star {
                let link = self.wire(format!("{id}_link_{number}"), wire);
                self.spoke(zone, host, link, link);
            }
        }
        if routing == Routing::Star {
            let router = element
                .get("router_id")
                .map_or_else(|| format!("{prefix}{id}_router{suffix}"), str::to_owned);
            return self.router(element.line(), &router, zone);
        }
        self.shape(element, id, &topology, &nodes, wire)
    }

    fn shape(
        &mut self,
        element: Element<'_>,
        id: &str,
        topology: &str,
        nodes: &[u32],
        wire: Wire,
    ) -> Result<(), ImportError> {
        let parameters = element.get("topo_parameters").unwrap_or("");
        let net = &mut self.platform.net;
        let made = match topology {
            "FAT_TREE" => fat_tree(net, id, nodes, parameters, wire).map(|is_same| {
                if !is_same {
                    let note = format!("`{id}`: which of parallel cables and ports messages take may differ from SimGrid, not how many links");
                    self.platform.notes.push(note);
                }
            }),
            "TORUS" => {
                (self.platform.first, self.platform.has_torus) = (true, true);
                torus(net, nodes, parameters, wire)
            }
            "DRAGONFLY" => {
                self.platform.first = true;
                let note = "inside a group, from blades of all chassis but the first to other blades, SimGrid jumps between chassis and counts one \
                            link more or less";
                self.platform.notes.push(format!("`{id}`: {note}; here messages take links that are there"));
                dragonfly(net, id, nodes, parameters, wire)
            }
            other => Err(format!("the topology `{other}`")),
        };
        made.map_err(|problem| {
            self.wrong(element.line(), problem, "FLAT, FAT_TREE, TORUS and DRAGONFLY are read")
        })
    }
}
