//! Measurements between hosts as a heat map.

use std::ops::Range;

use hopmap_model::{Measurements, NodeState, SystemGraph};

use crate::chart::Axis;
use crate::human::{Unit, count_of, quantity};
use crate::matrix::{Cells, MOST_CELLS, RankOrder, draw_blocks, draw_legend, draw_paths, open_cells};
use crate::svg::{Escaped, KINDS, Svg, ramp_index, shortened_inside};

const LEFT: f64 = 104.0;
const TOP: f64 = 84.0;
/// Height of a name.
const NAME: f64 = 13.0;
/// Cells have tooltips up to this number of hosts.
const MOST_TOOLTIPS: usize = 40;

/// The latencies between hosts on a logarithmic scale, between the endpoints of a host if there is only one.
///
/// Hosts are in the order of the levels of `system`, whose groups are squares, or without it in the order of measurement. Those
/// that did not answer are grey and come last. Above 200 hosts several share a cell, which shows the mean of their logarithms.
#[must_use]
pub fn latencies(measured: &Measurements, system: Option<&SystemGraph>) -> String {
    let rows = Rows::new(measured, system);
    let down = rows.names.len() - rows.up;
    let cells = cells(measured, &rows);
    let mut svg = Svg::new("Latencies", &subtitle(&rows, &cells, down));
    let plot = cells.pixels();
    draw_names(&mut svg, &cells, &rows.names);
    svg.rectangle(LEFT, TOP, (plot, plot), 0.0, "b");
    match cells.range() {
        None => svg.text(LEFT, TOP + plot + 18.0, "q", "no measurements"),
        Some((low, high)) => {
            let axis = Axis::logarithmic(low, high);
            draw_cells(&mut svg, &cells, &axis, &rows.names);
            let x = LEFT + plot + 26.0;
            draw_legend(&mut svg, (x, TOP), &axis, (low, high), (Unit::Seconds, "one way"));
        }
    }
    draw_down(&mut svg, &cells, rows.up);
    draw_blocks(&mut svg, (LEFT, TOP), &cells, &rows.levels);
    svg.finish((LEFT + plot + 120.0).max(420.0), TOP + plot.max(175.0) + 24.0)
}

/// What has a row: hosts, or the endpoints of the only one.
struct Rows {
    thing: &'static str,
    /// Those that answered come first.
    names: Vec<String>,
    up: usize,
    /// The row of every endpoint that has one.
    row_of_endpoint: Vec<Option<usize>>,
    levels: Vec<Vec<Range<usize>>>,
}

impl Rows {
    fn new(measured: &Measurements, system: Option<&SystemGraph>) -> Self {
        let hosts: Vec<(&str, u32, u32)> = measured.hosts().collect();
        let is_one = hosts.len() == 1;
        // The endpoints of every row.
        let things: Vec<(String, Range<u32>)> = match hosts[..] {
            [(_, first, count)] => {
                let core = |endpoint: u32| format!("core {}", measured.endpoints[endpoint as usize].core);
                (first..first + count).map(|endpoint| (core(endpoint), endpoint..endpoint + 1)).collect()
            }
            _ => hosts.iter().map(|&(name, first, count)| (name.to_owned(), first..first + count)).collect(),
        };
        let is_up = |thing: &(String, Range<u32>)| {
            thing.1.clone().any(|endpoint| measured.endpoints[endpoint as usize].state == NodeState::Up)
        };
        let (up, down): (Vec<_>, Vec<_>) = things.into_iter().partition(is_up);
        let ordered = system.and_then(|system| {
            let slot = |thing: &(String, Range<u32>)| {
                let endpoint = &measured.endpoints[thing.1.start as usize];
                first_slot(system, &endpoint.host, is_one.then_some(endpoint.core))
            };
            let slots: Option<Vec<u32>> = up.iter().map(slot).collect();
            slots.map(|slots| RankOrder::in_machine(&slots, system))
        });
        let order = ordered
            .unwrap_or_else(|| RankOrder { ranks: (0..up.len() as u32).collect(), levels: Vec::new() });
        let mut row_of_endpoint = vec![None; measured.endpoints.len()];
        let mut names = Vec::with_capacity(up.len() + down.len());
        for (row, &thing) in order.ranks.iter().enumerate() {
            let (name, endpoints) = &up[thing as usize];
            names.push(name.clone());
            endpoints.clone().for_each(|endpoint| row_of_endpoint[endpoint as usize] = Some(row));
        }
        names.extend(down.into_iter().map(|(name, _)| name));
        let thing = if is_one { "core" } else { "host" };
        // A square for every row would say nothing.
        let levels = order.levels.into_iter().filter(|level| level.len() < up.len()).collect();
        Self { thing, names, up: up.len(), row_of_endpoint, levels }
    }
}

