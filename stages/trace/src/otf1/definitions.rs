//! The relevant definitions of an archive, and the processes of the program: the rank and host of every
//! process of the trace.
//!
//! OTF 1 also calls threads processes. VampirTrace gives each its own id, `thread << 20 | process` (`<< 16`
//! in older versions), with the process as its parent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use hopmap_text::FileError;

use super::fields::{Fault, Fields, in_record, open_lines};
use crate::selection::{Marks, RegionKind};

/// Attribute of groups that are communicators (`OTF_ATTR_IsCommunicator`).
const IS_COMMUNICATOR: u32 = 7;

/// A group of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) members: Vec<u32>,
}

/// Contents of a definition file.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) ticks_per_second: Option<u64>,
    /// The program that wrote the archive.
    pub(super) creator: String,
    /// The parent of every process; zero if none.
    pub(super) processes: BTreeMap<u32, u32>,
    /// The groups in order of definition.
    pub(super) groups: Vec<Group>,
    /// Attribute lists that contain the attribute of communicators, and the groups with their lists.
    pub(super) communicator_lists: BTreeSet<u32>,
    pub(super) attributes: BTreeMap<u32, u32>,
    /// Group and name of every function.
    pub(super) functions: HashMap<u32, (u32, String)>,
    pub(super) function_groups: HashMap<u32, String>,
}

impl Definitions {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let mut definitions = Self::default();
        let mut lines = open_lines(path)?;
        while let Some(line) = lines.next_bytes()? {
            definitions.record(line.text).map_err(|what| line.error(in_record(line.text, what)))?;
        }
        Ok(definitions)
    }

    /// Ids of the groups with this name or number.
    pub(super) fn groups_called(&self, name: &str) -> Vec<u32> {
        let number: Option<u32> = name.parse().ok();
        let called = |group: &&Group| group.name == name || Some(group.id) == number;
        self.groups.iter().filter(called).map(|group| group.id).collect()
    }

    /// Whether a group is marked as a communicator.
    pub(super) fn is_communicator(&self, group: u32) -> bool {
        self.attributes.get(&group).is_some_and(|list| self.communicator_lists.contains(list))
    }

    /// Kinds of functions. Functions of the group `MPI` are communication, independent of their names.
    /// Functions and groups that are not defined here are looked up in `others`.
    pub(super) fn region_kinds(
        &self,
        others: Option<&Self>,
        marks: &mut Marks<'_>,
    ) -> HashMap<u32, RegionKind> {
        let group_name = |id| {
            let name = self.function_groups.get(id);
            name.or_else(|| others?.function_groups.get(id)).map_or("", String::as_str)
        };
        let functions = others.into_iter().flat_map(|others| &others.functions).chain(&self.functions);
        functions
            .map(|(id, (group, name))| {
                let kind = RegionKind::new(name, group_name(group).eq_ignore_ascii_case("MPI"), false);
                (*id, marks.mark(name, kind))
            })
            .collect()
    }

    fn record(&mut self, line: &[u8]) -> Result<(), Fault> {
        let mut fields = Fields::new(line);
        let keyword = fields.keyword();
        match keyword {
            b"" if fields.is_empty() => {}
            b"DTR" | b"DEFTIMERRESOLUTION" => self.timer_resolution(&mut fields)?,
            b"DP" | b"DEFPROCESS" => self.process(&mut fields)?,
            b"DPG" | b"DEFPROCESSGROUP" => self.group(&mut fields)?,
            b"DPGA" | b"DEFPROCESSORGROUPATTR" => {
                let group = fields.short()?;
                fields.expect(&[b"V", b"VALUE"], "missing attributes")?;
                self.attributes.insert(group, fields.short()?);
            }
            b"DA" | b"DEFATTRIBUTELIST" => {
                let list = fields.short()?;
                fields.expect(&[b"M", b"MEMBERS"], "missing attributes")?;
                if fields.list()?.contains(&IS_COMMUNICATOR) {
                    self.communicator_lists.insert(list);
                }
            }
            b"DF" | b"DEFFUNCTION" => {
                let function = fields.short()?;
                fields.expect(&[b"G", b"GROUP"], "missing group")?;
                let group = fields.short()?;
                self.functions.insert(function, (group, fields.name()?));
                fields.end_or_source()?;
            }
            b"DFG" | b"DEFFUNCTIONGROUP" => {
                let group = fields.short()?;
                self.function_groups.insert(group, fields.name()?);
            }
            b"DCR" | b"DEFCREATOR" => self.creator = fields.text()?,
            // Irrelevant definitions, and key-values.
            b"DCO"
            | b"DEFCOLLOP"
            | b"DCNT"
            | b"DEFCOUNTER"
            | b"DCG"
            | b"DEFCOUNTERGROUP"
            | b"DCA"
            | b"DEFCOUNTERASSIGNMENTS"
            | b"DCMT"
            | b"DEFCOMMENT"
            | b"DS"
            | b"DEFSCL"
            | b"DSF"
            | b"DEFSCLFILE"
            | b"DUI"
            | b"DEFUNIQUEID"
            | b"DV"
            | b"DEFVERSION"
            | b"DFL"
            | b"DEFFILE"
            | b"DFLG"
            | b"DEFFILEGROUP"
            | b"DK"
            | b"DEFKEYVALUE"
            | b"DTRG"
            | b"DEFTIMERANGE"
            | b"DPS"
            | b"DEFPROCESSSUBSTITUTES"
            | b"DAUX"
            | b"DEFAUXSAMPLEPOINT"
            | b"K"
            | b"KEY" => {}
            // Times and processes before a definition have no meaning.
            b"" if fields.take(b'*') || fields.number().is_ok() => {}
            _ => return Err("not a definition of OTF 1"),
        }
        Ok(())
    }

    fn timer_resolution(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let ticks = fields.number()?;
        fields.end()?;
        match self.ticks_per_second.replace(ticks) {
            Some(other) if other != ticks => Err("conflicting definitions of the timer resolution"),
            _ => Ok(()),
        }
    }

    fn process(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let process = fields.short()?;
        let mut parent = 0;
        while !fields.is_empty() {
            match fields.keyword() {
                b"NM" | b"NAME" | b"N" => drop(fields.text()?),
                b"PT" | b"PARENT" | b"P" => parent = fields.short()?,
                _ => return Err("missing name or parent"),
            }
        }
        match self.processes.insert(process, parent) {
            Some(other) if other != parent => Err("conflicting definitions of the process"),
            _ => Ok(()),
        }
    }

    fn group(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let id = fields.short()?;
        let missing = "missing members";
        let mut members = Vec::new();
        let name = match fields.keyword() {
            b"M" | b"MEMBERS" => {
                members = fields.list()?;
                fields.name()?
            }
            // Without members the two keywords are adjacent.
            b"MNM" => fields.text()?,
            _ => return Err(missing),
        };
        fields.end()?;
        self.groups.push(Group { id, name, members });
        Ok(())
    }
}

