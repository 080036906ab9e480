//! Rank correlation of metrics and predictions with run times: which of them puts mappings in the order of their
//! seconds, and what choosing by it costs.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_model::{
    Context, Error, Input, InputPath, MEASURED, MEASURED_HIGH, MEASURED_LOW, Mapping, Metrics, PREDICTED,
    Paths, PlacementMetrics, PlacementOrigin, Prediction, SystemGraph, TaskGraph, Trials, Weight,
    WeightChoice, require,
};
use hopmap_objective::{METRICS, ObjectiveError, Quality};
use hopmap_statistics::{Sample, kendall, median, spearman};
use hopmap_text::FileError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accuracy::{csv, markdown, read_csv};
use crate::compare::check;
use crate::error::EvaluateError;

/// Mappings below which an order says nothing.
const FEWEST_MAPPINGS: usize = 3;

/// Parameters of `evaluate/correlation`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CorrelationParams {
    /// CSV file with run times that were measured or simulated elsewhere: columns `mapping`, the name of the cell
    /// of a mapping or its position among the mappings, from 0, and `seconds`. Several rows of a mapping are its runs.
    pub seconds: Option<InputPath>,
    /// Weight of a message in F and T; by default that of the mappings. One of `bytes`, `messages`, `time`, or `{
    /// time = { latency_s, bandwidth_bytes_per_s } }`.
    pub weight: Option<WeightChoice>,
    /// Fraction by which run times differ at least, in addition to the spread of the runs, for a pair of mappings to
    /// count as different.
    pub noise: f64,
    /// Smallest idle fraction of the processors during a run; runs on a busier machine are left out.
    pub min_idle: f64,
    /// Largest lateness of an emulated network during a run, in seconds; runs on a later one are left out.
    pub max_lateness_s: Option<f64>,
}

impl CorrelationParams {
    pub(crate) fn check(&self) -> Result<(), Error> {
        require(self.noise.is_finite() && self.noise >= 0.0, "noise", self.noise, "0 or more")?;
        require((0.0..=1.0).contains(&self.min_idle), "min_idle", self.min_idle, "0 to 1")?;
        let lateness = self.max_lateness_s.unwrap_or(0.0);
        require(lateness.is_finite() && lateness >= 0.0, "max_lateness_s", lateness, "0 s or more")?;
        Ok(())
    }
}

/// What the stage is given.
pub(crate) struct Given<'a> {
    pub(crate) graph: &'a TaskGraph,
    pub(crate) system: &'a SystemGraph,
    pub(crate) mappings: &'a [Input<Mapping>],
    pub(crate) predictions: &'a [Input<Prediction>],
    pub(crate) trials: &'a [Input<Trials>],
}

/// The table of metrics, and the values that it is made of.
pub(crate) struct Correlations {
    pub(crate) metrics: Metrics,
    pub(crate) csv: String,
    pub(crate) markdown: String,
}

/// Compares every metric, and the predictions if there are any, with the run times of the mappings.
pub(crate) fn correlate(
    given: &Given<'_>,
    params: &CorrelationParams,
    cx: &Context<'_>,
) -> Result<Correlations, Error> {
    let runs = runs(given, params, cx)?;
    let weight = weight(given, params, cx)?;
    let candidates = candidates(given, runs, weight)?;
    let names = [PREDICTED].into_iter().chain(METRICS.iter().map(|metric| metric.name));
    let pairs = Pairs { candidates: &candidates, noise: params.noise };
    let rows: Vec<Row> = names.filter_map(|name| pairs.row(name)).collect();
    let metrics = Metrics { placements: placements(&candidates), summary: pairs.summary(&rows) };
    log(&metrics.summary, cx);
    let [csv, markdown] = texts(&rows);
    Ok(Correlations { metrics, csv, markdown })
}

/// A mapping with its run times.
struct Candidate<'a> {
    label: &'a str,
    /// Position among the mappings.
    position: usize,
    /// Median of the runs.
    seconds: f64,
    /// Distribution-free interval of the median at 95 %, or the shortest and longest of fewer than six runs.
    interval: (f64, f64),
    /// Metrics and the prediction, by name.
    values: BTreeMap<String, f64>,
}

