//! `run/best`.

use hopmap_model::{Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Stage, Trials};
use hopmap_trials::{best, comparisons, failed_runs, fails};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TrialError;

/// Parameters of `run/best`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BestParams {
    /// Also compare mappings of whose runs more than 5 % failed. A failed run loses against one that ended.
    pub allow_failures: bool,
}

/// `run/best`: the mapping of a trial that is faster than the first one, or the first one.
#[derive(Debug)]
pub struct BestStage;

impl Stage for BestStage {
    type Params = BestParams;
    const KIND: &'static str = "run/best";
    const SUMMARY: &'static str = "Return the best mapping of a trial, or the first one if none is faster";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::input::<Trials>("trials"),
        Port::many::<Mapping>("mappings"),
        Port::output::<Mapping>("mapping"),
    ];

    fn run(params: BestParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let trials = inputs.one::<Trials>("trials")?.value;
        let fault = |problem: String| TrialError::Mappings { problem };
        let best = best(&trials, params.allow_failures)
            .ok_or_else(|| fault("the trial is of no mapping".to_owned()))?;
        let mappings = inputs.many::<Mapping>("mappings")?;
        let mapping = mappings.iter().find(|input| input.digest == best.digest).ok_or_else(|| {
            fault(format!("`{}`, the best mapping of the trial, is not connected", best.name))
        })?;
        let never_ended = trials.seconds(&best.name).is_empty();
        if fails(&trials, &best.name) && (never_ended || !params.allow_failures) {
            let (failed, runs) = failed_runs(&trials, &best.name);
            return Err(TrialError::BestFails { mapping: best.name.clone(), failed, runs }.into());
        }
        comparisons(&trials, params.allow_failures).iter().for_each(|sentence| cx.log(sentence));
        let is_first = trials.mappings.first() == Some(best);
        let reason = if is_first { "no placement is significantly faster" } else { "it is faster" };
        cx.log(format_args!("{} is the mapping to use: {reason}", best.name));
        Ok(Outcome::Done(Outputs::new().with("mapping", Mapping::clone(&mapping.value))))
    }
}
