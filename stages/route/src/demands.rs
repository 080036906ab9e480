//! Demands of a traced program: streams with the bandwidth of its traffic, and a machine with ports on its links and capacities
//! of its hosts.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use hopmap_model::{
    Context, Demands, Edge, Error, Inputs, Link, LinkState, Node, NodeKind, NodeState, Outcome, Outputs,
    Phase, Port, ProcessDemand, Routing, Stage, Stream, SwitchType, SystemGraph, TableEntry, Tables,
    TaskGraph, require,
};
use hopmap_routing::error::{Result, RouteError, fail, is_above_zero, is_amount};
use hopmap_routing::quantity::rate;

use crate::instance::{Ports, slots};
use crate::params::{DemandsParams, Performance};

/// `route/demands`: streams from traffic, and a machine whose links have ports.
#[derive(Debug)]
pub struct DemandsStage;

impl Stage for DemandsStage {
    type Params = DemandsParams;
    const KIND: &'static str = "route/demands";
    const SUMMARY: &'static str =
        "Derive streams and their bandwidth from the traffic of a traced program, and add ports to the links";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::output::<TaskGraph>("task-graph"),
        Port::output::<SystemGraph>("system"),
        Port::possible::<Tables>("tables"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        for (name, value) in
            [("duration_s", params.duration_s), ("bandwidth_bytes_per_s", params.bandwidth_bytes_per_s)]
        {
            let value = value.unwrap_or(1.0);
            require(is_above_zero(value), name, value, "above 0")?;
        }
        let least = params.min_bandwidth_bytes_per_s;
        require(is_amount(least), "min_bandwidth_bytes_per_s", least, "0 or more")?;
        let number = params.switch_type.unwrap_or(1);
        let help = "1 (one table for all ports) or 2 (one table per port)";
        Ok(require(matches!(number, 1 | 2), "switch_type", number, help)?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let program = ask(&graph, &params)?;
        let streams = &program.graph.demands.streams;
        let needed: f64 = streams.iter().map(|stream| stream.bandwidth_bytes_per_s).sum();
        cx.log(format_args!("{} streams need {} in total", streams.len(), rate(needed)));
        let given = params.bandwidth_bytes_per_s;
        let params = with_bandwidth(params, needed);
        let unknown = system.links.iter().filter(|link| link.bandwidth_bytes_per_s.is_none()).count();
        if unknown > 0 && given != params.bandwidth_bytes_per_s {
            cx.log(format_args!(
                "{unknown} links without a bandwidth get {}, that of all streams together; \
                 `bandwidth_bytes_per_s` sets that of the machine",
                rate(needed)
            ));
        }
        let mut system = ready(&system, &params)?;
        if params.performance == Performance::Compute {
            slots(&mut system, &program.graph.demands);
        }
        if program.left_out > 0 {
            cx.log(format_args!(
                "{} streams omitted; they need {}",
                program.left_out,
                rate(program.left_out_bandwidth)
            ));
        }
        let mut outputs = Outputs::new().with("task-graph", program.graph);
        if let Some(tables) = tables(&system) {
            outputs = outputs.with("tables", tables);
        }
        Ok(Outcome::Done(outputs.with("system", system)))
    }
}

/// Links of unknown bandwidth get that of all streams together: no link carries a stream twice, so that any routes fit.
fn with_bandwidth(params: DemandsParams, of_all_streams: f64) -> DemandsParams {
    let derived = Some(of_all_streams).filter(|bandwidth| *bandwidth > 0.0);
    DemandsParams { bandwidth_bytes_per_s: params.bandwidth_bytes_per_s.or(derived), ..params }
}

/// A program with its demands.
#[derive(Debug, Clone, PartialEq)]
struct DemandingProgram {
    /// The program.
    graph: TaskGraph,
    /// Number of omitted streams, which need less than the minimum or rank below `top_flows`.
    left_out: usize,
    /// Their total bandwidth in bytes per second.
    left_out_bandwidth: f64,
}

/// The program with one stream for every pair of communicating ranks: bytes divided by the available time. Messages of a rank to
/// itself are not streams.
fn ask(graph: &TaskGraph, params: &DemandsParams) -> Result<DemandingProgram> {
    if !graph.demands.is_empty() {
        return fail(
            "the program already has streams and demands",
            "connect the program directly, without route/demands",
        );
    }
    let rates = match params.peak_phase {
        true => peak(graph)?,
        false => {
            let (edges, seconds) = traffic(graph, params)?;
            edges.iter().map(|edge| (edge.pair(), edge.bytes as f64 / seconds)).collect()
        }
    };
    let mut streams: Vec<Stream> = rates
        .into_iter()
        .filter(|&((source, destination), rate)| source != destination && rate > 0.0)
        .map(|((source, destination), bandwidth_bytes_per_s)| Stream {
            source,
            destination,
            bandwidth_bytes_per_s,
        })
        .collect();
    // Descending bandwidth; ties in rank order.
    streams.sort_by(|a, b| b.bandwidth_bytes_per_s.total_cmp(&a.bandwidth_bytes_per_s));
    let enough = streams
        .iter()
        .filter(|stream| stream.bandwidth_bytes_per_s >= params.min_bandwidth_bytes_per_s)
        .count();
    let rest = streams.split_off(enough.min(params.top_flows.unwrap_or(usize::MAX)));
    streams.sort_by_key(|stream| (stream.source, stream.destination));
    let demands = Demands { processes: processes(graph, params)?, streams };
    Ok(DemandingProgram {
        graph: TaskGraph { demands, ..graph.clone() },
        left_out: rest.len(),
        left_out_bandwidth: rest.iter().map(|stream| stream.bandwidth_bytes_per_s).sum(),
    })
}

/// The selected traffic and its duration.
fn traffic<'a>(graph: &'a TaskGraph, params: &DemandsParams) -> Result<(&'a [Edge], f64)> {
    let (edges, seconds, what) = match &params.phase {
        None => (&graph.edges, graph.duration_s, "trace"),
        Some(name) => {
            let phase = phase(graph, name)?;
            (&phase.edges, length(phase), "phase")
        }
    };
    match params.duration_s.or(seconds).filter(|seconds| *seconds > 0.0) {
        Some(seconds) => Ok((edges, seconds)),
        None => fail(
            format!("the duration of the {what} is unknown"),
            "set `duration_s` to the time in seconds in which its traffic must be transmitted",
        ),
    }
}

