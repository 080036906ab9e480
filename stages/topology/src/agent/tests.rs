//! Agents, coordinators and strangers over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::*;
use crate::probe::Sampling;

/// An agent in its own thread.
struct Started {
    address: SocketAddr,
    stopper: Stopper,
    thread: JoinHandle<Ending>,
    refused: Arc<Mutex<Vec<String>>>,
}

fn token() -> Token {
    Token::parse(&"5a".repeat(32)).unwrap()
}

fn start_for(lifetime: Duration) -> Started {
    let settings = AgentSettings {
        address: "127.0.0.1:0".parse().unwrap(),
        host: "node-7".to_owned(),
        lifetime,
        token: token(),
    };
    let refused = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&refused);
    let agent = Agent::bind(settings, move |line| lines.lock().unwrap().push(line.to_owned())).unwrap();
    let (address, stopper) = (agent.address(), agent.stopper());
    let cores = own_cores().len();
    assert_eq!(agent.line(), format!("hopmap agent 1 node-7 {address} {cores}"));
    Started { address, stopper, thread: thread::spawn(move || agent.serve().unwrap()), refused }
}

fn start() -> Started {
    start_for(Duration::from_mins(1))
}

impl Started {
    fn connect(&self) -> Result<AgentConnection, ClientError> {
        AgentConnection::connect(self.address, &token(), Duration::from_secs(20))
    }

