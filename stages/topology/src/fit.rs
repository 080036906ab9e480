//! Piecewise linear model of message times: latency and bandwidth for ranges of sizes.
//!
//! t(D) = L + D / S (seed model of point-to-point messages; Hockney, Parallel Computing 20, 1994) holds
//! between the sizes at which a library changes its protocol. The breakpoints are found by dynamic
//! programming over the sizes (Bellman and Roth, Journal of the American Statistical Association 64, 1969):
//! the segmentation with the smallest sum of squared relative errors and penalties.

use hopmap_model::{Fit, ProbePhase, Sample};

/// Penalty of a piece, in variances of the noise: three numbers describe it (its start, L, S), and the start
/// is chosen among several sizes.
const PENALTY: f64 = 20.0;
/// Lower limit of the relative noise.
const LEAST_NOISE: f64 = 0.01;
/// Relative noise if pairs were measured in one direction only.
const UNKNOWN_NOISE: f64 = 0.05;
/// Shorter times, in seconds, are considered equal.
const SHORTEST: f64 = 1e-12;

/// Latency and bandwidth of every ordered pair of endpoints, sorted by source, destination and first size.
///
/// A sample is a round trip of a message with a one-byte reply; the reply takes half of the shortest time of
/// the smallest message of the pair. For the smallest size, the shortest time of both directions is used, as
/// in [`hopmap_model::Measurements::latencies`]. For larger sizes, samples of a pair alone take precedence over
/// isolated ones, which take precedence over
/// those under load, which take precedence over those of the latency phase.
#[must_use]
pub fn fits(samples: &[Sample]) -> Vec<Fit> {
    let rows = rows(samples);
    let pairs: Vec<&[Row]> =
        rows.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination)).collect();
    let penalty = PENALTY * noise(&pairs).powi(2);
    let mut fits = Vec::new();
    for pair in &pairs {
        let (source, destination) = (pair[0].source, pair[0].destination);
        let piece = |piece: Piece| Fit {
            source,
            destination,
            from_bytes: piece.from_bytes,
            latency_s: piece.latency_s,
            bandwidth_bytes_per_s: piece.bandwidth_bytes_per_s,
        };
        fits.extend(pieces(&one_way(pair, reverse(&pairs, pair)), penalty).into_iter().map(piece));
    }
    fits
}

/// The shortest time of one size from one endpoint to another.
#[derive(Debug, Clone, Copy)]
struct Row {
    source: u32,
    destination: u32,
    bytes: u64,
    minimum_s: f64,
}

/// One row per size and ordered pair, in order.
fn rows(samples: &[Sample]) -> Vec<Row> {
    let preference = |phase| match phase {
        ProbePhase::Alone => 0,
        ProbePhase::Isolated => 1,
        ProbePhase::Loaded => 2,
        ProbePhase::Latency => 3,
    };
    let key = |sample: &Sample| (sample.source, sample.destination, sample.bytes);
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by_key(|sample| (key(sample), preference(sample.phase)));
    let mut rows: Vec<Row> = Vec::new();
    for of_size in sorted.chunk_by(|a, b| key(a) == key(b)) {
        let (source, destination, bytes) = key(of_size[0]);
        let is_smallest =
            rows.last().is_none_or(|row| (row.source, row.destination) != (source, destination));
        let shortest = of_size.iter().map(|sample| sample.minimum_s).fold(f64::INFINITY, f64::min);
        let minimum_s = if is_smallest { shortest } else { of_size[0].minimum_s };
        rows.push(Row { source, destination, bytes, minimum_s });
    }
    rows
}

/// The rows of the opposite direction of a pair.
fn reverse<'a>(pairs: &[&'a [Row]], pair: &[Row]) -> Option<&'a [Row]> {
    let wanted = (pair[0].destination, pair[0].source);
    let found = pairs.binary_search_by_key(&wanted, |rows| (rows[0].source, rows[0].destination));
    found.ok().map(|index| pairs[index])
}

