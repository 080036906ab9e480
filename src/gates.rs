//! The language of gates: what the results of a pipeline have to keep.
//!
//! A gate compares two sums of numbers and metrics. Gates enter no key.
//!
//! # Parts
//!
//! `parse` makes a `Formula` of a gate's text (recursive descent, with places), `pipeline/gates.rs` ties its terms to cells when the file
//! is read, `engine/metrics.rs` asks the store for metrics that do not exist, and `src/verdict.rs` judges.
//!
//! `src/provenance.rs` follows digests from one `provenance.json` to the next. One whose manifest does not give its key is not
//! believed (`a_changed_provenance_is_not_believed`). Where an artifact was cleared, `state.log` still has the inputs of its key.

mod parse;

use std::fmt;
use std::ops::Range;

use hopmap_statistics::median;

use crate::selector::{Choice as Chosen, Extreme, Selector};
pub(crate) use parse::FORM;

/// A gate of a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// Its name.
    pub(crate) name: String,
    /// What it says.
    pub(crate) formula: Formula,
    /// The cells of each term of the formula.
    pub(crate) bounds: Vec<Bound>,
}

/// The cells that a term of a gate is about.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// Place of the term in the pipeline file.
    pub(crate) place: Range<usize>,
    /// The output port whose metrics are meant.
    pub(crate) output: &'static str,
    /// The cells.
    pub(crate) cells: Cells,
}

/// Cells of a term, as indexes.
#[derive(Debug, Clone)]
pub(crate) enum Cells {
    /// The gate holds for each; those of all terms of a gate are in the same order.
    Each(Vec<usize>),
    /// They have one value together.
    Together(Vec<usize>),
}

impl Cells {
    /// Their indexes.
    pub(crate) fn indexes(&self) -> &[usize] {
        let (Self::Each(cells) | Self::Together(cells)) = self;
        cells
    }
}

impl Gate {
    /// How many times it is judged: once for each cell of a sweep.
    pub(crate) fn count(&self) -> usize {
        let each = |bound: &Bound| match &bound.cells {
            Cells::Each(cells) => Some(cells.len()),
            Cells::Together(_) => None,
        };
        self.bounds.iter().find_map(each).unwrap_or(1)
    }
}

/// A gate's text, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Formula {
    /// The side that is judged.
    pub(crate) left: Expression,
    /// What has to hold.
    pub(crate) comparison: Comparison,
    /// The bound.
    pub(crate) right: Expression,
    /// The metrics that both sides name, in the order of the text.
    pub(crate) terms: Vec<Term>,
}

/// A side of a gate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// A number.
    Number(f64),
    /// The accepted value of the left side.
    Accepted,
    /// The term of this index.
    Term(usize),
    /// The negative of something.
    Negative(Box<Self>),
    /// Two things put together.
    Operation(Box<Self>, Operator, Box<Self>),
}

/// How two values are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// Their sum.
    Plus,
    /// Their difference.
    Minus,
    /// Their product.
    Times,
    /// Their quotient.
    Over,
}

/// What has to hold between left and right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

/// A metric of a stage, of one cell or put together from several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// How several cells become one value.
    pub(crate) function: Option<Function>,
    /// The stage.
    pub(crate) stage: String,
    /// Its output, if that is said.
    pub(crate) port: Option<String>,
    /// Which of its cells.
    pub(crate) choice: Choice,
    /// Name of the metric.
    pub(crate) metric: String,
}

hopmap_model::named_values! {
    /// How the values of several cells become one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Function {
        /// The smallest.
        Min = "min",
        /// The largest.
        Max = "max",
        /// Their sum divided by their number.
        Mean = "mean",
        /// The middle one, or half way between the two in the middle.
        Median = "median",
    }
}

/// Values that differ by less than this part of the larger one are equal: sums and quotients are rounded.
const ROUNDING: f64 = 1e-12;

impl Expression {
    /// Its value; none if it needs an accepted value and there is none.
    pub(crate) fn value(&self, terms: &[f64], accepted: Option<f64>) -> Option<f64> {
        Some(match self {
            Self::Number(number) => *number,
            Self::Accepted => accepted?,
            Self::Term(index) => terms[*index],
            Self::Negative(inner) => -inner.value(terms, accepted)?,
            Self::Operation(left, operator, right) => {
                operator.apply(left.value(terms, accepted)?, right.value(terms, accepted)?)
            }
        })
    }

    /// Whether it contains the accepted value.
    pub(crate) fn needs_accepted(&self) -> bool {
        self.leaves().contains(&&Self::Accepted)
    }

    /// Indexes of the terms in it.
    pub(crate) fn terms(&self) -> Vec<usize> {
        let index = |leaf: &Self| if let Self::Term(index) = leaf { Some(*index) } else { None };
        self.leaves().into_iter().filter_map(index).collect()
    }

    /// What is put together in it.
    fn leaves(&self) -> Vec<&Self> {
        match self {
            Self::Negative(inner) => inner.leaves(),
            Self::Operation(left, _, right) => [left.leaves(), right.leaves()].concat(),
            leaf => vec![leaf],
        }
    }

    /// The expression as text, every leaf as `leaf` writes it and operators as `sign` does.
    pub(crate) fn written(
        &self,
        leaf: &dyn Fn(&Self) -> String,
        sign: &dyn Fn(Operator) -> &'static str,
    ) -> String {
        let inner = |inner: &Self, in_parentheses: bool| {
            let text = inner.written(leaf, sign);
            if in_parentheses { format!("({text})") } else { text }
        };
        match self {
            Self::Negative(negated) => {
                format!("-{}", inner(negated, matches!(**negated, Self::Operation(..))))
            }
            Self::Operation(left, operator, right) => {
                let left = inner(left, left.rank() < operator.rank());
                let right = inner(right, right.rank() <= operator.rank());
                format!("{left} {} {right}", sign(*operator))
            }
            value => leaf(value),
        }
    }

