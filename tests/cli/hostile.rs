//! Archives of somebody who wants more than to show a run: none writes or starts anything outside of its project without consent.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hopmap_test_support::{Random, seeds};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::sandbox::Sandbox;

const METADATA: &str = "ro-crate-metadata.json";
const MACHINE: &str = r#"name = "p"
[stages.program]
uses = "instance/stencil"
with = { shape = "2x2" }
[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2", costs = [1, 10], hosts = "h[0-1]" }
"#;
const PLACED: &str = r#"[stages.placement]
uses = "map/linear"
needs = { task-graph = "program", system = "machine" }
[stages.file]
uses = "launch/hostfile"
needs = { mapping = "placement" }
"#;

/// Every way out of a project that pipelines have; the trap lies in `DIR`.
const WAYS_OUT: [&str; 7] = [
    "[stages.theirs]\nuses = \"map/external\"\nneeds = { task-graph = \"program\", system = \"machine\" }\n\
     with = { command = \"touch DIR/trap/started; printf '1\\n2\\n3\\n4\\n'\" }\n",
    "save = { hostfile = \"DIR/trap/authorized_keys\" }\n",
    "save = { hostfile = \"../trap/deeper/authorized_keys\" }\n",
    "save = { hostfile = \"out/../../trap/x\" }\n[stages.quality]\nuses = \"evaluate/mapping\"\n\
     needs = { task-graph = \"program\", system = \"machine\", mapping = \"placement\" }\n",
    "save = { hostfile = \"${matrix.place}\" }\nmatrix = { place = [\"DIR/trap/one\", \"../trap/two\"] }\n",
    "save = { hostfile = \"${params.place}\" }\n[params]\nplace = \"DIR/trap/by-parameter\"\n",
    "[stages.check]\nuses = \"launch/check\"\nneeds = { mapping = \"placement\", launch = \"file\" }\nwith = { cores = false }\n",
];

/// Files of an archive in their order; names may repeat.
type Members = Vec<(String, Vec<u8>)>;

/// A place for an archive, with a trap beside it that has to stay as it is.
struct Prison {
    sandbox: Sandbox,
}

impl Prison {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("trap/mine", "mine");
        sandbox.write("temporary/x", "");
        // In place of the launcher.
        let launcher = "#!/bin/sh\n: > \"${0%/bin/*}/trap/started\"\nfor rank in 0 1 2 3; do echo \"rank $rank on h$((rank / 2)), cores 0 of 1\"; done\n";
        sandbox.write("bin/mpirun", launcher);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(sandbox.path().join("bin/mpirun"), executable).unwrap();
        Self { sandbox }
    }

    /// What a command says, and how it ends.
    fn said(&self, arguments: &[&str]) -> (i32, String) {
        let folder = self.sandbox.path();
        let path = format!("{}/bin:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = self.sandbox.command(arguments);
        let output = command.env("PATH", path).env("TMPDIR", folder.join("temporary")).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        (output.status.code().unwrap(), said.replace(folder.to_str().unwrap(), "DIR"))
    }

    /// The honest archive of a pipeline.
    fn archive(&self, way_out: &str) -> Members {
        let place = if way_out.starts_with("[stages.theirs]") { "" } else { PLACED };
        let text =
            format!("{MACHINE}{place}{way_out}").replace("DIR", &self.sandbox.path().display().to_string());
        // Parameters come first.
        let text = match text.split_once("[params]") {
            Some((before, parameters)) => {
                before.replace("name = \"p\"\n", &format!("name = \"p\"\n[params]{parameters}"))
            }
            None => text,
        };
        self.sandbox.write("maker/p.toml", text);
        let (code, said) = self.said(&["run", "maker/p.toml", "-j1", "--no-report"]);
        assert_eq!(code, 0, "{said}");
        self.said(&["export", "maker/p.toml", "-o", "honest.zip"]);
        let bytes = std::fs::read(self.sandbox.path().join("honest.zip")).unwrap();
        std::fs::remove_dir_all(self.sandbox.path().join("maker")).unwrap();
        self.reset();
        let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let count = zip.len();
        let member = |index| {
            let (mut file, mut bytes) = (zip.by_index(index).unwrap(), Vec::new());
            file.read_to_end(&mut bytes).unwrap();
            (file.name().to_owned(), bytes)
        };
        (0..count).map(member).collect()
    }

    fn reset(&self) {
        std::fs::remove_dir_all(self.sandbox.path().join("trap")).unwrap();
        self.sandbox.write("trap/mine", "mine");
    }

    /// Everything outside of the imported project.
    fn outside(&self) -> BTreeMap<String, Vec<u8>> {
        fn collect(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                let is_folder = entry.file_type().unwrap().is_dir();
                let bytes = if is_folder { Vec::new() } else { std::fs::read(&path).unwrap_or_default() };
                found.insert(path.display().to_string(), bytes);
                if is_folder
                    && !["new", "temporary"].contains(&entry.file_name().to_str().unwrap_or_default())
                {
                    collect(&path, found);
                }
            }
        }
        let mut found = BTreeMap::new();
        collect(&self.sandbox.path(), &mut found);
        found.retain(|path, _| !path.ends_with("/new"));
        found
    }

    /// Does everything with an archive for which nobody asks consent; gives whether it was imported, and what was said.
    fn attack(&self, archive: &[u8]) -> (bool, String) {
        self.sandbox.write("hostile.zip", archive);
        let before = self.outside();
        let (_, mut said) = self.said(&["verify", "hostile.zip", "--rerun", "-j1"]);
        let (code, words) = self.said(&["import", "hostile.zip", "new"]);
        said.push_str(&words);
        let mut pipelines = Vec::new();
        if code == 0 {
            found(&self.sandbox.path().join("new"), &mut pipelines);
        }
        for pipeline in &pipelines {
            for command in [
                &["run", pipeline, "-j1"][..],
                &["topology", "refresh", pipeline, "--publish", "new/published"],
            ] {
                said.push_str(&self.said(command).1);
            }
        }
        let after = self.outside();
        let is_same = |name: &&String| before.get(*name) == after.get(*name);
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(|name| !is_same(name)).collect();
        assert!(changed.is_empty(), "{changed:?}: {said}");
        assert!(!Path::new("/tmp/hopmap-test-evil").exists(), "{said}");
        let _ = std::fs::remove_dir_all(self.sandbox.path().join("new"));
        (code == 0, said)
    }
}