/// The first slot of a host, or the one of a core.
fn first_slot(system: &SystemGraph, host: &str, core: Option<u32>) -> Option<u32> {
    let node = system.nodes.iter().position(|node| node.name == host)? as u32;
    let found =
        system.slots.iter().position(|slot| slot.host == node && core.is_none_or(|core| slot.core == core));
    found.map(|slot| slot as u32)
}

/// Means of logarithms; between two hosts the first pair of endpoints counts.
fn cells(measured: &Measurements, rows: &Rows) -> Cells {
    let positions = rows.names.len();
    let ranks_per_cell = positions.div_ceil(MOST_CELLS).max(1);
    let side = positions.div_ceil(ranks_per_cell);
    let mut sums = vec![(0.0, 0_u32); side * side];
    let mut seen = vec![false; positions * positions];
    for ((a, b), latency) in measured.latencies() {
        let (Some(row), Some(column)) = (rows.row_of_endpoint[a as usize], rows.row_of_endpoint[b as usize])
        else {
            continue;
        };
        let (low, high) = (row.min(column), row.max(column));
        if low == high || std::mem::replace(&mut seen[low * positions + high], true) {
            continue;
        }
        // What takes no time at all takes a femtosecond on a logarithmic scale.
        let logarithm = libm::log(latency.max(1e-15));
        for (row, column) in [(row, column), (column, row)] {
            let cell = &mut sums[row / ranks_per_cell * side + column / ranks_per_cell];
            *cell = (cell.0 + logarithm, cell.1 + 1);
        }
    }
    let mean = |(sum, count): (f64, u32)| if count == 0 { 0.0 } else { libm::exp(sum / f64::from(count)) };
    Cells { values: sums.into_iter().map(mean).collect(), side, ranks_per_cell, positions }
}

fn subtitle(rows: &Rows, cells: &Cells, down: usize) -> String {
    let mut parts = vec![count_of(rows.names.len(), rows.thing)];
    if down > 0 {
        parts.push(format!("{down} down"));
    }
    match rows.levels.len() {
        0 => {}
        count => parts.push(format!("groups of {} as squares", count_of(count, "level"))),
    }
    if cells.ranks_per_cell > 1 {
        parts.push(format!("{0} × {0} {1}s in a cell", cells.ranks_per_cell, rows.thing));
    }
    parts.join(" · ")
}

fn draw_names(svg: &mut Svg, cells: &Cells, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let step = (NAME * names.len() as f64 / cells.pixels()).ceil().max(1.0) as usize;
    for (position, name) in names.iter().enumerate().step_by(step) {
        let middle = TOP + cells.offset(position as f64) + cells.cell_pixels() / 2.0;
        svg.line(LEFT - 5.0, middle, LEFT - 1.0, middle, "a");
        svg.text(LEFT - 9.0, middle + 4.0, "q n e", &shortened_inside(name, LEFT - 16.0));
    }
}

