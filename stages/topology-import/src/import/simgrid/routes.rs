//! The routes that SimGrid 3.32 computes in a platform, link by link.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::platform::{Platform, Routing, Zone};

/// Largest number of points of a zone for Floyd's algorithm in SimGrid's order.
const MOST_FLOYD: usize = 600;
/// Largest recursion depth through nested gateways.
const MOST_DEEP: usize = 64;
const NONE: usize = usize::MAX;

/// The gateways of a route between zones.
type Gateways = Option<(usize, usize)>;

/// Computes routes.
pub(super) struct Router<'a> {
    platform: &'a Platform,
    /// By zone and start, the predecessor of each point.
    before: RefCell<HashMap<(usize, usize), HashMap<usize, usize>>>,
}

impl<'a> Router<'a> {
    pub(super) fn new(platform: &'a Platform) -> Self {
        Self { platform, before: RefCell::default() }
    }

    /// The links from one host to another; `None` if SimGrid has no route.
    pub(super) fn route(&self, source: usize, destination: usize) -> Option<Vec<u32>> {
        let mut links = Vec::new();
        self.global(source, destination, 0, &mut links)?;
        Some(links)
    }

    fn global(&self, source: usize, destination: usize, depth: usize, links: &mut Vec<u32>) -> Option<()> {
        if depth > MOST_DEEP {
            return None;
        }
        let points = &self.platform.points;
        let (source_zone, destination_zone) = (points[source].zone, points[destination].zone);
        if source_zone == destination_zone {
            let zone = &self.platform.zones[source_zone];
            if let Some(bypass) = zone.bypasses.get(&(source, destination)) {
                links.extend(bypass);
                return Some(());
            }
            return self.local(source_zone, source, destination, depth, links).map(|_| ());
        }
        let (mut up, mut other) = (self.chain(source_zone), self.chain(destination_zone));
        let mut common = None;
        while let (Some(a), Some(b)) = (up.last(), other.last())
            && a == b
        {
            common = up.pop();
            other.pop();
        }
        let (from, to) = (self.platform.zones[*up.last()?].point, self.platform.zones[*other.last()?].point);
        let mut between = Vec::new();
        let (first, last) = self.local(common?, from, to, depth, &mut between)??;
        if source != first {
            self.global(source, first, depth + 1, links)?;
        }
        links.extend(between);
        if last != destination {
            self.global(last, destination, depth + 1, links)?;
        }
        Some(())
    }

    /// A zone and all enclosing zones.
    fn chain(&self, zone: usize) -> Vec<usize> {
        std::iter::successors(Some(zone), |&zone| self.platform.zones[zone].parent).collect()
    }

    /// The links between two points of a zone, and the gateways if these are zones.
    fn local(&self, zone: usize, a: usize, b: usize, depth: usize, links: &mut Vec<u32>) -> Option<Gateways> {
        let found = &self.platform.zones[zone];
        match found.routing {
            Routing::Full => {
                let route = found.routes.get(&(a, b))?;
                links.extend(&route.links);
                Some(route.gateways)
            }
            Routing::Star => {
                let points = &self.platform.points;
                let (up, down) = (&points[a].up, &points[b].down);
                links.extend(up);
                links.extend(down.iter().filter(|link| !up.contains(link)));
                Some(None)
            }
            Routing::Floyd | Routing::Dijkstra => self.shortest(zone, a, b, depth, links),
            Routing::Shape | Routing::None => None,
        }
    }

    fn shortest(
        &self,
        zone: usize,
        a: usize,
        b: usize,
        depth: usize,
        links: &mut Vec<u32>,
    ) -> Option<Gateways> {
        let found = &self.platform.zones[zone];
        self.prepare(zone, a);
        let mut steps = Vec::new();
        {
            let before = self.before.borrow();
            let before = before.get(&(zone, a))?;
            let mut point = b;
            while point != a {
                let previous = *before.get(&point)?;
                steps.push(found.routes.get(&(previous, point))?);
                point = previous;
                if steps.len() > before.len() {
                    return None;
                }
            }
        }
        steps.reverse();
        let mut reached: Option<usize> = None;
        for route in &steps {
            if let (Some(reached), Some((next, _))) = (reached, route.gateways)
                && reached != next
            {
                self.global(reached, next, depth + 1, links)?;
            }
            links.extend(&route.links);
            reached = route.gateways.map(|(_, last)| last);
        }
        Some(steps.first()?.gateways.map(|(first, _)| first).zip(reached))
    }