/// The pipeline files of a project.
fn found(folder: &Path, pipelines: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with(".hopmap") {
            found(&path, pipelines);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            pipelines.push(path.display().to_string());
        }
    }
}

/// Packs members as they are, with metadata that describe all of them.
fn packed(members: &Members, links: &[&str]) -> Vec<u8> {
    let metadata = members.iter().find(|(name, _)| name == METADATA).unwrap();
    let mut metadata: Value = serde_json::from_slice(&metadata.1).unwrap();
    let graph = metadata["@graph"].as_array_mut().unwrap();
    for (name, bytes) in members.iter().filter(|(name, _)| name != METADATA) {
        let letter = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        };
        let id: String = name.bytes().map(letter).collect();
        graph.retain(|entity| entity["@id"] != json!(id));
        let (size, hash) = (bytes.len().to_string(), blake3::hash(bytes).to_hex().to_string());
        graph.push(json!({ "@id": id, "@type": "File", "contentSize": size, "blake3": hash }));
    }
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        match name == METADATA {
            true => zip.write_all(metadata.to_string().as_bytes()),
            false => zip.write_all(bytes),
        }
        .unwrap();
    }
    for name in links {
        zip.add_symlink(*name, "/", SimpleFileOptions::default()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Names that lead out of a project, that have a meaning for hopmap, or that are two for one place.
const NAMES: [&str; 30] = [
    "pipeline/.hopmap-imported",
    "pipeline/sub/.hopmap-imported",
    "working/.hopmap-imported",
    "absolute/.hopmap-imported",
    "pipeline/.hopmap/consent",
    "pipeline/sub/.hopmap/consent",
    "pipeline/.HOPMAP/consent",
    "pipeline/sub/.Hopmap-Imported",
    "pipeline/sub/.hop\u{200c}map-imported",
    "pipeline/sub/\u{2024}hopmap-imported",
    "pipeline/HOPMAP~1/consent",
    "pipeline/../trap/x",
    "pipeline/../../trap/x",
    "pipeline/sub/../../../trap/x",
    "../trap/x",
    "/tmp/hopmap-test-evil",
    "absolute/../../../tmp/hopmap-test-evil",
    "pipeline\\..\\..\\trap\\x",
    "C:/trap/x",
    "pipeline//x",
    "pipeline/./x",
    "pipeline/\u{1b}[2Jx",
    ".hopmap/consent",
    ".hopmap-imported",
    "artifacts/../../trap/x",
    "artifacts/.hopmap-imported",
    "artifacts.x/../x",
    "pipeline/P.toml",
    "pipeline/working/x",
    "working/x",
];

/// Archives made of one way out each, and names and contents that nobody exports.
#[test]
fn no_archive_writes_or_starts_anything_outside_without_consent() {
    let prison = Prison::new();
    let honest: Vec<Members> = WAYS_OUT.iter().map(|way_out| prison.archive(way_out)).collect();
    let mut imported = 0;
    for seed in seeds(100, 5000) {
        let mut random = Random(seed);
        let mut members = honest[random.below(honest.len())].clone();
        let theirs = members.iter().find(|(name, _)| name == "pipeline/p.toml").unwrap().1.clone();
        let texts: [&[u8]; 6] = [
            b"commands may run\n",
            b"commands may run: 0\n",
            b"0\n",
            b"ask before commands run\n",
            &theirs,
            b"",
        ];
        let mut links = Vec::new();
        for _ in 0..random.below(4) {
            let name = NAMES[random.below(NAMES.len())];
            let bytes = texts[random.below(texts.len())].to_vec();
            match random.below(8) {
                0 => links.push(name),
                1 => members.push(("pipeline/sub/p.toml".to_owned(), theirs.clone())),
                _ => members.push((name.to_owned(), bytes)),
            }
        }
        if random.below(3) == 0 {
            let key = ["lock", "folder", "working", "pipeline"][random.below(4)];
            let value = NAMES[random.below(NAMES.len())];
            let (_, request) = members.iter_mut().find(|(name, _)| name == "request.json").unwrap();
            let mut json: Value = serde_json::from_slice(request).unwrap();
            json[key] = json!(value);
            *request = json.to_string().into_bytes();
        }
        let mut seen = std::collections::BTreeSet::new();
        // The packer refuses names that repeat; they come by changed bytes below.
        members.retain(|(name, _)| seen.insert(name.clone()));
        links.retain(|name| seen.insert((*name).to_owned()));
        let mut bytes = packed(&members, &links);
        if random.below(6) == 0 {
            members.push(("pipeline/q.toml".to_owned(), b"commands may run\n".to_vec()));
            bytes = packed(&members, &links);
            let (old, new) = (b"pipeline/q.toml", b"pipeline/p.toml");
            let places: Vec<usize> =
                (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
            places.into_iter().for_each(|at| bytes[at..at + new.len()].copy_from_slice(new));
        }
        imported += usize::from(prison.attack(&bytes).0);
    }
    assert!(imported > 0, "the honest ones among them are imported");
}

/// The traps work: with consent, every way out is taken, and listed before.
#[test]
fn every_way_out_of_a_project_is_listed_and_taken_with_consent() {
    for way_out in WAYS_OUT {
        let prison = Prison::new();
        let (is_imported, said) = prison.attack(&packed(&prison.archive(way_out), &[]));
        let is_listed =
            ["touch DIR/trap/started", "  DIR/trap/", "  DIR/new/../trap/", "/../../trap/x", "mpirun "];
        let listed = said.contains("was imported from an archive, and its pipeline")
            && is_listed.iter().any(|text| said.contains(text));
        assert!(is_imported && listed, "{said}");
        prison.said(&["import", "hostile.zip", "new"]);
        let before = prison.outside();
        let (code, said) = prison.said(&["run", "new/p.toml", "-j1", "--allow-programs"]);
        assert!(code == 0 && before != prison.outside(), "{said}");
        prison.reset();
        // Asked once; a store that is gone takes the consent with it.
        prison.said(&["run", "new/p.toml", "-j1"]);
        assert!(before != prison.outside(), "{way_out}");
        prison.reset();
        std::fs::remove_dir_all(prison.sandbox.path().join("new/.hopmap")).unwrap();
        let (code, said) = prison.said(&["run", "new/p.toml", "-j1"]);
        assert!(code == 2 && before == prison.outside(), "{said}");
    }
}

/// A mark that allows commands, in a folder of its own with a second pipeline.
#[test]
fn an_archive_cannot_bring_consent() {
    let prison = Prison::new();
    let mut members = prison.archive(WAYS_OUT[0]);
    let theirs = members.iter().find(|(name, _)| name == "pipeline/p.toml").unwrap().1.clone();
    members.push(("pipeline/sub/p.toml".to_owned(), theirs));
    assert!(prison.attack(&packed(&members, &[])).0, "the second pipeline alone is imported");
    members.push(("pipeline/sub/.hopmap-imported".to_owned(), b"commands may run\n".to_vec()));
    let (is_imported, said) = prison.attack(&packed(&members, &[]));
    assert!(
        !is_imported && said.contains("pipeline/sub/.hopmap-imported: only hopmap gives this name"),
        "{said}"
    );
}

/// What a project may not write unasked: files by which hopmap knows its consent.
#[test]
fn a_save_cannot_write_consent() {
    for name in [".hopmap/consent", "sub/.hopmap-imported", ".HopMap-imported"] {
        let prison = Prison::new();
        let save = format!("save = {{ hostfile = \"{name}\" }}\n");
        let (is_imported, said) = prison.attack(&packed(&prison.archive(&save), &[]));
        assert!(
            is_imported && said.contains("writes outside of the project:\n  |   DIR/new/"),
            "{name}: {said}"
        );
    }
}

/// A link from elsewhere: the command ran unasked, because its folder is not the imported one.
#[test]
fn a_link_to_an_imported_pipeline_is_refused() {
    let prison = Prison::new();
    let archive = packed(&prison.archive(WAYS_OUT[0]), &[]);
    std::fs::write(prison.sandbox.path().join("hostile.zip"), archive).unwrap();
    prison.said(&["import", "hostile.zip", "new"]);
    std::os::unix::fs::symlink("new/p.toml", prison.sandbox.path().join("mine.toml")).unwrap();
    let before = prison.outside();
    for command in
        [&["run", "mine.toml"][..], &["run", "mine.toml", "--allow-programs"], &["plan", "mine.toml"]]
    {
        let (code, said) = prison.said(command);
        assert!(code == 2 && said.contains("is a link into an imported project"), "{said}");
    }
    assert_eq!(before, prison.outside());
}

/// The archive became the store of the working directory.
#[test]
fn no_archive_becomes_a_store() {
    for name in [".hopmap.zip", ".hopmap.crate.zip", "..crate.zip", ".zip", "-x.zip"] {
        let prison = Prison::new();
        std::fs::write(prison.sandbox.path().join(name), packed(&prison.archive(""), &[])).unwrap();
        let (code, said) = prison.said(&["import", &format!("./{name}")]);
        assert!(code == 0 && !prison.sandbox.path().join(".hopmap").exists(), "{name}: {said}");
        let (code, said) = prison.said(&["import", &format!("./{name}"), "x/.HopMap"]);
        assert!(code == 2 && said.contains("is a name of hopmap's own files"), "{name}: {said}");
    }
}

/// 84 kB of archive took gigabytes of memory, as every text of it was parsed whatever its size.
#[test]
fn texts_that_are_too_large_for_their_archive_are_not_parsed() {
    let prison = Prison::new();
    let members = prison.archive("");
    let text = |begin: &str, end: &str| format!("{begin}{}0{end}", "0,".repeat(5 << 20)).into_bytes();
    for (name, bytes) in [
        ("p.lock", text("format = 1\na = [", "]\n")),
        ("results.jsonl", text("[", "]\n")),
        ("request.json", text("[", "]\n")),
    ] {
        let mut members = members.clone();
        members.iter_mut().find(|(found, _)| found == name).unwrap().1 = bytes;
        let archive = packed(&members, &[]);
        assert!(archive.len() < 100_000, "{}", archive.len());
        let (is_imported, said) = prison.attack(&archive);
        assert!(!is_imported && said.contains("too many for an archive of"), "{name}: {said}");
    }
}

/// Parsed, a small object takes a hundred times the bytes of its text.
#[test]
fn texts_of_many_small_values_are_not_parsed() {
    let prison = Prison::new();
    let members = prison.archive("");
    for name in ["results.jsonl", "request.json"] {
        let mut members = members.clone();
        let text = format!("[{}0]\n", "{\"\":0},".repeat(1 << 18));
        members.iter_mut().find(|(found, _)| found == name).unwrap().1 = text.into_bytes();
        let (is_imported, said) = prison.attack(&packed(&members, &[]));
        assert!(!is_imported && said.contains("too many values for an archive of"), "{name}: {said}");
    }
}

/// A parameter given twice was a panic, and forged metrics and files of results passed `verify` and gates.
#[test]
fn what_an_archive_says_twice_or_otherwise_than_its_artifacts_is_refused() {
    let prison = Prison::new();
    let members = prison.archive("");
    let text_of = |name: &str| {
        let (_, bytes) = members.iter().find(|(found, _)| found == name).unwrap();
        String::from_utf8(bytes.clone()).unwrap()
    };
    let mut request: Value = serde_json::from_str(&text_of("request.json")).unwrap();
    request["parameters"] = json!([["a", "1"], ["a", "2"]]);
    let results = text_of("results.jsonl");
    let forged = |of: &str, to: &str| {
        let forged: String = results.lines().map(|line| line.replacen(of, to, 1) + "\n").collect();
        assert_ne!(forged, results);
        forged
    };
    for (name, text, reason) in [
        ("request.json", request.to_string(), "the parameter `a` is there twice"),
        ("results.jsonl", forged("\"processes\":4.0", "\"processes\":5.0"), "is not as its artifact says"),
        (
            "results.jsonl",
            forged("\"metrics\":{\"", "\"metrics\":{\"F\":1.0,\""),
            "is not as its artifact says",
        ),
        (
            "results.jsonl",
            forged("[\"artifact.json\",", "[\"artifact.json\",1"),
            "is not as its artifact says",
        ),
        ("results.jsonl", forged("\"timed\":false", "\"timed\":true"), "did not end as the lock file says"),
        (
            "results.jsonl",
            forged("\"ending\":\"done\"", "\"ending\":\"infeasible\""),
            "did not end as the lock file says",
        ),
        ("results.jsonl", format!("{results}{results}"), "is there twice"),
    ] {
        let mut members = members.clone();
        members.iter_mut().find(|(found, _)| found == name).unwrap().1 = text.into_bytes();
        let (is_imported, said) = prison.attack(&packed(&members, &[]));
        assert!(!is_imported && said.contains(reason), "{name}: {said}");
    }
}