/// A process of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessOf {
    /// Main process in the trace; the others are its threads.
    pub(super) main: u32,
    /// Host on which it ran.
    pub(super) host: Option<String>,
}

/// The processes of the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Processes {
    /// The processes by rank.
    pub(super) list: Vec<ProcessOf>,
    /// Rank of every process of the trace that belongs to one.
    ranks: HashMap<u32, Option<u32>>,
    /// Number of processes identified as threads only by their numbers.
    pub(super) threads_by_number: u64,
}

impl Processes {
    /// The members of `MPI_COMM_WORLD` in order, if this group exists, else all processes without a parent
    /// in order of their ids. `listed` are the processes of the master file.
    pub(super) fn new(definitions: &Definitions, listed: impl Iterator<Item = u32>) -> Result<Self, String> {
        let mut parents = definitions.processes.clone();
        for process in listed {
            parents.entry(process).or_insert(0);
        }
        let world = world(&definitions.groups)?;
        let members: BTreeSet<u32> = world.iter().flat_map(|world| &world.members).copied().collect();
        if let Some(missing) = members.iter().find(|member| !parents.contains_key(*member)) {
            return Err(format!("process {missing:x} of MPI_COMM_WORLD is not defined"));
        }
        let anchors = anchors(&parents, &members)?;
        let order: Vec<u32> = match world {
            Some(world) if members.len() != world.members.len() => {
                return Err("a process is duplicated in MPI_COMM_WORLD".into());
            }
            Some(world) => world.members.clone(),
            None => parents.iter().filter(|(_, parent)| **parent == 0).map(|(id, _)| *id).collect(),
        };
        if order.is_empty() {
            return Err("the archive does not define processes".into());
        }
        let rank_of: HashMap<u32, u32> = order.iter().copied().zip(0..).collect();
        let mut threads_by_number = 0;
        let mut ranks = HashMap::with_capacity(parents.len());
        for (id, anchor) in anchors {
            let mut rank = rank_of.get(&anchor).copied();
            if rank.is_none() && world.is_some() && parents.get(&id) == Some(&0) {
                rank = process_in_number(id, &members).and_then(|process| rank_of.get(&process).copied());
                threads_by_number += u64::from(rank.is_some());
            }
            ranks.insert(id, rank);
        }
        let hosts = hosts(definitions, &rank_of);
        let list = order.iter().zip(hosts).map(|(main, host)| ProcessOf { main: *main, host }).collect();
        Ok(Self { list, ranks, threads_by_number })
    }

