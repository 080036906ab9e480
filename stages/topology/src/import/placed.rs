//! Hosts with the names of the switches above them: what topograph, schedulers and cloud providers know of a
//! training cluster.
//!
//! Formats: JSON of topograph's graph engine, a map from hosts to switches as JSON, and label lists as CSV. All
//! give a tree: every host is below its accelerator domain (hosts whose GPUs share an `NVLink` fabric, in some of them
//! by sub-domain), that below the leaf switch, and so on. What has no common switch is connected by an additional one on top.

mod labels;
mod levels;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use csv::{ReaderBuilder, StringRecord, Trim};
use hopmap_text::FileError;
use serde::Deserialize;
use serde_json::Value;

use super::finish::machine;
use super::format::{Sample, malformed, some};
use super::slurm_tree::{Switch, parts};
use super::{ImportError, ImportParams, Imported, Result};
use labels::{Column, DOMAIN, DOMAIN_LABELS, LEAF, SUB_DOMAIN, SUB_DOMAIN_LABELS, may_be_domain};
use levels::{PlacedHost, complete, unused};

/// Name of the top switch that is added.
const TOP: &str = "network";

/// The answer of topograph's graph engine: `pkg/topology/instances.go` there.
#[derive(Deserialize)]
struct Instances {
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    id: String,
    #[serde(default)]
    network_layers: Option<Vec<String>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    /// The labels in topograph's first version, and an object `gpu` with the state of every GPU.
    #[serde(default)]
    attributes: Option<BTreeMap<String, Value>>,
}

impl Instance {
    fn placed(self, unread: &mut BTreeSet<String>) -> PlacedHost {
        let attributes = self.attributes.unwrap_or_default().into_iter();
        let mut labels = self.labels.unwrap_or_default();
        labels.extend(attributes.filter_map(|(key, value)| Some((key, value.as_str()?.to_owned()))));
        labels.retain(|_, value| !value.is_empty());
        let of = |keys: &[&str]| keys.iter().find_map(|key| labels.get(*key)).cloned();
        let sub_domain = of(&SUB_DOMAIN_LABELS).map(|name| (SUB_DOMAIN, name));
        let domain = of(&DOMAIN_LABELS).map(|name| (DOMAIN, name));
        let layers = (LEAF..).zip(self.network_layers.unwrap_or_default());
        unread.extend(labels.into_keys().filter(|label| may_be_domain(label)));
        let above = sub_domain.into_iter().chain(domain).chain(layers).collect();
        PlacedHost { name: self.id, line: None, above }
    }
}

/// A JSON object that begins with a list of instances.
pub(super) fn recognises_topograph(sample: &Sample) -> bool {
    sample.text().and_then(after_brace).is_some_and(|rest| {
        let list = rest.strip_prefix("\"instances\"").map(str::trim_start);
        list.and_then(|list| list.strip_prefix(':')).is_some_and(|list| list.trim_start().starts_with('['))
    })
}

/// A JSON object that begins with a string for a name.
pub(super) fn recognises_map(sample: &Sample) -> bool {
    sample.text().and_then(after_brace).is_some_and(|rest| {
        let name =
            rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(_, rest)| rest.trim_start());
        name.and_then(|rest| rest.strip_prefix(':')).is_some_and(|value| value.trim_start().starts_with('"'))
    })
}

fn after_brace(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('{').map(str::trim_start)
}

/// The first line names a column of hosts and one of switches or domains.
pub(super) fn recognises_list(sample: &Sample) -> bool {
    let is_row = |line: &&str| !(line.trim().is_empty() || line.starts_with('#'));
    sample
        .text()
        .and_then(|text| text.lines().find(is_row))
        .is_some_and(|line| columns(line.split(',')).is_some())
}

/// The meaning of each column, if they are those of a label list.
fn columns<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<Column>> {
    let columns: Vec<Column> = names.map(Column::of).collect();
    let hosts = columns.iter().filter(|column| **column == Column::Host).count();
    let has_switches = columns.iter().any(|column| matches!(column, Column::Switch(_)));
    (hosts == 1 && has_switches).then_some(columns)
}

