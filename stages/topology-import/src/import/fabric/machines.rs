//! Which adapters belong to one machine, and its name.
//!
//! Identifiers of adapters do not change, while their descriptions are set by scripts, by the driver, or not at
//! all. So a description names a host only if it has the form of one, and if no other machine has it.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_formats::host_names::short;
use hopmap_model::NodeKind;

use super::dump::{FabricNode, device_of};

/// Sets the host of every adapter. Adapters with the same first word and different devices are in one host, as
/// are those with one system image GUID. An adapter whose description names no host is a machine of its own,
/// named after its address.
pub(super) fn assign(nodes: &mut [FabricNode], remarks: &mut Vec<String>) {
    let mut adapters: Vec<usize> =
        (0..nodes.len()).filter(|&node| nodes[node].kind == NodeKind::Host).collect();
    adapters.sort_by_key(|&node| nodes[node].key());
    let mut by_word: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut nameless: Vec<(usize, String)> = Vec::new();
    for adapter in adapters {
        let given = nodes[adapter].host.as_deref().map(str::trim).filter(|host| !host.is_empty());
        let description = &nodes[adapter].description;
        let text = given.map(|host| format!("{host} {}", device_of(description)));
        match host_of(text.as_ref().unwrap_or(description)) {
            Some(name) => by_word.entry(given.unwrap_or(name).to_owned()).or_default().push(adapter),
            None => nameless.push((adapter, "host".to_owned())),
        }
    }
    join_short_names(nodes, &mut by_word, remarks);
    let mut named = Vec::new();
    let are_bare = are_bare_names(nodes, &by_word);
    for (word, adapters) in by_word {
        let list = if are_bare || is_one(nodes, &adapters) { &mut named } else { &mut nameless };
        list.extend(adapters.into_iter().map(|adapter| (adapter, word.clone())));
    }
    named.extend(after_addresses(nodes, &named, &nameless, remarks));
    named.into_iter().for_each(|(adapter, name)| nodes[adapter].host = Some(name));
}

/// Joins `n1` to `n1.cluster`, which are one host unless both have a device, or several hosts are `n1`.
fn join_short_names(
    nodes: &[FabricNode],
    by_word: &mut BTreeMap<String, Vec<usize>>,
    remarks: &mut Vec<String>,
) {
    let mut full: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for word in by_word.keys().filter(|word| short(word) != word.as_str()) {
        full.entry(short(word).to_owned()).or_default().push(word.clone());
    }
    let mut apart = Vec::new();
    for (name, full) in full {
        let Some(own) = by_word.get(&name) else { continue };
        let all: Vec<usize> = own.iter().chain(&by_word[&full[0]]).copied().collect();
        if full.len() == 1 && is_one(nodes, &all) {
            by_word.remove(&name);
            by_word.insert(full[0].clone(), all);
        } else {
            apart.push(format!("`{name}` and `{}`", full[0]));
        }
    }
    if let Some(first) = apart.first() {
        remarks.push(format!(
            "names that may be those of one host, but have the same device or are several hosts, kept apart: {} ({first})",
            apart.len()
        ));
    }
}

/// The hosts of adapters without one, which have a prefix of their names: those of their cards if another port
/// has one, or else named after addresses.
fn after_addresses(
    nodes: &[FabricNode],
    named: &[(usize, String)],
    nameless: &[(usize, String)],
    remarks: &mut Vec<String>,
) -> Vec<(usize, String)> {
    let mut by_card: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (adapter, name) in named {
        by_card.entry(nodes[*adapter].card()).or_default().insert(name);
    }
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut examples = BTreeSet::new();
    let mut found = Vec::new();
    for (adapter, prefix) in nameless {
        let FabricNode { address, description, .. } = &nodes[*adapter];
        let card = nodes[*adapter].card();
        let known = by_card.get(&card).filter(|names| names.len() == 1).and_then(BTreeSet::first);
        let name = known.map_or_else(
            || {
                examples.insert(description.trim());
                let end = if address.is_empty() { description } else { address };
                first.entry(card).or_insert_with(|| format!("{prefix}-{end}")).clone()
            },
            |name| (*name).to_owned(),
        );
        found.push((*adapter, name));
    }
    if let Some(example) = examples.first() {
        remarks.push(format!(
            "adapters whose description is no host name, or that of several machines, so that their machines are named after addresses: {} (`{example}`{})",
            nameless.len(),
            if examples.len() > 1 { ", …" } else { "" }
        ));
    }
    found
}