fn phase<'a>(graph: &'a TaskGraph, wanted: &str) -> Result<&'a Phase> {
    let named = graph.phases.iter().find(|phase| phase.name.as_deref() == Some(wanted));
    let numbered = || wanted.parse::<usize>().ok().and_then(|number| graph.phases.get(number));
    named.or_else(numbered).ok_or_else(|| {
        let known: Vec<&str> =
            graph.phases.iter().filter_map(|phase| phase.name.as_deref()).take(10).collect();
        let help = match (graph.phases.len(), known.as_slice()) {
            (0, _) => "detect phases when the trace is read: `phases` of trace/otf2".to_owned(),
            (count, []) => format!("phases are numbered from 0 to {}", count - 1),
            (_, known) => format!("phases are: {}", known.join(", ")),
        };
        RouteError::new(format!("the program has no phase `{wanted}`"), help)
    })
}

fn length(phase: &Phase) -> Option<f64> {
    Some(phase.end_s? - phase.begin_s?)
}

/// The rate of every pair of ranks in the phase in which that rate is highest.
fn peak(graph: &TaskGraph) -> Result<BTreeMap<(u32, u32), f64>> {
    let mut rates: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for phase in &graph.phases {
        let Some(seconds) = length(phase).filter(|seconds| *seconds > 0.0) else { continue };
        for edge in &phase.edges {
            let rate = rates.entry(edge.pair()).or_default();
            *rate = rate.max(edge.bytes as f64 / seconds);
        }
    }
    match rates.is_empty() && !graph.edges.is_empty() {
        false => Ok(rates),
        true => fail(
            "`peak_phase` needs phases of known length, and the program has none",
            "detect phases when the trace is read: `phases = { seconds = 0.1 }` of trace/otf2",
        ),
    }
}

fn processes(graph: &TaskGraph, params: &DemandsParams) -> Result<Vec<ProcessDemand>> {
    let mut processes = Vec::with_capacity(graph.ranks());
    for (rank, process) in graph.processes.iter().enumerate() {
        let performance = match params.performance {
            Performance::Slot => 1.0,
            Performance::Compute => match (process.compute_s, graph.duration_s.filter(|all| *all > 0.0)) {
                (Some(compute), Some(all)) => (compute / all).clamp(0.0, 1.0),
                _ => {
                    return fail(
                        format!("the compute time of rank {rank} is unknown"),
                        "omit `performance`: every process then needs one slot",
                    );
                }
            },
        };
        processes.push(ProcessDemand {
            name: format!("rank {rank}"),
            performance,
            ..ProcessDemand::default()
        });
    }
    Ok(processes)
}

