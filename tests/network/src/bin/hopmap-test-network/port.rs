//! The end of a host's cable in the switch: a packet socket.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use hopmap_test_network::Error;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    send, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::failure::failed;
use crate::hosts::{MTU, for_hosts, port_name};

/// Bytes of frames that may wait for the switch.
const BUFFER: usize = 4 << 20;
/// The longest frame: a packet and its header.
pub(crate) const FRAME: usize = MTU + 18;

/// The end of a host's cable in the switch.
#[derive(Debug)]
pub(crate) struct Port {
    socket: OwnedFd,
    /// Room for the time stamp of a frame.
    space: Vec<u8>,
}

/// The ports of all hosts, whose interfaces are there and up.
pub(crate) fn open_all(hosts: usize) -> Result<Vec<Port>, Error> {
    // The list of all interfaces gives the name of an interface number without unsafe code.
    let addresses: HashMap<String, LinkAddr> = nix::ifaddrs::getifaddrs()
        .map_err(|error| failed("interfaces", error))?
        .filter_map(|interface| Some((interface.interface_name, *interface.address?.as_link_addr()?)))
        .collect();
    for_hosts(hosts, |host| Port::open(&port_name(host), &addresses))
}

impl Port {
    fn open(name: &str, addresses: &HashMap<String, LinkAddr>) -> Result<Self, Error> {
        let fail = |error: Errno| failed(name, error);
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll)
                .map_err(fail)?;
        let address = addresses.get(name).ok_or_else(|| failed(name, "no such interface"))?;
        bind(socket.as_raw_fd(), address).map_err(fail)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(fail)?;
        // The system may grant less.
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER).map_err(fail)?;
        setsockopt(&socket, sockopt::SndBuf, &BUFFER).map_err(fail)?;
        Ok(Self { socket, space: nix::cmsg_space!(TimeSpec) })
    }

    /// The next frame, its length and when it came by the wall clock; none if no frame waits.
    pub(crate) fn receive(&mut self, frame: &mut [u8]) -> Option<(usize, Option<TimeSpec>)> {
        let mut parts = [IoSliceMut::new(frame)];
        let socket = self.socket.as_raw_fd();
        let message = recvmsg::<()>(socket, &mut parts, Some(&mut self.space), MsgFlags::empty()).ok()?;
        let came = message.cmsgs().ok().and_then(|mut controls| {
            controls.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(time) => Some(time),
                _ => None,
            })
        });
        Some((message.bytes, came))
    }

    /// Hands a frame to the host; whether it took it.
    pub(crate) fn send(&self, frame: &[u8]) -> bool {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).is_ok()
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
