use std::collections::BTreeMap;

use hopmap_model::{DelayModel, Dependency, Processor, ScheduledTask, Task, WorkUnit};
use hopmap_test_support::system_tests;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tests::{Case, any_case};

/// Three tasks of ranks: `a` and `c` on the first processor, `b` on the second, which sends to `c`.
fn small() -> (Schedule, TaskDag) {
    let program = TaskDag {
        tasks: [2.0, 0.1, 1.0]
            .into_iter()
            .zip([0, 1, 0])
            .map(|(work, rank)| Task { rank: Some(rank), work })
            .collect(),
        dependencies: [(0, 1, 0), (0, 2, 4), (1, 2, 7)]
            .map(|(source, destination, bytes)| Dependency { source, destination, bytes })
            .into(),
        names: vec!["a\"<".into(), "b".into(), "c".into()],
        unit: WorkUnit::Seconds,
        recorded_s: None,
    };
    let task = |processor, turn, start, finish, waits_for| ScheduledTask {
        processor,
        turn,
        start,
        finish,
        waits_for,
        process: Some(processor),
    };
    let schedule = Schedule {
        tasks: vec![task(0, 0, 0.0, 2.0, None), task(1, 0, 2.0, 2.1, Some(0)), task(0, 1, 2.8, 3.8, Some(1))],
        processors: ["host:0", "host:1"]
            .map(|name| Processor { name: name.into(), ..Processor::default() })
            .into(),
        names: program.names.clone(),
        model: DelayModel::Overlap,
        metrics: BTreeMap::new(),
        convergence: Vec::new(),
        complete: true,
    };
    (schedule, program)
}

fn text(format: ExportFormat) -> String {
    let (schedule, program) = small();
    write(&schedule, Some(&program), &ExportParams { format }).unwrap().text
}

#[test]
fn a_sch_maps_nodes_to_ranks_and_segments() {
    let lines = text(ExportFormat::Sch);
    for line in
        ["// node 2: rank 0, segment 1", " nodes ( 0 2 )", "// node 1: rank 1, segment 0", " nodes ( 1 )"]
    {
        assert!(lines.lines().any(|other| other == line), "{line}: {lines}");
    }
    let read = crate::formats::sch::Sch::read(lines.as_bytes()).unwrap();
    assert_eq!(
        read.processors.iter().map(|one| one.nodes.clone()).collect::<Vec<_>>(),
        [vec![0, 2], vec![1]]
    );
}

#[test]
fn names_are_node_numbers_only_if_they_are_numbers() {
    let numbers =
        |names: &[&str]| node_numbers(&names.iter().map(|&name| name.into()).collect::<Vec<_>>(), 2);
    assert_eq!(numbers(&["7", "3"]), [7, 3]);
    for names in [&["7", "x"][..], &["7", "7"], &["7", "07"], &["7", "-1"], &[]] {
        assert_eq!(numbers(names), [0, 1], "{names:?}");
    }
}

#[test]
fn perfetto_has_a_track_for_every_processor_and_a_flow_for_every_message_between_them() {
    let document: Value = serde_json::from_str(&text(ExportFormat::Perfetto)).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!((of("M").len(), of("X").len(), of("s").len(), of("f").len()), (5, 3, 2, 2));
    let last = of("X")[2];
    assert_eq!((&last["ts"], &last["dur"], &last["tid"]), (&2_800_000.into(), &1_000_000.into(), &1.into()));
    let arguments = serde_json::json!({
        "task": 2, "name": "c", "process": 0, "segment": 1, "waits_for": "b", "start": 2.8, "finish": 3.8
    });
    assert_eq!(last["args"], arguments);
    assert_eq!(last["cat"], "task,critical");
    // The task of 0.1 s ends exactly at its time: differences have no rounding noise.
    assert_eq!(of("X")[1]["dur"], 100_000);
    let (out, into) = (of("s")[1], of("f")[1]);
    assert_eq!(
        (&out["ts"], &into["ts"], &out["id"]),
        (&2_099_999.999_5.into(), &2_800_000.into(), &into["id"])
    );
    assert_eq!((&out["args"]["bytes"], &out["cat"]), (&7.into(), &"message,critical".into()));
}

#[test]
fn paje_events_are_in_the_order_of_time() {
    let trace = text(ExportFormat::Paje);
    assert!(
        trace.contains("\n4 0 p1 P m0 \"host:1\"\n") && trace.contains("\n6 2.8 S p0 c \"c\"\n"),
        "{trace}"
    );
    assert!(trace.contains("6 0 S p0 c \"a'<\""), "{trace}");
    assert!(trace.contains("\n8 2.1 L m0 p1 d k2\n") && trace.contains("\n9 2.8 L m0 p0 d k2\n"), "{trace}");
    let times = trace.lines().filter(|line| line.starts_with(['6', '7', '8', '9']));
    let times: Vec<f64> = times.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted() && times.len() == 10, "{times:?}");
}

