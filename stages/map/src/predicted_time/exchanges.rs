//! Proposals of exchanges that may shorten a run: of ranks whose messages pass a saturated link, of ranks that wait,
//! and of any ranks.

use std::collections::BTreeSet;

use hopmap_model::{Costs, Edge, Paths, Prediction, SystemGraph, TaskGraph};
use hopmap_objective::Assignment;
use hopmap_random::{Draw, Pcg64, Rng, index_below as below};

/// Saturated links whose messages are moved.
const LINKS: usize = 8;
/// Slots of which the closest to a partner is proposed.
const SLOTS: usize = 8;
/// Draws before the search for a new exchange gives up.
const DRAWS: usize = 64;

/// Proposes exchanges by the last prediction.
pub(super) struct Exchanges<'a> {
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    paths: Option<&'a Paths>,
    costs: Costs<'a>,
    has_links: bool,
    /// First slot and number of slots of the host of every slot.
    host_of: Vec<(u32, u32)>,
    /// The block of every rank of the program, if blocks are exchanged.
    block_of: Option<Vec<u32>>,
    /// Edges of every rank.
    edges_of: Vec<Vec<u32>>,
    /// Edges over saturated links, by the time that the link is saturated and their share of its bytes.
    crossing: Weighted,
    /// Ranks by the time that they wait.
    waiting: Weighted,
    /// Exchanges since the last one that was made: pairs of ranks, or a rank and the number of ranks plus a place.
    tried: BTreeSet<(u32, u32)>,
}

/// Items drawn in proportion to their weight.
#[derive(Default)]
struct Weighted {
    items: Vec<u32>,
    /// Sums of the weights up to every item.
    sums: Vec<f64>,
}

impl Weighted {
    fn add(&mut self, item: u32, weight: f64) {
        if weight > 0.0 {
            self.items.push(item);
            self.sums.push(self.sums.last().unwrap_or(&0.0) + weight);
        }
    }

    fn draw(&self, random: &mut Pcg64) -> Option<u32> {
        let at = self.sums.last()? * random.unit();
        let index = self.sums.partition_point(|sum| *sum <= at).min(self.items.len() - 1);
        Some(self.items[index])
    }
}

impl<'a> Exchanges<'a> {
    /// `paths` are those of the machine, if it has links.
    pub(super) fn new(
        graph: &'a TaskGraph,
        system: &'a SystemGraph,
        paths: Option<&'a Paths>,
        block_of: Option<Vec<u32>>,
    ) -> Self {
        let mut edges_of = vec![Vec::new(); graph.ranks()];
        for (index, edge) in (0..).zip(&graph.edges).filter(|(_, edge)| edge.source != edge.destination) {
            edges_of[edge.source as usize].push(index);
            edges_of[edge.destination as usize].push(index);
        }
        let host_of = system.hosts().flat_map(|(_, first, slots)| (0..slots).map(move |_| (first, slots)));
        Self {
            graph,
            system,
            paths,
            costs: Costs::with_paths(system, paths),
            has_links: !system.links.is_empty(),
            host_of: host_of.collect(),
            block_of,
            edges_of,
            crossing: Weighted::default(),
            waiting: Weighted::default(),
            tried: BTreeSet::new(),
        }
    }

    /// Follows the prediction of a mapping.
    pub(super) fn follow(&mut self, assignment: &Assignment<'_>, prediction: &Prediction) {
        self.tried.clear();
        self.waiting = Weighted::default();
        let mut waiting = vec![0.0; self.graph.ranks()];
        for (rank, times) in prediction.ranks.iter().enumerate() {
            waiting[self.block_of.as_ref().map_or(rank, |blocks| blocks[rank] as usize)] += times.waiting_s;
        }
        (0..).zip(waiting).for_each(|(rank, seconds)| self.waiting.add(rank, seconds));
        self.crossing = Weighted::default();
        let mut busiest: Vec<_> = prediction.links.iter().filter(|link| link.saturated > 0.0).collect();
        busiest.sort_by(|a, b| b.saturated.total_cmp(&a.saturated).then(a.link.cmp(&b.link)));
        busiest.truncate(LINKS);
        let Some(paths) = self.paths.filter(|_| !busiest.is_empty()) else { return };
        let host = |rank: u32| self.system.slots[assignment.slot_of(rank) as usize].host;
        for (index, edge) in (0..).zip(&self.graph.edges) {
            let mut weight = 0.0;
            paths.walk(host(edge.source), host(edge.destination), |passed| {
                let busy = busiest.iter().find(|link| link.link == passed);
                weight += busy.map_or(0.0, |link| link.saturated * edge.bytes as f64 / link.bytes.max(1.0));
            });
            self.crossing.add(index, weight);
        }
    }

