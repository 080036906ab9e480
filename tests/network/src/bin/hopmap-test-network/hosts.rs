//! Hosts: namespaces for network and name, interfaces, addresses.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hopmap_test_network::{Error, address};
use nix::mount::{MsFlags, mount};
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::sethostname;

use crate::failure::failed;
use crate::serve::forbidden;

/// The longest packet in bytes: large, as clusters have it, so that the switch keeps up with a gigabit per second.
pub(crate) const MTU: usize = 9000;

/// The hardware address of every host: with `arp off`, frames are for the address they are from.
const HARDWARE_ADDRESS: &str = "02:77:00:00:00:01";
/// Hosts that are set up at once.
const THREADS: usize = 32;

/// The interface of a host that ends in the switch.
pub(crate) fn port_name(host: usize) -> String {
    format!("port{host}")
}

/// The host that a frame is for, by the address in its `IPv4` header.
pub(crate) fn destination(frame: &[u8]) -> Option<usize> {
    let is_packet = frame.get(12..14)? == [8, 0];
    let host = usize::from(*frame.get(33)?).checked_sub(1)?;
    (is_packet && frame[30..34] == address(host).octets()).then_some(host)
}

/// The file that holds the network namespace of a host.
pub(crate) fn network_file(host: &str) -> PathBuf {
    PathBuf::from(format!("/run/netns/{host}"))
}

/// The file that holds the UTS namespace of a host.
pub(crate) fn name_file(host: &str) -> PathBuf {
    PathBuf::from(format!("/run/names/{host}"))
}

/// The folder for temporary files. Networks share `/tmp`, and their process identifiers and names of hosts are alike, so that
/// Open MPI takes the same session folder in two of them.
pub(crate) const TEMPORARY: &str = "/run/tmp";

/// Makes the hosts, in namespaces of mounts and processes that are this network's own.
pub(crate) fn make(hosts: &[String]) -> Result<(), Error> {
    mount_private(hosts)?;
    for_hosts(hosts.len(), |host| make_namespaces(&hosts[host]))?;
    execute("ip", &["-batch", "-"], &hosts.iter().enumerate().map(wire).collect::<String>())?;
    for_hosts(hosts.len(), |host| configure(host, &hosts[host])).map(drop)
}

fn wire((host, name): (usize, &String)) -> String {
    let port = port_name(host);
    format!(
        "link add {port} mtu {MTU} type veth peer name eth0 netns {name} address {HARDWARE_ADDRESS} mtu {MTU}\n\
         link set {port} addrgenmode none txqueuelen 10000\n\
         link set {port} up\n"
    )
}

/// Moves this thread to a host and sets up its interfaces.
fn configure(host: usize, name: &str) -> Result<(), Error> {
    enter_network(name)?;
    let lines = format!(
        "link set lo up\n\
         link set eth0 addrgenmode none arp off\n\
         address add {}/24 dev eth0\n\
         link set eth0 up\n",
        address(host)
    );
    execute("ip", &["-batch", "-"], &lines)?;
    // The switch hands on frames as they are on a wire: of one packet each, with their checksums. Without these, no packets are merged.
    execute("ethtool", &["-K", "eth0", "tx", "off"], "")
}

/// Waits until the system says of every host's interface that it runs, which it does up to a second after frames pass: UCX and libfabric,
/// by which MPICH and Intel MPI talk, do not take it before.
pub(crate) fn await_running(hosts: &[String]) -> Result<(), Error> {
    let until = Instant::now() + Duration::from_secs(5);
    let is_running = || {
        let mut interfaces = nix::ifaddrs::getifaddrs().map_err(|error| failed("interfaces", error))?;
        Ok(interfaces.any(|interface| {
            interface.interface_name == "eth0" && interface.flags.contains(InterfaceFlags::IFF_RUNNING)
        }))
    };
    for_hosts(hosts.len(), |host| {
        enter_network(&hosts[host])?;
        while !is_running()? && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })
    .map(drop)
}

