//! The largest load of a link.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_objective::LinkLoads;

use super::super::instance::Instance;
use super::{Maximum, Partial, Prices, least_product};

/// Maximum hosts whose permutations are looked for.
const MOST_HOSTS: usize = 64;

/// The loads of all links.
#[derive(Clone)]
pub(in super::super) struct Loads<'s> {
    instance: &'s Instance<'s>,
    links: LinkLoads<'s>,
    /// By rank of the instance: the others with which it exchanges bytes, and how many it sends and receives.
    partners: Vec<Vec<(u32, [i64; 2])>>,
    /// Host of every slot, and the first slot of every host.
    host_of: Vec<u32>,
    first: Vec<u32>,
    /// Links from host a to host b of n, at a * n + b.
    hops: Vec<i64>,
    /// By host: the inverse of the cost of a byte, summed over the links by which bytes leave and enter it.
    gates: Vec<[f64; 2]>,
    /// The same for all links, which count twice.
    divisor: f64,
    /// The pairs of hosts whose bytes pass a link, for links of which there are some, and the cost of a byte.
    passing: Vec<(i64, Vec<(u32, u32)>)>,
    /// Numbers of the kinds of routes between slots, if permutations are looked for.
    kinds: Option<Vec<i64>>,
}

impl<'s> Loads<'s> {
    pub(in super::super) fn new(links: LinkLoads<'s>, instance: &'s Instance<'s>) -> Self {
        let (nodes, slots) = (links.nodes(), instance.slots as u32);
        let (mut host_of, mut first, mut hosts) = (Vec::new(), Vec::new(), BTreeMap::new());
        for slot in 0..slots {
            let next = hosts.len() as u32;
            let host = *hosts.entry(nodes[slot as usize]).or_insert(next);
            if host == next {
                first.push(slot);
            }
            host_of.push(host);
        }
        let pairs = || (0..first.len() as u32).flat_map(|a| (0..first.len() as u32).map(move |b| (a, b)));
        let mut passing: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        let mut hops = vec![0; first.len() * first.len()];
        for (at, pair) in pairs().enumerate().filter(|(_, (a, b))| a != b) {
            links.walk(first[pair.0 as usize], first[pair.1 as usize], |link| {
                passing.entry(link).or_default().push(pair);
                hops[at] += 1;
            });
        }
        let mut gates = vec![[0.0; 2]; first.len()];
        for &link in passing.keys() {
            for (end, node) in links.links()[link as usize].into_iter().enumerate() {
                if let Some(&host) = hosts.get(&node) {
                    gates[host as usize][end] += 1.0 / links.cost(link, 1) as f64;
                }
            }
        }
        let divisor = 2.0 * passing.keys().map(|&link| 1.0 / links.cost(link, 1) as f64).sum::<f64>();
        let passing = passing.into_iter().map(|(link, pairs)| (links.cost(link, 1), pairs)).collect();
        let partners = (0..instance.ranks()).map(|rank| instance.rows(links.partners(instance.rank(rank))));
        let partners = partners.collect();
        let mut all =
            Self { instance, links, partners, host_of, first, hops, gates, divisor, passing, kinds: None };
        all.kinds = (all.first.len() <= MOST_HOSTS).then(|| all.kinds());
        all
    }

    /// Routes are of one kind if as many routes pass their links, at the same cost of a byte.
    fn kinds(&self) -> Vec<i64> {
        let hosts = self.first.len();
        let mut routes = vec![Vec::new(); hosts * hosts];
        for (cost, pairs) in &self.passing {
            pairs
                .iter()
                .for_each(|&(a, b)| routes[a as usize * hosts + b as usize].push((*cost, pairs.len())));
        }
        routes.iter_mut().for_each(|route| route.sort_unstable());
        let sorted: BTreeSet<_> = routes.iter().collect();
        let numbers: BTreeMap<_, i64> = sorted.into_iter().zip(1..).collect();
        let slots = self.host_of.len();
        let kind = |a: usize, b: usize| match (self.host_of[a] as usize, self.host_of[b] as usize) {
            _ if a == b => -1,
            (one, other) if one == other => 0,
            (one, other) => numbers[&routes[one * hosts + other]],
        };
        (0..slots * slots).map(|at| kind(at / slots, at % slots)).collect()
    }

