//! The first process of a network: it makes the hosts and is their switch.

use std::io::{self, pipe};
use std::path::Path;
use std::process::{ExitCode, exit};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{panic, thread};

use hopmap_test_network::{Description, Error, Report, address};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::wait;

use crate::failure::{failed, warn};
use crate::frames::Frames;
use crate::serve::{print_report, report};
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
    end_on_panic();
    let mut switch = match bring_up(machine) {
        Ok(switch) => switch,
        Err(error) => {
            report(&error);
            return Ok(ExitCode::FAILURE);
        }
    };
    thread::spawn(bury_orphans);
    let (until, held) = pipe().map_err(|error| failed("pipe to the switch", error))?;
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(held);
    });
    print_report(&Report::Ready);
    switch.run(&until);
    // All other processes of the network end with the first.
    switch.close().map(|()| ExitCode::SUCCESS)
}

/// Ends the network when one of its threads panics: programs would wait for ever for frames that nobody forwards.
fn end_on_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        print(panic);
        report(&failed("the network ended", panic));
        #[expect(clippy::exit, reason = "other threads would keep the network")]
        exit(101)
    }));
}

fn bring_up(machine: Option<&Path>) -> Result<Switch, Error> {
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
    let quiet = Description::uniform(2, CALIBRATION);
    let frames = Arc::new(Mutex::new(Frames::new(quiet, 0.0)));
    let mut switch = Switch::new(description.hosts.len(), Arc::clone(&frames))?;
    let (until, held) = pipe().map_err(|error| failed("pipe to the switch", error))?;
    let base_s = thread::scope(|scope| {
        scope.spawn(|| switch.run(&until));
        let base_s = measure_base(&description.hosts);
        await_silence(&frames);
        drop(held);
        base_s
    })?;
    warn_of_unreachable(&description);
    hosts::await_running(&description.hosts)?;
    *hosts::lock(&frames) = Frames::new(description, base_s);
    control::listen(frames)?;
    Ok(switch)
}

/// Says once if some hosts cannot reach others.
fn warn_of_unreachable(description: &Description) {
    let mut pairs = description.unreachable();
    if let Some((from, to)) = pairs.next() {
        let hosts = &description.hosts;
        let (count, all) = (1 + pairs.count(), hosts.len() * (hosts.len() - 1));
        warn(&format!(
            "no route between {count} of {all} pairs of hosts, such as from {} to {}",
            hosts[from], hosts[to]
        ));
    }
}

/// Waits until the last frames of the calibration have arrived, so that none of them counts.
fn await_silence(frames: &Mutex<Frames>) {
    let mut delivered = None;
    while delivered != Some(hosts::lock(frames).counters.delivered) || !hosts::lock(frames).is_empty() {
        delivered = Some(hosts::lock(frames).counters.delivered);
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a message takes beyond its latency, in seconds: the network stacks and the waking of who waits for it.
///
/// Of several tries the shortest, as it depends on which processors the threads of a try happen to share.
fn measure_base(hosts: &[String]) -> Result<f64, Error> {
    let mut shortest = CALIBRATION + MOST_BASE;
    for _ in 0..4 {
        let halves = echo::between_hosts([&hosts[0], &hosts[1]], address(1), 75)?;
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
