//! The [`Stage`] trait, ports, and the values that pass through them.
//!
//! # Contract
//!
//! `hopmap_model::Stage` has associated functions only: the only state of a stage is its parameters and
//! inputs. `PORTS` are typed and checked before anything runs. `check()` rejects invalid parameter values
//! that the types allow, such as a value that needs a library missing from the build; `libraries()` lists
//! these for `hopmap stages`. `reads()` lists every file behind a path parameter; such files are opened with
//! `open_input` or `read_input`, and the stage gets a sample in `engine/input_tests.rs`. `observes()` marks a
//! volatile stage, which observes the machine, and
//! `experiments()` one that runs a program of the user. `run()` returns `Done`, `Infeasible` (no solution exists,
//! which is a cached result) or `Partial` (stopped by an interrupt or a deadline, with the best result so
//! far). `src/registry.rs` erases the types, once.
//!
//! A stage gets a `Context`: cores, deadline, cancellation, progress, log, and a state file for its search.
//! It runs inside a rayon pool of exactly these cores, which are exclusive to the cell. If it is
//! `distributed()` and the pipeline has a `launcher`, it runs as one of several processes, connected by a
//! `Communicator`; or, if it `directs_ranks()`, once, beside a program of its own that the launcher starts.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use miette::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Context, Error};
use crate::input_file::InputPath;

/// A model type that can pass through a port.
pub trait Artifact: Any + Send + Sync {
    /// Name of the kind in ports, pipelines and stores, such as `task-graph`.
    const KIND: &'static str;
}

/// A value of some artifact kind, type-erased.
pub type Value = Arc<dyn Any + Send + Sync>;

/// Direction of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Input of the stage.
    In,
    /// Output of the stage.
    Out,
}

/// Number of values of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arity {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number, in pipeline order.
    Many,
}

/// Name of the optional input of mappers that takes a bound on what a placement can gain, from `predict/bound`.
///
/// It decides whether the mapper runs, and never what it returns, so it is not part of the key.
pub const BOUND_PORT: &str = "bound";

/// The metric of a bound: the largest fraction of the run time that a placement can gain.
pub const MOST_GAIN: &str = "most_gain";

/// A typed input or output of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Name in `needs` and `save`.
    pub name: &'static str,
    /// Artifact kind.
    pub kind: &'static str,
    /// In or out.
    pub direction: Direction,
    /// Number of values; an output gives exactly one, or none or one if it is optional.
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

    /// An output that is always present.
    #[must_use]
    pub const fn output<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::Out, arity: Arity::One }
    }

    /// An optional output.
    #[must_use]
    pub const fn possible<A: Artifact>(name: &'static str) -> Self {
        Self { name, kind: A::KIND, direction: Direction::Out, arity: Arity::Optional }
    }
}

/// One step of a pipeline: an algorithm or a file format, with its parameters, inputs and outputs.
///
/// All functions are associated: the only state of a stage is its parameters and inputs.
pub trait Stage {
    /// The keys of `with` in a pipeline file. The serialized values are part of the key; the doc comments are
    /// the help text.
    type Params: DeserializeOwned + Serialize + JsonSchema + Send + Sync;

    /// Crate and name, such as `map/annealing`.
    const KIND: &'static str;

    /// One line for `hopmap stages`: a short verb phrase.
    const SUMMARY: &'static str;

    /// Part of the key; increased whenever the same inputs and parameters give different results.
    const REVISION: u32;

    /// All inputs and outputs. The outputs of a released stage never grow.
    const PORTS: &'static [Port];

    /// Libraries that some parameter values need, whether or not this build has them. `check` rejects such
    /// values in a build without the library.
    #[must_use]
    fn libraries() -> &'static [&'static Library] {
        &[]
    }

    /// Rejects invalid parameter values that the types allow, such as a value whose library is missing from
    /// the build. Called before anything runs.
    fn check(params: &Self::Params) -> Result<(), Error> {
        let _ = params;
        Ok(())
    }

    /// The parameters of `preset = name`; explicit parameters override them. The key contains all of them.
    #[must_use]
    fn preset(name: &str) -> Option<Self::Params> {
        let _ = name;
        None
    }

    /// Every file behind a path parameter. Contents, and names relative to the parameter, are part of the
    /// key.
    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let _ = params;
        Ok(Vec::new())
    }

    /// Whether the stage is volatile: its result depends on more than its inputs (a probe, this machine, a
    /// queue).
    fn observes(params: &Self::Params) -> bool {
        let _ = params;
        false
    }

    /// Whether the stage runs and measures a program of the user. Its result is kept until its inputs change, although another
    /// run would give another one. Only a run makes it, without other stages beside it; a verification never does.
    #[must_use]
    fn experiments() -> bool {
        false
    }

    /// Other programs that the stage runs, as the parameters name them: `hopmap check` looks for them.
    #[must_use]
    fn programs(params: &Self::Params) -> Vec<String> {
        let _ = params;
        Vec::new()
    }

    /// Commands of the user that the stage starts, as the parameters give them. A run of an imported project shows them and asks
    /// first, and a verification starts none. Tools with a fixed name, such as `lstopo`, are not among them.
    #[must_use]
    fn commands(params: &Self::Params) -> Vec<String> {
        let _ = params;
        Vec::new()
    }

    /// Whether the stage can run on several processes at once, started by a `launcher`.
    #[must_use]
    fn distributed() -> bool {
        false
    }

    /// Whether a distributed stage with a launcher runs once, and starts a program of its own as ranks with
    /// [`Context::launcher`].
    #[must_use]
    fn directs_ranks() -> bool {
        false
    }

    /// Runs the stage.
    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error>;
}

