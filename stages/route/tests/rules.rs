//! Rules in addition to the constraints of the paper: violations are reported with place and amount, and invalid rules are
//! rejected.

use std::path::Path;

use hopmap_model::Stage;
use hopmap_route::{CheckParams, CheckStage, Instance, MapStage, SolveParams, TablesStage};
use hopmap_routing::check::check;
use hopmap_routing::diagnosis::diagnose;
use hopmap_routing::engine::StopCondition;
use hopmap_routing::goals::reach;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};

/// Two switches with one host each.
const LINE: &str = r#"
hosts     = [{ name = "h1", performance = 4 }, { name = "h2", performance = 2 }]
switches  = [{ name = "A", type = 1 }, { name = "B", type = 1 }]
links     = [{ a = "A", b = "B", bandwidth = 10 }, { a = "A", b = "h1", bandwidth = 20 }, { a = "B", b = "h2", bandwidth = 20 }]
processes = [{ name = "P1", requires = 3 }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 8 }]
mapping   = { P1 = "h1", P2 = "h2" }
tables    = [{ switch = "A", destination = "h2", output = 0 }, { switch = "B", destination = "h2", output = 1 }]
"#;

/// The result of the checker for the line under rules in JSON.
fn checked(params: &str) -> Result<std::collections::BTreeMap<String, f64>, String> {
    let Instance { graph, system, mapping, tables } =
        Instance::parse(LINE.as_bytes(), Path::new("line")).unwrap();
    let params: CheckParams = serde_json::from_str(params).unwrap();
    let checked =
        check(&graph, &system, &mapping.unwrap(), &tables.unwrap(), None, &Rules::from(&params), false);
    checked.map(|checked| checked.routes.metrics).map_err(|error| error.to_string())
}

#[test]
fn the_check_reports_slack() {
    let metrics = checked("{}").unwrap();
    for (name, value) in [
        ("least_bandwidth_slack", 2.0),
        ("least_bandwidth_slack_share", 0.2),
        ("least_performance_slack_share", 0.25),
        ("largest_switch_load", 8.0),
    ] {
        assert!((metrics[name] - value).abs() < 1e-12, "{name}: {metrics:?}");
    }
}

#[test]
fn violations_are_reported_with_place_and_amount() {
    for (broken, words) in [
        (r#"{"max_hops": 2}"#, "routes exceed `max_hops` = 2: `h1` to `h2` takes 3 hops"),
        (
            r#"{"bandwidth_slack": 0.25}"#,
            "links are overloaded: A → B carries 8 B/s of 10 B/s, 0.25 of it reserved as slack",
        ),
        (
            r#"{"performance_slack": 0.5}"#,
            "the processes on host `h1` need a performance of 3, but it has 4, 0.5 of it reserved as slack",
        ),
        (r#"{"switch_load": 7}"#, "switches receive more than `switch_load` = 7: 8 B/s at `A`, 8 B/s at `B`"),
    ] {
        assert_eq!(checked(broken).unwrap_err(), words);
    }
    let kept = r#"{"max_hops": 3, "bandwidth_slack": 0.2, "performance_slack": 0.25, "switch_load": 8}"#;
    assert!(checked(kept).is_ok());
}

#[test]
fn invalid_rules_are_rejected() {
    let solve = |change: &dyn Fn(&mut SolveParams)| {
        let mut params: SolveParams = serde_json::from_str("{}").unwrap();
        change(&mut params);
        let refused = [MapStage::check(&params), TablesStage::check(&params)];
        refused.map(|refused| refused.unwrap_err().to_string())
    };
    for slack in [1.0, -0.1, f64::NAN, f64::INFINITY] {
        let words = solve(&|params| params.bandwidth_slack = slack);
        assert_eq!(
            words,
            [
                format!("`bandwidth_slack` = {slack} is out of range"),
                format!("`bandwidth_slack` = {slack} is out of range")
            ]
        );
        assert!(solve(&|params| params.performance_slack = slack)[0].starts_with("`performance_slack` = "));
    }
    for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            solve(&|params| params.switch_load = Some(load))[0],
            format!("`switch_load` = {load} is out of range")
        );
    }
    let checked = |text: &str| CheckStage::check(&serde_json::from_str(text).unwrap());
    assert!(checked(r#"{"bandwidth_slack": 1}"#).is_err() && checked(r#"{"switch_load": 0}"#).is_err());
    assert!(checked(r#"{"bandwidth_slack": 0.99, "max_hops": 0}"#).is_ok());
}

#[test]
fn goals_and_causes_need_no_solver() {
    let instance = Instance::parse(LINE.as_bytes(), Path::new("line")).unwrap();
    let mapping = instance.mapping.as_ref();
    let rules = Rules::from(Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 });
    let problem = |rules| Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    for (goal, value) in
        [(Goal::BandwidthSlack, 0.2), (Goal::PerformanceSlack, 0.25), (Goal::SwitchLoad, 8.0)]
    {
        let answer = reach(&problem(rules), mapping, goal, Method::Auto, None, &StopCondition::endless())
            .unwrap()
            .unwrap();
        assert!((answer.routes.metrics["goal"] - value).abs() < 1e-9, "{:?}", answer.routes.metrics);
        assert!(answer.tables.metrics.contains_key("goal_bound"));
    }
    // If the mapping overloads a host, no engine runs.
    let narrow = Rules { bandwidth_slack: 0.5, performance_slack: 0.5, ..rules };
    let none =
        reach(&problem(narrow), mapping, Goal::Objective, Method::Auto, None, &StopCondition::endless());
    assert!(none.unwrap().is_none());
    let diagnosis = diagnose(&problem(narrow), None, &StopCondition::endless()).unwrap();
    let words: Vec<&str> = diagnosis.causes.iter().map(|cause| cause.words.as_str()).collect();
    assert_eq!(
        words,
        [
            "stream P1 → P2 from h1 to h2 needs 8 B/s, but no path carries more than 5 B/s",
            "the links out of switch A carry 5 B/s in total, but the streams of h1 need 8 B/s",
            "the links into switch B carry 5 B/s in total, but the streams for h2 need 8 B/s",
            "the processes on host h1 need a performance of 3, but it has 4, 0.5 of it reserved as slack: add 2",
            "link A → B needs 8 B/s, but has 10 B/s, 0.5 of it reserved as slack: add 6 B/s",
        ]
    );
}
