//! Machines of named hosts: lists and files of hosts, the slots of each, and the shape that follows from them.

use hopmap_formats::host_file::{self, HostFile, Hosts, WITHOUT_SLOTS};
use hopmap_formats::host_list::{HOST_NAMES, help_on_name, is_host_name};
use hopmap_formats::host_names::named_twice;
use hopmap_formats::slots::{SLOTS, Slots};
use hopmap_model::SystemGraph;

use crate::network;
use crate::params::{MachineError, SyntheticParams};
use crate::tree::Shape;

/// The shape `auto` without named hosts.
const EXAMPLE: &str = "tree:2x4x2";

/// Parameters with a shape and the names of all hosts.
pub struct Named {
    /// The parameters, with a shape and the names of all hosts.
    pub params: SyntheticParams,
    /// What the host file has and the machine does not.
    pub warnings: Vec<String>,
    /// Slots of each host, where some have fewer than the shape.
    fewer: Option<Vec<u32>>,
}

impl Named {
    /// The machine without the slots that its hosts do not have.
    pub(crate) fn limited(&self, system: SystemGraph) -> SystemGraph {
        match &self.fewer {
            Some(slots) => system.with_slots_per_host(|host| slots[host]),
            None => system,
        }
    }
}

/// Checks what can be checked before a host file is read.
pub(crate) fn check(params: &SyntheticParams) -> Result<(), MachineError> {
    if params.hosts_file.is_some() && !params.hosts.is_empty() {
        return Err(MachineError::new("`hosts` and `hosts_file` are both given", "give one of them"));
    }
    let numbered = format!("{}0", params.host_prefix);
    match is_host_name(&numbered) {
        true => Ok(()),
        false => {
            let problem =
                format!("`host_prefix` gives invalid host names such as `{}`", numbered.escape_debug());
            Err(MachineError::new(problem, HOST_NAMES))
        }
    }
}

/// The parameters with every host by its name, and with a shape that has the slots of each.
pub fn resolved(params: &SyntheticParams) -> Result<Named, MachineError> {
    check(params)?;
    let (HostFile { hosts, remarks, .. }, place) = hosts(params)?;
    let mut named = SyntheticParams { hosts_file: None, ..params.clone() };
    let counts = counts(&hosts, &place, params)?;
    let most = counts.iter().flatten().max().copied().unwrap_or(params.slots.of_all());
    if params.shape == "auto" || (params.shape.is_empty() && (!hosts.is_empty() || most > 0)) {
        named.shape = shape(&hosts, &counts, most)?;
    } else if params.shape.is_empty() {
        let help =
            "give `shape`, such as `tree:40x16`, or `hosts`, such as `node[01-16]`, and the `slots` of each";
        return Err(MachineError::new("`shape` is missing, and no hosts are named", help));
    } else if !params.slots.is_empty() {
        fit(&mut named, most)?;
    }
    named.slots = Slots::default();
    let all = if hosts.is_empty() { 0 } else { slots_of_hosts(&named)? };
    let slots: Vec<u32> = counts.iter().map(|count| count.map_or(all, |count| count.min(all))).collect();
    let mut warnings: Vec<String> = remarks.iter().map(|remark| format!("{place}: {remark}")).collect();
    if params.hosts_file.is_some() {
        warnings.extend(ignored_slots(&hosts, &slots, &place));
    }
    named.hosts = hosts.into_iter().map(|(name, _)| name).collect();
    let fewer = slots.iter().any(|&count| count < all).then_some(slots);
    Ok(Named { params: named, warnings, fewer })
}

/// The slots of every host that are given, or in the host file.
fn counts(hosts: &Hosts, place: &str, params: &SyntheticParams) -> Result<Vec<Option<u32>>, MachineError> {
    let given = params.slots.of_hosts("`slots`", hosts, place, params.hosts_file.is_none());
    let given = given.map_err(|problem| MachineError::new(problem, SLOTS))?;
    Ok(given.into_iter().zip(hosts).map(|(given, (_, of_file))| given.or(*of_file)).collect())
}