pub(super) fn read_topograph(text: &str, params: &ImportParams) -> Result<Imported> {
    let Instances { instances } = parsed(text, "topograph's graph engine writes `{\"instances\": […]}`")?;
    let mut unread = BTreeSet::new();
    let hosts: Vec<PlacedHost> = instances.into_iter().map(|instance| instance.placed(&mut unread)).collect();
    let mut notes = Vec::new();
    if !unread.is_empty() {
        let labels = some(&unread.into_iter().collect::<Vec<_>>());
        let known = DOMAIN_LABELS[0];
        notes.push(format!(
            "labels that may name accelerator domains are not read: {labels}; if one does, rename it to `{known}`"
        ));
    }
    if hosts.iter().all(|host| is_instance_id(&host.name)) {
        let first = hosts.first().map_or("", |host| &host.name);
        notes.push(format!(
            "hosts are named by topograph's `id`, which is the provider's instance ID (`{first}`), not the name of the \
             node: replace each by the name that the request to topograph has for it in `nodes`"
        ));
    }
    imported(hosts, notes, params)
}

/// Whether a name is an instance ID of AWS, of topograph's simulation, of OCI or of GCP.
fn is_instance_id(name: &str) -> bool {
    name.starts_with("i-")
        || name.starts_with("ocid1.")
        || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn read_map(text: &str, params: &ImportParams) -> Result<Imported> {
    // A list of pairs rather than a map, which would hide a host that is there twice.
    let Pairs(pairs) = parsed(text, "give the switch of every host: `{\"10.0.0.1\": \"switch-1\", …}`")?;
    let host =
        |(name, switch): (String, String)| PlacedHost { name, line: None, above: vec![(LEAF, switch)] };
    imported(pairs.into_iter().map(host).collect(), Vec::new(), params)
}

/// The members of an object in their order.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Pairs;

            fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.write_str("an object with the switch of every host")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str, help: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| malformed(Some(error.line()).filter(|&line| line > 0), error.to_string(), help))
}

pub(super) fn read_list(text: &str, params: &ImportParams) -> Result<Imported> {
    let help = "the first line names the columns: `host,accelerator,leaf,spine`";
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(text.as_bytes());
    let fault = |error: &csv::Error| {
        let line = error.position().and_then(|position| usize::try_from(position.line()).ok());
        malformed(line, format!("not a CSV file: {error}"), help)
    };
    let header = reader.headers().map_err(|error| fault(&error))?.clone();
    let Some(columns) = columns(header.iter()) else {
        return Err(malformed(1, "the columns are not those of a label list", help));
    };
    let mut notes = Vec::new();
    check_columns(&columns, &header, &mut notes)?;
    let mut hosts = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| fault(&error))?;
        let line = record.position().and_then(|position| usize::try_from(position.line()).ok());
        let mut host = PlacedHost { line, ..PlacedHost::default() };
        for (column, cell) in columns.iter().zip(&record) {
            match column {
                Column::Host => cell.clone_into(&mut host.name),
                // Of several domains the first counts.
                Column::Switch(level)
                    if !(cell.is_empty() || host.above.iter().any(|(other, _)| other == level)) =>
                {
                    host.above.push((*level, cell.to_owned()));
                }
                Column::Switch(_) | Column::Other => {}
            }
        }
        host.above.sort_unstable();
        hosts.push(host);
    }
    imported(hosts, notes, params)
}

