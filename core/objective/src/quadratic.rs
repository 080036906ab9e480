//! Quadratic assignment problems given by matrices: their cost as a double sum, and what an exchange changes.

use crate::{Matrix, Number, ObjectiveError};

/// Weights between ranks and costs between slots: minimise F(φ) = `Σ_ij` `a_ij` · b(φ(i), φ(j)) over all ordered pairs, a rank
/// and itself among them (GraphHunter, equation 1; Koopmans and Beckmann 1957; the same as QAPLIB's).
///
/// The plain way for any numbers, sparse or dense, symmetric or not, with at least one slot for every rank. F of integers is
/// summed in 128 bits and never wraps: a problem that may need more is refused. [`Dense`](crate::Dense) is the fast way for
/// small integers.
#[derive(Debug, Clone)]
pub struct Quadratic<T> {
    weights: Matrix<T>,
    /// What every rank receives, as rows; `None` if the weights are symmetric.
    received: Option<Matrix<T>>,
    costs: Matrix<T>,
}

impl<T: Number> Quadratic<T> {
    /// Takes the weights between ranks and the costs between slots.
    pub fn new(weights: Matrix<T>, costs: Matrix<T>) -> Result<Self, ObjectiveError> {
        let (ranks, slots) = (weights.size(), costs.size());
        if ranks == 0 {
            return Err(ObjectiveError::NoRanks);
        }
        if ranks > slots {
            return Err(ObjectiveError::TooManyRanks { ranks, slots });
        }
        if !T::fit(&mut weights.values().iter().copied(), &mut costs.values().iter().copied()) {
            return Err(ObjectiveError::TooLarge);
        }
        let received = (!weights.is_symmetric()).then(|| weights.transposed());
        Ok(Self { weights, received, costs })
    }

    /// Weights between ranks.
    #[must_use]
    pub fn weights(&self) -> &Matrix<T> {
        &self.weights
    }

    /// Costs between slots.
    #[must_use]
    pub fn costs(&self) -> &Matrix<T> {
        &self.costs
    }

    /// F of rank `i` on `slots[i]`, summed anew.
    #[must_use]
    pub fn cost(&self, slots: &[u32]) -> T::Wide {
        let ranks = 0..self.weights.size() as u32;
        let pairs =
            ranks.flat_map(|rank| self.weights.row(rank).map(move |(other, weight)| (rank, other, weight)));
        pairs.fold(T::Wide::default(), |sum, (rank, other, weight)| {
            sum + weight.wide() * self.between(slots[rank as usize], slots[other as usize])
        })
    }

    /// By how much F changes when two ranks change places. Takes a step for every weight of the two.
    #[must_use]
    pub fn delta(&self, slots: &[u32], first: u32, second: u32) -> T::Wide {
        if first == second {
            return T::Wide::default();
        }
        let (here, there) = (slots[first as usize], slots[second as usize]);
        let outside = self.moved(slots, first, second, there) + self.moved(slots, second, first, here);
        let weight = |a, b| self.weights.get(a, b).wide();
        let turned = |a, b, c, d| self.between(c, d) - self.between(a, b);
        outside
            + weight(first, first) * turned(here, here, there, there)
            + weight(second, second) * turned(there, there, here, here)
            + weight(first, second) * turned(here, there, there, here)
            + weight(second, first) * turned(there, here, here, there)
    }

    /// By how much F changes when a rank moves to a free slot.
    #[must_use]
    pub fn delta_to_free(&self, slots: &[u32], rank: u32, there: u32) -> T::Wide {
        let here = slots[rank as usize];
        let itself = self.weights.get(rank, rank).wide();
        self.moved(slots, rank, rank, there)
            + itself * (self.between(there, there) - self.between(here, here))
    }

    /// What a rank costs more on another slot, without what it exchanges with itself and its partner.
    fn moved(&self, slots: &[u32], rank: u32, partner: u32, there: u32) -> T::Wide {
        let here = slots[rank as usize];
        let counts = |&(other, _): &(u32, T)| other != rank && other != partner;
        let sent = self.weights.row(rank).filter(counts).fold(T::Wide::default(), |sum, (other, weight)| {
            let at = slots[other as usize];
            sum + weight.wide() * (self.between(there, at) - self.between(here, at))
        });
        let received = self.received.as_ref().unwrap_or(&self.weights);
        received.row(rank).filter(counts).fold(sent, |sum, (other, weight)| {
            let at = slots[other as usize];
            sum + weight.wide() * (self.between(at, there) - self.between(at, here))
        })
    }

