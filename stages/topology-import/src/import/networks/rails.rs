//! Networks that join the same hosts, and how they differ from rails: every rail has (nearly) the same hosts on one switch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Hosts on more switches, and switches with hosts of more others, are not compared pair by pair.
const MOST_SWITCHES: usize = 64;

type Sets = BTreeMap<usize, BTreeSet<usize>>;

/// Which hosts have cables to which switches.
pub(super) struct Cabling {
    hosts: Sets,
    switches: Sets,
}

impl Cabling {
    pub(super) fn new(cables: impl Iterator<Item = (usize, usize)>) -> Self {
        let (mut hosts, mut switches) = (Sets::new(), Sets::new());
        for (host, switch) in cables {
            hosts.entry(switch).or_default().insert(host);
            switches.entry(host).or_default().insert(switch);
        }
        switches.retain(|_, own| own.len() <= MOST_SWITCHES);
        Self { hosts, switches }
    }

    pub(super) fn hosts(&self, switches: &[usize]) -> BTreeSet<usize> {
        switches.iter().filter_map(|switch| self.hosts.get(switch)).flatten().copied().collect()
    }

    /// The switches that have some hosts of a switch, but not nearly the same ones.
    fn unlike(&self, switch: usize) -> BTreeSet<usize> {
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        let others = self.hosts[&switch].iter().filter_map(|host| self.switches.get(host)).flatten();
        others.for_each(|other| *shared.entry(*other).or_default() += 1);
        shared.retain(|other, both| {
            let all = self.hosts[&switch].len() + self.hosts[other].len() - *both;
            all - *both > (all / 4).max(1)
        });
        shared.into_keys().collect()
    }

    /// Whether a switch joins hosts that others separate, or most of those of another and some of its own. A few servers on several leaves
    /// do not count.
    fn is_crossing(&self, switch: usize) -> bool {
        let (unlike, own) = (self.unlike(switch), &self.hosts[&switch]);
        let ways = own.iter().filter_map(|host| self.switches.get(host)).map(|all| all & &unlike);
        let ways: Vec<BTreeSet<usize>> = ways.filter(|way| !way.is_empty()).collect();
        let (shared, ways) = (ways.len(), ways.into_iter().collect::<BTreeSet<_>>());
        let few = || ways.iter().take(MOST_SWITCHES);
        let separates = few().any(|a| few().any(|b| a.is_disjoint(b)));
        shared > 1 && (separates && 4 * shared >= own.len() || shared < own.len() && 2 * shared >= own.len())
    }

    /// The switches of networks that join hosts otherwise than each other.
    pub(super) fn crossing(&self) -> Vec<Vec<usize>> {
        let (mut side, mut all) = (BTreeMap::new(), Vec::<Vec<usize>>::new());
        for &first in self.hosts.keys() {
            if side.contains_key(&first) || !self.is_crossing(first) {
                continue;
            }
            // Each switch is in the first network in which no other has some of its hosts.
            let (mut queue, mut networks) = (VecDeque::from([first]), Vec::new());
            while let Some(switch) = queue.pop_front() {
                if side.contains_key(&switch) {
                    continue;
                }
                let unlike = self.unlike(switch);
                let taken: BTreeSet<usize> =
                    unlike.iter().filter_map(|other| side.get(other)).copied().collect();
                let own = (0..taken.len()).find(|own| !taken.contains(own)).unwrap_or(taken.len());
                side.insert(switch, own);
                networks.resize(networks.len().max(own + 1), Vec::new());
                networks[own].push(switch);
                queue.extend(unlike.into_iter().filter(|other| !side.contains_key(other)));
            }
            let networks = self.sorted(networks);
            all.resize(all.len().max(networks.len()), Vec::new());
            all.iter_mut().zip(networks).for_each(|(all, own)| all.extend(own));
        }
        all
    }

    /// Those of the given networks of which several hosts are in others, too.
    pub(super) fn several(&self, mut networks: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = self.count(&networks);
        networks.retain(|own| self.hosts(own).iter().filter(|host| count[host] > 1).nth(1).is_some());
        self.sorted(networks)
    }

    /// In how many networks a host is.
    fn count(&self, networks: &[Vec<usize>]) -> BTreeMap<usize, usize> {
        let mut count = BTreeMap::new();
        networks.iter().flat_map(|own| self.hosts(own)).for_each(|host| *count.entry(host).or_default() += 1);
        count
    }

    /// First what is likely to be a network for storage: that of the fewest switches, or alone with hosts that no other has.
    fn sorted(&self, mut networks: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = self.count(&networks);
        let has_own = |own: &Vec<usize>| self.hosts(own).iter().any(|host| count[host] == 1);
        let is_one = networks.iter().filter(|own| has_own(own)).count() == 1;
        networks.sort_by_cached_key(|own| (own.len(), !(is_one && has_own(own))));
        networks
    }
}
