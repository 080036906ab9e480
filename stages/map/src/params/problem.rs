//! Parameters of the problem: objective and constraints.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hopmap_model::{Error, ProcessDemand, SystemGraph, TaskGraph, Weight, WeightChoice};
use hopmap_objective::{Constraints, Location, Objective, Problem, check_weight};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blocks::{Blocks, Contraction};
use crate::error::MapError;

/// Parameters shared by all mappers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProblemParams<'a> {
    pub(crate) weight: WeightChoice,
    pub(crate) objective: Objective,
    pub(super) pinned: &'a [Pin],
    pub(super) forbidden: &'a [String],
    pub(crate) blocks: Option<&'a Blocks>,
    pub(crate) borders: &'a BTreeMap<String, u32>,
    pub(super) devices_per_rank: &'a BTreeMap<String, u32>,
    pub(super) ignore_performance: bool,
}

impl ProblemParams<'_> {
    /// Checks the parameters without a program and a machine.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_weight(self.weight.or(0.0, 1.0))?;
        self.objective.check()?;
        self.constraints()?;
        if let Some((device, _)) = self.devices_per_rank.iter().find(|(_, count)| **count == 0) {
            let problem = format!("a rank reserves no `{device}` in `devices_per_rank`");
            return Err(MapError::new(problem, "give at least one, or omit the device").into());
        }
        if !(self.borders.is_empty() || self.pinned.is_empty()) {
            let problem = "groups within `borders` are placed as a whole, which pinned ranks prevent";
            return Err(MapError::new(problem, "omit `pinned` or `borders`").into());
        }
        if !self.borders.is_empty() && self.objective.t > 0.0 {
            let problem =
                "groups within `borders` are placed as a whole, which hides the contribution of a rank to F";
            return Err(MapError::new(problem, "omit `borders`, or the metric T from `objective`").into());
        }
        self.blocks.map_or(Ok(()), |blocks| Ok(blocks.check(&self.objective)?))
    }

    /// The same with another objective.
    pub(crate) fn with_objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Builds the mapping problem of a program and a machine, without blocks.
    pub(crate) fn problem(
        &self,
        graph: &TaskGraph,
        system: &SystemGraph,
        weight: Weight,
    ) -> Result<Problem, Error> {
        let problem = Problem::with_objective(graph, system, weight, &self.objective)?;
        let rooms = self.rooms(system)?;
        let beyond = |((_, first, slots), room): ((u32, u32, u32), u32)| first + room..first + slots;
        let closed = system.hosts().zip(rooms).flat_map(beyond).collect();
        Ok(problem.with_constraints(&Constraints { closed, ..self.constraints()? }, system)?)
    }

    /// The number of ranks for which every host has slots and devices.
    pub(crate) fn rooms(&self, system: &SystemGraph) -> Result<Vec<u32>, MapError> {
        let devices = |host: u32| &system.nodes[host as usize].traits.devices;
        let is_unknown = |name: &str| !system.hosts().any(|(host, ..)| devices(host).contains_key(name));
        if let Some(name) = self.devices_per_rank.keys().find(|name| is_unknown(name)) {
            let problem = format!("the machine does not say how many `{name}` its hosts have");
            let help = "name the devices of hosts in graph JSON (`topology/export`, then `topology/import`), or limit the slots of every host by `slots_per_host` of select/nodes";
            return Err(MapError::new(problem, help));
        }
        let room = |(host, _, slots): (u32, u32, u32)| {
            let of_device = |(name, count): (&String, &u32)| {
                devices(host).get(name).map_or(0, |all| all.checked_div(*count).unwrap_or(0))
            };
            self.devices_per_rank.iter().map(of_device).fold(slots, u32::min)
        };
        Ok(system.hosts().map(room).collect())
    }

    /// Checks that the hosts do not differ in performance, which no metric counts.
    pub(crate) fn check_performance(&self, system: &SystemGraph) -> Result<(), MapError> {
        let hosts = system.hosts().map(|(host, ..)| &system.nodes[host as usize]);
        let mut open = hosts.filter(|host| !self.forbidden.contains(&host.name));
        let Some(first) = open.next().filter(|_| !self.ignore_performance) else { return Ok(()) };
        match open.find(|host| host.traits.performance != first.traits.performance) {
            None => Ok(()),
            Some(other) => {
                let problem = format!(
                    "hosts `{}` and `{}` differ in performance, which this objective does not count",
                    first.name, other.name
                );
                let help = "use `objective = \"predicted-time\"` of map/auto, select hosts that are alike, or set `ignore_performance = true`";
                Err(MapError::new(problem, help))
            }
        }
    }

    /// Builds the problem of blocks and hosts.
    pub(crate) fn problem_of_blocks(
        &self,
        contraction: &Contraction,
        system: &SystemGraph,
        weight: Weight,
    ) -> Result<Problem, Error> {
        let Contraction { graph, system: hosts, .. } = contraction;
        let problem = Problem::with_objective(graph, hosts, weight, &self.objective)?;
        Ok(problem.with_constraints(&contraction.constraints(&self.constraints()?, system)?, hosts)?)
    }

    fn constraints(&self) -> Result<Constraints, MapError> {
        let pinned = self.pinned.iter().map(Pin::place).collect::<Result<_, _>>()?;
        Ok(Constraints { pinned, forbidden: self.forbidden.to_vec(), closed: Vec::new() })
    }
}

