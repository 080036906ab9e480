//! Lower bound of a node of the tree, and the candidate classes that remain.

use super::tables::bits;
use super::{NEVER, NOWHERE, Node, Tree};
use crate::search::model::FAR;

impl Tree<'_, '_> {
    /// Narrows the sets of a node to a fixed point and returns its bound; none if its subtree has no better plan.
    pub(super) fn narrow(&mut self, node: &mut Node) -> Option<f64> {
        loop {
            self.reach_each_other(node)?;
            let (bound, has_changed) = self.bound(node)?;
            if !has_changed {
                return Some(bound);
            }
        }
    }

    /// Removes classes that are too far from all candidate classes of a neighbour.
    fn reach_each_other(&self, node: &mut Node) -> Option<()> {
        let model = self.model;
        let mut is_waiting = vec![true; model.processes];
        let mut queue: Vec<usize> = (0..model.processes).collect();
        while let Some(process) = queue.pop() {
            is_waiting[process] = false;
            for neighbour in &self.tables.neighbours[process] {
                let mut near = node.sets[neighbour.process];
                for &edge in &neighbour.edges {
                    let edge = &model.edges[edge];
                    let side = usize::from(edge.source != process);
                    let reach = &self.reach[side][edge.kind];
                    near &= bits(node.sets[process]).fold(0, |all, class| {
                        let shares = self.may_share(node, class, process, neighbour.process);
                        all | reach[class] | u128::from(shares) << class
                    });
                }
                if near == 0 {
                    return None;
                }
                if near != node.sets[neighbour.process] {
                    node.sets[neighbour.process] = near;
                    if !is_waiting[neighbour.process] {
                        is_waiting[neighbour.process] = true;
                        queue.push(neighbour.process);
                    }
                }
            }
        }
        Some(())
    }

    fn may_share(&self, node: &Node, class: usize, first: usize, second: usize) -> bool {
        if self.tables.is_single {
            return false;
        }
        match (node.hosts[first], node.hosts[second]) {
            (NOWHERE, NOWHERE) => self.model.can_share(class, first, second),
            (NOWHERE, host) => self.model.fits(host, &self.occupancy.used[host as usize], first),
            (host, NOWHERE) => self.model.fits(host, &self.occupancy.used[host as usize], second),
            (a, b) => a == b,
        }
    }

    /// The bound of a node; removes classes with too large reduced costs. None if all are removed.
    fn bound(&mut self, node: &mut Node) -> Option<(f64, bool)> {
        let fixed = self.fixed(node)?;
        let rows: Vec<usize> =
            (0..self.model.processes).filter(|&process| node.hosts[process] == NOWHERE).collect();
        let classes = self.model.classes.len();
        let mut costs = std::mem::take(&mut self.scratch.costs);
        costs.clear();
        costs.resize(rows.len() * classes, NEVER);
        for (row, &process) in rows.iter().enumerate() {
            for class in bits(node.sets[process]) {
                costs[row * classes + class] = self.place_cost(node, process, class);
            }
        }
        let solved = self.scratch.assignment.solve(&costs, &node.room);
        let bound = solved
            .map(|cost| cost + fixed)
            .filter(|&bound| self.model.improves(bound - 1e-7, self.incumbent.cost));
        let mut has_changed = false;
        if let Some(bound) = bound {
            for (row, &process) in rows.iter().enumerate() {
                for class in bits(node.sets[process]) {
                    let there = bound + self.scratch.assignment.extra(&costs, row, class);
                    if !self.model.improves(there - 1e-7, self.incumbent.cost) {
                        node.sets[process] &= !(1 << class);
                        has_changed = true;
                    }
                }
            }
        }
        self.scratch.costs = costs;
        let is_empty = node.sets.contains(&0);
        bound.filter(|_| !is_empty).map(|bound| (bound, has_changed))
    }

    /// Cost of placed processes and length of their longest route; none if one is too long.
    fn fixed(&mut self, node: &Node) -> Option<f64> {
        let model = self.model;
        let weights = model.weights;
        let mut sum = weights.longest_route * f64::from(self.lengths.least);
        for process in (0..model.processes).filter(|&process| node.hosts[process] != NOWHERE) {
            sum += model.move_cost(process, node.hosts[process]);
            for neighbour in self.tables.neighbours[process].iter().filter(|other| other.process > process) {
                let host = node.hosts[neighbour.process];
                if host == NOWHERE {
                    continue;
                }
                let mut longest = 0;
                for &edge in &neighbour.edges {
                    let edge = &model.edges[edge];
                    let distance =
                        model.between(edge.kind, node.hosts[edge.source], node.hosts[edge.destination]);
                    if distance > self.lengths.most || distance >= FAR {
                        return None;
                    }
                    longest = longest.max(distance);
                    sum += weights.total_hops * f64::from(distance);
                }
                sum += self.entry_cost(neighbour.alone, longest);
            }
        }
        for process in (0..model.processes).filter(|&process| node.hosts[process] != NOWHERE) {
            sum += self.join_cost(node, process, model.class_of[node.hosts[process] as usize]);
        }
        Some(sum)
    }

