//! Table of searches on problems with known best costs.

use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use hopmap_model::{Context, Mapping, read_input};
use hopmap_statistics::median;
use hopmap_text::FileError;

use crate::error::EvaluateError;
use crate::params::AccuracyParams;

/// Tabulates groups of mappings: their number, the best, mean and median of a metric, and their relative gap
/// to known values in percent, A1 = 100 · (F − F0) / F0 (GraphHunter).
pub fn accuracy(
    searches: &[Search<'_>],
    params: &AccuracyParams,
    cx: &Context<'_>,
) -> Result<Table, EvaluateError> {
    let known = params
        .best_known
        .as_ref()
        .map(|file| KnownValues::read(file.path(), &params.group_by))
        .transpose()?;
    if let Some(column) =
        params.baseline.iter().find(|name| !known.as_ref().is_some_and(|known| known.has(name)))
    {
        let problem = format!("`best_known` has no column `{column}`");
        return Err(EvaluateError::new(problem, "`baseline` lists columns of the file `best_known`"));
    }
    let groups = groups(searches, &params.group_by, &params.metric)?;
    let table = Table::new(&groups, params, known.as_ref())?;
    for line in table.beaten() {
        cx.log(line);
    }
    Ok(table)
}

/// A mapping and the label of the cell that produced it.
#[derive(Debug, Clone, Copy)]
pub struct Search<'m> {
    label: &'m str,
    mapping: &'m Mapping,
}

impl<'m> Search<'m> {
    /// `label` is, for example, `placement[instance=tai27e01, seed=3]`.
    #[must_use]
    pub fn new(label: &'m str, mapping: &'m Mapping) -> Self {
        Self { label, mapping }
    }
}

/// Builds the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    beaten: Vec<String>,
}

impl Table {
    fn new(
        groups: &[Group],
        params: &AccuracyParams,
        known: Option<&KnownValues>,
    ) -> Result<Self, EvaluateError> {
        let AccuracyParams { group_by: by, baseline, metric, .. } = params;
        let own = ["runs", "best", "mean", "median", "evaluations"];
        let gaps = baseline
            .iter()
            .flat_map(|column| ["best", "mean", "median"].map(|which| format!("{which} over {column} %")));
        let known_columns = known.into_iter().flat_map(|known| known.columns(by)).map(str::to_owned);
        let header =
            by.iter().cloned().chain(own.map(|name| named(name, metric))).chain(gaps).chain(known_columns);
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
        known: Option<&KnownValues>,
    ) -> Result<(), EvaluateError> {
        let AccuracyParams { group_by: by, baseline, metric, .. } = params;
        let runs = group.values.len();
        let values = [group.best(), group.mean(), group.median()];
        let mut row = group.keys.clone();
        row.push(runs.to_string());
        row.extend(values.iter().map(|value| shortened(*value)));
        row.push(format!("{:.0}", group.evaluations / runs as f64));
        for column in baseline {
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

    /// Notes on mappings that are better than known values.
    #[must_use]
    pub fn beaten(&self) -> &[String] {
        &self.beaten
    }

    /// As CSV, with a header.
    #[must_use]
    pub fn csv(&self) -> String {
        csv(std::iter::once(&self.header).chain(&self.rows))
    }

    /// As a Markdown table, followed by the notes on better mappings.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = markdown(&self.header, &self.rows);
        if !self.beaten.is_empty() {
            text.push_str(&format!("\n- {}\n", self.beaten.join("\n- ")));
        }
        text
    }
}

/// Rows of cells as CSV.
pub(crate) fn csv<'r>(rows: impl Iterator<Item = &'r Vec<String>>) -> String {
    rows.map(|cells| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n").collect()
}

/// A header and rows of cells as a Markdown table.
pub(crate) fn markdown(header: &Vec<String>, rows: &[Vec<String>]) -> String {
    let line = |cells: &Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    std::iter::once(line(header)).chain([rule]).chain(rows.iter().map(line)).collect()
}

fn named(name: &str, metric: &str) -> String {
    match name {
        "best" | "mean" | "median" => format!("{metric} {name}"),
        _ => name.to_owned(),
    }
}

/// A1: relative gap of a value to a known one, in percent.
fn percent(value: f64, known: f64) -> String {
    match known {
        0.0 if value == 0.0 => "0.00".to_owned(),
        0.0 => String::new(),
        _ => format!("{:.2}", 100.0 * (value - known) / known),
    }
}

/// Formats integers without decimals, other numbers with one.
fn shortened(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() < 1.0 { format!("{value}") } else { format!("{value:.1}") }
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// The group key for the name of the stage.
const STAGE: &str = "stage";

/// Searches with equal values of the group keys.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    /// The values of the keys, in key order.
    keys: Vec<String>,
    /// The metric of every search, in input order.
    values: Vec<f64>,
    /// Total evaluations of all searches.
    evaluations: f64,
}

/// Groups searches with equal keys; groups and searches keep their order.
fn groups(searches: &[Search<'_>], by: &[String], metric: &str) -> Result<Vec<Group>, EvaluateError> {
    let mut groups: Vec<Group> = Vec::new();
    for key in by {
        // Some mappings may lack a key that others have, such as `levels`, which only one mapper has.
        if let (None, Some(search)) = (searches.iter().find_map(|search| search.key(key)), searches.first()) {
            let problem = format!("`{}` has no matrix key `{key}`", search.label);
            let help = "`group_by` lists matrix keys of the stage that produces the mappings";
            return Err(EvaluateError::new(problem, help));
        }
    }
    for search in searches {
        let keys: Vec<_> = by.iter().map(|key| search.key(key).unwrap_or("–").to_owned()).collect();
        let value = search.metric(metric)?;
        let index = groups.iter().position(|group| group.keys == keys).unwrap_or_else(|| {
            groups.push(Group { keys, values: Vec::new(), evaluations: 0.0 });
            groups.len() - 1
        });
        groups[index].values.push(value);
        groups[index].evaluations += search.mapping.metrics.get("evaluations").copied().unwrap_or(0.0);
    }
    Ok(groups)
}

impl Search<'_> {
    /// The value of a matrix key; `stage` gives the name of the stage.
    fn key(&self, key: &str) -> Option<&str> {
        let (stage, rest) = self.label.split_once('[').unwrap_or((self.label, ""));
        if key == STAGE {
            return Some(stage);
        }
        let pairs = outer_commas(rest.strip_suffix(']').unwrap_or(rest));
        pairs
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(name, value)| (name.trim() == key).then(|| value.trim()))
    }

    fn metric(&self, metric: &str) -> Result<f64, EvaluateError> {
        self.mapping.metrics.get(metric).copied().ok_or_else(|| {
            let metrics = self.mapping.metrics.keys().cloned().collect::<Vec<_>>().join(", ");
            let problem = format!("`{}` has no metric `{metric}`", self.label);
            EvaluateError::new(problem, format!("its metrics: {metrics}"))
        })
    }
}

