//! A placement that a search walks with, exchange by exchange.

use super::cuts::{Change, Cuts, Path};
use super::evaluate::{Late, Pass};
use super::problem::RankProblem;

/// No rank: a free slot.
pub(super) const FREE: u32 = u32::MAX;

/// A placement, what every link takes in it, and the paths that rule exchanges out.
#[derive(Debug)]
pub(super) struct Walk<'p> {
    problem: &'p RankProblem,
    pub(super) slots: Vec<u32>,
    owner: Vec<u32>,
    pub(super) makespan: i64,
    /// The sum of what all links contribute to it, see [`Criticality::strain`](super::criticality::Criticality::strain): it tells placements
    /// of one makespan apart.
    pub(super) strain: i64,
    /// Ticks of a unit of strain.
    weight: f64,
    delays: Vec<i64>,
    pass: Pass,
    cuts: Cuts,
    path: Path,
    changes: Vec<Change>,
    /// Links of the critical path that take longer than they have to, and by how much up to each of them together.
    critical: Vec<(u32, i64)>,
    /// Passes over the program.
    pub(super) passes: u64,
}

impl<'p> Walk<'p> {
    pub(super) fn new(problem: &'p RankProblem, slots: &[u32], weight: f64) -> Self {
        let mut owner = vec![FREE; problem.slots];
        (0..).zip(slots).for_each(|(rank, &slot)| owner[slot as usize] = rank);
        let links = &problem.program.links.all;
        let mut walk = Self {
            problem,
            slots: slots.to_vec(),
            owner,
            makespan: 0,
            strain: strain(problem, slots),
            weight,
            delays: links.iter().map(|&link| problem.delay(link, slots)).collect(),
            pass: Pass::new(problem),
            cuts: Cuts::new(problem),
            path: Path::default(),
            changes: Vec::new(),
            critical: Vec::new(),
            passes: 1,
        };
        walk.makespan = walk.pass.run(problem, slots, &walk.delays, i64::MAX).unwrap_or(i64::MAX);
        walk.find_path();
        walk
    }

    /// Whether nothing on the critical path can take less.
    pub(super) fn is_tight(&self) -> bool {
        self.critical.is_empty() && self.problem.is_even()
    }

    /// A link of the critical path: one of which there is more to gain is likelier. `draw` is random.
    pub(super) fn critical_link(&self, draw: u64) -> Option<u32> {
        let total = self.critical.last()?.1;
        let point = ((u128::from(draw) * total as u128) >> 64) as i64;
        let place = self.critical.partition_point(|&(_, until)| until <= point);
        self.critical.get(place).map(|&(link, _)| link)
    }

    /// What the search minimises: the makespan, and strain as far as it counts.
    pub(super) fn energy(&self) -> i64 {
        self.makespan + self.burden()
    }

    fn burden(&self) -> i64 {
        (self.weight * self.strain as f64) as i64
    }

    /// Moves a rank to a slot, and whoever is there to where it was, if the energy is not above a limit after that.
    pub(super) fn exchange(&mut self, rank: u32, slot: u32, limit: i64) -> bool {
        let from = self.slots[rank as usize];
        self.set(rank, slot);
        let limit = limit - self.burden();
        if self.cuts.rule_out(&self.changes, limit) {
            self.undo(rank, from);
            return false;
        }
        self.passes += 1;
        match self.pass.run(self.problem, &self.slots, &self.delays, limit) {
            Ok(makespan) => {
                self.cuts.accept();
                self.makespan = makespan;
                self.find_path();
                true
            }
            Err(late) => {
                self.path.back(self.problem, &self.pass, &self.delays, late);
                self.undo(rank, from);
                self.cuts.add(&self.path, &self.delays);
                false
            }
        }
    }

    /// Puts a rank on a slot, and notes what that changes.
    fn set(&mut self, rank: u32, slot: u32) {
        let from = self.slots[rank as usize];
        let other = self.owner[slot as usize];
        self.slots[rank as usize] = slot;
        self.owner[slot as usize] = rank;
        self.owner[from as usize] = other;
        let links = &self.problem.program.links;
        if other != FREE {
            self.slots[other as usize] = from;
        }
        self.changes.clear();
        let of_other = if other == FREE { &[][..] } else { links.of(other) };
        for &link in links.of(rank).iter().chain(of_other) {
            let delay = self.problem.delay(links.all[link as usize], &self.slots);
            let delta = delay - self.delays[link as usize];
            if delta != 0 {
                let least = self.problem.near.least(links.all[link as usize]);
                let critical = &self.problem.critical;
                self.strain += critical.strain(link as usize, delay - least);
                self.strain -= critical.strain(link as usize, delay - delta - least);
                self.delays[link as usize] = delay;
                self.changes.push(Change { link, delta });
            }
        }
    }

    /// Takes the last exchange back, before which a rank was on a slot.
    fn undo(&mut self, rank: u32, from: u32) {
        let (slot, other) = (self.slots[rank as usize], self.owner[from as usize]);
        self.slots[rank as usize] = from;
        self.owner[from as usize] = rank;
        self.owner[slot as usize] = other;
        if other != FREE {
            self.slots[other as usize] = slot;
        }
        for change in &self.changes {
            let delay = &mut self.delays[change.link as usize];
            let least = self.problem.near.least(self.problem.program.links.all[change.link as usize]);
            let critical = &self.problem.critical;
            self.strain -= critical.strain(change.link as usize, *delay - least);
            *delay -= change.delta;
            self.strain += critical.strain(change.link as usize, *delay - least);
        }
    }

    /// Finds the path that the makespan follows from, after a pass that came to its end.
    fn find_path(&mut self) {
        let late = Late { rank: self.pass.last(), end: self.problem.program.len() as u32, tail: 0 };
        self.path.back(self.problem, &self.pass, &self.delays, late);
        if self.cuts.longest() < self.makespan {
            self.cuts.add(&self.path, &self.delays);
        }
        self.critical.clear();
        let mut total = 0;
        for &link in &self.path.links {
            let gain = self.delays[link as usize]
                - self.problem.near.least(self.problem.program.links.all[link as usize]);
            if gain > 0 {
                total += gain;
                self.critical.push((link, total));
            }
        }
    }
}

/// The strain of a placement.
pub(super) fn strain(problem: &RankProblem, slots: &[u32]) -> i64 {
    let links = problem.program.links.all.iter().enumerate();
    let of_link = |(number, &link)| {
        problem.critical.strain(number, problem.delay(link, slots) - problem.near.least(link))
    };
    links.map(of_link).sum()
}
