//! Truncated archives, and the events before the damage.

use std::fs;

use crate::support::{Copy, Listener, graph, sample};
use hopmap_model::{Context, Events, InputPath, Inputs, Outcome, Stage, TaskDag, TaskGraph};
use hopmap_trace::{Collectives, Dag, DagParams, EventsParams, ListEvents, Otf2, Otf2Params, Reader};

/// Marks in an event file.
const END_OF_BUFFER: u8 = 1;
const END_OF_FILE: u8 = 2;

fn params(copy: &Copy) -> Otf2Params {
    let archive = InputPath::new(copy.path());
    Otf2Params { allow_truncated: true, collectives: Collectives::Ignore, ..Otf2Params::new(archive) }
}

fn read(copy: &Copy) -> (Result<TaskGraph, String>, Vec<String>) {
    let listener = Listener::default();
    let graph = graph::<Otf2>(params(copy), &Context::new(2, None, &listener));
    (graph.map_err(|error| error.to_string()), listener.lines.into_inner().unwrap())
}

/// A copy of a sample and the event file of one of its locations.
fn copy() -> (Copy, std::path::PathBuf) {
    let copy = Copy::of(&sample("rows-columns-16"));
    let file = copy.files().into_iter().rfind(|file| file.extension().is_some_and(|ending| ending == "evt"));
    (copy, file.unwrap())
}

#[test]
fn events_before_the_damage_count() {
    let (copy, file) = copy();
    let bytes = fs::read(&file).unwrap();
    let (complete, lines) = read(&copy);
    let complete = complete.unwrap();
    assert!(!lines.iter().any(|line| line.contains("truncated")));
    let mut before = 0;
    // A file is complete from the mark of its end, the second last byte.
    assert_eq!(bytes[bytes.len() - 2..], [END_OF_FILE, END_OF_BUFFER]);
    let steps = (0..bytes.len() - 1).step_by(if hopmap_test_support::soak() { 1 } else { 37 });
    for length in steps {
        fs::write(&file, &bytes[..length]).unwrap();
        let (cut, lines) = read(&copy);
        let messages = cut.unwrap().messages();
        assert!(before <= messages && messages <= complete.messages(), "{length}: {messages}");
        before = messages;
        let warnings = lines.iter().filter(|line| line.contains("truncated locations, of which only"));
        assert_eq!(warnings.count(), 1, "{length}: {lines:?}");
    }
    assert!(before > complete.messages() * 9 / 10);
    let refused = copy.refused();
    assert!(
        refused.contains("is damaged at byte") && refused.ends_with("the file is truncated"),
        "{refused}"
    );
}

#[test]
fn messages_and_tasks_before_the_damage_are_kept() {
    let (copy, file) = copy();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let archive = || InputPath::new(copy.path());
    let cx = Context::detached();
    let messages = EventsParams { allow_truncated: true, ..EventsParams::new(archive()) };
    let Outcome::Done(outputs) = ListEvents::run(messages, Inputs::new(), &cx).unwrap() else { panic!() };
    let listed: &Events = outputs.get("events").unwrap().downcast_ref().unwrap();
    let counted = read(&copy).0.unwrap().messages();
    assert!(counted > 500 && listed.rows() == counted, "{} of {counted}", listed.rows());
    let tasks = DagParams { allow_truncated: true, ..DagParams::new(archive()) };
    let Outcome::Done(outputs) = Dag::run(tasks, Inputs::new(), &cx).unwrap() else { panic!() };
    let dag: &TaskDag = outputs.get("task-dag").unwrap().downcast_ref().unwrap();
    assert!(dag.ranks() == 16 && dag.tasks.len() > 300 && dag.dependencies.len() > 300);
    assert!(Dag::run(DagParams::new(archive()), Inputs::new(), &cx).is_err());
}

#[test]
fn a_location_without_its_file_is_logged() {
    let (copy, file) = copy();
    fs::remove_file(&file).unwrap();
    let (graph, lines) = read(&copy);
    assert_eq!(graph.unwrap().ranks(), 16);
    assert!(lines.contains(&"warning: locations without an event file, which are not counted: 1".to_owned()));
}

#[test]
fn definitions_must_be_complete() {
    let (copy, _) = copy();
    let definitions = copy.files().into_iter().find(|file| file.ends_with("eztrace_log.def"));
    let definitions = definitions.unwrap();
    let bytes = fs::read(&definitions).unwrap();
    fs::write(&definitions, &bytes[..bytes.len() / 2]).unwrap();
    assert!(read(&copy).0.is_err());
}

#[test]
fn libotf2_does_not_read_truncated_archives() {
    let (copy, _) = copy();
    let error = Otf2::check(&Otf2Params { reader: Reader::Libotf2, ..params(&copy) }).unwrap_err();
    assert_eq!(error.to_string(), "`allow_truncated` cannot be combined with `reader = \"libotf2\"`");
}