/// Checks that no process has demands of its own on its host, which searches do not count. Performance that every
/// slot of a host provides needs no check of its own: a rank has a slot to itself.
pub(crate) fn check_demands(graph: &TaskGraph, system: &SystemGraph) -> Result<(), MapError> {
    let per_slot = |(node, _, slots): (u32, u32, u32)| {
        system.nodes[node as usize].traits.performance.unwrap_or(0.0) / f64::from(slots)
    };
    let available = system.hosts().map(per_slot).fold(f64::INFINITY, f64::min);
    let is_demanding = |demand: &&ProcessDemand| {
        let ProcessDemand { performance, capabilities, devices, host, .. } = demand;
        *performance > available || !capabilities.is_empty() || !devices.is_empty() || host.is_some()
    };
    match graph.demands.processes.iter().find(is_demanding) {
        None => Ok(()),
        Some(demand) => {
            let problem =
                format!("process `{}` has demands on its host, which mappers do not count", demand.name);
            Err(MapError::new(problem, "use route/map, which honours demands"))
        }
    }
}

/// A rank pinned to a slot, or to any slot of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The rank, from 0.
    pub rank: u32,
    /// The slot, from 0.
    #[serde(default)]
    pub slot: Option<u32>,
    /// The name of the host.
    #[serde(default)]
    pub host: Option<String>,
}

impl Pin {
    fn place(&self) -> Result<hopmap_objective::Pin, MapError> {
        let rank = self.rank;
        let place = match (self.slot, &self.host) {
            (Some(slot), None) => Location::Slot(slot),
            (None, Some(host)) => Location::Host(host.clone()),
            (Some(_), Some(_)) => {
                let problem = format!("rank {rank} in `pinned` has both `slot` and `host`");
                return Err(MapError::new(problem, "give one of the two"));
            }
            (None, None) => {
                let problem = format!("rank {rank} in `pinned` has neither `slot` nor `host`");
                return Err(MapError::new(problem, "give `slot` or `host`"));
            }
        };
        Ok(hopmap_objective::Pin { rank, place })
    }
}

/// Names of the metrics in a pipeline file.
const NAMES: &[&str] = &Objective::NAMES;

/// Names of the objectives that count what ranks wait for, rather than sums and maxima of messages.
const MAKESPAN: &str = "makespan";
const PREDICTED_TIME: &str = "predicted-time";

/// All names: metrics, and the first of these that a stage supports.
const ALL_NAMES: &[&str] = &{
    let mut names = [MAKESPAN; NAMES.len() + 2];
    let mut index = 0;
    while index < NAMES.len() {
        names[index] = NAMES[index];
        index += 1;
    }
    names[index + 1] = PREDICTED_TIME;
    names
};

/// Objective function: the name of a metric, or a table of weights.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Goal(pub Objective);

/// Objective of a stage that also supports the first `TIMES` of the makespan and the predicted run time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimedGoal<const TIMES: usize> {
    /// Metrics.
    Metrics(Goal),
    /// The time at which the last task of a traced program finishes.
    Makespan,
    /// The run time that a replay of the program predicts.
    PredictedTime,
}

/// Objective of `map/auto`.
pub type AutoGoal = TimedGoal<2>;
/// Objective of `map/exact` and `map/tabu`.
pub type TaskGoal = TimedGoal<1>;

impl<const TIMES: usize> TimedGoal<TIMES> {
    /// The objective in metrics; F of the others.
    pub(super) fn of_metrics(self) -> Objective {
        match self {
            Self::Metrics(goal) => goal.0,
            Self::Makespan | Self::PredictedTime => Objective::F,
        }
    }

    /// The names that the stage supports.
    fn names() -> &'static [&'static str] {
        &ALL_NAMES[..NAMES.len() + TIMES]
    }
}

impl<const TIMES: usize> Default for TimedGoal<TIMES> {
    fn default() -> Self {
        Self::Metrics(Goal::default())
    }
}

impl<const TIMES: usize> From<Objective> for TimedGoal<TIMES> {
    fn from(objective: Objective) -> Self {
        Self::Metrics(Goal(objective))
    }
}

impl<const TIMES: usize> Serialize for TimedGoal<TIMES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Metrics(goal) => goal.serialize(serializer),
            Self::Makespan => serializer.serialize_str(MAKESPAN),
            Self::PredictedTime => serializer.serialize_str(PREDICTED_TIME),
        }
    }
}

