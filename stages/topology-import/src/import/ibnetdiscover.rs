//! `InfiniBand` fabrics in the output of `ibnetdiscover`, with or without `-p`, and the forwarding tables of
//! their switches.

pub(super) mod listing;
mod printed;
mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use hopmap_model::InputPath;
use hopmap_text::{FileError, Line, Lines};

use super::format::{Sample, head, malformed, note, unless_allowed, whole_lines};
use super::{ImportParams, Imported, Result};

/// Bytes by which a file in a folder is detected.
const HEAD: u64 = 8 << 10;
/// Largest number of files in a folder.
const MOST_FILES: usize = 1 << 20;

pub(super) fn recognises(sample: &Sample) -> bool {
    match (&sample.entries, sample.text()) {
        (None, Some(text)) => content(text) == Some(Content::Listing),
        (Some(_), _) if !is_gathered(sample) => {
            Folder::new(&sample.path).is_ok_and(|folder| !folder.listings.is_empty())
        }
        _ => false,
    }
}

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>> {
    Ok(Files::of(path)?.list())
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    Files::of(path)?.read(params)
}

/// A listing, and forwarding tables with their names.
struct Files {
    listing: PathBuf,
    tables: Vec<(String, PathBuf)>,
    notes: Vec<String>,
}

impl Files {
    /// A single listing, or the only one of a folder and its tables.
    fn of(path: &Path) -> Result<Self> {
        let mut notes = Vec::new();
        if !path.is_dir() {
            return Ok(Self { listing: path.to_owned(), tables: Vec::new(), notes });
        }
        let folder = Folder::new(path)?;
        note(&mut notes, "other files in the folder, ignored", folder.others);
        Ok(Self { listing: folder.listing()?.to_owned(), tables: folder.tables, notes })
    }

    fn list(self) -> Vec<InputPath> {
        let table = |(name, file)| InputPath::named(file, format!("tables/{name}"));
        let tables = self.tables.into_iter().map(table);
        std::iter::once(InputPath::named(self.listing, "machine")).chain(tables).collect()
    }

    fn read(self, params: &ImportParams) -> Result<Imported> {
        let Self { listing, tables, notes } = self;
        import(&listing, &tables, params, notes).map_err(|error| error.in_file(&listing))
    }
}

/// The machine topology from a listing and tables.
fn import(
    path: &Path,
    tables: &[(String, PathBuf)],
    params: &ImportParams,
    mut notes: Vec<String>,
) -> Result<Imported> {
    let mut listing = match form(path)? {
        Some(Form::Blocks) => printed::read(path, params.allow_truncated)?,
        Some(Form::Columns) => {
            let mut listing = printed::read_columns(path, params.allow_truncated)?;
            listing.join_ports(&mut notes);
            listing
        }
        None => {
            let help = "run `ibnetdiscover` or `ibnetdiscover -p`";
            return Err(malformed(None, "this is not output of ibnetdiscover", help));
        }
    };
    if listing.cables.ends.is_empty() {
        let help =
            "run ibnetdiscover as root on a host with an active port, in a fabric with a subnet manager";
        return Err(malformed(None, "no cables are listed, only the local adapter", help));
    }
    let complete = listing.check_complete();
    listing.notes(&mut notes);
    // A contradiction is the more specific error.
    let (mut fabric, _) = std::mem::take(&mut listing.cables).fabric(&mut notes)?;
    unless_allowed(complete, params, &mut notes)?;
    if !tables.is_empty() {
        tables::read(tables, &listing, &mut fabric, &mut notes)?;
    }
    drop(listing);
    fabric.imported(params, notes)
}

/// The syntax of a listing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Blocks,
    Columns,
}

/// The syntax that a line belongs to; `None` if undetermined.
fn form_of(line: &str) -> Option<Form> {
    match (printed::is_header(line), printed::is_row(line)) {
        (true, _) => Some(Form::Blocks),
        (_, true) => Some(Form::Columns),
        _ => None,
    }
}

fn form(path: &Path) -> Result<Option<Form>> {
    let mut lines = Lines::open(path, "")?.without_foreign();
    while let Some(Line { number, text: line, .. }) = lines.next()? {
        let line = line.trim();
        if let Some(form) = form_of(line) {
            return Ok(Some(form));
        }
        if !(is_beginning(line) || line.starts_with("DR path ")) {
            let problem = format!("`{}` is not a line of ibnetdiscover", printed::shortened(line));
            let help = "it prints `Switch`, `Ca` and `[1]`, with -p `SW` and `CA`";
            return Err(malformed(number, problem, help));
        }
    }
    Ok(None)
}

