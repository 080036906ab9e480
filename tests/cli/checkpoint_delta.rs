//! `checkpoint/delta` and the pipeline `checkpoint`.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Blocks of 256 bytes, each of one letter.
fn image(blocks: &str) -> Vec<u8> {
    blocks.bytes().flat_map(|letter| [letter; 256]).collect()
}

/// Checkpoints in `series/ckpt_N`, each with one image.
fn series(sandbox: &Sandbox, images: &[&str]) {
    for (number, blocks) in (1..).zip(images) {
        sandbox.write(&format!("series/ckpt_{number}/image"), image(blocks));
    }
}

fn delta(sandbox: &Sandbox, more: &[&str]) -> String {
    let more = more.iter().flat_map(|value| ["--with", value]);
    let more: Vec<&str> = more.collect();
    sandbox.seen(
        &[&["exec", "checkpoint/delta", "--out", "deltas", "--with", "series=series"][..], &more].concat(),
    )
}

fn table(sandbox: &Sandbox, name: &str) -> String {
    sandbox.stdout(&["show", "deltas", "--table", name, "--format", "csv"])
}

/// Every checkpoint changes `aaaa`; the others change once.
const IMAGES: [&str; 4] = ["aaaabcdef", "hhhhhcdef", "iiiihidef", "jjjjhijjj"];

#[test]
fn rules_choose_bases_and_the_table_says_what_they_store() {
    let sandbox = Sandbox::new();
    series(&sandbox, &IMAGES);
    insta::assert_snapshot!(delta(&sandbox, &["block=[256]", "optimum=true"]), @"");
    insta::assert_snapshot!(table(&sandbox, "rules"), @"");
    insta::assert_snapshot!(table(&sandbox, "checkpoints"), @"");
    insta::assert_snapshot!(sandbox.seen(&["show", "deltas"]), @"");
    // Another order of the same lists, and lists that name something twice, ask for the same.
    let first = table(&sandbox, "checkpoints");
    let again = ["block=[256, 256]", "optimum=true", "rules=[\"adca\", \"first\", \"incremental\"]"];
    delta(&sandbox, &again);
    assert_eq!(table(&sandbox, "checkpoints"), first);
}

#[test]
fn files_come_and_go() {
    let sandbox = Sandbox::new();
    series(&sandbox, &["ab", "ab", "ab", "ab"]);
    sandbox.write("series/ckpt_2/side/new", image("x"));
    sandbox.write("series/ckpt_3/side/new", image("x"));
    sandbox.write("series/ckpt_3/empty", "");
    std::fs::remove_file(sandbox.path().join("series/ckpt_4/image")).unwrap();
    sandbox.write("series/ckpt_4/side/new", image("xy"));
    symlink("image", sandbox.path().join("series/ckpt_4/link")).unwrap();
    sandbox.write("series/.done", "");
    delta(&sandbox, &["block=[256]", "rules=[\"incremental\"]", "block_overhead=0"]);
    let rows = table(&sandbox, "checkpoints");
    insta::assert_snapshot!(rows, @"");
}

#[test]
fn images_are_compared_at_addresses_if_one_asks_for_it() {
    let sandbox = Sandbox::new();
    let area = |address: u64, letter: u8| dmtcp_area(address, &[letter; 4096]);
    let (text, heap) = (area(0x1000, b't'), area(0x8000, b'h'));
    sandbox.write("series/1/ckpt.dmtcp", dmtcp(&[&text, &heap]));
    sandbox.write("series/2/ckpt.dmtcp", dmtcp(&[&text, &area(0x4000, b'n'), &heap]));
    let stored = |align: &str| {
        delta(&sandbox, &[align, "rules=[\"first\"]", "block_overhead=0"]);
        let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "deltas", "--json"])).unwrap();
        shown["artifact"]["metrics"]["stored_bytes_first_4096"].as_f64().unwrap() / 4096.0
    };
    // The first image has 7 blocks. At positions everything behind the new area is another block; at addresses one page is new and
    // the 2 headers and 4 records are stored.
    assert_eq!(stored("align=position"), 7.0 + 5.0);
    assert_eq!(stored("align=address"), 7.0 + 1.0 + 6.0);
    sandbox.write("series/3/ckpt.dmtcp", &dmtcp(&[&text, &heap])[..6 * 4096]);
    insta::assert_snapshot!(delta(&sandbox, &["align=address"]), @"");
    assert!(!delta(&sandbox, &["align=position"]).contains("error"));
}

