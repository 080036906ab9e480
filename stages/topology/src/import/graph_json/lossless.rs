//! The form in which `topology/export` writes all that is known of a machine.

use std::path::Path;

use hopmap_model::{
    CostModel, Forward, Levels, Link, LinkState, Matrix, Node, NodeKind, NodeState, NodeTraits, RouteCosts,
    RouteMetric, Routing, Slot, SwitchType, SystemGraph, Ties,
};
use serde_json::{Map, Value};

use super::super::reader::malformed;
use super::super::{ImportError, ImportParams, Imported};

pub(super) fn read(
    path: &Path,
    root: &Map<String, Value>,
    params: &ImportParams,
) -> Result<Imported, ImportError> {
    let reading = Reading { path };
    let given = [
        ("cost", params.cost.is_some()),
        ("slots", params.slots.is_some()),
        ("hwloc", params.hwloc.is_some()),
        ("inside", !params.inside.is_empty()),
        ("link_latency", params.link_latency.is_some()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(ImportError::Parameter {
            name,
            problem: "means nothing here: the file says what the machine has and costs".into(),
            help: "leave it out, or remove `cost` and `slots` from the file".into(),
        });
    }
    let system = SystemGraph {
        nodes: reading.list(root, "nodes", node)?,
        links: reading.list(root, "links", link)?,
        slots: reading.list(root, "slots", |slot| {
            let [host, core] = numbers(slot)?;
            Some(Slot { host, core })
        })?,
        cost: reading.cost(root)?,
        routing: reading.routing(root)?,
    };
    system.check().map_err(|source| ImportError::Machine { path: path.to_owned(), source })?;
    Ok(Imported { system, notes: Vec::new() })
}

struct Reading<'a> {
    path: &'a Path,
}

impl Reading<'_> {
    fn wrong(&self, problem: String) -> ImportError {
        malformed(self.path, None, problem, "topology/export writes this form with `to = \"graph-json\"`")
    }

    fn list<T>(
        &self,
        object: &Map<String, Value>,
        key: &str,
        item: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, ImportError> {
        let list = object.get(key).and_then(Value::as_array);
        let list = list.ok_or_else(|| self.wrong(format!("no list `{key}`")))?;
        let read = |(index, value)| {
            item(value).ok_or_else(|| self.wrong(format!("{key}[{index}] is incomplete or wrong")))
        };
        list.iter().enumerate().map(read).collect()
    }

    fn cost(&self, root: &Map<String, Value>) -> Result<CostModel, ImportError> {
        let cost = root
            .get("cost")
            .and_then(Value::as_object)
            .ok_or_else(|| self.wrong("`cost` is no object".into()))?;
        if let Some(levels) = cost.get("levels") {
            return Ok(CostModel::Levels(self.levels(levels)?));
        }
        if cost.contains_key("matrix") {
            return Ok(CostModel::Matrix(Matrix { costs: self.list(cost, "matrix", Value::as_f64)? }));
        }
        let metric = match cost.get("metric").and_then(Value::as_str) {
            Some("hops") => RouteMetric::Hops,
            Some("latency") => RouteMetric::Latency,
            Some("time") => {
                let bytes = cost.get("bytes").and_then(Value::as_u64);
                RouteMetric::Time {
                    bytes: bytes.ok_or_else(|| self.wrong("`cost` does not say `bytes`".into()))?,
                }
            }
            _ => {
                return Err(
                    self.wrong("`cost` has no `levels`, no `matrix` and no `metric` that is known".into())
                );
            }
        };
        let inside = cost.get("inside").ok_or_else(|| self.wrong("`cost` has no `inside`".into()))?;
        Ok(CostModel::Routes(RouteCosts { metric, inside: self.levels(inside)? }))
    }

    fn levels(&self, levels: &Value) -> Result<Levels, ImportError> {
        let object = levels.as_object().ok_or_else(|| self.wrong("levels are no object".into()))?;
        let group = |groups: &Value| groups.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>();
        Ok(Levels {
            costs: self.list(object, "costs", Value::as_f64)?,
            groups: self.list(object, "groups", group)?,
        })
    }

    fn routing(&self, root: &Map<String, Value>) -> Result<Routing, ImportError> {
        let Some(routing) = root.get("routing") else { return Ok(Routing::default()) };
        let object = routing.as_object().ok_or_else(|| self.wrong("`routing` is no object".into()))?;
        let ties = match object.get("ties").map(Value::as_str) {
            None | Some(Some("spread")) => Ties::Spread,
            Some(Some("first")) => Ties::First,
            Some(_) => return Err(self.wrong("`ties` are neither `spread` nor `first`".into())),
        };
        let forwarding = match object.contains_key("forwarding") {
            true => self.list(object, "forwarding", |entry| {
                let [node, last, link] = numbers(entry)?;
                Some(Forward { node, last, link })
            })?,
            false => Vec::new(),
        };
        Ok(Routing { forwarding, ties })
    }
}

fn node(node: &Value) -> Option<Node> {
    let kind = match node.get("kind")?.as_str()? {
        "host" => NodeKind::Host,
        "switch" => NodeKind::Switch,
        _ => return None,
    };
    let state = match node.get("state").map(Value::as_str) {
        None | Some(Some("up")) => NodeState::Up,
        Some(Some("down")) => NodeState::Down,
        Some(_) => return None,
    };
    let address = match node.get("address") {
        None => None,
        Some(address) => Some(address.as_str()?.to_owned()),
    };
    Some(Node { state, address, traits: traits(node)?, ..Node::new(node.get("name")?.as_str()?, kind) })
}

fn traits(node: &Value) -> Option<NodeTraits> {
    let mut traits = NodeTraits::default();
    if let Some(performance) = node.get("performance") {
        traits.performance = Some(performance.as_f64()?);
    }
    if let Some(number) = node.get("switch_type") {
        traits.switch_type = Some(SwitchType::of_number(u32::try_from(number.as_u64()?).ok()?)?);
    }
    if let Some(names) = node.get("capabilities") {
        traits.capabilities =
            names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    }
    for (name, count) in node.get("devices").map(Value::as_object).unwrap_or_default().into_iter().flatten() {
        traits.devices.insert(name.clone(), u32::try_from(count.as_u64()?).ok()?);
    }
    Some(traits)
}

fn link(link: &Value) -> Option<Link> {
    let rate = |key| match link.get(key) {
        None => Some(None),
        Some(value) => value.as_f64().map(Some),
    };
    let port = |key| match link.get(key) {
        None => Some(None),
        Some(value) => number(value).map(Some),
    };
    let state = match link.get("state").map(Value::as_str) {
        None | Some(Some("up")) => LinkState::Up,
        Some(Some("down")) => LinkState::Down,
        Some(_) => return None,
    };
    Some(Link {
        source: number(link.get("source")?)?,
        destination: number(link.get("destination")?)?,
        latency_s: rate("latency_s")?,
        bandwidth_bytes_per_s: rate("bandwidth_bytes_per_s")?,
        source_port: port("source_port")?,
        destination_port: port("destination_port")?,
        state,
    })
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn numbers<const N: usize>(value: &Value) -> Option<[u32; N]> {
    let numbers = value.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>()?;
    numbers.try_into().ok()
}
