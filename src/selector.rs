//! Selectors of cells, which `needs` and gates have: `stage`, `stage.port`, `stage[*]`, `stage[min F]`, `stage[key=value]`.

use std::fmt;

use serde_json::Value as Json;

/// A stage, perhaps one of its ports, perhaps some of its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) stage: String,
    pub(crate) port: Option<String>,
    /// Values that keys of its matrix have to have; the other keys equal ours.
    pub(crate) wanted: Vec<(String, String)>,
    pub(crate) choice: Choice,
}

/// Which of the cells that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The only one.
    One,
    /// All of them.
    All,
    /// The one with the smallest or largest metric; the first of them where several have it.
    Best {
        /// The metric.
        metric: String,
        /// Smallest or largest.
        extreme: Extreme,
    },
}

/// Which end of a metric is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extreme {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// How selectors are written, for messages.
pub(crate) const SELECTORS: &str = "written as `stage`, `stage.port`, `stage[*]`, `stage[min METRIC]`, `stage[max METRIC]`, `stage[key=value, …]` or `stage[key=value, min METRIC]`";

impl Selector {
    /// The cells of a stage whose keys equal ours.
    pub(crate) fn paired(stage: &str, port: Option<&str>) -> Self {
        let (stage, port) = (stage.to_owned(), port.map(str::to_owned));
        Self { stage, port, wanted: Vec::new(), choice: Choice::One }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (path, inside) = match text.split_once('[') {
            None => (text, None),
            Some((path, rest)) => {
                let inside = rest.strip_suffix(']').ok_or_else(|| format!("`{text}` lacks a closing `]`"))?;
                (path, Some(inside.trim()))
            }
        };
        let (stage, port) = match path.split_once('.') {
            None => (path, None),
            Some((stage, port)) => (stage, Some(port)),
        };
        if stage.is_empty() || port.is_some_and(str::is_empty) {
            return Err(format!("`{text}` names no stage"));
        }
        let mut selector = Self::paired(stage, port);
        if let Some(inside) = inside {
            selector.choose(inside).ok_or_else(|| format!("`[{inside}]` is not a choice of cells"))?;
        }
        Ok(selector)
    }

    /// Reads the text between the brackets: values of keys, then perhaps `*` or an extreme.
    fn choose(&mut self, inside: &str) -> Option<()> {
        let mut parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        if let Some(choice) = parts.last().and_then(|last| Choice::parse(last)) {
            self.choice = choice;
            parts.pop();
        }
        for part in parts {
            let (key, value) = part.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() {
                return None;
            }
            self.wanted.push((key.to_owned(), value.to_owned()));
        }
        Some(())
    }

    /// Whether a cell has the values that its keys have to have.
    pub(crate) fn fits(&self, matrix: &[(String, Json)]) -> bool {
        let has = |(key, wanted): &(String, String)| {
            matrix.iter().any(|(name, value)| name == key && show(value) == *wanted)
        };
        self.wanted.iter().all(has)
    }
}

impl Choice {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        let (word, metric) = text.split_once(char::is_whitespace)?;
        let extreme = match word {
            "min" => Extreme::Min,
            "max" => Extreme::Max,
            _ => return None,
        };
        Some(Self::Best { metric: metric.trim().to_owned(), extreme })
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

/// A value of a matrix key as names of cells have it; a list as `1:10:100`, for commas are between keys.
pub(crate) fn show(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(values) => values.iter().map(show).collect::<Vec<_>>().join(":"),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let parse = |text: &str| Selector::parse(text).unwrap();
        let wanted = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
        };
        assert_eq!(parse("import.system"), Selector::paired("import", Some("system")));
        assert_eq!(parse(" a "), Selector::paired("a", None));
        assert_eq!(parse("a[*]").choice, Choice::All);
        let best = Choice::Best { metric: "F".into(), extreme: Extreme::Min };
        assert_eq!(parse("a[min F]").choice, best);
        assert_eq!(parse("a[mapper=annealing, seed=3]").choice, Choice::One);
        assert_eq!(
            parse("a[mapper=annealing, seed=3]").wanted,
            wanted(&[("mapper", "annealing"), ("seed", "3")])
        );
        let both = parse("a[mapper = annealing, min F]");
        assert_eq!((both.wanted, both.choice), (wanted(&[("mapper", "annealing")]), best));
        assert_eq!(parse("a[seed=1,*]").choice, Choice::All);
    }

    #[test]
    fn malformed_ones_are_refused() {
        for text in
            ["", "[*]", "a[", "a[]", "a[min]", "a[x]", "a[=1]", "a.", "a[min F, seed=1]", "a[*, min F]"]
        {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
