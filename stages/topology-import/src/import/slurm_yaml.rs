//! `topology.yaml` of Slurm 25.05 to 26.11 (topology.yaml(5)): trees, blocks, rings and 3D tori; and the models of
//! topograph, which have a similar syntax.

use std::collections::HashMap;

use super::finish::{Parts, imported};
use super::format::{Sample, malformed, note};
use super::slurm_torus::{self, Placed, Torus};
use super::slurm_tree::{Blocks, Lists, Switch, chosen, parts};
use super::yaml::{Content, Yaml, parse};
use super::{ImportError, ImportParams, Imported, Result, slurm_ring};

/// The first line with content is the first of a topology, or the list of switches or blocks of a model.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let has_content = |line: &&str| {
        let line = line.trim();
        !(line.is_empty() || line.starts_with('#') || line == "---")
    };
    let Some(line) = text.lines().find(has_content) else { return false };
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.trim().trim_matches('"').to_owned());
    match line.trim_start().strip_prefix("- ") {
        Some(item) => key(item).is_some_and(|key| {
            ["topology", "cluster_default", "tree", "block", "ring", "torus3d", "flat"]
                .contains(&key.as_str())
        }),
        None => ["switches:", "blocks:"].contains(&line.trim_end()),
    }
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let Some(yaml) = parse(text)? else {
        return Err(malformed(None, "no topology", "a list of topologies is expected: `- topology: name`"));
    };
    let (mut notes, lists) = (Vec::new(), Lists::new());
    let (parts, more) = match &yaml.content {
        Content::List(topologies) => {
            topology(&lists, read_topology(topologies, params, &mut notes)?, &mut notes)?
        }
        Content::Map(_) => parts(&model(&lists, &yaml, &mut notes)?)?,
        Content::Scalar(_) => {
            return Err(yaml.wrong("not a list of topologies", "begin with `- topology: name`"));
        }
    };
    notes.extend(more);
    imported(parts, params, notes)
}

/// The topology that a parameter names, otherwise the default of the cluster: the first that is marked as such, as Slurm
/// has it.
fn read_topology<'a>(
    topologies: &'a [Yaml],
    params: &ImportParams,
    notes: &mut Vec<String>,
) -> Result<&'a Yaml> {
    let name =
        |topology: &'a Yaml| topology.get("topology").and_then(Yaml::scalar).unwrap_or("without a name");
    let mut lines = HashMap::new();
    let name_and_key = |topology: &'a Yaml| Some((name(topology), topology.get("topology")?));
    for (name, key) in topologies.iter().filter_map(name_and_key) {
        if let Some(first) = lines.insert(name, key.line) {
            let problem = format!("the topology `{name}` is defined twice, first on line {first}");
            return Err(key.wrong(problem, "give every topology a unique name"));
        }
    }
    let is_flat = |topology: &&Yaml| topology.get("flat").is_some();
    let is_default = |topology: &&Yaml| {
        let value = topology.get("cluster_default").and_then(Yaml::scalar).map(str::to_ascii_lowercase);
        matches!(value.as_deref(), Some("true" | "yes" | "on"))
    };
    let mut all: Vec<&Yaml> = topologies.iter().collect();
    let defaults = topologies.iter().filter(is_default).count();
    let default = topologies.iter().find(is_default);
    all.sort_by_key(is_flat);
    let names: Vec<&str> = all.iter().copied().map(name).collect();
    let (found, which) = match default.filter(|_| params.topology.is_none()) {
        _ if all.is_empty() => return Err(malformed(None, "no topology", "begin with `- topology: name`")),
        Some(first) if all.len() == 1 || !is_flat(&first) => (first, "default"),
        Some(first) => {
            let problem = format!(", of which the default `{}` is flat, without hosts", name(first));
            (all[chosen(&names, params, &problem)?], "")
        }
        None => (all[chosen(&names, params, ", none of which is the default")?], "chosen one"),
    };
    if all.len() > 1 {
        let first = if which == "default" && defaults > 1 { "first " } else { "" };
        notes.push(format!("reading the {first}{which} of {} topologies: `{}`", all.len(), name(found)));
    }
    Ok(found)
}

