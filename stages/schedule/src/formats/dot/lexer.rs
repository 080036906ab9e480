//! Tokens of DOT.

use std::borrow::Cow;

use hopmap_text::{FileError, shown};

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or a value.
    Id(Cow<'a, str>),
    /// A keyword in lower case, or punctuation.
    Sign(&'static str),
    /// The end of the file.
    End,
}

const KEYWORDS: [&str; 6] = ["node", "edge", "graph", "digraph", "subgraph", "strict"];
const MARKS: [&str; 10] = ["->", "--", "{", "}", "[", "]", "=", ";", ",", ":"];

impl Token<'_> {
    /// Its form in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Id(id) => format!("`{}`", shown(id)),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

const HELP: &str = "https://graphviz.org/doc/info/lang.html describes DOT";

/// Splits a text into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    pub(super) line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&self, problem: impl Into<String>) -> FileError {
        FileError::at(self.line, problem, HELP)
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = &self.text[self.at..self.at + bytes];
        self.line += skipped.bytes().filter(|&byte| byte == b'\n').count();
        self.at += bytes;
    }

    /// Skips blanks, comments as in C++, and preprocessor lines.
    fn skip_blanks(&mut self) -> Result<(), FileError> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.skip(blanks);
            let rest = self.rest();
            let is_first = self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n';
            if rest.starts_with("//") || (rest.starts_with('#') && is_first) {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
            } else if let Some(inner) = rest.strip_prefix("/*") {
                let end = inner.find("*/").ok_or_else(|| self.wrong("unterminated comment"))?;
                self.skip(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, FileError> {
        self.skip_blanks()?;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.skip(mark.len());
            return Ok(Token::Sign(mark));
        }
        match first {
            '"' => self.quoted_parts().map(Token::Id),
            '<' => self.html().map(Token::Id),
            '-' | '.' | '0'..='9' => self.numeral(),
            _ if is_letter(first) => {
                let end = rest.find(|char| !(is_letter(char) || char.is_ascii_digit())).unwrap_or(rest.len());
                self.skip(end);
                let word = &rest[..end];
                let keyword = KEYWORDS.into_iter().find(|keyword| word.eq_ignore_ascii_case(keyword));
                Ok(keyword.map_or(Token::Id(Cow::Borrowed(word)), Token::Sign))
            }
            _ => Err(self.wrong(format!("unexpected character `{first}`"))),
        }
    }

    /// A number such as `-1.5`: no exponent, and no letters after it.
    fn numeral(&mut self) -> Result<Token<'a>, FileError> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let is_part = |char: char| is_letter(char) || matches!(char, '0'..='9' | '.');
        let end = rest[sign..].find(|char| !is_part(char)).map_or(rest.len(), |end| sign + end);
        let word = &rest[..end];
        let digits = &word[sign..];
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && digits.bytes().any(|byte| byte.is_ascii_digit())
            && digits.bytes().filter(|&byte| byte == b'.').count() <= 1;
        if !is_number {
            let problem = format!("`{}` is neither a number nor a name", shown(word));
            return Err(FileError::at(self.line, problem, "quote it"));
        }
        self.skip(end);
        Ok(Token::Id(Cow::Borrowed(word)))
    }

    /// Quoted strings, concatenated by `+`.
    fn quoted_parts(&mut self) -> Result<Cow<'a, str>, FileError> {
        let mut text = self.quoted()?;
        loop {
            let (at, line) = (self.at, self.line);
            self.skip_blanks()?;
            if !self.rest().starts_with('+') {
                (self.at, self.line) = (at, line);
                return Ok(text);
            }
            self.skip(1);
            self.skip_blanks()?;
            if !self.rest().starts_with('"') {
                return Err(self.wrong("`+` must be followed by a quoted string"));
            }
            text += self.quoted()?;
        }
    }

    /// A quoted string: `\"` is a quotation mark, a backslash at the end of a line continues the line, and every other backslash
    /// is kept.
    fn quoted(&mut self) -> Result<Cow<'a, str>, FileError> {
        let inner = &self.rest()[1..];
        let bytes = inner.as_bytes();
        let (mut at, mut escapes) = (0, false);
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => (at, escapes) = (at + 2, true),
                Some(_) => at += 1,
                None => return Err(self.wrong("unterminated quoted string")),
            }
        }
        let text = &inner[..at];
        self.skip(at + 2);
        match escapes {
            false => Ok(Cow::Borrowed(text)),
            true => Ok(Cow::Owned(unescaped(text))),
        }
    }

    /// A text between matching angle brackets, which are kept to distinguish it from a name.
    fn html(&mut self) -> Result<Cow<'a, str>, FileError> {
        let rest = self.rest();
        let mut depth = 0usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'<' => depth += 1,
                b'>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.skip(at + 1);
                return Ok(Cow::Borrowed(&rest[..=at]));
            }
        }
        Err(self.wrong("unterminated text in angle brackets"))
    }
}

