//! Hierarchies of the mappers KaHIP and TopoMatch.
//!
//! Hierarchies of KaHIP, `VieM` and `SharedMap`: `4:16:8`, innermost first, and in a second line the
//! distances, `1:10:100`.
//!
//! The lines may have the syntax of the options of these programs, `--hierarchy_parameter_string=4:16:8` and
//! `--distance_parameter_string=1:10:100`. Two leaves that first meet on a level have its distance. A leaf is
//! a host with one slot, unless `slots` sets the number of leaves per host.

use hopmap_text::shown;

use super::format::{Sample, malformed};
use super::{ImportError, ImportParams, Imported, Result, finish, matrix_csv, scotch};

const HIERARCHY: &str = "--hierarchy_parameter_string=";
const DISTANCES: &str = "--distance_parameter_string=";
/// Largest number of levels.
const MOST_LEVELS: usize = 32;

/// One or two colon-separated lists of numbers, or the options.
pub(super) fn recognises_kahip(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut words = words(text).map(|(_, word)| word);
    let numbers = |word: &str, is_number: fn(u8) -> bool| {
        word.contains(':')
            && word.split(':').all(|number| !number.is_empty() && number.bytes().all(is_number))
    };
    let first = words.next().is_some_and(|word| {
        word.starts_with(HIERARCHY)
            || word.starts_with(DISTANCES)
            || numbers(word, |byte| byte.is_ascii_digit())
    });
    let is_distances = |word: &str| {
        word.starts_with(HIERARCHY)
            || word.starts_with(DISTANCES)
            || numbers(word, |byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
    };
    first && words.next().is_none_or(is_distances) && words.next().is_none()
}

/// Words with their lines; text after `#` or `%` is a comment.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).flat_map(|(line, text)| {
        let content = text.split(['#', '%']).next().unwrap_or_default();
        content.split_whitespace().map(move |word| (line, word))
    })
}

pub(super) fn read_kahip(text: &str, params: &ImportParams) -> Result<Imported> {
    finish::check(params)?;
    check(params)?;
    let (mut hierarchy, mut distances) = (None, None);
    for (line, word) in words(text) {
        let (place, value, what) = match (word.strip_prefix(HIERARCHY), word.strip_prefix(DISTANCES)) {
            (Some(value), _) => (&mut hierarchy, value, "hierarchy"),
            (None, Some(value)) => (&mut distances, value, "list of distances"),
            (None, None) if word.starts_with('-') => {
                let problem = format!("`{}` is not an option that describes the machine", shown(word));
                let help = format!("use {HIERARCHY}4:16:8 and {DISTANCES}1:10:100");
                return Err(malformed(line, problem, help));
            }
            (None, None) if hierarchy.is_none() => (&mut hierarchy, word, "hierarchy"),
            (None, None) => (&mut distances, word, "list of distances"),
        };
        if place.replace((line, value)).is_some() {
            let help = "put the hierarchy in the first line and the distances in the second";
            return Err(malformed(line, format!("there is more than one {what}: `{}`", shown(value)), help));
        }
    }
    let Some((line, hierarchy)) = hierarchy else {
        return Err(malformed(None, "there is no hierarchy", "give one such as 4:16:8, innermost first"));
    };
    let branches = branches(line, hierarchy)?;
    let costs = costs(distances, branches.len(), params)?;
    let system = scotch::tree(&branches, &costs, params)?;
    Ok(Imported { system, notes: Vec::new() })
}

fn check(params: &ImportParams) -> Result<()> {
    params.refuse(&["hwloc"], "the file contains no host names", "omit it")?;
    params.refuse(&["cost", "link_latency_s"], "the file defines the costs of levels", "omit it")
}

fn branches(line: usize, hierarchy: &str) -> Result<Vec<u32>> {
    let number = |number: &str| match number.parse() {
        Ok(branches) if branches > 0 => Ok(branches),
        _ => Err(malformed(
            line,
            format!("`{}` in the hierarchy is not a valid number of branches", shown(number)),
            "give the branches of every level, innermost first, such as 4:16:8",
        )),
    };
    let levels: Vec<&str> = hierarchy.split(':').take(MOST_LEVELS + 1).collect();
    if levels.len() > MOST_LEVELS {
        let help = "omit levels with one branch";
        return Err(malformed(line, format!("the hierarchy has more than {MOST_LEVELS} levels"), help));
    }
    levels.into_iter().map(number).collect()
}

