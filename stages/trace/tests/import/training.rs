//! Traces of training jobs, with messages computed by hand.

use hopmap_trace::Format;

use super::flight_recorder::{dump, entry, flight_recorder};
use super::jobs::{program, refused, shown, sums};
use super::kineto::{kineto, kineto_rank};
use super::{Files, packed};

/// A field of a protobuf message: its number with a varint, or with bytes.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    while value >= 0x80 {
        digits.push(value as u8 | 0x80);
        value >>= 7;
    }
    digits.push(value as u8);
    digits
}

/// Fields of values of attributes in `et_def.proto`.
const INT64: u64 = 9;
const UINT64: u64 = 13;

fn attribute(name: &str, field: u64, value: u64) -> Vec<u8> {
    bytes(10, &[bytes(1, name.as_bytes()), number(field, value)].concat())
}

fn text(name: &str, value: &str) -> Vec<u8> {
    bytes(10, &[bytes(1, name.as_bytes()), bytes(29, value.as_bytes())].concat())
}

const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// A node that depends on others.
fn node(id: u64, kind: u64, after: &[u64], microseconds: u64, attributes: &[Vec<u8>]) -> Vec<u8> {
    let after = after.iter().map(|id| number(5, *id)).collect::<Vec<_>>().concat();
    [number(1, id), number(3, kind), after, number(7, microseconds), attributes.concat()].concat()
}

fn collective(id: u64, after: &[u64], kind: u64, size: u64, group: &str) -> Vec<u8> {
    let named = if group.is_empty() { Vec::new() } else { text("pg_name", group) };
    let attributes = [attribute("comm_type", INT64, kind), attribute("comm_size", INT64, size), named];
    node(id, COLLECTIVE, after, 0, &attributes)
}

fn message(id: u64, kind: u64, after: &[u64], (source, destination): (u64, u64), size: u64) -> Vec<u8> {
    let attributes = [
        attribute("comm_src", UINT64, source),
        attribute("comm_dst", UINT64, destination),
        attribute("comm_size", UINT64, size),
        attribute("comm_tag", UINT64, 3),
    ];
    node(id, kind, after, 0, &attributes)
}

fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    let metadata = bytes(1, b"0.0.4");
    let framed = |message: &Vec<u8>| [varint(message.len() as u64), message.clone()].concat();
    std::iter::once(&metadata).chain(nodes).flat_map(framed).collect()
}

/// Four ranks compute, reduce in pairs while they compute again, and pass a message on.
fn chakra_ranks() -> Vec<Vec<u8>> {
    (0..4u64)
        .map(|rank| {
            let group = if rank < 2 { "1" } else { "2" };
            trace(&[
                node(10, COMPUTE, &[], 100, &[]),
                collective(11, &[10], 0, 1000, group),
                node(12, COMPUTE, &[10], 50, &[]),
                node(13, COMPUTE, &[11, 12], 7, &[]),
                message(14, SEND, &[13], (rank, (rank + 1) % 4), 64),
                message(15, RECEIVE, &[13], ((rank + 3) % 4, rank), 64),
                collective(16, &[14, 15], 2, 10, ""),
            ])
        })
        .collect()
}

fn chakra_of(ranks: &[Vec<u8>], groups: &str) -> Files {
    let names: Vec<String> = (0..ranks.len()).map(|rank| format!("step.{rank}.et")).collect();
    let mut files: Vec<(&str, &[u8])> =
        names.iter().map(String::as_str).zip(ranks.iter().map(Vec::as_slice)).collect();
    files.push(("comm_group.json", groups.as_bytes()));
    Files::new(&files)
}

const GROUPS: &str = "{\"1\": [0, 1], \"2\": [2, 3]}";

pub(crate) fn chakra() -> Files {
    chakra_of(&chakra_ranks(), GROUPS)
}

#[test]
fn collectives_of_chakra_follow_nccl() {
    // The allreduce of two sends its vector both ways; the ring of the allgather three blocks to the next.
    let (around, pair) = (64 + 30, 1000);
    assert_eq!(
        sums(&chakra()),
        [
            (0, 1, around + pair),
            (1, 0, pair),
            (1, 2, around),
            (2, 3, around + pair),
            (3, 0, around),
            (3, 2, pair)
        ]
    );
    let read = chakra().auto();
    let operations: Vec<&str> =
        read.graph().collectives.calls.iter().map(|calls| calls.operation.name()).collect();
    assert_eq!(operations, ["allreduce", "allgather", "allreduce"]);
}

