//! Launch files: host and rank files of Open MPI, machine files of MPICH and Intel MPI, host files of Slurm,
//! the rank order file of HPE Cray MPICH, and those of Flux and Fujitsu MPI. The limits of each launcher are in `docs/howto/launch.md`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use hopmap_formats::host_list::{HOST_NAMES, is_host_name};
use hopmap_model::{HostSlots, LaunchFile, Mapping, Placement};

use crate::default_placement::default_options;
use crate::error::LaunchError;
use crate::launch::Launch;

/// Name of the file of HPE Cray MPICH.
pub const CRAY_FILE: &str = "MPICH_RANK_ORDER";
/// Name of the file of `hopmap reorder`.
pub const REORDER_FILE: &str = "rank-order";

fn joined(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Consecutive ranks on one host.
fn blocks(mapping: &Mapping) -> Vec<Vec<&Placement>> {
    mapping.ranks.chunk_by(|a, b| a.host == b.host).map(|block| block.iter().collect()).collect()
}

/// The ranks of every host, in rank order.
pub(crate) fn ranks_of_hosts(mapping: &Mapping) -> Vec<Vec<&Placement>> {
    let mut hosts = vec![Vec::new(); mapping.hosts.len()];
    mapping.ranks.iter().for_each(|placement| hosts[placement.host as usize].push(placement));
    hosts
}

/// The hosts in use, and the number of ranks on each.
pub(crate) fn counts(mapping: &Mapping) -> Vec<(String, u32)> {
    let groups = ranks_of_hosts(mapping).into_iter().zip(&mapping.hosts);
    let used = groups.filter(|(ranks, _)| !ranks.is_empty());
    used.map(|(ranks, host)| (host.host.clone(), ranks.len() as u32)).collect()
}

/// The cores of the first, second, … rank of every group; an error if two groups differ.
pub(crate) fn common_cores(groups: &[Vec<&Placement>]) -> Result<Vec<u32>, LaunchError> {
    let mut common: Vec<u32> = Vec::new();
    for (place, placement) in groups.iter().flat_map(|group| group.iter().enumerate()) {
        let help = "the launcher takes one list of cores for all hosts; use a rank file of Open MPI, or set `bind = false`";
        let Some(core) = placement.core else {
            return Err(LaunchError::new("the mapping does not specify the core of every rank", help));
        };
        match common.get(place) {
            None => common.push(core),
            Some(&other) if other != core => {
                let problem = format!(
                    "rank number {place} of one host is on core {other}, that of another on core {core}, \
                     which this launcher cannot bind"
                );
                return Err(LaunchError::new(problem, help));
            }
            Some(_) => {}
        }
    }
    Ok(common)
}

/// Host file of Open MPI's sequential mapper: rank `i` runs on the host of line `i`.
///
/// The `slots=` form is not used: it adds up the slots of repeated lines and so loses the rank order. Format: mpirun(1) of
/// Open MPI 4.1, "Sequential mapping"; unchanged in 5.0.
///
/// Open MPI 5.0.11 ends in its sequential mapper ("PMIX ERROR … `bfrop_base_unpack.c`") unless it binds no rank.
pub(crate) fn hostfile(mapping: &Mapping, digest: &str, is_5: bool) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    check_for_open_mpi(&hosts)?;
    if let Some(host) = hosts.iter().find(|host| is_loopback(host)) {
        let problem = format!("Open MPI's sequential mapper does not know `{host}`");
        return Err(LaunchError::new(problem, "use the name of the host, or launch/rankfile"));
    }
    let binding = if is_5 { " --bind-to none" } else { "" };
    Ok(LaunchFile {
        name: "hostfile".into(),
        text: host_per_line(digest, &hosts),
        command: format!("mpirun -n {} --hostfile {{file}} --map-by seq{binding} {{program}}", hosts.len()),
    })
}

/// Whether Open MPI 4.1.4's sequential mapper rejects this name of the local machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback())
}