/// Relative noise of shortest times: the standard deviation estimated from the ninth decile of the
/// differences between both directions.
fn noise(pairs: &[&[Row]]) -> f64 {
    let mut differences = Vec::new();
    for pair in pairs.iter().filter(|pair| pair[0].source < pair[0].destination) {
        let Some(other) = reverse(pairs, pair) else { continue };
        for row in *pair {
            let twin = other.iter().find(|other| other.bytes == row.bytes);
            if let Some(twin) = twin.filter(|twin| twin.minimum_s.min(row.minimum_s) > 0.0) {
                differences.push(libm::log(row.minimum_s / twin.minimum_s).abs());
            }
        }
    }
    if differences.is_empty() {
        return UNKNOWN_NOISE;
    }
    let rank = differences.len() * 9 / 10;
    let decile = *differences.select_nth_unstable_by(rank, f64::total_cmp).1;
    // The ninth decile of the differences of two normal variables is 1.645 · √2 standard deviations.
    (decile / (1.645 * std::f64::consts::SQRT_2)).max(LEAST_NOISE)
}

/// Time of messages of one size: `latency · unit + load / bandwidth`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) bytes: u64,
    /// What the latency is a multiple of; 1 if it is in seconds.
    pub(crate) unit: f64,
    /// What is transferred; the bytes if the bandwidth is in bytes per second.
    pub(crate) load: f64,
    /// One-way time in seconds.
    pub(crate) one_way_s: f64,
    /// Measured time in seconds, to which errors are relative.
    pub(crate) measured_s: f64,
}

impl Point {
    /// A time whose latency is in seconds and whose load is the bytes.
    pub(crate) fn new(bytes: u64, one_way_s: f64, measured_s: f64) -> Self {
        Self { bytes, unit: 1.0, load: bytes as f64, one_way_s, measured_s: measured_s.max(SHORTEST) }
    }
}

/// The points of a pair.
fn one_way(pair: &[Row], other: Option<&[Row]>) -> Vec<Point> {
    let there = pair[0].minimum_s;
    let back = other.filter(|other| other[0].bytes == pair[0].bytes).map(|other| other[0].minimum_s);
    let shortest = back.map_or(there, |back| back.min(there));
    let answer = shortest / 2.0;
    let way = |(index, row): (usize, &Row)| {
        let both = if index == 0 { shortest } else { row.minimum_s };
        // A message takes at least as long as its reply, thus at least half of the round trip.
        Point::new(row.bytes, (both - answer).max(both / 2.0), both)
    };
    pair.iter().enumerate().map(way).collect()
}

/// L and S from some size on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    pub(crate) from_bytes: u64,
    pub(crate) latency_s: f64,
    pub(crate) bandwidth_bytes_per_s: Option<f64>,
}

/// The pieces of points whose noise is unknown, which are sorted by size.
pub(crate) fn pieces_of(points: &[Point]) -> Vec<Piece> {
    pieces(points, PENALTY * UNKNOWN_NOISE.powi(2))
}

/// The segmentation of the sizes with the smallest sum of squared relative errors and penalties. A piece has
/// at least two sizes.
fn pieces(points: &[Point], penalty: f64) -> Vec<Piece> {
    let mut ends = vec![0];
    ends.extend(points.chunk_by(|a, b| a.bytes == b.bytes).scan(0, |end, size| {
        *end += size.len();
        Some(*end)
    }));
    let count = ends.len() - 1;
    let of = |begin: usize, end: usize| &points[ends[begin]..ends[end]];
    let mut best: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); count + 1];
    best[0].0 = 0.0;
    for end in 1..=count {
        let begins = (0..end).filter(|&begin| end - begin > 1 || count == 1);
        for begin in begins.filter(|&begin| best[begin].0.is_finite()).collect::<Vec<_>>() {
            let (_, error) = line(of(begin, end));
            let total = best[begin].0 + error + penalty;
            if total < best[end].0 {
                best[end] = (total, begin);
            }
        }
    }
    let mut pieces = Vec::new();
    let mut end = count;
    while end > 0 {
        let begin = best[end].1;
        pieces.push(line(of(begin, end)).0);
        end = begin;
    }
    pieces.reverse();
    pieces
}

