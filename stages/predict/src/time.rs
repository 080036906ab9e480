//! `predict/time`: the run time of a program under a mapping.

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Prediction, Program, Stage, SystemGraph,
    TextFile,
};
use hopmap_objective::{linear, round_robin};
use hopmap_prediction::{Options, replay};

use crate::{TimeParams, perfetto};

/// `predict/time`: replays a program on a machine.
#[derive(Debug)]
pub struct TimeStage;

impl Stage for TimeStage {
    type Params = TimeParams;
    const KIND: &'static str = "predict/time";
    const SUMMARY: &'static str =
        "Predict the run time of a program under a mapping, by replay on shared links";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<Program>("program"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::output::<Prediction>("prediction"),
                Port::possible::<TextFile>("perfetto"),
            ]
        }
    }

    fn check(params: &TimeParams) -> Result<(), Error> {
        params.check()
    }

    fn run(params: TimeParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let program = inputs.one::<Program>("program")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let options = params.options(&system)?;
        let should_stop = || cx.should_stop();
        let mut prediction = replay(&program, &system, &mapping, &options, &should_stop)?;
        if params.baselines && prediction.complete {
            let options = Options { intervals: 0, ..options };
            let seconds = |mapping: &Mapping| {
                let baseline = replay(&program, &system, mapping, &options, &should_stop)?;
                Ok::<_, Error>(baseline.complete.then(|| baseline.seconds()))
            };
            add_baselines(&mut prediction, &mapping, &system, seconds)?;
        }
        prediction.metrics.insert("contended".to_owned(), f64::from(u8::from(prediction.is_contended)));
        report(&prediction, cx);
        let mut outputs = Outputs::new();
        if params.timeline {
            let text = perfetto::write(&prediction, &mapping);
            outputs = outputs.with("perfetto", TextFile { name: "timeline.json".to_owned(), text });
        }
        let complete = prediction.complete;
        let outputs = outputs.with("prediction", prediction);
        Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

/// Adds the run times of the linear and the round-robin mapping, and the ratios to them. Without either, the
/// prediction is partial.
fn add_baselines(
    prediction: &mut Prediction,
    mapping: &Mapping,
    system: &SystemGraph,
    seconds: impl Fn(&Mapping) -> Result<Option<f64>, Error>,
) -> Result<(), Error> {
    let ranks = mapping.ranks.len();
    let baselines = [("linear", linear(ranks)), ("round_robin", round_robin(system)[..ranks].to_vec())];
    for (name, slots) in baselines {
        let Some(baseline) = seconds(&Mapping::new(&slots, system, mapping.weight)?)? else {
            prediction.complete = false;
            return Ok(());
        };
        prediction.metrics.insert(format!("seconds_{name}"), baseline);
        if baseline > 0.0 {
            prediction.metrics.insert(format!("seconds_over_{name}"), prediction.seconds() / baseline);
        }
    }
    Ok(())
}

/// Logs the run time beside that of the linear mapping.
fn report(prediction: &Prediction, cx: &Context<'_>) {
    let contention = match prediction.is_contended {
        true => "",
        false => "; without contention, because the machine has no links",
    };
    let linear = prediction.metrics.get("seconds_linear");
    let linear = linear.map_or_else(String::new, |linear| format!(", linear mapping {linear:.6} s"));
    cx.log(format_args!("predicted run time {:.6} s{linear}{contention}", prediction.seconds()));
}