/// Machine file for MPICH's Hydra, which assigns ranks line by line: one host per line and rank, as in GraphHunter. The command
/// starts Hydra's proxies by ssh: in a Slurm job Hydra would use `srun`, which sorts the hosts.
pub(crate) fn mpich_machinefile(
    mapping: &Mapping,
    digest: &str,
    binds: bool,
) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let cores = if binds { common_cores(&blocks(mapping))? } else { Vec::new() };
    let is_in_order = (0..).zip(&cores).all(|(index, &core)| index == core);
    let binding = match is_in_order {
        _ if !binds => String::new(),
        true => " -bind-to core".to_owned(),
        false => format!(" -bind-to user:{}", joined(&cores)),
    };
    Ok(LaunchFile {
        name: "machinefile".into(),
        text: host_per_line(digest, &hosts),
        command: format!("mpiexec.hydra -launcher ssh -f {{file}}{binding} -n {} {{program}}", hosts.len()),
    })
}

/// Machine file for Intel MPI: it uses a host of `-f` once, however often it is repeated, but keeps the order of the `host:count`
/// lines of `-machinefile` (Intel MPI Library Developer Reference, "Global Hydra Options").
/// `I_MPI_PIN_PROCESSOR_LIST=allcores` binds the ranks of a host to one core each, in rank order ("Environment
/// Variables for Process Pinning" there). Tested with Intel MPI 2021.14: hosts, not cores.
pub(crate) fn intel_machinefile(
    mapping: &Mapping,
    digest: &str,
    binds: bool,
) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let cores = match binds {
        true => joined(&common_cores(&ranks_of_hosts(mapping))?),
        false => "allcores".to_owned(),
    };
    let options = "-bootstrap ssh -machinefile {file} -genv I_MPI_PIN_PROCESSOR_LIST";
    Ok(LaunchFile {
        name: "machinefile".into(),
        text: host_counts(digest, &hosts),
        command: format!("mpiexec.hydra {options} {cores} -n {} {{program}}", hosts.len()),
    })
}

/// Host and core of each rank, for `hopmap reorder`, and a command that starts as many processes on each host.
pub(crate) fn reordered(mapping: &Mapping, digest: &str, launch: Launch) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let mut text = heading(digest);
    for (rank, (host, placement)) in hosts.iter().zip(&mapping.ranks).enumerate() {
        let core = placement.core.map_or_else(String::new, |core| format!(" {core}"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{rank} {host}{core}");
    }
    let options = default_options(launch, mapping.ranks.len() as u32, &counts(mapping)).ok_or_else(|| {
        let problem =
            "the mapping has different numbers of ranks on its hosts, for which this launcher has no option";
        LaunchError::new(
            problem,
            "use all slots of every host, or start the ranks by hand with hopmap reorder",
        )
    })?;
    let command =
        format!("{} {} hopmap reorder --mapping {{file}} {{program}}", launch.program(), options.join(" "));
    Ok(LaunchFile { name: REORDER_FILE.into(), text, command })
}

fn host_counts(digest: &str, hosts: &[&str]) -> String {
    let runs = hosts.chunk_by(|a, b| a == b).map(|run| format!("{}:{}\n", run[0], run.len()));
    std::iter::once(heading(digest)).chain(runs).collect()
}

/// Number of blocks of consecutive ranks on one host, and number of hosts with ranks.
#[must_use]
pub fn runs(mapping: &Mapping) -> (usize, usize) {
    let hosts: Vec<u32> = mapping.ranks.iter().map(|placement| placement.host).collect();
    let used: std::collections::HashSet<u32> = hosts.iter().copied().collect();
    (hosts.chunk_by(|a, b| a == b).count(), used.len())
}

/// Host file for `SLURM_HOSTFILE`: task `i` of `srun -m arbitrary` runs on the host of line `i`.
///
/// Works inside an allocation that contains the hosts, and without an allocation.
///
/// Format: srun(1), `--distribution=arbitrary`; comments were tested with Slurm 22.05.
pub(crate) fn slurm_hostfile(
    mapping: &Mapping,
    digest: &str,
    binds: bool,
) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let binding = match binds {
        true => format!(" --cpu-bind=map_cpu:{}", joined(&common_cores(&ranks_of_hosts(mapping))?)),
        false => String::new(),
    };
    Ok(LaunchFile {
        name: "slurm-hostfile".into(),
        text: host_per_line(digest, &hosts),
        command: format!("SLURM_HOSTFILE={{file}} srun -m arbitrary{binding} -n {} {{program}}", hosts.len()),
    })
}

