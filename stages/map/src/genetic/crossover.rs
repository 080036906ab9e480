//! How two parents make two children, all permutations of the same slots.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use crate::Crossover;
use crate::moves::below;

/// The window of sorting is one in so many genes.
const WINDOW: usize = 3;

impl Crossover {
    /// Two children of two permutations of the same slots.
    pub(crate) fn children(self, a: &[u32], b: &[u32], random: &mut Pcg64) -> [Vec<u32>; 2] {
        let genes = a.len();
        match self {
            Self::Basic => basic(a, b, random),
            Self::Sorting => {
                let length = (genes / WINDOW).max(1).min(genes);
                let start = number_below(random, genes - length + 1);
                [sorting(a, b, start, length), sorting(b, a, start, length)]
            }
            Self::Order => {
                let cuts = [number_below(random, genes), number_below(random, genes)];
                let (start, end) = (cuts[0].min(cuts[1]), cuts[0].max(cuts[1]) + 1);
                [order(a, b, start, end), order(b, a, start, end)]
            }
        }
    }
}

/// A number below a bound of at most 2^32.
pub(super) fn number_below(random: &mut Pcg64, bound: usize) -> usize {
    below(random.next_u32(), bound)
}

/// Keeps what both have on the same place and shuffles the rest; the second child has the rest in reverse.
fn basic(a: &[u32], b: &[u32], random: &mut Pcg64) -> [Vec<u32>; 2] {
    let open: Vec<usize> = (0..a.len()).filter(|&gene| a[gene] != b[gene]).collect();
    let mut rest: Vec<u32> = open.iter().map(|&gene| a[gene]).collect();
    for last in (1..rest.len()).rev() {
        rest.swap(last, number_below(random, last + 1));
    }
    let mut children = [a.to_vec(), a.to_vec()];
    for (&gene, (&forth, &back)) in open.iter().zip(rest.iter().zip(rest.iter().rev())) {
        (children[0][gene], children[1][gene]) = (forth, back);
    }
    children
}

/// Keeps a window; the other genes come in the order of the other parent from its beginning, first behind the window.
fn sorting(kept: &[u32], other: &[u32], start: usize, length: usize) -> Vec<u32> {
    fill(kept, start..start + length, other.iter().copied())
}

/// Keeps a window; the other genes come in the order of the other parent from the end of the window.
fn order(kept: &[u32], other: &[u32], start: usize, end: usize) -> Vec<u32> {
    fill(kept, start..end, other[end..].iter().chain(&other[..end]).copied())
}

/// A parent of which only a window stays; the places behind it, then those before it, are filled in turn.
fn fill(kept: &[u32], window: std::ops::Range<usize>, genes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut in_window = vec![false; kept.len()];
    for &slot in &kept[window.clone()] {
        in_window[slot as usize] = true;
    }
    let mut child = kept.to_vec();
    let places = (window.end..kept.len()).chain(0..window.start);
    for (place, slot) in places.zip(genes.filter(|&slot| !in_window[slot as usize])) {
        child[place] = slot;
    }
    child
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_pcg::rand_core::SeedableRng;

    fn parents() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        (1_u32..40).prop_flat_map(|genes| {
            let all: Vec<u32> = (0..genes).collect();
            (Just(all.clone()).prop_shuffle(), Just(all).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn children_are_permutations((a, b) in parents(), seed in any::<[u8; 32]>()) {
            let mut random = Pcg64::from_seed(seed);
            for crossover in [Crossover::Basic, Crossover::Sorting, Crossover::Order] {
                for mut child in crossover.children(&a, &b, &mut random) {
                    let agreed = (0..a.len()).all(|gene| a[gene] != b[gene] || child[gene] == a[gene]);
                    prop_assert!(crossover != Crossover::Basic || agreed);
                    child.sort_unstable();
                    prop_assert!(child.iter().copied().eq(0..a.len() as u32));
                }
            }
        }
    }

    #[test]
    fn windows_stay_and_the_rest_comes_from_the_other_parent() {
        let (a, b) = ([0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0]);
        // Cut behind the fifth: 2, 1, 0, 7, 6, 5, 4, 3 without 2, 3, 4.
        assert_eq!(order(&a, &b, 2, 5), [6, 5, 2, 3, 4, 1, 0, 7]);
        // From the beginning: 7, 6, 5, 1, 0 without 2, 3, 4.
        assert_eq!(sorting(&a, &b, 2, 3), [1, 0, 2, 3, 4, 7, 6, 5]);
    }
}
