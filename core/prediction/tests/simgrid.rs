//! Random programs, mappings and machines: the replay takes as long as that of SimGrid's `smpirun -replay`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopmap_model::{Action, Mapping, Paths, Program, SystemGraph, Weight};
use hopmap_prediction::{Costs, Options, Rate, Sharing, replay};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use crate::{machines, programs};

/// Flops per second of a host of performance 1.
const SPEED: f64 = 1e9;
/// Options of SimGrid. Its default solver, `Lazy`, misses links of flows that start together and share their first
/// link (3.32: `update_modified_cnst_set` returns early), so it gives some links more bytes than they carry.
const PRECISE: [&str; 6] = [
    "--cfg=network/optim:Full",
    "--cfg=cpu/optim:Full",
    "--cfg=network/crosstraffic:0",
    "--cfg=surf/precision:1e-9",
    "--cfg=maxmin/precision:1e-9",
    "--cfg=smpi/host-speed:1Gf",
];

/// A case and the options of SimGrid that belong to it.
struct Case {
    program: Program,
    system: SystemGraph,
    mapping: Mapping,
    options: Options,
    flags: Vec<String>,
    has_one_core: bool,
}

/// A random case that lasts 10 to 1,000 seconds. SimGrid's precision is absolute: rounding is less than 1e-6 of such times.
fn case(seed: u64) -> Case {
    let seconds = seconds(&scaled(seed, 1.0));
    let aim = 20.0 * 25_f64.powf(Pcg64::seed_from_u64(!seed).unit());
    scaled(seed, aim / seconds)
}

fn seconds(case: &Case) -> f64 {
    let Case { program, system, mapping, options, .. } = case;
    replay(program, system, mapping, options, &|| false).unwrap().seconds()
}

/// A random case in which everything but a test takes `scale` times as long.
fn scaled(seed: u64, scale: f64) -> Case {
    let mut random = Pcg64::seed_from_u64(seed);
    let shape = machines::SHAPES[random.below(4)];
    let (hosts, slots, has_one_core) =
        (2 + random.below(8) as u32, 1 + random.below(3) as u32, random.below(4) == 0);
    let is_uniform = random.below(2) == 0;
    let mut link_speed = |random: &mut Pcg64| match is_uniform {
        true => (1e-4 * scale, 1e6 / scale),
        false => ((1e-5 + 1e-2 * random.unit()) * scale, 1e6 * (0.1 + random.unit()) / scale),
    };
    let mut system = machines::machine(shape, hosts, (slots, has_one_core), &mut random, &mut link_speed);
    if random.below(2) == 0 {
        for node in &mut system.nodes[..hosts as usize] {
            node.traits.performance = Some(1.0 + random.below(3) as f64);
        }
    }
    let ranks = 2 + random.below((hosts * slots) as usize - 1) as u32;
    let mut order: Vec<u32> = (0..hosts * slots).collect();
    random.shuffle(&mut order);
    let mapping = Mapping::new(&order[..ranks as usize], &system, Weight::Bytes).unwrap();
    let shape = programs::Shape { ranks, phases: 4, log2_bytes: 21, tests: random.below(2) == 0, scale };
    let program = programs::program(shape, &mut random);
    let (options, flags) = options(scale, &mut random);
    Case { program, system, mapping, options, flags, has_one_core }
}

/// The model CM02, or that of SMPI with its factors; protocols; overheads.
fn options(scale: f64, random: &mut Pcg64) -> (Options, Vec<String>) {
    let is_smpi = random.below(3) == 0;
    let (model, gamma, bytes_per_link) = if is_smpi { ("SMPI", 4_194_304, 8775.0) } else { ("CM02", 0, 0.0) };
    let mut costs = if is_smpi { Costs::smpi_defaults() } else { Costs::smpi_protocols() };
    costs.eager_limit = [0, 1000, 65536][random.below(3)];
    costs.detached_limit = costs.eager_limit.max([0, 65536, 1 << 30][random.below(3)]);
    let mut flags = vec![
        format!("--cfg=network/model:{model}"),
        format!("--cfg=network/TCP-gamma:{gamma}"),
        format!("--cfg=smpi/async-small-thresh:{}", costs.eager_limit),
        format!("--cfg=smpi/send-is-detached-thresh:{}", costs.detached_limit),
    ];
    if random.below(2) == 0 {
        let overheads = [("os", &mut costs.send), ("ois", &mut costs.isend), ("or", &mut costs.recv)];
        for (name, overhead) in overheads {
            let [short, rise, long, slope] =
                [1e-3 * random.unit(), 1e-7 * random.unit(), 1e-3, 2e-8].map(|s| s * scale);
            let text = format!("0:{short}:{rise};5000:{long}:{slope}");
            *overhead = text.parse().unwrap();
            flags.push(format!("--cfg=smpi/{name}:{text}"));
        }
    }
    let memory = Rate { latency_s: 1e-6 * scale, bandwidth_bytes_per_s: 1e8 / scale };
    (
        Options {
            sharing: Sharing::Rtt { bytes_per_link },
            packet_bytes: 0,
            costs,
            memory,
            ..Options::default()
        },
        flags,
    )
}