/// Open MPI's rank file: host and core of every rank. Open MPI 4 takes the hosts from it; 5.0.11 uses only hosts that a list, or the
/// job, gives it as many slots of.
///
/// Cores are logical indexes, as in the mapping.
/// Format: mpirun(1) of Open MPI 4.1, "Rankfiles"; PRRTE 3.0 documentation, "Rankfiles", for 5.x.
pub(crate) fn rankfile(mapping: &Mapping, digest: &str, is_5: bool) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    check_for_open_mpi(&hosts)?;
    let mut text = heading(digest);
    for (rank, (host, placement)) in hosts.iter().zip(&mapping.ranks).enumerate() {
        let core = placement.core.ok_or_else(|| {
            let problem = format!("the mapping does not specify the core of rank {rank} on `{host}`");
            let help = "a rank file names a core for every rank; launch/hostfile needs hosts only";
            LaunchError::new(problem, help)
        })?;
        // Writing to a string does not fail.
        let _ = writeln!(text, "rank {rank}={host} slot={core}");
    }
    let options = match is_5 {
        true => {
            let counts: Vec<String> =
                counts(mapping).iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
            format!("--host {} --map-by rankfile:file={{file}}", counts.join(","))
        }
        false => "--rankfile {file}".to_owned(),
    };
    Ok(LaunchFile {
        name: "rankfile".into(),
        text,
        command: format!("mpirun -n {} {options} {{program}}", hosts.len()),
    })
}

/// The host of each rank. Validates the mapping and all host names.
pub fn hosts_of_ranks(mapping: &Mapping) -> Result<Vec<&str>, LaunchError> {
    mapping.check()?;
    if mapping.ranks.is_empty() {
        let problem = "the mapping has no ranks, so there is nothing to start";
        return Err(LaunchError::new(problem, ""));
    }
    let mut seen = HashSet::new();
    for host in mapping.hosts.iter().map(|host| host.host.as_str()) {
        if !is_host_name(host) {
            let problem = format!("launchers cannot read the host name `{}`", host.escape_debug());
            return Err(LaunchError::new(problem, HOST_NAMES));
        }
        if !seen.insert(host) {
            let problem = format!("two hosts of the mapping are named `{host}`");
            return Err(LaunchError::new(problem, ""));
        }
    }
    Ok((0..mapping.ranks.len()).map(|rank| mapping.host_of(rank)).collect())
}

/// Checks that Open MPI can distinguish the hosts: it truncates names at the first dot (measured on 4.1.4, by
/// default in 5.x).
fn check_for_open_mpi(hosts: &[&str]) -> Result<(), LaunchError> {
    let Some((first, host)) = same_short_name(hosts) else { return Ok(()) };
    let problem = format!("Open MPI treats `{first}` and `{host}` as one host");
    let help = "it truncates names at the first dot; use names that differ before it, or launch/slurm";
    Err(LaunchError::new(problem, help))
}

/// Two hosts whose names are equal before the first dot.
#[must_use]
pub fn same_short_name<'m>(hosts: &[&'m str]) -> Option<(&'m str, &'m str)> {
    let mut by_short_name: HashMap<&str, &str> = HashMap::new();
    hosts.iter().find_map(|&host| {
        let first = *by_short_name.entry(short_name(host)).or_insert(host);
        (first != host).then_some((first, host))
    })
}

/// The name before the first dot, or the whole address.
#[must_use]
pub fn short_name(host: &str) -> &str {
    let is_address = host.parse::<std::net::Ipv4Addr>().is_ok();
    if is_address { host } else { host.split('.').next().unwrap_or(host) }
}

