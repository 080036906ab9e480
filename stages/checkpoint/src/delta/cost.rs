//! How long it takes to write a checkpoint: W(S) = α + S / B.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hopmap_durable::DurableError;

/// Sizes of the files that are written, in bytes.
const SIZES: [u64; 5] = [64 << 10, 512 << 10, 4 << 20, 16 << 20, 64 << 20];
/// How often each is written; the median counts.
const TIMES: usize = 3;
/// Bytes that are given to the system at once.
const PIECE: usize = 1 << 20;

/// Seconds to write and synchronise S bytes: a latency and S over a bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCost {
    /// α, in seconds.
    pub latency_s: f64,
    /// B, in bytes per second.
    pub bytes_per_s: f64,
}

impl Default for WriteCost {
    /// No latency and a gigabyte per second: E is proportional to the bytes that are stored.
    fn default() -> Self {
        Self { latency_s: 0.0, bytes_per_s: 1e9 }
    }
}

impl WriteCost {
    /// W(S) in seconds.
    #[must_use]
    pub fn seconds(self, bytes: u64) -> f64 {
        self.latency_s + bytes as f64 / self.bytes_per_s
    }

    /// Writes files of several sizes into a folder, each synchronised with the disk and then removed, and fits both numbers.
    pub fn measure(folder: &Path) -> Result<Self, DurableError> {
        Self::measure_files(folder, &SIZES)
    }

    fn measure_files(folder: &Path, sizes: &[u64]) -> Result<Self, DurableError> {
        let mut times = Vec::new();
        for &bytes in sizes {
            let mut seconds = Vec::new();
            for _ in 0..TIMES {
                seconds.push(write(folder, bytes)?);
            }
            seconds.sort_by(f64::total_cmp);
            times.extend(seconds.get(TIMES / 2).map(|median| (bytes as f64, *median)));
        }
        Ok(Self::fit(&times))
    }

    /// The line with the least sum of squares of relative errors whose latency is not negative. Bytes and seconds are above 0.
    #[must_use]
    pub fn fit(times: &[(f64, f64)]) -> Self {
        let sum =
            |term: fn(f64, f64) -> f64| times.iter().map(|&(bytes, s)| term(bytes, s) / (s * s)).sum::<f64>();
        let (weight, bytes, seconds) = (sum(|_, _| 1.0), sum(|b, _| b), sum(|_, s| s));
        let (squares, products) = (sum(|b, _| b * b), sum(|b, s| b * s));
        let slope = (weight * products - bytes * seconds) / (weight * squares - bytes * bytes);
        let latency_s = (seconds - slope * bytes) / weight;
        match latency_s >= 0.0 && slope > 0.0 && slope.is_finite() {
            true => Self { latency_s, bytes_per_s: 1.0 / slope },
            false => Self { latency_s: 0.0, bytes_per_s: squares / products },
        }
    }
}

/// Seconds to write a file.
fn write(folder: &Path, bytes: u64) -> Result<f64, DurableError> {
    let path = folder.join(format!(".hopmap-write-{}", std::process::id()));
    let failed = |error| DurableError::io("write", &path)(error);
    // Nothing that a file system could leave out or compress.
    let piece = noise();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    let _removed = Removed(path.clone());
    let begin = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE as u64);
        file.write_all(piece.get(..count as usize).unwrap_or_default()).map_err(failed)?;
        left -= count;
    }
    file.sync_all().map_err(failed)?;
    Ok(begin.elapsed().as_secs_f64().max(1e-9))
}

/// Bytes without a pattern (xorshift, Marsaglia 2003).
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..PIECE / 8).flat_map(word).collect()
}

/// A file that is not left behind.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Whoever cannot remove a file any more could not write it either, and has been told.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let times: Vec<(f64, f64)> =
            SIZES.iter().map(|&bytes| (bytes as f64, 0.004 + bytes as f64 / 5e8)).collect();
        let found = WriteCost::fit(&times);
        assert!(
            (found.latency_s - 0.004).abs() < 1e-9 && (found.bytes_per_s / 5e8 - 1.0).abs() < 1e-6,
            "{found:?}"
        );
        assert!((found.seconds(500_000_000) - 1.004).abs() < 1e-6);
    }

    #[test]
    fn a_latency_is_never_negative() {
        let found = WriteCost::fit(&[(1e6, 0.0005), (2e6, 0.002), (4e6, 0.006)]);
        assert!(found.latency_s == 0.0 && found.bytes_per_s > 0.0, "{found:?}");
        let flat = WriteCost::fit(&[(1e6, 0.002), (2e6, 0.001), (4e6, 0.0005)]);
        assert!(flat.latency_s == 0.0 && flat.bytes_per_s > 0.0, "{flat:?}");
    }

    #[test]
    fn a_folder_is_measured_and_nothing_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        let found = WriteCost::measure_files(folder.path(), &[1000, 100_000, 3_000_000]).unwrap();
        assert!(
            found.latency_s >= 0.0 && found.bytes_per_s > 0.0 && found.bytes_per_s.is_finite(),
            "{found:?}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(WriteCost::measure(&folder.path().join("missing")).is_err());
    }
}
