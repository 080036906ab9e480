//! Definitions of a location that affect its events: id maps and clock offsets.

use std::path::Path;

use super::record::{Cursor, Flaw};
use super::record_schema::{self, Layout};
use super::structure;
use crate::error::TraceError;

const MAPPING_TABLE: u8 = 5;
const CLOCK_OFFSET: u8 = 6;

/// Type of ids that a map translates (`OTF2_MappingType`).
const REGIONS: u8 = 3;
const COMMUNICATORS: u8 = 6;
const WINDOWS: u8 = 8;
const CALLING_CONTEXTS: u8 = 10;

/// Map from the ids in the events of a location to those of the archive. Ids that are not in the map are
/// unchanged (`OTF2_IdMap_GetGlobalId`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IdMap {
    /// By local id.
    Dense(Vec<u64>),
    /// Local and global id, sorted.
    Sparse(Vec<(u64, u64)>),
}

impl IdMap {
    pub(super) fn global(&self, local: u32) -> u32 {
        let local_id = u64::from(local);
        let found = match self {
            Self::Dense(ids) => ids.get(local as usize).copied(),
            Self::Sparse(pairs) => {
                pairs.binary_search_by_key(&local_id, |pair| pair.0).ok().map(|place| pairs[place].1)
            }
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "relevant identifiers have 32 bits; libotf2 truncates others as well"
        )]
        let truncated = |id: u64| id as u32;
        found.map_or(local, truncated)
    }

    /// Reads a map that has already been validated.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Flaw> {
        let count = cursor.compressed(8)?;
        if cursor.byte()? == 0 {
            return Ok(Self::Dense((0..count).map(|_| cursor.compressed(8)).collect::<Result<_, _>>()?));
        }
        let pairs = (0..count).map(|_| Ok((cursor.compressed(8)?, cursor.compressed(8)?)));
        Ok(Self::Sparse(pairs.collect::<Result<_, _>>()?))
    }
}

/// The relevant definitions of a location.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LocalDefinitions {
    pub(super) regions: Option<IdMap>,
    pub(super) communicators: Option<IdMap>,
    pub(super) windows: Option<IdMap>,
    pub(super) calling_contexts: Option<IdMap>,
    pub(super) clock: ClockOffsets,
    /// Whether there are records of a later version, which may change the meaning of events.
    pub(super) unknown: bool,
}

impl LocalDefinitions {
    /// Reads and validates the definitions of a location.
    pub(super) fn read(
        path: &Path,
        chunk_size: u64,
        location: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, TraceError> {
        let mut definitions = Self::default();
        let layout = record_schema::local_definition;
        structure::walk_definitions(
            path,
            chunk_size,
            Some(location),
            buffer,
            layout,
            |kind, layout, mut body| match kind {
                MAPPING_TABLE => definitions.add_map(&mut body.record()?),
                CLOCK_OFFSET => definitions.add_offset(&mut body.record()?),
                _ => {
                    definitions.unknown |= layout == Layout::Unknown;
                    Ok(())
                }
            },
        )?;
        Ok(definitions)
    }

    /// The first of two maps for the same ids counts, as in libotf2.
    fn add_map(&mut self, record: &mut Cursor<'_>) -> Result<(), Flaw> {
        let map = match record.byte()? {
            REGIONS => &mut self.regions,
            COMMUNICATORS => &mut self.communicators,
            WINDOWS => &mut self.windows,
            CALLING_CONTEXTS => &mut self.calling_contexts,
            _ => return Ok(()),
        };
        if map.is_none() {
            *map = Some(IdMap::read(record)?);
        }
        Ok(())
    }

    fn add_offset(&mut self, record: &mut Cursor<'_>) -> Result<(), Flaw> {
        let start = record.at;
        let (time, offset) = (record.word()?, record.compressed(8)?.cast_signed());
        if self.clock.last().is_some_and(|last| last >= time) {
            return Err(Flaw { at: start, what: "the clock measurements are not in chronological order" });
        }
        self.clock.add(time, offset);
        Ok(())
    }
}

/// Measured clock offsets of a location.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ClockOffsets {
    /// Local time and offset, in chronological order.
    measured: Vec<(u64, i64)>,
    /// The interval after each measurement.
    intervals: Vec<Interval>,
}

/// Linear change of the offset between two measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    begin: u64,
    end: u64,
    /// Offset at the start.
    offset: i64,
    /// Change of the offset per tick.
    slope: f64,
}

