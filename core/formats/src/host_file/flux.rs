//! Resource sets of Flux, as `flux resource R` prints them: the hosts of a job and their cores.
//!
//! Format: RFC 20 of Flux, version 1. The hosts are in the order of the ranks.

use hopmap_text::FileError;
use serde::Deserialize;

use crate::host_list;

const HELP: &str = "give what `flux resource R` prints in the job";

#[derive(Deserialize)]
struct ResourceSet {
    execution: Execution,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(rename = "R_lite")]
    entries: Vec<Entry>,
    nodelist: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    rank: String,
    children: Children,
}

#[derive(Deserialize)]
struct Children {
    core: String,
}

/// The numbers of a set such as `0-3,8`.
fn numbers(set: &str) -> Option<Vec<u32>> {
    let set = set.trim_start_matches('[').trim_end_matches(']');
    let names = host_list::expand(&format!("[{set}]")).ok()?;
    names.iter().map(|name| name.parse().ok()).collect()
}

/// The hosts of a resource set; the slots of each are its cores.
pub(super) fn resource_set(text: &str) -> Result<Vec<(String, Option<u32>)>, FileError> {
    let set: ResourceSet = serde_json::from_str(text)
        .map_err(|error| FileError::at(error.line(), format!("no resource set of Flux: {error}"), HELP))?;
    let mut cores = Vec::new();
    for Entry { rank, children } in &set.execution.entries {
        let fault = |set: &str| FileError::new(format!("`{set}` does not list numbers"), HELP);
        let slots = numbers(&children.core).ok_or_else(|| fault(&children.core))?.len();
        let ranks = numbers(rank).ok_or_else(|| fault(rank))?;
        cores.extend(ranks.into_iter().map(|rank| (rank, u32::try_from(slots).ok())));
    }
    cores.sort_unstable();
    if let Some(pair) = cores.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(FileError::new(format!("it has rank {} twice", pair[0].0), HELP));
    }
    let list = set.execution.nodelist.join(",");
    let names = host_list::expand(&list).map_err(|error| FileError::new(error.to_string(), error.hint))?;
    if names.len() != cores.len() {
        let problem = format!("it names {} hosts, but has the cores of {} ranks", names.len(), cores.len());
        return Err(FileError::new(problem, HELP));
    }
    Ok(names.into_iter().zip(cores).map(|(name, (_, slots))| (name, slots)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_cores_of_their_ranks() {
        let set = |entries: &str, nodes: &str| {
            let text =
                format!(r#"{{"version": 1, "execution": {{"R_lite": [{entries}], "nodelist": [{nodes}]}}}}"#);
            let hosts = resource_set(&text).map_err(|error| error.to_string())?;
            Ok(hosts
                .iter()
                .map(|(host, slots)| format!("{host}:{}", slots.unwrap()))
                .collect::<Vec<_>>()
                .join(" "))
        };
        let entry =
            |rank: &str, cores: &str| format!(r#"{{"rank": "{rank}", "children": {{"core": "{cores}"}}}}"#);
        let uneven = [entry("3", "0"), entry("0-1,7", "0-3,8")].join(",");
        assert_eq!(set(&uneven, r#""n[1-3]", "x""#), Ok("n1:5 n2:5 n3:1 x:5".to_owned()));
        let other = set(&entry("0-1", "0-3"), r#""n1""#);
        assert_eq!(other, Err("it names 1 hosts, but has the cores of 2 ranks".to_owned()));
        assert_eq!(set(&entry("0", "all"), r#""n1""#), Err("`all` does not list numbers".to_owned()));
        assert!(resource_set("{\"nodes\": 1}").unwrap_err().to_string().contains("no resource set of Flux"));
    }
}
