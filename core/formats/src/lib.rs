//! File formats that several crates read.
//!
//! [`host_list`]: host names in Slurm syntax, `node[001-128,200-210]`. [`host_file`]: host files of launchers and batch systems.
//! [`batch_job`]: the hosts of the job in which this process runs. [`slots`]: slots of hosts as a parameter.
//! [`host_names`]: hosts by name or short name.
//! [`rank_file`]: cores of ranks. [`sinfo`]: free nodes of a cluster.
//! [`parus`]: measurements of PARUS between the processes of a job. [`netcdf`]: classic netCDF files.
//! [`natural_key`]: natural sort order of names.

// What is read is untrusted: a number that does not fit is an error and not another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod batch_job;
pub mod host_file;
pub mod host_list;
pub mod host_names;
pub mod netcdf;
pub mod parus;
pub mod rank_file;
pub mod sinfo;
pub mod slots;

/// A sort key for natural order, in which digits compare as numbers. Names that differ only in leading zeros
/// have equal keys.
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
        // The longer of two numbers is larger.
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
