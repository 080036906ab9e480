//! The secret that an agent and those it serves share.

use std::fmt;

use miette::Diagnostic;
use rand::TryRng;
use rand::rngs::{SysError, SysRng};

/// Bytes of a token.
const BYTES: usize = 32;

/// What whoever talks to an agent has to know. It never goes over a connection, and does not show itself.
#[derive(Clone)]
pub struct Token([u8; BYTES]);

/// Text that is no token. The text itself is not repeated: it may be most of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("a token has 64 hexadecimal digits, and this text has {letters} letters{}", if *.letters == 64 { ", not all of them digits" } else { "" })]
#[diagnostic(help("make one with `(umask 077; openssl rand -hex 32 > token)`"))]
pub struct TokenError {
    letters: usize,
}

impl Token {
    /// A new token that nobody knows.
    pub fn random() -> Result<Self, SysError> {
        random_bytes().map(Self)
    }

    /// Reads 64 hexadecimal digits; space around them does not count.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let digits = text.trim().as_bytes();
        let error = TokenError { letters: text.trim().chars().count() };
        let mut bytes = [0; BYTES];
        if digits.len() != 2 * BYTES {
            return Err(error);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(error);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(Self(bytes))
    }

    /// The 64 hexadecimal digits, to hand the token on.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The key of keyed hashes.
    pub(super) fn key(&self) -> &[u8; BYTES] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Bytes of the operating system's generator that nobody can foretell.
pub(super) fn random_bytes() -> Result<[u8; BYTES], SysError> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_and_written_and_do_not_show_themselves() {
        let token = Token::random().unwrap();
        let hex = token.to_hex();
        assert_eq!(Token::parse(&format!(" {hex}\r\n")).unwrap().to_hex(), hex);
        assert_eq!(Token::parse(&hex.to_uppercase()).unwrap().to_hex(), hex);
        assert_ne!(Token::random().unwrap().to_hex(), hex);
        assert!(!format!("{token:?}").contains(&hex[..4]));
    }

    #[test]
    fn other_text_is_no_token() {
        let said = |text: &str| Token::parse(text).unwrap_err().to_string();
        assert!(said("").ends_with("has 0 letters"));
        assert!(said(&"0".repeat(65)).ends_with("65 letters"));
        assert!(said(&"g".repeat(64)).ends_with("not all of them digits"));
        assert!(said(&"é".repeat(32)).ends_with("32 letters"));
        assert!(said(&"+1".repeat(32)).ends_with("not all of them digits"));
    }
}
