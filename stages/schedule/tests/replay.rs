//! `schedule/replay`: the times of the tasks of ranks, each on its slot.

use std::sync::Arc;

use hopmap_model::{
    Context, DelayModel, Inputs, Mapping, Outcome, Schedule, Stage, SystemGraph, Task, TaskDag, Weight,
    WorkUnit,
};
use hopmap_replay::{
    Distance, Distances, Lookup, Machine, MakespanEvaluator, Measured, Network, ReplayProblem,
};
use hopmap_schedule::{
    AutoParams, AutoStage, Evaluator, MachineParams, Plan, Problem, ReplayParams, ReplayStage,
};
use hopmap_test_support::small_programs;
use hopmap_test_support::traced::{Stencil, exchanges, tree};
use proptest::prelude::*;

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
}

/// A program on a tree of hosts of 16 cores, with its machine.
fn on_tree(dag: &TaskDag) -> (ReplayProblem, Machine) {
    let params = MachineParams { latency: Some(0.5e-6), bandwidth: Some(20e9), ..MachineParams::default() };
    let hosts = dag.ranks().div_ceil(16) + 1;
    let machine = params.machine(Some(&tree(&[16, hosts], &[1.0, 8.0])), WorkUnit::Seconds).unwrap();
    (ReplayProblem::new(dag, &machine, DelayModel::Overlap).unwrap(), machine)
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
fn large_trees_take_little_memory() {
    let system = tree(&[64, 32, 32], &[1.0, 4.0, 9.0]);
    let params = MachineParams { latency: Some(1e-6), ..MachineParams::default() };
    let machine = params.machine(Some(&system), WorkUnit::Seconds).unwrap();
    let dag = exchanges(256, 256, 2);
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

fn inputs(dag: &TaskDag, slots: &[u32], system: &SystemGraph) -> Inputs {
    let mapping = Mapping::new(slots, system, Weight::default()).unwrap();
    let mut inputs = Inputs::new();
    inputs.connect("task-dag", Arc::new(dag.clone()), "1".into(), "program".into());
    inputs.connect("mapping", Arc::new(mapping), "2".into(), "mapping".into());
    inputs.connect("system", Arc::new(system.clone()), "3".into(), "machine".into());
    inputs
}

fn two_ranks() -> TaskDag {
    let task = |rank| Task { rank: Some(rank), work: f64::from(1 + rank) };
    TaskDag { tasks: vec![task(0), task(1)], ..TaskDag::default() }
}

#[test]
fn ranks_run_on_the_slots_of_their_mapping() {
    let system = tree(&[2, 3], &[1.0, 4.0]);
    let replay = |slots: &[u32], params| {
        ReplayStage::run(params, inputs(&two_ranks(), slots, &system), &Context::detached())
    };
    let Outcome::Done(outputs) = replay(&[5, 2], ReplayParams::default()).unwrap() else {
        panic!("not done")
    };
    let schedule = outputs.get("schedule").unwrap().downcast_ref::<Schedule>().unwrap();
    assert_eq!(schedule.tasks.iter().map(|task| task.processor).collect::<Vec<_>>(), [5, 2]);
    assert_eq!((schedule.metrics["makespan"], schedule.metrics["lower_bound"]), (2.0, 2.0));
    let refused = |slots: &[u32], params| replay(slots, params).unwrap_err().to_string();
    assert!(refused(&[5], ReplayParams::default()).contains("has 1 ranks, but the program has 2"));
    let small = ReplayParams { processors: Some(3), ..ReplayParams::default() };
    let error = refused(&[0, 5], small);
    assert!(error.contains("rank 1 on slot 5, but there are only 3 processors"), "{error}");
}

/// Once schedulers searched for the slots of ranks by themselves.
#[test]
fn schedulers_refuse_ranks_unless_they_are_free() {
    let system = tree(&[2, 3], &[1.0, 4.0]);
    let run = |text: &str| {
        let params: AutoParams = serde_json::from_str(text).unwrap();
        AutoStage::run(params, inputs(&two_ranks(), &[0, 1], &system), &Context::detached())
    };
    let error = run("{}").unwrap_err().to_string();
    assert_eq!(error, "the tasks belong to ranks, each of which stays on its slot");
    assert!(run(r#"{ "ranks": "free" }"#).is_ok());
}
