//! Network files of PARUS as text: a header, the hosts, and a matrix for every length of messages.

use super::network::{Kind, NetworkError, NetworkFile};

/// Most processes.
const MOST_PROCESSES: usize = 1 << 14;

pub(super) fn read(bytes: &[u8]) -> Result<NetworkFile, NetworkError> {
    let whole = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        wrong(line, "this is no text in UTF-8", "is the file damaged?")
    })?;
    let mut words = Words { rest: whole, line: 1 };
    words.expect("processors")?;
    let processes = words.number::<usize>()?;
    if processes > MOST_PROCESSES {
        let problem = format!("there are more than {MOST_PROCESSES} processes");
        return Err(wrong(words.line, problem, "is the file damaged?"));
    }
    words.expect("test type")?;
    let test = words.text()?;
    words.expect("data type")?;
    let kind = Kind::named(&words.text()?);
    let begin = words.after("begin message length")?;
    let end = words.after("end message length")?;
    let step = words.after("step length")?;
    for name in [
        "noise message length",
        "number of noise messages",
        "number of noise processes",
        "number of repeates",
    ] {
        words.after(name)?;
    }
    words.expect("hosts:")?;
    let mut hosts = Vec::new();
    for _ in 0..processes {
        hosts.push(words.word()?.to_owned());
    }
    let mut file = NetworkFile {
        processes,
        hosts,
        test,
        kind,
        lengths: Vec::new(),
        seconds: Vec::new(),
        expected_lengths: end.saturating_sub(begin).div_ceil(step.max(1)),
    };
    while !words.is_at_end() {
        words.expect("Message length")?;
        let length = words.number()?;
        match words.matrix(processes) {
            Ok(matrix) => file.seconds.push(matrix),
            // The test was broken off here; what came before is whole.
            Err(_) if words.is_at_end() => break,
            Err(error) => return Err(error),
        }
        file.lengths.push(length);
    }
    file.checked(Some(words.line))
}

fn wrong(line: usize, problem: impl Into<String>, help: &str) -> NetworkError {
    NetworkError { line: Some(line), problem: problem.into(), help: help.into() }
}

const HELP: &str = "`network_test` writes a header, the hosts, and a matrix of seconds for every length";

/// Words between blanks, texts in quotation marks; comments as in C are left out.
struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
    }

    fn skip_blanks(&mut self) {
        loop {
            self.skip(self.rest.len() - self.rest.trim_start().len());
            let end = if self.rest.starts_with("//") {
                self.rest.find('\n')
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.skip(end.unwrap_or(self.rest.len()));
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty()
    }

    fn word(&mut self) -> Result<&'a str, NetworkError> {
        self.skip_blanks();
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        // A slash inside a word begins a comment.
        let end =
            ["//", "/*"].iter().filter_map(|comment| self.rest[..end].find(comment)).min().unwrap_or(end);
        if end == 0 {
            return Err(wrong(self.line, "the file ends here", HELP));
        }
        let word = &self.rest[..end];
        self.skip(end);
        Ok(word)
    }

    /// Words that have to come next, in any case.
    fn expect(&mut self, words: &str) -> Result<(), NetworkError> {
        for expected in words.split(' ') {
            let word = self.word()?;
            if !word.eq_ignore_ascii_case(expected) {
                let word: String = word.chars().take(40).collect();
                let problem = format!("`{word}` stands where `{expected}` of `{words}` should be");
                return Err(wrong(self.line, problem, HELP));
            }
        }
        Ok(())
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, NetworkError> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            let word: String = word.chars().take(40).collect();
            wrong(self.line, format!("`{word}` is no number that fits here"), HELP)
        })
    }

    fn after(&mut self, name: &str) -> Result<u64, NetworkError> {
        self.expect(name)?;
        self.number()
    }

    /// A text in quotation marks.
    fn text(&mut self) -> Result<String, NetworkError> {
        self.skip_blanks();
        let quoted = self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let Some((text, _)) = quoted.filter(|(text, _)| !text.contains('\n')) else {
            return Err(wrong(self.line, "a text in quotation marks should be here", HELP));
        };
        self.skip(text.len() + 2);
        Ok(text.to_owned())
    }

    fn matrix(&mut self, processes: usize) -> Result<Vec<f64>, NetworkError> {
        let mut matrix = Vec::new();
        for _ in 0..processes * processes {
            matrix.push(self.number()?);
        }
        Ok(matrix)
    }
}