impl Interval {
    fn new((begin, offset): (u64, i64), (end, next_offset): (u64, i64)) -> Self {
        let slope = next_offset.wrapping_sub(offset) as f64 / end.wrapping_sub(begin) as f64;
        Self { begin, end, offset, slope }
    }

    /// The common time of a local time, also outside the interval.
    #[inline]
    fn correct(&self, time: u64) -> u64 {
        let since =
            if time >= self.begin { (time - self.begin) as f64 } else { -((self.begin - time) as f64) };
        time.wrapping_add_signed(self.offset.wrapping_add(round(self.slope * since)))
    }
}

impl ClockOffsets {
    pub(super) fn add(&mut self, time: u64, offset: i64) {
        if let Some(last) = self.measured.last() {
            self.intervals.push(Interval::new(*last, (time, offset)));
        }
        self.measured.push((time, offset));
    }

    /// Whether there are offsets to apply.
    pub(super) fn corrects(&self) -> bool {
        !self.intervals.is_empty()
    }

    /// Time of the last measurement.
    pub(super) fn last(&self) -> Option<u64> {
        self.measured.last().map(|(time, _)| *time)
    }

    /// The common time of a local time. Offsets are interpolated between two measurements and extrapolated
    /// from the nearest two; fewer than two measurements have no effect. This is the correction of event
    /// times in libotf2 (`otf2_evt_reader_apply_clock_correction`).
    pub(super) fn correct(&self, time: u64) -> u64 {
        self.correct_after(time, time)
    }

    /// The same for a local time after times up to `furthest` were corrected: libotf2 never goes back to
    /// earlier measurements.
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

/// Rounds to an integer. Values beyond 64 bits give the same result as C on x86-64, to agree with libotf2 on
/// invalid data.
#[expect(clippy::cast_possible_truncation, reason = "what is below 2^51 has a number")]
#[inline]
fn round(number: f64) -> i64 {
    // The addition rounds numbers below 2^51 without a call of the math library.
    const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
    if number.abs() < (1u64 << 51) as f64 {
        return ((number + ROUNDING) - ROUNDING) as i64;
    }
    round_large(number)
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large was refused")]
#[cold]
fn round_large(number: f64) -> i64 {
    let rounded = number.round_ties_even();
    if rounded >= -(2f64.powi(63)) && rounded < 2f64.powi(63) { rounded as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(records: &[&[u8]]) -> Result<LocalDefinitions, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let header = [&[3, 0x42][..], &[0; 16]].concat();
        std::fs::write(file.path(), [header, records.concat(), vec![2, 1]].concat()).unwrap();
        LocalDefinitions::read(file.path(), 1 << 18, 7, &mut Vec::new())
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn ids_are_mapped_or_unchanged() {
        let dense = IdMap::Dense(vec![7, 9]);
        assert_eq!([0, 1, 2, u32::MAX].map(|id| dense.global(id)), [7, 9, 2, u32::MAX]);
        let sparse = IdMap::Sparse(vec![(3, 1), (900, 0)]);
        assert_eq!([0, 3, 900].map(|id| sparse.global(id)), [0, 1, 0]);
    }

    #[test]
    fn the_first_of_two_maps_counts() {
        // A dense map of communicators, a sparse one, and one of strings.
        let maps: [&[u8]; 3] = [&[5, 5, 6, 1, 1, 0, 0], &[5, 7, 6, 1, 1, 1, 0, 1, 9], &[5, 5, 0, 1, 1, 0, 0]];
        let definitions = read(&maps).unwrap();
        assert_eq!(definitions.communicators, Some(IdMap::Dense(vec![0])));
        assert_eq!((&definitions.regions, definitions.unknown), (&None, false));
        assert!(read(&[&[99, 0]]).unwrap().unknown);
    }

    #[test]
    fn clock_measurements_must_be_chronological() {
        let offset = |time: u64| [&[6, 17][..], &time.to_le_bytes(), &[0], &[0; 8]].concat();
        assert!(read(&[&offset(5), &offset(6)]).is_ok());
        assert_eq!(
            read(&[&offset(5), &offset(5)]).unwrap_err(),
            "`FILE` (location 7) is damaged at byte 39: the clock measurements are not in chronological order"
        );
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_the_library(number in any::<f64>(), halves in any::<i32>()) {
            prop_assert_eq!(round(number), round_large(number));
            prop_assert_eq!(round(f64::from(halves) / 2.0), round_large(f64::from(halves) / 2.0));
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
