//! The keys of the stages.

use std::fmt;
use std::marker::PhantomData;

use hopmap_model::{DeltaRule, InputPath};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Keys of `checkpoint/delta`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeltaParams {
    /// The series, unless it comes from a stage: a folder whose folders (or files) are the checkpoints, in the order of their names;
    /// numbers in names count as numbers.
    pub path: Option<InputPath>,
    /// Bytes of a block, 256 to 65536 and a power of two; several are compared in one pass.
    #[serde(deserialize_with = "several")]
    #[schemars(schema_with = "numbers_schema::<u32>")]
    pub block_bytes: Vec<u32>,
    /// The rules that choose bases.
    #[serde(deserialize_with = "several")]
    #[schemars(schema_with = "words_schema::<Rule>")]
    pub rules: Vec<Rule>,
    /// ADCA switches to the previous checkpoint when that saves more than this part of a delta.
    pub epsilon: f64,
    /// What ADCA stores when it switches; several are compared in one pass.
    #[serde(deserialize_with = "several")]
    #[schemars(schema_with = "words_schema::<Reading>")]
    pub reading: Vec<Reading>,
    /// Which blocks are compared.
    pub align: Align,
    /// Where the base has to have a block that is not stored.
    pub matching: Matching,
    /// Bytes of a delta that say where a block belongs: its place and its hash.
    pub block_overhead_bytes: u32,
    /// Whether to look for the best base of every checkpoint as well; keeps the hashes of all checkpoints in memory.
    pub optimum: bool,
    /// A folder on the disk that checkpoints would go to: how long writing takes is measured there, with 260 MB in all.
    pub target: Option<InputPath>,
    /// Seconds that writing a checkpoint takes whatever its size; 0 unless given or measured.
    pub write_latency_s: Option<f64>,
    /// Bytes written per second; a gigabyte unless given or measured.
    pub write_bytes_per_s: Option<f64>,
}

impl Default for DeltaParams {
    fn default() -> Self {
        Self {
            path: None,
            block_bytes: vec![4096],
            rules: vec![Rule::First, Rule::Incremental, Rule::Adca],
            epsilon: 0.2,
            reading: vec![Reading::Literal, Reading::Immediate],
            align: Align::default(),
            matching: Matching::default(),
            block_overhead_bytes: 24,
            optimum: false,
            target: None,
            write_latency_s: None,
            write_bytes_per_s: None,
        }
    }
}

/// A rule that chooses bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Every checkpoint is a delta against the first.
    First,
    /// Every checkpoint is a delta against the previous one.
    Incremental,
    /// The base stays until the previous checkpoint is better by more than `epsilon`.
    Adca,
}

/// How the paper's ADCA is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The delta against the old base; what follows is a delta against the checkpoint before this one.
    Literal,
    /// The delta against the previous checkpoint.
    Immediate,
}

/// Which blocks of two checkpoints are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// Those at the same place in the file, as HBICT does.
    #[default]
    Position,
    /// In images of DMTCP (v4), and in pages of CRIU with their page maps, those at the same address of memory; headers and records
    /// are stored always. In other files those at the same place.
    Address,
}

/// Where a base has to have a block that a delta does not store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// At the same place of the same file, as HBICT does.
    #[default]
    Place,
    /// Anywhere, as stdchk does; a block that a checkpoint has twice is stored once.
    Anywhere,
}

/// Keys of `checkpoint/store`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreParams {
    /// The series, unless it comes from a stage: a folder whose folders (or files) are the checkpoints, in the order of their names;
    /// numbers in names count as numbers. Names and contents of files are stored, and nothing else of them.
    pub path: Option<InputPath>,
    /// Blocks that have to be decoded, one after the other, before a chunk that is a delta against others: 0 to 16.
    pub depth: u8,
    /// What part of a patch, or of a delta where there is a `rule`, ADCA has to save before it changes the base: 0 to 1.
    pub epsilon: f64,
    /// Which base a delta is taken against: every block has its own (`block-wise`), or one of the published rules chooses one for the
    /// whole checkpoint.
    pub rule: StoreRule,
    /// Bytes of a block where there is a `rule`: 256 to 16384 and a power of two.
    pub block_bytes: u32,
    /// Where the base has to have a block that is not stored, where there is a `rule`.
    pub matching: Matching,
    /// Bytes that the rule counts for the place and the hash of every block of a delta; the log says how many they are on disk.
    pub block_overhead_bytes: u32,
}

impl Default for StoreParams {
    fn default() -> Self {
        Self {
            path: None,
            depth: 2,
            epsilon: 0.2,
            rule: StoreRule::default(),
            block_bytes: 4096,
            matching: Matching::default(),
            block_overhead_bytes: 24,
        }
    }
}