/// The totals of the microbenchmarks of ASTRA-sim: one operation on 1 MiB.
#[test]
fn a_microbenchmark_moves_what_its_operation_needs() {
    let mib = 1u64 << 20;
    for ranks in [4, 8, 16u64] {
        // Number of the operation, and total bytes.
        for (kind, total) in [
            (0, 2 * (ranks - 1) * mib),
            (2, ranks * (ranks - 1) * mib),
            (6, (ranks - 1) * mib),
            (7, (ranks - 1) * mib),
        ] {
            let rank = trace(&[collective(7, &[], kind, mib, "")]);
            let read = chakra_of(&vec![rank; ranks as usize], "{}").auto();
            assert_eq!(read.graph().bytes(), total, "{kind} on {ranks}");
        }
    }
}

#[test]
fn overlap_with_computation_is_kept() {
    let program = program(&chakra()).unwrap();
    assert_eq!(
        shown(&program, 0),
        [
            "compute 100",
            // The allreduce runs while the rank computes.
            "irecv 1000 from 1",
            "isend 1000 to 1",
            "compute 50",
            "wait",
            "wait",
            "compute 7",
            "isend 64 to 1",
            "irecv 64 from 3",
            "wait",
            "wait",
            "allgather 10"
        ]
    );
}

/// Once tags that differ by 2^32 were the same.
#[test]
fn a_tag_above_32_bits_is_an_error() {
    let message = |tag: u64| {
        let between = [attribute("comm_src", UINT64, 0), attribute("comm_dst", UINT64, 1)];
        let rest = [attribute("comm_size", UINT64, 8), attribute("comm_tag", UINT64, tag)];
        node(1, SEND, &[], 0, &[between, rest].concat())
    };
    let files = chakra_of(&[trace(&[message(3), message((1 << 32) + 3)]), trace(&[])], "{}");
    let problem = refused(&files);
    assert!(problem.contains("has the impossible `comm_tag` 4294967299 at node 1"), "{problem}");
}

/// Once packed Chakra traces beside others were missing ranks.
#[test]
fn packed_traces_are_read() {
    let [first, second] = [0, 1].map(|rank| packed(kineto_rank(rank)));
    assert_eq!(sums(&Files::new(&[("r0.json.gz", first), ("r1.json.gz", second)])), sums(&kineto()));
    let ranks = chakra_ranks();
    let files = Files::new(&[
        ("step.0.et", ranks[0].clone()),
        ("step.1.et.gz", packed(&ranks[1])),
        ("step.2.et.gz", packed(&ranks[2])),
        ("step.3.et.gz", packed(&ranks[3])),
        ("comm_group.json.gz", packed(GROUPS)),
    ]);
    assert_eq!(sums(&files), sums(&chakra()));
}

/// Once only files in the folder, or those in a folder of each rank, were read.
#[test]
fn folders_in_folders_are_read() {
    let rank = |rank| packed(kineto_rank(rank).replace("\"rank\":", "\"number\":"));
    let files = Files::new(&[
        ("logs/rank0/n_47.17230001.pt.trace.json.gz", rank(0)),
        ("logs/rank1/n_48.17230001.pt.trace.json.gz", rank(1)),
        ("notes.json", b"{}".to_vec()),
    ]);
    assert_eq!(sums(&files), sums(&kineto()));
    let log = |name: &str| std::fs::read(inspector().path(name)).unwrap();
    let files = Files::new(&[("run/n0/0.log", log("n0.log")), ("run/n1/0.log", log("n1.log"))]);
    assert_eq!(sums(&files), sums(&inspector()));
}

/// Once every operation counted twice.
#[test]
fn copies_of_logs_are_refused() {
    let log = |name: &str| std::fs::read(inspector().path(name)).unwrap();
    let all = ["n0.log", "n1.log"].map(|name| (name, log(name)));
    let copies =
        [("0.log.gz", packed(String::from_utf8(log("n0.log")).unwrap())), ("1 - Copy.log", log("n1.log"))];
    let problem = refused(&Files::new(&[all, copies].concat()));
    assert!(problem.contains(" twice for process "), "{problem}");
}

