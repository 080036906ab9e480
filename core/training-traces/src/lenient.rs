//! JSON as tools write it who print numbers and texts without a library: Kineto of PyTorch and others.
//!
//! | in the file | read as |
//! |---|---|
//! | a byte order mark | nothing |
//! | `inf`, `-Infinity`, `nan`, `1.#QNAN` | `null` |
//! | a comma before `}` or `]` | nothing |
//! | bytes of a text that are not UTF-8 | U+FFFD |
//! | control characters of a text | a space |
//! | escaped surrogates of a text, which may lack their other half | `?` |
//! | a backslash of a text before something else than an escape | a backslash |

use std::io::{self, BufRead, Read};

/// Words in place of numbers, in lower case without a sign.
const NO_NUMBERS: [&str; 9] =
    ["inf", "infinity", "nan", "nan(ind)", "nan(snan)", "1.#inf", "1.#ind", "1.#qnan", "1.#snan"];

/// Bytes of the longest of these words with its sign.
const LONGEST: usize = 16;

/// Outside of strings these bytes are nothing else.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Unicode's replacement character.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Valid JSON from a source that is nearly valid.
pub(crate) struct Lenient<R> {
    source: R,
    text: Text,
    done: Vec<u8>,
    /// Bytes of `done` that were passed on.
    passed: usize,
    has_ended: bool,
}

/// Where the text is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Position {
    /// Outside of strings, in a word that may be a number.
    Outside(Vec<u8>),
    String,
    /// Behind a backslash.
    Escape,
    /// Behind `\u`, with the digits so far.
    Unicode(Vec<u8>),
}

struct Text {
    place: Position,
    /// A comma that something must follow.
    comma: bool,
    /// A character of several bytes that is not complete.
    part: Vec<u8>,
}

impl<R: BufRead> Lenient<R> {
    pub(crate) fn new(source: R) -> Self {
        let text = Text { place: Position::Outside(Vec::new()), comma: false, part: Vec::new() };
        Self { source, text, done: Vec::new(), passed: 0, has_ended: false }
    }

    /// Converts the next bytes of the source.
    fn refill(&mut self) -> io::Result<()> {
        self.done.clear();
        self.passed = 0;
        let bytes = self.source.fill_buf()?;
        let length = bytes.len();
        let mut all = std::mem::take(&mut self.text.part);
        all.extend_from_slice(bytes);
        self.source.consume(length);
        self.has_ended = length == 0;
        let rest = all.as_slice();
        for chunk in rest.utf8_chunks() {
            chunk.valid().bytes().for_each(|byte| self.text.byte(byte, &mut self.done));
            let invalid = chunk.invalid();
            let is_end = rest.as_ptr_range().end == invalid.as_ptr_range().end;
            if is_end
                && !self.has_ended
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
            {
                self.text.part = invalid.to_vec();
            } else if !invalid.is_empty() {
                REPLACEMENT.iter().for_each(|byte| self.text.byte(*byte, &mut self.done));
            }
        }
        if self.has_ended {
            self.text.end_word(&mut self.done);
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Lenient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.done.len() && !self.has_ended {
            self.refill()?;
        }
        let length = buffer.len().min(self.done.len() - self.passed);
        buffer[..length].copy_from_slice(&self.done[self.passed..][..length]);
        self.passed += length;
        Ok(length)
    }
}

impl Text {
    fn byte(&mut self, byte: u8, done: &mut Vec<u8>) {
        match &mut self.place {
            Position::Outside(word) if byte.is_ascii_alphanumeric() || b"+-.#()".contains(&byte) => {
                self.comma = self.comma && {
                    done.push(b',');
                    false
                };
                word.push(byte);
                if word.len() > LONGEST {
                    done.append(word);
                }
            }
            Position::Outside(_) => self.outside(byte, done),
            Position::String => self.inside(byte, done),
            Position::Escape if byte == b'u' => self.place = Position::Unicode(Vec::new()),
            Position::Escape => {
                self.place = Position::String;
                done.push(b'\\');
                if b"\"\\/bfnrt".contains(&byte) {
                    done.push(byte);
                } else {
                    done.push(b'\\');
                    self.inside(byte, done);
                }
            }
            Position::Unicode(digits) if byte.is_ascii_hexdigit() => {
                digits.push(byte);
                if digits.len() == 4 {
                    let digits = std::mem::take(digits);
                    self.place = Position::String;
                    Self::unicode(&digits, done);
                }
            }
            Position::Unicode(digits) => {
                let digits = std::mem::take(digits);
                self.place = Position::String;
                done.extend_from_slice(b"\\\\u");
                done.extend(digits);
                self.inside(byte, done);
            }
        }
    }