    /// Computes the paths from a point, unless they are cached.
    fn prepare(&self, zone: usize, start: usize) {
        let mut before = self.before.borrow_mut();
        if before.contains_key(&(zone, start)) {
            return;
        }
        let found = &self.platform.zones[zone];
        if found.routing == Routing::Floyd && found.points.len() <= MOST_FLOYD {
            for (start, row) in found.points.iter().zip(floyd(found)) {
                let named = row.into_iter().enumerate().filter(|(_, previous)| *previous != NONE);
                let named = named.map(|(point, previous)| (found.points[point], found.points[previous]));
                before.insert((zone, *start), named.collect());
            }
        } else {
            before.insert((zone, start), dijkstra(found, start));
        }
    }
}

/// By start and end, the point before the end, computed in SimGrid's order.
fn floyd(zone: &Zone) -> Vec<Vec<usize>> {
    let count = zone.points.len();
    let place: HashMap<usize, usize> =
        zone.points.iter().enumerate().map(|(place, &point)| (point, place)).collect();
    let mut cost = vec![vec![usize::MAX; count]; count];
    let mut before = vec![vec![NONE; count]; count];
    for (&(a, b), route) in &zone.routes {
        if let (Some(&a), Some(&b)) = (place.get(&a), place.get(&b)) {
            cost[a][b] = route.links.len();
            before[a][b] = a;
        }
    }
    for middle in 0..count {
        for a in 0..count {
            if cost[a][middle] == usize::MAX {
                continue;
            }
            for b in 0..count {
                let through = cost[a][middle].saturating_add(cost[middle][b]);
                if through < cost[a][b] {
                    cost[a][b] = through;
                    before[a][b] = before[middle][b];
                }
            }
        }
    }
    before
}

/// By end, the point before it on the shortest paths from a start, computed in SimGrid's order.
fn dijkstra(zone: &Zone, start: usize) -> HashMap<usize, usize> {
    let mut number: HashMap<usize, usize> = HashMap::new();
    let mut edges: HashMap<usize, Vec<usize>> = HashMap::new();
    for &(a, b) in &zone.order {
        for point in [a, b] {
            let next = number.len();
            number.entry(point).or_insert(next);
        }
        edges.entry(a).or_default().push(b);
    }
    let mut cost = HashMap::from([(start, 0_usize)]);
    let mut before = HashMap::new();
    let mut queue = BinaryHeap::from([Reverse((0, number.get(&start).copied().unwrap_or(0), start))]);
    while let Some(Reverse((reached, _, point))) = queue.pop() {
        if cost.get(&point).is_some_and(|&best| best < reached) {
            continue;
        }
        for &other in edges.get(&point).into_iter().flatten() {
            let through = reached + zone.routes.get(&(point, other)).map_or(0, |route| route.links.len());
            if cost.get(&other).is_none_or(|&best| through < best) {
                cost.insert(other, through);
                before.insert(other, point);
                queue.push(Reverse((through, number[&other], other)));
            }
        }
    }
    before
}

