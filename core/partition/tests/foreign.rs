//! External partitioners with exact balancing.

use hopmap_partition::{Graph, cut};

/// A grid graph.
fn grid(width: u32, height: u32) -> Graph {
    let at = |x: u32, y: u32| y * width + x;
    let (mut first, mut targets) = (vec![0], Vec::new());
    for vertex in 0..width * height {
        let (x, y) = (vertex % width, vertex / width);
        let neighbours = [
            (x > 0).then(|| at(x - 1, y)),
            (x + 1 < width).then(|| at(x + 1, y)),
            (y > 0).then(|| at(x, y - 1)),
            (y + 1 < height).then(|| at(x, y + 1)),
        ];
        targets.extend(neighbours.into_iter().flatten());
        first.push(targets.len() as u32);
    }
    let weights = vec![1 << 40; targets.len()];
    Graph::new(first, targets, weights, vec![1; (width * height) as usize]).unwrap()
}

fn sizes_of(parts: &[u32], count: usize) -> Vec<u32> {
    let mut sizes = vec![0; count];
    parts.iter().for_each(|&part| sizes[part as usize] += 1);
    sizes
}

/// Equal, unequal and empty parts, one part, and one part per vertex.
fn is_exact(partitioner: impl Fn(&Graph, &[u32]) -> Vec<u32>) {
    let graph = grid(16, 16);
    for sizes in [vec![64; 4], vec![100, 0, 56, 0, 100], vec![256], vec![0, 256], vec![1; 256], vec![255, 1]]
    {
        let parts = partitioner(&graph, &sizes);
        assert_eq!(sizes_of(&parts, sizes.len()), sizes);
    }
    let parts = partitioner(&graph, &[128, 128]);
    assert!(cut(&graph, &parts) <= 20 << 40, "{}", cut(&graph, &parts) >> 40);
}

#[cfg(feature = "metis")]
#[test]
fn metis_has_exact_sizes() {
    is_exact(|graph, sizes| hopmap_partition::metis(graph, sizes, 1).unwrap());
}

#[cfg(feature = "metis")]
#[test]
fn metis_is_deterministic_in_many_threads() {
    let graph = grid(32, 32);
    let alone = hopmap_partition::metis(&graph, &[64; 16], 7).unwrap();
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..8).map(|_| scope.spawn(|| hopmap_partition::metis(&graph, &[64; 16], 7).unwrap())).collect();
        runs.into_iter().for_each(|run| assert_eq!(run.join().unwrap(), alone));
    });
}

#[test]
fn scotch_has_exact_sizes_or_is_reported_missing() {
    match hopmap_partition::scotch(&grid(2, 2), &[2, 2]) {
        Ok(_) => is_exact(|graph, sizes| hopmap_partition::scotch(graph, sizes).unwrap()),
        Err(error) => {
            assert_ne!(std::env::var("HOPMAP_SYSTEM_TESTS").as_deref(), Ok("1"), "{error}");
            assert!(error.to_string().starts_with("Scotch is not installed"), "{error}");
            hopmap_test_support::skipped("Scotch is not installed");
        }
    }
}