/// Which base the deltas of a store are taken against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreRule {
    /// Every block by the version that is best for it, compressed.
    #[default]
    BlockWise,
    /// Every checkpoint by the first.
    First,
    /// Every checkpoint by the previous one.
    Incremental,
    /// ADCA; when its test fires, the delta against the old base is what is stored.
    AdcaLiteral,
    /// ADCA; when its test fires, the delta against the previous checkpoint is what is stored.
    AdcaImmediate,
}

impl StoreRule {
    /// All of them, with their names as parameters have them, and the rules for whole checkpoints.
    const ALL: [(Self, &'static str, Option<DeltaRule>); 5] = [
        (Self::BlockWise, "block-wise", None),
        (Self::First, "first", Some(DeltaRule::First)),
        (Self::Incremental, "incremental", Some(DeltaRule::Incremental)),
        (Self::AdcaLiteral, "adca-literal", Some(DeltaRule::AdcaLiteral)),
        (Self::AdcaImmediate, "adca-immediate", Some(DeltaRule::AdcaImmediate)),
    ];

    /// The rule for whole checkpoints; none where every block has a base of its own.
    #[must_use]
    pub fn of_deltas(self) -> Option<DeltaRule> {
        Self::ALL[self as usize].2
    }

    /// Its name, as parameters have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The rule of a name, or which there are.
    pub fn of_name(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|rule| rule.1 == name);
        named
            .map(|rule| rule.0)
            .ok_or_else(|| format!("there are {}", Self::ALL.map(|rule| rule.1).join(", ")))
    }
}

/// Keys of `checkpoint/generate`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GenerateParams {
    /// Number of checkpoints, from 1 to 9999.
    pub checkpoints: u32,
    /// Number of ranks, from 1 to 9999: each is a file of every checkpoint.
    #[serde(default = "one_rank")]
    pub ranks: u32,
    /// Bytes of memory of a rank at the first checkpoint, from 65536 to 2³²; whole pages. One rank at a time is in memory.
    pub bytes: u64,
    /// How files are laid out: images of DMTCP v4 (`dmtcp`), or the memory alone (`plain`), as a program writes that saves itself.
    #[serde(default)]
    pub layout: Layout,
    /// Share of the memory that is the same in all ranks and never changes: programs and libraries.
    #[serde(default)]
    pub shared: f64,
    /// What happens between two checkpoints, in this order: `moves` (`pages`, `areas`), `insertions` (`count`, `bytes`), `words`
    /// (`pages`, `words`), `drift` (`share`, `step`, `width`), `growth` (`pages`) and `zeros` (`pages`), such as
    /// `{ kind = "words", pages = 0.3, words = 0.1 }`. Fields of floating-point numbers are made for `drift`; all else happens to a
    /// heap and to areas beside it, which are what `shared` and fields leave.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Another seed gives other contents and other places.
    #[serde(default = "one_seed")]
    pub seed: u64,
}

fn one_rank() -> u32 {
    1
}

fn one_seed() -> u64 {
    1
}

/// How generated files are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Images of DMTCP v4.
    #[default]
    Dmtcp,
    /// The memory alone.
    Plain,
}

/// Something that happens to the memory of a rank between two checkpoints. Shares are from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Pages change places, and areas move to other addresses.
    Moves {
        /// Share of the pages.
        #[serde(default)]
        pages: f64,
        /// Number of areas, or all if there are fewer.
        #[serde(default)]
        areas: u32,
    },
    /// Bytes are inserted into the heap; everything behind them is shifted.
    Insertions {
        /// How often, up to 10000.
        count: u32,
        /// Bytes of each, from 1 to 2²⁰.
        bytes: u32,
    },
    /// Words of eight bytes here and there become others.
    Words {
        /// Share of the pages in which words change.
        pages: f64,
        /// Share of the words of such a page.
        words: f64,
    },
    /// A field of floating-point numbers goes on by smooth steps.
    Drift {
        /// Share of the memory that is the field.
        share: f64,
        /// The largest step; the numbers are between −3 and 3 at first.
        #[serde(default = "small_step")]
        step: f64,
        /// Which numbers.
        #[serde(default)]
        width: Width,
    },
    /// The heap grows, and an area is added; half of the pages each.
    Growth {
        /// Share of the pages of the first checkpoint.
        pages: f64,
    },
    /// Pages become zero, and pages that were get contents.
    Zeros {
        /// Share of the pages, of each sort.
        pages: f64,
    },
}

fn small_step() -> f64 {
    1e-4
}

/// Floating-point numbers of IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// Four bytes each.
    Single,
    /// Eight bytes each.
    #[default]
    Double,
}

/// Reads a value or a list of values. `serde(untagged)` would do, but its errors do not say what is wrong.
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