/// Says which columns are not read. Only domains may have several, because topograph omits its own label for hosts
/// that have the one of the GPU operator.
fn check_columns(columns: &[Column], header: &StringRecord, notes: &mut Vec<String>) -> Result<()> {
    let all = |wanted| {
        let of = columns.iter().zip(header).filter(move |(column, _)| **column == wanted);
        of.map(|(_, name)| name.to_owned()).collect::<Vec<String>>()
    };
    for column in columns.iter().filter(|column| matches!(column, Column::Switch(_))) {
        let names = all(*column);
        if names.len() > 1 && *column != Column::Switch(DOMAIN) {
            let problem = format!("`{}` and `{}` name switches of the same level", names[0], names[1]);
            return Err(malformed(
                1,
                problem,
                "omit one, or rename it to `leaf`, `spine`, `core` or `tier-3`",
            ));
        }
    }
    let domains = all(Column::Switch(DOMAIN));
    if domains.len() > 1 {
        let names = some(&domains);
        notes.push(format!(
            "columns of accelerator domains: {names}; of each host the first one that is set counts"
        ));
    }
    let unread = all(Column::Other);
    if !unread.is_empty() {
        notes.push(format!("columns that are not read: {}", some(&unread)));
    }
    Ok(())
}

/// The machine of the hosts.
fn imported(mut hosts: Vec<PlacedHost>, mut notes: Vec<String>, params: &ImportParams) -> Result<Imported> {
    tell_domains_apart(&mut hosts, &mut notes);
    check(&hosts)?;
    let single: Vec<String> =
        hosts.iter().filter(|host| host.above.is_empty()).map(|host| host.name.clone()).collect();
    if !single.is_empty() {
        notes.push(format!("hosts below no switch, connected by the top switch alone: {}", some(&single)));
    }
    let listed = switches(&hosts);
    complete(&mut hosts, &listed, &mut notes).map_err(without_line)?;
    let mut switches = switches(&hosts);
    connect(&mut switches, &hosts, single.len(), &mut notes);
    let (parts, more) = parts(&switches).map_err(without_line)?;
    notes.extend(more);
    Ok(Imported { system: machine(parts, params)?, notes })
}

/// Gives sub-domains that several domains have the name of their domain as well. A domain with the name of its leaf
/// switch is that switch, as topograph has it for Google's sub-blocks.
fn tell_domains_apart(hosts: &mut [PlacedHost], notes: &mut Vec<String>) {
    let of = |host: &PlacedHost, level| {
        host.above.iter().find(|(at, _)| *at == level).map(|(_, name)| name.clone())
    };
    let mut domains: HashMap<String, BTreeSet<Option<String>>> = HashMap::new();
    for host in hosts.iter() {
        if let Some(name) = of(host, SUB_DOMAIN) {
            domains.entry(name).or_default().insert(of(host, DOMAIN));
        }
    }
    let mut same = Vec::new();
    for host in hosts {
        let (domain, leaf) = (of(host, DOMAIN), of(host, LEAF));
        for (level, name) in &mut host.above {
            let Some(domain) = domain.as_ref().filter(|_| *level == SUB_DOMAIN) else { continue };
            if name == domain || domains.get(name).is_some_and(|domains| domains.len() > 1) {
                *name = format!("{domain}/{name}");
            }
        }
        if let Some(domain) = domain.filter(|domain| leaf.as_ref() == Some(domain)) {
            host.above.retain(|(level, _)| *level != DOMAIN);
            same.push(domain);
        }
    }
    same.sort_unstable();
    same.dedup();
    if !same.is_empty() {
        let names = some(&same);
        notes.push(format!(
            "accelerator domains with the name of their leaf switch, which are the same here: {names}"
        ));
    }
}

/// Checks the names of hosts and switches.
fn check(hosts: &[PlacedHost]) -> Result<()> {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, PlacedHost { name, line, above }) in hosts.iter().enumerate() {
        let entry = index + 1;
        if name.is_empty() {
            return Err(malformed(*line, format!("host {entry} of the file has no name"), "name every host"));
        }
        if !seen.insert(name) {
            return Err(malformed(
                *line,
                format!("the host `{name}` is listed twice"),
                "list every host once",
            ));
        }
        if above.iter().any(|(_, switch)| switch.is_empty()) {
            let problem = format!("a switch above the host `{name}` has no name");
            return Err(malformed(*line, problem, "name every switch, from the leaf up, or omit it"));
        }
        let mut seen: HashSet<&str> = HashSet::new();
        if let Some((_, twice)) = above.iter().find(|(_, switch)| !seen.insert(switch)) {
            let problem = format!("`{twice}` is above itself at the host `{name}`");
            return Err(malformed(*line, problem, "give the switches of different layers different names"));
        }
    }
    Ok(())
}

