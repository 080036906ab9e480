//! Routes of streams through a network: where they go, how busy links are, and which are the busiest.

mod around;
mod bars;
mod facts;
mod geometry;
mod lanes;
mod layers;
mod marks;
mod network;
mod nodes;
mod sketch;
mod standing;
mod stress;
mod table;

use hopmap_model::{Mapping, Routes, SystemGraph, Tables, TaskGraph};

use crate::human::whole;
use crate::svg::{Svg, text_width};
use facts::Facts;
use geometry::Point;
use lanes::Lanes;
use network::Network;
use nodes::Nodes;
use standing::Standing;

pub use bars::route_loads;

const TOP: f64 = 58.0;
const LEFT: f64 = 6.0;

/// Routes on a machine, and what else is known of them.
#[derive(Debug, Clone, Copy)]
pub struct Routed<'a> {
    /// The machine.
    pub system: &'a SystemGraph,
    /// The routes on it.
    pub routes: &'a Routes,
    /// The tables of its switches.
    pub tables: Option<&'a Tables>,
    /// The program whose streams take the routes.
    pub graph: Option<&'a TaskGraph>,
    /// Where its processes are.
    pub mapping: Option<&'a Mapping>,
}

/// The hosts and switches of a machine, each direction of every cable with its load as a part of its bandwidth, and below it the streams
/// with the longest ways.
///
/// The longest way and a circle of links that can wait for each other are marked. Where somebody points at a host or at a row of the
/// table its ways are shown. Switches stand on a grid if they form a mesh or a torus in the order of their numbers, on a circle if they
/// form a ring, in layers if every cable joins one layer with the next, else as far apart as they are in the network. Above 128 nodes
/// only switches are drawn, with the number of their hosts; more than 400 switches are not drawn.
#[must_use]
pub fn routes(routed: &Routed<'_>) -> String {
    let facts = Facts::new(*routed);
    let subtitle = facts.subtitle();
    let mut svg = Svg::new("Routes", &subtitle);
    let least = table::WIDTH.max(text_width(&subtitle));
    let has_hosts = standing::has_hosts(routed.system);
    let network = Network::new(routed.system, has_hosts);
    let nodes = Nodes::new(&facts, &network, has_hosts);
    let Some(standing) = Standing::new(&network, &nodes.sizes, has_hosts) else {
        let mut height = 40.0;
        if !routed.system.nodes.is_empty() {
            svg.text(0.0, TOP, "q", "The network is too large to be drawn.");
            height += 30.0;
        }
        height += table::draw(&mut svg, &facts, None, height);
        return svg.finish(least, height);
    };
    let left = LEFT.max((table::WIDTH - standing.width) / 2.0);
    let standing = standing.shifted(Point::new(left, TOP));
    let lanes = Lanes::new(&facts, &network, &standing);
    nodes::add_style(&mut svg);
    lanes.draw(&mut svg, &facts);
    marks::draw(&mut svg, &facts, &standing, &lanes);
    marks::draw_labels(&mut svg, &facts, &standing, &lanes);
    nodes.draw(&mut svg, &standing, &lanes);
    let mut height = TOP + standing.height + 22.0;
    for note in notes(&standing, &lanes, &nodes) {
        svg.text(0.0, height + 4.0, "q n", &note);
        height += 18.0;
    }
    if !lanes.drawn.is_empty() {
        height += marks::legend(&mut svg, &facts, &lanes, height) + 8.0;
    }
    height += table::draw(&mut svg, &facts, Some(&lanes), height);
    svg.finish((LEFT + standing.width).max(least), height)
}

fn notes(standing: &Standing, lanes: &Lanes, nodes: &Nodes<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if nodes.has_hidden() {
        said.push("at the bottom of a switch: the busiest link of its hosts".to_owned());
    }
    if !standing.around.is_empty() {
        said.push("short lines at the edges lead around to the other edge".to_owned());
    }
    if lanes.all > lanes.drawn.len() {
        said.push(format!(
            "the busiest {} of {} links; others between the same nodes are in their tooltips",
            whole(lanes.drawn.len() as u64),
            whole(lanes.all as u64)
        ));
    }
    said
}
