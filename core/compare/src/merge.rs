//! Two sorted streams walked together, such as tables that fit in no memory; and the names of two maps.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use hopmap_artifact::ArtifactError;

/// Calls `visit` for every key with what the first and the second stream have for it; both come in the order of their keys.
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

/// The keys of both maps, each once.
pub(crate) fn names<'a, A, B>(
    before: &'a BTreeMap<String, A>,
    after: &'a BTreeMap<String, B>,
) -> BTreeSet<&'a String> {
    before.keys().chain(after.keys()).collect()
}
