//! The stages, commands and artifact kinds of this build. The only file that lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use hopmap_artifact::{ArtifactError, Codec, Folder};
use hopmap_command::{CommandEntry, ParsedCommand};
use hopmap_model::{
    Artifact, Context, Direction, Error, InputPath, Inputs, Library, Mapping, Measurements, OutOfRange,
    Outcome, Port, Stage, SystemGraph, TaskGraph, Value,
};
use serde_json::Value as Json;

/// Names of the program of hwloc that `topology/hwloc` runs.
pub(crate) const HWLOC_PROGRAMS: [&str; 3] = hopmap_topology_import::import::HWLOC_PROGRAMS;

/// Entries for types of one module, by name.
macro_rules! entries {
    ($entry:ident: $module:path { $($name:ident $(<$of:ident>)?),* $(,)? }) => {
        [$({ use $module as module; $entry::of::<module::$name$(<$of>)?>() }),*]
    };
}

/// Stages of several modules, some of which a build may leave out.
macro_rules! stages {
    ($($(#[$feature:meta])? $module:path { $($names:tt)* })*) => {
        [$($(#[$feature])? Vec::from(entries! { StageEntry: $module { $($names)* } })),*].into_iter().flatten()
    };
}

/// All stages, in the order of a typical pipeline.
pub(crate) static STAGES: LazyLock<Vec<StageEntry>> = LazyLock::new(|| {
    let stages = stages! {
        hopmap_trace { Otf2, ListEvents, Dag, ProgramStage, Replay, Otf, Import, Export, Summary, Generate }
        hopmap_topology { Synthetic, Probe, LevelsStage }
        hopmap_topology_import::import { Import, Hwloc }
        hopmap_topology::export { Export }
        hopmap_select { Nodes, Hosts }
        hopmap_stored { Stored<TaskGraph>, Stored<SystemGraph>, Stored<Mapping>, Stored<Measurements> }
        hopmap_instance { Qaplib, TaillardE, Stencil, Graph, Geometric, RandomGraph, PowerLaw }
        #[cfg(feature = "training")]
        hopmap_training { Parallel }
        hopmap_map {
            LinearStage, RoundRobinStage, RandomStage, AnnealingStage, GeneticStage, CompositeStage, TabuStage,
            ExactStage, ExternalStage, HierarchicalStage, ImportStage, AutoStage
        }
        #[cfg(feature = "route")]
        hopmap_route {
            ImportStage, DemandsStage, BuildStage, FabricStage, TablesStage, MapStage, FailuresStage, CheckStage, ModelStage,
            ExportStage
        }
        #[cfg(feature = "schedule")]
        hopmap_schedule {
            ImportStage, ListStage, GeneticStage, ExactStage, AutoStage, CheckStage, ExportStage, ReplayStage
        }
        hopmap_evaluate { MappingStage, AccuracyStage, CollectivesStage, CorrelationStage, GroupsStage }
        hopmap_predict { BoundStage, TimeStage }
        hopmap_run { BestStage, TrialStage }
        hopmap_launch { File, Machinefile, Rankfile, Hostfile, Slurm, Cray }
        #[cfg(feature = "training")]
        hopmap_training { Torch }
        hopmap_launch { Check }
        #[cfg(feature = "checkpoint")]
        hopmap_checkpoint { DeltaStage, StoreStage, Generate }
    };
    #[cfg(test)]
    let of_tests = stages! {
        crate::engine::tests { SearchStage, TextStage }
        crate::engine::cores_tests { CrowdStage }
    };
    #[cfg(not(test))]
    let of_tests = [];
    stages.chain(of_tests).collect()
});

/// The commands of stage crates, in the order of the help.
pub(crate) static COMMANDS: &[CommandEntry] = &[
    CommandEntry::of::<hopmap_record::RecordCommand>(),
    CommandEntry::of::<hopmap_record::ReorderCommand>(),
    CommandEntry::of::<hopmap_topology::agent::AgentCommand>(),
    CommandEntry::of::<hopmap_launch::WhereCommand>(),
    #[cfg(feature = "checkpoint")]
    CommandEntry::group(
        "checkpoint",
        "Store and restore checkpoints with delta compression",
        const {
            &entries! { CommandEntry:
                hopmap_checkpoint::commands { Init, Add, List, Restore, Verify, Prune, Stats, Explain }
            }
        },
    ),
];

/// The command `record` for every call of a program; `command` begins with its launcher.
pub(crate) fn recorder(out: PathBuf, mpicc: Option<String>, command: Vec<String>) -> Box<dyn ParsedCommand> {
    Box::new(hopmap_record::RecordCommand::of_events(out, mpicc, command))
}

/// All artifact kinds.
pub(crate) static KINDS: &[KindEntry] = &entries! { KindEntry:
    hopmap_model {
        TaskGraph, TaskDag, Program, SystemGraph, Mapping, Prediction, Schedule, Routes, Tables, Diagnosis, Failures, Deltas,
        Measurements, Metrics, LaunchFile, TextFile, TraceArchive, CheckpointSeries, CheckpointStore,
        TraceSummary, Events, Trials
    }
};

/// The stage of a kind such as `map/annealing`.
pub(crate) fn stage(kind: &str) -> Option<&'static StageEntry> {
    STAGES.iter().find(|entry| entry.kind == kind)
}

/// Features of cargo that bring the stages and commands of one crate, whether this build has them, and how the kinds of the stages begin.
const FEATURES: [(&str, bool, &[&str]); 4] = [
    ("checkpoint", cfg!(feature = "checkpoint"), &["checkpoint/"]),
    ("route", cfg!(feature = "route"), &["route/"]),
    ("schedule", cfg!(feature = "schedule"), &["schedule/"]),
    ("training", cfg!(feature = "training"), &["instance/parallel", "launch/torch"]),
];

/// How to get the stages of this kind, where the build has left them out.
pub(crate) fn left_out(kind: &str) -> Option<String> {
    missing_from(&FEATURES, kind)
}

fn missing_from(features: &[(&str, bool, &[&str])], kind: &str) -> Option<String> {
    let has = |begins: &[&str]| begins.iter().any(|begin| kind.starts_with(begin));
    let (feature, ..) = features.iter().find(|(_, is_built, begins)| !is_built && has(begins))?;
    Some(format!("this hopmap was built without the feature `{feature}`, which cargo builds by default"))
}

/// The artifact kind of a name such as `task-graph`.
pub(crate) fn kind(name: &str) -> Option<&'static KindEntry> {
    KINDS.iter().find(|entry| entry.name == name)
}

/// A stage, its type erased.
pub(crate) struct StageEntry {
    /// Crate and name.
    pub(crate) kind: &'static str,
    /// Summary in one line.
    pub(crate) summary: &'static str,
    /// Part of the key.
    pub(crate) revision: u32,
    /// Inputs and outputs.
    pub(crate) ports: &'static [Port],
    /// Whether it can run as several processes.
    pub(crate) distributed: bool,
    /// Whether it then runs once, beside a program of its own that is several processes.
    pub(crate) directs_ranks: bool,
    /// Whether it runs and measures a program of the user.
    pub(crate) experiments: bool,
    /// Libraries that some values of its parameters need.
    pub(crate) libraries: &'static [&'static Library],
    /// JSON Schema of the parameters.
    pub(crate) schema: Json,
    configure: fn(Json) -> Result<Box<dyn Configured>, ParameterError>,
}

/// An invalid value of a parameter.
#[derive(Debug)]
pub(crate) struct ParameterError {
    /// Its path: keys and indexes from the outside in.
    pub(crate) path: Vec<String>,
    /// The error message.
    pub(crate) message: String,
    /// How to fix it, if the stage has a hint.
    pub(crate) help: Option<String>,
    /// Whether the value is out of its range.
    pub(crate) is_out_of_range: bool,
}

impl ParameterError {
    /// An error of all parameters together.
    fn of_all(message: String) -> Self {
        Self { path: Vec::new(), message, help: None, is_out_of_range: false }
    }

    /// An error of a stage that checks its parameters.
    pub(crate) fn of_check(error: &Error) -> Self {
        let parameter = error.downcast_ref().map(OutOfRange::parameter);
        Self {
            path: parameter.iter().flat_map(|name| name.split('.')).map(str::to_owned).collect(),
            is_out_of_range: parameter.is_some(),
            help: error.help().map(|help| help.to_string()),
            message: error.to_string(),
        }
    }
}

/// A stage together with its parameters.
pub(crate) trait Configured: Send + Sync {
    /// The parameters that enter the key: with all defaults and without paths.
    fn canonical(&self) -> &Json;
    /// The given parameters with paths, with which another process configures the same stage.
    fn given(&self) -> &Json;
    /// Every file behind a path parameter.
    fn reads(&self) -> Result<Vec<InputPath>, Error>;
    /// Whether the stage is live: it observes the machine or runs another program.
    fn observes(&self) -> bool;
    /// Other programs that the stage runs, as its parameters name them.
    fn programs(&self) -> Vec<String>;
    /// Commands of the user that the stage starts.
    fn commands(&self) -> Vec<String>;
    /// Runs the stage.
    fn run(self: Box<Self>, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error>;
}

impl StageEntry {
    fn of<S: Stage + 'static>() -> Self {
        Self {
            kind: S::KIND,
            summary: S::SUMMARY,
            revision: S::REVISION,
            ports: S::PORTS,
            distributed: S::distributed(),
            directs_ranks: S::directs_ranks(),
            experiments: S::experiments(),
            libraries: S::libraries(),
            schema: schemars::schema_for!(S::Params).into(),
            configure: configure::<S>,
        }
    }

    /// Reads the parameters, in which paths are already resolved.
    pub(crate) fn configure(&self, parameters: Json) -> Result<Box<dyn Configured>, ParameterError> {
        (self.configure)(parameters)
    }

    /// The ports of one direction.
    pub(crate) fn ports(&self, direction: Direction) -> impl Iterator<Item = &'static Port> {
        self.ports.iter().filter(move |port| port.direction == direction)
    }

    /// The port of a name and direction.
    pub(crate) fn port(&self, direction: Direction, name: &str) -> Option<&'static Port> {
        self.ports(direction).find(|port| port.name == name)
    }
}

