//! `system-graph`: tables `nodes`, `links`, `slots`; `levels` with `groups` for costs by level and for costs
//! inside hosts with routed costs; `costs` for a matrix; `forwarding` for static tables; `traits`,
//! `capabilities` and `devices` where nodes have any; `calibration` if costs of messages are known.
//! `measurements`: tables `endpoints`, `samples` and `fits`; `overheads` and `streams` if they were measured.

use hopmap_model::{
    CalibratedCost, Call, CallTime, CostModel, CostName, Endpoint, Fit, Forward, Levels, Link, LinkState,
    Matrix, Measurements, Node, NodeKind, NodeState, NodeTraits, ProbePhase, RouteCosts, RouteMetric,
    Routing, Sample, Slot, StreamRate, SystemGraph, Ties, to_u32,
};

use super::traits::{Capability, DeviceOfNode, decode_traits, encode_traits};
use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;

impl Codec for SystemGraph {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str =
        "A machine topology: hosts, switches, links, slots, and the cost between slots.";
    const TABLES: &'static [TableForm] = &[
        Node::TABLE,
        Link::TABLE,
        Slot::TABLE,
        Level::TABLE,
        GroupOfSlot::TABLE,
        SlotCost::TABLE,
        Forward::TABLE,
        CalibratedCost::TABLE,
        NodeTraits::TABLE,
        Capability::TABLE,
        DeviceOfNode::TABLE,
    ];
    const METRICS: &'static [(&'static str, &'static str)] =
        &[("hosts", "number of hosts"), ("links", "number of directed links"), ("slots", "number of slots")];

    fn encode(&self) -> Contents {
        let contents = Contents::new()
            .table(Node::table(&self.nodes))
            .table(Link::table(&self.links))
            .table(Slot::table(&self.slots))
            .given(Forward::table(&self.routing.forwarding))
            .given(CalibratedCost::table(&self.calibration))
            .metric("hosts", self.hosts().count() as f64)
            .metric("links", self.links.len() as f64)
            .metric("slots", self.slots.len() as f64);
        let contents = match self.routing.ties {
            Ties::Spread => contents,
            Ties::First => contents.attribute("ties", "first".into()),
        };
        let contents = encode_traits(contents, &self.nodes);
        match &self.cost {
            CostModel::Levels(levels) => encode_levels(contents, levels).attribute("cost", "levels".into()),
            CostModel::Matrix(matrix) => encode_matrix(contents, matrix, self.slots.len()),
            CostModel::Routes(routes) => encode_levels(contents, &routes.inside)
                .attribute("cost", "routes".into())
                .attribute("metric", encode_metric(routes.metric)),
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let slots: Vec<Slot> = folder.rows()?;
        let cost = match folder.attribute::<String>("cost")?.as_str() {
            "levels" => CostModel::Levels(decode_levels(folder, slots.len())?),
            "matrix" => CostModel::Matrix(decode_matrix(folder, slots.len())?),
            "routes" => CostModel::Routes(RouteCosts {
                metric: decode_metric(folder)?,
                inside: decode_levels(folder, slots.len())?,
            }),
            other => return Err(folder.invalid(UnknownCostModel(other.to_owned()))),
        };
        let mut nodes: Vec<Node> = folder.rows()?;
        decode_traits(folder, &mut nodes)?;
        let system = Self {
            nodes,
            links: folder.rows()?,
            slots,
            cost,
            routing: Routing { forwarding: folder.given_rows()?, ties: decode_ties(folder)? },
            calibration: folder.given_rows()?,
        };
        system.check().map_err(|error| folder.invalid(error))?;
        Ok(system)
    }
}

value_names!(CostName = &CostName::NAMES);
value_names!(NodeKind: NodeKind::Host => "host", NodeKind::Switch => "switch");
value_names!(NodeState: NodeState::Up => "up", NodeState::Down => "down");
value_names!(LinkState: LinkState::Up => "up", LinkState::Down => "down");

table_rows!("nodes": Node [id = "node, from 0"] {
    name: String = "name of the host or switch",
    kind: NodeKind = "`host` or `switch`",
} given {
    state: NodeState = "`up` or `down`; written only if a node is down",
    address: Option<String> = "address in the fabric, where one is known",
} other traits);

table_rows!("links": Link {
    source: u32 = "node at which the link begins",
    destination: u32 = "node at which it ends",
    latency_s: Option<f64> = "latency in seconds",
    bandwidth_bytes_per_s: Option<f64> = "bandwidth in bytes per second",
} given {
    source_port: Option<u32> = "port at the source, where ports are known",
    destination_port: Option<u32> = "port at the destination, where ports are known",
    state: LinkState = "`up` or `down`; written only if a link is down",
});

