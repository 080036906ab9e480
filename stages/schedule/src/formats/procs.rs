//! `procs.vct` of PARUS: benchmark durations of every process.
//!
//! ```text
//! processors 2
//! test type "matrix multiplication"
//! test data size 1000
//! hosts:
//! node1
//! node2
//! durations:
//! 1.25
//! 1.5
//! ```

use hopmap_text::FileError;

use super::common::{text, value, words};

/// Benchmark durations of every process.
#[derive(Debug, Clone, PartialEq)]
pub struct Procs {
    /// The host of every process.
    pub hosts: Vec<String>,
    /// The size of the benchmark, above 0.
    pub size: f64,
    /// Duration in seconds on every process, above 0.
    pub durations: Vec<f64>,
}

/// Maximum number of processes.
const MOST_PROCESSES: usize = 1 << 14;

impl Procs {
    /// Reads `procs.vct`.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let mut words = words(bytes, 299, "the file must be an output of `proc_test` of PARUS")?;
        let processes: usize = value(&mut words, "processors")?;
        if !(1..=MOST_PROCESSES).contains(&processes) {
            let problem =
                format!("the file has {processes} processors, but 1 to {MOST_PROCESSES} are supported");
            return Err(words.error(problem));
        }
        text(&mut words, "test type")?;
        let size: f64 = value(&mut words, "test data size")?;
        if !(size.is_finite() && size > 0.0) {
            return Err(words.error(format!("the size of the test is {size}, but it must be above 0")));
        }
        words.expect("hosts:")?;
        let mut hosts = Vec::new();
        for _ in 0..processes {
            let host = words.word()?;
            if host.eq_ignore_ascii_case("durations:") {
                let problem = format!("{} hosts for {processes} processors", hosts.len());
                return Err(words.error(problem));
            }
            hosts.push(host.to_owned());
        }
        words.expect("durations:")?;
        let mut durations = Vec::new();
        for process in 0..processes {
            if words.is_at_end()? {
                let problem = format!("{process} durations for {processes} processors");
                return Err(words.error(problem));
            }
            let duration: f64 = words.number(format_args!("the duration of process {process}"))?;
            if !(duration.is_finite() && duration > 0.0) {
                let problem = format!("invalid duration of {duration} s on process {process}");
                return Err(words.error(problem));
            }
            durations.push(duration);
        }
        match words.next()? {
            false => Ok(Self { hosts, size, durations }),
            true => Err(words.error(format!("unexpected `{}` after {processes} durations", words.shown()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "processors 2 // of a job\n\ntest type \"matrix multiplication\"\ntest data size 1000\n\nhosts:\na\nb/* the second */\n\n\
                        durations:\n1.25\n1.5e0\n";

    #[test]
    fn durations_are_read() {
        let procs = Procs { hosts: vec!["a".into(), "b".into()], size: 1000.0, durations: vec![1.25, 1.5] };
        assert_eq!(Procs::read(TEXT.as_bytes()), Ok(procs));
    }

    #[test]
    fn mistakes_have_lines() {
        let problem = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            let error = Procs::read(TEXT.replacen(from, to, 1).as_bytes()).expect_err(to);
            format!("line {}: {}", error.line.unwrap_or_default(), error.problem)
        };
        assert_eq!(problem("1.25", "0"), "line 11: invalid duration of 0 s on process 0");
        assert!(problem("1.25", "-1").contains("-1 s") && problem("1.25", "nan").contains("NaN s"));
        assert_eq!(problem("\nb/", "\n/"), "line 10: 1 hosts for 2 processors");
        assert_eq!(problem("1.5e0\n", ""), "line 11: 1 durations for 2 processors");
        assert_eq!(problem("1.5e0", "1.5e0 9"), "line 12: unexpected `9` after 2 durations");
        assert_eq!(
            problem("1.5e0", "x"),
            "line 12: the duration of process 1 is `x`, which is not a valid number here"
        );
        assert_eq!(problem("1000", "0"), "line 4: the size of the test is 0, but it must be above 0");
        assert!(problem("processors 2", "processors 0").contains("1 to 16384"));
        assert_eq!(
            problem("processors 2", "processors -2"),
            "line 1: `processors` is `-2`, which is negative"
        );
        assert!(problem("test type", "text type").starts_with("line 3: expected `test` of `test type`"));
        assert_eq!(Procs::read(b"").unwrap_err().problem, "the file is empty");
    }
}
