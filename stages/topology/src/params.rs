//! Parameters of the stages.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A machine whose network is a regular tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticParams {
    /// Branches of every level of the tree, innermost first: `tree:2x4x2` is two cores a host, four hosts a switch, two
    /// switches under a root. `tree:2:4:2` means the same (the hierarchy of `KaHIP`).
    ///
    /// `kahip:4:16:64` is what `KaHIP`, `VieM` and `SharedMap` take as `--hierarchy_parameter_string=4:16:64`, innermost first as
    /// well. Scotch and `TreeMatch` write such a tree outermost first: `tleaf 3 64 100 16 10 4 1`.
    pub shape: String,
    /// Cost between two slots that first meet on a level, innermost first, one for every level, never falling (the distances
    /// of `KaHIP`).
    ///
    /// A list, or a text with colons as `KaHIP` takes it as `--distance_parameter_string=1:10:100`.
    #[serde(deserialize_with = "costs")]
    #[schemars(schema_with = "costs_schema")]
    pub costs: Vec<f64>,
    /// How many of the innermost levels lie inside a host. With 0 every slot is a host of its own.
    #[serde(default = "one")]
    pub host_level: u32,
    /// Names of the hosts in slot order. Without them hosts are called `host_prefix` and a number.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What the names of hosts begin with where `hosts` is not given.
    #[serde(default = "host")]
    pub host_prefix: String,
}

/// Reads a list of costs or a text with colons between them.
fn costs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    struct Costs;

    impl<'de> Visitor<'de> for Costs {
        type Value = Vec<f64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list of numbers, or a text such as \"1:10:100\"")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<f64>, E> {
            let cost = |cost: &str| {
                let number = cost.trim().parse();
                number.map_err(|_| E::custom(format!("`{cost}` in `{text}` is not a number")))
            };
            text.split(':').map(cost).collect()
        }

        fn visit_seq<A: SeqAccess<'de>>(self, costs: A) -> Result<Vec<f64>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(costs))
        }
    }
    deserializer.deserialize_any(Costs)
}

fn costs_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["array", "string"], "items": { "type": "number", "format": "double" } })
}

fn one() -> u32 {
    1
}

fn host() -> String {
    "host".to_owned()
}
