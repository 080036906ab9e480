//! Files of hwloc, and files that say how a host differs from that of another file; the names of hosts that they stand for, and the
//! levels inside hosts.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hopmap_model::InputPath;
use hopmap_text::FileError;

use super::host::{Host, Range};
use super::kind::Kind;
use crate::import::Result;
use crate::import::format::{Sample, malformed};
use crate::import::xml::{Element, Xml, first_element};

/// Bytes of a file.
const MOST_BYTES: u64 = 64 << 20;
/// Files of a folder.
const MOST_FILES: usize = 100_000;

/// The cores of a host, and which of them are near each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct HostShape {
    /// What the cores are called: logical numbers, rising.
    pub(crate) cores: Vec<u32>,
    /// By level, innermost first, the group of every core. On the last level all cores are together.
    pub(crate) groups: Vec<Vec<u32>>,
}

/// Every file of a folder that says what the hosts of a fabric are like inside, and those that they are differences to.
pub(crate) fn files_of_hosts(folder: &Path) -> Result<Vec<InputPath>> {
    let mut files: BTreeSet<PathBuf> = hosts_of(folder)?.into_values().collect();
    let mut loader = Loader::new(false);
    for file in &files {
        let head = Sample::new(file)?;
        // Whole topologies name no other file; there is no need to read all of them.
        if head.text().and_then(first_element) != Some("topology") {
            loader.load(file)?;
        }
    }
    files.extend(loader.files().map(Path::to_owned));
    Ok(files.iter().map(|file| named(file)).collect())
}

/// A file whose name says of which host it is, or which one another is the difference to.
pub(super) fn named(file: &Path) -> InputPath {
    InputPath::named(file, format!("hwloc/{}", file.file_name().unwrap_or_default().to_string_lossy()))
}

/// The names that the files of a folder are called after.
pub(crate) fn names_of_hosts(folder: &Path) -> Result<Vec<String>> {
    Ok(hosts_of(folder)?.into_keys().collect())
}

/// What the hosts of a fabric are like inside, by their names; slots are cores, or hardware threads.
pub(crate) fn hosts(folder: &Path, threads: bool) -> Result<BTreeMap<String, HostShape>> {
    let mut loader = Loader::new(threads);
    let shape = |(name, file): (String, PathBuf)| Ok((name, loader.load(&file)?.host.inside().shape));
    hosts_of(folder)?.into_iter().map(shape).collect()
}

/// Reads hosts, every file once.
pub(super) struct Loader {
    threads: bool,
    loaded: BTreeMap<PathBuf, Loaded>,
}

/// A host. Differences change its name only: what hwloc can say as a difference does not touch processors.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) name: Option<String>,
    pub(super) host: Rc<Host>,
}

impl Loader {
    pub(super) fn new(threads: bool) -> Self {
        Self { threads, loaded: BTreeMap::new() }
    }

    /// Every file that was read.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.loaded.keys().map(PathBuf::as_path)
    }

    /// The host of a file, which may be the difference to another one, and so on.
    pub(super) fn load(&mut self, path: &Path) -> Result<Loaded> {
        let mut chain: Vec<(PathBuf, Difference)> = Vec::new();
        let mut seen = HashSet::new();
        let mut file = path.to_owned();
        let mut loaded = loop {
            if let Some(loaded) = self.loaded.get(&file) {
                break loaded.clone();
            }
            if !seen.insert(file.clone()) {
                let problem = "this file is the difference to files that are the difference to it";
                let help = "one of them has to be a whole topology: write it with `lstopo --of xml`";
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
        let text = hopmap_text::read_text(file, MOST_BYTES)?;
        let xml = Xml::parse(&text)?;
        let root = root(&xml)?;
        Ok(match root.name() {
            "topologydiff" => Content::Difference(Difference::new(file, root)?),
            _ => Content::Host(Host::new(root, self.threads)?),
        })
    }
}

/// What is in a file of hwloc.
enum Content {
    Host(Host),
    Difference(Difference),
}

/// Every file of hwloc in a folder, by the name of the host.
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
            let problem = format!("there are a whole topology and a difference of host `{host}`");
            return Err(malformed(None, problem, "keep the one that is right").in_file(&other));
        }
        if hosts.len() > MOST_FILES {
            let problem = format!("there are more than {MOST_FILES} files");
            return Err(malformed(None, problem, "keep the hosts of one machine in a folder").in_file(folder));
        }
    }
    match hosts.is_empty() {
        false => Ok(hosts),
        true => {
            let help = "they are called after their hosts, `HOST.xml` or `HOST.diff.xml`";
            Err(malformed(None, "there are no files of hwloc in it", help).in_file(folder))
        }
    }
}

/// The host that a file is called after.
pub(super) fn host_of(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".xml")?;
    let name = name.strip_suffix(".diff").unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// The root of a topology or a difference.
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

/// How a host differs from another.
struct Difference {
    reference: PathBuf,
    /// Names of the host, old and new.
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
                let help = "only attributes may differ (type 0): write the whole topology of the host with `lstopo --of xml`";
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
                let problem = format!("the host of {reference} is called `{known}`, not `{old}`");
                return Err(malformed(line, problem, "it is the difference to another file"));
            }
            host.name = Some(new).filter(|name| !name.is_empty());
        }
        Ok(host)
    }
}

/// The file that another is the difference to: beside it, with or without ending.
fn reference(path: &Path, root: Element<'_>) -> Result<PathBuf> {
    let name = root.attribute("refname").unwrap_or_default();
    let wrong = |problem: String, help: &str| Err(root.wrong(problem, help));
    let Some(file) = Path::new(name).file_name().and_then(OsStr::to_str) else {
        return wrong(
            "`refname` does not say what file this is the difference to".into(),
            "it names a file beside this one",
        );
    };
    let found = [file.to_owned(), format!("{file}.xml"), format!("{file}.diff.xml")]
        .map(|file| path.with_file_name(file))
        .into_iter()
        .find(|file| file.is_file());
    match found {
        Some(file) => Ok(file),
        None => wrong(format!("there is no file `{file}` beside it"), "put both into one folder"),
    }
}

/// The names that files are called after.
pub(in crate::import) struct Names<'a> {
    whole: BTreeSet<&'a str>,
    /// By what stands before the first dot, where only one file has it.
    short: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Names<'a> {
    pub(in crate::import) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self { whole: BTreeSet::new(), short: BTreeMap::new() };
        for name in names {
            found.whole.insert(name);
            found.short.entry(short(name)).and_modify(|other| *other = None).or_insert(Some(name));
        }
        found
    }

    /// The file of a host: the one called exactly so, else the one that is called so up to the first dot.
    pub(in crate::import) fn find(&self, host: &str) -> Option<&'a str> {
        let whole = self.whole.get(host).copied();
        whole.or_else(|| self.short.get(short(host)).copied().flatten())
    }
}

fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

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
