//! Evaluates gates by the results of their cells, and words the verdicts.
//!
//! [`judge`] looks at the outputs of all cells after a run or a plan and gives a [`Verdict`] for each cell. Accepted values, the ones that
//! were right before ([`AcceptedMetrics`]), are kept by what they are of (`placement[seed=1].F`), not by gate, so that a gate may be
//! renamed or rewritten.

mod accepted;

use std::collections::BTreeMap;
use std::fmt;

use hopmap_text::grouped;
use serde::{Serialize, Serializer};

use crate::gates::{Bound, Cells, Choice, Comparison, Expression, Function, Gate, Operator, Term};
use crate::pipeline::Pipeline;
use crate::selector::Extreme;
use crate::source::{Problem, Problems};
pub(crate) use accepted::AcceptedMetrics;

/// What came out.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Of every gate, for every cell that it holds for.
    pub(crate) verdicts: Vec<Verdict>,
    /// The values of the metrics that are compared with accepted ones, by name: what can be accepted.
    pub(crate) values: BTreeMap<String, f64>,
    /// Metrics that do not exist.
    pub(crate) problems: Option<Problems>,
}

/// Metrics of an output.
type Metrics = BTreeMap<String, f64>;

/// Judges all gates of a pipeline by the metrics of its cells' outputs; those without a result have none.
pub(crate) fn judge<'a>(
    pipeline: &'a Pipeline,
    metrics: &dyn Fn(usize, &str) -> Option<&'a Metrics>,
    accepted: &Metrics,
) -> Judged {
    let mut bench = Bench { pipeline, metrics, accepted, values: BTreeMap::new(), problems: Vec::new() };
    let verdicts = pipeline.gates.iter().flat_map(|gate| bench.gate(gate)).collect();
    let Bench { values, problems, .. } = bench;
    let problems = (!problems.is_empty()).then(|| pipeline.source.tie(problems));
    Judged { verdicts, values, problems }
}

struct Bench<'a, 'b> {
    pipeline: &'a Pipeline,
    metrics: &'b dyn Fn(usize, &str) -> Option<&'a Metrics>,
    accepted: &'b Metrics,
    values: BTreeMap<String, f64>,
    problems: Vec<Problem>,
}

/// A term with a value, or why it has none.
type Value = Result<f64, Missing>;

#[derive(Clone)]
enum Missing {
    /// The cell gave nothing.
    Result(usize),
    /// The cell gave something, but not this.
    Metric(Problem),
}

impl Bench<'_, '_> {
    fn gate(&mut self, gate: &Gate) -> Vec<Verdict> {
        let terms = || gate.formula.terms.iter().zip(&gate.bounds);
        let together: Vec<Option<Value>> = terms()
            .map(|(term, bound)| match &bound.cells {
                Cells::Each(_) => None,
                Cells::Together(cells) => Some(self.together(term, bound, cells)),
            })
            .collect();
        let mut verdicts = Vec::with_capacity(gate.count());
        let mut reported = false;
        for index in 0..gate.count() {
            let mut short_names = Vec::new();
            let mut name = |term: &Term, bound: &Bound| match &bound.cells {
                Cells::Each(cells) => {
                    let cell = &self.pipeline.cells[cells[index]];
                    let full = term.of_cell(&cell.id);
                    if cell.name != cell.id {
                        short_names.push((full.clone(), term.of_cell(&cell.name)));
                    }
                    full
                }
                Cells::Together(_) => term.to_string(),
            };
            let names: Vec<String> = terms().map(|(term, bound)| name(term, bound)).collect();
            let value =
                |((term, bound), together): ((&Term, &Bound), &Option<Value>)| match (&bound.cells, together)
                {
                    (Cells::Each(cells), _) => self.metric(cells[index], bound, &term.metric),
                    (Cells::Together(_), Some(value)) => value.clone(),
                    (Cells::Together(cells), None) => self.together(term, bound, cells),
                };
            let values: Vec<Value> = terms().zip(&together).map(value).collect();
            let left = side(&gate.formula.left, &names);
            let verdict = match values.into_iter().collect::<Result<Vec<f64>, Missing>>() {
                Ok(values) => self.verdict(gate, left, &names, &values),
                Err(missing) => {
                    let reason = self.reason(missing, &mut reported);
                    Verdict::without_value(gate, left, reason)
                }
            };
            verdicts.push(Verdict { short_names, ..verdict });
        }
        verdicts
    }

