//! Networks are what their description says, and leave nothing behind.
//!
//! These tests make networks, so they run only when `HOPMAP_SYSTEM_TESTS=1`. On Debian: `apt-get install iproute2 ethtool`, and
//! for one of them `openmpi-bin libopenmpi-dev`.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod latencies;
#[cfg(test)]
mod open_mpi;
#[cfg(test)]
mod shared_links;
#[cfg(test)]
mod support;
