//! `docs/dmtcp/gzip`, called like DMTCP does, with a mock of `hopmap`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dmtcp/gzip");

/// Saves a stream uncompressed, under the name of its file; `full` in the store makes it fail after a few
/// bytes.
const STAND_IN: &str = r#"#!/bin/sh
case "$1 $2 $3" in
'--json checkpoint add')
    [ -f "$4/full" ] && { head -c 10 > /dev/null; echo 'the disk is full' >&2; exit 1; }
    [ "$5 $6 $8 $9" = '- --name --wait 3600' ] && cat > "$4/$7" && printf '{\n  "number": 7,\n  "bytes": 5\n}\n' ;;
'checkpoint restore '*)
    [ "$4 $5 $7 $8 $9 ${10}" = '7 --file --wait 3600 -o -' ] && cat "$3/$6" ;;
*) exit 2 ;;
esac
"#;

/// A folder with a store, a folder for PATH, and images.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        fs::create_dir(place.path("bin")).unwrap();
        fs::create_dir(place.path("my store")).unwrap();
        fs::write(place.path("my store/store.json"), "{}").unwrap();
        fs::copy(SCRIPT, place.path("bin/gzip")).unwrap();
        fs::write(place.path("bin/hopmap"), STAND_IN).unwrap();
        for program in ["bin/gzip", "bin/hopmap"] {
            fs::set_permissions(place.path(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn gzip(&self, store: Option<&str>) -> Command {
        let mut command = Command::new(self.path("bin/gzip"));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}/:{}:{path}", self.path("bin").display(), self.path("bin").display()));
        match store {
            Some(store) => command.env("HOPMAP_STORE", self.path(store)),
            None => command.env_remove("HOPMAP_STORE"),
        };
        command
    }

    /// Writes an image like DMTCP; returns the message and whether it succeeded.
    fn write(&self, store: Option<&str>, image: &[u8], to: &str) -> (String, bool) {
        let mut gzip = self.gzip(store);
        let out = File::create(self.path(to)).unwrap();
        let gzip = gzip.args(["-1", "-"]).stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped());
        let mut child = gzip.spawn().unwrap();
        child.stdin.take().unwrap().write_all(image).unwrap();
        let output = child.wait_with_output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.success())
    }

    /// Reads an image like DMTCP.
    fn read(&self, store: Option<&str>, from: &str) -> Vec<u8> {
        let from = File::open(self.path(from)).unwrap();
        let output = self.gzip(store).args(["-d", "-"]).stdin(from).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn length(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).unwrap().len()
    }
}

/// Incompressible bytes with zeros and line ends.
fn image() -> Vec<u8> {
    let mut image = b"DMTCP_CHECKPOINT_IMAGE_v4.0\n\0\0\n".to_vec();
    image.extend((0..300_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()));
    image
}

#[test]
fn an_image_is_stored_and_restored_by_its_ticket() {
    let place = Place::new();
    assert_eq!(place.write(Some("my store"), &image(), "ckpt_solver_1.dmtcp.temp"), (String::new(), true));
    assert!(fs::read(place.path("my store/ckpt_solver_1.dmtcp")).unwrap() == image());
    let ticket = fs::read(place.path("ckpt_solver_1.dmtcp.temp")).unwrap();
    // The magic number of gzip, and the minimum size that DMTCP reads.
    assert!(ticket.starts_with(&[0o37, 0o213]) && (4096..5000).contains(&ticket.len()), "{ticket:?}");
    // The ticket has the path of the store; HOPMAP_STORE finds a store that was moved.
    assert!(place.read(None, "ckpt_solver_1.dmtcp.temp") == image());
    fs::rename(place.path("my store"), place.path("moved")).unwrap();
    assert!(place.read(Some("moved"), "ckpt_solver_1.dmtcp.temp") == image());
}

#[test]
fn everything_else_is_passed_to_gzip() {
    let place = Place::new();
    for (store, to) in [(None, "ckpt.dmtcp"), (Some("my store"), "archive.gz")] {
        assert_eq!(place.write(store, &image(), to), (String::new(), true));
        assert!(place.length(to) > 100_000);
        assert!(place.read(store, to) == image());
    }
    let (message, done) = place.write(Some("bin"), &image(), "ckpt.dmtcp");
    assert!(done && message.contains("is not a store") && place.read(None, "ckpt.dmtcp") == image());
    let version = place.gzip(Some("my store")).arg("--version").output().unwrap();
    assert!(version.status.success() && version.stdout.starts_with(b"gzip "));
    assert_eq!(fs::read_dir(place.path("my store")).unwrap().count(), 1);
}

#[test]
fn a_store_that_cannot_take_an_image_does_not_stop_the_program() {
    let place = Place::new();
    fs::write(place.path("my store/full"), "").unwrap();
    let (message, done) = place.write(Some("my store"), &image(), "ckpt_solver_1.dmtcp.temp");
    assert!(!done);
    assert!(message.starts_with("the disk is full\nhopmap: ckpt_solver_1.dmtcp is NOT saved"), "{message}");
    assert_eq!(place.length("ckpt_solver_1.dmtcp.temp"), 0);
}

#[test]
fn copies_on_path_do_not_call_each_other_endlessly() {
    let place = Place::new();
    let folders = ["bin", "second", "third"].map(|name| place.path(name));
    for folder in &folders[1..] {
        fs::create_dir(folder).unwrap();
        fs::copy(SCRIPT, folder.join("gzip")).unwrap();
        fs::set_permissions(folder.join("gzip"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let copies = folders.map(|folder| folder.display().to_string()).join(":");
    // The time limit ends a possible endless recursion.
    let mut limited = Command::new("timeout");
    limited.args(["20", "gzip", "-c"]).env("PATH", format!("{copies}:{}", std::env::var("PATH").unwrap()));
    let output = limited.env_remove("HOPMAP_STORE").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(&[0o37, 0o213]), "{output:?}");
}

#[test]
fn a_missing_gzip_is_reported() {
    let place = Place::new();
    let output = place.gzip(None).env("PATH", place.path("bin")).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "hopmap: there is no other gzip on PATH\n");
    assert_eq!(output.status.code(), Some(127));
    assert!(Path::new(SCRIPT).exists());
}
