//! `hopmap checkpoint`: what goes in comes out, and what is said of it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use insta::internals::SettingsBindDropGuard;
use serde_json::Value;

use crate::sandbox::Sandbox;

/// Bytes that no codec makes smaller.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    (0..bytes.div_ceil(8)).flat_map(|_| word()).take(bytes).collect()
}

/// Snapshots without the bytes on disk, which depend on times and on who owns the files, and without processes.
pub(crate) fn settled() -> SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"[\dN.]+ k?B stored \([\d.]+ ×\)", "SIZE stored");
    settings.add_filter(r"stored +[\dN.]+ k?B \([\d.]+ ×\)", "stored SIZE");
    settings.add_filter(r" +[\dN.]+ k?B +[\d.]+ ×", " SIZE");
    settings.add_filter(r"(on disk|manifests|freed:) +[\dN.]+ k?B( \([\d.]+ ×\))?", "$1 SIZE");
    settings.add_filter(r"process \d+ on \S+:", "process N on HOST:");
    settings.bind_to_scope()
}

/// Runs the command with this on standard input.
pub(crate) fn fed(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = sandbox.command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments ends before it reads.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// A store with this many checkpoints of an image of 200 kB whose first page changes each time.
pub(crate) fn stored(checkpoints: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["checkpoint", "init", "store"]);
    for number in 1..=checkpoints {
        sandbox.write("ckpt/image", image(number));
        sandbox.stdout(&["checkpoint", "add", "store", "ckpt", "--quiet"]);
    }
    sandbox
}

/// The image of one of them.
pub(crate) fn image(number: u64) -> Vec<u8> {
    [noise(1000 + number, 4096), noise(1, 196_608)].concat()
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Everything that a restore gives back of what is in a folder: kinds, modes, times, contents, links, and whether files have holes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    fn collect(root: &Path, path: &Path, found: &mut BTreeMap<PathBuf, (String, Vec<u8>)>) {
        let metadata = fs::symlink_metadata(path).unwrap();
        let time = (metadata.mtime(), metadata.mtime_nsec());
        let mut said = format!("{:o} {time:?} of {}", metadata.mode(), metadata.uid());
        let contents = if metadata.is_symlink() {
            fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
        } else if metadata.is_dir() {
            names(path).iter().for_each(|name| collect(root, &path.join(name), found));
            Vec::new()
        } else {
            let sparse = metadata.blocks() * 512 < metadata.len();
            said.push_str(&format!(", {} links, sparse: {sparse}", metadata.nlink()));
            fs::read(path).unwrap()
        };
        found.insert(path.strip_prefix(root).unwrap().to_owned(), (said, contents));
    }
    let mut found = BTreeMap::new();
    collect(folder, folder, &mut found);
    found
}

