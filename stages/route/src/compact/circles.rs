//! Freedom from deadlock: links that would wait for each other in a circle are forbidden one circle after the other.

use super::model::{Meaning, Model, Sum};
use crate::linear::{Domain, Sense};

impl Model<'_> {
    /// Forbids that routes go on from each of these links to the next, and from the last to the first.
    pub(super) fn forbid(&mut self, circle: &[u32]) {
        let arc = |link: &u32| self.shape.arcs.iter().position(|arc| arc.link == *link);
        let Some(arcs) = circle.iter().map(arc).collect::<Option<Vec<usize>>>() else { return };
        let mut sum = Sum::default();
        for (at, &arc) in arcs.iter().enumerate() {
            let variable = self.going_on(arc, arcs[(at + 1) % arcs.len()]);
            sum = sum.with(variable, 1.0);
        }
        let most = sum.terms.len() as f64 - 1.0;
        self.constrain("circle", sum, Sense::AtMost, most);
    }

    /// A variable that is 1 if some route goes on from an arc to another.
    fn going_on(&mut self, arc: usize, next: usize) -> usize {
        if let Some(&variable) = self.goes_on.get(&(arc, next)) {
            return variable;
        }
        let variable = self.variable(Meaning::GoesOn { arc, next }, Domain::NotNegative);
        self.program.limit(variable, 0.0, 1.0);
        self.goes_on.insert((arc, next), variable);
        for commodity in 0..self.shape.commodities.len() {
            let both = [arc, next].map(|arc| self.takes[commodity].get(&arc).copied());
            let [Some(first), Some(second)] = both else { continue };
            // Where one table decides, an entry says where all goes on.
            let destination = self.shape.commodities[commodity].destination;
            let entry = self
                .entries
                .get(&(next, destination))
                .filter(|_| self.shape.exclusive && !self.shape.is_two(self.shape.arcs[next].from));
            let second = entry.copied().unwrap_or(second);
            let sum = Sum::of(vec![(first, 1.0), (second, 1.0), (variable, -1.0)]);
            self.constrain("goes", sum, Sense::AtMost, 1.0);
        }
        variable
    }
}
