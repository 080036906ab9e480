//! `hopmap topology`: what is published, when, and what is said of it.

use std::time::Duration;

use hopmap_durable::Lock;
use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::topology_site::{Plan, Site, measured};

const MEASURED: &str = r#"name = "measured"

[stages.machine]
uses = "stored/system-graph"
with = { path = "machine" }

[stages.times]
uses = "stored/measurements"
with = { path = "measured" }
"#;

/// Appends a line to `consumed` whenever it runs.
const COUNT: &str = "echo $HOPMAP_TOPOLOGY >> consumed; cp $HOPMAP_CHANGES last.json";

fn consumed(site: &Site) -> usize {
    std::fs::read_to_string(site.sandbox.path().join("consumed")).map_or(0, |text| text.lines().count())
}

#[test]
fn an_unchanged_machine_touches_nothing_and_runs_no_consumer() {
    let site = Site::new(&Plan::new(8));
    assert_snapshot!(site.refresh(&["--consumer", COUNT]), @"published pub/history/ENTRY: 8 hosts");
    assert_eq!(consumed(&site), 1);
    let before = site.untouchable();
    assert_snapshot!(site.refresh(&["--consumer", COUNT, "--exit-code"]), @"unchanged: 8 hosts");
    // The same machine, written again.
    site.set(&Plan::new(8));
    assert_eq!(site.refresh(&["--consumer", COUNT, "--quiet"]), "");
    assert_eq!(site.untouchable(), before);
    assert_eq!(consumed(&site), 1);
}

