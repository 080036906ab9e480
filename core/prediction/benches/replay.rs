//! Messages per CPU second: halo exchange of 64 KiB messages on a fat tree, with and without contention, and SimGrid's
//! `smpirun -replay` of the same program on a fat tree of the same size with
//! `HOPMAP_SYSTEM_TESTS=1`; all-to-all on a tree, with all messages in progress at once; and the bound of all
//! mappings.
//!
//! CPU time is that of `/proc/self/stat`, which has steps of 10 ms; the best of several runs counts.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use hopmap_model::{
    CostModel, Envelope, Levels, Link, Mapping, Node, Program, ProgramBuilder, RouteCosts, RouteMetric,
    Routing, Slot, SystemGraph, Weight,
};
use hopmap_prediction::bound::bound;
use hopmap_prediction::{Costs, Options, PairRates, Rate, Sharing, replay};
use hopmap_random::{Draw, Pcg64, SeedableRng};

type Error = Box<dyn std::error::Error>;

const BYTES: u64 = 64 << 10;
const RUNS: usize = 5;
/// Runs of SimGrid, which takes minutes.
const SMPIRUN_RUNS: usize = 2;
/// Bandwidth and latency of all links.
const RATE: Rate = Rate { latency_s: 1e-6, bandwidth_bytes_per_s: 1e9 };

const SHARING: [(&str, Sharing); 2] =
    [("max-min", Sharing::MaxMin), ("rtt", Sharing::Rtt { bytes_per_link: 0.0 })];

/// Halo exchange in a grid without wrap-around, row by row.
fn halo(width: u32, iterations: u32, bytes: u64, compute: f64) -> Result<(Program, u64), Error> {
    let mut program = ProgramBuilder::new(width * width);
    for _ in 0..iterations {
        for rank in 0..width * width {
            let (x, y) = (rank % width, rank / width);
            let peers = [
                (x > 0).then(|| rank - 1),
                (x + 1 < width).then(|| rank + 1),
                (y > 0).then(|| rank - width),
                (y + 1 < width).then(|| rank + width),
            ];
            let envelopes =
                || peers.into_iter().flatten().map(|peer| Envelope { peer, tag: 0, communicator: 0 });
            envelopes().for_each(|envelope| {
                program.irecv(rank, envelope, bytes);
            });
            envelopes().for_each(|envelope| {
                program.isend(rank, envelope, bytes);
            });
            program.waitall(rank);
            program.compute(rank, compute * (1.0 + f64::from(rank * 7919 % 101) / 1000.0));
        }
    }
    let program = program.finish()?;
    let messages = program.totals().messages;
    Ok((program, messages))
}

/// All ranks to all ranks, eager messages of 8 bytes to 32 KiB sent with a little computation between them, as
/// `trace/generate` makes them.
fn all_to_all(ranks: u32) -> Result<(Program, u64), Error> {
    let mut program = ProgramBuilder::new(ranks);
    let mut random = Pcg64::seed_from_u64(33);
    let sizes: Vec<u64> = (0..ranks * ranks).map(|_| 8 * (1 + random.below(4096) as u64)).collect();
    let size = |source: u32, destination: u32| sizes[(source * ranks + destination) as usize];
    for rank in 0..ranks {
        let seconds = 1e-9 * (200 + random.below(800)) as f64;
        let peers = || (1..ranks).map(|step| (rank + step) % ranks);
        let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
        for peer in peers() {
            program.compute(rank, seconds);
            program.send(rank, envelope(peer), size(rank, peer));
        }
        for peer in peers() {
            program.recv(rank, envelope(peer), size(peer, rank));
            program.compute(rank, seconds);
        }
    }
    let program = program.finish()?;
    let messages = program.totals().messages;
    Ok((program, messages))
}

/// Hosts of four slots, three per switch, switches below a root.
fn tree(switches: u32) -> SystemGraph {
    let hosts = 3 * switches;
    let host = (0..hosts).map(|host| Node::host(format!("h{host}")));
    let switch = (0..=switches).map(|switch| Node::switch(format!("s{switch}")));
    let links = (0..hosts).map(|host| (host, hosts + host / 3));
    let up = (0..switches).map(|switch| (hosts + switch, hosts + switches));
    let slots = (0..4 * hosts).map(|slot| Slot { host: slot / 4, core: slot % 4 });
    machine(host.chain(switch).collect(), links.chain(up), slots.collect())
}

/// Two levels: as many hosts per leaf switch as leaf switches, half as many spines.
fn fat_tree(width: u32) -> SystemGraph {
    let (hosts, spines) = (width * width, width / 2);
    let host = (0..hosts).map(|host| Node::host(format!("h{host}")));
    let switches = (0..width + spines).map(|switch| Node::switch(format!("s{switch}")));
    let links = (0..hosts).map(|host| (host, hosts + host / width));
    let up = (0..width).flat_map(|leaf| (0..spines).map(move |spine| (hosts + leaf, hosts + width + spine)));
    let slots = (0..hosts).map(|host| Slot { host, core: 0 }).collect();
    machine(host.chain(switches).collect(), links.chain(up), slots)
}

