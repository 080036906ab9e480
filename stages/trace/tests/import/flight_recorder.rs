//! Dumps of PyTorch's flight recorder, with messages computed by hand.

use super::Files;
use super::jobs::sums;

pub(super) fn entry(number: u32, name: &str, sizes: &str) -> String {
    format!(
        "{{\"collective_seq_id\":{number},\"input_dtypes\":[\"Float\"],\"input_sizes\":[{sizes}],\"process_group\":[\"0\",\"default_pg\"],\
         \"profiling_name\":\"{name}\",\"time_created_ns\":{number}000}}"
    )
}

pub(super) fn dump(entries: &[String]) -> String {
    let groups = "{\"0\":{\"desc\":\"default_pg\",\"name\":\"0\",\"ranks\":\"[0, 1, 2]\"}}";
    format!("{{\"entries\":[{}],\"pg_config\":{groups},\"version\":\"2.4\"}}", entries.join(","))
}

/// Three ranks of which the first has forgotten the first operation.
pub(super) fn flight_recorder() -> Files {
    let entries = [entry(1, "nccl:all_reduce", "[9]"), entry(2, "nccl:reduce_scatter", "[3, 100]")];
    let all = dump(&entries);
    Files::new(&[
        ("nccl_trace_rank_0.json", dump(&entries[1..])),
        ("nccl_trace_rank_1.json", all.clone()),
        ("nccl_trace_rank_2.json", all),
    ])
}

#[test]
fn dumps_begin_with_the_first_operation_that_all_ranks_have() {
    // A ring of 1200 bytes: each rank passes two thirds on.
    assert_eq!(sums(&flight_recorder()), [(0, 1, 800), (1, 2, 800), (2, 0, 800)]);
}

/// Once an operation that no rank had kept was lost without a word.
#[test]
fn operations_that_no_rank_kept_are_said() {
    let lost = |numbers: &[u32], status: &str| {
        let entries: Vec<String> = numbers
            .iter()
            .map(|number| entry(*number, "nccl:all_reduce", "[9]").replacen('{', "{\"pg_id\":7,", 1))
            .collect();
        let all = dump(&entries).replacen('{', &format!("{{\"pg_status\":{{\"7\":{{{status}}}}},"), 1);
        let log = Files::new(&["r0.json", "r1.json", "r2.json"].map(|name| (name, &all))).auto().log;
        let warning = log.iter().find_map(|line| line.split_once(" collective operations are not in"));
        warning.and_then(|(numbers, _)| numbers.rsplit(": ").next().map(str::to_owned))
    };
    assert_eq!(lost(&[1, 2, 3], "\"last_enqueued_collective\":\"3\""), None);
    assert_eq!(lost(&[1, 2], "\"last_enqueued_collective\":\"3\"").as_deref(), Some("1 of 3"));
    assert_eq!(lost(&[1, 3], "\"last_completed_collective\":3").as_deref(), Some("1 of 3"));
    assert_eq!(lost(&[3, 4], "").as_deref(), Some("2 of 4"));
    assert!(lost(&[1], "\"last_enqueued_collective\":18446744073709551615").is_some());
    // Only messages were kept, or nothing: then no entry says whose number it is.
    let nothing = |entries: &[String]| {
        let all = dump(entries).replacen('{', "{\"pg_status\":{\"7\":{\"last_enqueued_collective\":3}},", 1);
        Files::new(&["r0.json", "r1.json", "r2.json"].map(|name| (name, &all))).auto().log.concat()
    };
    assert!(nothing(&[]).contains("at least 3 of 3 collective operations are not in"), "{}", nothing(&[]));
    // Ranks number groups differently: once these were 4 of one group.
    let status = |last: &str| dump(&[]).replacen('{', &format!("{{\"pg_status\":{{{last}}},"), 1);
    let of = |number: u32, last: u32| format!("\"{number}\":{{\"last_enqueued_collective\":{last}}}");
    let dumps = [of(0, 3) + "," + &of(1, 2), of(0, 4), of(1, 4)].map(|last| status(&last));
    let read = Files::new(&[("r0.json", &dumps[0]), ("r1.json", &dumps[1]), ("r2.json", &dumps[2])]).auto();
    assert!(read.log.concat().contains("at least 5 of 5 collective operations are not in"), "{:?}", read.log);
}

