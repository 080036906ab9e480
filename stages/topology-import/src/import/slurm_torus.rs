//! 3D tori of Slurm's plugin `topology/torus3d`: `torus3d_record.c` there. Hosts have coordinates, of which x varies
//! fastest, and a link to the next host on every axis, around the end as well.

use std::collections::{BTreeMap, HashMap};

use hopmap_formats::natural_key;
use hopmap_model::{Link, Node};

use super::Result;
use super::finish::Parts;
use super::format::{malformed, note};

/// A torus in a file.
#[derive(Debug, Default)]
pub(super) struct Torus {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) dims: [u16; 3],
    /// The whole torus, or its regions.
    pub(super) placed: Vec<Placed>,
}

/// Hosts in the order of their coordinates in a part of a torus.
#[derive(Debug, Default)]
pub(super) struct Placed {
    pub(super) line: usize,
    pub(super) anchor: [u16; 3],
    pub(super) dims: [u16; 3],
    pub(super) hosts: Vec<String>,
}

impl Placed {
    pub(super) fn new(line: usize, hosts: Vec<String>) -> Self {
        Self { line, hosts, ..Self::default() }
    }
}

/// Hosts and links of tori; and notes.
pub(super) fn parts(tori: &[Torus]) -> Result<(Parts, Vec<String>)> {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut hosts: HashMap<&str, usize> = HashMap::new();
    let (mut cells, mut empty) = (Vec::new(), 0);
    for torus in tori {
        if names.insert(&torus.name, torus.line).is_some() {
            let problem = format!("the torus `{}` is defined twice", torus.name);
            return Err(malformed(torus.line, problem, "give every torus a unique name"));
        }
        let found = torus.cells()?;
        for (&host, line) in found.values().map(|(host, line)| (host, *line)) {
            if let Some(first) = hosts.insert(host, line) {
                let problem = format!("the host `{host}` is twice in tori, first on line {first}");
                return Err(malformed(line, problem, "a host has one place"));
            }
        }
        empty += torus.size() - found.len();
        cells.push(found);
    }
    let mut sorted: Vec<&str> = hosts.into_keys().collect();
    sorted.sort_by_cached_key(|host| (natural_key(host), *host));
    let number: HashMap<&str, u32> = sorted.iter().copied().zip(0..).collect();
    let mut links = Vec::new();
    for (torus, cells) in tori.iter().zip(&cells) {
        for (&from, (a, _)) in cells {
            for (b, _) in torus.next(from).into_iter().filter_map(|to| cells.get(&to)) {
                links.extend([Link::new(number[a], number[b]), Link::new(number[b], number[a])]);
            }
        }
    }
    links.sort_by_key(|link| (link.source, link.destination));
    let mut notes = Vec::new();
    note(&mut notes, "places of tori without a host, with no links", empty);
    Ok((Parts { nodes: sorted.into_iter().map(Node::host).collect(), links, ..Parts::default() }, notes))
}

impl Torus {
    fn size(&self) -> usize {
        size(self.dims)
    }

    /// The hosts by the index of their coordinates, and their lines.
    fn cells(&self) -> Result<BTreeMap<usize, (&str, usize)>> {
        let [x, y, z] = self.dims;
        if self.size() == 0 {
            let problem = format!("the torus `{}` has {x} × {y} × {z} places", self.name);
            return Err(malformed(self.line, problem, "every dimension is at least 1"));
        }
        let mut cells = BTreeMap::new();
        for Placed { line, anchor, dims, hosts } in &self.placed {
            let ends = [0, 1, 2].map(|axis| usize::from(anchor[axis]) + usize::from(dims[axis]));
            if ends.iter().zip(self.dims).any(|(&end, dim)| end > usize::from(dim)) {
                let problem = format!("a region reaches beyond the torus `{}` of {x} × {y} × {z}", self.name);
                return Err(malformed(*line, problem, "regions do not wrap around"));
            }
            if hosts.len() != size(*dims) {
                let [x, y, z] = dims;
                let problem = format!("{} hosts for {x} × {y} × {z} places", hosts.len());
                return Err(malformed(*line, problem, "list a host for every place, x varying fastest"));
            }
            for (index, host) in hosts.iter().enumerate() {
                let inside = coordinates(index, *dims);
                let cell = self.index([0, 1, 2].map(|axis| usize::from(anchor[axis]) + inside[axis]));
                if let Some((other, _)) = cells.insert(cell, (host.as_str(), *line)) {
                    let problem = format!("the hosts `{other}` and `{host}` have the same place");
                    return Err(malformed(*line, problem, "regions must not overlap"));
                }
            }
        }
        Ok(cells)
    }

    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        let [width, height, _] = self.dims.map(usize::from);
        x + width * (y + height * z)
    }

    /// The next places on all axes. On an axis of two there is one cable.
    fn next(&self, from: usize) -> Vec<usize> {
        let here = coordinates(from, self.dims);
        let next = |axis: usize| {
            let length = usize::from(self.dims[axis]);
            let mut next = here;
            next[axis] = (here[axis] + 1) % length;
            (length > 2 || next[axis] > here[axis]).then(|| self.index(next))
        };
        (0..3).filter_map(next).collect()
    }
}

