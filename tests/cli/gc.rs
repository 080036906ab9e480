//! `hopmap gc`.

use crate::sandbox::Sandbox;

#[test]
fn what_no_pipeline_uses_goes_and_the_rest_stays() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    assert!(sandbox.stdout(&["gc", "--dry-run"]).contains("nothing to clear"));
    sandbox.edit("ring.toml", "[1, 10]", "[1, 20]");
    sandbox.stdout(&["run", "ring.toml"]);
    let artifacts = || std::fs::read_dir(sandbox.path().join(".hopmap/artifacts")).unwrap().count();
    let before = artifacts();
    assert!(sandbox.stdout(&["gc", "--keep", "1h"]).contains("nothing to clear"));
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
    sandbox.stdout(&["gc", "--runs", "1"]);
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
    sandbox.stdout(&["gc", "--runs", "0"]);
    assert!(run.exists());
    std::fs::remove_dir_all(sandbox.path().join(".hopmap/jobs")).unwrap();
    sandbox.stdout(&["gc", "--runs", "0"]);
    assert!(!run.exists());
}
