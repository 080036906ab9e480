//! The process that makes a network: it leaves for new namespaces and waits for the first process in them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use hopmap_test_network::{Error, Report};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};

use crate::failure::{failed, say};

/// Makes the network of a machine, or the one described on the standard input; it lives as long as that is open.
///
/// Everything is reported on standard output, failures too.
pub(crate) fn serve(machine: Option<&Path>) -> Result<ExitCode, Error> {
    if let Err(error) = leave() {
        report(&error);
        return Ok(ExitCode::FAILURE);
    }
    let program = std::env::current_exe().map_err(|error| failed("own path", error))?;
    // The first child of a process with a new PID namespace is the first process there; all others end with it.
    let mut child = Command::new(program)
        .arg("first")
        .args(machine.iter().flat_map(|path| [OsStr::new("--machine"), path.as_os_str()]))
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(|error| failed("first process of the network", error))?;
    print_report(&Report::Process(child.id()));
    let status = child.wait().map_err(|error| failed("first process of the network", error))?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Leaves for namespaces in which this user is root.
fn leave() -> Result<(), Error> {
    let (user, group) = (Uid::effective(), Gid::effective());
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWPID;
    unshare(namespaces).map_err(|error| forbidden(&error.to_string()))?;
    let write = |file: &str, text: &str| {
        fs::write(file, text).map_err(|error| forbidden(&format!("{file}: {error}")))
    };
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

/// That this system forbids what networks are made of, and what would allow it.
pub(crate) fn forbidden(error: &str) -> Error {
    let setting = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    let help = if setting("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "`sysctl kernel.unprivileged_userns_clone=1` allows it"
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows it"
    } else if setting("/proc/sys/user/max_user_namespaces", "0") {
        "`sysctl user.max_user_namespaces=10000` allows it"
    } else {
        "containers often forbid it: Docker needs `--privileged`, or `--security-opt seccomp=unconfined` and \
         `--cap-add SYS_ADMIN`"
    };
    Error::Setup {
        message: format!("this system forbids user namespaces: {error}"),
        help: Some(help.to_owned()),
    }
}

/// Tells the library of a failure.
pub(crate) fn report(error: &Error) {
    let help = miette::Diagnostic::help(error).map(|help| help.to_string());
    print_report(&Report::Failed { message: error.to_string(), help });
}

pub(crate) fn print_report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        say(&line);
    }
}
