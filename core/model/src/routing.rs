//! Which links messages take.

use crate::{NodeKind, SystemGraph, SystemGraphError};

/// Which links messages take where there are several ways.
///
/// With forwarding tables a message goes where these send it, and nowhere if they do not know its destination. Without them it takes
/// the fewest links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// Entries of the static forwarding tables of all switches, sorted by node and last link; empty if there are none.
    pub forwarding: Vec<Forward>,
    /// What decides between ways with equally many links.
    pub ties: Ties,
}

/// An entry of a forwarding table: on `node`, what is to leave the network over the link `last` goes on over `link`.
///
/// The last link tells the host and, if it has several, the port: an address of the fabric. Where `node` is a host the entry says
/// which of its ports it sends by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forward {
    /// The node that forwards.
    pub node: u32,
    /// The link from a switch into the host that is the destination.
    pub last: u32,
    /// The link that the node sends on.
    pub link: u32,
}

/// What decides between ways with equally many links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// The number of the destination, so that destinations are spread over the ways: the static routes of fat trees (D-mod-K,
    /// Zahavi 2012).
    #[default]
    Spread,
    /// The link that stands first: the routes of meshes and tori whose links are in the order of their dimensions.
    First,
}

impl Routing {
    pub(crate) fn check(&self, system: &SystemGraph) -> Result<(), SystemGraphError> {
        let wrong = |index, problem| Err(SystemGraphError::Forwarding { index, problem });
        let mut before = None;
        for (index, entry) in self.forwarding.iter().enumerate() {
            let key = Some((entry.node, entry.last));
            let (Some(link), Some(last)) =
                (system.links.get(entry.link as usize), system.links.get(entry.last as usize))
            else {
                return wrong(index, "names a link that does not exist");
            };
            if link.source != entry.node {
                return wrong(index, "sends on a link that does not leave its node");
            }
            if system.nodes[last.destination as usize].kind != NodeKind::Host {
                return wrong(index, "has a last link that does not reach a host");
            }
            if before >= key {
                return wrong(index, "is not behind the ones of smaller nodes and last links");
            }
            before = key;
        }
        Ok(())
    }
}
