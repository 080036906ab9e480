//! The table of messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::writer::Archive;
use crate::support::writer::Part::{Byte, Number};
use crate::support::{Copy, Listener, OTHER, archives, read_with, sample};
use hopmap_artifact::Columns;
use hopmap_model::{Context, Events, InputPath, Inputs, Outcome, Stage};
use hopmap_trace::{EventsParams, ListEvents, Reader, Select};

fn list_with(params: EventsParams, cx: &Context<'_>) -> miette::Result<Events> {
    ListEvents::check(&params)?;
    match ListEvents::run(params, Inputs::new(), cx)? {
        Outcome::Done(outputs) => {
            Ok(outputs.get("events").unwrap().downcast_ref::<Events>().unwrap().clone())
        }
        other => panic!("{other:?}"),
    }
}

/// The messages of an archive; both readers must return the same bytes or the same error.
fn list(path: &Path, select: &Select) -> Result<Columns, String> {
    let by = |reader, threads| {
        let params =
            EventsParams { reader, select: select.clone(), ..EventsParams::new(InputPath::new(path)) };
        let events = list_with(params, &Context::new(threads, None, &Listener::default()));
        events.map_err(|error| error.to_string().replace(&format!("{}/", path.display()), ""))
    };
    let events = by(Reader::Native, 2);
    let other = by(OTHER, 1);
    let bytes = |events: &Events| fs::read(events.table()).unwrap();
    assert_eq!(events.as_ref().map(bytes), other.as_ref().map(bytes));
    let events = events?;
    let columns = Columns::read(events.table()).unwrap();
    assert_eq!(columns.rows() as u64, events.rows());
    Ok(columns)
}

/// Three ranks; rank 0 sends to 1 from `solve`, which `main` called, and accesses memory of 2.
fn program() -> Archive {
    let mut archive = Archive::default();
    archive.string("");
    archive.clock(1000).process(0).process(1).process(2);
    archive.group(4, 0, 0, &[50, 7, 9]).group(5, 1, 0, &[0, 1, 2]).group(5, 2, 0, &[2, 0]);
    archive.named_communicator(0, "MPI_COMM_WORLD", 1).communicator(1, 2).window(5, 1);
    archive.region(1, "main").region(2, "solve").region(4, "MPI_Send");
    let atomic = [Number(5), Number(0), Byte(0), Number(8), Number(4), Number(2)];
    archive
        .thread(50, 0)
        .enter(1000, 1)
        .enter(1100, 2)
        .enter(1150, 4)
        .send(1200, 0, 1, 400)
        .leave(1250, 4)
        .leave(1300, 2)
        .any(1400, 48, &atomic)
        .leave(2000, 1);
    archive.thread(7, 1).isend(1500, 0, 0, 7);
    archive.thread(9, 2);
    archive
}

fn listed(archive: &Archive, select: &Select) -> Result<Columns, String> {
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    list(folder.path(), select)
}

#[test]
fn a_row_describes_a_message() {
    let table = listed(&program(), &Select::default()).unwrap();
    let names = ["time_s", "source", "destination", "tag", "bytes", "communicator", "operation", "region"];
    assert_eq!(table.names(), names);
    // Location 7 comes before location 50.
    assert_eq!(table.column::<Option<f64>>("time_s").unwrap(), [0.5, 0.2, 0.4, 0.4].map(Some));
    assert_eq!(table.column::<u32>("source").unwrap(), [1, 0, 0, 2]);
    assert_eq!(table.column::<u32>("destination").unwrap(), [0, 1, 2, 0]);
    assert_eq!(table.column::<Option<u32>>("tag").unwrap(), [Some(7), Some(7), None, None]);
    assert_eq!(table.column::<u64>("bytes").unwrap(), [7, 400, 8, 4]);
    assert_eq!(
        table.column::<String>("communicator").unwrap(),
        ["MPI_COMM_WORLD", "MPI_COMM_WORLD", "1", "1"]
    );
    let text =
        |name| table.column::<Option<String>>(name).unwrap().into_iter().map(Option::unwrap_or_default);
    assert_eq!(text("operation").collect::<Vec<_>>(), ["", "MPI_Send", "", ""]);
    assert_eq!(text("region").collect::<Vec<_>>(), ["", "solve", "main", "main"]);
}

#[test]
fn only_selected_messages_are_listed() {
    let bytes = |select: Select| listed(&program(), &select).unwrap().column::<u64>("bytes").unwrap();
    let regions = Select { regions: vec!["solve".into()], ..Select::default() };
    assert_eq!(bytes(regions), [400]);
    assert_eq!(bytes(Select { from_s: Some(0.4), ..Select::default() }), [7, 8, 4]);
    assert_eq!(bytes(Select { min_bytes: Some(5), max_bytes: Some(10), ..Select::default() }), [7, 8]);
    assert_eq!(bytes(Select { communicators: vec!["1".into()], ..Select::default() }), [8, 4]);
    let nothing = listed(&program(), &Select { min_bytes: Some(1 << 40), ..Select::default() }).unwrap();
    assert_eq!((nothing.rows(), nothing.names().len()), (0, 8));
}

#[test]
fn messages_to_invalid_ranks_are_rejected() {
    let mut archive = program();
    archive.thread(9, 2).send(1, 0, 3, 1);
    let message = "event 1 of location 9 in `trace/9.evt`: the receiver is rank 3 of communicator 0, which has only 3 members";
    assert_eq!(listed(&archive, &Select::default()).err().unwrap(), message);
}

#[test]
fn a_table_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    program().write(folder.path());
    let archive = InputPath::new(folder.path());
    let params = EventsParams::new(archive);
    let nowhere = folder.path().join("nowhere");
    let error = list_with(params, &Context::detached().with_scratch(&nowhere)).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("nowhere"), "{error}");
}

/// Checks that the rows of an archive add up to its task graph.
fn assert_sums(path: &Path) {
    let table = list(path, &Select::default()).unwrap();
    let mut sums: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    let pairs =
        table.column::<u32>("source").unwrap().into_iter().zip(table.column::<u32>("destination").unwrap());
    for (pair, bytes) in pairs.zip(table.column::<u64>("bytes").unwrap()) {
        let sum = sums.entry(pair).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    }
    let graph = read_with(path, Reader::Native, &Context::detached()).unwrap();
    let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.pair(), (edge.messages, edge.bytes))).collect();
    assert_eq!(sums.into_iter().collect::<Vec<_>>(), edges, "{}", path.display());
}

#[test]
fn the_rows_of_the_samples_add_up_to_their_task_graphs() {
    assert_sums(&sample("rows-columns-16"));
    assert_sums(&sample("lammps-melt-16"));
}

#[test]
fn the_rows_of_real_archives_add_up_to_their_task_graphs() {
    for path in archives() {
        assert_sums(&path);
    }
}

#[test]
fn an_interrupt_leaves_no_files_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let copy = Copy::of(&sample("rows-columns-16"));
    let params = EventsParams { reader: Reader::Native, ..EventsParams::new(InputPath::new(copy.path())) };
    let listener = Listener { stop_after: Some(3), ..Listener::default() };
    let cx = Context::new(2, None, &listener).with_scratch(scratch.path());
    assert_eq!(list_with(params.clone(), &cx).unwrap_err().to_string(), "stopped after 3 of 16 locations");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    let events = list_with(params, &Context::detached().with_scratch(scratch.path())).unwrap();
    assert!(events.table().starts_with(scratch.path()));
    drop(events);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
