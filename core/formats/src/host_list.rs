//! Lists of host names as Slurm writes them: `node[001-128,200-210],login1`.
//!
//! Names are parted by commas or white space. A bracket stands for each of its numbers, written with as many digits as the first
//! number of the range has: `n[08-10]` is `n08 n09 n10`. A name may hold several brackets; the numbers of the last one
//! change fastest, then those of the first, the second and so on. Duplicates stay. All this is what `scontrol show hostnames`
//! (Slurm 22.05) does. Beyond it, text may follow the last bracket, `n[1-2]-ib`, and ranges may be longer than 65,536.
//! Where `scontrol` guesses, this reader refuses: brackets that are not closed, open ends (`n[1-]`), blanks inside brackets.

mod compress;
mod error;
mod parse;

pub use compress::compress;
pub use error::HostListError;
pub use parse::expand;
pub(crate) use parse::expand_within;

/// Most names that a list may stand for.
pub const MAX_NAMES: usize = 1 << 22;
/// Most bytes of a name: those of a host name (RFC 1035).
pub const MAX_NAME_BYTES: usize = 255;