/// A folder with everything that may be in one.
fn rich(sandbox: &Sandbox) {
    sandbox.write("ckpt/image", noise(1, 300_000));
    sandbox.write("ckpt/side/restart.sh", "exec ./image\n");
    sandbox.write("ckpt/empty", "");
    let folder = sandbox.path().join("ckpt");
    fs::create_dir(folder.join("none")).unwrap();
    symlink("image", folder.join("newest")).unwrap();
    symlink("/nowhere/at all", folder.join("side/dangling")).unwrap();
    fs::hard_link(folder.join("image"), folder.join("side/again")).unwrap();
    let mut holes = fs::File::create(folder.join("holes")).unwrap();
    holes.set_len(1 << 20).unwrap();
    holes.write_all(b"begin").unwrap();
    fs::set_permissions(folder.join("side/restart.sh"), Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(folder.join("none"), Permissions::from_mode(0o1777)).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(folder.join("image")).unwrap().set_modified(long_ago).unwrap();
    fs::File::open(folder.join("none")).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn folders_come_back_as_they_were() {
    let _settled = settled();
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join("ckpt");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store"]), @"created an empty store in store; next: hopmap checkpoint add store CHECKPOINT");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @"no checkpoints yet");
    rich(&sandbox);
    let first = tree(&folder);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @"checkpoint 1: N.NN MB, 300 kB new, SIZE stored in N.NN s");
    let mut changed = noise(1, 300_000);
    changed[150_000..150_008].fill(7);
    sandbox.write("ckpt/image", changed);
    fs::remove_file(folder.join("empty")).unwrap();
    let second = tree(&folder);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt/", "--name", "job"]), @"checkpoint 2: N.NN MB, N.NN kB new, SIZE stored in N.NN s");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    number  added                     bytes     stored            files  name
         1  TIME    N.NN MB SIZE      4
         2  TIME    N.NN MB SIZE      3  job
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "one"]), @"checkpoint 1: 4 files, N.NN MB in one in N.NN s");
    fs::create_dir(sandbox.path().join("two")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "latest", "-o", "two", "--no-sync"]), @"checkpoint 2: 3 files, N.NN MB in two in N.NN s");
    assert!(tree(&sandbox.path().join("one")) == first);
    assert!(tree(&sandbox.path().join("two")) == second);
    assert!(first[Path::new("holes")].0.ends_with("sparse: true"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--deep"]), @r"
    intact: 1-2
    3 blocks, 300 kB decoded and compared
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "explain", "store", "2"]), @r"
    checkpoint 2, compared with checkpoint 1
    bytes        N.NN MB
    zeros        N.NN MB (77.8 %)
    unchanged     294 kB (21.8 %)
    known            0 B (0.0 %)
    new          N.NN kB (0.5 %)
    stored SIZE
      N.NN kB of the new bytes encoded against checkpoint 1, in 25 B
    its bytes are from  1: 294 kB, 2: N.NN kB
    chains              0: 294 kB, 1: N.NN kB
    codecs              prefix: N.NN kB, raw: 294 kB
      holes (plain): N.NN MB, N.NN MB zeros, 0 B of this checkpoint, 5 B of earlier ones
      image (plain): 300 kB, N.NN kB of this checkpoint, 294 kB of earlier ones
      side/restart.sh (plain): 13 B, 0 B of this checkpoint, 13 B of earlier ones
    ");
    // The same again costs a manifest and no pack.
    sandbox.stdout(&["checkpoint", "add", "store", "two", "--name", "job"]);
    assert_eq!(names(&sandbox.path().join("store/packs")), ["1.pack", "2.pack"]);
}

