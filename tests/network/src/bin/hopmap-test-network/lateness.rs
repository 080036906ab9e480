//! How late frames were.

use hopmap_test_network::MAX_LATE;

/// Width of a class of the histogram, in seconds, and number of classes: the last one has everything above 0.2 s.
const WIDTH_S: f64 = 20e-6;
const CLASSES: usize = 10_000;

/// A histogram of how late frames were.
#[derive(Debug)]
pub(crate) struct Lateness(Vec<u64>);

impl Lateness {
    pub(crate) fn new() -> Self {
        Self(vec![0; CLASSES])
    }

    pub(crate) fn add(&mut self, late_s: f64) {
        let class = (late_s / WIDTH_S).max(0.0) as usize;
        self.0[class.min(CLASSES - 1)] += 1;
    }

    /// The time, in seconds, by which all frames but a fraction of [`MAX_LATE`] were late at most, since it was taken last.
    pub(crate) fn take(&mut self) -> f64 {
        let frames: u64 = self.0.iter().sum();
        let mut later = (frames as f64 * MAX_LATE) as u64;
        let mut limit = 0;
        for (class, &count) in self.0.iter().enumerate().rev() {
            if count > later {
                limit = class + 1;
                break;
            }
            later -= count;
        }
        self.0.fill(0);
        limit as f64 * WIDTH_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_frames_may_be_later() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.take().to_bits(), 0);
        (0..995).for_each(|_| lateness.add(90e-6));
        (0..5).for_each(|_| lateness.add(0.5));
        assert!((lateness.take() - 100e-6).abs() < 1e-9);
        (0..994).for_each(|_| lateness.add(-1.0));
        (0..6).for_each(|_| lateness.add(4.01e-3));
        assert!((lateness.take() - 4.02e-3).abs() < 1e-9);
        assert_eq!(lateness.take().to_bits(), 0);
    }
}
