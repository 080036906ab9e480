//! Bytes without the lines of other programs, for formats that other libraries parse.

use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;

use crate::Foreign;
use crate::input::{BUFFER, Input};

/// The bytes of a file in which lines of other programs are empty. Lines longer than the buffer are none.
pub struct WithoutForeign<'a> {
    input: Input<'a>,
    foreign: &'a mut Option<Foreign>,
    /// Lines so far, and line ends in place of those that were skipped.
    lines: usize,
    ends: usize,
    /// Bytes of the current line that are not read yet, and whether it goes on behind them.
    left: usize,
    goes_on: bool,
}

impl<'a> WithoutForeign<'a> {
    /// The bytes from a source; the lines that are skipped are added to `foreign`.
    pub fn new(source: impl Read + 'a, foreign: &'a mut Option<Foreign>) -> Self {
        let input = Input::of(Path::new(""), source, "");
        Self { input, foreign, lines: 0, ends: 0, left: 0, goes_on: false }
    }

    /// Finds the next line.
    fn advance(&mut self) -> io::Result<()> {
        let end = loop {
            let rest = self.input.rest();
            match memchr(b'\n', rest) {
                Some(end) => break Some(end + 1),
                None if rest.len() >= BUFFER => break None,
                None => {}
            }
            match self.input.fill(1) {
                Ok(true) => {}
                Ok(false) => break Some(self.input.rest().len()),
                Err(_) if self.input.is_cut => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => return Err(io::Error::other(error.problem)),
            }
        };
        self.left = end.unwrap_or(self.input.rest().len());
        if !std::mem::replace(&mut self.goes_on, end.is_none()) && !self.goes_on && self.left > 0 {
            self.ends = Foreign::pass(self.foreign, &mut self.input, self.left, self.lines);
            self.left = if self.ends > 0 { 0 } else { self.left };
        }
        self.lines += self.ends.max(usize::from(!self.goes_on));
        Ok(())
    }
}

impl Read for WithoutForeign<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ends == 0 && self.left == 0 {
            self.advance()?;
        }
        if self.ends > 0 {
            let ends = self.ends.min(buffer.len());
            self.ends -= ends;
            buffer[..ends].fill(b'\n');
            return Ok(ends);
        }
        let length = self.left.min(buffer.len());
        buffer[..length].copy_from_slice(&self.input.rest()[..length]);
        self.input.pass(length);
        self.left -= length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lines_become_empty_and_long_ones_stay() {
        let long = format!("Warning: {}", "x y ".repeat(BUFFER));
        let text = format!("ibwarn: [7] a b\n{{\n{long}\n}}\nsrun: error: c");
        let (mut read, mut foreign) = (String::new(), None);
        WithoutForeign::new(text.as_bytes(), &mut foreign).read_to_string(&mut read).unwrap();
        assert_eq!(read, format!("\n{{\n{long}\n}}\n\n"));
        let expected = Foreign { count: 2, line: 1, first: "ibwarn: [7] a b".into() };
        assert_eq!(foreign, Some(expected));
    }
}
