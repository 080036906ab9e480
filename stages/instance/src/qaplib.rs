//! Quadratic assignment problems, each with the program and the machine that it is, and their files in the format of QAPLIB:
//! instances, a number n, then two matrices of n × n numbers, and solutions: n, a cost, then a permutation.
//!
//! Source: Burkard, Karisch and Rendl, "QAPLIB – A Quadratic Assignment Problem Library", J. Global Optimization 10, 1997.
//! White space parts the numbers, and where lines end means nothing. The format does not say whether a permutation is p of
//! `Σ a_ij · b_p(i)p(j)` or its inverse, and the files of QAPLIB have both; some count from zero. So the cost decides.

use std::path::Path;

use hopmap_model::{Context, CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph};
use hopmap_text::{FileError, Words};

use crate::FlowMatrix;
use crate::error::MAX_SIZE;

/// Up to here floats hold every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A quadratic assignment problem: what `n` ranks send to each other, and what the way between `n` slots costs.
///
/// Rank `i` on slot `p[i]` costs `Σ_ij flows[i][j] · costs[p[i]][p[j]]` over all ordered pairs, `i = j` among them
/// (Burkard, Karisch and Rendl 1997, QAPLIB).
#[derive(Debug, Clone, PartialEq)]
pub struct AssignmentProblem {
    pub(crate) size: usize,
    /// Row by row.
    pub(crate) flows: Vec<u64>,
    /// Row by row; finite and not negative.
    pub(crate) costs: Vec<f64>,
}

impl AssignmentProblem {
    /// Number of ranks, and of slots.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// What each rank sends to each other, row by row.
    #[must_use]
    pub fn flows(&self) -> &[u64] {
        &self.flows
    }

    /// What the way from each slot to each other costs, row by row.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Whether all costs are whole, so that the cost of a placement is exact where it is below 2⁵³.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.costs.iter().all(|cost| cost.fract() == 0.0 && *cost <= EXACT)
    }

    /// The cost of rank `i` on slot `placement[i]`, a permutation.
    #[must_use]
    pub fn cost(&self, placement: &[usize]) -> f64 {
        let rows = self.flows.chunks_exact(self.size.max(1));
        if self.is_whole() {
            let row = |(flows, &slot): (&[u64], &usize)| -> u128 {
                let costs = &self.costs[slot * self.size..][..self.size];
                let products = flows
                    .iter()
                    .zip(placement)
                    .map(|(&flow, &other)| u128::from(flow) * costs[other] as u128);
                products.fold(0, u128::saturating_add)
            };
            rows.zip(placement).map(row).fold(0, u128::saturating_add) as f64
        } else {
            let row = |(flows, &slot): (&[u64], &usize)| -> f64 {
                let costs = &self.costs[slot * self.size..][..self.size];
                flows.iter().zip(placement).map(|(&flow, &other)| flow as f64 * costs[other]).sum()
            };
            rows.zip(placement).map(row).sum()
        }
    }

    /// The program: a process per rank, and an edge of one message for every flow that is not zero.
    #[must_use]
    pub fn task_graph(&self) -> TaskGraph {
        let flows = self.flows.iter().enumerate().filter(|(_, flow)| **flow > 0);
        let edge = |(index, &bytes): (usize, &u64)| Edge {
            source: (index / self.size) as u32,
            destination: (index % self.size) as u32,
            messages: 1,
            bytes,
        };
        TaskGraph {
            processes: vec![Process::default(); self.size],
            edges: flows.map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    /// The machine: a host with one slot for every location, and a cost for every pair of them.
    #[must_use]
    pub fn system_graph(&self) -> SystemGraph {
        let width = self.size.saturating_sub(1).to_string().len();
        let node = |slot| Node::host(format!("node{slot:0width$}"));
        SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: (0..self.size).map(node).collect(),
            links: Vec::new(),
            slots: (0..self.size as u32).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Matrix(Matrix { costs: self.costs.clone() }),
        }
    }
}

const HINT: &str = "an instance is a number n, then matrix A and matrix B, n × n numbers each, parted by white space; flows \
                    become bytes, whole numbers from zero, and costs are numbers from zero: `flow` says which matrix is which";

/// Reads an instance. `flow` says which of its matrices is what the ranks send.
pub fn read(path: &Path, flow: FlowMatrix, cx: &Context<'_>) -> Result<AssignmentProblem, FileError> {
    let mut words = Words::open(path, HINT)?.with(cx);
    let size = size(&mut words)?;
    let (flows, costs) = match flow {
        FlowMatrix::A => {
            let flows = matrix(&mut words, size, 'A', "a flow", Words::whole)?;
            (flows, matrix(&mut words, size, 'B', "a cost", Words::real)?)
        }
        FlowMatrix::B => {
            let costs = matrix(&mut words, size, 'A', "a cost", Words::real)?;
            (matrix(&mut words, size, 'B', "a flow", Words::whole)?, costs)
        }
    };
    if words.next()? {
        let expected = 1 + 2 * size * size;
        return Err(
            words.error(format!("more than the {expected} numbers that two {size} × {size} matrices have"))
        );
    }
    let sum = flows.iter().try_fold(0u64, |sum, flow| sum.checked_add(*flow));
    match sum {
        Some(_) => Ok(AssignmentProblem { size, flows, costs }),
        None => {
            let help = "flows become bytes, which are whole numbers below 2^64 in all: divide them by a common factor";
            Err(FileError::new("the sum of all flows exceeds 64 bits", help).in_file(path))
        }
    }
}

