//! `hopmap checkpoint` with images and stores that are damaged: what is lost is named, and nothing else is.

use std::fs;

use crate::checkpoint::{fed, generate, image, names, noise, settled, stored};
use crate::sandbox::Sandbox;

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
    error[checkpoint::cut]: ckpt/rank-0001.dmtcp cannot be added
      `-> the image is incomplete: the last record is missing at byte 348160
      help: the program was killed, or is still writing: add the checkpoint when it is complete; nothing was stored
    [exit code 1]
    ");
    sandbox.write("ckpt/rank-0001.dmtcp", &whole[..whole.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::cut]: ckpt/rank-0001.dmtcp cannot be added
      `-> the image is incomplete: the last record is missing at byte 176128
      help: the program was killed, or is still writing: add the checkpoint when it is complete; nothing was stored
    [exit code 1]
    ");
    let stream = fed(&sandbox, &["checkpoint", "add", "store", "-"], &whole[..whole.len() - 4096]);
    assert_eq!(stream.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(stream.stderr).unwrap(), @r"
    error[checkpoint::cut]: checkpoint cannot be added
      `-> the image is incomplete: the last record is missing at byte 348160
      help: the program was killed, or is still writing: add the checkpoint when it is complete; nothing was stored
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
        assert!(seen.contains("store/store.json cannot be used: "), "{seen}");
    }
    sandbox.write("store/store.json", settings.replace("\"format\": 2", "\"format\": 4"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_settings]: store/store.json cannot be used: its format is 4, but this hopmap supports 1 to 3
      help: it is a small text file: recreate it as `hopmap checkpoint init` does in an empty folder, with the old `seed`, a `next` above all numbers, and without `removed`
    [exit code 1]
    ");
    sandbox.write("store/store.json", "{\n  \"format\": 1\n");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_settings]: store/store.json cannot be used: EOF while parsing an object at line 3 column 0
      help: it is a small text file: recreate it as `hopmap checkpoint init` does in an empty folder, with the old `seed`, a `next` above all numbers, and without `removed`
    [exit code 1]
    ");
    sandbox.write("store/store.json", settings.replace("0.2", "3"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_settings]: store/store.json cannot be used: `epsilon` must be from 0 to 1
      help: it is a small text file: recreate it as `hopmap checkpoint init` does in an empty folder, with the old `seed`, a `next` above all numbers, and without `removed`
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
    store/packs/2.pack, block 0 at byte 16: its checksum does not match
      checkpoint 2: N.NN kB in image
    damaged: 2
    intact: 1, 3
    3 blocks, 209 kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "two"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_block]: block 0 of store/packs/2.pack cannot be used: its checksum does not match
      help: `hopmap checkpoint verify` lists the checkpoints that need it; all others are intact
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "-"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_block]: block 0 of store/packs/2.pack cannot be used: its checksum does not match
      help: `hopmap checkpoint verify` lists the checkpoints that need it; all others are intact
    [exit code 1]
    ");
    for number in [1, 3] {
        let file = ["checkpoint", "restore", "store", &number.to_string(), "-o", "-"];
        assert!(sandbox.output(&file).stdout == image(number));
    }
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
    assert!(sandbox.seen(&["checkpoint", "verify", "store", "--only", "1,3"]).starts_with("intact: 1, 3\n"));
}

#[test]
fn a_manifest_that_is_cut_off_and_a_pack_that_is_gone() {
    let _settled = settled();
    let sandbox = stored(3);
    let manifest = fs::read(sandbox.path().join("store/checkpoints/2")).unwrap();
    sandbox.write("store/checkpoints/2", &manifest[..manifest.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]).lines().filter(|line| line.contains("damaged")).collect::<String>(), @"     2  damaged: checkpoint 2 cannot be read: store/checkpoints/2: its checksum does not match");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "out"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_manifest]: checkpoint 2 cannot be read: store/checkpoints/2: its checksum does not match
      help: restore another one; `hopmap checkpoint verify` lists those that are intact
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    store/checkpoints/2: its checksum does not match
      checkpoint 2: no file can be restored
    damaged: 2
    intact: 1, 3
    packs that no checkpoint needs: 2
    3 blocks, 209 kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "2"]), @r"
    ------- stderr -------
    error[checkpoint::needs_unknown]: the data that the kept checkpoints need is unknown: checkpoint 2 cannot be read: store/checkpoints/2: its checksum does not match
      help: also remove the checkpoints that `hopmap checkpoint verify` lists as damaged; nothing was changed
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
    intact: none
    2 blocks, N.NN kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "3", "-o", "out"]), @r"
    ------- stderr -------
    error[checkpoint::damaged_pack]: store/packs/1.pack cannot be used: it is missing
      help: `hopmap checkpoint verify` lists the checkpoints that need it; all others are intact
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

#[test]
fn a_damaged_end_of_a_pack_is_repaired_from_the_other() {
    let sandbox = stored(2);
    let whole = fs::read(sandbox.path().join("store/packs/2.pack")).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    sandbox.write("store/packs/2.pack", damaged);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--discard"]), @r"
    intact: 1-2
    2 blocks, 205 kB compared
    blocks discarded: 0
    packs repaired: 2
    ------- stderr -------
    store/packs/2.pack: one of the two copies of its end is damaged; nothing is lost yet, and `verify --discard` repairs it
    [exit code 1]
    ");
    assert!(fs::read(sandbox.path().join("store/packs/2.pack")).unwrap() == whole);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    intact: 1-2
    2 blocks, 205 kB compared
    ");
}

#[test]
fn a_manifest_that_is_lost_is_named_until_it_is_given_up() {
    let _settled = settled();
    let sandbox = stored(3);
    fs::remove_file(sandbox.path().join("store/checkpoints/2")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    store/checkpoints/2: it is missing
      checkpoint 2: no file can be restored
    damaged: 2
    intact: 1, 3
    3 blocks, 209 kB compared
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    checkpoint 4: 201 kB, 0 B new, SIZE stored in N.NN s
    ------- stderr -------
    store/checkpoints: the manifests of 2 are missing
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "1"]), @r"
    ------- stderr -------
    error[checkpoint::needs_unknown]: the data that the kept checkpoints need is unknown: checkpoint 2 cannot be read: store/checkpoints/2: it is missing
      help: also remove the checkpoints that `hopmap checkpoint verify` lists as damaged; nothing was changed
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "1", "--remove", "2"]), @r"
    removed: 1-3
    kept: 4
    freed: SIZE
    ");
    assert!(sandbox.seen(&["checkpoint", "verify", "store"]).starts_with("intact: 4\n"));
    fs::remove_file(sandbox.path().join("store/checkpoints/4")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::not_together]: the manifests of checkpoints 4 are missing in store/checkpoints
      help: check that the whole store is mounted and was copied: `packs`, `checkpoints` and `store.json` belong together; no pack was removed
    [exit code 1]
    ");
}

/// A limit on the length of files is what a full disk is: nothing of more bytes can be written.
#[test]
fn data_that_a_prune_cannot_free_on_a_full_disk_is_reported() {
    let _settled = settled();
    let sandbox = Sandbox::new();
    sandbox.stdout(&["checkpoint", "init", "store"]);
    // The second is in a block of its own; the blocks of the first are all needed in part or not at all.
    let first = noise(3, 6_000_000);
    for (number, bytes) in [(1, &first[..]), (2, &first[3_000_000..])] {
        sandbox.write(&format!("ckpt{number}/image"), bytes);
        sandbox.stdout(&["checkpoint", "add", "store", &format!("ckpt{number}"), "--quiet"]);
    }
    let limited = |kilobytes: u32| {
        let program = sandbox.command(&[]);
        let mut command = std::process::Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kilobytes * 2);
        command.args(["-c", &script]).arg(program.get_program()).args(["checkpoint", "prune", "store"]);
        command.args(["--keep-last", "1"]).current_dir(sandbox.path()).env("NO_COLOR", "1").output().unwrap()
    };
    let output = limited(100);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("the disk is too full to rewrite pack 1: that takes about "), "{said}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("packs not rewritten: 1\n"), "{said}");
    let restored = sandbox.output(&["checkpoint", "restore", "store", "2", "-o", "-"]).stdout;
    assert!(restored == first[3_000_000..]);
    // Data that was removed nevertheless is not damage, and is stored again.
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--deep", "--quiet"]), @"");
    let added = sandbox.seen(&["checkpoint", "add", "store", "ckpt1", "--name", "again"]);
    assert!(added.starts_with("checkpoint 3: ") && !added.contains("stderr"), "{added}");
    assert!(sandbox.output(&["checkpoint", "restore", "store", "3", "-o", "-"]).stdout == first);
    sandbox.stdout(&["checkpoint", "prune", "store", "--remove", "3"]);
    assert_eq!(limited(100_000).status.code(), Some(0));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--deep", "--quiet"]), @"");
}
