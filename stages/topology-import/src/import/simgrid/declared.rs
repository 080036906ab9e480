//! Declared routes between named points, and clusters, whose routes follow from their shape.

use hopmap_formats::host_list::MAX_NAMES;

use super::platform::{Platform, Route, Routing};
use super::shapes::{Wire, dragonfly, fat_tree, torus};
use crate::import::Result;
use crate::import::format::malformed;
use crate::import::xml::Element;

impl Platform {
    /// The point of a zone that an attribute refers to.
    fn named(&self, element: Element<'_>, attribute: &str, zone: usize) -> Result<usize> {
        let name = element.need(attribute)?;
        let found =
            self.by_name.get(name).copied().filter(|&point| point > 0 && self.points[point].zone == zone);
        found.ok_or_else(|| element.wrong(format!("there is no `{name}` in this zone"), "check the name"))
    }

    /// A host or router inside a zone that is a point of another zone.
    fn gateway(&self, element: Element<'_>, attribute: &str, point: usize) -> Result<usize> {
        let name = element.need(attribute)?;
        let zone = self.points[point].inner;
        let is_inside = |&gateway: &usize| {
            let mut around =
                self.points.get(gateway).filter(|point| point.inner.is_none()).map(|point| point.zone);
            while around.is_some() && around != zone {
                around = around.and_then(|zone| self.zones[zone].parent);
            }
            around.is_some() && zone.is_some()
        };
        let found = self.by_name.get(name).copied().filter(is_inside).ok_or_else(|| {
            let problem = format!("`{name}` is not a host or router of `{}`", self.points[point].name);
            element.wrong(problem, "a gateway must be in its zone")
        })?;
        match self.zones[self.points[found].zone].routing {
            Routing::Shape => Err(element.wrong(
                "routes into a FAT_TREE, TORUS or DRAGONFLY are not supported",
                "they have no routers in SimGrid",
            )),
            _ => Ok(found),
        }
    }

    fn route_links(&self, element: Element<'_>) -> Result<Vec<u32>> {
        let names = element.children().filter(|child| child.name() == "link_ctn");
        names.map(|child| self.link_named(child.line(), child.need("id")?)).collect()
    }

    pub(super) fn route(&mut self, element: Element<'_>, zone: usize, between_zones: bool) -> Result<()> {
        if !matches!(self.zones[zone].routing, Routing::Full | Routing::Floyd | Routing::Dijkstra) {
            return Err(element.wrong("a route in a zone without declared routes", "set `routing=\"Full\"`"));
        }
        let (source, destination) = (self.named(element, "src", zone)?, self.named(element, "dst", zone)?);
        let links = self.route_links(element)?;
        let gateways = match between_zones {
            true => Some((
                self.gateway(element, "gw_src", source)?,
                self.gateway(element, "gw_dst", destination)?,
            )),
            false => None,
        };
        if !between_zones && [source, destination].iter().any(|&point| self.points[point].inner.is_some()) {
            return Err(element.wrong("a `<route>` between zones", "use `<zoneRoute>` with gateways"));
        }
        if links.is_empty() {
            return Err(element.wrong("a route without links", "add `<link_ctn id=\"…\"/>`"));
        }
        let is_both = !element.get("symmetrical").is_some_and(|text| text.eq_ignore_ascii_case("no"));
        let back: Vec<u32> = links.iter().rev().copied().collect();
        let route = Route { gateways, links };
        self.add_route(element.line(), zone, (source, destination), route)?;
        if is_both && source != destination {
            let route = Route { gateways: gateways.map(|(a, b)| (b, a)), links: back };
            self.add_route(element.line(), zone, (destination, source), route)?;
        }
        Ok(())
    }

    fn add_route(&mut self, line: usize, zone: usize, pair: (usize, usize), route: Route) -> Result<()> {
        if self.zones[zone].routes.insert(pair, route).is_some() {
            let name = |point: usize| &self.points[point].name;
            let problem = format!("there are two routes from `{}` to `{}`", name(pair.0), name(pair.1));
            return Err(malformed(line, problem, "routes are bidirectional unless `symmetrical=\"NO\"`"));
        }
        self.zones[zone].order.push(pair);
        Ok(())
    }

