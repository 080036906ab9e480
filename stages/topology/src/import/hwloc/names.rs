//! Which file of hwloc says what a host of a fabric is like.

use std::collections::{BTreeMap, BTreeSet};

/// The names that files are called after.
pub(in super::super) struct Names<'a> {
    whole: BTreeSet<&'a str>,
    /// By what stands before the first dot, where only one file has it.
    short: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Names<'a> {
    pub(in super::super) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self { whole: BTreeSet::new(), short: BTreeMap::new() };
        for name in names {
            found.whole.insert(name);
            found.short.entry(short(name)).and_modify(|other| *other = None).or_insert(Some(name));
        }
        found
    }

    /// The file of a host: the one called exactly so, else the one that is called so up to the first dot.
    pub(in super::super) fn find(&self, host: &str) -> Option<&'a str> {
        let whole = self.whole.get(host).copied();
        whole.or_else(|| self.short.get(short(host)).copied().flatten())
    }
}

fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_go_before_their_beginnings() {
        let names = Names::new(["n1", "n2.cluster", "n3.a", "n3.b", "n3"].into_iter());
        let hosts = ["n1", "n1.cluster", "n2", "n2.other", "n3", "n3.b", "n3.c", "n4"];
        let expected = [
            Some("n1"),
            Some("n1"),
            Some("n2.cluster"),
            Some("n2.cluster"),
            Some("n3"),
            Some("n3.b"),
            None,
            None,
        ];
        assert_eq!(hosts.map(|host| names.find(host)), expected);
    }
}