/// The result of a stage that did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// Complete results.
    Done(Outputs),
    /// Infeasible, with a diagnosis. Cached; dependent stages do not run.
    Infeasible(Outputs),
    /// Stopped early by an interrupt or a deadline, with the best result so far. Never cached.
    Partial(Outputs),
}

/// A connected input.
#[derive(Debug)]
pub struct Input<A> {
    /// The value.
    pub value: Arc<A>,
    /// Digest of the artifact, in hexadecimal.
    pub digest: String,
    /// Display name of its origin, such as `placement[seed=3]`.
    pub label: String,
}

/// The connected inputs of one stage.
#[derive(Debug, Default)]
pub struct Inputs {
    ports: BTreeMap<String, Vec<(Value, String, String)>>,
    /// By output port.
    earlier: BTreeMap<String, Value>,
}

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Connects a further value to a port.
    pub fn connect(&mut self, port: &str, value: Value, digest: String, label: String) {
        self.ports.entry(port.to_owned()).or_default().push((value, digest, label));
    }

    /// Sets what a run of this stage that was stopped early gave at an output port.
    pub fn resume_from(&mut self, port: &str, value: Value) {
        self.earlier.insert(port.to_owned(), value);
    }

    /// What a run of this stage with the same parameters and inputs gave before it was stopped early. Only stages
    /// that run programs of the user get it: other searches save their state.
    pub fn earlier<A: Artifact>(&self, port: &'static str) -> Result<Option<Arc<A>>, PortError> {
        let value = self.earlier.get(port).map(Arc::clone);
        value
            .map(|value| value.downcast().map_err(|_| PortError::WrongKind { port, expected: A::KIND }))
            .transpose()
    }

    /// The single value of a port.
    pub fn one<A: Artifact>(&self, port: &'static str) -> Result<Input<A>, PortError> {
        self.optional(port)?.ok_or(PortError::Unconnected { port })
    }

    /// The value of an optional port.
    pub fn optional<A: Artifact>(&self, port: &'static str) -> Result<Option<Input<A>>, PortError> {
        Ok(self.many(port)?.pop())
    }

    /// All values of a port, in connection order.
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

/// The outputs of a stage: one value per output port.
#[derive(Debug, Default)]
pub struct Outputs {
    values: BTreeMap<&'static str, Value>,
    timed: bool,
}

impl Outputs {
    /// No outputs.
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

    /// Marks the result as dependent on a time limit: it is not reproducible bit for bit.
    #[must_use]
    pub fn timed(mut self, timed: bool) -> Self {
        self.timed = timed;
        self
    }

    /// Whether the result depends on a time limit.
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

/// A wrongly connected or implemented stage. The engine checks ports when planning, so users do not see this
/// error.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PortError {
    /// A required port is not connected.
    #[error("port `{port}` is not connected")]
    #[diagnostic(code(model::unconnected))]
    Unconnected {
        /// The port.
        port: &'static str,
    },
    /// The value has a different kind.
    #[error("port `{port}` expects `{expected}`, but the value has another type")]
    #[diagnostic(code(model::wrong_kind))]
    WrongKind {
        /// The port.
        port: &'static str,
        /// The expected kind.
        expected: &'static str,
    },
}

/// An optional third-party library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Display name.
    pub name: &'static str,
    /// Packages to install before building with it, if any.
    pub install: Option<&'static str>,
    /// Whether this build includes it.
    pub is_built: bool,
}

impl Library {
    /// Rejects a feature of a missing library; `what` is the start of the message, such as "`trace/generate`
    /// writes archives with".
    pub const fn require(&'static self, what: &'static str) -> Result<(), NotBuilt> {
        if self.is_built { Ok(()) } else { Err(self.missing(what)) }
    }

    /// The error for a missing library.
    #[must_use]
    pub const fn missing(&'static self, what: &'static str) -> NotBuilt {
        NotBuilt { what, library: self }
    }

    /// How to enable it.
    #[must_use]
    pub fn hint(&self) -> String {
        let install = self.install.map(|packages| format!("install {packages} and ")).unwrap_or_default();
        format!("{install}build with `make install FEATURES=full`")
    }
}

/// A stage or parameter value needs a library that this build lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{what} {}, which this build does not have", library.name)]
#[diagnostic(code(model::not_built), help("{}", library.hint()))]
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
    use crate::mapping::Mapping;
    use crate::task_graph::TaskGraph;

    #[test]
    fn an_input_keeps_its_type() {
        let mut inputs = Inputs::new();
        inputs.connect("task-graph", Arc::new(TaskGraph::default()), "d".into(), "program".into());
        assert_eq!(inputs.one::<TaskGraph>("task-graph").unwrap().label, "program");
        assert!(matches!(inputs.one::<Mapping>("task-graph"), Err(PortError::WrongKind { .. })));
        assert!(matches!(inputs.one::<Mapping>("mapping"), Err(PortError::Unconnected { .. })));
    }

    #[test]
    fn a_missing_library_is_reported_with_installation_hints() {
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