    /// Draws up to `most` mappings that differ by an exchange that was not drawn since the last call of
    /// [`follow`](Self::follow); by several exchanges if none is left. Empty if no exchange has an effect.
    pub(super) fn draw<'p>(
        &mut self,
        assignment: &Assignment<'p>,
        most: u64,
        random: &mut Pcg64,
    ) -> Vec<Assignment<'p>> {
        let fresh = (0..most).map_while(|_| {
            (0..DRAWS).find_map(|_| {
                let exchange = self.propose(assignment, random);
                let is_new = self.has_effect(assignment, exchange)
                    && self.tried.insert(self.key(assignment, exchange));
                is_new.then(|| after(assignment, exchange))
            })
        });
        let fresh: Vec<_> = fresh.collect();
        if !fresh.is_empty() {
            return fresh;
        }
        (0..most).map_while(|number| self.compound(assignment, 2 + number % 2, random)).collect()
    }

    /// A mapping after several exchanges.
    fn compound<'p>(
        &self,
        from: &Assignment<'p>,
        exchanges: u64,
        random: &mut Pcg64,
    ) -> Option<Assignment<'p>> {
        (0..exchanges).try_fold(from.clone(), |assignment, _| {
            let mut drawn = (0..DRAWS).map(|_| self.propose(&assignment, random));
            let exchange = drawn.find(|exchange| self.has_effect(&assignment, *exchange))?;
            Some(after(&assignment, exchange))
        })
    }

    fn propose(&self, assignment: &Assignment<'_>, random: &mut Pcg64) -> (u32, u32) {
        let edge = match random.next_u32() % 8 {
            0..=2 => self.crossing.draw(random),
            3..=5 => self.waiting.draw(random).and_then(|rank| {
                let edges = &self.edges_of[rank as usize];
                (!edges.is_empty()).then(|| edges[below(random.next_u32(), edges.len())])
            }),
            _ => None,
        };
        match edge {
            Some(edge) => {
                let Edge { source, destination, .. } = self.graph.edges[edge as usize];
                let [rank, partner] =
                    if random.next_u32() & 1 == 0 { [source, destination] } else { [destination, source] };
                (rank, self.near(assignment.slot_of(partner), random))
            }
            None => {
                let rank = below(random.next_u32(), self.graph.ranks()) as u32;
                (rank, self.any(random))
            }
        }
    }

    fn any(&self, random: &mut Pcg64) -> u32 {
        below(random.next_u32(), self.system.slots.len()) as u32
    }

    /// A slot near another one: on its host, or the closest of some.
    fn near(&self, partner: u32, random: &mut Pcg64) -> u32 {
        let (first, slots) = self.host_of[partner as usize];
        if random.next_u32() & 1 == 0 && slots > 1 {
            return first + below(random.next_u32(), slots as usize) as u32;
        }
        let drawn = (0..SLOTS).map(|_| self.any(random)).filter(|slot| *slot != partner);
        let costs = drawn.map(|slot| (self.costs.between(slot, partner), slot));
        costs.reduce(|best, next| if next.0 < best.0 { next } else { best }).map_or(partner, |(_, slot)| slot)
    }

    /// Whether an exchange changes anything: on a machine with links, the slots of a host are alike.
    fn has_effect(&self, assignment: &Assignment<'_>, (rank, slot): (u32, u32)) -> bool {
        self.place(assignment.slot_of(rank)) != self.place(slot) && assignment.admits(rank, slot)
    }

    fn place(&self, slot: u32) -> u32 {
        if self.has_links { self.host_of[slot as usize].0 } else { slot }
    }

    fn key(&self, assignment: &Assignment<'_>, (rank, slot): (u32, u32)) -> (u32, u32) {
        match assignment.rank_at(slot) {
            Some(other) => (rank.min(other), rank.max(other)),
            None => (rank, self.edges_of.len() as u32 + self.place(slot)),
        }
    }
}

/// The mapping after an exchange.
fn after<'p>(assignment: &Assignment<'p>, (rank, slot): (u32, u32)) -> Assignment<'p> {
    let mut after = assignment.clone();
    after.exchange(rank, slot, assignment.delta(rank, slot));
    after
}
