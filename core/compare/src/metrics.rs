//! Metrics that are different, the largest relative change first.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::merge::names;
use crate::words::percent;

/// A metric that is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricChange {
    /// Its name.
    pub name: String,
    /// Its value before; none if there was none.
    pub before: Option<f64>,
    /// Its value after; none if there is none.
    pub after: Option<f64>,
    /// (after − before) / |before|; none where that is no number.
    pub relative: Option<f64>,
}

/// The metrics that are different, the largest relative change first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MetricChanges {
    /// Those whose relative change reaches the threshold.
    pub changed: Vec<MetricChange>,
    /// Number of those that changed by less.
    pub below_threshold: usize,
}

/// The metrics that are different. One that is new, gone or was zero counts as changed by more than any other.
#[must_use]
pub fn metric_changes(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
    threshold: f64,
) -> MetricChanges {
    let change = |name: &String| {
        let (before, after) = (before.get(name).copied(), after.get(name).copied());
        (before.map(f64::to_bits) != after.map(f64::to_bits)).then(|| MetricChange {
            name: name.clone(),
            relative: before.zip(after).and_then(|(before, after)| relative(before, after)),
            before,
            after,
        })
    };
    let mut changed: Vec<MetricChange> = names(before, after).into_iter().filter_map(change).collect();
    let size = |change: &MetricChange| change.relative.map_or(f64::INFINITY, f64::abs);
    changed.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let all = changed.len();
    changed.retain(|change| size(change) >= threshold);
    MetricChanges { below_threshold: all - changed.len(), changed }
}

fn relative(before: f64, after: f64) -> Option<f64> {
    Some((after - before) / before.abs()).filter(|relative| relative.is_finite())
}

impl MetricChange {
    /// Old and new value and the relative change.
    #[must_use]
    pub fn words(&self) -> String {
        let value =
            |value: Option<f64>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let relative =
            self.relative.map_or_else(String::new, |relative| format!("  ({})", percent(relative)));
        format!("{:<28} {} → {}{relative}", self.name, value(self.before), value(self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_change_is_first_and_small_ones_are_hidden() {
        let metrics = |pairs: &[(&str, f64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<BTreeMap<_, _>>()
        };
        let before = metrics(&[("F", 100.0), ("T", 10.0), ("same", 1.0), ("small", 1000.0), ("zero", 0.0)]);
        let after = metrics(&[
            ("F", 110.0),
            ("T", 5.0),
            ("same", 1.0),
            ("small", 1001.0),
            ("zero", 1.0),
            ("new", 1.0),
        ]);
        let found = metric_changes(&before, &after, 0.01);
        let names: Vec<&str> = found.changed.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["new", "zero", "T", "F"]);
        assert_eq!(found.below_threshold, 1);
        assert_eq!(
            found.changed[2].words().split_whitespace().collect::<Vec<_>>().join(" "),
            "T 10 → 5 (-50.0 %)"
        );
        assert_eq!(metric_changes(&before, &before, 0.0), MetricChanges::default());
    }
}
