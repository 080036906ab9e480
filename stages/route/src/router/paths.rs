//! The cheapest path of a flow that agrees with the tables for its destination, and restrictions of turns that leave no cycle in the
//! channel dependency graph.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::model::{FAR, Fabric};

/// No link.
const NONE: u32 = u32::MAX;

/// Looks for ways to one destination after the other (A*: a link is cheapest that is nearest to the destination), and remembers what the
/// tables say of the destination. Buffers are used again.
#[derive(Debug, Clone)]
pub(super) struct PathSearch {
    /// The way that was found last.
    pub path: Vec<u32>,
    cost: Vec<f64>,
    parent: Vec<u32>,
    length: Vec<u32>,
    seen: Vec<u32>,
    search: u32,
    queue: BinaryHeap<(Reverse<u64>, u32, Reverse<u32>)>,
    /// The link that follows: by switch of type 1, and after them by link that arrives at a switch of type 2.
    next: Vec<u32>,
    known: Vec<u32>,
    tree: u32,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathQuery<'a> {
    pub source: u32,
    pub destination: u32,
    /// Hops from every node to the destination, or fewer.
    pub hops: &'a [u32],
    /// Most links of the way.
    pub max_hops: u32,
    /// What a hop costs at least.
    pub hop: f64,
    /// What an entry of a table costs.
    pub entry: f64,
    /// Links that may not follow each link; empty if all may.
    pub bans: &'a [Vec<u32>],
}

impl PathSearch {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let links = fabric.head.len();
        let states = fabric.is_host.len() + links;
        Self {
            path: Vec::new(),
            cost: vec![0.0; links],
            parent: vec![NONE; links],
            length: vec![0; links],
            seen: vec![0; links],
            search: 0,
            queue: BinaryHeap::new(),
            next: vec![NONE; states],
            known: vec![0; states],
            tree: 0,
        }
    }

    /// Begins with empty tables.
    pub(super) fn clear(&mut self) {
        if self.tree == u32::MAX {
            self.known.fill(0);
            self.tree = 0;
        }
        self.tree += 1;
    }

    /// Where in `next` it stands what follows a link.
    fn state(fabric: &Fabric, link: u32) -> usize {
        let node = fabric.head[link as usize] as usize;
        if fabric.is_two[node] { fabric.is_host.len() + link as usize } else { node }
    }

    /// Finds the cheapest way that agrees with the tables so far; false if there is none. `price` is what a link costs, with its hop.
    pub(super) fn find(&mut self, fabric: &Fabric, wish: &PathQuery<'_>, price: impl Fn(u32) -> f64) -> bool {
        if self.search == u32::MAX {
            self.seen.fill(0);
            self.search = 0;
        }
        self.search += 1;
        self.queue.clear();
        for &link in fabric.leaving(wish.source) {
            self.reach(fabric, wish, (NONE, link), price(link));
        }
        while let Some((Reverse(key), length, Reverse(link))) = self.queue.pop() {
            let node = fabric.head[link as usize];
            let rest = wish.hop * f64::from(wish.hops[node as usize]);
            if key > (self.cost[link as usize] + rest).to_bits() || length != self.length[link as usize] {
                continue;
            }
            if node == wish.destination {
                self.trace(link);
                return true;
            }
            let state = Self::state(fabric, link);
            let cost = self.cost[link as usize];
            if self.known[state] == self.tree {
                let next = self.next[state];
                self.reach(fabric, wish, (link, next), cost + price(next));
            } else {
                for &next in fabric.leaving(node) {
                    self.reach(fabric, wish, (link, next), cost + wish.entry + price(next));
                }
            }
        }
        false
    }

    /// Reaches a link after another if that is allowed, and cheaper than before.
    fn reach(&mut self, fabric: &Fabric, wish: &PathQuery<'_>, (link, next): (u32, u32), cost: f64) {
        let head = fabric.head[next as usize];
        let rest = wish.hops[head as usize];
        let length = if link == NONE { 1 } else { self.length[link as usize] + 1 };
        let is_dead_end = fabric.is_host[head as usize] && head != wish.destination;
        let is_worse = self.seen[next as usize] == self.search && cost >= self.cost[next as usize];
        if is_dead_end || is_worse || rest == FAR || length + rest > wish.max_hops || !cost.is_finite() {
            return;
        }
        let is_banned = wish.bans.get(link as usize).is_some_and(|bans| bans.contains(&next));
        if is_banned || self.passes(fabric, link, head) {
            return;
        }
        self.seen[next as usize] = self.search;
        self.cost[next as usize] = cost;
        self.parent[next as usize] = link;
        self.length[next as usize] = length;
        let key = cost + wish.hop * f64::from(rest);
        self.queue.push((Reverse(key.to_bits()), length, Reverse(next)));
    }

    /// Whether the way up to a link passes a node.
    fn passes(&self, fabric: &Fabric, mut link: u32, node: u32) -> bool {
        while link != NONE {
            if fabric.tail[link as usize] == node {
                return true;
            }
            link = self.parent[link as usize];
        }
        false
    }

    fn trace(&mut self, mut link: u32) {
        self.path.clear();
        while link != NONE {
            self.path.push(link);
            link = self.parent[link as usize];
        }
        self.path.reverse();
    }

    /// Writes a way into the tables.
    pub(super) fn enter(&mut self, fabric: &Fabric, path: &[u32]) {
        for pair in path.windows(2) {
            let state = Self::state(fabric, pair[0]);
            self.known[state] = self.tree;
            self.next[state] = pair[1];
        }
    }
}

