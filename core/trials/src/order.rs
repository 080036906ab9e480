//! The order of the runs of a block, drawn for each block anew.
//!
//! Whatever disturbs the machine without looking at the draw slows either run of a pair with probability ½: of programs that are
//! equally fast, the signs of the differences are then independent and fair, as the sign test needs, whether the disturbance drifts,
//! comes in bursts or is periodic (Fisher, "The Design of Experiments", 1935). A fixed order, such as A B, B A, meets the same program
//! with every fourth run. An order that is balanced within two blocks gives both the same sign where a disturbance hits their second
//! and third run, or first and fourth: `tests/disturbances.rs` simulates it.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};

/// The orders of the blocks of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    trial: String,
    repetition: u32,
}

impl Order {
    /// The orders of a trial. Others with the same text and repetition have the same ones.
    #[must_use]
    pub fn new(trial: String, repetition: u32) -> Self {
        Self { trial, repetition }
    }

    /// The mappings of a block in the order in which they run.
    #[must_use]
    pub fn of_block(&self, block: u32, mappings: &[usize]) -> Vec<usize> {
        let seed = seed_stream(&self.trial, u64::from(self.repetition), u64::from(block));
        let mut order = mappings.to_vec();
        Pcg64::from_seed(seed).shuffle_unbiased(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_as_likely_and_a_block_keeps_its_own() {
        let orders = |trial: &str, repetition| {
            let order = Order::new(trial.to_owned(), repetition);
            (0..6000).map(move |block| order.of_block(block, &[0, 2, 5])).collect::<Vec<_>>()
        };
        let one = orders("app", 0);
        for first in [[0, 2, 5], [5, 0, 2], [2, 5, 0]] {
            let count = one.iter().filter(|order| **order == first).count();
            assert!((900..1100).contains(&count), "{first:?}: {count}");
        }
        let repeated = one.windows(2).filter(|blocks| blocks[0] == blocks[1]).count();
        assert!((900..1100).contains(&repeated), "{repeated}");
        assert_eq!(one, orders("app", 0));
        assert!(one != orders("app", 1) && one != orders("other", 0));
    }
}
