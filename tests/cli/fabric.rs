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
    let exec =
        |kind: &str, path: &str, out: &str| sandbox.seen(&["exec", kind, "--with", path, "--out", out]);
    insta::assert_snapshot!(exec("topology/netloc", &file, "file"), @"");
    insta::assert_snapshot!(exec("topology/import", &raw, "raw"), @"");
    assert_eq!(digest(&sandbox, "raw"), digest(&sandbox, "file"));
    let links = sandbox.stdout(&["show", "raw", "--table", "links", "--format", "csv"]);
    assert_eq!(links.lines().count(), 1 + 120);
    assert_eq!(links.matches(",4000000000.0,").count(), 120, "{links}");
    let refused = exec("topology/slurm", &file, "slurm");
    assert!(refused.contains("this is netloc, which this stage does not read"), "{refused}");
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
    sandbox.stdout(&["exec", "topology/import", "--with", &sample("ib-raw"), "--out", "machine"]);
    let choose = |more: &[&str]| {
        let first = [
            "exec",
            "select/hosts",
            "--in",
            "system=machine",
            "--with",
            "hosts=node[01-02,09]",
            "--out",
            "job",
        ];
        sandbox.seen(&[&first[..], more].concat())
    };
    choose(&["--with", "form=matrix"]);
    insta::assert_snapshot!(sandbox.stdout(&["show", "job", "--table", "costs", "--format", "csv"]), @"");
    insta::assert_snapshot!(choose(&["--with", "cost=latency"]), @"");
    insta::assert_snapshot!(choose(&["--with", "cost=time"]), @"");
    choose(&[
        "--with",
        "cost=time",
        "--with",
        "bytes=4000",
        "--with",
        "link_latency=1e-7",
        "--with",
        "form=levels",
    ]);
    insta::assert_snapshot!(sandbox.stdout(&["show", "job", "--table", "levels", "--format", "csv"]), @"");
}

#[test]
fn machines_are_written_for_other_tools() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["exec", "topology/import", "--with", &sample("ib-raw"), "--out", "machine"]);
    let export = |to: &str| {
        let to = format!("to={to}");
        sandbox.seen(&["exec", "topology/export", "--in", "system=machine", "--with", &to, "--out", "text"])
    };
    insta::assert_snapshot!(export("slurm-conf"), @"");
    insta::assert_snapshot!(sandbox.read("text/files/topology.conf"), @"");
    insta::assert_snapshot!(export("graph-json"), @"");
    sandbox.stdout(&["exec", "topology/import", "--with", "path=text/files/machine.json", "--out", "again"]);
    assert_eq!(digest(&sandbox, "machine"), digest(&sandbox, "again"));
    for to in ["slurm-yaml", "simgrid", "scotch", "distances", "dot", "svg", "graph-csv"] {
        let seen = export(to);
        assert!(seen.contains("text-file"), "{to}: {seen}");
    }
    insta::assert_snapshot!(export("kahip"), @"");
}

#[test]
fn shapes_other_than_trees_are_searched() {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "shape = \"tree:2x4\", costs = [1, 10]", "shape = \"ring:8\"");
    let seen = sandbox.seen(&["run", "ring.toml"]);
    // Every rank beside its partners: one hop for each of the messages.
    assert!(seen.contains("dilation"), "{seen}");
}

#[test]
fn what_is_no_machine_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("poem.txt", "Roses are red\nviolets are blue\n");
    sandbox.write("empty", "");
    let import = |path: &str| {
        let path = format!("path={path}");
        sandbox.seen(&["exec", "topology/import", "--with", &path, "--out", "machine"])
    };
    insta::assert_snapshot!(import("poem.txt"), @"");
    insta::assert_snapshot!(import("empty"), @"");
    insta::assert_snapshot!(import("missing"), @"");
    insta::assert_snapshot!(sandbox.seen(&["exec", "topology/netloc", "--out", "machine"]), @"");
    sandbox.write(
        "bomb.xml",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n<!ENTITY a \"aaaaaaaaaa\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">\n]>\n\
         <topology><object type=\"Machine\"><info name=\"HostName\" value=\"&b;\"/></object></topology>\n",
    );
    insta::assert_snapshot!(import("bomb.xml"), @"");
}
