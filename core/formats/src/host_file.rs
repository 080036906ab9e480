//! Host files of MPI launchers and batch systems: a host list, `node01 slots=40` (Open MPI), `node01:40` (MPICH, Intel MPI), or a
//! line for every slot (`$PBS_NODEFILE`). `#` begins a comment.

use std::collections::HashMap;

use crate::host_list::{self, HostListError};

/// The hosts of a file, each once in the order of its first line, and their slots where the file gives them.
///
/// Other attributes than `slots=`, such as `max_slots=`, are ignored.
pub fn expand(text: &str) -> Result<Vec<(String, Option<u32>)>, HostListError> {
    let mut hosts: Vec<(String, Option<u32>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (line, number) in text.lines().zip(1..) {
        let (names, slots) = line_of(line).map_err(|mut error| {
            error.line = number;
            error
        })?;
        for name in names {
            if let Some(&place) = places.get(&name) {
                let known = &mut hosts[place].1;
                *known = Some(known.unwrap_or(1).saturating_add(slots.unwrap_or(1)));
            } else {
                places.insert(name.clone(), hosts.len());
                hosts.push((name, slots));
            }
        }
    }
    Ok(hosts)
}

/// The hosts of a line, and the slots of each.
fn line_of(line: &str) -> Result<(Vec<String>, Option<u32>), HostListError> {
    let line = line.split('#').next().unwrap_or_default();
    let (mut lists, mut slots) = (String::new(), None);
    for word in line.split_whitespace() {
        let (list, count) = match (word.split_once('='), word.rsplit_once(':')) {
            (Some((name, count)), _) if !name.is_empty() && !count.is_empty() => {
                ("", Some(count).filter(|_| name == "slots"))
            }
            (Some(_), _) => return Err(not_a_host(line, word)),
            (None, None) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(not_a_host(line, word));
            }
            (None, Some((list, count))) => (list, Some(count)),
            (None, None) => (word, None),
        };
        if let Some(count) = count {
            let number = count.parse().ok().filter(|&slots| slots > 0);
            slots =
                Some(number.ok_or_else(|| fault(line, word, format!("`{count}` is not a number of slots")))?);
        }
        lists.push_str(list);
        lists.push(' ');
    }
    Ok((host_list::expand(lists.trim_end())?, slots))
}

/// The error of a word such as the number in `node01 40`, or the parts of `slots = 40`.
fn not_a_host(line: &str, word: &str) -> HostListError {
    fault(line, word, format!("`{word}` is not a host name"))
}

fn fault(line: &str, word: &str, what: String) -> HostListError {
    let start = line.find(word).unwrap_or_default();
    HostListError::new(line, start, start + word.len(), what, "write `node01 slots=40` or `node01:40`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<(String, Option<u32>)> {
        expand(text).unwrap()
    }

    fn named(names: &[&str], slots: Option<u32>) -> Vec<(String, Option<u32>)> {
        names.iter().map(|name| ((*name).to_owned(), slots)).collect()
    }

    #[test]
    fn the_forms_of_all_launchers_are_read() {
        assert_eq!(
            hosts("# free\nnode[01-02]\n\nn7,n8 n9 # three\n"),
            named(&["node01", "node02", "n7", "n8", "n9"], None)
        );
        assert_eq!(hosts("a slots=4 max_slots=8\nb  slots=4\n"), named(&["a", "b"], Some(4)));
        assert_eq!(hosts("a:4\nb[1-2]:4\n"), named(&["a", "b1", "b2"], Some(4)));
        assert_eq!(hosts("a\na\nb\na\nb\nb\n"), named(&["a", "b"], Some(3)));
        assert_eq!(hosts(" \n"), []);
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let message = |text: &str| expand(text).unwrap_err().to_string();
        assert_eq!(message("a\nn[2\n"), "host list, line 2, column 2: unclosed bracket");
        assert_eq!(message("a slots=four\n"), "host list, column 3: `four` is not a number of slots");
        assert_eq!(message("a:0\n"), "host list, column 1: `0` is not a number of slots");
    }

    /// A number after a name was read as a host of that name, and `slots = 4` as three hosts.
    #[test]
    fn slots_in_another_form_are_not_hosts() {
        let message = |text: &str| expand(text).unwrap_err().to_string();
        assert_eq!(message("node01 8\nnode02 8\n"), "host list, column 8: `8` is not a host name");
        assert_eq!(message("node01 slots = 4\n"), "host list, column 14: `=` is not a host name");
        assert_eq!(message("4 node01\n"), "host list, column 1: `4` is not a host name");
        assert_eq!(message("node01 slots=\n"), "host list, column 8: `slots=` is not a host name");
    }
}
