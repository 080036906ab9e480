//! What is said where there is no answer, and that it is true (with the feature `highs`).
#![cfg(feature = "highs")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};

use hopmap_model::{Diagnosis, Part};
use hopmap_route::answer::answer;
use hopmap_route::diagnosis::diagnose;
use hopmap_route::engine::Watch;
use hopmap_route::goals::reach;
use hopmap_route::problem::Problem;
use hopmap_route::samples::Mesh;
use hopmap_route::solver::Highs;
use hopmap_route::{Goal, Instance, Method, Rules, Weights};

/// The paper's.
const WEIGHTS: Weights = Weights { longest: 1000.0, hops: 10.0, entries: 1.0 };

/// Three switches in a triangle, a host at each; the second way to C is narrow.
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
    reach(&problem, mapping, Goal::Objective, Method::Auto, Some(&Highs), &Watch::endless())
        .unwrap()
        .is_some()
}

fn diagnosed(instance: &Instance, rules: Rules) -> Diagnosis {
    assert!(!is_solved(instance, rules));
    let problem = Problem::new(&instance.graph, &instance.system, instance.mapping.as_ref(), rules).unwrap();
    diagnose(&problem, Some(&Highs), &Watch::endless()).unwrap()
}

/// The words of all causes behind the numbers of their remedies.
fn words(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.causes.iter().map(|cause| format!("{}: {}", cause.remedy, cause.words)).collect()
}

fn said(text: &str, rules: Rules) -> Vec<String> {
    words(&diagnosed(&parsed(text), rules))
}

#[test]
fn switches_of_type_one_are_what_is_wrong_with_the_first_example() {
    for (switch, narrow) in [("A", "link B → C carries 4 of 3: 1 more would do")] {
        let text = EXAMPLE
            .replace(&format!("name = \"{switch}\", type = 2"), &format!("name = \"{switch}\", type = 1"));
        let two = format!("1: switch {switch} would have to be of type 2");
        assert_eq!(said(&text, rules()), [format!("0: {narrow}"), two]);
    }
    println!("{:#?}", said(&EXAMPLE.replace("\"B\", type = 2", "\"B\", type = 1"), rules()));
    println!("{:#?}", said(&EXAMPLE.replace("type = 2", "type = 1"), rules()));
}

#[test]
fn narrow_links_are_what_is_wrong_with_the_second_example() {
    let Some(data) = std::env::var_os("HOPMAP_DATA").map(PathBuf::from) else {
        eprintln!("skipped: HOPMAP_DATA is not set");
        return;
    };
    let instance = Instance::read(&data.join("route/example2-problem1.json")).unwrap();
    let diagnosis = diagnosed(&instance, rules());
    println!("{:#?} {:?}", words(&diagnosis), diagnosis.metrics);
    assert!(words(&diagnosis).is_empty());
}
