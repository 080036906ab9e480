//! End-to-end tests of the `hopmap` binary: one file per command or concern, snapshots beside what they are about.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]
#![expect(clippy::print_stderr, reason = "what was found is told with `--nocapture`")]

mod accept;
mod agent;
mod architecture;
mod archives;
mod batch;
mod batches;
mod broken;
mod check;
mod checkpoint;
mod checkpoint_damaged;
mod checkpoint_delta;
mod checkpoint_refused;
#[path = "../../stages/launch/tests/system/cluster.rs"]
mod cluster;
mod collectives;
mod crash;
#[cfg(debug_assertions)]
mod crash_points;
mod cron;
mod demands;
mod determinism;
mod diff;
mod docs;
mod exec;
mod export;
mod fabric;
mod gates;
mod gc;
mod given_data;
mod graph;
mod graphhunter;
mod import;
mod imports;
mod init;
mod inputs;
mod instance;
mod job;
mod launcher;
mod launcher_lost;
mod levels;
mod lock;
mod markdown;
mod matrix;
mod mpi;
mod packaging;
mod pages;
mod plan;
mod probe;
mod provenance;
mod query;
mod report;
mod report_sweep;
mod route;
mod run;
mod runs;
mod sandbox;
mod save;
mod schedule;
mod schema;
mod show;
mod stages;
mod sweep;
mod sweep_switch;
mod tokens;
mod topology;
mod topology_durability;
mod topology_operation;
mod topology_site;
mod tutorial;
mod verify;
mod why;
