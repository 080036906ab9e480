//! The stages, commands and artifact kinds of this build. The only file that lists them.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use hopmap_artifact::{ArtifactError, Codec, Folder};
use hopmap_command::CommandEntry;
use hopmap_model::{
    Artifact, CheckpointSeries, CheckpointStore, Context, Deltas, Diagnosis, Direction, Error, Events,
    Failures, InputPath, Inputs, LaunchFile, Library, Mapping, Measurements, Metrics, Outcome, Port, Routes,
    Schedule, Stage, SystemGraph, Tables, TaskDag, TaskGraph, TextFile, TraceArchive, TraceSummary, Value,
};
use serde_json::Value as Json;

/// All stages, in the order in which people meet them.
pub static STAGES: LazyLock<Vec<StageEntry>> = LazyLock::new(|| {
    vec![
        StageEntry::of::<hopmap_trace::Otf2>(),
        StageEntry::of::<hopmap_trace::ListEvents>(),
        StageEntry::of::<hopmap_trace::Dag>(),
        StageEntry::of::<hopmap_trace::Replay>(),
        StageEntry::of::<hopmap_trace::Otf>(),
        StageEntry::of::<hopmap_trace::Csv>(),
        StageEntry::of::<hopmap_trace::Import>(),
        StageEntry::of::<hopmap_trace::Export>(),
        StageEntry::of::<hopmap_trace::Summary>(),
        StageEntry::of::<hopmap_trace::Generate>(),
        StageEntry::of::<hopmap_topology::Synthetic>(),
        StageEntry::of::<hopmap_topology::Probe>(),
        StageEntry::of::<hopmap_topology::LevelsStage>(),
        StageEntry::of::<hopmap_topology::import::Import>(),
        StageEntry::of::<hopmap_topology::import::Netloc>(),
        StageEntry::of::<hopmap_topology::import::Ibnetdiscover>(),
        StageEntry::of::<hopmap_topology::import::Omnipath>(),
        StageEntry::of::<hopmap_topology::import::Hwloc>(),
        StageEntry::of::<hopmap_topology::import::Slurm>(),
        StageEntry::of::<hopmap_topology::import::Simgrid>(),
        StageEntry::of::<hopmap_topology::import::Scotch>(),
        StageEntry::of::<hopmap_topology::import::Parus>(),
        StageEntry::of::<hopmap_topology::import::Matrices>(),
        StageEntry::of::<hopmap_topology::export::Export>(),
        StageEntry::of::<hopmap_select::Nodes>(),
        StageEntry::of::<hopmap_select::Hosts>(),
        StageEntry::of::<hopmap_stored::Stored<TaskGraph>>(),
        StageEntry::of::<hopmap_stored::Stored<SystemGraph>>(),
        StageEntry::of::<hopmap_stored::Stored<Mapping>>(),
        StageEntry::of::<hopmap_stored::Stored<Measurements>>(),
        StageEntry::of::<hopmap_instance::Qaplib>(),
        StageEntry::of::<hopmap_instance::TaillardE>(),
        StageEntry::of::<hopmap_instance::Stencil>(),
        StageEntry::of::<hopmap_instance::Graph>(),
        StageEntry::of::<hopmap_instance::Geometric>(),
        StageEntry::of::<hopmap_instance::RandomGraph>(),
        StageEntry::of::<hopmap_instance::PowerLaw>(),
        StageEntry::of::<hopmap_map::LinearStage>(),
        StageEntry::of::<hopmap_map::RoundRobinStage>(),
        StageEntry::of::<hopmap_map::RandomStage>(),
        StageEntry::of::<hopmap_map::AnnealingStage>(),
        StageEntry::of::<hopmap_map::GeneticStage>(),
        StageEntry::of::<hopmap_map::CompositeStage>(),
        StageEntry::of::<hopmap_map::TabuStage>(),
        StageEntry::of::<hopmap_map::ExactStage>(),
        StageEntry::of::<hopmap_map::ExternalStage>(),
        StageEntry::of::<hopmap_map::HierarchicalStage>(),
        StageEntry::of::<hopmap_map::ImportStage>(),
        StageEntry::of::<hopmap_map::AutoStage>(),
        StageEntry::of::<hopmap_route::ImportStage>(),
        StageEntry::of::<hopmap_route::DemandsStage>(),
        StageEntry::of::<hopmap_route::BuildStage>(),
        StageEntry::of::<hopmap_route::TablesStage>(),
        StageEntry::of::<hopmap_route::MapStage>(),
        StageEntry::of::<hopmap_route::FailuresStage>(),
        StageEntry::of::<hopmap_route::CheckStage>(),
        StageEntry::of::<hopmap_route::ModelStage>(),
        StageEntry::of::<hopmap_route::ExportStage>(),
        StageEntry::of::<hopmap_schedule::ImportStage>(),
        StageEntry::of::<hopmap_schedule::ListStage>(),
        StageEntry::of::<hopmap_schedule::GeneticStage>(),
        StageEntry::of::<hopmap_schedule::ExactStage>(),
        StageEntry::of::<hopmap_schedule::AutoStage>(),
        StageEntry::of::<hopmap_schedule::CheckStage>(),
        StageEntry::of::<hopmap_schedule::ExportStage>(),
        StageEntry::of::<hopmap_schedule::MappingStage>(),
        StageEntry::of::<hopmap_evaluate::MappingStage>(),
        StageEntry::of::<hopmap_evaluate::AccuracyStage>(),
        StageEntry::of::<hopmap_evaluate::CollectivesStage>(),
        StageEntry::of::<hopmap_launch::Machinefile>(),
        StageEntry::of::<hopmap_launch::Rankfile>(),
        StageEntry::of::<hopmap_launch::Hostfile>(),
        StageEntry::of::<hopmap_launch::Slurm>(),
        StageEntry::of::<hopmap_launch::Cray>(),
        StageEntry::of::<hopmap_checkpoint::DeltaStage>(),
        StageEntry::of::<hopmap_checkpoint::StoreStage>(),
        StageEntry::of::<hopmap_checkpoint::Generate>(),
        #[cfg(test)]
        StageEntry::of::<crate::engine::tests::SearchStage>(),
        #[cfg(test)]
        StageEntry::of::<crate::engine::tests::TextStage>(),
        #[cfg(test)]
        StageEntry::of::<crate::engine::cores_tests::CrowdStage>(),
    ]
});

