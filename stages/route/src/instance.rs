//! A program and a network from one readable file, JSON or TOML.
//!
//! ```toml
//! hosts     = [{ name = "h1", performance = 2, capabilities = ["fpga"], devices = { camera = 1 } }, { name = "h2", performance = 1 }]
//! switches  = [{ name = "A", type = 1 }]
//! links     = [{ a = "h1", b = "A", bandwidth = 100 }, { a = "A", b = "h2", bandwidth = 50, a_port = 3 }]
//! processes = [{ name = "P1", requires = 1, capabilities = ["fpga"] }, { name = "P2", requires = 1, devices = { camera = 1 } }]
//! streams   = [{ from = "P1", to = "P2", bandwidth = 40 }]
//! mapping   = { P1 = "h1" }          # all processes, or some that have to be where they are; may be left out
//! tables    = [{ switch = "A", destination = "h2", output = 3 }]                         # input = 0: the table of a port
//! ```
//!
//! A link carries its bandwidth in each direction, unless it is `directed` from `a` to `b`. Ports are numbered from 0 in the order of
//! the links where the file does not say them.

mod build;
mod file;

use std::path::Path;

use hopmap_model::SystemGraph;
use hopmap_text::FileError;

use crate::ImportParams;

pub use build::Instance;
pub(crate) use build::slots;
pub(crate) use file::{Cable, Host, Switch, parse as parse_as};

/// Hosts, switches and links of a part of a machine, without slots; what is wrong and what to do.
pub(crate) fn network(
    hosts: &[Host],
    switches: &[Switch],
    links: &[Cable],
) -> Result<SystemGraph, (String, String)> {
    let file = file::File::of_network(hosts.to_vec(), switches.to_vec(), links.to_vec());
    build::network(&file)
}

/// Largest file in bytes.
const MOST_BYTES: u64 = 1 << 28;

impl Instance {
    /// Reads an instance.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::parse(&hopmap_text::read(path, MOST_BYTES)?, path)
    }

    /// Reads an instance, changed as parameters say.
    pub(crate) fn changed(params: &ImportParams) -> Result<Self, FileError> {
        let path = params.path.path();
        let bytes = hopmap_text::read(path, MOST_BYTES)?;
        Self::parse_changed(&bytes, path, |file| file.change(params))
    }

    /// The same from the contents of a file.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, FileError> {
        Self::parse_changed(bytes, path, |_| Ok(()))
    }

    fn parse_changed(
        bytes: &[u8],
        path: &Path,
        change: impl FnOnce(&mut file::File) -> Result<(), (String, String)>,
    ) -> Result<Self, FileError> {
        let help = "an instance has `hosts`, `switches`, `links`, `processes` and `streams`, as JSON or TOML";
        let mut file: file::File = file::parse(bytes, help).map_err(|error| error.in_file(path))?;
        change(&mut file)
            .and_then(|()| build::build(&file))
            .map_err(|(problem, help)| FileError::new(problem, help).in_file(path))
    }
}
