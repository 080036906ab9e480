//! Networks as `network-tests2` measured them: netCDF, and the hosts in a file of text beside it.

use std::path::{Path, PathBuf};

use hopmap_formats::parus::hosts_of_netcdf;
use hopmap_model::InputPath;

use super::measured::refuse;
use super::parus::{machine, network};
use super::reader::{Reader, Sample, read_text};
use super::{Format, ImportError, ImportParams, Imported};

pub(super) static READER: Reader = Reader { format: Format::ParusNetcdf, recognises, files, read };

/// The header holds the names of variables.
fn recognises(sample: &Sample) -> bool {
    let has = |name: &str| sample.head.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    sample.head.starts_with(b"CDF") && has("proc_num") && has("begin_mes_length")
}

#[expect(clippy::unnecessary_wraps, reason = "of other formats it can fail")]
fn files(path: &Path) -> Result<Vec<InputPath>, ImportError> {
    let hosts = hosts(path).map(|hosts| InputPath::named(hosts, "hosts"));
    Ok(std::iter::once(InputPath::named(path, "machine")).chain(hosts).collect())
}

/// The file of hosts beside a file, if there is one.
fn hosts(path: &Path) -> Option<PathBuf> {
    let name = hosts_of_netcdf(path.file_name()?.to_str()?)?;
    Some(path.with_file_name(name)).filter(|hosts| hosts.is_file())
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    refuse(params, &["cost"])?;
    let mut file = network(path)?;
    if let Some(hosts) = hosts(path) {
        file.set_hosts(&read_text(&hosts)?).map_err(|error| error.in_file(&hosts))?;
    }
    machine(path, file, params)
}
