use hopmap_model::{Dependency, Processor, Task, WorkUnit};
use proptest::prelude::*;

use super::*;
use crate::formats::sch::{Sch, SchProcessor};
use crate::plan::Plan;
use crate::tests::{Case, any_case};
use hopmap_replay::{Distances, Linear, Network};

fn params(text: serde_json::Value) -> CheckParams {
    serde_json::from_value(text).unwrap()
}

/// Two processors; a byte between them takes one unit of time.
fn machine(processors: usize) -> Machine {
    let linear = |per_byte| Linear { latency: 0.0, per_byte };
    Machine {
        processors: (0..processors)
            .map(|index| Processor { name: format!("p{index}"), ..Processor::default() })
            .collect(),
        pace: vec![1.0; processors],
        network: Network::Linear { distances: Distances::Alike, classes: vec![linear(0.0), linear(1.0)] },
    }
}

/// `7` sends to `3` and `9`, and both send to `5`.
fn diamond() -> TaskDag {
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    TaskDag {
        tasks: [2.0, 3.0, 4.0, 1.0].map(|work| Task { rank: None, work }).into(),
        dependencies: vec![edge(0, 1, 1), edge(0, 2, 5), edge(1, 3, 2), edge(2, 3, 6)],
        names: ["7", "3", "9", "5"].map(String::from).into(),
        unit: WorkUnit::Time,
        ..TaskDag::default()
    }
}

fn sch(lists: &[&[u64]]) -> Sch {
    let processors = (1..).zip(lists).map(|(name, nodes)| SchProcessor { name, nodes: nodes.to_vec() });
    Sch { processors: processors.collect() }
}

fn of_sch(lists: &[&[u64]], model: &str) -> Result<Schedule, String> {
    let (dag, machine) = (diamond(), machine(2));
    let model =
        crate::params::MachineParams::from(&params(serde_json::json!({ "model": model }))).delay_model();
    let program = Program::new(&dag, &machine, model);
    let mut schedule = program::schedule_of_sch(&program, &sch(lists)).map_err(|error| error.problem)?;
    let measured = measure(&program, &schedule).unwrap();
    schedule.metrics.extend(measured.map(|(name, value)| (name.to_owned(), value)));
    Ok(schedule)
}

fn times(schedule: &Schedule) -> Vec<(f64, f64)> {
    schedule.tasks.iter().map(|task| (task.start, task.finish)).collect()
}

#[test]
fn a_sch_gets_the_earliest_times_of_both_models() {
    let lists: [&[u64]; 2] = [&[7, 9, 5], &[3]];
    let overlap = of_sch(&lists, "overlap").unwrap();
    assert_eq!(times(&overlap), [(0.0, 2.0), (3.0, 6.0), (2.0, 6.0), (8.0, 9.0)]);
    assert_eq!(
        overlap.tasks.iter().map(|task| task.waits_for).collect::<Vec<_>>(),
        [None, Some(0), Some(0), Some(1)]
    );
    let receive = of_sch(&lists, "receive").unwrap();
    // Processor 1 receives for 1 and computes for 3; the last task receives for 2.
    assert_eq!(times(&receive), [(0.0, 2.0), (2.0, 6.0), (2.0, 6.0), (6.0, 9.0)]);
    for schedule in [overlap, receive] {
        assert_eq!(schedule.check(), Ok(()));
        let metric = |name: &str| schedule.metrics[name];
        assert_eq!((metric("makespan"), metric("earliest_makespan")), (9.0, 9.0));
        // The first processor computes 2, 4 and 1, and receives 2.
        let rest = ["parus_time", "critical_tasks", "parus_accepts"].map(metric);
        assert!(
            rest.iter().zip([9.0, 3.0, 1.0]).all(|(found, expected)| found.total_cmp(&expected).is_eq()),
            "{rest:?}"
        );
    }
}

/// Keeps what is logged.
#[derive(Default)]
struct Logged(std::sync::Mutex<Vec<String>>);

impl hopmap_model::Observer for Logged {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn cancelled(&self) -> bool {
        false
    }
}