/// The run times of every mapping.
fn runs(
    given: &Given<'_>,
    params: &CorrelationParams,
    cx: &Context<'_>,
) -> Result<Vec<Vec<f64>>, EvaluateError> {
    let help = "connect the `trials` of these mappings, or give `seconds`, a CSV file with columns `mapping` and `seconds`";
    match (&params.seconds, given.trials) {
        (None, []) => Err(EvaluateError::new("nothing says how long the mappings run", help)),
        (Some(_), [_, ..]) => Err(EvaluateError::new("there are both `trials` and `seconds`", help)),
        (Some(file), []) => {
            let labels: Vec<&str> = given.mappings.iter().map(|mapping| mapping.label.as_str()).collect();
            Ok(read_seconds(file.path(), &labels)?)
        }
        (None, trials) => Ok(measured(given.mappings, trials, params, cx)),
    }
}

/// The complete runs of every mapping on a machine that was calm enough; trials know mappings by their digests.
fn measured(
    mappings: &[Input<Mapping>],
    trials: &[Input<Trials>],
    params: &CorrelationParams,
    cx: &Context<'_>,
) -> Vec<Vec<f64>> {
    let mut left_out = 0;
    let mut runs = vec![Vec::new(); mappings.len()];
    for trials in trials {
        let digests: BTreeMap<&str, &str> =
            trials.value.mappings.iter().map(|tried| (tried.name.as_str(), tried.digest.as_str())).collect();
        for run in trials.value.runs.iter().filter(|run| run.block.is_some()) {
            let is_calm = run.idle.is_none_or(|idle| idle >= params.min_idle)
                && !matches!((run.lateness_s, params.max_lateness_s), (Some(late), Some(most)) if late > most);
            let Some(seconds) = run.seconds.filter(|_| run.complete && is_calm) else {
                left_out += 1;
                continue;
            };
            let digest = digests.get(run.mapping.as_str());
            let of_mapping = mappings
                .iter()
                .zip(&mut runs)
                .filter(|(mapping, _)| digest == Some(&mapping.digest.as_str()));
            of_mapping.for_each(|(_, runs)| runs.push(seconds));
        }
    }
    if left_out > 0 {
        cx.log(format_args!(
            "{left_out} runs are left out: incomplete, or measured on a machine that was too busy"
        ));
    }
    runs
}

/// Reads run times by mapping.
fn read_seconds(path: &Path, labels: &[&str]) -> Result<Vec<Vec<f64>>, FileError> {
    const HELP: &str =
        "give a CSV file with the columns `mapping`, a name or a position from 0, and `seconds`";
    let (header, rows) = read_csv(path).map_err(|error| error.with_help(HELP))?;
    let column = |name: &str| {
        let found = header.iter().position(|other| other == name);
        found.ok_or_else(|| FileError::new(format!("column `{name}` is missing"), HELP).in_file(path))
    };
    let (mapping, seconds) = (column("mapping")?, column("seconds")?);
    let mut runs = vec![Vec::new(); labels.len()];
    for row in &rows {
        let line = row.position().map_or(0, |position| position.line() as usize);
        let wrong = |problem: String, help: &str| FileError::at(line, problem, help).in_file(path);
        let field = |column: usize| row.get(column).unwrap_or_default();
        let by_name = || labels.iter().position(|label| *label == field(mapping));
        let by_position = || field(mapping).parse().ok().filter(|&position: &usize| position < labels.len());
        let place = by_name().or_else(by_position).ok_or_else(|| {
            wrong(
                format!("unknown mapping `{}`", field(mapping)),
                &format!("mappings: {}", labels.join("; ")),
            )
        })?;
        let time = field(seconds).parse().ok().filter(|time: &f64| time.is_finite() && *time > 0.0);
        runs[place].push(time.ok_or_else(|| {
            wrong(format!("`{}` is not a time in seconds", field(seconds)), "times are above 0")
        })?);
    }
    Ok(runs)
}