/// The non-decreasing, non-negative line with the smallest sum of squared relative errors, and this sum.
fn line(points: &[Point]) -> (Piece, f64) {
    let mut sums = [0.0; 5];
    for point in points {
        let Point { unit, load, one_way_s: time, .. } = *point;
        let weight = point.measured_s.powi(-2);
        let terms = [unit * unit, unit * load, load * load, unit * time, load * time];
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
    }
    let [one, x, xx, y, xy] = sums;
    let spread = one * xx - x * x;
    let is_spread = spread > 1e-12 * one * xx;
    let slope = if is_spread { (one * xy - x * y) / spread } else { 0.0 };
    let (latency, slope) = match (slope, (y - slope * x) / one) {
        (slope, _) if slope <= 0.0 || !slope.is_finite() => (y / one, 0.0),
        (_, latency) if latency < 0.0 => (0.0, xy / xx),
        (slope, latency) => (latency, slope),
    };
    let error = |point: &Point| {
        ((latency * point.unit + slope * point.load - point.one_way_s) / point.measured_s).powi(2)
    };
    let bandwidth = (slope > 0.0).then(|| 1.0 / slope).filter(|bandwidth| bandwidth.is_finite());
    let piece = Piece { from_bytes: points[0].bytes, latency_s: latency, bandwidth_bytes_per_s: bandwidth };
    (piece, points.iter().map(error).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::Measurements;
    use proptest::prelude::*;

    const SIZES: [u64; 10] = [1, 64, 1024, 4096, 16_384, 65_536, 131_072, 262_144, 1 << 20, 1 << 22];

    fn sample(source: u32, destination: u32, phase: ProbePhase, bytes: u64, minimum_s: f64) -> Sample {
        Sample {
            source,
            destination,
            phase,
            bytes,
            messages: 100,
            minimum_s,
            first_decile_s: minimum_s,
            median_s: minimum_s,
            ninth_decile_s: minimum_s,
            maximum_s: minimum_s,
        }
    }

    /// Both directions of a pair with known one-way times.
    fn measured(sizes: &[u64], time: impl Fn(u64) -> f64, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (source, destination) in [(0, 1), (1, 0)] {
            for (index, &bytes) in sizes.iter().enumerate() {
                let both = time(bytes) + time(sizes[0]);
                let noise = 1.0 + noise(index + sizes.len() * source as usize);
                samples.push(sample(source, destination, ProbePhase::Isolated, bytes, both * noise));
            }
        }
        samples
    }

    fn near(found: f64, truth: f64, share: f64) -> bool {
        (found - truth).abs() <= share * truth
    }

    fn sorted(samples: Vec<Sample>, fits: &[Fit]) {
        let endpoint =
            |core| hopmap_model::Endpoint { host: "a".into(), core, state: hopmap_model::NodeState::Up };
        let endpoints = (0..64).map(endpoint).collect();
        Measurements { endpoints, samples, fits: fits.to_vec(), ..Measurements::default() }.check().unwrap();
    }

    #[test]
    fn a_line_without_noise_is_recovered() {
        let samples = measured(&SIZES, |bytes| 2e-6 + bytes as f64 / 1e10, |_| 0.0);
        let fits = fits(&samples);
        assert_eq!(fits.len(), 2);
        for fit in &fits {
            assert_eq!(fit.from_bytes, 1);
            assert!(near(fit.latency_s, 2e-6, 1e-6) && near(fit.bandwidth_bytes_per_s.unwrap(), 1e10, 1e-6));
        }
        sorted(samples, &fits);
    }

    #[test]
    fn an_additional_round_trip_from_64_kib_on_is_a_second_piece() {
        let time = |bytes| 5e-6 + bytes as f64 / 1e10 + if bytes >= 65_536 { 1e-5 } else { 0.0 };
        let samples = measured(&SIZES, time, |_| 0.0);
        let fits = fits(&samples);
        assert_eq!(fits.iter().map(|fit| fit.from_bytes).collect::<Vec<_>>(), [1, 65_536, 1, 65_536]);
        assert!(near(fits[0].latency_s, 5e-6, 1e-3) && near(fits[1].latency_s, 1.5e-5, 1e-3));
        assert!(fits.iter().all(|fit| near(fit.bandwidth_bytes_per_s.unwrap(), 1e10, 1e-2)));
        sorted(samples, &fits);
    }

    #[test]
    fn few_sizes_have_defined_fits() {
        assert!(fits(&[]).is_empty());
        let one = fits(&measured(&[1], |_| 3e-6, |_| 0.0));
        assert_eq!((one.len(), one[0].bandwidth_bytes_per_s), (2, None));
        assert!(near(one[0].latency_s, 3e-6, 1e-9));
        let two = fits(&measured(&[1, 1 << 20], |bytes| 1e-6 + bytes as f64 / 1e9, |_| 0.0));
        assert_eq!(two.len(), 2);
        assert!(near(two[0].latency_s, 1e-6, 1e-3) && near(two[0].bandwidth_bytes_per_s.unwrap(), 1e9, 1e-3));
    }

    #[test]
    fn falling_times_have_no_bandwidth() {
        for sizes in [&[1, 1024][..], &[1, 1024, 4096]] {
            let fits = fits(&measured(sizes, |bytes| 1e-5 / (1.0 + bytes as f64 / 1e4), |_| 0.0));
            assert!(fits.iter().all(|fit| fit.bandwidth_bytes_per_s.is_none() && fit.latency_s > 0.0));
        }
        let zero = fits(&measured(&[1, 8], |_| 0.0, |_| 0.0));
        assert!(zero.iter().all(|fit| fit.latency_s.abs() < 1e-15 && fit.bandwidth_bytes_per_s.is_none()));
    }

    #[test]
    fn isolated_samples_take_precedence_over_loaded_ones() {
        let pair = |phase, bytes, time| sample(0, 1, phase, bytes, time);
        let samples = [
            pair(ProbePhase::Latency, 1, 2e-6),
            pair(ProbePhase::Latency, 1 << 20, 9e-3),
            pair(ProbePhase::Isolated, 1 << 20, 1e-6 + 1e-3),
            pair(ProbePhase::Loaded, 1 << 20, 5e-3),
            pair(ProbePhase::Loaded, 1 << 21, 1e-6 + 2e-3),
        ];
        let fits = fits(&samples);
        assert_eq!(fits.len(), 1);
        assert!(near(fits[0].bandwidth_bytes_per_s.unwrap(), f64::from(1 << 20) / 1e-3, 0.02), "{fits:?}");
    }

    #[test]
    fn the_shorter_direction_gives_the_time_of_the_reply() {
        let samples = [
            sample(0, 1, ProbePhase::Latency, 1, 6e-6),
            sample(0, 1, ProbePhase::Latency, 1 << 20, 1e-3),
            sample(1, 0, ProbePhase::Latency, 1, 4e-6),
        ];
        let fits = fits(&samples);
        assert!(near(fits[0].latency_s, 2e-6, 1e-3) && near(fits[1].latency_s, 2e-6, 1e-9), "{fits:?}");
    }

    proptest! {
        /// Noise is one-sided, up to 30 %, and estimated from all pairs together.
        #[test]
        fn noise_makes_no_pieces(
            latency in 1e-7_f64..1e-3,
            bandwidth in 1e7_f64..1e11,
            largest in 0.0_f64..0.3,
            noise in prop::array::uniform32(prop::array::uniform20(0.0_f64..1.0)).no_shrink(),
        ) {
            let time = |bytes| latency + bytes as f64 / bandwidth;
            let mut samples = Vec::new();
            for (pair, noise) in (0..).zip(&noise) {
                let of_pair = measured(&SIZES, time, |index| largest * noise[index]);
                samples.extend(of_pair.into_iter().map(|sample| Sample {
                    source: sample.source + 2 * pair,
                    destination: sample.destination + 2 * pair,
                    ..sample
                }));
            }
            let fits = fits(&samples);
            prop_assert_eq!(fits.len(), 2 * noise.len());
            for fit in &fits {
                for bytes in SIZES {
                    let found = fit.latency_s + fit.bandwidth_bytes_per_s.map_or(0.0, |speed| bytes as f64 / speed);
                    // The round trip is up to twice the one-way time, and the largest size has much leverage
                    // on the line.
                    prop_assert!(near(found, time(bytes), 3.0 * largest + 0.01), "{bytes}: {found} {}", time(bytes));
                }
            }
            sorted(samples, &fits);
        }

        #[test]
        fn any_times_give_valid_fits(times in prop::collection::vec(0.0_f64..1e-2, 20)) {
            let mut samples = measured(&SIZES, |_| 0.0, |_| 0.0);
            for (sample, time) in samples.iter_mut().zip(times) {
                let timed = self::sample(sample.source, sample.destination, sample.phase, sample.bytes, time);
                *sample = timed;
            }
            let fits = fits(&samples);
            prop_assert!(fits.iter().all(|fit| fit.latency_s >= 0.0));
            sorted(samples, &fits);
        }
    }
}
