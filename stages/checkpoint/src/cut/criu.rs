//! CRIU pages, and page maps (`pagemap-N.img`), which list the pages of a process in `pages-M.img` in order.
//!
//! A page map has two magic numbers, then entries, each a 32-bit length and a Protocol Buffers message
//! (`images/pagemap.proto` and `criu/include/magic.h` of CRIU). The first entry has M, the others are runs of
//! pages.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::open_input_itself;

use super::feed::{self, CutError, Cutter, Feed, Format, Past};
use crate::chunk::{Batch, PAGE, Position, Space};

/// A file of pages that is being cut.
pub(crate) struct Pages<'a> {
    feed: Feed<'a>,
    past: Past,
    map: PageMap,
    /// Index of the current run.
    run: usize,
    /// Number of its pages that have been cut.
    done: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, map: PageMap, past: Past) -> Self {
        Self { feed: Feed::new(source), past, map, run: 0, done: 0 }
    }
}

impl Cutter for Pages<'_> {
    fn format(&self) -> Format {
        Format::Criu
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, past, map, run, done } = self;
        let mut filling = feed.fill(batch, amount, PAGE);
        while !filling.is_full() {
            let ahead = filling.read_ahead(PAGE)?;
            while map.runs.get(*run).is_some_and(|&(_, count)| *done >= count) {
                (*run, *done) = (*run + 1, 0);
            }
            match map.runs.get(*run) {
                Some(_) if ahead < PAGE => {
                    let offset = filling.offset() + ahead as u64;
                    return Err(CutError::incomplete(offset, "its page map has more pages"));
                }
                Some(&(first, _)) => {
                    let address = first.wrapping_add(done.wrapping_mul(PAGE as u64));
                    feed::keep(&mut filling, past, PAGE, Position { space: Space::Memory, address });
                    *done += 1;
                }
                None if ahead == 0 => return Ok(false),
                None => feed::keep_in_file(&mut filling, past, ahead),
            }
        }
        Ok(true)
    }
}

/// Memory addresses of the pages of a `pages-N.img`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageMap {
    /// First address and number of pages of each run, in file order.
    pub runs: Vec<(u64, u64)>,
}

/// Magic number of all images since CRIU 1.6 (`IMG_COMMON_MAGIC`); earlier ones begin with the number of
/// their kind.
const IMAGE: u32 = 0x5456_4319;

/// Magic number of page maps (`PAGEMAP_MAGIC`).
const PAGE_MAP: u32 = 0x5608_4025;

/// Flags of pages: in the image of an earlier checkpoint (`PE_PARENT`), restored lazily (`PE_LAZY`), in this
/// file (`PE_PRESENT`).
const PARENT: u64 = 1;
const LAZY: u64 = 2;
const PRESENT: u64 = 4;

/// Maximum size of a page map, in bytes; a larger one would describe terabytes of memory.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The files of pages in a folder and their page maps, by name. Excludes files without a reliable map: those
/// that two maps claim, and those of maps that are damaged or have unknown fields, such as compressed pages.
#[must_use]
pub fn page_maps(folder: &Path) -> BTreeMap<PathBuf, PageMap> {
    let mut claims: BTreeMap<PathBuf, Vec<Option<PageMap>>> = BTreeMap::new();
    let Ok(listing) = folder.read_dir() else { return BTreeMap::new() };
    for name in listing.flatten().map(|entry| entry.file_name()) {
        let name = Path::new(&name);
        let is_map = name.to_str().is_some_and(|name| name.starts_with("pagemap-"));
        let is_image = name.extension().is_some_and(|extension| extension == "img");
        let bytes = (is_map && is_image).then(|| read(&folder.join(name))).flatten();
        if let Some((pages, map)) = bytes.as_deref().and_then(parse) {
            claims.entry(PathBuf::from(format!("pages-{pages}.img"))).or_default().push(map);
        }
    }
    claims.into_iter().filter_map(|(pages, maps)| Some((pages, single(maps)??))).collect()
}

fn single<T>(mut all: Vec<T>) -> Option<T> {
    all.pop().filter(|_| all.is_empty())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input_itself(path).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| bytes.len() as u64 <= LARGEST)
}

/// The number of the file of pages, and the map, if it is reliable. `None` if not even the number is known.
fn parse(mut bytes: &[u8]) -> Option<(u32, Option<PageMap>)> {
    let input = &mut bytes;
    let mut magic = fixed(input)?;
    if magic == IMAGE {
        magic = fixed(input)?;
    }
    let head = fields((magic == PAGE_MAP).then(|| entry(input)).flatten()?)?;
    let (_, pages) = head.into_iter().rfind(|&(number, _)| number == 1)?;
    Some((u32::try_from(pages).ok()?, runs(bytes)))
}

/// The runs of pages in the file.
fn runs(mut bytes: &[u8]) -> Option<PageMap> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut total = 0_u64;
    while !bytes.is_empty() {
        let (first, count) = run(entry(&mut bytes)?)?;
        let end = first.checked_add(count.checked_mul(PAGE as u64)?)?;
        total = total.checked_add(end - first)?;
        match runs.last_mut() {
            Some((begin, pages)) if *begin + *pages * PAGE as u64 == first => *pages += count,
            _ if count == 0 => {}
            _ => runs.push((first, count)),
        }
    }
    Some(PageMap { runs })
}

/// An entry: its first address and its number of pages in the file. `None` if it has unknown fields.
fn run(message: &[u8]) -> Option<(u64, u64)> {
    let [mut address, mut old_count, mut count, mut flags] = [None; 4];
    let mut in_parent = false;
    for (number, value) in fields(message)? {
        match number {
            1 => address = Some(value),
            2 => old_count = Some(value),
            3 => in_parent = value != 0,
            4 => flags = Some(value),
            // The number of pages since CRIU 4.1, when the old field became 0.
            5 => count = Some(value),
            _ => return None,
        }
    }
    // Before flags existed, the pages of an entry were either in the file or in that of the parent.
    let flags = flags.unwrap_or(if in_parent { PARENT } else { PRESENT });
    let (address, count) = (address?, count.or(old_count)?);
    if flags & !(PARENT | LAZY | PRESENT) != 0 || !address.is_multiple_of(PAGE as u64) {
        return None;
    }
    let in_file = flags & PRESENT != 0 && !in_parent && flags & PARENT == 0;
    Some((address, if in_file { count } else { 0 }))
}

/// Takes a length and that many bytes.
fn entry<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = fixed(input)?;
    let (message, rest) = input.split_at_checked(length as usize)?;
    *input = rest;
    Some(message)
}

/// Takes a little-endian 32-bit number.
fn fixed(input: &mut &[u8]) -> Option<u32> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(u32::from_le_bytes(*bytes))
}

/// The fields of a message, all Protocol Buffers varints.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = number(&mut message)?;
        if key & 7 != 0 {
            return None;
        }
        fields.push((key >> 3, number(&mut message)?));
    }
    Some(fields)
}

/// Takes a varint: seven bits per byte, the lowest first.
fn number(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
