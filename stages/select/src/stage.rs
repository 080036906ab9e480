//! The stage `select/nodes`.

use std::sync::Arc;

use hopmap_formats::host_list::compress;
use hopmap_model::{
    Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph, fill_rates, require,
};

use crate::error::{SelectError, check_not_zero, check_one_of};
use crate::free::{Listed, Listing, listed_hosts};
use crate::params::{Criterion, Method, NodesParams, Source};
use crate::restrict::restrict;
use crate::select::{Request, Selection, select};

/// `select/nodes`: chooses hosts for a job among the free ones.
#[derive(Debug)]
pub struct Nodes;

impl Stage for Nodes {
    type Params = NodesParams;
    const KIND: &'static str = "select/nodes";
    const SUMMARY: &'static str = "Choose nearby free hosts for a job";
    const REVISION: u32 = 7;
    const PORTS: &'static [Port] =
        &[Port::input::<SystemGraph>("system"), Port::output::<SystemGraph>("system")];

    fn check(params: &NodesParams) -> Result<(), Error> {
        check(params)
    }

    fn reads(params: &NodesParams) -> Result<Vec<InputPath>, Error> {
        // A constant name, so that renaming the file does not change the key.
        Ok(params.free_file.iter().map(|file| InputPath::named(file.path(), "free")).collect())
    }

    fn observes(params: &NodesParams) -> bool {
        Listing::from(params).from != Source::List
    }

    fn run(params: NodesParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let (latency, bandwidths) = (params.link_latency_s, &params.link_bandwidth_bytes_per_s);
        let system = match latency.is_some() || !bandwidths.is_empty() {
            true if system.links.is_empty() => return Err(SelectError::without_links().into()),
            true => {
                let mut system = Arc::unwrap_or_clone(system);
                fill_rates(&system.nodes, &mut system.links, latency, bandwidths);
                Arc::new(system)
            }
            false => system,
        };
        let Listed { hosts, system } =
            listed_hosts(system, &Listing::from(&params), &params.slots_per_host, cx)?;
        let selection = choose(&system, hosts, &params, cx)?;
        let outputs = Outputs::new().with("system", restrict(&system, &selection.hosts));
        Ok(if selection.complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
    }
}

fn check(params: &NodesParams) -> Result<(), Error> {
    Listing::from(params).check("free_file")?;
    check_one_of(&[("count", params.count.is_some()), ("slots", params.slots.is_some())])?;
    check_not_zero("count", params.count)?;
    check_not_zero("slots", params.slots)?;
    check_not_zero("starts", Some(params.starts))?;
    let latency = params.link_latency_s.unwrap_or(0.0);
    let is_latency = latency.is_finite() && latency >= 0.0;
    require(is_latency, "link_latency_s", latency, "0 or more seconds, such as 1.5e-7")?;
    for &rate in &params.link_bandwidth_bytes_per_s {
        let is_rate = rate.is_finite() && rate > 0.0;
        require(is_rate, "link_bandwidth_bytes_per_s", rate, "bytes per second, such as 50e9")?;
    }
    let method = match params.method {
        Method::Greedy => "greedy",
        Method::MinCut => "min-cut",
        Method::Auto | Method::Exact => return Ok(()),
    };
    if params.criterion != Criterion::Switches {
        return Ok(());
    }
    let help = "omit `method`; the fewest switches are found exactly on machines of any size";
    Err(SelectError::new(format!("method `{method}` does not support criterion `switches`"), help).into())
}

/// Chooses the requested number of hosts, or as few as have the requested slots.
fn choose(
    system: &SystemGraph,
    free: Vec<u32>,
    params: &NodesParams,
    cx: &Context<'_>,
) -> Result<Selection, SelectError> {
    let slots: Vec<u64> = system.hosts().map(|(_, _, slots)| u64::from(slots)).collect();
    let most = free.iter().map(|&host| slots[host as usize]).max().unwrap_or(1);
    let all = free.iter().map(|&host| slots[host as usize]).sum();
    let wanted = params.slots.map_or(0, u64::from);
    if wanted > all {
        return Err(SelectError::too_few(wanted, "slots", free.len(), all));
    }
    let count = match params.slots {
        Some(_) => wanted.div_ceil(most) as usize,
        None => params.count.map_or(free.len(), |count| count as usize),
    };
    let mut request = Request {
        free,
        count,
        criterion: params.criterion,
        method: params.method,
        seed: params.seed,
        starts: params.starts,
        roomy: params.slots.is_some(),
    };
    loop {
        let selection = select(system, &request, cx)?;
        let has: u64 = selection.hosts.iter().map(|&host| slots[host as usize]).sum();
        if has >= wanted {
            report(system, &request, &selection, cx);
            return Ok(selection);
        }
        // Adds the minimum that the missing slots need; all free hosts together have enough.
        request.count = (request.count + (wanted - has).div_ceil(most) as usize).min(request.free.len());
    }
}

/// Logs the choice and the value of alternatives.
fn report(system: &SystemGraph, request: &Request, selection: &Selection, cx: &Context<'_>) {
    let nodes: Vec<u32> = system.hosts().map(|(node, _, _)| node).collect();
    let name = |&host: &u32| system.nodes[nodes[host as usize] as usize].name.as_str();
    let criterion = match request.criterion {
        Criterion::TotalDistance => "total distance",
        Criterion::Cut => "cut",
        Criterion::BottleneckBandwidth => "bottleneck bandwidth in bytes/s",
        Criterion::Switches => "switches",
    };
    cx.log(format_args!(
        "{} of {} free hosts: {}; {criterion} {}{}; first hosts {}, random hosts {} on average",
        request.count,
        request.free.len(),
        compress(selection.hosts.iter().map(name)),
        selection.value,
        if selection.proven { " (optimal)" } else { "" },
        selection.of_first,
        selection.of_random,
    ));
}
