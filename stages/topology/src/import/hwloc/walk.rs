//! The objects of a host, in the order of the file.

use std::path::Path;

use super::super::ImportError;
use super::super::reader::malformed;
use super::super::xml::Element;
use super::cpuset::Cpuset;
use super::host::{Object, number, set};
use super::kind::Kind;

/// Hardware threads of a host.
const MOST_THREADS: usize = 1 << 16;
/// NUMA nodes of a host beside the threads that are near to them.
const MOST_NUMA_NODES: usize = 1 << 10;

/// All objects with the ranges of hardware threads that they hold. The order of the file is that of hwloc's logical numbers.
pub(super) struct Walk<'a> {
    path: &'a Path,
    allowed: Option<Cpuset>,
    /// The numbers of the operating system of the threads that count.
    threads: Vec<u32>,
    pub(super) objects: Vec<Object>,
    memory: Vec<Memory>,
    pub(super) notes: Vec<String>,
}

/// A NUMA node that holds no threads but stands beside those that are near to it.
struct Memory {
    node: Object,
    /// The innermost object that holds it.
    around: Option<usize>,
    cpuset: Option<Cpuset>,
}

impl<'a> Walk<'a> {
    /// Everything in a machine.
    pub(super) fn of(path: &'a Path, root: Element<'_>) -> Result<Self, ImportError> {
        let mut walk = Self {
            path,
            allowed: set(path, root, "allowed_cpuset")?,
            threads: Vec::new(),
            objects: Vec::new(),
            memory: Vec::new(),
            notes: Vec::new(),
        };
        walk.object(root, None, &mut Vec::new())?;
        match walk.threads.is_empty() {
            false => Ok(walk),
            true => Err(malformed(
                path,
                root.line(),
                "no hardware thread of the machine is online and allowed",
                "`lstopo` on the host shows what hwloc sees",
            )),
        }
    }

    /// An object and what is in it. XML is not deep, so this is not either.
    fn object(
        &mut self,
        element: Element<'_>,
        around: Option<usize>,
        kinds: &mut Vec<Kind>,
    ) -> Result<(), ImportError> {
        let kind = Kind::of(element, kinds);
        let (place, first) = (self.objects.len(), self.threads.len() as u32);
        if kind.is_thread() {
            self.thread(element)?;
        }
        // Devices have numbers of their own that do not matter.
        let index = |name| number(self.path, element, name).ok().flatten();
        let (os_index, gp_index) = (index("os_index"), index("gp_index"));
        self.objects.push(Object { kind, os_index, gp_index, range: (first, first) });
        kinds.push(kind);
        let holder = if kind.is_memory() { around } else { Some(place) };
        for child in element.all("object") {
            self.object(child, holder, kinds)?;
        }
        kinds.pop();
        let end = self.threads.len() as u32;
        self.objects[place].range.1 = end;
        if kind.is_numa_node() && end == first {
            self.memory.push(Memory {
                node: self.objects[place].clone(),
                around,
                cpuset: set(self.path, element, "cpuset")?,
            });
            if self.memory.len() > MOST_NUMA_NODES {
                let problem = format!("there are more than {MOST_NUMA_NODES} NUMA nodes");
                return Err(malformed(self.path, element.line(), problem, "is the file damaged?"));
            }
        }
        Ok(())
    }

    fn thread(&mut self, element: Element<'_>) -> Result<(), ImportError> {
        let Some(thread) = number::<u32>(self.path, element, "os_index")? else {
            let problem = "a PU has no `os_index`";
            return Err(malformed(self.path, element.line(), problem, "hwloc gives every PU a number"));
        };
        let is_in = |set: &Option<Cpuset>| set.as_ref().is_none_or(|set| set.contains(thread));
        let own = [set(self.path, element, "cpuset")?, set(self.path, element, "online_cpuset")?];
        if is_in(&self.allowed) && own.iter().all(is_in) {
            self.threads.push(thread);
        }
        match self.threads.len() > MOST_THREADS {
            false => Ok(()),
            true => {
                let problem = format!("there are more than {MOST_THREADS} hardware threads");
                Err(malformed(self.path, element.line(), problem, "one host is read, not a cluster"))
            }
        }
    }

    /// Gives NUMA nodes the threads that are near to them, and forgets objects without threads.
    pub(super) fn place_memory(&mut self) {
        for Memory { mut node, around, cpuset } in std::mem::take(&mut self.memory) {
            let Some((first, end)) = around.map(|around| self.objects[around].range) else { continue };
            let Some(cpuset) = cpuset else {
                node.range = (first, end);
                self.objects.push(node);
                continue;
            };
            let near = |range: std::ops::Range<u32>| {
                range.filter(|&thread| cpuset.contains(self.threads[thread as usize])).collect::<Vec<_>>()
            };
            let mut found = near(first..end);
            if found.len() < (end - first) as usize {
                found = near(0..self.threads.len() as u32);
            }
            // Memory that is near to no processor joins nothing.
            let (Some(&first), Some(&last)) = (found.first(), found.last()) else { continue };
            node.range = (first, last + 1);
            match (last - first) as usize + 1 == found.len() && self.fits(node.range) {
                true => self.objects.push(node),
                false => self.notes.push(format!(
                    "NUMA node {} is left out: its threads are not those of other objects",
                    node.os_index.map_or("without number".into(), |index| index.to_string())
                )),
            }
        }
        self.objects.retain(|object| object.range.0 < object.range.1);
    }

    /// Whether a range lies in every object, or that in it, or apart.
    fn fits(&self, (first, end): (u32, u32)) -> bool {
        self.objects.iter().map(|object| object.range).all(|(other, other_end)| {
            end <= other
                || other_end <= first
                || (first <= other && other_end <= end)
                || (other <= first && end <= other_end)
        })
    }
}
