//! Probing between ranks whose results are made up.

use super::*;
use hopmap_test_support::{Random, damage, seeds};

/// The results that ranks on these hosts would append for a plan; messages between hosts take a millisecond.
fn results_of(plan: &str, hosts: &[&str]) -> String {
    let mut text = String::new();
    for message in
        plan.split_inclusive('\n').collect::<Vec<_>>().chunk_by(|line, _| !line.starts_with("end "))
    {
        let words: Vec<&str> = message[0].split_whitespace().collect();
        if words[0] == "finish" {
            break;
        }
        let mut lines = Vec::new();
        for pair in &message[1..message.len() - 1] {
            let numbers: Vec<usize> = pair.split_whitespace().map(|word| word.parse().unwrap()).collect();
            let [source, destination, bytes] = numbers[..] else { panic!("{pair}") };
            let seconds = if hosts[source] == hosts[destination] { 1e-6 } else { 1e-3 };
            let sizes = if words[0] == "stream" { vec![bytes.to_string()] } else { vec![] };
            let sizes = words[9..].iter().map(ToString::to_string).chain(sizes);
            let whats: &[&str] = match words[0] {
                "trips" => &["trip"],
                "stream" => &["stream"],
                _ => &["trip", "send", "isend", "recv"],
            };
            let directions = [(source, destination), (destination, source)];
            let directions = if words[0] == "trips" { &directions[..] } else { &directions[..1] };
            for ((a, b), bytes) in
                directions.iter().flat_map(|pair| sizes.clone().map(move |size| (pair, size)))
            {
                let times = format!("{seconds:e} ").repeat(5);
                lines.extend(
                    whats.iter().map(|what| format!("{a} {b} {what} {bytes} 5 {}\n", times.trim_end())),
                );
            }
            if words[0] == "eager" {
                lines.push(format!("{source} {destination} eager 4033 1 0 0 0 0 0\n"));
            }
        }
        text.push_str(&format!("{}end {}\n", lines.concat(), lines.len()));
    }
    text
}

/// All results of a probing between ranks on these hosts.
fn transcript(hosts: &[&str], params: &ProbeParams) -> Result<String, MachineError> {
    let cx = Context::detached();
    let mut probing = Probing::new(params, &cx);
    let names: Vec<String> = hosts.iter().map(|host| format!("host {host}\n")).collect();
    let mut all = format!("{}end {}\n", names.concat(), names.len());
    let mut new = all.clone();
    while !probing.is_over {
        new.lines().try_for_each(|line| probing.hear(line))?;
        new = results_of(&take(&mut probing.plan), hosts);
        all.push_str(&new);
    }
    Ok(all)
}

fn params(text: &str) -> ProbeParams {
    serde_json::from_str(text).unwrap()
}

/// What becomes of some results.
fn hear(text: &str, params: &ProbeParams) -> Result<(Measurements, bool), MachineError> {
    let cx = Context::detached();
    let mut probing = Probing::new(params, &cx);
    text.lines().try_for_each(|line| probing.hear(line))?;
    probing.finish()
}

fn measured(hosts: &[&str], text: &str) -> Measurements {
    let params = params(text);
    let (measured, complete) = hear(&transcript(hosts, &params).unwrap(), &params).unwrap();
    assert!(complete);
    measured.check().unwrap();
    measured
}

const DEALT: [&str; 7] = ["a", "b", "c", "a", "b", "a", "c"];
const BOTH: &str = r#"{"sizes": [1, 256, 131072], "messages": 20, "bandwidth": "both", "parallel": 1}"#;

/// Launchers may deal out ranks to the hosts in turn.
#[test]
fn ranks_of_a_host_are_its_endpoints() {
    let measured = measured(&DEALT, BOTH);
    assert_eq!(measured.hosts().collect::<Vec<_>>(), [("a", 0, 3), ("b", 3, 2), ("c", 5, 2)]);
    // 3 pairs of hosts and 3 + 1 + 1 inside, both ways, two small sizes and one large one in two phases.
    assert_eq!(measured.samples.len(), 8 * 2 * 4);
    for (pair, latency) in measured.latencies() {
        let is_far = pair.0 < 3 && pair.1 >= 3 || pair == (3, 5);
        assert_eq!(latency >= 5e-4, is_far, "{pair:?}: {latency}");
    }
}