    fn between(&self, here: u32, there: u32) -> T::Wide {
        self.costs.get(here, there).wide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// F of a dense problem, written down once more.
    fn double_sum(weights: &[Vec<i64>], costs: &[Vec<i64>], slots: &[u32]) -> i128 {
        let mut sum = 0;
        for i in 0..weights.len() {
            for j in 0..weights.len() {
                sum += i128::from(weights[i][j]) * i128::from(costs[slots[i] as usize][slots[j] as usize]);
            }
        }
        sum
    }

    /// The weights of 4 ranks and costs of 6 slots, and a placement.
    fn instance() -> impl Strategy<Value = (Vec<Vec<i64>>, Vec<Vec<i64>>, Vec<u32>)> {
        let value = prop_oneof![Just(0i64), -50i64..50, -1_000_000_000_000i64..1_000_000_000_000];
        let matrix = |size| prop::collection::vec(prop::collection::vec(value.clone(), size), size);
        (matrix(4), matrix(6), Just((0..6).collect::<Vec<u32>>()).prop_shuffle(), any::<bool>()).prop_map(
            |(mut weights, costs, mut slots, symmetric)| {
                slots.truncate(4);
                for at in (0..16).filter(|at| symmetric && at % 4 < at / 4) {
                    weights[at / 4][at % 4] = weights[at % 4][at / 4];
                }
                (weights, costs, slots)
            },
        )
    }

    proptest! {
        #[test]
        fn sparse_dense_whole_and_floating_give_the_double_sum((weights, costs, slots) in instance()) {
            let entries: Vec<_> = (0..16u32)
                .map(|at| (at / 4, at % 4, weights[at as usize / 4][at as usize % 4]))
                .filter(|entry| entry.2 != 0)
                .collect();
            let expected = double_sum(&weights, &costs, &slots);
            let cost_matrix = Matrix::dense(6, costs.concat()).unwrap();
            let dense = Quadratic::new(Matrix::dense(4, weights.concat()).unwrap(), cost_matrix.clone()).unwrap();
            let sparse = Quadratic::new(Matrix::sparse(4, entries).unwrap(), cost_matrix).unwrap();
            let floats = |values: &[Vec<i64>]| values.concat().iter().map(|&value| value as f64).collect();
            let floating = Quadratic::new(
                Matrix::dense(4, floats(&weights)).unwrap(),
                Matrix::dense(6, floats(&costs)).unwrap(),
            ).unwrap();
            prop_assert_eq!(dense.cost(&slots), expected);
            prop_assert_eq!(sparse.cost(&slots), expected);
            let scale: f64 = weights.concat().iter().map(|&w| w.abs() as f64).sum::<f64>() * 1e12;
            prop_assert!((floating.cost(&slots) - expected as f64).abs() <= 1e-12 * scale);
            for first in 0..4u32 {
                for second in 0..4u32 {
                    let mut after = slots.clone();
                    after.swap(first as usize, second as usize);
                    let change = double_sum(&weights, &costs, &after) - expected;
                    prop_assert_eq!(dense.delta(&slots, first, second), change);
                    prop_assert_eq!(sparse.delta(&slots, first, second), change);
                    prop_assert!((floating.delta(&slots, first, second) - change as f64).abs() <= 1e-12 * scale);
                }
                for free in (0..6u32).filter(|slot| !slots.contains(slot)) {
                    let mut after = slots.clone();
                    after[first as usize] = free;
                    let change = double_sum(&weights, &costs, &after) - expected;
                    prop_assert_eq!(sparse.delta_to_free(&slots, first, free), change);
                }
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_summed_and_more_than_128_refused() {
        let most = i64::MAX;
        let square = |value| Matrix::dense(2, vec![0, value, value, 0]).unwrap();
        let problem = Quadratic::new(square(most / 16), square(most)).unwrap();
        assert_eq!(problem.cost(&[0, 1]), 2 * i128::from(most / 16) * i128::from(most));
        let refused = Quadratic::new(square(most), square(most)).unwrap_err();
        assert_eq!(refused.to_string(), "the largest possible cost does not fit the numbers it is summed in");
    }
}
