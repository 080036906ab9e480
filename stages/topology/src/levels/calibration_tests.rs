//! A machine with known rates, overheads and protocols: eight hosts of two endpoints below a tree of switches.

use hopmap_model::{CallTime, CostModel, Endpoint, NodeState};
use proptest::prelude::*;

use super::*;
use crate::levels::{LevelsParams, levels};

const SIZES: [u64; 6] = [1, 1024, 8192, 65_536, 262_144, 1 << 20];
const EAGER: u64 = 65_483;
const LINK_S: f64 = 20e-6;
const SEND: (f64, f64) = (4e-6, 1e-10);
const RECV: (f64, f64) = (6e-6, 2e-10);
/// A long message waits for a round trip.
const HANDSHAKE: f64 = 3.0;
const MEMORY: (f64, f64) = (30e-6, 2e9);

/// Bytes per second of the links of hosts, of their switches and of the switches above.
struct Truth {
    rates: [f64; 3],
}

impl Truth {
    fn level(a: u32, b: u32) -> usize {
        let (a, b) = (a / 2, b / 2);
        (0..4).find(|level| a >> level == b >> level).unwrap()
    }

    /// Seconds of a message between two endpoints.
    fn time(&self, a: u32, b: u32, bytes: u64) -> f64 {
        let (level, bytes_f) = (Self::level(a, b), bytes as f64);
        if level == 0 {
            return MEMORY.0 + bytes_f / MEMORY.1;
        }
        let latency = 2.0 * level as f64 * LINK_S;
        let rate = self.rates[..level].iter().copied().fold(f64::INFINITY, f64::min);
        match bytes < EAGER {
            true => SEND.0 + RECV.0 + (SEND.1 + RECV.1) * bytes_f + latency + bytes_f / rate,
            false => SEND.0 + RECV.0 + HANDSHAKE * latency + bytes_f / rate,
        }
    }

    /// Measurements with one-sided noise up to `noise`.
    fn measured(&self, noise: f64, mut random: impl FnMut() -> f64) -> Measurements {
        let mut with_error = |seconds: f64| seconds * (1.0 + noise * random());
        let endpoint =
            |index: u32| Endpoint { host: format!("n{}", index / 2), core: index % 2, state: NodeState::Up };
        let mut measured =
            Measurements { endpoints: (0..16).map(endpoint).collect(), ..Measurements::default() };
        let alone = [(0, 1), (0, 2), (14, 12), (0, 4), (14, 10), (0, 8), (14, 6)];
        for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))) {
            if a == b || !(a / 2 == b / 2 || (a % 2 == 0 && b % 2 == 0)) {
                continue;
            }
            for phase in [ProbePhase::Latency, ProbePhase::Alone] {
                if phase == ProbePhase::Alone && !alone.contains(&(a, b)) {
                    continue;
                }
                for bytes in SIZES {
                    let time = with_error(self.time(a, b, bytes) + self.time(b, a, 1));
                    let [minimum_s, first_decile_s, median_s, ninth_decile_s, maximum_s] = [time; 5];
                    let (source, destination, messages) = (a, b, 50);
                    measured.samples.push(Sample {
                        source,
                        destination,
                        phase,
                        bytes,
                        messages,
                        minimum_s,
                        first_decile_s,
                        median_s,
                        ninth_decile_s,
                        maximum_s,
                    });
                }
            }
            if alone.contains(&(a, b)) && a / 2 != b / 2 {
                for (call, (start, slope)) in [(Call::Send, SEND), (Call::Isend, SEND), (Call::Recv, RECV)] {
                    for bytes in SIZES {
                        let median_s = with_error(start + slope * bytes as f64);
                        let (source, destination, messages) = (a, b, 20);
                        let (minimum_s, maximum_s) = (median_s, median_s);
                        measured.calls.push(CallTime {
                            source,
                            destination,
                            call,
                            bytes,
                            messages,
                            minimum_s,
                            median_s,
                            maximum_s,
                        });
                    }
                }
            }
        }
        // All hosts of a switch send to those of its sibling, and all of one half to the other.
        let steps = [[(0, 4), (2, 6), (8, 12), (10, 14)], [(0, 8), (2, 10), (4, 12), (6, 14)]];
        let back = steps.map(|pairs| pairs.map(|(a, b)| (b, a)));
        for (step, mut pairs) in (0..).zip(steps.into_iter().chain(back)) {
            pairs.sort_unstable();
            for (source, destination) in pairs {
                let shared = [self.rates[0], self.rates[1] / 2.0, self.rates[2] / 4.0];
                let level = Self::level(source, destination);
                let bytes_per_s = shared[..level].iter().copied().fold(f64::INFINITY, f64::min);
                let bytes = (5.0 * bytes_per_s) as u64;
                measured.streams.push(StreamRate { step, source, destination, bytes, seconds: 5.0 });
            }
        }
        measured.eager_limit = Some(EAGER);
        measured.check().unwrap();
        measured
    }
}

