//! `kill -9` at any moment (at every step: `crash_points.rs`): the store stays sound, the next run goes on, and the result is the same bytes.

use hopmap_test_support::only_in_a_soak;
use std::time::Duration;

use crate::sandbox::Sandbox;

fn digests(sandbox: &Sandbox) -> Vec<String> {
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["run", "ring.toml", "--json"])).unwrap();
    let cells = report["cells"].as_array().unwrap();
    cells
        .iter()
        .map(|cell| cell["outputs"].to_string().replace(sandbox.path().to_str().unwrap(), ""))
        .collect()
}

/// Names of the cells in the store, from the output of `plan`.
fn cached(sandbox: &Sandbox) -> Vec<String> {
    let plan: serde_json::Value =
        serde_json::from_str(&sandbox.stdout(&["plan", "ring.toml", "--json"])).unwrap();
    let cells = plan["cells"].as_array().unwrap().iter();
    cells
        .filter(|cell| cell["state"] == "cached")
        .map(|cell| cell["cell"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    if !only_in_a_soak() {
        return;
    }
    let times = 50;
    let expected = digests(&Sandbox::with_ring());
    let mut killed = 0;
    for number in 0..times {
        let sandbox = Sandbox::with_ring();
        let mut run = sandbox.command(&["run", "ring.toml", "--quiet", "-j1"]).spawn().unwrap();
        // Moments spread over the whole run, the same ones every time.
        std::thread::sleep(Duration::from_micros(3_000 + 37_777 * number * 5 / times));
        run.kill().unwrap();
        killed += u64::from(run.wait().unwrap().code().is_none());
        let before = cached(&sandbox);
        let report: serde_json::Value =
            serde_json::from_str(&sandbox.stdout(&["run", "ring.toml", "--json"])).unwrap();
        for cell in report["cells"].as_array().unwrap() {
            let name = cell["cell"].as_str().unwrap();
            let state = cell["state"].as_str().unwrap();
            assert!(
                state == "cached" || !before.iter().any(|other| other == name),
                "{name} was done and ran again"
            );
        }
        assert_eq!(digests(&sandbox), expected);
        assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
    }
    assert!(killed > 0, "no run was killed before it ended: the moments are wrong");
}

#[test]
fn torn_and_damaged_lines_of_the_log_cost_a_run_and_no_more() {
    let sandbox = Sandbox::with_ring();
    let expected = digests(&sandbox);
    let log = sandbox.read(".hopmap/state.log");
    for end in [1, log.len() / 3, log.len() / 2, log.len() - 1] {
        sandbox.write(".hopmap/state.log", &log[..end]);
        assert_eq!(digests(&sandbox), expected);
    }
    let damaged = log.lines().map(|line| &line[1..]).collect::<Vec<_>>().join("\n") + "\n";
    sandbox.write(".hopmap/state.log", damaged);
    assert_eq!(digests(&sandbox), expected);
    assert!(sandbox.seen(&["run", "ring.toml"]).contains("damaged line"));
}

#[test]
fn a_killed_search_goes_on_with_its_state() {
    let sandbox = Sandbox::with_ring();
    // Long enough that a state is saved before the end.
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 15000000");
    let mut run = sandbox.command(&["run", "ring.toml", "--quiet"]).spawn().unwrap();
    // A file that is still being written has a name that begins with a dot.
    let states = || {
        let files = std::fs::read_dir(sandbox.path().join(".hopmap/states")).into_iter().flatten().flatten();
        files.filter(|file| !file.file_name().to_string_lossy().starts_with('.')).count()
    };
    while states() == 0 {
        assert!(run.try_wait().unwrap().is_none(), "the search ended before it was killed");
        std::thread::sleep(Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    sandbox.stdout(&["gc"]);
    let output = sandbox.output(&["run", "ring.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("resumes an interrupted search after epoch"), "{said}");
    assert_eq!(states(), 0);
    let after = digests(&sandbox);
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    assert_eq!(digests(&sandbox), after);
}