    fn reason(&mut self, missing: Missing, reported: &mut bool) -> String {
        match missing {
            Missing::Result(cell) => format!("{} has no result", self.pipeline.cells[cell].name),
            Missing::Metric(problem) => {
                let reason = problem.message.clone();
                if !std::mem::replace(reported, true) {
                    self.problems.push(problem);
                }
                reason
            }
        }
    }

    fn verdict(&mut self, gate: &Gate, left: String, names: &[String], values: &[f64]) -> Verdict {
        let formula = &gate.formula;
        let mut accepted = Some(vec![f64::NAN; values.len()]);
        for term in formula.left.terms() {
            if values[term].is_finite() && formula.right.needs_accepted() {
                self.values.insert(names[term].clone(), values[term]);
            }
            match (self.accepted.get(&names[term]), &mut accepted) {
                (Some(&value), Some(values)) => values[term] = value,
                _ => accepted = None,
            }
        }
        let accepted = accepted.and_then(|values| formula.left.value(&values, None));
        let value = formula.left.value(values, None).unwrap_or(f64::NAN);
        let bound = formula.right.value(values, accepted);
        let status = match bound {
            None => GateStatus::Open,
            Some(bound) if formula.comparison.holds(value, bound) => GateStatus::Holds,
            Some(_) => GateStatus::Broken,
        };
        Verdict {
            gate: gate.name.clone(),
            status,
            left,
            value: Some(value),
            comparison: formula.comparison,
            bound,
            right: filled(&formula.right, names, values, accepted),
            reason: None,
            short_names: Vec::new(),
        }
    }

    fn metric(&self, cell: usize, bound: &Bound, metric: &str) -> Value {
        let found = (self.metrics)(cell, bound.output).ok_or(Missing::Result(cell))?;
        found.get(metric).copied().ok_or_else(|| {
            let name = &self.pipeline.cells[cell].name;
            let problem = Problem::new(format!("`{name}` has no metric `{metric}`"), &bound.place);
            Missing::Metric(problem.suggest(metric, "its metrics", found.keys().map(String::as_str)))
        })
    }

    /// The one value of several cells.
    fn together(&self, term: &Term, bound: &Bound, cells: &[usize]) -> Value {
        let all = |metric: &str| {
            cells.iter().map(|&cell| self.metric(cell, bound, metric)).collect::<Result<Vec<f64>, Missing>>()
        };
        match &term.choice {
            Choice::Best { metric, extreme } => {
                let chosen = all(metric)?;
                let better = |one: f64, other: f64| match extreme {
                    Extreme::Min => one < other,
                    Extreme::Max => one > other,
                };
                let mut best = 0;
                for (index, &value) in chosen.iter().enumerate() {
                    best = if better(value, chosen[best]) { index } else { best };
                }
                self.metric(cells[best], bound, &term.metric)
            }
            _ => Ok(term.function.unwrap_or(Function::Max).of(all(&term.metric)?)),
        }
    }
}

/// The left side with the names of its cells.
fn side(expression: &Expression, names: &[String]) -> String {
    let leaf = |leaf: &Expression| match leaf {
        Expression::Number(value) => number(*value),
        Expression::Term(index) => names[*index].clone(),
        _ => "accepted".to_owned(),
    };
    expression.written(&leaf, &Operator::printed)
}

