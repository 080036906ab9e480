//! Traffic between all hosts, which has no list of streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network::FabricNetwork;

hopmap_model::named_values! {
    /// Which hosts send to which.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Traffic {
        /// Every host to every other one, at once.
        #[default]
        AllToAll = "all_to_all",
        /// Every host to the one that is some places further, one distance after the other, as in an all-to-all of large messages.
        Shift = "shift",
        /// Every host to the one whose number has the same bits in reverse, as in a fast Fourier transform; the first power of two of them.
        BitReversal = "bit_reversal",
    }
}

impl Traffic {
    /// What every switch sends to a destination: a pair of hosts counts 1, and the streams of a program more.
    pub(super) fn weights(self, network: &FabricNetwork<'_>, destination: usize, weights: &mut [u64]) {
        self.senders(network, destination, weights);
        for &(switch, weight) in network.streams.get(destination).into_iter().flatten() {
            weights[switch as usize] += weight;
        }
    }

    /// Hosts at every switch that send to a destination. All shifts together are all pairs.
    pub(super) fn senders(self, network: &FabricNetwork<'_>, destination: usize, senders: &mut [u64]) {
        if self == Self::BitReversal {
            senders.fill(0);
            if let Some(source) =
                reversed(destination, network.hosts.len()).filter(|source| *source != destination)
            {
                senders[network.switch_of[source] as usize] = 1;
            }
            return;
        }
        for (own, &all) in senders.iter_mut().zip(&network.senders) {
            *own = u64::from(all);
        }
        senders[network.switch_of[destination] as usize] -= 1;
    }
}

/// The number whose bits are in reverse, among the first power of two of `hosts`.
pub(super) fn reversed(host: usize, hosts: usize) -> Option<usize> {
    let bits = hosts.ilog2();
    (host >> bits == 0 && bits > 0).then(|| host.reverse_bits() >> (usize::BITS - bits))
}
