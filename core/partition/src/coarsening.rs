//! Coarsening by contraction of matchings.

use hopmap_random::{Draw, Pcg64};

use crate::graph::Graph;

const NONE: u32 = u32::MAX;

/// A coarse graph, and the coarse vertex of every vertex.
pub(crate) struct Coarse {
    pub(crate) graph: Graph,
    pub(crate) map: Vec<u32>,
}

impl Coarse {
    /// Contracts pairs of vertices of one part with a total weight of at most `heaviest`: neighbours by edge
    /// weight relative to their sizes, others by a common neighbour.
    pub(crate) fn new(graph: &Graph, parts: Option<&[u32]>, heaviest: u32, random: &mut Pcg64) -> Self {
        let mut matching = Matching { graph, parts, heaviest, mate: vec![NONE; graph.vertices()] };
        let mut order: Vec<u32> = (0..graph.vertices() as u32).collect();
        random.shuffle(&mut order);
        matching.match_neighbours(&order);
        matching.match_strangers(&order);
        let (map, count) = matching.number();
        Self { graph: contract(graph, &map, count), map }
    }

    /// The part of every coarse vertex; its vertices share one part.
    pub(crate) fn restrict(&self, parts: &[u32]) -> Vec<u32> {
        let mut coarse = vec![0; self.graph.vertices()];
        self.map.iter().zip(parts).for_each(|(&vertex, &part)| coarse[vertex as usize] = part);
        coarse
    }

    /// The part of every vertex.
    pub(crate) fn project<T: Copy>(&self, coarse: &[T]) -> Vec<T> {
        self.map.iter().map(|&vertex| coarse[vertex as usize]).collect()
    }
}

/// Minimum fraction of the vertices that every contraction must remove.
const LEAST_SHRINKING: f64 = 0.95;

/// Contracts repeatedly, inside `parts` if given, until few vertices are left or contraction stalls.
pub(crate) fn contractions(
    graph: &Graph,
    parts: Option<&[u32]>,
    coarsest: usize,
    heaviest: u32,
    random: &mut Pcg64,
) -> Vec<Coarse> {
    let mut levels: Vec<Coarse> = Vec::new();
    let mut parts = parts.map(<[u32]>::to_vec);
    loop {
        let current = levels.last().map_or(graph, |level| &level.graph);
        if current.vertices() <= coarsest {
            return levels;
        }
        let coarse = Coarse::new(current, parts.as_deref(), heaviest, random);
        if coarse.graph.vertices() as f64 > LEAST_SHRINKING * current.vertices() as f64 {
            return levels;
        }
        parts = parts.map(|parts| coarse.restrict(&parts));
        levels.push(coarse);
    }
}

struct Matching<'g> {
    graph: &'g Graph,
    parts: Option<&'g [u32]>,
    heaviest: u32,
    mate: Vec<u32>,
}

impl Matching<'_> {
    fn fits(&self, one: u32, other: u32) -> bool {
        let [first, second] = [one, other].map(|vertex| self.graph.vertex_weights[vertex as usize]);
        let same = self.parts.is_none_or(|parts| parts[one as usize] == parts[other as usize]);
        same && first.saturating_add(second) <= self.heaviest
    }

    fn join(&mut self, one: u32, other: u32) {
        self.mate[one as usize] = other;
        self.mate[other as usize] = one;
    }

    /// Matches every vertex with the free neighbour of the largest edge weight relative to the sizes of both.
    fn match_neighbours(&mut self, order: &[u32]) {
        for &vertex in order {
            if self.mate[vertex as usize] != NONE {
                continue;
            }
            let mut best = (0.0, NONE);
            for (target, weight) in self.graph.edges(vertex) {
                if target != vertex && self.mate[target as usize] == NONE && self.fits(vertex, target) {
                    let size = f64::from(self.graph.vertex_weights[target as usize].max(1));
                    let rating = weight as f64 * weight as f64 / size;
                    if rating > best.0 {
                        best = (rating, target);
                    }
                }
            }
            if best.1 != NONE {
                self.join(vertex, best.1);
            }
        }
    }

    /// Matches remaining vertices that share their closest neighbour, and isolated vertices with each other.
    fn match_strangers(&mut self, order: &[u32]) {
        let vertices = self.graph.vertices();
        let free = order.iter().filter(|&&vertex| self.mate[vertex as usize] == NONE).count();
        if free * 10 < vertices {
            return;
        }
        let mut waiting = vec![NONE; vertices + 1];
        for &vertex in order {
            if self.mate[vertex as usize] != NONE {
                continue;
            }
            let heaviest = self.graph.edges(vertex).filter(|&(target, _)| target != vertex);
            let hub = heaviest
                .max_by_key(|&(target, weight)| (weight, target))
                .map_or(vertices, |edge| edge.0 as usize);
            match waiting[hub] {
                other if other != NONE && self.fits(vertex, other) => {
                    self.join(vertex, other);
                    waiting[hub] = NONE;
                }
                _ => waiting[hub] = vertex,
            }
        }
    }

    /// Numbers pairs and unmatched vertices.
    fn number(&self) -> (Vec<u32>, usize) {
        let mut map = vec![NONE; self.mate.len()];
        let mut count = 0;
        for vertex in 0..self.mate.len() {
            if map[vertex] == NONE {
                map[vertex] = count;
                if let Some(mate) = map.get_mut(self.mate[vertex] as usize) {
                    *mate = count;
                }
                count += 1;
            }
        }
        (map, count as usize)
    }
}

/// Merges all vertices with the same number; inner edges vanish.
fn contract(graph: &Graph, map: &[u32], count: usize) -> Graph {
    let mut starts = vec![0u32; count + 1];
    map.iter().for_each(|&vertex| starts[vertex as usize + 1] += 1);
    for vertex in 0..count {
        starts[vertex + 1] += starts[vertex];
    }
    let mut members = vec![0; map.len()];
    let mut next = starts.clone();
    for (vertex, &coarse) in map.iter().enumerate() {
        members[next[coarse as usize] as usize] = vertex as u32;
        next[coarse as usize] += 1;
    }
    let mut first = Vec::with_capacity(count + 1);
    let mut targets: Vec<u32> = Vec::with_capacity(graph.targets.len());
    let mut weights: Vec<i64> = Vec::with_capacity(graph.targets.len());
    let mut vertex_weights = Vec::with_capacity(count);
    let mut pulls = vec![0; if graph.pulls.is_empty() { 0 } else { count }];
    map.iter().zip(&graph.pulls).for_each(|(&coarse, pull)| pulls[coarse as usize] += pull);
    let mut seen = vec![NONE; count];
    first.push(0);
    for coarse in 0..count {
        let begin = targets.len();
        let mut weight = 0u32;
        for &vertex in &members[starts[coarse] as usize..starts[coarse + 1] as usize] {
            weight = weight.saturating_add(graph.vertex_weights[vertex as usize]);
            for (target, weight) in graph.edges(vertex) {
                let target = map[target as usize];
                if target as usize == coarse {
                    continue;
                }
                let place = seen[target as usize];
                if place != NONE && place as usize >= begin && targets.get(place as usize) == Some(&target) {
                    weights[place as usize] += weight;
                } else {
                    seen[target as usize] = targets.len() as u32;
                    targets.push(target);
                    weights.push(weight);
                }
            }
        }
        first.push(targets.len() as u32);
        vertex_weights.push(weight);
    }
    Graph { first, targets, weights, vertex_weights, pulls }
}