/// The comment line with the digest of the mapping.
#[must_use]
pub fn heading(digest: &str) -> String {
    format!("# hopmap mapping {digest}\n")
}

/// The heading, then one host per rank and line.
fn host_per_line(digest: &str, hosts: &[&str]) -> String {
    heading(digest) + &hosts.join("\n") + "\n"
}

/// `MPICH_RANK_ORDER` of HPE Cray MPICH: the ranks in slot order, one host per line. It is the inverse of a
/// mapping.
///
/// Slurm starts processes in blocks, and the library gives the i-th process the i-th rank of the file. So the
/// hosts in use are the first ones of the mapping, they have equal numbers of ranks, each from its first slot
/// on, and the nodes of the job are in the order of the mapping. Anything else is an error: with a remainder,
/// Slurm 22.05 fills hosts differently inside an allocation and when it creates one.
///
/// `block:block` and `--cpu-bind=cores` bind the processes of a host to its cores in order, as the mapping numbers
/// its slots; Slurm's default goes round the sockets (srun(1), `--distribution`, `--cpu-bind`).
///
/// Format: `intro_mpi(3)` of HPE Cray MPI, `MPICH_RANK_REORDER_METHOD` 3. Only the process placement of Slurm
/// was tested; the library was not available.
pub(crate) fn cray_rank_order(mapping: &Mapping, digest: &str) -> Result<LaunchFile, LaunchError> {
    rank_order(mapping, digest, |used, share| {
        format!(
            "srun -m block:block --cpu-bind=cores -N {used} -n {} --ntasks-per-node={share}",
            mapping.ranks.len()
        )
    })
}

/// The same file with the command of PALS, HPE's launcher where Slurm does not run: it names the hosts, in the order of the mapping.
///
/// Options: `mpiexec(1)` of HPE PALS; `--cpu-bind core` binds the processes of a host to its cores in order. Not tried.
pub(crate) fn pals_rank_order(mapping: &Mapping, digest: &str) -> Result<LaunchFile, LaunchError> {
    rank_order(mapping, digest, |used, share| {
        let hosts: Vec<&str> = mapping.hosts[..used].iter().map(|host| host.host.as_str()).collect();
        format!(
            "mpiexec -n {} --ppn {share} --cpu-bind core --hosts {}",
            mapping.ranks.len(),
            hosts.join(",")
        )
    })
}

/// The ranks in slot order, for a launcher that starts a given number of ranks on each host.
fn rank_order(
    mapping: &Mapping,
    digest: &str,
    launcher: impl FnOnce(usize, usize) -> String,
) -> Result<LaunchFile, LaunchError> {
    hosts_of_ranks(mapping)?;
    let rank_at: BTreeMap<u32, u32> =
        (0..).zip(&mapping.ranks).map(|(rank, placement)| (placement.slot, rank)).collect();
    let ranks_on: Vec<Vec<u32>> =
        mapping.hosts.iter().map(|host| ranks_on(host, &rank_at)).collect::<Result<_, _>>()?;
    let used = ranks_on.iter().filter(|ranks| !ranks.is_empty()).count();
    let share = equal_share(mapping, &ranks_on[..used])?;

    let mut text = heading(digest);
    for ranks in &ranks_on[..used] {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", ranks.join(","));
    }
    Ok(LaunchFile {
        name: CRAY_FILE.into(),
        text,
        command: format!(
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={{file}} {} {{program}}",
            launcher(used, share)
        ),
    })
}

/// The ranks on a host in slot order; an error if a free slot precedes one of them.
fn ranks_on(host: &HostSlots, rank_at: &BTreeMap<u32, u32>) -> Result<Vec<u32>, LaunchError> {
    let taken = rank_at.range(host.first_slot..host.first_slot + host.slots);
    let rank = |(local, (&slot, &rank)): (u32, (&u32, &u32))| match slot == host.first_slot + local {
        true => Ok(rank),
        false => Err(LaunchError::new(
            format!("slot {local} of `{}` is free, but later slots are not", host.host),
            "Cray's MPI fills hosts from the first slot; leave only the last slots free, or use launch/slurm",
        )),
    };
    (0..).zip(taken).map(rank).collect()
}

