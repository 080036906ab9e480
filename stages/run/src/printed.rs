//! Run times that programs print: a number of seconds, a number with a unit, `h:mm:ss`, or parts with units such as `1m 3.25s`.
//!
//! What could mean several times is an error, because a wrong time makes a wrong mapping the fastest.

use std::path::Path;

use hopmap_model::read_input;

/// Most standard output in which a time is searched.
const MOST_OUTPUT: u64 = 1 << 28;
/// Characters of a line that are quoted.
const MOST_QUOTED: usize = 160;

/// Units and their seconds. `m` is a minute beside hours or seconds; alone it could be something else.
const UNITS: [(&[&str], f64); 8] = [
    (&["d", "day", "days"], 86_400.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0),
    (&["min", "mins", "minute", "minutes"], MINUTE),
    (&[SHORT_MINUTE], MINUTE),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 1e-3),
    (&["us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"], 1e-6),
    (&["ns", "nsec", "nsecs", "nanosecond", "nanoseconds"], 1e-9),
];
const SHORT_MINUTE: &str = "m";
const MINUTE: f64 = 60.0;
/// Words between a number and its unit, or without one: `0.52 elapsed seconds`, `12.34user`.
const KINDS: [&str; 9] = ["elapsed", "wall", "wallclock", "cpu", "real", "user", "sys", "system", "total"];
/// Words after a number that go on with the sentence: `2.86 on 4 procs`.
const PREPOSITIONS: [&str; 9] = ["on", "for", "in", "with", "using", "at", "and", "over", "after"];

/// A program printed no run time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTime {
    #[error("left standard output that cannot be read: {0}")]
    Output(String),
    #[error("printed no `{0}` to standard output")]
    Label(String),
    #[error("printed `{line}`, and after `{label}` {reason}")]
    Line { line: String, label: String, reason: &'static str },
}

/// A time as a program printed it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PrintedTime {
    pub(crate) seconds: f64,
    /// One more in its last digit, in seconds: shorter differences are not seen.
    pub(crate) step_s: f64,
}

/// The time after the last occurrence of a text in a file.
pub(crate) fn printed_time(path: &Path, label: &str) -> Result<PrintedTime, NoTime> {
    let bytes = read_input(path, MOST_OUTPUT).map_err(|error| NoTime::Output(error.to_string()))?;
    time_after(&String::from_utf8_lossy(&bytes), label)
}

fn time_after(text: &str, label: &str) -> Result<PrintedTime, NoTime> {
    let end = text.rfind(label).ok_or_else(|| NoTime::Label(label.to_owned()))? + label.len();
    let is_between = |letter: char| letter.is_whitespace() || "=:".contains(letter);
    let time = text[end..].trim_start_matches(is_between);
    let begin = if time.is_empty() { end } else { text.len() - time.len() };
    let line_begin = text[..begin].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_begin..].lines().next().unwrap_or_default().trim();
    let rest = time.lines().next().unwrap_or_default();
    time_of(rest).map_err(|reason| NoTime::Line {
        line: line.chars().take(MOST_QUOTED).collect(),
        label: label.to_owned(),
        reason,
    })
}

/// The time at the beginning of the rest of a line.
fn time_of(rest: &str) -> Result<PrintedTime, &'static str> {
    const OTHER: &str = "is something else than a time in s, ms, us, min, h, h:mm:ss or mm:ss";
    let (number, after) = Number::read(rest, false)?;
    let time = if clock_part(after).is_some() {
        let (time, after) = clock(&number, after).ok_or("is not a time such as 1:02:03 or 2:03.5")?;
        // 1:02 h would be 62 minutes, not 62 seconds.
        if unit(after).is_some() || !may_follow(after) {
            return Err(OTHER);
        }
        time
    } else if let Some((time, after)) = with_units(rest, f64::INFINITY) {
        // `12.3 ns / day` is a rate.
        let after = after.trim_start();
        if after.starts_with(['/', '*', '^']) || word(after).0.eq_ignore_ascii_case("per") {
            return Err(OTHER);
        }
        if goes_on(after, time.step_s) {
            return Err("is a time of which only a part is understood");
        }
        time
    } else if is_count(&number, after) {
        return Err("is a count, with a time behind it: give the text before the time");
    } else if number.has_comma || !may_follow(after) || is_grouped(&number, after) || has_other_unit(after) {
        return Err(OTHER);
    } else {
        PrintedTime { seconds: number.value, step_s: number.step }
    };
    match time.seconds {
        seconds if !seconds.is_finite() => Err("is a number that is too large"),
        seconds if seconds <= 0.0 => Err("is a time of 0 s"),
        _ => Ok(time),
    }
}

