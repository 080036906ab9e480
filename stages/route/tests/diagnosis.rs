//! Diagnoses of infeasible problems, and their correctness (with the feature `highs`).
#![cfg(feature = "highs")]

use std::path::Path;

use crate::support::samples::Mesh;
use hopmap_model::{Diagnosis, Part, SwitchType};
use hopmap_route::Instance;
use hopmap_routing::diagnosis::diagnose;
use hopmap_routing::engine::{Limits, StopCondition};
use hopmap_routing::goals::reach;
use hopmap_routing::params::{Goal, Method};
use hopmap_routing::problem::Problem;
use hopmap_routing::problem::{Rules, Weights};
use hopmap_routing::solver::Highs;
use hopmap_test_support::given_data;

/// The weights of the paper.
const WEIGHTS: Weights = Weights { longest_route: 1000.0, total_hops: 10.0, table_entries: 1.0 };

/// Three switches in a triangle with one host each; the second path to C is narrow.
const EXAMPLE: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }, { name = "h3", performance = 1 }]
switches  = [{ name = "A", type = 2 }, { name = "B", type = 2 }, { name = "C", type = 1 }]
links     = [
    { a = "A", b = "B", bandwidth = 3 }, { a = "A", b = "C", bandwidth = 1 }, { a = "B", b = "C", bandwidth = 3 },
    { a = "A", b = "h1", bandwidth = 4 }, { a = "B", b = "h2", bandwidth = 4 }, { a = "C", b = "h3", bandwidth = 4 },
]
processes = [{ name = "P1", requires = 1 }, { name = "P2", requires = 1 }, { name = "P3", requires = 1 }]
streams   = [{ from = "P1", to = "P3", bandwidth = 3 }, { from = "P2", to = "P3", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2", P3 = "h3" }
"#;

fn rules() -> Rules {
    Rules::from(WEIGHTS)
}

fn parsed(text: &str) -> Instance {
    Instance::parse(text.as_bytes(), Path::new("instance")).unwrap()
}

fn is_solved(instance: &Instance, rules: Rules) -> bool {
    let mapping = instance.mapping.as_ref();
    let problem = Problem::new(&instance.graph, &instance.system, mapping, rules).unwrap();
    reach(&problem, mapping, Goal::Objective, Method::Auto, Some(&Highs), &StopCondition::endless())
        .unwrap()
        .is_some()
}

fn diagnosed(instance: &Instance, rules: Rules) -> Diagnosis {
    assert!(!is_solved(instance, rules));
    let problem = Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules).unwrap();
    diagnose(&problem, Some(&Highs), &StopCondition::endless()).unwrap()
}

/// All causes as text, prefixed with the number of their remedy.
fn words(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.causes.iter().map(|cause| format!("{}: {}", cause.remedy, cause.words)).collect()
}

fn causes(text: &str, rules: Rules) -> Vec<String> {
    words(&diagnosed(&parsed(text), rules))
}

#[test]
fn diagnosis_finds_switches_of_type_one_in_the_first_example() {
    let narrow = "0: link B → C needs 4 B/s, but has 3 B/s: add 1 B/s";
    for of_type_one in [vec!["A"], vec!["B"], vec!["A", "B"]] {
        let as_one = |text: String, switch: &&str| {
            text.replace(&format!("\"{switch}\", type = 2"), &format!("\"{switch}\", type = 1"))
        };
        let text = of_type_one.iter().fold(EXAMPLE.to_owned(), as_one);
        let mut expected = vec![narrow.to_owned()];
        expected.extend(of_type_one.iter().map(|switch| format!("1: make switch {switch} type 2")));
        assert_eq!(causes(&text, rules()), expected);
    }
}

#[test]
fn diagnosis_finds_narrow_links_in_the_second_example() {
    let Some(data) = given_data() else { return };
    let instance = Instance::read(&data.join("route/example2-problem1.json")).unwrap();
    let diagnosis = diagnosed(&instance, rules());
    assert_eq!(
        words(&diagnosis),
        [
            "0: the links into switch C carry 100 B/s in total, but the streams for h3, h4 need 120 B/s",
            "0: link A → C needs 80 B/s, but has 50 B/s: add 30 B/s",
        ]
    );
    let metric = |name: &str| diagnosis.metrics[name];
    assert_eq!(
        ["largest_link_shortage", "shortage_proven", "fewest_proven", "complete"].map(metric),
        [30.0, 1.0, 1.0, 1.0]
    );
}

#[test]
fn unmet_demands_of_processes_come_first() {
    let lacking = EXAMPLE
        .replace(
            r#"{ name = "P2", requires = 1 }"#,
            r#"{ name = "P2", requires = 1, capabilities = ["fpga"] }"#,
        )
        .replace(
            r#"{ name = "P3", requires = 1 }"#,
            r#"{ name = "P3", requires = 1, devices = { camera = 2 } }"#,
        );
    let camera = "0: process P3 needs 2 of `camera`, which host h3 does not have";
    let fpga = "0: process P2 needs `fpga`, which host h2 does not have";
    assert_eq!(causes(&lacking, rules()), [fpga, camera]);
    // Additional shortages follow.
    let both = lacking.replace("\"A\", type = 2", "\"A\", type = 1");
    assert_eq!(causes(&both, rules()), [fpga, camera, "0: link B → C needs 4 B/s, but has 3 B/s: add 1 B/s"]);
    // The same without a mapping.
    let anywhere = lacking.replace("mapping   = { P1 = \"h1\", P2 = \"h2\", P3 = \"h3\" }", "");
    let fpga = "0: process P2 needs `fpga`, which no host has";
    assert_eq!(causes(&anywhere, rules()), [fpga, "0: process P3 needs 2 of `camera`, which no host has"]);
    let one_camera = anywhere.replace("performance = 1 },", "performance = 1, devices = { camera = 2 } },");
    let shared = one_camera
        .replace(
            r#"{ name = "P1", requires = 1 }"#,
            r#"{ name = "P1", requires = 1, devices = { camera = 9 } }"#,
        )
        .replace(r#", capabilities = ["fpga"]"#, "");
    assert_eq!(causes(&shared, rules()), ["0: process P1 needs 9 of `camera`, which no host has"]);
}

#[test]
fn weak_hosts_are_reported_with_the_missing_amount() {
    let strong = EXAMPLE.replace(r#""P1", requires = 1"#, r#""P1", requires = 3"#);
    assert_eq!(
        causes(&strong, rules()),
        ["0: the processes on host h1 need a performance of 3, but it has 1: add 2"]
    );
    let anywhere = strong.replace("mapping   = { P1 = \"h1\", P2 = \"h2\", P3 = \"h3\" }", "");
    let diagnosis = diagnosed(&parsed(&anywhere), rules());
    assert_eq!(
        words(&diagnosis)[..2],
        [
            "0: process P1 needs a performance of 3, but its candidate hosts provide at most 1",
            "0: all processes together need a performance of 5, but all hosts together provide 3",
        ]
    );
    assert_eq!(diagnosis.metrics["largest_host_shortage"], 2.0);
    let slack = causes(EXAMPLE, Rules { performance_slack: 0.5, ..rules() });
    assert_eq!(
        slack.last().unwrap(),
        "1: feasible with `performance_slack` = 0 instead of 0.5",
        "{slack:#?}"
    );
    assert!(slack[0].ends_with("need a performance of 1, but it has 1, 0.5 of it reserved as slack: add 1"));
}

#[test]
fn restrictive_rules_are_reported() {
    let causes_of = |rules: Rules| causes(EXAMPLE, rules);
    assert_eq!(
        causes_of(Rules { max_hops: Some(3), ..rules() }),
        [
            "0: link A → C needs 3 B/s, but has 1 B/s: add 2 B/s",
            "1: feasible with `max_hops` = 4 instead of 3"
        ]
    );
    assert_eq!(
        causes_of(Rules { max_hops: Some(2), ..rules() }),
        [
            "0: stream P1 → P3 from h1 to h3 needs at least 3 hops, but `max_hops` is 2",
            "0: stream P2 → P3 from h2 to h3 needs at least 3 hops, but `max_hops` is 2",
            "0: feasible with `max_hops` = 4 instead of 2",
        ]
    );
    let load = causes_of(Rules { switch_load: Some(3.0), ..rules() });
    assert_eq!(load, ["0: feasible with `switch_load` = 4 instead of 3"]);
    let slack = causes_of(Rules { bandwidth_slack: 0.25, ..rules() });
    assert_eq!(slack.last().unwrap(), "1: feasible with `bandwidth_slack` = 0 instead of 0.25");
    assert_eq!(
        causes_of(Rules { max_hops: Some(2), switch_load: Some(3.0), ..rules() })[2..],
        ["0: remove `max_hops`", "0: remove `switch_load`"]
    );
}

#[test]
fn disconnected_hosts_are_reported() {
    let apart = EXAMPLE
        .replace(r#"{ a = "A", b = "C", bandwidth = 1 }, "#, "")
        .replace(r#"{ a = "B", b = "C", bandwidth = 3 },"#, "");
    assert_eq!(
        causes(&apart, rules()),
        ["0: host h3 is not connected to the rest of the machine: no path for 2 streams"]
    );
}

#[test]
fn facts_are_reported_even_under_limits() {
    let text = EXAMPLE.replace("\"A\", b = \"h1\", bandwidth = 4", "\"A\", b = \"h1\", bandwidth = 2");
    let instance = parsed(&text);
    let problem =
        Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules()).unwrap();
    let over = || true;
    let stop = StopCondition::new(Limits::default(), &over);
    let diagnosis = diagnose(&problem, Some(&Highs), &stop).unwrap();
    assert_eq!(diagnosis.metrics["complete"], 0.0);
    assert!(!diagnosis.causes.is_empty(), "{diagnosis:?}");
    // Without a solver the amounts may be too large, and are marked as such.
    let diagnosis = diagnose(&problem, None, &StopCondition::endless()).unwrap();
    assert!(
        words(&diagnosis).iter().any(|words| words.contains("h1 → A needs 3 B/s, but has 2 B/s")),
        "{diagnosis:?}"
    );
}

/// A mesh that may be too narrow for its streams.
fn narrow(seed: u64, mapped: bool) -> Instance {
    let mesh = Mesh {
        rows: 2,
        columns: 2,
        hosts: 1,
        processes: 4,
        streams: 5 + 2 * (seed as usize % 3),
        bandwidth: 20 + 20 * (seed as usize % 4),
        switch_type: 1 + seed as usize / 12 % 2,
        seed,
    };
    mesh.instance(mapped).unwrap()
}

/// Gives links and hosts of a remedy the required capacity, less a fraction of the shortage.
fn cured(instance: &Instance, diagnosis: &Diagnosis, remedy: u32, less: f64) -> Instance {
    let mut cured = instance.clone();
    let of = |part: Part, name: &str| {
        let same = |cause: &&hopmap_model::Cause| {
            (cause.remedy, cause.part, cause.name.as_str()) == (remedy, part, name)
        };
        let cause = diagnosis.causes.iter().find(same)?;
        let (there, needed) = (cause.there?, cause.needed?);
        let most = if part == Part::Link { "largest_link_shortage" } else { "largest_host_shortage" };
        let most = diagnosis.metrics[most] * (1.0 - less);
        Some(if less > 0.0 { needed.min(there + most) } else { needed })
    };
    let network = hopmap_routing::network::Network::new(&instance.system);
    for (index, link) in (0..).zip(&mut cured.system.links) {
        if let Some(needed) = of(Part::Link, &network.name_of(index)) {
            link.bandwidth_bytes_per_s = Some(needed);
        }
    }
    for (node, old) in cured.system.nodes.iter_mut().zip(&instance.system.nodes) {
        if let Some(needed) = of(Part::Host, &old.name) {
            node.traits.performance = Some(needed);
        }
    }
    cured
}

#[test]
fn remedies_are_sufficient_and_minimal() {
    let mut remedies = 0;
    // Instances with movable processes take longer.
    for (seed, mapped) in (0..32).map(|seed| (seed, true)).chain((0..2).map(|seed| (seed, false))) {
        let instance = narrow(seed, mapped);
        if is_solved(&instance, rules()) {
            continue;
        }
        let diagnosis = diagnosed(&instance, rules());
        let causes = words(&diagnosis);
        assert!(diagnosis.metrics["remedies"] > 0.0, "{seed} {causes:?}");
        assert_eq!(diagnosis.metrics["shortage_proven"], 1.0, "{seed} {causes:?}");
        assert!(is_solved(&cured(&instance, &diagnosis, 0, 0.0), rules()), "{seed} {causes:?}");
        assert!(!is_solved(&cured(&instance, &diagnosis, 0, 0.01), rules()), "{seed} {causes:?}");
        remedies += 1;
    }
    assert!(remedies >= 15, "{remedies}");
}

#[test]
fn the_set_of_switches_that_become_type_two_is_minimal() {
    for seed in [6, 14, 25, 26, 39] {
        let mesh = Mesh {
            rows: 2,
            columns: 3,
            hosts: 1,
            processes: 6,
            streams: 6,
            bandwidth: 40,
            switch_type: 1,
            seed,
        };
        let instance = mesh.instance(true).unwrap();
        let diagnosis = diagnosed(&instance, rules());
        let of_type_two = diagnosis.causes.iter().filter(|cause| cause.words.ends_with(" type 2"));
        let names: Vec<&String> = of_type_two.map(|cause| &cause.name).collect();
        assert!(!names.is_empty(), "{seed} {:?}", words(&diagnosis));
        let with = |without: Option<&String>| {
            let mut typed = instance.clone();
            let nodes = typed.system.nodes.iter_mut();
            for node in nodes.filter(|node| names.contains(&&node.name) && Some(&node.name) != without) {
                node.traits.switch_type = Some(SwitchType::Two);
            }
            is_solved(&typed, rules())
        };
        assert!(with(None), "{seed} {names:?}");
        assert!(names.iter().all(|name| !with(Some(name))), "{seed} {names:?}");
    }
}
