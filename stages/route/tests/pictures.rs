//! Pictures of routes agree with the checker of the tables.

use std::path::Path;

use crate::support::samples::Mesh;
use hopmap_model::{Routes, SystemGraph, Tables};
use hopmap_route::export::{self, Shown, draw};
use hopmap_route::{CheckParams, ExportFormat, ExportParams, Family, Instance};
use hopmap_routing::check::{Checked, check};
use hopmap_routing::network;
use hopmap_routing::problem::Rules;

/// A triangle of switches with names that are markup, and tables for it.
const EXAMPLE: &str = r#"
hosts     = [{ name = "h<1>", performance = 1 }, { name = "h2 & co", performance = 1 }, { name = "h\"3'", performance = 1 }]
switches  = [{ name = "A", type = 2 }, { name = "B", type = 2 }, { name = "C", type = 1 }]
links     = [
    { a = "A", b = "B", bandwidth = 3 }, { a = "A", b = "C", bandwidth = 1 }, { a = "B", b = "C", bandwidth = 3 },
    { a = "A", b = "h<1>", bandwidth = 4 }, { a = "B", b = "h2 & co", bandwidth = 4 }, { a = "C", b = "h\"3'", bandwidth = 4 },
]
processes = [{ name = "<P1>", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "<P1>", to = "P3", bandwidth = 3 }, { from = "P2", to = "P3", bandwidth = 1 }]
mapping   = { "<P1>" = "h<1>", P2 = "h2 & co", P3 = "h\"3'" }
tables    = [
    { switch = "A", input = 2, destination = "h\"3'", output = 0 }, { switch = "A", input = 0, destination = "h\"3'", output = 1 },
    { switch = "B", input = 0, destination = "h\"3'", output = 1 }, { switch = "B", input = 2, destination = "h\"3'", output = 0 },
    { switch = "C", destination = "h\"3'", output = 2 },
]
"#;

fn example() -> (Instance, Tables, Routes) {
    let instance = Instance::parse(EXAMPLE.as_bytes(), Path::new("instance")).unwrap();
    let tables = instance.tables.clone().unwrap();
    let routes = checked(&instance, &tables).routes;
    (instance, tables, routes)
}

fn checked(instance: &Instance, tables: &Tables) -> Checked {
    let params: CheckParams = serde_json::from_str("{}").unwrap();
    let (mapping, rules) = (instance.mapping.as_ref().unwrap(), Rules::from(&params));
    check(&instance.graph, &instance.system, mapping, tables, None, &rules, false).unwrap()
}

fn drawn(instance: &Instance, tables: &Tables, routes: &Routes, format: ExportFormat) -> String {
    let (graph, mapping) = (Some(&instance.graph), instance.mapping.as_ref());
    draw(&Shown { system: &instance.system, tables, routes: Some(routes), graph, mapping }, format)
        .unwrap()
        .text
}