/// The parameter that chooses the defaults of others.
const PRESET: &str = "preset";

struct Ready<S: Stage> {
    parameters: S::Params,
    canonical: Json,
    given: Json,
}

fn configure<S: Stage + 'static>(given: Json) -> Result<Box<dyn Configured>, ParameterError> {
    let parameters: S::Params =
        serde_path_to_error::deserialize(completed::<S>(&given)).map_err(|error| ParameterError {
            path: error.path().iter().filter_map(segment).collect(),
            ..ParameterError::of_all(error.into_inner().to_string())
        })?;
    S::check(&parameters).map_err(|error| ParameterError::of_check(&error))?;
    let canonical =
        serde_json::to_value(&parameters).map_err(|error| ParameterError::of_all(error.to_string()))?;
    Ok(Box::new(Ready::<S> { parameters, canonical, given }))
}

/// The given parameters, and the values of their preset for the others.
fn completed<S: Stage>(given: &Json) -> Json {
    let mut all = given.clone();
    let preset = given.get(PRESET).and_then(Json::as_str).and_then(S::preset);
    if let Some(preset) = preset.and_then(|preset| serde_json::to_value(preset).ok()) {
        complete(&mut all, preset);
    }
    all
}

/// Adds missing values, also inside tables.
fn complete(given: &mut Json, preset: Json) {
    if let (Json::Object(given), Json::Object(preset)) = (given, preset) {
        for (name, value) in preset {
            match given.get_mut(&name) {
                Some(own) => complete(own, value),
                None => drop(given.insert(name, value)),
            }
        }
    }
}