/// "PARUS would report 0.015225414400000001" appeared for the schedule of a trace.
#[test]
fn only_files_of_parus_are_told_what_parus_reports() {
    let (mut dag, machine) = (diamond(), machine(2));
    // 0.1 + 0.2 is 0.30000000000000004.
    dag.tasks.iter_mut().zip([0.1, 0.2, 0.1, 0.2]).for_each(|(task, work)| task.work = work);
    dag.dependencies.iter_mut().for_each(|edge| edge.bytes = 0);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), sch(&[&[7, 3, 9, 5], &[]]).write(|_| None)).unwrap();
    let said = |params: serde_json::Value, given: Option<&Schedule>| {
        let logged = Logged::default();
        let checked = check(&dag, &machine, &self::params(params), given, &Context::new(1, None, &logged));
        (checked.unwrap(), logged.0.into_inner().unwrap().join("; "))
    };
    let (schedule, of_file) = said(serde_json::json!({ "path": file.path() }), None);
    assert_eq!(of_file, "makespan 0.6, 50.00 % idle, 4 tasks on the critical path; PARUS would report 0.6");
    let (_, of_schedule) = said(serde_json::json!({}), Some(&schedule));
    assert_eq!(of_schedule, "makespan 0.6, 50.00 % idle, 4 tasks on the critical path");
}

#[test]
fn a_sch_that_does_not_fit_is_rejected() {
    let refused = |lists: &[&[u64]]| of_sch(lists, "overlap").unwrap_err();
    assert_eq!(refused(&[&[7, 3, 9, 5, 4], &[]]), "node 4 of the schedule is not a task of the program");
    assert_eq!(refused(&[&[7, 3], &[3, 9, 5]]), "the schedule contains node 3 twice");
    assert_eq!(refused(&[&[7], &[5]]), "task `3` is not in the schedule, and neither are 1 others");
    assert_eq!(
        refused(&[&[7, 3, 9], &[], &[5]]),
        "processor 3 does not exist: the machine has 2, counted from 1"
    );
    let cycle = refused(&[&[5, 7], &[3, 9]]);
    assert!(
        cycle.starts_with("the order is infeasible: tasks")
            && cycle.contains("tasks `7`, `3`, `5` form a cycle"),
        "{cycle}"
    );
}

/// `check_schedule` of PARUS, step by step: in each round every processor with tasks left takes a turn, and the predecessors of a
/// task must have been sent by then.
fn parus_takes(dag: &TaskDag, turns: &[Vec<u32>]) -> bool {
    let mut sent = std::collections::HashSet::new();
    let mut next = vec![0; turns.len()];
    while next.iter().zip(turns).any(|(next, tasks)| *next < tasks.len()) {
        for (next, tasks) in next.iter_mut().zip(turns) {
            let Some(&task) = tasks.get(*next) else { continue };
            *next += 1;
            let (arrives, leaves): (Vec<_>, Vec<_>) = (
                dag.dependencies.iter().enumerate().filter(|(_, edge)| edge.destination == task).collect(),
                dag.dependencies.iter().enumerate().filter(|(_, edge)| edge.source == task).collect(),
            );
            if !arrives.iter().all(|(edge, _)| sent.contains(edge)) {
                return false;
            }
            sent.extend(leaves.iter().map(|(edge, _)| *edge));
        }
    }
    true
}

/// A schedule in an order that PARUS accepts.
fn in_parus_order(program: &Program<'_>, turns: &[Vec<u32>]) -> Schedule {
    let given = Schedule {
        tasks: program::earliest_times(program, turns).unwrap(),
        processors: program.machine.processors.clone(),
        names: program.dag.names.clone(),
        model: program.model,
        metrics: [("lower_bound".to_owned(), 1.0), ("proven".to_owned(), 1.0)].into(),
        convergence: Vec::new(),
        complete: true,
    };
    let ordered = parus_order::ordered(program, given, false, &Context::detached());
    assert!(parus_takes(program.dag, &ordered.turns()), "{ordered:#?}");
    assert_eq!(ordered.check(), Ok(()));
    ordered
}

/// All tasks in sequence on one processor.
fn splits(order: &[u32], processors: usize) -> Vec<Vec<Vec<u32>>> {
    let Some((&first, rest)) = order.split_first() else { return vec![vec![Vec::new(); processors]] };
    let with_first = |turns: &Vec<Vec<u32>>, processor: usize| {
        let mut turns = turns.clone();
        turns[processor].insert(0, first);
        turns
    };
    splits(rest, processors)
        .iter()
        .flat_map(|turns| (0..processors).map(|processor| with_first(turns, processor)).collect::<Vec<_>>())
        .collect()
}

