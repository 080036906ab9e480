//! The stage `checkpoint/delta`: parameters, inputs and errors.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hopmap_checkpoint::{DeltaParams, DeltaStage};
use hopmap_model::{Context, DeltaRule, Deltas, Error, Inputs, Outcome, Stage};
use serde_json::{Value, json};

/// Blocks of 256 bytes, each filled with a letter.
fn image(blocks: &str) -> Vec<u8> {
    blocks.bytes().flat_map(|letter| [letter; 256]).collect()
}

/// Checkpoints as folders with one image each.
fn series(images: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, blocks) in (1..).zip(images) {
        let checkpoint = folder.path().join(format!("ckpt_{number}"));
        fs::create_dir(&checkpoint).unwrap();
        fs::write(checkpoint.join("image"), image(blocks)).unwrap();
    }
    folder
}

fn params(series: &Path, mut more: Value) -> DeltaParams {
    more["path"] = json!(series);
    serde_json::from_value(more).unwrap()
}

fn deltas(series: &Path, more: Value) -> Result<Arc<Deltas>, Error> {
    let params = params(series, more);
    DeltaStage::check(&params)?;
    DeltaStage::reads(&params)?;
    match DeltaStage::run(params, Inputs::new(), &Context::detached())? {
        Outcome::Done(outputs) => Ok(Arc::clone(outputs.get("deltas").unwrap()).downcast().unwrap()),
        other => panic!("{other:?}"),
    }
}

/// An error with its hint and its causes.
fn refused(series: &Path, more: Value) -> String {
    let error = deltas(series, more).unwrap_err();
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    format!("{} ({})", causes.join(": "), error.help().map(|help| help.to_string()).unwrap_or_default())
}

#[test]
fn files_of_the_series_are_what_it_reads() {
    let folder = series(&["ab", "ac"]);
    let read = DeltaStage::reads(&params(folder.path(), json!({}))).unwrap();
    assert_eq!(read.iter().map(|file| file.name()).collect::<Vec<_>>(), ["ckpt_1/image", "ckpt_2/image"]);
}

#[test]
fn new_files_are_stored_in_full_and_removed_files_take_nothing() {
    let folder = series(&["ab", "ab", "ab", "ab"]);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ckpt_2/new"), image("x")).unwrap();
    fs::write(at("ckpt_3/new"), image("x")).unwrap();
    fs::write(at("ckpt_3/empty"), []).unwrap();
    fs::remove_file(at("ckpt_4/image")).unwrap();
    fs::write(at("ckpt_4/new"), image("xy")).unwrap();
    std::os::unix::fs::symlink("new", at("ckpt_4/link")).unwrap();
    let found = deltas(folder.path(), json!({ "block_bytes": [256], "rules": ["incremental"] })).unwrap();
    let rows: Vec<_> =
        found.checkpoints.iter().map(|row| (row.full_bytes, row.changed_blocks, row.stored_bytes)).collect();
    assert_eq!(rows, [(512, 2, 512), (768, 1, 280), (768, 0, 0), (512, 1, 280)]);
}

#[test]
fn order_and_duplicates_of_lists_are_ignored() {
    let folder = series(&["aaaabcdef", "hhhhhcdef", "iiiihidef", "jjjjhijjj"]);
    let once = json!({ "block_bytes": [256, 512], "rules": ["first", "adca"], "optimum": true });
    let twice = json!({ "block_bytes": [512, 256, 256], "rules": ["adca", "first", "adca"],
        "reading": ["immediate", "literal"], "optimum": true });
    let (once, twice) = (deltas(folder.path(), once).unwrap(), deltas(folder.path(), twice).unwrap());
    assert_eq!(once, twice);
    let rules: Vec<_> = once.rules.iter().map(|row| (row.block, row.rule)).collect();
    let expected = [DeltaRule::First, DeltaRule::AdcaLiteral, DeltaRule::AdcaImmediate, DeltaRule::Optimum];
    assert_eq!(rules[..4], expected.map(|rule| (256, rule)));
    assert_eq!(rules[4..], expected.map(|rule| (512, rule)));
}

