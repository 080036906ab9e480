//! Why a problem has no solution, and what happens when a part of a machine fails.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Artifact;

/// Why there is no solution, and what would have to be different.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Each with what would cure it; those of one remedy are all needed, and any one remedy is enough.
    pub causes: Vec<Cause>,
    /// Sums by name, such as `largest_link_shortage`.
    pub metrics: BTreeMap<String, f64>,
}

/// A part of a machine or of a program that is short of something.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Number of the remedy that it is a part of.
    pub remedy: u32,
    /// What kind of thing it is.
    pub part: Part,
    /// Its name; that of the rule where a rule about such parts is in the way.
    pub name: String,
    /// What is there, if it is an amount.
    pub there: Option<f64>,
    /// What is needed, if it is an amount.
    pub needed: Option<f64>,
    /// The whole in words.
    pub words: String,
}

/// A kind of part of a machine or of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A link, in one direction or both.
    Link,
    /// A switch.
    Switch,
    /// A host.
    Host,
    /// A process.
    Process,
    /// A stream.
    Stream,
}

/// What happens when any one part of a machine fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// One for every part that was taken away.
    pub failures: Vec<Failure>,
    /// Sums by name, such as `survived`.
    pub metrics: BTreeMap<String, f64>,
}

/// What happens when a part of a machine fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What kind of part.
    pub part: Part,
    /// Its name.
    pub name: String,
    /// Whether there is an answer without it; nothing if that was not found out.
    pub survived: Option<bool>,
    /// The objective of the answer without it.
    pub objective: Option<f64>,
    /// Length of the longest route then.
    pub longest: Option<u32>,
    /// Processes that go to another host.
    pub moved: u32,
    /// Streams between the same hosts as before that take another way.
    pub rerouted: u32,
    /// Entries of tables that are new or different.
    pub changed_entries: u32,
    /// What is short, in words; empty where it is survived.
    pub shortage: String,
}

impl Artifact for Diagnosis {
    const KIND: &'static str = "diagnosis";
}

impl Artifact for Failures {
    const KIND: &'static str = "failures";
}
