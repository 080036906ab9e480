//! Running commands on hosts.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use hopmap_test_network::{Error, host_name};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::failed;
use crate::hosts::{enter_network, name_file, network_file};

/// Runs a command on a host of a network, from outside, and ends as it does.
pub(crate) fn enter(process: u32, host: usize, words: &[OsString]) -> Result<ExitCode, Error> {
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
    let missing = |error| failed(&format!("no host {} in this network", host_name(host)), error);
    let mut open = Vec::new();
    for (file, kind) in namespaces {
        open.push((File::open(file).map_err(missing)?, kind));
    }
    for (file, kind) in open {
        setns(file, kind).map_err(|error| failed(&host_name(host), error))?;
    }
    std::env::set_current_dir(&folder).map_err(|error| failed(&folder.display().to_string(), error))?;
    // Only children are in the new PID namespace.
    let status = Command::new(program).arg("bound").arg("--").args(words).status();
    status.map(ending).map_err(|error| failed(&host_name(host), error))
}

/// Becomes a command that ends with its parent, as the parent stands for it outside.
pub(crate) fn bound(words: &[OsString]) -> Result<ExitCode, Error> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| failed("signal of a parent's death", error))?;
    // A parent outside of the namespace has no number in it; a process that has been adopted has one for its parent.
    if getppid().as_raw() != 0 {
        return Ok(ExitCode::FAILURE);
    }
    become_command(words)
}

/// Becomes a command on a host of the network that this process is in.
pub(crate) fn on(host: usize, words: &[OsString]) -> Result<ExitCode, Error> {
    let name = host_name(host);
    enter_network(host)?;
    let file = File::open(name_file(host)).map_err(|error| failed(&name, error))?;
    setns(file, CloneFlags::CLONE_NEWUTS).map_err(|error| failed(&name, error))?;
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