    /// Whether the archive defines a process.
    pub(super) fn is_known(&self, process: u32) -> bool {
        self.ranks.contains_key(&process)
    }

    /// Rank of the process that a process of the trace belongs to.
    pub(super) fn rank(&self, process: u32) -> Option<u32> {
        self.ranks.get(&process).copied().flatten()
    }

    /// Whether it is a main process.
    pub(super) fn is_main(&self, process: u32) -> bool {
        self.rank(process).is_some_and(|rank| self.list[rank as usize].main == process)
    }
}

/// The group of all MPI processes. Before unification VampirTrace writes the name with underscores.
fn world(groups: &[Group]) -> Result<Option<&Group>, String> {
    let is_world = |group: &&Group| matches!(group.name.as_str(), "MPI_COMM_WORLD" | "__MPI_COMM_WORLD__");
    let mut worlds = groups.iter().filter(is_world);
    match worlds.next() {
        Some(first) if worlds.any(|other| other.members != first.members) => {
            Err("conflicting definitions of MPI_COMM_WORLD".into())
        }
        first => Ok(first),
    }
}

/// For every process the nearest ancestor, itself included, that is in `members` or lacks a parent.
fn anchors(parents: &BTreeMap<u32, u32>, members: &BTreeSet<u32>) -> Result<BTreeMap<u32, u32>, String> {
    let mut anchors = BTreeMap::new();
    for process in parents.keys() {
        let mut path = Vec::new();
        let mut at = *process;
        let anchor = loop {
            if let Some(anchor) = anchors.get(&at) {
                break *anchor;
            }
            let Some(parent) = parents.get(&at) else {
                let child = path.last().copied().unwrap_or_default();
                return Err(format!("process {at:x}, the parent of process {child:x}, is not defined"));
            };
            path.push(at);
            if *parent == 0 || members.contains(&at) {
                break at;
            }
            if path.len() > parents.len() {
                return Err(format!("the parents of process {process:x} form a cycle"));
            }
            at = *parent;
        };
        anchors.extend(path.into_iter().map(|process| (process, anchor)));
    }
    Ok(anchors)
}

/// The process encoded in the number of a thread, if both encodings give the same process or only one gives
/// a process.
fn process_in_number(id: u32, members: &BTreeSet<u32>) -> Option<u32> {
    let mut found = [id & 0xffff, id & 0xf_ffff].into_iter().filter(|process| members.contains(process));
    match (found.next(), found.next()) {
        (Some(one), Some(other)) if one != other => None,
        (first, _) => first,
    }
}

/// Prefixes of the names of VampirTrace groups that are not nodes.
const NO_NODES: [&str; 7] =
    ["All", "MPI_COMM_", "MPI Communicator", "MPI Group", "OMP Thread Team", "OpenMP Thread Team", "GPU_"];

