//! The first process of a network: it makes the hosts and is their switch.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hopmap_test_network::{Description, Error, Report};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::wait;

use crate::failure::failed;
use crate::links::Links;
use crate::serve::{report, tell};
use crate::switch::Switch;
use crate::{control, echo, hosts};

/// The latency at which the constant part of a message's time is measured, in seconds.
const CALIBRATION: f64 = 300e-6;
/// More than this is not the switch but a machine that is busy, in seconds.
const MOST_BASE: f64 = 30e-6;

/// Makes the network and switches until the standard input ends.
pub(crate) fn first(machine: Option<&Path>) -> Result<ExitCode, Error> {
    // Whoever waits for this process must not leave it behind.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| failed("signal of a parent's death", error))?;
    match bring_up(machine) {
        Ok(()) => {}
        Err(error) => {
            report(&error);
            return Ok(ExitCode::FAILURE);
        }
    }
    thread::spawn(bury_orphans);
    tell(&Report::Ready);
    let mut rest = Vec::new();
    let _ = io::stdin().read_to_end(&mut rest);
    // All other processes of the network end with the first.
    #[expect(clippy::exit, reason = "threads of the switch and of the control socket never end")]
    exit(0)
}

fn bring_up(machine: Option<&Path>) -> Result<(), Error> {
    let description = match machine {
        Some(path) => Description::read_machine(path)?,
        None => {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map_err(|error| failed("description", error))?;
            serde_json::from_str(&line).map_err(|error| failed("description", error))?
        }
    };
    description.check()?;
    hosts::make(&description.hosts)?;
    let quiet = Description::uniform(description.hosts.len(), CALIBRATION);
    let links = Arc::new(Mutex::new(Links::new(quiet, 0.0)));
    let switch = Switch::new(description.hosts.len(), Arc::clone(&links))?;
    let counters = switch.counters();
    thread::spawn(move || switch.run());
    let base = measure_base(&description.hosts)?;
    *hosts::lock(&links) = Links::new(description, base);
    control::listen(links, counters)
}

/// What a message takes beyond its latency, in seconds: the network stacks and the waking of who waits for it.
///
/// Of several tries the shortest, as it depends on which processors the threads of a try happen to share.
fn measure_base(hosts: &[String]) -> Result<f64, Error> {
    let mut shortest = CALIBRATION + MOST_BASE;
    for _ in 0..4 {
        let halves = echo::between_hosts([hosts[0].clone(), hosts[1].clone()], 75)?;
        shortest = halves.first().copied().unwrap_or(shortest).min(shortest);
    }
    Ok((shortest - CALIBRATION).clamp(0.0, MOST_BASE))
}

/// Takes leave of processes whose parents are gone.
fn bury_orphans() {
    loop {
        if wait() == Err(Errno::ECHILD) {
            thread::sleep(Duration::from_millis(200));
        }
    }
}