fn draw_cells(svg: &mut Svg, cells: &Cells, axis: &Axis, names: &[String]) {
    open_cells(svg, (LEFT, TOP), cells);
    if cells.positions <= MOST_TOOLTIPS {
        for (place, &value) in cells.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let (row, column) = (place / cells.side, place % cells.side);
            let colour = ramp_index(axis.at(value));
            let (one, other) = (Escaped(&names[row]), Escaped(&names[column]));
            let tooltip = format!("{one} – {other}: {}", quantity(value, Unit::Seconds));
            svg.add(format_args!(
                "<path class=\"s{colour}\" d=\"M{column} {row}h1\"><title>{tooltip}</title></path>"
            ));
        }
    } else {
        draw_paths(svg, cells, axis);
    }
    svg.close_group();
}

/// Rows and columns of hosts that did not answer.
fn draw_down(svg: &mut Svg, cells: &Cells, up: usize) {
    if up >= cells.positions {
        return;
    }
    let plot = cells.pixels();
    let begin = cells.offset(up as f64).min(plot - 1.0);
    let class = format!("fk{}", KINDS - 1);
    svg.group(&format!("{} down", cells.positions - up), |svg| {
        svg.add("<g opacity=\"0.45\">");
        svg.rectangle(LEFT, TOP + begin, (plot, plot - begin), 0.0, &class);
        svg.rectangle(LEFT + begin, TOP, (plot - begin, begin), 0.0, &class);
        svg.close_group();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Endpoint, Levels, Node, ProbePhase, Sample, Slot};

    fn measured(hosts: u32, latency: impl Fn(u32, u32) -> f64) -> Measurements {
        let endpoint = |host| Endpoint { host: format!("n{host}"), core: 0, state: NodeState::Up };
        let mut samples = Vec::new();
        for source in 0..hosts {
            for destination in (0..hosts).filter(|&destination| destination != source) {
                let time = 2.0 * latency(source, destination);
                samples.push(Sample {
                    source,
                    destination,
                    phase: ProbePhase::Latency,
                    bytes: 1,
                    messages: 1,
                    minimum_s: time,
                    first_decile_s: time,
                    median_s: time,
                    ninth_decile_s: time,
                    maximum_s: time,
                });
            }
        }
        Measurements { endpoints: (0..hosts).map(endpoint).collect(), samples, ..Measurements::default() }
    }

    fn system(groups: &[u32]) -> SystemGraph {
        let count = groups.len() as u32;
        SystemGraph {
            nodes: (0..count).map(|host| Node::host(format!("n{host}"))).collect(),
            links: Vec::new(),
            slots: (0..count).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 2.0],
                groups: vec![groups.to_vec(), vec![0; groups.len()]],
            }),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
        }
    }

    #[test]
    fn groups_stand_together() {
        let measured = measured(4, |a, b| if a % 2 == b % 2 { 1e-6 } else { 1e-5 });
        let rows = Rows::new(&measured, Some(&system(&[0, 1, 0, 1])));
        assert_eq!(rows.names, ["n0", "n2", "n1", "n3"]);
        assert_eq!(rows.levels[0], [0..2, 2..4]);
        let values = cells(&measured, &rows).values;
        assert!(
            (values[1] - 1e-6).abs() < 1e-12 && (values[2] - 1e-5).abs() < 1e-12 && values[0].abs() < 1e-12
        );
        let picture = latencies(&measured, Some(&system(&[0, 1, 0, 1])));
        assert!(picture.contains("<title>n0 – n2: 1 µs</title>"), "{picture}");
    }

    #[test]
    fn hosts_that_are_down_come_last() {
        let mut measured = measured(3, |_, _| 1e-6);
        measured.endpoints[0].state = NodeState::Down;
        measured.samples.retain(|sample| sample.source != 0 && sample.destination != 0);
        let rows = Rows::new(&measured, None);
        assert_eq!((rows.names, rows.up), (vec!["n1".to_owned(), "n2".into(), "n0".into()], 2));
        assert!(latencies(&measured, None).contains("<title>1 down</title>"));
    }

    #[test]
    fn many_hosts_share_cells() {
        let measured = measured(401, |a, b| f64::from(1 + (a + b) % 3) * 1e-6);
        let cells = cells(&measured, &Rows::new(&measured, None));
        assert_eq!((cells.side, cells.ranks_per_cell), (134, 3));
    }
}
