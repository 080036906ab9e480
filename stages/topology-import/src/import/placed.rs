//! Hosts with the names of the switches above them: what topograph, schedulers and cloud providers know of a
//! training cluster.
//!
//! Formats: JSON of topograph's graph engine, a map from hosts to switches as JSON, and label lists as CSV or as kubectl
//! prints them. All give a tree: every host is below its accelerator domain (hosts whose GPUs share an `NVLink` fabric, in some
//! of them by sub-domain), that below the leaf switch, and so on. What has no common switch is connected by an additional one on top.

mod labels;
mod levels;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hopmap_text::FileError;
use serde::Deserialize;
use serde_json::Value;

use super::foreign::{HELP_ON_LABELS, is_kubernetes};
use super::format::{Sample, malformed, some};
use super::slurm_tree::{Switch, parts};
use super::{ImportError, ImportParams, Imported, Result, csv_text, finish, json_text};
use labels::{
    Column, DOMAIN, DOMAIN_LABELS, HOSTS, LEAF, MACHINE, Missing, SUB_DOMAIN, SUB_DOMAIN_LABELS,
    may_be_domain,
};
use levels::{PlacedHost, complete, unused};
use table::{LABELS, Row};

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
    network_layers: Option<Vec<Option<String>>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, Option<String>>>,
    /// The labels in topograph's first version, and an object `gpu` with the state of every GPU.
    #[serde(default)]
    attributes: Option<BTreeMap<String, Value>>,
}

impl Instance {
    fn placed(self, unread: &mut BTreeSet<String>, missing: &mut Missing) -> PlacedHost {
        let attributes = self.attributes.unwrap_or_default().into_iter();
        let labels = self.labels.unwrap_or_default().into_iter();
        let labels = labels.chain(attributes.map(|(key, value)| (key, value.as_str().map(str::to_owned))));
        let is_read = |key: &str| DOMAIN_LABELS.iter().chain(&SUB_DOMAIN_LABELS).any(|known| *known == key);
        let labels: BTreeMap<String, String> = labels
            .filter_map(|(key, value)| {
                let value = value?;
                let value = if is_read(&key) { missing.set(&value)?.to_owned() } else { value };
                (!value.is_empty()).then_some((key, value))
            })
            .collect();
        let of = |keys: &[&str]| keys.iter().find_map(|key| labels.get(*key)).cloned();
        let sub_domain = of(&SUB_DOMAIN_LABELS).map(|name| (SUB_DOMAIN, name));
        let domain = of(&DOMAIN_LABELS).map(|name| (DOMAIN, name));
        let layers = (LEAF..).zip(self.network_layers.unwrap_or_default());
        let layers = layers.filter_map(|(level, name)| Some((level, missing.set(&name?)?.to_owned())));
        unread.extend(labels.into_keys().filter(|label| may_be_domain(label)));
        let above = sub_domain.into_iter().chain(domain).chain(layers).collect();
        PlacedHost { name: self.id, line: None, above }
    }
}

/// A JSON object that begins with a list of instances.
pub(super) fn recognises_topograph(sample: &Sample) -> bool {
    sample.text().map(json_text::own).as_deref().and_then(after_brace).is_some_and(|rest| {
        let list = rest.strip_prefix("\"instances\"").map(str::trim_start);
        list.and_then(|list| list.strip_prefix(':')).is_some_and(|list| list.trim_start().starts_with('['))
    })
}

/// A JSON object that begins with a string for a name.
pub(super) fn recognises_map(sample: &Sample) -> bool {
    let text = sample.text().map(json_text::own).filter(|text| !is_kubernetes(text));
    text.as_deref().and_then(after_brace).is_some_and(|rest| {
        let name =
            rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(_, rest)| rest.trim_start());
        name.and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|value| value.trim_start().starts_with(['"', 'n']))
    })
}

fn after_brace(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('{').map(str::trim_start)
}

/// The first line names a column of hosts and one of switches or domains.
pub(super) fn recognises_list(sample: &Sample) -> bool {
    sample.text().and_then(csv_text::names).is_some_and(|names| is_header_of_list(&names))
}

fn is_header_of_list(names: &[&str]) -> bool {
    Column::of_table(names, &HOSTS[1..]).is_some()
}

/// The lines of a label list that are no rows.
pub(super) fn others_of_list(text: &str) -> Result<Vec<usize>> {
    let host = |names: &[&str]| {
        Column::of_table(names, &HOSTS[1..])?.iter().position(|column| *column == Column::Host)
    };
    csv_text::others(text, host, |names| Column::names(names, &HOSTS[1..]), is_header_of_list)
}

