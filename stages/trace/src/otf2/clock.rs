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

    /// The common time of a local time: offsets are interpolated between two measurements, and extrapolated from
    /// the two nearest outside of them; fewer than two change nothing. This is what libotf2 does to the times of
    /// events (`otf2_evt_reader_apply_clock_correction`).
    pub(super) fn correct(&self, time: u64) -> u64 {
        let Some(interval) =
            self.measured.windows(2).find(|pair| time <= pair[1].0).or(self.measured.windows(2).last())
        else {
            return time;
        };
        let [(begin, offset), (end, next_offset)] = [interval[0], interval[1]];
        let slope = next_offset.wrapping_sub(offset) as f64 / end.wrapping_sub(begin) as f64;
        let since = if time >= begin { (time - begin) as f64 } else { -((begin - time) as f64) };
        let interpolated = (slope * since).round_ties_even() as i64;
        time.wrapping_add_signed(offset.wrapping_add(interpolated))
    }
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
