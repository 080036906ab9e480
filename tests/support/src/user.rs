//! Commands of a user to whom permissions apply.

use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// The user and the group `nobody`.
const NOBODY: u32 = 65534;

/// Makes a command run as `nobody` if the caller is root, to whom permissions do not apply. Changes the owner
/// of the folder and its contents to `nobody`.
///
/// # Errors
///
/// If the owner of a file cannot be changed.
pub fn unprivileged(command: &mut Command, folder: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        give(folder)?;
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(())
}

fn give(path: &Path) -> io::Result<()> {
    lchown(path, Some(NOBODY), Some(NOBODY))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::unprivileged;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    #[test]
    fn permissions_hold() {
        let folder = tempfile::tempdir().expect("temporary folder created");
        let read = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::write(&path, "text").expect("file written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions set");
            let mut command = Command::new("cat");
            unprivileged(&mut command, folder.path()).expect("owner changed");
            command.arg(path).output().expect("it runs")
        };
        assert_eq!(read("for its owner", 0o400).stdout, b"text");
        assert!(!read("for nobody", 0o000).status.success());
    }
}