#[test]
fn hosts_are_measured_between_their_first_ranks() {
    let measured = measured(
        &["a", "a", "b", "b"],
        r#"{"sizes": [1], "messages": 5, "measure_intra_node": false, "calibrate": true}"#,
    );
    // Of the only pair, both directions are measured once more, alone.
    assert_eq!((measured.endpoints.len(), measured.samples.len()), (2, 4));
    assert_eq!(measured.eager_limit, Some(4033));
    let calls = measured.calls.iter().map(|call| (call.source, call.destination));
    assert_eq!(calls.collect::<Vec<_>>(), [(0, 1), (0, 1), (0, 1), (1, 0), (1, 0), (1, 0)]);
}

#[test]
fn one_rank_has_no_partner() {
    let message = |hosts: &[&str], text: &str| transcript(hosts, &params(text)).unwrap_err().to_string();
    assert_eq!(message(&["a"], "{}"), "the launcher started one rank, or ranks that do not find each other");
    let alone = message(&["a", "a"], r#"{"measure_intra_node": false}"#);
    assert_eq!(alone, "`a` has no partner: a measurement needs two hosts or cores");
}

/// A request to stop may come between any two steps, and cross the last results.
#[test]
fn what_was_measured_before_a_stop_is_kept() {
    let params = params(BOTH);
    let all = transcript(&DEALT, &params).unwrap();
    let ends: Vec<usize> =
        all.match_indices("end ").map(|(at, _)| at + all[at..].find('\n').unwrap() + 1).collect();
    let mut before = 0;
    for end in &ends {
        let (measured, complete) = hear(&format!("{}stopped\nend 1\n", &all[..*end]), &params).unwrap();
        assert_eq!(complete, Some(end) == ends.last());
        assert!(measured.samples.len() >= before);
        before = measured.samples.len();
    }
}

#[test]
fn damaged_results_end_in_one_error_or_in_measurements() {
    let params = params(r#"{"sizes": [1, 131072], "messages": 20, "calibrate": true}"#);
    let all = transcript(&DEALT, &params).unwrap();
    let line = all.lines().find(|line| line.contains(" trip ")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    for (place, word) in [
        (0, "7"),
        (0, "-1"),
        (0, "1e18"),
        (1, "9999999999999"),
        (2, "tripp"),
        (2, "eager"),
        (3, "2"),
        (3, "1000000000000000000"),
        (4, "0"),
        (4, "21"),
        (4, "1000000000000000000"),
        (4, "1e18"),
        (5, "NaN"),
        (5, "0"),
        (6, "-1"),
        (7, "1e300"),
        (8, "inf"),
        (9, "x"),
        (9, ""),
        (9, "1 1"),
    ] {
        let mut words = words.clone();
        words[place] = word;
        let error = hear(&all.replacen(line, &words.join(" "), 1), &params).unwrap_err();
        assert!(error.to_string().starts_with("the ranks sent invalid measurements: `"), "{word}: {error}");
    }
    for (from, to) in [("end 7\n", "end 1000000000000000000\n"), ("end 7\n", "end 6\n"), ("host a\n", "")] {
        hear(&all.replacen(from, to, 1), &params).unwrap_err();
    }
    let endless = format!("{}{}", &all[..all.find(line).unwrap()], format!("{line}\n").repeat(1000));
    hear(&endless, &params).unwrap_err();
    let last = all.trim_end().rfind('\n').unwrap() + 1;
    let truncated = hear(&all[..last], &params).unwrap_err();
    assert_eq!(truncated.to_string(), "the ranks ended before they had measured everything");
    for seed in seeds(300, 100_000) {
        let mut bytes = all.clone().into_bytes();
        damage(&mut bytes, &mut Random(seed), b" \n019.e-xn");
        if let Ok((measured, _)) = hear(&String::from_utf8_lossy(&bytes), &params) {
            measured.check().unwrap();
        }
    }
}

/// A reader may see any beginning of what is written.
#[test]
fn half_a_line_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    fs::write(&path, "").unwrap();
    let mut results = Results { path: path.clone(), offset: 0, rest: Vec::new() };
    let mut lines = Vec::new();
    for byte in "host a\nhost b\nend 2\n".chars() {
        append(&path, &byte.to_string()).unwrap();
        let mut hear = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        results.read(&mut hear).unwrap();
    }
    assert_eq!(lines, ["host a", "host b", "end 2"]);
    append(&path, &"x".repeat(10_000)).unwrap();
    results.read(&mut |_| Ok(())).unwrap_err();
}