/// The switches above the hosts.
fn switches(hosts: &[PlacedHost]) -> Vec<Switch> {
    let mut switches: Vec<Switch> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut below: HashSet<(usize, usize)> = HashSet::new();
    for PlacedHost { name, line, above } in hosts {
        let mut last: Option<usize> = None;
        for (_, switch) in above {
            let place = *places.entry(switch).or_insert_with(|| {
                let line = line.unwrap_or(0);
                switches.push(Switch { name: switch.clone(), line, ..Switch::default() });
                switches.len() - 1
            });
            match last.replace(place) {
                None => switches[place].hosts.push(name.clone()),
                Some(child) if below.insert((place, child)) => {
                    let child = switches[child].name.clone();
                    switches[place].switches.push(child);
                }
                Some(_) => {}
            }
        }
    }
    switches
}

/// Adds a switch above all those without one, of which `single` are above one host in no list.
fn connect(switches: &mut Vec<Switch>, hosts: &[PlacedHost], single: usize, notes: &mut Vec<String>) {
    let children: HashSet<&String> = switches.iter().flat_map(|switch| &switch.switches).collect();
    let names = switches.iter().map(|switch| &switch.name);
    let tops: Vec<String> = names.clone().filter(|name| !children.contains(name)).cloned().collect();
    if tops.len() == 1 {
        return;
    }
    let apart = tops.len().saturating_sub(single);
    if apart > 1 {
        notes
            .push(format!("{apart} parts without a common switch are connected by an additional top switch"));
    }
    let taken = hosts.iter().map(|host| &host.name).chain(names).cloned().collect();
    let alone = hosts.iter().filter(|host| host.above.is_empty()).map(|host| host.name.clone());
    let name = unused(TOP.to_owned(), &taken);
    switches.push(Switch { name, line: 0, switches: tops, hosts: alone.collect() });
}