/// A step of [`ParameterError::path`]. The variant of an enumeration is not a step in the file.
fn segment(segment: &serde_path_to_error::Segment) -> Option<String> {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

impl<S: Stage + 'static> Configured for Ready<S> {
    fn canonical(&self) -> &Json {
        &self.canonical
    }

    fn given(&self) -> &Json {
        &self.given
    }

    fn reads(&self) -> Result<Vec<InputPath>, Error> {
        S::reads(&self.parameters)
    }

    fn observes(&self) -> bool {
        S::observes(&self.parameters)
    }

    fn programs(&self) -> Vec<String> {
        S::programs(&self.parameters)
    }

    fn commands(&self) -> Vec<String> {
        S::commands(&self.parameters)
    }

    fn run(self: Box<Self>, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        S::run(self.parameters, inputs, cx)
    }
}

/// An artifact kind, its type erased.
pub(crate) struct KindEntry {
    /// Name, such as `task-graph`.
    pub(crate) name: &'static str,
    /// What metrics of this kind say, in one line.
    pub(crate) headline: fn(&BTreeMap<String, f64>) -> Option<String>,
    read: fn(&Path) -> Result<Value, ArtifactError>,
    write: fn(&Path, &Value) -> Option<Result<Folder, ArtifactError>>,
}

