//! Solutions in the format of QAPLIB: n, a cost, then a permutation.
//!
//! The format does not say whether a permutation is p of `Σ a_ij · b_p(i)p(j)` or its inverse, and the files of QAPLIB have
//! both; some count from zero. So the cost decides.

use std::path::Path;

use hopmap_model::Context;
use hopmap_text::{FileError, Words};

use crate::AssignmentProblem;

const HINT: &str = "a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same \
                    instance; leave out `solution` to go without";

/// A solution of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The cost that the file states.
    pub stated: f64,
    /// The cost of the permutation, summed anew. Less than stated if the file is wrong to its disadvantage.
    pub cost: f64,
    /// How the permutation is meant.
    pub reading: Reading,
    /// Slot of every rank.
    pub placement: Vec<usize>,
}

/// How the permutation of a file is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Entry i is the slot of rank i.
    SlotOfRank,
    /// Entry i is the rank on slot i.
    RankOfSlot,
}

/// Reads a solution and checks it: its size, that it is a permutation, and its cost.
///
/// A permutation that costs more than the file states, both ways, is an error: there is no placement of the stated cost. One
/// that costs less is what counts.
pub fn check_solution(
    path: &Path,
    problem: &AssignmentProblem,
    cx: &Context<'_>,
) -> Result<Solution, FileError> {
    let mut words = Words::open(path, HINT)?.with(cx).parted_by_commas();
    let stated = head(&mut words, problem.size())?;
    let line = words.line();
    let permutation = permutation(&mut words, problem.size())?;
    let inverse = inverse(&permutation);
    let costs = [problem.cost(&permutation), problem.cost(&inverse)];
    let tolerance = if problem.is_whole() { 0.0 } else { 1e-9 * stated };
    let is_stated = |cost: f64| (cost - stated).abs() <= tolerance;
    let is_inverse = !is_stated(costs[0]) && (is_stated(costs[1]) || costs[1] < costs[0]);
    let (cost, reading, placement) = match is_inverse {
        false => (costs[0], Reading::SlotOfRank, permutation),
        true => (costs[1], Reading::RankOfSlot, inverse),
    };
    if cost > stated + tolerance {
        let what = format!(
            "the stated cost is {stated}, but the permutation costs {} and its inverse {}",
            costs[0], costs[1]
        );
        return Err(words.error_at(line, what));
    }
    Ok(Solution { stated, cost: if is_stated(cost) { stated } else { cost }, reading, placement })
}

/// Size and cost.
fn head(words: &mut Words<'_>, size: usize) -> Result<f64, FileError> {
    match words.whole()? {
        Some(number) if number == size as u64 => {}
        Some(number) => return Err(words.error(format!("n is {number}, but the instance has n = {size}"))),
        None => return Err(words.error("the file is empty")),
    }
    words.real()?.ok_or_else(|| words.error("the file ends before the cost"))
}

/// The entries, counted from zero.
fn permutation(words: &mut Words<'_>, size: usize) -> Result<Vec<usize>, FileError> {
    let mut entries = Vec::with_capacity(size);
    while let Some(entry) = words.whole()? {
        if entries.len() == size {
            return Err(words.error(format!("more than {size} entries")));
        }
        entries.push((entry, words.line()));
    }
    if entries.len() < size {
        return Err(words.error(format!("the file ends after {} of {size} entries", entries.len())));
    }
    let first = u64::from(entries.iter().all(|&(entry, _)| entry != 0));
    let mut seen = vec![false; size];
    let mut permutation = Vec::with_capacity(size);
    for (entry, line) in entries {
        let place = entry.wrapping_sub(first) as usize;
        match seen.get_mut(place) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(words.error_at(line, format!("{entry} stands there twice"))),
            None => {
                let last = size as u64 + first - 1;
                return Err(words.error_at(line, format!("{entry} is not from {first} to {last}")));
            }
        }
        permutation.push(place);
    }
    Ok(permutation)
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    for (index, &place) in permutation.iter().enumerate() {
        inverse[place] = index;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs 1 · 10 + 2 · 20 + 3 · 40 with rank i on slot i.
    fn problem() -> AssignmentProblem {
        AssignmentProblem {
            size: 3,
            flows: vec![0, 1, 0, 0, 0, 2, 3, 0, 0],
            costs: vec![0.0, 10.0, 500.0, 500.0, 0.0, 20.0, 40.0, 500.0, 0.0],
        }
    }

    fn check(text: &str) -> Result<Solution, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        check_solution(file.path(), &problem(), &Context::detached()).map_err(|error| match error {
            FileError { line: Some(line), problem, .. } => format!("line {line}: {problem}"),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn permutations_are_read_as_they_are_meant() {
        let solution = |text: &str| {
            let solution = check(text).unwrap();
            (solution.cost.to_string(), solution.reading, solution.placement)
        };
        let direct = ("130".to_owned(), Reading::SlotOfRank, vec![1, 2, 0]);
        for text in ["3 130\n2 3 1\n", "3 130 1 2 0", "3,130,\n2,3,1", "3 130.0\n\n2\n3\n1"] {
            assert_eq!(solution(text), direct, "{text:?}");
        }
        assert_eq!(solution("3 130 3 1 2"), ("130".to_owned(), Reading::RankOfSlot, vec![1, 2, 0]));
        assert_eq!(solution("3 120 3 1 2"), ("120".to_owned(), Reading::SlotOfRank, vec![2, 0, 1]));
    }

    #[test]
    fn a_permutation_better_than_stated_counts_and_a_worse_one_is_refused() {
        let better = check("3 200\n1 2 3").unwrap();
        assert_eq!((better.stated.to_string(), better.cost.to_string()), ("200".into(), "170".into()));
        let better = check("3 125\n2 3 1").unwrap();
        assert_eq!((better.cost.to_string(), better.reading), ("120".into(), Reading::RankOfSlot));
        assert_eq!(
            check("\n3 100\n2 3 1"),
            Err("line 2: the stated cost is 100, but the permutation costs 130 and its inverse 120".into())
        );
    }

    #[test]
    fn what_is_no_solution_is_refused() {
        for (text, error) in [
            ("", "line 1: the file is empty"),
            ("4 1", "line 1: n is 4, but the instance has n = 3"),
            ("3", "line 1: the file ends before the cost"),
            ("3 x", "line 1: `x` is not a number"),
            ("3 1\n1 2", "line 2: the file ends after 2 of 3 entries"),
            ("3 1\n1 2 3\n4", "line 3: more than 3 entries"),
            ("3 1\n1 2\n2", "line 3: 2 stands there twice"),
            ("3 1\n1 2\n4", "line 3: 4 is not from 1 to 3"),
            ("3 1\n0 2\n3", "line 3: 3 is not from 0 to 2"),
            ("3 1\n1 -2\n3", "line 2: `-2` is negative"),
            ("3 1\n1 18446744073709551615\n3", "line 2: 18446744073709551615 is not from 1 to 3"),
        ] {
            assert_eq!(check(text), Err(error.to_owned()), "{text:?}");
        }
    }
}
