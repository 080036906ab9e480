//! Machines with known levels.

use hopmap_model::{
    CostModel, Endpoint, Levels, Matrix, Node, NodeKind, NodeState, Paths, ProbePhase, Sample, Slot,
};
use proptest::prelude::*;

use super::*;

/// The groups of each endpoint on each level, innermost first, and the latency of each level in seconds.
struct Truth {
    groups: Vec<Vec<u32>>,
    latencies: Vec<f64>,
    host_of: Vec<u32>,
}

impl Truth {
    /// Endpoints of a tree with given branching, innermost first; the first `inside` levels are within hosts.
    fn regular(branches: &[u32], inside: usize, latencies: &[f64]) -> Self {
        let count: u32 = branches.iter().product();
        let mut size = 1;
        let mut groups = Vec::new();
        for branch in branches {
            size *= branch;
            groups.push((0..count).map(|endpoint| endpoint / size).collect());
        }
        let host: u32 = branches[..inside].iter().product();
        let host_of = (0..count).map(|endpoint| endpoint / host).collect();
        Self { groups, latencies: latencies.to_vec(), host_of }
    }

    fn latency(&self, a: usize, b: usize) -> f64 {
        let level = self.groups.iter().position(|groups| groups[a] == groups[b]).unwrap();
        self.latencies[level]
    }

    /// Simulated measurements: both directions between first endpoints of hosts and between endpoints of a
    /// host, with one-sided noise from 0 to `noise`.
    fn measured(&self, noise: f64, seed: u64) -> Measurements {
        let mut state = seed | 1;
        let mut share = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise * (state >> 40) as f64 / f64::from(1 << 24)
        };
        let count = self.host_of.len();
        let first = |endpoint: usize| endpoint == 0 || self.host_of[endpoint - 1] != self.host_of[endpoint];
        let core = |endpoint: usize| {
            (0..=endpoint).rev().take_while(|&other| self.host_of[other] == self.host_of[endpoint]).count()
                - 1
        };
        let endpoint = |index: usize| Endpoint {
            host: format!("n{}", self.host_of[index]),
            core: core(index) as u32,
            state: NodeState::Up,
        };
        let mut samples = Vec::new();
        for a in 0..count {
            for b in (0..count).filter(|&b| a != b) {
                if self.host_of[a] == self.host_of[b] || (first(a) && first(b)) {
                    let time = 2.0 * self.latency(a, b) * (1.0 + share());
                    samples.push(sample(a as u32, b as u32, 1, time));
                }
            }
        }
        Measurements { endpoints: (0..count).map(endpoint).collect(), samples, ..Measurements::default() }
    }
}

fn sample(source: u32, destination: u32, bytes: u64, time: f64) -> Sample {
    Sample {
        source,
        destination,
        phase: ProbePhase::Latency,
        bytes,
        messages: 100,
        minimum_s: time,
        first_decile_s: time,
        median_s: time * 1.1,
        ninth_decile_s: time * 1.5,
        maximum_s: time * 3.0,
    }
}

fn change(measured: &mut Measurements, a: u32, b: u32, factor: f64) {
    let samples = measured.samples.iter_mut();
    for sample in samples.filter(|sample| (sample.source, sample.destination) == (a, b)) {
        *sample = self::sample(a, b, sample.bytes, sample.minimum_s * factor);
    }
}

fn tree(system: &SystemGraph) -> &Levels {
    system.check().unwrap();
    match &system.cost {
        CostModel::Levels(levels) => levels,
        _ => panic!("no levels"),
    }
}

fn found(measured: &Measurements) -> SystemGraph {
    levels(measured, &LevelsParams::default()).unwrap()
}

/// Levels with one branch merge nothing.
fn true_groups(truth: &Truth) -> Vec<Vec<u32>> {
    let mut groups = truth.groups.clone();
    groups.dedup();
    groups.retain(|groups| groups.windows(2).any(|pair| pair[0] == pair[1]));
    groups
}

fn microseconds(latencies: &[f64]) -> Vec<f64> {
    latencies.iter().map(|latency| (latency * 1e9).round() / 1e3).collect()
}

fn error(measured: &Measurements, params: &LevelsParams) -> String {
    levels(measured, params).unwrap_err().to_string()
}

const THREE: [f64; 3] = [0.2e-6, 2e-6, 5e-6];