pub(super) fn read_topograph(text: &str, params: &ImportParams) -> Result<Imported> {
    let Instances { instances } = parsed(text, "topograph's graph engine writes `{\"instances\": […]}`")?;
    let (mut unread, mut missing) = (BTreeSet::new(), Missing::default());
    let hosts = instances.into_iter().map(|instance| instance.placed(&mut unread, &mut missing));
    let hosts: Vec<PlacedHost> = hosts.collect();
    let mut notes = Vec::from_iter(missing.note());
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
    let mut missing = Missing::default();
    let host = |(name, switch): (String, Option<String>)| {
        let switch = switch.as_deref().and_then(|switch| missing.set(switch));
        PlacedHost {
            name,
            line: None,
            above: switch.map(|switch| (LEAF, switch.to_owned())).into_iter().collect(),
        }
    };
    let hosts = pairs.into_iter().map(host).collect();
    imported(hosts, missing.note().into_iter().collect(), params)
}

/// The members of an object in their order.
struct Pairs(Vec<(String, Option<String>)>);

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
    let (header, records) = csv_text::read(text, help)?;
    let header: Vec<&str> = header.iter().collect();
    let Some(columns) = Column::of_table(&header, &HOSTS[1..]) else {
        return Err(malformed(1, "the columns are not those of a label list", help));
    };
    let mut rows = Vec::with_capacity(records.len());
    for (line, record) in &records {
        if record.len() != header.len() {
            let problem =
                format!("not a CSV file: {} cells, but there are {} columns", record.len(), header.len());
            return Err(malformed(*line, problem, help));
        }
        rows.push((Some(*line), record.iter().map(str::to_owned).collect()));
    }
    from_rows(columns, &header, &rows, params)
}

/// The first line names a column of hosts and one of switches or domains, or of all labels, in capitals and aligned.
pub(super) fn recognises_table(sample: &Sample) -> bool {
    let names = sample.text().and_then(table::names);
    names.is_some_and(|names| names.contains(&LABELS) || Column::of_table(&names, &HOSTS).is_some())
}

/// The lines of such a table that are no rows.
pub(super) fn others(text: &str) -> Result<Vec<usize>> {
    table::others(text)
}

pub(super) fn read_table(text: &str, params: &ImportParams) -> Result<Imported> {
    let (header, rows) = table::read(text)?;
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let Some(columns) = Column::of_table(&header, &HOSTS) else {
        let problem = format!("no label that is known to name switches; the columns are {}", some(&header));
        return Err(malformed(1, problem, HELP_ON_LABELS));
    };
    from_rows(columns, &header, &rows, params)
}

/// The machine of a table with a host in every row.
fn from_rows(columns: Vec<Column>, header: &[&str], rows: &[Row], params: &ImportParams) -> Result<Imported> {
    if let Some(at) = columns.iter().position(|column| *column == Column::Host) {
        let is_alone = |cells: &[String]| (0..cells.len()).all(|cell| cell == at || cells[cell].is_empty());
        let names = rows.iter().map(|(line, cells)| (line.unwrap_or(0), &*cells[at], is_alone(cells)));
        csv_text::refuse_words(names, "give the host its labels, or remove the row")?;
    }
    let (columns, mut notes) = checked(columns, header, rows)?;
    let (mut hosts, mut missing) = (Vec::new(), Missing::default());
    for (line, cells) in rows {
        let mut host = PlacedHost { line: *line, ..PlacedHost::default() };
        for (column, cell) in columns.iter().zip(cells) {
            match column {
                Column::Host => cell.clone_into(&mut host.name),
                Column::Switch(level) => {
                    let is_new = host.above.iter().all(|(other, _)| other != level);
                    // Of several domains the first counts.
                    let switch = missing.set(cell).filter(|_| is_new);
                    host.above.extend(switch.map(|switch| (*level, switch.to_owned())));
                }
                Column::Other => {}
            }
        }
        host.above.sort_unstable();
        hosts.push(host);
    }
    notes.extend(missing.note());
    imported(hosts, notes, params)
}

/// The columns that are read, and notes on those that are not: unknown ones, those with the cells of another column of their level, and physical
/// machines with one host each. Only domains may differ, because topograph omits its own label for hosts that have
/// the one of the GPU operator.
fn checked(mut columns: Vec<Column>, header: &[&str], rows: &[Row]) -> Result<(Vec<Column>, Vec<String>)> {
    let mut notes = Vec::new();
    for at in 0..columns.len() {
        let Column::Switch(level) = columns[at] else { continue };
        let before = columns[..at].iter().position(|column| *column == columns[at]);
        if let Some(before) = before.filter(|_| level != DOMAIN) {
            if rows.iter().any(|(_, cells)| cells[before] != cells[at]) {
                let problem =
                    format!("`{}` and `{}` name switches of the same level", header[before], header[at]);
                let help = "omit one, or rename it to `leaf`, `spine`, `core` or `tier-3`";
                return Err(malformed(1, problem, help));
            }
            columns[at] = Column::Other;
        }
        let machines: HashSet<&String> = rows.iter().map(|(_, cells)| &cells[at]).collect();
        if level == MACHINE && machines.len() == rows.len() {
            columns[at] = Column::Other;
        }
    }
    let all = |wanted| {
        let of = columns.iter().zip(header).filter(move |(column, _)| **column == wanted);
        of.map(|(_, name)| (*name).to_owned()).collect::<Vec<String>>()
    };
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
    Ok((columns, notes))
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
    finish::imported(parts, params, notes)
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