/// Roots that are tried for an order of switches.
const ROOTS: usize = 3;

/// The pair of links that follow each other in a cycle which the fewest ways take; the first of them.
pub(super) fn rarest(cycle: &[u32], ways: &[Vec<u32>]) -> (u32, u32) {
    let pair = |at: usize| (cycle[at], cycle[(at + 1) % cycle.len()]);
    let mut taken: BTreeMap<(u32, u32), usize> = (0..cycle.len()).map(|at| (pair(at), 0)).collect();
    for way in ways {
        for link in way.windows(2) {
            taken.entry((link[0], link[1])).and_modify(|count| *count += 1);
        }
    }
    let rarest = (0..cycle.len()).map(pair).min_by_key(|pair| taken.get(pair).copied().unwrap_or_default());
    rarest.unwrap_or_default()
}

/// Bans under which links never wait in a cycle, by link: up to a root and down again, and never up after down (Autonet, Schroeder and
/// others 1991), for the switches from which the others are nearest; at last the same on the links of a tree alone.
pub(super) fn rules(fabric: &Fabric) -> Vec<Vec<Vec<u32>>> {
    let nodes = fabric.is_host.len() as u32;
    let mut roots: Vec<(u32, u32)> = (0..nodes)
        .filter(|&node| !fabric.is_host[node as usize])
        .map(|node| (levels(fabric, node).0.iter().flatten().copied().max().unwrap_or(0), node))
        .collect();
    roots.sort_unstable();
    let mut rules: Vec<Vec<Vec<u32>>> =
        roots.iter().take(ROOTS).map(|&(_, root)| up_and_down(fabric, root, false)).collect();
    rules.extend(roots.first().map(|&(_, root)| up_and_down(fabric, root, true)));
    rules
}

/// Hops of every switch from a root, as far as it has any, whatever the direction of links; and the first neighbour on the way there.
fn levels(fabric: &Fabric, root: u32) -> (Vec<Option<u32>>, Vec<Option<u32>>) {
    let mut level = vec![None; fabric.is_host.len()];
    let mut parent = vec![None; fabric.is_host.len()];
    level[root as usize] = Some(0);
    let mut queue = std::collections::VecDeque::from([(root, 0)]);
    while let Some((node, at)) = queue.pop_front() {
        let leaving = fabric.leaving(node).iter().map(|&link| fabric.head[link as usize]);
        let arriving = fabric.arriving(node).iter().map(|&link| fabric.tail[link as usize]);
        for other in leaving.chain(arriving) {
            if level[other as usize].is_none() && !fabric.is_host[other as usize] {
                level[other as usize] = Some(at + 1);
                parent[other as usize] = Some(node);
                queue.push_back((other, at + 1));
            }
        }
    }
    (level, parent)
}

fn up_and_down(fabric: &Fabric, root: u32, tree: bool) -> Vec<Vec<u32>> {
    let (level, parent) = levels(fabric, root);
    let key = |node: u32| (level[node as usize].unwrap_or(u32::MAX), node);
    let between_switches = |link: u32| {
        [&fabric.tail, &fabric.head].iter().all(|end| !fabric.is_host[end[link as usize] as usize])
    };
    let is_up = |link: u32| key(fabric.head[link as usize]) < key(fabric.tail[link as usize]);
    let is_outside = |link: u32| {
        let (tail, head) = (fabric.tail[link as usize], fabric.head[link as usize]);
        tree && parent[tail as usize] != Some(head) && parent[head as usize] != Some(tail)
    };
    let is_banned = |link: u32, next: u32| {
        let are = between_switches(link) && between_switches(next);
        (between_switches(next) && is_outside(next)) || (are && !is_up(link) && is_up(next))
    };
    let bans = |link: u32| {
        let leaving = fabric.leaving(fabric.head[link as usize]).iter().copied();
        leaving.filter(|&next| is_banned(link, next)).collect()
    };
    (0..fabric.head.len() as u32).map(bans).collect()
}