    fn hops(&self, a: u32, b: u32) -> i64 {
        let [a, b] = [a, b].map(|slot| self.host_of[slot as usize] as usize);
        self.hops[a * self.first.len() + b]
    }

    /// The least that the busiest of the links by which bytes leave or enter a host carries.
    fn gate(&self, host: usize, bytes: [i64; 2]) -> i64 {
        let least = |end: usize| match bytes[end] {
            0 => 0,
            // Rounded down before it is rounded up, as the quotient is not exact.
            bytes => (bytes as f64 / self.gates[host][end] * (1.0 - 1e-9)).ceil() as i64,
        };
        least(0).max(least(1))
    }

    /// The bytes of all pairs of ranks with a slot over every link, and their sum over all links.
    fn placed_loads(&self, placed: &[(u32, u32)], partial: &Partial) -> (Vec<i64>, i64) {
        let mut bytes = vec![0; self.links.links().len()];
        let mut sum = 0;
        for &(rank, slot) in placed {
            for &(other, [sent, _]) in &self.partners[rank as usize] {
                let Some(there) = partial.slots[other as usize].filter(|_| sent > 0) else { continue };
                self.links.walk(slot, there, |link| bytes[link as usize] += sent);
                sum += sent * self.hops(slot, there);
            }
        }
        (bytes, sum)
    }
}

/// The bytes that leave and enter a host: with ranks that are elsewhere, and with every row.
#[derive(Clone)]
struct Crossing {
    elsewhere: [i64; 2],
    rows: Vec<[i64; 2]>,
}

impl Crossing {
    /// Adds the traffic of a rank on a host.
    fn add(&mut self, loads: &Loads<'_>, partial: &Partial, rank: u32, host: u32, row_of: &[usize]) {
        for &(other, bytes) in &loads.partners[rank as usize] {
            let sum = match partial.slots[other as usize] {
                None => &mut self.rows[row_of[other as usize]],
                Some(slot) if loads.host_of[slot as usize] == host => continue,
                Some(_) => &mut self.elsewhere,
            };
            (0..2).for_each(|end| sum[end] += bytes[end]);
        }
    }

    /// The least bytes if `room` rows are on the host, and one of them if given.
    fn least(&self, room: usize, row: Option<usize>) -> [i64; 2] {
        [0, 1].map(|end| {
            let others = self.rows.iter().enumerate().filter(|(other, _)| Some(*other) != row);
            let mut bytes: Vec<i64> = others.map(|(_, bytes)| bytes[end]).collect();
            bytes.sort_unstable_by(|a, b| b.cmp(a));
            self.elsewhere[end] + bytes.iter().skip(room).sum::<i64>()
        })
    }
}

