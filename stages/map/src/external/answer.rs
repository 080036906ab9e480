//! Permutations that other programs write.

use std::collections::VecDeque;

use crate::{AnswerError, Numbering};

/// Most characters of a word that are quoted.
const QUOTED: usize = 40;

/// A permutation that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the first, the second, … has, counted from zero.
    pub permutation: Vec<u32>,
    /// The cost that the program claims, as in a solution of QAPLIB.
    pub stated: Option<f64>,
}

/// A word and its line.
struct Word<'t> {
    text: &'t [u8],
    line: usize,
}

impl Answer {
    /// Reads the last `n` whole numbers of a text: the answer, and nothing may follow it or stand between them.
    ///
    /// White space, commas, semicolons and brackets part words. If a text is n, a cost and the permutation, as QAPLIB writes
    /// solutions, the cost is kept. `what` names what the numbers belong to, such as `rank`.
    pub fn read(text: &[u8], n: usize, numbering: Numbering, what: &str) -> Result<Self, AnswerError> {
        let mut last = VecDeque::new();
        let mut count = 0usize;
        for word in words(text) {
            count += 1;
            last.push_back(word);
            if last.len() > n + 2 {
                last.pop_front();
            }
        }
        let begin = last.len().saturating_sub(n);
        let words: Vec<&Word<'_>> = last.iter().skip(begin).collect();
        if let Some(at) = words.iter().rposition(|word| !word.is_whole()) {
            let word = words[at];
            // Too few where a row of numbers begins late, a word too many where it ends early.
            return Err(match words.len() - at - 1 {
                found if found * 2 >= n && found > 0 => AnswerError::TooFew { found, expected: n },
                _ => AnswerError::Word { line: word.line, word: word.quoted(), expected: n },
            });
        }
        if words.len() < n {
            return Err(AnswerError::TooFew { found: words.len(), expected: n });
        }
        let stated = (count == n + 2 && last[0].number() == Some(n as u64))
            .then(|| std::str::from_utf8(last[1].text).ok()?.parse::<f64>().ok())
            .flatten()
            .filter(|stated| stated.is_finite());
        Ok(Self { permutation: permutation(&words, numbering, what)?, stated })
    }

    /// The other way round: what has the first, the second, …
    #[must_use]
    pub fn inverted(&self) -> Vec<u32> {
        let mut inverted = vec![0; self.permutation.len()];
        for (at, &number) in self.permutation.iter().enumerate() {
            inverted[number as usize] = at as u32;
        }
        inverted
    }
}

/// Checks that every number is there once.
fn permutation(words: &[&Word<'_>], numbering: Numbering, what: &str) -> Result<Vec<u32>, AnswerError> {
    let n = words.len();
    let first = match numbering {
        Numbering::FromZero => 0,
        Numbering::FromOne => 1,
        Numbering::Auto => usize::from(!words.iter().any(|word| word.number() == Some(0))),
    };
    let name = |at: usize| format!("{what} {}", at + first);
    let mut owner = vec![None; n];
    let mut permutation = Vec::with_capacity(n);
    for (at, word) in words.iter().enumerate() {
        let number = word.number().and_then(|number| usize::try_from(number).ok()?.checked_sub(first));
        let Some(number) = number.filter(|&number| number < n) else {
            return Err(AnswerError::Range {
                line: word.line,
                what: name(at),
                word: word.quoted(),
                first,
                last: n - 1 + first,
            });
        };
        if let Some(other) = owner[number].replace(at) {
            return Err(AnswerError::Twice {
                line: word.line,
                what: name(at),
                number: number + first,
                other: name(other),
            });
        }
        permutation.push(number as u32);
    }
    Ok(permutation)
}

/// The words of a text with their lines.
fn words(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let parts = |byte: &u8| byte.is_ascii_whitespace() || b",;()[]{}".contains(byte);
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines.flat_map(move |(line, text)| {
        let words = text.split(parts).filter(|word| !word.is_empty());
        words.map(move |text| Word { text, line: line + 1 })
    })
}

impl Word<'_> {
    /// Whether it is a whole number, of any size and sign.
    fn is_whole(&self) -> bool {
        let digits = self.text.strip_prefix(b"-").unwrap_or(self.text);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    }

    /// The number, if it is one from zero and not too large.
    fn number(&self) -> Option<u64> {
        if self.text.iter().all(u8::is_ascii_digit) {
            std::str::from_utf8(self.text).ok()?.parse().ok()
        } else {
            None
        }
    }

    fn quoted(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[..self.text.len().min(4 * QUOTED)]);
        let text: String = text.escape_debug().collect();
        if text.chars().count() <= QUOTED { text } else { text.chars().take(QUOTED).chain(['…']).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, n: usize) -> Result<Answer, AnswerError> {
        Answer::read(text.as_bytes(), n, Numbering::Auto, "rank")
    }

    fn refused(text: &str, n: usize) -> String {
        read(text, n).unwrap_err().to_string()
    }

    #[test]
    fn counting_from_zero_and_from_one_are_told_apart() {
        assert_eq!(read("2 0 1", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("3 1 2", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("3, 1, 2\n", 3).unwrap().inverted(), [1, 2, 0]);
        let from_zero = Answer::read(b"1 2", 2, Numbering::FromZero, "slot").unwrap_err();
        assert_eq!(from_zero.to_string(), "line 1: slot 1 has `2`, and numbers go from 0 to 1");
    }

    #[test]
    fn what_stands_before_the_permutation_is_passed_over() {
        assert_eq!(read("best cost 12\nplacement: [2 0 1]\n", 3).unwrap().permutation, [2, 0, 1]);
        assert_eq!(read("best cost 12\nplacement: [2 0 1]\n", 3).unwrap().stated, None);
    }

    #[test]
    fn a_solution_of_qaplib_states_its_cost() {
        let answer = read(" 3 578\n 3 1\n2\n", 3).unwrap();
        assert_eq!((answer.permutation, answer.stated), (vec![2, 0, 1], Some(578.0)));
        assert_eq!(read("4 578 3 1 2", 3).unwrap().stated, None);
    }

    #[test]
    fn what_is_no_permutation_is_refused_with_its_place() {
        assert_eq!(refused("", 3), "it ends with 0 whole numbers in a row, and 3 are due");
        assert_eq!(refused("1 2", 3), "it ends with 2 whole numbers in a row, and 3 are due");
        assert_eq!(refused("x 1 2", 3), "it ends with 2 whole numbers in a row, and 3 are due");
        // Otherwise the 2 would be taken for a part of the answer.
        assert_eq!(
            refused("2 0 1\ntook 2 s\n", 3),
            "line 2: `s` stands after the last whole numbers, of which 3 in a row are due at the end"
        );
        assert_eq!(refused("1\n2 2\n", 3), "line 2: rank 3 has 2, which rank 2 has as well");
        assert_eq!(refused("1 2\n-3", 3), "line 2: rank 3 has `-3`, and numbers go from 1 to 3");
        assert_eq!(refused("0 1 3", 3), "line 1: rank 2 has `3`, and numbers go from 0 to 2");
        assert_eq!(
            refused("1 2 99999999999999999999999", 3),
            "line 1: rank 3 has `99999999999999999999999`, and numbers go from 1 to 3"
        );
    }
}