fn is_letter(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || !char.is_ascii()
}

fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            unescaped.push(char);
            continue;
        }
        match chars.next() {
            Some('"') => unescaped.push('"'),
            Some('\n') => {}
            Some('\r') if chars.peek() == Some(&'\n') => drop(chars.next()),
            Some(other) => unescaped.extend(['\\', other]),
            None => unescaped.push('\\'),
        }
    }
    unescaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token<'_>>, FileError> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()? {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    fn ids(text: &str) -> Vec<String> {
        let id = |token| if let Token::Id(id) = token { id.into_owned() } else { panic!("{token:?}") };
        tokens(text).unwrap().into_iter().map(id).collect()
    }

    #[test]
    fn names_are_words_numbers_texts_and_html() {
        assert_eq!(ids("a _b1 é 1 -.5 1. \"\""), ["a", "_b1", "é", "1", "-.5", "1.", ""]);
        assert_eq!(ids(r#""a\"b" "c\nd" "e\\" "f\é""#), ["a\"b", r"c\nd", r"e\\", r"f\é"]);
        assert_eq!(ids("\"a\\\nb\\\r\nc\nd\" \"x\" /**/ + // y\n \"z\""), ["abc\nd", "xz"]);
        assert_eq!(ids("<a<b>c> <>"), ["<a<b>c>", "<>"]);
    }

    #[test]
    fn keywords_and_punctuation_are_recognised() {
        let expected = [
            Token::Sign("digraph"),
            Token::Sign("{"),
            Token::Id("a".into()),
            Token::Sign("->"),
            Token::Sign("node"),
            Token::Sign("--"),
            Token::Id("-1".into()),
            Token::Id("node".into()),
        ];
        assert_eq!(tokens("# 1 \"x\"\nDiGraph{a->NODE/* # */-- -1\n# x\n\"node\"").unwrap(), expected);
        let shown: String = expected.iter().map(Token::shown).collect();
        assert_eq!(shown, "`digraph``{``a``->``node``--``-1``node`");
    }

    #[test]
    fn errors_have_lines() {
        let problem = |text: &str| {
            let error = tokens(text).unwrap_err();
            (error.line.unwrap(), error.problem)
        };
        assert_eq!(problem("a\n\"b\n"), (2, "unterminated quoted string".into()));
        assert_eq!(problem("\n\n<a<b>"), (3, "unterminated text in angle brackets".into()));
        assert_eq!(problem("a /* b"), (1, "unterminated comment".into()));
        assert_eq!(problem("\"a\n\"\n1a"), (3, "`1a` is neither a number nor a name".into()));
        assert!(
            [" # x", "a $", "1.2.3", "-", "- 1", "\"a\" + b", "\"\\", "é\"\\"]
                .iter()
                .all(|text| tokens(text).is_err())
        );
    }
}