/// Whether a line may precede the first significant line of a listing.
fn is_beginning(line: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["#", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis "];
    line.is_empty()
        || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
        || line.starts_with("Hostname: ")
        || line == "Non-Chassis Nodes"
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Content {
    Listing,
    Tables,
}

/// The content type of the beginning of a file: that of its first line that tells. Lines that do not tell may be
/// messages of any program.
fn content(text: &str) -> Option<Content> {
    let of_line = |line: &str| match line.starts_with(tables::BEGINNING) {
        true => Some(Content::Tables),
        false => (form_of(line).is_some() || printed::is_progress(line)).then_some(Content::Listing),
    };
    text.lines().find_map(|line| of_line(line.trim()))
}

/// The files of a folder.
#[derive(Debug, Default)]
struct Folder {
    listings: Vec<PathBuf>,
    /// Table files in the folder and its subfolders, with relative names, sorted.
    tables: Vec<(String, PathBuf)>,
    others: usize,
}

impl Folder {
    fn new(path: &Path) -> Result<Self> {
        let mut folder = Self::default();
        for (name, file) in entries(path)? {
            if file.is_dir() {
                let inner = entries(&file)?;
                for (inner, file) in inner.into_iter().filter(|(_, file)| file.is_file()) {
                    if content_of(&file)? == Some(Content::Tables) {
                        folder.tables.push((format!("{name}/{inner}"), file));
                    }
                }
            } else if file.is_file() {
                match content_of(&file)? {
                    Some(Content::Listing) => folder.listings.push(file),
                    Some(Content::Tables) => folder.tables.push((name, file)),
                    None => folder.others += 1,
                }
            }
        }
        folder.tables.sort();
        Ok(folder)
    }

    /// The only listing.
    fn listing(&self) -> Result<&Path> {
        match self.listings.as_slice() {
            [only] => Ok(only),
            [] => Err(malformed(
                None,
                "the folder contains no output of ibnetdiscover",
                "put its output into the folder",
            )),
            many => {
                let names = many.iter().filter_map(|file| file.file_name());
                let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
                let problem = format!("several files are output of ibnetdiscover: {}", names.join(", "));
                Err(malformed(None, problem, "set `path` to one of them, or to a folder with one of them"))
            }
        }
    }
}

/// Names and paths in a folder, sorted, without hidden ones.
pub(super) fn entries(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |error| FileError::unreadable(path, &error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)?.take(MOST_FILES) {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            entries.push((name, entry.path()));
        }
    }
    entries.sort();
    Ok(entries)
}

fn content_of(file: &Path) -> Result<Option<Content>> {
    Ok(whole_lines(&head(file, HEAD)?, HEAD).and_then(content))
}

pub(super) fn files_of_gathered(path: &Path) -> Result<Vec<InputPath>> {
    Ok(Files::gathered(path)?.list())
}

pub(super) fn read_gathered(path: &Path, params: &ImportParams) -> Result<Imported> {
    Files::gathered(path)?.read(params)
}

/// Whether a folder has the expected name or contains one that does.
pub(super) fn is_gathered(sample: &Sample) -> bool {
    let Some(names) = &sample.entries else { return false };
    let inner = || entries(&sample.path.join("ib-raw")).unwrap_or_default();
    names.iter().any(|name| subnet(name).is_some())
        || names.iter().any(|name| name == "ib-raw") && inner().iter().any(|(name, _)| subnet(name).is_some())
}

/// `fe80:0000:0000:0000` of `ib-subnet-fe80:0000:0000:0000.txt`.
fn subnet(name: &str) -> Option<&str> {
    name.strip_prefix("ib-subnet-")?.strip_suffix(".txt").filter(|subnet| !subnet.is_empty())
}

impl Files {
    /// The files of a subnet.
    ///
    /// Folder written by `netloc_ib_gather_raw` of netloc 2: `ib-raw/ib-subnet-SUBNET.txt` from
    /// `ibnetdiscover -s -p`, and `ib-raw/ibroutes-SUBNET/ibroute-SUBNET-LID.txt` from `ibroute`.
    fn gathered(path: &Path) -> Result<Self> {
        let inner = path.join("ib-raw");
        let folder = if inner.is_dir() { inner } else { path.to_owned() };
        let names = entries(&folder)?;
        let subnets: Vec<_> = names.iter().filter_map(|(name, file)| Some((subnet(name)?, file))).collect();
        let (subnet, listing) = match subnets.as_slice() {
            [only] => *only,
            [] => {
                let help = "netloc_ib_gather_raw writes `ib-subnet-SUBNET.txt` into a folder `ib-raw`";
                return Err(malformed(None, "the folder contains no subnet", help));
            }
            many => {
                let list: Vec<_> = many.iter().map(|(subnet, _)| *subnet).collect();
                let problem = format!("there are several subnets: {}", list.join(", "));
                let help = "a machine has one subnet: give its file `ib-subnet-….txt`, or put it into a separate folder";
                return Err(malformed(None, problem, help));
            }
        };
        let routes = folder.join(format!("ibroutes-{subnet}"));
        let is_table = |(name, file): &(String, PathBuf)| name.starts_with("ibroute-") && file.is_file();
        let mut tables = if routes.is_dir() { entries(&routes)? } else { Vec::new() };
        tables.retain(is_table);
        Ok(Self { listing: listing.clone(), tables, notes: Vec::new() })
    }
}