table_rows!("slots": Slot [slot = "slot, from 0"] {
    host: u32 = "node of its host",
    core: u32 = "core of the host",
});

table_rows!("levels" if "for costs by level, and inside hosts where costs follow routes":
    struct Level [level = "level, from the innermost"] {
    cost: f64 = "cost between slots that first share this level",
});

table_rows!("groups" if "with `levels`": struct GroupOfSlot {
    level: u32 = "level",
    slot: u32 = "slot",
    group: u32 = "group of the slot on this level",
});

table_rows!("costs" if "for a matrix of costs": struct SlotCost {
    source: u32 = "slot that sends",
    destination: u32 = "slot that receives",
    cost: f64 = "cost from one to the other",
});

table_rows!("forwarding" if "for a fabric with static forwarding tables": Forward {
    node: u32 = "node that forwards",
    last as last_link: u32 = "link into the destination host: the address",
    link: u32 = "link that the node sends on",
});

table_rows!("calibration" if "for a measured machine (`topology/probe`, `topology/levels`)": CalibratedCost {
    cost: CostName = "`send`, `isend`, `recv`: seconds at the ends; `latency-factor`, `bandwidth-factor`; `eager-limit` in \
                      bytes; `memory-latency` and `memory-bandwidth` within a host",
    above_bytes: u64 = "the row applies to longer messages, up to the next row",
    value: f64 = "value for an empty message",
    per_byte: f64 = "what every byte adds",
});

fn encode_levels(contents: Contents, levels: &Levels) -> Contents {
    let groups = (0..).zip(&levels.groups).flat_map(|(level, groups)| {
        (0..).zip(groups).map(move |(slot, &group)| GroupOfSlot { level, slot, group })
    });
    let levels = levels.costs.iter().map(|&cost| Level { cost });
    contents.table(Level::table(levels)).table(GroupOfSlot::table(groups))
}

fn decode_levels(folder: &Folder, slots: usize) -> Result<Levels, ArtifactError> {
    let costs: Vec<f64> = folder.rows()?.into_iter().map(|Level { cost }| cost).collect();
    let table = folder.table(GroupOfSlot::TABLE.name)?;
    let wrong = || table.error("slot", "does not number the slots of every level consecutively");
    if Some(table.rows()) != slots.checked_mul(costs.len()) {
        return Err(wrong());
    }
    let mut groups = vec![Vec::with_capacity(slots); costs.len()];
    for (row, GroupOfSlot { level, slot, group }) in GroupOfSlot::read(&table)?.enumerate() {
        if level as usize != row / slots || slot as usize != row % slots {
            return Err(wrong());
        }
        groups[row / slots].push(group);
    }
    Ok(Levels { costs, groups })
}

fn encode_matrix(contents: Contents, matrix: &Matrix, slots: usize) -> Contents {
    let slots = to_u32(slots);
    let pairs = (0..slots).flat_map(|source| (0..slots).map(move |destination| (source, destination)));
    let costs = pairs.zip(&matrix.costs);
    let costs = costs.map(|((source, destination), &cost)| SlotCost { source, destination, cost });
    contents.attribute("cost", "matrix".into()).table(SlotCost::table(costs))
}

fn decode_matrix(folder: &Folder, slots: usize) -> Result<Matrix, ArtifactError> {
    let table = folder.table(SlotCost::TABLE.name)?;
    let wrong = || table.error("source", "does not list all pairs of slots in order");
    if slots.checked_mul(slots) != Some(table.rows()) {
        return Err(wrong());
    }
    let cost = |(row, SlotCost { source, destination, cost })| {
        let is_in_order = source as usize == row / slots && destination as usize == row % slots;
        is_in_order.then_some(cost).ok_or_else(wrong)
    };
    Ok(Matrix { costs: SlotCost::read(&table)?.enumerate().map(cost).collect::<Result<_, _>>()? })
}

/// The cost model is unknown to this version.
#[derive(Debug, thiserror::Error)]
#[error("unknown cost model `{0}`, expected levels, matrix or routes")]
struct UnknownCostModel(String);

fn encode_metric(metric: RouteMetric) -> serde_json::Value {
    match metric {
        RouteMetric::Time { bytes } => serde_json::json!({ "time": bytes }),
        _ => metric.name().into(),
    }
}

fn decode_metric(folder: &Folder) -> Result<RouteMetric, ArtifactError> {
    let value = folder.attribute::<serde_json::Value>("metric")?;
    match (value.as_str(), value.get("time").and_then(serde_json::Value::as_u64)) {
        (Some("hops"), _) => Ok(RouteMetric::Hops),
        (Some("latency"), _) => Ok(RouteMetric::Latency),
        (_, Some(bytes)) => Ok(RouteMetric::Time { bytes }),
        _ => Err(folder.invalid(UnknownMetric(value.to_string()))),
    }
}