/// The named hosts, and where they are named. Their names are checked here, so that no launcher is the first to refuse one.
fn hosts(params: &SyntheticParams) -> Result<(HostFile, String), MachineError> {
    let (file, place) = match &params.hosts_file {
        Some(file) => {
            let read = host_file::read(file.path());
            let read = read.map_err(|error| MachineError::new(error.to_string(), error.help_text()))?;
            (read, format!("`{}`", file.path().display()))
        }
        None => {
            let hosts = host_file::expand_list(&params.hosts.join("\n")).map_err(|error| {
                MachineError::new(format!("`hosts` is not a host list: {error}"), error.hint)
            });
            (HostFile { hosts: hosts?, ..HostFile::default() }, "`hosts`".to_owned())
        }
    };
    let names: Vec<&str> = file.hosts.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(host) = names.iter().position(|name| !is_host_name(name)) {
        let line = file.lines.get(host).map_or(String::new(), |line| format!(", line {line},"));
        let problem = format!("{place}{line} has the invalid host name `{}`", names[host].escape_debug());
        return Err(MachineError::new(problem, help_on_name(names[host])));
    }
    if let Some(twice) = named_twice(&names) {
        return Err(MachineError::new(format!("{place} has the host {twice}"), "name every host once"));
    }
    Ok((file, place))
}

/// A warning if a host file gives other numbers of slots than the machine has.
fn ignored_slots(hosts: &Hosts, slots: &[u32], place: &str) -> Option<String> {
    let with_number =
        hosts.iter().zip(slots).filter_map(|((name, of_file), slots)| Some((name, (*of_file)?, slots)));
    let mut others = with_number.filter(|(_, of_file, slots)| of_file != *slots);
    let (name, of_file, slots) = others.next()?;
    let more = match others.count() {
        0 => String::new(),
        1 => ", and another number for 1 more host".to_owned(),
        more => format!(", and other numbers for {more} more hosts"),
    };
    Some(format!("the machine has {slots} slots per host, but {place} gives {of_file} for `{name}`{more}"))
}

/// One switch with all hosts, and the most slots that one has.
fn shape(hosts: &Hosts, counts: &[Option<u32>], most: u32) -> Result<String, MachineError> {
    if hosts.is_empty() {
        return match most {
            0 => Ok(EXAMPLE.to_owned()),
            _ => Err(MachineError::new(
                format!("`slots` is {most}, but no hosts are named"),
                "name them, such as `hosts = \"node[01-16]\"`, or give a `shape`, such as `tree:40x16`",
            )),
        };
    }
    if let Some(host) = counts.iter().position(Option::is_none) {
        let problem = match most {
            0 => "the named hosts have no number of slots".to_owned(),
            _ => format!("`{}` has no number of slots, but other hosts have one", hosts[host].0),
        };
        let help = match most {
            0 => "give `slots`, such as `slots = 40`, or a `shape`, such as `tree:40x8x2`",
            _ => WITHOUT_SLOTS,
        };
        return Err(MachineError::new(problem, help));
    }
    Ok(match hosts.len() {
        1 => format!("tree:{most}"),
        hosts => format!("tree:{most}x{hosts}"),
    })
}

/// Gives the hosts of a network their slots, or checks that those of the shape have as many.
fn fit(params: &mut SyntheticParams, most: u32) -> Result<(), MachineError> {
    if network::of(params)?.is_some() && params.cores.is_empty() {
        params.cores = vec![most];
        return Ok(());
    }
    let has = slots_of_hosts(params)?;
    if has == most {
        return Ok(());
    }
    let shape = &params.shape;
    let problem = format!("`slots` is {most}, but a host of shape `{shape}` has {has}");
    Err(MachineError::new(problem, "omit `slots`, or change the shape"))
}