/// An image of DMTCP, format v4, with these areas.
fn dmtcp(areas: &[&[u8]]) -> Vec<u8> {
    let mut header = vec![0; 8192];
    header[..27].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0");
    let mut end = vec![0; 4096];
    end[16..24].fill(0xff);
    [&header, &areas.concat()[..], &end].concat()
}

fn dmtcp_area(address: u64, bytes: &[u8]) -> Vec<u8> {
    let mut record = vec![0; 4096];
    let length = bytes.len() as u64;
    for (at, value) in [(0, address), (8, address + length), (16, length)] {
        record[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    [&record, bytes].concat()
}

#[test]
fn the_time_of_writing_is_given_or_measured() {
    let sandbox = Sandbox::new();
    series(&sandbox, &["ab", "ac"]);
    let metrics = |more: &[&str]| -> Value {
        let seen = delta(&sandbox, more);
        assert!(!seen.contains("error"), "{seen}");
        let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "deltas", "--json"])).unwrap();
        shown["artifact"]["metrics"].clone()
    };
    let given = metrics(&["block=[256]", "write_latency_s=0.5", "write_bytes_per_s=100"]);
    assert_eq!(given["E_first_256"], 1.0 + 5.12 + 2.8);
    sandbox.write("disk/file", "");
    let measured = metrics(&["block=[256]", "target=disk"]);
    let seconds = |name: &str| measured[name].as_f64().unwrap();
    assert!(seconds("write_bytes_per_s") > 0.0 && seconds("write_latency_s") >= 0.0);
    let expected = 2.0 * seconds("write_latency_s") + (512.0 + 280.0) / seconds("write_bytes_per_s");
    assert!((seconds("E_first_256") / expected - 1.0).abs() < 1e-9);
    assert_eq!(std::fs::read_dir(sandbox.path().join("disk")).unwrap().count(), 1);
    insta::assert_snapshot!(delta(&sandbox, &["target=nowhere"]), @"");
}

#[test]
fn what_is_wrong_is_said() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(delta(&sandbox, &[]), @"");
    std::fs::create_dir(sandbox.path().join("series")).unwrap();
    insta::assert_snapshot!(delta(&sandbox, &[]), @"");
    series(&sandbox, &["ab"]);
    insta::assert_snapshot!(delta(&sandbox, &[]), @"");
    std::fs::create_dir(sandbox.path().join("series/ckpt_2")).unwrap();
    insta::assert_snapshot!(delta(&sandbox, &[]), @"");
    series(&sandbox, &["ab", "ab"]);
    insta::assert_snapshot!(delta(&sandbox, &["block=[1000]"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["block=4096"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["block=[]"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["epsilon=2"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["rules=[\"last\"]"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["write_bytes_per_s=0"]), @"");
    insta::assert_snapshot!(delta(&sandbox, &["write_latency_s=1", "target=series"]), @"");
}

#[test]
fn the_pipeline_reports_what_each_rule_stores() {
    let sandbox = Sandbox::new();
    series(&sandbox, &IMAGES);
    let run = ["run", "checkpoint", "-p", "series=series", "-p", "block=[256, 512]", "--report", "r.html"];
    insta::assert_snapshot!(sandbox.seen(&run), @"");
    let html = sandbox.read("r.html");
    for part in
        ["Deltas: at-positions", "What deltas of a series store", "adca immediate: ", "Time to write all"]
    {
        assert!(html.contains(part), "the report does not show {part}");
    }
    // Nothing is done again until a checkpoint comes.
    assert!(sandbox.seen(&run).contains("cached"));
    series(&sandbox, &[&IMAGES[..], &["kkkkhijjj"]].concat());
    sandbox.stdout(&run);
    assert!(sandbox.read("r.html").contains("5 checkpoints"));
}

#[test]
fn an_unreadable_file_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    series(&sandbox, &["ab", "ab"]);
    let file = sandbox.path().join("series/ckpt_2/image");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0)).unwrap();
    if std::fs::read(&file).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    assert!(delta(&sandbox, &[]).contains("ckpt_2/image"));
}
