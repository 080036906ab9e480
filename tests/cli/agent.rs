//! `hopmap agent`: who is served, who is not, and when it ends.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use hopmap_topology::agent::{AgentConnection, ClientError, MESSAGE_BYTES, Token};
use hopmap_topology::probe::Sampling;

use crate::sandbox::Sandbox;

const DIGITS: &str = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF";

/// An agent on loopback, which goes with this.
struct Started {
    child: Child,
    /// The agent ends when this is closed.
    input: Option<ChildStdin>,
    line: String,
}

impl Started {
    /// Starts an agent that is given the token on standard input.
    fn new(arguments: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let arguments = [&["agent", "--bind", "127.0.0.1", "--name", "node-7"], arguments].concat();
        let mut command = sandbox.command(&arguments);
        command.env_remove("HOPMAP_AGENT_TOKEN");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take();
        writeln!(input.as_mut().unwrap(), "{DIGITS}").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, input, line }
    }

    fn address(&self) -> SocketAddr {
        let words: Vec<&str> = self.line.split_whitespace().collect();
        assert_eq!(words[..4], ["hopmap", "agent", "1", "node-7"]);
        assert!(words[5].parse::<u32>().unwrap() > 0 && words.len() == 6, "{}", self.line);
        words[4].parse().unwrap()
    }

    fn connect(&self) -> AgentConnection {
        let token = Token::parse(DIGITS).unwrap();
        AgentConnection::connect(self.address(), &token, Duration::from_secs(20)).unwrap()
    }

    /// Waits until it has ended, which it does with success; what it said on standard error.
    fn said(&mut self) -> String {
        assert!(self.child.wait().unwrap().success());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sampling(sizes: &[u64], most: u32) -> Sampling {
    Sampling {
        sizes: sizes.to_vec(),
        warm_up: 2,
        warm_up_bytes: 0,
        batch: 5,
        most,
        calm_batches: most,
        tolerance: 0.0,
        seconds: 20.0,
    }
}

#[test]
fn two_agents_measure_each_other_and_end() {
    let mut agents = [Started::new(&[]), Started::new(&["--time-limit", "1m"])];
    let addresses = [agents[0].address(), agents[1].address()];
    let mut connections = [agents[0].connect(), agents[1].connect()];
    for (connection, other) in connections.iter_mut().zip([addresses[1], addresses[0]]) {
        assert_eq!(connection.describe().unwrap().host, "node-7");
        let timings = connection.measure(other, &sampling(&[1, 100_000], 10), 30.0).unwrap();
        assert!(timings.iter().all(|timing| timing.messages == 10 && timing.times[0] > 0.0));
    }
    connections.into_iter().for_each(|connection| connection.end().unwrap());
    for agent in &mut agents {
        assert_eq!(agent.said(), "stopped by its coordinator\n");
    }
}

#[test]
fn an_agent_ends_when_its_standard_input_is_closed() {
    let mut agent = Started::new(&[]);
    let mut connection = agent.connect();
    agent.input = None;
    assert_eq!(agent.said(), "stopped, standard input was closed\n");
    assert!(matches!(connection.describe(), Err(ClientError::Gone { .. })));
}

#[test]
fn an_agent_ends_when_its_time_is_over() {
    let mut agent = Started::new(&["--time-limit", "1"]);
    let _held = agent.connect();
    assert_eq!(agent.said(), "stopped after 1 s\n");
}

#[test]
fn strangers_are_turned_away_and_others_served_meanwhile() {
    let mut agent = Started::new(&[]);
    let mut half = TcpStream::connect(agent.address()).unwrap();
    half.write_all(b"hopmap-a\x00").unwrap();
    let mut garbage = TcpStream::connect(agent.address()).unwrap();
    garbage.write_all(&[b'x'; 43]).unwrap();
    assert_eq!(garbage.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    let other = Token::random().unwrap();
    let refused = AgentConnection::connect(agent.address(), &other, Duration::from_secs(20)).err().unwrap();
    assert!(matches!(refused, ClientError::Refused { .. }), "{refused}");
    agent.connect().end().unwrap();
    let said = agent.said();
    assert!(said.contains("which does not use hopmap's protocol"), "{said}");
    assert!(said.contains("which does not know the token"), "{said}");
    assert!(!said.to_lowercase().contains(&DIGITS[..16].to_lowercase()), "{said}");
}

#[test]
fn measurements_that_nobody_should_do_are_refused() {
    let agent = Started::new(&[]);
    let mut connection = agent.connect();
    let error = connection.measure(agent.address(), &sampling(&[MESSAGE_BYTES + 1], 1), 5.0).unwrap_err();
    assert!(error.to_string().ends_with("message sizes must be from 1 to 67108864 bytes"), "{error}");
    connection.describe().unwrap();
}

#[test]
fn a_peer_that_dies_in_the_middle_is_named_and_the_agent_serves_on() {
    let agent = Started::new(&[]);
    let mut peer = Started::new(&[]);
    let address = peer.address();
    let mut connection = agent.connect();
    let measuring = std::thread::spawn(move || {
        let error = connection.measure(address, &sampling(&[1], 1_000_000), 60.0).unwrap_err();
        connection.describe().unwrap();
        error.to_string()
    });
    // Whether it dies before, while or after the connection is opened: the error names it.
    std::thread::sleep(Duration::from_millis(200));
    peer.child.kill().unwrap();
    let error = measuring.join().unwrap();
    assert!(error.contains(&format!(": {address} ")), "{error}");
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("token", DIGITS);
    for mode in [0o640, 0o604] {
        std::fs::set_permissions(sandbox.path().join("token"), Permissions::from_mode(mode)).unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.seen(&["agent", "--bind", "127.0.0.1", "--token-file", "token"]), @r"
            ------- stderr -------
            error[command::mistake]: token is readable by other users
              help: chmod 600 token
            [exit code 2]
            ");
        }
    }
}

#[test]
fn what_is_wrong_with_the_start_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("token", "not a token\n");
    std::fs::set_permissions(sandbox.path().join("token"), Permissions::from_mode(0o600)).unwrap();
    let seen = |arguments: &[&str]| sandbox.seen(&[&["agent"], arguments].concat());
    insta::assert_snapshot!(seen(&["--bind", "127.0.0.1", "--token-file", "token"]), @r"
    ------- stderr -------
    error[command::mistake]: no token in token: a token has 64 hexadecimal digits, and this text has 11 letters
      help: create a token with `(umask 077; openssl rand -hex 32 > token)`; give it in HOPMAP_AGENT_TOKEN, --token-file or standard input
    [exit code 2]
    ");
    insta::assert_snapshot!(seen(&["--bind", "127.0.0.1", "--token-file", "absent"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot read absent: No such file or directory (os error 2)
      help: create a token with `(umask 077; openssl rand -hex 32 > token)`; give it in HOPMAP_AGENT_TOKEN, --token-file or standard input
    [exit code 2]
    ");
    insta::assert_snapshot!(seen(&["--bind", "127.0.0.1"]), @r"
    ------- stderr -------
    error[command::mistake]: no token in the first line of standard input: a token has 64 hexadecimal digits, and this text has 0 letters
      help: create a token with `(umask 077; openssl rand -hex 32 > token)`; give it in HOPMAP_AGENT_TOKEN, --token-file or standard input
    [exit code 2]
    ");
    insta::assert_snapshot!(seen(&["--bind", "0.0.0.0"]), @r"
    ------- stderr -------
    error[topology::all]: an agent listens on a single address, but 0.0.0.0 means all addresses
      help: give one address of this host, or a network of it, such as 10.1.0.0/16
    [exit code 2]
    ");
    insta::assert_snapshot!(seen(&["--bind", "node-7"]), @r"
    ------- stderr -------
    error[topology::text]: `node-7` is neither an address nor a network
      help: give 10.1.2.3, 10.1.2.3:4000, [fd00::1]:4000 or a network such as 10.1.0.0/16
    [exit code 2]
    ");
    sandbox.write("token", DIGITS);
    insta::assert_snapshot!(seen(&["--name", "a b", "--token-file", "token"]), @r#"
    ------- stderr -------
    error[topology::name]: invalid host name "a b"
      help: set the name with --name: no spaces or control characters, at most 255 bytes
    [exit code 2]
    "#);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = taken.local_addr().unwrap().to_string();
    let seen = seen(&["--bind", &bind, "--token-file", "token"]);
    assert!(seen.contains(&format!("cannot listen on {bind}: Address already in use")), "{seen}");
}

#[test]
fn help_describes_agents() {
    insta::assert_snapshot!(Sandbox::new().seen(&["agent", "--help"]), @r"
    Measure message latencies and bandwidths on this host for a coordinator

    Usage: hopmap agent [OPTIONS]

    Options:
          --bind <ADDRESS>     Listen on this address of the host, with an optional port, or on the
                               address in a network such as 10.1.0.0/16 [default: the address to which
                               the host name resolves]
          --json               Print results as JSON, and nothing else on standard output: what programs
                               print there goes to standard error
      -q, --quiet              Print errors only
          --time-limit <TIME>  End after TIME: from 1s to 24h [default: 10m]
          --name <HOST>        Name of this host [default: `$SLURMD_NODENAME`, else the host name]
          --token-file <FILE>  File with the token on its first line
      -h, --help               Print help
      -V, --version            Print version

    `topology/probe` starts agents and passes them a token. To start one by hand, put the token, 64
    hexadecimal digits, into the environment variable HOPMAP_AGENT_TOKEN, the first line of
    --token-file, or the first line of standard input. It is never an argument, which all users of the
    host could read. Connections without the token are rejected.

    A ready agent prints one line: hopmap agent 1 HOST ADDRESS:PORT CORES. It ends when its coordinator
    ends it, when its standard input is closed, or after --time-limit.

    Examples:
      (umask 077; openssl rand -hex 32 > token)
      hopmap agent --bind 10.1.2.3 --token-file token
      sleep 300 | srun --ntasks-per-node=1 hopmap agent --bind 10.1.0.0/16 --token-file token
    ");
}
