//! Traces of training jobs; [`hopmap_training_traces`] describes their files.

use std::path::Path;
use std::time::Duration;

use hopmap_collectives::Rules;
use hopmap_model::{Context, Error, Phase, Program, TaskGraph};
use hopmap_recording::Converted;

use super::hopmap_record;
use super::reader::{Options, Reader};
use crate::error::TraceError;
use hopmap_training_traces::job::Checked;
use hopmap_training_traces::ranks::{begins, inputs};
use hopmap_training_traces::{chakra, flight_recorder, inspector, kineto};

pub(super) static CHAKRA: Reader = Reader {
    recognises: |sample| chakra::recognises(sample.path, sample.is_folder),
    files: |path| Ok(chakra::files(path)?),
    read: |path, options, cx| graph((path, &chakra::read(path, false, cx)?), options, cx),
    ..Reader::BINARY
};

pub(super) static FLIGHT_RECORDER: Reader = Reader {
    recognises: |sample| begins(sample.path, flight_recorder::FORMAT),
    files: |path| Ok(inputs(path, flight_recorder::FORMAT)?),
    read: |path, options, cx| graph((path, &flight_recorder::read(path, cx)?), options, cx),
    begins: |text| text.trim_start().starts_with('{') && (flight_recorder::FORMAT.1)(text),
    ..Reader::BINARY
};

pub(super) static KINETO: Reader = Reader {
    recognises: |sample| begins(sample.path, kineto::FORMAT),
    files: |path| Ok(inputs(path, kineto::FORMAT)?),
    read: |path, options, cx| graph((path, &kineto::read(path, cx)?), options, cx),
    begins: |text| text.trim_start().starts_with('{') && (kineto::FORMAT.1)(text),
    ..Reader::BINARY
};

pub(super) static INSPECTOR: Reader = Reader {
    recognises: |sample| begins(sample.path, inspector::FORMAT),
    files: |path| Ok(inputs(path, inspector::FORMAT)?),
    read: |path, options, cx| {
        graph((path, &inspector::read(path, options.allow_truncated, cx)?), options, cx)
    },
    begins: |text| text.trim_start().starts_with('{') && (inspector::FORMAT.1)(text),
    ..Reader::BINARY
};

/// The task graph of a job, whose operations follow the rules of NCCL, with a phase per kind of group.
fn graph((path, job): (&Path, &Checked), mut options: Options, cx: &Context<'_>) -> Result<TaskGraph, Error> {
    options.algorithms.rules = Rules::Nccl;
    let (all, kinds) = job.recordings();
    let mut graph = hopmap_record::graph(&all, options, cx)?;
    if let Some(per_host) = options.ranks_per_host.map(|number| number.get() as usize) {
        let (ranks, has_hosts) =
            (graph.ranks(), graph.processes.iter().any(|process| process.host.is_some()));
        if !has_hosts && ranks > per_host && !ranks.is_multiple_of(per_host) {
            let help = "set `ranks_per_host` to the number of GPUs of a host: `gpus` in the pipeline `training-trace`";
            let problem = format!("has {ranks} ranks, which do not fill hosts of {per_host}");
            return Err(TraceError::of(path, problem, help).into());
        }
    }
    job.log_uneven(cx);
    for (kind, recording) in kinds {
        let Converted { graph: TaskGraph { edges, .. }, .. } =
            recording.task_graph(hopmap_record::choice(options)).map_err(TraceError::from)?;
        if edges.iter().any(|edge| edge.source != edge.destination) {
            let compute_s = vec![None; graph.ranks()];
            graph.phases.push(Phase { name: Some(kind.to_owned()), compute_s, edges, ..Phase::default() });
        }
    }
    Ok(graph)
}

/// The program of Chakra execution traces.
pub(super) fn chakra_program(path: &Path, cx: &Context<'_>) -> Result<Program, Error> {
    program(&chakra::read(path, true, cx)?, cx)
}

/// The program of traces of PyTorch's profiler.
pub(super) fn kineto_program(path: &Path, cx: &Context<'_>) -> Result<Program, Error> {
    program(&kineto::read(path, cx)?, cx)
}

fn program(job: &Checked, cx: &Context<'_>) -> Result<Program, Error> {
    job.log(cx);
    let recorded = job.recorded_s().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(Program { recorded, ..hopmap_training_traces::program::program(job, cx)? })
}