#[test]
fn cores_hosts_and_switches_are_found_with_link_latencies() {
    let truth = Truth::regular(&[4, 3, 2], 1, &THREE);
    let mut measured = truth.measured(0.0, 1);
    measured.endpoints[8].core = 7;
    let system = found(&measured);
    let levels = tree(&system);
    assert_eq!(levels.groups, truth.groups);
    assert_eq!(levels.costs, microseconds(&THREE));
    let names: Vec<&str> = system.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n4", "n5", "level-2-0", "level-2-1", "level-3-0"]);
    assert_eq!(system.slots[8], Slot { host: 2, core: 7 });
    let paths = Paths::new(&system).unwrap();
    for (a, b, expected) in [(0, 1, 2e-6), (0, 5, 5e-6)] {
        let mut time = 0.0;
        paths.walk(a, b, |link| time += system.links[link as usize].latency_s.unwrap());
        assert!((time - expected).abs() < 1e-12, "{time}");
    }
}

#[test]
fn hosts_of_a_switch_need_not_be_consecutive() {
    let mut truth = Truth::regular(&[2, 3, 2], 1, &THREE);
    truth.groups[1] = (0..12).map(|endpoint| endpoint / 2 % 2).collect();
    let system = found(&truth.measured(0.05, 3));
    assert_eq!(tree(&system).groups, truth.groups);
    assert_eq!(system.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count(), 3);
}

#[test]
fn small_and_equal_machines_have_defined_answers() {
    let one = found(&Truth::regular(&[1], 1, &[1e-6]).measured(0.0, 1));
    assert_eq!(tree(&one), &Levels { costs: vec![0.0], groups: vec![vec![0]] });
    assert!(one.links.is_empty());
    let host = found(&Truth::regular(&[4], 1, &[1e-6]).measured(0.0, 1));
    assert_eq!(tree(&host), &Levels { costs: vec![1.0], groups: vec![vec![0; 4]] });
    assert_eq!((host.nodes.len(), host.links.len()), (1, 0));
    let two = found(&Truth::regular(&[1, 2], 1, &[1e-6, 2e-6]).measured(0.0, 1));
    assert_eq!(tree(&two), &Levels { costs: vec![2.0], groups: vec![vec![0; 2]] });
    assert_eq!((two.nodes[2].name.as_str(), two.links.len()), ("level-1-0", 4));
    let equal = found(&Truth::regular(&[2, 4], 1, &[1e-6, 1e-6]).measured(0.0, 1));
    assert_eq!(tree(&equal), &Levels { costs: vec![1.0], groups: vec![vec![0; 8]] });
    let zero = found(&Truth::regular(&[2, 4], 1, &[0.0, 0.0]).measured(0.0, 1));
    assert_eq!(tree(&zero), &Levels { costs: vec![0.0], groups: vec![vec![0; 8]] });
    let part = found(&Truth::regular(&[2, 4], 1, &[0.0, 1e-6]).measured(0.0, 1));
    assert_eq!(tree(&part).costs, [0.0, 1.0]);
}

#[test]
fn hosts_that_are_down_are_nodes_without_slots() {
    let truth = Truth::regular(&[2, 3, 2], 1, &THREE);
    let mut measured = truth.measured(0.0, 1);
    for endpoint in [2, 3, 4] {
        measured.endpoints[endpoint].state = NodeState::Down;
        measured.samples.retain(|s| s.source != endpoint as u32 && s.destination != endpoint as u32);
    }
    // The third host has no measurements, although its second endpoint is up.
    measured.samples.extend((0..12).filter(|other| ![2, 3, 4, 5].contains(other)).flat_map(|other| {
        let time = 2.0 * truth.latency(5, other as usize);
        [sample(5, other, 1, time), sample(other, 5, 1, time)]
    }));
    measured.samples.sort_by_key(|sample| (sample.source, sample.destination));
    let system = found(&measured);
    let levels = tree(&system);
    assert_eq!(system.nodes[1].state, NodeState::Down);
    assert_eq!(system.slots.iter().map(|slot| slot.host).collect::<Vec<_>>(), [0, 0, 2, 3, 3, 4, 4, 5, 5]);
    assert_eq!(levels.groups[1], [0, 0, 0, 1, 1, 1, 1, 1, 1]);
    assert!(Paths::new(&system).is_some());
    measured.endpoints.iter_mut().for_each(|endpoint| endpoint.state = NodeState::Down);
    assert_eq!(error(&measured, &LevelsParams::default()), "none of the endpoints of 6 hosts answered");
}

