//! Shared by all comparisons: the two sides, merged streams, formatted lists and relative changes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hopmap_artifact::{ArtifactError, Folder};

/// Calls `visit` for every key with the items of the first and the second stream; both are sorted by key.
pub(crate) fn merge<K: Ord, V>(
    mut before: impl Iterator<Item = Result<(K, V), ArtifactError>>,
    mut after: impl Iterator<Item = Result<(K, V), ArtifactError>>,
    mut visit: impl FnMut(K, [Option<V>; 2]),
) -> Result<(), ArtifactError> {
    let (mut old, mut new) = (before.next().transpose()?, after.next().transpose()?);
    loop {
        let order = match (&old, &new) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let from_old =
            if order.is_le() { std::mem::replace(&mut old, before.next().transpose()?) } else { None };
        let from_new =
            if order.is_ge() { std::mem::replace(&mut new, after.next().transpose()?) } else { None };
        match (from_old, from_new) {
            (Some((key, old)), new) => visit(key, [Some(old), new.map(|(_, new)| new)]),
            (None, Some((key, new))) => visit(key, [None, Some(new)]),
            (None, None) => {}
        }
    }
}

/// The union of the keys of both maps.
pub(crate) fn names<'a, A, B>(
    before: &'a BTreeMap<String, A>,
    after: &'a BTreeMap<String, B>,
) -> BTreeSet<&'a String> {
    before.keys().chain(after.keys()).collect()
}

/// The entries in which two maps differ, sorted by name.
pub fn differing<'a, T: PartialEq>(
    before: &'a BTreeMap<String, T>,
    after: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a str, Option<&'a T>, Option<&'a T>)> {
    let all = names(before, after).into_iter();
    let all = all.map(|name| (name.as_str(), before.get(name), after.get(name)));
    all.filter(|(_, before, after)| before != after)
}

/// Maximum number of list items that are shown.
pub const MOST_SHOWN: usize = 10;

/// A line with the number of omitted items.
#[must_use]
pub fn more(all: u64, shown: usize) -> Option<String> {
    let left = all.saturating_sub(shown as u64);
    (left > 0).then(|| format!("  … and {left} more"))
}

/// A relative change: `+12.3 %`.
#[must_use]
pub fn percent(relative: f64) -> String {
    let percent = 100.0 * relative;
    match percent.abs() {
        // A hundred times a large number may not be finite.
        size if size >= 1e15 => format!("beyond {:+.0e} %", 1e15f64.copysign(percent)),
        size if size >= 0.1 || size == 0.0 => format!("{percent:+.1} %"),
        // Two significant digits.
        size if size >= 1e-6 => format!("{percent:+.*} %", (1.0 - size.log10().floor()) as usize),
        _ => format!("{percent:+.1e} %"),
    }
}

/// One of two artifacts.
pub struct Compared<'a> {
    /// The artifact.
    pub folder: &'a Folder,
    /// Finds the first source artifact of a kind, if it still exists.
    pub input: &'a dyn Fn(&str) -> Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_have_two_digits() {
        let shown = [0.5, -0.001, -0.000_999, 0.000_012_3, 1e-9, 0.0].map(percent);
        assert_eq!(shown, ["+50.0 %", "-0.1 %", "-0.100 %", "+0.0012 %", "+1.0e-7 %", "+0.0 %"]);
        // This was `+inf %`.
        assert_eq!([1e307, -1e14].map(percent), ["beyond +1e15 %", "beyond -1e15 %"]);
    }
}
