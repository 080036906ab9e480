//! Messages between pairs by length, added up in any order.

use hopmap_model::{Edge, SizeBin};

use crate::error::RecordingError;

/// Minimum number of rows before those of one pair and length are merged.
const FIRST_LIMIT: usize = 1 << 20;

/// Messages by source, destination and length.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    rows: Vec<SizeBin>,
    /// Number of rows at which equal ones are merged.
    limit: usize,
    messages: u128,
    bytes: u128,
}

/// The lower end of a length class: 0, or a power of two.
pub(crate) fn at_least(class: u32) -> u64 {
    1u64.checked_shl(class.wrapping_sub(1)).unwrap_or(0)
}

/// The length class of messages of this mean length.
pub(crate) fn class(messages: u64, bytes: u64) -> u32 {
    bytes.checked_div(messages).map_or(0, |length| u64::BITS - length.leading_zeros())
}

impl Lengths {
    /// Adds messages. Sums of a pair saturate; [`Lengths::check`] finds that.
    pub(crate) fn add(&mut self, row: SizeBin) {
        self.messages += u128::from(row.messages);
        self.bytes += u128::from(row.bytes);
        if self.rows.len() >= self.limit.max(FIRST_LIMIT) {
            self.rows = merged(std::mem::take(&mut self.rows));
            self.limit = 2 * self.rows.len();
        }
        self.rows.push(row);
    }

    /// Whether the sums of all pairs fit into 64 bits.
    pub(crate) fn check(&self) -> Result<(), RecordingError> {
        let fits = |sum: u128| sum < u128::from(u64::MAX);
        match fits(self.messages) && fits(self.bytes) {
            true => Ok(()),
            false => Err(RecordingError::Limit {
                what: "the messages or bytes of all pairs exceed 64 bits".into(),
                help: "the recording is damaged: record the program again",
            }),
        }
    }

    /// The rows, sorted and unique.
    pub(crate) fn into_rows(self) -> Vec<SizeBin> {
        merged(self.rows)
    }
}

fn merged(mut rows: Vec<SizeBin>) -> Vec<SizeBin> {
    rows.sort_unstable_by_key(|row| (row.source, row.destination, row.at_least_bytes));
    rows.dedup_by(|next, kept| {
        let key = |row: &SizeBin| (row.source, row.destination, row.at_least_bytes);
        let same = key(next) == key(kept);
        if same {
            kept.messages = kept.messages.saturating_add(next.messages);
            kept.bytes = kept.bytes.saturating_add(next.bytes);
        }
        same
    });
    rows
}

/// The sums of sorted rows by pair.
pub(crate) fn edges(rows: &[SizeBin]) -> Vec<Edge> {
    let pairs = rows.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination));
    let sum = |rows: &[SizeBin], of: fn(&SizeBin) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    let edges = pairs.map(|rows| Edge {
        source: rows[0].source,
        destination: rows[0].destination,
        messages: sum(rows, |row| row.messages),
        bytes: sum(rows, |row| row.bytes),
    });
    edges.collect()
}

/// Bytes of the messages of a pair by length, from their number by length and the bytes of all. They lie at
/// the same fraction between both ends of every length class, and add up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of bytes is at most all"
)]
pub(crate) fn shared(classes: &[(u32, u64)], bytes: u64) -> Vec<u64> {
    let least = |&(class, messages): &(u32, u64)| u128::from(messages) * u128::from(at_least(class));
    let room = |&(class, messages): &(u32, u64)| {
        u128::from(messages) * u128::from(at_least(class).saturating_sub(1))
    };
    let (sum, rooms): (u128, u128) = (classes.iter().map(least).sum(), classes.iter().map(room).sum());
    let more = u128::from(bytes).saturating_sub(sum).min(rooms) as f64;
    let share = |class| (room(class) as f64 * more / (rooms as f64).max(1.0)) as u128;
    let mut rest = u128::from(bytes);
    let mut all: Vec<u64> = Vec::with_capacity(classes.len());
    for class in classes {
        let part = (least(class) + share(class)).min(rest);
        rest -= part;
        all.push(u64::try_from(part).unwrap_or(u64::MAX));
    }
    if let Some(last) = all.last_mut() {
        *last = last.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([0, 1, 2, 7, 64].map(at_least), [0, 1, 2, 64, 1 << 63]);
        assert_eq!([class(1, 0), class(1, 1), class(2, 200), class(0, 5)], [0, 1, 7, 0]);
        assert_eq!(class(1, u64::MAX), 64);
    }

    #[test]
    fn estimated_bytes_add_up_and_stay_in_their_class() {
        assert_eq!(shared(&[(0, 5), (7, 100)], 10_000), [0, 10_000]);
        let parts = shared(&[(4, 10), (11, 10)], 12_000);
        assert_eq!(parts.iter().sum::<u64>(), 12_000);
        assert!((80..160).contains(&parts[0]) && (10_240..20_480).contains(&parts[1]), "{parts:?}");
        assert_eq!(shared(&[(4, 10)], 3), [3]);
        assert_eq!(shared(&[], 3), [0; 0]);
    }
}
