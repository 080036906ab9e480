//! From the clock of a location to the common clock of the trace.

/// How far the clock of a location is off, measured at some points in time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ClockOffsets {
    /// Local time and offset, in the order of time.
    measured: Vec<(u64, i64)>,
    /// From each measurement to the next.
    intervals: Vec<Interval>,
}

/// How the offset changes between two measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    begin: u64,
    end: u64,
    /// At the beginning.
    offset: i64,
    /// Change of the offset per tick.
    slope: f64,
}

impl Interval {
    fn new((begin, offset): (u64, i64), (end, next_offset): (u64, i64)) -> Self {
        let slope = next_offset.wrapping_sub(offset) as f64 / end.wrapping_sub(begin) as f64;
        Self { begin, end, offset, slope }
    }

    /// The common time of a local time, which may be outside.
    #[inline]
    fn correct(&self, time: u64) -> u64 {
        let since =
            if time >= self.begin { (time - self.begin) as f64 } else { -((self.begin - time) as f64) };
        time.wrapping_add_signed(self.offset.wrapping_add(whole(self.slope * since)))
    }
}

impl ClockOffsets {
    pub(super) fn add(&mut self, time: u64, offset: i64) {
        if let Some(last) = self.measured.last() {
            self.intervals.push(Interval::new(*last, (time, offset)));
        }
        self.measured.push((time, offset));
    }

    /// Whether it is off at all.
    pub(super) fn corrects(&self) -> bool {
        !self.intervals.is_empty()
    }

    /// When the last measurement was.
    pub(super) fn last(&self) -> Option<u64> {
        self.measured.last().map(|(time, _)| *time)
    }

    /// The common time of a local time: offsets are interpolated between two measurements, and extrapolated from
    /// the two nearest outside of them; fewer than two change nothing. This is what libotf2 does to the times of
    /// events (`otf2_evt_reader_apply_clock_correction`).
    pub(super) fn correct(&self, time: u64) -> u64 {
        self.correct_after(time, time)
    }

    /// The same for a local time that comes when later ones, up to `furthest`, have been corrected: libotf2 never
    /// goes back to earlier measurements.
    #[inline]
    pub(super) fn correct_after(&self, time: u64, furthest: u64) -> u64 {
        match self.intervals.as_slice() {
            [] => time,
            [only] => only.correct(time),
            several => Self::correct_in(several, time, furthest),
        }
    }

    fn correct_in(intervals: &[Interval], time: u64, furthest: u64) -> u64 {
        let behind = intervals.partition_point(|interval| interval.end < furthest);
        intervals[behind.min(intervals.len() - 1)].correct(time)
    }
}

/// The nearest whole number. One beyond 64 bits becomes what it becomes in C on x86-64, so that nonsense at least is
/// the same nonsense as in libotf2.
#[inline]
fn whole(number: f64) -> i64 {
    // Numbers below 2^51 are rounded by the addition, without a call of the mathematical library.
    const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
    if number.abs() < (1u64 << 51) as f64 {
        return ((number + ROUNDING) - ROUNDING) as i64;
    }
    whole_of_large(number)
}

#[cold]
fn whole_of_large(number: f64) -> i64 {
    let rounded = number.round_ties_even();
    if rounded >= -(2f64.powi(63)) && rounded < 2f64.powi(63) { rounded as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rounding_is_that_of_the_library(number in any::<f64>(), halves in any::<i32>()) {
            prop_assert_eq!(whole(number), whole_of_large(number));
            prop_assert_eq!(whole(f64::from(halves) / 2.0), whole_of_large(f64::from(halves) / 2.0));
        }
    }

    #[test]
    fn offsets_are_interpolated_and_extrapolated() {
        let mut clock = ClockOffsets::default();
        assert_eq!(clock.correct(500), 500);
        clock.add(1000, 10);
        assert_eq!(clock.correct(500), 500);
        clock.add(2000, 20);
        clock.add(3000, -20);
        assert_eq!(
            [0, 1000, 1500, 2000, 2500, 3000, 4000].map(|time| clock.correct(time)),
            [0, 1010, 1515, 2020, 2500, 2980, 3940]
        );
    }
}
