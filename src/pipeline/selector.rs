//! What a value of `needs` names: `stage`, `stage.port`, `stage[*]`, `stage[min F]`, `stage[key=value]`.

use std::fmt;

/// A stage, perhaps one of its ports, perhaps some of its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) stage: String,
    pub(crate) port: Option<String>,
    pub(crate) choice: Choice,
}

/// Which cells of a stage with a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The one whose matrix keys equal ours.
    Paired,
    /// All of them.
    All,
    /// The one with the smallest or largest metric.
    Best {
        /// The metric.
        metric: String,
        /// Smallest or largest.
        extreme: Extreme,
    },
    /// The one with these values.
    Where(Vec<(String, String)>),
}

/// Which end of a metric is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// How selectors are written, for messages.
pub(crate) const SELECTORS: &str = "written as `stage`, `stage.port`, `stage[*]`, `stage[min METRIC]`, `stage[max METRIC]` or `stage[key=value, …]`";

impl Selector {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (path, choice) = match text.split_once('[') {
            None => (text, Choice::Paired),
            Some((path, rest)) => {
                let inside = rest.strip_suffix(']').ok_or_else(|| format!("`{text}` lacks a closing `]`"))?;
                (path, Choice::parse(inside.trim())?)
            }
        };
        let (stage, port) = match path.split_once('.') {
            None => (path, None),
            Some((stage, port)) => (stage, Some(port.to_owned())),
        };
        match stage.is_empty() || port.as_deref().is_some_and(str::is_empty) {
            true => Err(format!("`{text}` names no stage")),
            false => Ok(Self { stage: stage.to_owned(), port, choice }),
        }
    }
}

impl Choice {
    pub(crate) fn parse(inside: &str) -> Result<Self, String> {
        if inside == "*" {
            return Ok(Self::All);
        }
        for (word, extreme) in [("min", Extreme::Min), ("max", Extreme::Max)] {
            if let Some(metric) =
                inside.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace))
            {
                return Ok(Self::Best { metric: metric.trim().to_owned(), extreme });
            }
        }
        let pair = |part: &str| match part.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(format!("`[{inside}]` is not a choice of cells")),
        };
        inside.split(',').map(pair).collect::<Result<_, _>>().map(Self::Where)
    }
}

impl fmt::Display for Extreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        Selector::parse(text).unwrap().choice
    }

    #[test]
    fn every_form_is_read() {
        let plain = Selector::parse("import.system").unwrap();
        assert_eq!(
            (plain.stage.as_str(), plain.port.as_deref(), plain.choice),
            ("import", Some("system"), Choice::Paired)
        );
        assert_eq!(choice("a[*]"), Choice::All);
        assert_eq!(choice("a[min F]"), Choice::Best { metric: "F".into(), extreme: Extreme::Min });
        assert_eq!(
            choice("a[mapper=annealing, seed=3]"),
            Choice::Where(vec![("mapper".into(), "annealing".into()), ("seed".into(), "3".into())])
        );
    }

    #[test]
    fn malformed_ones_are_refused() {
        for text in ["", "[*]", "a[", "a[min]", "a[x]", "a[=1]", "a."] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