/// Gives this network its own view of files: its processes, its namespaces and its names of hosts.
fn mount_private(hosts: &[String]) -> Result<(), Error> {
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .map_err(|error| forbidden(&format!("private mounts: {error}")))?;
    let inert = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), inert, nothing)
        .map_err(|error| forbidden(&format!("mount /proc: {error}")))?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), inert, Some("mode=755"))
        .map_err(|error| failed("mount /run", error))?;
    let mut names = "127.0.0.1 localhost\n".to_owned();
    for (host, name) in hosts.iter().enumerate() {
        names += &format!("{} {name}\n", address(host));
    }
    fs::write("/run/hosts", names)
        .and_then(|()| ["/run/names", "/run/netns", TEMPORARY].into_iter().try_for_each(fs::create_dir))
        .map_err(|error| failed("/run/hosts", error))?;
    mount(Some("/run/hosts"), "/etc/hosts", nothing, MsFlags::MS_BIND, nothing)
        .map_err(|error| failed("mount /etc/hosts", error))
}

/// Makes the namespaces of a host and moves this thread there: a network, and one in which `hostname` says its name.
fn make_namespaces(host: &str) -> Result<(), Error> {
    let fail = |error| failed(&format!("namespaces of {host}"), error);
    unshare(CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWNET).map_err(fail)?;
    sethostname(host).map_err(fail)?;
    for (kind, file) in [("uts", name_file(host)), ("net", network_file(host))] {
        File::create(&file).map_err(|error| failed(&file.display().to_string(), error))?;
        let (namespace, nothing) = (format!("/proc/thread-self/ns/{kind}"), None::<&str>);
        mount(Some(namespace.as_str()), &file, nothing, MsFlags::MS_BIND, nothing).map_err(fail)?;
    }
    Ok(())
}

/// Does something in the network of a host.
pub(crate) fn on_host<T: Send>(
    host: &str,
    what: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let work = || enter_network(host).and_then(|()| what());
    thread::scope(|scope| scope.spawn(work).join()).map_err(|_| failed(host, "a thread panicked"))?
}

/// Does something for every host, in threads: most of the time goes by while the system waits for all processors to see a change.
/// The threads may leave for the namespaces of hosts.
pub(crate) fn for_hosts<T: Send>(
    hosts: usize,
    what: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let (what, mut done) = (&what, Vec::new());
    for first in (0..hosts).step_by(THREADS) {
        thread::scope(|scope| {
            let batch = first..hosts.min(first + THREADS);
            let threads: Vec<_> = batch.map(|host| scope.spawn(move || what(host))).collect();
            threads.into_iter().try_for_each(|thread| {
                done.push(thread.join().map_err(|_| failed("hosts", "a thread panicked"))??);
                Ok::<_, Error>(())
            })
        })?;
    }
    Ok(done)
}

/// Moves this thread to the network of a host.
pub(crate) fn enter_network(host: &str) -> Result<(), Error> {
    let file = File::open(network_file(host)).map_err(|error| Error::Setup {
        message: format!("no host {host} here: {error}"),
        help: Some("`hopmap-test-network run -- COMMAND` runs a command inside a test network".to_owned()),
    })?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(host, error))
}

/// The value of a lock, whoever panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program that sets something up; what it complains of is the error.
fn execute(program: &str, arguments: &[&str], input: &str) -> Result<(), Error> {
    // Where administrators' programs are is not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let missing = |error| Error::Setup {
        message: format!("{program}: {error}"),
        help: Some("on Debian: apt-get install iproute2 ethtool".to_owned()),
    };
    let mut child = Command::new(program)
        .env("PATH", path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    if let Some(mut stream) = child.stdin.take() {
        stream.write_all(input.as_bytes()).map_err(|error| failed(program, error))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(program, error))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(&format!("{program} {}", arguments.join(" ")), complaint.trim())),
    }
}
