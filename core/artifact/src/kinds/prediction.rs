//! `prediction`: tables `ranks`, `links` and, if requested, `intervals`.

use std::collections::BTreeMap;

use hopmap_model::{Activity, Interval, LinkUse, Prediction, RankTimes};

use crate::codec::{Codec, Contents, joined};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;

value_names!(Activity = &Activity::NAMES);

/// Whether the seconds among some metrics are those of a machine without links.
#[must_use]
pub fn is_without_contention(metrics: &BTreeMap<String, f64>) -> bool {
    metrics.get("contended") == Some(&0.0)
}

impl Codec for Prediction {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "The predicted run time of a program under a mapping.";
    const TABLES: &'static [TableForm] = &[RankTimes::TABLE, LinkUse::TABLE, Interval::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("seconds", "predicted run time"),
        ("replayed_s", "instead, if the replay was stopped: how far it came"),
        ("seconds_linear", "the same of the linear mapping; also `_round_robin`"),
        ("seconds_over_linear", "seconds / seconds_linear; also `_over_round_robin`"),
        ("recorded_s", "run time of the traced program as recorded, under the mapping that it had"),
        ("seconds_over_recorded", "seconds / recorded_s"),
        ("contended", "1 if messages share links, 0 if the machine has no links"),
        ("calibrated", "1 if costs of messages were measured or given, 0 if only the network costs time"),
        ("critical_computation_s", "computation on the critical path"),
        ("critical_overhead_s", "overheads of messages on the critical path"),
        ("critical_latency_s", "latency of links on the critical path"),
        ("critical_bandwidth_s", "transfer time on the critical path"),
        ("critical_waiting_s", "waiting for other ranks on the critical path"),
    ];

    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        let value = |name: &str| metrics.get(name).copied();
        if let Some(replayed) = value("replayed_s") {
            return Some(format!("stopped after the first {replayed:.6} s of the program"));
        }
        let ratio = |metric: &str, what: &str| Some(format!("{:.3} × {what}", value(metric)?));
        let recorded = value("recorded_s").map(|recorded| format!("recorded {recorded:.6} s"));
        joined([
            value("seconds").map(|seconds| format!("predicted {seconds:.6} s")),
            recorded.and_then(|recorded| ratio("seconds_over_recorded", &recorded)),
            ratio("seconds_over_linear", "linear"),
            ratio("seconds_over_round_robin", "round-robin"),
            is_without_contention(metrics).then(|| "without contention".to_owned()),
        ])
    }

    fn encode(&self) -> Contents {
        Contents::new()
            .table(RankTimes::table(&self.ranks))
            .table(LinkUse::table(&self.links))
            .given(Interval::table(&self.intervals))
            .metrics(&self.metrics)
            .attribute("contended", self.is_contended.into())
            .attribute("calibrated", self.is_calibrated.into())
            .attribute("complete", self.complete.into())
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let prediction = Self {
            ranks: folder.rows()?,
            links: folder.rows()?,
            intervals: folder.given_rows()?,
            metrics: folder.description().metrics.clone(),
            is_contended: folder.attribute("contended")?,
            is_calibrated: folder.attribute::<Option<bool>>("calibrated")?.unwrap_or(false),
            complete: folder.attribute("complete")?,
        };
        prediction.check().map_err(|error| folder.invalid(error))?;
        Ok(prediction)
    }
}

table_rows!("ranks": RankTimes [rank = "MPI rank"] {
    slot: u32 = "slot of the machine",
    computing_s: f64 = "seconds of computation",
    sending_s: f64 = "seconds of overheads and of sends that block",
    waiting_s: f64 = "seconds of waiting for messages",
    finish_s: f64 = "when the rank ends, in seconds",
});

table_rows!("links": LinkUse {
    link: u32 = "link of the machine that messages cross",
    source: String = "node that sends",
    destination: String = "node that receives",
    bytes: f64 = "bytes that cross the link",
    saturated: f64 = "share of the run time at full capacity",
});

table_rows!("intervals" if "with `timeline`": Interval {
    rank: u32 = "MPI rank",
    start_s: f64 = "begin, in seconds",
    finish_s: f64 = "end, in seconds",
    activity: Activity = "computing, sending or waiting",
    peer: Option<u32> = "the other rank",
});
