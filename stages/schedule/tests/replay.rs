//! `schedule/replay`: the times of the tasks of ranks, each on its slot.

use std::sync::Arc;

use hopmap_model::{
    Context, DelayModel, Dependency, Envelope, Inputs, Link, Mapping, Node, Outcome, ProgramBuilder,
    Schedule, Stage, SystemGraph, Task, TaskDag, Weight, WorkUnit,
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

/// Ranks 0 and 1 compute for 1 ms and send 1 MB each to rank 2, which then computes for 2 ms. Both messages use its link, of 1 GB/s.
fn two_into_one() -> (TaskDag, ProgramBuilder, SystemGraph) {
    let work = [1e-3, 1e-3, 2e-3];
    let tasks = (0..).zip(work).map(|(rank, work)| Task { rank: Some(rank), work }).collect();
    let message = |source| Dependency { source, destination: 2, bytes: 1_000_000 };
    let dag = TaskDag {
        tasks,
        dependencies: vec![message(0), message(1)],
        recorded_s: Some(0.25),
        ..TaskDag::default()
    };
    let mut program = ProgramBuilder::new(3);
    let to = |peer| Envelope { peer, tag: 0, communicator: 0 };
    for rank in [0, 1] {
        program.compute(rank, work[rank as usize]);
        program.send(rank, to(2), 1_000_000);
        program.irecv(2, to(rank), 1_000_000);
    }
    program.waitall(2);
    program.compute(2, work[2]);
    let mut system = tree(&[1, 3], &[0.0, 1.0]);
    system.nodes.push(Node::switch("switch"));
    for host in 0..3 {
        let link = Link { latency_s: Some(0.0), bandwidth_bytes_per_s: Some(1e9), ..Link::new(host, 3) };
        system.links.extend([link, link.reversed()]);
    }
    (dag, program, system)
}

fn replayed(inputs: Inputs) -> Schedule {
    let outcome = ReplayStage::run(ReplayParams::default(), inputs, &Context::detached()).unwrap();
    let Outcome::Done(outputs) = outcome else { panic!("not done") };
    outputs.get("schedule").unwrap().downcast_ref::<Schedule>().unwrap().clone()
}

/// The recorded run time was said beside the makespan, but not what lies between them.
#[test]
fn a_recorded_run_time_is_explained_by_its_parts() {
    let (dag, program, system) = two_into_one();
    let alone = replayed(inputs(&dag, &[0, 1, 2], &system));
    let mut inputs = inputs(&dag, &[0, 1, 2], &system);
    assert!(!alone.metrics.contains_key("predicted_s"));
    inputs.connect("program", Arc::new(program.finish().unwrap()), "4".into(), "operations".into());
    let schedule = replayed(inputs);
    // Alone a message takes 1 ms; two that share the link take 2 ms, so one of them waits for 1 ms.
    for (name, expected) in [
        ("makespan", 4e-3),
        ("critical_work", 3e-3),
        ("predicted_s", 5e-3),
        ("predicted_computation_s", 3e-3),
        ("predicted_messages_s", 1e-3),
        ("predicted_overhead_s", 0.0),
        ("predicted_waiting_s", 1e-3),
        ("recorded_s", 0.25),
    ] {
        let found = schedule.metrics[name];
        assert!((found - expected).abs() < 1e-9, "{name} is {found}, not {expected}");
    }
    assert_eq!(alone.metrics["makespan"].to_bits(), schedule.metrics["makespan"].to_bits());
}

#[test]
fn a_machine_without_links_is_predicted_with_the_rates_of_the_schedule() {
    let (dag, program, mut system) = two_into_one();
    system.links.clear();
    system.nodes.pop();
    let mut inputs = inputs(&dag, &[0, 1, 2], &system);
    inputs.connect("program", Arc::new(program.finish().unwrap()), "4".into(), "operations".into());
    let schedule = replayed(inputs);
    // Nothing is shared, so the prediction is the makespan: 1 MB at the default of 1.25 GB/s.
    let metric = |name: &str| schedule.metrics[name];
    assert!((metric("makespan") - 3.8e-3).abs() < 1e-9, "{schedule:?}");
    assert!((metric("predicted_s") - metric("makespan")).abs() < 1e-9, "{schedule:?}");
    // Once 3.5e-18 s, the rounding of the other parts.
    assert_eq!(metric("predicted_waiting_s"), 0.0);
}

#[test]
fn a_program_of_other_ranks_is_refused() {
    let (dag, _, system) = two_into_one();
    let mut inputs = inputs(&dag, &[0, 1, 2], &system);
    let other = ProgramBuilder::new(2).finish().unwrap();
    inputs.connect("program", Arc::new(other), "4".into(), "operations".into());
    let error = ReplayStage::run(ReplayParams::default(), inputs, &Context::detached()).unwrap_err();
    assert_eq!(error.to_string(), "the mapping has 3 ranks, the program has 2");
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