#[test]
fn processors_are_renumbered_so_that_parus_accepts_the_same_starts() {
    let (dag, machine) = (diamond(), machine(2));
    let program = Program::new(&dag, &machine, hopmap_model::DelayModel::Receive);
    // `9` on the first processor waits for `7`, which has its first turn on the second.
    let turns = [vec![2], vec![0, 1, 3]];
    assert!(!parus_takes(&dag, &turns) && !parus_order::accepts(&dag, &turns));
    let ordered = in_parus_order(&program, &turns);
    assert_eq!(ordered.turns(), [vec![0, 1, 3], vec![2]]);
    let starts =
        |tasks: &[hopmap_model::ScheduledTask]| tasks.iter().map(|task| task.start).collect::<Vec<_>>();
    assert_eq!(starts(&ordered.tasks), starts(&program::earliest_times(&program, &turns).unwrap()));
    // The claims about the previous order are dropped.
    assert_eq!(ordered.metrics.keys().collect::<Vec<_>>(), ["lower_bound"]);
}

#[test]
fn without_an_accepted_order_of_the_same_starts_the_best_accepted_one_is_used() {
    // The last task is alone on a processor and waits for a chain of three on the other, which has had more turns by then.
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    let dag = TaskDag {
        tasks: [2.0, 3.0, 1.0, 6.0, 5.0].map(|work| Task { rank: None, work }).into(),
        dependencies: vec![edge(0, 1, 1), edge(0, 4, 3), edge(1, 2, 1), edge(2, 3, 2)],
        unit: WorkUnit::Time,
        ..TaskDag::default()
    };
    let mut machine = machine(2);
    machine.pace[1] = 0.5;
    for model in [hopmap_model::DelayModel::Receive, hopmap_model::DelayModel::Overlap] {
        let program = Program::new(&dag, &machine, model);
        let turns = [vec![0, 1, 2, 4], vec![3]];
        assert!(!parus_takes(&dag, &turns));
        let found = in_parus_order(&program, &turns).makespan();
        let orders = [[0, 1, 2, 3, 4], [0, 1, 2, 4, 3], [0, 1, 4, 2, 3], [0, 4, 1, 2, 3]];
        let all = orders.iter().flat_map(|order| splits(order, 2));
        let accepted = all.filter(|turns| parus_takes(&dag, turns));
        let makespan = |turns: Vec<Vec<u32>>| {
            program::earliest_times(&program, &turns)
                .unwrap()
                .iter()
                .map(|task| task.finish)
                .fold(0.0, f64::max)
        };
        let best = accepted.map(makespan).fold(f64::INFINITY, f64::min);
        // The search ends when the original makespan is reached.
        let given = makespan(turns.to_vec());
        assert!((best..=best.max(given)).contains(&found), "{model:?}: {found}, {best}, {given}");
    }
}

/// The diamond on two processors with its times, as a scheduler would return it.
fn diamond_case() -> (TaskDag, Machine, Schedule) {
    let schedule = of_sch(&[&[7, 9, 5], &[3]], "overlap").unwrap();
    (diamond(), machine(2), schedule)
}

fn checked(
    change: impl FnOnce(&mut TaskDag, &mut Machine, &mut Schedule),
    params: &CheckParams,
) -> Result<Schedule, String> {
    let (mut dag, mut machine, mut schedule) = diamond_case();
    change(&mut dag, &mut machine, &mut schedule);
    check(&dag, &machine, params, Some(&schedule), &Context::detached()).map_err(|error| error.to_string())
}

fn wrong(change: impl FnOnce(&mut TaskDag, &mut Machine, &mut Schedule)) -> String {
    checked(change, &params(serde_json::json!({}))).unwrap_err()
}

