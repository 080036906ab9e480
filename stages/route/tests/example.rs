//! The first example of the paper: legal tables deliver, and every fault is reported.

use std::path::Path;

use hopmap_model::{Counting, Mapping, Routes, Weight};
use hopmap_route::{CheckParams, ExportFormat, ExportParams, Family, Instance, export};
use hopmap_routing::check::{Checked, check};
use hopmap_routing::error::RouteError;
use hopmap_routing::problem::Rules;

/// Three switches in a triangle with one host each; the second path to C is narrow.
const EXAMPLE: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }, { name = "h3", performance = 1 }]
switches  = [{ name = "A", type = 2 }, { name = "B", type = 2 }, { name = "C", type = 1 }]
links     = [
    { a = "A", b = "B", bandwidth = 3 }, { a = "A", b = "C", bandwidth = 1 }, { a = "B", b = "C", bandwidth = 3 },
    { a = "A", b = "h1", bandwidth = 4 }, { a = "B", b = "h2", bandwidth = 4 }, { a = "C", b = "h3", bandwidth = 4 },
]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 3 }, { from = "P2", to = "P3", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2", P3 = "h3" }
tables    = [
    { switch = "A", input = 2, destination = "h3", output = 0 }, { switch = "A", input = 0, destination = "h3", output = 1 },
    { switch = "B", input = 0, destination = "h3", output = 1 }, { switch = "B", input = 2, destination = "h3", output = 0 },
    { switch = "C", destination = "h3", output = 2 },
]
"#;

fn instance(text: &str) -> Result<Instance, String> {
    let shown = |error: hopmap_text::FileError| {
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
        format!("{error} ({help})")
    };
    Instance::parse(text.as_bytes(), Path::new("instance")).map_err(shown)
}

fn params() -> CheckParams {
    serde_json::from_str("{}").unwrap()
}

fn checked(instance: &Instance, params: &CheckParams, given: Option<&Routes>) -> Result<Checked, RouteError> {
    let Instance { graph, system, mapping, tables } = instance;
    let (mapping, tables) = (mapping.as_ref().unwrap(), tables.as_ref().unwrap());
    check(graph, system, mapping, tables, given, &Rules::from(params), params.aggregate_flows)
}

fn fault(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    let instance = instance(&EXAMPLE.replacen(from, to, 1)).unwrap();
    checked(&instance, &params(), None).unwrap_err().to_string()
}

#[test]
fn the_example_of_the_paper_passes() {
    let instance = instance(EXAMPLE).unwrap();
    let Checked { routes, notes } = checked(&instance, &params(), None).unwrap();
    let lengths: Vec<usize> = routes.routes.iter().map(|route| route.links.len()).collect();
    assert_eq!((lengths, routes.counting, notes.len()), (vec![4, 4], Counting::Streams, 0));
    let metric = |name: &str| routes.metrics[name] as i64;
    assert_eq!(["objective", "longest", "hops", "entries", "deadlock_free"].map(metric), [4085, 4, 8, 5, 1]);
    assert_eq!(["least_bandwidth_slack", "largest_switch_load"].map(metric), [0, 4]);
    // The routes of the checker match the tables; other routes are rejected.
    assert_eq!(checked(&instance, &params(), Some(&routes)).unwrap().routes, routes);
    let mut others = routes.clone();
    others.routes[0].links.pop();
    let refused = checked(&instance, &params(), Some(&others)).unwrap_err().to_string();
    assert!(refused.contains("instead of its given route"), "{refused}");
}

#[test]
fn streams_between_two_hosts_can_be_merged() {
    let both =
        EXAMPLE.replace(r#"{ from = "P2""#, r#"{ from = "P1", to = "P3", bandwidth = 0.5 }, { from = "P2""#);
    let both = both.replace(r#""A", b = "B", bandwidth = 3"#, r#""A", b = "B", bandwidth = 4"#);
    let both = both.replace(r#""B", b = "C", bandwidth = 3"#, r#""B", b = "C", bandwidth = 4"#);
    let both = both.replace(r#""C", b = "h3", bandwidth = 4"#, r#""C", b = "h3", bandwidth = 5"#);
    let instance = instance(&both).unwrap();
    let hops = |merged| {
        let routes =
            checked(&instance, &CheckParams { aggregate_flows: merged, ..params() }, None).unwrap().routes;
        (routes.routes.len(), routes.metrics["hops"] as i64, routes.routes[0].streams.clone())
    };
    assert_eq!(hops(false), (3, 12, vec![0]));
    assert_eq!(hops(true), (2, 8, vec![0, 1]));
}

#[test]
fn every_fault_of_tables_is_reported() {
    let a_to_b = r#"{ switch = "A", input = 2, destination = "h3", output = 0 }"#;
    let direct = r#"{ switch = "A", input = 2, destination = "h3", output = 1 }"#;
    assert!(fault(a_to_b, direct).contains("A → C carries 4 B/s of 1 B/s"));
    let back = EXAMPLE.replace(
        r#"input = 0, destination = "h3", output = 1 }"#,
        r#"input = 0, destination = "h3", output = 0 }"#,
    );
    let back = checked(&instance(&back).unwrap(), &params(), None).unwrap_err().to_string();
    assert_eq!(back, "the traffic from `h1` to `h3` loops forever through switch `B`");
    assert!(fault(r#""h3", output = 2 }"#, r#""h3", output = 7 }"#).contains("to port 7, which has no link"));
    let dead = fault(r#"{ switch = "C", destination = "h3", output = 2 },"#, "");
    assert!(dead.contains("stops at switch `C`, which has no table entry for it"), "{dead}");
    let to_host = r#"{ switch = "A", input = 2, destination = "h3", output = 2 }"#;
    assert!(fault(a_to_b, to_host).contains("arrives at host `h1`, which does not forward packets"));
    assert!(
        fault(r#""P1", requires = 1"#, r#""P1", requires = 1, capabilities = ["fpga"]"#)
            .contains("needs `fpga`")
    );
    assert!(
        fault(r#""P1", requires = 1"#, r#""P1", requires = 1, devices = { camera = 2 }"#)
            .contains("need 2 of `camera`")
    );
    let moved = Mapping::new(&[1, 0, 2], &instance(EXAMPLE).unwrap().system, Weight::Bytes).unwrap();
    let Instance { graph, system, tables, .. } = instance(EXAMPLE).unwrap();
    let rules = Rules::from(&params());
    let refused =
        check(&graph, &system, &moved, &tables.unwrap(), None, &rules, false).unwrap_err().to_string();
    assert!(refused.contains("process `P1` is on host `h2`, but the instance requires `h1`"), "{refused}");
}

#[test]
fn passing_a_switch_twice_is_legal_and_reported() {
    // From h1 through B, C and A again: type 2 distinguishes the two passes of A.
    let text = EXAMPLE
        .replace(r#"{ switch = "A", input = 0, destination = "h3", output = 1 }"#, r#"{ switch = "A", input = 1, destination = "h2", output = 0 }"#)
        .replace("tables    = [", r#"tables = [
            { switch = "A", input = 2, destination = "h2", output = 1 }, { switch = "C", destination = "h2", output = 0 },
            { switch = "B", input = 0, destination = "h2", output = 2 },"#)
        .replace(r#"{ from = "P2", to = "P3", bandwidth = 1 }"#, r#"{ from = "P1", to = "P2", bandwidth = 0.5 }"#)
        .replace(r#"{ from = "P1", to = "P3", bandwidth = 3 }"#, r#"{ from = "P1", to = "P3", bandwidth = 1 }"#);
    let notes = checked(&instance(&text).unwrap(), &params(), None).unwrap().notes;
    assert!(
        notes.iter().any(|note| note == "the traffic from `h1` to `h2` passes switch `A` twice"),
        "{notes:?}"
    );
}

#[test]
fn links_in_a_deadlock_cycle_are_named() {
    let all = |what: &dyn Fn(usize) -> String| (0..5).map(what).collect::<Vec<_>>().join(",");
    let ring = all(&|i| format!("{{ a = \"s{i}\", b = \"s{}\", bandwidth = 9 }}", (i + 1) % 5));
    let leaves = all(&|i| format!("{{ a = \"s{i}\", b = \"h{i}\", bandwidth = 9 }}"));
    let hosts = all(&|i| format!("{{ name = \"h{i}\", performance = 1 }}"));
    let switches = all(&|i| format!("{{ name = \"s{i}\", type = 1 }}"));
    let processes = all(&|i| format!("{{ name = \"p{i}\", requires = 1 }}"));
    let streams = all(&|i| format!("{{ from = \"p{i}\", to = \"p{}\", bandwidth = 1 }}", (i + 2) % 5));
    let mapping = all(&|i| format!("p{i} = \"h{i}\""));
    let network = format!(
        "hosts=[{hosts}]\nswitches=[{switches}]\nlinks=[{ring},{leaves}]\nprocesses=[{processes}]\nstreams=[{streams}]\nmapping={{{mapping}}}\n"
    );
    let bare = instance(&network).unwrap();
    let port = |from: &str, to: &str| {
        let id = |name: &str| bare.system.nodes.iter().position(|node| node.name == name).unwrap() as u32;
        let link =
            bare.system.links.iter().find(|link| (link.source, link.destination) == (id(from), id(to)));
        link.unwrap().source_port.unwrap()
    };
    let entry = |i: usize, at: usize| {
        let destination = (i + 2) % 5;
        let next = if at == destination { format!("h{at}") } else { format!("s{}", (at + 1) % 5) };
        let output = port(&format!("s{at}"), &next);
        format!("{{ switch = \"s{at}\", destination = \"h{destination}\", output = {output} }}")
    };
    let tables = all(&|i| [i, (i + 1) % 5, (i + 2) % 5].map(|at| entry(i, at)).join(","));
    let whole = instance(&format!("{network}tables=[{tables}]\n")).unwrap();
    let Checked { routes, notes } = checked(&whole, &params(), None).unwrap();
    assert_eq!((routes.metrics["deadlock_free"] as i64, routes.metrics["objective"] as i64), (0, 4215));
    assert_eq!(routes.cycle.len(), 5);
    assert!(notes[0].contains("in a cycle: s0 → s1, s1 → s2, s2 → s3, s3 → s4, s4 → s0"), "{notes:?}");
    let refused =
        checked(&whole, &CheckParams { deadlock_free: true, ..params() }, None).unwrap_err().to_string();
    assert!(refused.contains("s4 → s0"), "{refused}");
}

#[test]
fn contradictory_instances_are_rejected() {
    let refused = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from}");
        instance(&EXAMPLE.replacen(from, to, 1)).unwrap_err()
    };
    assert!(
        refused(r#"{ a = "A", b = "B", "#, r#"{ a = "A", b = "X", "#)
            .contains("names `X`, which is not a host or switch")
    );
    assert!(refused(r#"{ a = "A", b = "C", "#, r#"{ a = "B", b = "A", "#).contains("is defined twice"));
    assert!(refused("bandwidth = 3 }", "bandwidth = 0 }").contains("has a bandwidth of 0"));
    assert!(refused(r#""A", type = 2"#, r#""A", type = 3"#).contains("is of type 3"));
    assert!(refused(r#"{ name = "A""#, r#"{ name = "B""#).contains("two nodes are named `B`"));
    assert!(refused(r#"from = "P1""#, r#"from = "p1""#).contains("did you mean `P1`?"));
    assert!(refused(r#"P2 = "h2""#, r#"P2 = "h9""#).contains("`h9`, which is not a host"));
    // A given mapping may exceed the performance of a host: problem 1 of the paper ignores that, and the others are infeasible.
    assert!(instance(&EXAMPLE.replacen(r#"P2 = "h2""#, r#"P2 = "h1""#, 1)).is_ok());
    assert!(
        refused(r#"switch = "C", destination"#, r#"switch = "C", input = 1, destination"#).contains("type 1")
    );
    assert!(refused("performance = 1", "perf = 1").contains(":2: unknown field `perf`"));
    assert!(instance("").unwrap_err().contains("the file is empty"));
    assert!(instance("{ \"hosts\": [").unwrap_err().contains(":1: "));
    let twice = r#"{ switch = "C", destination = "h3", output = 2 },"#;
    assert!(refused(twice, &twice.repeat(2)).contains("same table and destination"));
}

#[test]
fn tables_are_written_for_switches_of_both_types() {
    let instance = instance(EXAMPLE).unwrap();
    let write = |format, family| {
        let params = ExportParams { format, family, lids: None };
        export::write(&instance.system, instance.tables.as_ref().unwrap(), &params)
    };
    let fmd = write(ExportFormat::Fmd, Family::Cps).unwrap().text;
    for line in [
        "MPORT 0 master mem34 dev08 0x1 255 END",
        "ENDPOINT h2 PORT 0 20002 4x 4x 5p0 IDLE1 EM_ON dev08 0x2 2 END PEND",
        "SWITCH CPS1848 A dev08 0x4 0 40004\nPORT 0 4x 4x 5p0 IDLE1 EM_ON",
        "ROUTING_TABLE dev08 2\nRANGE 0 0xff DROP\nDESTID h3.0 0\nEND\nSWITCH CPS1848 B",
        "CONNECT A.0 B.0\nCONNECT A.1 C.0\nCONNECT B.1 C.1\nCONNECT A.2 h1.0",
    ] {
        assert!(fmd.contains(line), "{line}\n---\n{fmd}");
    }
    assert_eq!(fmd.matches("CONNECT").count(), 6);
    let registers = write(ExportFormat::Registers, Family::Cps).unwrap().text;
    assert!(
        registers.contains("A 0x010070 0x00000001\nA 0x000070 0x00000003\nA 0x000074 0x00000001\n"),
        "{registers}"
    );
    let rxs = write(ExportFormat::Registers, Family::Rxs).unwrap().text;
    assert!(rxs.contains("C 0x03100c 0x00000002") && rxs.contains("A 0x05500c 0x00000000"), "{rxs}");
    let refused = write(ExportFormat::Rio, Family::Cps).unwrap_err();
    assert!(refused.to_string().contains("switch `A` has a table per input port"));
    assert!(write(ExportFormat::Lft, Family::Cps).unwrap_err().to_string().contains("LIDs"));
}

/// The device looks at the table of the port alone; hopmap, at that of the switch as well.
#[test]
fn tables_of_ports_repeat_the_entries_of_the_switch_for_fmd() {
    let entry = r#"{ switch = "C", destination = "h3", output = 2 },"#;
    let more = r#"{ switch = "A", destination = "h2", output = 1 }, { switch = "A", destination = "h3", output = 1 },"#;
    let instance = instance(&EXAMPLE.replacen(entry, &format!("{entry} {more}"), 1)).unwrap();
    let params = ExportParams { format: ExportFormat::Fmd, family: Family::Cps, lids: None };
    let text = export::write(&instance.system, instance.tables.as_ref().unwrap(), &params).unwrap().text;
    let of_port =
        text.split("ROUTING_TABLE dev08 2\n").nth(1).and_then(|text| text.split("END").next()).unwrap();
    let mut lines: Vec<&str> = of_port.lines().collect();
    lines.sort_unstable();
    // The entry of the port hides that of the switch.
    assert_eq!(lines, ["DESTID h2.0 1", "DESTID h3.0 0", "RANGE 0 0xff DROP"]);
}
