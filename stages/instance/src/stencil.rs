//! Stencil programs: every rank of a grid sends to its neighbours.

use hopmap_model::{Edge, Process, TaskGraph};

use crate::error::{InstanceError, MAX_STENCIL_RANKS};
use crate::params::{Neighbours, StencilParams};

/// The program of the parameters.
///
/// Rank 0 is a corner of the grid, and ranks are numbered with the last dimension fastest. A rank sends one
/// message to the neighbour on each side of every dimension; if both sides of a periodic dimension are the
/// same rank, it gets two. A dimension of one rank has no neighbours. With `box` a rank also sends to ranks
/// one step away in several dimensions.
pub fn stencil(params: &StencilParams) -> Result<TaskGraph, InstanceError> {
    let extents = check(params)?;
    let ranks = extents.iter().product();
    let mut edges = Vec::new();
    for source in 0..ranks {
        let most_steps = if params.neighbours == Neighbours::Star { 1 } else { extents.len() };
        let mut destinations = around(source, &extents, params.periodic, most_steps);
        destinations.sort_unstable();
        edges.extend(destinations.chunk_by(|a, b| a == b).map(|same| {
            let messages = same.len() as u64;
            Edge { source, destination: same[0], messages, bytes: messages * params.bytes }
        }));
    }
    Ok(TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() })
}

/// Checks the parameters and returns the extents of the grid.
pub(crate) fn check(params: &StencilParams) -> Result<Vec<u32>, InstanceError> {
    let extents = extents(&params.shape)?;
    let ranks: u32 = extents.iter().product();
    let dimensions = extents.len() as u32;
    let sides = match params.neighbours {
        Neighbours::Star => 2 * u64::from(dimensions),
        Neighbours::Box => 3u64.pow(dimensions) - 1,
    };
    match params.bytes.checked_mul(sides * u64::from(ranks)) {
        Some(_) => Ok(extents),
        None => {
            let problem = format!("the total of {} bytes per neighbour exceeds 64 bits", params.bytes);
            Err(InstanceError::new(problem, "the total bytes of all messages must be below 2^64"))
        }
    }
}

fn extents(shape: &str) -> Result<Vec<u32>, InstanceError> {
    let malformed = || {
        let problem = format!("shape `{shape}` is not a grid of two or three dimensions");
        InstanceError::new(problem, "write the extent of every dimension: `4x4`, `8x8x4`")
    };
    let too_many = || {
        let problem = format!("shape `{shape}` has more than {MAX_STENCIL_RANKS} ranks");
        let help = "the number of ranks is the product of all dimensions: reduce some of them";
        InstanceError::new(problem, help)
    };
    let words: Vec<&str> = shape.split('x').collect();
    if !(2..=3).contains(&words.len()) {
        return Err(malformed());
    }
    let mut extents = Vec::new();
    for word in words {
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || word.bytes().all(|byte| byte == b'0') {
            return Err(malformed());
        }
        extents.push(word.parse().ok().filter(|extent| *extent <= MAX_STENCIL_RANKS).ok_or_else(too_many)?);
    }
    let ranks = extents.iter().try_fold(1u32, |ranks, extent| ranks.checked_mul(*extent));
    ranks.filter(|ranks| *ranks <= MAX_STENCIL_RANKS).map(|_| extents).ok_or_else(too_many)
}

