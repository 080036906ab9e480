//! From names to a host list.

use std::fmt::Write;

/// The shortest list that `scontrol show hostlist` makes of the names: in their order, with one bracket for names that follow
/// each other and differ in the digits at their end only.
///
/// [`expand`](super::expand) and `scontrol show hostnames` give back the names if they hold no brackets, commas, blanks or
/// control characters and are not empty.
pub fn compress<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut list = List::default();
    for name in names {
        list.add(name.as_ref());
    }
    list.close();
    list.text
}

/// Numbers in a row.
struct Range {
    low: u64,
    high: u64,
    width: usize,
}

/// A list as it grows.
#[derive(Default)]
struct List {
    text: String,
    /// What the names of the open bracket begin with.
    prefix: String,
    ranges: Vec<Range>,
}

impl List {
    fn add(&mut self, name: &str) {
        let Some((prefix, digits, number)) = parts(name) else {
            self.close();
            self.part();
            self.text.push_str(name);
            return;
        };
        if self.ranges.is_empty() || prefix != self.prefix {
            self.close();
            prefix.clone_into(&mut self.prefix);
        }
        match self.ranges.last_mut() {
            Some(range) if range.high + 1 == number && written(number, range.width) == digits => {
                range.high = number;
            }
            _ => self.ranges.push(Range { low: number, high: number, width: digits.len() }),
        }
    }

    /// Writes the names of the open bracket.
    fn close(&mut self) {
        let ranges = std::mem::take(&mut self.ranges);
        if ranges.is_empty() {
            return;
        }
        self.part();
        self.text.push_str(&self.prefix);
        if let [Range { low, high, width }] = ranges[..]
            && low == high
        {
            self.text.push_str(&written(low, width));
            return;
        }
        for (index, Range { low, high, width }) in ranges.into_iter().enumerate() {
            self.text.push(if index == 0 { '[' } else { ',' });
            self.text.push_str(&written(low, width));
            if high > low {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "-{high:0width$}");
            }
        }
        self.text.push(']');
    }

    fn part(&mut self) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
    }
}

fn written(number: u64, width: usize) -> String {
    format!("{number:0width$}")
}

/// A name as what comes before the digits at its end, the digits, and their value, if it has a few digits there.
fn parts(name: &str) -> Option<(&str, &str, u64)> {
    let (prefix, digits) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    // More digits than these are no number that a bracket may hold.
    let number = digits.parse().ok().filter(|_| digits.len() <= 18)?;
    Some((prefix, digits, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `scontrol show hostlist` of Slurm 22.05 printed.
    #[test]
    fn lists_are_those_of_scontrol() {
        for (names, expected) in [
            ("n1,n2,n3", "n[1-3]"),
            ("n3,n1", "n[3,1]"),
            ("n01,n1,n2", "n[01,1-2]"),
            ("n08,n09,n10", "n[08-10]"),
            ("n9,n10", "n[9-10]"),
            ("n9,n010", "n[9,010]"),
            ("n1,n1", "n[1,1]"),
            ("n1,n2,n2,n3", "n[1-2,2-3]"),
            ("n099,n100", "n[099-100]"),
            ("r1n1,r1n2,r2n1", "r1n[1-2],r2n1"),
            ("a1x,a2x", "a1x,a2x"),
            ("n1,m1,n2", "n1,m1,n2"),
            ("1,2", "[1-2]"),
            ("a0,a00", "a[0,00]"),
            ("n1,n2,m,n3", "n[1-2],m,n3"),
            ("n007", "n007"),
            ("", ""),
        ] {
            assert_eq!(compress(names.split(',')), expected, "{names}");
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_part_of_a_name() {
        let name = "n99999999999999999999";
        assert_eq!(compress([name, "n1"]), format!("{name},n1"));
    }
}
