//! The bytes over the links of a machine, what a byte costs on a link, and the links between its hosts.

use std::collections::BTreeMap;

use hopmap_model::{Link, Paths, SystemGraph, TaskGraph};

use crate::error::{ObjectiveError, no_route};
use crate::scale::{Room, Scales};

/// Unit of the load of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoadUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// Bytes divided by the bandwidth of the link.
    Seconds,
}

/// The integer cost of a byte on every link.
#[derive(Debug, Clone)]
pub(crate) struct LinkCosts {
    per_byte: Vec<i64>,
    /// Integer cost of one unit of the load.
    scale: f64,
}

impl LinkCosts {
    /// For at most `total` bytes on a link. Seconds are in units of the fastest link, so that usual ratios of
    /// bandwidths are small integers. Fails if a link has no bandwidth.
    pub(crate) fn new(
        unit: LoadUnit,
        system: &SystemGraph,
        total: i64,
        room: Room,
    ) -> Result<Self, ObjectiveError> {
        if unit == LoadUnit::Bytes {
            return Ok(Self { per_byte: vec![1; system.links.len()], scale: 1.0 });
        }
        let bandwidth = |link: &Link| {
            let known =
                link.bandwidth_bytes_per_s.filter(|bandwidth| bandwidth.is_finite() && *bandwidth > 0.0);
            known.ok_or_else(|| ObjectiveError::no_bandwidth(system, link))
        };
        let bandwidths = system.links.iter().map(bandwidth).collect::<Result<Vec<f64>, _>>()?;
        let fastest = bandwidths.iter().copied().fold(0.0, f64::max);
        let ratios: Vec<f64> = bandwidths.into_iter().map(|bandwidth| fastest / bandwidth).collect();
        let scale = Scales::new(&[total as f64], &ratios, room)?.cost;
        let per_byte = ratios.into_iter().map(|ratio| (ratio * scale).round() as i64).collect();
        Ok(Self { per_byte, scale: scale * fastest })
    }

    /// The scale, and the largest cost of a byte.
    pub(crate) fn size(&self) -> [f64; 2] {
        [self.scale, self.per_byte.iter().copied().max().unwrap_or(0) as f64]
    }

    /// The cost of these bytes on a link.
    pub(crate) fn of(&self, link: u32, bytes: i64) -> i64 {
        self.per_byte[link as usize] * bytes
    }

    /// The costs of the bytes on all links.
    pub(crate) fn of_all(&self, bytes: &[i64]) -> Vec<i64> {
        self.per_byte.iter().zip(bytes).map(|(cost, bytes)| cost * bytes).collect()
    }
}

/// Bytes between ranks, and the links that they pass.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    /// Partners of every rank, without itself.
    partners: Vec<Vec<Partner>>,
    /// By slot: its node, or its host index if routes are stored.
    host_of: Vec<u32>,
    routes: HostRoutes,
    /// Source and destination of every link, and the node of every slot.
    links: Vec<[u32; 2]>,
    nodes: Vec<u32>,
    /// Total bytes between different ranks, an upper bound of link loads.
    pub(crate) total: i64,
}

/// A rank with which another one exchanges bytes.
#[derive(Debug, Clone, Copy)]
struct Partner {
    rank: u32,
    sent: i64,
    received: i64,
}

impl Traffic {
    /// Fails if the total bytes overflow, or if some hosts are not connected.
    pub(crate) fn new(graph: &TaskGraph, system: &SystemGraph, paths: Paths) -> Result<Self, ObjectiveError> {
        let mut pairs: BTreeMap<(u32, u32), [i64; 2]> = BTreeMap::new();
        let mut total = 0i64;
        for edge in graph.edges.iter().filter(|edge| edge.source != edge.destination && edge.bytes > 0) {
            let bytes = i64::try_from(edge.bytes).map_err(|_| ObjectiveError::too_large())?;
            total = total.checked_add(bytes).ok_or_else(ObjectiveError::too_large)?;
            pairs.entry((edge.source, edge.destination)).or_default()[0] += bytes;
            pairs.entry((edge.destination, edge.source)).or_default()[1] += bytes;
        }
        let mut partners = vec![Vec::new(); graph.ranks()];
        for ((rank, other), [sent, received]) in pairs {
            partners[rank as usize].push(Partner { rank: other, sent, received });
        }
        let (host_of, routes) = routes(system, paths)?;
        let links = system.links.iter().map(|link| [link.source, link.destination]).collect();
        let nodes = system.slots.iter().map(|slot| slot.host).collect();
        Ok(Self { partners, host_of, routes, links, nodes, total })
    }

    /// Whether a rank exchanges bytes with another one.
    pub(crate) fn concerns(&self, rank: u32) -> bool {
        !self.partners[rank as usize].is_empty()
    }

    /// Bytes over every link.
    pub(crate) fn loads(&self, slots: &[u32]) -> Vec<i64> {
        let mut loads = vec![0; self.links.len()];
        for (rank, partners) in self.partners.iter().enumerate() {
            for partner in partners {
                let [from, to] = [slots[rank], slots[partner.rank as usize]].map(|slot| self.host(slot));
                self.walk(from, to, |link| loads[link as usize] += partner.sent);
            }
        }
        loads
    }

