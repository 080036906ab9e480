//! Processing of arbitrary bytes sent to an agent or a coordinator: it ends in an error or in the requested
//! result.
//!
//! Called by a test with damaged conversations and by a fuzz target in `fuzz/`.
#![allow(clippy::unwrap_used, reason = "faults are reported by panics")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hopmap_topology::agent::{
    ANSWER_BYTES, AgentConnection, Answer, CorePair, Description, Frames, Keys, Link, REQUEST_BYTES, Role,
    Token, Work, answer, call, converse, respond,
};
use hopmap_topology::probe::{Sampling, Timing};

/// Number of entry points.
pub(crate) const WAYS: usize = 6;

/// Processes bytes at one of the [`WAYS`]: from a stranger, from a peer, or from a coordinator or an agent
/// after the handshake, the latter two raw or line by line in authenticated frames.
pub(crate) fn protocol(way: usize, bytes: &[u8]) {
    match way % WAYS {
        0 => stranger(bytes),
        1 => peer(bytes),
        2 => _ = coordinator(bytes),
        3 => {
            let frames = sealed(Role::Coordinator, bytes, REQUEST_BYTES);
            let (requests, answers) = (frames.1, coordinator(&frames.0));
            assert!(answers >= requests, "{answers} answers to {requests} requests");
        }
        4 => agent(bytes),
        _ => agent(&sealed(Role::Agent, bytes, ANSWER_BYTES).0),
    }
}

fn stranger(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    assert!(answer(&mut tape, &token(), &[1; 32], soon()).is_err());
    // A greeting, and the rejection of the token.
    assert!([0, 43, 44].contains(&tape.written.len()));
    let mut tape = Tape::new(bytes);
    assert!(call(&mut tape, Role::Peer, &token(), &[1; 32], soon()).is_err());
}

fn peer(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let _ = respond(&mut tape, soon());
    assert!(tape.written.len() <= bytes.len());
}

/// Sends an agent the bytes after a handshake; returns the number of frames it answers, the last of which may
/// be a rejection.
fn coordinator(bytes: &[u8]) -> usize {
    let mut tape = Tape::new(bytes);
    let mut frames = Frames::new(Role::Agent, &KEYS);
    let _ = converse(&mut tape, &mut frames, &Idle, &AtomicU64::new(0), soon());
    let (mut answers, mut frames) = (Tape::new(&tape.written), Frames::new(Role::Coordinator, &KEYS));
    let mut count = 0;
    while let Ok(body) = frames.read(&mut answers, ANSWER_BYTES, soon()) {
        serde_json::from_slice::<Answer>(&body).unwrap();
        count += 1;
    }
    assert!(answers.unread.is_empty());
    count
}

/// Sends a coordinator the bytes as replies to its requests.
fn agent(bytes: &[u8]) {
    let connect = || {
        let second = Duration::from_secs(1);
        AgentConnection::over(Tape::new(bytes), &KEYS, "a".to_owned(), second)
    };
    let sampling = sampling();
    if let Err(error) = connect().describe() {
        assert!((1..5000).contains(&error.to_string().len()));
    }
    if let Ok(timings) = connect().measure(ADDRESS, &sampling, 1.0) {
        assert_eq!(timings.len(), sampling.sizes.len());
    }
    if let Ok(pairs) = connect().cores(None, false, &sampling, 1.0) {
        assert!(pairs.iter().all(|pair| pair.timings.len() == sampling.sizes.len()));
    }
    let mut connection = connect();
    for _ in 0..4 {
        let _ = connection.describe();
    }
    let _ = connection.end();
}

/// Lines as frames of one side, and their number.
fn sealed(role: Role, bytes: &[u8], limit: usize) -> (Vec<u8>, usize) {
    let mut tape = Tape::new(&[]);
    let mut frames = Frames::new(role, &KEYS);
    let lines = bytes.split(|byte| *byte == b'\n').take_while(|line| line.len() <= limit);
    let count = lines.map(|line| frames.write(&mut tape, line).unwrap()).count();
    (tape.written, count)
}

/// Bodies of frames after writing and reading.
#[allow(dead_code, reason = "not every user needs it")]
pub(crate) fn over_and_back(bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut tape, mut frames) = (Tape::new(&[]), Frames::new(Role::Coordinator, &KEYS));
    bodies.iter().for_each(|body| frames.write(&mut tape, body).unwrap());
    let (mut tape, mut frames) = (Tape::new(&tape.written), Frames::new(Role::Agent, &KEYS));
    std::iter::from_fn(|| frames.read(&mut tape, REQUEST_BYTES, soon()).ok()).collect()
}

/// An agent that does nothing.
struct Idle;

impl Work for Idle {
    fn describe(&self) -> Description {
        Description { host: "a".into(), cores: vec![0], version: "0".into(), seconds_left: 1.0 }
    }

    fn measure(&self, _: SocketAddr, sampling: &Sampling, until: Instant) -> Result<Vec<Timing>, String> {
        assert!(until <= soon() && (1..=64).contains(&sampling.sizes.len()));
        let timing = |&bytes| Timing { bytes, messages: 1, times: [1e-6; 5] };
        Ok(sampling.sizes.iter().map(timing).collect())
    }

    fn cores(
        &self,
        cores: Option<Vec<u32>>,
        _: bool,
        sampling: &Sampling,
        until: Instant,
        send: &mut dyn FnMut(Vec<CorePair>) -> bool,
    ) -> Result<(), String> {
        let timings = self.measure(ADDRESS, sampling, until)?;
        let pair = |destination| CorePair { source: 0, destination, timings: timings.clone() };
        match send(cores.unwrap_or_default().into_iter().take(100).map(pair).collect()) {
            true => Ok(()),
            false => Err("the receiver is gone".to_owned()),
        }
    }
}

pub(crate) const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4000);

pub(crate) fn sampling() -> Sampling {
    Sampling {
        sizes: vec![1, 4096],
        warm_up: 1,
        warm_up_bytes: 0,
        batch: 5,
        most: 20,
        calm_batches: 2,
        tolerance: 0.5,
        seconds: 1.0,
    }
}

fn token() -> Token {
    Token::parse(&"5a".repeat(32)).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

/// Keys of a completed handshake.
static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let answering = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let caller = answer(&mut stream, &token(), &[1; 32], soon()).unwrap();
        caller.welcome(&mut stream, soon()).unwrap();
    });
    let keys = call(&mut stream, Role::Coordinator, &token(), &[2; 32], soon()).unwrap();
    answering.join().unwrap();
    keys
});

/// A connection with recorded input; output is recorded.
struct Tape<'a> {
    unread: &'a [u8],
    written: Vec<u8>,
}

impl<'a> Tape<'a> {
    fn new(unread: &'a [u8]) -> Self {
        Self { unread, written: Vec::new() }
    }
}

impl Read for Tape<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Networks split data at any position.
        let most = buffer.len().min(1000);
        self.unread.read(&mut buffer[..most])
    }
}

impl Write for Tape<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Link for Tape<'_> {
    fn limit(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}
