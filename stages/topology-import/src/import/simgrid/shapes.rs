//! The regular clusters of SimGrid: fat trees, tori and dragonflies, with their routes.

use std::collections::HashSet;

use hopmap_model::{Link, Node, NodeKind, to_u32};

/// Largest number of links of a cluster.
const MOST_LINKS: u64 = 1 << 24;

/// Latency and bandwidth of a link.
pub(super) type Wire = (f64, f64);

/// The numbers of a list.
pub(super) fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse().ok().filter(|&number: &u32| number > 0);
    text.split(',').map(number).collect()
}

fn product(numbers: &[u32]) -> Option<u64> {
    numbers.iter().try_fold(1_u64, |product, &number| {
        product.checked_mul(u64::from(number)).filter(|&product| product <= MOST_LINKS)
    })
}

/// Checks the number of hosts of a shape, and limits its links.
fn check(hosts: &[u32], wanted: Option<u64>, what: &str) -> Result<(), String> {
    match wanted {
        Some(count) if count == hosts.len() as u64 => Ok(()),
        Some(count) => Err(format!("{what} of {count} hosts, but `radical` lists {}", hosts.len())),
        None => Err(format!("{what} of more than {MOST_LINKS} hosts")),
    }
}

/// A fat tree: number of levels, then for each level children, parents and parallel links.
///
/// Links leave a node in port order, so that the destination number selects one as in SimGrid (D-mod-K).
/// Returns whether that holds for the entire tree.
pub(super) fn fat_tree(
    net: &mut Net,
    id: &str,
    hosts: &[u32],
    parameters: &str,
    wire: Wire,
) -> Result<bool, String> {
    let help = || {
        format!(
            "`{parameters}` is not a fat tree: give levels, children, parents and parallel links, such as `2;4,4;1,2;1,2`"
        )
    };
    let fields: Vec<&str> = parameters.split(';').collect();
    let [levels, down, up, ports] = fields.as_slice() else { return Err(help()) };
    let levels: usize = levels.trim().parse().map_err(|_| help())?;
    let lists = [down, up, ports].map(|list| numbers(list).filter(|list| list.len() == levels));
    let [Some(down), Some(up), Some(ports)] = lists else { return Err(help()) };
    if levels == 0 || levels > 16 {
        return Err(help());
    }
    check(hosts, product(&down), "a fat tree")?;
    // By level, the number of nodes for each digit of their label.
    let digits = |level: usize| -> Vec<u32> {
        (0..levels).map(|digit| if digit + 1 > level { down[digit] } else { up[digit] }).collect()
    };
    let mut links = 0_u64;
    for level in 0..levels {
        let nodes = product(&digits(level)).ok_or("a fat tree of too many switches")?;
        let own = nodes
            .checked_mul(u64::from(up[level]))
            .and_then(|links| links.checked_mul(u64::from(ports[level])));
        links = own
            .and_then(|own| links.checked_add(own))
            .filter(|&links| links <= MOST_LINKS)
            .ok_or("a fat tree of too many links")?;
    }
    let mut below = hosts.to_vec();
    for level in 0..levels {
        let upper = digits(level + 1);
        let count = product(&upper).unwrap_or(0);
        let above: Vec<u32> =
            (0..count).map(|position| net.switch(&format!("{id}_level{}_{position}", level + 1))).collect();
        let lower = digits(level);
        let stride = |digits: &[u32]| digits[..level].iter().map(|&digit| digit as usize).product::<usize>();
        let (stride_below, stride_above) = (stride(&lower), stride(&upper));
        for (position, &child) in below.iter().enumerate() {
            // The label of a parent differs only in the digit of this level.
            let low = position % stride_below;
            let high = position / stride_below / lower[level] as usize;
            for _ in 0..ports[level] {
                for digit in 0..up[level] as usize {
                    let parent = above[low + stride_above * (digit + up[level] as usize * high)];
                    net.link(child, parent, wire, u32::MAX);
                }
            }
        }
        let ups = net.links.len();
        let first = ups - below.len() * (ports[level] * up[level]) as usize;
        for index in first..ups {
            let link = net.links[index];
            net.link(link.destination, link.source, wire, u32::MAX);
        }
        below = above;
    }
    Ok(up[0] == 1 && ports.iter().all(|&count| count == 1))
}

/// A torus of hosts. Links leave a host in dimension order, upwards first, unless the destination is half-way
/// around: there SimGrid goes downwards.
pub(super) fn torus(net: &mut Net, hosts: &[u32], parameters: &str, wire: Wire) -> Result<(), String> {
    let dimensions = numbers(parameters)
        .ok_or_else(|| format!("`{parameters}` is not a list of torus dimensions such as `4,4,2`"))?;
    check(hosts, product(&dimensions), "a torus")?;
    if (dimensions.len() as u64).saturating_mul(2 * hosts.len() as u64) > MOST_LINKS {
        return Err("a torus of too many links".into());
    }
    for (position, &host) in hosts.iter().enumerate() {
        let mut stride = 1;
        for &size in &dimensions {
            let size = size as usize;
            let coordinate = position / stride % size;
            let neighbour = |to: usize| hosts[position + to * stride - coordinate * stride];
            let ends = [neighbour((coordinate + 1) % size), neighbour((coordinate + size - 1) % size)];
            stride *= size;
            if size == 1 {
                continue;
            }
            let down_first = size.is_multiple_of(2) && coordinate == size / 2;
            let order = if down_first { [1, 0] } else { [0, 1] };
            order.into_iter().for_each(|end| net.link(host, ends[end], wire, u32::MAX));
        }
    }
    Ok(())
}