/// The first number.
fn size(words: &mut Words<'_>) -> Result<usize, FileError> {
    let Some(size) = words.whole()? else {
        return Err(words.error("the file is empty"));
    };
    match size {
        0 => Err(words.error("n is 0")),
        size if size > u64::from(MAX_SIZE) => {
            Err(words.error(format!("n is {size}, more than {MAX_SIZE}, the most there can be")))
        }
        size => Ok(size as usize),
    }
}

/// Reads one matrix. Memory grows with what is read, whatever the size is said to be.
fn matrix<'a, T>(
    words: &mut Words<'a>,
    size: usize,
    name: char,
    what: &str,
    next: fn(&mut Words<'a>) -> Result<Option<T>, FileError>,
) -> Result<Vec<T>, FileError> {
    let mut values = Vec::new();
    while values.len() < size * size {
        let (row, column) = (values.len() / size + 1, values.len() % size + 1);
        let place = || format!("row {row}, column {column} of matrix {name}");
        let located = |error: FileError| FileError {
            problem: format!("{} ({what}): {}", place(), error.problem),
            ..error
        };
        match next(words).map_err(located)? {
            Some(value) => values.push(value),
            None => {
                let place = place();
                return Err(words.error(format!(
                    "the file ends before {place}, where two {size} × {size} matrices are due"
                )));
            }
        }
    }
    Ok(values)
}

