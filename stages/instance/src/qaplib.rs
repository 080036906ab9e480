//! Quadratic assignment problems, with their program and machine, and their files in QAPLIB format:
//! instances, a number n, then two matrices of n × n numbers; and solutions: n, a cost, then a permutation.
//!
//! Source: Burkard, Karisch and Rendl, "QAPLIB – A Quadratic Assignment Problem Library", J. Global
//! Optimization 10, 1997. White space separates the numbers, and line ends have no meaning. The format does
//! not define whether a permutation is p of `Σ a_ij · b_p(i)p(j)` or its inverse, and the files of QAPLIB
//! have both; some count from zero. So the cost decides.

use std::path::Path;

use hopmap_model::{Context, CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph};
use hopmap_text::{FileError, Lines, Words};

use crate::error::MAX_SIZE;
use crate::params::FlowMatrix;

/// Floats represent all integers up to this exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A quadratic assignment problem: flows between `n` ranks, and costs between `n` slots.
///
/// Rank `i` on slot `p[i]` costs `Σ_ij flows[i][j] · costs[p[i]][p[j]]` over all ordered pairs, including
/// `i = j` (Burkard, Karisch and Rendl 1997, QAPLIB).
#[derive(Debug, Clone, PartialEq)]
pub struct AssignmentProblem {
    pub(crate) size: usize,
    /// Row by row.
    pub(crate) flows: Vec<u64>,
    /// Row by row; finite and non-negative.
    pub(crate) costs: Vec<f64>,
}

impl AssignmentProblem {
    /// Number of ranks, and of slots.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Flows between ranks, row by row.
    #[must_use]
    pub fn flows(&self) -> &[u64] {
        &self.flows
    }

    /// Costs between slots, row by row.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Whether all costs are integers, so that costs of placements below 2⁵³ are exact.
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

    /// The program: a process per rank, and an edge of one message for every nonzero flow.
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

    /// The machine: a host with one slot for every location, and a cost matrix.
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
            calibration: Vec::new(),
        }
    }
}

const HINT: &str = "an instance is a number n, then matrix A and matrix B, n × n numbers each, separated by white space; flows \
                    become bytes (non-negative integers), and costs are non-negative numbers: `flow` selects the matrix of flows";

/// Reads an instance. `flow` selects the matrix of flows.
pub fn read(path: &Path, flow: FlowMatrix, cx: &Context<'_>) -> Result<AssignmentProblem, FileError> {
    let known = known_costs(path);
    let mut words = Words::open(path, HINT)?.with(cx);
    let size = size(&mut words)?;
    if known > 0 {
        cx.log(format_args!("ignoring what follows n in its line (numbers, such as the optimum): {known}"));
    }
    for _ in 0..known {
        words.next()?;
    }
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
        return Err(words.error(format!("more than the {expected} numbers of two {size} × {size} matrices")));
    }
    let sum = flows.iter().try_fold(0u64, |sum, flow| sum.checked_add(*flow));
    match sum {
        Some(_) => Ok(AssignmentProblem { size, flows, costs }),
        None => {
            let help = "flows become bytes, whose total must be below 2^64: divide them by a common factor";
            Err(FileError::new("the sum of all flows exceeds 64 bits", help).in_file(path))
        }
    }
}

/// Numbers after n in the first line: the optimum and the best known cost in some collections. As line ends have no meaning,
/// they are none unless the file has that many numbers too many.
fn known_costs(path: &Path) -> usize {
    let count = |line: &[u8]| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
    let numbers = || -> Result<Option<usize>, FileError> {
        let mut lines = Lines::open(path, HINT)?;
        let Some(first) = lines.next_filled()? else { return Ok(None) };
        let size = first.words().next().and_then(|size| size.parse().ok()).unwrap_or(MAX_SIZE + 1);
        let known = count(first.text.as_bytes()) - 1;
        if size > MAX_SIZE || !(1..=2).contains(&known) {
            return Ok(None);
        }
        let mut rest = 0;
        while let Some(line) = lines.next_bytes()? {
            rest += count(line.text);
        }
        Ok((rest == 2 * (size as usize).pow(2)).then_some(known))
    };
    // What cannot be read is refused when the numbers are.
    numbers().ok().flatten().unwrap_or_default()
}

/// The first number.
fn size(words: &mut Words<'_>) -> Result<usize, FileError> {
    let Some(size) = words.whole()? else {
        return Err(words.error("the file is empty"));
    };
    match size {
        0 => Err(words.error("n is 0")),
        size if size > u64::from(MAX_SIZE) => {
            Err(words.error(format!("n = {size} exceeds the maximum of {MAX_SIZE}")))
        }
        size => Ok(size as usize),
    }
}

/// Reads a matrix. Memory grows with the numbers that are read, independent of the declared size.
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
                return Err(words
                    .error(format!("the file ends before {place}; expected two {size} × {size} matrices")));
            }
        }
    }
    Ok(values)
}

const SOLUTION_HINT: &str = "a solution is n and a cost, then the numbers from 1 to n in some order (or from 0 to n - 1), of the same \
                    instance; omit `solution` to skip the check";

