//! Hosts: namespaces for network and name, interfaces, addresses.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use hopmap_test_network::{Error, address};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::sethostname;

use crate::failure::failed;
use crate::serve::forbidden;

/// The longest packet in bytes: large, as clusters have it, so that the switch keeps up with a gigabit per second.
pub(crate) const MTU: usize = 9000;

/// The interface of a host that ends in the switch.
pub(crate) fn port_name(host: usize) -> String {
    format!("port{host}")
}

/// The hardware address of a host.
pub(crate) fn hardware_address(host: usize) -> [u8; 6] {
    [2, 0x77, 0, 0, 0, host as u8]
}

/// The host with this hardware address.
pub(crate) fn host_of(address: &[u8]) -> Option<usize> {
    address.strip_prefix(&[2, 0x77, 0, 0, 0]).and_then(<[u8]>::first).map(|&host| usize::from(host))
}

/// The file that stands for the network namespace of a host.
pub(crate) fn network_file(host: &str) -> PathBuf {
    PathBuf::from(format!("/run/netns/{host}"))
}

/// The file that stands for the UTS namespace of a host.
pub(crate) fn name_file(host: &str) -> PathBuf {
    PathBuf::from(format!("/run/names/{host}"))
}

/// Makes the hosts, in namespaces of mounts and processes that are this network's own.
pub(crate) fn make(hosts: &[String]) -> Result<(), Error> {
    mount_private(hosts)?;
    for name in hosts {
        give_name(name.clone())?;
        ip(&["netns", "add", name], "")?;
    }
    ip(&["-batch", "-"], &hosts.iter().enumerate().map(wire).collect::<String>())?;
    for (host, name) in hosts.iter().enumerate() {
        ip(&["-n", name, "-batch", "-"], &configure(host, hosts.len()))?;
        // The switch hands on frames as they are on a wire: of one packet each, with their checksums.
        execute("ethtool", &["-K", &port_name(host), "gro", "off"], "")?;
        let offloads = [
            "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off", "sg", "off", "tso", "off", "gso",
            "off",
        ];
        ip(&offloads, "")?;
    }
    Ok(())
}

fn wire((host, name): (usize, &String)) -> String {
    let port = port_name(host);
    let bytes = hardware_address(host).map(|byte| format!("{byte:02x}")).join(":");
    format!(
        "link add {port} mtu {MTU} type veth peer name eth0 netns {name} address {bytes} mtu {MTU}\n\
         link set {port} addrgenmode none txqueuelen 10000\n\
         link set {port} up\n"
    )
}

fn configure(host: usize, hosts: usize) -> String {
    let mut lines = format!(
        "link set lo up\n\
         link set eth0 addrgenmode none\n\
         address add {}/24 dev eth0\n\
         link set eth0 up\n",
        address(host)
    );
    for other in (0..hosts).filter(|&other| other != host) {
        let bytes = hardware_address(other).map(|byte| format!("{byte:02x}")).join(":");
        lines += &format!("neighbour replace {} lladdr {bytes} dev eth0 nud permanent\n", address(other));
    }
    lines
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
        .and_then(|()| fs::create_dir("/run/names"))
        .map_err(|error| failed("/run/hosts", error))?;
    mount(Some("/run/hosts"), "/etc/hosts", nothing, MsFlags::MS_BIND, nothing)
        .map_err(|error| failed("mount /etc/hosts", error))
}

/// Makes the namespace in which `hostname` says the name of a host.
fn give_name(host: String) -> Result<(), Error> {
    let make = move || -> Result<(), Error> {
        let fail = |error| failed("name of a host", error);
        unshare(CloneFlags::CLONE_NEWUTS).map_err(fail)?;
        sethostname(&host).map_err(fail)?;
        let file = name_file(&host);
        File::create(&file).map_err(|error| failed("name of a host", error))?;
        let nothing = None::<&str>;
        mount(Some("/proc/thread-self/ns/uts"), &file, nothing, MsFlags::MS_BIND, nothing).map_err(fail)
    };
    in_thread(make)
}

/// Does something in the network of a host, in a thread that ends with it.
pub(crate) fn on_host<T: Send + 'static>(
    host: String,
    what: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    in_thread(move || {
        enter_network(&host)?;
        what()
    })
}

/// Moves this thread to the network of a host.
pub(crate) fn enter_network(host: &str) -> Result<(), Error> {
    let file = File::open(network_file(host)).map_err(|error| Error::Setup {
        message: format!("no host {host} here: {error}"),
        help: Some("`hopmap-test-network run -- COMMAND` runs a command inside a test network".to_owned()),
    })?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(host, error))
}

fn in_thread<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    thread::spawn(what).join().map_err(|_| failed("thread", "it panicked"))?
}

/// The value of a lock, whoever panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ip(arguments: &[&str], input: &str) -> Result<(), Error> {
    execute("ip", arguments, input)
}

/// Runs a program that sets something up; what it complains of is the error.
fn execute(program: &str, arguments: &[&str], input: &str) -> Result<(), Error> {
    // Where administrators' programs are is not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let missing = |error| Error::Setup {
        message: format!("{program}: {error}"),
        help: Some("on Debian: apt-get install iproute2 ethtool".to_owned()),
    };
    let mut child = Command::new("env")
        .arg(format!("PATH={path}"))
        .arg(program)
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
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(127) => Err(missing(std::io::ErrorKind::NotFound.into())),
        _ => Err(failed(&format!("{program} {}", arguments.join(" ")), complaint)),
    }
}