fn topology(all: &Lists, topology: &Yaml, notes: &mut Vec<String>) -> Result<(Parts, Vec<String>)> {
    let mut kind: Option<(&str, &Yaml)> = None;
    for (key, value) in topology.map().unwrap_or_default() {
        match (key.as_str(), kind) {
            ("topology" | "cluster_default", _) => {}
            ("tree" | "block" | "ring" | "torus3d" | "flat", None) => kind = Some((key, value)),
            ("tree" | "block" | "ring" | "torus3d" | "flat", Some((first, _))) => {
                let problem = format!("a topology with both `{first}` and `{key}`");
                return Err(malformed(
                    value.line,
                    problem,
                    "a topology has one of them: make a second topology",
                ));
            }
            _ => {
                let known = "topology, cluster_default, tree, block, ring, torus3d and flat";
                return Err(unknown(value.line, key, known));
            }
        }
    }
    match kind {
        Some(("tree", value)) => parts(&tree(all, value)?),
        Some(("ring", value)) => slurm_ring::parts(&rings(all, value)?),
        Some(("torus3d", value)) => slurm_torus::parts(&tori(all, value)?),
        Some(("block", value)) => {
            let (switches, more) = blocks(all, value)?.switches()?;
            notes.extend(more);
            parts(&switches)
        }
        Some((_, value)) => {
            let help = "it contains no hosts; list them in a tree, blocks, rings or tori";
            Err(value.wrong("this topology is flat", help))
        }
        None => {
            Err(topology.wrong("a topology without `tree`, `block`, `ring` or `torus3d`", "add one of them"))
        }
    }
}

fn tree(all: &Lists, tree: &Yaml) -> Result<Vec<Switch>> {
    let list = items(tree, "switches")?;
    list.iter()
        .map(|item| {
            let mut switch = Switch { line: item.line, ..Switch::default() };
            for (key, value) in item.map().unwrap_or_default() {
                match key.as_str() {
                    "switch" => switch.name = Lists::own_name(value.line, text(value)?)?,
                    "children" => switch.switches = lists(all, value, Lists::names)?,
                    "nodes" => switch.hosts = lists(all, value, Lists::hosts)?,
                    _ => return Err(unknown(value.line, key, "switch, children and nodes")),
                }
            }
            named(switch, "switch")
        })
        .collect()
}

fn blocks(all: &Lists, block: &Yaml) -> Result<Blocks> {
    let mut blocks = Blocks::default();
    for (key, value) in block.map().unwrap_or_default() {
        match (key.as_str(), value.list()) {
            ("blocks", _) => {}
            ("block_sizes", Some(sizes)) => {
                for size in sizes {
                    blocks.set_sizes(size.line, text(size)?)?;
                }
            }
            ("block_sizes", None) => blocks.set_sizes(value.line, text(value)?)?,
            _ => return Err(unknown(value.line, key, "block_sizes and blocks")),
        }
    }
    blocks.bases = hosts_by_name(all, items(block, "blocks")?, "block")?;
    Ok(blocks)
}

/// Blocks or rings: a name and hosts each.
fn hosts_by_name(all: &Lists, items: &[Yaml], what: &str) -> Result<Vec<Switch>> {
    let named_hosts = |item: &Yaml| {
        let mut found = Switch { line: item.line, ..Switch::default() };
        for (key, value) in item.map().unwrap_or_default() {
            match key.as_str() {
                "nodes" => found.hosts = lists(all, value, Lists::hosts)?,
                key if key == what => found.name = Lists::own_name(value.line, text(value)?)?,
                _ => return Err(unknown(value.line, key, &format!("{what} and nodes"))),
            }
        }
        named(found, what)
    };
    items.iter().map(named_hosts).collect()
}

fn rings(all: &Lists, ring: &Yaml) -> Result<Vec<Switch>> {
    hosts_by_name(all, one_or_more(ring, "rings")?, "ring")
}

fn tori(all: &Lists, torus: &Yaml) -> Result<Vec<Torus>> {
    one_or_more(torus, "toruses")?.iter().map(|item| torus3d(all, item)).collect()
}

