//! Probing with simulated agents, correct and faulty ones.

use super::*;
use crate::probe::sampling::{Wire, sample};
use hopmap_model::Measurements;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

/// Hosts whose message times depend on the distance of their numbers.
struct Played<F> {
    fault: F,
    asked: AtomicU32,
}

struct PlayedWire(f64);

impl Wire for PlayedWire {
    type Error = Infallible;

    fn time(&mut self, bytes: u64, messages: u32, times: &mut Vec<f64>) -> Result<(), Infallible> {
        times.extend((0..messages).map(|_| 2.0 * self.0 + bytes as f64 / 1e9));
        Ok(())
    }
}

fn latency(a: usize, b: usize) -> f64 {
    1e-5 * (1.0 + a.abs_diff(b) as f64)
}

impl<F: Fn(u32, usize, usize) -> Option<Result<Vec<Timing>, Fault>> + Sync> Agents for Played<F> {
    fn measure(&self, source: usize, destination: usize, sampling: &Sampling) -> Result<Vec<Timing>, Fault> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let Ok(timings) = sample(&mut PlayedWire(latency(source, destination)), sampling);
        (self.fault)(asked, source, destination).unwrap_or(Ok(timings))
    }

    fn answers(&self, host: usize) -> Result<(), Fault> {
        (self.fault)(u32::MAX, host, host).map_or(Ok(()), |answer| answer.map(drop))
    }

    fn inside(
        &self,
        _: usize,
        cores: &[u32],
        _: ProbePhase,
        sampling: &Sampling,
    ) -> Result<Vec<(Pair, Vec<Timing>)>, Fault> {
        let cores = 0..cores.len() as u32;
        let pairs = cores.clone().flat_map(|a| cores.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
        let Ok(timings) = sample(&mut PlayedWire(1e-7), sampling);
        Ok(pairs.map(|pair| (pair, timings.clone())).collect())
    }
}

fn played<F>(fault: F) -> Played<F> {
    Played { fault, asked: AtomicU32::new(0) }
}

fn params(text: &str) -> ProbeParams {
    serde_json::from_str(text).unwrap()
}

fn hosts(cores: &[u32]) -> Vec<Host> {
    let host =
        |(index, &cores): (usize, &u32)| Host { name: format!("h{index}"), cores: (0..cores).collect() };
    cores.iter().enumerate().map(host).collect()
}

fn probed(params: &ProbeParams, hosts: &[Host], agents: &dyn Agents) -> Measurements {
    let (record, complete) = probe_hosts(params, hosts, agents, &Context::detached());
    assert!(complete);
    let measured = record.finish();
    measured.check().unwrap();
    measured
}

fn down(measured: &Measurements) -> Vec<&str> {
    let down = measured.endpoints.iter().filter(|endpoint| endpoint.state == NodeState::Down);
    down.map(|endpoint| endpoint.host.as_str()).collect()
}

