//! Content of a platform file: zones, their points, links and routes.

use hopmap_model::to_u32;
use std::collections::HashMap;

use hopmap_formats::host_list::MAX_NAMES;

use super::shapes::{Net, Wire};
use crate::import::Result;
use crate::import::format::malformed;
use crate::import::xml::Element;

/// A platform.
#[derive(Debug, Default)]
pub(super) struct Platform {
    pub(super) zones: Vec<Zone>,
    pub(super) points: Vec<Point>,
    pub(super) by_name: HashMap<String, usize>,
    /// Latency and bandwidth of every link.
    pub(super) wires: Vec<Wire>,
    pub(super) links: HashMap<String, u32>,
    pub(super) net: Net,
    /// Ignored features with their counts.
    pub(super) ignored: HashMap<String, usize>,
    pub(super) notes: Vec<String>,
    /// Whether ties go to the first link.
    pub(super) first: bool,
    pub(super) has_torus: bool,
    /// Whether hosts forward messages of declared routes.
    pub(super) over_hosts: bool,
}

/// The routing method of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Routing {
    Full,
    Floyd,
    Dijkstra,
    /// Every point has links to and from the centre.
    Star,
    /// A regular cluster with known links.
    Shape,
    None,
}

/// A zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) parent: Option<usize>,
    pub(super) routing: Routing,
    /// The point that represents it in its parent.
    pub(super) point: usize,
    pub(super) points: Vec<usize>,
    pub(super) routes: HashMap<(usize, usize), Route>,
    /// The pairs of routes in file order.
    pub(super) order: Vec<(usize, usize)>,
    pub(super) bypasses: HashMap<(usize, usize), Vec<u32>>,
    /// In a star, the nodes at the end of uplinks and the start of downlinks, once created.
    middle: Option<(u32, u32)>,
    pub(super) backbone: Option<u32>,
}

/// A host, a router or a zone.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    pub(super) name: String,
    pub(super) zone: usize,
    pub(super) is_host: bool,
    pub(super) inner: Option<usize>,
    /// The nodes of its outgoing and incoming links; they differ for the router of a cluster with a backbone.
    pub(super) leave: u32,
    pub(super) arrive: u32,
    /// In a star, the links to and from the centre.
    pub(super) up: Vec<u32>,
    pub(super) down: Vec<u32>,
}

/// The links of a route and, between zones, its gateways.
#[derive(Debug, Clone, Default)]
pub(super) struct Route {
    pub(super) gateways: Option<(usize, usize)>,
    pub(super) links: Vec<u32>,
}

impl Platform {
    pub(super) fn ignore(&mut self, what: &str) {
        *self.ignored.entry(what.to_owned()).or_default() += 1;
    }

    /// Reads everything below `<platform>`.
    pub(super) fn read(&mut self, root: Element<'_>) -> Result<()> {
        let zone = self.zone(root.line(), "", Routing::None, None)?;
        for element in root.children() {
            match element.name() {
                "zone" | "AS" | "cluster" | "peer" => self.part(element, zone)?,
                "config" | "prop" | "random" => {}
                other => self.ignore(&format!("`<{other}>`")),
            }
        }
        Ok(())
    }

    pub(super) fn zone(
        &mut self,
        line: usize,
        name: &str,
        routing: Routing,
        parent: Option<usize>,
    ) -> Result<usize> {
        let zone = self.zones.len();
        let point = self.point(
            line,
            Point { name: name.to_owned(), zone: parent.unwrap_or(0), inner: Some(zone), ..Point::default() },
        )?;
        self.zones.push(Zone {
            parent,
            routing,
            point,
            points: Vec::new(),
            routes: HashMap::new(),
            order: Vec::new(),
            bypasses: HashMap::new(),
            middle: None,
            backbone: None,
        });
        if let Some(parent) = parent {
            self.zones[parent].points.push(point);
        }
        Ok(zone)
    }

    fn point(&mut self, line: usize, point: Point) -> Result<usize> {
        let index = self.points.len();
        if index > 2 * MAX_NAMES {
            let help = "check the `radical` ranges";
            return Err(malformed(line, "too many hosts", help));
        }
        if self.by_name.insert(point.name.clone(), index).is_some() {
            let problem = format!("`{}` is defined twice", point.name);
            return Err(malformed(line, problem, "hosts, routers and zones must have unique names"));
        }
        self.points.push(point);
        Ok(index)
    }

