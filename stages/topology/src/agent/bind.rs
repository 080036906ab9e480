//! On which address of its host an agent listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use hopmap_mpi_environment::system_host_name;
use miette::Diagnostic;

/// Where an agent is to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// On this address and port.
    Address(SocketAddr),
    /// On the address of this host that is in a network, on any port.
    Network {
        /// An address of the network.
        address: IpAddr,
        /// How many of its first bits are the same in the whole network.
        bits: u8,
    },
}

/// Text that names no place to listen, or a place that this host has not.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum BindError {
    /// Neither an address nor a network.
    #[error("`{0}` is neither an address nor a network")]
    #[diagnostic(help("write 10.1.2.3, 10.1.2.3:4000, [fd00::1]:4000 or a network such as 10.1.0.0/16"))]
    Text(String),
    /// All addresses at once.
    #[error("an agent listens on one address, and {0} is all of them")]
    #[diagnostic(help("name one address of this host, or a network that it is in, such as 10.1.0.0/16"))]
    All(IpAddr),
    /// The host is not in the network.
    #[error("this host has no address in {network}; it has {}", list(.addresses))]
    #[diagnostic(help("give a network that all hosts are in"))]
    NotInNetwork {
        /// The network.
        network: String,
        /// What the host has.
        addresses: Vec<IpAddr>,
    },
    /// The operating system does not say which addresses there are.
    #[error("the addresses of this host cannot be listed: {0}")]
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
    /// The address of this host.
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

/// Where other hosts will look for this one: the address its name resolves to; else an address of it; loopback only if there is
/// nothing else.
#[must_use]
pub fn default_address() -> SocketAddr {
    let named =
        (system_host_name().as_str(), 0).to_socket_addrs().map(|addresses| addresses.map(|found| found.ip()));
    let named: Vec<IpAddr> = named.map(Iterator::collect).unwrap_or_default();
    let own = own_addresses().unwrap_or_default();
    // A name may be that of an address that this host has no more, or that another host has.
    let mut candidates = named.into_iter().filter(|address| own.contains(address)).chain(own.iter().copied());
    let address = candidates.find(|address| !address.is_loopback() && !is_link_local(*address));
    SocketAddr::new(address.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0)
}

/// Addresses of all interfaces, version 4 first.
fn own_addresses() -> std::io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> =
        if_addrs::get_if_addrs()?.into_iter().map(|interface| interface.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    Ok(addresses)
}

/// Such addresses mean something only together with an interface.
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
    fn other_text_is_refused() {
        for text in ["", "node1", "10.1.0.0/33", "fd00::/129", "10.1.0.0/", "10.1.0.0/-1", "1.2.3.4:99999"] {
            assert!(parsed(text).unwrap_err().ends_with("is neither an address nor a network"), "{text}");
        }
        for text in ["0.0.0.0", "0.0.0.0:4000", "::", "[::]:4000"] {
            assert!(parsed(text).unwrap_err().starts_with("an agent listens on one address"), "{text}");
        }
    }

    #[test]
    fn the_own_address_inside_a_network_is_found() {
        let found = |text: &str| parsed(text).unwrap().address();
        assert_eq!(found("127.0.0.0/8").unwrap(), "127.0.0.1:0".parse().unwrap());
        assert!(found("0.0.0.0/0").unwrap().is_ipv4());
        let error = found("198.51.100.0/24").unwrap_err().to_string();
        assert!(error.starts_with("this host has no address in 198.51.100.0/24; it has"), "{error}");
        assert!(std::net::TcpListener::bind(default_address()).is_ok());
    }
}
