//! `hopmap checkpoint` with what cannot be: one message with place and hint, the right exit code, and nothing left behind.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::checkpoint::{fed, generate, image, names, noise, settled, stored};
use crate::sandbox::Sandbox;

#[test]
fn folders_that_are_no_store() {
    let sandbox = Sandbox::new();
    sandbox.write("ckpt/image", "x");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "ckpt/image"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "ckpt"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "ckpt/image"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--depth", "17"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--epsilon", "2"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--epsilon", "nan"]), @"");
    assert_eq!(names(&sandbox.path()), ["ckpt"]);
    sandbox.stdout(&["checkpoint", "init", "store"]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "latest", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "stats", "store"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @"");
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}

#[test]
fn things_that_cannot_be_added() {
    let sandbox = stored(0);
    sandbox.write("file", "x");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "file"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "nowhere"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "-", "--name", "a/b"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "-", "--name", ".."]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "."]), @"");
    assert!(names(&sandbox.path().join("store/packs")).is_empty());
    assert!(names(&sandbox.path().join("store/checkpoints")).is_empty());
}

#[test]
fn an_image_that_is_cut_off() {
    let sandbox = stored(0);
    generate(&sandbox, 1);
    let folder = sandbox.path().join("images/files");
    let folder = folder.join(&names(&folder)[0]);
    let whole = fs::read(folder.join("rank-0001.dmtcp")).unwrap();
    sandbox.write("ckpt/rank-0001.dmtcp", &whole[..whole.len() - 4096]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @"");
    sandbox.write("ckpt/rank-0001.dmtcp", &whole[..whole.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @"");
    let stream = fed(&sandbox, &["checkpoint", "add", "store", "-"], &whole[..whole.len() - 4096]);
    assert_eq!(stream.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(stream.stderr).unwrap(), @"");
    assert!(names(&sandbox.path().join("store/packs")).is_empty());
    assert!(names(&sandbox.path().join("store/checkpoints")).is_empty());
}

#[test]
fn checkpoints_that_are_not_there_and_places_that_are_taken() {
    let sandbox = stored(2);
    for number in ["0", "99", "x", "4294967296", "-1"] {
        let seen = sandbox.seen(&["checkpoint", "restore", "store", number, "-o", "out"]);
        assert!(seen.ends_with("[exit code 2]\n"), "{seen}");
    }
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "0", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "x", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "explain", "store", "99"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store", "--only", "99"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "ckpt"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "ckpt/image"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "none/out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "-", "--file", "imag"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "out", "--file", "image"]), @"");
    sandbox.write("ckpt/second", "x");
    sandbox.stdout(&["checkpoint", "add", "store", "ckpt"]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "3", "-o", "-"]), @"");
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}

#[test]
fn prunes_that_say_nothing_or_too_much() {
    let sandbox = stored(2);
    let prune = |more: &[&str]| sandbox.seen(&[&["checkpoint", "prune", "store"], more].concat());
    insta::assert_snapshot!(prune(&[]), @"");
    insta::assert_snapshot!(prune(&["--keep-last", "0"]), @"");
    insta::assert_snapshot!(prune(&["--keep-every", "0"]), @"");
    insta::assert_snapshot!(prune(&["--keep-every", "7"]), @"");
    insta::assert_snapshot!(prune(&["--remove", "1,2"]), @"");
    insta::assert_snapshot!(prune(&["--remove", "9"]), @"");
    insta::assert_snapshot!(prune(&["--pin", "9", "--keep-last", "1"]), @"");
    insta::assert_snapshot!(prune(&["--unpin", "9"]), @"");
    insta::assert_snapshot!(prune(&["--pin", "1", "--remove", "1"]), @"");
    assert_eq!(names(&sandbox.path().join("store/checkpoints")), ["1", "2"]);
    sandbox.write("store/pins.json", "{");
    insta::assert_snapshot!(prune(&["--keep-last", "1"]), @"");
    assert_eq!(names(&sandbox.path().join("store/checkpoints")), ["1", "2"]);
}

#[test]
fn settings_that_cannot_be_read() {
    let sandbox = stored(1);
    let settings = sandbox.read("store/store.json");
    for broken in
        ["", "{}", &settings.replace("\"format\": 1", "\"format\": 2"), &settings.replace("0.2", "3")]
    {
        sandbox.write("store/store.json", broken);
        insta::allow_duplicates! {
            assert!(sandbox.seen(&["checkpoint", "list", "store"]).contains("error: "));
        }
    }
    sandbox.write("store/store.json", settings.replace("\"format\": 1", "\"format\": 2"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @"");
    sandbox.write("store/store.json", "{\n  \"format\": 1\n");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @"");
    sandbox.write("store/store.json", settings.replace("0.2", "3"));
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]), @"");
}