/// The right side with values, where these are not the bound itself; empty if it is a number.
fn filled(expression: &Expression, names: &[String], values: &[f64], accepted: Option<f64>) -> String {
    match expression {
        Expression::Number(_) => return String::new(),
        Expression::Term(_) | Expression::Accepted => return side(expression, names),
        _ => {}
    }
    let leaf = |leaf: &Expression| match (leaf, accepted) {
        (Expression::Number(value), _) => number(*value),
        (Expression::Term(index), _) => format!("{} {}", number(values[*index]), names[*index]),
        (_, Some(accepted)) => format!("{} accepted", number(accepted)),
        (_, None) => "accepted".to_owned(),
    };
    expression.written(&leaf, &Operator::printed)
}

/// The state of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GateStatus {
    /// It holds.
    Holds,
    /// It does not.
    Broken,
    /// It compares with an accepted value, no baseline accepted yet.
    Open,
    /// There is no value to judge.
    Unknown,
}

impl GateStatus {
    /// Its name in the output of commands and in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "pass",
            Self::Broken => "fail",
            Self::Open => "no baseline",
            Self::Unknown => "unknown",
        }
    }
}

/// The state of a gate for one cell, and by how much it fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// Name of the gate.
    pub(crate) gate: String,
    /// Its state.
    #[serde(rename = "standing")]
    pub(crate) status: GateStatus,
    /// What is judged, with the names of its cells.
    pub(crate) left: String,
    /// Its value, if there is one.
    pub(crate) value: Option<f64>,
    /// What has to hold between value and bound.
    #[serde(serialize_with = "sign")]
    pub(crate) comparison: Comparison,
    /// The bound, if there is one.
    pub(crate) bound: Option<f64>,
    /// Where the bound comes from; empty if it is a number.
    pub(crate) right: String,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Full and short names of what it names, where they differ: people read the short ones.
    #[serde(skip)]
    pub(crate) short_names: Vec<(String, String)>,
}

impl Verdict {
    fn without_value(gate: &Gate, left: String, reason: String) -> Self {
        Self {
            gate: gate.name.clone(),
            status: GateStatus::Unknown,
            left,
            value: None,
            comparison: gate.formula.comparison,
            bound: None,
            right: String::new(),
            reason: Some(reason),
            short_names: Vec::new(),
        }
    }

    /// What is judged, with the full names of its cells; empty if its short names are the same.
    pub(crate) fn full_left(&self) -> &str {
        if self.short(&self.left) == self.left { "" } else { &self.left }
    }

    /// A side with the short names of its cells.
    fn short(&self, side: &str) -> String {
        self.short_names.iter().fold(side.to_owned(), |side, (full, short)| side.replace(full, short))
    }