#[test]
fn the_write_time_is_latency_plus_size_over_bandwidth() {
    let folder = series(&["ab", "ac"]);
    let more = json!({ "block_bytes": [256], "rules": ["first"], "write_latency_s": 0.5, "write_bytes_per_s": 100.0 });
    let found = deltas(folder.path(), more).unwrap();
    assert_eq!(found.checkpoints.iter().map(|row| row.write_s).collect::<Vec<_>>(), [0.5 + 5.12, 0.5 + 2.8]);
    assert!((found.metrics["E_first_256"] - 8.92).abs() < 1e-12);
    // By default, E is proportional to the bytes.
    let found = deltas(folder.path(), json!({ "block_bytes": [256] })).unwrap();
    assert!((found.metrics["E_first_256"] - (512.0 + 280.0) / 1e9).abs() < 1e-18);
}

#[test]
fn invalid_parameters_are_rejected() {
    let folder = series(&["ab", "ac"]);
    for (more, message) in [
        (json!({ "block_bytes": [1000] }), "`block_bytes` = 1000 is out of range"),
        (json!({ "block_bytes": [128] }), "`block_bytes` = 128 is out of range"),
        (json!({ "block_bytes": [131_072] }), "`block_bytes` = 131072 is out of range"),
        (json!({ "block_bytes": [] }), "`block_bytes` is an empty list"),
        (json!({ "rules": [] }), "`rules` is an empty list"),
        (json!({ "reading": [] }), "`reading` is an empty list"),
        (json!({ "epsilon": 2.0 }), "`epsilon` = 2 is out of range"),
        (json!({ "epsilon": -0.1 }), "`epsilon` = -0.1 is out of range"),
        (json!({ "write_bytes_per_s": 0.0 }), "`write_bytes_per_s` = 0 is out of range"),
        (json!({ "write_latency_s": -1.0 }), "`write_latency_s` = -1 is out of range"),
        (
            json!({ "write_latency_s": 1.0, "target": folder.path() }),
            "`write_latency_s` and `target` cannot be combined",
        ),
    ] {
        let refused = refused(folder.path(), more.clone());
        assert!(refused.contains(message), "{more}: {refused}");
    }
    assert!(deltas(folder.path(), json!({ "rules": [], "optimum": true })).is_ok());
    assert!(deltas(folder.path(), json!({ "rules": ["first"], "reading": [] })).is_ok());
}

#[test]
fn folders_without_a_series_are_rejected() {
    let one = series(&["ab"]);
    let found = refused(one.path(), json!({}));
    assert!(
        found.contains("only one checkpoint") && found.contains("give the folder that contains"),
        "{found}"
    );
    assert!(refused(&one.path().join("ckpt_1/image"), json!({})).contains("cannot read"));
    assert!(refused(&one.path().join("none"), json!({})).contains("No such file"));
    assert!(refused(tempfile::tempdir().unwrap().path(), json!({})).contains("no checkpoints found"));
    fs::create_dir(one.path().join("ckpt_2")).unwrap();
    assert!(refused(one.path(), json!({})).contains("ckpt_2 has no files"));
}

#[test]
fn a_truncated_image_is_rejected_only_when_aligned_by_address() {
    let folder = series(&["ab", "ac"]);
    let mut header = vec![0; 10_000];
    header[..28].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n");
    fs::write(folder.path().join("ckpt_2/image"), header).unwrap();
    let found = refused(folder.path(), json!({ "align": "address" }));
    assert!(found.contains("ckpt_2/image") && found.contains("incomplete"), "{found}");
    assert!(found.contains("8192") && found.contains("align = \"position\""), "{found}");
    assert!(deltas(folder.path(), json!({})).is_ok());
}
