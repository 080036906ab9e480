//! Mappings that belong into one row.

use hopmap_model::Mapping;
use hopmap_statistics::median;

use crate::EvaluateError;

/// The key that stands for the name of the stage.
const STAGE: &str = "stage";

/// A mapping and where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Search<'m> {
    pub(super) label: &'m str,
    pub(super) mapping: &'m Mapping,
}

/// Searches with the same values of some matrix keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// The values of the keys, in their order.
    pub(super) keys: Vec<String>,
    /// The metric of every search, in their order.
    pub(super) values: Vec<f64>,
    /// Evaluations of all searches together.
    pub(super) evaluations: f64,
}

/// Puts searches with equal keys together; groups and searches stay in the order in which they come.
pub(super) fn groups(
    searches: &[Search<'_>],
    by: &[String],
    metric: &str,
) -> Result<Vec<Group>, EvaluateError> {
    let mut groups: Vec<Group> = Vec::new();
    for key in by {
        // Some mappings may lack a key that others have, such as the levels of a mapper that has none.
        if let (None, Some(search)) = (searches.iter().find_map(|search| search.key(key)), searches.first()) {
            return Err(EvaluateError::NoKey { key: key.clone(), label: search.label.to_owned() });
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
    /// The value of a matrix key; `stage` is the name of the stage.
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
        self.mapping.metrics.get(metric).copied().ok_or_else(|| EvaluateError::NoMetric {
            metric: metric.to_owned(),
            label: self.label.to_owned(),
            metrics: self.mapping.metrics.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// The parts of a text between commas that are in no brackets.
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
    pub(super) fn best(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// Of an even number, the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        // A group has at least one search.
        median(self.values.clone()).unwrap_or_default()
    }
}
