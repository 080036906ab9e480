//! What a run found, in one sentence for each program and machine: measured if there are trials, else predicted seconds, else F.

use std::collections::BTreeSet;

use hopmap_artifact::saved_at_most;
use hopmap_model::{Artifact, MOST_GAIN, Metrics, Prediction, TrialMapping, Trials};
use hopmap_statistics::Sample;
use hopmap_text::duration;
use hopmap_trials::{comparisons, rival};

use super::page::{Results, values_of};
use super::problem::Problem;
use crate::engine::{OutputRecord, State};

/// Trials that are summed up.
const MOST_TRIALS: usize = 3;
/// Ratios that differ by less are the same in three decimals.
const SAME: f64 = 5e-4;
/// The baselines in names of metrics, and as text with the option of a launcher that gives them.
const BASELINES: [(&str, &str); 2] = [("linear", "linear"), ("round_robin", "round-robin (`--map-by node`)")];

/// What the trials show; without any what the best mappings gain, or why none was sought.
pub(crate) fn answers(results: Results<'_>) -> Vec<String> {
    let measured: Vec<String> =
        trials(results).take(MOST_TRIALS).flat_map(|trials| measured(results, &trials)).collect();
    if !measured.is_empty() {
        return measured;
    }
    match bounds(results).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((most, _)) if results.report.count(State::NotWorthIt) > 0 => {
            vec![format!("No placement gains more than {:.1} %: not worth it.", 100.0 * most)]
        }
        _ => gains(results),
    }
}

fn trials(results: Results<'_>) -> impl Iterator<Item = Trials> {
    results.outputs(Trials::KIND).filter_map(move |(_, record)| results.read(record))
}

fn measured(results: Results<'_>, trials: &Trials) -> Vec<String> {
    match &*trials.mappings {
        [] => Vec::new(),
        [first] if results.outputs(Prediction::KIND).next().is_some() => {
            vec![format!("No candidate is predicted to be faster than `{}`: keep it.", first.name)]
        }
        [first] => vec![format!("No other placement than `{}` was tried.", first.name)],
        [first, ..] => {
            let median = |name: &str| Sample::new(trials.seconds(name)).quartiles()[1];
            let medians = rival(trials).map(|rival| [median(&rival.name), median(&first.name)]);
            let seconds = medians.filter(|medians| medians.iter().all(|seconds| seconds.is_finite()));
            let seconds = seconds
                .map(|[placed, first]| format!(": {} instead of {}", duration(placed), duration(first)));
            let sentences = comparisons(trials, false).into_iter();
            sentences.map(|sentence| sentence + seconds.as_deref().unwrap_or_default()).collect()
        }
    }
}

/// The mappings that the first trial compares: the baseline and the one whose gain counts.
pub(super) fn compared_mappings(results: Results<'_>) -> Option<[TrialMapping; 2]> {
    let trials = trials(results).next()?;
    Some([trials.mappings.first()?.clone(), rival(&trials)?.clone()])
}

/// What the best mapping of each program and machine gains over linear and round-robin, predicted or else by F.
pub(crate) fn gains(results: Results<'_>) -> Vec<String> {
    let pipeline = results.pipeline;
    let of_metric = |(kind, metric): (&'static str, &str)| -> Vec<String> {
        let value = |record: &OutputRecord| record.metrics.get(metric).copied().unwrap_or(f64::INFINITY);
        let ratio = format!("{metric}_over_linear");
        let compared = results.outputs(kind).filter(|(_, record)| record.metrics.contains_key(&ratio));
        let mut best: Vec<(usize, &OutputRecord)> = compared.collect();
        best.sort_by(|a, b| value(a.1).total_cmp(&value(b.1)));
        let mut problems = BTreeSet::new();
        best.retain(|(cell, _)| problems.insert(Problem::new(pipeline, &pipeline.cells[*cell])));
        best.sort_by_key(|(cell, _)| *cell);
        let sentence = |&(cell, record): &(usize, &OutputRecord)| match best.len() {
            1 => gain(metric, record),
            _ => format!("{}: {}", values_of(&pipeline.cells[cell]), gain(metric, record)),
        };
        best.iter().map(sentence).collect()
    };
    let gains = [(Prediction::KIND, "seconds"), (Metrics::KIND, "F")].map(of_metric);
    gains.into_iter().find(|sentences| !sentences.is_empty()).unwrap_or_default()
}

