//! `--keep`: files that runs change are put aside, and restored before every run. A file that anybody else has changed since then is not
//! replaced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use hopmap_command::{Failure, refuse, shown};
use hopmap_durable::{DurableError, Staging, replace_file};
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};

use crate::cli::output::Result;

/// Names in the folder of the results: the copies, and what is known of them.
const KEPT: &str = "kept";
const FILES: &str = "files";
const LIST: &str = "kept.json";

/// A file to restore is neither as it was kept nor as the last run left it.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`--keep`: {path} was changed since it was kept in {kept}")]
#[diagnostic(
    code(tune::kept_changed),
    help(
        "a run would replace it: restore it from {kept}/files; or, if all files are to be kept as they are now, remove {kept}"
    )
)]
struct Changed {
    path: String,
    kept: String,
}

/// The folder holds other files, or was not written by `--keep`.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`--keep`: {kept} has not these files: {names}")]
#[diagnostic(
    code(tune::other_kept),
    help("name another folder with --out, or remove it, so that the files are kept as they are now")
)]
struct OtherKept {
    kept: String,
    names: String,
}

/// What was kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    /// The files and folders as they were named.
    names: Vec<String>,
    /// What the last call left in the place of each file.
    left: BTreeMap<String, String>,
}

/// The files of `--keep` of a call.
pub(super) struct Kept {
    paths: Vec<PathBuf>,
    folder: PathBuf,
}

impl Kept {
    pub(super) fn new(paths: &[PathBuf], out: &Path) -> Result<Option<Self>> {
        let is_inside = |path: &PathBuf| {
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        if let Some(path) = paths.iter().find(|path| !is_inside(path)) {
            return refuse(
                format!("`--keep`: {} is not below the working directory", shown(path)),
                "name files as the program does; for others, use --prepare",
            );
        }
        if let Some(path) = paths.iter().find(|path| path.to_str().is_none()) {
            return refuse(
                format!("`--keep`: the name {} is not UTF-8", path.display()),
                "use --prepare, or rename it",
            );
        }
        // Without the slash behind a folder, with which a link is what it leads to.
        let is_name = |part: &Component<'_>| *part != Component::CurDir;
        let paths = paths.iter().map(|path| path.components().filter(is_name).collect()).collect();
        let kept = Self { paths, folder: out.join(KEPT) };
        Ok(Some(kept).filter(|kept| !kept.paths.is_empty()))
    }

    /// The command that restores the files before a run: not through a link that a run has left in the place of a file, and nothing else,
    /// such as the mode of the working directory.
    pub(super) fn command(&self) -> String {
        let copies = self.folder.join(FILES).to_string_lossy().into_owned();
        let words: Vec<String> = self.names();
        let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
        let copies = shlex::try_quote(&copies).unwrap_or_default();
        format!("(to=$PWD && cd {copies} && cp -a --parents --remove-destination -- {words} \"$to\")")
    }

    /// Restores the files after the last run.
    pub(super) fn restore(&self) -> Result<()> {
        let restored = Command::new("sh").args(["-c", &self.command()]).output();
        match restored {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let fault = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                refuse(
                    format!("`--keep`: {fault}"),
                    format!("copy the files back from {}", shown(&self.folder.join(FILES))),
                )
            }
            Err(error) => Err(Failure::failed(DurableError::io("read", &self.folder)(error))),
        }
    }

    /// Copies the files; if that is done, looks whether they may be restored.
    pub(super) fn put_aside(&self) -> Result<()> {
        if fs::symlink_metadata(&self.folder).is_ok() {
            return self.look();
        }
        if let Some(path) = self.paths.iter().find(|path| path.is_symlink()) {
            return refuse(
                format!("`--keep`: {} is a symbolic link, of which only the link would be kept", shown(path)),
                "name files below it, such as LINK/FILE, or what it leads to; outside of the working directory, use --prepare",
            );
        }
        let staging = Staging::beside(&self.folder).map_err(Failure::failed)?;
        let files = staging.path().join(FILES);
        fs::create_dir(&files).map_err(DurableError::io("create", &files)).map_err(Failure::failed)?;
        let copied =
            Command::new("cp").args(["-a", "--parents", "--"]).args(&self.paths).arg(&files).output();
        let fault = match copied {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            return refuse(format!("`--keep`: {fault}"), "name files of the working directory");
        }
        write(staging.path(), &List { names: self.names(), ..List::default() })?;
        staging.commit(&self.folder).map_err(Failure::failed)
    }

