//! The [`Stage`] trait, ports, and the values that pass through them.
//!
//! # Contract
//!
//! `hopmap_model::Stage` has associated functions only: a stage has no state but its parameters and inputs. `ports()` are typed
//! and checked before anything runs. `check()` says what the types of the parameters
//! cannot, such as a value that needs a library which the build lacks; `libraries()` lists these for `hopmap stages`. `reads()` lists
//! every file behind a path parameter; such files are opened with `open_input` or `read_input`, and the stage gets a sample in
//! `engine/input_tests.rs`. `observes()` marks a stage that looks at the world. `run()` ends `Done`, `Infeasible` (there is no solution,
//! and that is an answer) or `Partial` (stopped by an interrupt or a deadline, with the best so far). `src/registry.rs` erases the
//! types, once.
//!
//! A stage gets a `Context`: cores, deadline, cancellation, progress, log, a file for the state of its search. It runs inside a rayon
//! pool of exactly these cores, which no other cell has meanwhile, or, where it is `distributed()` and the pipeline has a `launcher`, as
//! one of several processes, which it reaches through a `Communicator`.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use miette::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Context, Error, InputPath};

/// A model type that can travel through a port.
pub trait Artifact: Any + Send + Sync {
    /// Name of the kind in ports, pipelines and stores, such as `task-graph`.
    const KIND: &'static str;
}

/// A value of some artifact kind, its type erased.
pub type Value = Arc<dyn Any + Send + Sync>;

/// Whether a port takes or gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The stage needs a value here.
    In,
    /// The stage gives a value here.
    Out,
}

/// How many values a port takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arity {
    /// Exactly one.
    One,
    /// One or none.
    Optional,
    /// Any number, in the order the pipeline names them.
    Many,
}

/// A typed opening of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Name in `needs` and `save`.
    pub name: &'static str,
    /// Artifact kind that passes through.
    pub kind: &'static str,
    /// In or out.
    pub direction: Direction,
    /// How many values it takes; an output gives exactly one, or perhaps none if it is optional.
    pub arity: Arity,
}

impl Port {
    /// An input that must be connected.
    #[must_use]
    pub const fn input<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::In, arity: Arity::One }
    }

    /// An input that may stay unconnected.
    #[must_use]
    pub const fn optional<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::In, arity: Arity::Optional }
    }

    /// An input that takes any number of values.
    #[must_use]
    pub const fn many<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::In, arity: Arity::Many }
    }

    /// An output.
    #[must_use]
    pub const fn output<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::Out, arity: Arity::One }
    }

    /// An output at which there may be nothing.
    #[must_use]
    pub const fn possible<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::Out, arity: Arity::Optional }
    }
}

/// One step of a pipeline: an algorithm or a format, its parameters, and what goes in and out.
///
/// All functions are associated: a stage has no state but its parameters and its inputs.
pub trait Stage {
    /// The keys of `with` in a pipeline file. Serialised values enter the key; doc comments are the help text.
    type Params: DeserializeOwned + Serialize + JsonSchema + Send + Sync;

    /// Crate and name, such as `map/annealing`.
    const KIND: &'static str;

    /// One line for `hopmap stages`.
    const SUMMARY: &'static str;

    /// Enters the key; raised whenever the same inputs give other results than before.
    const REVISION: u32;

    /// Everything that goes in and out. Outputs of a released stage are never added to.
    fn ports() -> &'static [Port];

    /// Libraries that some values of its parameters need, whether this build has them or not. `check` refuses such a value
    /// in a build without the library.
    #[must_use]
    fn libraries() -> &'static [&'static Library] {
        &[]
    }

    /// Checks what the types of the parameters cannot say, such as a value for which this build lacks a library. Called
    /// before anything runs.
    fn check(params: &Self::Params) -> Result<(), Error> {
        let _ = params;
        Ok(())
    }

    /// The parameters that `preset = name` stands for, of which those given in the file go before. The key has all of them.
    #[must_use]
    fn preset(name: &str) -> Option<Self::Params> {
        let _ = name;
        None
    }

    /// Every file behind a path parameter. Names below the parameter's path and contents enter the key.
    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let _ = params;
        Ok(Vec::new())
    }

    /// Whether the result depends on the world outside the inputs (a probe, this machine, a queue).
    fn observes(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// Whether the stage can run on several processes at once, started by a `launcher`.
    #[must_use]
    fn distributed() -> bool {
        false
    }

    /// Does the work.
    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error>;
}

/// How a stage ended when it did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// The answer.
    Done(Outputs),
    /// There is no solution, and this is the diagnosis. Cached; dependents do not run.
    Infeasible(Outputs),
    /// Stopped early by an interrupt or a deadline, with the best found so far. Never cached.
    Partial(Outputs),
}

/// A connected input.
#[derive(Debug)]
pub struct Input<A> {
    /// The value.
    pub value: Arc<A>,
    /// Digest of the artifact, in hexadecimal.
    pub digest: String,
    /// Where it comes from in words, such as `placement[seed=3]`.
    pub label: String,
}

/// The connected inputs of one stage.
#[derive(Debug, Default)]
pub struct Inputs {
    ports: BTreeMap<String, Vec<(Value, String, String)>>,
}

