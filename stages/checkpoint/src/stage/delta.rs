//! `checkpoint/delta`: what a series takes by deltas, as published.

use hopmap_model::{
    CheckpointSeries, Context, DeltaRule, Deltas, Error, InputPath, Inputs, Outcome, Outputs, Port,
    RuleTotals, Stage,
};

use super::names;
use crate::delta::{DeltaError, Settings, WriteCost, against_first, deltas};
use crate::params::{DeltaParams, Reading, Rule};
use crate::series::{self, SeriesError};

/// Lengths of blocks that there are.
const BLOCKS: std::ops::RangeInclusive<u32> = 256..=65_536;

/// Bases that a line names.
const MOST_BASES: usize = 24;

/// `checkpoint/delta`: what a series takes by deltas, as published.
#[derive(Debug)]
pub struct DeltaStage;

impl Stage for DeltaStage {
    type Params = DeltaParams;
    const KIND: &'static str = "checkpoint/delta";
    const SUMMARY: &'static str =
        "What deltas of a series of checkpoints store, with the first, the previous or ADCA's base";
    const REVISION: u32 = 3;

    fn ports() -> &'static [Port] {
        const { &[Port::optional::<CheckpointSeries>("checkpoints"), Port::output::<Deltas>("deltas")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(check(params)?)
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        match &params.series {
            Some(series) => Ok(names::of(series::find(series.path())?)),
            None => Ok(Vec::new()),
        }
    }

    fn observes(params: &Self::Params) -> bool {
        params.target.is_some()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let connected = inputs.optional::<CheckpointSeries>("checkpoints")?;
        let series = series::given(params.series.as_ref().map(InputPath::path), connected.as_ref())?;
        if let [only] = series.as_slice() {
            let path = params.series.as_ref().map(|series| series.path().to_owned()).unwrap_or_default();
            return Err(SeriesError::One { path, name: only.name.clone() }.into());
        }
        let settings = settings(&params)?;
        let (deltas, whole) = deltas(&series, &settings, cx)?;
        deltas.rules.iter().for_each(|rule| cx.log(sentence(rule)));
        settings
            .blocks
            .iter()
            .filter_map(|&block| verdict(&deltas, block, settings.epsilon))
            .for_each(|line| cx.log(line));
        let outputs = Outputs::new().with("deltas", deltas);
        Ok(if whole { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

fn check(params: &DeltaParams) -> Result<(), DeltaError> {
    for (name, empty) in [
        ("block", params.block.is_empty()),
        ("rules", params.rules.is_empty() && !params.optimum),
        ("reading", params.reading.is_empty() && params.rules.contains(&Rule::Adca)),
    ] {
        if empty {
            return Err(DeltaError::Nothing { name });
        }
    }
    let there_is = |block: &u32| block.is_power_of_two() && BLOCKS.contains(block);
    if let Some(&block) = params.block.iter().find(|block| !there_is(block)) {
        return Err(DeltaError::Block { block });
    }
    if !(0.0..1.0).contains(&params.epsilon) {
        return Err(DeltaError::Epsilon { epsilon: params.epsilon });
    }
    check_cost(params)
}

fn check_cost(params: &DeltaParams) -> Result<(), DeltaError> {
    let (latency, bandwidth) = ("write_latency_s", "write_bytes_per_s");
    for (name, value) in [(latency, params.write_latency_s), (bandwidth, params.write_bytes_per_s)] {
        if value.is_some() && params.target.is_some() {
            return Err(DeltaError::MeasuredAndGiven { name });
        }
    }
    if let Some(value) = params.write_latency_s.filter(|value| !(value.is_finite() && *value >= 0.0)) {
        return Err(DeltaError::Cost { name: latency, value, least: "0 or more seconds" });
    }
    if let Some(value) = params.write_bytes_per_s.filter(|value| !(value.is_finite() && *value > 0.0)) {
        return Err(DeltaError::Cost { name: bandwidth, value, least: "above 0 bytes per second" });
    }
    Ok(())
}

fn settings(params: &DeltaParams) -> Result<Settings, DeltaError> {
    let given = WriteCost::default();
    let cost = match &params.target {
        Some(target) => WriteCost::measure(target.path())?,
        None => WriteCost {
            latency_s: params.write_latency_s.unwrap_or(given.latency_s),
            bytes_per_s: params.write_bytes_per_s.unwrap_or(given.bytes_per_s),
        },
    };
    let mut blocks = params.block.clone();
    blocks.sort_unstable();
    blocks.dedup();
    Ok(Settings {
        blocks,
        rules: rules(params),
        epsilon: params.epsilon,
        align: params.align,
        matching: params.matching,
        block_overhead: u64::from(params.block_overhead),
        cost,
    })
}

/// Rules with their readings, each once and in the order of tables.
fn rules(params: &DeltaParams) -> Vec<DeltaRule> {
    let asked = |rule: &DeltaRule| match rule {
        DeltaRule::First => params.rules.contains(&Rule::First),
        DeltaRule::Incremental => params.rules.contains(&Rule::Incremental),
        DeltaRule::AdcaLiteral => {
            params.rules.contains(&Rule::Adca) && params.reading.contains(&Reading::Literal)
        }
        DeltaRule::AdcaImmediate => {
            params.rules.contains(&Rule::Adca) && params.reading.contains(&Reading::Immediate)
        }
        DeltaRule::Optimum => params.optimum,
    };
    DeltaRule::ALL.into_iter().filter(asked).collect()
}

/// Whether the first checkpoint suffices as base, as the paper says of its programs: ADCA's test, asked of all deltas together.
fn verdict(deltas: &Deltas, block: u32, epsilon: f64) -> Option<String> {
    let found = against_first(&deltas.checkpoints, &deltas.rules, block)?;
    let suffices = if found.saving > epsilon { "does not suffice" } else { "suffices" };
    Some(format!(
        "the first checkpoint {suffices} as base, blocks of {block} bytes: {} saves {:.1} % of its deltas, \
         and epsilon is {:.0} %",
        found.best.name(),
        100.0 * found.saving,
        100.0 * epsilon
    ))
}

/// What came out for a rule, in a line.
fn sentence(rule: &RuleTotals) -> String {
    let bases: Vec<String> = rule.bases.iter().take(MOST_BASES).map(u32::to_string).collect();
    let rest = if rule.bases.len() > MOST_BASES { " …" } else { "" };
    format!(
        "{}, blocks of {} bytes: {} of {} bytes stored, {:.3} s of writing, depth {}, bases {}{rest}",
        rule.rule.name(),
        rule.block,
        rule.stored_bytes,
        rule.full_bytes,
        rule.write_s,
        rule.depth,
        bases.join(" ")
    )
}
