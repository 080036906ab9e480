//! `IB-SUBNET-nodes.txt` of netloc 2.0 to 2.9, as `netloc_ib_extract_dats` writes it: nodes, edges and the path of every ordered pair of hosts.
//!
//! Line by line: version, subnet, folder of hwloc, number of nodes; a line for every node, a line for every node with its edges, a line with
//! partitions, and paths until the end. Fields are separated by commas, and descriptions may hold some themselves. A folder
//! with the file of one subnet is read like that file.

mod records;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use hopmap_model::InputPath;
use hopmap_text::Lines;

use super::ibnetdiscover::entries;
use super::reader::{Sample, malformed, one_file};
use super::{ImportError, ImportParams, Imported, finish, units};
use records::Paths;
use records::Records;

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>, ImportError> {
    one_file(&file(path)?)
}

/// Whether a file has such a name: `IB-fe80:0000:0000:0000-nodes.txt`.
fn is_of_nodes(name: &str) -> bool {
    name.strip_prefix("IB-").is_some_and(|rest| rest.ends_with("-nodes.txt"))
}

/// The file itself, or the only one of a folder.
fn file(path: &Path) -> Result<PathBuf, ImportError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let mut found = entries(path)?;
    found.retain(|(name, _)| is_of_nodes(name));
    match found.as_slice() {
        [(_, file)] => Ok(file.clone()),
        [] => Err(malformed(path, None, "no subnet is here", "netloc writes `IB-SUBNET-nodes.txt`")),
        many => {
            let names: Vec<&str> = many.iter().map(|(name, _)| name.as_str()).collect();
            let problem = format!("there are several subnets: {}", names.join(", "));
            Err(malformed(path, None, problem, "a machine has one: name the file of one"))
        }
    }
}

/// A version, a subnet, anything, a number of nodes, and a node; or a folder with such a file.
pub(super) fn recognises(sample: &Sample) -> bool {
    if let Some(names) = &sample.entries {
        return names.iter().any(|name| is_of_nodes(name));
    }
    let Some(text) = sample.text() else { return false };
    let mut lines = text.lines().map(str::trim_end);
    let mut next = || lines.next().unwrap_or("");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (version, subnet, _, count, node) = (next(), next(), next(), next(), next());
    let is_node = || {
        let mut fields = node.split(',');
        fields.next().and_then(units::grouped_guid).is_some() && fields.next().is_some_and(is_number)
    };
    is_number(version) && units::grouped_guid(subnet).is_some() && is_number(count) && is_node()
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    let path = &file(path)?;
    let mut lines = Lines::open(path, "")?;
    let mut notes = Vec::new();
    let mut records = Records::read(path, &mut lines, &mut notes)?;
    let adapters = records.adapters();
    let place = records.cables.join_ports(&mut notes);
    let cables = std::mem::take(&mut records.cables);
    if cables.ends.is_empty() {
        let help = "netloc_ib_extract_dats writes a line of edges for every node behind the lines of nodes";
        return Err(malformed(path, None, "no link is listed", help));
    }
    let (mut fabric, link_of) = cables.fabric(path, &mut notes)?;
    fabric.forwarding =
        Paths::new(path, &records, &place, &link_of, &fabric).read(&mut lines, adapters, &mut notes)?;
    let (parts, more) = fabric.parts();
    notes.extend(more);
    Ok(Imported { system: finish::machine(parts, params, path)?, notes })
}
