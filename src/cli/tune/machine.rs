//! The machine of `hopmap tune`: given, measured, or measured before; and what can be placed on it.

use std::net::IpAddr;
use std::path::Path;

use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_durable::Staging;
use hopmap_formats::host_names::short;
use hopmap_launchers::{Launch, shell_word};
use hopmap_model::{Link, SystemGraph};

use super::arguments::Arguments;
use super::file::{MACHINE, TuneFile};
use super::launcher::{command_line, launcher};
use super::step::{OutOfTime, keep};
use crate::cli::exec;
use crate::cli::hosts::Allocation;
use crate::cli::job::End;
use crate::cli::output::{Output, Result};
use crate::cli::run::Request;
use crate::cli::written::PipelineFile;
use crate::pipeline::literal;

/// The file of a pipeline that consists of the machine.
const PIPELINE: &str = "machine.toml";

/// The machine on which ranks are placed.
pub(super) struct Machine {
    /// Slots of each host, where its file has none.
    pub(super) slots: Option<u32>,
    pub(super) system: SystemGraph,
    /// Why all placements are alike, if they are.
    pub(super) nothing_to_place: Option<String>,
}

/// The machine, measured unless it is given or has been measured; with the slots of this call, if its file has none.
pub(super) fn machine(
    arguments: &Arguments,
    allocation: &Allocation,
    out: &Path,
    end: Option<End>,
    output: Output,
) -> Result<Machine> {
    let exit = measure_machine(arguments, allocation, out, end, output)?;
    if exit != Exit::Done {
        return Err(Failure::new(exit, []));
    }
    let mut tune = TuneFile::new(arguments, allocation, None);
    let mut system = evaluated(arguments, out, &tune, end, output)?;
    let ranks = allocation.ranks as usize;
    if arguments.topology.is_some() && system.slots.len() < ranks {
        tune.slots = Some(allocation.hosts.most());
        system = evaluated(arguments, out, &tune, end, output)?;
    }
    if arguments.topology.is_none() && arguments.shape.is_none() {
        check_hosts(allocation, &system, out)?;
    }
    if system.slots.len() < ranks {
        let slots = system.slots.len();
        return refuse(
            format!("{ranks} ranks do not fit on the {slots} slots that the machine has on these hosts"),
            "give fewer --ranks, or a machine with as many slots",
        );
    }
    let is_known = |link: &Link| link.latency_s.is_some() && link.bandwidth_bytes_per_s.is_some();
    let has_rates = !system.links.is_empty() && system.links.iter().all(is_known);
    if !has_rates && system.calibration.is_empty() && system.hosts().count() > 1 {
        return refuse(
            "the machine has no latencies and bandwidths, so run times cannot be predicted",
            "give --latency and --bandwidth of its links, or leave --topology out to measure the machine",
        );
    }
    let nothing_to_place = equal_slots(&system);
    Ok(Machine { slots: tune.slots, system, nothing_to_place })
}

/// Refuses a machine that was measured on other hosts.
fn check_hosts(allocation: &Allocation, system: &SystemGraph, out: &Path) -> Result<()> {
    let names = || system.hosts().map(|(node, ..)| short(&system.nodes[node as usize].name));
    let is_measured = |host: &str| {
        let own = hopmap_mpi_environment::host_name();
        let host = if host == "localhost" { &own } else { host };
        // The measurement has names, whatever addresses are given.
        host.parse::<IpAddr>().is_ok() || names().any(|name| name == short(host))
    };
    let Some((host, _)) = allocation.hosts.hosts.iter().find(|(host, _)| !is_measured(host)) else {
        return Ok(());
    };
    let machine = shown(&out.join(MACHINE));
    refuse(
        format!("`{host}` is not in the machine that was measured before: {machine}"),
        format!("remove {machine} to measure these hosts, or give another --out"),
    )
}

/// The machine of a pipeline that consists of nothing else. What its stages remark is heard.
fn evaluated(
    arguments: &Arguments,
    out: &Path,
    tune: &TuneFile<'_>,
    end: Option<End>,
    output: Output,
) -> Result<SystemGraph> {
    let file = PipelineFile::write(out.join(PIPELINE), &tune.machine_pipeline()?, &arguments.store)?;
    let request = Request { end: end.map(|end| end.at), no_report: true, ..Request::default() };
    let exit = file.run(&request, Output::new(false, !output.is_talkative()))?;
    match file.newest::<SystemGraph>("machine")? {
        Some(system) if exit == Exit::Done => Ok(system),
        _ => {
            OutOfTime::check(end, "the reading of the machine")?;
            Err(Failure::new(if exit == Exit::Done { Exit::Failed } else { exit }, []))
        }
    }
}

