//! Which cells of a stage a gate means.

use std::fmt;

use crate::pipeline::{Choice as Chosen, Extreme, Selector};

/// The cells of a stage that a metric of a gate is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Each one, beside those of other metrics whose matrix keys are equal.
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
    /// Reads what stands between the brackets, as in `needs`.
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
