//! Machines that are imported, chosen from, placed on and exported.

use crate::sandbox::Sandbox;

fn sample(path: &str) -> String {
    format!("path={}/sample-topologies/fabric-40/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn digest(sandbox: &Sandbox, artifact: &str) -> String {
    let shown: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["show", artifact, "--json"])).unwrap();
    shown["digest"].as_str().unwrap().to_owned()
}

#[test]
fn raw_dumps_and_netlocs_file_are_one_machine() {
    let sandbox = Sandbox::new();
    let (raw, file) = (sample("ib-raw"), sample("netloc/IB-sample-nodes.txt"));
    let exec = |kind: &str, path: &str, out: &str| sandbox.seen(&["exec", kind, "-p", path, "--out", out]);
    insta::assert_snapshot!(exec("topology/import", &file, "file"), @r"
    system-graph DIGEST file
    ------- stderr -------
    format: netloc
    bandwidths computed incorrectly by netloc, recomputed from width and speed: 120 of 120 links
    every host has one slot: `slots` gives it more
    ");
    insta::assert_snapshot!(exec("topology/import", &raw, "raw"), @r"
    system-graph DIGEST raw
    ------- stderr -------
    format: netloc-raw
    ports without a cable, ignored: 32
    every host has one slot: `slots` gives it more
    ");
    assert_eq!(digest(&sandbox, "raw"), digest(&sandbox, "file"));
    let links = sandbox.stdout(&["show", "raw", "--table", "links", "--format", "csv"]);
    assert_eq!(links.lines().count(), 1 + 120);
    assert_eq!(links.matches(",4000000000.0,").count(), 120, "{links}");
    let refused = exec("topology/hwloc", &file, "hwloc");
    assert!(refused.contains("this stage does not read the format netloc"), "{refused}");
}

#[test]
fn a_program_is_placed_on_hosts_of_a_fabric() {
    let sandbox = Sandbox::new();
    let pipeline = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/place-netloc.toml");
    let out = format!("out={}", sandbox.path().join("out").display());
    let html = sandbox.path().join("report.html");
    let html = html.to_str().unwrap();
    sandbox.stdout(&["run", pipeline, "--store", "store", "-p", &out, "--report", html]);
    let hosts = sandbox.read("out/machinefile");
    let names: std::collections::BTreeSet<&str> =
        hosts.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["node03", "node05", "node18", "node20"], "{hosts}");
    let report = sandbox.read("report.html");
    for inside in ["40 hosts", "spine1", "bytes over a link"] {
        assert!(report.contains(inside), "the report does not show {inside}");
    }
}

#[test]
fn chosen_hosts_cost_what_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "topology/import", "-p", &sample("ib-raw"), "--out", "machine"]);
    let choose = |more: &[&str]| {
        let first =
            ["exec", "select/hosts", "--in", "system=machine", "-p", "hosts=node[01-02,09]", "--out", "job"];
        sandbox.seen(&[&first[..], more].concat())
    };
    choose(&["-p", "form=matrix"]);
    insta::assert_snapshot!(sandbox.stdout(&["show", "job", "--table", "costs", "--format", "csv"]), @r"
    source,destination,cost
    0,0,0.0
    0,1,2.0
    0,2,4.0
    1,0,2.0
    1,1,0.0
    1,2,4.0
    2,0,4.0
    2,1,4.0
    2,2,0.0
    ");
    insta::assert_snapshot!(choose(&["-p", "cost=latency"]), @r"
    ------- stderr -------
    error[select::invalid]: the link from `node01` to `leaf1 36-port` has no latency
      help: give `link_latency_s`, the latency of such links in seconds, such as 1.5e-7
    [exit code 1]
    ");
    insta::assert_snapshot!(choose(&["-p", "cost=time"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `bytes` is missing
       ,-[-p:1:1]
     1 | ,-> hosts = "node[01-02,09]"
     2 | |-> cost = "time"
       : `---- here
       `----
      help: `cost = "time"` needs the message size `bytes`
    [exit code 2]
    "#);
    choose(&["-p", "cost=time", "-p", "bytes=4000", "-p", "link_latency_s=1e-7", "-p", "form=levels"]);
    insta::assert_snapshot!(sandbox.stdout(&["show", "job", "--table", "levels", "--format", "csv"]), @r"
    level,cost
    0,0.0
    1,1.2
    2,1.4
    ");
}

#[test]
fn machines_are_written_for_other_tools() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "topology/import", "-p", &sample("ib-raw"), "--out", "machine"]);
    let export = |to: &str| {
        let to = format!("format={to}");
        sandbox.seen(&["exec", "topology/export", "--in", "system=machine", "-p", &to, "--out", "text"])
    };
    insta::assert_snapshot!(export("slurm-conf"), @r"
    text-file DIGEST text
    ------- stderr -------
    warning: not represented in the file: individual cables: 1 switches of the tree represent several equivalent switches each
    warning: not represented in the file: the names of 5 switches: Slurm accepts at most 64 letters, digits, `-`, `_` and `.`
    warning: not represented in the file: bandwidths and latencies of links
    ");
    insta::assert_snapshot!(sandbox.read("text/files/topology.conf"), @r"
    # hopmap system-graph 5616886d0ade6cd6e557591cfde0b19351b7d08db5945ba55b647f1042f1c3fd
    # Switches of the network, for TopologyPlugin=topology/tree
    SwitchName=leaf1_36-port Nodes=node[01-08]
    SwitchName=leaf2_36-port Nodes=node[09-16]
    SwitchName=leaf3_36-port Nodes=node[17-24]
    SwitchName=leaf4_36-port Nodes=node[25-32]
    SwitchName=leaf5_36-port Nodes=node[33-40]
    SwitchName=spine1_36-port Switches=leaf1_36-port,leaf2_36-port,leaf3_36-port,leaf4_36-port,leaf5_36-port
    ");
    insta::assert_snapshot!(export("graph-json"), @r"text-file DIGEST text");
    sandbox.stdout(&["exec", "topology/import", "-p", "path=text/files/machine.json", "--out", "again"]);
    assert_eq!(digest(&sandbox, "machine"), digest(&sandbox, "again"));
    for to in ["slurm-yaml", "simgrid", "scotch", "distances", "dot", "svg", "graph-csv"] {
        let seen = export(to);
        assert!(seen.contains("text-file"), "{to}: {seen}");
    }
    insta::assert_snapshot!(export("kahip"), @r"
    text-file DIGEST text
    ------- stderr -------
    warning: not represented in the file: host names: slots are numbered in machine order
    warning: not represented in the file: switches, links and routes: only costs between slots are written
    ");
}

#[test]
fn shapes_other_than_trees_are_searched() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "shape = \"tree:2x4\", costs = [1, 10]", "shape = \"ring:8\"");
    let seen = sandbox.seen(&["run", "ring.toml"]);
    // The ring of ranks goes round in steps of three: each beside its partners is a third of the way.
    assert!(seen.contains("F 0.333 × linear"), "{seen}");
    // More slots than have room in a matrix of slots.
    sandbox.edit(
        "ring.toml",
        "shape = \"ring:8\"",
        "shape = \"torus:20x20\", cores = [8, 2], intra_node_costs = [0.1, 0.2]",
    );
    let seen = sandbox.seen(&["run", "ring.toml"]);
    assert!(seen.contains("F ") && !seen.contains("error"), "{seen}");
}

#[test]
fn inputs_that_are_not_machines_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("poem.txt", "Roses are red\nviolets are blue\n");
    sandbox.write("empty", "");
    let import = |path: &str| {
        let path = format!("path={path}");
        sandbox.seen(&["exec", "topology/import", "-p", &path, "--out", "machine"])
    };
    insta::assert_snapshot!(import("poem.txt"), @r"
    ------- stderr -------
    error[topology::unknown]: DIR/poem.txt: unknown machine topology format
      help: set `format`; `hopmap stages topology/import` lists the supported formats
    [exit code 1]
    ");
    insta::assert_snapshot!(import("empty"), @r"
    ------- stderr -------
    error[text::file]: DIR/empty: it is empty
      help: give a file with the hosts and switches of a machine
    [exit code 1]
    ");
    insta::assert_snapshot!(import("missing"), @r"
    ------- stderr -------
    error[text::file]: DIR/missing: cannot be read: No such file or directory (os error 2)
      help: check the path; in a pipeline file it is relative to that file
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["exec", "topology/import", "--out", "machine"]), @r"
    ------- stderr -------
    error[pipeline::invalid]: `path` is missing
       ,-[-p:1:1]
       `----
      help: give the file or folder that describes the machine
    [exit code 2]
    ");
    sandbox.write(
        "bomb.xml",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n<!ENTITY a \"aaaaaaaaaa\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">\n]>\n\
         <topology><object type=\"Machine\"><info name=\"HostName\" value=\"&b;\"/></object></topology>\n",
    );
    insta::assert_snapshot!(import("bomb.xml"), @r"
    ------- stderr -------
    format: hwloc
    error[text::file]: DIR/bomb.xml:2: the document type declares entities or elements, as an XML bomb does
      help: remove it; topology files do not need it
    [exit code 1]
    ");
}
