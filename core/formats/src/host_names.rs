//! Hosts by name or by short name: a list may have `node7` for `node7.cluster.local`, or the other way round.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Finds hosts among those of a machine.
#[derive(Debug, Default)]
pub struct HostNames<'a> {
    names: Vec<&'a str>,
    exact: HashMap<&'a str, usize>,
    /// By short name; `None` if several hosts have it.
    short: HashMap<&'a str, Option<usize>>,
}

impl<'a> FromIterator<&'a str> for HostNames<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut found = Self::default();
        for (index, name) in names.into_iter().enumerate() {
            found.names.push(name);
            found.exact.insert(name, index);
            found.short.entry(short(name)).and_modify(|several| *several = None).or_insert(Some(index));
        }
        found
    }
}

impl<'a> HostNames<'a> {
    /// The names in order.
    #[must_use]
    pub fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// The number of a host: of its name, or else of the only one with this name before the first dot. `a.x` and `a.y`
    /// are different hosts, but `a` may be either.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let is_short = |name: &str| short(name) == name;
        let is_same = |index: &usize| is_short(name) || is_short(self.names[*index]);
        let by_short_name = || self.short.get(short(name)).copied().flatten().filter(is_same);
        self.exact.get(name).copied().or_else(by_short_name)
    }
}

/// The indexes of two names of one host, if there are any: equal ones, or one that is the other before its first dot.
#[must_use]
pub fn repeated(names: &[&str]) -> Option<(usize, usize)> {
    let mut places = HashMap::with_capacity(names.len());
    let again = |(index, name)| Some((places.insert(name, index)?, index));
    let twice = names.iter().copied().enumerate().find_map(again);
    let is_short = |(index, name): (usize, &&str)| {
        let other = *places.get(short(name)).filter(|other| **other != index)?;
        Some((index.min(other), index.max(other)))
    };
    twice.or_else(|| names.iter().enumerate().find_map(is_short))
}

/// The two names of a host that a list names twice.
#[must_use]
pub fn named_twice(names: &[&str]) -> Option<String> {
    let (first, second) = repeated(names)?;
    Some(match (names[first], names[second]) {
        (first, second) if first == second => format!("`{first}` twice"),
        (first, second) => format!("`{first}` and `{second}`, which are one host"),
    })
}

/// The name before the first dot. An IP address has no short name.
#[must_use]
pub fn short(name: &str) -> &str {
    match name.parse::<Ipv4Addr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_found_if_only_one_host_has_them() {
        let names: HostNames = ["n1", "n2.x", "n3.x", "n3.y", "n4", "n4.x", "10.0.0.1"].into_iter().collect();
        let found = |name: &str| names.find(name).map(|index| names.names()[index]);
        assert_eq!([found("n1"), found("n1.x"), found("n2")], [Some("n1"), Some("n1"), Some("n2.x")]);
        assert_eq!([found("n2.y"), found("n3"), found("n4"), found("n4.y")], [None, None, Some("n4"), None]);
        assert_eq!(repeated(names.names()), Some((4, 5)));
        assert_eq!(
            [repeated(&["a.x", "b", "a.x"]), repeated(&["a.x", "a.y", "10.1.1.1", "10"])],
            [Some((0, 2)), None]
        );
        assert_eq!(named_twice(&["m", "a.x", "a"]).unwrap(), "`a.x` and `a`, which are one host");
        assert_eq!([found("10.0.0.1"), found("10.0.0.2"), found("10")], [Some("10.0.0.1"), None, None]);
    }
}
