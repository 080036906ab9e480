//! Networks to test, and measurements of them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopmap_test_network::{Description, Network};
use hopmap_test_support::system_tests;

/// One network at a time: two would take each other's processors while latencies are measured.
static ALONE: Mutex<()> = Mutex::new(());

/// Leave to test, if these tests were asked for.
pub(crate) fn wanted() -> Option<MutexGuard<'static, ()>> {
    system_tests().then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_hopmap-test-network"))
}

pub(crate) fn start(description: &Description) -> Network {
    Network::start_with(program(), description).unwrap_or_else(|error| panic!("{error}: {error:?}"))
}

/// Eight hosts: two racks of two switches of two.
pub(crate) fn racks() -> Description {
    Description::tree(&[2, 2, 2], &[200e-6, 500e-6, 1000e-6])
}

/// A program that answers on a host, until this is dropped.
pub(crate) struct Pong(Child);

impl Pong {
    pub(crate) fn start(network: &Network, host: usize) -> Self {
        let mut child = network
            .command(host, program())
            .args(["pong", &format!("{}:7000", network.address(host))])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n");
        Self(child)
    }
}

impl Drop for Pong {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that half the shortest round trip, in seconds, of messages of `bytes` bytes is `expected`.
///
/// What else runs on this machine can only make messages slower, so whatever is too slow is tried again, and the shortest of all
/// tries counts.
pub(crate) fn assert_half_round_trip(
    network: &Network,
    (from, to): (usize, usize),
    bytes: usize,
    expected: f64,
    tolerance: f64,
) {
    let count = if bytes == 1 { 250 } else { 4 };
    let mut shortest = f64::INFINITY;
    for _ in 0..8 {
        let output = ping(network, from, to, &[&count.to_string(), "--bytes", &bytes.to_string()]);
        let text = succeeded(output);
        shortest = shortest.min(text.split_whitespace().nth(1).unwrap().parse().unwrap());
        if shortest <= expected * (1.0 + tolerance) {
            break;
        }
    }
    assert_near(shortest, expected, tolerance);
}

/// Sends messages from a host to one that answers.
pub(crate) fn ping(network: &Network, from: usize, to: usize, arguments: &[&str]) -> Output {
    let address = format!("{}:7000", network.address(to));
    network.command(from, program()).args(["ping", &address]).args(arguments).output().unwrap()
}

/// What a command printed that must succeed.
pub(crate) fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn assert_near(measured: f64, injected: f64, tolerance: f64) {
    let off = measured / injected - 1.0;
    assert!(off.abs() <= tolerance, "{measured} measured, {injected} injected");
}

/// Waits until something holds; a machine that is very busy may take a while.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}
