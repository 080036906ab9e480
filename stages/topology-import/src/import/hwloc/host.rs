//! Parses the processors of a host from hwloc XML.

use hopmap_model::to_u32;
use hopmap_text::shown;

use super::kind::{Cpuset, Kind};
use crate::import::format::{listed, malformed};
use crate::import::xml::Element;
use crate::import::{ImportError, Result};

/// Consecutive slots: the first, and the one after the last.
pub(super) type Range = (u32, u32);

/// The objects of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// The host name.
    pub(super) name: Option<String>,
    /// Number of slots (cores or hardware threads), numbered by hwloc's logical indexes.
    pub(super) slots: u32,
    /// Objects that contain slots. Any two are nested or disjoint.
    pub(super) objects: Vec<Object>,
    pub(super) distances: Vec<Distances>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// A core, cache, NUMA node, package or other object that contains slots.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// Index of the operating system.
    pub(super) os_index: Option<u64>,
    /// Global index of hwloc.
    pub(super) gp_index: Option<u64>,
    pub(super) range: Range,
}

impl Host {
    /// Reads a topology. Slots are cores, or hardware threads if requested or if not all belong to cores;
    /// only online and allowed threads count.
    pub(super) fn new(topology: Element<'_>, threads: bool) -> Result<Self> {
        let mut roots = topology.all("object");
        let (Some(root), None) = (roots.next(), roots.next()) else {
            let problem = "a topology must have one top-level object, the machine";
            return Err(topology.wrong(problem, "check whether the file is damaged"));
        };
        let mut machines = Vec::new();
        add_machines(root, &mut machines);
        if let [_, other, ..] = machines[..] {
            let name = |machine: &Element<'_>| host_name(*machine).unwrap_or_else(|| "without a name".into());
            let names = listed(&machines.iter().map(name).collect::<Vec<_>>());
            let problem = format!("the file has {} machines ({names}), not one", machines.len());
            let help = "write a file on every host, `lstopo --of xml > HOST.xml`, and pass the folder with these files";
            return Err(other.wrong(problem, help));
        }
        let mut walk = Walk::of(root)?;
        walk.place_memory();
        let Walk { objects, notes, .. } = walk;
        let mut host = Self { objects, notes, ..Self::default() };
        host.set_slots(threads);
        // Version 3 stores the host name next to the machine.
        host.name = host_name(root).or_else(|| host_name(topology));
        host.distances = read(topology, root, &host.objects)?;
        Ok(host)
    }

    /// Converts ranges of hardware threads to ranges of slots.
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
                        "{} of {count} hardware threads belong to no core: slots are hardware threads",
                        count.saturating_sub(of_cores)
                    ),
                });
            }
            return;
        }
        // The threads of a core are consecutive.
        let mut slot = vec![0; count as usize];
        for (core, &(first, end)) in (0..).zip(&cores) {
            slot[first as usize..end as usize].fill(core);
        }
        for Object { range: (first, end), .. } in &mut self.objects {
            (*first, *end) = (slot[*first as usize], slot[*end as usize - 1] + 1);
        }
        self.slots = to_u32(cores.len());
    }
}

/// The machines at and below an object: version 1 could join those of a cluster in a `System`.
fn add_machines<'a>(object: Element<'a>, machines: &mut Vec<Element<'a>>) {
    if object.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("machine")) {
        machines.push(object);
    }
    object.all("object").for_each(|child| add_machines(child, machines));
}

/// The host name in an element.
pub(super) fn host_name(element: Element<'_>) -> Option<String> {
    let is_name = |info: &Element<'_>| info.attribute("name") == Some("HostName");
    let name = element.all("info").find(is_name)?.attribute("value")?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Reads a set of hardware threads.
pub(super) fn set(element: Element<'_>, name: &str) -> Result<Option<Cpuset>> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    Cpuset::parse(text).map(Some).ok_or_else(|| {
        let problem = format!("`{name}` is \"{}\", which is not a set of hardware threads", shown(text));
        element.wrong(problem, "sets look like 0x0000ffff or 0x00000001,,0xffffffff")
    })
}

