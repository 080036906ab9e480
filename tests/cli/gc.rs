//! `hopmap gc`.

use crate::sandbox::Sandbox;

#[test]
fn what_no_pipeline_uses_goes_and_the_rest_stays() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    assert!(sandbox.stdout(&["gc", "--dry-run"]).contains("nothing to remove"));
    sandbox.edit("ring.toml", "[1, 10]", "[1, 20]");
    sandbox.stdout(&["run", "ring.toml"]);
    let artifacts = || std::fs::read_dir(sandbox.path().join(".hopmap/artifacts")).unwrap().count();
    let before = artifacts();
    assert!(sandbox.stdout(&["gc", "--keep-for", "1h"]).contains("nothing to remove"));
    assert!(sandbox.stdout(&["gc", "--dry-run"]).contains("would free"));
    assert_eq!(artifacts(), before);
    assert!(sandbox.stdout(&["gc"]).contains("freed"));
    assert!(artifacts() < before);
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
    sandbox.edit("ring.toml", "[1, 20]", "[1, 10]");
    assert!(!sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
}

#[test]
fn old_runs_go() {
    let sandbox = Sandbox::with_ring();
    for evaluations in ["20001", "20002", "20003"] {
        sandbox.edit("ring.toml", "evaluations = 2000", "evaluations = 2000 #");
        sandbox
            .write("ring.toml", sandbox.read("ring.toml").replace("2000 #0", evaluations).replace(" #", ""));
        sandbox.output(&["run", "ring.toml"]);
    }
    sandbox.stdout(&["gc", "--keep-runs", "1"]);
    assert_eq!(sandbox.stdout(&["runs"]).lines().count(), 1);
}

#[test]
fn runs_whose_jobs_are_still_queued_stay() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    let runs = sandbox.path().join(".hopmap/runs");
    let run = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let job = format!(
        r#"{{"cell":"a","launcher":"sbatch","attempt":1,"name":"hopmap-a","job":7,"log":"{}/jobs/a.1.log"}}"#,
        run.display()
    );
    std::fs::create_dir_all(sandbox.path().join(".hopmap/jobs/key")).unwrap();
    sandbox.write(".hopmap/jobs/key/job.json", job);
    sandbox.stdout(&["gc", "--keep-runs", "0"]);
    assert!(run.exists());
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/jobs")).unwrap();
    sandbox.stdout(&["gc", "--keep-runs", "0"]);
    assert!(!run.exists());
}

/// Results that the store has of the pipeline in a file.
fn cached(sandbox: &Sandbox, file: &str) -> usize {
    let plan = sandbox.stdout(&["plan", file, "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    plan["cells"].as_array().unwrap().iter().filter(|cell| cell["state"] == "cached").count()
}

/// Two files with pipelines of one name, in one store.
fn namesakes() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.write("lu/ring.csv", sandbox.read("ring.csv"));
    sandbox.write("lu/ring.toml", sandbox.read("ring.toml").replace("[1, 10]", "[1, 20]"));
    sandbox
}

#[test]
fn pipelines_of_one_name_keep_their_results() {
    let sandbox = namesakes();
    let warned = sandbox.output(&["run", "lu/ring.toml"]);
    let warned = String::from_utf8(warned.stderr).unwrap();
    let note = "note: this is `ring` of lu/ring.toml; the store also has `ring` of ring.toml\n";
    assert!(warned.contains(note), "{warned}");
    assert!(!sandbox.path().join("lu/.hopmap").exists());
    insta::assert_snapshot!(sandbox.seen(&["gc"]), @"nothing to remove");
    assert_eq!([cached(&sandbox, "ring.toml"), cached(&sandbox, "lu/ring.toml")], [5, 5]);
    // Neither is the last run of one that of the other.
    let runs: serde_json::Value = serde_json::from_str(&sandbox.stdout(&["runs", "--json"])).unwrap();
    assert_eq!([&runs[0]["file"], &runs[1]["file"]], ["ring.toml", "lu/ring.toml"]);
}

/// A pipeline that comes with hopmap is none of a file, also where a project was made of it.
#[test]
fn a_bundled_pipeline_keeps_its_results_beside_a_project_made_of_it() {
    let sandbox = Sandbox::with_ring();
    let trace = crate::sandbox::project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let trace = format!("trace={}", trace.display());
    sandbox.stdout(&["run", "place", "-p", &trace, "-p", "shape=tree:2x2x4"]);
    sandbox.stdout(&["init", "lu", "--trace", trace.strip_prefix("trace=").unwrap()]);
    sandbox.stdout(&["run", "lu/place.toml"]);
    assert!(sandbox.stdout(&["gc"]).contains("nothing to remove"));
    let plan = sandbox.stdout(&["plan", "place", "-p", &trace, "-p", "shape=tree:2x2x4"]);
    assert!(plan.contains("place: nothing to do"), "{plan}");
    // Where one name matches artifacts of both, each is listed with its pipeline.
    let seen = sandbox.seen(&["show", "machine"]);
    assert!(seen.contains("embedded:place:machine, lu/place.toml:machine"), "{seen}");
    let shown = sandbox.stdout(&["show", "lu/place.toml:machine"]);
    assert!(shown.starts_with("system-graph "), "{shown}");
}

#[test]
fn jobs_of_a_pipeline_of_the_same_name_are_not_cancelled() {
    let sandbox = namesakes();
    // As a run leaves it that was killed while its job was in the queue.
    let line = r#"{"begun":{"pipeline":"ring","file":"ring.toml","cell":"placement","key":"abc"}}"#;
    let log = sandbox.read(".hopmap/state.log");
    sandbox.write(".hopmap/state.log", format!("{log}{line}\n"));
    let job =
        r#"{"cell":"placement","launcher":"sbatch","attempt":1,"name":"hopmap-a","job":null,"log":"/log"}"#;
    for key in ["abc", "def"] {
        sandbox.write(&format!(".hopmap/jobs/{key}/job.json"), job);
    }
    sandbox.write(".hopmap/states/abc", "half");
    sandbox.stdout(&["run", "lu/ring.toml"]);
    sandbox.stdout(&["gc"]);
    let exists = |name: &str| sandbox.path().join(".hopmap").join(name).exists();
    assert!(exists("jobs/abc/job.json") && exists("states/abc") && !exists("jobs/def"));
}

#[test]
fn cells_that_a_pipeline_does_not_have_any_more_go() {
    let sandbox = Sandbox::with_ring();
    let sweep = "\n[stages.random]\nuses = \"map/random\"\nwith = { seed = \"${matrix.seed}\" }\nmatrix = { seed = \"1..20\" }\nneeds = { task-graph = \"program\", system = \"machine\" }\n";
    sandbox.write("ring.toml", sandbox.read("ring.toml") + sweep);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "1..20", "1..10");
    assert!(sandbox.stdout(&["gc"]).contains("nothing to remove"), "the file was not run yet");
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
    let cleared = sandbox.stdout(&["gc"]);
    assert_eq!(cleared.lines().filter(|line| line.starts_with("result ")).count(), 10, "{cleared}");
    assert_eq!(cached(&sandbox, "ring.toml"), 15);
    assert!(sandbox.stdout(&["gc"]).contains("nothing to remove"));
    // A file that is not sound drops nothing.
    sandbox.edit("ring.toml", "1..10", "1..");
    assert_eq!(sandbox.output(&["run", "ring.toml"]).status.code(), Some(2));
    assert!(sandbox.stdout(&["gc"]).contains("nothing to remove"));
}

