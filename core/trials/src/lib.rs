//! What trials show: medians, and differences with their intervals.

use std::collections::BTreeMap;

use hopmap_model::{TrialMapping, Trials};
use hopmap_statistics::{Sample, paired_gain};

/// A line per mapping, and a line per mapping that is compared with the first one.
#[must_use]
pub fn summary(trials: &Trials) -> Vec<String> {
    let mut lines: Vec<String> =
        trials.mappings.iter().map(|mapping| median_line(trials, &mapping.name)).collect();
    lines.extend(sentences(trials));
    lines
}

/// How each mapping compares with the first one.
#[must_use]
pub fn sentences(trials: &Trials) -> Vec<String> {
    let [first, others @ ..] = &*trials.mappings else { return Vec::new() };
    let sentence = |other: &TrialMapping| {
        let gain = paired_gain(&trials.pairs(&first.name, &other.name))?;
        Some(gain.sentence(&first.name, &other.name))
    };
    others.iter().filter_map(sentence).collect()
}

fn median_line(trials: &Trials, name: &str) -> String {
    let sample = Sample::new(trials.seconds(name));
    let failed = trials.runs.iter().filter(|run| run.mapping == name && !run.complete).count();
    let failed = if failed == 0 { String::new() } else { format!(", {failed} incomplete") };
    match sample.len() {
        0 => format!("{name}: no run time{failed}"),
        runs => {
            let (median, least, largest) = (sample.quartiles()[1], sample.least(), sample.largest());
            format!("{name}: median {median:.4} s, {least:.4} to {largest:.4} s in {runs} runs{failed}")
        }
    }
}

/// The metrics of trials. `gain` is of the second mapping, and there is none if there are more: the best of several is
/// not to be judged by the runs that made it the best.
#[must_use]
pub fn metrics(trials: &Trials) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let measured = trials.runs.iter().filter(|run| run.block.is_some());
    let mut add = |name: &str, value: f64| {
        metrics.insert(name.to_owned(), value);
    };
    add("runs", measured.clone().count() as f64);
    add("incomplete", trials.runs.iter().filter(|run| !run.complete).count() as f64);
    if let Some(idle) = measured.clone().filter_map(|run| run.idle).min_by(f64::total_cmp) {
        add("idle", idle);
    }
    if let Some(lateness) = measured.filter_map(|run| run.lateness_s).max_by(f64::total_cmp) {
        add("lateness_s", lateness);
    }
    if let [first, second] = &*trials.mappings
        && let Some(gain) = paired_gain(&trials.pairs(&first.name, &second.name))
    {
        add("gain", gain.gain);
        add("pairs", gain.pairs as f64);
        if let Some((low, high)) = gain.interval {
            add("gain_low", low);
            add("gain_high", high);
        }
    }
    metrics
}
