//! The keys of a kit.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::instance::{self, Cable, Host};

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

/// A board: either how much fits on it, or all that is on it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Board {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    /// Most nodes and switches on it.
    #[serde(default)]
    pub(super) chips: Option<u32>,
    #[serde(default)]
    pub(super) connectors: Connectors,
    #[serde(default = "unit")]
    pub(super) cost: f64,
    #[serde(default, alias = "hosts")]
    pub(super) nodes: Vec<Host>,
    #[serde(default)]
    pub(super) switches: Vec<instance::Switch>,
    #[serde(default)]
    pub(super) links: Vec<Cable>,
}

/// What cables to other boards are plugged into.
#[derive(Debug, Clone)]
pub(super) enum Connectors {
    /// Most cables to other boards.
    Most(u32),
    /// Each connector, on a board with known contents.
    Each(Vec<Connector>),
}

/// A connector of a chip.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Connector {
    pub(super) at: String,
    pub(super) bandwidth: f64,
    /// Port of the chip.
    #[serde(default)]
    pub(super) port: Option<u32>,
}

impl Default for Connectors {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Connectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConnectorsVisitor)
    }
}

/// Unlike an untagged enumeration, it says what is wrong with a connector.
struct ConnectorsVisitor;

impl<'de> Visitor<'de> for ConnectorsVisitor {
    type Value = Connectors;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number of connectors or a list of them")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Connectors, E> {
        let most = u32::try_from(number);
        most.map(Connectors::Most).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Connectors, E> {
        let most = u32::try_from(number);
        most.map(Connectors::Most).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Connectors, A::Error> {
        let mut connectors = Vec::new();
        while let Some(connector) = list.next_element()? {
            connectors.push(connector);
        }
        Ok(Connectors::Each(connectors))
    }
}

fn one() -> u32 {
    1
}

fn unit() -> f64 {
    1.0
}