/// The metric of routes is unknown to this version.
#[derive(Debug, thiserror::Error)]
#[error("unknown metric of routes `{0}`, expected hops, latency or time")]
struct UnknownMetric(String);

fn decode_ties(folder: &Folder) -> Result<Ties, ArtifactError> {
    match folder.description().attributes.contains_key("ties") {
        true if folder.attribute::<String>("ties")? == "first" => Ok(Ties::First),
        true => Err(folder.invalid(UnknownTies)),
        false => Ok(Ties::Spread),
    }
}

/// The rule for equal routes is unknown to this version.
#[derive(Debug, thiserror::Error)]
#[error("unknown rule for ties between routes, expected `first` or by destination")]
struct UnknownTies;

impl Codec for Measurements {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str = "Measured message times between hosts, and between the cores of a host.";
    const TABLES: &'static [TableForm] =
        &[Endpoint::TABLE, Sample::TABLE, Fit::TABLE, CallTime::TABLE, StreamRate::TABLE];
    const METRICS: &'static [(&'static str, &'static str)] = &[
        ("hosts", "number of hosts"),
        ("pairs", "pairs with a latency"),
        ("coverage", "fraction of the hosts that were measured"),
        ("eager_limit_bytes", "length from which a send between hosts waits for its receiver, if found"),
    ];

    fn encode(&self) -> Contents {
        let contents = Contents::new()
            .table(Endpoint::table(&self.endpoints))
            .table(Sample::table(&self.samples))
            .table(Fit::table(&self.fits))
            .given(CallTime::table(&self.calls))
            .given(StreamRate::table(&self.streams))
            .metric("hosts", self.hosts().count() as f64)
            .metric("pairs", self.latencies().len() as f64)
            .metric("coverage", self.coverage());
        match self.eager_limit {
            Some(bytes) => contents.metric(EAGER_LIMIT, bytes as f64),
            None => contents,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes; a cast of a float saturates"
    )]
    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let measured = Self {
            endpoints: folder.rows()?,
            samples: folder.rows()?,
            fits: folder.rows()?,
            calls: folder.given_rows()?,
            streams: folder.given_rows()?,
            eager_limit: folder.description().metrics.get(EAGER_LIMIT).map(|bytes| *bytes as u64),
        };
        measured.check().map_err(|error| folder.invalid(error))?;
        Ok(measured)
    }
}

value_names!(ProbePhase = &ProbePhase::NAMES);
value_names!(Call: Call::Send => "send", Call::Isend => "isend", Call::Recv => "recv");

/// The metric with the eager limit in bytes.
const EAGER_LIMIT: &str = "eager_limit_bytes";

table_rows!("endpoints": Endpoint [endpoint = "endpoint, from 0"] {
    host: String = "name of its host",
    core: u32 = "core of the host",
    state: NodeState = "`up`, or `down` if it did not answer",
});

table_rows!("samples": Sample {
    source: u32 = "endpoint that sends first",
    destination: u32 = "endpoint that replies",
    phase: ProbePhase = "`latency`, `isolated`, `loaded` or `alone`",
    bytes: u64 = "length of the messages",
    messages: u64 = "number of messages",
    minimum_s: f64 = "shortest time, in seconds",
    first_decile_s: f64 = "first decile",
    median_s: f64 = "median",
    ninth_decile_s: f64 = "ninth decile",
    maximum_s: f64 = "longest time",
});

table_rows!("fits": Fit {
    source: u32 = "endpoint that sends",
    destination: u32 = "endpoint that receives",
    from_bytes: u64 = "length from which this fit holds",
    latency_s: f64 = "L of t = L + D / S",
    bandwidth_bytes_per_s: Option<f64> = "S of t = L + D / S",
});

table_rows!("overheads" if "where MPI calls were measured": CallTime {
    source: u32 = "endpoint that calls",
    destination: u32 = "the other endpoint",
    call: Call = "`send`, `isend`, or `recv` of a message that has arrived",
    bytes: u64 = "length of the messages",
    messages: u64 = "number of messages",
    minimum_s: f64 = "shortest time of the call, in seconds",
    median_s: f64 = "median",
    maximum_s: f64 = "longest time",
});

table_rows!("streams" if "where all hosts of a group sent at once": StreamRate {
    step: u32 = "streams with the same number ran at once",
    source: u32 = "endpoint that sends",
    destination: u32 = "endpoint that receives",
    bytes: u64 = "of all its messages",
    seconds: f64 = "until the last message arrived; the streams of a step begin together",
});
