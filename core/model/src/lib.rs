//! The data that hopmap's stages exchange, and the trait that every stage implements.
//!
//! Pure types: no file formats, no Arrow, no printing. A stage takes values of these types from its input
//! ports and returns others; `hopmap-artifact` converts them to Parquet and back.
//!
//! Units are seconds, bytes and bytes per second throughout. Ranks, slots and nodes are dense indexes from zero.

mod calibration;
mod collectives;
mod context;
mod costs;
mod deltas;
mod faults;
mod files;
mod groups;
mod input_file;
mod mapping;
mod measurements;
mod named;
mod numbers;
mod parameters;
mod paths;
mod prediction;
mod program;
mod routes;
mod schedule;
mod stage;
mod system_graph;
mod task_dag;
mod task_graph;
mod trials;
mod weight;

pub use calibration::{CalibratedCost, CalibrationError, CostName};
pub use collectives::{CollectiveCalls, CollectiveOperation, CollectiveTable, CollectiveTableError};
pub use context::{Communicator, Context, Error, Launcher, Observer, seed_stream};
pub use costs::{Costs, CostsError};
pub use deltas::{CheckpointDelta, DeltaRule, Deltas, RuleTotals, SAVING_AGAINST_FIRST, first_as_base};
pub use faults::{
    InternalError, OutOfRange, is_bandwidth, is_cost, is_time, require, require_above_zero, to_u32,
};
pub use files::{
    CheckpointSeries, CheckpointStore, FileSet, Keeper, LaunchFile, StoredCheckpoint, TextFile, TraceArchive,
};
pub use groups::{distances_from_hosts, fill_rates};
pub use input_file::{
    INPUT_PATH_FORMAT, InputError, InputPath, InputRecord, open_input, open_input_itself, read_input,
};
pub use mapping::{
    ConvergencePoint, HostSlots, MEASURED, MEASURED_HIGH, MEASURED_LOW, Mapping, MappingError, Metrics,
    PREDICTED, Placement, PlacementMetrics, PlacementOrigin,
};
pub use measurements::{
    Call, CallTime, Endpoint, Fit, Measurements, MeasurementsError, Pair, ProbePhase, Sample, StreamRate,
};
pub use numbers::{number, numbers, numbers_schema, one_or_several};
pub use paths::{Paths, Tree};
pub use prediction::{Activity, Interval, LinkUse, Prediction, PredictionError, RankTimes};
pub use program::{
    APPROXIMATE, Action, Collective, Envelope, Interned, Operation, OperationKind, OperationProblem, Program,
    ProgramBuilder, ProgramError, ProgramTotals,
};
pub use routes::{
    Cause, Counting, Diagnosis, Failure, Failures, Part, Route, Routes, TableEntry, Tables, TablesError,
};
pub use schedule::{DelayModel, Processor, Schedule, ScheduleError, ScheduledTask};
pub use stage::{
    Arity, Artifact, BOUND_PORT, Direction, Input, Inputs, Library, MOST_GAIN, NotBuilt, Outcome, Outputs,
    Port, PortError, Stage, Value,
};
pub use system_graph::{
    CostModel, Forward, Levels, Link, LinkState, Matrix, Node, NodeKind, NodeState, NodeTraits, RouteCosts,
    RouteMetric, Routing, Slot, SwitchType, SystemGraph, SystemGraphError, Ties,
};
pub use task_dag::{Dependency, Task, TaskDag, TaskDagError, WorkUnit};
pub use task_graph::{
    Demands, DemandsError, Edge, Events, Phase, PhaseSummary, Process, ProcessDemand, RankSummary, SizeBin,
    Stream, TaskGraph, TaskGraphError, TraceSummary,
};
pub use trials::{NOT_PREPARED, TIMED_OUT, TrialMapping, TrialRun, Trials, TrialsError};
pub use weight::{NetworkSpeed, UnknownSpeed, Weight, WeightChoice, WeightName};
