//! Machines of named hosts: lists and files of hosts, the slots of each, and the shape that follows from them.

use std::path::Path;

use hopmap_formats::host_file;
use hopmap_formats::host_list::{self, HostListError};
use hopmap_model::read_input;

use super::network;
use super::tree::Shape;
use crate::MachineError;
use crate::params::SyntheticParams;

/// Most bytes of a host file.
const MAX_BYTES: u64 = 1 << 28;
/// The shape `auto` without named hosts.
const EXAMPLE: &str = "tree:2x4x2";

/// Checks what can be checked before a host file is read.
pub(super) fn check(params: &SyntheticParams) -> Result<(), MachineError> {
    match params.hosts_file.is_some() && !params.hosts.is_empty() {
        true => Err(MachineError::new("`hosts` and `hosts_file` are both given", "give one of them")),
        false => Ok(()),
    }
}

/// The parameters with every host by its name, and with a shape that has the slots of each.
pub(super) fn resolved(params: &SyntheticParams) -> Result<SyntheticParams, MachineError> {
    check(params)?;
    let hosts = match &params.hosts_file {
        Some(file) => of_file(file.path())?,
        None => {
            let names =
                host_list::expand(&params.hosts.join("\n")).map_err(|error| wrong("`hosts`", &error))?;
            names.into_iter().map(|name| (name, None)).collect()
        }
    };
    let mut named = SyntheticParams { hosts_file: None, ..params.clone() };
    if params.shape == "auto" {
        named.shape = shape(&hosts, params.slots)?;
    } else if params.slots > 0 {
        fit(&mut named)?;
    }
    named.slots = 0;
    named.hosts = hosts.into_iter().map(|(name, _)| name).collect();
    Ok(named)
}

type Hosts = Vec<(String, Option<u32>)>;

fn wrong(place: &str, error: &HostListError) -> MachineError {
    MachineError::new(format!("{place} is not a host list: {error}"), error.hint.clone())
}

fn of_file(path: &Path) -> Result<Hosts, MachineError> {
    let place = format!("`{}`", path.display());
    let bytes = read_input(path, MAX_BYTES)
        .map_err(|error| MachineError::new(format!("cannot read {place}: {error}"), ""))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| MachineError::new(format!("{place} is not a text file"), "give a host file"))?;
    let hosts = host_file::expand(&text).map_err(|error| wrong(&place, &error))?;
    match hosts.is_empty() {
        true => Err(MachineError::new(format!("{place} names no hosts"), "")),
        false => Ok(hosts),
    }
}

/// One switch with all hosts.
fn shape(hosts: &[(String, Option<u32>)], slots: u32) -> Result<String, MachineError> {
    let Some((first, first_slots)) = hosts.first() else {
        return match slots {
            0 => Ok(EXAMPLE.to_owned()),
            _ => Err(MachineError::new(
                format!("`slots` is {slots}, but no hosts are named"),
                "name them, such as `hosts = \"node[01-16]\"`, or give a `shape`, such as `tree:40x16`",
            )),
        };
    };
    if slots == 0
        && let Some((other, _)) = hosts.iter().find(|(_, slots)| slots != first_slots)
    {
        let problem = format!("`{first}` and `{other}` have different numbers of slots");
        return Err(MachineError::new(problem, "give `slots`, the number that every host has"));
    }
    let slots = Some(slots).filter(|&slots| slots > 0).or(*first_slots).ok_or_else(|| {
        let problem = "the named hosts have no number of slots";
        MachineError::new(problem, "give `slots`, such as `slots = 40`, or a `shape`, such as `tree:40x8x2`")
    })?;
    Ok(match hosts.len() {
        1 => format!("tree:{slots}"),
        hosts => format!("tree:{slots}x{hosts}"),
    })
}

