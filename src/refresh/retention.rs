//! How much of the history is kept.

use std::fs;

use hopmap_durable::{DurableError, crash_point, sync_folder};
use jiff::Timestamp;

use super::{Entry, Publication, RefreshError};

/// How much of the history is kept. What is published and what is accepted always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Most entries.
    pub entries: usize,
    /// Days after which entries go.
    pub days: Option<u32>,
}

const DAY_S: i64 = 86_400;

impl Retention {
    /// The entries that go, of all in the order of their names. Names are not to be trusted within a second or where the clock has
    /// been put back: what is used counts as the newest, and an entry from the future is not old.
    fn gone<'e>(self, entries: &'e [Entry], used: &[Entry], now_s: i64) -> Vec<&'e Entry> {
        let unused: Vec<&Entry> = entries.iter().filter(|entry| !used.contains(entry)).collect();
        let surplus = unused.len().saturating_sub(self.entries.saturating_sub(entries.len() - unused.len()));
        let is_old = |entry: &Entry| {
            let days = self.days.map(|days| i64::from(days) * DAY_S);
            days.zip(entry.made_s()).is_some_and(|(days, made)| now_s - made > days)
        };
        let candidates = unused.into_iter().enumerate();
        candidates
            .filter(|(index, entry)| *index < surplus || is_old(entry))
            .map(|(_, entry)| entry)
            .collect()
    }

    /// Removes what is not kept. An entry disappears at once: a kill leaves no half of it.
    pub(super) fn apply(self, publication: &Publication) -> Result<(), RefreshError> {
        let entries = publication.entries()?;
        let used: Vec<Entry> =
            [publication.current()?, publication.accepted()?].into_iter().flatten().collect();
        for entry in self.gone(&entries, &used, Timestamp::now().as_second()) {
            let folder = publication.folder(entry);
            let aside = publication.history().join(format!(".{}.tmp", entry.0));
            fs::rename(&folder, &aside).map_err(DurableError::io("remove", &folder))?;
            crash_point("refresh.entry-aside", &folder);
            sync_folder(&publication.history())?;
            fs::remove_dir_all(&aside).map_err(DurableError::io("remove", &aside))?;
            crash_point("refresh.entry-removed", &folder);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(days: &[u32]) -> Vec<Entry> {
        days.iter().map(|day| Entry(format!("1970-01-{day:02}T00-00-00Z-abcdef"))).collect()
    }

    fn gone(retention: Retention, entries: &[Entry], used: &[Entry], day: i64) -> Vec<String> {
        let gone = retention.gone(entries, used, (day - 1) * DAY_S);
        gone.iter().map(|entry| entry.0[8..10].to_owned()).collect()
    }

    #[test]
    fn the_newest_stay_and_what_is_used() {
        let all = entries(&[1, 2, 3, 4]);
        assert_eq!(gone(Retention { entries: 2, days: None }, &all, &[], 9), ["01", "02"]);
        assert_eq!(gone(Retention { entries: 2, days: None }, &all, &all[..1], 9), ["02", "03"]);
        assert_eq!(gone(Retention { entries: 0, days: None }, &all, &all[3..], 9), ["01", "02", "03"]);
        assert_eq!(gone(Retention { entries: 9, days: Some(6) }, &all, &[], 9), ["01", "02"]);
        // The clock was put back.
        assert_eq!(gone(Retention { entries: 9, days: Some(6) }, &all, &[], 1), [""; 0]);
    }
}
