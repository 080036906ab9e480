//! The pipeline file of `hopmap tune` from its arguments and the recording.

use std::time::Duration;

use hopmap_artifact::Folder;
use hopmap_formats::host_list;
use hopmap_recording::Recording;

use super::arguments::Arguments;
use super::launcher::command_line;
use super::recording::{fits, run_time};
use crate::cli::hosts::Allocation;
use crate::cli::open::working_directory;
use crate::cli::output::Result;
use crate::engine::SHARE_OF_EXPERIMENTS;
use crate::tune::{MachineSource, TuneFile};

/// The measured machine in the folder of the results.
pub(super) const MACHINE: &str = "machine";
/// A run is stopped after this multiple of the recorded time and the time of a launcher to start: some launchers wait forever for ranks that
/// have failed.
const LONGEST: f64 = 10.0;
const START_S: f64 = 60.0;

/// The time for runs, which ends a trial as planned: the deadline of all would stop it, with a wider interval. It depends on what is
/// given and recorded alone, so that the next call writes the same file.
pub(super) fn runs_time(arguments: &Arguments, recording: &Recording) -> Option<f64> {
    let recorded = run_time(recording).unwrap_or_default();
    let time_s = |deadline: Duration| deadline.as_secs_f64() * SHARE_OF_EXPERIMENTS - recorded;
    arguments.deadline.map(|deadline| time_s(deadline).max(1.0).round())
}

/// `launched_s` are the seconds from the start of the launcher of the recorded run to its end, if they are known.
pub(super) fn tune_file(
    arguments: &Arguments,
    allocation: &Allocation,
    recording: Option<&Recording>,
    recorded_hosts: Option<String>,
    prepare: Option<String>,
    launched_s: Option<f64>,
) -> Result<TuneFile> {
    let machine = match (&arguments.topology, &arguments.shape) {
        (Some(path), _) => {
            let path = working_directory()?.join(path);
            let uses = if Folder::open(&path).is_ok() { "stored/system-graph" } else { "topology/import" };
            let list = |rates: &String| match rates.starts_with('[') {
                true => rates.clone(),
                false => format!("[{rates}]"),
            };
            MachineSource::File {
                uses,
                path: path.to_string_lossy().into_owned(),
                slots: None,
                latency: arguments.latency.clone(),
                bandwidth: arguments.bandwidth.as_ref().map(list),
            }
        }
        (None, Some(shape)) => MachineSource::Shape {
            shape: shape.clone(),
            latency: arguments.latency.clone().unwrap_or_default(),
            bandwidth: arguments.bandwidth.clone().unwrap_or_default(),
        },
        (None, None) => MachineSource::Stored(format!("{MACHINE}/system")),
    };
    Ok(TuneFile {
        program: command_line(arguments.program.iter()),
        folder: working_directory()?.to_string_lossy().into_owned(),
        launch: arguments.launch,
        launcher: arguments.launcher.clone(),
        hosts: host_list::compress(allocation.hosts.names()),
        slots: allocation.hosts.slots_text(),
        machine,
        is_default_known: recorded_hosts.is_some()
            && recording.is_some_and(|recording| fits(recording, &allocation.hosts)),
        recorded_hosts,
        is_predictable: true,
        objectives: arguments.objectives.clone(),
        best: arguments.best,
        precision: arguments.precision,
        time_s: recording.and_then(|recording| runs_time(arguments, recording)),
        timeout_s: recording.and_then(run_time).map(|seconds| {
            let seconds = launched_s.map_or(seconds, |launched_s| launched_s.max(seconds));
            (LONGEST * seconds + START_S).round()
        }),
        time_after: arguments.time_after.clone(),
        allow_failures: arguments.allow_failures,
        prepare,
    })
}
