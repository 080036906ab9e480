//! Traces of PyTorch's profiler, with messages computed by hand.

use std::time::Duration;

use hopmap_test_support::has_little_memory;

use super::Files;
use super::jobs::{program, refused, shown, sums};

fn event(name: &str, category: &str, (begin, length): (u32, u32), arguments: &str) -> String {
    format!(
        "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":\"{name}\",\"pid\":1,\"tid\":7,\"ts\":{begin}.5,\"dur\":{length},\"args\":{{{arguments}}}}}"
    )
}

fn communication(name: &str, elements: u32, ranks: &str, more: &str) -> String {
    format!(
        "\"Collective name\":\"{name}\",\"In msg nelems\":{elements},\"Out msg nelems\":{elements},\"dtype\":\"BFloat16\",\
         \"Group size\":2,\"Process Group Name\":\"5\",\"Process Group Ranks\":\"{ranks}\",\"In split size\":\"[]\"{more}"
    )
}

/// Two ranks: computation of 100 µs, an allreduce of 1000 bytes of which 30 µs overlap with computation, and a message.
pub(super) fn kineto_rank(rank: u32) -> String {
    let peer = 1 - rank;
    let (direction, ends) = match rank {
        0 => ("send", "\"Dst Rank\":1"),
        _ => ("recv", "\"Src Rank\":0"),
    };
    let reduce = communication("allreduce", 500, "[0, 1]", "");
    let message = communication(direction, 32, "[]", &format!(",{ends}"));
    let events = [
        event("record_param_comms", "cpu_op", (1000, 5), &reduce),
        event("gemm", "kernel", (1000, 100), "\"stream\":7"),
        event("ncclDevKernel_AllReduce", "kernel", (1100, 60), &reduce),
        event("gemm", "kernel", (1100, 30), "\"stream\":7"),
        event("gemm", "kernel", (1160, 10), "\"stream\":7"),
        event("ncclDevKernel_SendRecv", "kernel", (1170, 20), &message),
        event("wait", "user_annotation", (1200, 1), &format!("\"External id\":{peer}")),
    ];
    format!(
        "{{\"schemaVersion\":1,\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":2}},\"traceEvents\":[{}]}}",
        events.join(",")
    )
}

pub(super) fn kineto() -> Files {
    Files::new(&[("a.pt.trace.json", kineto_rank(0)), ("b.pt.trace.json", kineto_rank(1))])
}

#[test]
fn kernels_of_pytorch_are_a_program() {
    assert_eq!(sums(&kineto()), [(0, 1, 1064), (1, 0, 1000)]);
    let read = kineto().auto();
    assert!((read.graph().duration_s.unwrap() - 190e-6).abs() < 1e-9);
    let program = program(&kineto()).unwrap();
    assert_eq!(program.recorded, Some(Duration::from_micros(190)));
    let expected =
        ["compute 100", "irecv 1000 from 1", "isend 1000 to 1", "compute 30", "wait", "wait", "compute 10"];
    assert_eq!(shown(&program, 0)[..7], expected);
    assert_eq!(shown(&program, 0)[7..], ["isend 64 to 1", "wait"]);
    assert_eq!(shown(&program, 1)[7..], ["irecv 64 from 0", "wait"]);
}

/// Once an abbreviated group without members was taken for the group of all ranks.
#[test]
fn abbreviated_groups_need_the_list_of_members() {
    let abbreviated = [0, 1].map(|rank| kineto_rank(rank).replace("[0, 1]", "[0, ..."));
    let [first, second] = abbreviated.clone();
    let problem = refused(&Files::new(&[("a.json", first), ("b.json", second)]));
    assert!(problem.contains("a list of ranks is abbreviated"), "{problem}");
    let configured = "\"world_size\":2,\"pg_config\":[{\"pg_name\":\"5\",\"ranks\":[0,1]}]";
    let [first, second] = abbreviated.map(|text| text.replace("\"world_size\":2", configured));
    assert_eq!(sums(&Files::new(&[("a.json", first), ("b.json", second)])), sums(&kineto()));
}

/// Once 17 GB were reserved for ranks that have no trace.
#[test]
fn a_job_of_more_ranks_than_files_is_refused_in_little_memory() {
    if has_little_memory() {
        let [first, second] =
            [0, 1].map(|rank| kineto_rank(rank).replace("\"world_size\":2", "\"world_size\":4294967295"));
        let problem = refused(&Files::new(&[("a.json", first), ("b.json", second)]));
        assert!(
            problem.contains("has no trace of rank 2 and 4294967292 others, of 4294967295 ranks"),
            "{problem}"
        );
    }
}