    fn part(&mut self, element: Element<'_>, zone: usize) -> Result<()> {
        match element.name() {
            "zone" | "AS" => self.inner_zone(element, zone),
            "cluster" => self.cluster(element, zone),
            "host" => {
                let cores = Self::cores(element)?;
                self.host(element.line(), element.need("id")?, cores, zone).map(|_| ())
            }
            "router" => {
                let name = element.need("id")?;
                self.router(element.line(), name, zone)
            }
            "link" | "backbone" => self.declared_link(element, zone),
            "cabinet" => self.cabinet(element, zone),
            "host_link" => self.host_link(element, zone),
            "route" => self.route(element, zone, false),
            "zoneRoute" | "ASroute" => self.route(element, zone, true),
            "bypassRoute" => self.bypass(element, zone),
            "bypassZoneRoute" | "bypassASroute" => Err(element
                .wrong(format!("`<{}>` is not supported", element.name()), "replace it by a zoneRoute")),
            "include" => Err(element.wrong("`<include>` is not supported", "insert the included file")),
            "prop" => Ok(()),
            other => {
                self.ignore(&format!("`<{other}>`"));
                Ok(())
            }
        }
    }

    fn inner_zone(&mut self, element: Element<'_>, parent: usize) -> Result<()> {
        let routing = match element.need("routing")?.to_ascii_lowercase().as_str() {
            "full" => Routing::Full,
            "floyd" => Routing::Floyd,
            "dijkstra" | "dijkstracache" => Routing::Dijkstra,
            "cluster" => Routing::Star,
            "none" => Routing::None,
            other => {
                let problem = format!("the routing `{other}` of a zone is not supported");
                return Err(element.wrong(problem, "supported are Full, Floyd, Dijkstra, Cluster and None"));
            }
        };
        let zone = self.zone(element.line(), element.need("id")?, routing, Some(parent))?;
        // Links are processed before their uses, and hosts before routes, regardless of the file order.
        let rank = |element: &Element<'_>| match element.name() {
            "link" | "backbone" => 0,
            "host" | "router" | "cabinet" | "cluster" | "zone" | "AS" => 1,
            "host_link" => 2,
            _ => 3,
        };
        for wanted in 0..4 {
            for child in element.children().filter(|child| rank(child) == wanted) {
                self.part(child, zone)?;
            }
        }
        Ok(())
    }

    pub(super) fn host(&mut self, line: usize, name: &str, cores: u32, zone: usize) -> Result<usize> {
        let node = self.net.host(name, cores).ok_or_else(|| {
            malformed(line, format!("`{name}` is defined twice"), "hosts and routers must have unique names")
        })?;
        let point = Point {
            name: name.to_owned(),
            zone,
            is_host: true,
            leave: node,
            arrive: node,
            ..Point::default()
        };
        let index = self.point(line, point)?;
        self.zones[zone].points.push(index);
        Ok(index)
    }

    pub(super) fn router(&mut self, line: usize, name: &str, zone: usize) -> Result<()> {
        let (arrive, leave) = match self.zones[zone].routing {
            Routing::Star => self.middle(zone),
            _ => {
                let node = self.net.switch(name);
                (node, node)
            }
        };
        let index =
            self.point(line, Point { name: name.to_owned(), zone, leave, arrive, ..Point::default() })?;
        self.zones[zone].points.push(index);
        Ok(())
    }

    /// The nodes at the centre of a star; with a backbone there are two, connected by it.
    fn middle(&mut self, zone: usize) -> (u32, u32) {
        if let Some(middle) = self.zones[zone].middle {
            return middle;
        }
        let name = self.points[self.zones[zone].point].name.clone();
        let middle = match self.zones[zone].backbone {
            None => {
                let node = self.net.switch(&name);
                (node, node)
            }
            Some(backbone) => {
                let arrive = self.net.switch(&format!("{name}_up"));
                let leave = self.net.switch(&format!("{name}_down"));
                self.net.link(arrive, leave, self.wires[backbone as usize], backbone);
                (arrive, leave)
            }
        };
        self.zones[zone].middle = Some(middle);
        middle
    }

    /// Connects a point to the centre of its star.
    pub(super) fn spoke(&mut self, zone: usize, point: usize, up: u32, down: u32) {
        let (arrive, leave) = self.middle(zone);
        let node = self.points[point].leave;
        self.net.link(node, arrive, self.wires[up as usize], up);
        self.net.link(leave, node, self.wires[down as usize], down);
        let backbone = self.zones[zone].backbone;
        let point = &mut self.points[point];
        point.up = [up].into_iter().chain(backbone).collect();
        point.down = backbone.into_iter().chain([down]).collect();
    }

    pub(super) fn wire(&mut self, name: String, wire: Wire) -> u32 {
        let index = to_u32(self.wires.len());
        self.wires.push(wire);
        self.links.insert(name, index);
        index
    }

    pub(super) fn bandwidth(element: Element<'_>, name: &str) -> Result<f64> {
        let text = element.need(name)?;
        // Of several values, the first applies to wired links.
        let first = text.split([';', ',']).next().unwrap_or(text);
        bandwidth(first.trim()).ok_or_else(|| {
            element.wrong(format!("`{text}` is not a bandwidth"), "such as `125MBps` or `1Gbps`")
        })
    }

    pub(super) fn latency(element: Element<'_>, name: &str) -> Result<f64> {
        let text = element.get(name).unwrap_or("0");
        time(text).ok_or_else(|| element.wrong(format!("`{text}` is not a latency"), "such as `50us`"))
    }

    pub(super) fn cores(element: Element<'_>) -> Result<u32> {
        let text = element.get("core").unwrap_or("1");
        let cores = text.parse().ok().filter(|&cores: &u32| (1..=1 << 24).contains(&cores));
        cores.ok_or_else(|| {
            element.wrong(format!("`{text}` is not a number of cores"), "such as `core=\"4\"`")
        })
    }

    fn declared_link(&mut self, element: Element<'_>, zone: usize) -> Result<()> {
        let name = element.need("id")?.to_owned();
        let wire = (Self::latency(element, "latency")?, Self::bandwidth(element, "bandwidth")?);
        let policy = element.get("sharing_policy").unwrap_or("SHARED").to_ascii_uppercase();
        if self.links.contains_key(&name) {
            return Err(
                element.wrong(format!("the link `{name}` is defined twice"), "links must have unique names")
            );
        }
        if policy == "WIFI" {
            return Err(element.wrong("wireless links are not supported", "use wired links"));
        }
        if element
            .get("latency_file")
            .or(element.get("bandwidth_file"))
            .or(element.get("state_file"))
            .is_some()
        {
            self.ignore("time-dependent link profiles");
        }
        let index = self.wire(name.clone(), wire);
        if policy.ends_with("DUPLEX") {
            for ending in ["_UP", "_DOWN"] {
                self.links.insert(format!("{name}{ending}"), index);
            }
        }
        if element.name() == "backbone" {
            self.zones[zone].backbone = Some(index);
        }
        Ok(())
    }
}

