//! The listen address of an agent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use hopmap_mpi_environment::system_host_name;
use miette::Diagnostic;

/// The listen address of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// This address and port.
    Address(SocketAddr),
    /// The address of this host in a network, on any port.
    Network {
        /// An address of the network.
        address: IpAddr,
        /// Prefix length.
        bits: u8,
    },
}

/// An invalid listen address, or one that this host does not have.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum BindError {
    /// Neither an address nor a network.
    #[error("`{0}` is neither an address nor a network")]
    #[diagnostic(
        code(topology::text),
        help("give 10.1.2.3, 10.1.2.3:4000, [fd00::1]:4000 or a network such as 10.1.0.0/16")
    )]
    Text(String),
    /// The unspecified address.
    #[error("an agent listens on a single address, but {0} means all addresses")]
    #[diagnostic(
        code(topology::all),
        help("give one address of this host, or a network of it, such as 10.1.0.0/16")
    )]
    All(IpAddr),
    /// The host has no address in the network.
    #[error("this host has no address in {network}; it has {}", list(.addresses))]
    #[diagnostic(code(topology::not_in_network), help("give a network that contains all hosts"))]
    NotInNetwork {
        /// The network.
        network: String,
        /// The addresses of the host.
        addresses: Vec<IpAddr>,
    },
    /// The operating system failed to list the addresses.
    #[error("cannot list the addresses of this host: {0}")]
    #[diagnostic(code(topology::interfaces))]
    Interfaces(std::io::Error),
}

fn list(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

impl FromStr for Bind {
    type Err = BindError;

    fn from_str(text: &str) -> Result<Self, BindError> {
        let not_understood = || BindError::Text(text.to_owned());
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| not_understood())?;
            let bits: u8 = bits.parse().map_err(|_| not_understood())?;
            return match bits <= width(address) {
                true => Ok(Self::Network { address, bits }),
                false => Err(not_understood()),
            };
        }
        let alone = text.trim_start_matches('[').trim_end_matches(']');
        let address = match alone.parse() {
            Ok(address) => SocketAddr::new(address, 0),
            Err(_) => text.parse().map_err(|_| not_understood())?,
        };
        match address.ip().is_unspecified() {
            true => Err(BindError::All(address.ip())),
            false => Ok(Self::Address(address)),
        }
    }
}

impl Bind {
    /// The selected address of this host.
    pub fn address(&self) -> Result<SocketAddr, BindError> {
        let (address, bits) = match *self {
            Self::Address(address) => return Ok(address),
            Self::Network { address, bits } => (address, bits),
        };
        let addresses = own_addresses().map_err(BindError::Interfaces)?;
        match addresses.iter().find(|own| is_in(**own, address, bits)) {
            Some(&own) => Ok(SocketAddr::new(own, 0)),
            None => Err(BindError::NotInNetwork { network: format!("{address}/{bits}"), addresses }),
        }
    }
}

/// The address where other hosts will look for this one: the address of its host name, otherwise another
/// address of it, and loopback only as a last resort.
#[must_use]
pub fn default_address() -> SocketAddr {
    let named =
        (system_host_name().as_str(), 0).to_socket_addrs().map(|addresses| addresses.map(|found| found.ip()));
    let named: Vec<IpAddr> = named.map(Iterator::collect).unwrap_or_default();
    let own = own_addresses().unwrap_or_default();
    // The host name may resolve to an address that this host no longer has, or to one of another host.
    let mut candidates = named.into_iter().filter(|address| own.contains(address)).chain(own.iter().copied());
    let address = candidates.find(|address| !address.is_loopback() && !is_link_local(*address));
    SocketAddr::new(address.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0)
}

/// Addresses of all interfaces, version 4 before version 6.
fn own_addresses() -> std::io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> =
        if_addrs::get_if_addrs()?.into_iter().map(|interface| interface.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    Ok(addresses)
}

/// Link-local addresses are valid only together with an interface.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differing = u32::from(address) ^ u32::from(network);
            differing.leading_zeros() >= u32::from(bits)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differing = u128::from(address) ^ u128::from(network);
            differing.leading_zeros() >= u32::from(bits)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Bind, String> {
        text.parse().map_err(|error: BindError| error.to_string())
    }

    #[test]
    fn addresses_and_networks_are_read() {
        let address = |text: &str| Ok(Bind::Address(text.parse().unwrap()));
        assert_eq!(parsed("10.1.2.3"), address("10.1.2.3:0"));
        assert_eq!(parsed("10.1.2.3:4000"), address("10.1.2.3:4000"));
        assert_eq!(parsed("::1"), address("[::1]:0"));
        assert_eq!(parsed("[::1]"), address("[::1]:0"));
        assert_eq!(parsed("[::1]:7"), address("[::1]:7"));
        let network = Bind::Network { address: "10.1.0.0".parse().unwrap(), bits: 16 };
        assert_eq!(parsed("10.1.0.0/16"), Ok(network));
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "node1", "10.1.0.0/33", "fd00::/129", "10.1.0.0/", "10.1.0.0/-1", "1.2.3.4:99999"] {
            assert!(parsed(text).unwrap_err().ends_with("is neither an address nor a network"), "{text}");
        }
        for text in ["0.0.0.0", "0.0.0.0:4000", "::", "[::]:4000"] {
            assert!(parsed(text).unwrap_err().starts_with("an agent listens on a single address"), "{text}");
        }
    }

    #[test]
    fn the_address_of_this_host_in_a_network_is_found() {
        let found = |text: &str| parsed(text).unwrap().address();
        assert_eq!(found("127.0.0.0/8").unwrap(), "127.0.0.1:0".parse().unwrap());
        assert!(found("0.0.0.0/0").unwrap().is_ipv4());
        let error = found("198.51.100.0/24").unwrap_err().to_string();
        assert!(error.starts_with("this host has no address in 198.51.100.0/24; it has"), "{error}");
        assert!(std::net::TcpListener::bind(default_address()).is_ok());
    }
}
