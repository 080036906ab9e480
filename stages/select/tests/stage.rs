//! The stage as a pipeline runs it: free hosts, results, and rejected parameters.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzEncoder;
use hopmap_model::{
    Context, CostModel, Error, Inputs, Node, NodeKind, NodeState, Outcome, Paths, Stage, SystemGraph,
};
use hopmap_select::{Nodes, NodesParams};
use hopmap_test_support::Log;
use serde_json::{Value, json};

use crate::common;

/// Twelve hosts `n0` … `n11`, three per leaf switch, two leaf switches per pod.
fn machine() -> SystemGraph {
    let leaf_of: Vec<usize> = (0..12).map(|host| host / 3).collect();
    common::tree(&leaf_of, &[0, 0, 1, 1], &[2; 12], &[1e9])
}

fn run_on(system: &SystemGraph, with: Value) -> Result<(SystemGraph, Vec<String>), Error> {
    let params: NodesParams = serde_json::from_value(with).unwrap();
    Nodes::check(&params)?;
    let mut inputs = Inputs::new();
    inputs.connect("system", Arc::new(system.clone()), "d".into(), "machine".into());
    let log = Log::default();
    let outcome = Nodes::run(params, inputs, &Context::new(1, None, &log))?;
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    let chosen = outputs.get("system").unwrap().downcast_ref::<SystemGraph>().unwrap().clone();
    chosen.check().unwrap();
    Ok((chosen, log.0.into_inner().unwrap()))
}

fn names(system: &SystemGraph) -> String {
    system.hosts().map(|(node, ..)| system.nodes[node as usize].name.clone()).collect::<Vec<_>>().join(" ")
}

fn chosen(with: Value) -> String {
    names(&run_on(&machine(), with).unwrap().0)
}

/// Message and hint.
fn refusal_on(system: &SystemGraph, with: Value) -> (String, String) {
    let error = run_on(system, with).unwrap_err();
    (error.to_string(), error.help().map(|help| help.to_string()).unwrap_or_default())
}

fn refusal(with: Value) -> String {
    let (message, hint) = refusal_on(&machine(), with);
    assert!(!hint.is_empty(), "{message}");
    message
}

fn file(folder: &Path, text: &str) -> Value {
    let path = folder.join("free");
    fs::write(&path, text).unwrap();
    json!(path)
}

#[test]
fn the_tightest_hosts_come_out_in_the_order_of_the_machine() {
    assert_eq!(chosen(json!({ "free": "n[11,0-1,6-10]", "count": 3 })), "n6 n7 n8");
    assert_eq!(chosen(json!({ "free": "n[0,1,4,6,8,9,11]", "count": 4 })), "n6 n8 n9 n11");
    assert_eq!(chosen(json!({ "count": 2, "exclude": "n[0-8]" })), "n9 n10");
    assert_eq!(chosen(json!({ "free": "all", "exclude": "n[0-8,10]" })), "n9 n11");
}

#[test]
fn the_machine_keeps_its_network_and_the_costs_between_remaining_slots() {
    let system = machine();
    let (chosen, log) = run_on(&system, json!({ "free": "n[1-2,4]", "count": 3 })).unwrap();
    assert_eq!((&chosen.nodes, &chosen.links), (&system.nodes, &system.links));
    assert_eq!(chosen.slots.len(), 6);
    let slot_of = |i: u32| [2, 3, 4, 5, 8, 9][i as usize];
    for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
        assert_eq!(
            chosen.costs().between(a, b).to_bits(),
            system.costs().between(slot_of(a), slot_of(b)).to_bits()
        );
        assert_eq!(chosen.slots[a as usize], system.slots[slot_of(a) as usize]);
    }
    assert!(Paths::new(&chosen).is_some());
    assert_eq!(
        log,
        [
            "3 of 3 free hosts: n[1-2,4]; total distance 21 (optimal); first hosts 21, random hosts 21 on average"
        ]
    );
}

#[test]
fn a_matrix_is_cut_to_the_chosen_slots() {
    let costs: Vec<f64> = (0..16).map(|i: i32| f64::from((i / 4 - i % 4).pow(2) + i % 4)).collect();
    let (chosen, _) = run_on(&common::matrix(costs), json!({ "free": "n[0,2,3]", "count": 2 })).unwrap();
    assert_eq!(names(&chosen), "n2 n3");
    assert!(matches!(chosen.cost, CostModel::Matrix(matrix) if matrix.costs == [2.0, 4.0, 3.0, 3.0]));
}

