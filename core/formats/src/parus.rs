//! Files of PARUS (Salnikov and Sazonov, Moscow State University) and its successors: measurements of
//! `network_test` between all processes of an MPI job.
//!
//! The text format has a header, the hosts, and a matrix per message length. `network-tests2` writes classic
//! netCDF with `data(n, x, y)`, lengths × receivers × senders, in two schemas: one with variables `noise_*`,
//! and one with `random_option_*`. Types of tests and data are numbers or texts in both.

#[cfg(test)]
mod tests;

use hopmap_text::{FileError, Words};

use crate::netcdf::{Netcdf, Type};

/// A network file of PARUS: text, or netCDF of `network-tests2`.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkFile {
    /// Number of processes.
    pub processes: usize,
    /// The host of every process by rank; empty if unknown.
    pub hosts: Vec<String>,
    /// Name of the test, such as `one_to_one`.
    pub test: String,
    /// Statistic of the numbers.
    pub kind: Kind,
    /// Message lengths in bytes, ascending.
    pub lengths: Vec<u64>,
    /// For every length, the seconds from process `sender` to process `receiver` of `n` at
    /// `receiver * n + sender`, unmodified: the diagonal is undefined, and failed measurements are included.
    pub seconds: Vec<Vec<f64>>,
    /// Number of lengths of a complete test.
    pub expected_lengths: u64,
}

/// Statistic of repeated measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The mean.
    Average,
    /// The median.
    Median,
    /// The standard deviation.
    Deviation,
    /// The minimum.
    Minimum,
    /// Any other statistic.
    Other(String),
}

impl Kind {
    fn named(name: &str) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "average" => Self::Average,
            "median" => Self::Median,
            "deviation" => Self::Deviation,
            "min" | "minimum" => Self::Minimum,
            _ => Self::Other(name.trim().to_owned()),
        }
    }
}

impl NetworkFile {
    /// Reads a network file, text or netCDF.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        match bytes.starts_with(b"CDF") || bytes.starts_with(b"\x89HDF") {
            true => read_netcdf(bytes),
            false => read(bytes),
        }
    }

    /// Sets the hosts from the file next to a netCDF file, with one line per rank.
    pub fn set_hosts(&mut self, text: &str) -> Result<(), FileError> {
        let hosts: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if hosts.len() != self.processes {
            let problem = format!("{} hosts for {} processes", hosts.len(), self.processes);
            return Err(FileError::new(problem, "the file must have one line per process"));
        }
        self.hosts = hosts;
        Ok(())
    }

    /// Checks that lengths are ascending.
    fn checked(self, line: Option<usize>) -> Result<Self, FileError> {
        let wrong = |problem: &str, help: &str| Err(FileError { line, ..FileError::new(problem, help) });
        if self.processes == 0 || self.lengths.is_empty() {
            return wrong(
                "the file does not contain measurements",
                "the test was aborted before it completed the first length",
            );
        }
        match self.lengths.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(self),
            false => wrong("the message lengths are not ascending", "is the file damaged?"),
        }
    }
}

/// Name of the file of hosts for a netCDF file: `run_median.nc` and `run_hosts.txt`.
#[must_use]
pub fn hosts_of_netcdf(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".nc")?;
    let kinds = ["_average", "_median", "_deviation", "_min", "_all", "_measurements_amount"];
    let prefix = kinds.iter().find_map(|kind| stem.strip_suffix(kind))?;
    Some(format!("{prefix}_hosts.txt"))
}

/// Maximum number of processes.
const MOST_PROCESSES: usize = 1 << 14;

const HELP: &str = "`network_test` writes a header, the hosts, and a matrix of seconds per length";

fn read(bytes: &[u8]) -> Result<NetworkFile, FileError> {
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
            // The test was aborted here; the lengths before are complete.
            Err(_) if words.is_at_end()? => break,
            Err(error) => return Err(error),
        }
        file.lengths.push(length);
    }
    file.checked(Some(words.line()))
}

