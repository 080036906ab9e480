//! `system-graph`: tables `nodes`, `links`, `slots`; `levels` with `groups` for costs by level and for costs
//! inside hosts with routed costs; `costs` for a matrix; `forwarding` for static tables; `traits`,
//! `capabilities` and `devices` where nodes have any; `calibration` if costs of messages are known.
//! `measurements`: tables `endpoints`, `samples` and `fits`; `overheads` and `streams` if they were measured.

use hopmap_model::{
    CalibratedCost, Call, CallTime, CostModel, CostName, Endpoint, Fit, Forward, Levels, Link, LinkState,
    Matrix, Measurements, Node, NodeKind, NodeState, ProbePhase, RouteCosts, RouteMetric, Routing, Sample,
    Slot, StreamRate, SystemGraph, Ties, to_u32,
};

use super::traits::{decode_traits, encode_traits};
use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for SystemGraph {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let nodes = Table::new("nodes")
            .u32("id", 0..to_u32(self.nodes.len()))
            .text("name", self.nodes.iter().map(|node| &node.name))
            .text("kind", self.nodes.iter().map(|node| Table::name_of(&KINDS, node.kind)));
        let nodes = encode_states(nodes, &self.nodes);
        let nodes = match self.nodes.iter().any(|node| node.address.is_some()) {
            true => nodes.optional_text("address", self.nodes.iter().map(|node| node.address.as_deref())),
            false => nodes,
        };
        let links = Table::new("links")
            .u32("source", self.links.iter().map(|link| link.source))
            .u32("destination", self.links.iter().map(|link| link.destination))
            .optional_f64("latency_s", self.links.iter().map(|link| link.latency_s))
            .optional_f64("bandwidth_bytes_per_s", self.links.iter().map(|link| link.bandwidth_bytes_per_s));
        let links = encode_ports(links, &self.links);
        let slots = Table::new("slots").u32("slot", 0..to_u32(self.slots.len()));
        let contents = Contents::new()
            .table(nodes)
            .table(links)
            .table(encode_slots(slots, &self.slots))
            .metric("hosts", self.hosts().count() as f64)
            .metric("links", self.links.len() as f64)
            .metric("slots", self.slots.len() as f64);
        let contents = encode_routing(encode_traits(contents, &self.nodes), &self.routing);
        let contents = match self.calibration.is_empty() {
            true => contents,
            false => contents.table(encode_calibration(Table::new("calibration"), &self.calibration)),
        };
        match &self.cost {
            CostModel::Levels(levels) => encode_levels(contents, levels).attribute("cost", "levels".into()),
            CostModel::Matrix(matrix) => encode_matrix(contents, matrix, self.slots.len()),
            CostModel::Routes(routes) => encode_levels(contents, &routes.inside)
                .attribute("cost", "routes".into())
                .attribute("metric", encode_metric(routes.metric)),
        }
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let slots = folder.table("slots")?;
        slots.index("slot")?;
        let slots = decode_slots(&slots)?;
        let cost = match folder.attribute::<String>("cost")?.as_str() {
            "levels" => CostModel::Levels(decode_levels(folder, slots.len())?),
            "matrix" => CostModel::Matrix(decode_matrix(folder, slots.len())?),
            "routes" => CostModel::Routes(RouteCosts {
                metric: decode_metric(folder)?,
                inside: decode_levels(folder, slots.len())?,
            }),
            other => return Err(folder.invalid(UnknownCostModel(other.to_owned()))),
        };
        let mut nodes = decode_nodes(&folder.table("nodes")?)?;
        decode_traits(folder, &mut nodes)?;
        let system = Self {
            nodes,
            links: decode_links(&folder.table("links")?)?,
            slots,
            cost,
            routing: decode_routing(folder)?,
            calibration: match folder.optional_table("calibration")? {
                Some(table) => decode_calibration(&table)?,
                None => Vec::new(),
            },
        };
        system.check().map_err(|error| folder.invalid(error))?;
        Ok(system)
    }
}

const COSTS: [(CostName, &str); 8] = CostName::NAMES;
const KINDS: [(NodeKind, &str); 2] = [(NodeKind::Host, "host"), (NodeKind::Switch, "switch")];
const LINK_STATES: [(LinkState, &str); 2] = [(LinkState::Up, "up"), (LinkState::Down, "down")];

rows!(encode_calibration, decode_calibration: CalibratedCost {
    text cost in COSTS,
    u64 above_bytes,
    f64 value,
    f64 per_byte,
});

rows!(encode_slots, decode_slots: Slot { u32 host, u32 core });

/// Adds the column `state`, unless all nodes are up.
fn encode_states(table: Table, nodes: &[Node]) -> Table {
    match nodes.iter().all(|node| node.state == NodeState::Up) {
        true => table,
        false => table.text("state", nodes.iter().map(|node| Table::name_of(&STATES, node.state))),
    }
}

