//! What a report is about, for programs: the pipeline and the results.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::json;

use crate::engine::{PipelineId, RunReport, Store};
use crate::pipeline::Pipeline;

const BEGIN: &str = "<meta name=\"hopmap\" content=\"";

/// What a report is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Digits of the pipeline.
    pub(super) pipeline: String,
    /// BLAKE3 of its results, verdicts and answers.
    results: String,
}

impl Stamp {
    /// Whether a cell ran or was up to date makes no other report.
    pub(super) fn of(pipeline: &Pipeline, store: &Store, report: &RunReport) -> Self {
        let cells = pipeline.cells.iter().zip(&report.cells).map(|(cell, settled)| {
            let digests: Vec<&str> = settled.outputs.values().map(|output| output.digest.as_str()).collect();
            json!([cell.id, settled.key, settled.is_usable(), digests])
        });
        let results = json!([cells.collect::<Vec<_>>(), report.gates, report.tables]).to_string();
        Self {
            pipeline: PipelineId::of(pipeline, store.root()).digits(),
            results: blake3::hash(results.as_bytes()).to_hex().to_string(),
        }
    }

    /// The stamp of a report; none if there is no report, or one of an older version.
    pub(super) fn read(place: &Path) -> Option<Self> {
        let mut head = Vec::new();
        File::open(place).ok()?.take(1024).read_to_end(&mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let (stamp, _) = head.split_once(BEGIN)?.1.split_once('"')?;
        let (pipeline, results) = stamp.split_once(' ')?;
        Some(Self { pipeline: pipeline.to_owned(), results: results.to_owned() })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BEGIN}{} {}\">", self.pipeline, self.results)
    }
}
