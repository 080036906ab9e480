//! Profiles of TAU.

use hopmap_trace::Format;

use super::{Files, import_path};

/// A profile with some events after the standard ones.
fn profile(node: u32, metric: &str, events: &[&str]) -> String {
    format!(
        "4 templated_functions{metric}\n\
         # Name Calls Subrs Excl Incl ProfileCalls # <metadata><attribute><name>CPU Type</name><value>x</value></attribute>\
         <attribute><name>Hostname</name><value>n0{node}</value></attribute></metadata>\n\
         \"main \"quoted\" [{{a.c}} {{1,1}}]\" 1 3 1500000 5000000 0 GROUP=\"TAU_DEFAULT\"\n\
         \"MPI_Send()  \" 3 0 3e6 3e6 0 GROUP=\"MPI\"\n\
         \"main => MPI_Send()  \" 3 0 3e6 3e6 0 GROUP=\"TAU_CALLPATH|MPI\"\n\
         \"work\" 1 0 500000 500000 0 GROUP=\"TAU_USER | B\"\n\
         0 aggregates\n{} userevents\n# eventname numevents max min mean sumsqr\n\
         \"Message size sent to all nodes\" 9 1 1 1 9\n{}",
        events.len() + 1,
        events.iter().flat_map(|event| [event, "\n"]).collect::<String>()
    )
}

const TO_1: &str = "\"Message size sent to node 1\" 3 1024 512 768 2e6";
const TO_1_BY_PATH: &str = "\"Message size sent to node 1 : main => MPI_Send()  \" 3 1024 512 768 2e6";
const TO_0: &str = "\"Message size sent to node 0\" 3 2 1 1.333333333333333 6";
const REDUCTION: &str = "\"Message size for all-reduce\" 4 8 8 8 256";

/// Two nodes; node 1 has a thread that sends as well.
pub(crate) fn sample() -> Files {
    let files = [
        ("profile.0.0.0", profile(0, "_MULTI_TIME", &[TO_1, TO_1_BY_PATH, REDUCTION])),
        ("profile.1.0.0", profile(1, "_MULTI_TIME", &[TO_0])),
        ("profile.1.0.1", profile(1, "_MULTI_TIME", &["\"Message size sent to node 1\" 1 10 10 10 100"])),
        ("tau.conf", String::new()),
    ];
    Files::new(&files)
}

#[test]
fn events_of_all_threads_count_for_their_node() {
    let files = sample();
    let read = files.auto();
    assert_eq!(read.pairs(), [(0, 1, 3, 2304), (1, 0, 3, 4), (1, 1, 1, 10)]);
    let graph = read.graph();
    let hosts: Vec<_> = graph.processes.iter().map(|process| process.host.as_deref().unwrap()).collect();
    assert_eq!(hosts, ["n00", "n01"]);
    assert!(graph.processes.iter().all(|process| process.compute_s == Some(2.0)));
    assert_eq!(graph.duration_s, Some(5.0));
    assert_eq!(
        read.log,
        ["format: tau", "warning: collective operations (once per process), which are not counted: 4"]
    );
    // The path of one profile selects all.
    assert_eq!(import_path(&files.path("profile.1.0.0"), Format::Auto).unwrap(), *graph);
}

/// Once the messages of such a rank were missing without a word.
#[test]
fn sends_without_receivers_are_said() {
    let warning = "warning: ranks that sent to receivers which their profiles lack, not counted: 1";
    for (events, log) in [(&[TO_0][..], &["format: tau"][..]), (&[], &["format: tau", warning])] {
        let files = [("profile.0.0.0", profile(0, "", &[TO_1])), ("profile.1.0.0", profile(1, "", events))];
        assert_eq!(Files::new(&files).auto().log, log);
    }
}

#[test]
fn the_clock_metric_is_preferred() {
    let files = Files::new(&[
        ("MULTI__PAPI_TOT_CYC/profile.0.0.0", profile(0, "_MULTI_PAPI_TOT_CYC", &[TO_0])),
        ("MULTI__TIME/profile.0.0.0", profile(0, "_MULTI_TIME", &[TO_0])),
    ]);
    assert_eq!(files.auto().graph().duration_s, Some(5.0));
    let files =
        Files::new(&[("MULTI__PAPI_TOT_CYC/profile.0.0.0", profile(0, "_MULTI_PAPI_TOT_CYC", &[TO_0]))]);
    let read = files.auto();
    assert_eq!((read.pairs(), read.graph().duration_s), (vec![(0, 0, 3, 4)], None));
    assert_eq!(read.graph().processes[0].compute_s, None);
}

#[test]
fn incomplete_profiles_are_rejected() {
    let one = |name: &'static str, text: String| Files::new(&[(name, text)]);
    let message = |files: Files| files.refused().split_once(": ").unwrap().1.to_owned();
    let without = one("profile.0.0.0", profile(0, "", &[]));
    assert_eq!(message(without), "the profiles do not contain the receivers of messages");
    assert_eq!(message(one("profile.0.0.0", profile(0, "", &[TO_1]))), "`profile.1.0.0` is missing");
    assert_eq!(message(one("profile.1.0.0", profile(1, "", &[TO_1]))), "`profile.0.0.0` is missing");
    let cut = profile(0, "", &[TO_0]).lines().take(10).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(message(one("profile.0.0.0", cut)), "the file ends before the end of its user events");
}

/// Once such a line was left out without a word.
#[test]
fn more_lines_than_announced_are_refused() {
    for (events, functions) in [("2 userevents", 4), ("3 userevents", 3), ("1 userevents", 4)] {
        let text = profile(0, "", &[TO_0, REDUCTION]).replace("3 userevents", events);
        let text = text.replace("4 templated", &format!("{functions} templated"));
        let (problem, help) = Files::new(&[("profile.0.0.0", text)]).auto().result.unwrap_err();
        assert!(problem.contains(" has fewer lines") || problem.contains("more lines than its"), "{problem}");
        assert!(help.contains("count their lines"), "{help}");
    }
}

#[test]
fn invalid_lines_are_rejected_with_their_number() {
    for (event, what) in [
        ("\"Message size sent to node x\" 3 1 1 1 1", "the node `x` is not an integer"),
        ("\"Message size sent to node 99999999\" 3 1 1 1 1", "the node `99999999` is not below 16777216"),
        ("\"Message size sent to node 0\" 1.5 1 1 1 1", "the number of events `1.5` is not an integer"),
        ("\"Message size sent to node 0\" 3 1 1 -1 1", "the mean `-1` is negative"),
        ("\"Message size sent to node 0\" 3 1 1 nan 1", "the mean `nan` is not a number"),
        ("\"Message size sent to node 0\" 3 1 1", "the mean is missing"),
        ("Message size sent to node 0", "`Message size sent to node 0` does not begin with a name in quotes"),
    ] {
        let refused = Files::new(&[("profile.0.0.0", profile(0, "", &[event]))]).refused();
        assert_eq!(refused, format!("profile.0.0.0:11: {what}"));
    }
    let much = "\"Message size sent to node 0\" 1e15 1 1 1e15 1";
    let refused = Files::new(&[("profile.0.0.0", profile(0, "", &[much]))]).refused();
    assert_eq!(refused, "profile.0.0.0:11: the messages or bytes of all pairs exceed 64 bits");
}