fn torus3d(all: &Lists, item: &Yaml) -> Result<Torus> {
    let (mut torus, mut dims, mut hosts) = (Torus { line: item.line, ..Torus::default() }, None, None);
    for (key, value) in item.map().unwrap_or_default() {
        match key.as_str() {
            "name" => torus.name = Lists::own_name(value.line, text(value)?)?,
            "dims" => dims = Some(coordinates(value)?),
            "nodes" => hosts = Some(Placed::new(value.line, lists(all, value, Lists::hosts)?)),
            "regions" => {
                torus.placed =
                    one_or_more(item, key)?.iter().map(|item| region(all, item)).collect::<Result<_>>()?;
            }
            // Where Slurm may allocate jobs.
            "placements" => {}
            _ => return Err(unknown(value.line, key, "name, dims, nodes, regions and placements")),
        }
    }
    torus.dims =
        dims.ok_or_else(|| item.wrong("a torus without `dims`", "such as `dims: {x: 4, y: 4, z: 2}`"))?;
    if torus.name.is_empty() {
        return Err(item.wrong("a torus without a name", "add `name: pod1`"));
    }
    if let Some(hosts) = hosts {
        if !torus.placed.is_empty() {
            return Err(item.wrong("a torus with both `nodes` and `regions`", "give one of them"));
        }
        torus.placed = vec![Placed { dims: torus.dims, ..hosts }];
    }
    Ok(torus)
}

fn region(all: &Lists, item: &Yaml) -> Result<Placed> {
    let mut region = Placed { line: item.line, ..Placed::default() };
    for (key, value) in item.map().unwrap_or_default() {
        match key.as_str() {
            "anchor" => region.anchor = coordinates(value)?,
            "dims" => region.dims = coordinates(value)?,
            "nodes" => region.hosts = lists(all, value, Lists::hosts)?,
            _ => return Err(unknown(value.line, key, "anchor, dims and nodes")),
        }
    }
    Ok(region)
}

/// Numbers of 16 bits, as in Slurm; 0 if omitted.
fn coordinates(value: &Yaml) -> Result<[u16; 3]> {
    let help = "such as `{x: 4, y: 4, z: 2}`";
    let mut found = [0; 3];
    let entries = value.map().ok_or_else(|| value.wrong("expected `x`, `y` and `z`", help))?;
    for (key, number) in entries {
        let Some(axis) = ["x", "y", "z"].iter().position(|axis| axis == key) else {
            return Err(unknown(number.line, key, "x, y and z"));
        };
        let parsed = number.scalar().and_then(|text| text.parse().ok());
        found[axis] =
            parsed.ok_or_else(|| number.wrong(format!("`{key}` is not a number from 0 to 65535"), help))?;
    }
    Ok(found)
}

/// The values of a list. Slurm also reads a map in its place, if there is only one.
fn one_or_more<'a>(value: &'a Yaml, key: &str) -> Result<&'a [Yaml]> {
    match value.get(key) {
        Some(only) if only.map().is_some() => Ok(std::slice::from_ref(only)),
        _ => items(value, key),
    }
}

/// A model of topograph: switches by name with their children, and blocks of hosts below the lowest switches.
fn model(all: &Lists, model: &Yaml, notes: &mut Vec<String>) -> Result<Vec<Switch>> {
    let mut switches: Vec<Switch> = Vec::new();
    for (key, value) in model.map().unwrap_or_default() {
        match key.as_str() {
            "switches" => {
                for (name, item) in value.map().unwrap_or_default() {
                    let below =
                        item.get("switches").map(|list| lists(all, list, Lists::names)).transpose()?;
                    let name = Lists::own_name(item.line, name)?;
                    let switches_below = below.unwrap_or_default();
                    switches.push(Switch {
                        name,
                        line: item.line,
                        switches: switches_below,
                        hosts: Vec::new(),
                    });
                }
            }
            "blocks" => {}
            _ => notes.push(format!("ignoring `{key}`")),
        }
    }
    let mut place: std::collections::HashMap<String, usize> =
        switches.iter().enumerate().map(|(index, switch)| (switch.name.clone(), index)).collect();
    for item in model.get("blocks").and_then(Yaml::list).unwrap_or_default() {
        let Some(name) = item.get("switch") else {
            return Err(item.wrong("a block without `switch`", "add the switch above its nodes"));
        };
        let name = Lists::own_name(name.line, text(name)?)?;
        let hosts =
            item.get("nodes").map(|list| lists(all, list, Lists::hosts)).transpose()?.unwrap_or_default();
        let index = *place.entry(name.clone()).or_insert_with(|| {
            switches.push(Switch { name, line: item.line, ..Switch::default() });
            switches.len() - 1
        });
        if let Some(switch) = switches.get_mut(index) {
            switch.hosts.extend(hosts);
        }
    }
    let undescribed: Vec<String> = switches
        .iter()
        .flat_map(|switch| &switch.switches)
        .filter(|name| !place.contains_key(*name))
        .cloned()
        .collect();
    note(notes, "switches that are only listed by other switches", undescribed.len());
    for name in undescribed {
        if place.insert(name.clone(), usize::MAX).is_none() {
            switches.push(Switch { name, ..Switch::default() });
        }
    }
    Ok(switches)
}

