//! Comparison of the algorithms for the collective operations of a program under a mapping.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_collectives::{Algorithm, Call, Operation, Rules};
use hopmap_model::{Context, Costs, Edge, Error, Mapping, SystemGraph, TaskGraph, Weight, WeightChoice};
use hopmap_objective::{check_weight, linear};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accuracy::{csv, markdown};
use crate::compare::check;

/// Algorithms with more messages are skipped.
const MOST_MESSAGES: u64 = 1 << 26;

/// Parameters of `evaluate/collectives`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CollectivesParams {
    /// Weight of a message; by default that of the mapping. One of `auto`, `bytes`, `messages`, `time`, or `{ time
    /// = { latency_s, bandwidth_bytes_per_s } }`.
    pub weight: Option<WeightChoice>,
}

/// The table of operations and algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveComparison {
    /// As CSV, with a header.
    pub csv: String,
    /// As a Markdown table.
    pub markdown: String,
    /// Whether all operations were measured before the context asked to stop.
    pub complete: bool,
}

/// Group of equal operations: communicator, operation, bytes of a block.
type Kind = (u32, Operation, u64);

/// Measures every algorithm for every collective operation of a program, under the mapping and the linear
/// baseline.
///
/// `total` is the contribution of the messages to F: Σ weight × cost. `path` estimates the time: the sum over
/// rounds of the largest weight × cost that a process sends or receives in the round. A barrier message
/// weighs one byte.
pub fn compare_collectives(
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    params: &CollectivesParams,
    cx: &Context<'_>,
) -> Result<CollectiveComparison, Error> {
    check(graph, system, mapping)?;
    let weight = params.weight.map_or(Ok(mapping.weight), |weight| weight.resolve(graph, system, cx))?;
    check_weight(weight)?;
    let kinds = kinds(graph, cx);
    let (mapped, in_order) = (mapping.slots(), linear(graph.ranks()));
    let costs = system.costs();
    let place = |members, slots| MemberSlots { costs: &costs, members, slots, weight };
    let done = AtomicU64::new(0);
    let group = |(&(communicator, operation, bytes), roots): (&Kind, &Roots)| {
        if cx.should_stop() {
            return None;
        }
        let members = &graph.collectives.communicators[communicator as usize];
        let places = [place(members, &mapped), place(members, &in_order)];
        let calls = Calls { operation, bytes, roots };
        let group = Group { communicator, operation, bytes, calls: calls.count(), rows: calls.rows(places) };
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, kinds.len() as u64);
        Some(group)
    };
    let groups: Vec<Group> = kinds.par_iter().filter_map(group).collect();
    let complete = groups.len() == kinds.len();
    log_left_out(&groups, graph, cx);
    let [csv, markdown] = Table::new(groups, &graph.collectives.communicators).texts();
    Ok(CollectiveComparison { csv, markdown, complete })
}

/// Calls by their root.
type Roots = Vec<(Option<u32>, u64)>;

/// The operations that send messages, with all roots combined.
fn kinds(graph: &TaskGraph, cx: &Context<'_>) -> BTreeMap<Kind, Roots> {
    let mut kinds: BTreeMap<Kind, Roots> = BTreeMap::new();
    let mut silent = 0u64;
    for calls in &graph.collectives.calls {
        let processes = graph.collectives.communicators[calls.communicator as usize].len();
        if processes < 2 || calls.bytes == 0 && calls.operation != Operation::Barrier {
            silent = silent.saturating_add(calls.calls);
            continue;
        }
        let kind = (calls.communicator, calls.operation, calls.bytes);
        kinds.entry(kind).or_default().push((calls.root, calls.calls));
    }
    if graph.collectives.is_empty() {
        cx.log(format_args!(
            "warning: the task graph has no collective operations; set `collectives = \"keep\"` in `trace/otf2`"
        ));
    }
    if silent > 0 {
        cx.log(format_args!(
            "collective operations that send nothing (no bytes, or a single process): {silent}"
        ));
    }
    kinds
}

/// Equal operations of one communicator.
struct Calls<'a> {
    operation: Operation,
    bytes: u64,
    roots: &'a Roots,
}