    fn names(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    fn list(&self) -> Option<List> {
        serde_json::from_slice(&fs::read(self.folder.join(LIST)).ok()?).ok()
    }

    fn look(&self) -> Result<()> {
        let kept = shown(&self.folder);
        let Some(list) = self.list().filter(|list| list.names == self.names()) else {
            return Err(Failure::usage(OtherKept { kept, names: self.names().join(", ") }));
        };
        for (name, was_kept) in self.files()? {
            let is_ours = |now: &String| *now == was_kept || list.left.get(&name) == Some(now);
            if let Some(path) = state(Path::new(&name))?.filter(|now| !is_ours(now)).map(|_| name.clone()) {
                return Err(Failure::usage(Changed { path, kept }));
            }
        }
        Ok(())
    }

    /// Remembers what the last run left in the place of the files.
    pub(super) fn note_left(&self) -> Result<()> {
        let mut left = BTreeMap::new();
        for name in self.files()?.into_keys() {
            left.extend(state(Path::new(&name))?.map(|now| (name, now)));
        }
        write(&self.folder, &List { names: self.names(), left })
    }

    /// The kept files and their states by path.
    fn files(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let root = self.folder.join(FILES);
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            let failed = || DurableError::io("read", &folder);
            for entry in fs::read_dir(&folder).map_err(failed()).map_err(Failure::failed)? {
                let path = entry.map_err(failed()).map_err(Failure::failed)?.path();
                if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                    folders.push(path);
                } else if let (Ok(name), Some(state)) = (path.strip_prefix(&root), state(&path)?) {
                    found.insert(name.to_string_lossy().into_owned(), state);
                }
            }
        }
        Ok(found)
    }
}

/// What is at a path: the BLAKE3 of a file, the target of a link, or something else; none if it is nothing.
fn state(path: &Path) -> Result<Option<String>> {
    let read = || -> io::Result<String> {
        let found = fs::symlink_metadata(path)?;
        if found.is_symlink() {
            return Ok(format!("link to {}", fs::read_link(path)?.display()));
        }
        if !found.is_file() {
            return Ok("no file".to_owned());
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(hasher.finalize().to_hex().to_string())
    };
    match read() {
        Ok(state) => Ok(Some(state)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Failure::failed(DurableError::io("read", path)(error))),
    }
}

fn write(folder: &Path, list: &List) -> Result<()> {
    // Plain data with text keys always has a form in JSON.
    let text = serde_json::to_string_pretty(list).unwrap_or_default();
    Ok(replace_file(&folder.join(LIST), text.as_bytes()).map_err(Report::from)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    /// A program that turns its restart file into a link to another file lost that file.
    #[test]
    fn a_file_is_restored_and_not_what_a_link_in_its_place_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let kept = Kept { paths: vec!["in".into()], folder: path("kept") };
        fs::create_dir_all(path("kept/files")).unwrap();
        fs::write(path("kept/files/in"), "kept").unwrap();
        fs::write(path("golden"), "golden").unwrap();
        std::os::unix::fs::symlink("golden", path("in")).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let restored = Command::new("sh").args(["-c", &kept.command()]).current_dir(place.path()).status();
        assert!(restored.unwrap().success());
        let read = |name: &str| fs::read_to_string(path(name)).unwrap();
        assert_eq!((read("in"), read("golden")), ("kept".to_owned(), "golden".to_owned()));
        assert_eq!(fs::metadata(place.path()).unwrap().mode() & 0o777, 0o700);
    }

    /// Only the link was kept, and the file that it leads to was not restored.
    #[test]
    fn a_link_is_not_kept_without_what_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("real"), "kept").unwrap();
        std::os::unix::fs::symlink("real", place.path().join("in")).unwrap();
        let kept = Kept { paths: vec![place.path().join("in")], folder: place.path().join("kept") };
        assert!(kept.put_aside().is_err());
        assert!(!kept.folder.exists());
    }

    /// The copy of a file in a linked folder was a folder in the place of the link.
    #[test]
    fn files_in_linked_folders_are_restored_where_they_are() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let kept = Kept { paths: vec!["data/a b".into()], folder: path("kept") };
        fs::create_dir_all(path("kept/files/data")).unwrap();
        fs::write(path("kept/files/data/a b"), "kept").unwrap();
        fs::create_dir(path("scratch")).unwrap();
        fs::write(path("scratch/a b"), "changed").unwrap();
        std::os::unix::fs::symlink("scratch", path("data")).unwrap();
        let restored = Command::new("sh").args(["-c", &kept.command()]).current_dir(place.path()).status();
        assert!(restored.unwrap().success());
        assert_eq!(fs::read_to_string(path("scratch/a b")).unwrap(), "kept");
        assert!(path("data").is_symlink());
    }
}