/// What a mapping gains.
fn gain(metric: &str, record: &OutputRecord) -> String {
    let value = |name: &str| record.metrics.get(name).copied();
    let seconds = value(metric).filter(|_| metric == "seconds");
    let beside = |(baseline, text): (&str, &str)| {
        let ratio = value(&format!("{metric}_over_{baseline}"))?;
        Some(match seconds {
            _ if (ratio - 1.0).abs() < SAME => format!("as good as {text}"),
            None => format!("{ratio:.3} × {text}"),
            Some(seconds) => {
                let (saved, side) = (seconds / ratio - seconds, if ratio < 1.0 { "less" } else { "more" });
                format!("{} ({:.1} %) {side} than {text}", duration(saved.abs()), 100.0 * (ratio - 1.0).abs())
            }
        })
    };
    let beside: Vec<String> = BASELINES.into_iter().filter_map(beside).collect();
    let what =
        seconds.map_or_else(|| metric.to_owned(), |seconds| format!("predicted {}:", duration(seconds)));
    // Launchers fill hosts one after the other by default, and no baseline is better.
    let ratios: Vec<f64> =
        BASELINES.iter().filter_map(|(baseline, _)| value(&format!("{metric}_over_{baseline}"))).collect();
    let is_default_best = ratios.first().is_some_and(|ratio| *ratio > 1.0 - SAME)
        && ratios.iter().all(|ratio| *ratio < 1.0 + SAME);
    let advice = if is_default_best { ": keep the default placement" } else { "" };
    format!("{what} {}{advice}", beside.join(", "))
}

/// What no placement can exceed, if the run has one bound.
pub(crate) fn bound(results: Results<'_>) -> Option<String> {
    let mut bounds = bounds(results);
    let (most, reference) = bounds.next().filter(|_| bounds.next().is_none())?;
    Some(saved_at_most(most, reference?))
}

fn bounds(results: Results<'_>) -> impl Iterator<Item = (f64, Option<f64>)> {
    let bound = |(_, record): (usize, &OutputRecord)| {
        Some((*record.metrics.get(MOST_GAIN)?, record.metrics.get("reference_s").copied()))
    };
    results.outputs(Metrics::KIND).filter_map(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(metrics: &[(&str, f64)]) -> OutputRecord {
        let metrics = metrics.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        OutputRecord { metrics, ..OutputRecord::default() }
    }

    /// Once nothing said that `mpirun --map-by node` gives the whole gain.
    #[test]
    fn a_gain_is_beside_linear_and_round_robin() {
        let placed = record(&[("F", 48.0), ("F_over_linear", 0.033), ("F_over_round_robin", 1.0)]);
        assert_eq!(gain("F", &placed), "F 0.033 × linear, as good as round-robin (`--map-by node`)");
        let other = record(&[("F", 50.0), ("F_over_linear", 1.0), ("F_over_round_robin", 1.0)]);
        assert_eq!(
            gain("F", &other),
            "F as good as linear, as good as round-robin (`--map-by node`): keep the default placement"
        );
        let worse = record(&[("F", 50.0), ("F_over_linear", 1.0), ("F_over_round_robin", 3.0)]);
        assert_eq!(gain("F", &worse), "F as good as linear, 3.000 × round-robin (`--map-by node`)");
        let seconds = [("seconds", 0.82), ("seconds_over_linear", 0.75), ("seconds_over_round_robin", 1.025)];
        assert_eq!(
            gain("seconds", &record(&seconds)),
            "predicted 820 ms: 273 ms (25.0 %) less than linear, 20 ms (2.5 %) more than round-robin (`--map-by node`)"
        );
    }
}