/// Creates links from the routes of a zone; `false` if no network of links has these routes.
pub(super) fn join(platform: &mut Platform, zone: usize) -> bool {
    let mut routes: Vec<Path> = paths(platform, zone);
    if go_over_hosts(platform, &routes) {
        platform.over_hosts = true;
        routes.retain(|path| path.links.len() == 1);
        // In file order, in which meshes list their dimensions.
        routes.sort_by_key(|path| path.links[0]);
    }
    let mut made = HashSet::new();
    let mut pairs: HashMap<u32, HashSet<(usize, usize)>> = HashMap::new();
    for path in routes.iter().filter(|path| path.links.len() == 1) {
        pairs.entry(path.links[0]).or_default().insert((path.from.min(path.to), path.from.max(path.to)));
        if made.insert((path.links[0], path.from, path.to)) {
            let (leave, arrive) = (platform.points[path.from].leave, platform.points[path.to].arrive);
            platform.net.link(leave, arrive, platform.wires[path.links[0] as usize], path.links[0]);
        }
    }
    let shared = pairs.values().filter(|pairs| pairs.len() > 1).count();
    if shared > 0 {
        platform.notes.push(format!("{shared} links connect several pairs of hosts or routers: one link per pair, although SimGrid shares their bandwidth"));
    }
    let mut spots = Spots::default();
    let mut long: Vec<&Path> = routes.iter().filter(|path| path.links.len() > 1).collect();
    // Short routes determine reliably where links meet.
    long.sort_by_key(|path| path.links.len());
    if !long.iter().all(|path| spots.add(path)) {
        return false;
    }
    let mut nodes = HashMap::new();
    for path in long {
        let Some(steps) = spots.walk(path) else { return false };
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

/// Whether there are only hosts, and longer routes pass from host to host over links that connect two hosts,
/// as in meshes and tori.
fn go_over_hosts(platform: &Platform, routes: &[Path]) -> bool {
    let mut ends: HashMap<(u32, usize), usize> = HashMap::new();
    for path in routes.iter().filter(|path| path.links.len() == 1) {
        if *ends.entry((path.links[0], path.from)).or_insert(path.to) != path.to {
            return false;
        }
    }
    let leads = |path: &Path| {
        let mut links = path.links.iter();
        links.try_fold(path.from, |host, &link| ends.get(&(link, host)).copied()) == Some(path.to)
    };
    let is_alone = platform.zones.iter().filter(|zone| !zone.routes.is_empty()).count() == 1;
    let has_only_hosts = platform.net.cores.iter().all(|&cores| cores > 0);
    is_alone && has_only_hosts && routes.iter().any(|path| path.links.len() > 1) && routes.iter().all(leads)
}

/// A route between two hosts or routers.
struct Path {
    from: usize,
    to: usize,
    links: Vec<u32>,
}

fn paths(platform: &Platform, zone: usize) -> Vec<Path> {
    let zone = &platform.zones[zone];
    let path = |pair: &(usize, usize)| {
        let route = zone.routes.get(pair)?;
        let (from, to) = route.gateways.unwrap_or(*pair);
        (from != to).then(|| Path { from, to, links: route.links.clone() })
    };
    zone.order.iter().filter_map(path).collect()
}

/// Ends of links, and their grouping into places (union-find).
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

    /// Merges two places; `false` if they contain different hosts or routers.
    fn unite(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return true;
        }
        let point = match (self.points[a], self.points[b]) {
            (Some(_), Some(_)) => return false,
            (point, other) => point.or(other),
        };
        // The older place is kept, so that chains stay short.
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

    /// Attaches an end of a link to a place, preferably the end that does not lead to the next link; returns
    /// the other end.
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
        // Prefer an end without a host that is not the one where the path continues.
        order.sort_by_key(|&(end, _)| (self.point(end).is_some(), leads_on(end)));
        order.into_iter().find_map(|(end, other)| self.unite(end, spot).then_some(other))
    }

    fn add(&mut self, path: &Path) -> bool {
        let (from, to) = (self.at(path.from), self.at(path.to));
        let (Some(&first), Some(&last)) = (path.links.first(), path.links.last()) else { return true };
        let Some(mut spot) = self.attach(first, from, None) else { return false };
        if self.attach(last, to, None).is_none() {
            return false;
        }
        for (index, &link) in path.links.iter().enumerate().skip(1) {
            match self.attach(link, spot, path.links.get(index + 1).copied()) {
                Some(other) => spot = other,
                None => return false,
            }
        }
        self.unite(spot, to)
    }

    /// The links of a route with their end places.
    fn walk(&self, path: &Path) -> Option<Vec<(u32, usize, usize)>> {
        let mut spot = self.find(*self.of_point.get(&path.from)?);
        let mut steps = Vec::with_capacity(path.links.len());
        for &link in &path.links {
            let other = self.find(self.other(link, spot)?);
            steps.push((link, spot, other));
            spot = other;
        }
        (Some(&spot) == self.of_point.get(&path.to).map(|&end| self.find(end)).as_ref()).then_some(steps)
    }
}
