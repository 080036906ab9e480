//! The parameters of the stages.

use std::fmt;
use std::marker::PhantomData;

use hopmap_model::{DeltaRule, InputPath};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

hopmap_model::parameters! {
    /// Parameters of `checkpoint/delta`.
    pub struct DeltaParams {
        /// Folder of the series, unless a stage provides it. Its subfolders (or files) are the checkpoints, in
        /// natural order of their names.
        pub path: Option<InputPath>,
        /// Block length in bytes: a power of two from 256 to 65536; a list is compared in one pass.
        #[serde(deserialize_with = "several")]
        #[schemars(schema_with = "numbers_schema::<u32>")]
        pub block_bytes: Vec<u32> = vec![4096],
        /// The rules that choose the base.
        #[serde(deserialize_with = "several")]
        #[schemars(schema_with = "words_schema::<Rule>")]
        pub rules: Vec<Rule> = vec![Rule::First, Rule::Incremental, Rule::Adca],
        /// Fraction of a delta that ADCA must save to switch to the previous checkpoint.
        pub epsilon: f64 = 0.2,
        /// The delta that ADCA stores when it switches; a list is compared in one pass.
        #[serde(deserialize_with = "several")]
        #[schemars(schema_with = "words_schema::<Reading>")]
        pub reading: Vec<Reading> = vec![Reading::Literal, Reading::Immediate],
        /// Which blocks of two checkpoints are compared.
        pub align: Align,
        /// Where the base is searched for a block.
        pub matching: Matching,
        /// Overhead of each block of a delta for position and hash, in bytes.
        pub block_overhead_bytes: u32 = 24,
        /// Whether to compute the optimal bases as well. This keeps the hashes of all checkpoints in memory.
        pub optimum: bool,
        /// A folder on the target disk, in which the write time is measured with 260 MB.
        pub target: Option<InputPath>,
        /// Latency of writing a checkpoint, in seconds; 0 unless given or measured.
        pub write_latency_s: Option<f64>,
        /// Write bandwidth in bytes per second; 1 GB/s unless given or measured.
        pub write_bytes_per_s: Option<f64>,
    }
}

/// A rule that chooses the base of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Every checkpoint is a delta against the first.
    First,
    /// Every checkpoint is a delta against the previous one.
    Incremental,
    /// The base changes when the previous checkpoint saves more than `epsilon`.
    Adca,
}

/// How the paper's ADCA is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The delta against the old base; the new base is used from the next checkpoint on.
    Literal,
    /// The delta against the previous checkpoint.
    Immediate,
}

/// Which blocks of two checkpoints are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// Blocks at the same offset in the file, as in HBICT.
    #[default]
    Position,
    /// In DMTCP images (v4), and CRIU pages with page maps, blocks at the same memory address; headers and
    /// records are always stored. In other files blocks at the same offset.
    Address,
}

/// Where the base is searched for a block that a delta need not store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// At the same place of the same file, as in HBICT.
    #[default]
    #[serde(rename = "place")]
    Address,
    /// Anywhere, as in stdchk; equal blocks of a checkpoint are stored once.
    Anywhere,
}

hopmap_model::parameters! {
    /// Parameters of `checkpoint/store`.
    pub struct StoreParams {
        /// Folder of the series, unless a stage provides it. Its subfolders (or files) are the checkpoints, in
        /// natural order of their names. Only names and contents of files are stored.
        pub path: Option<InputPath>,
        /// Maximum length of delta chains, from 0 to 16.
        pub depth: u8 = 2,
        /// Fraction of a patch, or of a delta with a `rule`, that ADCA must save before it changes the base,
        /// from 0 to 1.
        pub epsilon: f64 = 0.2,
        /// How bases are chosen: for every block (`block-wise`), or by a published rule for each checkpoint.
        pub rule: StoreRule,
        /// Block length with a `rule`, in bytes: a power of two from 256 to 16384.
        pub block_bytes: u32 = 4096,
        /// Where the base is searched for a block, with a `rule`.
        pub matching: Matching,
        /// Overhead of each block of a delta that the rule assumes, in bytes; the log reports the actual
        /// one.
        pub block_overhead_bytes: u32 = 24,
    }
}

/// How the bases of deltas are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreRule {
    /// Every block against its best base, compressed.
    #[default]
    BlockWise,
    /// Every checkpoint against the first.
    First,
    /// Every checkpoint against the previous one.
    Incremental,
    /// ADCA; when it switches, the delta against the old base is stored.
    AdcaLiteral,
    /// ADCA; when it switches, the delta against the previous checkpoint is stored.
    AdcaImmediate,
}