/// Splits a text at commas outside brackets.
fn outer_commas(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |character| {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        depth == 0 && character == ','
    })
}

impl Group {
    /// The smallest value.
    fn best(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// For an even count, the mean of the two middle values.
    fn median(&self) -> f64 {
        // A group has at least one search.
        median(self.values.clone()).unwrap_or_default()
    }
}

/// Bytes of the file.
const MOST_BYTES: u64 = 1 << 28;

/// Rows of known values. A row applies to all groups with its keys; an empty key matches any value.
struct KnownValues {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<StringRecord>,
}

impl KnownValues {
    /// Reads a CSV file with a header; some columns must be group keys.
    fn read(path: &Path, by: &[String]) -> Result<Self, EvaluateError> {
        let (header, rows) = read_csv(path).map_err(|error| error.with_help(KNOWN_VALUES))?;
        if !header.iter().any(|name| by.contains(name)) {
            let problem = format!("no column matches a key in `group_by` ({})", by.join(", "));
            let help = "add a column with the name and values of a key";
            return Err(FileError::new(problem, help).in_file(path).into());
        }
        Ok(Self { path: path.to_owned(), header, rows })
    }

    /// Whether the file has a column.
    fn has(&self, column: &str) -> bool {
        self.header.iter().any(|name| name == column)
    }

    /// The columns that are not keys.
    fn columns<'k>(&'k self, by: &'k [String]) -> impl Iterator<Item = &'k str> {
        self.header.iter().filter(|name| !by.contains(name)).map(String::as_str)
    }

    /// The value of a column in the first matching row where it is not empty.
    fn text(&self, column: &str, by: &[String], keys: &[String]) -> &str {
        let at = |name: &str| self.header.iter().position(|other| other == name);
        let fits = |row: &&StringRecord| {
            by.iter().zip(keys).all(|(name, key)| {
                let value = at(name).and_then(|index| row.get(index)).unwrap_or_default();
                value.is_empty() || value == key
            })
        };
        let Some(index) = at(column) else { return "" };
        let texts = self.rows.iter().filter(fits).filter_map(|row| row.get(index));
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The same as a number; `None` if there is no value.
    fn number(&self, column: &str, by: &[String], keys: &[String]) -> Result<Option<f64>, EvaluateError> {
        let text = self.text(column, by, keys);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| {
            known_values(&self.path, format!("`{text}` in column `{column}` is not a number")).into()
        })
    }
}

/// An error in a file of known values.
#[cold]
fn known_values(path: &Path, problem: String) -> FileError {
    FileError::new(problem, KNOWN_VALUES).in_file(path)
}

const KNOWN_VALUES: &str = "give a CSV file with a header, such as `instance,best known`";

/// The header and the rows of a CSV file, without lines that begin with `#`.
pub(crate) fn read_csv(path: &Path) -> Result<(Vec<String>, Vec<StringRecord>), FileError> {
    let malformed = |error: csv::Error| FileError {
        line: error.position().map(|position| position.line() as usize),
        ..FileError::new(error.to_string(), "").in_file(path)
    };
    let text = read_input(path, MOST_BYTES).map_err(|error| malformed(error.into()))?;
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(text.as_slice());
    let header = reader.headers().map_err(malformed)?.iter().map(str::to_owned).collect();
    let rows = reader.records().collect::<Result<_, _>>().map_err(malformed)?;
    Ok((header, rows))
}