/// A number without a sign.
struct Number {
    value: f64,
    /// One more in its last digit.
    step: f64,
    /// Whether it is digits alone.
    is_whole: bool,
    /// Whether a comma separates its decimals.
    has_comma: bool,
}

impl Number {
    /// The number at the beginning of a text, and what follows. Where it cannot be a thousand or more, as after minutes, a comma
    /// separates decimals; elsewhere only if it cannot separate thousands.
    fn read(text: &str, is_small: bool) -> Result<(Self, &str), &'static str> {
        if text.starts_with('-') {
            return Err("is a negative number");
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = text.find(|letter: char| !letter.is_ascii_digit() && !".,".contains(letter));
        // `12.` and `12,` may end a part of a sentence.
        let digits = text[..end.unwrap_or(text.len())].trim_end_matches(['.', ',']);
        if !digits.contains(|letter: char| letter.is_ascii_digit()) {
            return Err("is not a number");
        }
        let (mut plain, has_comma) =
            without_commas(digits, is_small).ok_or("is a number with an ambiguous comma")?;
        let exponent = if has_comma { "" } else { exponent(&text[digits.len()..]) };
        let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent_of_10 = exponent.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0.0);
        let step = 10_f64.powf(exponent_of_10 - decimals as f64);
        plain.push_str(&exponent.replace(['d', 'D'], "e"));
        let value = plain.parse().map_err(|_| "is not a number")?;
        let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit()) && exponent.is_empty();
        Ok((Self { value, step, is_whole, has_comma }, &text[digits.len() + exponent.len()..]))
    }
}

