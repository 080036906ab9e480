//! Hosts around their switches, and switches far enough apart for them.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::geometry::{Area, Point};
use super::network::Network;
use super::sketch::Sketch;
use super::standing::{STUB, Sizes, Standing};

/// Between a host and its switch, where their link is seen.
const LINK: f64 = 27.0;
/// Between hosts, and between a host and a cable that it is beside.
const HOSTS: f64 = 6.0;
const CABLE: f64 = 11.0;
/// Between switches, where their cable is seen.
const SWITCHES: f64 = 60.0;
/// Between the hosts of one switch and those of another.
const BETWEEN: f64 = 14.0;
/// Farthest that hosts may be from their switch.
const FARTHEST: f64 = 1500.0;

/// The boxes of a part whose switches stand as in a sketch.
pub(super) fn standing(
    network: &Network,
    part: &[usize],
    sketch: &Sketch,
    sizes: &Sizes,
    has_hosts: bool,
) -> Standing {
    let hosts_at = network.hosts_at();
    let clusters: Vec<Vec<(usize, Area)>> = part
        .iter()
        .enumerate()
        .map(|(place, &node)| {
            let hosts: &[usize] = if has_hosts { &hosts_at[node] } else { &[] };
            cluster(network, part, sketch, sizes, place, hosts)
        })
        .collect();
    let middles: Vec<Point> = match sketch.angles.is_some() {
        true => on_grid(sketch, &clusters, sizes),
        false => scaled(network, part, sketch, &clusters),
    };
    let mut standing = Standing::default();
    for (cluster, middle) in clusters.iter().zip(middles) {
        standing.areas.extend(cluster.iter().map(|&(node, area)| (node, area.moved(middle))));
    }
    let pair = |(&(a, b), &direction): (&(usize, usize), &Point)| ((part[a], part[b]), direction);
    standing.around = sketch.around.iter().map(pair).collect();
    standing
}

/// A switch in the origin and its hosts around it.
fn cluster(
    network: &Network,
    part: &[usize],
    sketch: &Sketch,
    sizes: &Sizes,
    place: usize,
    hosts: &[usize],
) -> Vec<(usize, Area)> {
    let node = part[place];
    let size = if network.is_host[node] { sizes.host } else { sizes.switch };
    let own = Area::new(Point::default(), size.x, size.y);
    let to_others = || {
        let others = network.neighbours[node].iter().filter_map(|other| part.binary_search(other).ok());
        others.map(|other| sketch.places[other].minus(sketch.places[place]).angle()).collect()
    };
    let cables: Vec<f64> = sketch.angles.clone().unwrap_or_else(to_others);
    let angles = angles(hosts.len(), &cables, sketch.angles.is_some());
    // Boxes are wider than high: so is what they stand on, unless cables lead away at all angles.
    let stretch = match sketch.angles.is_some() || cables.is_empty() {
        true => ((sizes.host.x + 10.0) / (sizes.host.y + 10.0)).clamp(1.0, 1.6),
        false => 1.0,
    };
    let mut radius = 30.0;
    loop {
        let area = |&angle: &f64| {
            let direction = Point::at_angle(angle);
            let middle = Point::new(direction.x * stretch * radius, direction.y * radius);
            Area::new(middle, sizes.host.x, sizes.host.y)
        };
        let areas: Vec<Area> = angles.iter().map(area).collect();
        if radius > FARTHEST || has_room(&own, &areas, &cables) {
            return std::iter::once((node, own)).chain(hosts.iter().copied().zip(areas)).collect();
        }
        radius += 4.0;
    }
}

/// Angles of hosts: as far from cables and from each other as can be, clockwise.
fn angles(count: usize, cables: &[f64], is_grid: bool) -> Vec<f64> {
    if cables.is_empty() {
        return (0..count).map(|host| FRAC_PI_2 + TAU * host as f64 / count as f64).collect();
    }
    let mut cables: Vec<f64> = cables.iter().map(|angle| angle.rem_euclid(TAU)).collect();
    cables.sort_by(f64::total_cmp);
    let next = cables.iter().skip(1).copied().chain([cables[0] + TAU]);
    let gaps: Vec<(f64, f64)> =
        cables.iter().copied().zip(next).map(|(from, to)| (from, to - from)).collect();
    let mut hosts_in = vec![0_usize; gaps.len()];
    // On a grid the gaps are the same at every switch: below first, then opposite.
    let rank = |gap: usize| if is_grid { [0, 2, 1, 3][gap % 4] } else { gap };
    for _ in 0..count {
        let room = |gap: usize| gaps[gap].1 / (hosts_in[gap] + 1) as f64;
        let widest = (0..gaps.len()).fold(0, |best, gap| {
            let (more, less) = (room(gap) > room(best) + 1e-6, room(gap) < room(best) - 1e-6);
            if more || (!less && rank(gap) < rank(best)) { gap } else { best }
        });
        hosts_in[widest] += 1;
    }
    let in_gap = |((from, gap), hosts): (&(f64, f64), &usize)| {
        let (from, step) = (*from, gap / (hosts + 1) as f64);
        (1..=*hosts).map(move |host| from + step * host as f64)
    };
    let mut angles: Vec<f64> = gaps.iter().zip(&hosts_in).flat_map(in_gap).collect();
    if is_grid {
        // In the order in which a text is read.
        let place = |angle: f64| (libm::sin(angle) > 0.0, libm::cos(angle));
        angles.sort_by(|&a, &b| place(a).0.cmp(&place(b).0).then(place(a).1.total_cmp(&place(b).1)));
    }
    angles
}

