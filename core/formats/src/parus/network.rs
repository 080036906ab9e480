//! What `network_test` measured between all processes of an MPI job.

use hopmap_text::FileError;

/// A network file of PARUS: text, or netCDF of `network-tests2`.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkFile {
    /// Number of processes.
    pub processes: usize,
    /// The host of every process by rank; empty if the file does not say it.
    pub hosts: Vec<String>,
    /// What was measured, such as `one_to_one`.
    pub test: String,
    /// What the numbers are of many repetitions.
    pub kind: Kind,
    /// Lengths of messages in bytes, rising.
    pub lengths: Vec<u64>,
    /// For every length the seconds from process `sender` to process `receiver` of `n` at `receiver * n + sender`. They
    /// are as the file has them: nothing is known of the diagonal, and failed measurements are there too.
    pub seconds: Vec<Vec<f64>>,
    /// How many lengths there should be.
    pub expected_lengths: u64,
}

/// What a number is of many repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The mean.
    Average,
    /// The median.
    Median,
    /// The standard deviation.
    Deviation,
    /// The least.
    Minimum,
    /// Something else.
    Other(String),
}

impl Kind {
    pub(super) fn named(name: &str) -> Self {
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
            true => super::netcdf::read(bytes),
            false => super::text::read(bytes),
        }
    }

    /// Takes the names of hosts from the file beside a netCDF file, a rank a line.
    pub fn set_hosts(&mut self, text: &str) -> Result<(), FileError> {
        let hosts: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if hosts.len() != self.processes {
            let problem = format!("there are {} hosts for {} processes", hosts.len(), self.processes);
            return Err(FileError::new(problem, "it has a line for every process"));
        }
        self.hosts = hosts;
        Ok(())
    }

    /// Checks that lengths rise.
    pub(super) fn checked(self, line: Option<usize>) -> Result<Self, FileError> {
        let wrong = |problem: &str, help: &str| Err(FileError { line, ..FileError::new(problem, help) });
        if self.processes == 0 || self.lengths.is_empty() {
            return wrong("nothing was measured", "the test was broken off before the first length was done");
        }
        match self.lengths.windows(2).all(|pair| pair[0] < pair[1]) {
            true => Ok(self),
            false => wrong("the lengths of messages do not rise", "is the file damaged?"),
        }
    }
}

/// Name of the file of hosts beside a netCDF file: `run_median.nc` and `run_hosts.txt`.
#[must_use]
pub fn hosts_of_netcdf(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".nc")?;
    let kinds = ["_average", "_median", "_deviation", "_min", "_all", "_measurements_amount"];
    let prefix = kinds.iter().find_map(|kind| stem.strip_suffix(kind))?;
    Some(format!("{prefix}_hosts.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_hosts_has_the_prefix_of_the_run() {
        assert_eq!(hosts_of_netcdf("a_b_median.nc").as_deref(), Some("a_b_hosts.txt"));
        assert_eq!(hosts_of_netcdf("x_measurements_amount.nc").as_deref(), Some("x_hosts.txt"));
        assert_eq!(hosts_of_netcdf("x.nc"), None);
    }

    #[test]
    fn kinds_have_several_names() {
        assert_eq!(Kind::named("minimum"), Kind::named("min"));
        assert_eq!(Kind::named("Average"), Kind::Average);
        assert_eq!(Kind::named("sum"), Kind::Other("sum".into()));
    }
}
