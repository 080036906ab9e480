//! `hopmap checkpoint` with what cannot be: one message with place and hint, the right exit code, and nothing left behind.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::checkpoint::{fed, image, names, noise, settled, stored};
use crate::sandbox::Sandbox;

#[test]
fn folders_without_a_store_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("ckpt/image", "x");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::no_store]: store is not a checkpoint store
      help: create one with `hopmap checkpoint init`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "list", "ckpt/image"]), @r"
    ------- stderr -------
    error[checkpoint::no_store]: ckpt/image is not a checkpoint store
      help: create one with `hopmap checkpoint init`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::not_empty]: ckpt is not an empty folder
      help: use a folder that does not exist yet; nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "ckpt/image"]), @r"
    ------- stderr -------
    error[durable::io]: cannot read ckpt/image
      `-> Not a directory (os error 20)
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--depth", "17"]), @r"
    ------- stderr -------
    error[checkpoint::setting]: `depth` must be from 0 to 16
      help: nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--epsilon", "2"]), @r"
    ------- stderr -------
    error[checkpoint::setting]: `epsilon` must be from 0 to 1
      help: nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store", "--epsilon", "nan"]), @r"
    ------- stderr -------
    error[checkpoint::setting]: `epsilon` must be from 0 to 1
      help: nothing was changed
    [exit code 2]
    ");
    assert_eq!(names(&sandbox.path()), ["ckpt"]);
    sandbox.stdout(&["checkpoint", "init", "store"]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "init", "store"]), @r"
    ------- stderr -------
    error[checkpoint::is_store]: store is already a checkpoint store
      help: add checkpoints with `hopmap checkpoint add`; nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "latest", "-o", "out"]), @r"
    ------- stderr -------
    error[command::mistake]: the store has no checkpoints
      help: add one with `hopmap checkpoint add`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "out"]), @r"
    ------- stderr -------
    error[checkpoint::no_checkpoint]: there is no checkpoint 1
      help: available: none
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "stats", "store"]), @r"
    checkpoints  0
    bytes        0 B
    on disk      0 B (–)
      manifests  0 B
      index      0 B
    chunks       0 in 0 blocks
    a prune would free nothing: all data is needed
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "verify", "store"]), @r"
    intact: none
    0 blocks, 0 B compared
    ");
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}

#[test]
fn things_that_cannot_be_added() {
    let sandbox = stored(0);
    sandbox.write("file", "x");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "file"]), @r"
    ------- stderr -------
    error[command::mistake]: file is a file
      help: a checkpoint is a folder; add a single file as a stream: `hopmap checkpoint add STORE - < FILE`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "nowhere"]), @r"
    ------- stderr -------
    error[checkpoint::io]: cannot read nowhere
      `-> No such file or directory (os error 2)
    [exit code 1]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "-", "--name", "a/b"]), @r"
    ------- stderr -------
    error[command::mistake]: `a/b` is not a file name
      help: use a name without `/`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "-", "--name", ".."]), @r"
    ------- stderr -------
    error[command::mistake]: `..` is not a file name
      help: use a name without `/`
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "."]), @r"
    ------- stderr -------
    error[command::mistake]: the store is in .
      help: use a checkpoint folder that does not contain the store
    [exit code 2]
    ");
    assert!(names(&sandbox.path().join("store/packs")).is_empty());
    assert!(names(&sandbox.path().join("store/checkpoints")).is_empty());
}