/// Hosts of the ranks. VampirTrace creates a group per node with the name of the node, prefixed with
/// `__NODE__` before unification. Without groups that cover every rank exactly once, hosts are unknown.
fn hosts(definitions: &Definitions, rank_of: &HashMap<u32, u32>) -> Vec<Option<String>> {
    let unknown = vec![None; rank_of.len()];
    let vampirtrace = definitions.creator.contains("VampirTrace");
    let node = |group: &Group| match group.name.strip_prefix("__NODE__") {
        Some(name) => Some(name.to_owned()),
        None if !vampirtrace || definitions.is_communicator(group.id) => None,
        None => Some(group.name.clone()).filter(|name| !NO_NODES.iter().any(|other| name.starts_with(other))),
    };
    let mut hosts = unknown.clone();
    for group in &definitions.groups {
        let Some(name) = node(group).filter(|name| !name.is_empty()) else { continue };
        for rank in group.members.iter().filter_map(|member| rank_of.get(member)) {
            if hosts[*rank as usize].replace(name.clone()).is_some_and(|other| other != name) {
                return unknown;
            }
        }
    }
    if hosts.iter().all(Option::is_some) { hosts } else { unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, members: &[u32]) -> Group {
        Group { id: 0x100, name: name.into(), members: members.to_vec() }
    }

    /// Processes 1 to 3, a thread of each of the first two, and a thread of a thread.
    fn definitions(groups: &[Group]) -> Definitions {
        let parents = [(1, 0), (2, 0), (3, 0), (0x10_0001, 1), (0x10_0002, 2), (0x20_0001, 0x10_0001)];
        Definitions { processes: parents.into(), groups: groups.to_vec(), ..Definitions::default() }
    }

    fn processes(groups: &[Group]) -> Processes {
        Processes::new(&definitions(groups), [].into_iter()).unwrap()
    }

    fn ranks(processes: &Processes, ids: &[u32]) -> Vec<Option<u32>> {
        ids.iter().map(|id| processes.rank(*id)).collect()
    }

    #[test]
    fn ranks_are_positions_in_comm_world() {
        let processes = processes(&[group("MPI_COMM_WORLD", &[3, 1])]);
        assert_eq!(
            ranks(&processes, &[1, 2, 3, 0x10_0001, 0x20_0001, 0x10_0002]),
            [Some(1), None, Some(0), Some(1), Some(1), None]
        );
        assert!(processes.is_main(1) && !processes.is_main(0x10_0001) && !processes.is_main(2));
        assert!(processes.is_known(2) && !processes.is_known(9));
    }

    #[test]
    fn without_comm_world_processes_without_parent_are_ranks() {
        let processes = processes(&[]);
        assert_eq!(ranks(&processes, &[1, 2, 3, 0x20_0001]), [Some(0), Some(1), Some(2), Some(0)]);
        let listed = Processes::new(&Definitions::default(), [7, 5].into_iter()).unwrap();
        assert_eq!(ranks(&listed, &[5, 7]), [Some(0), Some(1)]);
    }

    #[test]
    fn threads_without_parent_are_identified_by_number_if_unambiguous() {
        let mut definitions = definitions(&[group("MPI_COMM_WORLD", &[1, 2, 3])]);
        definitions.processes.extend([(0x1_0002, 0), (0x10_0003, 0), (0x1_0009, 0)]);
        let processes = Processes::new(&definitions, [].into_iter()).unwrap();
        assert_eq!(ranks(&processes, &[0x1_0002, 0x10_0003, 0x1_0009]), [Some(1), Some(2), None]);
        assert_eq!(processes.threads_by_number, 2);
        // A thread of process 1, or of process 1_0001?
        assert_eq!(process_in_number(0x11_0001, &[1, 0x1_0001].into()), None);
    }

    #[test]
    fn hosts_are_groups_that_cover_every_rank_once() {
        let hosts = |creator: &str, groups: &[Group]| {
            let definitions = Definitions { creator: creator.into(), ..definitions(groups) };
            let processes = Processes::new(&definitions, [].into_iter()).unwrap();
            processes.list.into_iter().map(|process| process.host.unwrap_or_default()).collect::<Vec<_>>()
        };
        let world = group("MPI_COMM_WORLD", &[1, 2, 3]);
        let nodes =
            [world.clone(), group("All", &[1, 2, 3]), group("n1", &[1, 0x10_0001, 2]), group("n2", &[3])];
        assert_eq!(hosts("VampirTrace 5.14.4", &nodes), ["n1", "n1", "n2"]);
        assert_eq!(hosts("w1", &nodes), ["", "", ""]);
        let raw =
            [world.clone(), group("__NODE__a", &[1]), group("__NODE__a", &[2]), group("__NODE__b", &[3])];
        assert_eq!(hosts("w1", &raw), ["a", "a", "b"]);
        let twice = [world, group("n1", &[1, 2]), group("n2", &[2, 3])];
        assert_eq!(hosts("VampirTrace", &twice), ["", "", ""]);
    }

    #[test]
    fn inconsistent_definitions_are_rejected() {
        let error = |definitions: &Definitions| Processes::new(definitions, [].into_iter()).unwrap_err();
        let with = |groups: &[Group]| error(&definitions(groups));
        assert_eq!(with(&[group("MPI_COMM_WORLD", &[9])]), "process 9 of MPI_COMM_WORLD is not defined");
        assert_eq!(with(&[group("MPI_COMM_WORLD", &[1, 1])]), "a process is duplicated in MPI_COMM_WORLD");
        assert_eq!(with(&[group("MPI_COMM_WORLD", &[])]), "the archive does not define processes");
        assert_eq!(
            with(&[group("MPI_COMM_WORLD", &[1]), group("MPI_COMM_WORLD", &[2])]),
            "conflicting definitions of MPI_COMM_WORLD"
        );
        let parents = |processes: &[(u32, u32)]| {
            error(&Definitions { processes: processes.iter().copied().collect(), ..Definitions::default() })
        };
        assert_eq!(parents(&[(1, 2), (2, 1)]), "the parents of process 1 form a cycle");
        assert_eq!(parents(&[(1, 1)]), "the parents of process 1 form a cycle");
        assert_eq!(parents(&[(1, 7)]), "process 7, the parent of process 1, is not defined");
        assert_eq!(parents(&[]), "the archive does not define processes");
    }
}