#[test]
fn what_cannot_be_kept_is_said() {
    let _settled = settled();
    let sandbox = stored(0);
    sandbox.write("ckpt/image", "x");
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.path().join("ckpt/socket")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    checkpoint 1: 1 B, 1 B new, SIZE stored in N.NN s
    ------- stderr -------
    socket is skipped: it is a socket
    ");
    let added: Value =
        serde_json::from_str(&sandbox.stdout(&["checkpoint", "add", "store", "ckpt", "--json"])).unwrap();
    assert_eq!(added["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn streams_come_back_through_pipes() {
    let sandbox = stored(0);
    let stream = noise(5, 300_000);
    let added = fed(&sandbox, &["checkpoint", "add", "store", "-", "--name", "lammps", "--json"], &stream);
    let added: Value = serde_json::from_slice(&added.stdout).unwrap();
    assert_eq!(
        (&added["number"], &added["bytes"], &added["new_bytes"]),
        (&1.into(), &300_000.into(), &300_000.into())
    );
    let empty = fed(&sandbox, &["checkpoint", "add", "store", "-"], b"");
    assert_eq!(empty.status.code(), Some(1));
    assert!(String::from_utf8(empty.stderr).unwrap().contains("the stream is empty"));
    fed(&sandbox, &["checkpoint", "add", "store", "-"], b"short");
    let out = |checkpoint: &str| {
        let output = sandbox.output(&["checkpoint", "restore", "store", checkpoint, "-o", "-"]);
        assert!(output.status.success() && output.stderr.is_empty());
        output.stdout
    };
    assert!(out("1") == stream);
    assert!(out("latest") == b"short");
    // In a folder, the file has the name of the stream.
    sandbox.stdout(&["checkpoint", "restore", "store", "1", "-o", "one"]);
    assert_eq!(names(&sandbox.path().join("one")), ["lammps"]);
    sandbox.stdout(&["checkpoint", "restore", "store", "2", "-o", "two"]);
    assert_eq!(names(&sandbox.path().join("two")), ["checkpoint"]);
    // One file of several.
    sandbox.write("ckpt/rank/0", "zero");
    sandbox.write("ckpt/rank/1", "one");
    sandbox.stdout(&["checkpoint", "add", "store", "ckpt"]);
    assert_eq!(
        sandbox.stdout(&["checkpoint", "restore", "store", "3", "--file", "rank/1", "-o", "-"]),
        "one"
    );
}

#[test]
fn a_stream_is_compared_with_the_last_one_of_its_name() {
    let sandbox = stored(0);
    let add = |name: &str, stream: &[u8]| -> Value {
        let output = fed(&sandbox, &["checkpoint", "add", "store", "-", "--name", name, "--json"], stream);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    add("a", &noise(1, 100_000));
    add("b", &noise(2, 100_000));
    let again = add("a", &noise(1, 100_000));
    assert_eq!((&again["compared_with"], &again["unchanged_bytes"]), (&1.into(), &100_000.into()));
    // What another one has is known, also under another name.
    let known = add("c", &noise(2, 100_000));
    assert_eq!((&known["known_bytes"], &known["new_bytes"]), (&100_000.into(), &0.into()));
}

#[test]
fn json_has_what_people_read() {
    let sandbox = stored(2);
    let json = |arguments: &[&str]| -> Value {
        let output = sandbox.output(&[&["checkpoint"], arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let init = json(&["init", "other"]);
    let mut settings = init["settings"].clone();
    assert!(settings.as_object_mut().unwrap().remove("seed").is_some_and(|seed| seed.is_u64()));
    insta::assert_snapshot!(settings, @r#"{"depth":2,"epsilon":0.2,"format":2,"next":1,"removed":[],"whole_every":0}"#);
    let list = json(&["list", "store"]);
    assert_eq!((list.as_array().unwrap().len(), &list[1]["bytes"]), (2, &200_704.into()));
    insta::assert_snapshot!(keys(&list[1]), @"bytes created damaged files name number pinned stored");
    let restored = json(&["restore", "store", "2", "-o", "out"]);
    insta::assert_snapshot!(restored, @r#"{"bytes":200704,"files":1,"folder":"out","number":2}"#);
    let verified = json(&["verify", "store"]);
    insta::assert_snapshot!(keys(&verified), @"blocks bytes checkpoints deep problems unneeded warnings worn");
    assert!(verified["problems"].as_array().unwrap().is_empty());
    let pruned = json(&["prune", "store", "--keep-last", "1", "--dry-run"]);
    assert_eq!((&pruned["removed"], &pruned["kept"]), (&[1].as_slice().into(), &[2].as_slice().into()));
    insta::assert_snapshot!(keys(&json(&["stats", "store"])), @"blocks bytes checkpoints chunks codecs damaged depths index manifests packs prunable ratio unneeded");
    let explained = json(&["explain", "store", "latest"]);
    insta::assert_snapshot!(keys(&explained), @"bases brought bytes codecs comparisons depths earlier files known new number stored unchanged zero");
    assert_eq!(
        (&explained["earlier"], &explained["files"][0]["path"], &explained["bytes"]),
        (&1.into(), &"image".into(), &200_704.into())
    );
    let wrong = json(&["restore", "store", "9", "-o", "out9"]);
    insta::assert_snapshot!(wrong, @r#"{"errors":[{"code":"checkpoint::no_checkpoint","help":"available: 1-2","message":"there is no checkpoint 9"}]}"#);
}

#[test]
fn a_checkpoint_that_is_stored_in_full_has_no_base() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["checkpoint", "init", "store", "--whole-every", "2"]);
    sandbox.write("ckpt/image", image(1));
    let add = |more: &[&str]| {
        let arguments = ["checkpoint", "add", "store", "ckpt", "--json"];
        let added: Value = serde_json::from_str(&sandbox.stdout(&[&arguments, more].concat())).unwrap();
        (added["new_bytes"].as_u64().unwrap(), added["compared_with"].as_u64().unwrap())
    };
    let added = [add(&[]), add(&[]), add(&[]), add(&["--whole"]), add(&[])];
    assert_eq!(added, [(200_704, 0), (0, 1), (200_704, 0), (200_704, 0), (0, 4)]);
    let explained = sandbox.stdout(&["checkpoint", "explain", "store", "4"]);
    assert!(explained.starts_with("checkpoint 4, compared with no other: stored in full\n"), "{explained}");
    (1..=3).for_each(|number| {
        let _ = fs::remove_file(sandbox.path().join(format!("store/packs/{number}.pack")));
    });
    assert!(sandbox.seen(&["checkpoint", "verify", "store"]).contains("\nintact: 4-5\n"));
}

#[test]
fn prune_keeps_what_rules_and_pins_keep() {
    let _settled = settled();
    let sandbox = stored(6);
    let prune = |more: &[&str]| sandbox.seen(&[&["checkpoint", "prune", "store"], more].concat());
    let before = names(&sandbox.path().join("store/packs"));
    let would = prune(&["--keep-last", "1", "--keep-every", "3", "--pin", "2", "--dry-run"]);
    insta::assert_snapshot!(would, @r"
    would be removed: 1, 4-5
    would be kept: 2-3, 6
    would be freed: about N.NN kB
    ");
    assert_eq!(names(&sandbox.path().join("store/packs")), before);
    insta::assert_snapshot!(prune(&["--keep-last", "1", "--keep-every", "3", "--pin", "2"]), @r"
    removed: 1, 4-5
    kept: 2-3, 6
    freed: SIZE
    ");
    insta::assert_snapshot!(prune(&["--remove", "2"]), @r"
    ------- stderr -------
    error[checkpoint::pinned]: checkpoint 2 is pinned
      help: unpin it first; nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(prune(&["--unpin", "2", "--remove", "3"]), @r"
    removed: 3
    kept: 2, 6
    freed: SIZE
    ");
    for number in [2, 6] {
        let file = ["checkpoint", "restore", "store", &number.to_string(), "-o", "-"];
        assert!(sandbox.output(&file).stdout == image(number));
    }
    insta::assert_snapshot!(prune(&["--keep-last", "1"]), @r"
    removed: 2
    kept: 6
    freed: SIZE
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--deep"]), @r"
    intact: 6
    2 blocks, 205 kB decoded and compared
    ");
    // Numbers are never given twice.
    sandbox.stdout(&["checkpoint", "add", "store", "ckpt"]);
    insta::assert_snapshot!(prune(&["--remove", "6"]), @r"
    removed: 6
    kept: 7
    freed: SIZE
    ");
}

/// Images of DMTCP in `images/files/CHECKPOINT`.
pub(crate) fn generate(sandbox: &Sandbox, checkpoints: u32) {
    let checkpoints = format!("checkpoints={checkpoints}");
    let words = r#"changes=[{ kind = "words", pages = 0.3, words = 0.1 }]"#;
    let with = ["-p", &checkpoints, "-p", "bytes=262144", "-p", "shared=0.25", "-p", words];
    sandbox
        .stdout(&[&["exec", "checkpoint/generate", "--out", "images", "-p", "ranks=2"][..], &with].concat());
}

#[test]
fn images_are_compared_by_pages() {
    let _settled = settled();
    let sandbox = stored(0);
    generate(&sandbox, 2);
    for checkpoint in names(&sandbox.path().join("images/files")) {
        sandbox.stdout(&["checkpoint", "add", "store", &format!("images/files/{checkpoint}")]);
    }
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "explain", "store", "2"]), @r"
    checkpoint 2, compared with checkpoint 1
    bytes         705 kB
    zeros         119 kB (16.9 %)
    unchanged     516 kB (73.2 %)
    known            0 B (0.0 %)
    new          69.6 kB (9.9 %)
    stored SIZE
      69.6 kB of the new bytes encoded against checkpoint 1, in N.NN kB
    its bytes are from  1: 516 kB, 2: 69.6 kB
    chains              0: 516 kB, 1: 69.6 kB
    codecs              mixed: 516 kB, prefix: 69.6 kB
      rank-0000.dmtcp (dmtcp): 352 kB, 59.7 kB zeros, 45.1 kB of this checkpoint, 248 kB of earlier ones
      rank-0001.dmtcp (dmtcp): 352 kB, 59.7 kB zeros, 24.6 kB of this checkpoint, 268 kB of earlier ones
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "stats", "store"]), @r"
    checkpoints  2
    bytes        N.NN MB
    on disk SIZE
      manifests SIZE
      index      N.NN kB
    chunks       151 in 4 blocks
      prefix       2 blocks, 69.6 kB in N.NN kB (18.5 ×)
      mixed        2 blocks, 489 kB in 234 kB (2.1 ×)
    chains       0: 2 blocks, 1: 2 blocks
    a prune would free nothing: all data is needed
    ");
    for (number, checkpoint) in (1..).zip(names(&sandbox.path().join("images/files"))) {
        let out = format!("out-{number}");
        sandbox.stdout(&["checkpoint", "restore", "store", &number.to_string(), "-o", &out]);
        let out = sandbox.path().join(out);
        assert!(tree(&out) == tree(&sandbox.path().join("images/files").join(checkpoint)));
    }
}

#[test]
fn a_pipeline_makes_a_series_and_stores_it() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", PIPELINE);
    let store = |name: &str| {
        let jobs = &name[5..];
        let seen = sandbox.seen(&["run", "p.toml", "--store", name, "-j", jobs]);
        assert!(!seen.contains("error"), "{seen}");
        let shown = sandbox.stdout(&["show", "kept", "--store", name, "--json"]);
        (serde_json::from_str::<Value>(&shown).unwrap(), seen)
    };
    let (one, seen) = store("runs-1");
    let (four, _) = store("runs-4");
    insta::assert_snapshot!(seen, @"
    p: 3 ran in N.NN s
      kept         out
      report       runs-1/reports/p.html
    ------- stderr -------
      images: 3 checkpoints of 2 ranks, 2088960 bytes
      ran        images  N.NN s
      deltas: adca immediate, blocks of 4096 bytes: 1349384 of 2088960 bytes stored, 0.001 s of writing, depth 2, bases 1 2
      ran        deltas  N.NN s
      kept: 0001: 255618 of 696320 bytes stored
      kept: 0002: 8546 of 696320 bytes stored
      kept: 0003: 11415 of 696320 bytes stored
      ran        kept  N.NN s
    ");
    assert_eq!(one["digest"], four["digest"]);
    assert_eq!(one["artifact"]["metrics"], four["artifact"]["metrics"]);
    // What the stage stored is a store like any other.
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "out/files"]), @"
    number  added                     bytes     stored            files  name
         1  TIME     696 kB     256 kB     2.7 ×      2
         2  TIME     696 kB    N.NN kB    81.5 ×      2
         3  TIME     696 kB    11.4 kB    61.0 ×      2
    ");
    sandbox.stdout(&["checkpoint", "restore", "out/files", "3", "-o", "three"]);
    assert_eq!(names(&sandbox.path().join("three")), ["rank-0000.dmtcp", "rank-0001.dmtcp"]);
}

/// Images of two ranks, compared and stored.
const PIPELINE: &str = r#"
[stages.images]
uses = "checkpoint/generate"
with = { checkpoints = 3, ranks = 2, bytes = 262144, changes = [{ kind = "words", pages = 0.3, words = 0.1 }] }

[stages.deltas]
uses  = "checkpoint/delta"
with  = { path = "${stages.images.checkpoints.path}/files", align = "address", rules = ["adca"], reading = ["immediate"] }

[stages.kept]
uses  = "checkpoint/store"
needs = { checkpoints = "images" }
save  = { checkpoint-store = "out" }
"#;

/// Every rule on every series, computed and stored.
#[test]
fn adca_compares_the_rules_on_generated_series() {
    let sandbox = Sandbox::new();
    let run = ["run", "adca", "-p", "bytes=65536", "-p", "checkpoints=3", "--no-report", "--json"];
    let ran: Value = serde_json::from_str(&sandbox.stdout(&run)).unwrap();
    let cells = ran["cells"].as_array().unwrap();
    let cell =
        |id: String| cells.iter().find(|cell| cell["cell"] == id).unwrap_or_else(|| panic!("{id}: {ran}"));
    for series in ["solver", "molecules", "database", "settled"] {
        let metrics = &cell(format!("{series}-deltas"))["outputs"]["deltas"]["metrics"];
        let stored = |rule: &str| metrics[format!("stored_bytes_{rule}_4096")].as_f64().unwrap();
        for rule in ["first", "incremental", "adca_literal", "adca_immediate"] {
            assert!(stored("optimum") <= stored(rule), "{series}: {rule}");
            cell(format!("{series}-stored[rule={}]", rule.replace('_', "-")));
        }
        cell(format!("{series}-stored[rule=block-wise]"));
    }
}
