//! Network files of PARUS as text: a header, the hosts, and a matrix for every length of messages.

use hopmap_text::{FileError, Words};

use super::network::{Kind, NetworkFile};

/// Most processes.
const MOST_PROCESSES: usize = 1 << 14;

const HELP: &str = "`network_test` writes a header, the hosts, and a matrix of seconds for every length";

pub(super) fn read(bytes: &[u8]) -> Result<NetworkFile, FileError> {
    let mut words = Words::of(bytes, HELP).with_comments();
    words.expect("processors")?;
    let processes: usize = words.number("`processors`")?;
    if processes > MOST_PROCESSES {
        return Err(words.error(format!("there are more than {MOST_PROCESSES} processes")));
    }
    let test = text(&mut words, "test type")?;
    let kind = Kind::named(&text(&mut words, "data type")?);
    let begin = number(&mut words, "begin message length")?;
    let end = number(&mut words, "end message length")?;
    let step = number(&mut words, "step length")?;
    for name in [
        "noise message length",
        "number of noise messages",
        "number of noise processes",
        "number of repeates",
    ] {
        number(&mut words, name)?;
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
    while !words.is_at_end()? {
        let length = number(&mut words, "Message length")?;
        let cells = processes * processes;
        let matrix = (0..cells).map(|_| words.number("a time")).collect::<Result<Vec<f64>, FileError>>();
        match matrix {
            Ok(matrix) => file.seconds.push(matrix),
            // The test was broken off here; what came before is whole.
            Err(_) if words.is_at_end()? => break,
            Err(error) => return Err(error),
        }
        file.lengths.push(length);
    }
    file.checked(Some(words.line()))
}

/// A name and its number.
fn number(words: &mut Words<'_>, name: &str) -> Result<u64, FileError> {
    words.expect(name)?;
    words.number(format_args!("`{name}`"))
}

/// A name and its text in quotation marks.
fn text(words: &mut Words<'_>, name: &str) -> Result<String, FileError> {
    words.expect(name)?;
    let text = words.quoted()?.filter(|text| !text.contains('\n'));
    text.ok_or_else(|| words.error(format!("`{name}` should be a text in quotation marks")))
}