/// Once one trace above the folders of the ranks was the job.
#[test]
fn a_trace_above_the_folders_of_the_ranks_is_named() {
    let ranks = [0, 1].map(kineto_rank);
    let folders = [("0/a.json", &ranks[0]), ("1/a.json", &ranks[1])];
    let read = Files::new(&[folders[0], folders[1], ("old.json", &ranks[1])]).auto();
    assert_eq!(read.pairs(), kineto().auto().pairs());
    assert!(read.log.iter().any(|line| line.contains("skipped: 1, the first `old.json`")), "{:?}", read.log);
    let old = [("old/0.json", &ranks[1]), ("old/1.json", &ranks[0])];
    let read = Files::new(&[("0.json", &ranks[0]), ("1.json", &ranks[1]), old[0], old[1]]).auto();
    assert_eq!(read.pairs(), kineto().auto().pairs());
    assert!(
        read.log.iter().any(|line| line.contains("skipped: 2, the first `old/0.json`")),
        "{:?}",
        read.log
    );
}

/// Once the time in the names was the rank.
#[test]
fn profiles_without_a_rank_are_refused() {
    let anonymous = |rank: u32| kineto_rank(rank).replace("\"distributedInfo\"", "\"other\"");
    let names = ["n_4711.172300000.pt.trace.json", "n_4712.172300001.pt.trace.json"];
    let files = Files::new(&[(names[0], anonymous(0)), (names[1], anonymous(1))]);
    let (problem, help) = files.auto().result.unwrap_err();
    assert!(problem.contains(names[0]) && problem.contains("has no `distributedInfo`"), "{problem}");
    assert!(help.contains("init_process_group"), "{help}");
    let of_ranks =
        Files::new(&[("rank0.172300000.pt.trace.json", anonymous(0)), ("rank1.json", anonymous(1))]);
    assert_eq!(sums(&of_ranks), sums(&kineto()));
}

/// An all-to-all of three ranks: elements that each passes and gets, and split sizes.
fn exchange(ranks: [(u32, u32, &str); 3]) -> Files {
    let text = |rank: usize, (sent, received, splits): (u32, u32, &str)| {
        let arguments = format!(
            "\"Collective name\":\"all_to_allv\",\"In msg nelems\":{sent},\"Out msg nelems\":{received},\"dtype\":\"BFloat16\",\
             \"Process Group Name\":\"5\",\"Process Group Ranks\":\"[0, 1, 2]\",\"In split size\":\"{splits}\""
        );
        let event = event("ncclDevKernel_SendRecv", "kernel", (10, 5), &arguments);
        format!(
            "{{\"schemaVersion\":1,\"distributedInfo\":{{\"rank\":{rank},\"world_size\":3}},\"traceEvents\":[{event}]}}"
        )
    };
    let texts: Vec<String> = ranks.into_iter().enumerate().map(|(rank, of)| text(rank, of)).collect();
    Files::new(&[("0.json", &texts[0]), ("1.json", &texts[1]), ("2.json", &texts[2])])
}

/// Once every pair counted the mean, and even splits on one rank contradicted uneven ones on another.
#[test]
fn uneven_exchanges_count_what_every_pair_passes() {
    // Rows of 10 elements of 2 bytes.
    let listed = exchange([(80, 80, "[1, 2, 5]"), (80, 90, "[4, 4, 0]"), (90, 80, "[3, 3, 3]")]);
    assert_eq!(sums(&listed), [(0, 1, 40), (0, 2, 100), (1, 0, 80), (2, 0, 60), (2, 1, 60)]);
    let kept = listed.read(|params| params.collectives = hopmap_trace::Collectives::Keep);
    let calls = &kept.graph().collectives.calls;
    assert_eq!((calls.len(), calls[0].operation.name(), calls[0].calls), (1, "alltoallv", 1));
    // A half to the first rank, a quarter to the others.
    let abbreviated = exchange([(60, 120, "[1, ..., 5]"), (120, 60, "[2, ..., 4]"), (60, 60, "[1, ..., 2]")]);
    let expected = [(0, 1, 30), (0, 2, 30), (1, 0, 120), (1, 2, 60), (2, 0, 60), (2, 1, 30)];
    assert_eq!(sums(&abbreviated), expected);
    let other = exchange([(80, 80, "[1, 2]"), (80, 80, "[]"), (80, 80, "[]")]);
    assert!(refused(&other).contains("has 2 split sizes in a group of 3 ranks"), "{}", refused(&other));
}