#[test]
fn checkpoints_that_are_not_there_and_places_that_are_taken() {
    let sandbox = stored(2);
    for number in ["99", "4294967296", "-1"] {
        let seen = sandbox.seen(&["checkpoint", "restore", "store", number, "-o", "out"]);
        assert!(seen.ends_with("[exit code 2]\n"), "{seen}");
    }
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "0", "-o", "out"]), @r"
    ------- stderr -------
    error[checkpoint::no_checkpoint]: there is no checkpoint 0
      help: available: 1-2
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "x", "-o", "out"]), @r"
    ------- stderr -------
    error[command::mistake]: `x` is neither the number of a checkpoint nor `latest`
      help: `hopmap checkpoint list` shows the numbers
    [exit code 2]
    ");
    insta::allow_duplicates! {
        for command in [["explain", "store", "99"].as_slice(), &["verify", "store", "--only", "99"]] {
            insta::assert_snapshot!(sandbox.seen(&[&["checkpoint"], command].concat()), @r"
            ------- stderr -------
            error[checkpoint::no_checkpoint]: there is no checkpoint 99
              help: available: 1-2
            [exit code 2]
            ");
        }
    }
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::not_empty]: ckpt is not an empty folder
      help: use a folder that does not exist yet; nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "ckpt/image"]), @r"
    ------- stderr -------
    error[checkpoint::not_empty]: ckpt/image is not an empty folder
      help: use a folder that does not exist yet; nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "-", "--file", "imag"]), @r"
    ------- stderr -------
    error[checkpoint::no_file]: checkpoint 1 has no file `imag`
      help: `hopmap checkpoint explain` lists its files
    [exit code 2]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "1", "-o", "out", "--file", "image"]), @r"
    ------- stderr -------
    error[command::mistake]: `--file` cannot be combined with an output folder
      help: `--file` writes one file to standard output: add `-o -`
    [exit code 2]
    ");
    sandbox.write("ckpt/second", "x");
    sandbox.stdout(&["checkpoint", "add", "store", "ckpt"]);
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "restore", "store", "3", "-o", "-"]), @r"
    ------- stderr -------
    error[checkpoint::several_files]: checkpoint 3 has 2 files, but only one can be written to a stream
      help: select one with --file, or restore to a folder
    [exit code 2]
    ");
    assert_eq!(names(&sandbox.path()), ["ckpt", "store"]);
}