/// Bytes per second: `125MBps`, `1Gbps`, `1GiBps`, `1e9`.
pub(super) fn bandwidth(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (prefix, bytes) = match unit {
        "" => ("", 1.0),
        _ => match unit.strip_suffix("Bps") {
            Some(prefix) => (prefix, 1.0),
            None => (unit.strip_suffix("bps")?, 0.125),
        },
    };
    let prefixes = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let binary = prefix.strip_suffix('i');
    let name = binary.map_or(prefix, |name| if name == "K" { "k" } else { name });
    let power = match name {
        "" if binary.is_none() => 0,
        _ => prefixes.iter().position(|known| *known == name)? + 1,
    };
    let base: f64 = if binary.is_some() { 1024.0 } else { 1000.0 };
    // Multiplied as in SimGrid, to get the same last bit.
    let scale = (0..power).fold(bytes, |scale, _| scale * base);
    Some(number * scale).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Seconds: `50us`, `1ms`, `1e-6`.
pub(super) fn time(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "w" => 604_800.0,
        "d" => 86_400.0,
        "h" => 3600.0,
        "m" => 60.0,
        "s" | "" => 1.0,
        // A quotient is rounded once: 50us is 5e-5 s, not 4.9999999999999996e-5.
        "ms" => return small(number, 1e3),
        "us" => return small(number, 1e6),
        "ns" => return small(number, 1e9),
        "ps" => return small(number, 1e12),
        _ => return None,
    };
    small(number * scale, 1.0)
}

fn small(number: f64, per_second: f64) -> Option<f64> {
    Some(number / per_second).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Splits a number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let is_digit = |place: usize| bytes.get(place).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    let mut end = 0;
    while is_digit(end) {
        end += 1;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let mut exponent = end + 1 + sign;
        if is_digit(exponent) {
            while is_digit(exponent) {
                exponent += 1;
            }
            end = exponent;
        }
    }
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_simgrid() {
        let rates = ["125MBps", "1Gbps", "1e9", "10GBps", "1KiBps", "8kbps", "1Gibps"].map(bandwidth);
        assert_eq!(rates, [125e6, 125e6, 1e9, 1e10, 1024.0, 1e3, 134_217_728.0].map(Some));
        let times = ["50us", "24us", "0", "1.5ms", "2e-6", "3ns", "1m"].map(time);
        assert_eq!(times, [50e-6, 24e-6, 0.0, 1.5e-3, 2e-6, 3e-9, 60.0].map(Some));
        for text in ["", "fast", "1Xbps", "1Gf", "-1Bps", "1e999Bps", "1iBps"] {
            assert_eq!(bandwidth(text), None, "{text}");
        }
        assert_eq!([time("1x"), time("us"), time("-1s")], [None; 3]);
    }
}