/// Once messages that neither end had kept were lost without a word. Collective operations have the last number, too.
#[test]
fn messages_that_no_rank_kept_are_said() {
    // A batch has one number.
    for (kept, last, lost) in
        [(&[][..], 0, 0), (&[1], 1, 0), (&[1, 1, 2], 2, 0), (&[2, 4], 4, 4), (&[1], 3, 4), (&[], 2, 4)]
    {
        let dumps = ["nccl:send 0->1", "nccl:recv 1<-0"].map(|name| {
            let calls = kept.iter().map(|number| (name, *number)).chain([("nccl:all_reduce", last)]);
            let numbered = |(name, number)| {
                entry(1, name, "[9]").replacen('{', &format!("{{\"p2p_seq_id\":{number},"), 1)
            };
            dump(&calls.map(numbered).collect::<Vec<_>>()).replace("[0, 1, 2]", "[0, 1]")
        });
        let log = Files::new(&[("r0.json", &dumps[0]), ("r1.json", &dumps[1])]).auto().log.concat();
        let said = format!("at least {lost} sends and receives are not in the traces of their ranks");
        assert_eq!(log.contains("sends and receives"), lost > 0, "{log}");
        assert!(lost == 0 || log.contains(&said), "{log}");
    }
}

/// Once only names with an ending were read; the number in a host name is not a rank.
#[test]
fn dumps_may_end_in_the_rank_after_a_host() {
    let all = dump(&[entry(1, "nccl:all_reduce", "[300]")]);
    let names = ["d_node07_0", "d_node07_1", "d_node02_2"];
    let expected = sums(&Files::new(&["r0.json", "r1.json", "r2.json"].map(|name| (name, &all))));
    assert_eq!(sums(&Files::new(&names.map(|name| (name, &all)))), expected);
    // Pickles beside the JSON that they were converted to.
    let converted = names.map(|name| (format!("{name}.json"), all.as_bytes()));
    let mut files: Vec<(&str, &[u8])> = names.map(|name| (name, &b"\x80\x02}q"[..])).to_vec();
    files.extend(converted.iter().map(|(name, text)| (name.as_str(), *text)));
    assert_eq!(sums(&Files::new(&files)), expected);
}

#[test]
fn dumps_have_the_sizes_of_exchanges() {
    let dumped = |inputs: [&str; 3], outputs: [&str; 3]| {
        let one = |rank: usize| {
            let kinds = inputs[rank].matches('[').map(|_| "\"Byte\"").collect::<Vec<_>>().join(",");
            let sizes = format!(
                "\"input_dtypes\":[{kinds}],\"output_dtypes\":[\"Byte\"],\"output_sizes\":[{}]",
                outputs[rank]
            );
            dump(&[entry(4, "nccl:all_to_all", inputs[rank]).replace("\"input_dtypes\":[\"Float\"]", &sizes)])
        };
        let texts = [0, 1, 2].map(one);
        Files::new(&[("r0.json", &texts[0]), ("r1.json", &texts[1]), ("r2.json", &texts[2])])
    };
    // A tensor per member.
    let tensors = dumped(["[1],[2],[3]", "[4],[5],[6]", "[7],[8],[9]"], ["[12]", "[15]", "[18]"]);
    assert_eq!(sums(&tensors), [(0, 1, 2), (0, 2, 3), (1, 0, 4), (1, 2, 6), (2, 0, 7), (2, 1, 8)]);
    // One tensor, with a half of everything for the last rank.
    let totals = dumped(["[8]", "[16]", "[8]"], ["[8]", "[8]", "[16]"]);
    assert_eq!(sums(&totals), [(0, 1, 2), (0, 2, 4), (1, 0, 4), (1, 2, 8), (2, 0, 2), (2, 1, 2)]);
}

/// Once the format of a folder was unknown if its pickles were of another protocol or behind another file.
#[test]
fn folders_of_pickles_are_to_be_converted() {
    for pickle in [&b"\x80\x02}q\x00"[..], b"\x80\x04\x95\x10\x00"] {
        let files = Files::new(&[("README", &b"dumps"[..]), ("nccl_trace_rank_0", pickle)]);
        let (problem, help) = files.auto().result.unwrap_err();
        assert!(problem.contains("is a pickle of Python"), "{problem}");
        assert!(help.contains("json.dump(pickle.load("), "{help}");
    }
    // What was converted may begin with long lists of ranks.
    let ranks = (0..20_000).map(|rank| rank.to_string()).collect::<Vec<_>>().join(",");
    let converted = format!(
        "{{\"version\":\"2.4\",\"pg_config\":{{\"1\":{{\"ranks\":\"[{ranks}]\"}}}},\"entries\":[{}]}}",
        entry(1, "nccl:all_reduce", "[8]")
    );
    let files = Files::new(&[("r0.json", converted)]);
    assert!(files.auto().log.contains(&"format: flight-recorder".to_owned()));
}
