//! Areas of memory in an image of DMTCP, format v4 (`ProcMapsArea` of its sources).
//!
//! An image is a header, written twice, and areas, each a record and its bytes; a last record has no area. Headers and records
//! are 4096 bytes long.

use std::io::Read;

use super::read::Stream;
use crate::cut::CutError;

/// Bytes that tell whether a file is an image.
pub(super) const HEAD: u64 = 27;

const RECORD: usize = 4096;
/// Properties of areas whose bytes are not in the image: all of them are zero, or they belong to the areas that follow.
const WITHOUT_BYTES: u64 = 1 | 2;

/// Whether a file that begins like this is an image.
pub(super) fn is_image(head: &[u8]) -> bool {
    head.starts_with(b"DMTCP_CHECKPOINT_IMAGE_v4.0")
}

/// Reads an image to its end: headers and records are stored always, bytes of areas belong to their addresses.
pub(super) fn read<R: Read>(stream: &mut Stream<R>) -> Result<(), CutError> {
    for _ in 0..2 {
        let offset = stream.offset();
        if stream.record(RECORD)?.len() < RECORD {
            return Err(incomplete(offset, "its header has no end"));
        }
    }
    while let Some(area) = next_area(stream)? {
        if area.bytes > 0 && !stream.run(area.address, Some(area.bytes))? {
            return Err(incomplete(stream.offset(), "an area has no end"));
        }
    }
    // DMTCP writes nothing here; whatever it is, it is stored.
    while !stream.record(RECORD)?.is_empty() {}
    Ok(())
}

/// Bytes in the image of an area of memory.
struct Area {
    address: u64,
    bytes: u64,
}

/// The area that the next record describes; none at the last record.
fn next_area<R: Read>(stream: &mut Stream<R>) -> Result<Option<Area>, CutError> {
    let offset = stream.offset();
    let record = stream.record(RECORD)?;
    if record.len() < RECORD {
        return Err(incomplete(offset, "the last record is missing"));
    }
    let field = |at| number(record, at);
    let (address, end, size) = (field(0), field(8), field(16));
    if address == 0 && size == u64::MAX {
        return Ok(None);
    }
    if address.checked_add(size) != Some(end) {
        return Err(CutError::Damaged { offset, reason: "an area does not end where it should".into() });
    }
    // Behind the end of a mapped file there is nothing to write.
    let (file_bytes, properties) = (field(72), field(80));
    let bytes = if file_bytes > 0 { size.min(file_bytes) } else { size };
    Ok(Some(Area { address, bytes: if properties & WITHOUT_BYTES == 0 { bytes } else { 0 } }))
}

/// The little-endian number at a place of a record.
fn number(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

fn incomplete(offset: u64, reason: &str) -> CutError {
    CutError::Incomplete { offset, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::super::signature::{Difference, Signature};
    use super::*;
    use std::collections::BTreeMap;

    fn record(address: u64, bytes: u64, file_bytes: u64, properties: u64) -> Vec<u8> {
        let mut record = vec![7; RECORD];
        for (at, value) in
            [(0, address), (8, address.wrapping_add(bytes)), (16, bytes), (72, file_bytes), (80, properties)]
        {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        record
    }

    /// Areas: address, contents, bytes of the file they map or 0, properties.
    fn image(areas: &[(u64, &[u8], u64, u64)]) -> Vec<u8> {
        let mut image = vec![0; 2 * RECORD];
        image[..HEAD as usize].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0");
        for (address, bytes, file_bytes, properties) in areas {
            image.extend(record(*address, bytes.len() as u64, *file_bytes, *properties));
            let written = if *file_bytes > 0 { *file_bytes as usize } else { bytes.len() };
            if properties & WITHOUT_BYTES == 0 {
                image.extend(&bytes[..written.min(bytes.len())]);
            }
        }
        image.extend(record(0, u64::MAX, 0, 0));
        image
    }

    fn signature(image: &[u8]) -> Result<Signature, CutError> {
        let mut stream = Stream::new(image, &[4096]);
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
        let found = signature(&image(&areas)).unwrap().difference(&base);
        assert_eq!(found, Difference { blocks: 3, bytes: 3 * 4096, records: 7 * 4096 });
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
        wrong[2 * RECORD + 8] ^= 1;
        assert!(matches!(signature(&wrong), Err(CutError::Damaged { offset: 8192, .. })));
        // An area of 2⁶⁰ bytes takes no more memory than any other.
        let mut huge = image(&[]);
        huge.truncate(2 * RECORD);
        huge.extend(record(0x1000, 1 << 60, 0, 0));
        huge.extend([1; 5000]);
        assert!(matches!(signature(&huge), Err(CutError::Incomplete { .. })));
    }
}