#[test]
fn slots_are_counted_where_hosts_differ() {
    let system = common::tree(&[0, 0, 0, 1, 1, 1], &[0, 0], &[1, 2, 4, 1, 1, 8], &[1e9]);
    let chosen = |slots: u32| names(&run_on(&system, json!({ "slots": slots })).unwrap().0);
    assert_eq!(chosen(4), "n2");
    assert_eq!(chosen(15), "n0 n1 n2 n5");
    assert_eq!(chosen(17), "n0 n1 n2 n3 n4 n5");
    assert_eq!(
        refusal_on(&system, json!({ "slots": 18 })).0,
        "18 slots requested, but the 6 free hosts have 17"
    );
}

#[test]
fn file_formats_are_detected_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let all = |text: &str| chosen(json!({ "free_file": file(folder.path(), text) }));
    assert_eq!(all("# free at noon\nn3\nn1 n2\n"), "n1 n2 n3");
    assert_eq!(all("n[1-2]\nn5,n7\n"), "n1 n2 n5 n7");
    assert_eq!(all("n1 idle\nn2 down*\nn3 mixed\nlogin1 idle\nn5 idle\n"), "n1 n5");
    let table = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nall* up infinite 3 idle n[1-3]\nall* up infinite 2 mix n[4-5]\n";
    assert_eq!(all(table), "n1 n2 n3");
    let mixed = chosen(json!({ "free_file": file(folder.path(), table), "mixed": true, "exclude": "n1" }));
    assert_eq!(mixed, "n2 n3 n4 n5");
}

#[test]
fn a_host_file_names_hosts_and_ranks_take_the_first_slots_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let system = common::tree(&[0, 0, 1], &[0, 0], &[4; 3], &[1e9]);
    let with =
        json!({ "free_file": file(folder.path(), "n2\nn2\nn0\nn0\n"), "from": "auto", "slots_per_host": 2 });
    let (system, _) = run_on(&system, with).unwrap();
    assert_eq!(names(&system), "n0 n2");
    assert_eq!(system.slots.iter().map(|slot| slot.core).collect::<Vec<_>>(), [0, 1, 0, 1]);
    let auto = |with: Value| Nodes::observes(&serde_json::from_value(with).unwrap());
    assert!(auto(json!({ "from": "auto", "free": "" })));
    assert!(!auto(json!({ "from": "auto", "free": "n1" })));
}

#[test]
fn slots_of_a_host_file_limit_those_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let system = common::tree(&[0, 0, 1], &[0, 0], &[4; 3], &[1e9]);
    let with = json!({ "free_file": file(folder.path(), "n0 slots=3\nn1:1\nn2:9\n") });
    let (limited, log) = run_on(&system, with.clone()).unwrap();
    let slots: Vec<u32> = limited.hosts().map(|(_, _, slots)| slots).collect();
    assert_eq!(slots, [3, 1, 4]);
    assert!(
        log.iter().any(|line| line.ends_with("9 slots per host on n2, the machine topology 4: 4 are used")),
        "{log:?}"
    );
    // A number that is given counts more.
    let mut with = with;
    with["slots_per_host"] = json!(2);
    let (limited, _) = run_on(&system, with.clone()).unwrap();
    assert_eq!(limited.slots.len(), 6);
    // More than the machine has.
    with["slots_per_host"] = json!([3, 1, 64]);
    let (_, log) = run_on(&system, with).unwrap();
    let said = "`slots_per_host` has 64 slots per host on n2, the machine topology 4: 4 are used";
    assert_eq!(log[0], said);
    // Open MPI takes all cores.
    let (limited, log) =
        run_on(&system, json!({ "free_file": file(folder.path(), "n0 slots=3\nn1\n") })).unwrap();
    assert_eq!(limited.slots.len(), 7);
    assert!(log[0].ends_with("has no slots of n1: all are used there, as Open MPI does"), "{log:?}");
}

