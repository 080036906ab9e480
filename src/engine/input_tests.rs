//! What stages read is in their keys: every kind that reads files runs on a small sample, whose files are then changed and renamed.
//!
//! Either the key is another one, or the artifacts are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopmap_model::{Context, INPUT_PATH_FORMAT, InputRecord, Inputs, Measurements, Outcome, Outputs, Value};
use serde_json::{Value as Json, json};

use super::key::Manifest;
use crate::input_files::SeenFile;
use crate::outputs::write_outputs;
use crate::registry::{self, Configured, StageEntry};

/// The most files of a sample that are changed one by one.
const MOST_FILES: usize = 8;

/// A stage with files. In its parameters, `@` is the folder that they are in.
struct Sample {
    kind: &'static str,
    with: Json,
    files: Vec<(&'static str, Content)>,
    inputs: Vec<(&'static str, Value)>,
}

enum Content {
    Text(String),
    /// A file or a folder of the project.
    Copy(&'static str),
    Artifact(&'static str, Value),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Sample {
    fn new(kind: &'static str, with: Json) -> Self {
        Self { kind, with, files: Vec::new(), inputs: Vec::new() }
    }

    fn file(mut self, name: &'static str, content: impl Into<Content>) -> Self {
        self.files.push((name, content.into()));
        self
    }

    fn input(mut self, port: &'static str, value: &Value) -> Self {
        self.inputs.push((port, Value::clone(value)));
        self
    }

    fn lay(&self, folder: &Path) {
        for (name, content) in &self.files {
            let place = folder.join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            match content {
                Content::Text(text) => fs::write(&place, text).unwrap(),
                Content::Copy(from) => copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(from), &place),
                Content::Artifact(kind, value) => {
                    fs::create_dir_all(&place).unwrap();
                    registry::kind(kind).unwrap().write(&place, value).unwrap().unwrap();
                }
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

fn run(kind: &str, with: Json, inputs: &[(&str, &Value)]) -> Outputs {
    let configured = registry::stage(kind).unwrap().configure(with).ok().unwrap();
    match configured.run(connected(inputs), &Context::detached()).unwrap() {
        Outcome::Done(outputs) => outputs,
        other => panic!("{kind}: {other:?}"),
    }
}

fn connected(inputs: &[(&str, &Value)]) -> Inputs {
    let mut connected = Inputs::new();
    for (port, value) in inputs {
        connected.connect(port, Value::clone(value), "digest".into(), "map[seed=1]".into());
    }
    connected
}

/// What a stage with its files in a folder comes to.
#[derive(Debug, PartialEq)]
struct Found {
    /// Nothing where there is no key, and so no result in a store.
    key: Option<String>,
    /// Digests by port, or why the stage fails.
    artifacts: Result<BTreeMap<&'static str, String>, String>,
}

/// Runs a sample on the files in a folder, after some of its parameters have changed.
fn find(
    sample: &Sample,
    folder: &Path,
    with: &Json,
) -> Result<(Found, BTreeSet<PathBuf>, BTreeSet<PathBuf>), String> {
    let entry = registry::stage(sample.kind).unwrap();
    let configured = entry.configure(resolved(with, folder)).map_err(|error| error.message)?;
    let (key, listed) = match key(entry, &*configured) {
        Some((key, listed)) => (Some(key), listed),
        None => (None, BTreeSet::new()),
    };
    let scratch = tempfile::tempdir().unwrap();
    let record = InputRecord::below(folder);
    let inputs: Vec<(&str, &Value)> = sample.inputs.iter().map(|(port, value)| (*port, value)).collect();
    let cx = Context::detached().with_scratch(scratch.path());
    let outcome = configured.run(connected(&inputs), &cx);
    let opened = record.opened();
    let artifacts = match outcome {
        Ok(Outcome::Done(outputs) | Outcome::Infeasible(outputs)) => {
            let written = write_outputs(entry, &outputs, scratch.path()).unwrap();
            Ok(written.iter().map(|(port, _, _, folder)| (*port, folder.digest().to_owned())).collect())
        }
        Ok(Outcome::Partial(_)) => panic!("{} was cut short", sample.kind),
        Err(error) => Err(format!("{error:?}")),
    };
    Ok((Found { key, artifacts }, opened, listed))
}

/// The key, and the files in it.
fn key(entry: &StageEntry, configured: &dyn Configured) -> Option<(String, BTreeSet<PathBuf>)> {
    let reads = configured.reads().ok()?;
    let hash = |path: &Path| SeenFile::read(path).ok().map(|seen| seen.blake3().to_owned());
    let files: Option<Vec<(String, String)>> =
        reads.iter().map(|file| Some((file.name().into_owned(), hash(file.path())?))).collect();
    let manifest = Manifest {
        kind: entry.kind.to_owned(),
        revision: entry.revision,
        parameters: configured.canonical().clone(),
        inputs: Vec::new(),
        files: files?,
    };
    Some((manifest.key().to_string(), reads.iter().map(|file| file.path().to_owned()).collect()))
}

fn resolved(with: &Json, folder: &Path) -> Json {
    match with {
        Json::String(text) => match text.strip_prefix('@') {
            Some(rest) => folder.join(rest).to_string_lossy().into(),
            None => with.clone(),
        },
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), resolved(value, folder))).collect(),
        other => other.clone(),
    }
}

/// The parameters after a file or a folder got another name.
fn renamed(with: &Json, old: &Path, new: &Path) -> Json {
    let Json::Object(map) = with else { return with.clone() };
    let value = |value: &Json| match value.as_str().and_then(|text| text.strip_prefix('@')) {
        Some(path) if Path::new(path) == old => format!("@{}", new.display()).into(),
        _ => value.clone(),
    };
    map.iter().map(|(key, old)| (key.clone(), value(old))).collect()
}

/// Holds what a sample gives after something was done to its files against what it gave before.
fn check(sample: &Sample, before: &Found, with: &Json, what: &str, change: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    sample.lay(folder.path());
    change(folder.path());
    let (after, _, _) = find(sample, folder.path(), with).unwrap();
    let is_seen = after.key.is_none() || after.key != before.key;
    let is_same = after.artifacts.is_err() || after.artifacts == before.artifacts;
    assert!(is_seen || is_same, "{}: {what}: the same key has another result", sample.kind);
}

fn check_changes(sample: &Sample, before: &Found, file: &Path) {
    let name = file.display();
    let edit = |what: &str, edit: &dyn Fn(&mut Vec<u8>)| {
        check(sample, before, &sample.with, &format!("{what} {name}"), |folder| {
            let mut bytes = fs::read(folder.join(file)).unwrap();
            edit(&mut bytes);
            fs::write(folder.join(file), bytes).unwrap();
        });
    };
    edit("a line more in", &|bytes| bytes.push(b'\n'));
    edit("a digit in", &|bytes| {
        let digit = bytes.iter().rposition(|byte| (b'1'..b'9').contains(byte));
        if let Some(digit) = digit {
            bytes[digit] += 1;
        }
    });
    edit("a byte in", &|bytes| {
        let middle = bytes.len() / 2;
        bytes.get_mut(middle).into_iter().for_each(|byte| *byte ^= 1);
    });
    check_names(sample, before, file);
}

/// Gives a file or a folder other names, in the parameters as well.
fn check_names(sample: &Sample, before: &Found, old: &Path) {
    let (name, extension) = (old.file_name().unwrap().to_string_lossy(), old.extension());
    let names = [
        format!("x{name}"),
        format!(
            "{}x{}",
            old.file_stem().unwrap().to_string_lossy(),
            extension.map_or(String::new(), |end| format!(".{}", end.to_string_lossy()))
        ),
        format!("{name}.other"),
    ];
    for new in names.map(|name| old.with_file_name(name)) {
        let what = format!("{} renamed to {}", old.display(), new.display());
        check(sample, before, &renamed(&sample.with, old, &new), &what, |folder| {
            fs::rename(folder.join(old), folder.join(&new)).unwrap();
        });
    }
}

/// Whether parameters name files.
fn reads_files(schema: &Json) -> bool {
    match schema {
        Json::Object(map) => {
            map.get("format").is_some_and(|format| format == INPUT_PATH_FORMAT)
                || map.values().any(reads_files)
        }
        Json::Array(values) => values.iter().any(reads_files),
        _ => false,
    }
}

#[test]
fn what_stages_read_is_in_their_keys() {
    let samples = samples();
    let have: BTreeSet<&str> = samples.iter().map(|sample| sample.kind).collect();
    // What an experiment gives differs each time.
    let is_checked = |entry: &&StageEntry| reads_files(&entry.schema) && !entry.experiments;
    let reading = registry::STAGES.iter().filter(is_checked).map(|entry| entry.kind);
    let missing: Vec<&str> = reading.filter(|kind| !have.contains(kind)).collect();
    assert!(missing.is_empty(), "kinds that read files and have no sample here: {missing:?}");
    samples.iter().for_each(check_sample);
}

fn check_sample(sample: &Sample) {
    let folder = tempfile::tempdir().unwrap();
    sample.lay(folder.path());
    let (before, opened, listed) = match find(sample, folder.path(), &sample.with) {
        Ok(found) => found,
        // A stage whose library this build does not have.
        Err(message) => return assert!(message.contains("this build"), "{}: {message}", sample.kind),
    };
    assert!(before.key.is_some() && before.artifacts.is_ok(), "{} fails: {before:?}", sample.kind);
    assert!(!opened.is_empty(), "{} opens no file in the one way", sample.kind);
    // The description of an artifact has the hashes of its tables.
    if !sample.kind.starts_with("stored/") {
        let forgotten: Vec<_> = opened.difference(&listed).collect();
        assert!(forgotten.is_empty(), "{} reads {forgotten:?}, which its key does not have", sample.kind);
    }
    check(sample, &before, &sample.with, "another folder", |_| {});
    let files: Vec<&Path> = opened.iter().map(|file| file.strip_prefix(folder.path()).unwrap()).collect();
    let step = files.len().div_ceil(MOST_FILES);
    files.iter().step_by(step).for_each(|file| check_changes(sample, &before, file));
    for value in sample.with.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
        let path = value.strip_prefix('@').map(Path::new);
        if let Some(named) = path.filter(|path| folder.path().join(path).is_dir()) {
            check_names(sample, &before, named);
        }
    }
}

fn samples() -> Vec<Sample> {
    let program = run("instance/stencil", json!({ "shape": "2x2" }), &[]);
    let graph = program.get("task-graph").unwrap();
    let machine = run("topology/synthetic", json!({ "shape": "tree:2x2", "costs": [1, 10] }), &[]);
    let system = machine.get("system-graph").unwrap();
    let mapped = run("map/linear", json!({}), &[("task-graph", graph), ("system", system)]);
    let mapping = mapped.get("mapping").unwrap();
    [traces(), machines(), routes(), schedules(), others(graph, system, mapping)]
        .into_iter()
        .flatten()
        .collect()
}

fn traces() -> Vec<Sample> {
    const OTF2: &str = "sample-traces/rows-columns-16";
    const OTF: &str = "sample-traces/otf-ring-4";
    const RECORD: &str = "{\"format\": \"hopmap-record\", \"version\": 1, \"method\": \"openmpi\", \"ranks\": 2, \"complete\": true}";
    const RANK: &str = "0 init\n0 send 1 100\n0 finalize\n";
    let otf2 =
        |kind| Sample::new(kind, json!({ "path": "@t/eztrace_log.otf2" })).file("t", Content::Copy(OTF2));
    let otf =
        |archive: &str| Sample::new("trace/otf", json!({ "path": archive })).file("t", Content::Copy(OTF));
    let profile = |node: u32, to: u32| {
        format!(
            "1 templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n\"main\" 1 3 15 50 0 GROUP=\"TAU_DEFAULT\"\n\
             0 aggregates\n1 userevents\n# eventname numevents max min mean sumsqr\n\"Message size sent to node {to}\" 3 1024 512 768 2e{node}\n"
        )
    };
    vec![
        otf2("trace/otf2"),
        Sample::new("trace/otf2", json!({ "path": "@t" })).file("t", Content::Copy(OTF2)),
        otf2("trace/events"),
        Sample::new("trace/dag", json!({ "path": "@t/eztrace_log.otf2", "allow_loss": 1.0 }))
            .file("t", Content::Copy(OTF2)),
        Sample::new("trace/program", json!({ "path": "@t/eztrace_log.otf2", "allow_loss": 1.0 }))
            .file("t", Content::Copy(OTF2)),
        Sample::new("trace/program", json!({ "path": "@t/index" }))
            .file("t/index", "a/rank0.txt\na/rank1.txt\n")
            .file("t/a/rank0.txt", RANK)
            .file("t/a/rank1.txt", "1 init\n1 recv 0 100\n1 finalize\n"),
        otf("@t/plain"),
        otf("@t/compressed/ring.otf"),
        Sample::new("trace/import", json!({ "path": "@m.csv", "format": "csv" }))
            .file("m.csv", "source,destination,messages,bytes\n0,1,1,10\n1,0,2,30\n"),
        Sample::new("trace/import", json!({ "path": "@t/index" }))
            .file("t/index", "a/rank0.txt\na/rank1.txt\n")
            .file("t/a/rank0.txt", RANK)
            .file("t/a/rank1.txt", "1 init\n1 recv 0 100\n1 finalize\n"),
        Sample::new("trace/import", json!({ "path": "@t" })).file("t", Content::Copy(OTF2)),
        Sample::new("trace/import", json!({ "path": "@t/x" }))
            .file("t/x.0.prof", "E\t0\t1\t10 bytes\t1 msgs sent\n")
            .file("t/x.1.prof", "I\t1\t0\t20 bytes\t1 msgs sent\n"),
        Sample::new("trace/import", json!({ "path": "@t" }))
            .file("t/record.json", RECORD)
            .file("t/monitoring/x.0.prof", "E\t0\t1\t10 bytes\t1 msgs sent\n")
            .file("t/monitoring/x.1.prof", "I\t1\t0\t20 bytes\t1 msgs sent\n"),
        Sample::new("trace/import", json!({ "path": "@t" }))
            .file("t/profile.0.0.0", Content::Text(profile(0, 1)))
            .file("t/profile.1.0.0", Content::Text(profile(1, 0))),
        Sample::new("trace/import", json!({ "path": "@t/profile.1.0.0" }))
            .file("t/profile.0.0.0", Content::Text(profile(0, 1)))
            .file("t/profile.1.0.0", Content::Text(profile(1, 0))),
    ]
}

fn machines() -> Vec<Sample> {
    const HOST: &str = "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Core\"><object type=\"PU\" os_index=\"0\" \
                        cpuset=\"0x1\"/></object><object type=\"Core\"><object type=\"PU\" os_index=\"1\" cpuset=\"0x2\"/></object>\
                        </object></topology>\n";
    const DIFFERENCE: &str = "<topologydiff refname=\"base\"/>\n";
    const CONF: &str =
        "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-5]\nSwitchName=t Switches=s[0-1]\n";
    const LINKS: &str = "0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;leaf\n\
                         0x0011750101670002;1;FI;node2 hfi1_0;0x0011750102000001;8;SW;leaf\n";
    const PLATFORM: &str = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n<platform version=\"4.1\">\
                            <cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"/></platform>\n";
    const FABRIC: &str = "sample-topologies/fabric-40";
    let of = |kind, path: &str| Sample::new(kind, json!({ "path": path }));
    let fabric = |kind, path: &str| of(kind, path).file("f", Content::Copy(FABRIC));
    let hosts =
        |sample: Sample| sample.file("h/base", HOST).file("h/n0.xml", HOST).file("h/n1.diff.xml", DIFFERENCE);
    vec![
        of("topology/hwloc", "@n1.xml").file("n1.xml", HOST),
        hosts(of("topology/hwloc", "@h/n1.diff.xml")),
        hosts(of("topology/hwloc", "@h")),
        of("topology/import", "@n1.xml").file("n1.xml", HOST),
        hosts(Sample::new("topology/import", json!({ "path": "@topology.conf", "hwloc": "@h" })))
            .file("topology.conf", CONF),
        Sample::new("topology/import", json!({ "path": "@topology.conf", "every_host": "@n1.xml" }))
            .file("topology.conf", CONF)
            .file("n1.xml", HOST),
        of("topology/import", "@topology.conf").file("topology.conf", CONF),
        fabric("topology/import", "@f/netloc/IB-sample-nodes.txt"),
        fabric("topology/import", "@f/ib-raw"),
        fabric("topology/import", "@f/ib-raw/ib-subnet-sample.txt"),
        of("topology/import", "@links.txt").file("links.txt", LINKS),
        of("topology/import", "@p.xml").file("p.xml", PLATFORM),
        of("topology/import", "@m.tgt").file("m.tgt", "tleaf 3 4 500 4 100 2 10\n"),
        of("topology/import", "@m.cfg").file("m.cfg", "4:16:8\n1:10:100\n"),
        of("topology/import", "@network")
            .file("network", Content::Copy("sample-schedules/cholesky-5/network.average")),
        of("topology/import", "@m.csv").file("m.csv", "0,1\n1,0\n"),
    ]
}

fn routes() -> Vec<Sample> {
    const NETWORK: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }]
switches  = [{ name = "swA", type = 1 }]
links     = [{ a = "swA", b = "h1", bandwidth = 1, a_port = 1, b_port = 1 }, { a = "swA", b = "h2", bandwidth = 1, a_port = 2, b_port = 1 }]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2" }
tables    = [{ switch = "swA", destination = "h2", output = 2 }]
"#;
    const LIDS: &str = "Unicast lids [0-4] of switch Lid 1 guid 0x0000000000200000 ('swA'):\n\
                        0x0002 001 # Channel Adapter portguid 0x0000000000100001: 'h1 HCA-1'\n\
                        0x0004 002 # Channel Adapter portguid 0x0000000000100003: 'h2 HCA-1'\n2 lids dumped\n";
    const KIT: &str = "nodes = [{ name = \"cpu\", count = 4, performance = 1, bandwidth = 9 }]\n\
                       switches = [{ name = \"sw\", count = 2, type = 1, ports = 4, bandwidth = 9 }]\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.toml");
    fs::write(&file, NETWORK).unwrap();
    let network = run("route/import", json!({ "path": file }), &[]);
    fs::write(&file, NETWORK.replace("mapping   = { P1 = \"h1\", P2 = \"h2\" }", "")).unwrap();
    let unplaced = run("route/import", json!({ "path": file }), &[]);
    vec![
        Sample::new("route/import", json!({ "path": "@network.toml" })).file("network.toml", NETWORK),
        Sample::new("route/export", json!({ "format": "lft", "lids": "@lids.dump" }))
            .file("lids.dump", LIDS)
            .input("system", network.get("system").unwrap())
            .input("tables", network.get("tables").unwrap()),
        Sample::new("route/build", json!({ "path": "@kit.toml" }))
            .file("kit.toml", KIT)
            .input("task-graph", unplaced.get("task-graph").unwrap()),
    ]
}

