//! Properties of placements of ranks, for random programs.

use hopmap_model::{Context, DelayModel, Task, TaskDag, WorkUnit};
use hopmap_replay::{
    Distance, Distances, Lookup, Machine, MakespanEvaluator, Measured, Network, ReplayProblem,
};
use hopmap_test_support::small_programs;
use proptest::prelude::*;

use super::{RankSearch, auto, exact, genetic, list, starts};
use crate::{Evaluator, MachineParams, Plan, Problem};

#[path = "../../tests/support/programs.rs"]
mod programs;

use programs::{Stencil, sweep, tree, writers};

const MODELS: [DelayModel; 2] = [DelayModel::Overlap, DelayModel::Receive];

/// A tree, a measured machine whose processors also take time for local messages, and one with different speeds.
fn machine(kind: u8) -> Machine {
    let params = MachineParams { latency: Some(2.0), bandwidth: Some(0.5), ..MachineParams::default() };
    let mut machine = params.machine(Some(&tree(&[2, 3], &[1.0, 4.0])), WorkUnit::Time).unwrap();
    match kind {
        0 => {}
        1 => {
            let times = |length: u64| (0..36).map(|pair| ((pair * 7 + 3 * length) % 11) as f64).collect();
            let measured = Measured::new(6, vec![1, 2], vec![times(1), times(2)], Lookup::Parus);
            machine.network = Network::Measured(measured);
        }
        _ => {
            machine.pace = vec![1.0, 2.0, 1.5, 1.0, 3.0, 1.0];
            machine
                .processors
                .iter_mut()
                .zip([0.0, 5.0, 1.0, 9.0])
                .for_each(|(one, time)| one.available = time);
        }
    }
    machine
}

/// Some placement of four ranks on six slots.
fn placement_of(mut number: usize) -> Vec<u32> {
    let mut left: Vec<u32> = (0..6).collect();
    let mut next = |bound: usize| {
        let digit = number % bound;
        number /= bound;
        left.remove(digit)
    };
    [6, 5, 4, 3].map(&mut next).to_vec()
}

const PLACEMENTS: usize = 6 * 5 * 4 * 3;

fn params<P: serde::de::DeserializeOwned>(text: &str) -> P {
    serde_json::from_str(text).unwrap()
}