#[test]
fn every_false_claim_is_reported() {
    assert!(checked(|_, _, _| {}, &params(serde_json::json!({}))).is_ok());
    let metric = |schedule: &mut Schedule, name: &str, value| {
        schedule.metrics.insert(name.to_owned(), value);
    };
    for (message, actual) in [
        (
            "has 4 tasks, but the program has 1",
            wrong(|dag, _, _| *dag = TaskDag { tasks: vec![dag.tasks[0]], ..TaskDag::default() }),
        ),
        ("task `x` of the program is task `9`", wrong(|dag, _, _| dag.names[2] = "x".into())),
        ("task `9` belongs to another rank", wrong(|dag, _, _| dag.tasks[2].rank = Some(1))),
        ("2 processors, but the machine has 3", wrong(|_, machine, _| *machine = self::machine(3))),
        (
            "processor `x` of the machine is `p1`",
            wrong(|_, machine, _| machine.processors[1].name = "x".into()),
        ),
        ("from 0 in the schedule, but from 1", wrong(|_, machine, _| machine.processors[1].available = 1.0)),
        ("task `9` runs on processor 7", wrong(|_, _, one| one.tasks[2].processor = 7)),
        ("task `9` runs from 2 to NaN", wrong(|_, _, one| one.tasks[2].finish = f64::NAN)),
        ("task `7` starts at -1, but its processor", wrong(|_, _, one| one.tasks[0].start = -1.0)),
        ("no task has turn 1", wrong(|_, _, one| one.tasks[2].turn = 5)),
        ("task `9` starts at 1, but task `7`", wrong(|_, _, one| one.tasks[2].start = 1.0)),
        (
            "task `3` starts at 2, but task `7` allows no start before 3",
            wrong(|_, _, one| one.tasks[1].start = 2.0),
        ),
        ("task `3` takes 3, but runs from 4 to 6", wrong(|_, _, one| one.tasks[1].start = 4.0)),
        ("does not wait until then for task `9`", wrong(|_, _, one| one.tasks[3].waits_for = Some(2))),
        ("which does not exist", wrong(|_, _, one| one.tasks[3].waits_for = Some(9))),
        ("names no cause", wrong(|_, _, one| one.tasks[3].waits_for = None)),
        ("the claimed makespan is 8", wrong(|_, _, one| metric(one, "makespan", 8.0))),
        ("the claimed makespan is NaN", wrong(|_, _, one| metric(one, "makespan", f64::NAN))),
        ("the claimed idle is 0", wrong(|_, _, one| metric(one, "idle", 0.0))),
        ("the claimed lower bound 10", wrong(|_, _, one| metric(one, "lower_bound", 10.0))),
        ("optimal without a lower bound", wrong(|_, _, one| metric(one, "proven", 1.0))),
        (
            "lower bound 6 is below the makespan 9",
            wrong(|_, _, one| {
                metric(one, "lower_bound", 6.0);
                metric(one, "proven", 1.0);
            }),
        ),
        (
            "the claimed gap is 0.1, but its value is 0.5",
            wrong(|_, _, one| {
                metric(one, "lower_bound", 6.0);
                metric(one, "gap", 0.1);
            }),
        ),
    ] {
        assert!(actual.contains(message), "{message}: {actual}");
    }
    let model = checked(|_, _, _| {}, &params(serde_json::json!({ "model": "receive" })));
    assert!(model.unwrap_err().contains("uses the model `overlap`, but the check uses `receive`"));
}

#[test]
fn ranks_must_stay_together_unless_free() {
    let ranks = |ranks: [u32; 4]| {
        move |dag: &mut TaskDag, _: &mut Machine, schedule: &mut Schedule| {
            for (task, rank) in ranks.into_iter().enumerate() {
                (dag.tasks[task].rank, schedule.tasks[task].process) = (Some(rank), Some(rank));
            }
        }
    };
    let together = || params(serde_json::json!({}));
    assert!(checked(ranks([0, 1, 0, 0]), &together()).is_ok());
    let scattered = checked(ranks([0, 0, 0, 0]), &together()).unwrap_err();
    assert!(
        scattered.contains("task `3` of rank 0 runs on `p1`; other tasks of the rank run on `p0`"),
        "{scattered}"
    );
    let crowded = checked(ranks([0, 1, 2, 0]), &together()).unwrap_err();
    assert!(crowded.contains("task `9` of rank 2 runs on `p0`, which rank 0 also uses"), "{crowded}");
    assert!(checked(ranks([0, 1, 2, 0]), &params(serde_json::json!({ "ranks": "free" }))).is_ok());
}

