//! The levels that labels of hosts name: those of topograph in all its versions, of NVIDIA's GPU operator, of schedulers.

use std::collections::BTreeMap;

/// Physical machines of a cloud, with one or several hosts.
pub(super) const MACHINE: usize = 0;
/// Accelerator sub-domains, such as a rack of a domain.
pub(super) const SUB_DOMAIN: usize = 1;
/// Accelerator domains: hosts whose GPUs share an `NVLink` fabric.
pub(super) const DOMAIN: usize = 2;
/// The switches of hosts; those above them have the following levels.
pub(super) const LEAF: usize = 3;
/// Zones and regions are above all numbered columns.
pub(super) const ZONE: usize = LEAF + MOST_LEVELS;

/// Labels of domains in topograph's JSON, newest first: since August 2026, for a week before, July 2026, the GPU
/// operator's, and the attribute of May 2026 (`pkg/topology/topology.go` there). The first that a host has counts.
pub(super) const DOMAIN_LABELS: [&str; 5] = [
    "accelerator.topograph.run/domain",
    "xclr.topology.nvidia.com/domain",
    "network.topology.nvidia.com/accelerator",
    "nvidia.com/gpu.clique",
    "nvlink",
];
pub(super) const SUB_DOMAIN_LABELS: [&str; 2] =
    ["accelerator.topograph.run/sub-domain", "xclr.topology.nvidia.com/sub-domain"];
/// Words in the names of other labels that may be those of domains.
const DOMAIN_WORDS: [&str; 5] = ["domain", "accelerator", "clique", "nvlink", "xclr"];

/// Columns of hosts, the first one only for tables of kubectl: there others are labels.
pub(super) const HOSTS: [&str; 8] =
    ["name", "host", "hostname", "node", "nodename", "instance", "ip", "name"];
/// The names and the columns of levels, with the labels of Google (`cloud.google.com`), Oracle (`oci.oraclecloud.com`),
/// Amazon (`topology.k8s.aws`) and `CoreWeave`. Those above the core and below zones are alike.
const LEVELS: [(usize, [&str; 2], &str); 9] = [
    (MACHINE, ["machine", "a physical machine"], "gce-topology-host rdma.host_id"),
    (SUB_DOMAIN, ["sub-domain", "an accelerator sub-domain"], "sub-domain accelerator-sub-domain subblock"),
    (DOMAIN, ["domain", "an accelerator domain"], DOMAINS),
    (LEAF, ["leaf", "a leaf switch"], "leaf switch rack tor asw gce-topology-subblock rdma.local_block_id"),
    (LEAF + 1, ["spine", "a spine"], "spine pod psw gce-topology-block rdma.network_block_id"),
    (LEAF + 2, ["core", "a core switch"], "core dsw datacenter rdma.hpc_island_id"),
    (LEAF + 3, ["switch", "a switch above the core"], ""),
    (ZONE, ["zone", "a zone"], "zone"),
    (ZONE + 1, ["region", "a region"], "region"),
];
const DOMAINS: &str =
    "accelerator domain accelerator-domain nvlink nvlink.domain clique block gpu.clique ultraserver-id";
/// Numbered columns with the number of the leaf switch: topograph's tiers, in its NFD groups too, and its labels of 2024.
const NUMBERED: [(&str, usize); 3] = [("tier-", 0), ("fabric-tier-", 0), ("network-level-", 1)];
/// Amazon's columns, numbered from the top. The last of a table is the closest to the hosts.
const FROM_TOP: &str = "network-node-layer-";
/// Largest number of a numbered column.
const MOST_LEVELS: usize = 64;

/// What programs and people write for a label that is not set, without blanks and marks; and the values of labels of other meanings, such as
/// `kubernetes.azure.com/accelerator=nvidia`.
const MISSING: &str = " none na nil null nan unknown undefined unset notset novalue missing empty tbd tba todo \
                       noneassigned unassigned notassigned notavailable unavailable notapplicable notfound \
                       unspecified nolabel nodata nvidia amd intel true false ";

/// Labels that are not set, by the words that say so.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<String, usize>);

impl Missing {
    /// The label, if it is set.
    pub(super) fn set<'a>(&mut self, label: &'a str) -> Option<&'a str> {
        let label = label.trim();
        let word: String = label.chars().filter(|c| c.is_alphanumeric()).collect();
        if !word.is_empty() && !MISSING.contains(&format!(" {} ", word.to_ascii_lowercase())) {
            return Some(label);
        }
        if !label.is_empty() {
            *self.0.entry(label.to_owned()).or_default() += 1;
        }
        None
    }

    pub(super) fn note(&self) -> Option<String> {
        let words: Vec<String> =
            self.0.iter().take(5).map(|(word, count)| format!("{count} `{word}`")).collect();
        (!words.is_empty()).then(|| format!("labels that say that they are not set: {}", words.join(", ")))
    }
}

/// What a column of a label list has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Column {
    Host,
    /// A switch of this level.
    Switch(usize),
    Other,
}