/// Reads a name and its number.
fn number(words: &mut Words<'_>, name: &str) -> Result<u64, FileError> {
    words.expect(name)?;
    words.number(format_args!("`{name}`"))
}

/// Reads a name and its text in quotation marks.
fn text(words: &mut Words<'_>, name: &str) -> Result<String, FileError> {
    words.expect(name)?;
    let text = words.quoted()?.filter(|text| !text.contains('\n'));
    text.ok_or_else(|| words.error(format!("`{name}` must be a text in quotation marks")))
}

const TESTS: &str = "unknown one_to_one all_to_all async_one_to_one send_recv_and_recv_send noise \
                     noise_blocking bcast put_one_to_one get_one_to_one";
const KINDS: &str = "unknown average median deviation min";

const NETCDF_HELP: &str = "network-tests2 writes `data(n, x, y)`, lengths by receivers by senders";

fn read_netcdf(bytes: &[u8]) -> Result<NetworkFile, FileError> {
    let file = Netcdf::new(bytes)?;
    let data = file.variable("data").ok_or_else(|| FileError::new("missing variable `data`", NETCDF_HELP))?;
    let shape = file.shape(data);
    let processes = integer(&file, "proc_num")?;
    match (data.kind, &shape[..]) {
        (Type::Double, [_, receivers, senders]) if [*receivers, *senders] == [processes; 2] => {}
        (_, [_, _, _, _]) => {
            return Err(FileError::new(
                "the file contains individual measurements",
                "use the file of medians or averages in the same folder: PREFIX_median.nc",
            ));
        }
        _ => {
            let problem = format!("`data` is {shape:?} for {processes} processes");
            return Err(FileError::new(problem, NETCDF_HELP));
        }
    }
    let [begin, end, step] = ["begin_mes_length", "end_mes_length", "step_length"];
    let [begin, end, step] = [integer(&file, begin)?, integer(&file, end)?, integer(&file, step)?];
    let numbers = file.numbers(data)?;
    // All are below 2^31, so nothing overflows. Without a step there is one length.
    let expected_lengths = end.saturating_sub(begin).div_ceil(step.max(1));
    let most = if step > 0 { usize::MAX } else { 1 };
    let processes = usize::try_from(processes).unwrap_or(usize::MAX);
    let area = processes.saturating_mul(processes).max(1);
    let seconds: Vec<Vec<f64>> = numbers.chunks_exact(area).take(most).map(<[f64]>::to_vec).collect();
    let lengths = (0..seconds.len() as u64).map(|index| begin + step * index).collect();
    NetworkFile {
        processes,
        hosts: Vec::new(),
        test: named(&file, "test_type", TESTS)?,
        kind: Kind::named(&named(&file, "data_type", KINDS)?),
        lengths,
        seconds,
        expected_lengths,
    }
    .checked(None)
}

/// A non-negative integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an `Int` of 32 bits, not negative"
)]
fn integer(file: &Netcdf<'_>, name: &str) -> Result<u64, FileError> {
    let missing =
        || FileError::new(format!("missing number `{name}`"), "network-tests2 writes it into every file");
    let variable =
        file.variable(name).filter(|variable| variable.kind == Type::Int && variable.dimensions.is_empty());
    let numbers = file.numbers(variable.ok_or_else(missing)?)?;
    let number = numbers.first().copied().filter(|number| *number >= 0.0).ok_or_else(missing)?;
    Ok(number as u64)
}

/// A word, or the word for a number.
fn named(file: &Netcdf<'_>, name: &str, names: &str) -> Result<String, FileError> {
    let variable = file
        .variable(name)
        .ok_or_else(|| FileError::new(format!("missing variable `{name}`"), NETCDF_HELP))?;
    if variable.kind == Type::Char {
        return file.text(variable);
    }
    let number = integer(file, name)?;
    let known = usize::try_from(number).ok().and_then(|number| names.split(' ').nth(number));
    Ok(known.map_or_else(|| number.to_string(), str::to_owned))
}