/// Gives the hosts of a network their slots, or checks that those of the shape have as many.
fn fit(params: &mut SyntheticParams) -> Result<(), MachineError> {
    let has = match network::of(params)? {
        Some(_) if params.cores.is_empty() => {
            params.cores = vec![params.slots];
            return Ok(());
        }
        Some(_) => params.cores.iter().fold(1, |all: u32, &cores| all.saturating_mul(cores)),
        None => Shape::new(params)?.cores,
    };
    if has == params.slots {
        return Ok(());
    }
    let (shape, slots) = (&params.shape, params.slots);
    let problem = format!("`slots` is {slots}, but a host of shape `{shape}` has {has}");
    Err(MachineError::new(problem, "omit `slots`, or change the shape"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use hopmap_model::SystemGraph;
    use serde_json::{Value, json};

    fn params(with: Value) -> SyntheticParams {
        serde_json::from_value(with).unwrap()
    }

    fn machine(with: Value) -> SystemGraph {
        synthetic(&params(with)).unwrap()
    }

    fn message(with: Value) -> String {
        synthetic(&params(with)).unwrap_err().to_string()
    }

    fn hosts(system: &SystemGraph) -> Vec<&str> {
        system.hosts().map(|(node, _, _)| system.nodes[node as usize].name.as_str()).collect()
    }

    #[test]
    fn named_hosts_and_their_slots_are_a_machine() {
        let system = machine(json!({ "shape": "auto", "hosts": "node[08-10]", "slots": 4 }));
        assert_eq!(hosts(&system), ["node08", "node09", "node10"]);
        assert_eq!(system, machine(json!({ "shape": "tree:4x3", "hosts": ["node08", "node[09-10]"] })));
        let one = machine(json!({ "shape": "auto", "hosts": "n1", "slots": 4 }));
        assert_eq!((one.slots.len(), one.links.len()), (4, 0));
        // Without hosts it is the example, and `-p hosts=` names none.
        assert_eq!(
            machine(json!({ "shape": "auto", "hosts": "" })),
            machine(json!({ "shape": "tree:2x4x2" }))
        );
        let mesh = json!({ "shape": "mesh:2x2", "hosts": "n[1-4]", "slots": 8 });
        assert_eq!(machine(mesh).slots.len(), 32);
    }

    #[test]
    fn a_host_file_names_hosts_and_slots() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let with = |text: &str, slots: u32| {
            std::fs::write(&path, text).unwrap();
            json!({ "shape": "auto", "hosts_file": path, "slots": slots })
        };
        let named = machine(json!({ "shape": "tree:2x2", "hosts": "a,b" }));
        assert_eq!(machine(with("a slots=2\nb slots=2\n", 0)), named);
        assert_eq!(machine(with("a\na\nb\nb\n", 0)), named);
        assert_eq!(machine(with("a:64\nb:48\n", 2)), named);
        assert_eq!(message(with("a:64\nb:48\n", 0)), "`a` and `b` have different numbers of slots");
        assert!(message(with("a\nb[\n", 2)).contains("is not a host list: host list, line 2, column 2"));
        assert!(message(with("# none\n", 2)).ends_with("names no hosts"));
        std::fs::remove_file(&path).unwrap();
        assert!(message(json!({ "shape": "auto", "hosts_file": path })).starts_with("cannot read `"));
    }

    #[test]
    fn hosts_and_a_shape_that_contradict_each_other_are_refused() {
        assert_eq!(
            message(json!({ "shape": "tree:2x16", "hosts": "n[01-12]" })),
            "shape `tree:2x16` has 16 hosts, but 12 are named"
        );
        assert_eq!(
            message(json!({ "shape": "tree:2x4", "slots": 40 })),
            "`slots` is 40, but a host of shape `tree:2x4` has 2"
        );
        assert_eq!(
            message(json!({ "shape": "mesh:2x2", "cores": [4, 2], "slots": 4 })),
            "`slots` is 4, but a host of shape `mesh:2x2` has 8"
        );
        assert_eq!(
            message(json!({ "shape": "auto", "hosts": "n[01-12]" })),
            "the named hosts have no number of slots"
        );
        assert_eq!(message(json!({ "shape": "auto", "slots": 4 })), "`slots` is 4, but no hosts are named");
        assert_eq!(
            message(json!({ "shape": "auto", "hosts": "n1", "hosts_file": "x" })),
            "`hosts` and `hosts_file` are both given"
        );
        assert!(
            message(json!({ "shape": "auto", "hosts": "n[1-", "slots": 1 }))
                .starts_with("`hosts` is not a host list")
        );
    }
}
