//! The processors of a host, out of what hwloc says of it.

use std::path::Path;

use hopmap_text::shown;

use super::super::ImportError;
use super::super::reader::malformed;
use super::super::xml::Element;
use super::cpuset::Cpuset;
use super::distances::{self, Distances};
use super::kind::Kind;
use super::walk::Walk;

/// Slots that lie one behind the other: the first, and the one behind the last.
pub(super) type Range = (u32, u32);

/// What is in a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// What it calls itself.
    pub(super) name: Option<String>,
    /// Number of slots: cores, or hardware threads. Their numbers are hwloc's logical ones.
    pub(super) slots: u32,
    /// What joins slots. Two of them lie in each other or have nothing in common.
    pub(super) objects: Vec<Object>,
    pub(super) distances: Vec<Distances>,
    /// What people should know.
    pub(super) notes: Vec<String>,
}

/// A core, a cache, a NUMA node, a package or something else that holds slots.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// Number of the operating system.
    pub(super) os_index: Option<u64>,
    /// Number that hwloc gives to all objects.
    pub(super) gp_index: Option<u64>,
    pub(super) range: Range,
}

impl Host {
    /// Reads a topology. Slots are cores, or hardware threads if these are asked for or not all of cores; only threads that are online
    /// and allowed count.
    pub(super) fn new(path: &Path, topology: Element<'_>, threads: bool) -> Result<Self, ImportError> {
        let mut roots = topology.all("object");
        let (Some(root), None) = (roots.next(), roots.next()) else {
            let problem = "a topology has one object, the machine, that holds all others";
            return Err(malformed(path, topology.line(), problem, "is the file damaged?"));
        };
        let mut walk = Walk::of(path, root)?;
        walk.place_memory();
        let Walk { objects, notes, .. } = walk;
        let mut host = Self { objects, notes, ..Self::default() };
        host.set_slots(threads);
        // Version 3 says beside the machine what it is called.
        host.name = host_name(root).or_else(|| host_name(topology));
        host.distances = distances::read(path, topology, root, &host.objects)?;
        Ok(host)
    }

    /// Makes ranges of slots out of ranges of hardware threads.
    fn set_slots(&mut self, threads: bool) {
        let count = self.objects.iter().map(|object| object.range.1).max().unwrap_or(0);
        let cores: Vec<Range> =
            self.objects.iter().filter(|object| object.kind.is_core()).map(|object| object.range).collect();
        let of_cores: u32 = cores.iter().map(|(first, end)| end - first).sum();
        if threads || of_cores != count {
            self.slots = count;
            if !threads {
                self.notes.push(match of_cores {
                    0 => "there are no cores: slots are hardware threads".into(),
                    _ => format!(
                        "{} of {count} hardware threads are of no core: slots are hardware threads",
                        count.saturating_sub(of_cores)
                    ),
                });
            }
            return;
        }
        // Cores hold all threads one behind the other.
        let mut slot = vec![0; count as usize];
        for (core, &(first, end)) in (0..).zip(&cores) {
            slot[first as usize..end as usize].fill(core);
        }
        for Object { range: (first, end), .. } in &mut self.objects {
            (*first, *end) = (slot[*first as usize], slot[*end as usize - 1] + 1);
        }
        self.slots = cores.len() as u32;
    }
}

/// The name of the host, where an element says it.
pub(super) fn host_name(element: Element<'_>) -> Option<String> {
    let is_name = |info: &Element<'_>| info.attribute("name") == Some("HostName");
    let name = element.all("info").find(is_name)?.attribute("value")?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Reads a set of hardware threads.
pub(super) fn set(path: &Path, element: Element<'_>, name: &str) -> Result<Option<Cpuset>, ImportError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    Cpuset::parse(text).map(Some).ok_or_else(|| {
        let problem = format!("`{name}` is \"{}\", which is no set of hardware threads", shown(text));
        malformed(path, element.line(), problem, "sets look like 0x0000ffff or 0x00000001,,0xffffffff")
    })
}

/// Reads a whole number.
pub(super) fn number<T: std::str::FromStr>(
    path: &Path,
    element: Element<'_>,
    name: &str,
) -> Result<Option<T>, ImportError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        let problem = format!("`{name}` is \"{}\", which is no number that fits", shown(text));
        malformed(path, element.line(), problem, "it is a whole number, zero or more")
    })
}