/// Reads an integer.
pub(super) fn number<T: std::str::FromStr>(element: Element<'_>, name: &str) -> Result<Option<T>> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        let problem = format!("`{name}` is \"{}\", which is not a valid number", shown(text));
        element.wrong(problem, "give a non-negative integer")
    })
}

/// Largest number of hardware threads of a host.
const MOST_THREADS: usize = 1 << 16;
/// Largest number of NUMA nodes that are listed separately from their threads.
const MOST_NUMA_NODES: usize = 1 << 10;

/// All objects with their ranges of hardware threads. The file order is that of hwloc's logical indexes.
pub(super) struct Walk {
    allowed: Option<Cpuset>,
    /// The operating system indexes of the threads that count.
    threads: Vec<u32>,
    pub(super) objects: Vec<Object>,
    memory: Vec<Memory>,
    pub(super) notes: Vec<String>,
}

/// A NUMA node without its own threads, listed next to its local threads.
struct Memory {
    node: Object,
    /// The innermost object that contains it.
    around: Option<usize>,
    cpuset: Option<Cpuset>,
}

impl Walk {
    /// All objects of a machine.
    pub(super) fn of(root: Element<'_>) -> Result<Self> {
        let mut walk = Self {
            allowed: set(root, "allowed_cpuset")?,
            threads: Vec::new(),
            objects: Vec::new(),
            memory: Vec::new(),
            notes: Vec::new(),
        };
        walk.object(root, None, &mut Vec::new())?;
        match walk.threads.is_empty() {
            false => Ok(walk),
            true => Err(root.wrong(
                "no hardware thread of the machine is online and allowed",
                "run `lstopo` on the host",
            )),
        }
    }

    /// An object and its children. The recursion is bounded by the depth of the XML.
    fn object(&mut self, element: Element<'_>, around: Option<usize>, kinds: &mut Vec<Kind>) -> Result<()> {
        let kind = Kind::of(element, kinds);
        let (place, first) = (self.objects.len(), to_u32(self.threads.len()));
        if kind.is_thread() {
            self.thread(element)?;
        }
        // Indexes of devices may be invalid; they are not used.
        let index = |name| number(element, name).ok().flatten();
        let (os_index, gp_index) = (index("os_index"), index("gp_index"));
        self.objects.push(Object { kind, os_index, gp_index, range: (first, first) });
        kinds.push(kind);
        let holder = if kind.is_memory() { around } else { Some(place) };
        for child in element.all("object") {
            self.object(child, holder, kinds)?;
        }
        kinds.pop();
        let end = to_u32(self.threads.len());
        self.objects[place].range.1 = end;
        if kind.is_numa_node() && end == first {
            self.memory.push(Memory {
                node: self.objects[place].clone(),
                around,
                cpuset: set(element, "cpuset")?,
            });
            if self.memory.len() > MOST_NUMA_NODES {
                let problem = format!("there are more than {MOST_NUMA_NODES} NUMA nodes");
                return Err(element.wrong(problem, "check whether the file is damaged"));
            }
        }
        Ok(())
    }

    fn thread(&mut self, element: Element<'_>) -> Result<()> {
        let Some(thread) = number::<u32>(element, "os_index")? else {
            let problem = "a PU has no `os_index`";
            return Err(element.wrong(problem, "check whether the file is damaged"));
        };
        let is_in = |set: &Option<Cpuset>| set.as_ref().is_none_or(|set| set.contains(thread));
        let own = [set(element, "cpuset")?, set(element, "online_cpuset")?];
        if is_in(&self.allowed) && own.iter().all(is_in) {
            self.threads.push(thread);
        }
        match self.threads.len() > MOST_THREADS {
            false => Ok(()),
            true => {
                let problem = format!("there are more than {MOST_THREADS} hardware threads");
                Err(element.wrong(problem, "the file must describe a single host, not a cluster"))
            }
        }
    }

