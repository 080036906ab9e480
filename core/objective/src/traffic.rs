//! The bytes over the links of a machine, and the links between its hosts.

use std::collections::BTreeMap;

use hopmap_model::{Paths, SystemGraph, TaskGraph};

use crate::ObjectiveError;
use crate::error::no_route;

/// Who sends how many bytes to whom, and over which links.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    /// Whom every rank exchanges bytes with, itself never among them.
    partners: Vec<Vec<Partner>>,
    /// By slot: its node, or where routes are stored its number among the hosts.
    host_of: Vec<u32>,
    routes: HostRoutes,
    links: usize,
    /// Bytes of all edges between different ranks: no link carries more.
    pub(crate) total: i64,
}

/// A rank that another one exchanges bytes with.
#[derive(Debug, Clone, Copy)]
struct Partner {
    rank: u32,
    sent: i64,
    received: i64,
}

impl Traffic {
    /// Fails if the bytes of all edges do not fit, or if there is no way between some hosts.
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
        Ok(Self { partners, host_of, routes, links: system.links.len(), total })
    }

    /// Whether a rank exchanges bytes with another one.
    pub(crate) fn concerns(&self, rank: u32) -> bool {
        !self.partners[rank as usize].is_empty()
    }

    /// Bytes over every link.
    pub(crate) fn loads(&self, slots: &[u32]) -> Vec<i64> {
        let mut loads = vec![0; self.links];
        for (rank, partners) in self.partners.iter().enumerate() {
            for partner in partners {
                let [from, to] = [slots[rank], slots[partner.rank as usize]].map(|slot| self.host(slot));
                self.walk(from, to, |link| loads[link as usize] += partner.sent);
            }
        }
        loads
    }

    /// Calls `changed` with links and what they carry more, perhaps several times for one, when a rank goes to the slot
    /// `there`, without what it exchanges with the one it changes places with.
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

    /// The same of what two ranks exchange that change places.
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

    /// The host of a slot; only good for [`walk`](Self::walk).
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

/// Most hosts between which all routes are stored.
const MOST_HOSTS: usize = 2048;

/// The links between the hosts of the slots of a machine.
#[derive(Debug, Clone)]
enum HostRoutes {
    /// In a tree routes are short to find.
    Tree(Paths),
    /// The links from host a to host b of n are those from `first[a * n + b]`.
    Stored { hosts: usize, first: Vec<u32>, links: Vec<u32> },
}

/// The host of every slot, and the routes between hosts. Fails where there is none from one to another.
fn routes(system: &SystemGraph, paths: Paths) -> Result<(Vec<u32>, HostRoutes), ObjectiveError> {
    if paths.tree().is_some() {
        return Ok((system.slots.iter().map(|slot| slot.host).collect(), HostRoutes::Tree(paths)));
    }
    let nodes: Vec<(u32, u32)> = system.hosts().map(|(node, _, slots)| (node, slots)).collect();
    let hosts = nodes.len();
    if hosts > MOST_HOSTS {
        let problem = format!(
            "the links are no tree: the routes between all pairs of {hosts} hosts are stored for up to {MOST_HOSTS} hosts"
        );
        let help = "use another objective, or choose the hosts of the job with select/hosts first";
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
