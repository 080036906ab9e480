//! What trials show: medians, and differences with their intervals; and which block a trial runs next, in which order.

mod decision;
mod order;

pub use decision::{Decision, Design, Ending, FEWEST_PAIRS, Step, TimeLeft};
pub use order::Order;

use std::collections::BTreeMap;

use decision::fails_too_often;
use hopmap_model::{TrialMapping, Trials};
use hopmap_statistics::{PairedGain, Sample, gain_at_end, gain_at_look, paired_gain};

/// Metrics that say when a trial ends.
const PRECISION: &str = "precision";
const MOST_PAIRS: &str = "most_pairs";
/// The last digit of times that the program printed, in seconds.
pub const TIME_STEP: &str = "time_step_s";
/// Most pairs of a trial, whatever an artifact says.
const LARGEST: f64 = 10_000.0;

/// A line per mapping, and a line per mapping that is compared with the first one.
#[must_use]
pub fn summary(trials: &Trials) -> Vec<String> {
    let mut lines: Vec<String> =
        trials.mappings.iter().map(|mapping| median_line(trials, &mapping.name)).collect();
    lines.extend(comparisons(trials, false));
    lines.extend(rounding_line(trials));
    lines
}

/// How each mapping compares with the first one. After a choice only the chosen one does. No winner is named if more than 5 % of the
/// runs of either failed, unless failures are allowed.
#[must_use]
pub fn comparisons(trials: &Trials, allow_failures: bool) -> Vec<String> {
    let [first, others @ ..] = &*trials.mappings else { return Vec::new() };
    let rival = rival(trials);
    let is_compared = |other: &&TrialMapping| !trials.has_choice() || rival == Some(*other);
    let sentence =
        |other: &TrialMapping| comparison(trials, other, (&first.name, &other.name), allow_failures);
    others.iter().filter(is_compared).filter_map(sentence).collect()
}

/// How a mapping compares with the first one, in a sentence with these names of both.
#[must_use]
pub fn comparison(
    trials: &Trials,
    mapping: &TrialMapping,
    (first, second): (&str, &str),
    allow_failures: bool,
) -> Option<String> {
    let both = [(trials.mappings.first()?.name.as_str(), first), (mapping.name.as_str(), second)];
    let failures = |which: &dyn Fn(&str) -> bool| {
        let failed = both.iter().filter(|(name, _)| which(name)).map(|(name, shown)| {
            let (failed, runs) = failed_runs(trials, name);
            format!("{shown} failed in {failed} of {runs} runs")
        });
        Some(failed.collect::<Vec<_>>().join(" and ")).filter(|text| !text.is_empty())
    };
    if let Some(failures) = failures(&|name| fails(trials, name)).filter(|_| !allow_failures) {
        return Some(format!("no winner is named: {failures}, more than 5 %"));
    }
    let gain = gain(trials, &mapping.name)?.sentence(first, second);
    let failures = failures(&|name| failed_runs(trials, name).0 > 0);
    Some(failures.map_or(gain.clone(), |failures| format!("{gain}; {failures}")))
}

/// Failed runs of a mapping, and all: those that were measured, or those of the warm-up if it got no further.
#[must_use]
pub fn failed_runs(trials: &Trials, mapping: &str) -> (usize, usize) {
    match trials.failed(mapping) {
        (_, 0) => {
            let warm_up = trials.runs.iter().filter(|run| run.mapping == mapping && run.time().is_some());
            warm_up.fold((0, 0), |(failed, all), run| (failed + usize::from(run.failed()), all + 1))
        }
        measured => measured,
    }
}

/// Whether more than 5 % of the runs of a mapping failed.
#[must_use]
pub fn fails(trials: &Trials, mapping: &str) -> bool {
    let (failed, runs) = failed_runs(trials, mapping);
    fails_too_often(failed, runs)
}