fn machine(nodes: Vec<Node>, links: impl Iterator<Item = (u32, u32)>, slots: Vec<Slot>) -> SystemGraph {
    let link = |(a, b): (u32, u32)| {
        let link = Link {
            latency_s: Some(RATE.latency_s),
            bandwidth_bytes_per_s: Some(RATE.bandwidth_bytes_per_s),
            ..Link::new(a, b)
        };
        [link, link.reversed()]
    };
    let inside = Levels { costs: vec![0.0], groups: vec![slots.iter().map(|slot| slot.host).collect()] };
    SystemGraph {
        nodes,
        links: links.flat_map(link).collect(),
        slots,
        cost: CostModel::Routes(RouteCosts { metric: RouteMetric::Hops, inside }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// Places ranks by a multiplication, so that neighbours are far apart.
fn scattered(system: &SystemGraph) -> Result<Mapping, Error> {
    let slots = system.slots.len() as u32;
    Ok(Mapping::new(&(0..slots).map(|rank| rank * 7 % slots).collect::<Vec<_>>(), system, Weight::Bytes)?)
}

/// CPU seconds of this process and of its children that ended.
fn cpu() -> Result<(f64, f64), Error> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(4).map(str::parse).collect::<Result<_, _>>()?;
    match ticks.as_slice() {
        [user, system, child_user, child_system] => {
            Ok(((user + system) / 100.0, (child_user + child_system) / 100.0))
        }
        _ => Err("unexpected /proc/self/stat".into()),
    }
}

fn measure(
    (name, runs): (&str, usize),
    messages: u64,
    mut run: impl FnMut() -> Result<f64, Error>,
) -> Result<(), Error> {
    if !is_wanted(name) {
        return Ok(());
    }
    let (mut best, mut seconds) = (f64::INFINITY, 0.0);
    for _ in 0..runs {
        let before = cpu()?;
        seconds = run()?;
        let after = cpu()?;
        best = best.min((after.0 - before.0).max(after.1 - before.1));
    }
    let rate = messages as f64 / best;
    report(&format!(
        "{name:48} {messages:9} messages {best:7.2} s CPU {rate:12.0} messages/s, predicted {seconds} s"
    ));
    Ok(())
}

/// Whether the name of a case contains the argument, if there is one.
fn is_wanted(name: &str) -> bool {
    std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
        .is_none_or(|part| name.contains(&part))
}

#[expect(clippy::print_stdout, reason = "the output of the benchmark")]
fn report(line: &str) {
    println!("{line}");
}

fn predicted(
    program: &Program,
    system: &SystemGraph,
    mapping: &Mapping,
    options: &Options,
) -> Result<f64, Error> {
    Ok(replay(program, system, mapping, options, &|| false)?.seconds())
}

fn main() -> Result<(), Error> {
    for (width, iterations) in [(16, 200), (32, 50)] {
        let ranks = width * width;
        let system = fat_tree(width);
        let linear = Mapping::new(&(0..ranks).collect::<Vec<_>>(), &system, Weight::Bytes)?;
        for (placement, mapping) in [("linear", &linear), ("scattered", &scattered(&system)?)] {
            for (what, compute) in [("", 0.0), (" with computation", 1e-4)] {
                let (program, messages) = halo(width, iterations, BYTES, compute)?;
                let name = format!("{ranks} ranks, {placement}{what}");
                for (kind, sharing) in SHARING {
                    let options = Options { sharing, costs: Costs::smpi_protocols(), ..Options::default() };
                    measure((&format!("{name}, {kind}"), RUNS), messages, || {
                        predicted(&program, &system, mapping, &options)
                    })?;
                }
                smpirun(&name, &program, messages, (&system, mapping))?;
            }
        }
        let (program, messages) = halo(width, 5 * iterations, BYTES, 1e-4)?;
        measure((&format!("{ranks} ranks, bound of all mappings"), 1), messages, || {
            Ok(bound(&program, &system, &Options::default(), &|| false)?.seconds())
        })?;
        let pairs = Some(PairRates::Matrix(vec![RATE; (ranks * ranks) as usize]));
        let options = Options { pairs, ..Options::default() };
        let alone = SystemGraph { links: Vec::new(), ..system };
        let (program, messages) = halo(width, 4 * iterations, BYTES, 1e-4)?;
        measure((&format!("{ranks} ranks, no contention"), RUNS), messages, || {
            predicted(&program, &alone, &linear, &options)
        })?;
    }
    let (system, (program, messages)) = (tree(10), all_to_all(120)?);
    let linear = Mapping::new(&(0..120).collect::<Vec<_>>(), &system, Weight::Bytes)?;
    for (placement, mapping) in [("linear", &linear), ("scattered", &scattered(&system)?)] {
        for (kind, sharing) in SHARING {
            let options = Options { sharing, ..Options::default() };
            measure((&format!("all-to-all of 120 ranks, {placement}, {kind}"), 2), messages, || {
                predicted(&program, &system, mapping, &options)
            })?;
        }
    }
    memory()
}

/// Peak memory of a replay of ten million messages, with the program.
fn memory() -> Result<(), Error> {
    let name = "1024 ranks, linear, memory";
    if !is_wanted(name) {
        return Ok(());
    }
    let system = fat_tree(32);
    let (program, messages) = halo(32, 2521, BYTES, 0.0)?;
    // Resets the peak.
    fs::write("/proc/self/clear_refs", "5")?;
    measure((name, 1), messages, || {
        let linear = Mapping::new(&(0..1024).collect::<Vec<_>>(), &system, Weight::Bytes)?;
        predicted(&program, &system, &linear, &Options::default())
    })?;
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?");
    report(&format!(
        "peak memory {}, {} MB of it the program",
        peak.trim(),
        program.operations.len() * 16 / 1_000_000
    ));
    Ok(())
}

/// The same program in SimGrid.
fn smpirun(
    name: &str,
    program: &Program,
    messages: u64,
    (system, mapping): (&SystemGraph, &Mapping),
) -> Result<(), Error> {
    if std::env::var_os("HOPMAP_SYSTEM_TESTS").is_none_or(|value| value != "1") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    write(folder.path(), program, system, mapping)?;
    measure((&format!("{name}, smpirun"), SMPIRUN_RUNS), messages, || {
        let mut smpirun = Command::new("smpirun");
        smpirun.args(["-replay", "traces", "-platform", "platform.xml", "-hostfile", "hosts", "-np"]);
        smpirun.args([&program.ranks().to_string(), "--log=smpi_replay.fmt:END%.12r%n"]);
        smpirun.args([
            "--cfg=network/model:CM02",
            "--cfg=network/crosstraffic:0",
            "--cfg=network/TCP-gamma:0",
        ]);
        let output = smpirun.current_dir(folder.path()).output()?;
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let end = text.lines().find_map(|line| line.strip_prefix("END")).ok_or_else(|| text.clone())?;
        Ok(end.trim().parse()?)
    })
}

fn write(folder: &Path, program: &Program, system: &SystemGraph, mapping: &Mapping) -> Result<(), Error> {
    let hosts = system.hosts().count();
    let width = hosts.isqrt();
    let Rate { latency_s, bandwidth_bytes_per_s } = RATE;
    let platform = format!(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n\
         <cluster id=\"c\" prefix=\"h\" suffix=\"\" radical=\"0-{}\" speed=\"1Gf\" bw=\"{bandwidth_bytes_per_s}Bps\" lat=\"{latency_s}s\" \
         topology=\"FAT_TREE\" topo_parameters=\"2;{width},{width};1,{};1,1\"/>\n</platform>\n",
        hosts - 1,
        width / 2
    );
    fs::write(folder.join("platform.xml"), platform)?;
    let (mut names, mut traces) = (String::new(), String::new());
    for rank in 0..program.ranks() {
        writeln!(names, "{}", mapping.host_of(rank as usize))?;
        writeln!(traces, "{rank}.txt")?;
        write_trace(folder, program, rank)?;
    }
    fs::write(folder.join("hosts"), names)?;
    fs::write(folder.join("traces"), traces)?;
    Ok(())
}

fn write_trace(folder: &Path, program: &Program, rank: u32) -> Result<(), Error> {
    use hopmap_model::Action::{Compute, Irecv, Isend, Waitall};
    let mut trace = format!("{rank} init\n");
    for operation in program.of_rank(rank) {
        let peer = |envelope: u32| program.envelopes[envelope as usize].peer;
        match operation.action() {
            Compute { seconds } => writeln!(trace, "{rank} compute {}", seconds * 1e9)?,
            Isend { envelope, bytes, .. } => writeln!(trace, "{rank} isend {} 0 {bytes}", peer(envelope))?,
            Irecv { envelope, bytes, .. } => writeln!(trace, "{rank} irecv {} 0 {bytes}", peer(envelope))?,
            Waitall => writeln!(trace, "{rank} waitall")?,
            _ => return Err(io::Error::other("an operation that halo exchange does not have").into()),
        }
    }
    fs::write(folder.join(format!("{rank}.txt")), trace + &format!("{rank} finalize\n"))?;
    Ok(())
}
