//! The words of which the files of PARUS consist.

use std::fmt::Display;
use std::str::FromStr;

use super::{ReadError, shown};

/// Words between blanks, texts in quotation marks; comments as in C and C++ are left out, and one begins inside a word, too.
///
/// PARUS puts together what stands before and behind a comment inside a word; here it is two words.
#[derive(Debug)]
pub(super) struct Words<'a> {
    rest: &'a str,
    line: usize,
    /// Bytes that PARUS has room for in a word or text.
    longest: usize,
    help: &'static str,
}

impl<'a> Words<'a> {
    /// The words of a file; `help` says what such a file looks like.
    pub(super) fn new(text: &'a str, longest: usize, help: &'static str) -> Self {
        Self { rest: text.trim_start_matches('\u{feff}'), line: 1, longest, help }
    }

    /// The line of the last word.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// What is wrong at the last word.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> ReadError {
        ReadError::at(self.line, problem, self.help)
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
    }

    fn skip_blanks(&mut self) -> Result<(), ReadError> {
        loop {
            let blanks = self.rest.bytes().take_while(u8::is_ascii_whitespace).count();
            self.skip(blanks);
            if !self.rest.starts_with('/') {
                return Ok(());
            }
            let end = if self.rest.starts_with("//") {
                Some(self.rest.find('\n').unwrap_or(self.rest.len()))
            } else if self.rest.starts_with("/*") {
                self.rest[2..].find("*/").map(|end| end + 4)
            } else {
                return Err(self.wrong("`/` begins no comment"));
            };
            let end = end.ok_or_else(|| self.wrong("the comment does not end"))?;
            self.skip(end);
        }
    }

    pub(super) fn is_at_end(&mut self) -> Result<bool, ReadError> {
        self.skip_blanks()?;
        Ok(self.rest.is_empty())
    }

    /// Refuses anything that still comes.
    pub(super) fn end(&mut self) -> Result<(), ReadError> {
        if self.is_at_end()? {
            return Ok(());
        }
        let word = self.word()?;
        Err(self.wrong(format!("`{}` stands behind the end", shown(word))))
    }

    pub(super) fn word(&mut self) -> Result<&'a str, ReadError> {
        self.skip_blanks()?;
        let end = self.rest.bytes().position(|byte| byte.is_ascii_whitespace() || byte == b'/');
        let word = &self.rest[..end.unwrap_or(self.rest.len())];
        if word.is_empty() {
            return Err(self.wrong("the file ends here"));
        }
        if word.len() > self.longest {
            return Err(self.too_long(word));
        }
        self.rest = &self.rest[word.len()..];
        Ok(word)
    }

    fn too_long(&self, word: &str) -> ReadError {
        self.wrong(format!("`{}` has more than the {} bytes that PARUS reads", shown(word), self.longest))
    }

    /// A key that has to come next, all in small or all in capital letters.
    pub(super) fn expect(&mut self, key: &str) -> Result<(), ReadError> {
        let word = self.word()?;
        let is_upper =
            || word.eq_ignore_ascii_case(key) && !word.bytes().any(|byte| byte.is_ascii_lowercase());
        let is_lower =
            || word.eq_ignore_ascii_case(key) && !word.bytes().any(|byte| byte.is_ascii_uppercase());
        match word == key || is_lower() || is_upper() {
            true => Ok(()),
            false => Err(self.wrong(format!("`{}` stands where `{key}` should be", shown(word)))),
        }
    }

    pub(super) fn number<T: FromStr>(&mut self, what: impl Display) -> Result<T, ReadError> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            let problem = match word.parse::<i128>() {
                Ok(number) if number < 0 => "is negative",
                Ok(_) => "is too large",
                Err(_) => "is no number that fits here",
            };
            self.wrong(format!("{what} is `{}`, which {problem}", shown(word)))
        })
    }

    /// A key and its number.
    pub(super) fn value<T: FromStr>(&mut self, key: &str) -> Result<T, ReadError> {
        self.expect(key)?;
        self.number(format_args!("`{key}`"))
    }

    /// A key and its text in quotation marks.
    pub(super) fn text(&mut self, key: &str) -> Result<String, ReadError> {
        self.expect(key)?;
        self.skip_blanks()?;
        let Some((text, _)) = self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
            return Err(self.wrong(format!("`{key}` should be a text in quotation marks")));
        };
        if text.len() > self.longest {
            return Err(self.too_long(text));
        }
        self.skip(text.len() + 2);
        Ok(text.to_owned())
    }

    /// A key and a list of numbers, `( 1 2 3 )`, as long as was said before.
    pub(super) fn list(&mut self, key: &str, said: (&str, u64)) -> Result<Vec<u64>, ReadError> {
        self.expect(key)?;
        self.expect("(")?;
        let mut numbers = Vec::new();
        loop {
            let word = self.word()?;
            if word == ")" {
                break;
            }
            let number = word.parse().map_err(|_| {
                self.wrong(format!("`{}` in the list of `{key}` is no number of zero or more", shown(word)))
            })?;
            numbers.push(number);
        }
        let (name, count) = said;
        if numbers.len() as u64 != count {
            let problem =
                format!("`{name}` is {count}, but the list of `{key}` has {} numbers", numbers.len());
            return Err(self.wrong(problem));
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words<'_> {
        Words::new(text, 9, "help")
    }

    #[test]
    fn comments_are_no_words() {
        let mut all = words("a/* x\n*/b// c\n /**/ // d\n12 \"e\"");
        assert_eq!((all.word().unwrap(), all.word().unwrap(), all.line()), ("a", "b", 2));
        assert_eq!((all.number::<u8>("x").unwrap(), all.line()), (12, 4));
        assert!(!all.is_at_end().unwrap());
        assert!(words(" // x").is_at_end().unwrap() && words("").is_at_end().unwrap());
        assert!(words("/* ").word().unwrap_err().problem.contains("does not end"));
        assert!(words("/*/").word().is_err());
        let mut lone = words("a / b");
        assert!(lone.word().is_ok() && lone.word().unwrap_err().problem.contains("no comment"));
    }

    #[test]
    fn keys_are_in_capitals_or_not() {
        assert!(words("<A_b>").expect("<a_b>").is_err());
        assert!(words("<A_B> <a_b>").expect("<A_B>").is_ok() && words("<a_b>").expect("<A_B>").is_ok());
        assert_eq!(words("x").expect("y").unwrap_err().to_string(), "line 1: `x` stands where `y` should be");
    }

    #[test]
    fn texts_and_lists_are_whole() {
        assert_eq!(words("a \"\"").text("a").unwrap(), "");
        assert_eq!(words("a /**/ \"b\nc\"").text("a").unwrap(), "b\nc");
        assert!(words("a b").text("a").is_err() && words("a \"b").text("a").is_err());
        assert!(words("a \"0123456789\"").text("a").unwrap_err().problem.contains("more than the 9 bytes"));
        assert!(words("0123456789").word().is_err());
        assert_eq!(words("a ( 1 2 )").list("a", ("n", 2)).unwrap(), [1, 2]);
        assert!(words("a ( 1 )").list("a", ("n", 2)).unwrap_err().problem.contains("`n` is 2"));
        assert!(
            words("a ( -1 )").list("a", ("n", 1)).is_err() && words("a ( 1").list("a", ("n", 1)).is_err()
        );
        assert_eq!(words("-1").number::<u8>("it").unwrap_err().problem, "it is `-1`, which is negative");
        assert_eq!(words("999").number::<u8>("it").unwrap_err().problem, "it is `999`, which is too large");
        assert!(words("a").end().is_err() && words(" ").end().is_ok());
    }
}
