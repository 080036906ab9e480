//! Rings of Slurm's plugin `topology/ring`: every host is linked to the next one, and the last to the first.

use std::collections::HashMap;

use hopmap_formats::natural_key;
use hopmap_model::{Link, Node};

use super::Result;
use super::finish::Parts;
use super::format::malformed;
use super::slurm_tree::Switch;

/// Hosts and links of rings, whose hosts are in order; and notes.
pub(super) fn parts(rings: &[Switch]) -> Result<(Parts, Vec<String>)> {
    let mut first: HashMap<&str, &Switch> = HashMap::new();
    for (at, ring) in rings.iter().enumerate() {
        if rings[..at].iter().any(|other| other.name == ring.name) {
            let problem = format!("the ring `{}` is defined twice", ring.name);
            return Err(malformed(ring.line, problem, "give every ring a name of its own"));
        }
        for host in &ring.hosts {
            if let Some(other) = first.insert(host, ring) {
                let problem = format!("the host `{host}` is twice in rings, first in `{}`", other.name);
                return Err(malformed(ring.line, problem, "a host must be in one ring, once"));
            }
        }
    }
    let mut hosts: Vec<&str> = first.into_keys().collect();
    hosts.sort_by_cached_key(|host| (natural_key(host), *host));
    let number: HashMap<&str, u32> = hosts.iter().copied().zip(0..).collect();
    let mut links = Vec::new();
    for Switch { hosts, .. } in rings {
        let next = hosts.iter().cycle().skip(1);
        // Two hosts have one cable, which is not also the one that closes the ring.
        let cables = if hosts.len() > 2 { hosts.len() } else { hosts.len().saturating_sub(1) };
        for (host, next) in hosts.iter().zip(next).take(cables) {
            let (a, b) = (number[host.as_str()], number[next.as_str()]);
            links.extend([Link::new(a, b), Link::new(b, a)]);
        }
    }
    links.sort_by_key(|link| (link.source, link.destination));
    Ok((Parts { nodes: hosts.into_iter().map(Node::host).collect(), links, ..Parts::default() }, Vec::new()))
}
