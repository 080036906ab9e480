//! Parameters of `map/hierarchical`.

use std::borrow::Cow;
use std::fmt;

use hopmap_model::WeightChoice;
use hopmap_objective::Objective;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Goal, Pin, Preset, ProblemParams};

params! {
    /// Partition of the ranks down the tree of the machine.
    pub struct HierarchicalParams {
        /// Whose choices the defaults are: hopmap's, or those of the paper on `HierarchicalMap`, which takes the partition as it is and
        /// judges it by T. What is given goes before both.
        pub preset: Preset,
        /// Another seed gives another placement.
        pub seed: u64 = 1,
        /// The levels of the machine on which ranks are partitioned: `all`, or a list counted from the root, as in `[1]`, `[2]` or
        /// `[1, 2]`. Below them, and where nothing is left to choose, ranks lie in their order.
        pub levels: LevelChoice,
        /// What becomes of levels above that are not listed. The paper does not say which one its `L2` is.
        pub other_levels: OtherLevels,
        /// Whether the partition is the result whatever it costs. Else rank order and, for grids of ranks, boxes are starts beside it,
        /// and the best start is refined. By default where `levels` is a list.
        pub partition_only: Option<bool>,
        /// What cuts the ranks into parts.
        pub partitioner: Partitioner,
        /// How many exchanges are evaluated to refine the placement. Without it, and without `seconds`: 32 for every
        /// rank, or none of a partition alone.
        pub evaluations: Option<u64>,
        /// How long all may take, in seconds; what the construction leaves of it is spent on refinement. The result cannot be made
        /// again bit for bit.
        pub seconds: Option<f64>,
    }
    /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`. Partitions have
    /// a small F; the refinement minimises the objective.
    objective
}

impl HierarchicalParams {
    /// The choices of the paper.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            partition_only: Some(true),
            objective: Goal(Objective { f: 0.0, t: 1.0, hop_bytes: 0.0, max_link_load: 0.0 }),
            ..Self::default()
        }
    }
}

/// What becomes of levels that are not partitioned above one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherLevels {
    /// Ranks lie on them in their order: `L2` partitions the first ranks among the hosts of the first switch, and so on.
    #[default]
    InOrder,
    /// They are ignored: `L2` partitions all ranks among all hosts at once.
    Ignored,
}

/// What cuts the ranks into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partitioner {
    /// The partitioner of hopmap.
    #[default]
    Own,
    /// The recursive bisection of METIS 5, whose parts are then made exact.
    Metis,
    /// Scotch's program `scotch_gmap` (Debian: scotch), whose parts are then made exact.
    Scotch,
}

/// The levels of a machine on which ranks are partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LevelChoice {
    /// All.
    #[default]
    All,
    /// These, counted from the root, which is 1.
    Listed(Vec<u32>),
}

impl LevelChoice {
    /// Whether ranks are partitioned on a level, counted from the root.
    #[must_use]
    pub fn contains(&self, level: u32) -> bool {
        match self {
            Self::All => true,
            Self::Listed(levels) => levels.contains(&level),
        }
    }
}

impl Serialize for LevelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Listed(levels) => levels.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LevelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = LevelChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`all`, or a list of levels counted from the root, as in [1, 2] or `L12`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LevelChoice, E> {
        let digits = text.strip_prefix('L').filter(|digits| !digits.is_empty());
        let named: Option<Vec<u32>> =
            digits.and_then(|digits| digits.chars().map(|digit| digit.to_digit(10)).collect());
        match text {
            "all" => Ok(LevelChoice::All),
            _ => named
                .map(LevelChoice::Listed)
                .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LevelChoice, A::Error> {
        let mut levels = Vec::new();
        while let Some(level) = seq.next_element()? {
            levels.push(level);
        }
        Ok(LevelChoice::Listed(levels))
    }
}

impl JsonSchema for LevelChoice {
    fn schema_name() -> Cow<'static, str> {
        "LevelChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`all`, or levels counted from the root: a list, or their digits behind an L, as in `L12`.",
            "anyOf": [
                { "type": "string", "pattern": "^(all|L[1-9]+)$" },
                { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            ],
        })
    }
}