impl<'de, const TIMES: usize> Deserialize<'de> for TimedGoal<TIMES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GoalVisitor::<TIMES>)
    }
}

impl<const TIMES: usize> JsonSchema for TimedGoal<TIMES> {
    fn schema_name() -> Cow<'static, str> {
        format!("TimedGoal{TIMES}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(Self::names())
    }
}

impl Goal {
    /// The objective in metrics.
    pub(super) fn of_metrics(self) -> Objective {
        self.0
    }

    /// A single metric.
    fn only(name: &str) -> Option<Self> {
        let weights = Objective::NAMES.map(|other| f64::from(u8::from(other == name)));
        NAMES.contains(&name).then(|| Self(Objective::of_weights(weights)))
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(name) = NAMES.iter().find(|name| Self::only(name) == Some(*self)) {
            return serializer.serialize_str(name);
        }
        let weights = NAMES.iter().zip(self.0.weights()).filter(|(_, weight)| *weight != 0.0);
        let mut map = serializer.serialize_map(None)?;
        for (name, weight) in weights {
            map.serialize_entry(name, &weight)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Goal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let goal = deserializer.deserialize_any(GoalVisitor::<0>)?;
        Ok(Self(goal.of_metrics()))
    }
}

/// Reads a name or a table of weights.
struct GoalVisitor<const TIMES: usize>;

impl<'de, const TIMES: usize> Visitor<'de> for GoalVisitor<TIMES> {
    type Value = TimedGoal<TIMES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::Value::names().iter().try_for_each(|name| write!(f, "`{name}`, "))?;
        f.write_str("or a table with a weight for some of these")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let names = Self::Value::names();
        match name {
            MAKESPAN if names.contains(&name) => Ok(TimedGoal::Makespan),
            PREDICTED_TIME if names.contains(&name) => Ok(TimedGoal::PredictedTime),
            _ => Goal::only(name).map(TimedGoal::Metrics).ok_or_else(|| E::unknown_variant(name, names)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut weights = [0.0; NAMES.len()];
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let index = NAMES.iter().position(|other| *other == name);
            let index = index.ok_or_else(|| de::Error::unknown_field(&name, NAMES))?;
            weights[index] = map.next_value()?;
        }
        Ok(Objective::of_weights(weights).into())
    }
}

impl JsonSchema for Goal {
    fn schema_name() -> Cow<'static, str> {
        "Goal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(NAMES)
    }
}

/// The schema of an objective with these names.
fn schema(names: &[&str]) -> Schema {
    let weight = json_schema!({ "type": "number", "minimum": 0.0 });
    let weights: BTreeMap<&str, &Schema> = NAMES.iter().map(|&name| (name, &weight)).collect();
    json_schema!({
        "description": "What a mapper minimises: a metric by its name, or the weights of several.",
        "anyOf": [
            { "type": "string", "enum": names },
            {
                "type": "object",
                "properties": weights,
                "additionalProperties": false,
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Goal {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn names_and_weights_round_trip() {
        for text in [r#""F""#, r#""T""#, r#""hop-bytes""#, r#""max-link-load""#, r#"{"F":1.0,"T":0.5}"#] {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
        assert_eq!(read(r#""hop-bytes""#).0, Objective::HOP_BYTES);
        assert_eq!(read(r#"{"max-link-load": 1}"#).0, Objective::MAX_LINK_LOAD);
        assert_eq!(Goal::default(), read(r#""F""#));
    }

    #[test]
    fn only_some_stages_minimise_times() {
        let read = |text: &str| serde_json::from_str::<AutoGoal>(text);
        assert_eq!(read(r#""predicted-time""#).unwrap(), AutoGoal::PredictedTime);
        assert_eq!(serde_json::to_string(&AutoGoal::PredictedTime).unwrap(), r#""predicted-time""#);
        assert_eq!(read(r#"{"T": 1}"#).unwrap(), Objective::T.into());
        assert_eq!(serde_json::to_string(&AutoGoal::default()).unwrap(), r#""F""#);
        assert!(read(r#""G""#).unwrap_err().to_string().contains("`makespan`, `predicted-time`"));
        let exact = |text: &str| serde_json::from_str::<TaskGoal>(text);
        assert_eq!(exact(r#""makespan""#).unwrap(), TaskGoal::Makespan);
        assert!(exact(r#""predicted-time""#).unwrap_err().to_string().contains("`makespan` at line"));
        for time in ["makespan", "predicted-time"] {
            assert!(serde_json::from_str::<Goal>(&format!("\"{time}\"")).is_err());
        }
    }

    #[test]
    fn other_values_are_refused_by_name() {
        let refused = |text: &str| serde_json::from_str::<Goal>(text).unwrap_err().to_string();
        assert!(refused(r#""G""#).contains("unknown variant `G`, expected one of `F`, `T`"));
        assert!(refused(r#"{"hops": 1}"#).contains("unknown field `hops`, expected one of `F`"));
        assert!(refused("7").contains("or a table with a weight"));
    }
}
