//! Running commands on hosts.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, pipe};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use hopmap_test_network::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{close, dup};

use crate::failure::failed;
use crate::hosts::{TEMPORARY, enter_network, name_file, network_file};

/// Runs a command on a host of a network, from outside, and ends as it does.
pub(crate) fn enter(process: u32, host: &str, words: &[OsString]) -> Result<ExitCode, Error> {
    let program = std::env::current_exe().map_err(|error| failed("own path", error))?;
    let folder = std::env::current_dir().map_err(|error| failed("working folder", error))?;
    let outside = format!("/proc/{process}");
    let below_root = |file: &Path| format!("{outside}/root{}", file.display());
    let namespaces = [
        (format!("{outside}/ns/user"), CloneFlags::CLONE_NEWUSER),
        (format!("{outside}/ns/ipc"), CloneFlags::CLONE_NEWIPC),
        (below_root(&network_file(host)), CloneFlags::CLONE_NEWNET),
        (below_root(&name_file(host)), CloneFlags::CLONE_NEWUTS),
        (format!("{outside}/ns/pid"), CloneFlags::CLONE_NEWPID),
        (format!("{outside}/ns/mnt"), CloneFlags::CLONE_NEWNS),
    ];
    let missing = |error| failed(&format!("no host {host} in this network"), error);
    let mut open = Vec::new();
    for (file, kind) in namespaces {
        open.push((File::open(file).map_err(missing)?, kind));
    }
    for (file, kind) in open {
        setns(file, kind).map_err(|error| failed(host, error))?;
    }
    std::env::set_current_dir(&folder).map_err(|error| failed(&folder.display().to_string(), error))?;
    // The end that the child inherits shows whether the other one, which only this process has, is still there.
    let (life, _held) = lifeline().map_err(|error| failed("pipe to a command", error))?;
    // Only children are in the new PID namespace.
    let mut command = Command::new(program);
    command.arg("bound").arg(life.as_raw_fd().to_string()).arg("--").args(words);
    if std::env::var_os("TMPDIR").is_none() {
        command.env("TMPDIR", TEMPORARY);
    }
    command.status().map(ending).map_err(|error| failed(host, error))
}

/// A pipe whose end to read is inherited by children and whose end to write is not.
fn lifeline() -> io::Result<(OwnedFd, PipeWriter)> {
    let (read, write) = pipe()?;
    // A duplicate is inherited, the first one is not.
    Ok((dup(read)?, write))
}

/// Becomes a command that ends with its parent, as the parent represents it outside.
///
/// The parent may have ended before the signal of its death was asked for. Its number does not show this: a parent outside of the
/// PID namespace has none in it, and neither has who adopts the child there. The pipe does.
pub(crate) fn bound(life: RawFd, words: &[OsString]) -> Result<ExitCode, Error> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| failed("signal of a parent's death", error))?;
    if has_ended(life).map_err(|error| failed("pipe from a parent", error))? {
        return Ok(ExitCode::FAILURE);
    }
    become_command(words)
}

/// Whether the process at the other end of a pipe is gone; the pipe is closed.
fn has_ended(life: RawFd) -> io::Result<bool> {
    let pipe = File::open(format!("/proc/self/fd/{life}"))?;
    close(life)?;
    let mut looked = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    poll(&mut looked, PollTimeout::ZERO)?;
    Ok(looked.iter().any(|end| end.any() == Some(true)))
}

/// Becomes a command on a host of the network that this process is in.
pub(crate) fn on(host: &str, words: &[OsString]) -> Result<ExitCode, Error> {
    enter_network(host)?;
    let file = File::open(name_file(host)).map_err(|error| failed(host, error))?;
    setns(file, CloneFlags::CLONE_NEWUTS).map_err(|error| failed(host, error))?;
    let line = words.join(&OsString::from(" "));
    become_command(&["sh".into(), "-c".into(), line])
}

fn become_command(words: &[OsString]) -> Result<ExitCode, Error> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Error::Refused("no command".to_owned()));
    };
    let error = Command::new(program).args(arguments).exec();
    Err(failed(&program.to_string_lossy(), error))
}

/// The exit code of a command, as a shell gives it.
pub(crate) fn ending(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