fn encode_levels(contents: Contents, levels: &Levels) -> Contents {
    let flat = || {
        levels.groups.iter().enumerate().flat_map(|(level, groups)| {
            groups.iter().enumerate().map(move |(slot, &group)| (to_u32(level), to_u32(slot), group))
        })
    };
    contents
        .table(
            Table::new("levels")
                .u32("level", 0..to_u32(levels.costs.len()))
                .f64("cost", levels.costs.iter().copied()),
        )
        .table(
            Table::new("groups")
                .u32("level", flat().map(|row| row.0))
                .u32("slot", flat().map(|row| row.1))
                .u32("group", flat().map(|row| row.2)),
        )
}

fn decode_levels(folder: &Folder, slots: usize) -> Result<Levels, ArtifactError> {
    let levels = folder.table("levels")?;
    levels.index("level")?;
    let costs = levels.f64("cost")?;
    let table = folder.table("groups")?;
    let (level, slot, group) = (table.u32("level")?, table.u32("slot")?, table.u32("group")?);
    let in_order = (0..table.rows())
        .all(|row| slots > 0 && level[row] as usize == row / slots && slot[row] as usize == row % slots);
    if !in_order || table.rows() != slots * costs.len() {
        return Err(table.error("slot", "does not number the slots of every level consecutively"));
    }
    let groups = if slots == 0 {
        vec![Vec::new(); costs.len()]
    } else {
        group.chunks(slots).map(<[u32]>::to_vec).collect()
    };
    Ok(Levels { costs, groups })
}

fn encode_matrix(contents: Contents, matrix: &Matrix, slots: usize) -> Contents {
    let slots = to_u32(slots);
    let pairs = || (0..slots).flat_map(|a| (0..slots).map(move |b| (a, b)));
    contents.attribute("cost", "matrix".into()).table(
        Table::new("costs")
            .u32("source", pairs().map(|pair| pair.0))
            .u32("destination", pairs().map(|pair| pair.1))
            .f64("cost", matrix.costs.iter().copied()),
    )
}

fn decode_matrix(folder: &Folder, slots: usize) -> Result<Matrix, ArtifactError> {
    let table = folder.table("costs")?;
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let in_order = (0..table.rows()).all(|row| {
        slots > 0 && source[row] as usize == row / slots && destination[row] as usize == row % slots
    });
    match in_order && slots.checked_mul(slots) == Some(table.rows()) {
        true => Ok(Matrix { costs: table.f64("cost")? }),
        false => Err(table.error("source", "does not list all pairs of slots in order")),
    }
}

/// The cost model is unknown to this version.
#[derive(Debug, thiserror::Error)]
#[error("unknown cost model `{0}`, expected levels, matrix or routes")]
struct UnknownCostModel(String);

fn decode_nodes(table: &Columns) -> Result<Vec<Node>, ArtifactError> {
    table.index("id")?;
    let node = |(name, kind): (String, String)| -> Result<Node, ArtifactError> {
        Ok(Node::new(name, table.known("kind", &KINDS, &kind)?))
    };
    let nodes = table.text("name")?.into_iter().zip(table.text("kind")?).map(node);
    let mut nodes = nodes.collect::<Result<Vec<Node>, _>>()?;
    for (node, state) in nodes.iter_mut().zip(decode_states(table, &STATES, NodeState::Up)?) {
        node.state = state;
    }
    if table.has("address") {
        for (node, address) in nodes.iter_mut().zip(table.optional_text("address")?) {
            node.address = address;
        }
    }
    Ok(nodes)
}

fn decode_links(table: &Columns) -> Result<Vec<Link>, ArtifactError> {
    let (source, destination) = (table.u32("source")?, table.u32("destination")?);
    let (latency, bandwidth) =
        (table.optional_f64("latency_s")?, table.optional_f64("bandwidth_bytes_per_s")?);
    let ports = |column: &str| match table.has(column) {
        true => table.optional_u32(column),
        false => Ok(vec![None; table.rows()]),
    };
    let (source_port, destination_port) = (ports("source_port")?, ports("destination_port")?);
    let states = decode_states(table, &LINK_STATES, LinkState::Up)?;
    let link = |row: usize| Link {
        latency_s: latency[row],
        bandwidth_bytes_per_s: bandwidth[row],
        source_port: source_port[row],
        destination_port: destination_port[row],
        state: states[row],
        ..Link::new(source[row], destination[row])
    };
    Ok((0..table.rows()).map(link).collect())
}

fn decode_states<T: Copy>(table: &Columns, names: &[(T, &str)], up: T) -> Result<Vec<T>, ArtifactError> {
    match table.has("state") {
        true => table.text("state")?.iter().map(|state| table.known("state", names, state)).collect(),
        false => Ok(vec![up; table.rows()]),
    }
}

/// Adds the columns of ports and states if any are set.
fn encode_ports(mut table: Table, links: &[Link]) -> Table {
    if links.iter().any(|link| link.source_port.is_some()) {
        table = table.optional_u32("source_port", links.iter().map(|link| link.source_port));
    }
    if links.iter().any(|link| link.destination_port.is_some()) {
        table = table.optional_u32("destination_port", links.iter().map(|link| link.destination_port));
    }
    if links.iter().any(|link| link.state == LinkState::Down) {
        table = table.text("state", links.iter().map(|link| Table::name_of(&LINK_STATES, link.state)));
    }
    table
}

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

