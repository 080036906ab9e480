//! Goals that precede the objective (with the feature `highs`).
#![cfg(feature = "highs")]

use std::path::Path;

use crate::support::samples::Mesh;
use hopmap_route::Instance;
use hopmap_routing::answer::Answer;
use hopmap_routing::engine::StopCondition;
use hopmap_routing::goals::reach;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };
/// All goals that precede the objective.
const GOALS: [Goal; 3] = [Goal::BandwidthSlack, Goal::PerformanceSlack, Goal::SwitchLoad];

fn reached(instance: &Instance, goal: Goal, method: Method, rules: Rules) -> Option<Answer> {
    let mapping = instance.mapping.as_ref();
    let problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    reach(&problem, mapping, goal, method, Some(&Highs), &StopCondition::endless()).unwrap()
}

fn metric(answer: &Answer, name: &str) -> f64 {
    answer.routes.metrics[name]
}

/// The metric of the check that measures a goal.
fn checked(answer: &Answer, goal: Goal) -> f64 {
    metric(
        answer,
        match goal {
            Goal::BandwidthSlack => "least_bandwidth_slack_share",
            Goal::PerformanceSlack => "least_performance_slack_share",
            Goal::SwitchLoad | Goal::Objective => "largest_switch_load",
        },
    )
}

/// Two paths from A to C, a narrow one and a wide one through B.
const PATHS: &str = r#"
hosts     = [{ name = "h1", performance = 4 }, { name = "h2", performance = 8 }, { name = "h3", performance = 2 }]
switches  = [{ name = "A", type = 1 }, { name = "B", type = 1 }, { name = "C", type = 1 }]
links     = [
    { a = "A", b = "C", bandwidth = 10 }, { a = "A", b = "B", bandwidth = 40 }, { a = "B", b = "C", bandwidth = 40 },
    { a = "A", b = "h1", bandwidth = 40 }, { a = "B", b = "h2", bandwidth = 40 }, { a = "C", b = "h3", bandwidth = 40 },
]
processes = [{ name = "P1", requires = 2 }, { name = "P2", requires = 2 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 8 }]
mapping   = { P1 = "h1", P2 = "h1", P3 = "h3" }
"#;

#[test]
fn bandwidth_slack_precedes_short_routes() {
    let instance = Instance::parse(PATHS.as_bytes(), Path::new("ways")).unwrap();
    let plain = reached(&instance, Goal::Objective, Method::Auto, Rules::from(WEIGHTS)).unwrap();
    assert_eq!((metric(&plain, "longest"), metric(&plain, "least_bandwidth_slack")), (3.0, 2.0));
    let slack = reached(&instance, Goal::BandwidthSlack, Method::Auto, Rules::from(WEIGHTS)).unwrap();
    assert_eq!((metric(&slack, "longest"), metric(&slack, "goal_proven")), (4.0, 1.0));
    assert!((metric(&slack, "goal") - 0.8).abs() < 1e-9 && metric(&slack, "proven") > 0.0);
    // If processes may move, all are on one host and nothing is sent.
    let free = Instance { mapping: None, ..instance.clone() };
    let mut free = free;
    free.graph.demands.processes.iter_mut().for_each(|process| process.host = None);
    let slack = reached(&free, Goal::BandwidthSlack, Method::Auto, Rules::from(WEIGHTS)).unwrap();
    assert_eq!((metric(&slack, "goal"), metric(&slack, "objective")), (1.0, 0.0));
    let performance = reached(&free, Goal::PerformanceSlack, Method::Auto, Rules::from(WEIGHTS)).unwrap();
    // Loads 2 of 4 and 3 of 8; or better 1 of 2, 2 of 4 and 2 of 8: half of the busiest host stays free.
    assert!((metric(&performance, "goal") - 0.5).abs() < 1e-9, "{:?}", performance.routes.metrics);
    assert_eq!(metric(&performance, "goal_proven"), 1.0);
}

#[test]
fn a_machine_without_streams_is_completely_free() {
    let text = PATHS.replace(r#"streams   = [{ from = "P1", to = "P3", bandwidth = 8 }]"#, "streams = []");
    let instance = Instance::parse(text.as_bytes(), Path::new("ways")).unwrap();
    for (goal, value) in GOALS.into_iter().zip([1.0, 0.0, 0.0]) {
        let answer = reached(&instance, goal, Method::Auto, Rules::from(WEIGHTS)).unwrap();
        assert_eq!((metric(&answer, "goal"), metric(&answer, "goal_proven")), (value, 1.0), "{goal:?}");
    }
}

#[test]
fn tightened_limits_and_the_program_with_a_goal_agree() {
    for seed in 0..6 {
        // Instances with movable processes take longer.
        let free = (seed < 2).then_some((false, 1));
        for (mapped, switch_type) in [(true, 1), (true, 2)].into_iter().chain(free) {
            let mesh = Mesh {
                rows: 2,
                columns: 2,
                hosts: 1,
                processes: 4,
                streams: 5,
                bandwidth: 100,
                switch_type,
                seed,
            };
            let instance = mesh.instance(mapped).unwrap();
            for goal in GOALS {
                let rules = Rules { deadlock_free: seed % 2 == 1, ..Rules::from(WEIGHTS) };
                let [auto, paper] =
                    [Method::Auto, Method::Paper].map(|method| reached(&instance, goal, method, rules));
                let (Some(auto), Some(paper)) = (&auto, &paper) else {
                    assert_eq!(auto, paper);
                    continue;
                };
                for answer in [auto, paper] {
                    assert_eq!(metric(answer, "goal_proven"), 1.0, "{mesh:?} {goal:?}");
                    assert_eq!(metric(answer, "proven"), 1.0, "{mesh:?} {goal:?}");
                    assert!((metric(answer, "goal") - checked(answer, goal)).abs() < 1e-9);
                }
                for name in ["goal", "objective"] {
                    let [ours, theirs] = [auto, paper].map(|answer| metric(answer, name));
                    assert!((ours - theirs).abs() < 1e-6, "{mesh:?} {goal:?} {name}: {ours} and {theirs}");
                }
            }
        }
    }
}
