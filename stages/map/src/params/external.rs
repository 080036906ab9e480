//! Parameters of `map/external`.

use std::borrow::Cow;
use std::fmt;

use hopmap_model::WeightChoice;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Goal, Pin, ProblemParams};

/// A command that reads two matrices and writes a permutation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalParams {
    /// A line for the shell, or a list of a program and its arguments, which no shell reads. In both `{input}` is a file with the
    /// whole problem as in QAPLIB, `{program}` and `{machine}` files with one of its matrices each, `{output}` the file that
    /// the command writes, in place of its standard output, and `{seed}` and `{seconds}` are these parameters. The shell gets
    /// paths quoted.
    pub command: ExternalCommand,
    /// Whether ranks and slots of the answer count from zero or from one.
    #[serde(default)]
    pub numbering: Numbering,
    /// The answer says which rank every slot has, not which slot every rank has.
    #[serde(default)]
    pub inverse: bool,
    /// How long the command may take, in seconds, before it is ended with all that it started. One that is told by
    /// `{seconds}` gets a tenth and a second more.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// What `{seed}` is.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

problem_params!(ExternalParams);

impl ExternalParams {
    /// The parameters of a command, all others as they are by default.
    #[must_use]
    pub fn new(command: ExternalCommand) -> Self {
        Self {
            command,
            numbering: Numbering::default(),
            inverse: false,
            seconds: None,
            seed: first_seed(),
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

fn first_seed() -> u64 {
    1
}

/// Where counting begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numbering {
    /// From zero if the answer has a zero, else from one.
    #[default]
    Auto,
    /// From zero.
    FromZero,
    /// From one.
    FromOne,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalCommand {
    /// A line for `sh`.
    Shell(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

impl ExternalCommand {
    /// The texts it consists of.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Self::Shell(line) => std::slice::from_ref(line),
            Self::Program(words) => words,
        }
    }
}

impl Serialize for ExternalCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Shell(line) => serializer.serialize_str(line),
            Self::Program(words) => words.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExternalCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = ExternalCommand;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a line for the shell, or a list of a program and its arguments")
            }

            fn visit_str<E>(self, line: &str) -> Result<ExternalCommand, E> {
                Ok(ExternalCommand::Shell(line.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<ExternalCommand, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(words)).map(ExternalCommand::Program)
            }
        }
        deserializer.deserialize_any(Words)
    }
}

impl JsonSchema for ExternalCommand {
    fn schema_name() -> Cow<'static, str> {
        "ExternalCommand".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
    }
}
