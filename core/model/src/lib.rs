//! What hopmap's stages exchange, and the trait every stage implements.
//!
//! Pure types: no file formats, no Arrow, no printing. A stage takes values of these types through its ports
//! and gives back others; `hopmap-artifact` turns them into Parquet and back.
//!
//! Units are seconds, bytes and bytes per second throughout. Ranks, slots and nodes are dense indexes from zero.

mod checkpoint_series;
mod checkpoint_store;
mod collectives;
mod communicator;
mod context;
mod costs;
mod deltas;
mod demands;
mod diagnosis;
mod events;
mod input_file;
mod input_path;
mod launch_file;
mod library;
mod mapping;
mod measurements;
mod metrics;
mod node_traits;
mod paths;
mod route_costs;
mod routes;
mod routing;
mod schedule;
mod seed;
mod stage;
mod system_graph;
mod task_dag;
mod task_graph;
mod text_file;
mod trace_archive;
mod trace_summary;
mod weight;
mod weight_choice;

pub use checkpoint_series::CheckpointSeries;
pub use checkpoint_store::{CheckpointStore, StoredCheckpoint};
pub use collectives::{CollectiveCalls, CollectiveOperation, CollectiveTable, CollectiveTableError};
pub use communicator::Communicator;
pub use context::{Context, Observer};
pub use costs::{Costs, CostsError};
pub use deltas::{CheckpointDelta, DeltaRule, Deltas, RuleTotals};
pub use demands::{Demands, DemandsError, ProcessDemand, Stream};
pub use diagnosis::{Cause, Diagnosis, Failure, Failures, Part};
pub use events::Events;
pub use input_file::{InputError, InputRecord, open_input, open_input_itself, read_input};
pub use input_path::{INPUT_PATH_FORMAT, InputPath};
pub use launch_file::LaunchFile;
pub use library::{Library, NotBuilt};
pub use mapping::{ConvergencePoint, HostSlots, Mapping, MappingError, Placement};
pub use measurements::{Endpoint, Fit, Measurements, MeasurementsError, Pair, ProbePhase, Sample};
pub use metrics::{Metrics, PlacementMetrics, PlacementOrigin};
pub use node_traits::{NodeTraits, SwitchType};
pub use paths::{Paths, Tree};
pub use route_costs::{RouteCosts, RouteMetric};
pub use routes::{Counting, Route, Routes, TableEntry, Tables, TablesError};
pub use routing::{Forward, Routing, Ties};
pub use schedule::{DelayModel, Processor, Schedule, ScheduleError, ScheduledTask};
pub use seed::seed_stream;
pub use stage::{
    Arity, Artifact, Direction, Error, Input, Inputs, Outcome, Outputs, Port, PortError, Stage, Value,
};
pub use system_graph::{
    CostModel, Levels, Link, LinkState, Matrix, Node, NodeKind, NodeState, Slot, SystemGraph,
    SystemGraphError,
};
pub use task_dag::{Dependency, Task, TaskDag, TaskDagError, WorkUnit};
pub use task_graph::{Edge, Phase, Process, SizeBin, TaskGraph, TaskGraphError};
pub use text_file::TextFile;
pub use trace_archive::{Keeper, TraceArchive};
pub use trace_summary::{PhaseSummary, RankSummary, TraceSummary};
pub use weight::Weight;
pub use weight_choice::{NetworkSpeed, UnknownSpeed, WeightChoice, WeightName};