/// All ranks up to one step away in every dimension, with at most `most_steps` steps, one entry per path.
fn around(rank: u32, extents: &[u32], periodic: bool, most_steps: usize) -> Vec<u32> {
    // For the dimensions so far: sums of positions times strides, and the number of steps.
    let mut reached = vec![(0, 0)];
    let mut stride = 1;
    for &extent in extents.iter().rev() {
        let place = rank / stride % extent;
        let before = if place > 0 { Some(place - 1) } else { Some(extent - 1).filter(|_| periodic) };
        let behind = if place + 1 < extent { Some(place + 1) } else { Some(0).filter(|_| periodic) };
        let adjacent = [before, behind].into_iter().flatten().filter(|_| extent > 1).map(|place| (place, 1));
        let places: Vec<(u32, usize)> = adjacent.chain([(place, 0)]).collect();
        let further =
            |&(sum, steps)| places.iter().map(move |&(place, step)| (sum + place * stride, steps + step));
        reached = reached.iter().flat_map(further).filter(|(_, steps)| *steps <= most_steps).collect();
        stride *= extent;
    }
    reached.into_iter().filter(|(_, steps)| *steps > 0).map(|(rank, _)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn params(shape: &str, periodic: bool) -> StencilParams {
        StencilParams { shape: shape.into(), periodic, bytes: 8, neighbours: Neighbours::Star }
    }

    fn sent_by(graph: &TaskGraph, rank: u32) -> Vec<(u32, u64, u64)> {
        let edges = graph.edges.iter().filter(|edge| edge.source == rank);
        edges.map(|edge| (edge.destination, edge.messages, edge.bytes)).collect()
    }

    #[test]
    fn neighbours_are_adjacent() {
        let graph = stencil(&params("3x4", false)).unwrap();
        assert_eq!(sent_by(&graph, 5), [(1, 1, 8), (4, 1, 8), (6, 1, 8), (9, 1, 8)]);
        assert_eq!(sent_by(&graph, 0), [(1, 1, 8), (4, 1, 8)]);
        let graph = stencil(&params("3x4", true)).unwrap();
        assert_eq!(sent_by(&graph, 0), [(1, 1, 8), (3, 1, 8), (4, 1, 8), (8, 1, 8)]);
        let graph = stencil(&params("2x3x4", false)).unwrap();
        assert_eq!(sent_by(&graph, 23), [(11, 1, 8), (19, 1, 8), (22, 1, 8)]);
    }

    #[test]
    fn a_box_has_edges_and_corners() {
        let boxed = |shape, periodic| {
            stencil(&StencilParams { neighbours: Neighbours::Box, ..params(shape, periodic) })
        };
        let to =
            |graph: &TaskGraph, rank| sent_by(graph, rank).into_iter().map(|(to, ..)| to).collect::<Vec<_>>();
        let graph = boxed("3x4", false).unwrap();
        assert_eq!(to(&graph, 5), [0, 1, 2, 4, 6, 8, 9, 10]);
        assert_eq!(to(&graph, 0), [1, 4, 5]);
        assert_eq!(to(&boxed("3x4", true).unwrap(), 0), [1, 3, 4, 5, 7, 8, 9, 11]);
        let graph = boxed("3x3x3", true).unwrap();
        assert_eq!((to(&graph, 13).len(), graph.edges.len()), (26, 26 * 27));
        // Both directions lead to the same rank.
        assert_eq!(sent_by(&boxed("2x1", true).unwrap(), 0), [(1, 2, 16)]);
        assert_eq!(sent_by(&boxed("2x2", true).unwrap(), 0), [(1, 2, 16), (2, 2, 16), (3, 4, 32)]);
        assert_eq!(boxed("1x1x1", true).unwrap().edges, []);
    }

    #[test]
    fn short_dimensions() {
        let graph = stencil(&params("2x1", true)).unwrap();
        assert_eq!(sent_by(&graph, 0), [(1, 2, 16)]);
        assert_eq!(stencil(&params("1x1x1", true)).unwrap().edges, []);
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        let message = |shape: &str| stencil(&params(shape, true)).unwrap_err().to_string();
        for shape in ["", "4", "4x", "x4", "4x4x4x4", "4x0", "-4x4", "4X4", "4x4 ", "2.5x2", "+4x4"] {
            assert_eq!(message(shape), format!("shape `{shape}` is not a grid of two or three dimensions"));
        }
        for shape in ["1025x1024", "99999999999999999999x1", "65536x65536", "2097152x1"] {
            assert_eq!(message(shape), format!("shape `{shape}` has more than 1048576 ranks"));
        }
        let params = StencilParams { bytes: 1 << 60, ..params("4x4", false) };
        let error = stencil(&params).unwrap_err().to_string();
        assert_eq!(error, "the total of 1152921504606846976 bytes per neighbour exceeds 64 bits");
    }

    proptest! {
        #[test]
        fn what_is_sent_there_is_sent_back(
            extents in prop::collection::vec(1u32..6, 2..4), periodic in any::<bool>(), boxed in any::<bool>(),
        ) {
            let shape = extents.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
            let neighbours = if boxed { Neighbours::Box } else { Neighbours::Star };
            let graph = stencil(&StencilParams { neighbours, ..params(&shape, periodic) }).unwrap();
            prop_assert!(graph.check().is_ok());
            let pairs: BTreeMap<_, _> = graph.edges.iter().map(|edge| (edge.pair(), edge.messages)).collect();
            for (&(source, destination), messages) in &pairs {
                prop_assert_ne!(source, destination);
                prop_assert_eq!(pairs.get(&(destination, source)), Some(messages));
            }
            let ranks: u32 = extents.iter().product();
            let sides = |extent: &u32| match periodic {
                true if *extent > 1 => 2 * ranks,
                true => 0,
                false => 2 * (ranks - ranks / extent),
            };
            if boxed {
                let steps = |extent: &u32| match periodic {
                    true if *extent > 1 => 3 * extent,
                    true => 1,
                    false => 3 * extent - 2,
                };
                let expected = extents.iter().map(steps).product::<u32>() - ranks;
                prop_assert_eq!(graph.messages(), u64::from(expected));
            } else {
                prop_assert_eq!(graph.messages(), u64::from(extents.iter().map(sides).sum::<u32>()));
            }
        }
    }
}