/// Once a folder was of an unknown format, and a number such as `inf` an error.
#[test]
fn other_files_are_named_and_nearly_valid_records_read() {
    let ranks = [0, 1].map(kineto_rank);
    let files = Files::new(&[("a.json", "{\"x\": 1}"), ("r0.json", &ranks[0]), ("r1.json", &ranks[1])]);
    assert_eq!(files.auto().log[1], "warning: files that are no traces, skipped: 1, the first `a.json`");
    assert_eq!(sums(&files), sums(&kineto()));
    let alone = refused(&Files::new(&[("a.json", "{\"schemaVersion\": 1}")]));
    assert!(alone.starts_with("a.json:1:20: missing field `traceEvents`"), "{alone}");
    let (files, whole) = (inspector(), inspector().auto());
    let log = std::fs::read_to_string(files.path("n1.log")).unwrap();
    std::fs::write(
        files.path("n1.log"),
        format!("\u{feff}{}", log.replace("_time_us\":9", "_time_us\":inf")),
    )
    .unwrap();
    let read = files.auto();
    assert_eq!(read.pairs(), whole.pairs());
    assert!(read.log[1].starts_with("warning: invalid JSON in 1 file;"), "{:?}", read.log);
}

fn record(process: u32, communicator: &str, rank: u32, size: u32, what: &str) -> String {
    format!(
        "{{\"header\":{{\"id\":\"{communicator}\",\"comm_name\":\"unknown\",\"rank\":{rank},\"n_ranks\":{size},\"nnodes\":2}},\
         \"metadata\":{{\"inspector_output_format_version\":\"v4.0\",\"hostname\":\"n{}\",\"pid\":{process}}},{what}}}\n",
        process / 2
    )
}

fn performed(name: &str, number: u32, size: u32) -> String {
    format!(
        "\"coll_perf\":{{\"coll\":\"{name}\",\"coll_sn\":{number},\"coll_msg_size_bytes\":{size},\"coll_exec_time_us\":9}}"
    )
}

/// Four processes on two hosts; rank 0 of the communicator of all is the last process.
pub(crate) fn inspector() -> Files {
    let lines = |processes: [u32; 2]| -> String {
        processes
            .iter()
            .map(|process| {
                let all = record(*process, "0xaa", 3 - process, 4, &performed("AllReduce", 1, 8000));
                let pair = record(
                    *process,
                    &format!("0xb{}", process / 2),
                    process % 2,
                    2,
                    &performed("ReduceScatter", 1, 500),
                );
                let peer = format!(
                    "\"p2p_perf\":{{\"p2p\":\"Send\",\"p2p_sn\":1,\"p2p_peer\":{},\"p2p_msg_size_bytes\":5}}",
                    process % 4
                );
                let message = record(*process, "0xaa", 3 - process, 4, &peer);
                [pair, all, if *process == 1 { message } else { String::new() }].concat()
            })
            .collect()
    };
    Files::new(&[("n0.log", lines([0, 1])), ("n1.log", lines([2, 3]))])
}

#[test]
fn processes_of_the_inspector_have_the_ranks_of_their_communicator() {
    let read = inspector().auto();
    let hosts: Vec<&str> =
        read.graph().processes.iter().map(|process| process.host.as_deref().unwrap()).collect();
    assert_eq!(hosts, ["n1", "n1", "n0", "n0"]);
    // Process 1 is rank 2 and sends to rank 1; pairs pass 500 bytes on both ways.
    let sums = sums(&inspector());
    let tree = |pair: (u32, u32)| sums.iter().find(|sum| (sum.0, sum.1) == pair).map_or(0, |sum| sum.2);
    assert_eq!(read.graph().bytes(), 2 * 3 * 8000 + 4 * 500 + 5);
    assert_eq!((tree((2, 1)) - 5) % 1000, 0);
}

/// Once their format was unknown.
#[test]
fn indented_records_are_read() {
    let indented = |rank: u32| {
        let call = performed("Broadcast", 1, 4096);
        record(rank, "0xaa", rank, 2, &call).replace('{', "{\n  ").replace(',', ",\n  ")
    };
    let files =
        [("a.log", indented(0)), ("b.log", indented(1)), ("gpu.prom", "# HELP bandwidth\n".to_owned())];
    assert_eq!(sums(&Files::new(&files)), [(0, 1, 4096)]);
}