/// A number without separators of thousands and with a decimal point; whether that was a comma.
fn without_commas(digits: &str, is_small: bool) -> Option<(String, bool)> {
    let Some((before, after)) = digits.split_once(',') else { return Some((digits.to_owned(), false)) };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let groups: Vec<&str> = whole.split(',').collect();
    let are_thousands =
        (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
    let is_separated = groups.len() > 2 || (groups.len() == 2 && !decimals.is_empty());
    if are_thousands && !groups[0].starts_with('0') && is_separated && !decimals.contains(',') {
        return Some((digits.replace(',', ""), false));
    }
    let is_decimal = !after.contains([',', '.']) && !before.contains('.') && !before.is_empty();
    let is_clear = is_small || after.len() != 3 || before == "0";
    (is_decimal && is_clear).then(|| (format!("{before}.{after}"), true))
}

/// The exponent at the beginning of a text: `e-3`, or `D+02` of Fortran, which has a sign; `1d02h` has none.
fn exponent(text: &str) -> &str {
    let signed = |rest: &str| rest.strip_prefix(['+', '-']).map(str::len);
    let length = match text.strip_prefix(['e', 'E']) {
        Some(rest) => Some(signed(rest).unwrap_or(rest.len())),
        None => text.strip_prefix(['d', 'D']).and_then(signed),
    };
    let Some(begin) = length.map(|left| text.len() - left) else { return "" };
    match text[begin..].bytes().take_while(u8::is_ascii_digit).count() {
        0 => "",
        digits => &text[..begin + digits],
    }
}

/// What follows a colon and begins with a digit.
fn clock_part(text: &str) -> Option<&str> {
    text.strip_prefix(':').filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// `h:mm:ss` or `mm:ss` from the first colon on; the last part may have decimals.
fn clock<'a>(first: &Number, text: &'a str) -> Option<(PrintedTime, &'a str)> {
    let mut time = PrintedTime { seconds: first.value, step_s: first.step };
    let (mut is_whole, mut rest, mut parts) = (first.is_whole, text, 1);
    while let Some(part) = clock_part(rest) {
        let (number, after) = Number::read(part, true).ok()?;
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        if !is_whole || digits != 2 || number.value >= MINUTE || parts == 3 {
            return None;
        }
        time = PrintedTime { seconds: MINUTE * time.seconds + number.value, step_s: number.step };
        (is_whole, rest) = (number.is_whole, after);
        parts += 1;
    }
    Some((time, rest))
}

/// A number with a unit, and others with ever smaller units: `12 ms`, `0m12.3s`, `1h 2m`, `0 days 1 hours 2 minutes`.
fn with_units(text: &str, above: f64) -> Option<(PrintedTime, &str)> {
    let (number, rest) = Number::read(text, above.is_finite()).ok()?;
    let (word, size, rest) = unit(rest)?;
    // `1.5D01` is no day and a half.
    if !number.is_whole && rest.starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    let seconds = number.value * size;
    // `61 seconds 0.02 hours` is the same time twice.
    if size >= above || (above.is_finite() && seconds >= above) {
        return None;
    }
    let more = number.is_whole.then(|| with_units(rest.trim_start(), size)).flatten();
    if word == SHORT_MINUTE && above.is_infinite() && more.is_none() {
        return None;
    }
    let last = PrintedTime { seconds: 0.0, step_s: number.step * size };
    let (more, rest) = more.unwrap_or((last, rest));
    Some((PrintedTime { seconds: seconds + more.seconds, ..more }, rest))
}

/// The unit at the beginning of a text, in seconds: `s`, ` ms`, ` (sec)`, ` elapsed seconds`. No unit: `s/step`.
fn unit(text: &str) -> Option<(&'static str, f64, &str)> {
    let mut text = text.trim_start();
    let (mut name, mut rest) = word(text);
    while is_one_of(&KINDS, name) {
        text = rest.trim_start();
        (name, rest) = word(text);
    }
    if let Some(inside) = text.strip_prefix(['(', '[']) {
        (name, rest) = word(inside);
        rest = rest.strip_prefix([')', ']'])?;
    }
    let units = UNITS.iter().flat_map(|(names, size)| names.iter().map(move |name| (*name, *size)));
    let (name, size) = units.into_iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name))?;
    let is_end = |next: char| next.is_whitespace() || next.is_ascii_digit() || ".,;:)]|".contains(next);
    rest.chars().next().is_none_or(is_end).then_some((name, size, rest))
}

/// The letters at the beginning of a text, and the rest.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_alphabetic()).unwrap_or(text.len()))
}

fn is_one_of(names: &[&str], word: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(word))
}

/// Whether more of a time follows: `and 59 seconds`, `, 2:03:04`, `. 2 min`, and the number after `2h` and `2 min`, whose unit is missing.
fn goes_on(after: &str, above_s: f64) -> bool {
    let is_missing = above_s >= MINUTE && !after.starts_with([',', '.', ';', '+', ':', ')', ']', '|']);
    let after = after.trim_start_matches(|letter: char| letter.is_whitespace() || ",.;+".contains(letter));
    let joined = ["and ", "plus "].iter().find_map(|word| after.strip_prefix(word));
    let Ok((_, rest)) = Number::read(joined.unwrap_or(after).trim_start(), false) else { return false };
    (is_missing && joined.is_none())
        || clock_part(rest).is_some()
        || unit(rest).is_some_and(|(_, size, _)| size < above_s)
}

/// Whether a whole number belongs to what follows, which has the time: `100 steps: 12.3 s`, `1 = 12.5`, `3 (12.5 s)`, `1 02:03:04`.
fn is_count(number: &Number, after: &str) -> bool {
    let behind = |text: &str| Number::read(text.trim_start(), false).ok().map(|(_, rest)| rest.to_owned());
    let has_unit = |text: &str| behind(text).is_some_and(|rest| unit(&rest).is_some());
    let after = after.trim_start();
    let rest = word(after).1.trim_start();
    number.is_whole
        && (rest.strip_prefix([':', '=']).is_some_and(|text| behind(text).is_some())
            || after.strip_prefix("->").is_some_and(|text| behind(text).is_some())
            || after.strip_prefix(['|', '(', '#']).is_some_and(has_unit)
            || behind(after).is_some_and(|rest| clock_part(&rest).is_some()))
}

