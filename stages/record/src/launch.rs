//! Starting the launcher and the program.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use hopmap_model::Context;
use hopmap_mpi_environment::{Compiled, Identity, LONGER_GRACE, PRELOAD, monitoring_variables, preload};
use hopmap_process::{Capture, Group};
use hopmap_recording::{Method, profile_prefix};

/// Variables of the recorder, see `runtime.c`.
const FOLDER: &str = "HOPMAP_RECORD_DIR";
const TIMES: &str = "HOPMAP_RECORD_TIMES";
const EVENTS: &str = "HOPMAP_RECORD_EVENTS";

/// Time in which the launcher ends by itself after Ctrl-C, which the terminal has sent to it too. On a second signal
/// Open MPI's mpirun kills the ranks at once, and they write nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most output of a launcher that is kept: 256 bytes for each of 2^18 ranks.
const MOST_OUTPUT: usize = 1 << 26;

/// How ranks record.
#[derive(Debug)]
pub(crate) enum Plan {
    /// With this library.
    Preload(Compiled),
    /// By Open MPI's own monitoring.
    OpenMpi,
}

impl Plan {
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Preload(_) => Method::Preload,
            Self::OpenMpi => Method::Openmpi,
        }
    }
}

/// A recording that is about to begin.
pub(crate) struct Launch<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a Path,
    pub(crate) is_timed: bool,
    pub(crate) has_events: bool,
}

impl Launch<'_> {
    /// The program in this process, or without a launcher: it loads the recorder itself.
    pub(crate) fn of_program(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.variables());
        if let Plan::Preload(library) = self.plan {
            command.env(PRELOAD, preload(&library.path.to_string_lossy(), existing().as_deref()));
        }
        command
    }

    /// The launcher, whose ranks load the recorder.
    pub(crate) fn of_launcher(&self, launcher: &Identity, words: &[String]) -> Command {
        let (mut command, variables, given) = (Command::new(&words[0]), self.variables(), &words[1..]);
        match self.plan {
            Plan::Preload(library) => {
                let pairs: Vec<(&str, &str)> =
                    variables.iter().filter_map(|(name, value)| Some((*name, value.to_str()?))).collect();
                let library = library.path.to_string_lossy();
                let existing = existing();
                let implementation = launcher.implementation;
                command.args(implementation.with_preload(&library, existing.as_deref(), &pairs, given));
            }
            // mpirun hands `OMPI_…` on.
            Plan::OpenMpi => drop(command.args(given)),
        }
        let grace = LONGER_GRACE.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
        command.envs(variables).envs(grace);
        command
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        match self.plan {
            Plan::Preload(_) => {
                let switch = |is_on: bool| if is_on { "1" } else { "0" }.into();
                vec![
                    (FOLDER, self.folder.into()),
                    (TIMES, switch(self.is_timed)),
                    (EVENTS, switch(self.has_events)),
                ]
            }
            Plan::OpenMpi => monitoring_variables(&profile_prefix(self.folder)).into(),
        }
    }
}

/// Libraries that this process preloads.
fn existing() -> Option<String> {
    std::env::var(PRELOAD).ok()
}

/// Starts the launcher, and waits for it. It is in the group of this process, whose terminal it needs. If only this process was told to
/// stop, it passes that on a little later.
pub(crate) fn run_launcher(command: Command, cx: &Context<'_>) -> io::Result<ExitStatus> {
    Ok(run_captured(command, cx)?.0)
}

/// The same with its standard output, if that is a pipe.
pub(crate) fn run_captured(mut command: Command, cx: &Context<'_>) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut launcher = Group::start_beside(&mut command)?;
    let output = Capture::first(launcher.take_stdout(), MOST_OUTPUT);
    let status = match launcher.wait(|| cx.should_stop().then_some(()))? {
        Some(()) => launcher.stop_after(PATIENCE),
        None => launcher.end(),
    };
    Ok((status?, output.bytes(Instant::now() + PATIENCE)))
}
