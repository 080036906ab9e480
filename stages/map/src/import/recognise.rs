//! Which format a placement has, by what is in it.

use hopmap_text::{FileError, Line, shown};

use crate::PlacementFormat;

const HINT: &str = "formats: one PE a line (KaHIP, VieM, SharedMap), a count and then `vertex PE` lines (Scotch), `rank 0=host \
                    slot=1` lines (Open MPI's rank file), one host a line (machine file); `format` takes one for granted";

/// The format of a file. Two lines are enough.
pub(super) fn recognise<'t>(mut lines: impl Iterator<Item = Line<'t>>) -> Result<PlacementFormat, FileError> {
    let Some(first) = lines.next() else {
        return Err(FileError::new("nothing is in it", HINT));
    };
    let numbers = |line: Line<'_>| line.words().all(is_whole).then(|| line.words().count());
    match (numbers(first), lines.next().and_then(numbers)) {
        (Some(1), Some(2)) => Ok(PlacementFormat::Scotch),
        (Some(1), _) => Ok(PlacementFormat::Kahip),
        (None, _)
            if first.text.starts_with("rank") && first.text.contains('=') && first.words().count() > 1 =>
        {
            Ok(PlacementFormat::Rankfile)
        }
        (None, _) if is_host(first.words().next().unwrap_or_default()) => Ok(PlacementFormat::Machinefile),
        _ => Err(first
            .error(format!("`{}` begins no placement that is known", shown(first.text)))
            .with_help(HINT)),
    }
}

/// Whether a word may be a host and a count.
fn is_host(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:".contains(letter))
}

/// Whether a word is a whole number, of any size and sign.
fn is_whole(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
