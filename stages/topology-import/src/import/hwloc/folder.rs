//! hwloc topology files and difference files: the hosts they describe, and the levels inside hosts.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hopmap_model::InputPath;
use hopmap_text::FileError;

use super::host::{Host, Range};
use super::kind::Kind;
use crate::import::Result;
use crate::import::format::{Sample, malformed, read_text_within};
use crate::import::xml::{Element, Xml, first_element};

/// Largest file size.
const MOST_BYTES: u64 = 64 << 20;
/// Largest number of files.
const MOST_FILES: usize = 100_000;

/// The cores of a host and their groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HostShape {
    /// Ascending logical indexes of the cores.
    pub(crate) cores: Vec<u32>,
    /// By level, innermost first, the group of each core. The last level has one group.
    pub(crate) groups: Vec<Vec<u32>>,
}

/// All files of a folder that describe hosts of a fabric, including the bases of differences.
pub(crate) fn files_of_hosts(folder: &Path) -> Result<Vec<InputPath>> {
    let mut files: BTreeSet<PathBuf> = hosts_of(folder)?.into_values().collect();
    let mut loader = Loader::new(false);
    for file in &files {
        let head = Sample::new(file)?;
        // Complete topologies refer to no other file, so they need not be parsed.
        if head.text().and_then(first_element) != Some("topology") {
            loader.load(file)?;
        }
    }
    files.extend(loader.files().map(Path::to_owned));
    Ok(files.iter().map(|file| named(file)).collect())
}

/// A file whose name identifies its host, or the base of a difference.
pub(super) fn named(file: &Path) -> InputPath {
    InputPath::named(file, format!("hwloc/{}", file.file_name().unwrap_or_default().to_string_lossy()))
}

/// The host names of the files in a folder.
pub(crate) fn names_of_hosts(folder: &Path) -> Result<Vec<String>> {
    Ok(hosts_of(folder)?.into_keys().collect())
}

/// The shapes of the hosts of a fabric by name; slots are cores or hardware threads.
pub(crate) fn hosts(folder: &Path, threads: bool) -> Result<BTreeMap<String, HostShape>> {
    let mut loader = Loader::new(threads);
    let shape = |(name, file): (String, PathBuf)| Ok((name, loader.load(&file)?.host.inside().shape));
    hosts_of(folder)?.into_iter().map(shape).collect()
}

/// Reads hosts, each file once.
pub(super) struct Loader {
    threads: bool,
    loaded: BTreeMap<PathBuf, Loaded>,
}

/// A host. A difference changes its name only: hwloc differences do not affect processors.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) name: Option<String>,
    pub(super) host: Rc<Host>,
}

impl Loader {
    pub(super) fn new(threads: bool) -> Self {
        Self { threads, loaded: BTreeMap::new() }
    }

    /// All files that were read.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.loaded.keys().map(PathBuf::as_path)
    }

    /// The host of a file, which may be a difference to another one, recursively.
    pub(super) fn load(&mut self, path: &Path) -> Result<Loaded> {
        let mut chain: Vec<(PathBuf, Difference)> = Vec::new();
        let mut seen = HashSet::new();
        let mut file = path.to_owned();
        let mut loaded = loop {
            if let Some(loaded) = self.loaded.get(&file) {
                break loaded.clone();
            }
            if !seen.insert(file.clone()) {
                let problem = "cyclic difference files: this file is based on itself";
                let help = "one of them must be a complete topology; write it with `lstopo --of xml`";
                return Err(malformed(None, problem, help).in_file(&file));
            }
            match self.content(&file).map_err(|error| error.in_file(&file))? {
                Content::Difference(difference) => {
                    let reference = difference.reference.clone();
                    chain.push((file, difference));
                    file = reference;
                }
                Content::Host(host) => {
                    let loaded = Loaded { name: host.name.clone(), host: Rc::new(host) };
                    self.loaded.insert(file, loaded.clone());
                    break loaded;
                }
            }
        };
        for (file, difference) in chain.into_iter().rev() {
            loaded = difference.applied(loaded).map_err(|error| error.in_file(&file))?;
            self.loaded.insert(file, loaded.clone());
        }
        Ok(loaded)
    }

    fn content(&self, file: &Path) -> Result<Content> {
        let text = read_text_within(file, MOST_BYTES)?;
        let xml = Xml::parse(&text)?;
        let root = root(&xml)?;
        Ok(match root.name() {
            "topologydiff" => Content::Difference(Difference::new(file, root)?),
            _ => Content::Host(Host::new(root, self.threads)?),
        })
    }
}

/// The content of an hwloc file.
enum Content {
    Host(Host),
    Difference(Difference),
}

/// All hwloc files in a folder, by host name.
pub(super) fn hosts_of(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let failed = |error| FileError::unreadable(folder, &error);
    let mut hosts: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(host) = path.file_name().and_then(OsStr::to_str).and_then(host_of).map(str::to_owned) else {
            continue;
        };
        if !path.is_file() {
            continue;
        }
        if let Some(other) = hosts.insert(host.clone(), path) {
            let problem = format!("there are both a topology and a difference of host `{host}`");
            return Err(malformed(None, problem, "keep the correct one").in_file(&other));
        }
        if hosts.len() > MOST_FILES {
            let problem = format!("there are more than {MOST_FILES} files");
            return Err(
                malformed(None, problem, "keep the hosts of a single machine in a folder").in_file(folder)
            );
        }
    }
    match hosts.is_empty() {
        false => Ok(hosts),
        true => {
            let help = "they are named after their hosts, `HOST.xml` or `HOST.diff.xml`";
            Err(malformed(None, "the folder contains no hwloc files", help).in_file(folder))
        }
    }
}

