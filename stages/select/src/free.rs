//! The set of free hosts.

use std::io::Read;
use std::path::Path;

use hopmap_formats::host_list::HostListError;
use hopmap_formats::host_names::{HostNames, short};
use hopmap_formats::{host_file, host_list, sinfo};
use hopmap_model::{Context, InputPath, Node, NodeKind, NodeState, SystemGraph, open_input};

use crate::error::check_one_of;
use crate::{NodesParams, SelectError, Source};

/// Environment variable with the node list of a job.
const VARIABLE: &str = "SLURM_JOB_NODELIST";
/// Largest size of a file with host names.
const MAX_BYTES: u64 = 1 << 28;

/// Named hosts and their source.
struct NamedHosts {
    /// The file, variable or parameter.
    place: String,
    /// Whether it is a parameter, to which messages about single hosts need not point.
    is_parameter: bool,
    names: Vec<String>,
    /// Whether they come from the whole cluster, which may have hosts that the machine topology lacks.
    of_cluster: bool,
}

/// The parameters that name hosts.
pub(crate) struct Listing<'p> {
    /// The parameter that holds a host list.
    pub(crate) parameter: &'static str,
    pub(crate) list: Option<&'p str>,
    pub(crate) file: Option<&'p Path>,
    pub(crate) from: Source,
    pub(crate) mixed: bool,
    pub(crate) exclude: &'p str,
}

impl<'p> From<&'p NodesParams> for Listing<'p> {
    fn from(params: &'p NodesParams) -> Self {
        Self {
            parameter: "free",
            list: params.free.as_deref(),
            file: params.free_file.as_ref().map(InputPath::path),
            from: params.from.resolved(params.free.as_deref(), params.free_file.as_ref()),
            mixed: params.mixed,
            exclude: &params.exclude,
        }
    }
}

impl Listing<'_> {
    /// Checks that only one source of hosts is given; `file` is the parameter for a file.
    pub(crate) fn check(&self, file: &'static str) -> Result<(), SelectError> {
        let is_listed = self.list.is_some_and(|list| !list.is_empty());
        let from_job = self.from == Source::SlurmNodelist;
        check_one_of(&[(self.parameter, is_listed), (file, self.file.is_some()), ("from", from_job)])
    }
}

/// The named hosts that are up, by ascending index among the hosts with slots.
pub(crate) fn listed_hosts(
    system: &SystemGraph,
    listing: &Listing<'_>,
    cx: &Context<'_>,
) -> Result<Vec<u32>, SelectError> {
    let known = HostIndex::new(system);
    let excluded = expand(listing.exclude, "exclude")?;
    let mut is_free = match names(listing)? {
        None => vec![true; known.hosts().len()],
        Some(names) => known.marks(names, cx)?,
    };
    for name in excluded.iter().filter(|name| !known.is_lost(name)) {
        is_free[known.index(name, " in `exclude`")?] = false;
    }
    known.leave_out_down(&mut is_free, cx);
    let free: Vec<u32> = (0..).zip(&is_free).filter(|(_, free)| **free).map(|(host, _)| host).collect();
    match free.is_empty() {
        true => Err(SelectError::too_few(1, "hosts", 0, 0)),
        false => Ok(free),
    }
}

/// The hosts that the parameters name; `None` selects all hosts of the machine.
fn names(listing: &Listing<'_>) -> Result<Option<NamedHosts>, SelectError> {
    if listing.from == Source::SlurmNodelist {
        let list = std::env::var(VARIABLE).map_err(|_| {
            let help =
                "run inside a Slurm job (sbatch, salloc), or name the hosts: `free`, or `-p hosts=` of the pipeline `job`";
            SelectError::new(format!("the variable {VARIABLE} is not set"), help)
        })?;
        return list_of_job(&list).map(Some);
    }
    if let Some(file) = listing.file {
        return from_file(file, listing.mixed).map(Some);
    }
    match listing.list {
        None => Ok(None),
        Some(text) if text.trim() == "all" => Ok(None),
        Some(text) => {
            let place = format!("`{}`", listing.parameter);
            let names = expand(text, listing.parameter)?;
            Ok(Some(NamedHosts { place, is_parameter: true, names, of_cluster: false }))
        }
    }
}

fn list_of_job(list: &str) -> Result<NamedHosts, SelectError> {
    let names = expand(list, VARIABLE)?;
    Ok(NamedHosts { place: VARIABLE.to_owned(), is_parameter: false, names, of_cluster: false })
}

fn expand(text: &str, parameter: &str) -> Result<Vec<String>, SelectError> {
    host_list::expand(text).map_err(|list| in_list(list, parameter))
}

fn in_list(list: HostListError, parameter: &str) -> SelectError {
    SelectError::HostList { parameter: parameter.to_owned(), list: Box::new(list) }
}

fn from_file(path: &Path, mixed: bool) -> Result<NamedHosts, SelectError> {
    let text = read(path)?;
    let place = format!("`{}`", path.display());
    if !sinfo::is_sinfo(&text) {
        let hosts = host_file::expand(&text).map_err(|list| in_list(list, &path.display().to_string()))?;
        let names = hosts.into_iter().map(|(name, _)| name).collect();
        return Ok(NamedHosts { place, is_parameter: false, names, of_cluster: false });
    }
    let nodes = sinfo::read(&text)
        .map_err(|sinfo| SelectError::Sinfo { path: path.to_owned(), sinfo: Box::new(sinfo) })?;
    let least = if mixed { sinfo::Availability::Mixed } else { sinfo::Availability::Free };
    let names = nodes.into_iter().filter(|node| node.availability <= least).map(|node| node.name).collect();
    Ok(NamedHosts { place, is_parameter: false, names, of_cluster: true })
}