/// The seconds of a message by the calibration.
fn predicted(system: &SystemGraph, a: u32, b: u32, bytes: u64) -> f64 {
    let of = |cost| {
        let rows = system.calibration.iter().filter(move |row| row.cost == cost);
        let mut applies = rows.clone().filter(|row| bytes > row.above_bytes);
        let row = applies.next_back().or(rows.clone().next()).unwrap();
        row.value + row.per_byte * bytes as f64
    };
    let links = Paths::new(system).unwrap().path(a / 2, b / 2).unwrap();
    let links = links.into_iter().map(|link| system.links[link as usize]);
    let latency: f64 = links.clone().map(|link| link.latency_s.unwrap()).sum();
    let bandwidth = links.map(|link| link.bandwidth_bytes_per_s.unwrap()).fold(f64::INFINITY, f64::min);
    let ends = if bytes < EAGER { of(CostName::Send) + of(CostName::Recv) } else { 0.0 };
    let transfer = bytes as f64 / (bandwidth * of(CostName::BandwidthFactor));
    ends + latency * of(CostName::LatencyFactor) + transfer
}

fn near(found: f64, truth: f64, tolerance: f64) -> bool {
    (found / truth - 1.0).abs() <= tolerance
}

#[test]
fn capacities_and_costs_of_a_machine_are_found() {
    let truth = Truth { rates: [12.5e6, 12.5e6, 20e6] };
    let system = levels(&truth.measured(0.0, || 0.0), &LevelsParams::default()).unwrap();
    assert!(matches!(&system.cost, CostModel::Levels(levels) if levels.costs.len() == 4));
    for (link, height) in system.links.iter().zip(heights(&system)) {
        let (rate, latency) = (link.bandwidth_bytes_per_s.unwrap(), link.latency_s.unwrap());
        // The pair of uplinks of the upper switches carries no more than 20 MB/s, less than their own uplinks.
        assert!(near(rate, truth.rates[height], 0.02), "{link:?}");
        assert!(near(latency, LINK_S, 0.02), "{link:?}");
    }
    for bytes in SIZES {
        for (a, b) in [(0, 2), (0, 4), (0, 8)] {
            let (found, time) = (predicted(&system, a, b, bytes), truth.time(a, b, bytes));
            assert!(near(found, time, 0.05), "{a} to {b}, {bytes} B: {found}, not {time}");
        }
    }
    let value = |cost| system.calibration.iter().find(|row| row.cost == cost).unwrap().value;
    assert!(near(value(CostName::Send), SEND.0, 0.01) && near(value(CostName::Recv), RECV.0, 0.01));
    assert!(near(value(CostName::EagerLimit), EAGER as f64, 1e-9));
    assert!(near(value(CostName::MemoryLatency), MEMORY.0 - SEND.0 - RECV.0, 0.05));
    assert!(near(value(CostName::MemoryBandwidth), MEMORY.1, 0.05));
}

#[test]
fn measurements_without_pairs_alone_leave_the_machine_as_it_was() {
    let truth = Truth { rates: [12.5e6; 3] };
    let mut measured = truth.measured(0.0, || 0.0);
    measured.samples.retain(|sample| sample.phase != ProbePhase::Alone);
    assert_eq!(levels(&measured, &LevelsParams::default()).unwrap().calibration, []);
}

proptest! {
    /// Rates of 10 Mbit/s to 10 Gbit/s, in any order from the hosts up, with noise up to 10 %.
    #[test]
    fn any_rates_give_valid_machines_that_predict_what_was_measured(
        rates in prop::array::uniform3(1.25e6_f64..1.25e9),
        noise in 0.0_f64..0.1,
        draws in prop::collection::vec(0.0_f64..1.0, 97).no_shrink(),
    ) {
        let truth = Truth { rates };
        let mut next = 0;
        let measured = truth.measured(noise, || { next += 1; draws[next % draws.len()] });
        let system = levels(&measured, &LevelsParams::default()).unwrap();
        system.check().unwrap();
        for (a, b) in [(0, 2), (0, 4), (0, 8)] {
            for bytes in [1, 8192, 1 << 20] {
                let (found, time) = (predicted(&system, a, b, bytes), truth.time(a, b, bytes));
                prop_assert!(near(found, time, 0.1 + 3.0 * noise), "{a} to {b}, {bytes} B: {found}, not {time}");
            }
        }
    }
}

#[test]
fn a_stream_that_ran_alone_in_the_end_does_not_raise_the_capacity() {
    let routes = Routes {
        links: vec![vec![], vec![0, 1], vec![0, 2], vec![], vec![], vec![], vec![], vec![], vec![]],
        hosts: 3,
        host_of: vec![0, 1, 2],
    };
    let stream = |destination, bytes, seconds| StreamRate { step: 0, source: 0, destination, bytes, seconds };
    assert_eq!(rates_of_step(&[stream(1, 50, 1.0), stream(2, 150, 2.0)], &routes, 3), [100.0, 50.0, 75.0]);
}
