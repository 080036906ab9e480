//! Where the links of written routes meet. SimGrid's links join nothing: what stands one behind the other in a route does.

use std::collections::{HashMap, HashSet};

use super::platform::Platform;

/// Makes links of the routes of a zone; `false` if no network of links has these routes.
pub(super) fn join(platform: &mut Platform, zone: usize) -> bool {
    let mut routes: Vec<Way> = ways(platform, zone);
    if go_over_hosts(platform, &routes) {
        platform.over_hosts = true;
        routes.retain(|way| way.links.len() == 1);
        // In the order of the file, in which meshes have their dimensions.
        routes.sort_by_key(|way| way.links[0]);
    }
    let mut made = HashSet::new();
    let mut pairs: HashMap<u32, HashSet<(usize, usize)>> = HashMap::new();
    for way in routes.iter().filter(|way| way.links.len() == 1) {
        pairs.entry(way.links[0]).or_default().insert((way.from.min(way.to), way.from.max(way.to)));
        if made.insert((way.links[0], way.from, way.to)) {
            let (leave, arrive) = (platform.points[way.from].leave, platform.points[way.to].arrive);
            platform.net.link(leave, arrive, platform.wires[way.links[0] as usize], way.links[0]);
        }
    }
    let shared = pairs.values().filter(|pairs| pairs.len() > 1).count();
    if shared > 0 {
        platform.notes.push(format!("{shared} links join several pairs of hosts or routers: one for each, though SimGrid shares their bandwidth"));
    }
    let mut spots = Spots::default();
    let mut long: Vec<&Way> = routes.iter().filter(|way| way.links.len() > 1).collect();
    // Short routes say surely where links meet.
    long.sort_by_key(|way| way.links.len());
    if !long.iter().all(|way| spots.add(way)) {
        return false;
    }
    let mut nodes = HashMap::new();
    for way in long {
        let Some(steps) = spots.walk(way) else { return false };
        for (link, source, destination) in steps {
            if source == destination {
                return false;
            }
            let mut node = |platform: &mut Platform, spot: usize, leaves: bool| match spots.point(spot) {
                Some(point) if leaves => platform.points[point].leave,
                Some(point) => platform.points[point].arrive,
                None => {
                    let number = nodes.len();
                    *nodes
                        .entry(spot)
                        .or_insert_with(|| platform.net.switch(&format!("junction{zone}-{number}")))
                }
            };
            let ends = (node(platform, source, true), node(platform, destination, false));
            if made.insert((link, ends.0 as usize + (1 << 40), ends.1 as usize)) {
                platform.net.link(ends.0, ends.1, platform.wires[link as usize], link);
            }
        }
    }
    true
}

/// Whether there are only hosts, and the longer routes go from one to the next over the links that join two of them alone, as in
/// meshes and tori.
fn go_over_hosts(platform: &Platform, routes: &[Way]) -> bool {
    let mut ends: HashMap<(u32, usize), usize> = HashMap::new();
    for way in routes.iter().filter(|way| way.links.len() == 1) {
        if *ends.entry((way.links[0], way.from)).or_insert(way.to) != way.to {
            return false;
        }
    }
    let leads = |way: &Way| {
        let mut links = way.links.iter();
        links.try_fold(way.from, |host, &link| ends.get(&(link, host)).copied()) == Some(way.to)
    };
    let is_alone = platform.zones.iter().filter(|zone| !zone.routes.is_empty()).count() == 1;
    let has_only_hosts = platform.net.cores.iter().all(|&cores| cores > 0);
    is_alone && has_only_hosts && routes.iter().any(|way| way.links.len() > 1) && routes.iter().all(leads)
}

/// A route between two hosts or routers.
struct Way {
    from: usize,
    to: usize,
    links: Vec<u32>,
}

