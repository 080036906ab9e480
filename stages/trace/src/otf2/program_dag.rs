//! Task DAG and program of an archive, from the moments of its processes.

use std::path::Path;
use std::time::Duration;

use hopmap_collectives::blocks;
use hopmap_model::{Context, Error, Program, TaskDag};

use super::moments::{Purpose, Recorded};
use crate::dag::{self, Rules};
use crate::error::TraceError;
use crate::matching::Meeting;
use crate::params::{DagParams, ProgramParams};
use crate::program::{self, Records};

/// Reads an archive as a task DAG.
pub(crate) fn program_dag(params: &DagParams, cx: &Context<'_>) -> Result<TaskDag, Error> {
    let path = params.path.path();
    let &DagParams { reader, allow_truncated, allow_loss, .. } = params;
    let purpose = Purpose { reader, allow_truncated, allow_loss, into: "the DAG", in_turns: false };
    let Recorded { ranks, groups, members, convention, ticks_per_second, longest_s, .. } =
        Recorded::read(path, purpose, cx)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion saturates, and the time is positive"
    )]
    let tiny = (params.tiny_s * ticks_per_second) as u64;
    let rules = Rules { ticks_per_second, tiny, rendezvous: params.rendezvous_bytes };
    let (mut dag, unmatched) = dag::build(&ranks, &groups, &members, convention, rules, cx)?;
    drop(ranks);
    dag.recorded_s = Some(longest_s);
    purpose.check(path, unmatched, cx)?;
    if let Err(task) = dag.order() {
        let rank = dag.tasks[task as usize].rank.unwrap_or_default();
        let (path, ends) = (path.display(), format!("an operation of rank {rank} depends on itself"));
        let (problem, help) = match params.rendezvous_bytes {
            Some(bytes) => (
                format!(
                    "the program in `{path}` deadlocks if messages of at least {bytes} bytes use rendezvous: {ends}"
                ),
                "the program did run, so its MPI sent longer messages eagerly: raise or omit `rendezvous_bytes`",
            ),
            None => (
                format!("the messages in `{path}` are inconsistent: {ends}"),
                "messages are missing in the middle of the trace, so the remaining ones match wrongly: record the trace again",
            ),
        };
        return Err(TraceError::refused(problem, help).into());
    }
    Ok(dag)
}

/// Reads an archive as a program.
pub(crate) fn program(path: &Path, params: &ProgramParams, cx: &Context<'_>) -> Result<Program, Error> {
    let &ProgramParams { reader, allow_truncated, allow_loss, .. } = params;
    let purpose = Purpose { reader, allow_truncated, allow_loss, into: "the program", in_turns: true };
    let recorded = Recorded::read(path, purpose, cx)?;
    let Recorded { ranks, groups, communicators, members, convention, ticks_per_second, .. } = &recorded;
    let (convention, ticks_per_second) = (*convention, *ticks_per_second);
    let blocks = |meeting: &Meeting<'_>| blocks(&meeting.collective(convention)).ok();
    let are_overlapping = false;
    let records =
        Records { ranks, groups, communicators, members, blocks: &blocks, ticks_per_second, are_overlapping };
    let (mut program, lacking) = program::build(&records, cx, |error| {
        let problem = format!("the operations in `{}` are inconsistent: {error}", path.display());
        TraceError::refused(problem, "the trace lacks events or mixes up communicators: record it again")
    })?;
    purpose.check(path, lacking.unmatched, cx)?;
    program.recorded = Duration::try_from_secs_f64(recorded.longest_s).ok();
    program.left_out = lacking.log(&records, (recorded.end, &recorded.cut), cx);
    program.is_approximate = recorded.leaves_out;
    Ok(program)
}
