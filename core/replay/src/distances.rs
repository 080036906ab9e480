//! Classes of equally distant pairs of processors.

use std::collections::HashSet;
use std::sync::Arc;

/// The class of every ordered pair of processors.
#[derive(Debug, Clone, PartialEq)]
pub enum Distances {
    /// Class 0 within a processor, class 1 between any two others.
    Alike,
    /// The class from `a` to `b` of `processors` is at `a * processors + b`.
    Pairs {
        /// Number of processors.
        processors: usize,
        /// The classes.
        classes: Vec<u32>,
    },
    /// A class per level on which two processors meet.
    Tree(Tree),
    /// A class per ordered pair of hosts, and a tree inside every host.
    Hosts(Hosts),
}

/// A tree over processors. Its memory is proportional to processors, not to pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The class within a processor.
    pub own: u32,
    /// The levels, innermost first; two processors meet on the first level on which they share a group.
    pub levels: Vec<Level>,
}

/// A level of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The class of two processors that meet here.
    pub class: u32,
    /// The group of every processor; groups are nested in those of the next level.
    pub groups: Vec<u32>,
}

/// Processors on hosts. Memory is proportional to pairs of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosts {
    /// The host of every processor.
    pub host: Vec<u32>,
    /// Number of hosts.
    pub hosts: usize,
    /// The class from host `a` to another host `b`, at `a * hosts + b`.
    pub between: Arc<[u32]>,
    /// The processors of a host; the groups of the last level are the hosts.
    pub inside: Tree,
}

impl Distances {
    /// The class from one processor to another.
    #[inline]
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        match self {
            Self::Alike => usize::from(from != to),
            Self::Pairs { processors, classes } => classes[from as usize * processors + to as usize] as usize,
            Self::Tree(tree) => tree.class(from, to),
            Self::Hosts(hosts) => hosts.class(from, to),
        }
    }

    /// Sets the class within processors.
    pub(crate) fn set_own(&mut self, class: u32) {
        match self {
            Self::Alike => {}
            Self::Pairs { processors, classes } => {
                (0..*processors).for_each(|one| classes[one * (*processors + 1)] = class);
            }
            Self::Tree(tree) => tree.own = class,
            Self::Hosts(hosts) => hosts.inside.own = class,
        }
    }

    /// Keeps the first `wanted` processors.
    pub(crate) fn truncate(&mut self, wanted: usize) {
        match self {
            Self::Alike => {}
            Self::Pairs { processors, classes } => {
                let rows = classes.chunks(*processors).take(wanted);
                *classes = rows.flat_map(|row| row[..wanted].iter().copied()).collect();
                *processors = wanted;
            }
            Self::Tree(tree) => tree.truncate(wanted),
            Self::Hosts(hosts) => {
                hosts.host.truncate(wanted);
                hosts.inside.truncate(wanted);
            }
        }
    }

    /// An example pair for every class of two different processors.
    #[must_use]
    pub fn examples(&self, processors: u32) -> Vec<(u32, u32)> {
        match self {
            Self::Alike => (processors > 1).then_some((0, 1)).into_iter().collect(),
            Self::Pairs { .. } => {
                let pairs = (0..processors).flat_map(|a| (0..processors).map(move |b| (a, b)));
                let mut seen = HashSet::new();
                pairs.filter(|&(a, b)| a != b && seen.insert(self.class(a, b))).collect()
            }
            Self::Tree(tree) => tree.examples(),
            Self::Hosts(hosts) => hosts.examples(),
        }
    }

    /// An example processor for every class within a processor.
    #[must_use]
    pub fn own_examples(&self, processors: u32) -> Vec<u32> {
        match self {
            Self::Pairs { .. } => {
                let mut seen = HashSet::new();
                (0..processors).filter(|&one| seen.insert(self.class(one, one))).collect()
            }
            _ => (processors > 0).then_some(0).into_iter().collect(),
        }
    }
}