/// Reads a text file and blanks comment lines, which begin with `#`.
fn read(path: &Path) -> Result<String, SelectError> {
    let fault = |source| SelectError::Read { path: path.to_owned(), source };
    let no_list = |what| {
        let help =
            "give host names, a host list such as node[001-128], or the output of `sinfo -N -h -o '%N %T'`";
        SelectError::new(format!("`{}` is not a host list: {what}", path.display()), help)
    };
    let mut bytes = Vec::new();
    open_input(path).map_err(fault)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(no_list("it is larger than 256 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| no_list("it is not UTF-8 text"))?;
    let uncommented = |line: &str| match line.trim_start().starts_with('#') {
        true => "\n".to_owned(),
        false => line.to_owned(),
    };
    match text.contains('#') {
        true => Ok(text.split_inclusive('\n').map(uncommented).collect()),
        false => Ok(text),
    }
}

struct HostIndex<'s> {
    system: &'s SystemGraph,
    names: HostNames<'s>,
}

impl<'s> HostIndex<'s> {
    fn new(system: &'s SystemGraph) -> Self {
        let name = |(node, _, _): (u32, u32, u32)| system.nodes[node as usize].name.as_str();
        Self { system, names: system.hosts().map(name).collect() }
    }

    fn hosts(&self) -> &[&'s str] {
        self.names.names()
    }

    /// Whether a host is known to be down and has no slots: it did not answer when the machine was measured.
    fn is_lost(&self, name: &str) -> bool {
        let is_it =
            |node: &Node| node.name == name && node.kind == NodeKind::Host && node.state == NodeState::Down;
        self.names.find(name).is_none() && self.system.nodes.iter().any(is_it)
    }

    /// Hosts that are down never count as free, whatever the host list contains.
    fn leave_out_down(&self, is_free: &mut [bool], cx: &Context<'_>) {
        let is_down = |node: &&Node| node.kind == NodeKind::Host && node.state == NodeState::Down;
        let down = self.system.nodes.iter().filter(is_down);
        let hosts = down.filter_map(|node| self.names.find(&node.name));
        let hosts: Vec<usize> = hosts.filter(|&host| is_free[host]).collect();
        if !hosts.is_empty() {
            let names = host_list::compress(hosts.iter().map(|&host| self.hosts()[host]));
            cx.log(format_args!("ignoring hosts that are down: {names}"));
        }
        hosts.into_iter().for_each(|host| is_free[host] = false);
    }

    /// Marks the named hosts.
    fn marks(&self, names: NamedHosts, cx: &Context<'_>) -> Result<Vec<bool>, SelectError> {
        let NamedHosts { place, is_parameter, names, of_cluster } = names;
        let (lost, names): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| self.is_lost(name));
        if !lost.is_empty() {
            cx.log(format_args!("ignoring hosts that are down: {}", host_list::compress(&lost)));
        }
        let (known, unknown): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| !of_cluster || self.names.find(name).is_some());
        if !unknown.is_empty() {
            cx.log(format_args!(
                "{place} has {} free hosts that are not in the machine topology: {}",
                unknown.len(),
                host_list::compress(&unknown)
            ));
        }
        if known.is_empty() {
            let help = "list free hosts, such as node[001-128]; `all` selects all hosts of the machine";
            return Err(SelectError::new(format!("{place} contains no host of the machine topology"), help));
        }
        let mut marked = vec![false; self.hosts().len()];
        let mut other_names = Vec::new();
        let in_place = if is_parameter { String::new() } else { format!(" in {place}") };
        for name in &known {
            let host = self.index(name, &in_place)?;
            if self.hosts()[host] != name {
                other_names.push(format!("`{name}` is `{}`", self.hosts()[host]));
            }
            let mark = &mut marked[host];
            if *mark {
                let problem = format!("{place} contains `{name}` twice");
                return Err(SelectError::new(problem, "list every host once"));
            }
            *mark = true;
        }
        if let Some(first) = other_names.first() {
            let count = other_names.len();
            cx.log(format_args!("hosts with another name in the machine topology: {count}; {first} there"));
        }
        Ok(marked)
    }

    /// The index of a host, which is named in this place.
    fn index(&self, name: &str, in_place: &str) -> Result<usize, SelectError> {
        self.names.find(name).ok_or_else(|| {
            let problem = format!("`{name}`{in_place} is not a host with slots in the machine topology");
            SelectError::new(problem, self.hint(name))
        })
    }

    /// A hint for an unknown name: a similar host name, or the range of names.
    fn hint(&self, name: &str) -> String {
        if self.system.nodes.iter().any(|node| node.name == name && node.kind == NodeKind::Switch) {
            return format!("`{name}` is a switch; list hosts");
        }
        let near = |known: &&&str| {
            let labels = strsim::levenshtein(short(known), short(name));
            (labels.min(strsim::levenshtein(known, name)), strsim::levenshtein(known, name))
        };
        let hosts = self.hosts();
        match hosts.iter().min_by_key(near) {
            Some(known) => format!(
                "did you mean `{known}`? The machine topology has {} hosts, from `{}` to `{}`",
                hosts.len(),
                hosts[0],
                hosts[hosts.len() - 1]
            ),
            None => "the machine topology has no hosts with slots".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_a_job_are_a_host_list() {
        assert_eq!(list_of_job("n[1-2],m7").unwrap().names, ["n1", "n2", "m7"]);
        let error = list_of_job("n[1-").err().unwrap().to_string();
        assert_eq!(error, "`SLURM_JOB_NODELIST`: host list, column 2: unclosed bracket");
    }
}