proptest! {
    /// Contraction is lossless: all tasks have the times of the plan for the same placement.
    #[test]
    fn a_placement_takes_what_its_plan_takes(dag in small_programs(), kind in 0u8..3, number in 0..PLACEMENTS) {
        let machine = machine(kind);
        for model in MODELS {
            let problem = ReplayProblem::new(&dag, &machine, model).unwrap();
            let slots = &placement_of(number)[..problem.ranks()];
            let whole = Problem::new(&dag, &machine, model).unwrap();
            let order = (0..problem.program().nodes() as u32).flat_map(|node| problem.program().tasks(node).to_vec()).collect();
            let processor = dag.tasks.iter().map(|task| slots[task.rank.unwrap() as usize]).collect();
            let plan = Plan { order, processor };
            prop_assert!(plan.is_admissible(&whole));
            let times = Evaluator::new(&whole).times(&plan);
            let makespan = times.finish.iter().copied().max().unwrap();
            // A rank without tasks is done when its slot becomes available.
            let idle = slots.iter().map(|&slot| problem.available(slot)).max().unwrap();
            let found = MakespanEvaluator::new(&problem).makespan(slots);
            prop_assert_eq!(found, makespan.max(idle));
            let schedule = problem.schedule(&dag, &machine.processors, slots);
            prop_assert_eq!(schedule.check(), Ok(()));
            for (task, one) in schedule.tasks.iter().enumerate() {
                prop_assert_eq!((one.start, one.finish), (whole.real(times.start[task]), whole.real(times.finish[task])));
                prop_assert_eq!(one.processor, plan.processor[task]);
            }
            prop_assert!(problem.lower_bound() <= found);
        }
    }

    /// Branch and bound finds the best placement and reports it as proven; the other searches are between the best start and it.
    #[test]
    fn nothing_is_better_than_what_is_proven(dag in small_programs(), kind in 0u8..3) {
        let machine = machine(kind);
        for model in MODELS {
            let problem = ReplayProblem::new(&dag, &machine, model).unwrap();
            let mut evaluator = MakespanEvaluator::new(&problem);
            let all = (0..PLACEMENTS).map(|number| evaluator.makespan(&placement_of(number)[..problem.ranks()]));
            let best = all.min().unwrap();
            let cx = Context::detached();
            let search = RankSearch::new(&problem, &machine.processors, None);
            let found = exact(&params("{}"), &search, &cx).unwrap();
            prop_assert_eq!((found.makespan, found.is_proven()), (best, true));
            prop_assert_eq!(evaluator.makespan(&found.best), best);
            let start = list(&search, &cx).unwrap();
            let auto = auto(&params(r#"{ "evaluations": 200, "islands": 1 }"#), &search, &cx).unwrap();
            let genetic = genetic(&params(r#"{ "evaluations": 200, "islands": 1 }"#), &search, &cx).unwrap();
            for found in [&start, &auto, &genetic] {
                prop_assert_eq!(evaluator.makespan(&found.best), found.makespan);
                prop_assert!(found.makespan >= best && found.lower_bound <= best);
            }
            prop_assert!(auto.makespan <= start.makespan);
        }
    }
}

/// A program on a tree of hosts of 16 cores, with its machine.
fn on_tree(dag: &TaskDag) -> (ReplayProblem, Machine) {
    let params = MachineParams { latency: Some(0.5e-6), bandwidth: Some(20e9), ..MachineParams::default() };
    let hosts = dag.ranks().div_ceil(16) + 1;
    let machine = params.machine(Some(&tree(&[16, hosts], &[1.0, 8.0])), WorkUnit::Seconds).unwrap();
    (ReplayProblem::new(dag, &machine, DelayModel::Overlap).unwrap(), machine)
}

#[test]
fn searches_are_independent_of_the_number_of_threads() {
    let (problem, machine) = on_tree(&sweep(6, 6, 4, 20_000, true));
    let search = RankSearch::new(&problem, &machine.processors, None);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let cx = Context::detached().with_threads(threads);
        pool.install(|| {
            let auto = auto(&params(r#"{ "evaluations": 2000, "islands": 3 }"#), &search, &cx).unwrap();
            (auto, genetic(&params(r#"{ "evaluations": 1000, "islands": 3 }"#), &search, &cx).unwrap())
        })
    };
    let [one, two, four] = [1, 2, 4].map(with);
    assert_eq!(one, two);
    assert_eq!(one, four);
    assert!(one.0.complete && one.1.complete);
}

#[test]
fn messages_without_waiting_receivers_do_not_count() {
    let (problem, machine) = on_tree(&writers(2, 50, false));
    let search = RankSearch::new(&problem, &machine.processors, None);
    // Each ring on separate hosts, or every rank next to its writer.
    let rings: Vec<u32> = (0..64).collect();
    let paired = |rank: u32| (rank / 32 * 2 + rank % 16 / 8) * 16 + rank % 8 + rank % 32 / 16 * 8;
    let pairs: Vec<u32> = (0..64).map(paired).collect();
    let channels = problem.program().channels();
    let sum = |slots: &[u32]| -> i64 {
        let of_channel = |(&channel, &messages)| i64::from(messages) * problem.delay(channel, slots);
        channels.all.iter().zip(&channels.messages).map(of_channel).sum()
    };
    let mut evaluator = MakespanEvaluator::new(&problem);
    let [together, torn] = [&rings, &pairs].map(|slots| evaluator.makespan(slots));
    assert!(sum(&rings) > 2 * sum(&pairs), "{} and {}", sum(&rings), sum(&pairs));
    assert!(5 * together < 4 * torn, "{together} and {torn}");
    let found =
        auto(&params(r#"{ "evaluations": 500, "islands": 1 }"#), &search, &Context::detached()).unwrap();
    assert!(found.makespan <= together);
}

#[test]
fn rows_of_a_stencil_are_contracted() {
    let stencil = Stencil {
        width: 4,
        height: 4,
        iterations: 10,
        bytes: [1000, 1000],
        sums: Some(5),
        imbalance: 0.0,
        scramble: false,
    };
    let dag = stencil.dag();
    let (problem, _) = on_tree(&dag);
    // The task after a reduction merges with the next iteration if nothing comes in between.
    assert!(problem.program().nodes() <= dag.tasks.len());
    let alone = TaskDag { dependencies: Vec::new(), ..dag };
    assert_eq!(on_tree(&alone).0.program().nodes(), 16);
}

#[test]
fn invalid_programs_are_rejected() {
    let task = |rank| Task { rank, work: 1.0 };
    let machine = machine(0);
    let message = |tasks: Vec<Task>| {
        let dag = TaskDag { tasks, ..TaskDag::default() };
        ReplayProblem::new(&dag, &machine, DelayModel::Overlap).unwrap_err().to_string()
    };
    assert_eq!(message(Vec::new()), "the program does not contain tasks");
    assert_eq!(message(vec![task(Some(0)), task(None)]), "task 1 does not belong to a rank, but others do");
    assert!(message(vec![task(Some(6))]).contains("7 ranks do not fit on 6 processors"));
    assert!(message(vec![task(Some(u32::MAX - 1))]).contains("ranks do not fit on 6 processors"));
}

#[test]
fn a_search_starts_from_the_given_mapping() {
    let system = tree(&[2, 3], &[1.0, 4.0]);
    let dag = TaskDag {
        tasks: vec![Task { rank: Some(0), work: 1.0 }, Task { rank: Some(1), work: 2.0 }],
        ..TaskDag::default()
    };
    let machine = machine(0);
    let given = |slots: &[u32]| {
        let mapping = hopmap_model::Mapping::new(slots, &system, hopmap_model::Weight::default()).unwrap();
        hopmap_replay::placement(&mapping, &machine, 2)
    };
    assert_eq!(given(&[5, 2]).unwrap(), [5, 2]);
    let problem = ReplayProblem::new(&dag, &machine, DelayModel::Overlap).unwrap();
    let search = RankSearch::new(&problem, &machine.processors, Some(vec![5, 2]));
    assert!(starts(&search).unwrap().iter().any(|start| start.name == "mapping" && start.slots == [5, 2]));
    assert!(given(&[5]).unwrap_err().to_string().contains("has 1 ranks, but the program has 2"));
    let small = MachineParams { processors: Some(3), ..MachineParams::default() };
    let small = small.machine(Some(&system), WorkUnit::Time).unwrap();
    let mapping = hopmap_model::Mapping::new(&[0, 5], &system, hopmap_model::Weight::default()).unwrap();
    let error = hopmap_replay::placement(&mapping, &small, 2).unwrap_err();
    assert!(error.to_string().contains("rank 1 on slot 5, but there are only 3 processors"), "{error}");
}

#[test]
fn a_schedule_defines_its_mapping() {
    let system = tree(&[2, 3], &[1.0, 4.0]);
    let machine = machine(0);
    let tasks = vec![Task { rank: Some(0), work: 1.0 }, Task { rank: Some(2), work: 2.0 }];
    let dag = TaskDag { tasks, ..TaskDag::default() };
    let problem = ReplayProblem::new(&dag, &machine, DelayModel::Overlap).unwrap();
    let mut schedule = problem.schedule(&dag, &machine.processors, &[4, 2, 0]);
    schedule.metrics.insert("lower_bound".into(), 2.0);
    let mapping = super::mapping(&schedule, &system).unwrap();
    // Rank 1 has no tasks and takes a remaining slot.
    assert_eq!(mapping.slots(), [4, 1, 0]);
    assert_eq!((mapping.metrics["makespan"], mapping.metrics["lower_bound"]), (2.0, 2.0));
    let refused = |change: fn(&mut hopmap_model::Schedule)| {
        let mut schedule = schedule.clone();
        change(&mut schedule);
        super::mapping(&schedule, &system).unwrap_err().to_string()
    };
    assert!(refused(|one| one.tasks[1].process = None).contains("task 1 of the schedule has no process"));
    assert!(
        refused(|one| one.processors[4].name = "other:0".into()).contains("`other:0`, which is not a slot")
    );
    assert!(refused(|one| one.processors[4].slot = None).contains("which is not a slot"));
    assert!(refused(|one| one.tasks[1].process = Some(0)).contains("process 0 runs on `n2:0` and on `n0:0`"));
    assert!(refused(|one| one.tasks[1].process = Some(99)).contains("no slot is free"));
}

#[test]
fn large_trees_take_little_memory() {
    let system = tree(&[64, 32, 32], &[1.0, 4.0, 9.0]);
    let params = MachineParams { latency: Some(1e-6), ..MachineParams::default() };
    let machine = params.machine(Some(&system), WorkUnit::Seconds).unwrap();
    let dag = programs::exchanges(256, 256, 2);
    let problem = ReplayProblem::new(&dag, &machine, DelayModel::Overlap).unwrap();
    assert_eq!((problem.ranks(), problem.slots()), (65_536, 65_536));
    let linear: Vec<u32> = (0..65_536).collect();
    assert!(MakespanEvaluator::new(&problem).makespan(&linear) >= problem.lower_bound());
}

#[test]
fn large_machines_give_the_results_of_small_ones() {
    // 2064 slots are stored as a tree or as hosts, the first 2048 of them as pairs.
    let mut system = tree(&[16, 129], &[1.0, 4.0]);
    let switch = system.nodes.len() as u32;
    system.nodes.push(hopmap_model::Node::switch("switch"));
    for host in 0..switch {
        let link = hopmap_model::Link {
            latency_s: Some(1e-6 * f64::from(1 + host % 3)),
            bandwidth_bytes_per_s: Some(1e9),
            ..hopmap_model::Link::new(host, switch)
        };
        system.links.extend([link, link.reversed()]);
    }
    for distance in [Distance::Links, Distance::Costs] {
        let machine = |processors| {
            let latency = Some(1e-6);
            let distance = Some(distance);
            let params = MachineParams { processors, latency, distance, ..MachineParams::default() };
            params.machine(Some(&system), WorkUnit::Seconds).unwrap()
        };
        let [large, small] = [None, Some(2048)].map(machine);
        let are_pairs = |machine: &Machine| {
            matches!(machine.network, Network::Linear { distances: Distances::Pairs { .. }, .. })
        };
        assert!(are_pairs(&small) && !are_pairs(&large));
        for (a, b) in [(0, 0), (0, 1), (0, 15), (0, 16), (16, 0), (40, 2047), (2047, 40), (2046, 2047)] {
            let [one, other] = [&large, &small].map(|machine| machine.network.time(a, b, 1000).to_bits());
            assert_eq!(one, other, "{distance:?} from {a} to {b}");
        }
    }
}