impl Calls<'_> {
    fn count(&self) -> u64 {
        self.roots.iter().map(|(_, calls)| *calls).fold(0, u64::saturating_add)
    }

    /// The call with a root.
    fn call(&self, root: Option<u32>, processes: u32) -> Call {
        Call { operation: self.operation, processes, root, bytes: self.bytes }
    }

    /// One row per algorithm that supports the number of processes.
    fn rows(&self, places: [MemberSlots<'_>; 2]) -> Vec<Row> {
        let processes = places[0].members.len() as u32;
        let [mpich, open_mpi] = Rules::OF_MPI.map(|rules| self.call(None, processes).usual(rules));
        let fits = |algorithm: &&Algorithm| {
            self.call(None, processes).suits(**algorithm)
                && self.call(None, processes).most_messages(**algorithm) <= MOST_MESSAGES
        };
        let row = |&algorithm: &Algorithm| {
            let [mapped, linear] = places.each_ref().map(|place| self.measure(algorithm, place));
            Row { algorithm, mpich: algorithm == mpich, open_mpi: algorithm == open_mpi, mapped, linear }
        };
        Algorithm::of(self.operation).iter().filter(fits).map(row).collect()
    }

    /// All calls combined.
    fn measure(&self, algorithm: Algorithm, place: &MemberSlots<'_>) -> Measure {
        let mut all = Measure::default();
        for &(root, calls) in self.roots {
            all.add(&Measure::of(&self.call(root, place.members.len() as u32), algorithm, place), calls);
        }
        all
    }
}

/// Logs skipped algorithms with too many messages.
fn log_left_out(groups: &[Group], graph: &TaskGraph, cx: &Context<'_>) {
    let missing = |group: &Group| {
        let processes = graph.collectives.communicators[group.communicator as usize].len() as u32;
        let (operation, bytes) = (group.operation, group.bytes);
        let call = Call { operation, processes, root: None, bytes };
        Algorithm::of(operation).iter().filter(|algorithm| call.suits(**algorithm)).count() - group.rows.len()
    };
    let missing: usize = groups.iter().map(missing).sum();
    if missing > 0 {
        cx.log(format_args!("skipped algorithms with more than {MOST_MESSAGES} messages: {missing}"));
    }
}

/// Maximum ranks of a communicator that are listed one by one.
const FEW_RANKS: usize = 4;

const HEADER: [&str; 16] = [
    "communicator",
    "ranks",
    "processes",
    "operation",
    "bytes",
    "calls",
    "algorithm",
    "MPICH",
    "Open MPI",
    "messages",
    "rounds",
    "total",
    "path",
    "total linear",
    "path linear",
    "best",
];

/// Builds the table: first totals over all communicators and sizes of each operation, then single ones,
/// largest traffic first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(mut groups: Vec<Group>, communicators: &[Vec<u32>]) -> Self {
        // A stable sort keeps equal rows in the order of communicators.
        groups.sort_by(|one, other| other.size().total_cmp(&one.size()));
        let mut rows = Vec::new();
        let mut operations: BTreeMap<Operation, Vec<&Group>> = BTreeMap::new();
        for group in &groups {
            operations.entry(group.operation).or_default().push(group);
        }
        for (operation, of_operation) in operations {
            let calls = of_operation.iter().map(|group| group.calls).fold(0, u64::saturating_add);
            let all = together(&of_operation, operation);
            let place = ["all".to_owned(), String::new(), String::new()];
            rows.extend(all.iter().map(|row| line(&place, (operation, None, calls), row, &all)));
        }
        for group in &groups {
            let members = &communicators[group.communicator as usize];
            let place = [group.communicator.to_string(), ranks(members), members.len().to_string()];
            let what = (group.operation, Some(group.bytes), group.calls);
            rows.extend(group.rows.iter().map(|row| line(&place, what, row, &group.rows)));
        }
        Self { rows }
    }

    /// As CSV with a header, and as a Markdown table.
    fn texts(&self) -> [String; 2] {
        let header = HEADER.map(str::to_owned).to_vec();
        [csv(std::iter::once(&header).chain(&self.rows)), markdown(&header, &self.rows)]
    }
}