/// It was no text, and a part of it would have been the whole.
#[test]
fn packed_lists_are_read_and_cut_or_empty_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut packed) = (folder.path().join("free"), Vec::new());
    let text = &b"n1 idle\nn2 idle\nn3 down\n"[..];
    GzEncoder::new(text, Compression::fast()).read_to_end(&mut packed).unwrap();
    fs::write(&path, &packed).unwrap();
    assert_eq!(chosen(json!({ "free_file": path })), "n1 n2");
    fs::write(&path, &packed[..packed.len() - 9]).unwrap();
    let (problem, hint) = refusal_on(&machine(), json!({ "free_file": path }));
    assert!(problem.contains(": cannot be read: "), "{problem}");
    assert_eq!(hint, "the file was not written or copied completely: copy it again");
    let empty = refusal(json!({ "free_file": file(folder.path(), "\n") }));
    assert!(empty.ends_with(": it is empty"), "{empty}");
}

#[test]
fn every_host_has_its_number_of_slots() {
    let folder = tempfile::tempdir().unwrap();
    let system = common::tree(&[0, 0, 1], &[0, 0], &[8; 3], &[1e9]);
    let slots = |with: Value| -> Vec<u32> {
        let (system, _) = run_on(&system, with).unwrap();
        system.hosts().map(|(_, _, slots)| slots).collect()
    };
    assert_eq!(slots(json!({ "slots_per_host": [8, 4, 2] })), [8, 4, 2]);
    // In the order of the list, whatever that of the machine is.
    assert_eq!(slots(json!({ "free": "n2,n0,n1", "slots_per_host": "8,4,2" })), [4, 2, 8]);
    assert_eq!(slots(json!({ "free": "n2:8,n0:4 n1:2" })), [4, 2, 8]);
    assert_eq!(slots(json!({ "free": "n2 8 n0 4 n1 2" })), [4, 2, 8]);
    for text in
        ["n1 2 all.q@n1 UNDEFINED\nn0 4 all.q@n0 UNDEFINED\n", "n1 2\nn0 4\n", "n0 slots = 4\njoe@n1 cpu=2\n"]
    {
        assert_eq!(slots(json!({ "free_file": file(folder.path(), text) })), [4, 2], "{text}");
    }
    let wrong = refusal_on(&system, json!({ "free": "n[0-1]", "slots_per_host": [8, 4, 2] })).0;
    assert_eq!(wrong, "`slots_per_host` has 3 numbers, but `free` has 2 hosts");
}

#[test]
fn nodes_that_are_off_or_planned_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = "NODELIST STATE\nn1 idle\nn2 idle~\nn3 idle#\nn4 mixed-\nn5 allocated-\nn6 planned\n";
    let with = json!({ "free_file": file(folder.path(), text), "mixed": true });
    let (chosen, log) = run_on(&machine(), with).unwrap();
    assert_eq!(chosen.hosts().count(), 3, "{log:?}");
    assert!(log[0].ends_with("powering up (`idle~`, `idle#`): n[2-3]"), "{log:?}");
    assert!(log[1].ends_with("and so not free: n[4-6]"), "{log:?}");
}

#[test]
fn hosts_missing_from_the_machine_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let with = json!({ "free_file": file(folder.path(), "n1 idle\ngpu[1-4] idle\n") });
    let (_, log) = run_on(&machine(), with).unwrap();
    assert!(log[0].ends_with("has 4 free hosts that are not in the machine topology: gpu[1-4]"), "{log:?}");
    let none = refusal(json!({ "free_file": file(folder.path(), "gpu[1-4] idle\n") }));
    assert!(none.ends_with("contains no host of the machine topology"), "{none}");
}

#[test]
fn invalid_requests_are_rejected() {
    for (with, message) in [
        (json!({ "count": 0 }), "count is 0"),
        (json!({ "slots": 0 }), "slots is 0"),
        (json!({ "count": 1, "starts": 0 }), "starts is 0"),
        (json!({ "count": 1, "slots": 1 }), "`count` and `slots` are mutually exclusive"),
        (json!({ "free": "n1", "free_file": "x" }), "`free` and `free_file` are mutually exclusive"),
        (json!({ "free": "n1", "from": "slurm-nodelist" }), "`free` and `from` are mutually exclusive"),
        (
            json!({ "criterion": "switches", "method": "greedy" }),
            "method `greedy` does not support criterion `switches`",
        ),
        (json!({ "count": 13 }), "13 hosts requested, but the 12 free hosts have 12"),
        (json!({ "exclude": "n[0-11]" }), "1 hosts requested, but the 0 free hosts have 0"),
        (json!({ "free": "" }), "`free` contains no host of the machine topology"),
        (json!({ "free": "n[1-3],n2" }), "`free` contains `n2` twice"),
        (
            json!({ "free": "n1:8,n2:4", "slots_per_host": 8 }),
            "`free` gives `n2` 4 slots, but `slots_per_host` 8",
        ),
        (json!({ "free": "n[1-3" }), "`free`: host list, column 2: unclosed bracket"),
        (
            json!({ "exclude": "n[3-1]" }),
            "`exclude`: host list, column 3: the range is descending, from 3 to 1",
        ),
        (json!({ "exclude": "m1" }), "`m1` in `exclude` is not a host with slots in the machine topology"),
        (json!({ "free": "root" }), "`root` is not a host with slots in the machine topology"),
    ] {
        assert_eq!(refusal(with), message);
    }
}