/// A dragonfly: groups, chassis per group and blades per chassis, each with the number of parallel cables,
/// and nodes per blade. Links leave a router to its hosts, within its chassis, to the same blade of other
/// chassis, and to another group; SimGrid uses this order.
pub(super) fn dragonfly(
    net: &mut Net,
    id: &str,
    hosts: &[u32],
    parameters: &str,
    wire: Wire,
) -> Result<(), String> {
    let help = || {
        format!(
            "`{parameters}` is not a dragonfly: give groups, chassis and blades with their links, and nodes, such as `3,4;4,3;5,1;2`"
        )
    };
    let parts: Vec<Vec<u32>> =
        parameters.split(';').map(|part| numbers(part).ok_or_else(help)).collect::<Result<_, _>>()?;
    let [groups, chassis, blades, nodes] = parts.as_slice() else { return Err(help()) };
    let (&[groups, blue], &[chassis, black], &[blades, green], &[nodes]) =
        (groups.as_slice(), chassis.as_slice(), blades.as_slice(), nodes.as_slice())
    else {
        return Err(help());
    };
    check(hosts, product(&[groups, chassis, blades, nodes]), "a dragonfly")?;
    if groups > blades {
        return Err(format!(
            "{groups} groups, but {blades} blades per chassis: each blade leads to the group with its number"
        ));
    }
    let count = u64::from(groups) * u64::from(chassis) * u64::from(blades);
    if count.saturating_mul(u64::from(chassis) + u64::from(blades)) + hosts.len() as u64 > MOST_LINKS {
        return Err("a dragonfly of too many links".into());
    }
    let bundle = |cables: u32| (wire.0, wire.1 * f64::from(cables));
    let [groups, chassis, blades, nodes] = [groups, chassis, blades, nodes].map(|number| number as usize);
    let mut switch = Vec::new();
    for number in 0..groups * chassis * blades {
        let (group, rest) = (number / (chassis * blades), number % (chassis * blades));
        switch.push(net.switch(&format!(
            "{id}_group{group}_chassis{}_blade{}",
            rest / blades,
            rest % blades
        )));
    }
    let at = |group: usize, case: usize, blade: usize| switch[(group * chassis + case) * blades + blade];
    for group in 0..groups {
        for case in 0..chassis {
            for blade in 0..blades {
                let own = at(group, case, blade);
                let first = ((group * chassis + case) * blades + blade) * nodes;
                for &host in &hosts[first..first + nodes] {
                    net.link(host, own, wire, u32::MAX);
                    net.link(own, host, wire, u32::MAX);
                }
                (0..blades)
                    .filter(|&other| other != blade)
                    .for_each(|other| net.link(own, at(group, case, other), bundle(green), u32::MAX));
                (0..chassis)
                    .filter(|&other| other != case)
                    .for_each(|other| net.link(own, at(group, other, blade), bundle(black), u32::MAX));
                if case == 0 && blade < groups && blade != group {
                    net.link(own, at(blade, 0, group), bundle(blue), u32::MAX);
                }
            }
        }
    }
    Ok(())
}

/// Nodes and links; each link refers to its link of the platform.
#[derive(Debug, Default)]
pub(super) struct Net {
    pub(super) nodes: Vec<Node>,
    /// Number of cores of each host node.
    pub(super) cores: Vec<u32>,
    pub(super) links: Vec<Link>,
    /// For each link, the link of the platform.
    pub(super) origin: Vec<u32>,
    names: HashSet<String>,
}

impl Net {
    pub(super) fn host(&mut self, name: &str, cores: u32) -> Option<u32> {
        self.names.insert(name.to_owned()).then(|| self.push(Node::host(name), cores))
    }

    /// Adds a switch; `_` is appended to its name until it is unique.
    pub(super) fn switch(&mut self, name: &str) -> u32 {
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.push(Node::switch(name), 0)
    }

    fn push(&mut self, node: Node, cores: u32) -> u32 {
        self.nodes.push(node);
        self.cores.push(cores);
        to_u32(self.nodes.len()) - 1
    }

    /// A directed link.
    pub(super) fn link(
        &mut self,
        source: u32,
        destination: u32,
        (latency, bandwidth): (f64, f64),
        origin: u32,
    ) {
        let known = Some(bandwidth).filter(|bandwidth| *bandwidth > 0.0);
        self.links.push(Link {
            latency_s: Some(latency),
            bandwidth_bytes_per_s: known,
            ..Link::new(source, destination)
        });
        self.origin.push(origin);
    }

    /// Moves hosts to the front; returns the new index of each node.
    pub(super) fn hosts_first(&mut self) -> Vec<u32> {
        let is_host = |node: &u32| self.nodes[*node as usize].kind == NodeKind::Host;
        let all: Vec<u32> = (0..to_u32(self.nodes.len())).collect();
        let (hosts, switches): (Vec<u32>, Vec<u32>) = all.iter().partition(|node| is_host(node));
        let order: Vec<u32> = hosts.into_iter().chain(switches).collect();
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &old)| place[old as usize] = new);
        self.nodes = order.iter().map(|&old| self.nodes[old as usize].clone()).collect();
        self.cores = order.iter().map(|&old| self.cores[old as usize]).collect();
        for link in &mut self.links {
            link.source = place[link.source as usize];
            link.destination = place[link.destination as usize];
        }
        place
    }
}
