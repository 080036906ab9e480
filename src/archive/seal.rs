//! The seal: BLAKE3 of all bytes of an archive but the last ones, which are its digits.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

/// What stands before the digits at the end of an archive.
const WORDS: &str = "hopmap archive; BLAKE3 of everything before these digits: ";
const DIGITS: usize = 64;
/// With these bytes the last part of an archive begins; 18 more follow, of which the last two are the length of the comment.
const END: &[u8] = b"PK\x05\x06";

/// The comment of an archive that has yet to be sealed.
pub(super) fn comment() -> String {
    format!("{WORDS}{}", "0".repeat(DIGITS))
}

/// What the end of an archive says of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// Every byte is as it was written.
    Whole,
    /// Some byte is not.
    Broken,
    /// There is none: another program packed the files.
    None,
}

/// Seals an archive that ends in [`comment`]; gives the digits.
pub(super) fn seal(file: &mut File) -> std::io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    let digits = hash(file, length - DIGITS as u64)?;
    file.seek(SeekFrom::Start(length - DIGITS as u64))?;
    file.write_all(digits.as_bytes())?;
    Ok(digits)
}

/// Holds an archive against its seal.
pub(super) fn check(file: &mut File) -> std::io::Result<Seal> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut text = vec![0; (WORDS.len() + DIGITS).min(usize::try_from(length).unwrap_or(usize::MAX))];
    file.seek(SeekFrom::End(-(text.len().cast_signed() as i64)))?;
    file.read_exact(&mut text)?;
    if !text.starts_with(WORDS.as_bytes()) || text.len() < WORDS.len() + DIGITS {
        // An archive of another program ends in its directory, without a comment. Anything else was sealed once.
        let end = text.len().saturating_sub(END.len() + 18);
        let is_bare = text[end..].starts_with(END) && text.ends_with(&[0, 0]);
        return Ok(if is_bare { Seal::None } else { Seal::Broken });
    }
    let digits = &text[WORDS.len()..];
    let found = hash(file, length - DIGITS as u64)?;
    Ok(if found.as_bytes() == digits { Seal::Whole } else { Seal::Broken })
}

fn hash(file: &mut File, length: u64) -> std::io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(Read::by_ref(file).take(length))?;
    Ok(hasher.finalize().to_hex().to_string())
}