impl Column {
    /// The meanings of the columns of a table whose hosts are in the first of the columns `hosts` that it has, if it
    /// has one of switches as well. Further names of hosts are not read.
    pub(super) fn of_table(names: &[&str], hosts: &[&str]) -> Option<Vec<Self>> {
        let plain = |name: &&str| name.trim().trim_matches('"').to_ascii_lowercase();
        let labels: Vec<String> = names.iter().map(plain).collect();
        let is = |label: &String, host: &str| label.rsplit('/').next() == Some(host);
        let host = hosts.iter().find_map(|host| labels.iter().position(|label| is(label, host)))?;
        let layer = |label: &String| label.rsplit('/').next()?.strip_prefix(FROM_TOP)?.parse::<usize>().ok();
        let closest = labels.iter().filter_map(layer).max().unwrap_or(0).min(MOST_LEVELS);
        let of = |label: &String| match layer(label).and_then(|layer| closest.checked_sub(layer)) {
            Some(above) => Self::Switch(LEAF + above),
            None => Self::of(label),
        };
        let mut columns: Vec<Self> = labels.iter().map(of).collect();
        columns[host] = Self::Host;
        // Topograph's labels of 2025 have the domain in `accelerator` and the leaf in `block`, which kubectl prints without their prefix.
        let has = |level| columns.iter().any(|column| matches!(column, Self::Switch(it) if *it == level));
        if let (Some(block), true, false) =
            (labels.iter().position(|label| label == "block"), has(DOMAIN), has(LEAF))
            && columns.iter().filter(|column| matches!(column, Self::Switch(DOMAIN))).count() > 1
        {
            columns[block] = Self::Switch(LEAF);
        }
        columns.iter().any(|column| matches!(column, Self::Switch(_))).then_some(columns)
    }

    /// The columns of names in such a table.
    pub(super) fn names(names: &[&str], hosts: &[&str]) -> Vec<usize> {
        let columns = Self::of_table(names, hosts).unwrap_or_default();
        (0..columns.len()).filter(|at| columns[*at] != Self::Other).collect()
    }

    /// The meaning of a label of Kubernetes such as `fabric.topograph.run/tier-0`, or of another column.
    fn of(label: &str) -> Self {
        let (prefix, name) = label.rsplit_once('/').unwrap_or(("", label));
        if prefix.starts_with("network.topology.") && name == "block" {
            // Topograph's labels of 2025 have the domain in `accelerator`.
            return Self::Switch(LEAF);
        }
        let numbered = NUMBERED.iter().find_map(|(start, leaf)| {
            let number: usize = name.strip_prefix(start)?.parse().ok()?;
            number.checked_sub(*leaf).filter(|above| *above < MOST_LEVELS)
        });
        let is_named = |(_, _, names): &&(_, _, &str)| names.split_whitespace().any(|known| known == name);
        let named = || LEVELS.iter().find(is_named).map(|(level, ..)| *level);
        numbered.map(|above| LEAF + above).or_else(named).map_or(Self::Other, Self::Switch)
    }
}

/// What a level is called in names and in notes.
pub(super) fn names_of(level: usize) -> [&'static str; 2] {
    LEVELS.iter().rfind(|(own, ..)| *own <= level).map_or([""; 2], |(_, names, _)| *names)
}