#[test]
fn prunes_that_say_nothing_or_too_much() {
    let sandbox = stored(2);
    let prune = |more: &[&str]| sandbox.seen(&[&["checkpoint", "prune", "store"], more].concat());
    insta::assert_snapshot!(prune(&[]), @r"
    ------- stderr -------
    error[command::mistake]: no retention rule given
      help: select checkpoints to keep, such as `--keep-last 5`, or to remove, such as `--remove 3`
    [exit code 2]
    ");
    insta::assert_snapshot!(prune(&["--keep-last", "0"]), @r"
    ------- stderr -------
    error[checkpoint::setting]: `keep-last` must be 1 or more
      help: nothing was changed
    [exit code 2]
    ");
    insta::assert_snapshot!(prune(&["--keep-every", "0"]), @r"
    ------- stderr -------
    error[checkpoint::setting]: `keep-every` must be 1 or more
      help: nothing was changed
    [exit code 2]
    ");
    insta::allow_duplicates! {
        for all in [["--keep-every", "7"], ["--remove", "1,2"]] {
            insta::assert_snapshot!(prune(&all), @r"
            ------- stderr -------
            error[checkpoint::nothing_kept]: no checkpoint would be left
              help: keep at least one, or remove the folder of the store; nothing was changed
            [exit code 2]
            ");
        }
    }
    insta::allow_duplicates! {
        for missing in [["--remove", "9"].as_slice(), &["--pin", "9", "--keep-last", "1"], &["--unpin", "9"]] {
            insta::assert_snapshot!(prune(missing), @r"
            ------- stderr -------
            error[checkpoint::no_checkpoint]: there is no checkpoint 9
              help: available: 1-2
            [exit code 2]
            ");
        }
    }
    insta::assert_snapshot!(prune(&["--pin", "1", "--remove", "1"]), @r"
    ------- stderr -------
    error[checkpoint::pinned]: checkpoint 1 is pinned
      help: unpin it first; nothing was changed
    [exit code 2]
    ");
    assert_eq!(names(&sandbox.path().join("store/checkpoints")), ["1", "2"]);
    sandbox.write("store/pins.json", "{");
    insta::assert_snapshot!(prune(&["--keep-last", "1"]), @r#"
    ------- stderr -------
    error[checkpoint::damaged_pins]: store/pins.json cannot be used: EOF while parsing an object at line 1 column 1
      help: it lists the pinned checkpoints: recreate it, for example as `{"pinned": [3, 5]}`; nothing was changed
    [exit code 1]
    "#);
    assert_eq!(names(&sandbox.path().join("store/checkpoints")), ["1", "2"]);
}

/// An `add -` that has the lock, and waits for more of its stream.
fn waiting(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.command(&["checkpoint", "add", "store", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&noise(9, 100_000)).unwrap();
    let end = Instant::now() + Duration::from_mins(1);
    let packs = sandbox.path().join("store/packs");
    while !names(&packs).iter().any(|name| name.starts_with('.')) {
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
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "add", "store", "ckpt"]), @r"
    ------- stderr -------
    error[checkpoint::busy]: store/lock is locked by process N on HOST: hopmap checkpoint add
      help: wait for it to end: `--wait 600` waits up to ten minutes
    [exit code 75]
    ");
    insta::assert_snapshot!(sandbox.seen(&["checkpoint", "prune", "store", "--keep-last", "1"]), @r"
    ------- stderr -------
    error[checkpoint::busy]: store/lock is locked by process N on HOST: hopmap checkpoint add
      help: wait for it to end: `--wait 600` waits up to ten minutes
    [exit code 75]
    ");
    // Who reads is not kept waiting.
    assert!(sandbox.output(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout == image(1));
    drop(first.stdin.take());
    assert!(
        sandbox.stdout(&["checkpoint", "add", "store", "ckpt", "--wait", "60"]).contains("checkpoint 3: ")
    );
    assert!(first.wait().unwrap().success());
}

/// Sends a process Ctrl-C.
fn interrupt(child: &Child) {
    hopmap_test_support::signal(child.id(), "INT");
}

/// Waits until a process looks after Ctrl-C itself.
fn await_handler(child: &Child) {
    let end = Instant::now() + Duration::from_mins(1);
    let is_caught = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    };
    while !is_caught() {
        assert!(Instant::now() < end, "Ctrl-C is not looked after");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_waits_for_the_lock_is_interrupted() {
    let _settled = settled();
    let sandbox = stored(1);
    let mut first = waiting(&sandbox);
    insta::allow_duplicates! {
        for command in [
            ["checkpoint", "add", "store", "ckpt", "--wait", "600"].as_slice(),
            &["checkpoint", "prune", "store", "--keep-last", "1", "--wait", "600"],
        ] {
            let mut command = sandbox.command(command);
            let second = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            await_handler(&second);
            interrupt(&second);
            let output = second.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130));
            insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
            error[checkpoint::interrupted]: interrupted
              help: nothing was changed
            ");
        }
    }
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
}

#[test]
fn a_stream_is_interrupted() {
    let sandbox = stored(1);
    let mut child = waiting(&sandbox);
    // It stays open: waiting for a process closes what it holds.
    let _stream = child.stdin.take();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    insta::assert_snapshot!(said, @r"
    error[checkpoint::interrupted]: interrupted
      help: nothing was changed
    ");
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
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
    error[durable::io]: cannot write standard output
      `-> Broken pipe (os error 32)
    ");
    assert_eq!(output.status.code(), Some(1));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = sandbox.command(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout(full).output();
    let output = output.unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
    error[durable::io]: cannot write standard output
      `-> No space left on device (os error 28)
    ");
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
    let run = |arguments: &[&str]| sandbox.unprivileged(arguments).output().unwrap();
    let added = run(&["checkpoint", "add", "store", "ckpt"]);
    let restored = run(&["checkpoint", "restore", "store", "1", "-o", "-"]).stdout;
    mode(0o755);
    let said = String::from_utf8_lossy(&added.stderr);
    assert!(said.contains("error") && added.status.code() == Some(1), "{said}");
    assert!(restored == image(1));
}