/// Whether hosts overlap neither each other nor their switch nor its cables.
fn has_room(own: &Area, hosts: &[Area], cables: &[f64]) -> bool {
    let is_beside_cables = |host: &Area| {
        let is_free = |&angle: &f64| {
            !host.is_crossed(Point::default(), Point::at_angle(angle).times(10.0 * FARTHEST), CABLE)
        };
        cables.iter().all(is_free)
    };
    hosts.iter().enumerate().all(|(place, host)| {
        !host.is_near(own, LINK)
            && !hosts[..place].iter().any(|other| host.is_near(other, HOSTS))
            && is_beside_cables(host)
    })
}

/// Middles of switches on a grid whose rows and columns hold all hosts.
fn on_grid(sketch: &Sketch, clusters: &[Vec<(usize, Area)>], sizes: &Sizes) -> Vec<Point> {
    let all = || clusters.iter().flatten().map(|(_, area)| area);
    let reach = |low: &dyn Fn(&Area) -> f64, high: &dyn Fn(&Area) -> f64| {
        all().map(high).fold(0.0, f64::max) - all().map(low).fold(0.0, f64::min)
    };
    let is_deep = sketch.angles.as_ref().is_some_and(|angles| angles.len() > 4);
    let mut wide = (reach(&Area::left, &Area::right) + BETWEEN).max(sizes.switch.x + SWITCHES);
    let mut high = (reach(&Area::top, &Area::bottom) + BETWEEN).max(sizes.switch.y + SWITCHES - 8.0);
    if is_deep {
        wide = wide.max(sizes.switch.x + 2.0 * STUB);
        high = high.max(wide * 0.75);
        wide = wide.max(high);
    }
    sketch.places.iter().map(|place| Point::new(place.x * wide, place.y * high)).collect()
}

/// Middles of switches as in the sketch, with as much room as they need.
fn scaled(network: &Network, part: &[usize], sketch: &Sketch, clusters: &[Vec<(usize, Area)>]) -> Vec<Point> {
    let lines: Vec<(usize, usize)> = (0..part.len())
        .flat_map(|a| {
            let others =
                network.neighbours[part[a]].iter().filter_map(|other| part.binary_search(other).ok());
            others.filter(move |&b| a < b).map(move |b| (a, b))
        })
        .collect();
    let mut scale = 60.0;
    let mut best: Option<(usize, f64)> = None;
    while scale < 4000.0 {
        let middles: Vec<Point> = sketch.places.iter().map(|place| place.times(scale)).collect();
        if is_apart(clusters, &middles, &lines) {
            let crossed = crossings(clusters, &middles, &lines);
            if best.is_none_or(|(least, _)| crossed < least) {
                best = Some((crossed, scale));
            }
            // Boxes that stay on lines however large the picture is are passed by bent ones.
            if best.is_some_and(|(least, first)| least == 0 || scale > 1.5 * first) {
                break;
            }
        }
        scale *= 1.06;
    }
    let scale = best.map_or(scale, |(_, scale)| scale);
    sketch.places.iter().map(|place| place.times(scale)).collect()
}

/// Whether boxes of different switches are apart, and lines between them are long enough.
fn is_apart(clusters: &[Vec<(usize, Area)>], middles: &[Point], lines: &[(usize, usize)]) -> bool {
    let long_enough = |&(a, b): &(usize, usize)| {
        let (first, last) = (clusters[a][0].1.moved(middles[a]), clusters[b][0].1.moved(middles[b]));
        !first.is_near(&last, SWITCHES)
    };
    let apart = |a: usize, b: usize| {
        clusters[a].iter().all(|(_, first)| {
            let first = first.moved(middles[a]);
            clusters[b].iter().all(|(_, last)| !first.is_near(&last.moved(middles[b]), BETWEEN))
        })
    };
    lines.iter().all(long_enough) && (0..middles.len()).all(|b| (0..b).all(|a| apart(a, b)))
}

/// How many boxes lie on lines between others.
fn crossings(clusters: &[Vec<(usize, Area)>], middles: &[Point], lines: &[(usize, usize)]) -> usize {
    let mut crossings = 0;
    for &(a, b) in lines {
        for (place, cluster) in clusters.iter().enumerate() {
            let boxes = cluster.iter().enumerate();
            // The switches at the ends of a line are no obstacles, their hosts are.
            let obstacles = boxes.filter(|(index, _)| *index > 0 || (place != a && place != b));
            crossings += obstacles
                .filter(|(_, (_, area))| area.moved(middles[place]).is_crossed(middles[a], middles[b], HOSTS))
                .count();
        }
    }
    crossings
}
