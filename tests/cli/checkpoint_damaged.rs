//! `hopmap checkpoint` with images and stores that are damaged: what is lost is named, and nothing else is.

use std::fs;

use crate::checkpoint::{fed, generate, image, names, settled, stored};

#[test]
fn an_image_that_is_cut_off() {
    let sandbox = stored(0);
    generate(&sandbox, 1);
    let folder = sandbox.path().join("images/files");
    let folder = folder.join(&names(&folder)[0]);
    let whole = fs::read(folder.join("rank-0001.dmtcp")).unwrap();
    sandbox.write("ckpt/rank-0001.dmtcp", &whole[..whole.len() - 4096]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error: ckpt/rank-0001.dmtcp cannot be added
      `-> the image is incomplete: the last record is missing at byte 348160
      help: the program was killed, or is still writing: add the checkpoint when it is whole; nothing was stored
    [exit code 1]
    ");
    sandbox.write("ckpt/rank-0001.dmtcp", &whole[..whole.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error: ckpt/rank-0001.dmtcp cannot be added
      `-> the image is incomplete: the last record is missing at byte 176128
      help: the program was killed, or is still writing: add the checkpoint when it is whole; nothing was stored
    [exit code 1]
    ");
    let stream = fed(&sandbox, &["checkpoint", "add", "store", "-"], &whole[..whole.len() - 4096]);
    assert_eq!(stream.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(stream.stderr).unwrap(), @r"
    error: checkpoint cannot be added
      `-> the image is incomplete: the last record is missing at byte 348160
      help: the program was killed, or is still writing: add the checkpoint when it is whole; nothing was stored
    ");
    assert!(names(&sandbox.path().join("store/packs")).is_empty());
    assert!(names(&sandbox.path().join("store/checkpoints")).is_empty());
}

#[test]
fn settings_that_cannot_be_read() {
    let sandbox = stored(1);
    let settings = sandbox.read("store/store.json");
    for broken in ["", "{}"] {
        sandbox.write("store/store.json", broken);
        let seen = sandbox.seen(&["checkpoint", "list", "store"]);
        assert!(seen.contains("error: store/store.json cannot be used: "), "{seen}");
    }
    sandbox.write("store/store.json", settings.replace("\"format\": 2", "\"format\": 3"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error: store/store.json cannot be used: its format is 3, and this hopmap knows 1 to 2
      help: it is a small text file: write it again as `hopmap checkpoint init` does in an empty folder, with a `next` above all numbers and without `removed`
    [exit code 1]
    ");
    sandbox.write("store/store.json", "{\n  \"format\": 1\n");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error: store/store.json cannot be used: EOF while parsing an object at line 3 column 0
      help: it is a small text file: write it again as `hopmap checkpoint init` does in an empty folder, with a `next` above all numbers and without `removed`
    [exit code 1]
    ");
    sandbox.write("store/store.json", settings.replace("0.2", "3"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error: store/store.json cannot be used: `epsilon` has to be from 0 to 1
      help: it is a small text file: write it again as `hopmap checkpoint init` does in an empty folder, with a `next` above all numbers and without `removed`
    [exit code 1]
    ");
}

#[test]
fn a_flipped_byte_is_named_and_the_others_come_back() {
    let sandbox = stored(3);
    // In the payload of the one page that checkpoint 2 alone has.
    let mut pack = fs::read(sandbox.path().join("store/packs/2.pack")).unwrap();
    pack[1000] ^= 1;
    sandbox.write("store/packs/2.pack", pack);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    store/packs/2.pack, block 0 at byte 16: its checksum is another
      checkpoint 2: N.NN kB in image
    damaged: 2
    whole: 1, 3
    3 blocks, 209 kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "two"]), @r"
    ------- stderr -------
    error: block 0 of store/packs/2.pack cannot be used: its checksum is another
      help: `hopmap checkpoint verify` tells which checkpoints need it; the others are whole
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "-"]), @r"
    ------- stderr -------
    error: block 0 of store/packs/2.pack cannot be used: its checksum is another
      help: `hopmap checkpoint verify` tells which checkpoints need it; the others are whole
    [exit code 1]
    ");
    for number in [1, 3] {
        let file = ["checkpoint", "restore", "store", &number.to_string(), "-o", "-"];
        assert!(sandbox.output(&file).stdout == image(number));
    }
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
    assert!(sandbox.seen(&["checkpoint", "verify", "store", "--only", "1,3"]).starts_with("whole: 1, 3\n"));
}

#[test]
fn a_manifest_that_is_cut_off_and_a_pack_that_is_gone() {
    let _settled = settled();
    let sandbox = stored(3);
    let manifest = fs::read(sandbox.path().join("store/checkpoints/2")).unwrap();
    sandbox.write("store/checkpoints/2", &manifest[..manifest.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]).lines().filter(|line| line.contains("damaged")).collect::<String>(), @"     2  damaged: checkpoint 2 cannot be read: store/checkpoints/2: its checksum is another");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "out"]), @r"
    ------- stderr -------
    error: checkpoint 2 cannot be read: store/checkpoints/2: its checksum is another
      help: restore another one; `hopmap checkpoint verify` tells which are whole
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    store/checkpoints/2: its checksum is another
      checkpoint 2: nothing of it can be restored
    damaged: 2
    whole: 1, 3
    packs that no checkpoint needs: 2
    3 blocks, 209 kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "2"]), @r"
    ------- stderr -------
    error: what the checkpoints that stay need is not known: checkpoint 2 cannot be read: store/checkpoints/2: its checksum is another
      help: remove the checkpoints that `hopmap checkpoint verify` says are damaged as well; nothing was changed
    [exit code 1]
    ");
    sandbox.write("store/checkpoints/2", manifest);
    fs::remove_file(sandbox.path().join("store/packs/1.pack")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    store/packs/1.pack: it is missing
      checkpoint 1: 201 kB in image
      checkpoint 2: 201 kB in image
      checkpoint 3: 201 kB in image
    damaged: 1-3
    whole: none
    2 blocks, N.NN kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "3", "-o", "out"]), @r"
    ------- stderr -------
    error: store/packs/1.pack cannot be used: it is missing
      help: `hopmap checkpoint verify` tells which checkpoints need it; the others are whole
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "stats", "store"]), @r"
    checkpoints  3
    bytes        602 kB
    on disk SIZE
      manifests SIZE
      index      528 B
    chunks       2 in 2 blocks
      prefix       2 blocks, N.NN kB in N.NN kB (1.0 ×)
    chains       1: 2 blocks
    ------- stderr -------
    store/packs/1.pack cannot be used: it is missing
    [exit code 1]
    ");
    // What is lost is stored again by the next one.
    sandbox.seen(&["checkpoint", "add", "store", "ckpt"]);
    assert!(sandbox.output(&["checkpoint", "restore", "store", "4", "-o", "-"]).stdout == image(3));
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}