#[test]
fn all_pairs_are_measured_both_ways_in_every_phase() {
    let params =
        params(r#"{"sizes": [1, 1024, 1048576], "bandwidth": "both", "parallel": 2, "calibrate": false}"#);
    let agents = played(|_, _, _| None);
    let measured = probed(&params, &hosts(&[2, 1, 3, 2, 1]), &agents);
    assert_eq!(measured.endpoints.len(), 9);
    // 10 pairs of hosts and 1 + 3 + 1 of cores, both ways, two small sizes and one large one in two phases.
    assert_eq!(measured.samples.len(), 15 * 2 * 4);
    // Five hosts take five rounds of two pairs each.
    assert_eq!(agents.asked.load(Ordering::Relaxed), 10 * 2 * 3);
    for ((a, b), found) in measured.latencies() {
        let host = |endpoint: u32| measured.endpoints[endpoint as usize].host[1..].parse::<usize>().unwrap();
        let wanted = if host(a) == host(b) { 1e-7 } else { latency(host(a), host(b)) };
        assert!((found - wanted).abs() < 1e-8, "{a} {b}: {found}");
    }
}

#[test]
fn without_intra_node_measurements_a_host_is_one_endpoint() {
    let measured = probed(
        &params(r#"{"measure_intra_node": false, "sizes": [1], "calibrate": false}"#),
        &hosts(&[2, 4]),
        &played(|_, _, _| None),
    );
    assert_eq!((measured.endpoints.len(), measured.samples.len()), (2, 2));
}

/// Four hosts on one level: the first and the last pair are measured alone, the last one from its second host.
#[test]
fn two_pairs_of_a_level_are_measured_alone() {
    let params = params(r#"{"measure_intra_node": false, "sizes": [1, 1048576], "calibrate": true}"#);
    let measured = probed(&params, &hosts(&[1; 4]), &played(|_, _, _| None));
    let alone = measured.samples.iter().filter(|sample| sample.phase == ProbePhase::Alone);
    let ends: std::collections::BTreeSet<_> =
        alone.map(|sample| (sample.source, sample.destination)).collect();
    assert!(ends.contains(&(0, 1)) && ends.contains(&(3, 2)), "{ends:?}");
    assert!(measured.calls.is_empty());
}

#[test]
fn a_host_that_does_not_answer_is_down() {
    let measured = probed(&params(r#"{"sizes": [1]}"#), &hosts(&[1, 0, 1]), &played(|_, _, _| None));
    assert_eq!(down(&measured), ["h1"]);
    assert_eq!(measured.latencies().into_keys().collect::<Vec<_>>(), [(0, 2)]);
}

#[test]
fn only_a_host_that_dies_or_sends_invalid_data_is_given_up() {
    let died = |asked: u32, source: usize, destination: usize| match (source, destination) {
        (3, _) if asked > 20 => Some(Err(Fault::Host("the connection was closed".into()))),
        (_, 3) if asked > 20 => Some(Err(Fault::Connection("connection refused".into()))),
        _ => None,
    };
    let lied = |_: u32, source: usize, _: usize| {
        let lie = Timing { bytes: 1, messages: 3, times: [f64::NAN; 5] };
        (source == 3).then(|| Ok(vec![lie]))
    };
    let params = params(r#"{"sizes": [1]}"#);
    for measured in
        [probed(&params, &hosts(&[1; 9]), &played(died)), probed(&params, &hosts(&[1; 9]), &played(lied))]
    {
        assert_eq!(down(&measured), ["h3"]);
        assert_eq!(measured.latencies().len(), 8 * 7 / 2);
    }
}

#[test]
fn a_host_that_reaches_no_other_is_down_and_a_missing_path_is_missing() {
    let cut = |_: u32, a: usize, b: usize| {
        let way = (a.min(b), a.max(b));
        (a == 5 || b == 5 || way == (0, 1)).then(|| Err(Fault::Connection("no route to host".into())))
    };
    for hosts in [hosts(&[1; 8]), hosts(&[1; 6])] {
        let agents = played(cut);
        let measured = probed(&params(r#"{"sizes": [1]}"#), &hosts, &agents);
        assert_eq!(down(&measured), ["h5"]);
        let others = hosts.len() - 1;
        assert_eq!(measured.latencies().len(), others * (others - 1) / 2 - 1);
        assert!(!measured.latencies().contains_key(&(0, 1)));
    }
    let unreachable_hosts =
        |_: u32, _: usize, _: usize| Some(Err(Fault::Connection("no route to host".into())));
    let measured = probed(&params(r#"{"sizes": [1]}"#), &hosts(&[1; 4]), &played(unreachable_hosts));
    assert!(measured.samples.is_empty());
}

#[test]
fn a_stop_returns_partial_results() {
    struct Stop;
    impl hopmap_model::Observer for Stop {
        fn progress(&self, _: u64, _: u64) {}
        fn log(&self, _: &str) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let cx = Context::new(1, None, &Stop);
    let (record, complete) = probe_hosts(&params("{}"), &hosts(&[1; 4]), &played(|_, _, _| None), &cx);
    assert!(!complete && record.finish().samples.is_empty());
}

#[test]
fn a_host_that_is_cut_off_times_out_once() {
    let meetings = AtomicU32::new(0);
    // The caller only sees that no data arrives: the network could be at fault.
    let agents = played(|asked, source, destination| match (source, destination) {
        (5, _) if asked == u32::MAX => Some(Err(Fault::Host("it sent no data for 5 s".into()))),
        (5, _) | (_, 5) => {
            meetings.fetch_add(1, Ordering::Relaxed);
            Some(Err(Fault::Connection("it sent no data for 5 s".into())))
        }
        _ => None,
    });
    let measured = probed(&params(r#"{"sizes": [1]}"#), &hosts(&[1; 6]), &agents);
    assert_eq!(down(&measured), ["h5"]);
    assert!(meetings.load(Ordering::Relaxed) <= 1, "{meetings:?}");
}