    /// A byte outside of strings that ends a word.
    fn outside(&mut self, byte: u8, done: &mut Vec<u8>) {
        self.end_word(done);
        if BYTE_ORDER_MARK.contains(&byte) {
            return;
        }
        if byte == b',' {
            self.comma = true;
            return;
        }
        if !byte.is_ascii_whitespace() && std::mem::take(&mut self.comma) && !b"}]".contains(&byte) {
            done.push(b',');
        }
        done.push(byte);
        if byte == b'"' {
            self.place = Position::String;
        }
    }

    /// A byte of a string.
    fn inside(&mut self, byte: u8, done: &mut Vec<u8>) {
        if byte == b'\\' {
            self.place = Position::Escape;
            return;
        }
        done.push(if byte < b' ' { b' ' } else { byte });
        if byte == b'"' {
            self.place = Position::Outside(Vec::new());
        }
    }

    /// A character by its four digits. Half of a surrogate pair is not a character.
    fn unicode(digits: &[u8], done: &mut Vec<u8>) {
        match digits[0].eq_ignore_ascii_case(&b'd') && digits[1] > b'7' {
            true => done.push(b'?'),
            false => done.extend(b"\\u".iter().chain(digits)),
        }
    }

    fn end_word(&mut self, done: &mut Vec<u8>) {
        let Position::Outside(word) = &mut self.place else { return };
        let text = String::from_utf8_lossy(word).to_ascii_lowercase();
        match NO_NUMBERS.contains(&text.trim_start_matches(['+', '-'])) {
            true => done.extend_from_slice(b"null"),
            false => done.extend_from_slice(word),
        }
        word.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The converted text, read in pieces of that many bytes.
    fn converted(bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut all = Vec::new();
        Lenient::new(BufReader::with_capacity(piece, bytes)).read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn every_fault_is_read() {
        let text = b"\xef\xbb\xbf{\"a\": inf, \"b\":-Infinity,\"c\" :[NaN,1e5,-nan(ind), ],\"d\xff\xc3\": \"x\ny\x01\",\n\
            \"e\": \"C:\\Users\\_\\u12 \\ud83d\\ude00 \\ud83d! \\ude00\", \"f\":true, \"g\":1.#QNAN,}";
        let expected = json!({
            "a": null, "b": null, "c": [null, 1e5, null], "d\u{fffd}\u{fffd}": "x y ",
            "e": "C:\\Users\\_\\u12 ?? ?! ?", "f": true, "g": null,
        });
        for piece in [1, 2, 3, 7, 1000] {
            let read: Value = serde_json::from_slice(&converted(text, piece)).unwrap();
            assert_eq!(read, expected, "pieces of {piece}");
        }
    }

    proptest! {
        #[test]
        fn valid_json_keeps_its_value(text in "\\PC{0,20}", number in any::<f64>(), piece in 1..9usize) {
            let value = json!({ text.clone(): [text, number, [], {}, null, true, {"a": -17}] });
            let read: Value = serde_json::from_slice(&converted(value.to_string().as_bytes(), piece)).unwrap();
            prop_assert_eq!(read, value);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\\xffu\xe2dD8cf- \n".to_vec()), 0..60)) {
            prop_assert_eq!(converted(&bytes, 1), converted(&bytes, 100));
        }
    }
}