impl StoreRule {
    /// All rules, with their parameter names and their base rules for whole checkpoints.
    const ALL: [(Self, &'static str, Option<DeltaRule>); 5] = [
        (Self::BlockWise, "block-wise", None),
        (Self::First, "first", Some(DeltaRule::First)),
        (Self::Incremental, "incremental", Some(DeltaRule::Incremental)),
        (Self::AdcaLiteral, "adca-literal", Some(DeltaRule::AdcaLiteral)),
        (Self::AdcaImmediate, "adca-immediate", Some(DeltaRule::AdcaImmediate)),
    ];

    /// The base rule for whole checkpoints; `None` for block-wise bases.
    #[must_use]
    pub fn of_deltas(self) -> Option<DeltaRule> {
        Self::ALL[self as usize].2
    }

    /// Its name as a parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The rule of a name; the error lists all names.
    pub fn of_name(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|rule| rule.1 == name);
        named
            .map(|rule| rule.0)
            .ok_or_else(|| format!("available: {}", Self::ALL.map(|rule| rule.1).join(", ")))
    }
}

/// Parameters of `checkpoint/generate`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParams {
    /// Number of checkpoints, from 1 to 9999.
    pub checkpoints: u32,
    /// Number of ranks, from 1 to 9999: each writes one file per checkpoint.
    #[serde(default = "hopmap_model::number::<1, u32>")]
    pub ranks: u32,
    /// Memory of a rank at the first checkpoint, in bytes: from 65536 to 2³², rounded to pages. Only one rank
    /// at a time is held in memory.
    pub bytes: u64,
    /// Layout of files: DMTCP v4 images (`dmtcp`), or raw memory (`plain`), as of programs that write their
    /// own checkpoints.
    #[serde(default)]
    pub layout: Layout,
    /// Fraction of the memory that is constant and equal in all ranks: programs and libraries.
    #[serde(default)]
    pub shared: f64,
    /// Changes between two checkpoints, applied in this order. Kinds: `moves` (`pages`, `areas`),
    /// `insertions` (`count`, `bytes`), `words` (`pages`, `words`), `drift` (`share`, `step`, `width`),
    /// `growth` (`pages`) and `zeros` (`pages`), such as `{ kind = "words", pages = 0.3, words = 0.1 }`.
    /// `drift` changes a separate field of floating-point numbers; all others change the heap and areas
    /// next to it, which are the memory without `shared` and fields.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Random seed.
    #[serde(default = "hopmap_model::number::<1, u64>")]
    pub seed: u64,
}

/// Layout of generated files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// DMTCP v4 images.
    #[default]
    Dmtcp,
    /// Raw memory.
    Plain,
}

/// A change of the memory of a rank between two checkpoints. Fractions are from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Pages are swapped, and areas move to other addresses.
    Moves {
        /// Fraction of the pages.
        #[serde(default)]
        pages: f64,
        /// Number of areas, or all if there are fewer.
        #[serde(default)]
        areas: u32,
    },
    /// Bytes are inserted into the heap and shift everything after them.
    Insertions {
        /// Number of insertions, up to 10000.
        count: u32,
        /// Size of each, from 1 to 2²⁰ bytes.
        bytes: u32,
    },
    /// Words of eight bytes change in some pages.
    Words {
        /// Fraction of the pages in which words change.
        pages: f64,
        /// Fraction of the words of such a page.
        words: f64,
    },
    /// A field of floating-point numbers changes in small steps.
    Drift {
        /// Fraction of the memory that the field occupies.
        share: f64,
        /// Maximum step; the numbers are between −3 and 3 at first.
        #[serde(default = "small_step")]
        step: f64,
        /// Number format.
        #[serde(default)]
        width: Width,
    },
    /// The heap grows, and an area is added; half of the pages each.
    Growth {
        /// Fraction of the pages of the first checkpoint.
        pages: f64,
    },
    /// Some pages become zero, and as many zero pages get contents.
    Zeros {
        /// Fraction of the pages, for each of the two.
        pages: f64,
    },
}

fn small_step() -> f64 {
    1e-4
}

/// Floating-point formats of IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// Four bytes.
    Single,
    /// Eight bytes.
    #[default]
    Double,
}

/// Reads a value or a list of values. `serde(untagged)` would have less precise errors.
fn several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Several<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Several<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a value or a list of values")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
            T::deserialize(number.into_deserializer()).map(|one| vec![one])
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
            T::deserialize(number.into_deserializer()).map(|one| vec![one])
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Vec<T>, E> {
            T::deserialize(word.into_deserializer()).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(values))
        }
    }
    deserializer.deserialize_any(Several(PhantomData))
}

fn numbers_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "type": ["integer", "array"], "items": one })
}

fn words_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "type": ["string", "array"], "items": one })
}
