//! What routes take of links and switches, and how long they are.

use hopmap_model::Route;

use super::TOLERANCE;
use crate::{CheckError, CheckParams, Network};

/// Faults that are told one by one.
const MOST_FAULTS: usize = 20;

/// What all routes together take.
pub(super) struct Carried<'a> {
    network: &'a Network<'a>,
    /// By index of the link.
    links: Vec<f64>,
    /// What arrives, by node.
    nodes: Vec<f64>,
}

impl<'a> Carried<'a> {
    pub(super) fn of(network: &'a Network<'a>, routes: &[Route]) -> Self {
        let mut links = vec![0.0; network.system.links.len()];
        for route in routes {
            for &link in &route.links {
                links[link as usize] += route.bandwidth_bytes_per_s;
            }
        }
        let mut nodes = vec![0.0; network.system.nodes.len()];
        for (link, load) in network.system.links.iter().zip(&links) {
            nodes[link.destination as usize] += load;
        }
        Self { network, links, nodes }
    }

    /// Whether links and switches carry no more than they may.
    pub(super) fn check(&self, params: &CheckParams) -> Result<(), CheckError> {
        let slack = params.bandwidth_slack;
        let over = |(index, load, bandwidth): (u32, f64, f64)| {
            let most = bandwidth * (1.0 - slack);
            let free = if slack > 0.0 { format!(", of which {slack} stays free") } else { String::new() };
            let words = || format!("{} carries {load} of {bandwidth}{free}", self.network.name_of(index));
            (load > most * (1.0 + TOLERANCE)).then(words)
        };
        refuse(
            self.limited().filter_map(over),
            "links carry more than they can",
            "other routes or another mapping may do, or the demands exceed what the network has",
        )?;
        let most = params.switch_load.unwrap_or(f64::INFINITY);
        let over = |(node, load): (u32, f64)| {
            let name = &self.network.system.nodes[node as usize].name;
            (load > most * (1.0 + TOLERANCE)).then(|| format!("{load} at `{name}`"))
        };
        refuse(
            self.switches().filter_map(over),
            &format!("more arrives at switches than `switch_load` = {most}"),
            "other routes or another mapping may do, or `switch_load` is too little",
        )
    }

    /// Index, load and bandwidth of every link whose bandwidth is known.
    fn limited(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        let links = self.network.system.links.iter().zip(&self.links);
        (0..).zip(links).filter_map(|(index, (link, &load))| Some((index, load, link.bandwidth_bytes_per_s?)))
    }

    /// Every switch and what arrives at it.
    fn switches(&self) -> impl Iterator<Item = (u32, f64)> {
        (0..).zip(self.nodes.iter().copied()).filter(|&(node, _)| !self.network.is_host(node))
    }

    /// The least bandwidth that stays free, in bytes per second and as a part, and the largest loads.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let slack = self.limited().map(|(_, load, bandwidth)| bandwidth - load).fold(f64::INFINITY, f64::min);
        let used = self.limited().map(|(_, load, bandwidth)| load / bandwidth);
        let used = used.filter(|used| used.is_finite()).fold(0.0, f64::max);
        let busiest = self.switches().map(|(_, load)| load).fold(0.0, f64::max);
        let metrics = [
            ("least_bandwidth_slack", slack),
            ("least_bandwidth_slack_share", 1.0 - used),
            ("largest_link_utilisation", used),
            ("largest_switch_load", busiest),
        ];
        let finite = metrics.into_iter().filter(|(_, value)| value.is_finite());
        finite.map(|(name, value)| (name.to_owned(), value))
    }
}

/// Whether no route has more hops than it may.
pub(super) fn lengths(
    network: &Network<'_>,
    routes: &[Route],
    most_hops: Option<u32>,
) -> Result<(), CheckError> {
    let Some(most) = most_hops else { return Ok(()) };
    let name = |node: u32| &network.system.nodes[node as usize].name;
    let over = |route: &Route| {
        let hops = route.links.len();
        let words = || format!("`{}` to `{}` takes {hops} hops", name(route.source), name(route.destination));
        (hops > most as usize).then(words)
    };
    refuse(
        routes.iter().filter_map(over),
        &format!("routes are longer than `most_hops` = {most}"),
        "shorter routes may do, or another mapping, or `most_hops` is too little",
    )
}

/// An error that names what is wrong in words, if anything is.
fn refuse(faults: impl Iterator<Item = String>, problem: &str, help: &str) -> Result<(), CheckError> {
    let mut faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(MOST_FAULTS);
    faults.truncate(MOST_FAULTS);
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    Err(CheckError::new(format!("{problem}: {}{rest}", faults.join(", ")), help))
}