fn schedules() -> Vec<Sample> {
    const FOLDER: &str = "sample-schedules/cholesky-5";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let program = run("schedule/import", json!({ "path": folder.join("graph.grf") }), &[]);
    let dag = program.get("task-dag").unwrap();
    let on_files = |kind, mut with: Json| {
        with["procs"] = "@s/procs.vct".into();
        with["network"] = "@s/network.average".into();
        Sample::new(kind, with).file("s", Content::Copy(FOLDER)).input("task-dag", dag)
    };
    let listed = run(
        "schedule/list",
        json!({ "procs": folder.join("procs.vct"), "network": folder.join("network.average") }),
        &[("task-dag", dag)],
    );
    let exported = run(
        "schedule/export",
        json!({ "format": "sch" }),
        &[("task-dag", dag), ("schedule", listed.get("schedule").unwrap())],
    );
    let text = exported.get("file").unwrap().downcast_ref::<hopmap_model::TextFile>().unwrap().text.clone();
    let mut traced = hopmap_test_support::traced::Program::new(4, false);
    let sent = traced.task(0, 1.0, &[]);
    for rank in 1..4 {
        traced.task(rank, 2.0, &[(sent, 8)]);
    }
    let traced: Value = std::sync::Arc::new(traced.finish());
    let grid = run("instance/stencil", json!({ "shape": "2x2" }), &[]);
    let hosts = run("topology/synthetic", json!({ "shape": "tree:2x3" }), &[]);
    let (grid, hosts) = (grid.get("task-graph").unwrap(), hosts.get("system-graph").unwrap());
    let placed = run("map/linear", json!({}), &[("task-graph", grid), ("system", hosts)]);
    let placed = placed.get("mapping").unwrap();
    vec![
        Sample::new("schedule/import", json!({ "path": "@s/graph.grf" })).file("s", Content::Copy(FOLDER)),
        on_files("schedule/list", json!({})),
        on_files("schedule/genetic", json!({ "evaluations": 500, "ini": "@s/sch.ini" })),
        on_files("schedule/exact", json!({ "max_search_nodes": 500 })),
        on_files("schedule/auto", json!({ "evaluations": 500 })),
        Sample {
            inputs: vec![("task-dag", Value::clone(&traced)), ("mapping", Value::clone(placed))],
            ..on_files("schedule/replay", json!({}))
        },
        on_files("schedule/check", json!({ "path": "@plan.sch" })).file("plan.sch", Content::Text(text)),
    ]
}