/// The machine with a port at both ends of every link and the performance of hosts. `params` supply what links and switches do
/// not specify; known ports stay. If hosts are linked to each other, every such host gets a switch called `HOST-router`, because
/// hosts do not forward packets.
pub(crate) fn ready(system: &SystemGraph, params: &DemandsParams) -> Result<SystemGraph> {
    if system.links.is_empty() {
        return fail(
            "the machine topology has no links",
            "import the topology from a fabric (topology/import), or use a shape with links such as `fat-tree:4x4/1x2`, \
             `torus:4x4` or `mesh:2x4` of topology/synthetic",
        );
    }
    let mut system = system.clone();
    for link in &mut system.links {
        link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s.or(params.bandwidth_bytes_per_s);
    }
    routers(&mut system);
    ports(&mut system);
    down(&mut system);
    let slots: HashMap<u32, u32> = system.hosts().map(|(host, _, count)| (host, count)).collect();
    for (id, node) in (0..).zip(&mut system.nodes) {
        match node.kind {
            NodeKind::Host => {
                let count = slots.get(&id).copied().unwrap_or_default();
                node.traits.performance = node.traits.performance.or(Some(f64::from(count)));
            }
            NodeKind::Switch => {
                let other = params.switch_type.and_then(SwitchType::of_number);
                node.traits.switch_type = node.traits.switch_type.or(other);
            }
        }
    }
    Ok(system)
}

/// Marks the links of nodes that are down as down.
fn down(system: &mut SystemGraph) {
    for link in &mut system.links {
        let ends = [link.source, link.destination];
        if ends.iter().any(|&node| system.nodes[node as usize].state == NodeState::Down) {
            link.state = LinkState::Down;
        }
    }
}

/// Inserts a switch in front of every host that is linked to another host.
fn routers(system: &mut SystemGraph) {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let direct = system.links.iter().filter(|link| is_host(link.source) && is_host(link.destination));
    let hosts: BTreeMap<u32, u32> =
        direct.flat_map(|link| [link.source, link.destination]).map(|host| (host, 0)).collect();
    if hosts.is_empty() {
        return;
    }
    let mut names: HashSet<String> = system.nodes.iter().map(|node| node.name.clone()).collect();
    let mut router_of = hosts;
    for (&host, router) in &mut router_of {
        let mut name = format!("{}-router", system.nodes[host as usize].name);
        while !names.insert(name.clone()) {
            name.push('\'');
        }
        *router = system.nodes.len() as u32;
        let state = system.nodes[host as usize].state;
        system.nodes.push(Node { state, ..Node::switch(&name) });
    }
    for link in &mut system.links {
        for end in [&mut link.source, &mut link.destination] {
            *end = router_of.get(end).copied().unwrap_or(*end);
        }
    }
    for (&host, &router) in &router_of {
        system.links.extend([Link::new(host, router), Link::new(router, host)]);
    }
    // Imported routes do not pass through the new switches.
    system.routing = Routing::default();
}

/// Gives links without ports the lowest free ones; both directions of a cable have the same ports.
fn ports(system: &mut SystemGraph) {
    let mut ports = Ports::of(&system.links);
    // Cables of which one direction has been seen, by source and destination of the other.
    let mut waiting: HashMap<(u32, u32), VecDeque<(u32, u32)>> = HashMap::new();
    for link in system.links.iter_mut().filter(|link| link.state == LinkState::Up) {
        if link.source_port.is_some() && link.destination_port.is_some() {
            continue;
        }
        let ends = (link.source, link.destination);
        let known = waiting.get_mut(&ends).and_then(VecDeque::pop_front);
        let (source, destination) = known.unwrap_or_else(|| {
            let (a, b) = (ports.lowest(ends.0), ports.lowest(ends.1));
            waiting.entry((ends.1, ends.0)).or_default().push_back((b, a));
            (a, b)
        });
        link.source_port = Some(source);
        link.destination_port = Some(destination);
    }
}

