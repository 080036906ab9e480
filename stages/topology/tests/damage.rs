//! Damages messages between agents and coordinators: any bytes end in an error or in the requested result.
//!
//! `HOPMAP_SOAK=1` runs many thousands of cases; `HOPMAP_SEED=N` repeats one.

use hopmap_test_support::{Random, damage, seeds};
use hopmap_topology::agent::{Answer, CorePair, Description, Request};
use hopmap_topology::probe::{Sampling, Timing};
use proptest::prelude::*;

use crate::support::body;

const TELLING: &[u8] = b"\"{}[]:,.\n\\u0019-+eE\x00\x01\x02\xff";

/// Valid bytes for each of the entry points.
fn valid_bytes(way: usize, random: &mut Random) -> Vec<u8> {
    match way {
        0 => {
            let mut greeting = b"hopmap-a\x00\x01\x00".to_vec();
            greeting.extend([7; 32 + 32]);
            greeting
        }
        1 => [&3_u64.to_be_bytes()[..], &2_u32.to_be_bytes(), b"abcabc"].concat().repeat(1 + random.below(3)),
        2 | 3 => lines(requests().iter().map(|request| serde_json::to_string(request).unwrap())),
        _ => lines(answers(random).iter().map(|answer| serde_json::to_string(answer).unwrap())),
    }
}

fn lines(texts: impl Iterator<Item = String>) -> Vec<u8> {
    texts.collect::<Vec<_>>().join("\n").into_bytes()
}

fn requests() -> Vec<Request> {
    let (address, sampling, seconds) = (body::ADDRESS, body::sampling(), 1.0);
    vec![
        Request::Describe,
        Request::Measure { address, sampling: sampling.clone(), seconds },
        Request::Cores { cores: Some(vec![0, 3]), together: true, sampling, seconds },
        Request::End,
    ]
}

/// Replies, with a different one first each time.
fn answers(random: &mut Random) -> Vec<Answer> {
    let timings: Vec<Timing> = body::sampling()
        .sizes
        .into_iter()
        .map(|bytes| Timing { bytes, messages: 3, times: [1e-6; 5] })
        .collect();
    let (host, version) = ("a".to_owned(), "0".to_owned());
    let mut answers = vec![
        Answer::Description(Description { host, cores: vec![0, 1], version, seconds_left: 5.0 }),
        Answer::Timings(timings.clone()),
        Answer::Cores(vec![CorePair { source: 0, destination: 1, timings }]),
        Answer::Done,
        Answer::Failed("no".to_owned()),
    ];
    let first = random.below(answers.len());
    answers.rotate_left(first);
    answers
}

#[test]
fn damaged_conversations_end_in_an_error_or_an_answer() {
    for seed in seeds(5000, 1_000_000) {
        let mut random = Random(seed);
        let way = random.below(body::WAYS);
        let mut bytes = valid_bytes(way, &mut random);
        damage(&mut bytes, &mut random, TELLING);
        body::protocol(way, &bytes);
    }
}

#[test]
fn undamaged_conversations_are_understood() {
    for way in 0..body::WAYS {
        body::protocol(way, &valid_bytes(way, &mut Random(1)));
        body::protocol(way, b"");
    }
}

fn any_sampling() -> impl Strategy<Value = Sampling> {
    let sizes = proptest::collection::vec(any::<u64>(), 0..5);
    let parts = (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>(), -900..900_i32);
    (sizes, parts).prop_map(|(sizes, (warm_up, warm_up_bytes, batch, most, calm_batches, number))| Sampling {
        sizes,
        warm_up,
        warm_up_bytes,
        batch,
        most,
        calm_batches,
        tolerance: f64::from(number) / 4.0,
        seconds: f64::from(number) * 2.0,
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    let address = (any::<std::net::IpAddr>(), any::<u16>()).prop_map(std::net::SocketAddr::from);
    let cores = proptest::option::of(proptest::collection::vec(any::<u32>(), 0..9));
    prop_oneof![
        Just(Request::Describe),
        Just(Request::End),
        (address, any_sampling(), 0..99_u32).prop_map(|(address, sampling, seconds)| Request::Measure {
            address,
            sampling,
            seconds: f64::from(seconds) / 8.0
        }),
        (cores, any::<bool>(), any_sampling()).prop_map(|(cores, together, sampling)| Request::Cores {
            cores,
            together,
            sampling,
            seconds: 2.5
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_are_read_as_they_were_written(request in any_request()) {
        let text = serde_json::to_vec(&request).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Request>(&text).unwrap(), request);
    }

    #[test]
    fn frames_are_read_as_they_were_written(bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 0..6)) {
        prop_assert_eq!(body::over_and_back(&bodies), bodies);
    }
}