    /// Calls `changed` with links and changes of their load, possibly repeatedly for one link, if a rank
    /// moves to slot `there`, without its traffic with the exchange partner.
    pub(crate) fn changes(
        &self,
        slots: &[u32],
        rank: u32,
        partner: Option<u32>,
        there: u32,
        mut changed: impl FnMut(u32, i64),
    ) {
        let [here, there] = [slots[rank as usize], there].map(|slot| self.host(slot));
        if here == there {
            return;
        }
        for &Partner { rank: other, sent, received } in &self.partners[rank as usize] {
            if partner == Some(other) {
                continue;
            }
            let at = self.host(slots[other as usize]);
            if sent > 0 {
                self.walk(here, at, |link| changed(link, -sent));
                self.walk(there, at, |link| changed(link, sent));
            }
            if received > 0 {
                self.walk(at, here, |link| changed(link, -received));
                self.walk(at, there, |link| changed(link, received));
            }
        }
    }

    /// The same for the traffic between the two exchanged ranks.
    pub(crate) fn changes_between(
        &self,
        slots: &[u32],
        [rank, other]: [u32; 2],
        mut changed: impl FnMut(u32, i64),
    ) {
        let partners = &self.partners[rank as usize];
        let Ok(at) = partners.binary_search_by_key(&other, |partner| partner.rank) else { return };
        let [here, there] = [rank, other].map(|rank| self.host(slots[rank as usize]));
        let more = partners[at].received - partners[at].sent;
        self.walk(here, there, |link| changed(link, more));
        self.walk(there, here, |link| changed(link, -more));
    }

    /// The host of a slot, only for use with [`walk`](Self::walk).
    fn host(&self, slot: u32) -> u32 {
        self.host_of[slot as usize]
    }

    /// Visits the links from one host to another, in any order.
    fn walk(&self, from: u32, to: u32, mut visit: impl FnMut(u32)) {
        match &self.routes {
            HostRoutes::Tree(paths) => {
                paths.walk(from, to, visit);
            }
            HostRoutes::Stored { hosts, first, links } => {
                let pair = from as usize * hosts + to as usize;
                links[first[pair] as usize..first[pair + 1] as usize].iter().for_each(|&link| visit(link));
            }
        }
    }
}

/// The largest load of a link as an objective: bytes between ranks, routes between slots, and what the bytes on
/// a link cost.
#[derive(Debug, Clone, Copy)]
pub struct LinkLoads<'p> {
    pub(crate) traffic: &'p Traffic,
    pub(crate) costs: &'p LinkCosts,
}

impl LinkLoads<'_> {
    /// Source and destination of every link.
    #[must_use]
    pub fn links(&self) -> &[[u32; 2]] {
        &self.traffic.links
    }

    /// The node of every slot.
    #[must_use]
    pub fn nodes(&self) -> &[u32] {
        &self.traffic.nodes
    }

    /// The integer cost of bytes on a link.
    #[must_use]
    pub fn cost(&self, link: u32, bytes: i64) -> i64 {
        self.costs.of(link, bytes)
    }

    /// The ranks with which a rank exchanges bytes: how many it sends and receives.
    pub fn partners(&self, rank: u32) -> impl Iterator<Item = (u32, [i64; 2])> {
        let partners = self.traffic.partners[rank as usize].iter();
        partners.map(|partner| (partner.rank, [partner.sent, partner.received]))
    }

    /// Visits the links from one slot to another, in any order.
    pub fn walk(&self, from: u32, to: u32, visit: impl FnMut(u32)) {
        let [from, to] = [from, to].map(|slot| self.traffic.host(slot));
        self.traffic.walk(from, to, visit);
    }

    /// The largest cost of a link under a mapping.
    #[must_use]
    pub fn largest(&self, slots: &[u32]) -> i64 {
        self.costs.of_all(&self.traffic.loads(slots)).into_iter().max().unwrap_or(0)
    }
}

/// Maximum hosts for stored routes.
const MOST_HOSTS: usize = 2048;

/// The links between the hosts of the slots of a machine.
#[derive(Debug, Clone)]
enum HostRoutes {
    /// A tree, in which routes are cheap to compute.
    Tree(Paths),
    /// The links from host a to host b of n start at `first[a * n + b]`.
    Stored { hosts: usize, first: Vec<u32>, links: Vec<u32> },
}

/// The host of every slot, and the routes between hosts. Fails if some hosts are not connected.
fn routes(system: &SystemGraph, paths: Paths) -> Result<(Vec<u32>, HostRoutes), ObjectiveError> {
    if paths.tree().is_some() {
        return Ok((system.slots.iter().map(|slot| slot.host).collect(), HostRoutes::Tree(paths)));
    }
    let nodes: Vec<(u32, u32)> = system.hosts().map(|(node, _, slots)| (node, slots)).collect();
    let hosts = nodes.len();
    if hosts > MOST_HOSTS {
        let problem = format!(
            "the links are not a tree: routes between {hosts} hosts are too many, at most {MOST_HOSTS} hosts are supported"
        );
        let help = "use another objective, or select the hosts of the job with select/hosts first";
        return Err(ObjectiveError::new(problem, help));
    }
    let (mut first, mut links) = (vec![0], Vec::new());
    for &(from, _) in &nodes {
        for &(to, _) in &nodes {
            if !paths.walk(from, to, |link| links.push(link)) {
                return Err(no_route(system, [from, to]));
            }
            first.push(links.len() as u32);
        }
    }
    let of_host = |(host, &(_, slots)): (u32, &(u32, u32))| (0..slots).map(move |_| host);
    let host_of = (0..).zip(&nodes).flat_map(of_host).collect();
    Ok((host_of, HostRoutes::Stored { hosts, first, links }))
}