#[test]
fn the_nearest_name_is_suggested() {
    let hint = |name: &str| refusal_on(&machine(), json!({ "free": name })).1;
    assert!(hint("n12").starts_with("did you mean `n1`?"));
    assert!(hint("n07").starts_with("did you mean `n0`?") || hint("n07").starts_with("did you mean `n7`?"));
    assert!(hint("n77.cluster.org").starts_with("did you mean `n7`?"));
    assert!(hint("leaf1").contains("is a switch"));
}

/// Lists with full names were refused on machines with short ones, and the other way round.
#[test]
fn hosts_are_found_by_short_names() {
    let mut system = machine();
    system.nodes.iter_mut().filter(|node| node.name == "n3").for_each(|node| node.name = "n3.cluster".into());
    let (chosen, log) =
        run_on(&system, json!({ "free": "n[2-3],n4.cluster", "exclude": "n2.cluster" })).unwrap();
    assert_eq!(names(&chosen), "n3.cluster n4");
    assert_eq!(log[0], "hosts with another name in the machine topology: 2; `n3` is `n3.cluster` there");
    let message = |with| refusal_on(&system, with).0;
    assert_eq!(
        message(json!({ "free": "n3.site" })),
        "`n3.site` is not a host with slots in the machine topology"
    );
    assert_eq!(
        message(json!({ "free": "n4,n4.site" })),
        "`free` contains `n4` and `n4.site`, which are one host"
    );
}

#[test]
fn files_without_host_lists_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("free");
    fs::write(&path, b"n1\xff\n").unwrap();
    assert!(refusal(json!({ "free_file": path })).ends_with("free:1: not valid UTF-8 text"));
    fs::write(&path, "n1 idle\nn[2 idle\n").unwrap();
    assert!(refusal(json!({ "free_file": path })).contains("line 2: host list, column 2"));
    let missing = refusal_on(&machine(), json!({ "free_file": folder.path().join("none") })).0;
    assert!(missing.contains("none: cannot be read"), "{missing}");
}

#[test]
fn criteria_check_the_link_attributes_they_need() {
    let mut bare = machine();
    bare.links.clear();
    let on = |system: &SystemGraph, criterion: &str| {
        let (message, hint) = refusal_on(system, json!({ "count": 2, "criterion": criterion }));
        assert!(!hint.is_empty());
        message
    };
    for criterion in ["switches", "bottleneck-bandwidth"] {
        let expected = format!("criterion `{criterion}` needs links, but the machine topology has none");
        assert_eq!(on(&bare, criterion), expected);
    }
    let mut ring = machine();
    let link = ring.links[0];
    ring.links.push(hopmap_model::Link { source: 0, destination: 1, ..link });
    assert!(on(&ring, "switches").starts_with("criterion `switches` needs a tree"));
    let mut dumb = machine();
    dumb.links[3].bandwidth_bytes_per_s = None;
    assert!(on(&dumb, "bottleneck-bandwidth").ends_with("the link from `leaf0` to `n1` has none"));
    let mut pieces = machine();
    pieces.links.retain(|link| link.source < 12 || link.destination < 12);
    let message = refusal_on(&pieces, json!({ "count": 4, "criterion": "bottleneck-bandwidth" })).0;
    assert_eq!(message, "fewer than 4 free hosts are connected to each other");
}

