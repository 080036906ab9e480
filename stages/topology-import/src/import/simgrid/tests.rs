//! Tests of platforms.

use super::*;
use crate::import::hops;
use crate::import::samples::{fault, import_text};

fn import(text: &str) -> Imported {
    import_text(&platform(text), &ImportParams::default()).unwrap()
}

fn platform(zones: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n{zones}\n</platform>\n"
    )
}

fn cluster(count: u32, rest: &str) -> String {
    format!(
        "<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-{}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" {rest}/>",
        count - 1
    )
}

#[test]
fn a_cluster_has_a_switch_and_a_backbone() {
    let Imported { system, notes } = import(&cluster(4, "core=\"2\""));
    assert_eq!((system.nodes.len(), system.links.len(), system.slots.len()), (5, 8, 8));
    assert_eq!((hops(&system, "n0", "n3"), notes.len()), (Some(2), 0));
    let Imported { system, .. } =
        import(&cluster(4, "bb_bw=\"10GBps\" bb_lat=\"500ns\" loopback_bw=\"1GBps\""));
    assert_eq!((system.nodes.len(), hops(&system, "n0", "n3")), (6, Some(3)));
    let latency: f64 = Paths::new(&system)
        .unwrap()
        .path(0, 3)
        .unwrap()
        .iter()
        .map(|&link| system.links[link as usize].latency_s.unwrap())
        .sum();
    assert!((latency - 2.5e-6).abs() < 1e-12);
}

#[test]
fn shapes_have_the_expected_distances() {
    let tree = import(&cluster(16, "topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2;1,1\"")).system;
    assert_eq!([hops(&tree, "n0", "n3"), hops(&tree, "n0", "n15")], [Some(2), Some(4)]);
    assert_eq!(tree.nodes.len(), 16 + 4 + 2);
    let torus = import(&cluster(24, "topology=\"TORUS\" topo_parameters=\"4,3,2\"")).system;
    assert_eq!(
        [hops(&torus, "n0", "n2"), hops(&torus, "n0", "n3"), hops(&torus, "n0", "n23")],
        [Some(2), Some(1), Some(1 + 1 + 1)]
    );
    let fly = import(&cluster(120, "topology=\"DRAGONFLY\" topo_parameters=\"3,4;4,3;5,1;2\"")).system;
    assert_eq!(
        [hops(&fly, "n0", "n1"), hops(&fly, "n0", "n39"), hops(&fly, "n0", "n119")],
        [Some(2), Some(4), Some(2 + 1 + 1 + 2)]
    );
    let blue = fly.links.iter().filter(|link| link.bandwidth_bytes_per_s == Some(4e9)).count();
    assert_eq!(blue, 6);
}

const ROUTED: &str = "<zone id=\"z\" routing=\"Full\">
  <host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\" core=\"2\"/>
  <link id=\"la\" bandwidth=\"1GBps\" latency=\"1us\"/><link id=\"lb\" bandwidth=\"1GBps\" latency=\"2us\" sharing_policy=\"SPLITDUPLEX\"/>
  <link id=\"lc\" bandwidth=\"1GBps\" latency=\"3us\"/><link id=\"trunk\" bandwidth=\"1GBps\" latency=\"10us\"/>
  <route src=\"a\" dst=\"b\"><link_ctn id=\"la\"/><link_ctn id=\"lb_UP\"/></route>
  <route src=\"a\" dst=\"c\"><link_ctn id=\"la\"/><link_ctn id=\"trunk\"/><link_ctn id=\"lc\"/></route>
  <route src=\"b\" dst=\"c\"><link_ctn id=\"lb\" direction=\"DOWN\"/><link_ctn id=\"trunk\"/><link_ctn id=\"lc\"/></route>
</zone>";

#[test]
fn switches_are_where_links_meet() {
    let Imported { system, notes } = import(ROUTED);
    assert_eq!((system.nodes.len(), system.links.len(), notes), (5, 8, Vec::new()));
    assert_eq!([hops(&system, "a", "b"), hops(&system, "b", "c")], [Some(2), Some(3)]);
    let params = ImportParams { cost: Some(CostMetric::Latency), ..ImportParams::default() };
    let system = import_text(&platform(ROUTED), &params).unwrap().system;
    assert!((system.costs().between(0, 2) - 14.0).abs() < 1e-9);
}

