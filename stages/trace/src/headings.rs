//! Traffic by phase and by the length of messages, beside the matrix of all.

use std::collections::BTreeMap;

use hopmap_model::{Edge, Phase, SizeBin};

use crate::Phases;
use crate::matrix::{Matrix, Overflow};
use crate::selection::{Class, Request, Selection};

/// Collects traffic between pairs of ranks, under the headings a request asks for.
#[derive(Debug)]
pub(crate) struct Headings {
    all: Matrix,
    phases: Option<BTreeMap<u32, Matrix>>,
    sizes: Option<Lengths>,
}

/// Messages and bytes by source, destination and bits in the length.
type Lengths = BTreeMap<(u32, u32, u32), (u64, u64)>;

impl Headings {
    /// No traffic yet, but room for that of so many pairs.
    pub(crate) fn new(request: &Request<'_>, pairs: usize) -> Self {
        Self {
            all: Matrix::with_capacity(pairs),
            phases: request.phases.map(|_| BTreeMap::new()),
            sizes: request.sizes.then(BTreeMap::new),
        }
    }

    /// Adds messages of one class.
    pub(crate) fn add(&mut self, class: Class, edge: Edge) -> Result<(), Overflow> {
        self.all.add(edge)?;
        if let Some(phases) = &mut self.phases {
            phases.entry(class.phase()).or_default().add(edge)?;
        }
        if let Some(sizes) = &mut self.sizes {
            let bin = sizes.entry((edge.source, edge.destination, class.length_bits())).or_default();
            // They fit: the sums over all pairs do.
            *bin = (bin.0 + edge.messages, bin.1 + edge.bytes);
        }
        Ok(())
    }

    /// All pairs that sent something; messages by length; edges by phase.
    pub(crate) fn finish(self) -> (Vec<Edge>, Vec<SizeBin>, BTreeMap<u32, Vec<Edge>>) {
        let bin = |((source, destination, bits), (messages, bytes)): ((u32, u32, u32), (u64, u64))| {
            let at_least_bytes = 1u64.checked_shl(bits.wrapping_sub(1)).unwrap_or(0);
            SizeBin { source, destination, at_least_bytes, messages, bytes }
        };
        let sizes = self.sizes.into_iter().flatten().filter(|(_, (messages, _))| *messages > 0).map(bin);
        let phases = self.phases.into_iter().flatten().map(|(phase, matrix)| (phase, matrix.into_edges()));
        (self.all.into_edges(), sizes.collect(), phases.collect())
    }
}

/// The phases that a request asks for, of a trace of so many ticks. `compute` has the ticks by phase of every process,
/// as far as they are known, and `seconds` makes seconds of ticks.
pub(crate) fn phases(
    request: &Request<'_>,
    selection: Option<&Selection>,
    mut edges: BTreeMap<u32, Vec<Edge>>,
    compute: &[Option<Vec<u64>>],
    (ticks, seconds): (u64, impl Fn(u64) -> Option<f64>),
) -> Vec<Phase> {
    let mut phases: Vec<Phase> = match (request.phases, selection.and_then(Selection::slice_ticks)) {
        (Some(Phases::Regions(names)), _) => std::iter::once(None)
            .chain(names.iter().cloned().map(Some))
            .map(|name| Phase { name, ..Phase::default() })
            .collect(),
        (Some(Phases::Seconds(_)), Some(width)) => (0..=ticks.saturating_sub(1) / width)
            .map(|slice| Phase {
                begin_s: seconds(slice.saturating_mul(width)),
                end_s: seconds((slice + 1).saturating_mul(width).min(ticks)),
                ..Phase::default()
            })
            .collect(),
        _ => Vec::new(),
    };
    for (number, phase) in (0..).zip(&mut phases) {
        let time = |ticks: &Vec<u64>| seconds(ticks.get(number as usize).copied().unwrap_or(0));
        phase.compute_s = compute.iter().map(|ticks| ticks.as_ref().and_then(time)).collect();
        phase.edges = edges.remove(&number).unwrap_or_default();
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Select;

    #[test]
    fn traffic_is_told_apart_by_length_and_phase() {
        let (select, regions) = (Select::default(), Phases::Regions(vec!["a".into()]));
        let request = Request { select: &select, phases: Some(&regions), sizes: true };
        let mut headings = Headings::new(&request, 0);
        let edge = |messages, bytes| Edge { source: 0, destination: 1, messages, bytes };
        headings.add(Class::ALL.of_length(0), edge(2, 0)).unwrap();
        headings.add(Class::ALL.of_length(9), edge(1, 9)).unwrap();
        let (edges, sizes, by_phase) = headings.finish();
        assert_eq!(edges, [edge(3, 9)]);
        let bins: Vec<_> = sizes.iter().map(|bin| (bin.at_least_bytes, bin.messages, bin.bytes)).collect();
        assert_eq!(bins, [(0, 2, 0), (8, 1, 9)]);
        let phases =
            phases(&request, None, by_phase, &[Some(vec![4, 6]), None], (10, |ticks| Some(ticks as f64)));
        let names: Vec<_> = phases.iter().map(|phase| phase.name.as_deref()).collect();
        assert_eq!(names, [None, Some("a")]);
        assert_eq!(phases[1].compute_s, [Some(6.0), None]);
        assert_eq!((phases[0].edges.len(), phases[1].edges.len()), (1, 0));
    }
}
