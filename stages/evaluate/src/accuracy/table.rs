//! The table itself.

use super::group::Group;
use super::known::Known;
use crate::{AccuracyParams, EvaluateError};

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    beaten: Vec<String>,
}

impl Table {
    pub(super) fn new(
        groups: &[Group],
        params: &AccuracyParams,
        known: Option<&Known>,
    ) -> Result<Self, EvaluateError> {
        let AccuracyParams { by, beside, metric, .. } = params;
        let own = ["runs", "best", "mean", "median", "evaluations"];
        let gaps = beside
            .iter()
            .flat_map(|column| ["best", "mean", "median"].map(|which| format!("{which} over {column} %")));
        let told = known.into_iter().flat_map(|known| known.columns(by)).map(str::to_owned);
        let header = by.iter().cloned().chain(own.map(|name| named(name, metric))).chain(gaps).chain(told);
        let mut table = Self { header: header.collect(), rows: Vec::new(), beaten: Vec::new() };
        for group in groups {
            table.add(group, params, known)?;
        }
        Ok(table)
    }

    /// Adds the row of a group.
    fn add(
        &mut self,
        group: &Group,
        params: &AccuracyParams,
        known: Option<&Known>,
    ) -> Result<(), EvaluateError> {
        let AccuracyParams { by, beside, metric, .. } = params;
        let runs = group.values.len();
        let values = [group.best(), group.mean(), group.median()];
        let mut row = group.keys.clone();
        row.push(runs.to_string());
        row.extend(values.iter().map(|value| shortened(*value)));
        row.push(format!("{:.0}", group.evaluations / runs as f64));
        for column in beside {
            let number = known.map(|known| known.number(column, by, &group.keys)).transpose()?.flatten();
            row.extend(
                values.iter().map(|value| number.map_or_else(String::new, |known| percent(*value, known))),
            );
            if let Some(number) = number.filter(|&number| group.best() < number) {
                self.beaten.push(format!(
                    "{}: {metric} = {} is below the {column} of {}",
                    group.keys.join(", "),
                    shortened(group.best()),
                    shortened(number)
                ));
            }
        }
        if let Some(known) = known {
            row.extend(known.columns(by).map(|column| known.text(column, by, &group.keys).to_owned()));
        }
        self.rows.push(row);
        Ok(())
    }

    /// Where a mapping is better than what is known, in words.
    #[must_use]
    pub fn beaten(&self) -> &[String] {
        &self.beaten
    }

    /// As CSV, with a header.
    #[must_use]
    pub fn csv(&self) -> String {
        let line =
            |cells: &Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.header).chain(&self.rows).map(line).collect()
    }

    /// As a table of Markdown, below it where something known was beaten.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &Vec<String>| {
            format!(
                "| {} |\n",
                cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | ")
            )
        };
        let rule = format!("|{}\n", "---|".repeat(self.header.len()));
        let rows: String = self.rows.iter().map(line).collect();
        let mut text = format!("{}{rule}{rows}", line(&self.header));
        if !self.beaten.is_empty() {
            text.push_str(&format!("\n- {}\n", self.beaten.join("\n- ")));
        }
        text
    }
}

fn named(name: &str, metric: &str) -> String {
    match name {
        "best" | "mean" | "median" => format!("{metric} {name}"),
        _ => name.to_owned(),
    }
}

/// A1: by how many percent a value is above a known one.
fn percent(value: f64, known: f64) -> String {
    match known {
        0.0 if value == 0.0 => "0.00".to_owned(),
        0.0 => String::new(),
        _ => format!("{:.2}", 100.0 * (value - known) / known),
    }
}

/// As few digits as tell whole numbers, and tenths of others.
fn shortened(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() < 1.0 { format!("{value}") } else { format!("{value:.1}") }
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
