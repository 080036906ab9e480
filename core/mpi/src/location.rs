//! Where a process runs: its rank, its host, and the cores that it may use, as one line of text.
//!
//! Cores have logical indexes as in hwloc, which rank files use as well: cores of a package, a NUMA node or a shared cache follow
//! each other, whatever numbers the operating system gives to their hardware threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs};

use crate::{Rank, host_name};

/// Where a process runs.
///
/// Its text form is the line that `hopmap where` prints, such as `rank 3 on n1, cores 0-1 of 4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The rank; `None` if no launcher has started the process.
    pub rank: Option<u32>,
    /// The host.
    pub host: String,
    /// Logical indexes of the cores on which the process may run, in ascending order.
    pub cores: Vec<u32>,
    /// Number of cores of the host.
    pub of: u32,
}

impl Location {
    /// The location of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let rank = Rank::of_this_process().map(|rank| rank.rank);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let (cores, of) = cores(Path::new("/sys/devices/system"), &allowed(&status));
        Self { rank, host: host_name(), cores, of }
    }

    /// Host and cores, as in its text form.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}, cores {} of {}", self.host, list(&self.cores), self.of)
    }

    /// The location in a line of a launcher's output, which may have a prefix such as `[1,3]<stdout>:`.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (rank, rest) = match line.split_once("no rank on ") {
            Some((_, rest)) => (None, rest),
            None => {
                let (rank, rest) = line.split_once("rank ")?.1.split_once(" on ")?;
                (Some(rank.parse().ok()?), rest)
            }
        };
        let (host, rest) = rest.split_once(", cores ")?;
        let (cores, of) = rest.trim_end().split_once(" of ")?;
        Some(Self { rank, host: host.to_owned(), cores: parse_list(cores)?, of: of.parse().ok()? })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(rank) => write!(f, "rank {rank}")?,
            None => f.write_str("no rank")?,
        }
        write!(f, " on {}", self.place())
    }
}

/// Numbers as a list of ranges, such as `0-3,8`: the form of the kernel and of most launchers.
#[must_use]
pub fn list(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// Larger numbers of processors are no such list.
const MOST: u32 = 1 << 16;

fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse().ok()?, last.parse().ok().filter(|&last: &u32| last < MOST)?);
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The processors of `/proc/self/status`: the affinity mask, which, unlike `sched_getaffinity`, needs no limit of processors.
fn allowed(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.and_then(parse_list).unwrap_or_default()
}

/// File of a processor that names the processors of its core.
const CORE: &str = "topology/thread_siblings_list";
/// Files of a processor that name the processors with which it shares more; kernels and machines may lack some.
const SHARED: [&str; 5] = [
    "topology/package_cpus_list",
    "topology/core_siblings_list",
    "topology/die_cpus_list",
    "cache/index3/shared_cpu_list",
    "cache/index2/shared_cpu_list",
];

/// The logical indexes of the cores of some processors, and the number of all cores.
///
/// hwloc orders the children of every object by their first processor. So cores are ordered by the first processors of the sets
/// that contain them, from the largest kind of set to the core itself.
fn cores(system: &Path, allowed: &[u32]) -> (Vec<u32>, u32) {
    let processors = read_list(&system.join("cpu/online")).unwrap_or_else(|| allowed.to_vec());
    let nodes = numa_nodes(&system.join("node"));
    let sets_of = |&processor: &u32| {
        let folder = system.join(format!("cpu/cpu{processor}"));
        let core = read_list(&folder.join(CORE)).unwrap_or_else(|| vec![processor]);
        let shared = SHARED.iter().map(|name| read_list(&folder.join(name)));
        let node = nodes.iter().find(|node| node.contains(&processor)).cloned();
        let sets = shared.chain([node, Some(core.clone())]).map(|set| set.unwrap_or_else(|| core.clone()));
        sets.map(|set| (set.len(), set.first().copied().unwrap_or(processor))).collect::<Vec<_>>()
    };
    let sets: Vec<Vec<(usize, u32)>> = processors.iter().map(sets_of).collect();
    let mut kinds: Vec<usize> = (0..SHARED.len() + 2).collect();
    let largest = |&kind: &usize| sets.iter().map(|sets| sets[kind].0).max();
    kinds.sort_by_key(|kind| std::cmp::Reverse(largest(kind)));
    let key = |sets: &Vec<(usize, u32)>| kinds.iter().map(|&kind| sets[kind].1).collect::<Vec<u32>>();
    let keys: BTreeMap<u32, Vec<u32>> = processors.iter().copied().zip(sets.iter().map(key)).collect();
    let mut all: Vec<&Vec<u32>> = keys.values().collect();
    all.sort_unstable();
    all.dedup();
    let index = |processor: &u32| all.binary_search(&keys.get(processor)?).ok();
    let mut own: Vec<u32> = allowed.iter().filter_map(index).map(|index| index as u32).collect();
    own.sort_unstable();
    own.dedup();
    (own, all.len() as u32)
}

