//! A mapping beside linear, round-robin and random placements.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::{
    Context, Error, Mapping, Metrics, Paths, PlacementMetrics, PlacementOrigin, Stage, SystemGraph,
    TaskGraph, seed_stream,
};
use hopmap_objective::{ObjectiveError, Quality, linear, random, round_robin};
use rayon::prelude::*;

use crate::{EvaluateError, MappingParams, MappingStage, summary};

/// Most random placements.
pub(crate) const MAX_SAMPLES: u32 = 1_000_000;

/// Metrics of a mapping beside other placements.
#[derive(Debug)]
pub struct Comparison {
    /// The rows and their summary.
    pub metrics: Metrics,
    /// Whether all random placements were measured before the context asked to stop.
    pub complete: bool,
}

/// Measures a mapping, the linear and the round-robin placement, and random placements over all slots, all with the weight of the mapping.
pub fn compare(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    params: &MappingParams,
    cx: &Context<'_>,
) -> Result<Comparison, Error> {
    check(graph, system, mapping)?;
    if params.samples > MAX_SAMPLES {
        return Err(EvaluateError::Samples { samples: params.samples }.into());
    }
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
        let stream = seed_stream(MappingStage::KIND, params.seed, u64::from(sample));
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

/// Checks that the mapping was made for this program and this machine.
pub(crate) fn check(graph: &TaskGraph, system: &SystemGraph, mapping: &Mapping) -> Result<(), Error> {
    graph.check()?;
    system.check()?;
    mapping.check()?;
    if mapping.ranks.len() != graph.ranks() {
        return Err(EvaluateError::OtherProgram { mapped: mapping.ranks.len(), ranks: graph.ranks() }.into());
    }
    let hosts: Vec<_> = system.hosts().collect();
    if mapping.hosts.len() != hosts.len() {
        return Err(EvaluateError::OtherHosts { mapped: mapping.hosts.len(), hosts: hosts.len() }.into());
    }
    for (index, (mapped, (node, _, slots))) in mapping.hosts.iter().zip(hosts).enumerate() {
        let host = &system.nodes[node as usize].name;
        if (&mapped.host, mapped.slots) != (host, slots) {
            return Err(EvaluateError::OtherHost {
                index,
                mapped: mapped.host.clone(),
                mapped_slots: mapped.slots,
                host: host.clone(),
                slots,
            }
            .into());
        }
    }
    Ok(())
}