/// Adds the attributes that differ from those of a machine without tables.
fn encode_routing(contents: Contents, routing: &Routing) -> Contents {
    let contents = match routing.ties {
        Ties::Spread => contents,
        Ties::First => contents.attribute("ties", "first".into()),
    };
    let entries = &routing.forwarding;
    if entries.is_empty() {
        return contents;
    }
    contents.table(
        Table::new("forwarding")
            .u32("node", entries.iter().map(|entry| entry.node))
            .u32("last_link", entries.iter().map(|entry| entry.last))
            .u32("link", entries.iter().map(|entry| entry.link)),
    )
}

fn decode_routing(folder: &Folder) -> Result<Routing, ArtifactError> {
    let ties = match folder.description().attributes.contains_key("ties") {
        true if folder.attribute::<String>("ties")? == "first" => Ties::First,
        true => return Err(folder.invalid(UnknownTies)),
        false => Ties::Spread,
    };
    let mut forwarding = Vec::new();
    if let Some(table) = folder.optional_table("forwarding")? {
        let (node, last, link) = (table.u32("node")?, table.u32("last_link")?, table.u32("link")?);
        let entry = |row: usize| Forward { node: node[row], last: last[row], link: link[row] };
        forwarding = (0..table.rows()).map(entry).collect();
    }
    Ok(Routing { forwarding, ties })
}

/// The rule for equal routes is unknown to this version.
#[derive(Debug, thiserror::Error)]
#[error("unknown rule for ties between routes, expected `first` or by destination")]
struct UnknownTies;

impl Codec for Measurements {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        let endpoints = Table::new("endpoints").u32("endpoint", 0..to_u32(self.endpoints.len()));
        let mut contents = Contents::new()
            .table(encode_endpoints(endpoints, &self.endpoints))
            .table(encode_samples(Table::new("samples"), &self.samples))
            .table(encode_fits(Table::new("fits"), &self.fits))
            .metric("hosts", self.hosts().count() as f64)
            .metric("pairs", self.latencies().len() as f64)
            .metric("coverage", self.coverage());
        if let Some(bytes) = self.eager_limit {
            contents = contents.metric(EAGER_LIMIT, bytes as f64);
        }
        if !self.calls.is_empty() {
            contents = contents.table(encode_calls(Table::new("overheads"), &self.calls));
        }
        if !self.streams.is_empty() {
            contents = contents.table(encode_streams(Table::new("streams"), &self.streams));
        }
        contents
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes; a cast of a float saturates"
    )]
    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let endpoints = folder.table("endpoints")?;
        endpoints.index("endpoint")?;
        let measured = Self {
            endpoints: decode_endpoints(&endpoints)?,
            samples: decode_samples(&folder.table("samples")?)?,
            fits: decode_fits(&folder.table("fits")?)?,
            calls: match folder.optional_table("overheads")? {
                Some(table) => decode_calls(&table)?,
                None => Vec::new(),
            },
            streams: match folder.optional_table("streams")? {
                Some(table) => decode_streams(&table)?,
                None => Vec::new(),
            },
            eager_limit: folder.description().metrics.get(EAGER_LIMIT).map(|bytes| *bytes as u64),
        };
        measured.check().map_err(|error| folder.invalid(error))?;
        Ok(measured)
    }
}

const STATES: [(NodeState, &str); 2] = [(NodeState::Up, "up"), (NodeState::Down, "down")];
const PHASES: [(ProbePhase, &str); 4] = [
    (ProbePhase::Latency, "latency"),
    (ProbePhase::Isolated, "isolated"),
    (ProbePhase::Loaded, "loaded"),
    (ProbePhase::Alone, "alone"),
];
const CALLS: [(Call, &str); 3] = [(Call::Send, "send"), (Call::Isend, "isend"), (Call::Recv, "recv")];
/// The metric with the eager limit in bytes.
const EAGER_LIMIT: &str = "eager_limit_bytes";

rows!(encode_endpoints, decode_endpoints: Endpoint { text host, u32 core, text state in STATES });

rows!(encode_samples, decode_samples: Sample {
    u32 source,
    u32 destination,
    text phase in PHASES,
    u64 bytes,
    u64 messages,
    f64 minimum_s,
    f64 first_decile_s,
    f64 median_s,
    f64 ninth_decile_s,
    f64 maximum_s,
});

rows!(encode_fits, decode_fits: Fit {
    u32 source,
    u32 destination,
    u64 from_bytes,
    f64 latency_s,
    optional_f64 bandwidth_bytes_per_s,
});

rows!(encode_calls, decode_calls: CallTime {
    u32 source,
    u32 destination,
    text call in CALLS,
    u64 bytes,
    u64 messages,
    f64 minimum_s,
    f64 median_s,
    f64 maximum_s,
});

rows!(encode_streams, decode_streams: StreamRate {
    u32 step,
    u32 source,
    u32 destination,
    u64 bytes,
    f64 seconds,
});
