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
mod words;

pub use counts::{bytes, counted, decimal, duration, grouped, noun_of, shown, significant};
pub use error::FileError;
pub use foreign::{Foreign, Rows, rows_without_foreign, without_foreign};
pub use input::{CUT, check_stop, encoded, entries, head, opened, read, read_text, unpacked, utf8};
pub use lines::{Line, Lines, WithoutForeign, foreign_lines, lines_of};
pub use messages::{is_foreign, is_launch_file};
pub use prefix::{
    Prefix, Shapes, has_no_number, is_command_or_rule, is_sentence, or_prefix, prefix_of_lines,
    prefixed_line, refuse_prefixed, row_behind,
};
pub use words::{Words, closest};