impl Inputs {
    /// No inputs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Connects one more value to a port.
    pub fn connect(&mut self, port: &str, value: Value, digest: String, label: String) {
        self.ports.entry(port.to_owned()).or_default().push((value, digest, label));
    }

    /// The one value of a port.
    pub fn one<A: Artifact>(&self, port: &'static str) -> Result<Input<A>, PortError> {
        self.optional(port)?.ok_or(PortError::Unconnected { port })
    }

    /// The value of a port that may be unconnected.
    pub fn optional<A: Artifact>(&self, port: &'static str) -> Result<Option<Input<A>>, PortError> {
        Ok(self.many(port)?.pop())
    }

    /// All values of a port, in the order in which they were connected.
    pub fn many<A: Artifact>(&self, port: &'static str) -> Result<Vec<Input<A>>, PortError> {
        let values = self.ports.get(port).map(Vec::as_slice).unwrap_or_default();
        values
            .iter()
            .map(|(value, digest, label)| {
                let value = Arc::clone(value)
                    .downcast::<A>()
                    .map_err(|_| PortError::WrongKind { port, expected: A::KIND })?;
                Ok(Input { value, digest: digest.clone(), label: label.clone() })
            })
            .collect()
    }
}

/// What a stage gives back: one value per output port.
#[derive(Debug, Default)]
pub struct Outputs {
    values: BTreeMap<&'static str, Value>,
    timed: bool,
}

impl Outputs {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the value of a port.
    #[must_use]
    pub fn with<A: Artifact>(mut self, port: &'static str, value: A) -> Self {
        self.values.insert(port, Arc::new(value));
        self
    }

    /// Marks the result as shaped by a budget in seconds: it cannot be made again bit for bit.
    #[must_use]
    pub fn timed(mut self, timed: bool) -> Self {
        self.timed = timed;
        self
    }

    /// Whether a budget in seconds shaped the result.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// The value of a port.
    #[must_use]
    pub fn get(&self, port: &str) -> Option<&Value> {
        self.values.get(port)
    }
}

/// A stage was wired or written wrongly. The engine checks ports when planning, so users do not meet this.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PortError {
    /// Nothing is connected to a port that must be.
    #[error("nothing is connected to port `{port}`")]
    Unconnected {
        /// The port.
        port: &'static str,
    },
    /// The value is of another kind.
    #[error("port `{port}` takes `{expected}`, but got something else")]
    WrongKind {
        /// The port.
        port: &'static str,
        /// The kind it takes.
        expected: &'static str,
    },
}

/// A library of others that hopmap is built with where it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// What people call it.
    pub name: &'static str,
    /// What to install before building with it, if anything.
    pub install: Option<&'static str>,
    /// Whether this build has it.
    pub is_built: bool,
}

impl Library {
    /// Refuses what a build without the library cannot do, in words before its name: "`trace/generate` writes archives
    /// with".
    pub const fn require(&'static self, what: &'static str) -> Result<(), NotBuilt> {
        if self.is_built { Ok(()) } else { Err(self.missing(what)) }
    }

    /// That this build lacks it.
    #[must_use]
    pub const fn missing(&'static self, what: &'static str) -> NotBuilt {
        NotBuilt { what, library: self }
    }

    /// How to get it.
    #[must_use]
    pub fn hint(&self) -> String {
        let install = self.install.map(|packages| format!("install {packages} and ")).unwrap_or_default();
        format!("{install}build with `make install FEATURES=full`")
    }
}

/// A stage, or a value of a parameter, that needs a library which this build lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{what} {}, which this build does not have", library.name)]
#[diagnostic(help("{}", library.hint()))]
pub struct NotBuilt {
    what: &'static str,
    library: &'static Library,
}

impl NotBuilt {
    /// The library.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, TaskGraph};

    #[test]
    fn an_input_comes_back_as_what_it_was() {
        let mut inputs = Inputs::new();
        inputs.connect("task-graph", Arc::new(TaskGraph::default()), "d".into(), "program".into());
        assert_eq!(inputs.one::<TaskGraph>("task-graph").unwrap().label, "program");
        assert!(matches!(inputs.one::<Mapping>("task-graph"), Err(PortError::WrongKind { .. })));
        assert!(matches!(inputs.one::<Mapping>("mapping"), Err(PortError::Unconnected { .. })));
    }

    #[test]
    fn what_is_missing_is_told_with_how_to_get_it() {
        const THERE: Library = Library { name: "libx", install: None, is_built: true };
        const ABSENT: Library =
            Library { install: Some("libx (Debian: libx-dev)"), is_built: false, ..THERE };
        assert_eq!(THERE.require("`x` counts with"), Ok(()));
        let error = ABSENT.require("`x` counts with").unwrap_err();
        assert_eq!(error.to_string(), "`x` counts with libx, which this build does not have");
        let help = error.help().unwrap().to_string();
        assert_eq!(help, "install libx (Debian: libx-dev) and build with `make install FEATURES=full`");
        assert_eq!(THERE.hint(), "build with `make install FEATURES=full`");
    }
}
