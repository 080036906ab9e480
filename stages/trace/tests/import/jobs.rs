//! What tests of training jobs ask of a trace.

use hopmap_model::{Action, Context, InputPath, Inputs, Outcome, Program, Stage};
use hopmap_trace::{ProgramParams, ProgramStage};

use super::Files;

/// Bytes of every pair.
pub(super) fn sums(files: &Files) -> Vec<(u32, u32, u64)> {
    files
        .auto()
        .pairs()
        .into_iter()
        .map(|(source, destination, _, bytes)| (source, destination, bytes))
        .collect()
}

/// The operations of a rank in short.
pub(super) fn shown(program: &Program, rank: u32) -> Vec<String> {
    let show = |action: Action| match action {
        Action::Compute { seconds } => format!("compute {:.0}", seconds * 1e6),
        Action::Isend { envelope, bytes, .. } => {
            format!("isend {bytes} to {}", program.envelopes[envelope as usize].peer)
        }
        Action::Irecv { envelope, bytes, .. } => {
            format!("irecv {bytes} from {}", program.envelopes[envelope as usize].peer)
        }
        Action::Wait { .. } => "wait".into(),
        Action::Collective { collective, bytes } => {
            format!("{} {bytes}", program.collectives[collective as usize].operation.name())
        }
        other => format!("{other:?}"),
    };
    program.of_rank(rank).iter().map(|operation| show(operation.action())).collect()
}

pub(super) fn program(files: &Files) -> miette::Result<Program> {
    let params = ProgramParams::new(Some(InputPath::new(files.trace())));
    ProgramStage::check(&params)?;
    let Outcome::Done(outputs) = ProgramStage::run(params, Inputs::new(), &Context::detached())? else {
        panic!("a program has no part")
    };
    Ok(outputs.get("program").unwrap().downcast_ref::<Program>().unwrap().clone())
}

/// The message of the error.
pub(super) fn refused(files: &Files) -> String {
    files.auto().result.unwrap_err().0
}
