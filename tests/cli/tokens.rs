//! Rust text in tokens, as far as paths need them.

use std::iter::Peekable;
use std::str::Chars;

/// A piece of Rust text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name, keyword or number.
    Word(String),
    /// Text in quotes.
    Text(String),
    /// `::`.
    Path,
    /// Any other character.
    Mark(char),
}

impl Token {
    /// The name, or nothing.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            _ => "",
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The tokens of a text, without comments, lifetimes and characters in quotes.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '/' if rest.peek() == Some(&'/') => {
                rest.by_ref().find(|&next| next == '\n');
            }
            '/' if rest.peek() == Some(&'*') => skip_comment(&mut rest),
            '"' => found.push(Token::Text(quoted(&mut rest))),
            '\'' => skip_character(&mut rest),
            ':' if rest.peek() == Some(&':') => {
                rest.next();
                found.push(Token::Path);
            }
            next if is_in_word(next) => word(next, &mut rest, &mut found),
            next if next.is_whitespace() => {}
            next => found.push(Token::Mark(next)),
        }
    }
    found
}

fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// A word; or, behind `r`, `b`, `br` and the like, a text in quotes or a raw name.
fn word(first: char, rest: &mut Peekable<Chars<'_>>, found: &mut Vec<Token>) {
    let mut word = String::from(first);
    while let Some(next) = rest.next_if(|&next| is_in_word(next)) {
        word.push(next);
    }
    let is_prefix = ["r", "b", "br", "c", "cr"].contains(&word.as_str());
    match rest.peek() {
        Some('"') if is_prefix && !word.contains('r') => {
            rest.next();
            found.push(Token::Text(quoted(rest)));
        }
        Some('"' | '#') if is_prefix && word.contains('r') => {
            let mut hashes = 0;
            while rest.next_if_eq(&'#').is_some() {
                hashes += 1;
            }
            // `r#type` is the name `type`, which comes next.
            if rest.next_if_eq(&'"').is_some() {
                found.push(Token::Text(raw(hashes, rest)));
            }
        }
        _ => found.push(Token::Word(word)),
    }
}

fn quoted(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => while rest.next_if(|next| next.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some(next) => text.push(next),
                None => {}
            },
            next => text.push(next),
        }
    }
    text
}

fn raw(hashes: usize, rest: &mut Peekable<Chars<'_>>) -> String {
    let end = format!("\"{}", "#".repeat(hashes));
    let mut text = String::new();
    for next in rest.by_ref() {
        text.push(next);
        if text.ends_with(&end) {
            text.truncate(text.len() - end.len());
            break;
        }
    }
    text
}

fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    let (mut depth, mut last) = (0, '/');
    for next in rest.by_ref() {
        match (last, next) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                last = next;
                continue;
            }
        }
        // Neither `/*/` nor `*/*` is two marks.
        last = ' ';
        if depth == 0 {
            return;
        }
    }
}

/// A character in quotes, or a lifetime.
fn skip_character(rest: &mut Peekable<Chars<'_>>) {
    let Some(first) = rest.next() else { return };
    if first == '\\' {
        rest.next();
        rest.by_ref().find(|&next| next == '\'');
    } else if rest.next_if_eq(&'\'').is_none() {
        while rest.next_if(|&next| is_in_word(next)).is_some() {}
    }
}
