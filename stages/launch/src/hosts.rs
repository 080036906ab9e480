//! What all launch files need: the host of every rank, under a name that launchers can read.

use std::collections::{HashMap, HashSet};

use hopmap_model::Mapping;

use crate::LaunchError;

/// The host of every rank, after checking the mapping and the names of all hosts.
pub(crate) fn hosts_of_ranks(mapping: &Mapping) -> Result<Vec<&str>, LaunchError> {
    mapping.check()?;
    if mapping.ranks.is_empty() {
        return Err(LaunchError::NoRanks);
    }
    let mut seen = HashSet::new();
    for host in mapping.hosts.iter().map(|host| host.host.as_str()) {
        if !is_readable(host) {
            return Err(LaunchError::HostName { host: host.to_owned() });
        }
        if !seen.insert(host) {
            return Err(LaunchError::RepeatedHost { host: host.to_owned() });
        }
    }
    Ok((0..mapping.ranks.len()).map(|rank| mapping.host_of(rank)).collect())
}

/// Whether all launchers read the name as one word: nothing in it separates, comments, counts or repeats.
fn is_readable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Checks that Open MPI can tell the hosts apart: it cuts names at the first dot (measured on 4.1.4, by default in 5.x).
pub(crate) fn check_for_open_mpi(hosts: &[&str]) -> Result<(), LaunchError> {
    let mut by_short_name: HashMap<&str, &str> = HashMap::new();
    for &host in hosts {
        let is_address = host.parse::<std::net::Ipv4Addr>().is_ok();
        let short = if is_address { host } else { host.split('.').next().unwrap_or(host) };
        let first = *by_short_name.entry(short).or_insert(host);
        if first != host {
            return Err(LaunchError::SameShortName { first: first.to_owned(), second: host.to_owned() });
        }
    }
    Ok(())
}

/// The comment that tells from which mapping a file was made.
pub(crate) fn heading(digest: &str) -> String {
    format!("# hopmap mapping {digest}\n")
}

/// The heading, then one host per rank and line.
pub(crate) fn host_per_line(digest: &str, hosts: &[&str]) -> String {
    let mut text = heading(digest);
    for host in hosts {
        text.push_str(host);
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hopmap_model::{HostSlots, Placement, Weight};
    use proptest::prelude::*;

    /// Hosts with `slots` slots each, rank `i` on slot `taken[i]`, core = slot on the host.
    pub(crate) fn mapping(hosts: &[&str], slots: u32, taken: &[u32]) -> Mapping {
        let host = |(index, name): (usize, &&str)| HostSlots {
            host: (*name).to_owned(),
            first_slot: index as u32 * slots,
            slots,
        };
        Mapping {
            ranks: taken
                .iter()
                .map(|&slot| Placement { slot, host: slot / slots, core: Some(slot % slots) })
                .collect(),
            hosts: hosts.iter().enumerate().map(host).collect(),
            weight: Weight::Bytes,
            metrics: std::collections::BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }

    /// Mappings of some ranks to some slots of up to six hosts.
    pub(crate) fn mappings() -> impl Strategy<Value = Mapping> {
        (1_u32..7, 1_u32..5)
            .prop_flat_map(|(hosts, slots)| {
                let all: Vec<u32> = (0..hosts * slots).collect();
                let ranks = 1..=all.len();
                (Just(hosts), Just(slots), Just(all).prop_shuffle(), ranks)
            })
            .prop_map(|(hosts, slots, taken, ranks)| {
                let names: Vec<String> = (0..hosts).map(|host| format!("node-{host}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                mapping(&names, slots, &taken[..ranks])
            })
    }

    /// The lines of a launch file after the digest.
    pub(crate) fn lines<'a>(text: &'a str, digest: &str) -> Vec<&'a str> {
        text.strip_prefix(&format!("# hopmap mapping {digest}\n")).unwrap().lines().collect()
    }

    #[test]
    fn names_that_launchers_would_split_are_refused() {
        for bad in ["", "a b", "a\tb", "a\nb", "a:2", "a,b", "n[1-2]", "#a", "-n", "a*2", "é", "a/b"] {
            let error = hosts_of_ranks(&mapping(&[bad], 1, &[0])).unwrap_err();
            assert!(matches!(&error, LaunchError::HostName { host } if host == bad), "{bad:?}");
        }
        for good in ["localhost", "10.0.0.1", "node-1.cluster.org", "1abc", "n_1"] {
            assert_eq!(hosts_of_ranks(&mapping(&[good], 1, &[0])).unwrap(), [good]);
        }
    }

    #[test]
    fn a_control_character_is_shown_escaped() {
        let error = hosts_of_ranks(&mapping(&["a\nb"], 1, &[0])).unwrap_err();
        assert_eq!(error.to_string(), r"launchers cannot read the host name `a\nb`");
    }

    #[test]
    fn repeated_names_broken_and_empty_mappings_are_refused() {
        let refused = |mapping: &Mapping| hosts_of_ranks(mapping).unwrap_err();
        assert!(matches!(refused(&mapping(&["a", "a"], 1, &[0])), LaunchError::RepeatedHost { .. }));
        assert!(matches!(refused(&mapping(&["a"], 2, &[0, 0])), LaunchError::Mapping(_)));
        assert!(matches!(refused(&mapping(&["a"], 2, &[])), LaunchError::NoRanks));
    }

    #[test]
    fn names_that_open_mpi_takes_for_one_are_refused() {
        assert!(check_for_open_mpi(&["10.0.0.1", "10.0.0.2", "a.x", "b.x", "a.x"]).is_ok());
        let error = check_for_open_mpi(&["a.x", "a.y"]).unwrap_err();
        assert_eq!(error.to_string(), "Open MPI takes `a.x` and `a.y` for one host");
    }
}