#[test]
fn what_a_pipeline_used_whose_file_is_gone_stays_until_it_is_said() {
    let sandbox = namesakes();
    sandbox.stdout(&["run", "lu/ring.toml"]);
    std::fs::remove_file(sandbox.path().join("lu/ring.toml")).unwrap();
    insta::assert_snapshot!(sandbox.seen(&["gc"]), @"
    nothing to remove
    ------- stderr -------
    note: results of `ring` of lu/ring.toml, whose file is deleted, are kept until `hopmap gc --gone`
    ");
    let cleared = sandbox.stdout(&["gc", "--gone"]);
    assert!(cleared.starts_with("pipeline  `ring` of lu/ring.toml\nresult "), "{cleared}");
    assert_eq!(cached(&sandbox, "ring.toml"), 5);
    insta::assert_snapshot!(sandbox.seen(&["gc", "--gone"]), @"nothing to remove");
}

/// Older versions wrote down no more of a pipeline than its name.
#[test]
fn a_store_of_an_older_version_is_read() {
    let sandbox = namesakes();
    sandbox.stdout(&["run", "lu/ring.toml"]);
    let log = sandbox.read(".hopmap/state.log");
    let older = log.replace(r#""file":"ring.toml","#, "");
    // Of two files the one that ran last is what such a log knows.
    let of_other = |line: &&str| !line.contains(r#""file":"lu/ring.toml""#) || line.starts_with("{\"result");
    let older: Vec<&str> = older.lines().filter(of_other).collect();
    sandbox.write(".hopmap/state.log", older.join("\n") + "\n");
    std::fs::remove_file(sandbox.path().join("lu/ring.toml")).unwrap();
    assert_eq!(cached(&sandbox, "ring.toml"), 5);
    let shown = sandbox.seen(&["gc", "--dry-run"]);
    let note = "note: results of `ring` of an older version of hopmap, whose file was not recorded, are kept until `hopmap gc --gone`";
    assert!(shown.contains(note), "{shown}");
    sandbox.edit("ring.toml", "[1, 10]", "[1, 30]");
    insta::assert_snapshot!(sandbox.seen(&["why", "machine", "ring.toml"]), @"
    machine (topology/synthetic) would run:
      costs: [1.0,10.0] → [1.0,30.0]
      key DIGEST
    ");
    sandbox.edit("ring.toml", "[1, 30]", "[1, 10]");
    // It belongs to the first file of the name that has the same results.
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
    let shown = sandbox.seen(&["gc"]);
    assert!(!shown.contains("older version"), "{shown}");
    assert_eq!(cached(&sandbox, "ring.toml"), 5);
}