/// Slots of every host of a shape.
fn slots_of_hosts(params: &SyntheticParams) -> Result<u32, MachineError> {
    Ok(match network::of(params)? {
        Some(_) => params.cores.iter().fold(1, |all: u32, &cores| all.saturating_mul(cores)),
        None => Shape::new(params)?.cores,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
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
        // Without hosts it is the example, and `--hosts=` names none.
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
        let warning =
            |text: &str, slots| resolved(&params(with(text, slots))).unwrap().warnings.first().cloned();
        assert_eq!(warning("a:2\nb:2\n", 2), None);
        let file = path.display();
        assert_eq!(
            warning("a\na\na\nb:5\nc:6\n", 5),
            Some(format!(
                "the machine has 5 slots per host, but `{file}` gives 3 for `a`, and another number for 1 more host"
            ))
        );
        let mut shaped = with("a:8\nb:8\n", 0);
        shaped["shape"] = json!("tree:4x2");
        assert_eq!(
            resolved(&params(shaped)).unwrap().warnings.first().cloned(),
            Some(format!(
                "the machine has 4 slots per host, but `{file}` gives 8 for `a`, and another number for 1 more host"
            ))
        );
        let message_of = |text: &str| message(with(text, 0));
        assert_eq!(message_of("a:64\nb\n"), "`b` has no number of slots, but other hosts have one");
        assert!(message(with("a\nb[\n", 2)).contains(":2:2: unclosed bracket"));
        assert!(message(with("# none\n", 2)).ends_with(": no hosts are given"));
        assert!(message(with(" ", 2)).ends_with(": it is empty"));
        std::fs::remove_file(&path).unwrap();
        assert!(message(json!({ "shape": "auto", "hosts_file": path })).contains(": cannot be read: "));
    }

    /// They had to be given as one number for all, and small hosts got as many ranks as large ones.
    #[test]
    fn hosts_may_have_different_numbers_of_slots() {
        let slots = |system: &SystemGraph| system.hosts().map(|(_, _, slots)| slots).collect::<Vec<_>>();
        for with in [
            json!({ "hosts": "n[1-3]", "slots": [8, 4, 4] }),
            json!({ "hosts": "n[1-3]", "slots": "8,4(x2)" }),
            json!({ "hosts": "n1:8,n[2-3]:4" }),
            json!({ "hosts": "n1 8 n2 4 n3 4", "shape": "tree:8x3" }),
            json!({ "hosts": "n[1-3]", "shape": "ring:3", "slots": "8,4,4" }),
        ] {
            let system = machine(with.clone());
            system.check().unwrap();
            assert_eq!((slots(&system), hosts(&system)), (vec![8, 4, 4], vec!["n1", "n2", "n3"]), "{with}");
        }
        let wrong = json!({ "hosts": "n[1-3]", "slots": "8,4" });
        assert_eq!(message(wrong), "`slots` has 2 numbers, but `hosts` has 3 hosts");
        let Some(data) = hopmap_test_support::given_data() else { return };
        let file = json!({ "hosts_file": data.join("reports/hostfile-het") });
        assert_eq!(slots(&machine(file.clone())), [8, 4, 4]);
        assert_eq!(resolved(&params(file)).unwrap().warnings, [""; 0]);
    }

    #[test]
    fn named_hosts_need_no_shape() {
        let with = json!({ "hosts": "n[1-3]", "slots": 4 });
        assert_eq!(machine(with), machine(json!({ "shape": "auto", "hosts": "n[1-3]", "slots": 4 })));
        assert_eq!(message(json!({})), "`shape` is missing, and no hosts are named");
        assert_eq!(message(json!({ "slots": 4 })), "`slots` is 4, but no hosts are named");
    }

    /// Only launch files refused such names, after the search.
    #[test]
    fn invalid_and_repeated_host_names_are_refused_with_the_machine() {
        let named = |hosts: &str| message(json!({ "hosts": hosts, "slots": 1 }));
        assert_eq!(named("a,b*2"), "`hosts` has the invalid host name `b*2`");
        assert_eq!(named("a,_b"), "`hosts` has the invalid host name `_b`");
        assert_eq!(named("a,n[1-2],n2"), "`hosts` has the host `n2` twice");
        assert_eq!(named("n1,n1.x.org"), "`hosts` has the host `n1` and `n1.x.org`, which are one host");
        assert_eq!(named("a:1,b:4"), "`hosts` gives `b` 4 slots, but `slots` 1");
        assert_eq!(
            message(json!({ "shape": "mesh:2x2", "host_prefix": "my host" })),
            "`host_prefix` gives invalid host names such as `my host0`"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        std::fs::write(&path, "a slots=2\nb*c slots=2\n").unwrap();
        assert!(
            message(json!({ "hosts_file": path })).ends_with("`, line 2, has the invalid host name `b*c`")
        );
        // They are read, but launch files have no form for them.
        for address in ["fe80::1", "[fe80::1]", "fe80::1%eth0"] {
            let error = synthetic(&params(json!({ "hosts": address, "slots": 1 }))).unwrap_err();
            let name = address.trim_matches(['[', ']']);
            assert_eq!(error.to_string(), format!("`hosts` has the invalid host name `{name}`"));
            let help = miette::Diagnostic::help(&error).unwrap().to_string();
            assert!(help.ends_with("name the host by its name"), "{help}");
        }
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