/// The weight of F and T: the given one, or that of all mappings.
fn weight(given: &Given<'_>, params: &CorrelationParams, cx: &Context<'_>) -> Result<Weight, Error> {
    if let Some(choice) = params.weight {
        return choice.resolve(given.graph, given.system, cx);
    }
    let mut weights = given.mappings.iter().map(|mapping| mapping.value.weight);
    let first = weights.next().unwrap_or_default();
    if weights.all(|weight| weight == first) {
        return Ok(first);
    }
    let help = "set `weight`, by which F and T are computed for all of them";
    Err(EvaluateError::new("the mappings were made for different weights", help).into())
}

/// The mappings that have run times, with the values of their metrics.
fn candidates<'a>(
    given: &Given<'a>,
    runs: Vec<Vec<f64>>,
    weight: Weight,
) -> Result<Vec<Candidate<'a>>, Error> {
    let paths = Paths::new(given.system);
    let mut candidates = Vec::new();
    for (position, (mapping, runs)) in given.mappings.iter().zip(runs).enumerate() {
        check(given.graph, given.system, &mapping.value)?;
        let Some(seconds) = median(runs.clone()) else { continue };
        let sample = Sample::new(runs);
        candidates.push(Candidate {
            label: &mapping.label,
            position,
            seconds,
            interval: sample.median_interval().unwrap_or((sample.least(), sample.largest())),
            values: values(given, mapping, paths.as_ref(), weight)?,
        });
    }
    let (found, all) = (candidates.len(), given.mappings.len());
    if found < FEWEST_MAPPINGS {
        let problem = format!(
            "{found} of {all} mappings have run times, but an order needs at least {FEWEST_MAPPINGS}"
        );
        let help = "connect more mappings, from bad to good ones, and complete runs of each";
        return Err(EvaluateError::new(problem, help).into());
    }
    Ok(candidates)
}

/// The metrics of a mapping, and its predicted seconds if predictions are connected.
fn values(
    given: &Given<'_>,
    mapping: &Input<Mapping>,
    paths: Option<&Paths>,
    weight: Weight,
) -> Result<BTreeMap<String, f64>, Error> {
    let slots = mapping.value.slots();
    let quality: Result<Quality, ObjectiveError> =
        Quality::new(given.graph, given.system, paths, &slots, weight);
    let mut values = quality?.metrics();
    if given.predictions.is_empty() {
        return Ok(values);
    }
    let is_of_mapping = |prediction: &&Input<Prediction>| {
        prediction.value.complete
            && prediction.value.ranks.iter().map(|rank| rank.slot).eq(slots.iter().copied())
    };
    let Some(prediction) = given.predictions.iter().find(is_of_mapping) else {
        let problem = format!("`{}` has no complete prediction", mapping.label);
        return Err(EvaluateError::new(problem, "connect a prediction of every mapping").into());
    };
    values.insert(PREDICTED.to_owned(), prediction.value.seconds());
    Ok(values)
}

/// A metric compared with the run times.
struct Row {
    name: &'static str,
    spearman: Option<f64>,
    kendall: Option<f64>,
    /// Over pairs that differ by more than the noise.
    kendall_beyond_noise: Option<f64>,
    /// The first mapping with the smallest value, and how many share it.
    chosen: (String, usize),
    regret: f64,
}

/// The pairs of mappings.
struct Pairs<'a> {
    candidates: &'a [Candidate<'a>],
    noise: f64,
}