    /// Assigns their local threads to NUMA nodes, and removes objects without threads.
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
                found = near(0..to_u32(self.threads.len()));
            }
            // Memory without local processors forms no group.
            let (Some(&first), Some(&last)) = (found.first(), found.last()) else { continue };
            node.range = (first, last + 1);
            match (last - first) as usize + 1 == found.len() && self.fits(node.range) {
                true => self.objects.push(node),
                false => self.notes.push(format!(
                    "ignoring NUMA node {}: its threads overlap other objects partially",
                    node.os_index.map_or("without number".into(), |index| index.to_string())
                )),
            }
        }
        self.objects.retain(|object| object.range.0 < object.range.1);
    }

    /// Whether a range is nested in or disjoint from every object.
    fn fits(&self, (first, end): (u32, u32)) -> bool {
        self.objects.iter().map(|object| object.range).all(|(other, other_end)| {
            end <= other
                || other_end <= first
                || (first <= other && other_end <= end)
                || (other <= first && end <= other_end)
        })
    }
}

/// Bit of `kind`: the values are latencies.
const MEANS_LATENCY: u64 = 1 << 2;
/// Bit of `kind`: the values are bandwidths.
const MEANS_BANDWIDTH: u64 = 1 << 3;

/// Distances between objects of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Distances {
    /// Display name of the objects.
    pub(super) between: String,
    /// The slots of each object.
    ranges: Vec<Range>,
    /// From object `a` to object `b` of `n` at `a * n + b`.
    values: Vec<f64>,
}

/// The latencies between objects that contain slots; other distances are ignored.
pub(super) fn read(
    topology: Element<'_>,
    machine: Element<'_>,
    objects: &[Object],
) -> Result<Vec<Distances>> {
    let mut all = Vec::new();
    for element in topology.all("distances2") {
        all.extend(version_2(element, objects)?);
    }
    for element in machine.all("distances") {
        all.extend(version_1(element, objects)?);
    }
    Ok(all)
}

fn wrong(line: usize, problem: impl Into<String>) -> ImportError {
    malformed(line, problem, "distances must be a square matrix, one row and column per object")
}