/// The platform: a route for every ordered pair of hosts.
fn platform(case: &Case) -> String {
    let system = &case.system;
    let mut text = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n",
    );
    let hosts: Vec<(u32, u32)> = system.hosts().map(|(node, _, slots)| (node, slots)).collect();
    for &(node, slots) in &hosts {
        let speed = SPEED * system.nodes[node as usize].traits.performance.unwrap_or(1.0);
        let cores = if case.has_one_core { 1 } else { slots };
        let _ = writeln!(text, "<host id=\"h{node}\" speed=\"{speed}f\" core=\"{cores}\"/>");
    }
    let mut link = |name: String, bandwidth: f64, latency: f64| {
        let _ = writeln!(text, "<link id=\"{name}\" bandwidth=\"{bandwidth}Bps\" latency=\"{latency}s\"/>");
    };
    for (index, ends) in system.links.iter().enumerate() {
        link(format!("l{index}"), ends.bandwidth_bytes_per_s.unwrap(), ends.latency_s.unwrap());
    }
    let Rate { latency_s, bandwidth_bytes_per_s } = case.options.memory;
    hosts.iter().for_each(|(node, _)| link(format!("m{node}"), bandwidth_bytes_per_s, latency_s));
    let paths = Paths::new(system).unwrap();
    for &(from, _) in &hosts {
        for &(to, _) in &hosts {
            let links = match from == to {
                true => vec![format!("m{from}")],
                false => paths.path(from, to).unwrap().into_iter().map(|link| format!("l{link}")).collect(),
            };
            let links = lines(links.iter().map(|link| format!("<link_ctn id=\"{link}\"/>")));
            let _ = writeln!(text, "<route src=\"h{from}\" dst=\"h{to}\" symmetrical=\"NO\">{links}</route>");
        }
    }
    text.push_str("</zone></platform>\n");
    text
}

/// The operations of a rank as a time-independent trace.
fn trace(case: &Case, rank: u32) -> String {
    let program = &case.program;
    let performance = |rank: usize| {
        let host = case.system.slots[case.mapping.ranks[rank].slot as usize].host;
        case.system.nodes[host as usize].traits.performance.unwrap_or(1.0)
    };
    let fastest = (0..program.ranks() as usize).map(performance).fold(0.0, f64::max);
    let mut text = format!("{rank} init\n");
    let mut requests = Vec::new();
    for operation in program.of_rank(rank) {
        let peer = |envelope: u32| {
            let envelope = program.envelopes[envelope as usize];
            (envelope.peer, envelope.tag)
        };
        let mut remember = |request: u32, ends: (u32, u32, u32)| {
            requests.resize(requests.len().max(request as usize + 1), (0, 0, 0));
            requests[request as usize] = ends;
        };
        let line = match operation.action() {
            Action::Compute { seconds } => format!("compute {}", seconds * SPEED * fastest),
            Action::Send { envelope, bytes } => {
                format!("send {} {} {bytes}", peer(envelope).0, peer(envelope).1)
            }
            Action::Recv { envelope, bytes } => {
                format!("recv {} {} {bytes}", peer(envelope).0, peer(envelope).1)
            }
            Action::Isend { envelope, bytes, request } => {
                let (peer, tag) = peer(envelope);
                remember(request, (rank, peer, tag));
                format!("isend {peer} {tag} {bytes}")
            }
            Action::Irecv { envelope, bytes, request } => {
                let (peer, tag) = peer(envelope);
                remember(request, (peer, rank, tag));
                format!("irecv {peer} {tag} {bytes}")
            }
            Action::Wait { request } | Action::Test { request } => {
                let (source, destination, tag) = requests[request as usize];
                format!("{} {source} {destination} {tag}", operation.kind().name())
            }
            Action::Waitall => "waitall".to_owned(),
            Action::Collective { .. } => unreachable!("random programs have no collective operations"),
        };
        let _ = writeln!(text, "{rank} {line}");
    }
    text + &format!("{rank} finalize\n")
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

/// Seconds that SimGrid takes.
fn simulated(case: &Case, folder: &Path) -> f64 {
    let ranks = case.program.ranks();
    fs::write(folder.join("platform.xml"), platform(case)).unwrap();
    let hosts = lines((0..ranks as usize).map(|rank| case.mapping.host_of(rank).to_owned()));
    fs::write(folder.join("hosts"), hosts).unwrap();
    for rank in 0..ranks {
        fs::write(folder.join(format!("{rank}.txt")), trace(case, rank)).unwrap();
    }
    let traces = lines((0..ranks).map(|rank| format!("{rank}.txt")));
    fs::write(folder.join("traces"), traces).unwrap();
    let mut smpirun = Command::new("smpirun");
    smpirun.args(["-replay", "traces", "-platform", "platform.xml", "-hostfile", "hosts"]);
    smpirun.args(["-np", &ranks.to_string(), "--log=smpi_replay.fmt:END%.12r%n"]);
    let output = smpirun.args(PRECISE).args(&case.flags).current_dir(folder).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let time = text.lines().find_map(|line| line.trim().strip_prefix("END"));
    time.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

#[test]
fn random_replays_take_as_long_as_in_simgrid() {
    if !hopmap_test_support::system_tests() || hopmap_test_support::program("smpirun").is_none() {
        return;
    }
    for seed in hopmap_test_support::seeds(500, 2000) {
        let case = case(seed);
        let folder = tempfile::tempdir().unwrap();
        let expected = simulated(&case, folder.path());
        assert!((10.0..=1000.0).contains(&expected), "seed {seed} lasts {expected} s");
        let found = seconds(&case);
        let error = (found - expected).abs() / expected;
        assert!(
            error <= 1e-6,
            "seed {seed}: {found} s instead of {expected} s, {error:.1e}: {:?}",
            case.flags
        );
    }
}
