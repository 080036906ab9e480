//! The routes that SimGrid 3.32 finds in a platform, link by link.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::platform::{Platform, Routing, Zone};

/// Most points of a zone whose routes are found by Floyd's algorithm as SimGrid runs it.
const MOST_FLOYD: usize = 600;
/// Deepest search through gateways of gateways.
const MOST_DEEP: usize = 64;
const NONE: usize = usize::MAX;

/// Finds routes.
pub(super) struct Router<'a> {
    platform: &'a Platform,
    /// By zone and start the point before every other one.
    before: RefCell<HashMap<(usize, usize), HashMap<usize, usize>>>,
}

impl<'a> Router<'a> {
    pub(super) fn new(platform: &'a Platform) -> Self {
        Self { platform, before: RefCell::default() }
    }

    /// The links from a host to another; `None` if SimGrid knows no route.
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

    /// A zone and all around it.
    fn chain(&self, zone: usize) -> Vec<usize> {
        std::iter::successors(Some(zone), |&zone| self.platform.zones[zone].parent).collect()
    }

    /// The links between two points of a zone, and the gateways if these are zones.
    #[allow(clippy::option_option, reason = "no route, or one without gateways")]
    fn local(
        &self,
        zone: usize,
        a: usize,
        b: usize,
        depth: usize,
        links: &mut Vec<u32>,
    ) -> Option<Option<(usize, usize)>> {
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

    #[allow(clippy::option_option, reason = "as `local`")]
    fn shortest(
        &self,
        zone: usize,
        a: usize,
        b: usize,
        depth: usize,
        links: &mut Vec<u32>,
    ) -> Option<Option<(usize, usize)>> {
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

    /// Finds the ways from a point, unless they are known.
    fn prepare(&self, zone: usize, start: usize) {
        let mut before = self.before.borrow_mut();
        if before.contains_key(&(zone, start)) {
            return;
        }
        let found = &self.platform.zones[zone];
        if found.routing == Routing::Floyd && found.points.len() <= MOST_FLOYD {
            for (start, ways) in found.points.iter().zip(floyd(found)) {
                let named = ways.into_iter().enumerate().filter(|(_, way)| *way != NONE);
                let named = named.map(|(point, way)| (found.points[point], found.points[way]));
                before.insert((zone, *start), named.collect());
            }
        } else {
            before.insert((zone, start), dijkstra(found, start));
        }
    }
}

/// By start and end the point before the end, found in the order in which SimGrid does.
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

/// By end the point before it, on the shortest ways from a start, found in the order in which SimGrid does.
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
