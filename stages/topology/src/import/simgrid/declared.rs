//! Routes as a file declares them, between points it names.

use super::super::ImportError;
use super::super::xml::Element;
use super::platform::{Builder, Route, Routing};

impl Builder<'_> {
    /// The point of a zone that an attribute names.
    fn named(&self, element: Element<'_>, attribute: &str, zone: usize) -> Result<usize, ImportError> {
        let name = element.need(self.path, attribute)?;
        let found = self
            .platform
            .by_name
            .get(name)
            .copied()
            .filter(|&point| point > 0 && self.platform.points[point].zone == zone);
        found.ok_or_else(|| {
            self.wrong(
                element.line(),
                format!("`{name}` is nothing in this zone"),
                "is its name spelt right?",
            )
        })
    }

    /// A host or router in a zone that is a point of another.
    fn gateway(&self, element: Element<'_>, attribute: &str, point: usize) -> Result<usize, ImportError> {
        let name = element.need(self.path, attribute)?;
        let zone = self.platform.points[point].inner;
        let is_inside = |&gateway: &usize| {
            let mut around = self
                .platform
                .points
                .get(gateway)
                .filter(|point| point.inner.is_none())
                .map(|point| point.zone);
            while around.is_some() && around != zone {
                around = around.and_then(|zone| self.platform.zones[zone].parent);
            }
            around.is_some() && zone.is_some()
        };
        let found = self.platform.by_name.get(name).copied().filter(is_inside).ok_or_else(|| {
            let problem = format!("`{name}` is no host or router of `{}`", self.platform.points[point].name);
            self.wrong(element.line(), problem, "a gateway lies in its zone")
        })?;
        match self.platform.zones[self.platform.points[found].zone].routing {
            Routing::Shape => Err(self.wrong(
                element.line(),
                "a way into a FAT_TREE, TORUS or DRAGONFLY is not read",
                "they have no routers in SimGrid",
            )),
            _ => Ok(found),
        }
    }

    fn route_links(&self, element: Element<'_>) -> Result<Vec<u32>, ImportError> {
        let names = element.children().filter(|child| child.name() == "link_ctn");
        names.map(|child| self.link_named(child.line(), child.need(self.path, "id")?)).collect()
    }

    pub(super) fn route(
        &mut self,
        element: Element<'_>,
        zone: usize,
        between_zones: bool,
    ) -> Result<(), ImportError> {
        if !matches!(self.platform.zones[zone].routing, Routing::Full | Routing::Floyd | Routing::Dijkstra) {
            return Err(self.wrong(
                element.line(),
                "a route in a zone whose routing has none",
                "say `routing=\"Full\"`",
            ));
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
        if !between_zones
            && [source, destination].iter().any(|&point| self.platform.points[point].inner.is_some())
        {
            return Err(self.wrong(
                element.line(),
                "a `<route>` between zones",
                "use `<zoneRoute>` with gateways",
            ));
        }
        if links.is_empty() {
            return Err(self.wrong(element.line(), "a route without links", "add `<link_ctn id=\"…\"/>`"));
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

    fn add_route(
        &mut self,
        line: usize,
        zone: usize,
        pair: (usize, usize),
        route: Route,
    ) -> Result<(), ImportError> {
        if self.platform.zones[zone].routes.insert(pair, route).is_some() {
            let name = |point: usize| &self.platform.points[point].name;
            let problem = format!("there are two routes from `{}` to `{}`", name(pair.0), name(pair.1));
            return Err(self.wrong(line, problem, "routes go both ways unless `symmetrical=\"NO\"`"));
        }
        self.platform.zones[zone].order.push(pair);
        Ok(())
    }

    pub(super) fn bypass(&mut self, element: Element<'_>, zone: usize) -> Result<(), ImportError> {
        let pair = (self.named(element, "src", zone)?, self.named(element, "dst", zone)?);
        let links = self.route_links(element)?;
        self.platform.zones[zone].bypasses.insert(pair, links);
        Ok(())
    }

    pub(super) fn host_link(&mut self, element: Element<'_>, zone: usize) -> Result<(), ImportError> {
        let host = self.named(element, "id", zone)?;
        let [up, down] = ["up", "down"].map(|name| -> Result<u32, ImportError> {
            let link = element.need(self.path, name)?;
            self.link_named(element.line(), link)
        });
        self.spoke(zone, host, up?, down?);
        Ok(())
    }

    fn link_named(&self, line: usize, name: &str) -> Result<u32, ImportError> {
        let found = self.platform.links.get(name).copied();
        found.ok_or_else(|| {
            self.wrong(
                line,
                format!("no link is called `{name}`"),
                "links are described before what uses them",
            )
        })
    }
}
