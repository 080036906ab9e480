//! The levels inside a host, out of the objects that lie in each other.

use std::collections::BTreeMap;

use super::super::finish::HostShape;
use super::host::{Host, Range};
use super::kind::Kind;

/// Levels inside a host, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inside {
    pub(super) shape: HostShape,
    /// What joins the slots of every level, such as `L3, package`.
    pub(super) names: Vec<String>,
}

impl Host {
    /// The levels of the host. What joins nothing new is no level; on the last one all slots are together.
    pub(super) fn inside(&self) -> Inside {
        let mut kinds: BTreeMap<Kind, Vec<Range>> = BTreeMap::new();
        self.objects.iter().for_each(|object| kinds.entry(object.kind).or_default().push(object.range));
        let largest = |ranges: &[Range]| ranges.iter().map(|(first, end)| end - first).max();
        // What holds more lies further out; of groups in groups those that lie in fewer.
        let mut kinds: Vec<(Kind, Vec<Range>)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, ranges)| largest(ranges));
        let mut levels = Builder {
            largest: (0..self.slots).map(|slot| (slot, slot + 1)).collect(),
            groups: Vec::new(),
            names: Vec::new(),
        };
        for (kind, ranges) in &kinds {
            levels.add(*kind, ranges);
        }
        levels.add_whole(self.slots);
        let Builder { groups, names, .. } = levels;
        Inside { shape: HostShape { cores: (0..self.slots).collect(), groups }, names }
    }
}

struct Builder {
    /// The largest range so far that every slot lies in. As ranges lie in each other, the slots of it all have it.
    largest: Vec<Range>,
    groups: Vec<Vec<u32>>,
    names: Vec<String>,
}

impl Builder {
    fn add(&mut self, kind: Kind, ranges: &[Range]) {
        let mut joins = false;
        let mut most = 1;
        for &(first, end) in ranges {
            most = most.max(end - first);
            for largest in &mut self.largest[first as usize..end as usize] {
                if end - first > largest.1 - largest.0 {
                    *largest = (first, end);
                    joins = true;
                }
            }
        }
        match joins {
            true => self.push(format!("{} of {most}", kind.name())),
            // Another name of the same level.
            false if most > 1 && ranges.iter().all(|range| self.largest[range.0 as usize] == *range) => {
                if let Some(name) = self.names.last_mut()
                    && let Some((kinds, most)) = name.rsplit_once(" of ")
                {
                    *name = format!("{kinds}, {} of {most}", kind.name());
                }
            }
            false => {}
        }
    }

    /// The level on which all slots are together, if there is none yet.
    fn add_whole(&mut self, slots: u32) {
        let is_whole = self.largest.iter().all(|range| *range == (0, slots));
        if !is_whole || self.groups.is_empty() {
            self.largest.fill((0, slots));
            self.push(format!("machine of {slots}"));
        }
    }

    fn push(&mut self, name: String) {
        let mut group = 0;
        let mut groups = Vec::with_capacity(self.largest.len());
        for (slot, range) in self.largest.iter().enumerate() {
            group += u32::from(slot > 0 && self.largest[slot - 1] != *range);
            groups.push(group);
        }
        self.groups.push(groups);
        self.names.push(name);
    }
}
