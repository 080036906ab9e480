//! A network of hosts on one machine, with known latencies and rates, for tests and benchmarks of probing.
//!
//! Every host is a network namespace with a name of its own (`h0`, `h1`, …) and one interface, `eth0`, with the address
//! `10.77.0.1`, `10.77.0.2`, …. All interfaces end in a switch in user space that holds every frame until it is due. The hosts
//! have the files and processors of this machine, so that any program can run on them:
//!
//! ```no_run
//! use hopmap_test_network::{Description, Network};
//!
//! // Two racks of two switches of two hosts; seconds one way between hosts of one switch, one rack, two racks.
//! let network = Network::start(&Description::tree(&[2, 2, 2], &[200e-6, 500e-6, 1000e-6]))?;
//! network.command(3, "ip").args(["address", "show"]).status()?;
//! network.set_latency(0, 1, 300e-6)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No root is needed: everything is inside a user namespace of its own. The network, and every process on its hosts, ends with
//! the value [`Network`] or with the process that has it, however that ends; nothing is left behind.
//!
//! The work is done by the program `hopmap-test-network`, which shell scripts can use as well (see its `--help`). It is looked for
//! in `HOPMAP_TEST_NETWORK` and then beside the running test, where `make test` and `cargo build --workspace` put it.

mod control;
mod counters;
mod description;
mod error;
mod link;
mod machine;
mod network;
mod routes;

pub use control::{Answer, CONTROL, Report, Request, ask};
pub use counters::{Counters, LATE_S, LinkCounters, MAX_LATE, Measured};
pub use description::{Description, address};
pub use error::Error;
pub use link::Link;
pub use network::{Limits, Network, PROGRAM};