/// Whether a unit that is not the second stands alone further on in the line: `950.0 on average (ms)`, `12.5, ms`, `12.5 total time in ms`.
fn has_other_unit(after: &str) -> bool {
    let parts = || after.split(|letter: char| letter.is_whitespace() || "()[]|,;:=".contains(letter));
    let parts: Vec<&str> = parts().filter(|part| !part.is_empty()).collect();
    let is_other = |(at, part): (usize, &&str)| {
        let small = UNITS.iter().filter(|(_, size)| *size < 1.0).any(|(names, _)| is_one_of(names, part));
        small && !(at > 0 && Number::read(parts[at - 1], false).is_ok())
    };
    parts.iter().enumerate().any(is_other)
}

/// Whether a space may separate thousands: `1 234.5`.
fn is_grouped(number: &Number, after: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    number.is_whole && number.value < 1000.0 && after.strip_prefix(' ').is_some_and(|next| digits(next) == 3)
}

/// What follows numbers in columns or a list; nothing if there is none.
fn behind_numbers(text: &str) -> &str {
    let mut behind = "";
    let mut text = text;
    while let Ok((_, rest)) = Number::read(text.trim_start_matches([' ', '\t', ',', ';']), false) {
        (behind, text) = (rest, rest);
    }
    behind
}

/// Whether a unit is at the beginning, and not the name of another value, such as `min 1.2`.
fn is_unit(text: &str) -> bool {
    unit(text).is_some_and(|(_, _, rest)| !rest.trim_start().starts_with(|next: char| next.is_ascii_digit()))
}

