//! Links as lanes of cables: one for each direction, on the right of who goes that way.

use std::collections::BTreeMap;

use super::facts::{Facts, Use};
use super::geometry::{Curve, Point};
use super::network::Network;
use super::standing::Standing;
use crate::svg::{Number, Svg};
use crate::theme::{RAMP, ramp_index};

/// Links that are drawn at most, the busiest ones.
const MOST_LANES: usize = 2000;
/// Links have tooltips up to this number, and wide areas to point at up to that one.
const MOST_TOOLTIPS: usize = 1000;
const MOST_WIDE: usize = 400;
/// Lanes of one cable in one direction; of more links the busiest are drawn.
const MOST_PARALLEL: usize = 3;

/// A link in the picture.
pub(super) struct Lane {
    pub(super) link: usize,
    /// Other links between the same nodes that are not drawn.
    hidden: Vec<usize>,
    is_parallel: bool,
    pub(super) usage: Use,
    /// Its middle, in two parts if it leads around.
    pub(super) curves: Vec<Curve>,
    /// How far it is from the middle of the cable, and how far the edge of the cable.
    pub(super) middle: f64,
    pub(super) edge: f64,
    pub(super) ends: (usize, usize),
}

/// All links of the picture.
pub(super) struct Lanes {
    pub(super) drawn: Vec<Lane>,
    /// The lane of a link.
    of_link: BTreeMap<usize, usize>,
    widest: f64,
    /// Links of the machine between boxes, drawn or not.
    pub(super) all: usize,
}

impl Lanes {
    pub(super) fn new(facts: &Facts<'_>, network: &Network, standing: &Standing) -> Self {
        let drawn: Vec<_> = network
            .cables
            .iter()
            .filter(|((a, b), _)| standing.areas.contains_key(a) && standing.areas.contains_key(b))
            .collect();
        let widest = match drawn.len() {
            0..=60 => 5.5,
            61..=300 => 4.0,
            _ => 2.6,
        };
        let mut lanes = Vec::new();
        for (&(a, b), cable) in drawn {
            for (links, ends) in [(&cable.forth, (a, b)), (&cable.back, (b, a))] {
                lanes.extend(parallel(facts, standing, links, ends, widest * 1.2));
            }
        }
        let all = lanes.iter().map(|lane| 1 + lane.hidden.len()).sum();
        // Busy links on top of idle ones.
        lanes.sort_by(|a, b| order(a.usage).total_cmp(&order(b.usage)).then(a.link.cmp(&b.link)));
        lanes.drain(..lanes.len().saturating_sub(MOST_LANES));
        let links = |(index, lane): (usize, &Lane)| {
            let all: Vec<usize> = std::iter::once(lane.link).chain(lane.hidden.iter().copied()).collect();
            all.into_iter().map(move |link| (link, index))
        };
        Self { of_link: lanes.iter().enumerate().flat_map(links).collect(), drawn: lanes, widest, all }
    }

    /// The lane of a link, if it is drawn.
    pub(super) fn of(&self, link: usize) -> Option<&Lane> {
        self.of_link.get(&link).map(|&lane| &self.drawn[lane])
    }

    pub(super) fn draw(&self, svg: &mut Svg, facts: &Facts<'_>) {
        let has_tooltips = self.drawn.len() <= MOST_TOOLTIPS;
        for lane in &self.drawn {
            if has_tooltips {
                svg.open_group("", &tooltip(facts, lane));
            }
            self.draw_lane(svg, lane);
            if has_tooltips {
                svg.close_group();
            }
        }
    }

    fn draw_lane(&self, svg: &mut Svg, lane: &Lane) {
        let (class, width) = self.look(lane.usage);
        let is_busy = matches!(lane.usage, Use::Part(_) | Use::Unknown(_));
        let head = if is_busy { (width * 0.9 + 4.0).min(lane_length(lane) * 0.5) } else { 0.0 };
        let mut course = String::new();
        for (place, curve) in lane.curves.iter().enumerate() {
            let is_last = place + 1 == lane.curves.len();
            let cut = if is_last { 1.0 - head / curve.length().max(1.0) } else { 1.0 };
            course.push_str(&curve.between(0.0, cut.clamp(0.0, 1.0)).markup());
        }
        svg.add(format_args!(
            "<path d=\"{course}\" class=\"{class}\" fill=\"none\" stroke-width=\"{}\"{}/>",
            Number(width),
            match lane.usage {
                Use::Down => " stroke-dasharray=\"3 3\"",
                Use::Idle => " opacity=\".6\"",
                _ => "",
            }
        ));
        if let Some(curve) = lane.curves.last().filter(|_| is_busy) {
            draw_head(svg, curve, head, width / 2.0 + 1.8, &class.replacen('s', "f", 1));
        }
        if self.drawn.len() <= MOST_WIDE {
            let whole: String = lane.curves.iter().map(Curve::markup).collect();
            let width = Number(self.widest * 1.2);
            svg.add(format_args!(
                "<path d=\"{whole}\" fill=\"none\" stroke=\"transparent\" stroke-width=\"{width}\"/>"
            ));
        }
    }