fn size(dims: [u16; 3]) -> usize {
    dims.iter().fold(1usize, |all, &dim| all.saturating_mul(usize::from(dim)))
}

fn coordinates(index: usize, dims: [u16; 3]) -> [usize; 3] {
    let [width, height, _] = dims.map(usize::from);
    [index % width, index / width % height, index / width / height]
}

#[cfg(test)]
mod tests {
    use super::super::Imported;
    use super::*;
    use crate::import::{hops, samples};

    fn text(tori: &str) -> String {
        format!("- topology: t\n  torus3d:\n    toruses:\n{tori}")
    }

    fn import(tori: &str) -> Result<Imported> {
        samples::import(&text(tori))
    }

    fn fault(tori: &str) -> String {
        samples::fault(&text(tori))
    }

    /// The example of topology.yaml(5).
    const POD: &str = "    - name: pod1\n      dims:\n        x: 4\n        y: 4\n        z: 2\n      nodes: node[01-32]\n      placements:\n      - dims: {x: 2, y: 2, z: 1}\n";

    #[test]
    fn hosts_are_as_far_apart_as_their_coordinates_around_the_torus() {
        let Imported { system, notes } = import(POD).unwrap();
        assert_eq!(notes, Vec::<String>::new());
        let name = |index: usize| format!("node{:02}", index + 1);
        for (a, b) in (0..32).flat_map(|a| (0..32).map(move |b| (a, b))) {
            let axis = |a: usize, b: usize, length: usize| a.abs_diff(b).min(length - a.abs_diff(b));
            let expected = axis(a % 4, b % 4, 4) + axis(a / 4 % 4, b / 4 % 4, 4) + axis(a / 16, b / 16, 2);
            assert_eq!(hops(&system, &name(a), &name(b)), Some(expected as u32), "{a} {b}");
        }
        // Two axes of four and one of two.
        assert_eq!(system.links.len(), 2 * (32 + 32 + 16));
    }

    #[test]
    fn regions_place_hosts_with_any_names() {
        let regions = |second: &str| {
            format!(
                "    - name: pod1\n      dims: {{x: 4, y: 4, z: 2}}\n      regions:\n\
                 \u{20}     - {{anchor: {{x: 0, y: 0, z: 0}}, dims: {{x: 4, y: 2, z: 2}}, nodes: 'a[01-16]'}}\n\
                 \u{20}     - {{anchor: {{x: 0, y: {second}, z: 0}}, dims: {{x: 4, y: 2, z: 2}}, nodes: 'b[01-16]'}}\n"
            )
        };
        let Imported { system, .. } = import(&regions("2")).unwrap();
        assert_eq!((hops(&system, "a01", "b05"), hops(&system, "a05", "b01")), (Some(1), Some(1)));
        assert_eq!(system.links.len(), import(POD).unwrap().system.links.len());
        assert_eq!(fault(&regions("1")), "8: the hosts `a05` and `b01` have the same place");
        assert_eq!(fault(&regions("3")), "8: a region reaches beyond the torus `pod1` of 4 × 4 × 2");
    }

    #[test]
    fn a_part_of_a_torus_may_be_empty() {
        let one = "    - name: p\n      dims: {x: 3, y: 1, z: 1}\n      regions: {dims: {x: 2, y: 1, z: 1}, nodes: 'n[1-2]'}\n";
        let Imported { system, notes } = import(one).unwrap();
        assert_eq!(notes, ["places of tori without a host, with no links: 1"]);
        assert_eq!((system.nodes.len(), system.links.len()), (2, 2));
    }

    #[test]
    fn contradictions_are_one_message() {
        let torus = |rest: &str| format!("    - {{name: p, {rest}}}\n");
        assert_eq!(
            fault(&torus("dims: {x: 4, y: 4, z: 2}, nodes: 'n[1-8]'")),
            "4: 8 hosts for 4 × 4 × 2 places"
        );
        assert_eq!(fault(&torus("nodes: 'n[1-8]'")), "4: a torus without `dims`");
        assert_eq!(fault(&torus("dims: {x: 4, y: 0, z: 2}")), "4: the torus `p` has 4 × 0 × 2 places");
        let large = torus("dims: {x: 65535, y: 65535, z: 65535}, nodes: n1");
        assert_eq!(fault(&large), "4: 1 hosts for 65535 × 65535 × 65535 places");
        assert_eq!(fault(&torus("dims: {x: -4, y: 1, z: 1}")), "4: `x` is not a number from 0 to 65535");
        assert_eq!(fault(&torus("dims: 4x2x2")), "4: expected `x`, `y` and `z`");
        assert_eq!(fault(&torus("dims: {x: 1, y: 1, z: 1}")), "0: no hosts");
        assert_eq!(
            fault(&torus("dims: {x: 2, y: 1, z: 1}, nodes: 'n1,n1'")),
            "4: the host `n1` is twice in tori, first on line 4"
        );
        let twice =
            torus("dims: {x: 1, y: 1, z: 1}, nodes: n1") + &torus("dims: {x: 1, y: 1, z: 1}, nodes: n2");
        assert_eq!(fault(&twice), "5: the torus `p` is defined twice");
    }
}
