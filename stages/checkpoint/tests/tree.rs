//! Folders listed and recreated, and entries that lead out of them or are inconsistent.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use hopmap_checkpoint::tree::{Entry, EntryKind, Time, Tree, TreeError, finish, is_unchanged, plant, walk};
use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, mkfifoat, utimensat};
use rustix::process::geteuid;

/// Creates a folder with all kinds of entries.
fn sample(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let mode =
        |name: &str, mode| fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
    fs::create_dir_all(folder.join("a/closed/deep")).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    write("a/closed/deep/one", b"one");
    write("a-b", b"sorts between a and a/");
    write("script", b"#!/bin/sh\n");
    write("nothing", b"");
    fs::write(folder.join(OsString::from_vec(b"not\xffutf-8\n".to_vec())), b"x").unwrap();
    fs::hard_link(folder.join("a-b"), folder.join("z")).unwrap();
    symlink("a/closed", folder.join("link")).unwrap();
    symlink("/nowhere/at/all", folder.join("dangling")).unwrap();
    symlink("..", folder.join("a/up")).unwrap();
    mkfifoat(CWD, folder.join("pipe"), Mode::RWXU).unwrap();
    drop(UnixListener::bind(folder.join("socket")).unwrap());
    let mut sparse = File::create(folder.join("sparse")).unwrap();
    sparse.write_all(&[1; 4096]).unwrap();
    sparse.seek(SeekFrom::Start(10 << 20)).unwrap();
    sparse.write_all(b"end").unwrap();
    sparse.set_len(20 << 20).unwrap();
    mode("script", 0o4755);
    mode("a-b", 0o600);
    mode("a/closed/deep/one", 0o444);
    time(&folder.join("script"), 1_000_000_000, 123_456_789);
    time(&folder.join("dangling"), -5, 999_999_999);
    time(&folder.join("empty"), 7, 1);
    time(&folder.join("a/closed"), 8, 2);
    mode("a/closed", 0o555);
    mode("empty", 0o700);
}

fn time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Makes everything writable, so that the folder can be removed.
fn open_again(folder: &Path) {
    fs::set_permissions(folder.join("a/closed"), Permissions::from_mode(0o755)).unwrap();
}

fn paths(tree: &Tree) -> Vec<&Path> {
    tree.entries.iter().map(|entry| entry.path.as_path()).collect()
}

fn find<'t>(tree: &'t Tree, path: &str) -> &'t Entry {
    tree.entries.iter().find(|entry| entry.path == Path::new(path)).unwrap()
}

#[test]
fn everything_is_found() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path());
    let tree = walk(folder.path()).unwrap();
    let names = [
        "",
        "a",
        "a-b",
        "a/closed",
        "a/closed/deep",
        "a/closed/deep/one",
        "a/up",
        "dangling",
        "empty",
        "link",
    ];
    assert_eq!(paths(&tree)[..10], names.map(Path::new));
    assert_eq!(tree.left_out, [(PathBuf::from("socket"), "it is a socket")]);
    assert_eq!(find(&tree, "z").kind, EntryKind::HardLink(2));
    assert_eq!(find(&tree, "dangling").kind, EntryKind::Symlink(PathBuf::from("/nowhere/at/all")));
    assert_eq!(find(&tree, "dangling").modified, Time { seconds: -5, nanoseconds: 999_999_999 });
    assert_eq!(find(&tree, "pipe").kind, EntryKind::Fifo);
    assert_eq!((find(&tree, "script").mode, find(&tree, "script").length()), (0o4755, 10));
    assert_eq!(find(&tree, "script").modified, Time { seconds: 1_000_000_000, nanoseconds: 123_456_789 });
    assert_eq!(find(&tree, "a").owner, geteuid().as_raw());
    let EntryKind::File { length, holes } = &find(&tree, "sparse").kind else { panic!("a file") };
    assert_eq!(*length, 20 << 20);
    // Holes are optional: some file systems do not report them.
    let expected = [(4096, (10 << 20) - 4096), ((10 << 20) + 4096, (10 << 20) - 4096)];
    assert!(holes.is_empty() || *holes == expected, "{holes:?}");
    open_again(folder.path());
}