impl Maximum for Loads<'_> {
    fn of(&self, slots: &[u32]) -> i64 {
        self.links.largest(slots)
    }

    /// A rank on a slot adds the bytes of its messages to and from the ranks with a slot to the links between
    /// them. Besides, what the ranks of a host exchange with ranks that do not fit on it passes its links.
    fn prices(&self, partial: &Partial) -> Prices {
        let Partial { rows, columns, .. } = partial;
        let placed: Vec<(u32, u32)> = partial.placed().collect();
        let (mut bytes, sum) = self.placed_loads(&placed, partial);
        let links = self.links;
        let busiest = (0..).zip(&bytes).map(|(link, &bytes)| links.cost(link, bytes)).max().unwrap_or(0);
        let mut prices = Prices { floor: busiest, sum: 2 * sum, ..Prices::default() };
        let mut row_of = vec![0; self.instance.ranks()];
        rows.iter().enumerate().for_each(|(row, &rank)| row_of[rank as usize] = row);
        let hosts = self.first.len();
        let mut crossing = vec![Crossing { elsewhere: [0; 2], rows: vec![[0; 2]; rows.len()] }; hosts];
        for &(rank, slot) in &placed {
            let host = self.host_of[slot as usize];
            crossing[host as usize].add(self, partial, rank, host, &row_of);
        }
        let mut room = vec![0; hosts];
        columns.iter().for_each(|&slot| room[self.host_of[slot as usize] as usize] += 1);
        for (host, crossing) in crossing.iter().enumerate() {
            prices.floor = prices.floor.max(self.gate(host, crossing.least(room[host], None)));
        }
        // The least hops from every column to the others.
        let hops: Vec<Vec<i64>> = columns.iter().map(|&slot| self.ascending_hops(slot, columns)).collect();
        for (row, &rank) in rows.iter().enumerate() {
            let weights = self.descending_weights(rank, partial);
            let mut of_host: Vec<Option<(i64, i64)>> = vec![None; hosts];
            for (&slot, hops) in columns.iter().zip(&hops) {
                let host = self.host_of[slot as usize];
                let (maximum, sum) = *of_host[host as usize].get_or_insert_with(|| {
                    let (added, sum) = self.add(rank, slot, partial, &mut bytes);
                    let mut crossing = crossing[host as usize].clone();
                    crossing.add(self, partial, rank, host, &row_of);
                    let least = crossing.least(room[host as usize] - 1, Some(row));
                    (added.max(self.gate(host as usize, least)), sum)
                });
                prices.maxima.push(maximum);
                prices.sums.push(2 * sum + least_product(&weights, hops));
            }
        }
        prices
    }

    fn divisor(&self) -> f64 {
        self.divisor
    }

    fn costs(&self) -> Option<&[i64]> {
        self.kinds.as_deref()
    }

    /// Whether the hosts of the pairs that pass a link are exchanged for those of another link that costs as
    /// much.
    fn is_preserved(&self, image: &[usize]) -> bool {
        let mut host_image = vec![None; self.first.len()];
        for (slot, &there) in image.iter().enumerate() {
            let (host, there) = (self.host_of[slot] as usize, self.host_of[there]);
            if *host_image[host].get_or_insert(there) != there {
                return false;
            }
        }
        let exchanged = |host: u32| host_image[host as usize].unwrap_or(host);
        let moved = self.passing.iter().map(|(cost, pairs)| {
            let mut pairs: Vec<_> = pairs.iter().map(|&(a, b)| (exchanged(a), exchanged(b))).collect();
            pairs.sort_unstable();
            (*cost, pairs)
        });
        let mut moved: Vec<_> = moved.collect();
        let mut before = self.passing.clone();
        moved.sort_unstable();
        before.sort_unstable();
        moved == before
    }
}

impl Loads<'_> {
    /// The bytes of a rank with every row but itself, from the largest.
    fn descending_weights(&self, rank: u32, partial: &Partial) -> Vec<i64> {
        let open =
            self.partners[rank as usize].iter().filter(|(other, _)| partial.slots[*other as usize].is_none());
        let mut weights: Vec<i64> = open.map(|(_, [sent, received])| sent + received).collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights
    }

    /// The links from a slot to every other column or back, whichever are fewer, from the fewest.
    fn ascending_hops(&self, slot: u32, columns: &[u32]) -> Vec<i64> {
        let others = columns.iter().filter(|&&other| other != slot);
        let mut hops: Vec<i64> =
            others.map(|&there| self.hops(slot, there).min(self.hops(there, slot))).collect();
        hops.sort_unstable();
        hops
    }

    /// The largest load of a link that a rank on a slot uses with the ranks that have one, and the sum of its
    /// bytes over all links.
    fn add(&self, rank: u32, slot: u32, partial: &Partial, bytes: &mut [i64]) -> (i64, i64) {
        let mut used = Vec::new();
        let mut sum = 0;
        for &(other, amounts) in &self.partners[rank as usize] {
            let Some(there) = partial.slots[other as usize] else { continue };
            for (more, [from, to]) in amounts.into_iter().zip([[slot, there], [there, slot]]) {
                if more > 0 {
                    self.links.walk(from, to, |link| used.push((link, more)));
                    sum += more * self.hops(from, to);
                }
            }
        }
        used.iter().for_each(|&(link, more)| bytes[link as usize] += more);
        let largest = used.iter().map(|&(link, _)| self.links.cost(link, bytes[link as usize])).max();
        used.iter().for_each(|&(link, more)| bytes[link as usize] -= more);
        (largest.unwrap_or(0), sum)
    }
}