#[test]
fn unmeasured_pairs_are_estimated_or_named() {
    let truth = Truth::regular(&[2, 3, 4], 1, &THREE);
    let mut measured = truth.measured(0.1, 5);
    measured.samples.retain(|s| (s.source + s.destination) % 3 != 0 || s.source / 2 == s.destination / 2);
    let result = levels_of_measurements(&measured, &LevelsParams::default()).unwrap();
    assert_eq!(tree(&result.system).groups, truth.groups);
    assert!(
        result.notes.iter().any(|note| note.contains("of 78 pairs were not measured")),
        "{:?}",
        result.notes
    );
    measured.samples.retain(|s| s.source.min(s.destination) != 4 || s.source.max(s.destination) != 5);
    let message = error(&measured, &LevelsParams::default());
    assert_eq!(
        message,
        "no measurements connect core 0 of host `n2` and core 1 of host `n2`, directly or indirectly"
    );
    let mut measured = truth.measured(0.1, 5);
    measured.samples.retain(|s| (s.source / 6 == 1) == (s.destination / 6 == 1));
    let message = error(&measured, &LevelsParams::default());
    assert!(message.contains("host `n0` and host `n3`"), "{message}");
}

#[test]
fn one_wrong_pair_does_not_make_a_level() {
    for (branches, latencies) in [
        (&[1, 64][..], &[1e-6, 2e-6][..]),
        (&[1, 8, 8], &[1e-6, 2e-6, 3e-6]),
        (&[1, 4, 2], &[1e-6, 2e-6, 6e-6]),
        (&[1, 2, 2, 8], &[1e-6, 1e-6, 2e-6, 6e-6]),
        (&[2, 16], &[1e-6, 2e-6]),
    ] {
        let truth = Truth::regular(branches, 1, latencies);
        let last = truth.host_of.len() as u32 - branches[0];
        for partner in [branches[0], last] {
            for factor in [0.3, 0.6, 1.7, 4.0] {
                for both in [false, true] {
                    // A pair that is faster in both directions is real.
                    if both && factor < 1.0 {
                        continue;
                    }
                    let mut measured = truth.measured(0.1, 11);
                    change(&mut measured, 0, partner, factor);
                    if both {
                        change(&mut measured, partner, 0, factor);
                    }
                    let system = found(&measured);
                    let (found, expected) = (&tree(&system).groups, true_groups(&truth));
                    assert_eq!(found.len(), expected.len(), "{branches:?} {partner} {factor} {both}");
                    // A pair that is slow in both directions and has its own switch is indistinguishable from
                    // one without.
                    if !(both && branches == [1, 2, 2, 8] && partner == 1) {
                        assert_eq!(*found, expected, "{branches:?} {partner} {factor} {both}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_pair_on_its_own_switch_is_a_level() {
    // Hosts 0 and 1 have their own switch, like the other thirty.
    let mut truth = Truth::regular(&[1, 32], 1, &[1e-6, 3e-6]);
    truth.groups[0] = (0..32).map(|host| u32::from(host > 1)).collect();
    assert_eq!(tree(&found(&truth.measured(0.1, 3))).groups, truth.groups);
    // Only hosts 4 and 9 are nearer to each other.
    truth.groups[0] = (0..32).map(|host| if host == 9 { 4 } else { host }).collect();
    let system = found(&truth.measured(0.1, 3));
    let levels = tree(&system);
    assert_eq!(levels.groups.len(), 2);
    assert_eq!(levels.groups[0][4], levels.groups[0][9]);
    assert_eq!(levels.groups[0].iter().max(), Some(&30));
    assert_eq!(system.nodes[32].name, "level-1-4");
}

#[test]
fn several_wrong_pairs_do_no_harm() {
    let truth = Truth::regular(&[1, 16, 8], 1, &[1e-6, 2e-6, 3e-6]);
    let mut measured = truth.measured(0.1, 7);
    for (a, b, factor) in [(0, 1, 0.4), (3, 90, 0.5), (17, 18, 8.0), (40, 45, 3.0), (64, 127, 20.0)] {
        change(&mut measured, a, b, factor);
        if factor > 1.0 {
            change(&mut measured, b, a, factor);
        }
    }
    assert_eq!(tree(&found(&measured)).groups, true_groups(&truth));
}

#[test]
fn costs_can_be_times_of_messages() {
    let truth = Truth::regular(&[2, 2], 1, &[1e-6, 4e-6]);
    let mut measured = truth.measured(0.0, 1);
    let long: Vec<Sample> = measured
        .samples
        .iter()
        .map(|s| sample(s.source, s.destination, 1 << 20, s.minimum_s + f64::from(1 << 20) / 1e10))
        .collect();
    measured.samples.extend(long);
    measured.samples.sort_by_key(|sample| (sample.source, sample.destination, sample.bytes));
    let params = LevelsParams { cost: LevelCost::Time, bytes: Some(100_000), ..LevelsParams::default() };
    let system = levels(&measured, &params).unwrap();
    assert_eq!(tree(&system).costs, [11.0, 14.0]);
    assert!((system.links[0].latency_s.unwrap() - 2e-6).abs() < 1e-12);
    assert!((system.links[0].bandwidth_bytes_per_s.unwrap() - 1e10).abs() < 1e5);
}

#[test]
fn noise_of_both_directions_widens_the_gap() {
    let truth = Truth::regular(&[1, 6, 6], 1, &[1e-6, 1e-6, 1.3e-6]);
    let result = levels_of_measurements(&truth.measured(0.9, 9), &LevelsParams::default()).unwrap();
    assert!(result.notes[0].starts_with("both directions of a pair differ"), "{:?}", result.notes);
}

/// A machine with one host per slot, or one host for all, and given costs.
fn matrix(count: usize, one_host: bool, cost: impl Fn(usize, usize) -> f64) -> SystemGraph {
    let hosts = if one_host { 1 } else { count };
    let costs = (0..count * count)
        .map(|pair| if pair / count == pair % count { 0.0 } else { cost(pair / count, pair % count) });
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..hosts).map(|host| Node::host(format!("level-{host}"))).collect(),
        links: Vec::new(),
        slots: (0..count as u32)
            .map(|slot| if one_host { Slot { host: 0, core: slot } } else { Slot { host: slot, core: 0 } })
            .collect(),
        cost: CostModel::Matrix(Matrix { costs: costs.collect() }),
        calibration: Vec::new(),
    }
}

#[test]
fn matrices_keep_their_unit() {
    let truth = Truth::regular(&[4, 4], 1, &[100.0, 700.0]);
    for one_host in [true, false] {
        let system = matrix(16, one_host, |a, b| truth.latency(a, b));
        let found = levels_of_matrix(&system, &LevelsParams::default()).unwrap().system;
        assert_eq!(tree(&found), &Levels { costs: vec![100.0, 700.0], groups: truth.groups.clone() });
        assert!(found.links.iter().all(|link| link.latency_s.is_none()));
    }
    let again = found_again();
    assert!(again.contains("already levels"), "{again}");
}

fn found_again() -> String {
    let system = matrix(4, false, |_, _| 1.0);
    let found = levels_of_matrix(&system, &LevelsParams::default()).unwrap().system;
    assert_eq!(found.nodes[4].name, "level_-1-0");
    levels_of_matrix(&found, &LevelsParams::default()).unwrap_err().to_string()
}

#[test]
fn both_directions_and_the_slots_of_two_hosts_are_averaged() {
    let mut system = matrix(4, false, |a, b| if a < b { 3.0 } else { 1.0 });
    system.nodes.truncate(2);
    system.slots = (0..4).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect();
    let found = levels_of_matrix(&system, &LevelsParams::default()).unwrap().system;
    assert_eq!(tree(&found), &Levels { costs: vec![2.0], groups: vec![vec![0; 4]] });
}

#[test]
fn wrong_parameters_and_inputs_are_reported() {
    let measured = Truth::regular(&[1, 2], 1, &[1.0, 1.0]).measured(0.0, 1);
    let params = |json: &str| serde_json::from_str::<LevelsParams>(json).unwrap();
    assert_eq!(error(&measured, &params(r#"{"level_ratio": 1}"#)), "level_ratio is 1, less than 1.01");
    assert!(error(&measured, &params(r#"{"cost": "time"}"#)).contains("`bytes` is missing"));
    assert!(error(&measured, &params(r#"{"bytes": 8}"#)).starts_with("bytes is 8"));
    assert!(serde_json::from_str::<LevelsParams>(r#"{"level_ratios": 2}"#).is_err());
    let time = params(r#"{"cost": "time", "bytes": 8}"#);
    let message = levels_of_matrix(&matrix(2, false, |_, _| 1.0), &time).unwrap_err().to_string();
    assert!(message.contains("does not depend on message sizes"), "{message}");
    let mut damaged = measured;
    damaged.samples.swap(0, 1);
    assert!(error(&damaged, &LevelsParams::default()).contains("sample 1 is out of order"));
}

#[test]
fn exactly_one_input_is_accepted() {
    use hopmap_model::{Context, Inputs, Outcome, Stage};
    use std::sync::Arc;
    let measured = Truth::regular(&[2, 2], 1, &[1e-6, 2e-6]).measured(0.0, 1);
    let run = |inputs: Inputs| LevelsStage::run(LevelsParams::default(), inputs, &Context::detached());
    let mut inputs = Inputs::new();
    assert!(run(Inputs::new()).unwrap_err().to_string().starts_with("neither"));
    inputs.connect("measurements", Arc::new(measured.clone()), "d".into(), "m".into());
    let Outcome::Done(outputs) = run(inputs).unwrap() else { panic!() };
    let system = outputs.get("system-graph").unwrap().downcast_ref::<SystemGraph>().unwrap();
    assert_eq!(system, &found(&measured));
    let mut inputs = Inputs::new();
    inputs.connect("measurements", Arc::new(measured), "d".into(), "m".into());
    inputs.connect("system-graph", Arc::new(matrix(2, true, |_, _| 1.0)), "d".into(), "s".into());
    assert!(run(inputs).unwrap_err().to_string().contains("are both connected"));
}

#[test]
fn a_thousand_hosts() {
    let truth = Truth::regular(&[1, 25, 8, 5], 1, &[1e-6, 1.2e-6, 1.7e-6, 2.4e-6]);
    let measured = truth.measured(0.1, 1);
    assert_eq!(tree(&found(&measured)).groups, true_groups(&truth));
}

/// A tree with random arities: hosts are below groups of different sizes, at equal depth.
fn irregular(sizes: &[u32], depth: usize, cores: u32) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut next = sizes.iter().cycle();
    let hosts = sizes.iter().sum::<u32>();
    let mut below: Vec<u32> = (0..hosts).collect();
    for _ in 0..depth {
        let mut group = 0;
        let mut left = *next.next().unwrap();
        let count = below.iter().max().unwrap() + 1;
        let of_below: Vec<u32> = (0..count)
            .map(|_| {
                if left == 0 {
                    left = *next.next().unwrap();
                    group += 1;
                }
                left -= 1;
                group
            })
            .collect();
        below = below.iter().map(|&child| of_below[child as usize]).collect();
        groups.push(below.clone());
    }
    groups.push(vec![0; hosts as usize]);
    let expand = |groups: Vec<u32>| groups.iter().flat_map(|&group| vec![group; cores as usize]).collect();
    let hosts: Vec<u32> = (0..hosts).collect();
    [hosts].into_iter().chain(groups).map(expand).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hierarchies_are_found_as_they_are(
        sizes in prop::collection::vec(2_u32..9, 1..24),
        depth in 0_usize..3,
        cores in 1_u32..4,
        ratios in prop::array::uniform5(1.3_f64..10.0),
        noise in 0.0_f64..0.1,
        seed in any::<u64>(),
    ) {
        let groups = irregular(&sizes, depth, cores);
        let mut latencies = vec![1e-7];
        for ratio in &ratios[..groups.len() - 1] {
            latencies.push(latencies.last().unwrap() * ratio);
        }
        let host_of = (0..groups[0].len() as u32).map(|slot| slot / cores).collect();
        let truth = Truth { groups, latencies, host_of };
        let system = found(&truth.measured(noise, seed));
        prop_assert_eq!(&tree(&system).groups, &true_groups(&truth));
        let hosts = system.hosts().count();
        prop_assert_eq!(Paths::new(&system).is_some(), hosts > 1);
    }

    #[test]
    fn any_numbers_give_a_sound_machine(
        times in prop::collection::vec(prop_oneof![Just(0.0), Just(1e-6), Just(5e307), 0.0_f64..1e-3, 1e-300_f64..1e300], 56),
        hosts in 1_u32..5,
    ) {
        let truth = Truth::regular(&[8 / hosts.next_power_of_two(), hosts.next_power_of_two()], 1, &[1e-6, 1e-6]);
        let mut measured = truth.measured(0.0, 1);
        for (sample, time) in measured.samples.iter_mut().zip(&times) {
            *sample = self::sample(sample.source, sample.destination, 1, *time);
        }
        let system = found(&measured);
        tree(&system);
        prop_assert_eq!(found(&measured), system);
    }
}