/// The distances of the file, otherwise those of the parameters.
fn costs(distances: Option<(usize, &str)>, levels: usize, params: &ImportParams) -> Result<Vec<f64>> {
    let Some((line, distances)) = distances else {
        if params.costs.len() == levels {
            return Ok(params.costs.clone());
        }
        let problem = match params.costs.len() {
            0 => "is missing: the file has no distances".into(),
            count => format!("has {count} numbers, but the hierarchy has {levels} levels"),
        };
        let help = "give one cost for every level, innermost first, such as [1, 10, 100], or put 1:10:100 in the second line";
        return Err(ImportError::parameter("costs", problem, help));
    };
    if !params.costs.is_empty() {
        let problem = "conflicts with the distances in the file";
        return Err(ImportError::parameter("costs", problem, "omit it, or remove the second line"));
    }
    let mut least = 0.0;
    let number = |number: &str| match number.parse::<f64>() {
        Ok(distance) if distance.is_finite() && distance >= least => {
            least = distance;
            Ok(distance)
        }
        Ok(distance) if distance.is_finite() && distance >= 0.0 => Err(malformed(
            line,
            format!("the distance of a level is {distance}, less than {least} on the level inside it"),
            "distances must not decrease outwards; give them innermost first",
        )),
        _ => Err(malformed(
            line,
            format!("`{}` is not a valid distance", shown(number)),
            "give the distance of every level, innermost first, such as 1:10:100",
        )),
    };
    let costs: Vec<f64> = distances.split(':').take(MOST_LEVELS + 1).map(number).collect::<Result<_, _>>()?;
    match costs.len() == levels {
        true => Ok(costs),
        false => Err(malformed(
            line,
            format!("there are {} distances, but the hierarchy has {levels} levels", costs.len()),
            "give one distance for every level, innermost first",
        )),
    }
}

/// Length of a line that `TreeMatch` reads.
const LINE: usize = 1023;

/// Topologies of `TopoMatch` and `TreeMatch`.
///
/// A `.tgt` file of theirs is a `tleaf` of Scotch, outermost level first, with costs that add up from the
/// leaves to the common ancestor as in Scotch (`tgt_to_tm` in the sources of `TreeMatch`). So it is detected
/// and read as a target of Scotch. With `format = "topomatch"` three differences apply: only the first line
/// is read; `tleaf` may occur anywhere in it; and a level may have one branch or zero cost. Files of hwloc
/// and cost matrices, which `TopoMatch` accepts as well, are separate formats here; a file of numbers is read
/// as a matrix.
pub(super) fn read_topomatch(text: &str, params: &ImportParams) -> Result<Imported> {
    finish::check(params)?;
    let line = text.lines().next().unwrap_or_default();
    let numbers = line.find("tleaf").and_then(|place| line.get(place + "tleaf".len()..));
    let Some(numbers) = numbers else {
        if line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok()) {
            return matrix_csv::read(text, params);
        }
        return Err(malformed(
            1,
            "the first line has no `tleaf`",
            "TopoMatch reads `tleaf 3 32 500 100 10 8 1`: the number of levels, then branches and cost of each, outermost first",
        ));
    };
    let levels = levels(numbers)?;
    let mut sum = 0.0;
    let (mut branches, mut costs) = (Vec::new(), Vec::new());
    for (arity, cost) in levels.into_iter().rev() {
        sum += cost;
        branches.push(arity);
        costs.push(sum);
    }
    let mut notes = Vec::new();
    if line.len() > LINE {
        notes.push(format!("TopoMatch reads only {LINE} characters of the line"));
    }
    if text.lines().skip(1).any(|line| !line.trim().is_empty()) {
        notes.push("lines after the first are ignored, as in TopoMatch".into());
    }
    Ok(Imported { system: scotch::tree(&branches, &costs, params)?, notes })
}