impl Pairs<'_> {
    /// Whether the intervals of two mappings are apart.
    fn differ(&self, one: usize, other: usize) -> bool {
        let [(low, high), (other_low, other_high)] =
            [one, other].map(|index| self.candidates[index].interval);
        let factor = 1.0 + self.noise;
        high * factor < other_low || other_high * factor < low
    }

    /// A metric that all mappings have; the first value that is missing leaves it out.
    fn row(&self, name: &'static str) -> Option<Row> {
        let value = |candidate: &Candidate<'_>| candidate.values.get(name).copied().map(rounded);
        let values: Vec<f64> = self.candidates.iter().map(value).collect::<Option<_>>()?;
        let seconds: Vec<f64> = self.candidates.iter().map(|candidate| candidate.seconds).collect();
        let (best, shortest) = (least(&values), least(&seconds));
        let chosen: Vec<usize> = (0..values.len()).filter(|&index| values[index] <= best).collect();
        // Equal values leave the choice to chance.
        let expected = chosen.iter().map(|&index| seconds[index]).sum::<f64>() / chosen.len() as f64;
        Some(Row {
            name,
            spearman: spearman(&values, &seconds),
            kendall: kendall(&values, &seconds, |_, _| true),
            kendall_beyond_noise: kendall(&values, &seconds, |one, other| self.differ(one, other)),
            chosen: (self.candidates[chosen[0]].label.to_owned(), chosen.len()),
            regret: expected / shortest - 1.0,
        })
    }

    /// Numbers of mappings and pairs, the coefficients and regrets of all metrics, and the error of predictions.
    fn summary(&self, rows: &[Row]) -> BTreeMap<String, f64> {
        let count = self.candidates.len();
        let pairs = (0..count).flat_map(|second| (0..second).map(move |first| (first, second)));
        let beyond_noise = pairs.filter(|&(first, second)| self.differ(first, second)).count();
        let mut summary = BTreeMap::from([
            ("mappings".to_owned(), count as f64),
            ("pairs".to_owned(), (count * (count - 1) / 2) as f64),
            ("pairs_beyond_noise".to_owned(), beyond_noise as f64),
        ]);
        for row in rows {
            let coefficients = [
                ("spearman", row.spearman),
                ("kendall", row.kendall),
                ("kendall_beyond_noise", row.kendall_beyond_noise),
                ("regret", Some(row.regret)),
            ];
            let known = coefficients.into_iter().filter_map(|(what, value)| Some((what, value?)));
            summary.extend(known.map(|(what, value)| (format!("{what}_{}", row.name), value)));
        }
        let error = |candidate: &Candidate<'_>| {
            Some((candidate.values.get(PREDICTED)? / candidate.seconds - 1.0).abs())
        };
        let errors = self.candidates.iter().filter_map(error).collect();
        summary.extend(median(errors).map(|error| ("prediction_error".to_owned(), error)));
        summary
    }
}

/// Nine significant digits: values that differ only by the order of a sum are equal.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A row for every mapping, with its measured seconds.
fn placements(candidates: &[Candidate<'_>]) -> Vec<PlacementMetrics> {
    let placement = |candidate: &Candidate<'_>| {
        let (low, high) = candidate.interval;
        let measured = [(MEASURED, candidate.seconds), (MEASURED_LOW, low), (MEASURED_HIGH, high)];
        let mut values = candidate.values.clone();
        values.extend(measured.map(|(name, value)| (name.to_owned(), value)));
        PlacementMetrics { origin: PlacementOrigin::Mapping, sample: candidate.position as u32, values }
    };
    candidates.iter().map(placement).collect()
}

fn log(summary: &BTreeMap<String, f64>, cx: &Context<'_>) {
    let value = |name: &str| summary.get(name).copied();
    let share =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{:.1} %", 100.0 * value));
    let (mappings, pairs) = (value("mappings").unwrap_or(0.0), value("pairs_beyond_noise").unwrap_or(0.0));
    cx.log(format_args!("{mappings} mappings; {pairs} pairs differ by more than the noise"));
    if let Some(regret) = value(&format!("regret_{PREDICTED}")) {
        let order = value(&format!("kendall_beyond_noise_{PREDICTED}"));
        let order = order.map_or_else(|| "–".to_owned(), |order| format!("{order:.2}"));
        let error = share(value("prediction_error"));
        cx.log(format_args!(
            "prediction: median error {error}, Kendall's τ of these pairs {order}, regret {}",
            share(Some(regret))
        ));
    }
}

/// The table as CSV and Markdown.
fn texts(rows: &[Row]) -> [String; 2] {
    let header = ["metric", "Spearman", "Kendall", "Kendall beyond noise", "regret %", "chosen"];
    let header: Vec<String> = header.map(str::to_owned).to_vec();
    let coefficient = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let row = |row: &Row| {
        let (chosen, count) = &row.chosen;
        let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        vec![
            row.name.to_owned(),
            coefficient(row.spearman),
            coefficient(row.kendall),
            coefficient(row.kendall_beyond_noise),
            format!("{:.2}", 100.0 * row.regret),
            format!("{chosen}{more}"),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    [csv(std::iter::once(&header).chain(&rows)), markdown(&header, &rows)]
}