/// The forwarding tables of a fabric as tables of its switches, if they are known. For a host with several addresses, the first
/// entry of each switch is used.
fn tables(system: &SystemGraph) -> Option<Tables> {
    let mut entries = BTreeMap::new();
    for forward in &system.routing.forwarding {
        let (last, link) = (&system.links[forward.last as usize], &system.links[forward.link as usize]);
        if let (NodeKind::Switch, Some(port)) = (system.nodes[forward.node as usize].kind, link.source_port) {
            entries.entry((forward.node, last.destination)).or_insert(port);
        }
    }
    let entry = |((switch, destination), output_port)| TableEntry {
        switch,
        input_port: None,
        destination,
        output_port,
    };
    let entries: Vec<TableEntry> = entries.into_iter().map(entry).collect();
    (!entries.is_empty()).then(|| Tables { entries, metrics: BTreeMap::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::{CostModel, Levels, Process, Slot};

    fn program() -> TaskGraph {
        let edge = |source, destination, bytes| Edge { source, destination, messages: 1, bytes };
        let phase = |begin: f64, end: f64, edges| Phase {
            name: Some(format!("from {begin}")),
            begin_s: Some(begin),
            end_s: Some(end),
            compute_s: vec![None; 3],
            edges,
        };
        TaskGraph {
            processes: vec![Process { compute_s: Some(3.0), ..Process::default() }; 3],
            edges: vec![edge(0, 0, 9), edge(0, 1, 400), edge(1, 2, 40), edge(2, 0, 80)],
            duration_s: Some(4.0),
            phases: vec![
                phase(0.0, 1.0, vec![edge(0, 1, 300), edge(2, 0, 80)]),
                phase(1.0, 4.0, vec![edge(0, 1, 100), edge(1, 2, 40)]),
            ],
            ..TaskGraph::default()
        }
    }

    fn rates(params: &DemandsParams) -> Vec<(u32, u32, f64)> {
        let program = ask(&program(), params).unwrap();
        assert!(program.graph.check().is_ok());
        let of = |stream: &Stream| (stream.source, stream.destination, stream.bandwidth_bytes_per_s);
        program.graph.demands.streams.iter().map(of).collect()
    }

    #[test]
    fn bandwidth_of_a_stream_is_bytes_divided_by_time() {
        let all = DemandsParams::default();
        assert_eq!(rates(&all), [(0, 1, 100.0), (1, 2, 10.0), (2, 0, 20.0)]);
        let first = DemandsParams { phase: Some("0".into()), ..all.clone() };
        assert_eq!(rates(&first), [(0, 1, 300.0), (2, 0, 80.0)]);
        let second = DemandsParams { phase: Some("from 1".into()), duration_s: Some(1.0), ..all.clone() };
        assert_eq!(rates(&second), [(0, 1, 100.0), (1, 2, 40.0)]);
        let peak = DemandsParams { peak_phase: true, ..all.clone() };
        assert_eq!(rates(&peak), [(0, 1, 300.0), (1, 2, 40.0 / 3.0), (2, 0, 80.0)]);
        assert_eq!(
            rates(&DemandsParams { min_bandwidth_bytes_per_s: 15.0, ..all.clone() }),
            [(0, 1, 100.0), (2, 0, 20.0)]
        );
        let one = DemandsParams { top_flows: Some(1), ..all };
        assert_eq!(rates(&one), [(0, 1, 100.0)]);
        let program = ask(&program(), &one).unwrap();
        assert_eq!((program.left_out, program.left_out_bandwidth), (2, 30.0));
    }

    #[test]
    fn missing_durations_and_phases_are_errors() {
        let fault = |graph: &TaskGraph, params: &DemandsParams| ask(graph, params).unwrap_err().to_string();
        let timeless = TaskGraph { duration_s: None, phases: vec![], ..program() };
        let all = DemandsParams::default();
        assert_eq!(fault(&timeless, &all), "the duration of the trace is unknown");
        let peak = DemandsParams { peak_phase: true, ..all.clone() };
        assert!(fault(&timeless, &peak).starts_with("`peak_phase` needs phases of known length"));
        let named = DemandsParams { phase: Some("solve".into()), ..all.clone() };
        let error = ask(&program(), &named).unwrap_err();
        assert_eq!(error.help, "phases are: from 0, from 1");
        let computed = DemandsParams { performance: Performance::Compute, ..all.clone() };
        assert!(
            (ask(&program(), &computed).unwrap().graph.demands.processes[0].performance - 0.75).abs() < 1e-12
        );
        assert_eq!(
            fault(&timeless, &DemandsParams { duration_s: Some(1.0), ..computed }),
            "the compute time of rank 0 is unknown"
        );
        let twice = ask(&program(), &all).unwrap().graph;
        assert!(fault(&twice, &all).contains("already has streams"));
    }

    /// Hosts `h0` to `h2` and a switch, with these cables.
    fn machine(cables: &[(u32, u32)]) -> SystemGraph {
        let mut nodes: Vec<Node> = (0..3).map(|host| Node::host(format!("h{host}"))).collect();
        nodes.push(Node::switch("s"));
        let links = cables.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]).collect();
        let slots: Vec<Slot> =
            [0, 0, 1, 2].into_iter().zip([0, 1, 0, 0]).map(|(host, core)| Slot { host, core }).collect();
        let cost = CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 4]] });
        SystemGraph { nodes, links, slots, cost, routing: Routing::default(), calibration: Vec::new() }
    }

    fn is_tidy(system: &SystemGraph) -> bool {
        let leave: HashSet<_> =
            system.links.iter().map(|link| (link.source, link.source_port.unwrap())).collect();
        let back = |link: &Link| {
            let other = link.reversed();
            system.links.iter().any(|link| {
                (link.source, link.source_port, link.destination_port)
                    == (other.source, other.source_port, other.destination_port)
            })
        };
        leave.len() == system.links.len() && system.links.iter().all(back) && system.check().is_ok()
    }

    #[test]
    fn links_get_ports_and_hosts_their_performance() {
        let params = DemandsParams {
            bandwidth_bytes_per_s: Some(5.0),
            switch_type: Some(2),
            ..DemandsParams::default()
        };
        let mut system = machine(&[(0, 3), (1, 3), (1, 3), (2, 3)]);
        system.links[6].source_port = Some(0);
        system.links[6].destination_port = Some(1);
        system.links[7] = Link { bandwidth_bytes_per_s: Some(9.0), ..system.links[6].reversed() };
        let ready = ready(&system, &params).unwrap();
        assert!(is_tidy(&ready));
        assert_eq!((ready.links[7].source_port, ready.links[7].bandwidth_bytes_per_s), (Some(1), Some(9.0)));
        assert_eq!(ready.links[0].bandwidth_bytes_per_s, Some(5.0));
        assert_eq!(ready.nodes[0].traits.performance, Some(2.0));
        assert_eq!(ready.nodes[3].traits.switch_type, Some(SwitchType::Two));
    }

    #[test]
    fn links_of_unknown_bandwidth_carry_all_streams() {
        let mut system = machine(&[(0, 3), (1, 3)]);
        system.links[0].bandwidth_bytes_per_s = Some(9.0);
        let of_links = |params: DemandsParams| {
            let ready = ready(&system, &with_bandwidth(params, 130.0)).unwrap();
            [0, 1].map(|link| ready.links[link].bandwidth_bytes_per_s)
        };
        assert_eq!(of_links(DemandsParams::default()), [Some(9.0), Some(130.0)]);
        let given = DemandsParams { bandwidth_bytes_per_s: Some(5.0), ..DemandsParams::default() };
        assert_eq!(of_links(given), [Some(9.0), Some(5.0)]);
    }

    #[test]
    fn forwarding_tables_become_tables_of_switches() {
        let mut system = machine(&[(0, 3), (1, 3), (2, 3)]);
        assert_eq!(tables(&system), None);
        let forward = |node, last, link| hopmap_model::Forward { node, last, link };
        system.routing.forwarding = vec![forward(0, 3, 0), forward(3, 1, 1), forward(3, 3, 3)];
        assert!(system.check().is_ok());
        let ready = ready(&system, &DemandsParams::default()).unwrap();
        let entry =
            |destination, output_port| TableEntry { switch: 3, input_port: None, destination, output_port };
        assert_eq!(tables(&ready).unwrap().entries, [entry(0, 0), entry(1, 1)]);
    }

    #[test]
    fn directly_linked_hosts_get_a_switch_each() {
        let ready = ready(&machine(&[(0, 1), (1, 2), (2, 0)]), &DemandsParams::default()).unwrap();
        assert!(is_tidy(&ready));
        assert_eq!((ready.nodes.len(), ready.links.len()), (7, 12));
        assert_eq!(ready.nodes[4].name, "h0-router");
        let are_hosts = |link: &Link| link.source.max(link.destination) < 3;
        assert!(!ready.links.iter().any(are_hosts));
        let none = super::ready(&machine(&[]), &DemandsParams::default()).unwrap_err();
        assert_eq!(none.to_string(), "the machine topology has no links");
    }
}
