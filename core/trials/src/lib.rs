//! What trials show: medians, and differences with their intervals; and which block a trial runs next, in which order.

mod decision;
mod order;

pub use decision::{Decision, Design, Ending, FEWEST_PAIRS, Step, TimeLeft};
pub use order::Order;

use std::collections::BTreeMap;

use hopmap_model::{TrialMapping, Trials};
use hopmap_statistics::{Looks, PairedGain, Sample, paired_gain, sequential_gain};

/// Metrics of trials that end when an interval is precise.
const PRECISION: &str = "precision";
const MOST_PAIRS: &str = "most_pairs";

/// A line per mapping, and a line per mapping that is compared with the first one.
#[must_use]
pub fn summary(trials: &Trials) -> Vec<String> {
    let mut lines: Vec<String> =
        trials.mappings.iter().map(|mapping| median_line(trials, &mapping.name)).collect();
    lines.extend(comparisons(trials));
    lines
}

/// How each mapping compares with the first one. After a choice only the chosen one does.
#[must_use]
pub fn comparisons(trials: &Trials) -> Vec<String> {
    let [first, others @ ..] = &*trials.mappings else { return Vec::new() };
    let sentence = |other: &TrialMapping| Some(gain(trials, &other.name)?.sentence(&first.name, &other.name));
    others.iter().filter_map(sentence).collect()
}

/// By how much a mapping is faster than the first one.
#[must_use]
pub fn gain(trials: &Trials, mapping: &str) -> Option<PairedGain> {
    let first = &trials.mappings.first()?.name;
    let pairs = trials.pairs(first, mapping);
    let metric = |name: &str| trials.metrics.get(name);
    match (metric(PRECISION), metric(MOST_PAIRS)) {
        _ if mapping == first => None,
        (Some(precision), Some(most)) => sequential_gain(&pairs, &Looks::new(*most as usize), *precision),
        _ => paired_gain(&pairs),
    }
}

/// The mapping whose gain counts: the second one of two, or the chosen one.
#[must_use]
pub fn rival(trials: &Trials) -> Option<&TrialMapping> {
    let is_fresh = |mapping: &&TrialMapping| {
        let mut runs = trials.runs.iter().filter(|run| run.mapping == mapping.name);
        runs.any(|run| run.block.is_some() && !run.choice)
    };
    match &*trials.mappings {
        [_, others @ ..] if trials.has_choice() => others.iter().find(is_fresh),
        [_, second] => Some(second),
        _ => None,
    }
}

/// The mapping to use: the rival if it is faster than the first one for certain, and else the first one.
#[must_use]
pub fn best(trials: &Trials) -> Option<&TrialMapping> {
    let is_faster = |rival: &&TrialMapping| {
        gain(trials, &rival.name).and_then(|gain| gain.interval).is_some_and(|(low, _)| low > 0.0)
    };
    rival(trials).filter(is_faster).or(trials.mappings.first())
}

fn median_line(trials: &Trials, name: &str) -> String {
    let sample = Sample::new(trials.seconds(name));
    let failed = trials.runs.iter().filter(|run| run.mapping == name && !run.complete).count();
    let failed = if failed == 0 { String::new() } else { format!(", {failed} incomplete") };
    match sample.len() {
        0 => format!("{name}: no run time{failed}"),
        runs => {
            let (median, least, largest) = (sample.quartiles()[1], sample.least(), sample.largest());
            let own = trials.runs.iter().filter(|run| run.mapping == name && run.block.is_some());
            let inside = Sample::new(own.filter_map(|run| run.mpi_s));
            let inside = match inside.is_empty() {
                true => String::new(),
                false => format!(", {:.4} s of it inside MPI", inside.quartiles()[1]),
            };
            format!(
                "{name}: median {median:.4} s{inside}, {least:.4} to {largest:.4} s in {runs} runs{failed}"
            )
        }
    }
}

/// Adds the metrics of trials by a design. Of several mappings without a choice there is no `gain`: the best of them is not to
/// be judged by the runs that made it the best.
pub fn add_metrics(trials: &mut Trials, design: &Design) {
    if let Some(precision) = design.precision {
        trials.metrics.insert(PRECISION.to_owned(), precision);
        trials.metrics.insert(MOST_PAIRS.to_owned(), f64::from(design.blocks));
    }
    let measured = metrics(trials);
    trials.metrics.extend(measured);
}

fn metrics(trials: &Trials) -> BTreeMap<String, f64> {
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
    if let Some(gain) = rival(trials).and_then(|rival| gain(trials, &rival.name)) {
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
            choice: false,
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

    #[test]
    fn after_a_choice_only_the_chosen_mapping_has_a_gain() {
        let mut trials = trials(&["a", "b", "c"], 8);
        for run in &mut trials.runs {
            run.choice = run.block.is_some_and(|block| block < 2);
        }
        trials.runs.retain(|run| run.choice || run.mapping != "b");
        let design = Design { blocks: 96, precision: Some(0.01), choose: Some(2) };
        add_metrics(&mut trials, &design);
        assert!(
            (trials.metrics["pairs"] - 6.0).abs() < 1e-9 && (trials.metrics["precision"] - 0.01).abs() < 1e-9
        );
        let expected = "c is 66.7 % faster than a (95 % interval 66.7 to 66.7, 6 pairs)";
        assert_eq!(comparisons(&trials), [expected]);
        assert_eq!(best(&trials).map(|mapping| mapping.name.as_str()), Some("c"));
        trials.mappings.swap(0, 2);
        assert_eq!(best(&trials).map(|mapping| mapping.name.as_str()), Some("c"));
    }

    #[test]
    fn the_time_inside_mpi_is_part_of_the_summary() {
        let mut trials = trials(&["a"], 2);
        trials.runs.iter_mut().for_each(|run| run.mpi_s = Some(0.25));
        let expected = "a: median 2.0000 s, 0.2500 s of it inside MPI, 2.0000 to 2.0000 s in 2 runs";
        assert_eq!(summary(&trials), [expected]);
    }
}