#[test]
fn a_change_is_published_passed_to_the_consumer_and_accepted() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    site.set(&Plan { far: 200.0, ..Plan::new(8) });
    assert_snapshot!(site.refresh(&["--consumer", COUNT, "--exit-code"]), @r"
    published pub/history/ENTRY: level costs are 1, 10, 200, were 1, 10, 100 (8 hosts)
    [exit code 3]
    ");
    let current = site.sandbox.path().join("pub/current");
    assert_eq!(site.sandbox.read("consumed").trim(), current.to_str().unwrap());
    let changes: Value = serde_json::from_str(&site.sandbox.read("last.json")).unwrap();
    assert_eq!(changes["changes"][0]["text"], "level costs are 1, 10, 200, were 1, 10, 100");
    assert_eq!(changes["changes"][0]["change"], "levels");
    let (current, accepted) = site.sound();
    assert_eq!(current.unwrap().0, accepted.unwrap().0);
    assert_snapshot!(site.sandbox.seen(&["topology", "status", "--publish", "pub"]), @r"
    published     pub/history/ENTRY
    hosts         8, all up
    last success  TIME
    history       ENTRY
    history       ENTRY
    ");
}

#[test]
fn a_host_that_is_down_keeps_its_data() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    site.set(&Plan::down(8, &[5]));
    let ignored = site.refresh(&["--ignore-down"]);
    assert_snapshot!(ignored, @"unchanged: 8 hosts, 1 down");
    assert_snapshot!(site.refresh(&[]), @"published pub/history/ENTRY: n5 is down (8 hosts, 1 down)");
    assert_snapshot!(site.refresh(&[]), @"unchanged: 8 hosts, 1 down");
    let (_, machine) = site.sound().0.unwrap();
    assert_eq!(machine.system.slots, Plan::new(8).machine().slots);
    let status = site.sandbox.seen(&["topology", "status", "--publish", "pub"]);
    assert!(status.contains("8, down: n5"), "{status}");
    site.set(&Plan::new(8));
    assert_snapshot!(site.refresh(&["--exit-code"]), @r"
    published pub/history/ENTRY: n5 is back (8 hosts)
    [exit code 3]
    ");
}

#[test]
fn ranks_are_kept_off_hosts_that_are_down() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    site.set(&Plan::down(8, &[0]));
    site.refresh(&[]);
    let sandbox = &site.sandbox;
    sandbox.write("ring.csv", crate::sandbox::ring(8));
    sandbox.stdout(&["exec", "trace/import", "-p", "path=ring.csv", "-p", "format=csv", "--out", "ring"]);
    let map = |system: &str| {
        let system = format!("system={system}");
        sandbox.seen(&["exec", "map/linear", "--in", "task-graph=ring", "--in", &system, "--out", "placed"])
    };
    assert_snapshot!(map("pub/current/system"), @r"
    ------- stderr -------
    weight: bytes, because the machine has no latencies between hosts
    error[objective::invalid]: host `n0` is down and has slots
      help: exclude hosts that are down: put `select/nodes` between the machine and the mapper
    [exit code 1]
    ");
    sandbox.stdout(&["exec", "select/nodes", "--in", "system=pub/current/system", "--out", "up"]);
    assert!(map("up").starts_with("mapping "));
}

#[test]
fn hosts_that_are_not_named_are_down_or_gone() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    site.set(&Plan::new(7));
    let before = site.untouchable();
    assert_snapshot!(site.refresh(&["--dry-run"]), @r"
    n7 is down
    1 change
    ");
    assert_snapshot!(site.refresh(&["--dry-run", "--missing", "gone", "--exit-code"]), @r"
    n7 is gone, it had 2 slots
    1 change
    [exit code 3]
    ");
    assert_eq!(site.untouchable(), before);
    assert!(!site.sandbox.path().join(".hopmap").exists());
}

#[test]
fn too_few_hosts_publish_nothing_and_metrics_say_so() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    let before = site.untouchable();
    site.set(&Plan::down(8, &[1, 2, 3]));
    assert_snapshot!(site.refresh(&["--metrics", "hopmap.prom"]), @r"
    ------- stderr -------
    error[refresh::coverage]: only 5 of 8 previously available hosts are up (62.5 %), below --min-coverage: nothing was published
      help: not up: n[1-3]; if these hosts are gone for good, run once with --baseline or a lower --min-coverage
    [exit code 1]
    ");
    assert_eq!(site.untouchable(), before);
    let metrics = site.sandbox.read("hopmap.prom");
    assert!(metrics.contains("\nhopmap_topology_result 0\n"), "{metrics}");
    assert!(metrics.contains("\nhopmap_topology_coverage 0.625\n"), "{metrics}");
    assert_snapshot!(site.refresh(&["--baseline", "--metrics", "hopmap.prom"]), @"accepted pub/history/ENTRY: 8 hosts, 3 down");
    let metrics = site.sandbox.read("hopmap.prom");
    assert!(metrics.contains("\nhopmap_topology_result 1\n"), "{metrics}");
    assert!(metrics.contains("\nhopmap_topology_hosts_down 3\n"), "{metrics}");
    assert_snapshot!(site.refresh(&[]), @"unchanged: 8 hosts, 3 down");
}

#[test]
fn a_consumer_that_failed_runs_again_until_it_succeeds() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    let (first, _) = site.sound().0.unwrap();
    site.set(&Plan { rails: 2, ..Plan::new(8) });
    assert_snapshot!(site.refresh(&["--consumer", "echo no room >&2; exit 4"]), @r"
    ------- stderr -------
    error[refresh::consumer]: the consumer ended with exit status: 4: ENTRY is published, but not accepted
      help: the next refresh runs it again. Its output:
            no room
    [exit code 1]
    ");
    let (current, accepted) = site.sound();
    let published = current.unwrap().0;
    assert_ne!(published, first);
    assert_eq!(accepted.unwrap().0, first);
    let status = site.sandbox.seen(&["topology", "status", "--publish", "pub"]);
    assert!(status.contains("has not succeeded yet"), "{status}");
    // Once that had "now succeeded" which nobody had run.
    assert_snapshot!(site.refresh(&[]), @r"
    unchanged: 8 hosts
    the consumer has not succeeded yet: the next refresh with --consumer runs it
    ");
    assert_eq!(site.sound().1.unwrap().0, first);
    assert_snapshot!(site.refresh(&["--consumer", COUNT]), @"unchanged; the consumer has now succeeded: 8 hosts");
    assert_eq!(site.sound().1.unwrap().0, published);
    site.refresh(&["--consumer", COUNT]);
    assert_eq!(consumed(&site), 1);
}

#[test]
fn a_machine_that_goes_back_is_published_as_it_was_accepted() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    let (first, _) = site.sound().0.unwrap();
    site.set(&Plan { far: 300.0, ..Plan::new(8) });
    site.refresh(&["--consumer", "false"]);
    site.set(&Plan::new(8));
    // The consumer has seen the other one: it runs, and again if it fails.
    site.refresh(&["--consumer", "false"]);
    assert_eq!(site.sound().0.unwrap().0, first);
    assert_snapshot!(site.refresh(&["--consumer", COUNT]), @"unchanged; the consumer has now succeeded: 8 hosts");
    let changes: Value = serde_json::from_str(&site.sandbox.read("last.json")).unwrap();
    assert_eq!(changes["changes"][0]["text"], "level costs are 1, 10, 100, were 1, 10, 300");
    assert_eq!(site.publication().entries().unwrap().len(), 2);
    site.refresh(&["--consumer", COUNT]);
    assert_eq!(consumed(&site), 1);
}

#[test]
fn a_consumer_that_takes_too_long_is_ended_with_all_it_started() {
    let site = Site::new(&Plan::new(8));
    let slow = "(sleep 600; echo late > late) & echo begun; wait";
    let said = site.refresh(&["--consumer", slow, "--consumer-timeout", "1s"]);
    assert!(said.contains("the consumer took longer than 1s") && said.contains("begun"), "{said}");
    assert!(site.sound().1.is_none());
}

#[test]
fn a_second_refresh_names_the_process_of_the_first() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&[]);
    let lock = site.sandbox.path().join("pub/state/lock");
    let held = Lock::try_exclusive(&lock, "process 7 on here: hopmap topology refresh").unwrap();
    assert_snapshot!(site.refresh(&[]), @r"
    ------- stderr -------
    error[refresh::busy]: DIR/pub is being refreshed by process 7 on here: hopmap topology refresh
      help: wait until it ends; the lock is released with the process
    [exit code 75]
    ");
    drop(held);
    assert_snapshot!(site.refresh(&[]), @"unchanged: 8 hosts");
}

#[test]
fn drift_of_one_pair_is_confirmed_and_published() {
    let site = Site::new(&Plan::new(4));
    site.sandbox.write("measured.toml", MEASURED);
    site.measure(&measured(4, (0, 0), 0.0));
    let refresh = |more: &[&str]| {
        site.sandbox.seen(&[&["topology", "refresh", "measured.toml", "--publish", "pub"], more].concat())
    };
    assert_snapshot!(refresh(&[]), @"published pub/history/ENTRY: 4 hosts");
    site.measure(&measured(4, (1, 2), 115.0));
    assert_snapshot!(refresh(&[]), @"unchanged: 4 hosts");
    site.measure(&measured(4, (1, 2), 200.0));
    assert_snapshot!(refresh(&["--health"]), @r"
    n1 – n2: 200 µs, the median of its level is 100 µs (+100 %)
    1 finding, 4 hosts are up, 0 are down
    ");
    assert_snapshot!(refresh(&["--dry-run"]), @r"
    n1 – n2: 200 µs, was 100 µs (+100 %)
    1 change
    ");
    let updated: Value = serde_json::from_str(&refresh(&["--json"])).unwrap();
    assert_eq!(updated["outcome"], "published");
    assert_eq!(updated["confirmations"], 2);
    assert_eq!(updated["changes"][0]["change"], "pair");
    let records = hopmap::refresh::read_records(&site.publication()).unwrap();
    assert_eq!(records.iter().map(|record| record.changes.len()).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(records[2].medians_s.len(), 1);
    assert!((records[1].largest_ratio - 1.15).abs() < 1e-9 && (records[2].largest_ratio - 2.0).abs() < 1e-9);
    // The report has the heat map, the tree and what has changed over time.
    let report = site.sandbox.read("pub/state/report.html");
    for part in ["Latencies over time", "n1 – n2: 200 µs, was 100 µs (+100 %)", "<h2>The machine</h2>"] {
        assert!(report.contains(part), "{part}");
    }
    // A host that was not asked is gone, whatever state missing hosts have in the system graph.
    site.set(&Plan::new(3));
    site.measure(&measured(3, (1, 2), 200.0));
    assert_snapshot!(refresh(&["--min-coverage", "0.5"]), @"published pub/history/ENTRY: n3 is gone, it had 2 slots (3 hosts)");
}

#[test]
fn history_keeps_what_is_asked_for_and_what_is_used() {
    let site = Site::new(&Plan::new(8));
    for far in [100.0, 200.0, 300.0, 400.0] {
        site.set(&Plan { far, ..Plan::new(8) });
        site.refresh(&["--keep-entries", "2"]);
    }
    assert_eq!(site.publication().entries().unwrap().len(), 2);
    let (_, accepted) = site.sound();
    let accepted = accepted.unwrap().0;
    for far in [500.0, 600.0, 700.0] {
        site.set(&Plan { far, ..Plan::new(8) });
        site.refresh(&["--keep-entries", "1", "--consumer", "false"]);
    }
    site.refresh(&["--keep-entries", "1", "--consumer", "true"]);
    site.sound();
    assert_eq!(site.publication().entries().unwrap().len(), 1);
    assert!(!site.publication().entries().unwrap().contains(&accepted));
}

/// Within a second, and when the clock is put back, the same machine would get the same name.
#[test]
fn names_in_the_history_are_unique_with_any_clock() {
    let site = Site::new(&Plan::new(4));
    for turn in 0..6 {
        site.set(&Plan { far: if turn % 2 == 0 { 100.0 } else { 200.0 }, ..Plan::new(4) });
        site.refresh(&[]);
    }
    assert_eq!(site.publication().entries().unwrap().len(), 6);
    site.sound();
}

#[test]
fn a_young_success_is_enough() {
    let site = Site::new(&Plan::new(4));
    let refresh = || site.refresh(&["--max-age", "1h"]);
    assert_snapshot!(refresh(), @"published pub/history/ENTRY: 4 hosts");
    assert_snapshot!(refresh(), @"nothing to do: the last refresh succeeded at TIME");
    let status =
        |age: &str| site.sandbox.output(&["topology", "status", "--publish", "pub", "--max-age", age]);
    assert_eq!(status("1h").status.code(), Some(0));
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(status("1s").status.code(), Some(3));
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let site = Site::new(&Plan::new(4));
    assert_snapshot!(site.refresh(&["--dry-run"]), @r"
    ------- stderr -------
    error[refresh::nothing]: nothing is published in DIR/pub
      help: `hopmap topology refresh --publish DIR/pub` publishes the current machine
    [exit code 2]
    ");
    assert!(!site.sandbox.path().join("pub").exists());
    site.sandbox.write("pub/notes.txt", "mine");
    assert_snapshot!(site.refresh(&[]), @r"
    ------- stderr -------
    error[refresh::foreign]: DIR/pub holds something that is not a published topology
      help: name a new folder, an empty one, or one that `hopmap topology refresh` made
    [exit code 2]
    ");
    std::fs::remove_dir_all(site.sandbox.path().join("pub")).unwrap();
    assert_snapshot!(site.refresh(&["--stage", "nobody"]), @r"
    ------- stderr -------
    error[command::mistake]: `topology` has no stage `nobody` with a system graph
      help: its stages are: machine
    [exit code 2]
    ");
    site.refresh(&[]);
    let broken = site.sandbox.path().join("pub/current/system/links.parquet");
    std::fs::write(&broken, "damaged").unwrap();
    let said = site.refresh(&[]);
    assert!(said.contains("pub/current points to a snapshot that is missing or damaged"), "{said}");
    assert_snapshot!(site.refresh(&["--baseline"]), @"accepted pub/history/ENTRY: 4 hosts");
    site.sandbox.write("pub/accepted.json", "{}");
    let said = site.refresh(&[]);
    assert!(said.contains("accepted.json points to a snapshot that is missing or damaged"), "{said}");
    site.refresh(&["--baseline"]);
    assert_snapshot!(site.refresh(&[]), @"unchanged: 4 hosts");
}

#[test]
fn two_topologies_are_compared_in_words() {
    let sandbox = Sandbox::new();
    let make = |shape: &str, out: &str| {
        let shape = format!("shape={shape}");
        let with = ["-p", &shape, "-p", "costs=[1, 10, 100]", "--out", out];
        sandbox.stdout(&[&["exec", "topology/synthetic"], &with[..]].concat());
    };
    make("tree:2x4x2", "machine");
    make("tree:3x4x2", "wider");
    make("tree:2x4x1", "smaller");
    assert_snapshot!(sandbox.seen(&["topology", "diff", "machine", "machine", "--exit-code"]), @"no changes");
    assert_snapshot!(sandbox.seen(&["topology", "diff", "machine", "wider", "--exit-code"]), @r"
    host0 has cores 0-2, had 0-1
    host1 has cores 0-2, had 0-1
    host2 has cores 0-2, had 0-1
    host3 has cores 0-2, had 0-1
    host4 has cores 0-2, had 0-1
    host5 has cores 0-2, had 0-1
    host6 has cores 0-2, had 0-1
    host7 has cores 0-2, had 0-1
    [exit code 3]
    ");
    assert_snapshot!(sandbox.seen(&["topology", "diff", "machine", "nowhere"]), @r"
    ------- stderr -------
    error[command::mistake]: nowhere contains no topology
      help: name a system graph, measurements, a publish folder or an entry of its history
    [exit code 2]
    ");
}

#[test]
fn published_topologies_and_measurements_are_compared_too() {
    let site = Site::new(&Plan::new(4));
    site.refresh(&[]);
    let old = format!("pub/history/{}", site.sound().0.unwrap().0.0);
    site.set(&Plan { rails: 2, ..Plan::new(4) });
    site.refresh(&[]);
    let seen = site.sandbox.seen(&["topology", "diff", &old, "pub"]);
    assert_eq!(seen.lines().next(), Some("leaf0 – n0: 2 links, were 1"));
    site.measure(&measured(3, (0, 1), 400.0));
    std::fs::rename(site.sandbox.path().join("measured"), site.sandbox.path().join("slow")).unwrap();
    site.measure(&measured(3, (0, 1), 100.0));
    assert_snapshot!(site.sandbox.seen(&["topology", "diff", "slow", "measured"]), @"n0 – n1: 100 µs, was 400 µs (-75 %)");
    assert_snapshot!(site.sandbox.seen(&["topology", "diff", "slow", "machine"]), @r"
    ------- stderr -------
    error[command::mistake]: slow is measurements alone, but machine is a system graph
      help: compare two of the same kind
    [exit code 2]
    ");
}

/// What changed after `--baseline` was told from there on, and what had changed before it was lost.
#[test]
fn a_consumer_hears_of_all_changes_since_it_was_told_last_whatever_was_accepted_meanwhile() {
    let far = |far: f64| Plan { far, ..Plan::new(8) };
    for baselines in [&[][..], &[300.0], &[300.0, 400.0], &[200.0], &[300.0, 200.0]] {
        let site = Site::new(&far(100.0));
        site.refresh(&["--consumer", COUNT]);
        site.set(&far(200.0));
        site.refresh(&["--consumer", "false"]);
        for machine in baselines {
            site.set(&far(*machine));
            site.refresh(&["--baseline"]);
        }
        // With and without a change after the last baseline.
        for last in [500.0, 600.0] {
            site.set(&far(last));
            site.refresh(&["--keep-entries", "1"]);
            site.refresh(&["--consumer", "false"]);
        }
        let seen = site.refresh(&["--consumer", COUNT]);
        let changes: Value = serde_json::from_str(&site.sandbox.read("last.json")).unwrap();
        let text = &changes["changes"][0]["text"];
        assert_eq!(text, "level costs are 1, 10, 600, were 1, 10, 100", "{baselines:?}: {seen}");
        assert_eq!(consumed(&site), 2);
        site.refresh(&["--consumer", COUNT]);
        assert_eq!(consumed(&site), 2);
        let (current, accepted) = site.sound();
        assert_eq!(current.unwrap().0, accepted.unwrap().0);
    }
    // Back to what the consumer knows, after a baseline.
    let site = Site::new(&far(100.0));
    site.refresh(&["--consumer", COUNT]);
    site.set(&far(200.0));
    site.refresh(&["--consumer", "false"]);
    site.refresh(&["--baseline"]);
    site.set(&far(100.0));
    site.refresh(&["--consumer", COUNT]);
    let changes: Value = serde_json::from_str(&site.sandbox.read("last.json")).unwrap();
    assert_eq!(changes["changes"][0]["text"], "level costs are 1, 10, 100, were 1, 10, 200");
    assert_eq!(consumed(&site), 2);
    site.refresh(&["--consumer", COUNT]);
    assert_eq!(consumed(&site), 2);
}

/// An earlier version did not write down what a consumer knows.
#[test]
fn a_pending_consumer_runs_also_where_it_is_not_known_what_it_was_told() {
    let site = Site::new(&Plan::new(8));
    site.refresh(&["--consumer", "false"]);
    site.set(&Plan { far: 200.0, ..Plan::new(8) });
    site.refresh(&["--baseline"]);
    std::fs::remove_file(site.sandbox.path().join("pub/state/told")).unwrap();
    site.refresh(&["--consumer", COUNT]);
    assert_eq!(consumed(&site), 1);
    assert_snapshot!(site.refresh(&["--consumer", COUNT]), @"unchanged: 8 hosts");
    assert_eq!(consumed(&site), 1);
}
