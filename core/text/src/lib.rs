//! Text file readers: [`Lines`], [`Words`], numbers, and [`FileError`], the common type of their errors. Names
//! and numbers in messages: [`closest`], [`counted`], [`bytes`], [`grouped`].

mod counts;
mod error;
mod foreign;
mod input;
mod lines;
pub mod numbers;
mod prefix;
mod words;

pub use counts::{bytes, counted, decimal, duration, grouped, noun_of, shown, significant};
pub use error::FileError;
pub use foreign::{Foreign, behind_time, is_foreign, without_foreign};
pub use input::{CUT, check_stop, entries, head, opened, read, read_text, unpacked, utf8};
pub use lines::{Line, Lines, WithoutForeign, foreign_lines, lines_of};
pub use prefix::{Prefix, prefixed, prefixed_line};
pub use words::{Words, closest};