/// JSON has no lines here.
fn without_line(error: ImportError) -> ImportError {
    match error {
        ImportError::File(error) if error.line == Some(0) => {
            ImportError::File(FileError { line: None, ..error })
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Format, hops, read, recognise};
    use hopmap_model::{NodeKind, SystemGraph};

    fn import(text: &str, format: Format) -> Result<Imported> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(recognise(file.path()).unwrap(), format);
        read(file.path(), &ImportParams::default())
    }

    fn fault(text: &str, format: Format) -> String {
        let ImportError::File(FileError { line, problem, .. }) = import(text, format).unwrap_err() else {
            unreachable!()
        };
        format!("{}{problem}", line.map(|line| format!("{line}: ")).unwrap_or_default())
    }

    fn hosts(system: &SystemGraph) -> Vec<&str> {
        let hosts = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
        hosts.map(|node| node.name.as_str()).collect()
    }

    const TOPOGRAPH: &str = r#"{"instances":[
        {"id":"node70","network_layers":["leaf-b","spine-a"],"labels":{"nvidia.com/gpu.clique":"nvl-2"}},
        {"id":"node7","network_layers":["leaf-a","spine-a"],"labels":{"network.topology.nvidia.com/accelerator":"nvl-1"}},
        {"id":"node8","network_layers":["leaf-a","spine-a"],"attributes":{"nvlink":"nvl-1"}},
        {"id":"node66","network_layers":["leaf-a","spine-a"]}]}"#;

    #[test]
    fn the_graph_of_topograph_is_a_tree_with_domains_below_leaves() {
        let Imported { system, notes } = import(TOPOGRAPH, Format::Topograph).unwrap();
        assert_eq!(hosts(&system), ["node7", "node8", "node66", "node70"]);
        assert_eq!(hops(&system, "node7", "node8"), Some(2));
        assert_eq!(hops(&system, "node7", "node66"), Some(4));
        assert_eq!(hops(&system, "node7", "node70"), Some(6));
        assert_eq!(notes, [lacks("hosts without an accelerator domain", "1 (`node66`)")]);
    }

    #[test]
    fn a_host_in_no_list_is_said_and_stays_reachable() {
        let text = r#"{"instances":[{"id":"a","network_layers":["l"]},{"id":"b","network_layers":["l"]},{"id":"c"}]}"#;
        let Imported { system, notes } = import(text, Format::Topograph).unwrap();
        assert_eq!(notes, ["hosts below no switch, connected by the top switch alone: 1 (`c`)"]);
        assert_eq!([hops(&system, "a", "b"), hops(&system, "a", "c")], [Some(2), Some(4)]);
        let text = r#"{"instances":[{"id":"a"}]}"#;
        assert_eq!(hosts(&import(text, Format::Topograph).unwrap().system), ["a"]);
    }

    fn lacks(what: &str, names: &str) -> String {
        format!("{what}: {names}; each has one of its own here, which groups with other hosts cross")
    }

    /// One host without a leaf put its spine on the level of leaf switches, which joined all leaves.
    #[test]
    fn a_host_without_a_switch_leaves_the_levels_of_others() {
        let areas = |text: &str, format| {
            let Imported { system, notes } = import(text, format).unwrap();
            let of = |level: &Vec<u32>| system.hosts().map(|(host, ..)| level[host as usize]).collect();
            (system.areas().iter().map(of).collect::<Vec<Vec<u32>>>(), hops(&system, "a", "c"), notes)
        };
        let list = |last: &str| format!("host,leaf,spine\na,l1,s1\nb,l1,s1\nc,l2,s1\nd,l3,s2\n{last}\n");
        let in_areas = |level: [u32; 5], above: [u32; 5]| vec![level.to_vec(), above.to_vec()];
        let (alone, below_s2) =
            (in_areas([0, 0, 2, 3, 4], [0, 0, 0, 3, 4]), in_areas([0, 0, 2, 3, 4], [0, 0, 0, 3, 3]));
        let top = "2 parts without a common switch are connected by an additional top switch".to_owned();
        for (last, expected, note) in [
            ("e,l3,s2", in_areas([0, 0, 2, 3, 3], [0, 0, 0, 3, 3]), None),
            ("e,l3,", in_areas([0, 0, 2, 3, 3], [0, 0, 0, 3, 3]), None),
            ("e,,s2", below_s2.clone(), Some(lacks("hosts without a leaf switch", "1 (`e`)"))),
            (
                "e,,",
                alone.clone(),
                Some("hosts below no switch, connected by the top switch alone: 1 (`e`)".to_owned()),
            ),
        ] {
            let notes = note.into_iter().chain([top.clone()]).collect();
            assert_eq!(areas(&list(last), Format::LabelList), (expected, Some(4), notes), "{last}");
        }
        let notes = vec![lacks("switches without a spine", "1 (`l4`)"), top.replace('2', "3")];
        assert_eq!(areas(&list("e,l4,"), Format::LabelList), (alone, Some(4), notes));
        // Topograph lists switches without their levels.
        let text = r#"{"instances":[{"id":"a","network_layers":["l1","s1"]},{"id":"b","network_layers":["l1","s1"]},
            {"id":"c","network_layers":["l2","s1"]},{"id":"d","network_layers":["l3","s2"]},{"id":"e","network_layers":["s2"]}]}"#;
        let notes = vec![lacks("hosts without a leaf switch", "1 (`e`)"), top];
        assert_eq!(areas(text, Format::Topograph), (below_s2, Some(4), notes));
    }

    #[test]
    fn names_of_added_switches_are_new() {
        let text = "host,leaf,spine\na,leaf-of-b,s1\nb,,s1\nleaf-of-b_,l2,s1\n";
        let Imported { system, .. } = import(text, Format::LabelList).unwrap();
        let switches = system.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
        let names: Vec<&str> = switches.map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["l2", "leaf-of-b", "leaf-of-b__", "s1"]);
    }

    #[test]
    fn a_map_of_switches_has_one_level_and_a_top() {
        let text = r#"{"10.0.0.1": "psw-1", "10.0.0.2": "psw-1", "10.0.0.10": "psw-2"}"#;
        let Imported { system, notes } = import(text, Format::SwitchMap).unwrap();
        assert_eq!(hosts(&system), ["10.0.0.1", "10.0.0.2", "10.0.0.10"]);
        assert_eq!(
            [hops(&system, "10.0.0.1", "10.0.0.2"), hops(&system, "10.0.0.1", "10.0.0.10")],
            [Some(2), Some(4)]
        );
        assert_eq!(notes, ["2 parts without a common switch are connected by an additional top switch"]);
        let twice = text.replace("10.0.0.10", "10.0.0.1");
        assert_eq!(fault(&twice, Format::SwitchMap), "the host `10.0.0.1` is listed twice");
    }

    #[test]
    fn label_lists_have_columns_in_any_order() {
        let text = "# from kubectl\nhost,spine,network.topology.nvidia.com/leaf,accelerator,gpus\n\
                    n1,s1,l1,d1,8\nn2,s1,l1,d1,8\nn10,s1,l2,,8\nn3,s1,l2,d2,8\n";
        let Imported { system, notes } = import(text, Format::LabelList).unwrap();
        assert_eq!(hosts(&system), ["n1", "n2", "n3", "n10"]);
        assert_eq!([hops(&system, "n1", "n2"), hops(&system, "n3", "n10")], [Some(2), Some(4)]);
        assert_eq!(notes[1..], [lacks("hosts without an accelerator domain", "1 (`n10`)")]);
        assert_eq!(fault("host,leaf\nn1,l1\nn1,l2\n", Format::LabelList), "3: the host `n1` is listed twice");
        assert_eq!(fault("host,leaf\n,l1\n", Format::LabelList), "2: host 1 of the file has no name");
        assert_eq!(fault("host,leaf\nn1\n", Format::LabelList).split(':').nth(1), Some(" not a CSV file"));
        assert_eq!(fault("host,leaf\n", Format::LabelList), "no hosts");
    }

    #[test]
    fn lists_from_windows_are_read() {
        let text = "\u{feff}host,leaf\r\nn1,l1\r\nn2,l1\r\n";
        let Imported { system, .. } = import(text, Format::LabelList).unwrap();
        assert_eq!((hosts(&system), hops(&system, "n1", "n2")), (vec!["n1", "n2"], Some(2)));
        let Imported { system, .. } =
            import("\u{feff}{\"a\": \"s\", \"b\": \"s\"}", Format::SwitchMap).unwrap();
        assert_eq!(hops(&system, "a", "b"), Some(2));
    }

    #[test]
    fn contradictions_are_one_message() {
        let instances = |list: &str| format!(r#"{{"instances":[{list}]}}"#);
        let of = |list: &str| fault(&instances(list), Format::Topograph);
        assert_eq!(of(r#"{"id":"a","network_layers":["s","s"]}"#), "`s` is above itself at the host `a`");
        assert_eq!(of(r#"{"id":"a","network_layers":[""]}"#), "a switch above the host `a` has no name");
        let circle = r#"{"id":"a","network_layers":["s","t"]},{"id":"b","network_layers":["t","s"]}"#;
        assert!(of(circle).contains("is below itself"), "{}", of(circle));
        assert!(
            of(r#"{"id":"a","network_layers":["b"]},{"id":"b","network_layers":["t"]}"#)
                .contains("`b` is a host here")
        );
        assert!(of(r#"{"id":3}"#).contains("expected a string"));
    }
}
