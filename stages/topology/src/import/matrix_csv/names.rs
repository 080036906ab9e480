//! The names of rows and columns.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::super::ImportError;
use super::super::measured::is_host_name;
use super::super::reader::malformed;

/// A name and its line.
pub(super) type Name<'a> = (usize, &'a str);

/// A name without the quotation marks around it.
pub(super) fn plain(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(cell)
}

/// The names of the first line, which have to be those of the first column, if there are any there.
pub(super) fn agreed<'a>(
    path: &Path,
    header: Vec<Name<'a>>,
    own: Vec<Name<'a>>,
) -> Result<Vec<Name<'a>>, ImportError> {
    match header.iter().zip(&own).find(|((_, column), (_, row))| column != row) {
        None => Ok(if own.is_empty() { header } else { own }),
        Some(((_, column), (line, row))) => {
            let problem = format!("the row is called `{row}`, the column in its place `{column}`");
            Err(malformed(path, *line, problem, "rows and columns have the same names in the same order"))
        }
    }
}

/// Hosts and cores: `host:core` where all names end so, else names of hosts.
pub(super) fn endpoints(path: &Path, names: &[Name<'_>]) -> Result<Vec<(String, Option<u32>)>, ImportError> {
    let split = |name: &str| {
        let (host, core) = name.rsplit_once(':')?;
        Some((host.to_owned(), Some(core.parse().ok()?)))
    };
    let all: Option<Vec<(String, Option<u32>)>> = names.iter().map(|(_, name)| split(name)).collect();
    let whole = || names.iter().map(|(_, name)| ((*name).to_owned(), None)).collect();
    let endpoints: Vec<(String, Option<u32>)> = all.unwrap_or_else(whole);
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut cores = HashSet::new();
    for (place, ((line, name), (host, core))) in names.iter().zip(&endpoints).enumerate() {
        let wrong = |problem: String, help: &str| Err(malformed(path, *line, problem, help));
        if !is_host_name(host) {
            let help = "names have no blanks in them and are not empty";
            return wrong(format!("`{name}` is no name of a host"), help);
        }
        if last.insert(host, place).is_some_and(|before| before + 1 != place) {
            let help = "the rows of a host stand one behind the other";
            return wrong(format!("the slots of host `{host}` are not together"), help);
        }
        if core.is_some() && !cores.insert((host, core)) {
            return wrong(format!("`{name}` is there twice"), "every core of a host has one row");
        }
    }
    Ok(endpoints)
}
