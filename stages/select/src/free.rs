//! The set of free hosts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hopmap_formats::batch_job::{BatchJob, NODES, VARIABLES};
use hopmap_formats::host_file::{self, Hosts};
use hopmap_formats::host_list::{self, HostListError};
use hopmap_formats::host_names::{HostNames, named_twice, short};
use hopmap_formats::sinfo;
use hopmap_formats::slots::{SLOTS, Slots};
use hopmap_model::{Context, InputPath, Node, NodeKind, NodeState, SystemGraph};
use hopmap_text::{FileError, counted, foreign_lines, read_text, without_foreign};

use crate::error::{SelectError, check_one_of};
use crate::params::{NodesParams, Source};

/// Largest size of a file with host names.
const MAX_BYTES: u64 = 1 << 28;

/// Named hosts and their source.
struct NamedHosts {
    /// The file, variable or parameter.
    place: String,
    /// Whether it is a parameter, to which messages about single hosts need not point.
    is_parameter: bool,
    /// Names, and the most slots of each where the source has a number.
    hosts: Hosts,
    /// What gives these numbers.
    slots_of: String,
    /// How many ranks the job can start on each at most.
    most: Vec<Option<u32>>,
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
        let from_job = self.from != Source::List;
        check_one_of(&[(self.parameter, is_listed), (file, self.file.is_some()), ("from", from_job)])
    }
}

/// Hosts that are free.
pub(crate) struct Listed {
    /// By ascending index among the hosts with slots.
    pub(crate) hosts: Vec<u32>,
    /// The machine with as many slots per host as the source of the names has, such as the tasks per node of a job.
    pub(crate) system: Arc<SystemGraph>,
}

/// The named hosts that are up, with at most as many slots as are given for each, or else as their source says.
pub(crate) fn listed_hosts(
    system: Arc<SystemGraph>,
    listing: &Listing<'_>,
    slots: &Slots,
    cx: &Context<'_>,
) -> Result<Listed, SelectError> {
    let known = HostIndex::new(&system);
    let excluded = expand(listing.exclude, "exclude")?;
    // The most slots of every host that is free.
    let mut free = match names(listing, cx)? {
        None => {
            let hosts = known.hosts().iter().map(|name| ((*name).to_owned(), None)).collect();
            let all = given(slots, &hosts, "the machine", false)?;
            all.into_iter().map(|slots| slots.or(Some(u32::MAX))).collect()
        }
        Some(mut names) => {
            names.limit(slots, cx)?;
            known.marks(names, slots.is_empty(), cx)?
        }
    };
    for name in excluded.iter().filter(|name| !known.is_lost(name)) {
        free[known.index(name, " in `exclude`")?] = None;
    }
    known.leave_out_down(&mut free, cx);
    if !slots.is_empty() {
        known.log_slots("`slots_per_host`", &free, |most, has| most > has, cx);
    }
    let hosts: Vec<u32> = (0..).zip(&free).filter(|(_, free)| free.is_some()).map(|(host, _)| host).collect();
    if hosts.is_empty() {
        return Err(SelectError::too_few(1, "hosts", 0, 0));
    }
    let of_host = |host: usize| free[host].unwrap_or(u32::MAX);
    let is_less = system.hosts().enumerate().any(|(host, (_, _, slots))| of_host(host) < slots);
    let system = if is_less { Arc::new(system.with_slots_per_host(of_host)) } else { system };
    Ok(Listed { hosts, system })
}

/// The slots of the hosts in this place, if they are given.
fn given(slots: &Slots, hosts: &Hosts, place: &str, is_list: bool) -> Result<Vec<Option<u32>>, SelectError> {
    let given = slots.of_hosts("`slots_per_host`", hosts, place, is_list);
    given.map_err(|problem| SelectError::new(problem, SLOTS))
}

impl NamedHosts {
    /// Hosts with the slots that their source gives them.
    fn new(place: String, hosts: Hosts) -> Self {
        let most = vec![None; hosts.len()];
        Self { slots_of: place.clone(), place, is_parameter: false, hosts, most, of_cluster: false }
    }

    /// Takes the slots that are given, in the order of the hosts, but no more than the job can start.
    fn limit(&mut self, slots: &Slots, cx: &Context<'_>) -> Result<(), SelectError> {
        let given = given(slots, &self.hosts, &self.place, self.is_parameter)?;
        let mut fewer = Vec::new();
        for ((host, given), most) in self.hosts.iter_mut().zip(given).zip(&self.most) {
            let Some(given) = given else { continue };
            let used = most.map_or(given, |most| most.min(given));
            if used < given {
                fewer.push(format!("{used} on {}", host.0));
            }
            host.1 = Some(used);
        }
        if let Some(first) = fewer.first() {
            let more = if fewer.len() > 1 {
                format!(" and on {} more hosts", fewer.len() - 1)
            } else {
                String::new()
            };
            cx.log(format_args!("the job starts fewer ranks than `slots`: {first}{more}"));
        }
        Ok(())
    }
}

