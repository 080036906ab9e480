//! Placements by the numbers of PEs: partitions of `KaHIP` and its kin, maps of Scotch.

use hopmap_text::{FileError, Line, shown};

use super::Place;
use super::error::{OTHER_MACHINE, OTHER_PROGRAM, at, below};

const ONE_A_LINE: &str = "a partition of KaHIP, VieM or SharedMap has one PE a line, that of rank 0 first";
const PAIRS: &str = "a map of Scotch begins with the number of vertices; then every line has a vertex and its PE, parted by white \
                     space";

/// One PE a line; line i is of rank i.
pub(super) fn kahip<'t>(
    lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<Place>, FileError> {
    let mut places = Vec::new();
    let mut last = 0;
    for line in lines {
        let [pe] = words(line, ONE_A_LINE)?;
        let rank = places.len();
        if rank == ranks {
            return Err(line
                .error(format!("more lines than the {ranks} ranks of the program"))
                .with_help(OTHER_PROGRAM));
        }
        places.push(place(line, pe, slots, || format!("rank {rank} is on PE"))?);
        last = line.number;
    }
    match places.len() {
        found if found < ranks => {
            let what = format!("the file ends after {found} ranks, and the program has {ranks}");
            Err(at(last, what, OTHER_PROGRAM))
        }
        _ => Ok(places),
    }
}

/// A count, then vertices and their PEs in any order. Vertices count from zero, or from one where there is no vertex 0.
pub(super) fn scotch<'t>(
    mut lines: impl Iterator<Item = Line<'t>>,
    ranks: usize,
    slots: usize,
) -> Result<Vec<Place>, FileError> {
    let Some(head) = lines.next() else { return Err(FileError::new("nothing is in it", PAIRS)) };
    let [count] = words(head, PAIRS)?;
    if count.parse() != Ok(ranks) {
        let what = format!("there are `{}` vertices, but {ranks} ranks", shown(count));
        return Err(head.error(what).with_help(OTHER_PROGRAM));
    }
    let mut pairs = Vec::new();
    let mut last = head.number;
    for line in lines {
        let [vertex, pe] = words(line, PAIRS)?;
        if pairs.len() == ranks {
            return Err(line
                .error(format!("more lines than the {ranks} vertices of the first line"))
                .with_help(PAIRS));
        }
        pairs.push((line, vertex, pe));
        last = line.number;
    }
    let base = usize::from(!pairs.iter().any(|(_, vertex, _)| vertex.parse() == Ok(0)));
    let mut places: Vec<Option<Place>> = vec![None; ranks];
    for (line, vertex, pe) in pairs {
        let number = below(line, vertex, ranks + base, || "there is a vertex".to_owned(), PAIRS)?;
        let Some(entry) = number.checked_sub(base).and_then(|rank| places.get_mut(rank)) else { continue };
        if let Some(before) = entry {
            let what = format!("vertex {number} stands on line {} already", before.line);
            return Err(line.error(what).with_help(PAIRS));
        }
        *entry = Some(place(line, pe, slots, || format!("vertex {number} is on PE"))?);
    }
    let missing = places.iter().position(Option::is_none);
    match missing {
        Some(rank) => Err(at(last, format!("vertex {} is missing", rank + base), OTHER_PROGRAM)),
        None => Ok(places.into_iter().flatten().collect()),
    }
}

fn place(line: Line<'_>, pe: &str, slots: usize, what: impl Fn() -> String) -> Result<Place, FileError> {
    let slot = below(line, pe, slots, what, OTHER_MACHINE)? as u32;
    Ok(Place { slot, line: line.number })
}

/// The words of a line, which must be so many.
fn words<'t, const COUNT: usize>(line: Line<'t>, hint: &'static str) -> Result<[&'t str; COUNT], FileError> {
    let mut words = line.words();
    let mut found = [""; COUNT];
    for entry in &mut found {
        *entry = words.next().unwrap_or_default();
    }
    match found.contains(&"") || words.next().is_some() {
        true => Err(line
            .error(format!(
                "`{}` is not {COUNT} number{}",
                shown(line.text),
                if COUNT > 1 { "s" } else { "" }
            ))
            .with_help(hint)),
        false => Ok(found),
    }
}
