//! The folder that `netloc_ib_gather_raw` of netloc 2 fills: `ib-raw/ib-subnet-SUBNET.txt` from `ibnetdiscover -s -p`, and
//! `ib-raw/ibroutes-SUBNET/ibroute-SUBNET-LID.txt` from `ibroute`.

use std::path::{Path, PathBuf};

use hopmap_model::InputPath;

use super::ibnetdiscover::{entries, import};
use super::reader::{Reader, Sample, malformed};
use super::{Format, ImportError};

pub(super) static READER: Reader = Reader {
    format: Format::NetlocRaw,
    recognises: is_raw,
    files: |path| Ok(Raw::new(path)?.files()),
    read: |path, params| {
        let raw = Raw::new(path)?;
        let tables: Vec<PathBuf> = raw.tables.into_iter().map(|(_, file)| file).collect();
        import(&raw.listing, &tables, params, Vec::new())
    },
};

/// Whether a folder is one of these, or holds one.
pub(super) fn is_raw(sample: &Sample) -> bool {
    let Some(names) = &sample.entries else { return false };
    let inner = || entries(&sample.path.join("ib-raw")).unwrap_or_default();
    names.iter().any(|name| subnet(name).is_some())
        || names.iter().any(|name| name == "ib-raw") && inner().iter().any(|(name, _)| subnet(name).is_some())
}

/// `fe80:0000:0000:0000` of `ib-subnet-fe80:0000:0000:0000.txt`.
fn subnet(name: &str) -> Option<&str> {
    name.strip_prefix("ib-subnet-")?.strip_suffix(".txt").filter(|subnet| !subnet.is_empty())
}

/// The files of a subnet.
struct Raw {
    listing: PathBuf,
    tables: Vec<(String, PathBuf)>,
}

impl Raw {
    fn new(path: &Path) -> Result<Self, ImportError> {
        let inner = path.join("ib-raw");
        let folder = if inner.is_dir() { inner } else { path.to_owned() };
        let names = entries(&folder)?;
        let subnets: Vec<_> = names.iter().filter_map(|(name, file)| Some((subnet(name)?, file))).collect();
        let (subnet, listing) = match subnets.as_slice() {
            [only] => *only,
            [] => {
                let help = "netloc_ib_gather_raw writes `ib-subnet-SUBNET.txt` into a folder `ib-raw`";
                return Err(malformed(path, None, "no subnet is here", help));
            }
            many => {
                let list: Vec<_> = many.iter().map(|(subnet, _)| *subnet).collect();
                let problem = format!("there are several subnets: {}", list.join(", "));
                let help = "a machine has one: name the file `ib-subnet-….txt` of one, or put one into a folder of its own";
                return Err(malformed(path, None, problem, help));
            }
        };
        let routes = folder.join(format!("ibroutes-{subnet}"));
        let is_table = |(name, file): &(String, PathBuf)| name.starts_with("ibroute-") && file.is_file();
        let mut tables = if routes.is_dir() { entries(&routes)? } else { Vec::new() };
        tables.retain(is_table);
        Ok(Self { listing: listing.clone(), tables })
    }

    fn files(self) -> Vec<InputPath> {
        let mut files = vec![InputPath::named(self.listing, "machine")];
        files.extend(
            self.tables.into_iter().map(|(name, file)| InputPath::named(file, format!("tables/{name}"))),
        );
        files
    }
}
