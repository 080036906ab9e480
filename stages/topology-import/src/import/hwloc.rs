//! The cores and caches of hosts described by hwloc: one host, this machine, or a folder with one file per
//! host.
//!
//! Slots are cores in the order of hwloc's logical indexes, which rank files of Open MPI and `hwloc-bind
//! core:N` use as well.

pub(super) mod folder;
mod host;
mod kind;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopmap_formats::natural_key;
use hopmap_model::{InputPath, Node};
use hopmap_process::{Limits, run};

use super::finish::{self, Parts};
use super::format::{Sample, note};
use super::xml::{Xml, first_element};
use super::{ImportError, ImportParams, Imported, Result};
use folder::{Inside, Loaded, Loader, Names, files_of_hosts, named};

pub(super) fn recognises(sample: &Sample) -> bool {
    let is_topology = |text: &str| matches!(first_element(text), Some("topology" | "topologydiff"));
    match &sample.entries {
        None => sample.text().is_some_and(is_topology),
        Some(entries) => {
            let first = entries.iter().find(|entry| folder::host_of(entry).is_some());
            let head = first.map(|entry| Sample::new(&sample.path.join(entry)));
            head.and_then(Result::ok).is_some_and(|head| head.text().is_some_and(is_topology))
        }
    }
}

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>> {
    if path.is_dir() {
        return files_of_hosts(path);
    }
    let mut loader = Loader::new(false);
    let own = loader.load(path)?.name.is_some_and(|name| is_name(&name));
    let machine = if own { "machine".into() } else { format!("machine {}", stem(path)) };
    let machine = InputPath::named(path, machine);
    let bases = loader.files().filter(|file| *file != path).map(named);
    Ok(std::iter::once(machine).chain(bases).collect())
}

/// Describes this machine.
pub(super) fn this_machine(params: &ImportParams) -> Result<Imported> {
    check(params)?;
    let (command, bytes) = describe()?;
    let path = Path::new(&command);
    let read = || {
        let xml = Xml::parse(hopmap_text::utf8(&bytes)?)?;
        let host = host::Host::new(folder::root(&xml)?, params.hardware_threads)?;
        one_host(path, &Loaded { name: host.name.clone(), host: host.into() }, params)
    };
    read().map_err(|error: ImportError| error.in_file(path))
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    check(params)?;
    match path.is_dir() {
        true => several_hosts(path, params),
        false => one_host(path, &Loader::new(params.hardware_threads).load(path)?, params),
    }
}

/// Rejects parameters that have no effect because hwloc defines the hosts.
fn check(params: &ImportParams) -> Result<()> {
    let help = "omit it; `intra_node_costs` sets the costs of levels inside hosts";
    params.refuse(
        &["slots", "hwloc", "every_host", "link_latency_s", "costs"],
        "hwloc defines the hosts",
        help,
    )
}

fn one_host(path: &Path, loaded: &Loaded, params: &ImportParams) -> Result<Imported> {
    let Inside { shape, names } = loaded.host.inside();
    let mut notes = loaded.host.notes.clone();
    notes.push(format!("levels inside hosts, innermost first: {}", names.join("; ")));
    let costs = costs_inside(loaded, &shape.groups, params, &mut notes);
    let name = loaded.name.clone().filter(|name| is_name(name)).unwrap_or_else(|| stem(path));
    let parts = Parts {
        nodes: vec![Node::host(name.clone())],
        shapes: BTreeMap::from([(name, shape)]),
        ..Parts::default()
    };
    let params = ImportParams { intra_node_costs: costs, hardware_threads: false, ..params.clone() };
    Ok(Imported { system: finish::machine(parts, &params)?, notes })
}

/// As given, by the distances of the file, or one step per level.
fn costs_inside(
    loaded: &Loaded,
    groups: &[Vec<u32>],
    params: &ImportParams,
    notes: &mut Vec<String>,
) -> Vec<f64> {
    if !params.intra_node_costs.is_empty() {
        return params.intra_node_costs.clone();
    }
    for distances in &loaded.host.distances {
        match distances.costs(groups) {
            Ok(None) => {}
            Ok(Some(found)) => {
                notes.push(format!("costs are derived from the distances between {}", distances.between));
                if let Some((least, most)) = found.uneven {
                    notes.push(format!(
                        "distances of one level range from {least} to {most}: using their mean"
                    ));
                }
                return found.costs;
            }
            Err(problem) => {
                notes.push(format!("ignoring the distances between {}: {problem}", distances.between));
            }
        }
    }
    notes.push("every level costs 1 more than the one inside; `intra_node_costs` sets actual costs".into());
    (1..=groups.len()).map(|level| level as f64).collect()
}

fn several_hosts(path: &Path, params: &ImportParams) -> Result<Imported> {
    let mut files = Loader::new(params.hardware_threads);
    let mut notes = Vec::new();
    let mut parts = Parts::default();
    let mut renamed = 0;
    for (name, file) in folder::hosts_of(path)? {
        let loaded = files.load(&file)?;
        renamed += usize::from(loaded.name.as_ref().is_some_and(|own| !is_same_host(own, &name)));
        notes.extend(loaded.host.notes.iter().map(|note| format!("{name}: {note}")));
        parts.shapes.insert(name.clone(), loaded.host.inside().shape);
        parts.nodes.push(Node::host(name));
    }
    parts.nodes.sort_by_cached_key(|node| (natural_key(&node.name), node.name.clone()));
    note(&mut notes, "hosts whose names differ from their files, named after the files", renamed);
    let depth = parts.shapes.values().map(|shape| shape.groups.len()).max().unwrap_or(1);
    let mut params = ImportParams { hardware_threads: false, ..params.clone() };
    if params.intra_node_costs.is_empty() {
        params.intra_node_costs = (1..=depth).map(|level| level as f64).collect();
        if parts.nodes.len() > 1 {
            params.intra_node_costs.push((depth + 1) as f64);
        }
        notes.push("every level costs 1 more than the one inside, the network 1 more than hosts; `intra_node_costs` sets actual costs".into());
    }
    Ok(Imported { system: finish::machine(parts, &params)?, notes })
}

fn is_same_host(one: &str, other: &str) -> bool {
    Names::new([one].into_iter()).find(other).is_some()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The host name in a file name.
fn stem(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let name = folder::host_of(&file).unwrap_or(&file);
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    match name.is_empty() {
        true => "host".into(),
        false => name.replace(is_odd, "-"),
    }
}

/// Names of the program of hwloc that describes a host.
pub const PROGRAMS: [&str; 3] = ["lstopo", "lstopo-no-graphics", "hwloc-ls"];
/// How long it may take. Large machines take a second.
const TIME: Duration = Duration::from_secs(30);

/// The XML of this machine, and the command that wrote it.
fn describe() -> Result<(String, Vec<u8>)> {
    first_of(&PROGRAMS)
}

/// The output of the first program that is installed.
fn first_of(programs: &[&str]) -> Result<(String, Vec<u8>)> {
    let limits = Limits { time: Some(TIME), ..Limits::default() };
    for program in programs {
        match run(Command::new(program).args(["--of", "xml"]), &limits) {
            Ok(output) => return Ok((format!("{program} --of xml"), output.stdout)),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(ImportError::Command(error)),
        }
    }
    Err(ImportError::NoHwloc)
}
