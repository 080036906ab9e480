//! Profiles of Open MPI's monitoring, as Open MPI 4.1.4 writes them.

use std::fs;
use std::path::Path;

use hopmap_collectives::Algorithms;
use hopmap_model::SizeBin;
use hopmap_recording::{Choice, Description, Method, Recording, is_profiles, is_recording};

use crate::support::write;

const FIRST: &str = "# POINT TO POINT
E\t0\t1\t10000 bytes\t100 msgs sent\t5,0,0,15,10,2,1,100,0,0,0,0,0,1,0
I\t0\t1\t4340 bytes\t34 msgs sent
I\t0\t2\t0 bytes\t5 msgs sent\t5,0
# OSC
S\t0\t1\t64 bytes\t1 msgs sent
R\t0\t2\t32 bytes\t1 msgs sent
# COLLECTIVES
C\t0\t1\t4340 bytes\t34 msgs sent
D\tMPI_COMM_WORLD\tprocs: 0,1,2
O2A\t0\t0 bytes\t0 msgs sent
A2O\t0\t0 bytes\t0 msgs sent
A2A\t0\t204 bytes\t11 msgs sent
";

fn profiles(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let text = if name.ends_with(".0.prof") { FIRST } else { "# POINT TO POINT\n# OSC\n# COLLECTIVES\n" };
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn pairs(path: &Path, choice: Choice) -> Vec<(u32, u32, u64, u64)> {
    let graph = Recording::of_profiles(path, None).unwrap().task_graph(choice).unwrap().graph;
    graph.edges.iter().map(|edge| (edge.source, edge.destination, edge.messages, edge.bytes)).collect()
}

#[test]
fn messages_of_collectives_count_once_and_in_their_direction() {
    let folder = profiles(&["x.0.prof", "x.1.prof", "x.2.prof"]);
    let expand = Choice::Expand(Algorithms::default());
    assert_eq!(pairs(folder.path(), expand), [(0, 1, 135, 14404), (0, 2, 5, 0), (2, 0, 1, 32)]);
    assert_eq!(pairs(folder.path(), Choice::Ignore), [(0, 1, 101, 10064), (2, 0, 1, 32)]);
}

#[test]
fn a_histogram_covers_both_lines_of_a_pair() {
    let folder = profiles(&["x.0.prof", "x.1.prof", "x.2.prof"]);
    let recording = Recording::of_profiles(folder.path(), None).unwrap();
    let graph = recording.task_graph(Choice::Expand(Algorithms::default())).unwrap().graph;
    let of = |destination| graph.sizes.iter().filter(move |bin| bin.destination == destination);
    let sum = |of: fn(&SizeBin) -> u64, destination| -> u64 {
        graph.sizes.iter().filter(|bin| bin.destination == destination).map(of).sum()
    };
    assert_eq!(of(1).map(|bin| bin.at_least_bytes).collect::<Vec<_>>(), [0, 4, 8, 16, 32, 64, 4096]);
    assert_eq!((sum(|bin| bin.messages, 1), sum(|bin| bin.bytes, 1)), (135, 14404));
    assert_eq!(
        of(0).map(|bin| (bin.at_least_bytes, bin.messages, bin.bytes)).collect::<Vec<_>>(),
        [(32, 1, 32)]
    );
    assert_eq!(graph.collective_bytes, Some(4340.0));
    // The histogram includes messages of collective operations.
    assert!(recording.task_graph(Choice::Ignore).unwrap().graph.sizes.is_empty());
}

#[test]
fn a_folder_a_file_and_a_prefix_are_the_same() {
    let folder = profiles(&["x.0.prof", "x.1.prof", "x.2.prof", "notes"]);
    let all = pairs(folder.path(), Choice::Ignore);
    for name in ["x", "x.1.prof"] {
        let path = folder.path().join(name);
        assert!(is_profiles(&path));
        assert_eq!(pairs(&path, Choice::Ignore), all);
    }
    assert!(!is_profiles(&folder.path().join("notes")) && !is_profiles(&folder.path().join("none/x")));
    assert!(!is_recording(folder.path()));
}

#[test]
fn several_programs_are_not_mixed() {
    let folder = profiles(&["x.0.prof", "y.0.prof"]);
    let error = Recording::of_profiles(folder.path(), None).unwrap_err().to_string();
    assert!(error.ends_with("it has profiles of several programs or phases: x, y"), "{error}");
    assert!(Recording::of_profiles(&folder.path().join("y"), None).is_ok());
}

#[test]
fn missing_profiles_make_it_incomplete() {
    let folder = profiles(&["x.0.prof", "x.3.prof"]);
    let recording = Recording::of_profiles(folder.path(), None).unwrap();
    assert_eq!(recording.processes.len(), 4);
    assert_eq!(recording.incomplete.as_deref(), Some("no profile of rank 1 and another rank"));
    let error = Recording::of_profiles(folder.path(), Some(2)).unwrap_err().to_string();
    assert!(error.ends_with("there is traffic of rank 3, but the program had 2 ranks"), "{error}");
}

#[test]
fn a_recording_may_have_profiles() {
    let folder = profiles(&[]);
    fs::create_dir(folder.path().join("monitoring")).unwrap();
    write(folder.path(), &Description::new(Method::Openmpi, 3), &[]);
    fs::write(folder.path().join("monitoring/x.0.prof"), FIRST).unwrap();
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!((recording.method, recording.processes.len()), (Method::Openmpi, 3));
    assert_eq!(recording.incomplete.as_deref(), Some("no profile of rank 1 and another rank"));
    let files = hopmap_recording::files(folder.path()).unwrap();
    assert_eq!(
        files.iter().map(|(_, name)| &name[..]).collect::<Vec<_>>(),
        ["record.json", "monitoring/x.0.prof"]
    );
}

#[test]
fn wrong_lines_are_refused_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    for (line, problem) in [
        ("X\t0\t1\t5 bytes\t1 msgs sent", "not a line of a profile"),
        ("E\t1\t0\t5 bytes\t1 msgs sent", "the line is of rank 1, but the file of rank 0"),
        ("E\t0\t1048576\t5 bytes\t1 msgs sent", "rank"),
        ("E\t0\t1\t5\t1 msgs sent", "bytes"),
        ("E\t0\t1\t5 bytes\t1 msgs sent\t1,x", "`x`"),
    ] {
        fs::write(folder.path().join("x.0.prof"), format!("# POINT TO POINT\n{line}\n")).unwrap();
        let error = Recording::of_profiles(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("x.0.prof:2") && error.contains(problem), "{error}");
    }
}

/// Once a cut profile counted what was left of it, and an empty one nothing.
#[test]
fn cut_profiles_are_refused_and_empty_ones_are_missing() {
    let folder = profiles(&["x.0.prof", "x.1.prof", "x.2.prof"]);
    fs::write(folder.path().join("x.1.prof"), "").unwrap();
    let recording = Recording::of_profiles(folder.path(), None).unwrap();
    assert_eq!(recording.incomplete.as_deref(), Some("no profile of rank 1"));
    for end in [FIRST.find("# OSC").unwrap(), FIRST.find(" bytes").unwrap(), FIRST.len() - 1] {
        fs::write(folder.path().join("x.0.prof"), &FIRST[..end]).unwrap();
        let error = Recording::of_profiles(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("x.0.prof"), "{error}");
    }
}
