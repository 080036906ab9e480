//! File formats that several crates read.
//!
//! [`host_list`]: names of hosts as Slurm writes them, `node[001-128,200-210]`. [`sinfo`]: which nodes of a cluster are free.
//! [`parus`]: what PARUS measured between the processes of a job. [`netcdf`]: classic netCDF files.
//! [`natural_key`]: the order of names in which people count.

pub mod host_list;
pub mod netcdf;
pub mod parus;
pub mod sinfo;

/// A key by which names sort as people count: digits as numbers. Names that differ in leading zeros only have the same.
#[must_use]
pub fn natural_key(name: &str) -> String {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mut key = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(start) = rest.find(is_digit) {
        let (text, digits) = rest.split_at(start);
        let (digits, after) =
            digits.split_at(digits.find(|letter| !is_digit(letter)).unwrap_or(digits.len()));
        let digits = digits.trim_start_matches('0');
        // Of two numbers the longer one is larger.
        key.push_str(text);
        key.push_str(&format!("{:03}{digits}", digits.len()));
        rest = after;
    }
    key.push_str(rest);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        let mut names = vec!["n10", "n2", "n1-2", "m3", "n", "n1-10", "n99999999999999999999999", "n0", "3"];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["3", "m3", "n", "n0", "n1-2", "n1-10", "n2", "n10", "n99999999999999999999999"]);
        assert_eq!(natural_key("n02"), natural_key("n2"));
    }
}