#[test]
fn wfformat_has_the_program_and_its_execution() {
    let document: Value = serde_json::from_str(&text(ExportFormat::Wfformat)).unwrap();
    let workflow = &document["workflow"];
    // A name that the format does not allow is replaced.
    let task = &workflow["specification"]["tasks"][2];
    assert_eq!((&task["id"], &task["name"]), (&"task_0002".into(), &"c".into()));
    assert_eq!(task["parents"], serde_json::json!(["task_0000", "task_0001"]));
    assert_eq!(task["inputFiles"], serde_json::json!(["message_1", "message_2"]));
    assert_eq!(
        workflow["specification"]["files"][1],
        serde_json::json!({"id": "message_2", "sizeInBytes": 7})
    );
    let executed = &workflow["execution"]["tasks"][1];
    assert_eq!(executed["runtimeInSeconds"], 0.1);
    assert_eq!(executed["executedAt"], "1970-01-01T00:00:02.000000000Z");
    assert_eq!(executed["machines"], serde_json::json!(["host-1"]));
    assert_eq!(workflow["execution"]["makespanInSeconds"], 3.8);
}

#[test]
fn wfformat_round_trips() {
    let read = crate::formats::wfformat::read(text(ExportFormat::Wfformat).as_bytes(), 1.0).unwrap();
    let (_, program) = small();
    assert_eq!(read.names, ["task_0000", "task_0001", "task_0002"]);
    assert_eq!(read.dependencies, program.dependencies);
    let work = |dag: &TaskDag| dag.tasks.iter().map(|task| task.work).collect::<Vec<_>>();
    assert_eq!((work(&read), read.unit), (work(&program), program.unit));
}

#[test]
fn a_page_has_the_picture_and_its_tables() {
    let page = text(ExportFormat::Html);
    for part in [
        "<svg",
        "<h2>Critical path</h2>",
        "<td>c</td><td>host:0</td><td class=\"number\">0.7</td><td class=\"number\">2.8</td>",
        "<td>host:1</td><td class=\"number\">1</td><td class=\"number\">0</td><td class=\"number\">0.1</td>",
        "a&quot;&lt;",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains("http://www.w3.org/1999") && !page.contains("src="));
}

#[test]
fn formats_with_messages_need_the_program() {
    let (schedule, mut program) = small();
    for (format, needs) in [
        (ExportFormat::Sch, false),
        (ExportFormat::Svg, false),
        (ExportFormat::Html, false),
        (ExportFormat::Perfetto, true),
        (ExportFormat::Paje, true),
        (ExportFormat::Wfformat, true),
    ] {
        let written = write(&schedule, None, &ExportParams { format });
        match needs {
            true => assert!(written.unwrap_err().to_string().contains("needs the messages"), "{format:?}"),
            false => assert!(written.is_ok(), "{format:?}"),
        }
    }
    program.tasks.pop();
    let wrong = write(&schedule, Some(&program), &ExportParams { format: ExportFormat::Paje });
    assert!(wrong.unwrap_err().to_string().contains("3 tasks, but the program has 2"));
}

#[test]
fn an_inconsistent_schedule_is_rejected() {
    let (mut schedule, _) = small();
    schedule.tasks[2].start = 1.0;
    assert!(write(&schedule, None, &ExportParams { format: ExportFormat::Sch }).is_err());
}

/// The output of `pj_dump` for a trace: a line for every container, state and link.
#[test]
fn pajeng_reads_the_trace() {
    if !system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schedule.trace");
    std::fs::write(&path, text(ExportFormat::Paje)).unwrap();
    let output = std::process::Command::new("pj_dump").arg(&path).output().unwrap();
    let dump = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let count = |kind: &str| dump.lines().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("Container"), count("State"), count("Link")), (4, 3, 2), "{dump}");
    assert!(dump.contains("2.800000, 3.800000"), "{dump}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_text_of_every_schedule_is_well_formed(case in any_case(), named in any::<bool>()) {
        let Case { mut schedule, dag: program, .. } = case;
        if named {
            schedule.names = (0..schedule.tasks.len()).map(|task| format!("\u{1}\"\\<&>'é{task}")).collect();
        }
        let text = |format| write(&schedule, Some(&program), &ExportParams { format }).unwrap().text;
        for format in [ExportFormat::Perfetto, ExportFormat::Wfformat] {
            let text = text(format);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
        let document: Value = serde_json::from_str(&text(ExportFormat::Perfetto)).unwrap();
        let tasks = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
        prop_assert_eq!(tasks, schedule.tasks.len());
        let picture = text(ExportFormat::Svg);
        let parsed = roxmltree::Document::parse(&picture).unwrap();
        prop_assert_eq!(parsed.descendants().filter(|node| node.has_tag_name("rect")).count(), schedule.tasks.len() + schedule.processors.len());
        prop_assert!(!picture.contains("NaN") && !text(ExportFormat::Html).contains("NaN"));
        let sch = crate::formats::sch::Sch::read(text(ExportFormat::Sch).as_bytes()).unwrap();
        prop_assert_eq!(sch.processors.iter().map(|one| one.nodes.len()).sum::<usize>(), schedule.tasks.len());
        let paje = text(ExportFormat::Paje);
        prop_assert_eq!(paje.lines().filter(|line| line.starts_with("6 ")).count(), schedule.tasks.len());
    }
}