#[test]
fn a_folder_is_recreated_exactly() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path());
    let tree = walk(folder.path()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    plant(copy.path(), &tree.entries).unwrap();
    for entry in tree.entries.iter().filter(|entry| entry.length() > 0) {
        let bytes = fs::read(folder.path().join(&entry.path)).unwrap();
        // Zeros are holes already.
        let data = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let mut file = File::options().write(true).open(copy.path().join(&entry.path)).unwrap();
        if entry.path == Path::new("sparse") {
            file.write_all(&bytes[..4096]).unwrap();
            file.seek(SeekFrom::Start(10 << 20)).unwrap();
            file.write_all(&bytes[10 << 20..data]).unwrap();
        } else {
            file.write_all(&bytes).unwrap();
        }
    }
    finish(copy.path(), &tree.entries).unwrap();
    let again = walk(copy.path()).unwrap();
    assert_eq!(again.entries, tree.entries);
    for entry in tree.entries.iter().filter(|entry| entry.length() > 0) {
        assert!(
            fs::read(folder.path().join(&entry.path)).unwrap()
                == fs::read(copy.path().join(&entry.path)).unwrap()
        );
    }
    assert_eq!(fs::metadata(copy.path().join("z")).unwrap().nlink(), 2);
    open_again(folder.path());
    open_again(copy.path());
}

#[test]
fn set_user_id_bits_are_set_only_with_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let is_root = geteuid().is_root();
    let stranger = Entry { owner: 4711, group: 4712, mode: 0o6755, ..file("a") };
    let own = Entry {
        owner: geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
        mode: 0o6755,
        ..file("b")
    };
    let entries = [stranger, own];
    plant(folder.path(), &entries).unwrap();
    let planted = fs::metadata(folder.path().join("a")).unwrap();
    assert_eq!((planted.mode() & 0o7777, planted.uid()), (0o600, geteuid().as_raw()));
    finish(folder.path(), &entries).unwrap();
    let [a, b] = ["a", "b"].map(|name| fs::metadata(folder.path().join(name)).unwrap());
    assert_eq!(a.mode() & 0o7777, if is_root { 0o6755 } else { 0o755 });
    assert_eq!(a.uid(), if is_root { 4711 } else { geteuid().as_raw() });
    assert_eq!(b.mode() & 0o7777, 0o6755);
}

fn entry(path: &str, kind: EntryKind) -> Entry {
    let (owner, group) = (geteuid().as_raw(), rustix::process::getegid().as_raw());
    Entry { path: PathBuf::from(path), kind, mode: 0o755, owner, group, modified: Time::default() }
}

fn file(path: &str) -> Entry {
    entry(path, EntryKind::File { length: 3, holes: Vec::new() })
}

fn link(path: &str, target: &Path) -> Entry {
    entry(path, EntryKind::Symlink(target.to_owned()))
}

/// Tries to create entries in a folder next to another one. Neither may get anything.
fn refuse(entries: &[Entry]) -> TreeError {
    let all = tempfile::tempdir().unwrap();
    let folder = all.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::create_dir(all.path().join("other")).unwrap();
    let error = plant(&folder, entries).unwrap_err();
    assert_eq!(finish(&folder, entries).unwrap_err().to_string(), error.to_string());
    for untouched in ["folder", "other"] {
        assert_eq!(fs::read_dir(all.path().join(untouched)).unwrap().count(), 0);
    }
    assert_eq!(fs::read_dir(all.path()).unwrap().count(), 2);
    error
}

#[test]
fn nothing_leads_out_of_the_folder() {
    for path in ["/tmp/evil", "..", "../other/evil", "a/../../other/evil", "a/.."] {
        let entries = [entry("a", EntryKind::Folder), file(path)];
        assert!(matches!(refuse(&entries), TreeError::Outside(..)), "{path}");
    }
}

