use std::io;
use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

use crate::counters::Measured;

/// Why there is no network, or not the one asked for.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum Error {
    /// A description that no network can have.
    #[error("{0}")]
    Description(String),
    /// The program that makes networks is not there.
    #[error("no program {PROGRAM} at {}", .0.display(), PROGRAM = crate::network::PROGRAM)]
    #[diagnostic(help(
        "`cargo build -p hopmap-test-network` builds it, and so do `make test` and `cargo test --workspace`; \
         HOPMAP_TEST_NETWORK may name it"
    ))]
    Program(PathBuf),
    /// The program could not make the network.
    #[error("{message}")]
    Setup {
        /// What failed.
        message: String,
        /// What may help.
        #[help]
        help: Option<String>,
    },
    /// The network refuses a request.
    #[error("{0}")]
    Refused(String),
    /// Times that were measured while this machine was too busy.
    #[error(
        "this machine was too busy to measure: {} of {} frames late, by up to {:.1} ms; {:.0} % idle",
        .0.counters.late, .0.counters.delivered, .0.counters.latest_s * 1e3, .0.idle * 100.0
    )]
    #[diagnostic(help("try again when nothing else runs, or with fewer hosts, links or frames"))]
    Busy(Box<Measured>),
    /// The network is gone or does not answer.
    #[error("the network does not answer")]
    Gone(#[source] io::Error),
}
