//! From which link a route may go on to which, so that links cannot wait for each other in a circle.

use std::collections::BTreeMap;

use super::fabric::Fabric;

/// Roots that are tried for an order of switches.
const ROOTS: usize = 3;

/// The pair of links that follow each other in a circle which the fewest ways take; the first of them.
pub(super) fn rarest(circle: &[u32], ways: &[Vec<u32>]) -> (u32, u32) {
    let pair = |at: usize| (circle[at], circle[(at + 1) % circle.len()]);
    let mut taken: BTreeMap<(u32, u32), usize> = (0..circle.len()).map(|at| (pair(at), 0)).collect();
    for way in ways {
        for link in way.windows(2) {
            taken.entry((link[0], link[1])).and_modify(|count| *count += 1);
        }
    }
    let rarest = (0..circle.len()).map(pair).min_by_key(|pair| taken.get(pair).copied().unwrap_or_default());
    rarest.unwrap_or_default()
}

/// Bans under which links never wait in a circle, by link: up to a root and down again, and never up after down (Autonet, Schroeder and
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