/// Whether a label that is not read may name accelerator domains.
pub(super) fn may_be_domain(label: &str) -> bool {
    let is_known = DOMAIN_LABELS.iter().chain(&SUB_DOMAIN_LABELS).any(|known| *known == label);
    let name = label.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    !is_known && DOMAIN_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use crate::import::samples::import;
    use crate::import::{ImportError, Imported};

    /// For each level the number of groups that the hosts are in; and the notes.
    fn groups(text: &str) -> (Vec<usize>, Vec<String>) {
        let Imported { system, notes } = import(text).unwrap();
        let count = |level: &Vec<u32>| {
            let of_hosts = system.hosts().map(|(host, ..)| level[host as usize]);
            of_hosts.collect::<std::collections::BTreeSet<u32>>().len()
        };
        (system.areas().iter().map(count).collect(), notes)
    }

    /// Eight hosts below two leaves, two in each domain, with `labels` of host and domain.
    fn topograph(labels: impl Fn(usize, usize) -> String) -> String {
        let host = |host: usize| {
            let (leaf, labels) = (host / 4, labels(host, host / 2));
            format!(r#"{{"id":"n{host}","network_layers":["leaf-{leaf}","spine"],{labels}}}"#)
        };
        format!(r#"{{"instances":[{}]}}"#, (0..8).map(host).collect::<Vec<_>>().join(","))
    }

    /// The labels of August 2026 were ignored, and borders of domains held nothing.
    #[test]
    fn domains_of_every_version_of_topograph_are_a_level() {
        for labels in [
            r#""labels":{"accelerator.topograph.run/domain":"D"}"#,
            r#""labels":{"xclr.topology.nvidia.com/domain":"D"}"#,
            r#""labels":{"network.topology.nvidia.com/accelerator":"D"}"#,
            r#""labels":{"nvidia.com/gpu.clique":"D","accelerator.topograph.run/domain":""}"#,
            r#""attributes":{"nvlink":"D"}"#,
            r#""type":"H100","attributes":{"nvlink":"D","gpu":{"status":"known","gpus":[{"index":0}]}}"#,
        ] {
            let text = topograph(|_, domain| labels.replace('D', &format!("nvl-{domain}")));
            assert_eq!(groups(&text), (vec![4, 2], Vec::new()), "{labels}");
        }
    }

    #[test]
    fn sub_domains_are_a_level_below_their_domains() {
        let labels = |host: usize, domain: usize, sub_domain: &str| {
            format!(
                r#""labels":{{"accelerator.topograph.run/domain":"nvl-{}",
                    "accelerator.topograph.run/sub-domain":"{sub_domain}{}"}}"#,
                domain / 2,
                host / 2 % 2
            )
        };
        // The same names in every domain are not the same racks.
        for text in [
            topograph(|host, domain| labels(host, domain, "rack-")),
            topograph(|host, domain| labels(host, domain, &format!("nvl-{}.rack-", domain / 2))),
        ] {
            assert_eq!(groups(&text), (vec![4, 2, 2], Vec::new()), "{text}");
        }
        let (groups, notes) = groups(&topograph(|host, domain| match host {
            7 => r#""labels":{"accelerator.topograph.run/domain":"nvl-1"}"#.to_owned(),
            _ => labels(host, domain, "rack-"),
        }));
        assert_eq!(groups, [5, 2, 2]);
        assert!(notes[0].starts_with("hosts without an accelerator sub-domain: 1 (`n7`)"), "{notes:?}");
    }

    #[test]
    fn labels_that_may_be_domains_are_said() {
        let text = topograph(|_, domain| format!(r#""labels":{{"example.com/nvlink-domain":"d{domain}"}}"#));
        let (found, notes) = groups(&text);
        assert_eq!(found, [2]);
        assert_eq!(
            notes,
            [
                "labels that may name accelerator domains are not read: 1 (`example.com/nvlink-domain`); if one does, \
              rename it to `accelerator.topograph.run/domain`"
            ]
        );
        let others =
            r#""labels":{"topology.kubernetes.io/region":"r","failure-domain.beta.kubernetes.io/zone":"z"}"#;
        assert_eq!(groups(&topograph(|_, _| others.to_owned())).1, [""; 0]);
    }

    #[test]
    fn instance_ids_are_said_to_be_no_names_of_nodes() {
        let text = topograph(|_, _| r#""labels":{}"#.to_owned());
        assert_eq!(groups(&text).1, [""; 0]);
        for id in ["i-0", "ocid1.instance.oc1..a", "48"] {
            let (_, notes) = groups(&text.replace(r#""id":"n"#, &format!(r#""id":"{id}"#)));
            assert!(notes[0].contains(&format!("the provider's instance ID (`{id}0`)")), "{notes:?}");
        }
    }

    /// A label list whose columns `labels` have the domain, the leaf switch and the spine of every host.
    fn list(labels: &str) -> String {
        let row = |host: usize| format!("n{host},nvl-{},leaf-{},spine\n", host / 2, host / 4);
        format!("host,{labels}\n{}", (0..8).map(row).collect::<String>())
    }

    #[test]
    fn columns_that_are_not_read_are_said() {
        let (_, notes) = groups(&list("gpus,leaf,my-spine"));
        assert_eq!(notes[0], "columns that are not read: 2 (`gpus`, `my-spine`)");
        let ImportError::File(error) = import(&list("domain,leaf,rack")).unwrap_err() else { unreachable!() };
        assert_eq!(
            (error.line, &*error.problem),
            (Some(1), "`leaf` and `rack` name switches of the same level")
        );
        // Topograph omits its own label for hosts that have the one of the GPU operator.
        let text = "host,nvidia.com/gpu.clique,accelerator.topograph.run/domain,leaf\n\
                    a,c1,,l1\nb,c1,,l1\nc,,d2,l1\nd,,d2,l1\n";
        let (groups, notes) = groups(text);
        assert_eq!(groups, [2]);
        assert!(notes[0].starts_with("columns of accelerator domains: 2 "), "{notes:?}");
    }

    /// Topograph calls a sub-block of Google's cloud both the domain and the lowest tier.
    #[test]
    fn a_domain_with_the_name_of_its_leaf_is_that_leaf() {
        let (groups, notes) =
            groups("host,domain,tier-0,tier-1\nn1,s1,s1,t\nn2,s1,s1,t\nn3,s2,s2,t\nn4,s2,s2,t\n");
        assert_eq!(groups, [2]);
        assert!(notes[0].starts_with("accelerator domains with the name of their leaf switch"), "{notes:?}");
    }
}
