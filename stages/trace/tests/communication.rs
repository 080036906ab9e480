//! Everything that moves bytes: remote memory access, collective operations, other paradigms; and its
//! selection.

use crate::support::writer::Archive;
use crate::support::writer::Part::{Byte, Number};
use crate::support::{Listener, data, read_asked};
use hopmap_model::{
    CollectiveCalls, CollectiveOperation, CollectiveTable, Context, InputPath, Stage, TaskGraph,
};
use hopmap_trace::{Algorithm, Algorithms, Collectives, Otf2, Otf2Params, Phases, Select};

/// Type numbers of events.
const COLLECTIVE_END: u8 = 23;
const RMA_COLLECTIVE_END: u8 = 38;
const RMA_PUT: u8 = 46;
const RMA_GET: u8 = 47;
const RMA_ATOMIC: u8 = 48;
const COLLECTIVE_REQUEST: u8 = 85;
const COLLECTIVE_COMPLETE: u8 = 86;

/// Operations.
const BROADCAST: u8 = 1;
const ALL_TO_ALL_V: u8 = 9;
const ALL_REDUCE: u8 = 11;

fn read(
    archive: &Archive,
    ask: impl FnOnce(&mut Otf2Params),
    listener: &Listener,
) -> Result<TaskGraph, String> {
    let folder = tempfile::tempdir().unwrap();
    archive.write(folder.path());
    let mut params = messages_only(InputPath::new(folder.path()));
    ask(&mut params);
    let graph = read_asked(&params, &Context::new(2, None, listener));
    graph.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

/// Parameters to read an archive without its collective operations.
fn messages_only(path: InputPath) -> Otf2Params {
    Otf2Params { collectives: Collectives::Ignore, ..Otf2Params::new(path) }
}

type Row = (u32, u32, u64, u64);

fn rows(graph: &TaskGraph) -> Vec<Row> {
    graph.edges.iter().map(|edge| (edge.source, edge.destination, edge.messages, edge.bytes)).collect()
}

fn edges(archive: &Archive, ask: impl FnOnce(&mut Otf2Params)) -> Result<Vec<Row>, String> {
    read(archive, ask, &Listener::default()).map(|graph| rows(&graph))
}

fn expand(params: &mut Otf2Params) {
    params.collectives = Collectives::Expand;
}

/// Three ranks on locations 50, 7 and 9; communicator 0 is all of them, communicator 1 (`row`) ranks 2 and 0, in this
/// order; window 5 belongs to communicator 1. Regions 1 `main`, 2 `solve`, 3 `init`, 4 `MPI_Recv`.
fn three_ranks() -> Archive {
    let mut archive = Archive::default();
    archive.string("");
    archive.clock(1000).process(0).process(1).process(2);
    archive.group(4, 0, 0, &[50, 7, 9]).group(5, 1, 0, &[0, 1, 2]).group(5, 2, 0, &[2, 0]);
    archive.named_communicator(0, "MPI_COMM_WORLD", 1).named_communicator(1, "row", 2).window(5, 1);
    archive.region(1, "main").region(2, "solve").region(3, "init").region(4, "MPI_Recv");
    archive
}

#[test]
fn remote_memory_is_read_and_written_through_the_communicator_of_the_window() {
    let mut archive = three_ranks();
    // Rank 0 is member 1 of the row, rank 2 is member 0.
    archive.thread(50, 0).any(1, RMA_PUT, &[Number(5), Number(0), Number(100), Number(0)]).any(
        2,
        RMA_GET,
        &[Number(5), Number(0), Number(30), Number(1)],
    );
    archive.thread(7, 1);
    let atomic = [Number(5), Number(1), Byte(0), Number(8), Number(4), Number(2)];
    archive.thread(9, 2).any(1, RMA_ATOMIC, &atomic);
    assert_eq!(edges(&archive, |_| ()), Ok(vec![(0, 2, 2, 104), (2, 0, 2, 38)]));
}

#[test]
fn windows_are_translated_and_must_be_defined() {
    let put = [Number(3), Number(0), Number(1), Number(0)];
    let mut archive = three_ranks();
    archive.thread(50, 0).map_some_ids(8, &[(3, 5)]).any(1, RMA_PUT, &put);
    archive.thread(7, 1);
    archive.thread(9, 2);
    assert_eq!(edges(&archive, |_| ()), Ok(vec![(0, 2, 1, 1)]));
    let mut archive = three_ranks();
    archive.thread(50, 0).any(1, RMA_PUT, &put);
    archive.thread(7, 1);
    archive.thread(9, 2);
    let error = edges(&archive, |_| ()).unwrap_err();
    assert!(error.contains("window 3 is not defined"), "{error}");
}

#[test]
fn transfers_between_the_devices_of_a_process_do_not_count() {
    const CUDA: u8 = 14;
    let mut archive = three_ranks();
    archive.group_of(CUDA, 4, 7, 0, &[50, 51]).group_of(CUDA, 5, 8, 0, &[0, 1]);
    archive.communicator(9, 8).window(6, 9);
    archive.thread(50, 0).any(1, RMA_PUT, &[Number(6), Number(1), Number(64), Number(0)]);
    archive.thread(7, 1);
    archive.thread(9, 2);
    let listener = Listener::default();
    let graph = read(&archive, |_| (), &listener).unwrap();
    assert_eq!(rows(&graph), []);
    let lines = listener.lines.into_inner().unwrap();
    assert!(lines.iter().any(|line| line.contains("memory accesses within a process")), "{lines:?}");
}

#[test]
fn shmem_ranks_count_without_mpi_ranks() {
    const SHMEM: u8 = 13;
    let mut archive = Archive::default();
    archive.string("");
    archive.clock(1000).process(0).process(1);
    archive.group_of(SHMEM, 4, 0, 0, &[1, 0]).group_of(SHMEM, 5, 1, 0, &[0, 1]);
    archive.communicator(0, 1).window(0, 0);
    archive.thread(0, 0);
    archive.thread(1, 1).any(1, RMA_PUT, &[Number(0), Number(1), Number(8), Number(0)]);
    assert_eq!(edges(&archive, |_| ()), Ok(vec![(0, 1, 1, 8)]));
}

/// Every rank takes part in an operation on communicator 0.
fn collective(archive: &mut Archive, operation: u8, sizes: [(u64, u64); 3]) {
    for ((location, process), (sent, received)) in [(50, 0), (7, 1), (9, 2)].into_iter().zip(sizes) {
        let parts = [Byte(operation), Number(0), Number(0), Number(sent), Number(received)];
        archive.thread(location, process).any(10, COLLECTIVE_END, &parts);
    }
}

#[test]
fn collective_operations_count_if_expanded() {
    let mut archive = three_ranks();
    collective(&mut archive, BROADCAST, [(100, 100); 3]);
    assert_eq!(edges(&archive, |_| ()), Ok(vec![]));
    // A binomial tree from rank 0.
    assert_eq!(edges(&archive, expand), Ok(vec![(0, 1, 1, 100), (0, 2, 1, 100)]));
    let listener = Listener::default();
    read(&archive, |_| (), &listener).unwrap();
    let lines = listener.lines.into_inner().unwrap();
    assert!(
        lines.iter().any(|line| line.contains("collective operations, which are not counted")),
        "{lines:?}"
    );
}

#[test]
fn collective_operations_count_unless_told_otherwise() {
    let mut archive = three_ranks();
    collective(&mut archive, ALL_REDUCE, [(24, 24); 3]);
    let default = |params: &mut Otf2Params| *params = Otf2Params::new(params.path.clone());
    let counted = edges(&archive, default).unwrap();
    assert_eq!(counted, edges(&archive, expand).unwrap());
    assert_ne!(counted, edges(&archive, |_| ()).unwrap());
}

fn keep(params: &mut Otf2Params) {
    params.collectives = Collectives::Keep;
}

fn table(archive: &Archive, ask: impl FnOnce(&mut Otf2Params)) -> CollectiveTable {
    read(archive, ask, &Listener::default()).unwrap().collectives
}

#[test]
fn collective_operations_are_kept_with_and_without_their_messages() {
    let mut archive = three_ranks();
    collective(&mut archive, BROADCAST, [(100, 100); 3]);
    assert_eq!(table(&archive, |_| ()), CollectiveTable::default());
    let calls = CollectiveCalls {
        communicator: 0,
        operation: CollectiveOperation::Broadcast,
        root: Some(0),
        bytes: 100,
        calls: 1,
        uneven: 0,
    };
    let kept = CollectiveTable { communicators: vec![vec![0, 1, 2]], calls: vec![calls] };
    assert_eq!(table(&archive, keep), kept);
    assert_eq!(table(&archive, expand), kept);
    let listener = Listener::default();
    assert_eq!(rows(&read(&archive, keep, &listener).unwrap()), []);
    let lines = listener.lines.into_inner().unwrap();
    let expected = "collective operations, which are kept and not counted as messages: 1";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[test]
fn blocks_of_different_lengths_are_kept_with_their_mean() {
    let mut archive = three_ranks();
    // Each of nine pairs has 12 / 9 bytes.
    collective(&mut archive, ALL_TO_ALL_V, [(12, 0), (0, 6), (0, 6)]);
    let listener = Listener::default();
    let kept = read(&archive, keep, &listener).unwrap().collectives.calls;
    assert_eq!(
        kept.iter().map(|calls| (calls.bytes, calls.calls, calls.uneven)).collect::<Vec<_>>(),
        [(2, 1, 1)]
    );
    let lines = listener.lines.into_inner().unwrap();
    let expected =
        "collective operations with blocks of different lengths, which are kept with the mean length: 1";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[test]
fn operations_use_the_chosen_algorithm() {
    let mut archive = three_ranks();
    collective(&mut archive, ALL_REDUCE, [(24, 24); 3]);
    let chosen = |allreduce| {
        move |params: &mut Otf2Params| {
            expand(params);
            params.algorithms = Algorithms { allreduce: Some(allreduce), ..Algorithms::default() };
        }
    };
    // 2 of 3 blocks twice around the ring, eight bytes each.
    let ring = edges(&archive, chosen(Algorithm::Ring)).unwrap();
    assert_eq!(ring, [(0, 1, 4, 32), (1, 2, 4, 32), (2, 0, 4, 32)]);
    let doubling = edges(&archive, chosen(Algorithm::RecursiveDoubling));
    assert_eq!(doubling, edges(&archive, expand));
}

#[test]
fn communicators_that_cannot_use_an_algorithm_follow_the_rules_of_mpich() {
    const ALL_GATHER: u8 = 6;
    let mut archive = three_ranks();
    collective(&mut archive, ALL_GATHER, [(6, 6); 3]);
    let chosen = |params: &mut Otf2Params| {
        expand(params);
        params.algorithms.allgather = Some(Algorithm::NeighbourExchange);
    };
    let listener = Listener::default();
    assert_eq!(rows(&read(&archive, chosen, &listener).unwrap()), edges(&archive, expand).unwrap());
    let lines = listener.lines.into_inner().unwrap();
    let expected = "collective operations with too few bytes or processes for the chosen algorithm, which follow the rules: 1";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[test]
fn algorithms_are_checked_before_reading() {
    let check = |ask: &dyn Fn(&mut Otf2Params)| {
        let mut params = messages_only(InputPath::new("nowhere"));
        ask(&mut params);
        Otf2::check(&params).map_err(|error| error.to_string())
    };
    let ring = Algorithms { bcast: Some(Algorithm::Ring), ..Algorithms::default() };
    let error = check(&|params| {
        expand(params);
        params.algorithms = ring;
    });
    assert_eq!(error, Err("`ring` does not implement `bcast`".to_owned()));
    let error = check(&|params| params.algorithms.bcast = Some(Algorithm::Chain));
    assert_eq!(error, Err("`algorithms` has no effect without `collectives = \"expand\"`".to_owned()));
}

#[test]
fn irregular_operations_are_combined() {
    let mut archive = three_ranks();
    // Rank 0 sends 12 bytes, the others none; ranks 1 and 2 receive 6 each.
    collective(&mut archive, ALL_TO_ALL_V, [(12, 0), (0, 6), (0, 6)]);
    assert_eq!(edges(&archive, expand), Ok(vec![(0, 1, 1, 6), (0, 2, 1, 6)]));
}

#[test]
fn operations_with_a_missing_record_are_logged() {
    let mut archive = three_ranks();
    let parts = [Byte(ALL_TO_ALL_V), Number(0), Number(0), Number(4), Number(4)];
    archive.thread(50, 0).any(10, COLLECTIVE_END, &parts);
    archive.thread(7, 1);
    archive.thread(9, 2).any(10, COLLECTIVE_END, &parts);
    let listener = Listener::default();
    assert_eq!(rows(&read(&archive, expand, &listener).unwrap()), []);
    let lines = listener.lines.into_inner().unwrap();
    assert!(lines.iter().any(|line| line.contains("different records in their processes")), "{lines:?}");
}

#[test]
fn operations_counted_by_one_record_are_logged_if_others_lack_it() {
    let mut archive = three_ranks();
    let parts = [Byte(ALL_REDUCE), Number(0), Number(u64::from(u32::MAX)), Number(8), Number(8)];
    archive.thread(50, 0).any(10, COLLECTIVE_END, &parts).any(11, COLLECTIVE_END, &parts);
    archive.thread(7, 1).any(10, COLLECTIVE_END, &parts);
    archive.thread(9, 2).any(10, COLLECTIVE_END, &parts).any(11, COLLECTIVE_END, &parts);
    let listener = Listener::default();
    read(&archive, expand, &listener).unwrap();
    let lines = listener.lines.into_inner().unwrap();
    let expected = "warning: collective operations that some of their processes did not record, which count as recorded by one process: 1";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[test]
fn nonblocking_operations_match_in_the_order_of_their_starts() {
    let mut archive = three_ranks();
    let complete = |bytes, request| {
        [Byte(ALL_TO_ALL_V), Number(0), Number(0), Number(bytes), Number(bytes), Number(request)]
    };
    // Of two operations of 3 and 300 bytes, a third for each rank, rank 1 completes the second first.
    for (location, process, order) in [(50, 0, [1, 2]), (7, 1, [2, 1]), (9, 2, [1, 2])] {
        let thread = archive.thread(location, process);
        thread.any(1, COLLECTIVE_REQUEST, &[Number(1)]).any(2, COLLECTIVE_REQUEST, &[Number(2)]);
        for request in order {
            let bytes = if request == 1 { 3 } else { 300 };
            thread.any(3, COLLECTIVE_COMPLETE, &complete(bytes, request));
        }
    }
    let sizes = |params: &mut Otf2Params| {
        expand(params);
        params.sizes = true;
    };
    let graph = read(&archive, sizes, &Listener::default()).unwrap();
    let bins: Vec<_> = graph.sizes.iter().map(|bin| (bin.at_least_bytes, bin.messages)).collect();
    assert_eq!(bins, [[(1, 1), (64, 1)]; 6].concat());
}

#[test]
fn collective_operations_on_windows_use_their_communicator() {
    let mut archive = three_ranks();
    for (location, process) in [(50, 0), (9, 2)] {
        let parts = [Byte(ALL_REDUCE), Number(0), Number(5), Number(0), Number(8), Number(8)];
        archive.thread(location, process).any(1, RMA_COLLECTIVE_END, &parts);
    }
    archive.thread(7, 1);
    assert_eq!(edges(&archive, expand), Ok(vec![(0, 2, 1, 8), (2, 0, 1, 8)]));
    // The communicator of the window is the row, ranks 2 and 0.
    let kept = table(&archive, keep);
    assert_eq!((kept.communicators, kept.calls.len()), (vec![vec![2, 0]], 1));
}

/// Rank 0 sends to rank 1: 10 bytes in `main` at 0.1 s, 20 in `init` at 0.2 s, 400 in `solve` at 0.4 s; and
/// 800 bytes, in `init` called by `solve`, at 0.5 s to rank 2 through the row. It waits in `MPI_Recv` from
/// 0.6 s to 0.7 s, and ends at 1 s. The trace starts at 10 s.
fn program() -> Archive {
    let mut archive = three_ranks();
    let at = |milliseconds: u64| 10_000 + milliseconds;
    archive
        .thread(50, 0)
        .enter(at(0), 1)
        .send(at(100), 0, 1, 10)
        .enter(at(150), 3)
        .send(at(200), 0, 1, 20)
        .leave(at(250), 3)
        .enter(at(300), 2)
        .send(at(400), 0, 1, 400)
        .enter(at(450), 3)
        .send(at(500), 1, 0, 800)
        .leave(at(550), 3)
        .enter(at(600), 4)
        .leave(at(700), 4)
        .leave(at(900), 2)
        .leave(at(1000), 1);
    archive.thread(7, 1);
    archive.thread(9, 2);
    archive
}

fn select(select: Select) -> (Vec<Row>, f64) {
    let graph = read(&program(), |params| params.select = select, &Listener::default()).unwrap();
    (rows(&graph), graph.processes[0].compute_s.unwrap())
}

#[test]
fn a_selection_restricts_what_counts() {
    let all = (vec![(0, 1, 3, 430), (0, 2, 1, 800)], 0.9);
    assert_eq!(select(Select::default()), all);
    // Selects everything, but through the code for selections.
    assert_eq!(select(Select { from_s: Some(0.0), ..Select::default() }), all);
    let window = Select { from_s: Some(0.2), to_s: Some(0.65), ..Select::default() };
    assert_eq!(select(window), (vec![(0, 1, 2, 420), (0, 2, 1, 800)], 0.4));
    let solve = Select { regions: vec!["solve".into()], ..Select::default() };
    assert_eq!(select(solve), (vec![(0, 1, 1, 400), (0, 2, 1, 800)], 0.5));
    let init = Select { regions: vec!["init".into()], ..Select::default() };
    assert_eq!(select(init), (vec![(0, 1, 1, 20), (0, 2, 1, 800)], 0.2));
    let row = Select { communicators: vec!["row".into()], ..Select::default() };
    assert_eq!(select(row), (vec![(0, 2, 1, 800)], 0.9));
    let number = Select { communicators: vec!["0".into()], ..Select::default() };
    assert_eq!(select(number).0, [(0, 1, 3, 430)]);
    let lengths = Select { min_bytes: Some(20), max_bytes: Some(400), ..Select::default() };
    assert_eq!(select(lengths).0, [(0, 1, 2, 420)]);
}

#[test]
fn unknown_names_are_rejected() {
    let refused = |select: Select| edges(&program(), |params| params.select = select).unwrap_err();
    let region = Select { regions: vec!["sovle".into()], ..Select::default() };
    assert_eq!(refused(region), "the trace does not contain a region `sovle`");
    let communicator = Select { communicators: vec!["column".into()], ..Select::default() };
    let expected = "the trace does not contain a communicator with name or number `column`";
    assert_eq!(refused(communicator), expected);
}

#[test]
fn phases_of_regions_have_a_matrix_each() {
    let phases = Phases::Regions(vec!["solve".into(), "init".into()]);
    let graph = read(&program(), |params| params.phases = Some(phases), &Listener::default()).unwrap();
    let bytes: Vec<Vec<u64>> =
        graph.phases.iter().map(|phase| phase.edges.iter().map(|edge| edge.bytes).collect()).collect();
    assert_eq!(bytes, [vec![10], vec![400], vec![20, 800]]);
    let compute: Vec<f64> = graph.phases.iter().map(|phase| phase.compute_s[0].unwrap()).collect();
    assert_eq!(compute, [0.3, 0.4, 0.2]);
    assert_eq!(rows(&graph), [(0, 1, 3, 430), (0, 2, 1, 800)]);
}

#[test]
fn phases_of_time_have_a_matrix_each() {
    let ask = |params: &mut Otf2Params| params.phases = Some(Phases::Seconds(0.4));
    let graph = read(&program(), ask, &Listener::default()).unwrap();
    let seen: Vec<_> = graph
        .phases
        .iter()
        .map(|phase| {
            (phase.begin_s.unwrap(), phase.end_s.unwrap(), phase.edges.len(), phase.compute_s[0].unwrap())
        })
        .collect();
    assert_eq!(seen, [(0.0, 0.4, 1, 0.4), (0.4, 0.8, 2, 0.3), (0.8, 1.0, 0, 0.2)]);
    let many = |params: &mut Otf2Params| params.phases = Some(Phases::Seconds(1e-3));
    assert_eq!(read(&program(), many, &Listener::default()).unwrap().phases.len(), 1000);
}

#[test]
fn lengths_are_counted_per_pair() {
    let graph = read(&program(), |params| params.sizes = true, &Listener::default()).unwrap();
    let bins: Vec<_> = graph
        .sizes
        .iter()
        .map(|bin| (bin.source, bin.destination, bin.at_least_bytes, bin.messages, bin.bytes))
        .collect();
    assert_eq!(bins, [(0, 1, 8, 1, 10), (0, 1, 16, 1, 20), (0, 1, 256, 1, 400), (0, 2, 512, 1, 800)]);
}

/// Real archives: FT communicates only with collective operations (`ALLTOALL` of 32,768 bytes by 16 ranks).
#[test]
fn collective_operations_of_real_programs_are_expanded() {
    let Some(traces) = data() else { return };
    let path = traces.join("eztrace-ft.W.16");
    let mut params = Otf2Params::new(InputPath::new(&path));
    expand(&mut params);
    let listener = Listener::default();
    let graph = read_asked(&params, &Context::new(2, None, &listener)).unwrap();
    assert_eq!(graph.edges.len(), 16 * 15);
    assert_eq!((graph.messages(), graph.bytes()), (2149, 62_916_300));
    let lines = listener.lines.into_inner().unwrap();
    let summary = lines.iter().find(|line| line.contains("expanded to")).unwrap();
    eprintln!("{summary}: {} messages, {} bytes", graph.messages(), graph.bytes());
    let of = |operation| graph.collectives.calls.iter().filter(move |calls| calls.operation == operation);
    let alltoall: Vec<_> =
        of(CollectiveOperation::AllToAll).map(|calls| (calls.bytes, calls.uneven)).collect();
    assert_eq!(alltoall, [(32_768, 0)]);
    assert_eq!(graph.collectives.communicators, [(0..16).collect::<Vec<u32>>()]);
    // The same operations are kept without their messages.
    keep(&mut params);
    let kept = read_asked(&params, &Context::new(2, None, &Listener::default())).unwrap();
    assert_eq!((kept.edges.len(), kept.collectives), (0, graph.collectives));
}
