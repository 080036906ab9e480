//! The table itself.

use std::collections::BTreeMap;

use hopmap_collectives::{Algorithm, Call, Operation};
use hopmap_model::{Costs, Edge, Weight};

/// Ranks of a communicator that are named one by one.
const FEW_RANKS: usize = 4;

const HEADER: [&str; 15] = [
    "communicator",
    "ranks",
    "processes",
    "operation",
    "bytes",
    "calls",
    "algorithm",
    "MPICH",
    "messages",
    "rounds",
    "total",
    "path",
    "total linear",
    "path linear",
    "best",
];

/// A table of texts: first all communicators and sizes of each operation together, then one by one, those with the most
/// traffic first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(mut groups: Vec<Group>, communicators: &[Vec<u32>]) -> Self {
        // A stable sort: equal ones stay in the order of communicators.
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

    /// As CSV, with a header. No cell has a comma, a quote or a line break.
    pub(super) fn csv(&self) -> String {
        let rows = self.rows.iter().map(|row| row.join(",") + "\n");
        std::iter::once(HEADER.join(",") + "\n").chain(rows).collect()
    }

    /// As a table of Markdown.
    pub(super) fn markdown(&self) -> String {
        let rows = self.rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
        let head = format!("| {} |\n|{}\n", HEADER.join(" | "), "---|".repeat(HEADER.len()));
        std::iter::once(head).chain(rows).collect()
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
    line.push(if row.usual { "yes" } else { "" }.to_owned());
    line.push(number(row.mapped.messages));
    line.push(row.mapped.rounds.to_string());
    let costs = [row.mapped.total, row.mapped.path, row.linear.total, row.linear.path];
    line.extend(costs.map(number));
    line.push(best(row, all).to_owned());
    line
}

/// Whole numbers as they are, others with six digits.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => format!("{value:.0}"),
        false => format!("{value:.5e}"),
    }
}

/// Ranks in few characters: `0-15`, every fourth as `1-13/4`, others by the first of them.
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
pub(super) struct Row {
    pub(super) algorithm: Algorithm,
    /// Whether MPICH would take it.
    pub(super) usual: bool,
    pub(super) mapped: Measure,
    pub(super) linear: Measure,
}

/// Operations of one communicator and size.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Index of the communicator.
    pub(super) communicator: u32,
    pub(super) operation: Operation,
    /// Bytes of a block.
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) rows: Vec<Row>,
}

impl Group {
    /// The row of an algorithm; that of MPICH's choice where the communicator cannot use it.
    fn row(&self, algorithm: Algorithm) -> Option<&Row> {
        let of = |row: &&Row| row.algorithm == algorithm;
        self.rows.iter().find(of).or_else(|| self.rows.iter().find(|row| row.usual))
    }

    /// Total of MPICH's choice under the mapping, by which operations matter.
    pub(super) fn size(&self) -> f64 {
        self.rows.iter().find(|row| row.usual).map_or(0.0, |row| row.mapped.total)
    }
}

/// Whether an algorithm has the least total and the least path of all for the same operations.
pub(super) fn best(row: &Row, rows: &[Row]) -> &'static str {
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

/// Every algorithm for all operations of a kind, whatever the communicator and size. Operations that cannot use one
/// take MPICH's choice, as `trace/otf2` does; `usual` says that MPICH takes it everywhere.
pub(super) fn together(groups: &[&Group], operation: Operation) -> Vec<Row> {
    let row = |&algorithm: &Algorithm| {
        let mut sum = Row { algorithm, usual: true, mapped: Measure::default(), linear: Measure::default() };
        for group in groups {
            let row = group.row(algorithm)?;
            sum.usual &= row.usual;
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

/// Where the members of a communicator are, and what their messages weigh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) costs: &'a Costs<'a>,
    /// Ranks of the program by rank of the communicator.
    pub(super) members: &'a [u32],
    /// Slots by rank of the program.
    pub(super) slots: &'a [u32],
    pub(super) weight: Weight,
}

impl Place<'_> {
    /// Weight × cost of messages between two members.
    fn cost(&self, edge: &Edge) -> f64 {
        let slot = |member: u32| self.slots[self.members[member as usize] as usize];
        self.weight.of(edge) * self.costs.between(slot(edge.source), slot(edge.destination))
    }
}

/// What calls of an operation cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Measure {
    /// Messages of all calls.
    pub(super) messages: f64,
    /// Messages of one call that follow each other.
    pub(super) rounds: u64,
    /// Σ weight × cost of all messages.
    pub(super) total: f64,
    /// Σ over rounds of the largest weight × cost of a process.
    pub(super) path: f64,
}

impl Measure {
    /// What one call costs that an algorithm is for.
    pub(super) fn of(call: &Call, algorithm: Algorithm, place: &Place<'_>) -> Self {
        let mut clock = Clock::new(call, algorithm);
        let mut measure = Self::default();
        let told = call.messages(algorithm, |round, mut edge| {
            if call.operation == Operation::Barrier {
                edge.bytes = edge.messages;
            }
            let cost = place.cost(&edge);
            measure.messages += edge.messages as f64;
            measure.total += cost;
            clock.add(round, &edge, cost);
        });
        debug_assert!(told.is_ok(), "the task graph has been checked");
        (measure.rounds, measure.path) = clock.finish();
        measure
    }

    /// Adds so many calls.
    pub(super) fn add(&mut self, one: &Self, calls: u64) {
        let calls = calls as f64;
        self.messages += one.messages * calls;
        self.rounds = self.rounds.max(one.rounds);
        self.total += one.total * calls;
        self.path += one.path * calls;
    }
}

/// The busiest of each round.
enum Clock {
    /// Nobody sends or gets more than one message, or messages with one partner, in a round: messages and cost by round.
    Rounds(Vec<(u64, f64)>),
    /// All is sent at once: messages and cost by process, sent and received.
    AtOnce { sent: Vec<(u64, f64)>, received: Vec<(u64, f64)> },
}

impl Clock {
    fn new(call: &Call, algorithm: Algorithm) -> Self {
        let processes = call.processes as usize;
        match algorithm {
            Algorithm::Linear => {
                Self::AtOnce { sent: vec![(0, 0.0); processes], received: vec![(0, 0.0); processes] }
            }
            _ => Self::Rounds(Vec::new()),
        }
    }

    fn add(&mut self, round: u32, edge: &Edge, cost: f64) {
        match self {
            Self::Rounds(rounds) => {
                let round = round as usize;
                if round >= rounds.len() {
                    rounds.resize(round + 1, (0, 0.0));
                }
                rounds[round] = (rounds[round].0.max(edge.messages), rounds[round].1.max(cost));
            }
            Self::AtOnce { sent, received } => {
                let ends = [&mut sent[edge.source as usize], &mut received[edge.destination as usize]];
                for (messages, sum) in ends {
                    *messages += edge.messages;
                    *sum += cost;
                }
            }
        }
    }

    /// Messages that follow each other, and their cost.
    fn finish(self) -> (u64, f64) {
        match self {
            Self::Rounds(rounds) => {
                rounds.iter().fold((0, 0.0), |(count, sum), (messages, cost)| (count + messages, sum + cost))
            }
            Self::AtOnce { sent, received } => {
                let all = sent.iter().chain(&received);
                all.fold((0, 0.0), |(count, most), (messages, cost)| (count.max(*messages), most.max(*cost)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_told_in_few_characters() {
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