#[test]
fn routes_without_a_network_become_a_cost_matrix() {
    // The way back uses links of the way there in another order.
    let text = ROUTED.replace("<route src=\"a\" dst=\"b\">", "<route src=\"a\" dst=\"b\" symmetrical=\"NO\">").replace(
        "</zone>",
        "<route src=\"b\" dst=\"a\" symmetrical=\"NO\"><link_ctn id=\"trunk\"/><link_ctn id=\"trunk\"/></route></zone>",
    );
    let Imported { system, notes } = import(&text);
    assert!(matches!(system.cost, CostModel::Matrix(_)) && system.links.is_empty());
    assert!(
        (system.costs().between(0, 1) - 3.0).abs() < 1e-9
            && (system.costs().between(1, 0) - 20.0).abs() < 1e-9
    );
    assert!(notes[0].starts_with("no network of links"), "{notes:?}");
}

#[test]
fn zones_are_connected_at_their_gateways() {
    let cabinet = |id: &str, radical: &str| {
        format!(
            "<cluster id=\"{id}\" prefix=\"n\" suffix=\"\" radical=\"{radical}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" bb_bw=\"1GBps\" bb_lat=\"5us\"/>\n"
        )
    };
    let route = |a: &str, b: &str| {
        format!(
            "<zoneRoute src=\"{a}\" dst=\"{b}\" gw_src=\"n{a}_router\" gw_dst=\"n{b}_router\"><link_ctn id=\"bus\"/></zoneRoute>\n"
        )
    };
    let zones = [cabinet("x", "0-3"), cabinet("y", "4-6"), cabinet("z", "7")].concat();
    let routes = [route("x", "y"), route("y", "z"), route("x", "z")].concat();
    let text = format!(
        "<zone id=\"all\" routing=\"Full\">\n{zones}<link id=\"bus\" bandwidth=\"1GBps\" latency=\"10us\"/>\n{routes}</zone>"
    );
    let Imported { system, notes } = import(&text);
    assert_eq!([hops(&system, "n0", "n1"), hops(&system, "n0", "n7")], [Some(3), Some(5)]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let floyd = import(&text.replace("Full", "Floyd"));
    assert_eq!(floyd.system, system);
}

#[test]
fn errors_have_lines() {
    assert!(fault(&platform(&cluster(4, "")).replace("0-3", "0-1000000000")).starts_with("4: more than"));
    assert!(
        fault(&platform(&cluster(5, "topology=\"TORUS\" topo_parameters=\"2,2\"")))
            .starts_with("4: a torus of 4 hosts, but `radical` lists 5")
    );
    assert!(
        fault(&platform(&cluster(4, "topology=\"FAT_TREE\" topo_parameters=\"2;4\"")))
            .contains("not a fat tree")
    );
    assert!(fault(&platform("<zone id=\"v\" routing=\"Vivaldi\"/>")).starts_with("4: the routing `vivaldi`"));
    assert!(fault(&platform(&ROUTED.replace("lb_UP", "lx"))).starts_with("8: there is no link `lx`"));
    assert!(
        fault(&platform(&ROUTED.replace("\"1us\"", "\"1parsec\"")))
            .starts_with("6: `1parsec` is not a latency")
    );
    assert!(fault(&platform(&ROUTED.replace("id=\"b\"", "id=\"a\""))).contains("`a` is defined twice"));
    assert!(
        fault("<!DOCTYPE platform [<!ENTITY a \"b\">]>\n<platform version=\"4\"/>")
            .starts_with("1: the document type declares")
    );
    assert!(fault("<platform version=\"3\"/>").contains("too old"));
    assert!(fault("<platform version=\"4\"><zone id=\"&x;\" routing=\"Full\"/></platform>").contains("1: "));
    assert!(fault(&platform("<zone id=\"z\" routing=\"Full\">")).len() > 3);
    let zones = |count| "<zone id=\"z\" routing=\"Full\">".repeat(count) + &"</zone>".repeat(count);
    let deep = fault(&format!("<platform version=\"4\">{}</platform>", zones(1000)));
    assert!(deep.contains("nested more than"), "{deep}");
}
