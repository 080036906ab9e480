//! Files of hwloc, and files that say how a host differs from that of another file.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hopmap_text::FileError;

use super::super::ImportError;
use super::super::reader::malformed;
use super::super::xml::{Element, Xml};
use super::host::Host;

/// Bytes of a file.
const MOST_BYTES: u64 = 64 << 20;
/// Files of a folder.
const MOST_FILES: usize = 100_000;

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
    pub(super) fn load(&mut self, path: &Path) -> Result<Loaded, ImportError> {
        let mut chain: Vec<(PathBuf, Difference)> = Vec::new();
        let mut seen = HashSet::new();
        let mut file = path.to_owned();
        let mut loaded = loop {
            if let Some(loaded) = self.loaded.get(&file) {
                break loaded.clone();
            }
            if !seen.insert(file.clone()) {
                return Err(cycle(&file));
            }
            let text = hopmap_text::read_text(&file, MOST_BYTES)?;
            let xml = Xml::parse(&file, &text)?;
            let root = root(&file, &xml)?;
            if root.name() == "topologydiff" {
                let difference = Difference::new(&file, root)?;
                let reference = difference.reference.clone();
                chain.push((file, difference));
                file = reference;
            } else {
                let host = Host::new(&file, root, self.threads)?;
                let loaded = Loaded { name: host.name.clone(), host: Rc::new(host) };
                self.loaded.insert(file, loaded.clone());
                break loaded;
            }
        };
        for (file, difference) in chain.into_iter().rev() {
            loaded = difference.applied(&file, loaded)?;
            self.loaded.insert(file, loaded.clone());
        }
        Ok(loaded)
    }
}

fn cycle(path: &Path) -> ImportError {
    malformed(
        path,
        None,
        "this file is the difference to files that are the difference to it",
        "one of them has to be a whole topology: write it with `lstopo --of xml`",
    )
}

/// Every file of hwloc in a folder, by the name of the host.
pub(super) fn hosts_of(folder: &Path) -> Result<BTreeMap<String, PathBuf>, ImportError> {
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
            return Err(malformed(&other, None, problem, "keep the one that is right"));
        }
        if hosts.len() > MOST_FILES {
            let problem = format!("there are more than {MOST_FILES} files");
            return Err(malformed(folder, None, problem, "keep the hosts of one machine in a folder"));
        }
    }
    match hosts.is_empty() {
        false => Ok(hosts),
        true => Err(malformed(
            folder,
            None,
            "there are no files of hwloc in it",
            "they are called after their hosts, `HOST.xml` or `HOST.diff.xml`",
        )),
    }
}

/// The host that a file is called after.
pub(super) fn host_of(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".xml")?;
    let name = name.strip_suffix(".diff").unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

/// The root of a topology or a difference.
pub(super) fn root<'a>(path: &Path, xml: &'a Xml<'_>) -> Result<Element<'a>, ImportError> {
    let root = xml.root();
    match root.name() {
        "topology" | "topologydiff" => Ok(root),
        other => {
            let problem = format!("the first element is `{other}`, not `topology`");
            Err(malformed(path, root.line(), problem, "`lstopo --of xml` writes a topology"))
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
    fn new(path: &Path, root: Element<'_>) -> Result<Self, ImportError> {
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
                return Err(malformed(path, change.line(), problem, help));
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

    fn applied(self, path: &Path, mut host: Loaded) -> Result<Loaded, ImportError> {
        for (line, old, new) in self.names {
            let known = host.name.take().unwrap_or_default();
            if known != old {
                let reference = self.reference.display();
                let problem = format!("the host of {reference} is called `{known}`, not `{old}`");
                return Err(malformed(path, line, problem, "it is the difference to another file"));
            }
            host.name = Some(new).filter(|name| !name.is_empty());
        }
        Ok(host)
    }
}

/// The file that another is the difference to: beside it, with or without ending.
fn reference(path: &Path, root: Element<'_>) -> Result<PathBuf, ImportError> {
    let name = root.attribute("refname").unwrap_or_default();
    let wrong = |problem: String, help: &str| Err(malformed(path, root.line(), problem, help));
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
