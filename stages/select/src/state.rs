//! A choice that grows and changes, with what every change costs at hand.

use crate::goal::Goal;
use crate::space::Space;

/// A choice of hosts by class.
pub(crate) struct State<'s> {
    space: &'s Space,
    goal: &'s Goal,
    /// Chosen hosts of every class.
    pub(crate) chosen: Vec<i64>,
    /// What one more host of a class costs.
    price: Vec<i64>,
}

impl<'s> State<'s> {
    /// Nothing chosen yet.
    pub(crate) fn new(space: &'s Space, goal: &'s Goal) -> Self {
        Self { space, goal, chosen: vec![0; space.classes()], price: goal.single.clone() }
    }

    fn room(&self, class: usize) -> i64 {
        self.space.size(class) - self.chosen[class]
    }

    /// Takes `count` more hosts of a class; gives back where `count` is negative.
    pub(crate) fn take(&mut self, class: usize, count: i64) {
        self.chosen[class] += count;
        let factor = self.goal.pairs * count;
        self.space.for_row(class, |other, distance| self.price[other] += factor * distance);
    }

    /// Goes back to an earlier choice.
    pub(crate) fn restore(&mut self, chosen: &[i64]) {
        for (class, &wanted) in chosen.iter().enumerate() {
            let change = wanted - self.chosen[class];
            if change != 0 {
                self.take(class, change);
            }
        }
    }

    /// Grows to `count` hosts from some of `class`, always by the class whose hosts cost least beside those already chosen; of equals
    /// the first. With `by_distance` only their distances count. Hosts of a class come together: by distance, one that has become
    /// nearest stays so.
    pub(crate) fn grow(&mut self, class: usize, count: usize, by_distance: bool) {
        let mut missing = count as i64;
        let mut next = Some(class);
        while let Some(class) = next.filter(|_| missing > 0) {
            let amount = self.room(class).min(missing);
            self.take(class, amount);
            missing -= amount;
            let cost = |class: &usize| match by_distance {
                true => self.price[*class] - self.goal.single[*class],
                false => self.price[*class],
            };
            next = (0..self.chosen.len()).filter(|&class| self.room(class) > 0).min_by_key(cost);
        }
    }

    /// What it costs to exchange as many hosts of class `a` as possible for hosts of class `b`, and how many these are.
    ///
    /// The change is a concave function of their number that begins at zero, so if any number is a gain, most is best.
    fn exchange(&self, a: usize, b: usize) -> (i64, i64) {
        let amount = self.chosen[a].min(self.room(b));
        let inside = |class| self.space.distance(class, class);
        let mut pairs = -amount * amount * self.space.distance(a, b) + inside(a) * amount * (amount + 1) / 2;
        if amount > 1 {
            pairs += inside(b) * amount * (amount - 1) / 2;
        }
        (amount * (self.price[b] - self.price[a]) + self.goal.pairs * pairs, amount)
    }

    /// The best class to exchange hosts of `a` for: change, class, number. Of equals the first.
    fn best_for(&self, a: usize) -> Option<(i64, usize, i64)> {
        if let Some(row) = self.space.row(a) {
            return self.best_host_for(a, row);
        }
        let others = (0..self.chosen.len()).filter(|&b| b != a && self.room(b) > 0);
        let exchange = |b| {
            let (change, amount) = self.exchange(a, b);
            (change, b, amount)
        };
        others.map(exchange).min()
    }

    /// The same where every class is one host, in one pass over its distances. An exchange is the price of the new host less what
    /// it would cost beside the old one, which is gone.
    fn best_host_for(&self, a: usize, row: &[i64]) -> Option<(i64, usize, i64)> {
        let mut best = (i64::MAX, a);
        for (b, ((&price, &distance), &chosen)) in self.price.iter().zip(row).zip(&self.chosen).enumerate() {
            let change = if chosen == 0 { price - self.goal.pairs * distance } else { i64::MAX };
            if change < best.0 {
                best = (change, b);
            }
        }
        let (change, b) = best;
        (b != a).then(|| (change - self.price[a], b, 1))
    }

    /// Exchanges hosts until no exchange is a gain: class by class, each for its best. `stop` is asked after every pass.
    pub(crate) fn descend(&mut self, stop: &dyn Fn() -> bool) {
        loop {
            let mut changed = false;
            for a in 0..self.chosen.len() {
                if self.chosen[a] == 0 {
                    continue;
                }
                if let Some((change, b, amount)) = self.best_for(a)
                    && change < 0
                {
                    self.take(a, -amount);
                    self.take(b, amount);
                    changed = true;
                }
            }
            if !changed || stop() {
                return;
            }
        }
    }

    /// Makes the one exchange of all that gains most; `false` if none gains. Of equals the first.
    pub(crate) fn exchange_best(&mut self) -> bool {
        let chosen = (0..self.chosen.len()).filter(|&a| self.chosen[a] > 0);
        let best =
            chosen.filter_map(|a| self.best_for(a).map(|(change, b, amount)| (change, a, b, amount))).min();
        match best {
            Some((change, a, b, amount)) if change < 0 => {
                self.take(a, -amount);
                self.take(b, amount);
                true
            }
            _ => false,
        }
    }

    /// The value of the goal.
    pub(crate) fn value(&self) -> i64 {
        self.goal.value(self.space, &self.chosen)
    }
}