    /// Class and width of a lane.
    pub(super) fn look(&self, usage: Use) -> (String, f64) {
        let width = |part: f64| 1.6 + (self.widest - 1.6) * part.clamp(0.0, 1.0);
        match usage {
            Use::Down => ("sk1".into(), 1.5),
            Use::Idle => ("a".into(), 0.8),
            Use::Part(part) if Facts::is_over(part) => ("sk1".into(), self.widest),
            Use::Part(part) => (format!("s{}", colour(part)), width(part)),
            Use::Unknown(part) => ("sk6".into(), width(part)),
        }
    }

    /// The course of a way over links, as the markup of a path has it.
    pub(super) fn way(&self, links: &[u32]) -> String {
        let lanes = links.iter().filter_map(|&link| self.of(link as usize));
        lanes.flat_map(|lane| &lane.curves).map(Curve::markup).collect()
    }
}

/// The colour of a part on the ramp; the two palest colours are hard to see as lines.
pub(super) fn colour(part: f64) -> usize {
    2 + ramp_index(part.clamp(0.0, 1.0)) * (RAMP - 3) / (RAMP - 1)
}

/// Links from a node to another one, beside each other.
fn parallel(
    facts: &Facts<'_>,
    standing: &Standing,
    links: &[usize],
    ends: (usize, usize),
    pitch: f64,
) -> Vec<Lane> {
    let mut drawn = links.to_vec();
    drawn.sort_by(|&a, &b| order(facts.usage(b)).total_cmp(&order(facts.usage(a))).then(a.cmp(&b)));
    let hidden = drawn.split_off(drawn.len().min(MOST_PARALLEL));
    let edge = pitch * drawn.len() as f64;
    let lane = |(place, &link): (usize, &usize)| Lane {
        link,
        hidden: if place == 0 { hidden.clone() } else { Vec::new() },
        is_parallel: links.len() > 1,
        usage: facts.usage(link),
        curves: standing.course(ends.0, ends.1, pitch * (place as f64 + 0.5)),
        middle: pitch * (place as f64 + 0.5),
        edge,
        ends,
    };
    drawn.iter().enumerate().map(lane).collect()
}

/// The busier, the larger.
fn order(usage: Use) -> f64 {
    match usage {
        Use::Idle => 0.0,
        Use::Down => 1e-9,
        Use::Part(part) | Use::Unknown(part) => part,
    }
}

fn lane_length(lane: &Lane) -> f64 {
    lane.curves.last().map_or(0.0, Curve::length)
}

/// The head of an arrow at the end of a curve.
fn draw_head(svg: &mut Svg, curve: &Curve, length: f64, half: f64, class: &str) {
    let direction = curve.direction(1.0);
    let back = curve.to.minus(direction.times(length));
    let side = direction.right().times(half);
    let corners: [Point; 3] = [curve.to, back.plus(side), back.minus(side)];
    let [a, b, c] = corners.map(|corner| format!("{} {}", Number(corner.x), Number(corner.y)));
    svg.add(format_args!("<path d=\"M{a}L{b}L{c}z\" class=\"{class}\"/>"));
}

fn tooltip(facts: &Facts<'_>, lane: &Lane) -> String {
    const MOST: usize = 5;
    let mut said = facts.says(lane.link, lane.is_parallel);
    for &link in lane.hidden.iter().take(MOST) {
        said.push_str(&format!("\u{2003}{}", facts.says(link, true)));
    }
    if lane.hidden.len() > MOST {
        said.push_str(&format!("\u{2003}and {} more", lane.hidden.len() - MOST));
    }
    said
}