/// The hosts that the parameters name; `None` selects all hosts of the machine.
fn names(listing: &Listing<'_>, cx: &Context<'_>) -> Result<Option<NamedHosts>, SelectError> {
    if listing.from != Source::List {
        let job = BatchJob::of_environment()
            .transpose()
            .map_err(|error| SelectError::new(error.to_string(), error.help))?;
        let help = "run inside a job (sbatch, salloc, qsub, bsub), or name the hosts: `free`, or `--hosts` of the pipeline `job`";
        return match job {
            Some(job) if job.is_slurm() || listing.from == Source::Auto => {
                job.remarks.iter().for_each(|remark| cx.log(format_args!("`{}`: {remark}", job.variable)));
                Ok(Some(of_job(job)))
            }
            _ if listing.from == Source::SlurmNodelist => {
                Err(SelectError::new(format!("the variable {NODES} is not set"), help))
            }
            _ => Err(SelectError::new(format!("no job names its hosts: {VARIABLES} is not set"), help)),
        };
    }
    if let Some(file) = listing.file {
        return from_file(file, listing.mixed, cx).map(Some);
    }
    match listing.list {
        None => Ok(None),
        Some(text) if text.trim() == "all" => Ok(None),
        Some(text) => {
            let place = format!("`{}`", listing.parameter);
            let hosts = host_file::expand_list(text).map_err(|list| in_list(list, listing.parameter))?;
            Ok(Some(NamedHosts { is_parameter: true, ..NamedHosts::new(place, hosts) }))
        }
    }
}

fn of_job(job: BatchJob) -> NamedHosts {
    let named = NamedHosts::new(job.variable.to_owned(), job.hosts);
    NamedHosts { slots_of: job.slots_of.to_owned(), most: job.most, ..named }
}

fn expand(text: &str, parameter: &str) -> Result<Vec<String>, SelectError> {
    host_list::expand(text).map_err(|list| in_list(list, parameter))
}

fn in_list(list: HostListError, parameter: &str) -> SelectError {
    SelectError::HostList { parameter: parameter.to_owned(), list: Box::new(list) }
}

