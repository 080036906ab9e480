//! The table itself.

use std::collections::BTreeMap;

use hopmap_collectives::Operation;

use super::rows::{Group, Row, best, together};

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