#[test]
fn consecutive_ranks_share_hosts_if_the_trace_names_none() {
    let hosts = |files: &Files| -> Vec<String> {
        let read = files.read(|params| params.ranks_per_host = std::num::NonZeroU32::new(2));
        read.graph().processes.iter().map(|process| process.host.clone().unwrap()).collect()
    };
    assert_eq!(hosts(&chakra()), ["host0", "host0", "host1", "host1"]);
    assert_eq!(hosts(&inspector()), ["n1", "n1", "n0", "n0"]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let half = chakra_of(&chakra_ranks()[..2], GROUPS);
    assert!(refused(&half).contains("has no trace of rank 2 and 1 others, of 4 ranks"), "{}", refused(&half));
    let no_group = chakra_of(&chakra_ranks(), "{\"1\": [0, 1]}");
    assert!(refused(&no_group).contains("group `2`, which is not in `comm_group.json`"));
    let empty = chakra_of(&chakra_ranks(), "{\"1\": [0, 1], \"2\": []}");
    assert!(refused(&empty).contains("comm_group.json` has a group without members"));
    let of = |nodes: &[Vec<u8>]| refused(&chakra_of(&[trace(nodes), trace(nodes)], "{}"));
    assert!(of(&[collective(1, &[], 99, 8, "")]).contains("unknown collective operation 99 at node 1"));
    assert!(of(&[collective(1, &[], 0, u64::MAX, "")]).contains("impossible `comm_size` -1 at node 1"));
    assert!(of(&[message(1, SEND, &[], (7, 1), 8)]).contains("is a message of rank 7"));
    let other = [trace(&[collective(1, &[], 0, 8, "")]), trace(&[collective(1, &[], 2, 8, "")])];
    assert!(refused(&chakra_of(&other, "{}")).contains("`allreduce` on rank 0 and `allgather` on rank 1"));
    let mut cut = chakra_ranks();
    let end = cut[1].len() - 3;
    cut[1].truncate(end);
    assert!(refused(&chakra_of(&cut, GROUPS)).contains("it ends inside a node"));
    let stopped = Files::new(&[("a0.json", kineto_rank(0))]);
    assert!(refused(&stopped).contains("has no trace of rank 1, of 2 ranks"), "{}", refused(&stopped));
    let unknown = kineto_rank(0).replace("allreduce", "juggle");
    let unknown = Files::new(&[("a0.json", unknown)]);
    assert!(refused(&unknown).contains("unknown operation `juggle`"), "{}", refused(&unknown));
    let nothing = chakra_of(&[trace(&[]), Vec::new()], GROUPS);
    assert!(refused(&nothing).contains("is empty"), "{}", refused(&nothing));
    let deep = format!(
        "{}{}",
        "{\"schemaVersion\":1,\"traceEvents\":[],\"a\":".to_owned() + &"[".repeat(1 << 20),
        "]".repeat(1 << 20) + "}"
    );
    // Deep nesting is passed over; a trace without communication has no messages.
    assert_eq!(Files::new(&[("a0.json", deep)]).auto().pairs(), []);
    let pickled = Files::new(&[("nccl_trace_rank_0", b"\x80\x02}q\x00(X\x07\x00\x00\x00entries")]);
    assert!(refused(&pickled).contains("is a pickle of Python"), "{}", refused(&pickled));
}

#[test]
fn circles_and_missing_nodes_have_no_program() {
    let error = |nodes: &[Vec<u8>]| program(&chakra_of(&[trace(nodes)], "{}")).unwrap_err().to_string();
    let circle = error(&[node(1, COMPUTE, &[2], 1, &[]), node(2, COMPUTE, &[1], 1, &[])]);
    assert!(circle.contains("dependencies in a circle, which node 1 waits for"), "{circle}");
    let missing = error(&[node(1, COMPUTE, &[9], 1, &[])]);
    assert!(missing.contains("depends on node 9, which does not exist"), "{missing}");
}

#[test]
fn formats_of_training_jobs_are_recognised() {
    let logged = |files: &Files| files.auto().log.first().cloned().unwrap_or_default();
    assert_eq!(logged(&kineto()), "format: kineto");
    assert_eq!(logged(&flight_recorder()), "format: flight-recorder");
    assert_eq!(logged(&inspector()), "format: nccl-inspector");
    assert_eq!(kineto().read(|params| params.format = Format::Kineto).pairs(), kineto().auto().pairs());
}

/// Names of the phases with their groups.
fn groups(read: &super::Read) -> Vec<(String, Vec<Vec<u32>>)> {
    read.graph().check().unwrap();
    let phases = read.graph().phases.iter();
    phases.map(|phase| (phase.name.clone().unwrap(), phase.groups())).collect()
}

fn of(kind: &str, groups: &[&[u32]]) -> (String, Vec<Vec<u32>>) {
    (kind.to_owned(), groups.iter().map(|group| group.to_vec()).collect())
}

#[test]
fn every_kind_of_group_is_a_phase() {
    // Without descriptions: size and stride, and the messages.
    let pairs = of("size-2-stride-1", &[&[0, 1], &[2, 3]]);
    assert_eq!(groups(&chakra().auto()), [of("p2p", &[&[0, 1, 2, 3]]), pairs, of("world", &[&[0, 1, 2, 3]])]);
    // Names of groups.
    let named = ["tp0", "tp0", "tp1", "tp1"].map(|name| trace(&[collective(1, &[], 0, 8, name)]));
    let named = chakra_of(&named, "{\"tp0\": [0, 1], \"tp1\": [2, 3]}").auto();
    assert_eq!(groups(&named), [of("tp", &[&[0, 1], &[2, 3]])]);
    // Descriptions of Megatron-LM in the metadata node of PyTorch.
    let listed = "[[{\"pg_name\": \"7\", \"pg_desc\": \"EXPERT_MODEL_PARALLEL_GROUP\", \"ranks\": [0, 1]}]]";
    let inputs = bytes(8, &bytes(1, listed.as_bytes()));
    let metadata = [number(1, 1), bytes(2, b"## process_group:init ##"), number(3, 1), inputs].concat();
    let ranks = [0, 1].map(|_| trace(&[metadata.clone(), collective(2, &[], 0, 8, "7")]));
    assert_eq!(groups(&chakra_of(&ranks, "{}").auto()), [of("ep", &[&[0, 1]])]);
    // The profiler and the flight recorder.
    let described = |text: &str| {
        text.replace(
            "\"Process Group Name\":\"5\"",
            "\"Process Group Name\":\"5\",\"Process Group Description\":\"PIPELINE_MODEL_PARALLEL_GROUP\"",
        )
    };
    let profiles = [0, 1].map(|rank| described(&kineto_rank(rank)));
    let profiles = Files::new(&[("a.json", &profiles[0]), ("b.json", &profiles[1])]);
    assert_eq!(groups(&profiles.auto()), [of("pp", &[&[0, 1]])]);
    assert_eq!(groups(&flight_recorder().auto()), [of("world", &[&[0, 1, 2]])]);
    let pairs = of("size-2-stride-1", &[&[0, 1], &[2, 3]]);
    assert_eq!(groups(&inspector().auto()), [of("p2p", &[&[1, 2]]), pairs, of("world", &[&[0, 1, 2, 3]])]);
}

#[test]
fn phases_add_up_to_the_matrix() {
    for files in [chakra(), kineto(), flight_recorder(), inspector()] {
        let read = files.read(|params| params.ranks = Some(9));
        let graph = read.graph();
        graph.check().unwrap();
        let mut sums = std::collections::BTreeMap::new();
        for edge in graph.phases.iter().flat_map(|phase| &phase.edges) {
            let sum: &mut (u64, u64) = sums.entry((edge.source, edge.destination)).or_default();
            *sum = (sum.0 + edge.messages, sum.1 + edge.bytes);
        }
        let all: Vec<_> = sums.into_iter().map(|((one, other), sum)| (one, other, sum.0, sum.1)).collect();
        assert_eq!(all, read.pairs());
        // Operations that are no messages form no groups.
        let kept = files.read(|params| params.collectives = hopmap_trace::Collectives::Keep);
        assert!(kept.graph().phases.iter().all(|phase| !phase.groups().is_empty()));
    }
}

#[test]
fn every_rank_sends_its_own_total_if_nothing_else_is_known() {
    let of = |operation: u64, sizes: [u64; 3]| {
        chakra_of(&sizes.map(|size| trace(&[collective(1, &[], operation, size, "")])), "{}")
    };
    assert_eq!(sums(&of(6, [300, 600, 0])), [(0, 1, 100), (0, 2, 100), (1, 0, 200), (1, 2, 200)]);
    // An even one is the same as before.
    assert_eq!(sums(&of(6, [300, 300, 300])).len(), 6);
    // Shards of an all-gather go around the ring.
    let uneven = of(2, [8, 12, 0]);
    assert_eq!(sums(&uneven), [(0, 1, 8), (1, 2, 20), (2, 0, 12)]);
    let log = uneven.auto().log.join("\n");
    let expected = "warning: 1 collective operations have shards of different sizes: operation 1 of the `world` group of ranks 0, 1, 2, \
                    `allgather`, has 8 bytes on rank 0 and 12 on rank 1; each rank counts with its own";
    assert!(log.contains(expected), "{log}");
}

/// Once the first rank was believed.
#[test]
fn ranks_agree_on_the_size_of_a_reduction() {
    for (kind, name) in [(0, "allreduce"), (1, "reduce"), (5, "bcast"), (7, "reduce_scatter_block")] {
        let of = |size: u64| trace(&[collective(1, &[], kind, 8, ""), collective(2, &[], kind, size, "")]);
        let problem = refused(&chakra_of(&[of(16), of(16), of(24)], "{}"));
        let expected = format!(
            "contradicts itself: operation 2 of the `world` group of ranks 0, 1, 2, `{name}`, has 16 bytes on rank 0 and 24 on rank 2"
        );
        assert!(problem.contains(&expected), "{problem}");
    }
    // The number is that of the trace.
    let other = dump(&[entry(7, "nccl:all_reduce", "[8]")]);
    let one = dump(&[entry(6, "nccl:all_reduce", "[9]"), entry(7, "nccl:all_reduce", "[9]")]);
    let problem = refused(&Files::new(&[("r0.json", &one), ("r1.json", &other), ("r2.json", &one)]));
    assert!(problem.contains("operation 7 of the `world` group"), "{problem}");
}

/// The message and the hint of a format that is set.
fn refused_as(files: &Files, format: Format) -> (String, String) {
    files.read(|params| params.format = format).result.unwrap_err()
}

/// Once another format was an empty trace, without an error.
#[test]
fn a_format_that_is_set_is_that_of_the_contents() {
    for (files, format, name) in [
        (flight_recorder(), Format::Kineto, "has the format `flight-recorder`, not `kineto`"),
        (kineto(), Format::FlightRecorder, "has the format `kineto`, not `flight-recorder`"),
        (inspector(), Format::Kineto, "has the format `nccl-inspector`, not `kineto`"),
        (kineto(), Format::Chakra, "has the format `kineto`, not `chakra`"),
        (
            Files::new(&[("a0.json", "{\"distributedInfo\":{}}")]),
            Format::Kineto,
            "missing field `traceEvents`",
        ),
        (Files::new(&[("a0.json", "{\"pg_config\":{}}")]), Format::FlightRecorder, "missing field `entries`"),
    ] {
        let (problem, _) = refused_as(&files, format);
        assert!(problem.contains(name), "{problem}");
    }
}

#[test]
fn hints_fit_the_problem() {
    let hint = |files: &Files| files.auto().result.unwrap_err().1;
    let unknown = Files::new(&[("a0.json", kineto_rank(0).replace("allreduce", "juggle"))]);
    assert!(hint(&unknown).contains("of a version that hopmap does not know"), "{}", hint(&unknown));
    let half = chakra_of(&chakra_ranks()[..2], GROUPS);
    assert!(hint(&half).contains("the traces of all ranks"), "{}", hint(&half));
    let nameless = Files::new(&[("first.et", trace(&[]))]);
    assert!(hint(&nameless).contains("end the names of the files in the rank"), "{}", hint(&nameless));
    let (problem, help) =
        chakra().read(|params| params.ranks_per_host = std::num::NonZeroU32::new(3)).result.unwrap_err();
    assert!(problem.contains("has 4 ranks, which do not fill hosts of 3"), "{problem}");
    assert!(help.contains("`ranks_per_host`"), "{help}");
}