    /// The log of rejected callers, which must not be empty.
    fn refusal(&self) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match self.refused.lock().unwrap().pop() {
                Some(line) => return line,
                None => assert!(Instant::now() < until, "no caller was rejected"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks that the agent still serves, and stops it.
    fn end(self) {
        let connection = self.connect().unwrap();
        connection.end().unwrap();
        assert_eq!(self.thread.join().unwrap(), Ending::End);
    }
}

fn sampling(sizes: &[u64]) -> Sampling {
    Sampling {
        sizes: sizes.to_vec(),
        warm_up: 2,
        warm_up_bytes: 0,
        batch: 5,
        most: 20,
        calm_batches: 2,
        tolerance: 0.5,
        seconds: 2.0,
    }
}

#[test]
fn two_agents_measure_each_other() {
    let [first, second] = [start(), start()];
    let mut connections = [first.connect().unwrap(), second.connect().unwrap()];
    let description = connections[0].describe().unwrap();
    assert_eq!((description.host.as_str(), description.cores), ("node-7", own_cores()));
    assert!(description.seconds_left > 1.0 && description.seconds_left <= 60.0);
    assert_eq!(connections[0].agent(), format!("node-7 ({})", first.address));
    for (connection, other) in connections.iter_mut().zip([second.address, first.address]) {
        let timings = connection.measure(other, &sampling(&[1, 5000, 1 << 20]), 30.0).unwrap();
        assert_eq!(timings.iter().map(|timing| timing.bytes).collect::<Vec<_>>(), [1, 5000, 1 << 20]);
    }
    let [one, other] = connections;
    one.end().unwrap();
    other.end().unwrap();
    assert_eq!(first.thread.join().unwrap(), Ending::End);
    assert_eq!(second.thread.join().unwrap(), Ending::End);
}

#[test]
fn a_request_that_fails_leaves_the_connection_usable() {
    let agent = start();
    let mut connection = agent.connect().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut message = |address, sampling: &Sampling, seconds| {
        connection.measure(address, sampling, seconds).unwrap_err().to_string()
    };
    assert!(message(closed, &sampling(&[1]), 5.0).contains(&format!("{closed} cannot be reached")));
    assert!(message(closed, &sampling(&[]), 5.0).contains("0 sizes requested"));
    assert!(
        message(closed, &sampling(&[MESSAGE_BYTES + 1]), 5.0).contains("message sizes must be from 1 to")
    );
    assert!(message(closed, &sampling(&[0]), 5.0).contains("message sizes must be from 1 to"));
    assert!(message(closed, &Sampling { most: MESSAGES + 1, ..sampling(&[1]) }, 5.0).contains("at most"));
    assert!(message(closed, &Sampling { batch: 0, ..sampling(&[1]) }, 5.0).contains("at least 1"));
    for seconds in [0.0, -1.0, 1e300] {
        assert!(message(closed, &sampling(&[1]), seconds).contains("seconds must be above 0"));
    }
    let unknown = connection.cores(Some(&[1 << 20]), false, &sampling(&[1]), 5.0).unwrap_err();
    assert!(unknown.to_string().contains("core 1048576 is not available"), "{unknown}");
    connection.describe().unwrap();
    drop(connection);
    agent.end();
}

#[test]
fn cores_are_measured_through_an_agent() {
    let agent = start();
    let mut connection = agent.connect().unwrap();
    let cores = own_cores();
    let cores = &cores[..cores.len().min(3)];
    let pairs = connection.cores(Some(cores), true, &sampling(&[1, 4096]), 30.0).unwrap();
    assert_eq!(pairs.len(), cores.len() * (cores.len() - 1) / 2);
    assert_eq!(connection.cores(Some(&cores[..1]), false, &sampling(&[1]), 30.0).unwrap(), []);
    drop(connection);
    agent.end();
}

#[test]
fn callers_without_the_token_are_rejected() {
    let agent = start();
    let other = Token::parse(&"5b".repeat(32)).unwrap();
    let error = AgentConnection::connect(agent.address, &other, Duration::from_secs(20)).err().unwrap();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    assert!(agent.refusal().ends_with("does not know the token"));
    let error =
        TcpWire::connect(agent.address, &other, Instant::now() + Duration::from_secs(20)).err().unwrap();
    assert_eq!(error.to_string(), "rejected the token");
    agent.end();
}

#[test]
fn strangers_receive_nothing() {
    let agent = start();
    for words in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\nAccept: everything\r\n"[..], &[0xff; 100], &[0; 43]] {
        let mut stream = TcpStream::connect(agent.address).unwrap();
        let _ = stream.write_all(words);
        let mut heard = Vec::new();
        // It may close the connection before everything is sent.
        let _ = stream.read_to_end(&mut heard);
        assert!(heard.is_empty(), "{heard:?}");
        assert!(agent.refusal().ends_with("does not use hopmap's protocol"));
    }
    agent.end();
}

#[test]
fn another_version_is_reported() {
    let agent = start();
    let mut stream = TcpStream::connect(agent.address).unwrap();
    let mut greeting = [0; 43];
    greeting[..8].copy_from_slice(b"hopmap-a");
    greeting[9] = 9;
    stream.write_all(&greeting).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!((heard.len(), &heard[..10]), (43, &b"hopmap-a\x00\x01"[..]));
    assert!(agent.refusal().ends_with("uses protocol version 9, not 1"));
    agent.end();
    let error = connect_to(move |mut stream| {
        let _ = stream.write_all(&greeting);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(error.to_string().ends_with("uses protocol version 9, not 1"), "{error}");
}

#[test]
fn an_incomplete_handshake_times_out_and_blocks_no_other_caller() {
    let agent = start();
    let held: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(agent.address).unwrap();
            stream.write_all(b"hopmap-a\x00\x01\x00").unwrap();
            stream
        })
        .collect();
    agent.connect().unwrap().describe().unwrap();
    for mut stream in held {
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    assert!(agent.refusal().ends_with("did not authenticate in time"));
    agent.end();
}

#[test]
fn too_many_callers_displace_the_oldest() {
    let agent = start();
    let mut held: Vec<TcpStream> = (0..9).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    assert_eq!(held[0].read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(agent.refusal().ends_with("too many callers at once"));
    held[8].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(held[8].read(&mut [0]).is_err(), "the newest caller is rejected");
    agent.stopper.stop();
    assert_eq!(agent.thread.join().unwrap(), Ending::Stopped);
}

#[test]
fn idle_strangers_do_not_block_a_coordinator() {
    let agent = start();
    let _held: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    agent.connect().unwrap().describe().unwrap();
    agent.end();
}

#[test]
fn a_second_coordinator_is_rejected() {
    let agent = start();
    let mut first = agent.connect().unwrap();
    let error = agent.connect().err().unwrap();
    assert!(matches!(error, ClientError::Busy { .. }), "{error}");
    assert!(agent.refusal().ends_with("exceeds the limit of its role (coordinator)"));
    first.describe().unwrap();
    first.end().unwrap();
    agent.thread.join().unwrap();
}

#[test]
fn an_agent_stops_at_its_time_limit_even_while_measuring() {
    let agent = start_for(Duration::from_millis(300));
    let mut connection = agent.connect().unwrap();
    assert_eq!(agent.thread.join().unwrap(), Ending::TimeLimit);
    let error = connection.describe().unwrap_err();
    assert!(matches!(error, ClientError::Gone { .. }), "{error}");
    let error = AgentConnection::connect(agent.address, &token(), Duration::from_secs(5)).err().unwrap();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

#[test]
fn a_frame_modified_in_transit_ends_the_connection() {
    let agent = start();
    let mut stream = TcpStream::connect(agent.address).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    call(&mut stream, Role::Coordinator, &token(), &[1; 32], until).unwrap();
    let body = br#""describe""#;
    let frame = [&(body.len() as u32).to_be_bytes()[..], &[0; 32], body].concat();
    stream.write_all(&frame).unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(agent.refusal().contains("invalid authentication code"));
    agent.end();
}

#[test]
fn an_oversized_frame_is_not_read() {
    let agent = start();
    let mut stream = TcpStream::connect(agent.address).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    call(&mut stream, Role::Coordinator, &token(), &[1; 32], until).unwrap();
    stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(agent.refusal().contains("announced 4294967295 bytes, more than 65536"));
    agent.end();
}

/// The error of a coordinator that connects to a simulated agent.
fn connect_to(play: impl FnOnce(TcpStream) + Send + 'static) -> ClientError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let player = thread::spawn(move || play(listener.accept().unwrap().0));
    let connection = AgentConnection::connect(address, &token(), Duration::from_millis(500));
    let error = connection.and_then(|mut connection| connection.describe()).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    player.join().unwrap();
    error
}

/// Simulates an agent that knows the token and sends a given reply to the first request.
fn connect_to_answer(body: &'static [u8], length: usize) -> ClientError {
    connect_to(move |mut stream| {
        let until = Instant::now() + Duration::from_secs(20);
        let caller = answer(&mut stream, &token(), &[2; 32], until).unwrap();
        caller.welcome(&mut stream, until).unwrap();
        let mut frames = Frames::new(Role::Agent, &caller.keys);
        frames.read(&mut stream, REQUEST_BYTES, until).unwrap();
        let mut sent = Vec::new();
        frames.write(&mut Recorder(&mut sent), body).unwrap();
        stream.write_all(&sent[..sent.len().min(length)]).unwrap();
    })
}

/// Records what is written.
struct Recorder<'a>(&'a mut Vec<u8>);

impl Read for Recorder<'_> {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }
}

impl Write for Recorder<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Link for Recorder<'_> {
    fn limit(&mut self, _: Duration) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn faults_of_agents_are_distinguished() {
    let error = connect_to(|mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(error, ClientError::NotAnAgent { .. }), "{error}");
    let error = connect_to(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(error, ClientError::Silent { .. }), "{error}");
    let error = connect_to(drop);
    assert!(matches!(error, ClientError::Gone { .. }), "{error}");
    let error = connect_to_answer(br#"{"failed":"no such thing\u001b[2J"}"#, usize::MAX);
    assert!(matches!(error, ClientError::Failed { .. }), "{error}");
    assert!(error.to_string().ends_with(r"no such thing\u{1b}[2J"), "{error}");
    let error = connect_to_answer(br#"{"timings":[]}"#, usize::MAX);
    assert!(error.to_string().contains("unexpected times of unrequested messages"), "{error}");
    let error = connect_to_answer(br#"{"description":"me"}"#, usize::MAX);
    assert!(matches!(error, ClientError::Nonsense { .. }), "{error}");
    let error = connect_to_answer(br#""done""#, 20);
    assert!(matches!(error, ClientError::Gone { .. }), "{error}");
}

/// An attacker that does not know the token and replays the messages of a real agent to another caller.
#[test]
fn a_replayed_proof_of_an_agent_is_detected() {
    let error = connect_to(|mut stream| {
        let until = Instant::now() + Duration::from_secs(20);
        let other = Token::parse(&"5b".repeat(32)).unwrap();
        let mut greeting = [0; 43];
        stream.read_exact(&mut greeting).unwrap();
        let _ = call(&mut Recorder(&mut Vec::new()), Role::Peer, &other, &[3; 32], until);
        greeting[10] = Role::Agent as u8;
        stream.write_all(&greeting).unwrap();
        let mut proof = [0; 32];
        stream.read_exact(&mut proof).unwrap();
        stream.write_all(&[1]).unwrap();
        stream.write_all(&proof).unwrap();
    });
    assert!(matches!(error, ClientError::Impostor { .. }), "{error}");
}
