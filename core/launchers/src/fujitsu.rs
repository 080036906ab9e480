//! Files of node coordinates of Fujitsu MPI.

use hopmap_model::{LaunchFile, Mapping, Placement};

use crate::error::LaunchError;
use crate::files::hosts_of_ranks;

const COORDINATES: &str =
    "name every host after its coordinates in the job, such as n0-2-1 in a job of -L node=4x3x2";

/// Node coordinates of every rank, for Fujitsu MPI: the numbers in the name of its host, such as `n0-2-1` in a job of
/// `-L node=4x3x2`. Fujitsu MPI has no comments in this file.
///
/// Format: scripts in public repositories for Fugaku, which write a line `(x,y,z)` for every rank. Not tried.
pub(crate) fn fujitsu_vcoordfile(mapping: &Mapping) -> Result<LaunchFile, LaunchError> {
    let hosts = hosts_of_ranks(mapping)?;
    let names = mapping.hosts.iter().map(|host| coordinates(&host.host));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    if let Some(other) = names.iter().position(|name| name.len() != names[0].len()) {
        let (one, other) = (&mapping.hosts[0].host, &mapping.hosts[other].host);
        let problem = format!("`{one}` and `{other}` have different numbers of coordinates in their names");
        return Err(LaunchError::new(problem, COORDINATES));
    }
    let line = |placement: &Placement| format!("({})\n", names[placement.host as usize].join(","));
    Ok(LaunchFile {
        name: "vcoordfile".into(),
        text: mapping.ranks.iter().map(line).collect(),
        command: format!("mpiexec -n {} --vcoordfile {{file}} {{program}}", hosts.len()),
    })
}

/// One to three numbers in a name, without leading zeros.
fn coordinates(host: &str) -> Result<Vec<String>, LaunchError> {
    let numbers = host.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let numbers: Vec<String> = numbers
        .map(|digits| match digits.trim_start_matches('0') {
            "" => "0".to_owned(),
            digits => digits.to_owned(),
        })
        .collect();
    match numbers.len() {
        1..=3 => Ok(numbers),
        _ => Err(LaunchError::new(format!("`{host}` does not name the coordinates of a node"), COORDINATES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_in_a_name_are_coordinates() {
        let text =
            |name| coordinates(name).map_or_else(|error| error.to_string(), |numbers| numbers.join(","));
        assert_eq!(text("n0-2-11"), "0,2,11");
        assert_eq!(text("x03y00"), "3,0");
        assert_eq!(text("host7"), "7");
        assert_eq!(text("login"), "`login` does not name the coordinates of a node");
        assert_eq!(text("10.0.0.1"), "`10.0.0.1` does not name the coordinates of a node");
    }
}