impl Tree {
    /// The class from one processor to another.
    #[inline]
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        if from == to {
            return self.own as usize;
        }
        let meet = |level: &&Level| level.groups[from as usize] == level.groups[to as usize];
        self.levels.iter().find(meet).or(self.levels.last()).map_or(self.own, |level| level.class) as usize
    }

    fn truncate(&mut self, wanted: usize) {
        self.levels.iter_mut().for_each(|level| level.groups.truncate(wanted));
    }

    /// An example pair for every level on which processors meet.
    fn examples(&self) -> Vec<(u32, u32)> {
        let of_level = |depth: usize| {
            let groups = &self.levels[depth].groups;
            let mut first = std::collections::HashMap::new();
            (0u32..).zip(groups).find_map(|(slot, group)| {
                let one = *first.entry(group).or_insert(slot);
                let below = depth.checked_sub(1).map(|below| &self.levels[below].groups);
                let meets_here =
                    one != slot && below.is_none_or(|below| below[one as usize] != below[slot as usize]);
                meets_here.then_some((one, slot))
            })
        };
        (0..self.levels.len()).filter_map(of_level).collect()
    }
}

impl Hosts {
    /// The class from one processor to another.
    #[inline]
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        let [one, other] = [from, to].map(|processor| self.host[processor as usize] as usize);
        match one == other {
            true => self.inside.class(from, to),
            false => self.between[one * self.hosts + other] as usize,
        }
    }

    fn examples(&self) -> Vec<(u32, u32)> {
        let mut first = vec![None; self.hosts];
        for (slot, &host) in (0u32..).zip(&self.host) {
            first[host as usize].get_or_insert(slot);
        }
        let mut seen = HashSet::new();
        let mut examples = self.inside.examples();
        for (a, row) in self.between.chunks(self.hosts.max(1)).enumerate() {
            for (b, &class) in row.iter().enumerate().filter(|&(b, _)| b != a) {
                if let (Some(from), Some(to)) = (first[a], first[b])
                    && seen.insert(class)
                {
                    examples.push((from, to));
                }
            }
        }
        examples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts with two slots each, as pairs, as a tree and as hosts.
    fn alike() -> [Distances; 3] {
        let level = |class, groups: [u32; 4]| Level { class, groups: groups.to_vec() };
        let inside = Tree { own: 0, levels: vec![level(1, [0, 0, 1, 1])] };
        let classes = vec![0, 1, 2, 2, 1, 0, 2, 2, 2, 2, 0, 1, 2, 2, 1, 0];
        [
            Distances::Pairs { processors: 4, classes },
            Distances::Tree(Tree { own: 0, levels: vec![level(1, [0, 0, 1, 1]), level(2, [0; 4])] }),
            Distances::Hosts(Hosts {
                host: vec![0, 0, 1, 1],
                hosts: 2,
                between: vec![9, 2, 2, 9].into(),
                inside,
            }),
        ]
    }

    fn classes(distances: &Distances, processors: u32) -> Vec<usize> {
        let all = 0..processors;
        all.clone().flat_map(|a| all.clone().map(move |b| distances.class(a, b))).collect()
    }

    #[test]
    fn all_forms_give_the_same_classes() {
        let [pairs, tree, hosts] = alike();
        assert_eq!(classes(&pairs, 4), classes(&tree, 4));
        assert_eq!(classes(&pairs, 4), classes(&hosts, 4));
        for mut distances in [pairs, tree, hosts] {
            assert_eq!(distances.examples(4), [(0, 1), (0, 2)]);
            distances.set_own(7);
            assert_eq!((distances.class(2, 2), distances.class(2, 3)), (7, 1));
            distances.truncate(3);
            assert_eq!(classes(&distances, 3), [7, 1, 2, 1, 7, 2, 2, 2, 7]);
            assert_eq!((distances.examples(3), distances.own_examples(3)), (vec![(0, 1), (0, 2)], vec![0]));
        }
        assert_eq!((Distances::Alike.examples(1), Distances::Alike.examples(2)), (vec![], vec![(0, 1)]));
    }
}