#[test]
fn a_flipped_byte_is_named_and_the_others_come_back() {
    let sandbox = stored(3);
    // In the payload of the one page that checkpoint 2 alone has.
    let mut pack = fs::read(sandbox.path().join("store/packs/2.pack")).unwrap();
    pack[1000] ^= 1;
    sandbox.write("store/packs/2.pack", pack);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "two"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "-"]), @"");
    for number in [1, 3] {
        let file = ["checkpoint", "restore", "store", &number.to_string(), "-o", "-"];
        assert!(sandbox.output(&file).stdout == image(number));
    }
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
    assert!(sandbox.seen(&["checkpoint", "verify", "store", "--only", "1,3"]).starts_with("whole: 1, 3\n"));
}

#[test]
fn a_manifest_that_is_cut_off_and_a_pack_that_is_gone() {
    let sandbox = stored(3);
    let manifest = fs::read(sandbox.path().join("store/checkpoints/2")).unwrap();
    sandbox.write("store/checkpoints/2", &manifest[..manifest.len() / 2]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "store"]).lines().filter(|line| line.contains("damaged")).collect::<String>(), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "2", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "2"]), @"");
    sandbox.write("store/checkpoints/2", manifest);
    fs::remove_file(sandbox.path().join("store/packs/1.pack")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "3", "-o", "out"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "stats", "store"]), @"");
    // What is lost is stored again by the next one.
    sandbox.seen(&["checkpoint", "add", "store", "ckpt"]);
    assert!(sandbox.output(&["checkpoint", "restore", "store", "4", "-o", "-"]).stdout == image(3));
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}

/// An `add -` that has the lock, and waits for more of its stream.
fn waiting(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.command(&["checkpoint", "add", "store", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&noise(9, 100_000)).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let packs = sandbox.path().join("store/packs");
    while !names(&packs).iter().any(|name| name.ends_with(".tmp")) {
        assert!(Instant::now() < end, "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn two_writers() {
    let _settled = settled();
    let sandbox = stored(1);
    let mut first = waiting(&sandbox);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @"");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "1"]), @"");
    // Who reads is not kept waiting.
    assert!(sandbox.output(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout == image(1));
    drop(first.stdin.take());
    assert!(
        sandbox.stdout(&["checkpoint", "add", "store", "ckpt", "--wait", "60"]).contains("checkpoint 3: ")
    );
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_stream_is_interrupted() {
    let sandbox = stored(1);
    let mut child = waiting(&sandbox);
    let process = child.id().to_string();
    let killed = std::process::Command::new("sh").args(["-c", &format!("kill -INT {process}")]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    insta::assert_snapshot!(said, @"");
    assert_eq!(names(&sandbox.path().join("store/packs")), ["1.pack"]);
    assert_eq!(names(&sandbox.path().join("store/checkpoints")), ["1"]);
}

#[test]
fn nobody_reads_to_the_end() {
    let sandbox = stored(0);
    // More than a pipe holds.
    fed(&sandbox, &["checkpoint", "add", "store", "-"], &noise(3, 4_000_000));
    let mut command = sandbox.command(&["checkpoint", "restore", "store", "1", "-o", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut begin = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
    assert_eq!(begin, noise(3, 10)[..]);
    let output = child.wait_with_output().unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"");
    assert_eq!(output.status.code(), Some(1));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = sandbox.command(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout(full).output();
    let output = output.unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_store_that_cannot_be_written_to() {
    let sandbox = stored(1);
    let mode = |mode: u32| {
        for folder in ["store", "store/packs", "store/checkpoints"] {
            fs::set_permissions(sandbox.path().join(folder), Permissions::from_mode(mode)).unwrap();
        }
        for file in ["store/lock", "store/readers"] {
            fs::set_permissions(sandbox.path().join(file), Permissions::from_mode(mode & 0o666)).unwrap();
        }
    };
    mode(0o555);
    if fs::write(sandbox.path().join("store/packs/.try"), "").is_ok() {
        eprintln!("skipped: this user may write everything");
        return;
    }
    let added = sandbox.seen(&["checkpoint", "add", "store", "ckpt"]);
    let restored = sandbox.output(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout;
    mode(0o755);
    assert!(added.contains("error: ") && added.contains("[exit code 1]"), "{added}");
    assert!(restored == image(1));
}