fn numa_nodes(folder: &Path) -> Vec<Vec<u32>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_list(&entry.path().join("cpulist"))).collect()
}

fn read_list(path: &Path) -> Option<Vec<u32>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_back_whatever_the_launcher_puts_before_it() {
        for (text, cores) in [
            ("rank 3 on n1, cores 0-1 of 4", vec![0, 1]),
            ("no rank on n1.x, cores 0,2-4 of 8", vec![0, 2, 3, 4]),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!((location.to_string().as_str(), &location.cores), (text, &cores));
            assert_eq!(Location::parse(&format!("[1,3]<stdout>:{text}\r")), Some(location));
        }
        for text in [
            "",
            "rank 3",
            "rank x on n, cores 0 of 1",
            "rank 1 on n, cores 0-9999999999 of 1",
            "rank 1 on n, cores 0",
        ] {
            assert_eq!(Location::parse(text), None, "{text}");
        }
    }

    #[test]
    fn this_process_is_somewhere() {
        let location = Location::of_this_process();
        assert!(
            !location.cores.is_empty() && location.cores.iter().all(|&core| core < location.of),
            "{location}"
        );
    }

    /// A folder like `/sys/devices/system` with processors and what they share.
    fn system(processors: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (processor, (package, cache, core)) in processors.iter().enumerate() {
            for (name, list) in [(SHARED[0], package), (SHARED[3], cache), (CORE, core)] {
                let path = folder.path().join(format!("cpu/cpu{processor}")).join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{list}\n")).unwrap();
            }
        }
        fs::write(folder.path().join("cpu/online"), format!("0-{}\n", processors.len() - 1)).unwrap();
        folder
    }

    #[test]
    fn cores_of_a_package_follow_each_other_whatever_their_processors_are_called() {
        // Two packages with two cores of two threads each: even processors are in the first one.
        let processors = [0, 1, 2, 3].map(|core| {
            let package = if core % 2 == 0 { "0,2,4,6" } else { "1,3,5,7" };
            (package, package, ["0,4", "1,5", "2,6", "3,7"][core])
        });
        let folder = system(&[processors, processors].concat());
        let found = |allowed: &[u32]| cores(folder.path(), allowed);
        assert_eq!([0, 2, 1, 3].map(|processor| found(&[processor]).0), [[0], [1], [2], [3]]);
        assert_eq!(found(&[2, 6]), (vec![1], 4));
        assert_eq!(found(&[0, 1, 5]), (vec![0, 2], 4));
        assert_eq!(found(&[9]), (vec![], 4));
    }

    #[test]
    fn without_a_description_of_the_machine_every_processor_is_a_core() {
        assert_eq!(cores(Path::new("/no/such/folder"), &[1, 3]), (vec![0, 1], 2));
    }

    #[test]
    fn the_affinity_mask_is_in_the_status() {
        assert_eq!(allowed("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,4\n"), [0, 1, 4]);
    }
}
