//! Predicted run time of a program on a machine.
//!
//! [`replay`] executes the operations of all ranks in simulated time. Computation takes the seconds of the
//! program; messages pay [`Costs`] at both ends, the latency of their route, and then share its links with all
//! other messages in progress by max-min fairness ([`Sharing`]), but for messages of one packet, which queue
//! ([`Options::packet_bytes`]). The model is that of SimGrid's SMPI (Degomme
//! et al., "Simulating MPI Applications: The SMPI Approach", IEEE TPDS 28(8), 2017), and with the same options
//! it gives the same times. A machine without links has a latency and a bandwidth for every pair of slots and
//! no contention, as in LogGOPSim.
//!
//! # Which time a message takes
//!
//! 1. The sender pays the overhead of its send, unless it waits for the receiver ([`Costs::detached_limit`]).
//! 2. The transfer starts when send and receive are posted, that of an eager message with the send.
//! 3. The latency of the route passes, times [`Costs::latency_factor`].
//! 4. Its bytes flow at the rate that the links of the route give to it, times [`Costs::bandwidth_factor`].
//! 5. The receiver pays its overhead after the arrival, unless the sender waited.
//!
//! [`bound::bound`] gives seconds that no mapping can beat in this model.

pub mod bound;
mod collective;
mod costs;
mod error;
mod flows;
mod message;
mod network;
mod operation;
mod packets;
mod rank;
mod replay;
mod sharing;

pub use costs::{Costs, CostsSyntaxError, Factors, Overhead};
pub use error::{Cycle, ReplayError, Wait};
pub use network::{NetworkError, PairRates, Rate, has_rates};
pub use replay::{Options, replay};
pub use sharing::Sharing;
