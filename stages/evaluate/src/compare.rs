//! Comparison of a mapping with linear, round-robin and random baselines.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::{
    Context, Error, Mapping, Metrics, Paths, PlacementMetrics, PlacementOrigin, SystemGraph, TaskGraph,
    require, seed_stream,
};
use hopmap_objective::{ObjectiveError, Quality, linear, random, round_robin};
use hopmap_statistics::median;
use rayon::prelude::*;

use crate::error::EvaluateError;
use crate::params::MappingParams;

/// Maximum number of random mappings.
const MAX_SAMPLES: u32 = 1_000_000;

/// Metrics of a mapping and of the baselines.
#[derive(Debug)]
pub struct Comparison {
    /// The rows and their summary.
    pub metrics: Metrics,
    /// Whether all random mappings were measured before a stop request.
    pub complete: bool,
}

/// Measures a mapping and the linear, round-robin and random mappings over all slots, all with the weight of
/// the mapping.
pub fn compare(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    params: &MappingParams,
    cx: &Context<'_>,
) -> Result<Comparison, Error> {
    check(graph, system, mapping)?;
    let samples = params.samples;
    require(samples <= MAX_SAMPLES, "samples", samples, format!("0 to {MAX_SAMPLES}"))?;
    let paths = Paths::new(system);
    let measure = |slots: &[u32]| -> Result<BTreeMap<String, f64>, ObjectiveError> {
        Ok(Quality::new(graph, system, paths.as_ref(), slots, mapping.weight)?.metrics())
    };
    let row = |origin, sample, values| PlacementMetrics { origin, sample, values };
    let mut placements = vec![
        row(PlacementOrigin::Mapping, 0, measure(&mapping.slots())?),
        row(PlacementOrigin::Linear, 0, measure(&linear(graph.ranks()))?),
        row(PlacementOrigin::RoundRobin, 0, measure(&round_robin(system)[..graph.ranks()])?),
    ];
    let done = AtomicU64::new(0);
    let sample = |sample: u32| {
        if cx.should_stop() {
            return None;
        }
        let stream = seed_stream(MappingParams::KIND, params.seed, u64::from(sample));
        let values = measure(&random(graph.ranks(), system.slots.len(), stream));
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, u64::from(params.samples));
        Some(values.map(|values| row(PlacementOrigin::Random, sample, values)))
    };
    let samples = (0..params.samples).into_par_iter();
    let at_once = samples.with_min_len((params.samples as usize).div_ceil(cx.threads().max(1)));
    let measured: Vec<_> = at_once.filter_map(sample).collect::<Result<_, _>>()?;
    let complete = measured.len() == params.samples as usize;
    placements.extend(measured);
    Ok(Comparison { metrics: Metrics { summary: summary(&placements), placements }, complete })
}

/// Checks that the mapping belongs to this program and this machine.
pub(crate) fn check(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Result<(), Error> {
    graph.check()?;
    system.check()?;
    mapping.check()?;
    let (mapped, ranks) = (mapping.ranks.len(), graph.ranks());
    if mapped != ranks {
        let problem = format!("the mapping has {mapped} ranks, but the task graph has {ranks}");
        let help = "connect the task graph for which the mapping was computed";
        return Err(EvaluateError::new(problem, help).into());
    }
    let other_machine = |problem| {
        Err(EvaluateError::new(problem, "connect the system graph for which the mapping was computed").into())
    };
    let hosts: Vec<_> = system.hosts().collect();
    let (mapped, count) = (mapping.hosts.len(), hosts.len());
    if mapped != count {
        return other_machine(format!("the mapping is for {mapped} hosts, but the system graph has {count}"));
    }
    for (index, (mapped, (node, _, slots))) in mapping.hosts.iter().zip(hosts).enumerate() {
        let host = &system.nodes[node as usize].name;
        if (&mapped.host, mapped.slots) != (host, slots) {
            return other_machine(format!(
                "host {index} is `{}` with {} slots in the mapping, but `{host}` with {slots} in the system graph",
                mapped.host, mapped.slots
            ));
        }
    }
    Ok(())
}

/// For each metric `M` of the mapping: `M`, `M_linear`, `M_round_robin`, `M_random` (the median of the
/// samples), and the ratios `M_over_linear`, `M_over_round_robin` and `M_over_random`. Ratios to zero and
/// undefined metrics are missing.
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
            let baseline = origin.name().replace('-', "_");
            summary.insert(format!("{name}_{baseline}"), other);
            if other != 0.0 {
                summary.insert(format!("{name}_over_{baseline}"), value / other);
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
