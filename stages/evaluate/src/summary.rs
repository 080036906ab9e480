//! A mapping in numbers, beside other placements.

use std::collections::BTreeMap;

use hopmap_model::{PlacementMetrics, PlacementOrigin};
use hopmap_statistics::median;

/// For each metric `M` of the mapping: `M`, `M_linear`, `M_round_robin`, `M_random` (the median of the samples), and the ratios
/// `M_over_linear`, `M_over_round_robin` and `M_over_random`. A ratio to zero is missing, and so is what a placement does not define.
#[must_use]
pub fn summary(placements: &[PlacementMetrics]) -> BTreeMap<String, f64> {
    let values = |origin, name: &str| -> Vec<f64> {
        let rows = placements.iter().filter(|row| row.origin == origin);
        rows.filter_map(|row| row.values.get(name).copied()).collect()
    };
    let mut summary = BTreeMap::new();
    for (name, &value) in
        placements.iter().filter(|row| row.origin == PlacementOrigin::Mapping).flat_map(|row| &row.values)
    {
        summary.insert(name.clone(), value);
        for origin in [PlacementOrigin::Linear, PlacementOrigin::RoundRobin, PlacementOrigin::Random] {
            let Some(other) = median(values(origin, name)) else { continue };
            let beside = origin.name().replace('-', "_");
            summary.insert(format!("{name}_{beside}"), other);
            if other != 0.0 {
                summary.insert(format!("{name}_over_{beside}"), value / other);
            }
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_to_zero_are_missing() {
        let row = |origin, sample, f: f64| PlacementMetrics {
            origin,
            sample,
            values: BTreeMap::from([("F".to_owned(), f)]),
        };
        let rows = [
            row(PlacementOrigin::Mapping, 0, 3.0),
            row(PlacementOrigin::Linear, 0, 0.0),
            row(PlacementOrigin::RoundRobin, 0, 4.0),
            row(PlacementOrigin::Random, 0, 6.0),
            row(PlacementOrigin::Random, 1, 12.0),
            row(PlacementOrigin::Random, 2, 7.0),
        ];
        let summary: Vec<_> = summary(&rows).into_iter().collect();
        let expected = [
            ("F", 3.0),
            ("F_linear", 0.0),
            ("F_over_random", 3.0 / 7.0),
            ("F_over_round_robin", 0.75),
            ("F_random", 7.0),
            ("F_round_robin", 4.0),
        ];
        assert_eq!(summary, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