const SOLUTION_HINT: &str = "a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same \
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
    let mut words = Words::open(path, SOLUTION_HINT)?.with(cx).parted_by_commas();
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
    use proptest::prelude::*;

    fn file(text: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn problem(text: &str, flow: FlowMatrix) -> AssignmentProblem {
        read(file(text).path(), flow, &Context::detached()).unwrap()
    }

    fn refused(text: impl AsRef<[u8]>) -> String {
        let file = file(text);
        match read(file.path(), FlowMatrix::A, &Context::detached()) {
            Err(FileError { line: Some(line), problem, .. }) => format!("line {line}: {problem}"),
            Err(error) => error.problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn line_ends_mean_nothing() {
        let expected =
            AssignmentProblem { size: 2, flows: vec![0, 1, 2, 0], costs: vec![0.0, 3.5, 4.0, 0.0] };
        for text in [
            "2\n\n0 1\n2 0\n\n0 3.5\n4 0\n",
            " 2 0 1 2 0 0 3.5 4 0",
            "2\r\n0\t1 2\r\n0 0.0 35e-1\r\n\r\n4 0\r\n\r\n",
        ] {
            assert_eq!(problem(text, FlowMatrix::A), expected, "{text:?}");
        }
        let swapped = "2 0 3.5 4 0 0 1 2 0";
        assert_eq!(problem(swapped, FlowMatrix::B), expected);
    }

    #[test]
    fn flow_b_is_the_same_problem_with_rank_and_slot_exchanged() {
        let text = "3 0 5 2 5 0 3 1 3 9  0 8 15 8 4 13 15 13 0";
        let (a, b) = (problem(text, FlowMatrix::A), problem(text, FlowMatrix::B));
        let (placement, inverse) = ([1, 2, 0], [2, 0, 1]);
        assert!((a.cost(&placement) - b.cost(&inverse)).abs() < 1e-9);
    }

    #[test]
    fn wrong_sizes_are_refused() {
        assert_eq!(refused(""), "line 1: the file is empty");
        assert_eq!(refused("\n0\n"), "line 2: n is 0");
        assert_eq!(refused("5000 1 2"), "line 1: n is 5000, more than 4096, the most there can be");
        assert_eq!(
            refused("99999999999999999999"),
            "line 1: `99999999999999999999` is larger than 18446744073709551615"
        );
        assert_eq!(refused("x"), "line 1: `x` is not a number");
        assert_eq!(refused("1.5"), "line 1: `1.5` is not a whole number");
        let short =
            "line 4: the file ends before row 2, column 2 of matrix B, where two 2 × 2 matrices are due";
        assert_eq!(refused("2\n0 1 2 0\n\n0 1 2\n"), short);
        assert_eq!(
            refused("4096 1 2\n"),
            "line 1: the file ends before row 1, column 3 of matrix A, where two 4096 × 4096 matrices are due"
        );
        assert_eq!(refused("1\n1\n1\n1"), "line 4: more than the 3 numbers that two 1 × 1 matrices have");
    }

    #[test]
    fn wrong_values_are_refused_with_their_place() {
        for (text, error) in [
            ("2\n0 -1\n2 0 0 3 4 0", "line 2: row 1, column 2 of matrix A (a flow): `-1` is negative"),
            (
                "2\n0 1\n2.5 0 0 3 4 0",
                "line 3: row 2, column 1 of matrix A (a flow): `2.5` is not a whole number",
            ),
            ("2 0 1 2 0\n0 nan 4 0", "line 2: row 1, column 2 of matrix B (a cost): `nan` is not a number"),
            ("2 0 1 2 0\n0 1e999 4 0", "line 2: row 1, column 2 of matrix B (a cost): `1e999` is too large"),
            ("1 1 \u{e9}", "line 1: row 1, column 1 of matrix B (a cost): `\u{e9}` is not a number"),
        ] {
            assert_eq!(refused(text), error);
        }
        assert_eq!(
            refused(b"1 \xff\x00\x07 1"),
            "line 1: row 1, column 1 of matrix A (a flow): `\u{fffd}\\0\\u{7}` is not a number"
        );
        let sum = "2 0 18446744073709551615 1 0 0 1 1 0";
        assert_eq!(refused(sum), "the sum of all flows exceeds 64 bits");
    }

    #[test]
    fn folders_and_missing_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none")] {
            let error = read(&path, FlowMatrix::A, &Context::detached()).unwrap_err();
            assert!(error.problem.starts_with("cannot be read: "));
        }
    }

    /// A matrix as text, with white space as it comes.
    fn text_of<T: ToString>(values: &[T], spaces: &[&str]) -> String {
        values.iter().zip(spaces.iter().cycle()).map(|(value, space)| value.to_string() + space).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (size, flows, costs) in (1usize..7).prop_flat_map(|size| (
                Just(size),
                prop::collection::vec(prop_oneof![0..99u64, 0..1u64 << 58], size * size),
                prop::collection::vec(prop_oneof![(0..99u32).prop_map(f64::from), 0.0..1e12], size * size),
            )),
            spaces in prop::collection::vec(prop::sample::select(vec![" ", "\n", "\t ", "\r\n", "  \n\n"]), 1..9),
        ) {
            let (flow_text, cost_text) = (text_of(&flows, &spaces), text_of(&costs, &spaces));
            let expected = AssignmentProblem { size, flows, costs };
            prop_assert_eq!(&problem(&format!("{size}\n{flow_text}\n{cost_text}"), FlowMatrix::A), &expected);
            prop_assert_eq!(&problem(&format!("{size}\n{cost_text}\n{flow_text}"), FlowMatrix::B), &expected);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[1-3] ([0-9]{1,22}|[ \n.eE-]|nan|[0-9] ){0,40}") {
            if let Ok(problem) = read(file(&text).path(), FlowMatrix::A, &Context::detached()) {
                prop_assert!(problem.task_graph().check().is_ok());
                prop_assert!(problem.system_graph().check().is_ok());
            }
        }
    }

    /// Costs 1 · 10 + 2 · 20 + 3 · 40 with rank i on slot i.
    fn solved_problem() -> AssignmentProblem {
        AssignmentProblem {
            size: 3,
            flows: vec![0, 1, 0, 0, 0, 2, 3, 0, 0],
            costs: vec![0.0, 10.0, 500.0, 500.0, 0.0, 20.0, 40.0, 500.0, 0.0],
        }
    }

    fn check(text: &str) -> Result<Solution, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        check_solution(file.path(), &solved_problem(), &Context::detached()).map_err(|error| match error {
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

#[cfg(test)]
mod problem_tests {
    use super::*;

    fn problem(flows: &[u64], costs: &[f64]) -> AssignmentProblem {
        AssignmentProblem { size: flows.len().isqrt(), flows: flows.to_vec(), costs: costs.to_vec() }
    }

    #[test]
    fn directions_and_the_diagonal_count() {
        let problem = problem(&[1, 2, 3, 0], &[10.0, 100.0, 1000.0, 7.0]);
        assert_eq!(problem.cost(&[0, 1]).to_string(), "3210");
        assert_eq!(problem.cost(&[1, 0]).to_string(), (7 + 2000 + 300).to_string());
        let halves = AssignmentProblem { costs: vec![0.5, 0.25, 0.0, 0.0], ..problem };
        assert!(!halves.is_whole());
        assert_eq!(halves.cost(&[0, 1]).to_string(), "1");
    }

    #[test]
    fn program_and_machine_have_the_same_cost_as_the_problem() {
        let problem = problem(&[1, 2, 0, 4, 5, 6, 7, 8, 9], &[0.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5]);
        let (graph, system) = (problem.task_graph(), problem.system_graph());
        graph.check().unwrap();
        system.check().unwrap();
        assert_eq!((graph.ranks(), system.slots.len(), graph.edges.len()), (3, 3, 8));
        for placement in [[0, 1, 2], [2, 0, 1], [1, 0, 2]] {
            let slot = |rank: u32| placement[rank as usize] as u32;
            let cost = |edge: &Edge| {
                edge.bytes as f64 * system.costs().between(slot(edge.source), slot(edge.destination))
            };
            let sum: f64 = graph.edges.iter().map(cost).sum();
            assert!((sum - problem.cost(&placement)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let problem = problem(&[u64::MAX; 4], &[EXACT; 4]);
        assert!(problem.cost(&[0, 1]) > 6.6e35);
    }
}