/// Whether a number in seconds may be followed by this: nothing, another column, the next label, a share, or the rest of a sentence.
fn may_follow(text: &str) -> bool {
    let text = match word(text) {
        (kind, rest) if is_one_of(&KINDS, kind) => rest,
        _ => text,
    };
    if let Some(rest) = text.strip_prefix(['.', ',', ';', ')', ']', '|']) {
        let is_end = rest.is_empty() || rest.starts_with(char::is_whitespace);
        return is_end && !is_unit(behind_numbers(rest));
    }
    let next = text.trim_start();
    // Spaces that do not break a line separate thousands.
    if text.starts_with(['\u{a0}', '\u{2009}', '\u{202f}'])
        && next.starts_with(|letter: char| letter.is_ascii_digit())
    {
        return false;
    }
    if !next.is_empty() && next.len() == text.len() {
        return false;
    }
    let (name, rest) = word(next);
    let token = next.split_whitespace().next().unwrap_or_default();
    let is_number = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits = digits.strip_prefix('.').unwrap_or(digits);
        digits.starts_with(|letter: char| letter.is_ascii_digit())
    };
    // A unit in the next cell of a table, behind the last of several columns, "in", or a remark in parentheses.
    let behind = match next.split_once(['|', ')']) {
        Some((_, behind)) if next.starts_with(['|', '(']) => behind,
        _ if name.eq_ignore_ascii_case("in") => rest,
        _ => behind_numbers(next),
    };
    if is_unit(behind) {
        return false;
    }
    next.is_empty()
        || is_number(next)
        || next.starts_with("->")
        || next.starts_with("...")
        || next.starts_with(['|', '#'])
        || next.strip_prefix('(').is_some_and(is_number)
        || token.ends_with([':', '='])
        || (!name.is_empty() && rest.trim_start().starts_with([':', '=']))
        || ((is_one_of(&PREPOSITIONS, name) || is_one_of(&KINDS, name)) && !rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_and_numbers_may_follow_a_time() {
        for rest in [
            "on h03",
            "with h = 0.01",
            "(98.5%) min 12.0 max 12.8",
            "100 200",
            "-> 11.2",
            "... done",
            "| min 1.2",
        ] {
            let time = time_after(&format!("t = 12.34 {rest}\n"), "t =")
                .unwrap_or_else(|error| panic!("{rest}: {error}"));
            assert!((time.seconds - 12.34).abs() < 1e-9, "{rest}");
        }
    }

    /// Formats of real programs: what they print, a text before the time, and the time in seconds.
    const PROGRAMS: &[(&str, &str, f64)] = &[
        // LAMMPS.
        (
            "Loop time of 1.25 on 4 procs\nLoop time of 2.86e-01 on 4 procs for 100 steps\n",
            "Loop time of",
            0.286,
        ),
        ("Total wall time: 0:01:01\n", "Total wall time", 61.0),
        // GROMACS: the first of three columns, and the line below it.
        (
            "               Core t (s)   Wall t (s)        (%)\n       Time:      123.456       30.864      400.0\n",
            "Time:",
            123.456,
        ),
        // time(1) of bash, also in German; POSIX time -p; GNU time, also -v; zsh; csh.
        ("\nreal\t0m12.345s\nuser\t0m1.000s\nsys\t0m0.010s\n", "real", 12.345),
        ("\nreal\t1m3,250s\nuser\t0m1,000s\n", "real", 63.25),
        ("real 12.34\nuser 0.01\nsys 0.00\n", "real", 12.34),
        ("12.34user 0.12system 1:12.50elapsed 99%CPU (0avgtext+0avgdata 1032maxresident)k\n", "system", 72.5),
        (
            "\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:00:01\n\tAverage shared text size (kbytes): 0\n",
            "m:ss)",
            3601.0,
        ),
        ("./app  12.34s user 0.12s system 99% cpu 12.500 total\n", "% cpu", 12.5),
        ("12.340u 0.120s 0:13.05 95.4%\t0+0k 0+0io 0pf+0w\n", "0.120s", 13.05),
        // OSU micro-benchmarks: in µs without a unit, so that only ratios are right.
        ("# Size          Latency (us)\n4194304              1234.56\n", "4194304", 1234.56),
        // NAS Parallel Benchmarks.
        (" Time in seconds =                     0.03\n Total processes =  4\n", "Time in seconds", 0.03),
        // WRF.
        (
            "Timing for main: time 2024-01-01_00:00:30 on domain   1:    0.52340 elapsed seconds\n",
            "domain   1",
            0.5234,
        ),
        // OpenFOAM.
        ("ExecutionTime = 12.34 s  ClockTime = 13 s\n", "ExecutionTime", 12.34),
        ("ExecutionTime = 12.34 s  ClockTime = 13 s\n", "ClockTime", 13.0),
        // Quantum ESPRESSO, with its three forms.
        ("     PWSCF        :     12.34s CPU     12.50s WALL\n", "PWSCF        :", 12.34),
        ("     PWSCF        :   1m 2.25s CPU   1m 3.25s WALL\n", "CPU", 63.25),
        ("     PWSCF        :   1h 2m CPU        1h 3m WALL\n", "CPU", 3780.0),
        // CP2K: the last column.
        (
            " CP2K                                 1  1.0    0.012    0.013   12.345   12.346\n",
            "12.345",
            12.346,
        ),
        // HPL.
        (
            "WR11C2R4       10000   192     2     2              12.34              5.404e+01\n",
            "10000   192     2     2",
            12.34,
        ),
        // HPCG.
        ("Benchmark Time Summary::Total=60.1234\n", "Summary::Total", 60.1234),
        // miniFE.
        ("    Total CG Time: 12.3456\n    Total CG Mflops: 4567.8\n", "Total CG Time", 12.3456),
        // LULESH.
        ("Elapsed time         =      12.25 (s)\n", "Elapsed time", 12.25),
        // AMG.
        (
            "PCG Solve:\n  wall clock time = 12.345678 seconds\n  wall MFLOPS     = 0.000000\n",
            "wall clock time",
            12.345_678,
        ),
        // Nek5000.
        (" total elapsed time             :   1.23456E+01 sec\n", "total elapsed time", 12.3456),
        (
            "Step    100, t= 1.0000000E-01, DT= 1.0000000E-03, C=  0.123 1.2345E+01 1.2E-01\n",
            "C=  0.123",
            12.345,
        ),
        // VASP.
        ("      LOOP+:  cpu time   12.3456: real time   12.5678\n", "real time", 12.5678),
        ("                         Elapsed time (sec):       12.345\n", "Elapsed time (sec)", 12.345),
        // NAMD.
        ("WallClock: 12.345678  CPUTime: 12.200000  Memory: 345.600000 MB\n", "WallClock:", 12.345_678),
        // Graph500.
        ("mean_time:                        0.123456\n", "mean_time", 0.123_456),
        // SPECFEM3D.
        (" Total elapsed time in seconds =    72.345678\n", "in seconds", 72.345_678),
        (" Total elapsed time in hh:mm:ss =      0 h 01 m 12 s\n", "hh:mm:ss", 72.0),
        // CPMD, Gaussian, ORCA, Amber, NWChem, MILC.
        ("       ELAPSED TIME :    0 HOURS  1 MINUTES  3.25 SECONDS\n", "ELAPSED TIME", 63.25),
        (" Elapsed time:       0 days  1 hours  0 minutes  3.2 seconds.\n", "Elapsed time", 3603.2),
        ("TOTAL RUN TIME: 0 days 0 hours 1 minutes 3 seconds 250 msec\n", "TOTAL RUN TIME", 63.25),
        ("|  Total wall time:         61    seconds     0.02 hours\n", "Total wall time", 61.0),
        (" Total times  cpu:       12.3s     wall:       12.5s\n", "wall", 12.5),
        ("Time = 1.234567e+01 seconds\n", "Time", 12.345_67),
        // Fortran's double precision.
        (" elapsed time is  0.123D+02\n", "time is", 12.3),
    ];

    #[test]
    fn times_of_real_programs_are_read() {
        for (text, label, expected) in PROGRAMS {
            let seconds = time_after(text, label).unwrap_or_else(|error| panic!("{text}: {error}")).seconds;
            assert!((seconds - expected).abs() < 1e-9 * expected, "{text}: {seconds}, not {expected}");
        }
    }

    #[test]
    fn what_is_no_time_or_may_be_several_is_an_error_that_quotes_the_line() {
        for time in [
            "1,61.5 s",
            "1,234",
            "12,345 s",
            "12,5",
            "1,2,3",
            "1.2.3",
            "1.234,5 s",
            "5m",
            "12 m",
            "3 minutess",
            "2 weeks",
            "12.3 ns/day",
            "12 s/step",
            "450 it/s",
            "99%",
            "99 %",
            "12 MB",
            "12 Gflops",
            "1:61",
            "1:2:3",
            "1:02:03:04",
            "1:02 h",
            "1.5:30",
            "1: 0.5",
            "2024-01-01",
            "12x",
            "1-02:03:04",
            "12 (per dom)",
            "soon",
            "nan",
            "inf",
            "-1",
            "1e999",
            "",
            "0",
            "0.000 s",
            "0:00",
            "0m0.000s",
            "12:30 PM",
            "3..5",
            "3 per cent",
            "12.3 ns per day",
            "12.3 ns / day",
            "100 steps: 12.3 s",
            "8 ranks = 3.2 s",
            "1\u{202f}234,5 s",
            "1\u{a0}234",
            "1.5D01",
            "1 234.5 s",
            "1 234",
            "1.5 +/- 0.1 s",
            "900 +/- 5 ms",
            "1.5 | s |",
            "900 | ms |",
            "2.86 in ms",
            "1.5 (2) s",
            "1 minute and 59 seconds",
            "3 minutes, 2 seconds",
            "1 day, 2:03:04",
            "1 hr. 2 min.",
            "2h15",
            "2 h 15",
            "1h 2m 3",
            "2 min 30",
            "1 min + 59 s",
            "1 min plus 59 s",
            "1 s; 20 ms",
            "200 : 1.25 s",
            "1 = 12.5 s",
            "100 -> 12.5 s",
            "1 | 12.5 s",
            "3 (12.5 s)",
            "5 # 12 s",
            "1 02:03:04",
            "950.0 on average (ms)",
            "12.5, ms",
            "12.5 : ms",
            "12.5 total time in ms",
            "12.5 time=ms",
            "900.1 950.2 ms",
            "900, 950 ms",
        ] {
            let text = format!("first line\nElapsed time = {time}\nlast line");
            let error = time_after(&text, "Elapsed time").expect_err(time).to_string();
            let line = format!("printed `Elapsed time = {time}");
            assert!(error.starts_with(line.trim_end()) || time.is_empty(), "{error}");
        }
        assert_eq!(time_after("Elapsed", "time"), Err(NoTime::Label("time".to_owned())));
        let error = time_after("a\ntime = 0:00\nb", "time").unwrap_err().to_string();
        assert_eq!(error, "printed `time = 0:00`, and after `time` is a time of 0 s");
    }

    /// Times from 1 ms to three days in the forms in which programs print them: as they are, or an error.
    #[test]
    fn a_time_in_any_form_is_read_as_it_is_or_refused() {
        let mut read = 0;
        for milliseconds in
            (0..90).map(|step| 1.25_f64.powi(step) as u64).take_while(|time| *time < 3 * 86_400_000)
        {
            let exact = milliseconds as f64 / 1000.0;
            let (whole, rest) = (milliseconds / 1000, milliseconds % 1000);
            let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
            let grouped = |value: u64| match value {
                ..1000 => value.to_string(),
                _ => format!("{},{:03}", value / 1000, value % 1000),
            };
            let forms = [
                format!("{exact}"),
                format!("{exact} s"),
                format!("{exact}s"),
                format!("{exact:e}"),
                format!("{exact:.3} seconds elapsed"),
                format!("{milliseconds} ms"),
                format!("{milliseconds}000us"),
                format!("{} min", exact / 60.0),
                format!("{}h", exact / 3600.0),
                format!("{}.{rest:03}", grouped(whole)),
                format!("{whole},{rest:03} s"),
                format!("{whole},{rest:03}"),
                format!("{hours}:{minutes:02}:{seconds:02}.{rest:03}"),
                format!("{}:{seconds:02}.{rest:03}", whole / 60),
                format!("{}m{seconds}.{rest:03}s", whole / 60),
                format!("{}m{seconds},{rest:03}s", whole / 60),
                format!("{hours}h {minutes}m {seconds}.{rest:03}s"),
                format!("{} d {} h {minutes} min {seconds} s {rest} ms", hours / 24, hours % 24),
            ];
            for form in forms {
                if let Ok(PrintedTime { seconds, .. }) = time_after(&format!("time: {form}\n"), "time") {
                    assert!((seconds - exact).abs() < 1e-9 * exact, "{form}: {seconds}, not {exact}");
                    read += 1;
                }
            }
        }
        assert!(read > 1300, "{read}");
    }

    #[test]
    fn commas_are_read_where_they_mean_one_thing() {
        for (text, expected) in
            [("1,234.5", 1234.5), ("1,234,567 s", 1_234_567.0), ("12,5 s", 12.5), ("0,123 s", 0.123)]
        {
            let read = time_after(&format!("t={text}"), "t").map(|time| time.seconds);
            assert_eq!(read, Ok(expected), "{text}");
        }
        for text in ["took 12. Then 13", "took\n  12, as before"] {
            assert_eq!(time_after(text, "took"), Ok(PrintedTime { seconds: 12.0, step_s: 1.0 }));
        }
    }

    #[test]
    fn the_last_digit_says_how_exact_a_time_is() {
        for (text, step_s) in [
            ("0.03", 0.01),
            ("12.340 s", 0.001),
            ("12 s", 1.0),
            ("1,234.5", 0.1),
            ("12,34 s", 0.01),
            ("2.86e-01", 0.001),
            ("0.123D+02", 0.1),
            ("12.5 ms", 1e-4),
            ("61", 1.0),
            ("0:01:01", 1.0),
            ("1:01.5", 0.1),
            ("1h 2m", 60.0),
            ("1m 3.25s", 0.01),
            ("0 days 1 hours 0 minutes 3.2 seconds.", 0.1),
            ("1 minutes 3 seconds 250 msec", 0.001),
        ] {
            let read = time_after(&format!("time={text}"), "time=").unwrap().step_s;
            assert!((read / step_s - 1.0).abs() < 1e-9, "{text}: {read}");
        }
    }
}