    pub(super) fn bypass(&mut self, element: Element<'_>, zone: usize) -> Result<()> {
        let pair = (self.named(element, "src", zone)?, self.named(element, "dst", zone)?);
        let links = self.route_links(element)?;
        self.zones[zone].bypasses.insert(pair, links);
        Ok(())
    }

    pub(super) fn host_link(&mut self, element: Element<'_>, zone: usize) -> Result<()> {
        let host = self.named(element, "id", zone)?;
        let [up, down] = ["up", "down"].map(|name| -> Result<u32> {
            let link = element.need(name)?;
            self.link_named(element.line(), link)
        });
        self.spoke(zone, host, up?, down?);
        Ok(())
    }

    fn link_named(&self, line: usize, name: &str) -> Result<u32> {
        let found = self.links.get(name).copied();
        found.ok_or_else(|| {
            malformed(
                line,
                format!("there is no link `{name}`"),
                "links must be defined before they are used",
            )
        })
    }
}

impl Platform {
    /// The numbers of a `radical`.
    fn radical(&self, element: Element<'_>) -> Result<Vec<u32>> {
        let text = element.need("radical")?;
        let wrong = |part: &str| {
            element.wrong(format!("`{part}` is not a range of hosts"), "such as `radical=\"0-15,20\"`")
        };
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let ends = (low.trim().parse::<u32>(), high.trim().parse::<u32>());
            let (Ok(low), Ok(high)) = ends else { return Err(wrong(part)) };
            let count = (u64::from(high) + 1).saturating_sub(u64::from(low))
                + numbers.len() as u64
                + self.points.len() as u64;
            if count > MAX_NAMES as u64 {
                return Err(element.wrong(format!("more than {MAX_NAMES} hosts"), "check the range"));
            }
            numbers.extend(low..=high);
        }
        Ok(numbers)
    }

    pub(super) fn cabinet(&mut self, element: Element<'_>, zone: usize) -> Result<()> {
        let wire = (Self::latency(element, "lat")?, Self::bandwidth(element, "bw")?);
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

    pub(super) fn cluster(&mut self, element: Element<'_>, parent: usize) -> Result<()> {
        let (id, cores, numbers) = (element.need("id")?, Self::cores(element)?, self.radical(element)?);
        let wire = (Self::latency(element, "lat")?, Self::bandwidth(element, "bw")?);
        let (prefix, suffix) = (element.get("prefix").unwrap_or(""), element.get("suffix").unwrap_or(""));
        let topology = element.get("topology").unwrap_or("FLAT").to_ascii_uppercase();
        let routing = if topology == "FLAT" { Routing::Star } else { Routing::Shape };
        let zone = self.zone(element.line(), id, routing, Some(parent))?;
        let (bb_latency, has_bb) = (Self::latency(element, "bb_lat")?, element.get("bb_bw").is_some());
        if routing == Routing::Star && (has_bb || bb_latency > 0.0) {
            let bandwidth = if has_bb { Self::bandwidth(element, "bb_bw")? } else { 0.0 };
            let backbone = self.wire(format!("{id}_backbone"), (bb_latency, bandwidth));
            self.zones[zone].backbone = Some(backbone);
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
            nodes.push(self.points[host].leave);
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
    ) -> Result<()> {
        let parameters = element.get("topo_parameters").unwrap_or("");
        let net = &mut self.net;
        let made = match topology {
            "FAT_TREE" => fat_tree(net, id, nodes, parameters, wire).map(|is_same| {
                if !is_same {
                    let note = format!("`{id}`: the choice among parallel cables and ports may differ from SimGrid, the number of links does not");
                    self.notes.push(note);
                }
            }),
            "TORUS" => {
                (self.first, self.has_torus) = (true, true);
                torus(net, nodes, parameters, wire)
            }
            "DRAGONFLY" => {
                self.first = true;
                let note = "within a group, from blades outside the first chassis to other blades, SimGrid jumps between chassis and counts one \
                            link more or less";
                self.notes.push(format!("`{id}`: {note}; here messages use existing links"));
                dragonfly(net, id, nodes, parameters, wire)
            }
            other => Err(format!("the topology `{other}`")),
        };
        made.map_err(|problem| element.wrong(problem, "FLAT, FAT_TREE, TORUS and DRAGONFLY are supported"))
    }
}