    /// How strongly it holds together.
    fn rank(&self) -> u8 {
        match self {
            Self::Operation(_, operator, _) => operator.rank(),
            _ => 3,
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Over => left / right,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Plus | Self::Minus => 1,
            Self::Times | Self::Over => 2,
        }
    }

    /// As written in a pipeline file.
    fn sign(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
        }
    }

    /// As people write it.
    pub(crate) fn printed(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "−",
            Self::Times => "×",
            Self::Over => "/",
        }
    }
}

impl Comparison {
    /// All of them, the longer signs first.
    const ALL: [Self; 6] =
        [Self::AtMost, Self::AtLeast, Self::Equal, Self::Unequal, Self::Below, Self::Above];

    /// As written in a pipeline file.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::Equal => "==",
            Self::Unequal => "!=",
        }
    }

    /// Whether it holds. Nothing holds of what is not a number, or not finite.
    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        if !left.is_finite() || !right.is_finite() {
            return false;
        }
        let equal = (left - right).abs() <= ROUNDING * left.abs().max(right.abs());
        match self {
            Self::AtMost => left < right || equal,
            Self::Below => left < right && !equal,
            Self::AtLeast => left > right || equal,
            Self::Above => left > right && !equal,
            Self::Equal => equal,
            Self::Unequal => !equal,
        }
    }
}

impl Function {
    /// One value of several; not a number if there is none.
    pub(crate) fn of(self, mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return f64::NAN };
        match self {
            Self::Min => first,
            Self::Max => last,
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Median => median(values).unwrap_or(f64::NAN),
        }
    }
}

impl Term {
    /// The term with the name of a cell in place of stage and choice.
    pub(crate) fn of_cell(&self, id: &str) -> String {
        // `stage[…]`, the port in between.
        let (stage, choice) = id.split_at(id.find('[').unwrap_or(id.len()));
        self.named(stage, choice)
    }

    fn named(&self, stage: &str, choice: &str) -> String {
        let port = self.port.as_ref().map(|port| format!(".{port}")).unwrap_or_default();
        let value = format!("{stage}{port}{choice}.{}", self.metric);
        match self.function {
            Some(function) => format!("{}({value})", function.name()),
            None => value,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&self.stage, &self.choice.to_string()))
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaf = |leaf: &Expression| match leaf {
            Expression::Number(number) => number.to_string(),
            Expression::Term(index) => self.terms[*index].to_string(),
            _ => "accepted".to_owned(),
        };
        let side = |side: &Expression| side.written(&leaf, &Operator::sign);
        write!(f, "{} {} {}", side(&self.left), self.comparison.sign(), side(&self.right))
    }
}

/// The cells of a stage that a metric of a gate is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Each one, paired with those of other metrics by equal matrix keys.
    Paired,
    /// All of them.
    All,
    /// The one with the smallest or largest metric; the first of them where several have it.
    Best {
        /// The metric.
        metric: String,
        /// Smallest or largest.
        extreme: Extreme,
    },
    /// Those with these values.
    Where(Vec<(String, String)>),
}

impl Choice {
    /// Parses the text between the brackets, as in `needs`.
    pub(crate) fn parse(inside: &str) -> Result<Self, String> {
        let Selector { wanted, choice, .. } = Selector::parse(&format!("stage[{inside}]"))?;
        match (choice, wanted.is_empty()) {
            (Chosen::All, true) => Ok(Self::All),
            (Chosen::Best { metric, extreme }, true) => Ok(Self::Best { metric, extreme }),
            (Chosen::One, false) => Ok(Self::Where(wanted)),
            (Chosen::One, true) => Err(format!("`[{inside}]` is not a choice of cells")),
            (_, false) => {
                Err(format!("a gate chooses by values or by a metric, not by both as in `[{inside}]`"))
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paired => Ok(()),
            Self::All => f.write_str("[*]"),
            Self::Best { metric, extreme } => write!(f, "[{extreme} {metric}]"),
            Self::Where(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[{}]", pairs.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_breaks_no_gate() {
        assert!(Comparison::AtMost.holds(0.1 + 0.2, 0.3));
        assert!(Comparison::Equal.holds(0.1 + 0.2, 0.3));
        assert!(!Comparison::Below.holds(0.3, 0.1 + 0.2));
        assert!(!Comparison::AtMost.holds(1.000_001, 1.0));
        assert!(Comparison::AtMost.holds(0.0, 0.0) && !Comparison::Unequal.holds(0.0, 0.0));
    }

    #[test]
    fn nothing_holds_of_what_is_no_number() {
        for comparison in Comparison::ALL {
            assert!(!comparison.holds(f64::NAN, 1.0) && !comparison.holds(1.0, f64::INFINITY));
        }
    }

    #[test]
    fn several_values_become_one() {
        let of = |function: Function| function.of(vec![4.0, 1.0, 2.0, 9.0]);
        let shown = |value: f64| value.to_string();
        assert_eq!(Function::ALL.map(of).map(shown), ["1", "9", "4", "3"]);
        assert_eq!(shown(Function::Median.of(vec![3.0, 1.0, 2.0])), "2");
        assert!(Function::Max.of(Vec::new()).is_nan());
    }
}