impl KindEntry {
    const fn of<C: Codec>() -> Self {
        Self { name: <C as Artifact>::KIND, headline: C::headline, read: read::<C>, write: write::<C> }
    }

    /// Reads an artifact of this kind and checks it.
    pub(crate) fn read(&self, path: &Path) -> Result<Value, ArtifactError> {
        (self.read)(path)
    }

    /// Writes a value of this kind into an empty folder; `None` if the value is of another kind.
    pub(crate) fn write(&self, path: &Path, value: &Value) -> Option<Result<Folder, ArtifactError>> {
        (self.write)(path, value)
    }
}

fn read<C: Codec>(path: &Path) -> Result<Value, ArtifactError> {
    Folder::read::<C>(path).map(|value| Arc::new(value) as Value)
}

fn write<C: Codec>(path: &Path, value: &Value) -> Option<Result<Folder, ArtifactError>> {
    value.downcast_ref::<C>().map(|value| Folder::write(path, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_is_listed_once() {
        let kinds: BTreeSet<_> = STAGES.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds.len(), STAGES.len());
    }

    #[test]
    fn a_kind_that_the_build_has_left_out_names_its_feature() {
        let features: [(_, _, &[_]); 3] = [
            ("route", false, &["route/"]),
            ("schedule", true, &["schedule/"]),
            ("training", false, &["launch/torch"]),
        ];
        for (kind, feature) in [("route/map", "`route`"), ("launch/torch", "`training`")] {
            assert!(missing_from(&features, kind).unwrap().contains(feature), "{kind}");
        }
        for kind in ["schedule/list", "launch/file", "route"] {
            assert_eq!(missing_from(&features, kind), None, "{kind}");
        }
        for (feature, is_built, begins) in FEATURES {
            for begin in begins {
                let has_stages = STAGES.iter().any(|entry| entry.kind.starts_with(begin));
                assert_eq!(has_stages, is_built, "{feature} {begin}");
            }
        }
    }

    #[test]
    fn every_port_carries_a_known_kind_and_every_stage_gives_something() {
        for entry in STAGES.iter() {
            assert!(entry.ports(Direction::Out).count() > 0, "{} gives nothing", entry.kind);
            for port in entry.ports {
                assert!(kind(port.kind).is_some(), "{}: unknown kind {}", entry.kind, port.kind);
            }
        }
    }

    #[test]
    fn a_preset_gives_what_is_not_given_and_keys_have_all_of_it() {
        let canonical = |kind: &str, given: Json| {
            stage(kind).unwrap().configure(given).map(|ready| ready.canonical().clone())
        };
        let paper = canonical("map/annealing", json!({ "preset": "paper" })).unwrap();
        assert_eq!((&paper["cooling"], &paper["local_search"]), (&json!("cauchy"), &json!(false)));
        let own =
            canonical("map/annealing", json!({ "preset": "paper", "cooling": "proportional" })).unwrap();
        assert_eq!((&own["cooling"], &own["local_search"]), (&json!("proportional"), &json!(false)));
        // Another process uses the parameters of the key.
        assert_eq!(canonical("map/annealing", own.clone()).unwrap(), own);
        let composite = canonical("map/composite", json!({ "preset": "paper" })).unwrap();
        assert_eq!(
            (&composite["annealing"]["iteration"], &composite["genetic"]["mutate_clones"]),
            (&json!("candidate"), &json!(false))
        );
        let own = json!({ "preset": "paper", "annealing": { "cooling": "proportional" } });
        let own = canonical("map/composite", own).unwrap();
        let annealing = &own["annealing"];
        let expected = (&json!("proportional"), &json!("candidate"));
        assert_eq!((&annealing["cooling"], &annealing["iteration"]), expected);
        let unknown = canonical("map/genetic", json!({ "preset": "papers" })).unwrap_err();
        assert!(unknown.message.contains("`papers`"), "{}", unknown.message);
    }

    #[test]
    fn every_parameter_is_described() {
        for entry in STAGES.iter() {
            for (name, schema) in entry.schema["properties"].as_object().into_iter().flatten() {
                assert!(schema["description"].is_string(), "{}: `{name}` has no description", entry.kind);
            }
        }
    }
}
