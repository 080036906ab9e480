//! The values of metrics that gates compare with: a small file with what was right before.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::number;
use crate::accepted::{AcceptedError, now, read_json, write_json};
use crate::gates::Comparison;

/// The version of the file that is written and read.
const FORMAT: u32 = 1;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AcceptedMetrics {
    /// Version of the file.
    pub(crate) format: u32,
    /// Name of the pipeline.
    pub(crate) pipeline: String,
    /// Values by what they are of, such as `placement[seed=1].F`.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// What was said when they were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Version of hopmap that wrote the file.
    pub(crate) hopmap: String,
    /// When they were accepted, in UTC.
    pub(crate) time: String,
}

impl AcceptedMetrics {
    /// Values that are accepted now.
    pub(crate) fn new(pipeline: &str, metrics: BTreeMap<String, f64>, note: Option<&str>) -> Self {
        Self {
            format: FORMAT,
            pipeline: pipeline.to_owned(),
            metrics,
            note: note.map(str::to_owned),
            hopmap: env!("CARGO_PKG_VERSION").to_owned(),
            time: now(),
        }
    }

    /// Reads a file; none if there is no file.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, AcceptedError> {
        let value = match read_json(path, FORMAT) {
            Ok(value) => value,
            Err(AcceptedError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let malformed = |reason: String| AcceptedError::Malformed { path: path.into(), reason };
        if value.get("digest").is_some() {
            return Err(malformed("it accepts an artifact, not the values of gates".into()));
        }
        serde_json::from_value(value).map(Some).map_err(|error| malformed(error.to_string()))
    }

    /// Writes a file atomically, unless it has the same content already; whether it was written.
    pub(crate) fn write(&self, path: &Path) -> Result<bool, AcceptedError> {
        if Self::read(path)?.is_some_and(|found| found.says_the_same(self)) {
            return Ok(false);
        }
        write_json(path, self)?;
        Ok(true)
    }

    /// A file without a new note keeps the old one.
    fn says_the_same(&self, new: &Self) -> bool {
        self.pipeline == new.pipeline
            && self.differences(&new.metrics).is_empty()
            && (new.note.is_none() || self.note == new.note)
    }

    /// What is different about other values, for people; nothing if they are the accepted ones.
    pub(crate) fn differences(&self, found: &BTreeMap<String, f64>) -> Vec<String> {
        let mut names: Vec<&String> = found.keys().chain(self.metrics.keys()).collect();
        names.sort();
        names.dedup();
        let said = |value: Option<&f64>| value.map_or_else(|| "nothing".to_owned(), |&value| number(value));
        let line = |name: &&String| {
            let (found, accepted) = (found.get(*name), self.metrics.get(*name));
            let equal = found.zip(accepted).is_some_and(|(&one, &other)| Comparison::Equal.holds(one, other));
            (!equal).then(|| format!("{name} {}, accepted {}", said(found), said(accepted)))
        };
        names.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn values_come_back_and_a_file_that_says_the_same_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.accepted.json");
        assert_eq!(AcceptedMetrics::read(&path).unwrap(), None);
        let metrics = values(&[("b.F", 0.1 + 0.2), ("a[seed=1].F", 1e-300), ("c.F", 1_234_567.891)]);
        let accepted = AcceptedMetrics::new("x", metrics.clone(), Some("why"));
        assert!(accepted.write(&path).unwrap());
        let found = AcceptedMetrics::read(&path).unwrap().unwrap();
        assert_eq!(found.differences(&metrics), [""; 0]);
        assert_eq!(found.note.as_deref(), Some("why"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!AcceptedMetrics::new("x", metrics.clone(), None).write(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(AcceptedMetrics::new("x", metrics, Some("why else")).write(&path).unwrap());
    }

    #[test]
    fn differences_name_what_is_new_gone_and_changed() {
        let accepted = AcceptedMetrics::new("x", values(&[("a.F", 1.0), ("b.F", 2.0), ("c.F", 3.0)]), None);
        let lines = accepted.differences(&values(&[("a.F", 1.0), ("b.F", 2500.0), ("d.F", 4.0)]));
        assert_eq!(lines, ["b.F 2,500, accepted 2", "c.F nothing, accepted 3", "d.F 4, accepted nothing"]);
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            AcceptedMetrics::read(&path).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
        };
        assert!(error("{").starts_with("FILE is not an accepted state: EOF"));
        assert_eq!(error(r#"{"format": 7}"#), "FILE has format 7, this hopmap reads format 1");
        let of_artifact = r#"{"format": 1, "digest": "x"}"#;
        assert!(error(of_artifact).ends_with("it accepts an artifact, not the values of gates"));
        assert!(error(r#"{"format": 1, "pipeline": "x"}"#).contains("missing field `metrics`"));
    }
}