fn items<'a>(value: &'a Yaml, key: &str) -> Result<&'a [Yaml]> {
    let list = value.get(key).and_then(Yaml::list);
    list.ok_or_else(|| {
        value.wrong(format!("`{key}` is not a list"), format!("give `{key}:` followed by a list"))
    })
}

fn named(switch: Switch, what: &str) -> Result<Switch> {
    match switch.name.is_empty() {
        true => {
            Err(malformed(switch.line, format!("a {what} without a name"), format!("add `{what}: name`")))
        }
        false => Ok(switch),
    }
}

fn text(value: &Yaml) -> Result<&str> {
    value.scalar().ok_or_else(|| value.wrong("expected a string, found a list or map", "give one value"))
}

type Names = fn(&Lists, usize, &str) -> Result<Vec<String>>;

/// The names of a host list, or of a list of host lists.
fn lists(all: &Lists, value: &Yaml, names: Names) -> Result<Vec<String>> {
    let Some(list) = value.list() else { return names(all, value.line, text(value)?) };
    let mut found = Vec::new();
    for item in list {
        found.extend(names(all, item.line, text(item)?)?);
    }
    Ok(found)
}

fn unknown(line: usize, key: &str, known: &str) -> ImportError {
    malformed(line, format!("unknown key `{key}`"), format!("allowed are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::samples::{fault, import};

    const TREE: &str = "---
- topology: wide
  cluster_default: true
  tree:
    switches:
    - switch: top
      children: s[0-1]
    - switch: s0
      nodes: n[0-1]
    - switch: s1
      nodes: n[2-3]
";
    const BLOCK: &str = "- topology: narrow
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
    - {block: b1, nodes: \"n[0-1]\"}
    - {block: b2, nodes: \"n[2-3]\"}
- topology: none
  flat: true
";

    #[test]
    fn both_files_of_slurm_are_equivalent() {
        let conf = "SwitchName=s1 Nodes=n[2-3]\nSwitchName=s0 Nodes=n[0-1]\nSwitchName=top Switches=s0,s1\n";
        assert_eq!(import(TREE).unwrap().system, import(conf).unwrap().system);
        let conf = "BlockName=b1 Nodes=n[0-1]\nBlockName=b2 Nodes=n[2-3]\nBlockSizes=2,4\n";
        let only = BLOCK.split("- topology: none").next().unwrap();
        assert_eq!(import(only).unwrap().system, import(conf).unwrap().system);
    }

    #[test]
    fn of_several_topologies_the_default_is_read() {
        let Imported { system, notes } = import(&format!("{TREE}{BLOCK}")).unwrap();
        assert_eq!(system.nodes.len(), 7);
        assert_eq!(notes, ["reading the default of 3 topologies: `wide`"]);
        assert_eq!(fault(BLOCK), "0: 2 topologies, none of which is the default: `narrow`, `none`");
        assert_eq!(fault("- topology: a\n  flat: true\n"), "2: this topology is flat");
        // As Slurm does.
        let narrow = BLOCK.replace("cluster_default: false", "cluster_default: true");
        let Imported { system, notes } = import(&format!("{TREE}{narrow}")).unwrap();
        assert_eq!(
            (system.nodes.len(), &*notes),
            (7, &["reading the first default of 3 topologies: `wide`".to_owned()][..])
        );
    }

    #[test]
    fn a_parameter_chooses_the_topology() {
        let choose = |text: &str, name: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let params = ImportParams { topology: Some(name.to_owned()), ..ImportParams::default() };
            super::super::read(file.path(), &params)
        };
        let refused = |text: &str, name: &str| {
            let error = miette::Report::new(choose(text, name).unwrap_err());
            format!("{error}; {}", error.help().unwrap())
        };
        let all = format!("{TREE}{BLOCK}");
        let Imported { system, notes } = choose(&all, "narrow").unwrap();
        assert_eq!(
            (system.nodes.len(), &*notes),
            (7, &["reading the chosen one of 3 topologies: `narrow`".to_owned()][..])
        );
        assert_eq!(
            refused(&all, "Wide"),
            "`topology` is `Wide`, which the file does not have; the file has `wide`, `narrow`, `none`"
        );
        assert!(refused(&all, "none").contains("this topology is flat"));
        let twice = refused(&format!("{BLOCK}{BLOCK}"), "narrow");
        assert!(twice.contains("the topology `narrow` is defined twice, first on line 1"), "{twice}");
        let flat = format!("- topology: cpu\n  cluster_default: true\n  flat: true\n{BLOCK}");
        assert_eq!(
            fault(&flat),
            "0: 3 topologies, of which the default `cpu` is flat, without hosts: `narrow`, `cpu`, `none`"
        );
        assert_eq!(choose(&flat, "narrow").unwrap().system, system);
        let conf = "SwitchName=s Nodes=n[1-2]\nBlockName=b Nodes=n[1-4]\n";
        assert_eq!(fault(conf), "0: 2 topologies in one file: `tree`, `block`");
        let hosts = |name: &str| choose(conf, name).unwrap().system.hosts().count();
        assert_eq!([hosts("tree"), hosts("block")], [2, 4]);
        assert!(refused("source,destination\na,b\n", "x").contains("`topology` has no effect"));
    }

    #[test]
    fn models_of_topograph_are_read() {
        let text = "switches:\n  core:\n    labels: {a: b}\n    switches:\n    - leaf1\n    - leaf2\n    - leaf3\n\
                    blocks:\n- switch: leaf1\n  nodes: [\"n[1-2]\", n7]\n  annotations: {x: y}\n- switch: leaf2\n  nodes: [n3]\n";
        let Imported { system, notes } = import(text).unwrap();
        let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n3", "n7", "leaf1", "leaf2", "leaf3", "core"]);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn rings_are_those_of_topology_conf() {
        let yaml = "- topology: a\n  ring:\n    rings:\n    - ring: r0\n      nodes: n[1-4]\n    - {ring: r1, nodes: 'n[5-8]'}\n";
        let conf = "RingName=r0 Nodes=n[1-4]\nRingName=r1 Nodes=n[5-8]\n";
        let (yaml, conf) = (import(yaml).unwrap(), import(conf).unwrap());
        assert_eq!((yaml.system, yaml.notes), (conf.system, conf.notes));
        assert_eq!(fault("- topology: a\n  ring: {rings: r1=n1}\n"), "2: `rings` is not a list");
        assert_eq!(fault("- topology: a\n  ring: {rings: {nodes: n1}}\n"), "2: a ring without a name");
    }

    #[test]
    fn errors_have_lines() {
        assert_eq!(fault("- topology: a\n  tre:\n    x: y\n"), "3: unknown key `tre`");
        assert_eq!(
            fault("- topology: a\n  tree:\n    switches:\n    - nodes: n1\n"),
            "4: a switch without a name"
        );
        assert!(
            fault("- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: n[\n")
                .starts_with("5: host list")
        );
        let two = "- topology: a\n  block: {blocks: [{block: b, nodes: n1}]}\n  ring: {rings: []}\n";
        assert_eq!(fault(two), "3: a topology with both `block` and `ring`");
        assert_eq!(fault(&two.replace("ring:", "rings:")), "3: unknown key `rings`");
        for empty in [
            "block: {blocks: []}",
            "block: {blocks: [{block: b}]}",
            "ring: {rings: []}",
            "tree: {switches: []}",
        ] {
            assert_eq!(fault(&format!("- topology: a\n  {empty}\n")), "0: no hosts", "{empty}");
        }
        assert_eq!(fault("- topology: a\n"), "1: a topology without `tree`, `block`, `ring` or `torus3d`");
        assert_eq!(fault("- topology: a\n  tree: 3\n"), "2: `switches` is not a list");
    }
}
