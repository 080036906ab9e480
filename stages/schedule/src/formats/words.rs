//! Keys and values, of which the files of PARUS consist.

use std::str::FromStr;

use hopmap_text::{FileError, Words};

/// The words of a file, in which something has to stand. Comments are as in C and C++; what stands before and behind one inside
/// a word is two words here, and one for PARUS. `longest` is what PARUS has room for in a word or text.
pub(super) fn words<'a>(bytes: &'a [u8], longest: usize, help: &'static str) -> Result<Words<'a>, FileError> {
    let mut words = Words::of(bytes, help).with_comments().of_at_most(longest);
    match words.is_at_end()? {
        true => Err(words.error("the file is empty")),
        false => Ok(words),
    }
}

/// A key and its number.
pub(super) fn value<T: FromStr>(words: &mut Words<'_>, key: &str) -> Result<T, FileError> {
    words.expect(key)?;
    words.number(format_args!("`{key}`"))
}

/// A key and its text in quotation marks.
pub(super) fn text(words: &mut Words<'_>, key: &str) -> Result<String, FileError> {
    words.expect(key)?;
    words.quoted()?.ok_or_else(|| words.error(format!("`{key}` should be a text in quotation marks")))
}

/// A key and a list of numbers, `( 1 2 3 )`, as long as was said before.
pub(super) fn list(words: &mut Words<'_>, key: &str, said: (&str, u64)) -> Result<Vec<u64>, FileError> {
    words.expect(key)?;
    words.expect("(")?;
    let mut numbers = Vec::new();
    loop {
        let word = words.word()?;
        if word == ")" {
            break;
        }
        let number = word.parse().map_err(|_| {
            words.error(format!("`{}` in the list of `{key}` is no number of zero or more", words.shown()))
        })?;
        numbers.push(number);
    }
    let (name, count) = said;
    if numbers.len() as u64 != count {
        let problem = format!("`{name}` is {count}, but the list of `{key}` has {} numbers", numbers.len());
        return Err(words.error(problem));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words<'_> {
        super::words(text.as_bytes(), 9, "help").unwrap()
    }

    #[test]
    fn texts_and_lists_are_whole() {
        assert_eq!(text(&mut words("a \"\""), "a").unwrap(), "");
        assert_eq!(text(&mut words("a /**/ \"b\nc\""), "a").unwrap(), "b\nc");
        for wrong in ["a b", "a \"b", "a \"0123456789\"", "b"] {
            assert!(text(&mut words(wrong), "a").is_err(), "{wrong}");
        }
        assert_eq!(list(&mut words("a ( 1 2 )"), "a", ("n", 2)).unwrap(), [1, 2]);
        let problem = |text| list(&mut words(text), "a", ("n", 2)).unwrap_err().problem;
        assert_eq!(problem("a ( 1 )"), "`n` is 2, but the list of `a` has 1 numbers");
        assert_eq!(problem("a ( -1 )"), "`-1` in the list of `a` is no number of zero or more");
        assert_eq!(problem("a ( 1"), "the file ends here");
    }
}
