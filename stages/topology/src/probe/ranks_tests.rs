//! Probing between processes that are threads.

use super::*;
use hopmap_model::Timed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A process simulated by a thread, with a channel to every other one. Messages to other hosts are delayed.
struct Process {
    number: u32,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
    far: Vec<bool>,
}

impl Communicator for Process {
    fn process(&self) -> u32 {
        self.number
    }

    fn processes(&self) -> u32 {
        self.to.len() as u32
    }

    fn shift(&self, _: Vec<u8>) -> Result<Vec<u8>, Error> {
        unreachable!("probing needs no ring")
    }

    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        for process in 0..self.processes() {
            self.send(process, bytes.clone())?;
        }
        (0..self.processes()).map(|process| self.receive(process)).collect()
    }

    fn send(&self, process: u32, bytes: Vec<u8>) -> Result<(), Error> {
        self.to[process as usize].send(bytes).map_err(|_| Error::msg("a process is gone"))
    }

    fn receive(&self, process: u32) -> Result<Vec<u8>, Error> {
        let from = self.from[process as usize].lock().unwrap_or_else(PoisonError::into_inner);
        from.recv_timeout(Duration::from_secs(20)).map_err(|_| Error::msg("a process is gone"))
    }

    fn time(&self, process: u32, timed: Timed) -> Result<Vec<f64>, Error> {
        let message = |_| {
            let begin = Instant::now();
            self.send(process, vec![0; timed.bytes as usize])?;
            self.receive(process)?;
            let far = if self.far[process as usize] { 1e-3 } else { 0.0 };
            Ok(begin.elapsed().as_secs_f64() + far)
        };
        (0..timed.messages).map(message).collect()
    }

    fn answer(&self, process: u32, timed: Timed) -> Result<(), Error> {
        (0..timed.messages).try_for_each(|_| {
            self.receive(process)?;
            self.send(process, vec![0])
        })
    }
}

/// Runs a probing on the processes of some hosts; returns the result of each.
fn on_hosts(hosts: &[&str], params: &str) -> Vec<Result<(Measurements, bool), String>> {
    let params: ProbeParams = serde_json::from_str(params).unwrap();
    let far = |a: usize| hosts.iter().map(|host| *host != hosts[a]).collect();
    let mut all: Vec<Process> = (0..hosts.len())
        .map(|process| Process { number: process as u32, to: vec![], from: vec![], far: far(process) })
        .collect();
    for source in 0..hosts.len() {
        for destination in 0..hosts.len() {
            let (to, from) = channel();
            all[source].to.push(to);
            all[destination].from.push(Mutex::new(from));
        }
    }
    std::thread::scope(|scope| {
        let params = &params;
        let run = |(process, host): (Process, &'static str)| {
            scope.spawn(move || {
                probe_ranks(params, host, &process, &Context::detached()).map_err(|error| error.to_string())
            })
        };
        let hosts: Vec<&'static str> =
            hosts.iter().map(|host| &*Box::leak(host.to_string().into_boxed_str())).collect();
        let threads: Vec<_> = all.into_iter().zip(hosts).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn the_first_process_gets_all_measurements() {
    let params = r#"{"sizes": [1, 256, 131072], "messages": 20, "bandwidth": "both", "parallel": 1, "calibrate": false}"#;
    // Ranks are dealt out to the hosts in turn, as launchers may do.
    let mut all = on_hosts(&["a", "b", "c", "a", "b", "a", "c"], params);
    let (measured, complete) = all.remove(0).unwrap();
    assert!(complete);
    measured.check().unwrap();
    assert_eq!(measured.hosts().collect::<Vec<_>>(), [("a", 0, 3), ("b", 3, 2), ("c", 5, 2)]);
    // 3 pairs of hosts and 3 + 1 + 1 inside, both ways, two small sizes and one large one in two phases.
    assert_eq!(measured.samples.len(), 8 * 2 * 4);
    for (pair, latency) in measured.latencies() {
        let is_far = pair.0 < 3 && pair.1 >= 3 || pair == (3, 5);
        assert_eq!(latency >= 5e-4, is_far, "{pair:?}: {latency}");
    }
    for other in all {
        assert!(other.unwrap().0.endpoints.is_empty());
    }
}

#[test]
fn hosts_are_measured_between_their_first_processes() {
    let params = r#"{"sizes": [1], "messages": 5, "measure_intra_node": false, "calibrate": true}"#;
    let mut all = on_hosts(&["a", "a", "b", "b"], params);
    let (measured, _) = all.remove(0).unwrap();
    // Of the only pair, both directions are measured once more, alone.
    assert_eq!((measured.endpoints.len(), measured.samples.len()), (2, 4));
    let calls = measured.calls.iter().map(|call| (call.source, call.destination));
    assert_eq!(calls.collect::<Vec<_>>(), [(0, 1), (0, 1), (0, 1), (1, 0), (1, 0), (1, 0)]);
}

#[test]
fn one_process_has_no_partner() {
    let message = on_hosts(&["a"], "{}").remove(0).unwrap_err();
    assert_eq!(message, "`a` has no partner: a measurement needs two hosts or cores");
    let all = on_hosts(&["a", "a"], r#"{"measure_intra_node": false}"#);
    assert!(all.into_iter().all(|one| one.is_err()));
}