#[test]
fn exactly_one_schedule_is_required() {
    let (dag, machine, schedule) = diamond_case();
    let with = |params: serde_json::Value, given: Option<&Schedule>| {
        check(&dag, &machine, &self::params(params), given, &Context::detached()).unwrap_err().to_string()
    };
    assert!(with(serde_json::json!({}), None).contains("no schedule to check"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.sch");
    let params = serde_json::json!({ "path": file });
    assert!(with(params.clone(), Some(&schedule)).contains("cannot be combined with a `path`"));
    assert!(with(params.clone(), None).contains("cannot be read"));
    std::fs::write(&file, "<SCHEDULE_BEGIN>").unwrap();
    assert!(with(params, None).contains("one.sch:1: "));
}

/// Later times than the earliest ones are reported, but allowed.
#[test]
fn later_than_needed_is_allowed() {
    let later = checked(
        |_, _, one| {
            let last = &mut one.tasks[3];
            (last.start, last.finish, last.waits_for) = (10.0, 11.0, None);
            one.metrics.clear();
        },
        &params(serde_json::json!({})),
    );
    let metrics = later.unwrap().metrics;
    assert_eq!((metrics["makespan"], metrics["earliest_makespan"]), (11.0, 9.0));
}

/// Whether a schedule is accepted.
fn accepts(case: &Case, schedule: &Schedule) -> bool {
    check(&case.dag, &case.machine, &case.params(), Some(schedule), &Context::detached()).is_ok()
}

/// The processors of a schedule and its tasks in the order of their times.
fn plan(schedule: &Schedule, case: &Case) -> Option<Plan> {
    let mut order = case.plan.order.clone();
    let task = |task: u32| &schedule.tasks[task as usize];
    order.sort_by(|&a, &b| {
        task(a).start.total_cmp(&task(b).start).then(task(a).finish.total_cmp(&task(b).finish))
    });
    let problem = crate::problem::Problem::new(&case.dag, &case.machine, case.model).unwrap();
    let plan = Plan { order, processor: schedule.tasks.iter().map(|task| task.processor).collect() };
    plan.is_admissible(&problem).then_some(plan)
}

proptest! {
    #[test]
    fn what_schedulers_make_is_accepted_and_simulated_alike(case in any_case()) {
        let checked = check(&case.dag, &case.machine, &case.params(), Some(&case.schedule), &Context::detached());
        let checked = checked.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let program = Program::new(&case.dag, &case.machine, case.model);
        let (makespan, earliest) = (checked.metrics["makespan"], checked.metrics["earliest_makespan"]);
        prop_assert!((makespan - earliest).abs() <= 2.0 * 13.0 * program.tolerance, "{} {}", makespan, earliest);
        let numbers = crate::export::node_numbers(&case.dag.names, case.dag.tasks.len());
        let nodes = |tasks: &Vec<u32>| tasks.iter().map(|&task| numbers[task as usize]).collect::<Vec<_>>();
        let lists: Vec<Vec<u64>> = case.schedule.turns().iter().map(nodes).collect();
        let lists: Vec<&[u64]> = lists.iter().map(Vec::as_slice).collect();
        let again = program::schedule_of_sch(&program, &sch(&lists)).unwrap();
        prop_assert_eq!(again.check(), Ok(()));
        prop_assert!((again.makespan() - makespan).abs() <= 26.0 * program.tolerance);
    }

    #[test]
    fn orders_are_refused_if_and_only_if_tasks_would_wait_for_each_other(
        case in any_case(),
        keys in prop::collection::vec(any::<u32>(), 12),
    ) {
        let mut nodes: Vec<u64> = (0..case.dag.tasks.len() as u64).collect();
        nodes.sort_by_key(|&node| keys[node as usize]);
        let count = case.machine.processors.len();
        let mut lists = vec![Vec::new(); count];
        nodes.iter().for_each(|&node| lists[keys[11 - node as usize] as usize % count].push(node));
        let program = Program::new(&case.dag, &case.machine, case.model);
        let given: Vec<&[u64]> = lists.iter().map(Vec::as_slice).collect();
        let found = program::schedule_of_sch(&program, &sch(&given));
        // The first task of a processor runs once its predecessors are done, until no task can.
        let mut done = Vec::new();
        loop {
            let is_ready = |node: u64| {
                let mut messages = case.dag.dependencies.iter().filter(|one| u64::from(one.destination) == node);
                messages.all(|message| done.contains(&u64::from(message.source)))
            };
            match lists.iter_mut().find(|list| list.first().is_some_and(|&node| is_ready(node))) {
                Some(list) => done.push(list.remove(0)),
                None => break,
            }
        }
        prop_assert_eq!(found.is_ok(), done.len() == case.dag.tasks.len(), "{:?}", found);
        if let Ok(schedule) = found {
            prop_assert!(accepts(&case, &schedule));
        }
    }

    #[test]
    fn times_that_are_moved_are_found(case in any_case(), chosen in any::<prop::sample::Index>(), by in 1u32..20, ends in 0..4usize) {
        let mut schedule = case.schedule.clone();
        let task = &mut schedule.tasks[chosen.index(case.dag.tasks.len())];
        let by = f64::from(by) / 4.0;
        match ends {
            0 => task.start -= by,
            1 => task.start += by,
            2 => task.finish += by,
            // A task that starts at its earliest time: an earlier start is invalid, and so is the stated cause if it starts
            // later.
            _ => (task.start, task.finish) = (task.start - by, task.finish - by),
        }
        prop_assert!(!accepts(&case, &schedule));
    }

    #[test]
    fn turns_that_are_swapped_are_found(case in any_case(), first in any::<prop::sample::Index>(), second in any::<prop::sample::Index>()) {
        let [first, second] = [first, second].map(|task| task.index(case.dag.tasks.len()));
        let mut schedule = case.schedule.clone();
        let takes = |task: usize| case.schedule.tasks[task].finish - case.schedule.tasks[task].start;
        if takes(first).min(takes(second)) <= 0.0 {
            return Ok(());
        }
        let turn = schedule.tasks[first].turn;
        schedule.tasks[first].turn = schedule.tasks[second].turn;
        schedule.tasks[second].turn = turn;
        prop_assert!(!accepts(&case, &schedule) || schedule == case.schedule);
    }

    #[test]
    fn any_schedule_has_an_order_that_parus_accepts(case in any_case()) {
        let turns = case.schedule.turns();
        prop_assert_eq!(parus_order::accepts(&case.dag, &turns), parus_takes(&case.dag, &turns));
        let params = CheckParams { parus_order: true, ..case.params() };
        // The claims about these schedules are not bounds of others.
        let given = Schedule { metrics: std::collections::BTreeMap::default(), ..case.schedule.clone() };
        let ordered = check(&case.dag, &case.machine, &params, Some(&given), &Context::detached()).unwrap();
        prop_assert!(parus_takes(&case.dag, &ordered.turns()));
        // It is a valid schedule.
        let again = check(&case.dag, &case.machine, &case.params(), Some(&ordered), &Context::detached());
        prop_assert!(again.unwrap().metrics["parus_accepts"] > 0.0);
        if parus_takes(&case.dag, &turns) {
            prop_assert_eq!(ordered.tasks, case.schedule.tasks);
        }
    }

    #[test]
    fn tasks_that_are_moved_are_found_unless_they_fit(case in any_case(), chosen in any::<prop::sample::Index>(), to in any::<u32>(), claim in any::<bool>()) {
        let mut schedule = case.schedule.clone();
        let task = chosen.index(case.dag.tasks.len());
        schedule.tasks[task].processor = to % case.machine.processors.len() as u32;
        let plan = plan(&schedule, &case);
        let Some(plan) = plan else { return Ok(()) };
        let mut turns = vec![0; case.machine.processors.len()];
        for &task in &plan.order {
            let processor = plan.processor[task as usize] as usize;
            schedule.tasks[task as usize].turn = turns[processor];
            turns[processor] += 1;
        }
        schedule.metrics.clear();
        let tolerance = Program::new(&case.dag, &case.machine, case.model).tolerance;
        let earliest = case.earliest(&plan);
        let is_too_early = earliest.iter().zip(&schedule.tasks).any(|(earliest, task)| {
            earliest.0 > task.start + 26.0 * tolerance || (earliest.1 - earliest.0 - (task.finish - task.start)).abs() > 26.0 * tolerance
        });
        if is_too_early {
            prop_assert!(!accepts(&case, &schedule));
        } else if claim {
            // A task that starts later than necessary names no cause.
            let problem = crate::problem::Problem::new(&case.dag, &case.machine, case.model).unwrap();
            let exact = plan.schedule(&problem, &case.dag, &case.machine.processors);
            if exact.tasks.iter().zip(&schedule.tasks).all(|(a, b)| (a.start, a.finish) == (b.start, b.finish)) {
                prop_assert!(accepts(&case, &exact));
            }
        }
    }
}
