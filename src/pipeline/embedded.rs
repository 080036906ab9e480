//! Pipelines that come with hopmap and run anywhere.

/// A pipeline of `pipelines/`, part of the binary.
#[derive(Debug)]
pub struct Embedded {
    /// Name under which `hopmap run` finds it.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All of them.
pub static EMBEDDED: &[Embedded] = &[
    Embedded { name: "place", text: include_str!("../../pipelines/place.toml") },
    Embedded { name: "place-netloc", text: include_str!("../../pipelines/place-netloc.toml") },
    Embedded { name: "full", text: include_str!("../../pipelines/full.toml") },
    Embedded { name: "schedule", text: include_str!("../../pipelines/schedule.toml") },
    Embedded { name: "route", text: include_str!("../../pipelines/route.toml") },
    Embedded { name: "graph2sch", text: include_str!("../../pipelines/graph2sch.toml") },
    Embedded { name: "job", text: include_str!("../../pipelines/job.toml") },
    Embedded { name: "batch", text: include_str!("../../pipelines/batch.toml") },
    Embedded { name: "figure-3", text: include_str!("../../pipelines/figure-3.toml") },
    Embedded { name: "claims", text: include_str!("../../pipelines/claims.toml") },
    Embedded { name: "checkpoint", text: include_str!("../../pipelines/checkpoint.toml") },
    Embedded { name: "topology-refresh", text: include_str!("../../pipelines/topology-refresh.toml") },
];