fn line(
    place: &[String; 3],
    (operation, bytes, calls): (Operation, Option<u64>, u64),
    row: &Row,
    all: &[Row],
) -> Vec<String> {
    let mut line = place.to_vec();
    line.push(operation.to_string());
    line.push(bytes.map(|bytes| bytes.to_string()).unwrap_or_default());
    line.push(calls.to_string());
    line.push(row.algorithm.to_string());
    line.extend([row.mpich, row.open_mpi].map(|usual| if usual { "yes" } else { "" }.to_owned()));
    line.push(number(row.mapped.messages));
    line.push(row.mapped.rounds.to_string());
    let costs = [row.mapped.total, row.mapped.path, row.linear.total, row.linear.path];
    line.extend(costs.map(number));
    line.push(best(row, all).to_owned());
    line
}

/// Formats integers exactly, other numbers with six digits.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => format!("{value:.0}"),
        false => format!("{value:.5e}"),
    }
}

/// Abbreviates ranks: `0-15`, every fourth as `1-13/4`, others by the first ones.
fn ranks(members: &[u32]) -> String {
    let steps = || members.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
    match (members, steps().next().flatten()) {
        ([first, .., last], Some(step)) if step > 0 && steps().all(|other| other == Some(step)) => {
            let every = if step == 1 { String::new() } else { format!("/{step}") };
            format!("{first}-{last}{every}")
        }
        _ => {
            let named: Vec<String> = members.iter().take(FEW_RANKS).map(u32::to_string).collect();
            named.join(" ") + if members.len() > FEW_RANKS { " …" } else { "" }
        }
    }
}

/// An algorithm for some operations.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    algorithm: Algorithm,
    /// Whether MPICH would choose it.
    mpich: bool,
    /// Whether Open MPI would choose it.
    open_mpi: bool,
    mapped: Measure,
    linear: Measure,
}

/// Operations of one communicator and block size.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    /// Index of the communicator.
    communicator: u32,
    operation: Operation,
    /// Bytes of a block.
    bytes: u64,
    calls: u64,
    rows: Vec<Row>,
}

impl Group {
    /// The row of an algorithm, or of MPICH's choice if the communicator cannot use it.
    fn row(&self, algorithm: Algorithm) -> Option<&Row> {
        let of = |row: &&Row| row.algorithm == algorithm;
        self.rows.iter().find(of).or_else(|| self.rows.iter().find(|row| row.mpich))
    }

    /// Total of MPICH's choice under the mapping, the sort key of operations.
    fn size(&self) -> f64 {
        self.rows.iter().find(|row| row.mpich).map_or(0.0, |row| row.mapped.total)
    }
}

/// Whether an algorithm has the smallest total and the smallest path for the same operations.
fn best(row: &Row, rows: &[Row]) -> &'static str {
    let least = |of: fn(&Measure) -> f64| {
        let least = rows.iter().map(|other| of(&other.mapped)).fold(f64::INFINITY, f64::min);
        of(&row.mapped) <= least
    };
    match (least(|measure| measure.total), least(|measure| measure.path)) {
        (true, true) => "both",
        (true, false) => "total",
        (false, true) => "path",
        (false, false) => "",
    }
}

/// Totals of every algorithm over all operations of a kind. Operations that cannot use it take MPICH's
/// choice, as in `trace/otf2`; an algorithm that a library does not choose everywhere is not marked.
fn together(groups: &[&Group], operation: Operation) -> Vec<Row> {
    let row = |&algorithm: &Algorithm| {
        let (mapped, linear) = (Measure::default(), Measure::default());
        let mut sum = Row { algorithm, mpich: true, open_mpi: true, mapped, linear };
        for group in groups {
            let row = group.row(algorithm)?;
            sum.mpich &= row.algorithm == algorithm && row.mpich;
            sum.open_mpi &= row.algorithm == algorithm && row.open_mpi;
            sum.mapped.add(&row.mapped, 1);
            sum.linear.add(&row.linear, 1);
        }
        Some(sum)
    };
    let used = |algorithm: &&Algorithm| {
        groups.iter().any(|group| group.rows.iter().any(|row| row.algorithm == **algorithm))
    };
    Algorithm::of(operation).iter().filter(used).filter_map(row).collect()
}

/// Slots of the members of a communicator, and the weight of their messages.
#[derive(Debug, Clone, Copy)]
struct MemberSlots<'a> {
    costs: &'a Costs<'a>,
    /// Ranks of the program by rank of the communicator.
    members: &'a [u32],
    /// Slots by rank of the program.
    slots: &'a [u32],
    weight: Weight,
}

