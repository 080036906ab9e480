//! `run/trial`.

use std::time::Instant;

use hopmap_launchers::with_variables;
use hopmap_model::{
    Context, Error, InputPath, Inputs, Mapping, Metrics, Outcome, Outputs, Port, Prediction, Stage, Trials,
};
use hopmap_trials::{Decision, Ending, Step, TimeLeft, add_metrics, summary};

use crate::candidates::candidates;
use crate::command::program_files;
use crate::error::TrialError;
use crate::params::{TrialParams, words};
use crate::runner::{Block, RECORDING_WORD, Runner, end_earlier_run};

/// `run/trial`: measures the run time of a program under several mappings.
///
/// `checks` are results of `launch/check`, which come before the first run: if a launcher does not obey the file of a
/// mapping, nothing is measured.
#[derive(Debug)]
pub struct TrialStage;

impl Stage for TrialStage {
    type Params = TrialParams;
    const KIND: &'static str = "run/trial";
    const SUMMARY: &'static str = "Run a program under several mappings, and measure how long it takes";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::many::<Mapping>("mappings"),
        Port::many::<Prediction>("predictions"),
        Port::many::<Metrics>("checks"),
        Port::output::<Trials>("trials"),
    ];

    fn check(params: &TrialParams) -> Result<(), Error> {
        params.check()
    }

    fn reads(params: &TrialParams) -> Result<Vec<InputPath>, Error> {
        // Another program takes another time. One that is missing is an error of the run.
        Ok(program_files(params).unwrap_or_default().into_iter().map(InputPath::new).collect())
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
        let launcher = params.launcher.clone().unwrap_or_else(|| params.launch.words().join(" "));
        let command = with_variables(&params.env, &format!("{launcher} {}", params.program));
        std::iter::once(command).chain(params.prepare.clone()).chain(params.lateness.clone()).collect()
    }

    fn run(params: TrialParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let begin = Instant::now();
        end_earlier_run(cx);
        let (mappings, predictions) = (inputs.many("mappings")?, inputs.many("predictions")?);
        let candidates = candidates(mappings, &predictions, params.best, cx)?;
        let mut runner = Runner::new(&params, &candidates, &cx.scratch())?;
        if params.record {
            runner = runner.wrapped_in(recorder()?);
        }
        let measurement = Measurement {
            params: &params,
            names: candidates.iter().map(|candidate| candidate.name.as_str()).collect(),
            begin,
        };
        let earlier = inputs.earlier::<Trials>("trials")?;
        let blocks = earlier.map(|earlier| runner.resume(&earlier)).transpose()?.unwrap_or_default();
        let is_complete = measurement.run(&mut runner, blocks, cx)?;
        let mut trials = runner.finish(!is_complete)?;
        add_metrics(&mut trials, &params.design());
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

/// Runs the blocks for which the decision asks.
struct Measurement<'a> {
    params: &'a TrialParams,
    names: Vec<&'a str>,
    begin: Instant,
}

impl Measurement<'_> {
    /// The warm-up, then blocks until the trial ends, after those of a trial that was stopped early; `false` if it was stopped.
    fn run(&self, runner: &mut Runner<'_>, blocks: Vec<Block>, cx: &Context<'_>) -> Result<bool, Error> {
        let design = self.params.design();
        let mut decision = Decision::new(design, self.names.len());
        if !blocks.is_empty() {
            cx.log(format_args!("goes on after {} blocks of a trial that was stopped", blocks.len()));
        }
        let first = blocks.len() as u64 + 1;
        for block in blocks {
            decision.add(block.times, block.choice);
            if block.was_shown {
                decision.was_shown();
            }
        }
        let most = u64::from(design.blocks)
            + u64::from(design.choose.filter(|_| decision.is_choosing()).unwrap_or(0));
        cx.progress(first - 1, most);
        if !runner.warm_up(&decision.alive(), cx)? {
            return Ok(false);
        }
        for done in first.. {
            let gave_up = (0..self.names.len()).filter(|mapping| runner.gave_up(*mapping));
            gave_up.for_each(|mapping| decision.give_up(mapping));
            let was_choosing = decision.is_choosing();
            let (time, is_own) = self.time_left(runner, cx);
            let step = decision.next(time.as_ref());
            if let (true, Some(chosen)) = (was_choosing, decision.chosen()) {
                cx.log(format_args!("{} had the best median and goes on alone", self.names[chosen]));
            }
            let mappings = match step {
                Step::Block(mappings) => mappings,
                Step::End(ending) => {
                    self.log(ending, is_own, cx);
                    // The deadline of the run is not a parameter: a trial that it ends can go on.
                    return Ok(!runner.lost_one() && (is_own || ending != Ending::Time));
                }
            };
            match runner.block(&mappings, decision.is_choosing(), cx)? {
                Some(times) => decision.add(times, decision.is_choosing()),
                None => return Ok(false),
            }
            cx.progress(done, most);
        }
        Ok(true)
    }

    /// The time until `time_s` or the deadline of the run, and whether it is that of `time_s`.
    fn time_left(&self, runner: &Runner<'_>, cx: &Context<'_>) -> (Option<TimeLeft>, bool) {
        let own = self.params.time_s.map(|time| time - self.begin.elapsed().as_secs_f64());
        let of_run = cx.deadline().map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
        let is_own = own.is_some_and(|own| of_run.is_none_or(|of_run| own <= of_run));
        let seconds = if is_own { own } else { of_run };
        (seconds.map(|seconds| TimeLeft { seconds, slowest: runner.slowest().to_vec() }), is_own)
    }

    fn log(&self, ending: Ending, is_own: bool, cx: &Context<'_>) {
        match (ending, self.params.time_s) {
            (Ending::Time, Some(time)) if is_own => {
                cx.log(format_args!("a further block would not fit into {time} s"));
            }
            (Ending::Time, _) => cx.log("a further block would not fit before the deadline"),
            (Ending::NoPair, _) => cx.log("it ends, because there is nothing to compare"),
            (Ending::Blocks | Ending::Precise, _) => {}
        }
    }
}