fn numbers<T: std::str::FromStr>(elements: Element<'_>, name: &'static str) -> Result<Vec<T>> {
    let mut numbers = Vec::new();
    for element in elements.all(name) {
        for text in element.text().split_ascii_whitespace() {
            let number = text.parse().map_err(|_| wrong(element.line(), "this is not a list of integers"))?;
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// `<distances2 type="NUMANode" nbobjs="2" kind="5" indexing="os">` of version 2.
fn version_2(element: Element<'_>, objects: &[Object]) -> Result<Option<Distances>> {
    let kind = number::<u64>(element, "kind")?.unwrap_or(0);
    let name = element.attribute("type").unwrap_or_default();
    let indexes: Vec<u64> = numbers(element, "indexes")?;
    let values: Vec<u64> = numbers(element, "u64values")?;
    let is_claimed = number::<u64>(element, "nbobjs")?.is_none_or(|count| count == indexes.len() as u64);
    if !is_claimed || indexes.len().checked_mul(indexes.len()) != Some(values.len()) {
        let problem = format!("{} objects have {} distances", indexes.len(), values.len());
        return Err(wrong(element.line(), problem));
    }
    if kind & MEANS_BANDWIDTH != 0 || kind & MEANS_LATENCY == 0 {
        return Ok(None);
    }
    let by_os = element.attribute("indexing") == Some("os");
    let known: std::collections::HashMap<u64, Range> = objects
        .iter()
        .filter(|object| object.kind.is_called(name))
        .filter_map(|object| Some((if by_os { object.os_index } else { object.gp_index }?, object.range)))
        .collect();
    let ranges: Option<Vec<Range>> = indexes.iter().map(|index| known.get(index).copied()).collect();
    Ok(ranges.map(|ranges| Distances {
        between: format!("{name}s"),
        ranges,
        values: values.into_iter().map(|value| value as f64).collect(),
    }))
}

/// `<distances nbobjs="2" relative_depth="1" latency_base="10.0">` of version 1; these refer to NUMA nodes if
/// the numbers agree.
fn version_1(element: Element<'_>, objects: &[Object]) -> Result<Option<Distances>> {
    let base = number::<f64>(element, "latency_base")?.unwrap_or(1.0);
    let mut values = Vec::new();
    for latency in element.all("latency") {
        let value = number::<f64>(latency, "value")?.map(|value| value * base);
        let value = value.filter(|value| value.is_finite() && *value >= 0.0);
        values.push(value.ok_or_else(|| wrong(latency.line(), "a latency is not a number"))?);
    }
    let count = number::<usize>(element, "nbobjs")?.unwrap_or(0);
    if count.checked_mul(count) != Some(values.len()) {
        let problem = format!("{count} objects have {} distances", values.len());
        return Err(wrong(element.line(), problem));
    }
    let nodes = objects.iter().filter(|object| object.kind.is_numa_node());
    let ranges: Vec<Range> = nodes.map(|object| object.range).collect();
    Ok((ranges.len() == count).then(|| Distances { between: "NUMANodes".into(), ranges, values }))
}

impl Distances {
    /// The costs of levels, innermost first: between objects, the mean of the distances of those that first
    /// meet there, relative to the distance of an object to itself; inside objects, equal steps up to that.
    /// `None` if there is only one object.
    ///
    /// # Errors
    /// Explains why distances and levels are inconsistent.
    pub(super) fn costs(&self, groups: &[Vec<u32>]) -> Result<Option<LevelCosts>, String> {
        let count = self.ranges.len();
        let mut met = vec![Met::default(); groups.len()];
        let mut own = Met::default();
        for (a, &(first, end)) in self.ranges.iter().enumerate() {
            own.add(self.values[a * count + a]);
            for (b, &(other, other_end)) in self.ranges.iter().enumerate() {
                // Two kinds of memory with the same processors are not two locations.
                if end <= other || other_end <= first {
                    let level =
                        groups.iter().position(|groups| groups[first as usize] == groups[other as usize]);
                    met[level.unwrap_or(groups.len() - 1)].add(self.values[a * count + b]);
                }
            }
        }
        let Some(outer) = met.iter().position(|met| met.count > 0) else { return Ok(None) };
        let rising = |met: &[Met]| met.windows(2).all(|pair| pair[0].most <= pair[1].least);
        if met[outer..].iter().any(|met| met.count == 0) {
            return Err("they do not cover all objects".into());
        }
        if !rising(&met[outer..]) {
            return Err("some distances decrease outwards".into());
        }
        let unit = own.mean();
        if unit <= 0.0 && outer > 0 || own.most > met[outer].least {
            return Err("the distance of an object to itself is not the smallest".into());
        }
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let inner = (1..=outer).map(|level| level as f64 / outer as f64);
        let costs = inner.chain(met[outer..].iter().map(|met| met.mean() / unit)).collect();
        let uneven = met[outer..].iter().find(|met| met.least < met.most);
        Ok(Some(LevelCosts { costs, uneven: uneven.map(|met| (met.least, met.most)) }))
    }
}

/// Costs of levels derived from distances.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LevelCosts {
    pub(super) costs: Vec<f64>,
    /// The range of distances on one level, if they differ.
    pub(super) uneven: Option<(f64, f64)>,
}

/// The distances between objects that first meet on a level.
#[derive(Debug, Clone, Copy)]
struct Met {
    count: u32,
    sum: f64,
    least: f64,
    most: f64,
}

impl Default for Met {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: 0.0 }
    }
}

impl Met {
    fn add(&mut self, value: f64) {
        *self = Self {
            count: self.count.saturating_add(1),
            sum: self.sum + value,
            least: self.least.min(value),
            most: self.most.max(value),
        };
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}