/// The commands of stage crates, in the order of the help.
pub static COMMANDS: &[CommandEntry] = &[
    CommandEntry::of::<hopmap_topology::agent::AgentCommand>(),
    CommandEntry::group(
        "checkpoint",
        "Keep checkpoints of programs in few bytes, and give them back",
        CHECKPOINT,
    ),
];

const CHECKPOINT: &[CommandEntry] = &[
    CommandEntry::of::<hopmap_checkpoint::commands::Init>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Add>(),
    CommandEntry::of::<hopmap_checkpoint::commands::List>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Restore>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Verify>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Prune>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Stats>(),
    CommandEntry::of::<hopmap_checkpoint::commands::Explain>(),
];

/// All artifact kinds.
pub static KINDS: &[KindEntry] = &[
    KindEntry::of::<TaskGraph>(),
    KindEntry::of::<TaskDag>(),
    KindEntry::of::<SystemGraph>(),
    KindEntry::of::<Mapping>(),
    KindEntry::of::<Schedule>(),
    KindEntry::of::<Routes>(),
    KindEntry::of::<Tables>(),
    KindEntry::of::<Diagnosis>(),
    KindEntry::of::<Failures>(),
    KindEntry::of::<Deltas>(),
    KindEntry::of::<Measurements>(),
    KindEntry::of::<Metrics>(),
    KindEntry::of::<LaunchFile>(),
    KindEntry::of::<TextFile>(),
    KindEntry::of::<TraceArchive>(),
    KindEntry::of::<CheckpointSeries>(),
    KindEntry::of::<CheckpointStore>(),
    KindEntry::of::<TraceSummary>(),
    KindEntry::of::<Events>(),
];

/// The stage of a kind such as `map/annealing`.
#[must_use]
pub fn stage(kind: &str) -> Option<&'static StageEntry> {
    STAGES.iter().find(|entry| entry.kind == kind)
}

/// The artifact kind of a name such as `task-graph`.
#[must_use]
pub fn kind(name: &str) -> Option<&'static KindEntry> {
    KINDS.iter().find(|entry| entry.name == name)
}

/// A stage, its type erased.
pub struct StageEntry {
    /// Crate and name.
    pub kind: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Enters the key.
    pub revision: u32,
    /// Inputs and outputs.
    pub ports: &'static [Port],
    /// Whether it can run as several processes.
    pub distributed: bool,
    /// Libraries that some values of its parameters need.
    pub libraries: &'static [&'static Library],
    /// JSON Schema of the parameters.
    pub schema: Json,
    configure: fn(Json) -> Result<Box<dyn Configured>, ParameterError>,
}

