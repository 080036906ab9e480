//! Sets of hosts that stand for each other.

use std::collections::{BTreeMap, BTreeSet};

/// For each set after the index of the set before that stands for it: the one with the most hosts in common, one for one.
/// Of equals the first ones are taken, so that the order of the sets has to be canonical.
pub(crate) fn matched(before: &[BTreeSet<&str>], after: &[BTreeSet<&str>]) -> Vec<Option<usize>> {
    let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, hosts) in before.iter().enumerate() {
        hosts.iter().for_each(|host| holders.entry(host).or_default().push(index));
    }
    let mut common: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (index, hosts) in after.iter().enumerate() {
        for &holder in hosts.iter().filter_map(|host| holders.get(host)).flatten() {
            *common.entry((holder, index)).or_default() += 1;
        }
    }
    let mut candidates: Vec<((usize, usize), usize)> = common.into_iter().collect();
    let foreign = |&((b, a), common): &((usize, usize), usize)| before[b].len() + after[a].len() - 2 * common;
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.1), foreign(candidate), candidate.0));
    let (mut taken, mut found) = (vec![false; before.len()], vec![None; after.len()]);
    for ((b, a), _) in candidates {
        if !taken[b] && found[a].is_none() {
            taken[b] = true;
            found[a] = Some(b);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_with_most_in_common_stand_for_each_other() {
        let set = |hosts: &'static str| hosts.split(' ').collect::<BTreeSet<_>>();
        let before = [set("a b c d"), set("e f"), set("x")];
        let after = [set("d e f"), set("a b c"), set("y")];
        assert_eq!(matched(&before, &after), [Some(1), Some(0), None]);
        let chain = [set("a b"), set("a b")];
        assert_eq!(matched(&chain, &chain), [Some(0), Some(1)]);
    }
}
