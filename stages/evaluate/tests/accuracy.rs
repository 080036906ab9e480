//! Tables of many mappings compared with known values.

use std::collections::BTreeMap;

use hopmap_evaluate::{AccuracyParams, Search, accuracy};
use hopmap_model::{Context, InputPath, Mapping, Weight};

fn mapping(f: f64) -> Mapping {
    Mapping {
        ranks: Vec::new(),
        hosts: Vec::new(),
        weight: Weight::Bytes,
        metrics: BTreeMap::from([("F".to_owned(), f), ("evaluations".to_owned(), 100.0)]),
        convergence: Vec::new(),
        complete: true,
    }
}

fn params(by: &[&str]) -> AccuracyParams {
    let by: Vec<_> = by.iter().map(|key| format!("\"{key}\"")).collect();
    serde_json::from_str(&format!("{{\"group_by\": [{}]}}", by.join(","))).expect("parameters")
}

fn table(runs: &[(&str, f64)], params: &AccuracyParams) -> Result<(String, String), String> {
    let mappings: Vec<_> = runs.iter().map(|&(label, f)| (label, mapping(f))).collect();
    let searches: Vec<_> = mappings.iter().map(|(label, mapping)| Search::new(label, mapping)).collect();
    let table = accuracy(&searches, params, &Context::detached()).map_err(|error| error.to_string())?;
    Ok((table.csv(), table.markdown()))
}

#[test]
fn runs_with_equal_keys_are_one_row() {
    let runs = [
        ("p[instance=a, mapper=x, seed=1]", 12.0),
        ("p[instance=a, mapper=x, seed=2]", 10.0),
        ("p[instance=a, mapper=y, seed=1]", 11.5),
        ("p[instance=a, mapper=x, seed=3]", 17.0),
    ];
    let (csv, markdown) = table(&runs, &params(&["instance", "mapper"])).unwrap();
    assert_eq!(
        csv,
        "instance,mapper,runs,F best,F mean,F median,evaluations\na,x,3,10,13,12,100\na,y,1,11.5,11.5,11.5,100\n"
    );
    assert!(markdown.starts_with("| instance | mapper | runs |"));
}

#[test]
fn gaps_to_known_values_are_shown_and_better_values_noted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.csv");
    std::fs::write(&file, "instance,mapper,F0,paper\na,,10,\na,x,,7\nb,,0,\n").unwrap();
    let params = AccuracyParams {
        best_known: Some(InputPath::new(&file)),
        baseline: vec!["F0".into()],
        ..params(&["instance", "mapper"])
    };
    let runs = [
        ("p[instance=a, mapper=x]", 9.0),
        ("p[instance=a, mapper=y]", 15.0),
        ("p[instance=b, mapper=y]", 0.0),
    ];
    let (csv, markdown) = table(&runs, &params).unwrap();
    assert_eq!(
        csv.lines().skip(1).collect::<Vec<_>>(),
        [
            "a,x,1,9,9,9,100,-10.00,-10.00,-10.00,10,7",
            "a,y,1,15,15,15,100,50.00,50.00,50.00,10,",
            "b,y,1,0,0,0,100,0.00,0.00,0.00,0,",
        ]
    );
    assert!(markdown.ends_with("- a, x: F = 9 is below the F0 of 10\n"), "{markdown}");
}

#[test]
fn mismatches_are_refused_by_name() {
    let message = |params: &AccuracyParams| table(&[("p[seed=1]", 1.0)], params).unwrap_err();
    assert_eq!(message(&params(&["instance"])), "`p[seed=1]` has no matrix key `instance`");
    let other = AccuracyParams { metric: "T".into(), ..params(&["seed"]) };
    assert_eq!(message(&other), "`p[seed=1]` has no metric `T`");
    let missing = AccuracyParams { baseline: vec!["F0".into()], ..params(&["seed"]) };
    assert_eq!(message(&missing), "`best_known` has no column `F0`");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.csv");
    let known = AccuracyParams {
        best_known: Some(InputPath::new(&file)),
        baseline: vec!["F0".into()],
        ..params(&["seed"])
    };
    assert!(message(&known).contains("known.csv: "));
    for (text, expected) in [
        ("seed,F0\n1,many\n", "`many` in column `F0` is not a number"),
        ("seed,F0\n1\n", "CSV error"),
        ("instance,F0\n", "no column matches a key in `group_by` (seed)"),
    ] {
        std::fs::write(&file, text).unwrap();
        let message = message(&known);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn stages_and_lists_are_keys_and_missing_ones_are_dashes() {
    let runs = [
        ("hierarchical[levels=[1, 2], trace=lu]", 3.0),
        ("hierarchical[levels=[2], trace=lu]", 4.0),
        ("linear[trace=lu]", 5.0),
        ("alone", 6.0),
    ];
    let (csv, _) = table(&runs, &params(&["trace", "stage", "levels"])).unwrap();
    assert_eq!(
        csv.lines().skip(1).collect::<Vec<_>>(),
        [
            "lu,hierarchical,\"[1, 2]\",1,3,3,3,100",
            "lu,hierarchical,[2],1,4,4,4,100",
            "lu,linear,–,1,5,5,5,100",
            "–,alone,–,1,6,6,6,100",
        ]
    );
}