impl MemberSlots<'_> {
    /// Weight × cost of messages between two members.
    fn cost(&self, edge: &Edge) -> f64 {
        let slot = |member: u32| self.slots[self.members[member as usize] as usize];
        self.weight.of(edge) * self.costs.between(slot(edge.source), slot(edge.destination))
    }
}

/// Cost of the calls of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Measure {
    /// Messages of all calls.
    messages: f64,
    /// Sequential messages of one call.
    rounds: u64,
    /// Σ weight × cost of all messages.
    total: f64,
    /// Σ over rounds of the largest weight × cost of any process.
    path: f64,
}

impl Measure {
    /// Cost of one call with an algorithm.
    fn of(call: &Call, algorithm: Algorithm, place: &MemberSlots<'_>) -> Self {
        let mut clock = Clock::new(call, algorithm);
        let mut measure = Self::default();
        let expanded = call.messages(algorithm, |round, mut edge| {
            if call.operation == Operation::Barrier {
                edge.bytes = edge.messages;
            }
            let cost = place.cost(&edge);
            measure.messages += edge.messages as f64;
            measure.total += cost;
            clock.add(round, &edge, cost);
        });
        debug_assert!(expanded.is_ok(), "the task graph has been checked");
        (measure.rounds, measure.path) = clock.finish();
        measure
    }

    /// Adds a number of calls.
    fn add(&mut self, one: &Self, calls: u64) {
        let calls = calls as f64;
        self.messages += one.messages * calls;
        self.rounds = self.rounds.max(one.rounds);
        self.total += one.total * calls;
        self.path += one.path * calls;
    }
}

/// Messages and cost of the busiest process in each round.
enum Clock {
    /// Every process has at most one message or one partner per round: messages and cost by round.
    Rounds(Vec<(u64, f64)>),
    /// A process may have several per round: messages and cost by round, direction and process.
    AtOnce { processes: usize, rounds: Vec<[Vec<(u64, f64)>; 2]> },
}

impl Clock {
    fn new(call: &Call, algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Linear | Algorithm::NonOverlapping => {
                Self::AtOnce { processes: call.processes as usize, rounds: Vec::new() }
            }
            _ => Self::Rounds(Vec::new()),
        }
    }

    fn add(&mut self, round: u32, edge: &Edge, cost: f64) {
        let round = round as usize;
        match self {
            Self::Rounds(rounds) => {
                if round >= rounds.len() {
                    rounds.resize(round + 1, (0, 0.0));
                }
                rounds[round] = (rounds[round].0.max(edge.messages), rounds[round].1.max(cost));
            }
            Self::AtOnce { processes, rounds } => {
                while round >= rounds.len() {
                    rounds.push([vec![(0, 0.0); *processes], vec![(0, 0.0); *processes]]);
                }
                let [sent, received] = &mut rounds[round];
                let ends = [&mut sent[edge.source as usize], &mut received[edge.destination as usize]];
                for (messages, sum) in ends {
                    *messages += edge.messages;
                    *sum += cost;
                }
            }
        }
    }

    /// Sequential messages and their cost.
    fn finish(self) -> (u64, f64) {
        let busiest = |[sent, received]: &[Vec<(u64, f64)>; 2]| {
            let most = |most: (u64, f64), one: &(u64, f64)| (most.0.max(one.0), most.1.max(one.1));
            sent.iter().chain(received).fold((0, 0.0), most)
        };
        let rounds = match self {
            Self::Rounds(rounds) => rounds,
            Self::AtOnce { rounds, .. } => rounds.iter().map(busiest).collect(),
        };
        rounds.iter().fold((0, 0.0), |(count, sum), (messages, cost)| (count + messages, sum + cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_abbreviated() {
        assert_eq!(ranks(&[0, 1, 2, 3, 4, 5]), "0-5");
        assert_eq!(ranks(&[1, 5, 9, 13]), "1-13/4");
        assert_eq!(ranks(&[3, 2]), "3 2");
        assert_eq!(ranks(&[0, 1, 3, 4, 5]), "0 1 3 4 …");
        assert_eq!(ranks(&[7]), "7");
        assert_eq!(ranks(&[7, 7]), "7 7");
    }

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!([number(1234.0), number(0.001_234_567_8)], ["1234", "1.23457e-3"]);
    }
}
