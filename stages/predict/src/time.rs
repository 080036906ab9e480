//! `predict/time`: the run time of a program under a mapping.

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Port, Prediction, Program, Stage, SystemGraph, Tables,
    TablesError, TextFile,
};
use hopmap_objective::{linear, round_robin};
use hopmap_prediction::{Options, replay};
use miette::Diagnostic;

use crate::bound::without_contention;
use crate::params::{BoundParams, TimeParams};
use crate::perfetto;

/// `predict/time`: replays a program on a machine.
#[derive(Debug)]
pub struct TimeStage;

impl Stage for TimeStage {
    type Params = TimeParams;
    const KIND: &'static str = "predict/time";
    const SUMMARY: &'static str =
        "Predict the run time of a program under a mapping, by replay on shared links";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = &[
        Port::input::<Program>("program"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::optional::<Tables>("tables"),
        Port::output::<Prediction>("prediction"),
        Port::possible::<TextFile>("perfetto"),
    ];

    fn check(params: &TimeParams) -> Result<(), Error> {
        BoundParams::from(params).check()
    }

    fn run(params: TimeParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let program = inputs.one::<Program>("program")?.value;
        let tables = inputs.optional::<Tables>("tables")?;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let routed = tables.map(|tables| routed(&system, &tables.value)).transpose()?;
        let system = routed.as_ref().unwrap_or(&system);
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        check(&mapping, system)?;
        let options = params.options(system)?;
        let should_stop = || cx.should_stop();
        let mut prediction = replay(&program, system, &mapping, &options, &should_stop)?;
        if params.baselines && prediction.complete {
            let options = Options { intervals: 0, ..options };
            let seconds = |mapping: &Mapping| {
                let baseline = replay(&program, system, mapping, &options, &should_stop)?;
                Ok::<_, Error>(baseline.complete.then(|| baseline.seconds()))
            };
            add_baselines(&mut prediction, &mapping, system, seconds)?;
        }
        if let Some(recorded) = program.recorded.filter(|_| prediction.complete) {
            let recorded = recorded.as_secs_f64();
            prediction.metrics.insert("recorded_s".to_owned(), recorded);
            if recorded > 0.0 {
                prediction
                    .metrics
                    .insert("seconds_over_recorded".to_owned(), prediction.seconds() / recorded);
            }
        }
        let flags = [("contended", prediction.is_contended), ("calibrated", prediction.is_calibrated)];
        prediction.metrics.extend(flags.map(|(name, flag)| (name.to_owned(), f64::from(u8::from(flag)))));
        if !prediction.complete {
            mark_partial(&mut prediction);
        }
        report(&prediction, cx);
        let mut outputs = Outputs::new();
        if params.timeline && prediction.complete {
            let text = perfetto::write(&prediction, &mapping);
            outputs = outputs.with("perfetto", TextFile { name: "timeline.json".to_owned(), text });
        }
        let complete = prediction.complete;
        let outputs = outputs.with("prediction", prediction);
        Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

/// The machine with the routes of tables.
fn routed(system: &SystemGraph, tables: &Tables) -> Result<SystemGraph, TablesError> {
    Ok(SystemGraph { routing: tables.routing(system)?, ..system.clone() })
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

/// Checks that a mapping is for the hosts of a machine.
fn check(mapping: &Mapping, system: &SystemGraph) -> Result<(), OtherMachine> {
    let hosts = system.hosts().map(|(node, _, slots)| (system.nodes[node as usize].name.as_str(), slots));
    let mapped = mapping.hosts.iter().map(|host| (host.host.as_str(), host.slots));
    match mapped.eq(hosts) {
        true => Ok(()),
        false => Err(OtherMachine),
    }
}

/// A mapping for other hosts.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the hosts and slots of the mapping are not those of the machine")]
#[diagnostic(code(predict::other_machine), help("connect the machine for which the mapping was computed"))]
struct OtherMachine;

/// A replay that was stopped says how far it came, and predicts nothing.
fn mark_partial(prediction: &mut Prediction) {
    let replayed = prediction.seconds();
    prediction.metrics.retain(|name, _| name == "contended" || name == "calibrated");
    prediction.metrics.insert("replayed_s".to_owned(), replayed);
}

/// Logs the run time beside that of the linear mapping.
fn report(prediction: &Prediction, cx: &Context<'_>) {
    if let Some(replayed) = prediction.metrics.get("replayed_s") {
        return cx.log(format_args!(
            "stopped after the first {replayed:.6} s of the program: nothing is predicted"
        ));
    }
    let contention = without_contention(prediction.is_contended);
    let linear = prediction.metrics.get("seconds_linear");
    let linear = linear.map_or_else(String::new, |linear| format!(", linear mapping {linear:.6} s"));
    let overheads = if prediction.is_calibrated { "" } else { ", without overheads of messages" };
    cx.log(format_args!("predicted run time {:.6} s{linear}{contention}{overheads}", prediction.seconds()));
}