/// The number of ranks per host; an error if it differs between hosts, or if the hosts in use are not the
/// first ones.
fn equal_share(mapping: &Mapping, ranks_on: &[Vec<u32>]) -> Result<usize, LaunchError> {
    let share = mapping.ranks.len().div_ceil(ranks_on.len());
    match ranks_on.iter().position(|ranks| ranks.len() != share) {
        None => Ok(share),
        Some(index) => {
            let (ranks, host) = (ranks_on[index].len(), &mapping.hosts[index].host);
            Err(LaunchError::new(
                format!(
                    "the mapping puts {ranks} ranks on `{host}`, but every host in use must have {share}"
                ),
                "Cray's MPI starts equal numbers of ranks on the first hosts of the mapping; fill hosts evenly, or use launch/slurm",
            ))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hopmap_model::Weight;
    use proptest::prelude::*;

    /// Hosts with `slots` slots each, rank `i` on slot `taken[i]`, core = slot on the host.
    pub(crate) fn mapping(hosts: &[&str], slots: u32, taken: &[u32]) -> Mapping {
        let host = |(index, name): (usize, &&str)| HostSlots {
            host: (*name).to_owned(),
            first_slot: index as u32 * slots,
            slots,
        };
        Mapping {
            ranks: taken
                .iter()
                .map(|&slot| Placement { slot, host: slot / slots, core: Some(slot % slots) })
                .collect(),
            hosts: hosts.iter().enumerate().map(host).collect(),
            weight: Weight::Bytes,
            metrics: std::collections::BTreeMap::new(),
            convergence: Vec::new(),
            complete: true,
        }
    }

    /// Mappings of some ranks to some slots of up to six hosts.
    fn mappings() -> impl Strategy<Value = Mapping> {
        (1_u32..7, 1_u32..5)
            .prop_flat_map(|(hosts, slots)| {
                let all: Vec<u32> = (0..hosts * slots).collect();
                let ranks = 1..=all.len();
                (Just(hosts), Just(slots), Just(all).prop_shuffle(), ranks)
            })
            .prop_map(|(hosts, slots, taken, ranks)| {
                let names: Vec<String> = (0..hosts).map(|host| format!("node-{host}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                mapping(&names, slots, &taken[..ranks])
            })
    }

    /// The lines of a launch file after the digest.
    fn lines<'a>(text: &'a str, digest: &str) -> Vec<&'a str> {
        text.strip_prefix(&format!("# hopmap mapping {digest}\n")).unwrap().lines().collect()
    }

    #[test]
    fn names_that_launchers_would_split_are_rejected() {
        for bad in ["", "a b", "a\tb", "a\nb", "a:2", "a,b", "n[1-2]", "#a", "-n", "a*2", "é", "a/b"] {
            let error = hosts_of_ranks(&mapping(&[bad], 1, &[0])).unwrap_err();
            let expected = format!("launchers cannot read the host name `{}`", bad.escape_debug());
            assert_eq!(error.to_string(), expected);
        }
        for good in ["localhost", "10.0.0.1", "node-1.cluster.org", "1abc", "n_1"] {
            assert_eq!(hosts_of_ranks(&mapping(&[good], 1, &[0])).unwrap(), [good]);
        }
    }

    #[test]
    fn a_control_character_is_shown_escaped() {
        let error = hosts_of_ranks(&mapping(&["a\nb"], 1, &[0])).unwrap_err();
        assert_eq!(error.to_string(), r"launchers cannot read the host name `a\nb`");
    }

    #[test]
    fn repeated_names_and_invalid_or_empty_mappings_are_rejected() {
        let refused = |mapping: &Mapping| hosts_of_ranks(mapping).unwrap_err();
        let repeated = refused(&mapping(&["a", "a"], 1, &[0])).to_string();
        assert_eq!(repeated, "two hosts of the mapping are named `a`");
        assert!(matches!(refused(&mapping(&["a"], 2, &[0, 0])), LaunchError::Mapping(_)));
        let empty = refused(&mapping(&["a"], 2, &[])).to_string();
        assert_eq!(empty, "the mapping has no ranks, so there is nothing to start");
    }

    #[test]
    fn names_that_open_mpi_cannot_distinguish_are_rejected() {
        assert!(check_for_open_mpi(&["10.0.0.1", "10.0.0.2", "a.x", "b.x", "a.x"]).is_ok());
        let error = check_for_open_mpi(&["a.x", "a.y"]).unwrap_err();
        assert_eq!(error.to_string(), "Open MPI treats `a.x` and `a.y` as one host");
    }

    #[test]
    fn rank_i_is_on_line_i_of_a_host_file() {
        let file = hostfile(&mapping(&["a", "b"], 2, &[2, 0, 3]), "d1", false).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\na\nb\n");
        assert_eq!(file.command, "mpirun -n 3 --hostfile {file} --map-by seq {program}");
    }

    #[test]
    fn localhost_is_rejected() {
        for host in ["localhost", "127.0.0.1"] {
            let error = hostfile(&mapping(&[host], 1, &[0]), "d", false).unwrap_err();
            assert_eq!(error.to_string(), format!("Open MPI's sequential mapper does not know `{host}`"));
        }
    }

    proptest! {
        #[test]
        fn the_file_names_the_host_of_every_rank(mapping in mappings()) {
            let file = hostfile(&mapping, "d", false).unwrap();
            let expected: Vec<&str> = (0..mapping.ranks.len()).map(|rank| mapping.host_of(rank)).collect();
            prop_assert_eq!(lines(&file.text, "d"), expected);
        }
    }

    #[test]
    fn mpich_reads_one_line_per_rank() {
        let mapping = mapping(&["a", "b"], 3, &[4, 3, 0, 5]);
        let file = mpich_machinefile(&mapping, "d1", false).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\nb\na\nb\n");
        assert_eq!(file.command, "mpiexec.hydra -launcher ssh -f {file} -n 4 {program}");
        assert_eq!(runs(&mapping), (3, 2));
    }

    #[test]
    fn intel_reads_counts_of_consecutive_ranks() {
        let file = intel_machinefile(&mapping(&["a", "b"], 3, &[4, 3, 0, 5]), "d1", false).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb:2\na:1\nb:1\n");
        assert_eq!(
            file.command,
            "mpiexec.hydra -bootstrap ssh -machinefile {file} -genv I_MPI_PIN_PROCESSOR_LIST allcores -n 4 {program}"
        );
    }

    proptest! {
        #[test]
        fn counts_unfold_to_the_host_of_every_rank(mapping in mappings()) {
            let file = intel_machinefile(&mapping, "d", false).unwrap();
            let read = lines(&file.text, "d").into_iter().flat_map(|line| {
                let (host, count) = line.split_once(':').unwrap();
                vec![host; count.parse().unwrap()]
            });
            let expected = (0..mapping.ranks.len()).map(|rank| mapping.host_of(rank));
            prop_assert_eq!(read.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn rank_i_is_on_line_i_of_slurms_file() {
        let file = slurm_hostfile(&mapping(&["a", "b"], 2, &[2, 0, 3]), "d1", false).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nb\na\nb\n");
        assert_eq!(file.command, "SLURM_HOSTFILE={file} srun -m arbitrary -n 3 {program}");
    }

    #[test]
    fn every_rank_has_its_host_and_core() {
        let mapping = mapping(&["a", "b"], 2, &[2, 0, 3]);
        let file = rankfile(&mapping, "d1", false).unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\nrank 0=b slot=0\nrank 1=a slot=0\nrank 2=b slot=1\n");
        assert_eq!(file.command, "mpirun -n 3 --rankfile {file} {program}");
        let newer = rankfile(&mapping, "d1", true).unwrap();
        assert_eq!(newer.text, file.text);
        assert_eq!(newer.command, "mpirun -n 3 --host a:1,b:2 --map-by rankfile:file={file} {program}");
    }

    #[test]
    fn a_rank_without_a_core_is_rejected() {
        let mut mapping = mapping(&["a", "b"], 2, &[2, 0, 3]);
        mapping.ranks[1].core = None;
        let error = rankfile(&mapping, "d", false).unwrap_err();
        assert_eq!(error.to_string(), "the mapping does not specify the core of rank 1 on `a`");
    }

    proptest! {
        #[test]
        fn the_file_names_host_and_core_of_every_rank(mapping in mappings()) {
            let file = rankfile(&mapping, "d", false).unwrap();
            let read = lines(&file.text, "d").into_iter().map(|line| {
                let (rank, place) = line.strip_prefix("rank ").unwrap().split_once('=').unwrap();
                let (host, core) = place.split_once(" slot=").unwrap();
                (rank.parse().unwrap(), host.to_owned(), core.parse().unwrap())
            });
            let expected = mapping.ranks.iter().enumerate().map(|(rank, placement)| {
                (rank, mapping.host_of(rank).to_owned(), placement.core.unwrap())
            });
            prop_assert_eq!(read.collect::<Vec<(usize, String, u32)>>(), expected.collect::<Vec<_>>());
        }
    }

    fn refused_by_cray(taken: &[u32]) -> String {
        cray_rank_order(&mapping(&["a", "b", "c"], 2, taken), "d").unwrap_err().to_string()
    }

    #[test]
    fn ranks_are_in_slot_order() {
        let file = cray_rank_order(&mapping(&["a", "b"], 2, &[3, 0, 2, 1]), "d1").unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\n1,3\n2,0\n");
        assert_eq!(file.name, "MPICH_RANK_ORDER");
        assert_eq!(
            file.command,
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -m block:block --cpu-bind=cores -N 2 -n 4 \
             --ntasks-per-node=2 {program}"
        );
    }

    #[test]
    fn last_slots_and_last_hosts_may_be_free() {
        let text = |taken: &[u32]| cray_rank_order(&mapping(&["a", "b", "c"], 2, taken), "d").unwrap().text;
        assert_eq!(text(&[4, 2, 0]), "# hopmap mapping d\n2\n1\n0\n");
        assert_eq!(text(&[1, 0]), "# hopmap mapping d\n1,0\n");
    }

    #[test]
    fn gaps_and_uneven_hosts_are_rejected() {
        assert_eq!(refused_by_cray(&[0, 1, 3]), "slot 0 of `b` is free, but later slots are not");
        assert_eq!(
            refused_by_cray(&[0, 2, 3]),
            "the mapping puts 1 ranks on `a`, but every host in use must have 2"
        );
        assert_eq!(
            refused_by_cray(&[0, 1, 2]),
            "the mapping puts 1 ranks on `b`, but every host in use must have 2"
        );
        assert_eq!(
            refused_by_cray(&[0, 1, 4, 5]),
            "the mapping puts 0 ranks on `b`, but every host in use must have 2"
        );
    }

    proptest! {
        #[test]
        fn the_i_th_rank_of_the_file_is_on_the_i_th_slot_in_use(mapping in mappings()) {
            let Ok(file) = cray_rank_order(&mapping, "d") else { return Ok(()) };
            let order = lines(&file.text, "d").join(",");
            let order: Vec<usize> = order.split(',').map(|rank| rank.parse().unwrap()).collect();
            let mut slots = mapping.slots();
            slots.sort_unstable();
            let read: Vec<u32> = order.iter().map(|&rank| mapping.ranks[rank].slot).collect();
            prop_assert_eq!(read, slots);
        }

        #[test]
        fn a_full_machine_is_always_accepted(taken in Just((0..12).collect::<Vec<u32>>()).prop_shuffle()) {
            prop_assert!(cray_rank_order(&mapping(&["a", "b", "c"], 4, &taken), "d").is_ok());
        }
    }
}