/// Texts of a picture, one per line.
fn texts(picture: &str) -> String {
    let document = roxmltree::Document::parse(picture).unwrap();
    document
        .descendants()
        .filter(roxmltree::Node::is_text)
        .filter_map(|node| node.text())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A bandwidth below 100 kB/s with three digits.
fn rate(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value} B/s");
    }
    let digits = format!("{:.*}", if value < 10_000.0 { 2 } else { 1 }, value / 1000.0);
    format!("{} kB/s", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// The label of every link, and the largest utilisation.
fn loads(system: &SystemGraph, routes: &Routes) -> (Vec<String>, f64) {
    let mut largest: f64 = 0.0;
    let labels = (0..).zip(&system.links).map(|(index, link)| {
        let over = routes.routes.iter().filter(|route| route.links.contains(&index));
        let load: f64 = over.map(|route| route.bandwidth_bytes_per_s).sum();
        let bandwidth = link.bandwidth_bytes_per_s.unwrap();
        largest = largest.max(load / bandwidth);
        let [from, to] = [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
        match load > 0.0 {
            true => format!("{from} → {to}: {} of {} (", rate(load), rate(bandwidth)),
            false => format!("{from} → {to}: idle, bandwidth {}", rate(bandwidth)),
        }
    });
    (labels.collect(), largest)
}

#[test]
fn link_loads_match_the_checker() {
    let (instance, tables, routes) = example();
    let text = texts(&drawn(&instance, &tables, &routes, ExportFormat::Svg));
    let (labels, largest) = loads(&instance.system, &routes);
    assert!((largest - routes.metrics["largest_link_utilisation"]).abs() < 1e-9);
    for link in labels {
        assert_eq!(text.lines().filter(|line| line.starts_with(&link)).count(), 1, "{link}: {text}");
    }
    for part in [
        "<P1> → P3",
        "h<1> → A → B → C → h\"3'",
        "type 2",
        "objective 4085",
        "C · type 1: one table · 1 entry · load 4 B/s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn pictures_of_generated_meshes_are_well_formed() {
    for (rows, columns, hosts) in [(2, 4, 2), (8, 8, 4)] {
        let count = rows * columns * hosts;
        let mesh = Mesh {
            rows,
            columns,
            hosts,
            processes: count,
            streams: 3 * count,
            bandwidth: 9000,
            switch_type: 1,
            seed: 1,
        };
        let instance = mesh.instance(true).unwrap();
        let routes = along_rows(&instance, &mesh);
        let tables = network::tables(&instance.system, &routes.routes);
        let routes = checked(&instance, &tables).routes;
        let picture = drawn(&instance, &tables, &routes, ExportFormat::Svg);
        assert!(picture.len() < 500_000, "{} bytes", picture.len());
        let text = texts(&picture);
        let (labels, _) = loads(&instance.system, &routes);
        let is_drawn = |link: &&String| hosts == 2 || !link.contains('h');
        for link in labels.iter().filter(is_drawn) {
            assert_eq!(text.lines().filter(|line| line.starts_with(link.as_str())).count(), 1, "{link}");
        }
    }
}

/// Routes first along the row, then along the column.
fn along_rows(instance: &Instance, mesh: &Mesh) -> Routes {
    let system = &instance.system;
    let node = |name: String| system.nodes.iter().position(|node| node.name == name).unwrap() as u32;
    let link = |a: u32, b: u32| {
        system.links.iter().position(|link| (link.source, link.destination) == (a, b)).unwrap() as u32
    };
    let route = |(index, stream): (u32, &hopmap_model::Stream)| {
        let [(source, mut at), (destination, end)] = [stream.source, stream.destination]
            .map(|rank| (node(format!("h{rank}")), rank as usize / mesh.hosts));
        let mut nodes = vec![source, node(format!("s{at}"))];
        while at != end {
            let (across, down) = (end % mesh.columns, end / mesh.columns);
            at = match (at % mesh.columns, at / mesh.columns) {
                (column, _) if column < across => at + 1,
                (column, _) if column > across => at - 1,
                (_, row) if row < down => at + mesh.columns,
                _ => at - mesh.columns,
            };
            nodes.push(node(format!("s{at}")));
        }
        nodes.push(destination);
        hopmap_model::Route {
            source,
            destination,
            bandwidth_bytes_per_s: stream.bandwidth_bytes_per_s,
            streams: vec![index],
            links: nodes.windows(2).map(|pair| link(pair[0], pair[1])).collect(),
        }
    };
    let routes = (0..).zip(&instance.graph.demands.streams).map(route).collect();
    Routes { routes, ..Routes::default() }
}

#[test]
fn a_page_has_both_pictures_and_the_metrics() {
    let (instance, tables, routes) = example();
    let page = drawn(&instance, &tables, &routes, ExportFormat::Html);
    assert_eq!(page.matches("<svg").count(), 2);
    for part in
        ["Busiest links", "<td>largest link utilisation</td><td class=\"number\">100.0 %</td>", "&lt;P1&gt;"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("<P1>"));
}

#[test]
fn missing_inputs_of_a_picture_are_reported() {
    let (instance, tables, routes) = example();
    let shown = Shown { system: &instance.system, tables: &tables, routes: None, graph: None, mapping: None };
    for format in [ExportFormat::Svg, ExportFormat::Html] {
        let refused = draw(&shown, format).unwrap_err();
        assert!(
            refused.problem.contains("none are connected") && refused.help.contains("`routes`"),
            "{refused}"
        );
        let params = ExportParams { format, family: Family::Cps, lids: None };
        assert_eq!(export::write(&instance.system, &tables, &params).unwrap_err(), refused);
    }
    // Without a program, host names replace process names.
    let bare = Shown { routes: Some(&routes), ..shown };
    assert!(texts(&draw(&bare, ExportFormat::Svg).unwrap().text).contains("h<1> → h\"3'"));
    let refused = |routes: &Routes| {
        let shown = Shown { routes: Some(routes), graph: Some(&instance.graph), ..shown };
        draw(&shown, ExportFormat::Svg).unwrap_err().problem
    };
    let mut other = routes.clone();
    other.routes[0].links[0] = 99;
    assert_eq!(refused(&other), "the routes do not belong to this machine");
    other = routes.clone();
    other.routes[0].streams[0] = 99;
    assert_eq!(refused(&other), "the routes do not belong to this program");
}