#[test]
fn inconsistent_entries_are_rejected() {
    let folder = || entry("a", EntryKind::Folder);
    let hard = |path, first| entry(path, EntryKind::HardLink(first));
    let holes = |holes| entry("f", EntryKind::File { length: 100, holes });
    let other = Path::new("../other");
    let cases = [
        vec![folder(), file("a//b")],
        vec![folder(), file("a/./b")],
        vec![folder(), file("a/")],
        vec![folder(), file("a/b\0c")],
        vec![folder(), file(&format!("a/{}", "x".repeat(256)))],
        vec![file("a/b"), folder()],
        vec![file("a"), file("a/b")],
        vec![link("a", other), file("a/evil")],
        vec![link("a", other), folder(), file("a/evil")],
        vec![folder(), link("a", other), file("a/evil")],
        vec![file("a"), file("a")],
        vec![file("")],
        vec![file("a"), entry("", EntryKind::Folder)],
        vec![hard("a", 0)],
        vec![hard("a", 1), file("b")],
        vec![folder(), hard("b", 0)],
        vec![link("a", other), hard("b", 0)],
        vec![file("a"), hard("b", 7)],
        vec![link("a", Path::new(""))],
        vec![link("a", Path::new("x\0y"))],
        vec![holes(vec![(90, 11)])],
        vec![holes(vec![(10, 10), (15, 10)])],
        vec![holes(vec![(5, u64::MAX)])],
        vec![entry("f", EntryKind::File { length: u64::MAX, holes: Vec::new() })],
        vec![Entry { mode: 0o10_000, ..file("a") }],
        vec![Entry { owner: u32::MAX, ..file("a") }],
        vec![Entry { modified: Time { seconds: 0, nanoseconds: 1_000_000_000 }, ..file("a") }],
    ];
    for entries in cases {
        assert!(matches!(refuse(&entries), TreeError::Contradiction { .. }), "{entries:?}");
    }
}

#[test]
fn existing_files_are_not_written_to() {
    let all = tempfile::tempdir().unwrap();
    let (folder, other) = (all.path().join("folder"), all.path().join("other"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&other).unwrap();
    symlink(&other, folder.join("a")).unwrap();
    symlink(other.join("evil"), folder.join("f")).unwrap();
    for entries in [vec![entry("a", EntryKind::Folder), file("a/evil")], vec![file("f")]] {
        assert!(matches!(plant(&folder, &entries), Err(TreeError::Io { .. })));
    }
    // Links that were created meanwhile are not followed either.
    assert!(matches!(finish(&folder, &[file("f")]), Err(TreeError::Io { .. })));
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}

#[test]
fn a_file_that_changed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"one").unwrap();
    let before = fs::metadata(&path).unwrap();
    assert!(is_unchanged(&before, &fs::metadata(&path).unwrap()));
    fs::write(&path, b"more").unwrap();
    assert!(!is_unchanged(&before, &fs::metadata(&path).unwrap()));
    fs::remove_file(&path).unwrap();
    fs::write(folder.path().join("holds the number"), b"").unwrap();
    fs::write(&path, b"one").unwrap();
    assert!(!is_unchanged(&before, &fs::metadata(&path).unwrap()));
}

#[test]
fn a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(walk(&folder.path().join("missing")), Err(TreeError::Io { action: "read", .. })));
    fs::write(folder.path().join("file"), b"").unwrap();
    assert!(matches!(walk(&folder.path().join("file")), Err(TreeError::Io { .. })));
    assert!(matches!(plant(&folder.path().join("missing"), &[]), Err(TreeError::Io { .. })));
}

/// Entries of all kinds with paths that often collide.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "..", ".", "", "c"]), 1..4);
    let kind = prop_oneof![
        3 => Just(EntryKind::Folder),
        2 => Just(EntryKind::File { length: 5, holes: vec![(0, 5)] }),
        1 => prop::sample::select(vec!["..", "../other", "a", "/"]).prop_map(|to| EntryKind::Symlink(PathBuf::from(to))),
        1 => (0..4_u32).prop_map(EntryKind::HardLink),
        1 => Just(EntryKind::Fifo),
    ];
    prop::collection::vec((path, kind).prop_map(|(path, kind)| entry(&path.join("/"), kind)), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_created_outside_of_the_folder(entries in entries()) {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::create_dir(all.path().join("other")).unwrap();
        match plant(&folder, &entries) {
            Ok(()) => {
                finish(&folder, &entries).unwrap();
                let made = entries.iter().filter(|entry| !entry.path.as_os_str().is_empty()).count();
                prop_assert_eq!(walk(&folder).unwrap().entries.len(), made + 1);
            }
            Err(_) => prop_assert_eq!(fs::read_dir(&folder).unwrap().count(), 0),
        }
        prop_assert_eq!(fs::read_dir(all.path().join("other")).unwrap().count(), 0);
        prop_assert_eq!(fs::read_dir(all.path()).unwrap().count(), 2);
    }
}
