//! The body of tests and fuzz targets for files with arbitrary contents.

use hopmap_model::TaskDag;
use hopmap_schedule::formats::dot::{Dot, DotOptions};
use hopmap_schedule::formats::grf::Grf;
use hopmap_schedule::formats::ini::SchIni;
use hopmap_schedule::formats::procs::Procs;
use hopmap_schedule::formats::sch::Sch;
use hopmap_schedule::formats::{recognise, stg, wfformat};
use hopmap_text::FileError;

/// Kinds of files.
pub(crate) const KINDS: usize = 7;

/// Reads a file as one kind. Returns whether that succeeded; panics if the error has no message or the result is inconsistent.
pub(crate) fn file(kind: usize, bytes: &[u8]) -> bool {
    let _ = recognise(bytes);
    match kind % KINDS {
        0 => checked(Grf::read(bytes)).is_some_and(|graph| {
            assert_eq!(Grf::read(graph.write().as_bytes()).as_ref(), Ok(&graph));
            dag(graph.task_dag(1.0))
        }),
        1 => checked(Sch::read(bytes)).is_some_and(|sch| {
            assert_eq!(Sch::read(sch.write(|_| Some("a\nb".into())).as_bytes()).as_ref(), Ok(&sch));
            true
        }),
        2 => checked(Procs::read(bytes)).is_some_and(|procs| {
            assert_eq!(procs.hosts.len(), procs.durations.len());
            procs.durations.iter().chain([&procs.size]).all(|number| number.is_finite() && *number > 0.0)
        }),
        3 => checked(SchIni::read(bytes)).is_some(),
        4 => {
            let options = DotOptions { node_weight: None, edge_weight: None, scale: 1.0 };
            dag(Dot::read(bytes, &options).map(|dot| dot.dag))
        }
        5 => dag(stg::read(bytes, 1.0)),
        _ => dag(wfformat::read(bytes, 1.0)),
    }
}

/// The result of reading, or none after a proper error.
fn checked<T>(read: Result<T, FileError>) -> Option<T> {
    if let Err(error) = &read {
        assert!(!error.problem.is_empty() && error.help.is_some() && error.line != Some(0), "{error:?}");
    }
    read.ok()
}

fn dag(read: Result<TaskDag, FileError>) -> bool {
    checked(read).is_some_and(|dag| {
        dag.check().unwrap();
        assert!(!dag.tasks.is_empty() && dag.tasks.iter().all(|task| task.rank.is_none()));
        true
    })
}