fn others(graph: &Value, system: &Value, mapping: &Value) -> Vec<Sample> {
    /// A launcher that starts nothing, and says where the ranks of the mapping are.
    const LAUNCHER: &str = "sh -c 'for rank in 0 1 2 3; do echo rank $rank on host$((rank / 2)), cores 0 of 2; done' {program} {file}";
    const SERIES: [(&str, &str); 4] =
        [("c/1/a", "one"), ("c/1/b", "two"), ("c/2/a", "one more"), ("c/2/b", "two")];
    let stored = |kind, artifact: &'static str, value: &Value| {
        Sample::new(kind, json!({ "path": "@a" })).file("a", Content::Artifact(artifact, Value::clone(value)))
    };
    let on_machine = |kind, with| Sample::new(kind, with).input("system", system);
    let series = |kind| {
        let sample = Sample::new(kind, json!({ "path": "@c" }));
        SERIES.into_iter().fold(sample, |sample, (name, text)| sample.file(name, text))
    };
    let measurements: Value = Arc::new(Measurements::default());
    vec![
        on_machine("select/nodes", json!({ "free_file": "@free", "count": 1 }))
            .file("free", "host0\nhost1\n"),
        on_machine("select/hosts", json!({ "hosts_file": "@hosts" })).file("hosts", "host0\n"),
        Sample::new("topology/synthetic", json!({ "shape": "auto", "hosts_file": "@hosts", "slots": 2 }))
            .file("hosts", "host0\n"),
        stored("stored/task-graph", "task-graph", graph),
        stored("stored/system-graph", "system-graph", system),
        stored("stored/mapping", "mapping", mapping),
        stored("stored/measurements", "measurements", &measurements),
        Sample::new("instance/qaplib", json!({ "path": "@i.dat", "solution": "@i.sln" }))
            .file("i.dat", "2\n\n0 3\n3 0\n\n0 22\n22 0\n")
            .file("i.sln", "2 132\n1 2\n"),
        Sample::new("instance/graph", json!({ "path": "@g.graph" })).file("g.graph", "3 2\n2\n1 3\n2\n"),
        on_machine("map/import", json!({ "path": "@placement" }))
            .file("placement", "3\n2\n1\n0\n")
            .input("task-graph", graph),
        Sample::new(
            "evaluate/accuracy",
            json!({ "group_by": ["seed"], "best_known": "@known.csv", "baseline": ["F0"] }),
        )
        .file("known.csv", "seed,F0\n1,1000\n")
        .input("mappings", mapping),
        on_machine("evaluate/correlation", json!({ "seconds": "@seconds.csv" }))
            .file("seconds.csv", "mapping,seconds\n0,1.5\n1,2.5\n2,3.5\n")
            .input("task-graph", graph)
            .input("mappings", mapping)
            .input("mappings", mapping)
            .input("mappings", mapping),
        Sample::new("launch/check", json!({ "path": "@hosts", "command": LAUNCHER }))
            .file("hosts", "host0\nhost0\nhost1\nhost1\n")
            .input("mapping", mapping),
        series("checkpoint/delta"),
        series("checkpoint/store"),
    ]
}