    /// By how much it is broken: a part of the bound, above or below; nothing if it is not, or where that says nothing.
    fn excess(&self, value: f64, bound: f64) -> String {
        if self.status != GateStatus::Broken || self.comparison == Comparison::Unequal {
            return String::new();
        }
        let difference = value - bound;
        if !difference.is_finite() {
            return ": not a number".to_owned();
        }
        let amount = match () {
            () if Comparison::Equal.holds(value, bound) => return ": exactly that".to_owned(),
            () if bound == 0.0 => number(difference.abs()),
            () => format!("{} %", percent(100.0 * (difference / bound).abs())),
        };
        format!(": {amount} {}", if difference > 0.0 { "above" } else { "below" })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gate = &self.gate;
        let (left, right) = (self.short(&self.left), self.short(&self.right));
        let (value, bound) = match (self.value, self.bound) {
            (Some(value), Some(bound)) => (value, bound),
            (Some(value), None) => {
                return write!(f, "{gate}: {left} is {}, no baseline accepted yet", number(value));
            }
            (None, _) => return write!(f, "{gate}: {}", self.reason.as_deref().unwrap_or("no value")),
        };
        let allowed = match self.comparison {
            Comparison::AtMost => "allowed",
            Comparison::Below => "must be less than",
            Comparison::AtLeast => "must be at least",
            Comparison::Above => "must be more than",
            Comparison::Equal => "must be",
            Comparison::Unequal => "must not be",
        };
        let from = if right.is_empty() { String::new() } else { format!(" ({right})") };
        let (is, limit) = distinguished(value, bound);
        write!(f, "{gate}: {left} is {is}, {allowed} {limit}{from}{}", self.excess(value, bound))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn sign<S: Serializer>(comparison: &Comparison, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(comparison.sign())
}

/// Two values with enough digits to differ.
fn distinguished(one: f64, other: f64) -> (String, String) {
    let short = (number(one), number(other));
    match short.0 == short.1 && !Comparison::Equal.holds(one, other) {
        true => (grouped(one), grouped(other)),
        false => short,
    }
}

/// A value as people read it: six digits, thousands apart.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || (size > 0.0 && !(1e-4..1e15).contains(&size)) {
        return format!("{value:.5e}");
    }
    if value.fract() == 0.0 {
        return grouped(format_args!("{value:.0}"));
    }
    let decimals = (5.0 - size.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    grouped(if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

/// A part of hundred with the digits that matter.
fn percent(value: f64) -> String {
    match value {
        _ if value >= 10.0 => grouped(format_args!("{value:.0}")),
        _ if value >= 1.0 => format!("{value:.1}"),
        _ => {
            let decimals = (1.0 - value.max(1e-9).log10().floor()).clamp(2.0, 12.0) as usize;
            format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let written = [0.0, 7.0, -1176.0, 1_234_567.0, 0.1 + 0.2, 1234.5678, 1e20, 1.5e-7, 999_999.96];
        let expected =
            ["0", "7", "-1,176", "1,234,567", "0.3", "1,234.57", "1.00000e20", "1.50000e-7", "1,000,000"];
        assert_eq!(written.map(number), expected);
        assert_eq!([340.04, 12.34, 2.83, 0.5, 0.0123].map(percent), ["340", "12", "2.8", "0.5", "0.012"]);
        assert_eq!(distinguished(1_000_000.1, 1_000_000.2), ("1,000,000.1".into(), "1,000,000.2".into()));
    }

    fn verdict(value: f64, comparison: Comparison, bound: f64) -> String {
        let verdict = Verdict {
            gate: "g".into(),
            status: if comparison.holds(value, bound) { GateStatus::Holds } else { GateStatus::Broken },
            left: "a.F".into(),
            value: Some(value),
            comparison,
            bound: Some(bound),
            right: String::new(),
            reason: None,
            short_names: Vec::new(),
        };
        verdict.to_string()
    }

    #[test]
    fn a_broken_gate_says_by_how_much() {
        assert_eq!(
            verdict(1234.0, Comparison::AtMost, 1200.0),
            "g: a.F is 1,234, allowed 1,200: 2.8 % above"
        );
        assert_eq!(verdict(1.0, Comparison::AtLeast, 4.0), "g: a.F is 1, must be at least 4: 75 % below");
        assert_eq!(
            verdict(90.0, Comparison::Below, 90.0),
            "g: a.F is 90, must be less than 90: exactly that"
        );
        assert_eq!(verdict(3.0, Comparison::Equal, 0.0), "g: a.F is 3, must be 0: 3 above");
        assert_eq!(verdict(3.0, Comparison::Unequal, 3.0), "g: a.F is 3, must not be 3");
        assert_eq!(verdict(1.0, Comparison::AtMost, f64::NAN), "g: a.F is 1, allowed NaN: not a number");
        assert_eq!(verdict(1.0, Comparison::AtMost, 2.0), "g: a.F is 1, allowed 2");
        assert_eq!(verdict(-3.0, Comparison::AtMost, -4.0), "g: a.F is -3, allowed -4: 25 % above");
    }
}