fn from_file(path: &Path, mixed: bool, cx: &Context<'_>) -> Result<NamedHosts, SelectError> {
    let text = read_text(path, MAX_BYTES)?;
    if text.trim().is_empty() {
        let help = "give names, a host list such as node[001-128], or the output of `sinfo -N -h -o '%N %T'`";
        return Err(FileError::new("it is empty", help).in_file(path).into());
    }
    let place = format!("`{}`", path.display());
    let states = without_foreign(&text);
    if !sinfo::is_sinfo(&states) {
        let file = match host_file::is_resource_set(&text) {
            true => host_file::read(path)?,
            false => host_file::expand(&text).map_err(|list| in_list(list, &path.display().to_string()))?,
        };
        for remark in &file.remarks {
            cx.log(format_args!("{place}: {remark}"));
        }
        return Ok(NamedHosts::new(place, file.hosts));
    }
    if let Some(foreign) = foreign_lines(path) {
        cx.log(format_args!("{place}: {foreign}"));
    }
    let nodes = sinfo::read(&states)
        .map_err(|sinfo| SelectError::Sinfo { path: path.to_owned(), sinfo: Box::new(sinfo) })?;
    let least = if mixed { sinfo::Availability::Mixed } else { sinfo::Availability::Free };
    let (free, taken): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.availability <= least);
    let log = |what: &str, nodes: &[sinfo::NodeState], has: fn(&str) -> bool| {
        let names = host_list::compress(nodes.iter().filter(|node| has(&node.state)).map(|node| &node.name));
        if !names.is_empty() {
            cx.log(format_args!("{place}: {what}: {names}"));
        }
    };
    log("free, but powered off or powering up (`idle~`, `idle#`)", &free, |state| state.contains(['~', '#']));
    let is_planned =
        |state: &str| state.contains('-') || ["planned", "plnd"].iter().any(|word| state.starts_with(word));
    log("planned for other jobs (`-`, `planned`), and so not free", &taken, is_planned);
    log(
        &format!("not free: {} of {}", taken.len(), counted(free.len() + taken.len(), "host")),
        &taken,
        |_| true,
    );
    let hosts = free.into_iter().map(|node| (node.name, None)).collect();
    Ok(NamedHosts { of_cluster: true, ..NamedHosts::new(place, hosts) })
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
    fn leave_out_down(&self, free: &mut [Option<u32>], cx: &Context<'_>) {
        let is_down = |node: &&Node| node.kind == NodeKind::Host && node.state == NodeState::Down;
        let down = self.system.nodes.iter().filter(is_down);
        let hosts = down.filter_map(|node| self.names.find(&node.name));
        let hosts: Vec<usize> = hosts.filter(|&host| free[host].is_some()).collect();
        if !hosts.is_empty() {
            let names = host_list::compress(hosts.iter().map(|&host| self.hosts()[host]));
            cx.log(format_args!("ignoring hosts that are down: {names}"));
        }
        hosts.into_iter().for_each(|host| free[host] = None);
    }

    /// Marks the named hosts with the most slots of each. If these numbers count, hosts that have others are logged.
    fn marks(
        &self,
        named: NamedHosts,
        numbers_count: bool,
        cx: &Context<'_>,
    ) -> Result<Vec<Option<u32>>, SelectError> {
        let NamedHosts { place, is_parameter, hosts, slots_of, of_cluster, .. } = named;
        let listed =
            |hosts: &[(String, Option<u32>)]| host_list::compress(hosts.iter().map(|(name, _)| name));
        let (lost, hosts): (Vec<_>, Vec<_>) = hosts.into_iter().partition(|(name, _)| self.is_lost(name));
        if !lost.is_empty() {
            cx.log(format_args!("ignoring hosts that are down: {}", listed(&lost)));
        }
        let (known, unknown): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|(name, _)| !of_cluster || self.names.find(name).is_some());
        if !unknown.is_empty() {
            cx.log(format_args!(
                "{place} has {} free hosts that are not in the machine topology: {}",
                unknown.len(),
                listed(&unknown)
            ));
        }
        if known.is_empty() {
            let help = "list free hosts, such as node[001-128]; `all` selects all hosts of the machine";
            return Err(SelectError::new(format!("{place} contains no host of the machine topology"), help));
        }
        let mut marked = vec![None; self.hosts().len()];
        let mut other_names = Vec::new();
        let in_place = if is_parameter { String::new() } else { format!(" in {place}") };
        for (name, slots) in &known {
            let host = self.index(name, &in_place)?;
            if self.hosts()[host] != name {
                other_names.push(format!("`{name}` is `{}`", self.hosts()[host]));
            }
            let mark = &mut marked[host];
            if mark.is_some() {
                let is_it = |name: &&str| self.names.find(name) == Some(host);
                let same: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).filter(is_it).collect();
                let twice = named_twice(&same).unwrap_or_default();
                return Err(SelectError::new(format!("{place} contains {twice}"), "list every host once"));
            }
            *mark = Some(slots.unwrap_or(u32::MAX));
        }
        if numbers_count {
            let (with, without): (Vec<_>, Vec<_>) = known.iter().partition(|(_, slots)| slots.is_some());
            if !with.is_empty() && !without.is_empty() {
                let without = host_list::compress(without.iter().map(|(name, _)| name));
                cx.log(format_args!(
                    "{place} has no slots of {without}: all are used there, as Open MPI does"
                ));
            }
            self.log_slots(&slots_of, &marked, |most, has| most != has, cx);
        }
        if let Some(first) = other_names.first() {
            let count = other_names.len();
            cx.log(format_args!("hosts with another name in the machine topology: {count}; {first} there"));
        }
        Ok(marked)
    }

    /// Logs the hosts of which a list or parameter gives other numbers of slots than the machine has.
    fn log_slots(
        &self,
        place: &str,
        marked: &[Option<u32>],
        is_other: fn(u32, u32) -> bool,
        cx: &Context<'_>,
    ) {
        let mut others: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
        for ((_, _, slots), (most, name)) in self.system.hosts().zip(marked.iter().zip(self.hosts())) {
            if let Some(most) = most.filter(|most| *most != u32::MAX && is_other(*most, slots)) {
                others.entry((most, slots)).or_default().push(name);
            }
        }
        for ((most, slots), names) in others {
            let used = most.min(slots);
            let names = host_list::compress(names);
            cx.log(format_args!(
                "{place} has {most} slots per host on {names}, the machine topology {slots}: {used} are used"
            ));
        }
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
