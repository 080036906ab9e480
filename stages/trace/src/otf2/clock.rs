//! From the clock of a location to the common clock of the trace.

/// How far the clock of a location is off, measured at some points in time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ClockOffsets {
    /// Local time and offset, in the order of time.
    measured: Vec<(u64, i64)>,
}

impl ClockOffsets {
    pub(super) fn add(&mut self, time: u64, offset: i64) {
        self.measured.push((time, offset));
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
    pub(super) fn correct_after(&self, time: u64, furthest: u64) -> u64 {
        if self.measured.len() < 2 {
            return time;
        }
        let behind = self.measured[1..].partition_point(|(end, _)| *end < furthest);
        let interval = behind.min(self.measured.len() - 2);
        let [(begin, offset), (end, next_offset)] = [self.measured[interval], self.measured[interval + 1]];
        let slope = next_offset.wrapping_sub(offset) as f64 / end.wrapping_sub(begin) as f64;
        let since = if time >= begin { (time - begin) as f64 } else { -((begin - time) as f64) };
        let interpolated = whole(slope * since);
        time.wrapping_add_signed(offset.wrapping_add(interpolated))
    }
}

/// The nearest whole number. One beyond 64 bits becomes what it becomes in C on x86-64, so that nonsense at least is
/// the same nonsense as in libotf2.
fn whole(number: f64) -> i64 {
    let rounded = number.round_ties_even();
    if rounded >= -(2f64.powi(63)) && rounded < 2f64.powi(63) { rounded as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

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