/// The host name in a file name.
pub(super) fn host_of(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".xml")?;
    let name = name.strip_suffix(".diff").unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// The root element of a topology or a difference.
pub(super) fn root<'a>(xml: &'a Xml<'_>) -> Result<Element<'a>> {
    let root = xml.root();
    match root.name() {
        "topology" | "topologydiff" => Ok(root),
        other => {
            let problem = format!("the first element is `{other}`, not `topology`");
            Err(root.wrong(problem, "`lstopo --of xml` writes a topology"))
        }
    }
}

/// The difference between two hosts.
struct Difference {
    reference: PathBuf,
    /// Host names, old and new.
    names: Vec<(usize, String, String)>,
}

impl Difference {
    fn new(path: &Path, root: Element<'_>) -> Result<Self> {
        let reference = reference(path, root)?;
        let mut names = Vec::new();
        for change in root.all("diff") {
            let of = |name| change.attribute(name).unwrap_or_default();
            let is_attribute = matches!(of("obj_attr_type"), "0" | "1" | "2");
            if of("type") != "0" || !is_attribute {
                let problem = format!(
                    "a difference of type `{}` and attribute type `{}` cannot be applied",
                    of("type"),
                    of("obj_attr_type")
                );
                let help = "only differences of attributes (type 0) are supported; write the complete topology of the host with `lstopo --of xml`";
                return Err(change.wrong(problem, help));
            }
            let is_name =
                of("obj_depth") == "0" && of("obj_attr_type") == "2" && of("obj_attr_name") == "HostName";
            if is_name {
                let [old, new] =
                    ["obj_attr_oldvalue", "obj_attr_newvalue"].map(|name| of(name).trim().to_owned());
                names.push((change.line(), old, new));
            }
        }
        Ok(Self { reference, names })
    }

    fn applied(self, mut host: Loaded) -> Result<Loaded> {
        for (line, old, new) in self.names {
            let known = host.name.take().unwrap_or_default();
            if known != old {
                let reference = self.reference.display();
                let problem = format!("the host of {reference} is named `{known}`, not `{old}`");
                return Err(malformed(line, problem, "the difference has another base file"));
            }
            host.name = Some(new).filter(|name| !name.is_empty());
        }
        Ok(host)
    }
}

/// The base file of a difference: in the same folder, with or without extension.
fn reference(path: &Path, root: Element<'_>) -> Result<PathBuf> {
    let name = root.attribute("refname").unwrap_or_default();
    let wrong = |problem: String, help: &str| Err(root.wrong(problem, help));
    let Some(file) = Path::new(name).file_name().and_then(OsStr::to_str) else {
        return wrong(
            "`refname` does not give the base file of this difference".into(),
            "it is a file name in the same folder",
        );
    };
    let found = [file.to_owned(), format!("{file}.xml"), format!("{file}.diff.xml")]
        .map(|file| path.with_file_name(file))
        .into_iter()
        .find(|file| file.is_file());
    match found {
        Some(file) => Ok(file),
        None => wrong(format!("there is no file `{file}` in its folder"), "put both files into one folder"),
    }
}

/// The host names of files.
pub(in crate::import) struct Names<'a> {
    exact: BTreeSet<&'a str>,
    /// By the part before the first dot, if only one file has it.
    short: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Names<'a> {
    pub(in crate::import) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self { exact: BTreeSet::new(), short: BTreeMap::new() };
        for name in names {
            found.exact.insert(name);
            found.short.entry(short(name)).and_modify(|other| *other = None).or_insert(Some(name));
        }
        found
    }

    /// The file name for a host: an exact match, otherwise a match up to the first dot.
    pub(in crate::import) fn find(&self, host: &str) -> Option<&'a str> {
        let exact = self.exact.get(host).copied();
        exact.or_else(|| self.short.get(short(host)).copied().flatten())
    }
}

fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Levels inside a host, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inside {
    pub(super) shape: HostShape,
    /// The objects that form each level, such as `L3, package`.
    pub(super) names: Vec<String>,
}

impl Host {
    /// The levels of the host. Objects that merge nothing new are not a level; the last level has one group.
    pub(super) fn inside(&self) -> Inside {
        let mut kinds: BTreeMap<Kind, Vec<Range>> = BTreeMap::new();
        self.objects.iter().for_each(|object| kinds.entry(object.kind).or_default().push(object.range));
        let largest = |ranges: &[Range]| ranges.iter().map(|(first, end)| end - first).max();
        // Larger objects are further out; of nested groups, those with smaller depth.
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
    /// The largest range so far that contains each slot. Since ranges are nested, all its slots share it.
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

    /// Adds the level with a single group, if missing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_names_take_precedence_over_prefixes() {
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
