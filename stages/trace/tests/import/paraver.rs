//! Paraver.

use super::Files;

/// Three tasks of which the second has two threads, and a second application with one task.
pub(crate) const HEADER: &str = "#Paraver (12/03/2024 at 10:11):5000_ns:2(4,4):2:3(1:1,2:1,1:2),1:1(1:2)\n";

/// Rank 0 computes for 1 µs and 0.5 µs, rank 1 does not, and rank 2 lacks states.
pub(crate) const RECORDS: &str = "c:1:1:3:1:2:3\n\
    1:1:1:1:1:0:1000:1\n\
    1:2:1:2:1:0:1000:3\n\
    1:3:1:2:2:0:5000:1\n\
    2:1:1:1:1:1000:50000001:1:50000002:8\n\
    2:1:1:1:1:1100:50000002:0\n\
    3:1:1:1:1:1000:1010:2:1:2:1:1100:1200:4096:7\n\
    # a remark\n\
    3:3:1:2:2:1000:1010:4:1:3:1:1100:1200:100:0\n\
    3:1:1:1:1:2000:2010:2:1:2:2:2100:2200:4:7\n\
    3:5:2:1:1:2000:2010:1:1:1:1:2100:2200:0:9\n\
    1:1:1:1:1:2000:2500:1\n";

fn trace(header: &str, records: &str) -> Files {
    Files::one(format!("{header}{records}"))
}

#[test]
fn messages_of_all_threads_and_applications_count_for_their_task() {
    let read = trace(HEADER, RECORDS).auto();
    assert_eq!(read.pairs(), [(0, 1, 2, 4100), (1, 2, 1, 100), (3, 0, 1, 0)]);
    let graph = read.graph();
    assert_eq!(graph.ranks(), 4);
    let computing: Vec<_> = graph.processes.iter().map(|process| process.compute_s).collect();
    assert_eq!(computing, [Some(1.5e-6), Some(0.0), None, None]);
    assert_eq!(graph.duration_s, Some(5e-6));
    assert!(graph.processes.iter().all(|process| process.host.is_none()));
    assert_eq!(
        read.log,
        ["format: paraver", "warning: collective operations (once per process), which are not counted: 1"]
    );
}

#[test]
fn headers_have_several_forms() {
    let record = "3:1:1:1:1:1:1:1:1:2:1:1:1:8:0\n";
    for (header, duration_s) in [
        ("#Paraver (10/04/2001 at 18:21):620244450:0:1:2(1:0,1:0)\n", 620.244_45),
        ("#Paraver (10/04/2001 at 18:21):7_us:4(1,1,1,1):1:2(1:1,1:2),0\n", 7e-6),
        ("#Paraver (10/04/2001 at 18:21):7_ms:1(2):1:2(1:1,1:1)\r\n", 7e-3),
    ] {
        let read = trace(header, record).auto();
        assert_eq!(read.pairs(), [(0, 1, 1, 8)], "{header}");
        let duration = read.graph().duration_s.unwrap();
        assert!((duration - duration_s).abs() < 1e-12, "{header}: {duration}");
    }
}

#[test]
fn invalid_lines_are_rejected_with_their_number() {
    for (header, what) in [
        ("#Paraver 12\n", "not the header of a Paraver trace"),
        ("#Paraver (x):5000_ns\n", "the header ends with the end of the trace"),
        ("#Paraver (x):5000_h:0:1:1(1:0)\n", "`h` is not a unit of time"),
        ("#Paraver (x):-5_ns:0:1:1(1:0)\n", "the end of the trace `-5` is negative"),
        ("#Paraver (x):5_ns:0:2:1(1:0)\n", "the header ends before the tasks"),
        ("#Paraver (x):5_ns:0:1:9000(1:0)\n", "the header lists 1 tasks, but declares 9000"),
        ("#Paraver (x):5_ns:0:1:99999999(1:0)\n", "the number of tasks `99999999` is not below 16777217"),
    ] {
        assert_eq!(trace(header, "").refused(), format!("trace:1: {what}"));
    }
    for (record, what) in [
        ("7:1\n", "`7:1` is not a record of Paraver"),
        ("3:1:1:1:1:1:1:1:1:9:1:1:1:8:0\n", "application 1 has tasks 1 to 3, but this is task 9"),
        ("3:1:1:0:1:1:1:1:1:1:1:1:1:8:0\n", "application 1 has tasks 1 to 3, but this is task 0"),
        ("3:1:0:1:1:1:1:1:1:1:1:1:1:8:0\n", "the application is 0, but applications count from one"),
        ("3:1:3:1:1:1:1:1:1:1:1:1:1:8:0\n", "the application `3` is not below 3"),
        ("3:1:1:1:1:1:1:1:1:2:1:1:1:-8:0\n", "the size `-8` is negative"),
        ("3:1:1:1:1:1:1:1:1:2:1:1:1:8\n", "a message must have 14 numbers after `3:`"),
        ("3:1:1:1:1:1:1:1:1:2\n", "the thread is missing"),
        ("1:1:1:1:1:9:8:1\n", "it ends at 8, before its start at 9"),
    ] {
        assert_eq!(trace(HEADER, &format!("\n{record}")).refused(), format!("trace:3: {what}"));
    }
}
