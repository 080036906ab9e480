//! What trials show: medians, and differences with their intervals.

use std::collections::BTreeMap;

use hopmap_model::{TrialMapping, Trials};
use hopmap_statistics::{Sample, paired_gain};

/// A line per mapping, and a line per mapping that is compared with the first one.
#[must_use]
pub fn summary(trials: &Trials) -> Vec<String> {
    let mut lines: Vec<String> =
        trials.mappings.iter().map(|mapping| median_line(trials, &mapping.name)).collect();
    lines.extend(comparisons(trials));
    lines
}

/// How each mapping compares with the first one.
#[must_use]
pub fn comparisons(trials: &Trials) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use hopmap_model::TrialRun;

    use super::*;

    fn trials(names: &[&str], blocks: u32) -> Trials {
        let mapping = |name: &&str| TrialMapping { name: (*name).to_owned(), digest: String::new() };
        let run = |(block, name): (Option<u32>, &&str)| TrialRun {
            mapping: (*name).to_owned(),
            block,
            // The first mapping takes 2 s, the second one 1 s, …
            seconds: Some(2.0 / (1.0 + names.iter().position(|other| other == name).unwrap_or(0) as f64)),
            mpi_s: None,
            lateness_s: Some(0.001),
            idle: Some(0.75),
            exit: Some(0),
            complete: true,
        };
        let blocks = [None].into_iter().chain((0..blocks).map(Some));
        let runs = blocks.flat_map(|block| names.iter().map(move |name| (block, name))).map(run).collect();
        Trials { mappings: names.iter().map(mapping).collect(), runs, ..Trials::default() }
    }

    #[test]
    fn two_mappings_have_a_gain() {
        let trials = trials(&["a", "b"], 6);
        let metrics = metrics(&trials);
        let expected = [
            ("gain", 0.5),
            ("gain_high", 0.5),
            ("gain_low", 0.5),
            ("idle", 0.75),
            ("incomplete", 0.0),
            ("lateness_s", 0.001),
            ("pairs", 6.0),
            ("runs", 12.0),
        ];
        assert_eq!(metrics, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(
            summary(&trials),
            [
                "a: median 2.0000 s, 2.0000 to 2.0000 s in 6 runs",
                "b: median 1.0000 s, 1.0000 to 1.0000 s in 6 runs",
                "b is 50.0 % faster than a (95 % interval 50.0 to 50.0, 6 pairs)",
            ]
        );
    }

    #[test]
    fn the_best_of_several_mappings_has_no_gain_and_failures_are_counted() {
        let mut trials = trials(&["a", "b", "c"], 1);
        let failed = &mut trials.runs[3];
        (failed.complete, failed.seconds) = (false, None);
        let metrics = metrics(&trials);
        assert!(!metrics.contains_key("gain") && (metrics["incomplete"] - 1.0).abs() < 1e-9);
        assert_eq!(summary(&trials)[0], "a: no run time, 1 incomplete");
        assert!(comparisons(&trials).is_empty());
        assert!(comparisons(&Trials::default()).is_empty());
    }
}
