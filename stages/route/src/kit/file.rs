//! The keys of a kit.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A kit as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) nodes: Vec<Node>,
    #[serde(default)]
    pub(super) switches: Vec<Switch>,
    #[serde(default)]
    pub(super) boards: Vec<Board>,
    /// What a cable costs.
    #[serde(default)]
    pub(super) cable_cost: f64,
    /// How many cables there are.
    #[serde(default)]
    pub(super) cables: Option<u32>,
    /// For people.
    #[serde(default, rename = "note")]
    _note: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    pub(super) performance: f64,
    #[serde(default = "one")]
    pub(super) ports: u32,
    pub(super) bandwidth: f64,
    #[serde(default)]
    pub(super) capabilities: Vec<String>,
    #[serde(default)]
    pub(super) devices: BTreeMap<String, u32>,
    #[serde(default = "unit")]
    pub(super) cost: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Switch {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    #[serde(rename = "type")]
    pub(super) kind: u32,
    pub(super) ports: u32,
    pub(super) bandwidth: f64,
    #[serde(default = "unit")]
    pub(super) cost: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Board {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    /// Most nodes and switches on it.
    pub(super) chips: u32,
    /// Most cables to other boards.
    pub(super) connectors: u32,
    #[serde(default = "unit")]
    pub(super) cost: f64,
}

fn one() -> u32 {
    1
}

fn unit() -> f64 {
    1.0
}

/// Reads JSON or TOML; what is wrong and on which line.
pub(super) fn parse(bytes: &[u8]) -> Result<File, (usize, String)> {
    crate::instance::parse_as(bytes)
}
