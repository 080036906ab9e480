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
    let more = more.iter().flat_map(|value| ["-p", value]);
    let more: Vec<&str> = more.collect();
    sandbox.seen(&[&["exec", "checkpoint/delta", "--out", "deltas", "-p", "path=series"][..], &more].concat())
}

fn table(sandbox: &Sandbox, name: &str) -> String {
    sandbox.stdout(&["show", "deltas", "--table", name, "--format", "csv"])
}

/// Every checkpoint changes `aaaa`; the others change once.
const IMAGES: [&str; 4] = ["aaaabcdef", "hhhhhcdef", "iiiihidef", "jjjjhijjj"];

#[test]
fn rules_choose_bases_and_the_table_lists_the_stored_bytes() {
    let sandbox = Sandbox::new();
    series(&sandbox, &IMAGES);
    insta::assert_snapshot!(delta(&sandbox, &["block_bytes=[256]", "optimum=true"]), @r"
    deltas DIGEST deltas
    ------- stderr -------
    first, blocks of 256 bytes: 7904 of 9216 bytes stored, 0.000 s of writing, depth 1, bases 1 1 1
    incremental, blocks of 256 bytes: 7064 of 9216 bytes stored, 0.000 s of writing, depth 3, bases 1 2 3
    adca literal, blocks of 256 bytes: 7904 of 9216 bytes stored, 0.000 s of writing, depth 1, bases 1 1 1
    adca immediate, blocks of 256 bytes: 7344 of 9216 bytes stored, 0.000 s of writing, depth 2, bases 1 1 3
    optimum, blocks of 256 bytes: 7064 of 9216 bytes stored, 0.000 s of writing, depth 3, bases 1 2 3
    the first checkpoint suffices as base, blocks of 256 bytes: the best rule saves 15.0 % of its deltas, and epsilon is 20 %
    ");
    insta::assert_snapshot!(table(&sandbox, "rules"), @r"
    rule,reading,block,bases,sum_of_bases,base_changes,full_bytes,stored_bytes,write_s,depth
    first,,256,1 1 1,3,0,9216,7904,7.904e-6,1
    incremental,,256,1 2 3,6,2,9216,7064,7.064e-6,3
    adca,literal,256,1 1 1,3,0,9216,7904,7.904e-6,1
    adca,immediate,256,1 1 3,5,1,9216,7344,7.344e-6,2
    optimum,,256,1 2 3,6,2,9216,7064,7.064e-6,3
    ");
    insta::assert_snapshot!(table(&sandbox, "checkpoints"), @r"
    rule,reading,block,checkpoint,name,base,full_bytes,blocks,changed_blocks,stored_bytes,depth,write_s,saving
    first,,256,1,ckpt_1,,2304,9,9,2304,0,2.304e-6,
    first,,256,2,ckpt_2,1,2304,9,5,1400,1,1.4e-6,
    first,,256,3,ckpt_3,1,2304,9,6,1680,1,1.68e-6,
    first,,256,4,ckpt_4,1,2304,9,9,2520,1,2.52e-6,
    incremental,,256,1,ckpt_1,,2304,9,9,2304,0,2.304e-6,
    incremental,,256,2,ckpt_2,1,2304,9,5,1400,1,1.4e-6,
    incremental,,256,3,ckpt_3,2,2304,9,5,1400,2,1.4e-6,
    incremental,,256,4,ckpt_4,3,2304,9,7,1960,3,1.96e-6,
    adca,literal,256,1,ckpt_1,,2304,9,9,2304,0,2.304e-6,
    adca,literal,256,2,ckpt_2,1,2304,9,5,1400,1,1.4e-6,0.0
    adca,literal,256,3,ckpt_3,1,2304,9,6,1680,1,1.68e-6,0.16666666666666666
    adca,literal,256,4,ckpt_4,1,2304,9,9,2520,1,2.52e-6,0.2222222222222222
    adca,immediate,256,1,ckpt_1,,2304,9,9,2304,0,2.304e-6,
    adca,immediate,256,2,ckpt_2,1,2304,9,5,1400,1,1.4e-6,0.0
    adca,immediate,256,3,ckpt_3,1,2304,9,6,1680,1,1.68e-6,0.16666666666666666
    adca,immediate,256,4,ckpt_4,3,2304,9,7,1960,2,1.96e-6,0.2222222222222222
    optimum,,256,1,ckpt_1,,2304,9,9,2304,0,2.304e-6,
    optimum,,256,2,ckpt_2,1,2304,9,5,1400,1,1.4e-6,
    optimum,,256,3,ckpt_3,2,2304,9,5,1400,2,1.4e-6,
    optimum,,256,4,ckpt_4,3,2304,9,7,1960,3,1.96e-6,
    ");
    insta::assert_snapshot!(sandbox.seen(&["show", "deltas"]), @r"
    deltas  deltas
    digest  DIGEST
      E_adca_immediate_256         0.000007344
      E_adca_literal_256           0.000007904
      E_first_256                  0.000007904
      E_incremental_256            0.000007064
      E_optimum_256                0.000007064
      base_changes_adca_immediate_256 1
      base_changes_adca_literal_256 0
      base_changes_first_256       0
      base_changes_incremental_256 2
      base_changes_optimum_256     2
      block_overhead               24
      checkpoints                  4
      depth_adca_immediate_256     2
      depth_adca_literal_256       1
      depth_first_256              1
      depth_incremental_256        3
      depth_optimum_256            3
      epsilon                      0.2
      first_suffices_256           1
      full_bytes                   9216
      saving_against_first_256     0.15
      stored_bytes_adca_immediate_256 7344
      stored_bytes_adca_literal_256 7904
      stored_bytes_first_256       7904
      stored_bytes_incremental_256 7064
      stored_bytes_optimum_256     7064
      sum_of_bases_adca_immediate_256 5
      sum_of_bases_adca_literal_256 3
      sum_of_bases_first_256       3
      sum_of_bases_incremental_256 6
      sum_of_bases_optimum_256     6
      write_bytes_per_s            1000000000
      write_latency_s              0
    table checkpoints: 20 rows (rule, reading, block, checkpoint, name, base, full_bytes, blocks, changed_blocks, stored_bytes, depth, write_s, saving)
    table rules: 5 rows (rule, reading, block, bases, sum_of_bases, base_changes, full_bytes, stored_bytes, write_s, depth)
    ");
    // Another order of the same lists, and lists that name something twice, ask for the same.
    let first = table(&sandbox, "checkpoints");
    let again = ["block_bytes=[256, 256]", "optimum=true", "rules=[\"adca\", \"first\", \"incremental\"]"];
    delta(&sandbox, &again);
    assert_eq!(table(&sandbox, "checkpoints"), first);
    // One value is a list of one.
    let lists = ["block_bytes=[256]", "rules=[\"adca\"]", "reading=[\"literal\"]"];
    delta(&sandbox, &lists);
    let of_lists = table(&sandbox, "checkpoints");
    delta(&sandbox, &["block_bytes=256", "rules=adca", "reading=literal"]);
    assert_eq!(table(&sandbox, "checkpoints"), of_lists);
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
    delta(&sandbox, &["block_bytes=[256]", "rules=[\"incremental\"]", "block_overhead_bytes=0"]);
    let rows = table(&sandbox, "checkpoints");
    insta::assert_snapshot!(rows, @r"
    rule,reading,block,checkpoint,name,base,full_bytes,blocks,changed_blocks,stored_bytes,depth,write_s,saving
    incremental,,256,1,ckpt_1,,512,2,2,512,0,5.12e-7,
    incremental,,256,2,ckpt_2,1,768,3,1,256,1,2.56e-7,
    incremental,,256,3,ckpt_3,2,768,3,0,0,2,0.0,
    incremental,,256,4,ckpt_4,3,512,2,1,256,3,2.56e-7,
    ");
}

#[test]
fn images_are_compared_at_addresses_if_one_asks_for_it() {
    let sandbox = Sandbox::new();
    let area = |address: u64, letter: u8| dmtcp_area(address, &[letter; 4096]);
    let (text, heap) = (area(0x1000, b't'), area(0x8000, b'h'));
    sandbox.write("series/1/ckpt.dmtcp", dmtcp(&[&text, &heap]));
    sandbox.write("series/2/ckpt.dmtcp", dmtcp(&[&text, &area(0x4000, b'n'), &heap]));
    let stored = |align: &str| {
        delta(&sandbox, &[align, "rules=[\"first\"]", "block_overhead_bytes=0"]);
        let shown: Value = serde_json::from_str(&sandbox.stdout(&["show", "deltas", "--json"])).unwrap();
        shown["artifact"]["metrics"]["stored_bytes_first_4096"].clone()
    };
    // The first image has 7 blocks. At positions everything behind the new area is another block; at addresses one page is new and
    // the 2 headers and 4 records are stored.
    assert_eq!(stored("align=position"), f64::from((7 + 5) * 4096));
    assert_eq!(stored("align=address"), f64::from((7 + 1 + 6) * 4096));
    sandbox.write("series/3/ckpt.dmtcp", &dmtcp(&[&text, &heap])[..6 * 4096]);
    insta::assert_snapshot!(delta(&sandbox, &["align=address"]), @r#"
    ------- stderr -------
    error[checkpoint::file]: DIR/series/3/ckpt.dmtcp cannot be compared
      `-> the image is incomplete: the last record is missing at byte 24576
      help: with `align = "position"` images are compared like any other file, even if truncated
    [exit code 1]
    "#);
    assert!(!delta(&sandbox, &["align=position"]).contains("error"));
}

/// An image of DMTCP, format v4, with these areas.
fn dmtcp(areas: &[&[u8]]) -> Vec<u8> {
    let mut header = vec![0; 8192];
    header[..28].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n");
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
    let given = metrics(&["block_bytes=[256]", "write_latency_s=0.5", "write_bytes_per_s=100"]);
    assert_eq!(given["E_first_256"], 1.0 + 7.92);
    sandbox.write("disk/file", "");
    let measured = metrics(&["block_bytes=[256]", "target=disk"]);
    let seconds = |name: &str| measured[name].as_f64().unwrap();
    assert!(seconds("write_bytes_per_s") > 0.0 && seconds("write_latency_s") >= 0.0);
    let expected = 2.0 * seconds("write_latency_s") + (512.0 + 280.0) / seconds("write_bytes_per_s");
    assert!((seconds("E_first_256") / expected - 1.0).abs() < 1e-9);
    assert_eq!(std::fs::read_dir(sandbox.path().join("disk")).unwrap().count(), 1);
    let nowhere = delta(&sandbox, &["target=nowhere"]);
    assert!(nowhere.contains("cannot write DIR/nowhere\n"), "{nowhere}");
}

#[test]
fn folders_without_a_series_are_rejected() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(delta(&sandbox, &[]), @r"
    ------- stderr -------
    error[durable::io]: cannot read DIR/series
      `-> No such file or directory (os error 2)
    [exit code 1]
    ");
    std::fs::create_dir(sandbox.path().join("series")).unwrap();
    insta::assert_snapshot!(delta(&sandbox, &[]), @r"
    ------- stderr -------
    error[checkpoint::none]: no checkpoints found in DIR/series
      help: a series is a folder in which every checkpoint is a subfolder, or a file; names that begin with a dot are ignored
    [exit code 1]
    ");
    series(&sandbox, &["ab"]);
    insta::assert_snapshot!(delta(&sandbox, &[]), @r"
    ------- stderr -------
    error[checkpoint::one]: only one checkpoint found in DIR/series: ckpt_1
      help: a series needs at least two checkpoints: give the folder that contains them all
    [exit code 1]
    ");
    std::fs::create_dir(sandbox.path().join("series/ckpt_2")).unwrap();
    insta::assert_snapshot!(delta(&sandbox, &[]), @r"
    ------- stderr -------
    error[checkpoint::empty]: the checkpoint DIR/series/ckpt_2 has no files
      help: the program was killed while it wrote it, or it is not a checkpoint: remove it from the series
    [exit code 1]
    ");
}

#[test]
fn invalid_parameters_are_rejected() {
    let sandbox = Sandbox::new();
    series(&sandbox, &["ab", "ab"]);
    insta::assert_snapshot!(delta(&sandbox, &["block_bytes=[1000]"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `block_bytes` = 1000 is out of range
       ,-[-p:2:15]
     1 | path = "series"
     2 | block_bytes = [1000]
       :               ^^^|^^
       :                  `-- here
       `----
      help: allowed: 256, 512, 1024, … or 65536; default [4096]
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["rules=last"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `rules` must be one of `first`, `incremental`, `adca`, found `last`
       ,-[-p:2:9]
     1 | path = "series"
     2 | rules = "last"
       :         ^^^|^^
       :            `-- here
       `----
      help: rules: The rules that choose the base
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["block_bytes=[]"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `block_bytes` is an empty list
       ,-[-p:1:1]
     1 | ,-> path = "series"
     2 | |-> block_bytes = []
       : `---- here
       `----
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["epsilon=2"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `epsilon` = 2 is out of range
       ,-[-p:2:11]
     1 | path = "series"
     2 | epsilon = 2
       :           |
       :           `-- here
       `----
      help: allowed: 0 or more and below 1: a fraction of the delta; default 0.2
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["rules=[\"last\"]"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `rules[0]` must be one of `first`, `incremental`, `adca`, found `last`
       ,-[-p:2:10]
     1 | path = "series"
     2 | rules = ["last"]
       :          ^^^|^^
       :             `-- here
       `----
      help: rules: The rules that choose the base
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["write_bytes_per_s=0"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `write_bytes_per_s` = 0 is out of range
       ,-[-p:2:21]
     1 | path = "series"
     2 | write_bytes_per_s = 0
       :                     |
       :                     `-- here
       `----
      help: allowed: above 0 bytes per second
    [exit code 2]
    "#);
    insta::assert_snapshot!(delta(&sandbox, &["write_latency_s=1", "target=series"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `write_latency_s` and `target` cannot be combined: `target` measures it
       ,-[-p:1:1]
     1 | ,-> path = "series"
     2 | |   write_latency_s = 1
     3 | |-> target = "series"
       : `---- here
       `----
      help: omit `target` to use the given value, or omit the value to measure it
    [exit code 2]
    "#);
}

#[test]
fn the_pipeline_reports_what_each_rule_stores() {
    let sandbox = Sandbox::new();
    series(&sandbox, &IMAGES);
    let run = ["run", "checkpoint", "-p", "series=series", "-p", "block=[256, 512]", "--report", "r.html"];
    let seen = sandbox.seen(&run);
    for part in [
        "checkpoint: 3 ran in",
        "at-positions: adca immediate, blocks of 256 bytes: 7344 of 9216 bytes stored, 0.000 s of writing, depth 2, bases 1 1 3",
        "at-positions: first, blocks of 512 bytes: 7944 of 9216 bytes stored, 0.000 s of writing, depth 1, bases 1 1 1",
        "at-addresses: incremental, blocks of 256 bytes: 7064 of 9216 bytes stored, 0.000 s of writing, depth 3, bases 1 2 3",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let html = sandbox.read("r.html");
    for part in
        ["Deltas: at-positions", "Bytes stored by delta rules", "adca immediate: ", "Time to write all"]
    {
        assert!(html.contains(part), "the report does not show {part}");
    }
    // Nothing is done again until a checkpoint comes.
    assert!(sandbox.seen(&run).contains("nothing to do, 3 of 3 up to date"));
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
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    let delta = ["exec", "checkpoint/delta", "--out", "deltas", "-p", "path=series"];
    let output = sandbox.unprivileged(&delta).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("error") && said.contains("ckpt_2/image"), "{said}");
}

/// Rules for whole checkpoints, and the refusal of another one.
#[test]
fn a_store_with_a_rule_encodes_checkpoints_against_its_bases() {
    let sandbox = Sandbox::new();
    series(&sandbox, &IMAGES);
    sandbox.stdout(&["checkpoint", "init", "store", "--rule", "adca-immediate", "--block-bytes", "256"]);
    for number in 1..=4 {
        sandbox.stdout(&["checkpoint", "add", "store", &format!("series/ckpt_{number}")]);
    }
    let explained = sandbox.stdout(&["checkpoint", "explain", "store", "4"]);
    assert!(explained.contains("compared with checkpoint 3"), "{explained}");
    assert!(explained.contains("in 7 blocks, depth 2"), "{explained}");
    let refused = sandbox.seen(&["checkpoint", "add", "store", "series/ckpt_1", "--rule", "first"]);
    assert!(refused.contains("is `adca-immediate`, not `first`"), "{refused}");
    let refused = sandbox.seen(&["checkpoint", "init", "other", "--block-bytes", "256"]);
    assert!(refused.contains("require `--rule`"), "{refused}");
}