/// Why no placement differs from another on any machine, if so: one rank, or one host whose cores the launcher does not choose.
pub(super) fn nothing_to_place(allocation: &Allocation, launch: Launch) -> Option<&'static str> {
    match allocation.hosts.hosts.len() {
        _ if allocation.ranks < 2 => Some("one rank: there is nothing to place; keep the default placement"),
        1 if !launch.chooses_cores() => Some(
            "one host, and its launch file does not choose cores: there is nothing to place; keep the default placement",
        ),
        _ => None,
    }
}

/// The same of a machine: one host whose slots are all equally far apart.
fn equal_slots(system: &SystemGraph) -> Option<String> {
    let (costs, slots) = (system.costs(), system.slots.len() as u32);
    let mut pairs = (0..slots).flat_map(|a| (0..slots).filter(move |b| a != *b).map(move |b| (a, b)));
    let is_one = system.hosts().count() == 1;
    let first = costs.between(0, 1);
    (is_one && pairs.all(|(a, b)| costs.between(a, b).to_bits() == first.to_bits())).then(|| {
        format!("one host, whose {slots} slots are equally far from each other: there is nothing to place; keep the default placement")
    })
}

/// The objectives that the machine can have.
pub(super) fn objectives(arguments: &Arguments, system: &SystemGraph, output: Output) -> Result<Vec<String>> {
    let has_links = !system.links.is_empty();
    let has_bandwidths = has_links && system.links.iter().all(|link| link.bandwidth_bytes_per_s.is_some());
    let is_possible = |name: &&String| match name.as_str() {
        "hop-bytes" | "max-link-load" => has_links,
        "max-link-time" => has_bandwidths,
        _ => true,
    };
    let (possible, others): (Vec<&String>, Vec<_>) = arguments.objectives.iter().partition(is_possible);
    if possible.is_empty() {
        return refuse(
            "the machine has no links with rates, which all --objectives need",
            "add F or predicted-time",
        );
    }
    if !others.is_empty() {
        let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
        output.note(format!(
            "not searched, because the machine has no links with rates: {}",
            others.join(", ")
        ));
    }
    Ok(possible.into_iter().cloned().collect())
}

/// Whether the machine is neither given nor measured.
pub(super) fn is_to_measure(arguments: &Arguments, out: &Path) -> bool {
    arguments.topology.is_none() && arguments.shape.is_none() && !out.join(MACHINE).exists()
}

/// Measures the machine, unless it is given or measured.
fn measure_machine(
    arguments: &Arguments,
    allocation: &Allocation,
    out: &Path,
    end: Option<End>,
    output: Output,
) -> Result {
    let machine = out.join(MACHINE);
    if !is_to_measure(arguments, out) {
        return Ok(Exit::Done);
    }
    let staging = Staging::beside(&machine).map_err(Failure::failed)?;
    let unfinished = staging.path().join(MACHINE);
    let launcher = command_line(launcher(arguments, allocation)?.iter());
    output.note(format!(
        "measuring the machine: hopmap exec topology/probe --launcher {} -p calibrate=true",
        shell_word(&launcher)
    ));
    let calibrate = Some(("calibrate".to_owned(), "true".to_owned()));
    // Quoted, or a name such as 1 would be a number.
    let mpicc = arguments.mpicc.as_deref().map(|mpicc| ("mpicc".to_owned(), literal(&mpicc.into())));
    let probe = exec::Request {
        kind: "topology/probe",
        inputs: Vec::new(),
        parameters: calibrate.into_iter().chain(mpicc).collect(),
        out: &unfinished,
        jobs: None,
        launcher: Some(&launcher),
        end: end.map(|end| end.at),
    };
    let measured = exec::run(&probe, Output::new(false, true));
    // What it has by then is a machine, too, but not all of it.
    OutOfTime::check(end, "the measurement of the machine")?;
    keep(measured, &unfinished, &machine)
}
