//! Whether gates hold, by what their cells gave.

use std::collections::BTreeMap;

use super::choice::Choice;
use super::formula::{Expression, Function, Operator, Term};
use super::verdict::{Standing, Verdict, number};
use super::{Bound, Cells, Gate};
use crate::pipeline::{Extreme, Pipeline, Problem, Problems};
use crate::renames;

/// What came out.
#[derive(Debug)]
pub struct Judged {
    /// Of every gate, for every cell that it holds for.
    pub verdicts: Vec<Verdict>,
    /// The values of the metrics on the left sides, by name: what can be accepted.
    pub values: BTreeMap<String, f64>,
    /// Metrics that do not exist.
    pub problems: Option<Problems>,
}

/// Metrics of an output.
pub(super) type Metrics = BTreeMap<String, f64>;

/// Judges all gates of a pipeline by the metrics of its cells' outputs; those without a result have none.
#[must_use]
pub fn judge<'a>(
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
            let value =
                |((term, bound), together): ((&Term, &Bound), &Option<Value>)| match (&bound.cells, together)
                {
                    (Cells::Each(cells), _) => {
                        let cell = cells[index];
                        (term.of_cell(&self.pipeline.cells[cell].id), self.metric(cell, bound, &term.metric))
                    }
                    (Cells::Together(_), Some(value)) => (term.to_string(), value.clone()),
                    (Cells::Together(cells), None) => (term.to_string(), self.together(term, bound, cells)),
                };
            let (names, values): (Vec<String>, Vec<Value>) = terms().zip(&together).map(value).unzip();
            let left = side(&gate.formula.left, &names);
            let verdict = match values.into_iter().collect::<Result<Vec<f64>, Missing>>() {
                Ok(values) => self.verdict(gate, left, &names, &values),
                Err(missing) => {
                    let reason = self.reason(missing, &mut reported);
                    Verdict::without_value(gate, left, reason)
                }
            };
            verdicts.push(verdict);
        }
        verdicts
    }

    fn reason(&mut self, missing: Missing, reported: &mut bool) -> String {
        match missing {
            Missing::Result(cell) => format!("{} has no result", self.pipeline.cells[cell].id),
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
            if values[term].is_finite() {
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
        let standing = match bound {
            None => Standing::Open,
            Some(bound) if formula.comparison.holds(value, bound) => Standing::Holds,
            Some(_) => Standing::Broken,
        };
        Verdict {
            gate: gate.name.clone(),
            standing,
            left,
            value: Some(value),
            comparison: formula.comparison,
            bound,
            right: filled(&formula.right, names, values, accepted),
            reason: None,
        }
    }

    fn metric(&self, cell: usize, bound: &Bound, metric: &str) -> Value {
        let found = (self.metrics)(cell, bound.output).ok_or(Missing::Result(cell))?;
        found.get(metric).or_else(|| found.get(renames::metric(metric))).copied().ok_or_else(|| {
            let id = &self.pipeline.cells[cell].id;
            let problem = Problem::new(format!("`{id}` has no metric `{metric}`"), &bound.place);
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
