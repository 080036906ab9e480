//! Annealing by strain: what distance does to the messages that can delay the end. An exchange takes a look at the links of two ranks, and not a
//! pass over the program.

use hopmap_random::{Draw, Pcg64};

use super::problem::RankProblem;
use super::walk::FREE;

/// Temperatures in mean changes of strain.
const HOT: f64 = 0.5;
const COLD: f64 = 0.002;
/// Exchanges that are looked at for the mean change.
const SAMPLES: u64 = 256;
/// Of so many proposals one goes anywhere.
const ANYWHERE: usize = 8;
/// Exchanges from one look at the clock to the next.
const LOOK: u64 = 1024;

/// A placement and its strain.
struct Relaxation<'p> {
    problem: &'p RankProblem,
    slots: Vec<u32>,
    owner: Vec<u32>,
    /// The strain of every link.
    strain: Vec<i64>,
    /// Where the rank of the last exchange was.
    from: u32,
    /// Links that an exchange changes, and their strain after it.
    changes: Vec<(u32, i64)>,
}

/// Anneals a placement with so many proposals, as long as `goes_on` says so. Gives the best in the end.
pub(super) fn relax(
    problem: &RankProblem,
    slots: &[u32],
    proposals: u64,
    random: &mut Pcg64,
    mut goes_on: impl FnMut() -> bool,
) -> Vec<u32> {
    let mut relaxation = Relaxation::new(problem, slots);
    let mean = relaxation.mean_change(random);
    let (mut strain, mut best) = (0i64, (0i64, slots.to_vec()));
    let fall = libm::pow(COLD / HOT, 1.0 / proposals.max(1) as f64);
    let mut temperature = HOT * mean;
    for turn in 0..proposals {
        if turn % LOOK == 0 && !goes_on() {
            break;
        }
        temperature *= fall;
        let (rank, slot) = relaxation.propose(random);
        let delta = relaxation.exchange(rank, slot);
        if delta as f64 <= temperature * random.exponential() {
            strain += delta;
            relaxation.keep();
            // Copies cost more than exchanges: only the end is cold enough for a best placement.
            if 2 * turn > proposals && strain < best.0 && turn % 64 == 0 {
                best = (strain, relaxation.slots.clone());
            }
        } else {
            relaxation.swap_back(rank);
        }
    }
    if strain <= best.0 { relaxation.slots } else { best.1 }
}

impl<'p> Relaxation<'p> {
    fn new(problem: &'p RankProblem, slots: &[u32]) -> Self {
        let mut owner = vec![FREE; problem.slots];
        (0..).zip(slots).for_each(|(rank, &slot)| owner[slot as usize] = rank);
        let mut relaxation =
            Self { problem, slots: slots.to_vec(), owner, strain: Vec::new(), from: 0, changes: Vec::new() };
        relaxation.strain =
            (0..problem.program.links.len() as u32).map(|link| relaxation.of_link(link)).collect();
        relaxation
    }

    /// What a link contributes.
    fn of_link(&self, number: u32) -> i64 {
        let link = self.problem.program.links.all[number as usize];
        let delay = self.problem.delay(link, &self.slots) - self.problem.near.least(link);
        self.problem.critical.strain(number as usize, delay)
    }

    /// The mean of what exchanges change, at least one.
    fn mean_change(&mut self, random: &mut Pcg64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..SAMPLES {
            let (rank, slot) = self.propose(random);
            sum += self.exchange(rank, slot).abs() as f64;
            self.swap_back(rank);
        }
        (sum / SAMPLES as f64).max(1.0)
    }

    /// A rank and a slot for it: mostly nearer to one with which it has to do.
    fn propose(&self, random: &mut Pcg64) -> (u32, u32) {
        let rank = random.below(self.problem.ranks) as u32;
        let links = self.problem.program.links.of(rank);
        if !links.is_empty() && random.below(ANYWHERE) > 0 {
            let link = self.problem.program.links.all[links[random.below(links.len())] as usize];
            let anchor = self.slots[(if link.from == rank { link.to } else { link.from }) as usize];
            let near = self.problem.places.nearer(self.slots[rank as usize], anchor);
            if !near.is_empty() {
                let slot = near[random.below(near.len())];
                if slot != anchor {
                    return (rank, slot);
                }
            }
        }
        (rank, random.below(self.problem.slots) as u32)
    }

    /// Exchanges, and says by how much strain changes.
    fn exchange(&mut self, rank: u32, slot: u32) -> i64 {
        let other = self.swap(rank, slot);
        self.changes.clear();
        let links = &self.problem.program.links;
        let of_other = if other == FREE || other == rank { &[][..] } else { links.of(other) };
        let mut delta = 0;
        for &number in links.of(rank) {
            let after = self.of_link(number);
            delta += after - self.strain[number as usize];
            self.changes.push((number, after));
        }
        for &number in of_other {
            let link = links.all[number as usize];
            if link.from != rank && link.to != rank {
                let after = self.of_link(number);
                delta += after - self.strain[number as usize];
                self.changes.push((number, after));
            }
        }
        delta
    }

    /// Puts a rank on a slot and the rank that is there where it was.
    fn swap(&mut self, rank: u32, slot: u32) -> u32 {
        let from = std::mem::replace(&mut self.slots[rank as usize], slot);
        let other = std::mem::replace(&mut self.owner[slot as usize], rank);
        if from != slot {
            self.owner[from as usize] = other;
            if other != FREE {
                self.slots[other as usize] = from;
            }
        }
        self.from = from;
        other
    }

    /// Takes the last exchange back.
    fn swap_back(&mut self, rank: u32) {
        self.swap(rank, self.from);
    }

    /// Keeps the last exchange.
    fn keep(&mut self) {
        for &(link, strain) in &self.changes {
            self.strain[link as usize] = strain;
        }
    }
}