fn ways(platform: &Platform, zone: usize) -> Vec<Way> {
    let zone = &platform.zones[zone];
    let way = |pair: &(usize, usize)| {
        let route = zone.routes.get(pair)?;
        let (from, to) = route.gateways.unwrap_or(*pair);
        (from != to).then(|| Way { from, to, links: route.links.clone() })
    };
    zone.order.iter().filter_map(way).collect()
}

/// Ends of links, and which of them are one place.
#[derive(Default)]
struct Spots {
    head: Vec<usize>,
    /// The host or router at a place.
    points: Vec<Option<usize>>,
    of_point: HashMap<usize, usize>,
    ends: HashMap<u32, [usize; 2]>,
}

impl Spots {
    fn new_spot(&mut self, point: Option<usize>) -> usize {
        self.head.push(self.head.len());
        self.points.push(point);
        self.head.len() - 1
    }

    fn at(&mut self, point: usize) -> usize {
        match self.of_point.get(&point) {
            Some(&spot) => spot,
            None => {
                let spot = self.new_spot(Some(point));
                self.of_point.insert(point, spot);
                spot
            }
        }
    }

    fn find(&self, mut spot: usize) -> usize {
        while self.head[spot] != spot {
            spot = self.head[spot];
        }
        spot
    }

    fn point(&self, spot: usize) -> Option<usize> {
        self.points[self.find(spot)]
    }

    /// Makes two places one; `false` if a different host or router is at each.
    fn unite(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return true;
        }
        let point = match (self.points[a], self.points[b]) {
            (Some(_), Some(_)) => return false,
            (point, other) => point.or(other),
        };
        // The older place stays, so that chains are short.
        let (stays, goes) = (a.min(b), a.max(b));
        self.head[goes] = stays;
        self.points[stays] = point;
        true
    }

    /// The other end of a link that has one at a place.
    fn other(&self, link: u32, spot: usize) -> Option<usize> {
        let [a, b] = *self.ends.get(&link)?;
        let spot = self.find(spot);
        match (self.find(a) == spot, self.find(b) == spot) {
            (true, _) => Some(b),
            (_, true) => Some(a),
            _ => None,
        }
    }

    /// Lets a link have an end at a place, the one that does not lead to the link behind it; the other end.
    fn attach(&mut self, link: u32, spot: usize, next: Option<u32>) -> Option<usize> {
        if let Some(other) = self.other(link, spot) {
            return Some(other);
        }
        let Some(&[a, b]) = self.ends.get(&link) else {
            let other = self.new_spot(None);
            self.ends.insert(link, [spot, other]);
            return Some(other);
        };
        let leads_on = |end| next.is_some_and(|next| self.other(next, end).is_some());
        let mut order = [(a, b), (b, a)];
        // Best is an end where no host is, and not the one that the way goes on from.
        order.sort_by_key(|&(end, _)| (self.point(end).is_some(), leads_on(end)));
        order.into_iter().find_map(|(end, other)| self.unite(end, spot).then_some(other))
    }

    fn add(&mut self, way: &Way) -> bool {
        let (from, to) = (self.at(way.from), self.at(way.to));
        let (Some(&first), Some(&last)) = (way.links.first(), way.links.last()) else { return true };
        let Some(mut spot) = self.attach(first, from, None) else { return false };
        if self.attach(last, to, None).is_none() {
            return false;
        }
        for (index, &link) in way.links.iter().enumerate().skip(1) {
            match self.attach(link, spot, way.links.get(index + 1).copied()) {
                Some(other) => spot = other,
                None => return false,
            }
        }
        self.unite(spot, to)
    }

    /// The links of a route with the places that they join.
    fn walk(&self, way: &Way) -> Option<Vec<(u32, usize, usize)>> {
        let mut spot = self.find(*self.of_point.get(&way.from)?);
        let mut steps = Vec::with_capacity(way.links.len());
        for &link in &way.links {
            let other = self.find(self.other(link, spot)?);
            steps.push((link, spot, other));
            spot = other;
        }
        (Some(&spot) == self.of_point.get(&way.to).map(|&end| self.find(end)).as_ref()).then_some(steps)
    }
}
