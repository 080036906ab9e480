//! One island's walk from exchange to exchange.

use hopmap_objective::{Assignment, Deltas};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::bans::Bans;

/// The walk of one island.
pub(crate) struct Walk<'p> {
    deltas: Deltas<'p>,
    bans: Bans,
    random: Pcg64,
    step: u64,
}

/// An exchange of a mover and a unit after it.
#[derive(Clone, Copy)]
struct Exchange {
    mover: usize,
    unit: usize,
    delta: i64,
}

/// The best exchanges of a step.
#[derive(Default)]
struct Best {
    allowed: Option<Exchange>,
    /// Of those that are forbidden, if it is better than what is allowed.
    forbidden: Option<Exchange>,
}

impl<'p> Walk<'p> {
    pub(crate) fn new(deltas: Deltas<'p>, random: Pcg64) -> Self {
        let bans = Bans::new(deltas.movers(), deltas.assignment().problem().distance());
        let step = bans.begin();
        Self { deltas, bans, random, step }
    }

    pub(crate) fn assignment(&self) -> &Assignment<'p> {
        self.deltas.assignment()
    }

    /// Makes the best exchange that is allowed, where there is one; `least` is the least cost so far.
    pub(crate) fn step(&mut self, least: i64) {
        self.step += 1;
        let best = self.best();
        let cost = self.assignment().cost();
        let leads = |exchange: &Exchange| cost + exchange.delta < least;
        let aspired = best.forbidden.filter(leads).or(best.allowed.filter(leads));
        if let Some(exchange) = aspired.or_else(|| self.demanded()).or(best.allowed) {
            self.make(exchange);
        }
    }

    fn make(&mut self, Exchange { mover, unit, .. }: Exchange) {
        let [left, entered] = [mover, unit].map(|unit| self.bans.group(self.deltas.slots()[unit]));
        self.deltas.exchange(mover, unit);
        self.bans.impose(mover, left, self.step, &mut self.random);
        self.bans.impose(unit, entered, self.step, &mut self.random);
    }

    /// The best exchanges. Among equals the first one, beginning with a random row.
    fn best(&mut self) -> Best {
        let movers = self.deltas.movers();
        let begin = (u64::from(self.random.next_u32()) * movers as u64) >> 32;
        let mut best = Best::default();
        for mover in (begin as usize..movers).chain(0..begin as usize) {
            self.best_of_row(mover, &mut best);
        }
        best
    }

    fn best_of_row(&self, mover: usize, best: &mut Best) {
        let delta_of = |exchange: Option<Exchange>| exchange.map_or(i64::MAX, |exchange| exchange.delta);
        let slots = self.deltas.slots();
        let own = self.bans.group(slots[mover]);
        let mut bound = delta_of(best.allowed);
        for (index, &delta) in self.deltas.row(mover).iter().enumerate() {
            if delta >= bound {
                continue;
            }
            let unit = mover + 1 + index;
            let group = self.bans.group(slots[unit]);
            if group == own || !self.deltas.admits(mover, unit) {
                continue;
            }
            let exchange = Some(Exchange { mover, unit, delta });
            if self.bans.forbid(mover, group, self.step) && self.bans.forbid(unit, own, self.step) {
                if delta < delta_of(best.forbidden) {
                    best.forbidden = exchange;
                }
            } else {
                best.allowed = exchange;
                bound = delta;
            }
        }
    }

    /// The best exchange that sends one of the two where it was not for very long. Looks at one mover at every step.
    fn demanded(&self) -> Option<Exchange> {
        let mover = (self.step % self.deltas.movers() as u64) as usize;
        let slots = self.deltas.slots();
        let own = self.bans.group(slots[mover]);
        let exchanges = self.deltas.row(mover).iter().enumerate().map(|(index, &delta)| Exchange {
            mover,
            unit: mover + 1 + index,
            delta,
        });
        let demanded = |exchange: &Exchange| {
            let group = self.bans.group(slots[exchange.unit]);
            group != own
                && self.deltas.admits(mover, exchange.unit)
                && (self.bans.demand(mover, group, self.step)
                    || self.bans.demand(exchange.unit, own, self.step))
        };
        exchanges.filter(demanded).min_by_key(|exchange| exchange.delta)
    }
}
