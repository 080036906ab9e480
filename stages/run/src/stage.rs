//! `run/trial`.

use hopmap_model::{Context, Error, InputPath, Inputs, Mapping, Outcome, Outputs, Port, Stage, Trials};
use hopmap_trials::{metrics, summary};

use crate::command::program_file;
use crate::params::words;
use crate::runner::RECORDING_WORD;
use crate::{Candidate, Runner, TrialError, TrialParams};

/// `run/trial`: measures the run time of a program under several mappings.
#[derive(Debug)]
pub struct TrialStage;

impl Stage for TrialStage {
    type Params = TrialParams;
    const KIND: &'static str = "run/trial";
    const SUMMARY: &'static str = "Run a program under several mappings, and measure how long it takes";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const { &[Port::many::<Mapping>("mappings"), Port::output::<Trials>("trials")] }
    }

    fn check(params: &TrialParams) -> Result<(), Error> {
        params.check()
    }

    fn reads(params: &TrialParams) -> Result<Vec<InputPath>, Error> {
        // Another program takes another time. One that is missing is an error of the run.
        Ok(program_file(params).map(InputPath::new).into_iter().collect())
    }

    fn experiments() -> bool {
        true
    }

    fn programs(params: &TrialParams) -> Vec<String> {
        let launcher = params.launcher.as_deref().and_then(|launcher| words("launcher", launcher).ok());
        let launcher =
            launcher.map_or_else(|| params.launch.program().to_owned(), |mut words| words.swap_remove(0));
        vec![launcher]
    }

    fn commands(params: &TrialParams) -> Vec<String> {
        let launcher = params.launcher.clone().unwrap_or_else(|| params.launch.program().to_owned());
        std::iter::once(format!("{launcher} {}", params.program)).chain(params.lateness.clone()).collect()
    }

    fn run(params: TrialParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let candidates: Vec<Candidate> = inputs
            .many::<Mapping>("mappings")?
            .into_iter()
            .map(|input| Candidate { name: input.label, digest: input.digest, mapping: input.value })
            .collect();
        let mut runner = Runner::new(&params, &candidates, &cx.scratch())?;
        if params.record {
            runner = runner.wrapped_in(recorder()?);
        }
        let is_complete = measure(&mut runner, &params, cx)?;
        let mut trials = runner.finish()?;
        trials.metrics = metrics(&trials);
        summary(&trials).iter().for_each(|line| cx.log(line));
        let outputs = Outputs::new().with("trials", trials);
        Ok(if is_complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

/// The command before the launcher that records a run. The stage runs in hopmap itself.
fn recorder() -> Result<Vec<String>, TrialError> {
    let hopmap = std::env::current_exe();
    let hopmap =
        hopmap.map_err(|source| TrialError::Start { launcher: "hopmap record".to_owned(), source })?;
    let words = ["--quiet", "record", "--out", RECORDING_WORD, "--"].map(str::to_owned);
    Ok(std::iter::once(hopmap.to_string_lossy().into_owned()).chain(words).collect())
}

/// The warm-up, then as many blocks as the parameters say; `false` if it was stopped.
fn measure(runner: &mut Runner<'_>, params: &TrialParams, cx: &Context<'_>) -> Result<bool, Error> {
    cx.progress(0, u64::from(params.runs));
    if !runner.warm_up(cx)? {
        return Ok(false);
    }
    for block in 0..params.runs {
        if !runner.block(cx)? {
            return Ok(false);
        }
        cx.progress(u64::from(block) + 1, u64::from(params.runs));
    }
    Ok(true)
}