/// Whether descriptions are names of hosts alone, as `rdma-ndd` writes them with `%h`, or name a device: then several machines have as many
/// cards each. A name that only some have several times may still be that of several machines, and so may the only one.
fn are_bare_names(nodes: &[FabricNode], by_word: &BTreeMap<String, Vec<usize>>) -> bool {
    let cards_of = |adapters: &Vec<usize>| {
        let has_device = |adapter: &usize| !device_of(&nodes[*adapter].description).is_empty();
        let with_device: Vec<usize> = adapters.iter().copied().filter(has_device).collect();
        let cards: BTreeSet<_> = adapters.iter().map(|&adapter| nodes[adapter].card()).collect();
        is_one(nodes, &with_device).then_some(cards.len())
    };
    let mut cards = by_word.values().map(cards_of);
    let first = cards.next().flatten();
    first.is_some() && by_word.len() > 1 && cards.all(|cards| cards == first)
}

/// Whether adapters whose descriptions begin with one word can be in one machine: it has every device once, and
/// the description of a device is not a sentence.
fn is_one(nodes: &[FabricNode], adapters: &[usize]) -> bool {
    let cards: BTreeSet<_> = adapters.iter().map(|&adapter| nodes[adapter].card()).collect();
    let mut devices: BTreeMap<&str, String> = BTreeMap::new();
    let mut is_its_own = |adapter: usize| {
        let card = nodes[adapter].card();
        let device = device_of(&nodes[adapter].description);
        *devices.entry(device).or_insert_with(|| card.clone()) == card
            && (device.is_empty() || is_device(device))
    };
    cards.len() < 2 || adapters.iter().all(|&adapter| is_its_own(adapter))
}

/// Whether a text begins with the name of a device as kernels and scripts give it, such as `mlx5_0` or
/// `HCA-1 (rail 2)`.
fn is_device(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("");
    let rest = word.strip_prefix("HCA").unwrap_or(word);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.:".contains(c);
    let has_number = rest.contains(|c: char| c.is_ascii_digit());
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && has_number && rest.chars().all(is_plain)
}

/// Whether a description names a device, or is that of an aggregation node, as no switch has it.
pub(in crate::import) fn is_adapter(description: &str) -> bool {
    is_device(device_of(description)) || description.contains("Aggregation Node")
}

/// First words of the descriptions that drivers and firmware set.
const MAKERS: &str = "bluefield cisco connectx cornelis dell hp hpe ibm infiniband infinihost intel mellanox nvidia omni-path \
                      oracle qlogic sun voltaire";
/// Stems of models and devices, which a number follows.
const MODELS: &str = "ConnectX BlueField InfiniHost HCA- mlx4_ mlx5_ hfi1_ qib mthca";
/// Host names of machines that have not been given one.
const UNSET: &str = "- ? adapter ca centos computer debian default fedora hca host hostname linux machine n/a nil node none \
                     noname null rocky server ubuntu undefined unknown unnamed";

fn is_among(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// The host of a description, unless it is that of a maker or a device, or of a machine without a name.
fn host_of(description: &str) -> Option<&str> {
    let word = description.split_whitespace().next()?.trim_end_matches([',', ';', ':']);
    let bare = word.trim_matches(|c: char| "()<>[]{}'\"".contains(c)).to_ascii_lowercase();
    let device = device_of(description);
    let is_maker = is_among(MAKERS, &bare) && !is_device(device);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_model = word.strip_prefix("MT").is_some_and(|number| number.len() > 3 && is_number(number))
        || MODELS
            .split(' ')
            .filter_map(|stem| word.strip_prefix(stem))
            .any(|rest| rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()));
    let local = bare.strip_prefix("localhost");
    let is_local = local.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '4', '6']));
    let has_name = !(is_maker || is_model || is_local || bare.is_empty() || is_among(UNSET, &bare));
    has_name.then_some(word).filter(|_| !MAKER_TEXTS.iter().any(|text| device.starts_with(text)))
}

/// What follows a word in the default descriptions of some drivers.
const MAKER_TEXTS: [&str; 3] = ["Mellanox Technologies", "Infiniband HCA", "Omni-Path HFI"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_makers_and_unset_names_are_no_hosts() {
        let none = "|localhost mlx5_0|localhost.localdomain HCA-1|localhost-live mlx5_0|(none) mlx5_0|<none>|N/A hfi1_0|\
                    MT4123 ConnectX6 Mellanox Technologies|MT25408 ConnectX|Mellanox HCA|QLogic Infiniband HCA|\
                    IBM Logical HCA|ConnectX-6|NVIDIA ConnectX-7|BlueField-3 mlx5_2|HCA-1|mlx5_0|host|HOST mlx5_1|\
                    Intel Omni-Path HFI|MT23108 InfiniHost|adapter 1|unknown:";
        for text in none.split('|') {
            assert_eq!(host_of(text), None, "{text}");
        }
        for (text, host) in [
            ("n1 mlx5_0", "n1"),
            ("plato7  MT4119 ConnectX5", "plato7"),
            ("nvidia-01 mlx5_0", "nvidia-01"),
            ("mt01 HCA-1", "mt01"),
            ("localhost7x", "localhost7x"),
            ("hosts-3, mlx5_0", "hosts-3"),
        ] {
            assert_eq!(host_of(text), Some(host), "{text}");
        }
    }
}
