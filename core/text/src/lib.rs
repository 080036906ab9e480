//! Text file readers: [`Lines`], [`Words`], numbers, and [`FileError`], the common type of their errors. Names
//! and numbers in messages: [`closest`], [`counted`], [`bytes`], [`grouped`].

mod counts;
mod error;
mod foreign;
mod input;
mod lines;
mod messages;
pub mod numbers;
mod prefix;
mod prefixed;
mod words;

pub use counts::{bytes, counted, decimal, duration, grouped, noun_of, shown, significant};
pub use error::FileError;
pub use foreign::{Foreign, Rows, rows_without_foreign, without_foreign};
pub use input::{CUT, check_stop, entries, head, opened, read, read_text, unpacked, utf8};
pub use lines::{Line, Lines, WithoutForeign, foreign_lines, lines_of};
pub use messages::is_foreign;
pub use prefix::{Prefix, is_command_or_rule, is_sentence, prefix_of_lines, row_behind};
pub use prefixed::{PrefixedLine, prefixed, prefixed_line};
pub use words::{Words, closest};