/// By how much a mapping is faster than the first one. If the trial was stopped, now or before, the interval is one of several looks.
/// It is as wide as the last digit of printed times demands.
#[must_use]
pub fn gain(trials: &Trials, mapping: &str) -> Option<PairedGain> {
    let gain = gain_of_exact_times(trials, mapping)?;
    let half_step = trials.metrics.get(TIME_STEP).map_or(0.0, |step| step / 2.0);
    let first = &trials.mappings.first()?.name;
    let share = |name: &str| match trials.seconds(name) {
        times if times.is_empty() => 0.0,
        times => (half_step / Sample::new(times).least()).min(0.99),
    };
    Some(gain.of_rounded([first, mapping].map(share)))
}

fn gain_of_exact_times(trials: &Trials, mapping: &str) -> Option<PairedGain> {
    let first = &trials.mappings.first()?.name;
    let (numbers, pairs): (Vec<usize>, Vec<(f64, f64)>) =
        trials.numbered_pairs(first, mapping).into_iter().unzip();
    let precision = trials.metrics.get(PRECISION).copied();
    // Trials of earlier versions have no number of pairs, unless they ended when an interval was precise.
    let Some(most) = trials.metrics.get(MOST_PAIRS) else {
        return if mapping == first { None } else { paired_gain(&pairs) };
    };
    let pairs_at = |runs: &u32| numbers.iter().filter(|number| **number <= *runs as usize).count();
    let shown: Vec<usize> = trials.looks.iter().map(pairs_at).collect();
    let looks = Design::looks(most.min(LARGEST) as u32, precision.is_some()).with(&shown);
    match trials.is_stopped() {
        _ if mapping == first => None,
        true => gain_at_look(&pairs, &looks),
        false => gain_at_end(&pairs, &looks, precision),
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

/// The mapping to use: the rival if it is known to be faster than the first one and its runs do not fail too often, or failures are
/// allowed, and else the first one.
#[must_use]
pub fn best(trials: &Trials, allow_failures: bool) -> Option<&TrialMapping> {
    let first = trials.mappings.first()?;
    let is_faster = |rival: &&TrialMapping| {
        gain(trials, &rival.name).and_then(|gain| gain.interval).is_some_and(|(low, _)| low > 0.0)
    };
    let is_allowed = |rival: &&TrialMapping| {
        allow_failures || ![first, *rival].iter().any(|mapping| fails(trials, &mapping.name))
    };
    rival(trials).filter(is_faster).filter(is_allowed).or(Some(first))
}

fn median_line(trials: &Trials, name: &str) -> String {
    let sample = Sample::new(trials.seconds(name));
    let failed = trials.runs.iter().filter(|run| run.mapping == name && !run.complete).count();
    let failed = if failed == 0 { String::new() } else { format!(", {failed} incomplete") };
    match sample.len() {
        0 => format!("{name}: no run time{failed}"),
        runs => {
            let (median, least, largest) = (sample.quartiles()[1], sample.least(), sample.largest());
            let own =
                trials.runs.iter().filter(|run| run.mapping == name && run.block.is_some() && run.complete);
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

/// What the last digit of printed times hides, if it is more than the trial would show.
fn rounding_line(trials: &Trials) -> Option<String> {
    let step = *trials.metrics.get(TIME_STEP)?;
    let times = trials.mappings.iter().flat_map(|mapping| trials.seconds(&mapping.name));
    let hidden = step / times.reduce(f64::min)?;
    let shown = trials.metrics.get(PRECISION).copied().unwrap_or(0.01);
    (hidden > shown).then(|| {
        let percent = hidden * 100.0;
        format!("times are printed in steps of {step} s, which hide differences of up to {percent:.1} %")
    })
}

/// Adds the metrics of trials by a design. Of several mappings without a choice there is no `gain`: the best of them is not to
/// be judged by the runs that made it the best. Neither is there one if no winner is named, so that no gate takes it for one.
pub fn add_metrics(trials: &mut Trials, design: &Design) {
    if let Some(precision) = design.precision {
        trials.metrics.insert(PRECISION.to_owned(), precision);
    }
    trials.metrics.insert(MOST_PAIRS.to_owned(), f64::from(design.blocks));
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
    let Some((first, rival)) = trials.mappings.first().zip(rival(trials)) else { return metrics };
    let share = |mapping: &TrialMapping| {
        let (failed, runs) = failed_runs(trials, &mapping.name);
        failed as f64 / runs.max(1) as f64
    };
    add("failed", share(first).max(share(rival)));
    let Some(gain) = gain(trials, &rival.name) else { return metrics };
    add("pairs", gain.pairs as f64);
    if fails(trials, &first.name) || fails(trials, &rival.name) {
        return metrics;
    }
    add("gain", gain.gain);
    for (name, end) in gain.interval.iter().flat_map(|(low, high)| [("gain_low", *low), ("gain_high", *high)])
    {
        // An end that failed runs have moved to −∞ is no number.
        if end.is_finite() {
            add(name, end);
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
            ("failed", 0.0),
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
        assert_eq!(
            comparisons(&trials, false),
            ["no winner is named: a failed in 1 of 1 runs, more than 5 %"; 2]
        );
        assert!(comparisons(&trials, true).is_empty() && comparisons(&Trials::default(), false).is_empty());
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
        assert_eq!(comparisons(&trials, false), [expected]);
        assert_eq!(best(&trials, false).map(|mapping| mapping.name.as_str()), Some("c"));
        trials.mappings.swap(0, 2);
        assert_eq!(best(&trials, false).map(|mapping| mapping.name.as_str()), Some("c"));
    }

    /// Lets every nth measured run of a mapping fail.
    fn with_failures(mut trials: Trials, name: &str, every: usize) -> Trials {
        let of = trials.runs.iter_mut().filter(|run| run.mapping == name && run.block.is_some());
        for run in of.skip(1).step_by(every) {
            (run.complete, run.exit) = (false, Some(1));
        }
        trials
    }

    #[test]
    fn no_winner_is_named_if_runs_of_it_or_of_the_first_mapping_fail() {
        let design = Design { blocks: 40, precision: None, choose: None };
        let shown = |name: &str, every: usize, allow| {
            let mut trials = with_failures(trials(&["a", "b"], 40), name, every);
            add_metrics(&mut trials, &design);
            let best = best(&trials, allow).unwrap().name.clone();
            (comparisons(&trials, allow).remove(0), best, trials.metrics.contains_key("gain_low"))
        };
        let refused = |text: &str| {
            (format!("no winner is named: {text} of 40 runs, more than 5 %"), "a".to_owned(), false)
        };
        assert_eq!(shown("b", 2, false), refused("b failed in 20"));
        assert_eq!(shown("a", 10, false), refused("a failed in 4"));
        let gain = "b is 50.0 % faster than a (95 % interval 50.0 to 50.0, 40 pairs); b failed in ";
        assert_eq!(shown("b", 10, true), (format!("{gain}4 of 40 runs"), "b".to_owned(), false));
        assert_eq!(shown("b", 20, false), (format!("{gain}2 of 40 runs"), "b".to_owned(), true));
        let (sentence, best, _) = shown("b", 2, true);
        assert!(
            sentence.starts_with("no difference between a and b could be seen, and runs that failed"),
            "{sentence}"
        );
        assert_eq!(best, "a");
    }

    #[test]
    fn a_trial_that_was_stopped_has_the_interval_of_a_look() {
        let design = Design { blocks: 12, precision: None, choose: None };
        let interval = |blocks: u32, looks: &[u32]| {
            let mut trials = trials(&["a", "b"], blocks);
            trials.looks = looks.to_vec();
            add_metrics(&mut trials, &design);
            gain(&trials, "b").unwrap().interval
        };
        // Seven pairs, and two runs of the warm-up: the end of a trial, and a look at one that goes on.
        assert!(interval(7, &[]).is_some() && interval(6, &[]).is_some());
        assert!(interval(7, &[16]).is_some() && interval(6, &[14]).is_none());
        assert!(interval(12, &[14, 16, 18]).is_some());
    }

    #[test]
    fn the_time_inside_mpi_is_part_of_the_summary() {
        let mut trials = trials(&["a"], 2);
        trials.runs.iter_mut().for_each(|run| run.mpi_s = Some(0.25));
        let expected = "a: median 2.0000 s, 0.2500 s of it inside MPI, 2.0000 to 2.0000 s in 2 runs";
        assert_eq!(summary(&trials), [expected]);
    }
}
