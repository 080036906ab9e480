//! Images of DMTCP and pages of CRIU, whose bytes are compared at their addresses in memory.

use std::io::Read;

use super::read::Stream;
use crate::chunk::PAGE;
use crate::cut::{Areas, CutError, Next, PageMap};

/// Reads an image of DMTCP to its end: headers and records are stored always, bytes of areas belong to their addresses.
pub(super) fn read<R: Read>(stream: &mut Stream<R>) -> Result<(), CutError> {
    for _ in 0..2 {
        let offset = stream.offset();
        if stream.record(PAGE)?.len() < PAGE {
            return Err(incomplete(offset, "its header has no end"));
        }
    }
    let mut areas = Areas::default();
    loop {
        match next(stream, &mut areas)? {
            Next::Record => {}
            Next::Data { address, left } => {
                if !stream.run(address, Some(left))? {
                    return Err(incomplete(stream.offset(), "an area has no end"));
                }
            }
            Next::Nothing => break,
        }
    }
    rest(stream)
}

/// Reads pages of CRIU to their end; they belong to the addresses that their map tells.
pub(super) fn read_pages<R: Read>(stream: &mut Stream<R>, map: &PageMap) -> Result<(), CutError> {
    for &(address, pages) in &map.runs {
        if !stream.run(address, Some(pages.saturating_mul(PAGE as u64)))? {
            return Err(incomplete(stream.offset(), "its page map names more pages"));
        }
    }
    rest(stream)
}

/// What comes behind the pages. Nobody writes anything there; whatever it is, it is stored.
fn rest<R: Read>(stream: &mut Stream<R>) -> Result<(), CutError> {
    while !stream.record(PAGE)?.is_empty() {}
    Ok(())
}

/// What follows the next record.
fn next<R: Read>(stream: &mut Stream<R>, areas: &mut Areas) -> Result<Next, CutError> {
    let offset = stream.offset();
    let record = stream.record(PAGE)?;
    let record = record.first_chunk().ok_or_else(|| incomplete(offset, "the last record is missing"))?;
    let damaged = |reason: &str| CutError::Damaged { offset, reason: reason.into() };
    Ok(areas.read(record).map_err(damaged)?.next)
}

fn incomplete(offset: u64, reason: &str) -> CutError {
    CutError::Incomplete { offset, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::super::signature::{Difference, Signature};
    use super::*;
    use crate::params::Matching;
    use std::collections::BTreeMap;

    fn record(address: u64, bytes: u64, file_bytes: u64, properties: u64) -> Vec<u8> {
        let mut record = vec![7; PAGE];
        for (at, value) in
            [(0, address), (8, address.wrapping_add(bytes)), (16, bytes), (72, file_bytes), (80, properties)]
        {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        // Of a file; the length of one counts only where there is one.
        record[88] = b'/';
        record
    }

    /// Areas: address, contents, bytes of the file they map or 0, properties.
    fn image(areas: &[(u64, &[u8], u64, u64)]) -> Vec<u8> {
        let mut image = vec![0; 2 * PAGE];
        image[..28].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n");
        for (address, bytes, file_bytes, properties) in areas {
            image.extend(record(*address, bytes.len() as u64, *file_bytes, *properties));
            let written = if *file_bytes > 0 { *file_bytes as usize } else { bytes.len() };
            if *properties == 0 {
                image.extend(&bytes[..written.min(bytes.len())]);
            }
        }
        image.extend(record(0, u64::MAX, 0, 0));
        image
    }

    fn signature(image: &[u8]) -> Result<Signature, CutError> {
        let mut stream = Stream::new(image, &[4096], 0);
        read(&mut stream)?;
        let file = stream.finish().remove(0);
        Ok(Signature { files: BTreeMap::from([("image".into(), file)]) })
    }

    #[test]
    fn pages_are_compared_at_their_addresses() {
        let (ones, twos) = (vec![1; 3 * 4096], vec![2; 2 * 4096]);
        let base = image(&[(0x10000, &ones, 0, 0), (0x40000, &twos, 5000, 0)]);
        let base = signature(&base).unwrap();
        assert_eq!(base.blocks(), 5);
        // A new area moves what is behind it; zeros and parents have no bytes.
        let mut changed = ones.clone();
        changed[4096] = 9;
        let areas: [(u64, &[u8], u64, u64); 4] = [
            (0x10000, &changed, 0, 0),
            (0x20000, &twos, 0, 1),
            (0x30000, &twos, 0, 0),
            (0x40000, &twos, 5000, 0),
        ];
        let found = signature(&image(&areas)).unwrap().difference(&base, Matching::Place);
        assert_eq!(found, Difference { blocks: 3, bytes: 3 * 4096, records: 7 * 4096 });
    }

    #[test]
    fn pages_of_criu_are_compared_at_their_addresses() {
        let signature = |runs: &[(u64, u64)], bytes: &[u8]| {
            let mut stream = Stream::new(bytes, &[4096], 0);
            read_pages(&mut stream, &PageMap { runs: runs.to_vec() })?;
            let file = stream.finish().remove(0);
            Ok::<_, CutError>(Signature { files: BTreeMap::from([("pages-1.img".into(), file)]) })
        };
        let page = |value: u8| vec![value; PAGE];
        let bytes = [page(1), page(2), page(3)].concat();
        let base = signature(&[(0x10000, 2), (0x40000, 1)], &bytes).unwrap();
        // A page before all others moves them in the file.
        let moved = [page(9), bytes.clone()].concat();
        let runs = [(0x8000, 1), (0x10000, 2), (0x40000, 1)];
        let found = signature(&runs, &moved).unwrap().difference(&base, Matching::Place);
        assert_eq!(found, Difference { blocks: 1, bytes: 4096, records: 0 });
        assert!(matches!(signature(&runs, &bytes), Err(CutError::Incomplete { offset: 12288, .. })));
        // Whatever nobody knows of is stored.
        let longer = signature(&[(0x10000, 2)], &bytes).unwrap().difference(&base, Matching::Place);
        assert_eq!(longer, Difference { blocks: 0, bytes: 0, records: 4096 });
    }

    #[test]
    fn images_without_an_end_are_told() {
        let whole = image(&[(0x10000, &[1; 8192], 0, 0)]);
        for length in (27..whole.len()).step_by(97).chain([whole.len() - 1]) {
            assert!(matches!(signature(&whole[..length]), Err(CutError::Incomplete { .. })), "{length}");
        }
        assert!(signature(&whole).is_ok());
    }

    #[test]
    fn areas_that_contradict_themselves_are_told() {
        let mut wrong = image(&[(0x10000, &[1; 4096], 0, 0)]);
        wrong[2 * PAGE + 8] ^= 1;
        assert!(matches!(signature(&wrong), Err(CutError::Damaged { offset: 8192, .. })));
        // An area of 2⁶⁰ bytes takes no more memory than any other.
        let mut huge = image(&[]);
        huge.truncate(2 * PAGE);
        huge.extend(record(0x1000, 1 << 60, 0, 0));
        huge.extend([1; 5000]);
        assert!(matches!(signature(&huge), Err(CutError::Incomplete { .. })));
    }
}