/// A value of a parameter is not what the stage takes.
#[derive(Debug)]
pub struct ParameterError {
    /// Where: keys and indexes from the outside in.
    pub path: Vec<String>,
    /// What is wrong with it.
    pub message: String,
    /// How to mend it, if the stage says so.
    pub help: Option<String>,
}

/// A stage together with its parameters.
pub trait Configured: Send + Sync {
    /// The parameters with all defaults filled in and no paths, as they enter the key.
    fn canonical(&self) -> &Json;
    /// The parameters as they were given, paths included: another process configures the same stage with them.
    fn given(&self) -> &Json;
    /// Every file behind a path parameter.
    fn reads(&self) -> Result<Vec<InputPath>, Error>;
    /// Whether the stage looks at the world.
    fn observes(&self) -> bool;
    /// Does the work.
    fn run(self: Box<Self>, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error>;
}

impl StageEntry {
    fn of<S: Stage + 'static>() -> Self {
        Self {
            kind: S::KIND,
            summary: S::SUMMARY,
            revision: S::REVISION,
            ports: S::ports(),
            distributed: S::distributed(),
            libraries: S::libraries(),
            schema: schemars::schema_for!(S::Params).into(),
            configure: configure::<S>,
        }
    }

    /// Reads the parameters. Paths among them are resolved already.
    pub fn configure(&self, parameters: Json) -> Result<Box<dyn Configured>, ParameterError> {
        (self.configure)(parameters)
    }

    /// The ports of one direction.
    pub fn ports(&self, direction: Direction) -> impl Iterator<Item = &'static Port> {
        self.ports.iter().filter(move |port| port.direction == direction)
    }

    /// The port of a name and direction.
    #[must_use]
    pub fn port(&self, direction: Direction, name: &str) -> Option<&'static Port> {
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
            message: error.into_inner().to_string(),
            help: None,
        })?;
    S::check(&parameters).map_err(|error| ParameterError {
        path: Vec::new(),
        message: error.to_string(),
        help: error.help().map(|help| help.to_string()),
    })?;
    let canonical = serde_json::to_value(&parameters).map_err(|error| ParameterError {
        path: Vec::new(),
        message: error.to_string(),
        help: None,
    })?;
    Ok(Box::new(Ready::<S> { parameters, canonical, given }))
}

/// What is given, and what its preset says of the rest.
fn completed<S: Stage>(given: &Json) -> Json {
    let mut all = given.clone();
    let preset = given.get(PRESET).and_then(Json::as_str).and_then(S::preset);
    let preset = preset.and_then(|preset| serde_json::to_value(preset).ok());
    if let (Some(all), Some(Json::Object(preset))) = (all.as_object_mut(), preset) {
        for (name, value) in preset {
            all.entry(name).or_insert(value);
        }
    }
    all
}

/// A step from the outside in, as [`ParameterError::path`] has it. The variant of an enumeration is no step in the file.
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

    fn run(self: Box<Self>, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        S::run(self.parameters, inputs, cx)
    }
}

/// An artifact kind, its type erased.
pub struct KindEntry {
    /// Name, such as `task-graph`.
    pub name: &'static str,
    read: fn(&Path) -> Result<Value, ArtifactError>,
    write: fn(&Path, &Value) -> Option<Result<Folder, ArtifactError>>,
}

impl KindEntry {
    const fn of<C: Codec>() -> Self {
        Self { name: <C as Artifact>::KIND, read: read::<C>, write: write::<C> }
    }

    /// Reads an artifact of this kind and checks it.
    pub fn read(&self, path: &Path) -> Result<Value, ArtifactError> {
        (self.read)(path)
    }

    /// Writes a value of this kind into an empty folder; `None` if the value is of another kind.
    pub fn write(&self, path: &Path, value: &Value) -> Option<Result<Folder, ArtifactError>> {
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
    fn every_kind_stands_once() {
        let kinds: BTreeSet<_> = STAGES.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds.len(), STAGES.len());
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
        assert_eq!((&paper["cooling"], &paper["descent"]), (&json!("cauchy"), &json!(false)));
        let own =
            canonical("map/annealing", json!({ "preset": "paper", "cooling": "proportional" })).unwrap();
        assert_eq!((&own["cooling"], &own["descent"]), (&json!("proportional"), &json!(false)));
        // What the key has is what another process goes by.
        assert_eq!(canonical("map/annealing", own.clone()).unwrap(), own);
        let composite = canonical("map/composite", json!({ "preset": "paper" })).unwrap();
        assert_eq!(
            (&composite["iteration"], &composite["mutate_clones"]),
            (&json!("candidate"), &json!(false))
        );
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