/// A solution of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The cost that the file states.
    pub stated: f64,
    /// The recomputed cost of the permutation. May be less than stated if the file is wrong.
    pub cost: f64,
    /// Interpretation of the permutation.
    pub reading: Reading,
    /// Slot of every rank.
    pub placement: Vec<usize>,
}

/// Interpretation of the permutation of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Entry i is the slot of rank i.
    SlotOfRank,
    /// Entry i is the rank on slot i.
    RankOfSlot,
}

/// Reads a solution and checks its size, that it is a permutation, and its cost.
///
/// It is an error if both the permutation and its inverse cost more than stated: no placement has the stated
/// cost. If one costs less, the lower cost counts.
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
        Some(number) => return Err(words.error(format!("n = {number}, but the instance has n = {size}"))),
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
            Some(_) => return Err(words.error_at(line, format!("duplicate entry {entry}"))),
            None => {
                let last = size as u64 + first - 1;
                return Err(words.error_at(line, format!("{entry} is not between {first} and {last}")));
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
    fn line_ends_have_no_meaning() {
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

    /// Once the matrices were shifted by these numbers.
    #[test]
    fn known_costs_after_n_are_no_entries() {
        let expected = problem("2\n0 1\n2 0\n0 3.5\n4 0\n", FlowMatrix::A);
        for first in ["2 11", "2 11.5 -1", " 2\t11 11\r"] {
            assert_eq!(problem(&format!("\n{first}\n0 1\n2 0\n0 3.5\n4 0\n"), FlowMatrix::A), expected);
        }
        assert_eq!(problem("2 0 1\n2 0\n0 3.5\n4 0\n", FlowMatrix::A), expected);
    }

    #[test]
    fn flow_b_is_the_same_problem_with_rank_and_slot_exchanged() {
        let text = "3 0 5 2 5 0 3 1 3 9  0 8 15 8 4 13 15 13 0";
        let (a, b) = (problem(text, FlowMatrix::A), problem(text, FlowMatrix::B));
        let (placement, inverse) = ([1, 2, 0], [2, 0, 1]);
        assert!((a.cost(&placement) - b.cost(&inverse)).abs() < 1e-9);
    }

    #[test]
    fn wrong_sizes_are_rejected() {
        assert_eq!(refused(""), "line 1: the file is empty");
        assert_eq!(refused("\n0\n"), "line 2: n is 0");
        assert_eq!(refused("5000 1 2"), "line 1: n = 5000 exceeds the maximum of 4096");
        assert_eq!(
            refused("99999999999999999999"),
            "line 1: `99999999999999999999` is larger than 18446744073709551615"
        );
        assert_eq!(refused("x"), "line 1: `x` is not a number");
        assert_eq!(refused("1.5"), "line 1: `1.5` is not an integer");
        let short = "line 4: the file ends before row 2, column 2 of matrix B; expected two 2 × 2 matrices";
        assert_eq!(refused("2\n0 1 2 0\n\n0 1 2\n"), short);
        assert_eq!(
            refused("4096 1 2\n"),
            "line 1: the file ends before row 1, column 3 of matrix A; expected two 4096 × 4096 matrices"
        );
        assert_eq!(refused("1\n1\n1\n1"), "line 4: more than the 3 numbers of two 1 × 1 matrices");
    }

    #[test]
    fn wrong_values_are_rejected_with_their_position() {
        for (text, error) in [
            ("2\n0 -1\n2 0 0 3 4 0", "line 2: row 1, column 2 of matrix A (a flow): `-1` is negative"),
            (
                "2\n0 1\n2.5 0 0 3 4 0",
                "line 3: row 2, column 1 of matrix A (a flow): `2.5` is not an integer",
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
    fn folders_and_missing_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("none")] {
            let error = read(&path, FlowMatrix::A, &Context::detached()).unwrap_err();
            assert!(error.problem.starts_with("cannot be read: "));
        }
    }

    /// A matrix as text, with the given white space.
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
    fn permutations_are_interpreted_by_their_cost() {
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
    fn a_permutation_better_than_stated_counts_and_a_worse_one_is_rejected() {
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
    fn invalid_solutions_are_rejected() {
        for (text, error) in [
            ("", "line 1: the file is empty"),
            ("4 1", "line 1: n = 4, but the instance has n = 3"),
            ("3", "line 1: the file ends before the cost"),
            ("3 x", "line 1: `x` is not a number"),
            ("3 1\n1 2", "line 2: the file ends after 2 of 3 entries"),
            ("3 1\n1 2 3\n4", "line 3: more than 3 entries"),
            ("3 1\n1 2\n2", "line 3: duplicate entry 2"),
            ("3 1\n1 2\n4", "line 3: 4 is not between 1 and 3"),
            ("3 1\n0 2\n3", "line 3: 3 is not between 0 and 2"),
            ("3 1\n1 -2\n3", "line 2: `-2` is negative"),
            ("3 1\n1 18446744073709551615\n3", "line 2: 18446744073709551615 is not between 1 and 3"),
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