/// Branches and cost of every level, outermost first.
fn levels(numbers: &str) -> Result<Vec<(u32, f64)>> {
    let mut words = numbers.split_whitespace();
    let mut number = |what: &str, least: u32| {
        let word = words.next().unwrap_or_default();
        match word.parse::<u32>() {
            Ok(number) if number >= least => Ok(number),
            _ if word.is_empty() => Err(malformed(
                1,
                format!("the line ends where {what} should be"),
                "`tleaf` is followed by the number of levels, then branches and cost of each",
            )),
            _ => Err(malformed(
                1,
                format!("{what} is `{}`", shown(word)),
                format!("give an integer of at least {least}"),
            )),
        }
    };
    let count = number("the number of levels", 0)? as usize;
    if count > MOST_LEVELS {
        let help = "omit levels with one branch";
        return Err(malformed(1, format!("there are {count} levels, more than {MOST_LEVELS}"), help));
    }
    let level = |_| {
        Ok((number("the number of branches of a level", 1)?, f64::from(number("the cost of a level", 0)?)))
    };
    let levels = (0..count).map(level).collect::<Result<_>>()?;
    match words.next() {
        None => Ok(levels),
        Some(word) => Err(malformed(
            1,
            format!("unexpected `{}` after the last of {count} levels", shown(word)),
            "a level has two numbers: branches and cost",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Format;
    use crate::import::samples::import_as;

    fn import(text: &str, params: &ImportParams) -> Result<Imported, String> {
        import_as(Format::Kahip, text, params)
    }

    #[test]
    fn the_machine_is_that_of_the_synthetic_one() {
        let params = serde_json::json!({ "shape": "kahip:4:16:8", "costs": "1:10:100", "host_level": 1 });
        let expected = hopmap_machines::synthetic(&serde_json::from_value(params).unwrap()).unwrap();
        let four = ImportParams { slots: 4.into(), ..ImportParams::default() };
        let costs = ImportParams { costs: vec![1.0, 10.0, 100.0], ..four.clone() };
        assert_eq!(import("4:16:8\n1:10:100\n", &four).unwrap().system, expected);
        assert_eq!(import("# S\n4:16:8\n", &costs).unwrap().system, expected);
        let options = format!("{DISTANCES}1:10:100 {HIERARCHY}4:16:8");
        assert_eq!(import(&options, &four).unwrap().system, expected);
        let leaves = import("4:16:8\n1:10:100\n", &ImportParams::default()).unwrap().system;
        assert_eq!((leaves.hosts().count(), leaves.cost), (512, expected.cost));
        let one = ImportParams { costs: vec![2.0], ..ImportParams::default() };
        assert_eq!(import("8", &one).unwrap().system.slots.len(), 8);
    }

    #[test]
    fn errors_of_hierarchies_are_reported() {
        let message = |text: &str| import(text, &ImportParams::default()).unwrap_err();
        assert_eq!(message("4:16:8\n"), "`costs` is missing: the file has no distances");
        assert_eq!(message("4:16:8\n1:10\n"), "F:2: there are 2 distances, but the hierarchy has 3 levels");
        assert_eq!(message("4:0\n1:10\n"), "F:1: `0` in the hierarchy is not a valid number of branches");
        assert!(message("4:4\n10:1\n").contains("F:2: the distance of a level is 1, less than 10"));
        assert_eq!(message("4:4\n1:nan\n"), "F:2: `nan` is not a valid distance");
        assert!(message("4:4\n1:2\n3:4\n").contains("F:3: there is more than one list of distances"));
        assert!(message("--k=4 4:4\n1:2").contains("F:1: `--k=4` is not an option"));
        assert!(message("65536:65536\n1:2").contains("more than 16777216 slots"));
        assert_eq!(message(""), "F: there is no hierarchy");
        let costs = ImportParams { costs: vec![1.0, 2.0], ..ImportParams::default() };
        assert!(import("4:4\n1:2", &costs).unwrap_err().contains("conflicts with the distances"));
        let slots = ImportParams { slots: 5.into(), ..ImportParams::default() };
        assert!(import("4:4\n1:2", &slots).unwrap_err().contains("no level of the tree has groups"));
    }

    #[test]
    fn hierarchies_are_detected() {
        let recognised = |text: &str| recognises_kahip(&Sample::of("a".as_ref(), text.as_bytes().to_vec()));
        for text in
            ["4:16:8", "4:16:8\n1:10:100\n", "\n4:2 \n0.5:1e3", &format!("{HIERARCHY}4:2\n{DISTANCES}1:2")]
        {
            assert!(recognised(text), "{text}");
        }
        for text in
            ["", "4", "4 16 8", "a:b", "00:11:22:33:44:5f", "4:2\n1:2\n3:4", "4:2: x", "4:", "4:2\nswitch"]
        {
            assert!(!recognised(text), "{text}");
        }
    }

    fn import_topomatch(text: &str, format: Format) -> Result<Imported, String> {
        import_as(format, text, &ImportParams::default())
    }

    #[test]
    fn it_is_a_tleaf_of_scotch() {
        let text = "tleaf 3 3 500 4 100 2 10\n";
        let scotch = import_topomatch(text, Format::Scotch).unwrap();
        assert_eq!(import_topomatch(text, Format::Topomatch).unwrap(), scotch);
        assert_eq!(scotch.system.costs().block(&[0, 23])[1] as u32, 610);
        let lax = import_topomatch("my tleaf 2 1 7 4 0\nrest", Format::Topomatch).unwrap();
        assert_eq!((lax.system.slots.len(), lax.notes.len()), (4, 1));
        assert_eq!(lax.system.costs().between(0, 3) as u32, 0);
    }

    #[test]
    fn errors_of_topologies_are_reported() {
        let message = |text: &str| import_topomatch(text, Format::Topomatch).unwrap_err();
        assert_eq!(message("cmplt 4"), "F:1: the first line has no `tleaf`");
        assert_eq!(message("tleaf 2 3 4 5"), "F:1: the line ends where the cost of a level should be");
        assert_eq!(message("tleaf 1 0 4"), "F:1: the number of branches of a level is `0`");
        assert_eq!(message("tleaf 1 2 4 7"), "F:1: unexpected `7` after the last of 1 levels");
        assert!(message("tleaf 99").contains("more than 32"));
        assert!(message("tleaf 2 65536 1 65536 1").contains("more than 16777216 slots"));
    }
}