#[test]
fn costs_of_any_size_are_summed_or_refused() {
    let mut system = machine();
    let CostModel::Levels(levels) = &mut system.cost else { panic!() };
    levels.costs = vec![0.0, 0.0, 0.0, 1e300];
    assert!(refusal_on(&system, json!({ "count": 2 })).0.contains("exceeds 64 bits"));
    let CostModel::Levels(levels) = &mut system.cost else { panic!() };
    levels.costs = vec![0.0; 4];
    assert_eq!(names(&run_on(&system, json!({ "count": 2 })).unwrap().0).split(' ').count(), 2);
}

#[test]
fn one_free_host_is_chosen_by_every_criterion_and_method() {
    for criterion in ["total-distance", "cut", "bottleneck-bandwidth", "switches"] {
        for method in ["auto", "exact", "greedy", "min-cut"] {
            if criterion == "switches" && method != "auto" && method != "exact" {
                continue;
            }
            let with = json!({ "free": "n5", "count": 1, "criterion": criterion, "method": method });
            assert_eq!(chosen(with), "n5");
        }
    }
}

#[test]
fn hosts_that_are_down_are_never_chosen() {
    let mut system = machine();
    system.nodes.iter_mut().find(|node| node.name == "n4").unwrap().state = NodeState::Down;
    let (chosen, log) = run_on(&system, json!({ "free": "n[3-5]" })).unwrap();
    assert_eq!(names(&chosen), "n3 n5");
    assert_eq!(log[0], "ignoring hosts that are down: n4");
    assert_eq!(names(&run_on(&system, json!({})).unwrap().0).split(' ').count(), 11);
    let (message, _) = refusal_on(&system, json!({ "free": "n4" }));
    assert_eq!(message, "1 hosts requested, but the 0 free hosts have 0");
}

/// A host that did not answer during the measurement is in the machine without slots.
#[test]
fn lost_hosts_of_a_job_are_ignored() {
    let mut system = machine();
    let lost = Node { state: NodeState::Down, ..Node::new("n12", NodeKind::Host) };
    system.nodes.push(lost);
    let (chosen, log) = run_on(&system, json!({ "free": "n[3-4,12]" })).unwrap();
    assert_eq!((names(&chosen).as_str(), log[0].as_str()), ("n3 n4", "ignoring hosts that are down: n12"));
    assert_eq!(names(&run_on(&system, json!({ "free": "n[3-4]", "exclude": "n[4,12]" })).unwrap().0), "n3");
    let (message, _) = refusal_on(&system, json!({ "free": "n[3,13]" }));
    assert_eq!(message, "`n13` is not a host with slots in the machine topology");
    assert!(run_on(&system, json!({ "free": "n12" })).is_err());
}

#[test]
fn only_the_hosts_of_a_job_make_the_stage_volatile() {
    let observes = |with| Nodes::observes(&serde_json::from_value(with).unwrap());
    assert!(observes(json!({ "from": "slurm-nodelist" })));
    assert!(!observes(json!({ "free": "n[1-3]" })));
    if std::env::var_os("SLURM_JOB_NODELIST").is_none() {
        let message = refusal(json!({ "from": "slurm-nodelist" }));
        assert_eq!(message, "the variable SLURM_JOB_NODELIST is not set");
    } else {
        hopmap_test_support::skipped("this runs inside a Slurm job");
    }
}

#[test]
fn unknown_rates_of_links_are_those_of_the_level() {
    let mut system = machine();
    system.links.iter_mut().for_each(|link| (link.latency_s, link.bandwidth_bytes_per_s) = (None, None));
    system.links[0].bandwidth_bytes_per_s = Some(7.0);
    let rates = json!({ "link_latency_s": 1e-6, "link_bandwidth_bytes_per_s": [4e9, 2e9] });
    let (chosen, _) = run_on(&system, rates.clone()).unwrap();
    assert!(chosen.links.iter().all(|link| link.latency_s == Some(1e-6)));
    for (index, link) in chosen.links.iter().enumerate() {
        let is_of_host = link.source.min(link.destination) < 12;
        let expected = if index == 0 {
            7.0
        } else if is_of_host {
            4e9
        } else {
            2e9
        };
        assert_eq!(link.bandwidth_bytes_per_s, Some(expected), "{link:?}");
    }
    system.links.clear();
    assert!(refusal_on(&system, rates).0.starts_with("the machine topology has no links between hosts"));
    let message = refusal(json!({ "link_bandwidth_bytes_per_s": [4e9, 0.0] }));
    assert_eq!(message, "`link_bandwidth_bytes_per_s` = 0 is out of range");
}
