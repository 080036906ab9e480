//! Several placements in one table after a run: F, F beside linear and round-robin, and what is gained.

use hopmap_model::Metrics;

use super::asked::aligned;
use crate::engine::OutputRecord;
use crate::pipeline::grouped;

/// What the column `gain` means, and when to expect one.
const SENTENCE: [&str; 2] = [
    "gain: F below the better of linear and round-robin. Placement helps where both put ranks that exchange much data",
    "far apart; where one keeps them together, or all exchange alike, there is nothing to gain.",
];

/// The table of a stage whose cells evaluate placements; none if that are fewer than two, or no F is compared.
pub(super) fn table(stage: &str, cells: &[(&str, &OutputRecord)]) -> Option<Vec<String>> {
    let compared = |record: &OutputRecord| record.metrics.contains_key("F_over_linear");
    let rows: Vec<Vec<String>> = cells
        .iter()
        .filter(|(_, record)| record.kind == <Metrics as hopmap_model::Artifact>::KIND && compared(record))
        .map(|&(id, record)| row(id, record))
        .collect();
    if rows.len() < 2 {
        return None;
    }
    let columns = [stage, "F", "F / linear", "F / round-robin", "gain"].map(str::to_owned);
    let mut lines = aligned(&columns, &rows);
    lines.extend(SENTENCE.map(str::to_owned));
    Some(lines)
}

fn row(id: &str, record: &OutputRecord) -> Vec<String> {
    let metric = |name: &str| record.metrics.get(name).copied();
    let ratios = [metric("F_over_linear"), metric("F_over_round_robin")];
    let better = ratios.into_iter().flatten().fold(0.0, f64::max);
    let ratio = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let values = id.split_once('[').map_or(id, |(_, values)| values.trim_end_matches(']'));
    vec![
        values.to_owned(),
        metric("F").map_or_else(String::new, |value| grouped(value as u128)),
        ratio(ratios[0]),
        ratio(ratios[1]),
        format!("{:.1} %", 100.0 * (1.0 - better) + 0.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(f: f64, linear: f64, round_robin: f64) -> OutputRecord {
        let metrics = [("F", f), ("F_over_linear", linear), ("F_over_round_robin", round_robin)];
        OutputRecord {
            kind: "metrics".into(),
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            ..OutputRecord::default()
        }
    }

    #[test]
    fn gain_is_against_the_better_of_both() {
        let (one, other) = (record(3_993_414_912.0, 0.789, 0.546), record(100.0, 1.2, 1.0));
        let lines = table("quality", &[("quality[p=a]", &one), ("quality[p=b]", &other)]).unwrap();
        insta::assert_snapshot!(lines[..3].join("\n"), @r"
        quality              F  F / linear  F / round-robin     gain
        p=a      3,993,414,912       0.789            0.546   21.1 %
        p=b                100       1.200            1.000  -20.0 %
        ");
        assert_eq!(table("quality", &[("quality[p=a]", &one)]), None);
    }
}