    /// Lower bound of the entries of destinations whose streams have these lengths, each from one process.
    fn entry_cost(&self, alone: f64, links: u16) -> f64 {
        self.model.weights.table_entries * self.tables.share * alone * f64::from(links.saturating_sub(1))
    }

    /// Lower bound of the entries of a destination of several streams in a class.
    fn join_cost(&mut self, node: &Node, process: usize, class: usize) -> f64 {
        let Some(joins) = &self.tables.joins[process] else { return 0.0 };
        let model = self.model;
        let mut least: u32 = 0;
        let mut sources = std::mem::take(&mut self.scratch.sources);
        sources.clear();
        for &edge in joins {
            let (source, kind) = (model.edges[edge].source, model.edges[edge].kind);
            let host = node.hosts[source];
            if host == NOWHERE {
                let near = self.nearest(node, process, class, source, edge);
                least = least.max(u32::from(near.saturating_sub(1)));
            } else {
                let shares = match node.hosts[process] {
                    NOWHERE => {
                        model.class_of[host as usize] == class && self.may_share(node, class, process, source)
                    }
                    own => own == host,
                };
                if !shares {
                    sources.push((host, kind));
                }
            }
        }
        let settled = self.scratch.counter.least(model, class, sources.iter().copied());
        self.scratch.sources = sources;
        model.weights.table_entries * self.tables.share * f64::from(least.max(settled))
    }

    /// Lower bound of the hops of a stream between a process in a class and an unplaced one.
    fn nearest(&self, node: &Node, process: usize, class: usize, other: usize, edge: usize) -> u16 {
        if node.sets[other] >> class & 1 == 1 && self.may_share(node, class, process, other) {
            return 0;
        }
        let edge = &self.model.edges[edge];
        let by_links = &self.tables.within[usize::from(edge.source != process)][edge.kind][class];
        let set = node.sets[other];
        by_links.iter().position(|there| there & set != 0).map_or(FAR, |links| links as u16)
    }

    /// Cost of a process in a class, including half of its streams to unplaced processes.
    pub(super) fn place_cost(&mut self, node: &Node, process: usize, class: usize) -> f64 {
        let model = self.model;
        let weights = model.weights;
        let mut sum = match &model.problem.home {
            Some(_) => {
                let hosts = model.classes[class].hosts.iter();
                hosts.map(|&host| model.move_cost(process, host)).fold(NEVER, f64::min)
            }
            None => 0.0,
        };
        let [mut hops, mut alone] = [&mut self.scratch.hops, &mut self.scratch.alone].map(std::mem::take);
        let mut near = std::mem::take(&mut self.scratch.near);
        near.clear();
        hops.clear();
        alone.clear();
        let mut sharing = 0;
        for neighbour in &self.tables.neighbours[process] {
            let host = node.hosts[neighbour.process];
            if host == NOWHERE {
                let links = |&edge: &usize| self.nearest(node, process, class, neighbour.process, edge);
                let least = neighbour.edges.iter().map(links).max().unwrap_or_default();
                sharing += usize::from(least == 0);
                near.push(least);
                hops.push(neighbour.edges.len() as f64);
                alone.push(neighbour.alone);
                continue;
            }
            let there = model.class_of[host as usize];
            let is_same = there == class && self.may_share(node, class, process, neighbour.process);
            let mut longest = 0;
            for &edge in &neighbour.edges {
                let edge = &model.edges[edge];
                let (from, to) = if edge.source == process { (class, there) } else { (there, class) };
                let distance = if is_same { 0 } else { model.distance(edge.kind, from, to) };
                longest = longest.max(distance);
                sum += if distance >= FAR { NEVER } else { weights.total_hops * f64::from(distance) };
            }
            sum += self.entry_cost(neighbour.alone, longest);
        }
        sum += self.join_cost(node, process, class);
        self.spread(node, class, sharing, &mut near);
        near.sort_unstable();
        hops.sort_by(|a, b| b.total_cmp(a));
        alone.sort_by(|a, b| b.total_cmp(a));
        for ((distance, hops), alone) in near.iter().zip(&hops).zip(&alone) {
            let links = 0.5 * weights.total_hops * hops * f64::from(*distance);
            sum += links + 0.5 * self.entry_cost(*alone, *distance);
        }
        (self.scratch.near, self.scratch.hops, self.scratch.alone) = (near, hops, alone);
        sum
    }

    /// Raises the distances of neighbours to those of the nearest remaining places.
    fn spread(&self, node: &Node, class: usize, sharing: usize, near: &mut [u16]) {
        near.sort_unstable();
        let shares = sharing.min(self.model.classes[class].most.saturating_sub(1));
        let mut places = std::iter::repeat_n(0, shares).chain(self.tables.around[class].iter().flat_map(
            |&(distance, other)| {
                let own = if other == class { 1 + shares } else { 0 };
                std::iter::repeat_n(distance, node.room[other].saturating_sub(own))
            },
        ));
        for near in near {
            let Some(place) = places.next() else { return };
            *near = place.max(*near);
        }
    }
}
