//! Text file readers: [`Lines`], [`Words`], numbers, and [`FileError`], the common type of their errors. Names
//! and counts in messages: [`closest`], [`counted`], [`bytes`].

mod counts;
mod error;
mod input;
mod lines;
pub mod numbers;
mod words;

pub use counts::{bytes, counted};
pub use error::FileError;
pub use input::{read, read_text, unpacked, utf8};
pub use lines::{Line, Lines, lines_of};
pub use words::{Words, closest, shown};
