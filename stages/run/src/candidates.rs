//! Which mappings are tried: each once, and of many those that predictions prefer.

use std::sync::Arc;

use hopmap_model::{Context, Input, Mapping, Prediction};

use crate::error::TrialError;

/// A mapping to try.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: String,
    /// The mapping.
    pub mapping: Arc<Mapping>,
}

/// The mappings to try, the first one included. The log says which are left out.
pub(crate) fn candidates(
    mappings: Vec<Input<Mapping>>,
    predictions: &[Input<Prediction>],
    best: Option<u32>,
    cx: &Context<'_>,
) -> Result<Vec<Candidate>, TrialError> {
    let candidate = |Input { value, digest, label }| Candidate { name: label, digest, mapping: value };
    let all: Vec<Candidate> = mappings.into_iter().map(candidate).collect();
    check(&all)?;
    let different = different(all, cx);
    match (best, predictions) {
        (None, []) => Ok(different),
        (Some(best), [_, ..]) => Ok(predicted(different, predictions, best as usize, cx)),
        (Some(_), []) => fault("`best` chooses by predictions, and there are none"),
        (None, [_, ..]) => fault("predictions choose mappings only with `best`"),
    }
}

fn fault<T>(problem: impl Into<String>) -> Result<T, TrialError> {
    Err(TrialError::Mappings { problem: problem.into() })
}

/// Checks that there are mappings of the same number of ranks, with different names.
fn check(candidates: &[Candidate]) -> Result<(), TrialError> {
    let Some(first) = candidates.first() else {
        return fault("no mapping is connected");
    };
    for (index, candidate) in candidates.iter().enumerate() {
        if candidates[..index].iter().any(|other| other.name == candidate.name) {
            return fault(format!("two mappings are named `{}`", candidate.name));
        }
        let (ranks, expected) = (candidate.mapping.ranks.len(), first.mapping.ranks.len());
        if ranks != expected {
            let (name, first) = (&candidate.name, &first.name);
            return fault(format!("`{name}` has {ranks} ranks, but `{first}` has {expected}"));
        }
    }
    Ok(())
}

/// Leaves out mappings that put every rank where an earlier one does.
fn different(all: Vec<Candidate>, cx: &Context<'_>) -> Vec<Candidate> {
    let places = |mapping: &Mapping| -> Vec<(String, Option<u32>)> {
        let host = |host: u32| mapping.hosts[host as usize].host.clone();
        mapping.ranks.iter().map(|rank| (host(rank.host), rank.core)).collect()
    };
    let mut kept: Vec<(Candidate, _)> = Vec::new();
    for candidate in all {
        let places = places(&candidate.mapping);
        match kept.iter().find(|(_, others)| *others == places) {
            Some((same, _)) => {
                let (name, same) = (&candidate.name, &same.name);
                cx.log(format_args!("{name} is not run: it is the same as {same}"));
            }
            None => kept.push((candidate, places)),
        }
    }
    kept.into_iter().map(|(candidate, _)| candidate).collect()
}

/// The first mapping, and others with the shortest predicted run times, in their order.
fn predicted(
    all: Vec<Candidate>,
    predictions: &[Input<Prediction>],
    best: usize,
    cx: &Context<'_>,
) -> Vec<Candidate> {
    let seconds = |candidate: &Candidate| {
        let slots = || candidate.mapping.ranks.iter().map(|rank| rank.slot);
        let mut complete = predictions.iter().map(|input| &input.value).filter(|found| found.complete);
        let found = complete.find(|found| found.ranks.iter().map(|rank| rank.slot).eq(slots()));
        found.map(|found| found.seconds())
    };
    let times: Vec<Option<f64>> = all.iter().map(seconds).collect();
    let mut order: Vec<usize> = (1..all.len()).filter(|index| times[*index].is_some()).collect();
    order.sort_by(|one, other| times[*one].unwrap_or_default().total_cmp(&times[*other].unwrap_or_default()));
    order.truncate(best);
    let mut kept = Vec::new();
    for (index, candidate) in all.into_iter().enumerate() {
        if index == 0 || order.contains(&index) {
            kept.push(candidate);
            continue;
        }
        let reason = match times[index] {
            Some(seconds) => format!("its predicted {seconds:.6} s are not among the {best} shortest"),
            None => "it has no complete prediction".to_owned(),
        };
        cx.log(format_args!("{} is not run: {reason}", candidate.name));
    }
    kept
}

#[cfg(test)]
mod tests {
    use hopmap_model::{HostSlots, Placement, RankTimes, Weight};

    use super::*;

    fn mapping(label: &str, slots: [u32; 2]) -> Input<Mapping> {
        let hosts = ["a", "b", "c"].iter().zip(0..);
        let hosts = hosts
            .map(|(host, first_slot)| HostSlots { host: (*host).into(), first_slot, slots: 1 })
            .collect();
        let ranks = slots.map(|slot| Placement { slot, host: slot, core: Some(0) }).to_vec();
        let mapping = Mapping {
            ranks,
            hosts,
            weight: Weight::Bytes,
            metrics: [].into(),
            convergence: Vec::new(),
            complete: true,
        };
        Input { value: Arc::new(mapping), digest: label.to_owned(), label: label.to_owned() }
    }

    fn prediction(slots: [u32; 2], seconds: f64) -> Input<Prediction> {
        let ranks = slots.map(|slot| RankTimes { slot, finish_s: seconds, ..RankTimes::default() }).to_vec();
        let metrics = [("seconds".to_owned(), seconds)].into();
        let value = Arc::new(Prediction { ranks, metrics, complete: true, ..Prediction::default() });
        Input { value, digest: String::new(), label: String::new() }
    }

    fn names(predictions: &[Input<Prediction>], best: Option<u32>) -> Result<Vec<String>, String> {
        let mappings = vec![
            mapping("first", [0, 1]),
            mapping("same", [0, 1]),
            mapping("slow", [1, 0]),
            mapping("fast", [0, 2]),
            mapping("unknown", [2, 0]),
            mapping("middle", [2, 1]),
        ];
        let found = candidates(mappings, predictions, best, &Context::detached());
        found
            .map(|found| found.into_iter().map(|candidate| candidate.name).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_same_mapping_is_run_once_and_predictions_choose() {
        assert_eq!(names(&[], None).unwrap(), ["first", "slow", "fast", "unknown", "middle"]);
        let predictions = [([1, 0], 3.0), ([2, 1], 2.0), ([0, 2], 1.0), ([0, 1], 9.0)];
        let predictions = predictions.map(|(slots, seconds)| prediction(slots, seconds));
        assert_eq!(names(&predictions, Some(1)).unwrap(), ["first", "fast"]);
        assert_eq!(names(&predictions, Some(2)).unwrap(), ["first", "fast", "middle"]);
        assert_eq!(names(&predictions, Some(9)).unwrap(), ["first", "slow", "fast", "middle"]);
        assert!(names(&predictions, None).unwrap_err().contains("only with `best`"));
        assert!(names(&[], Some(1)).unwrap_err().contains("there are none"));
    }
}
