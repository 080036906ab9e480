//! Cells as people name them: `placement[seed=1]`. Keys may stand in any order, and some of them are enough where they leave one cell.

use std::collections::BTreeSet;

use hopmap_command::Mistake;
use serde_json::Value as Json;

use crate::engine::{self, Catalogue, Current, PipelineId, Store, by_matrix};
use crate::pipeline::{Choice, Pipeline, Selector};

/// Cells that a message names.
const MOST_NAMED: usize = 3;

/// A cell that a name may stand for.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    id: &'a str,
    stage: &'a str,
    matrix: &'a [(String, Json)],
}

/// Indexes of the cells of a pipeline: all of a stage, or the one of a name. None if there is no such stage.
pub(crate) fn in_pipeline(name: &str, pipeline: &Pipeline) -> Result<Vec<usize>, Mistake> {
    let cells = pipeline.cells.iter();
    let cells = cells.map(|cell| Candidate { id: &cell.id, stage: &cell.stage, matrix: &cell.matrix });
    stage_or_cell(name, &cells.collect::<Vec<_>>())
}

/// The same of the cells of a catalogue.
pub(crate) fn in_catalogue(name: &str, catalogue: &Catalogue) -> Result<Vec<usize>, Mistake> {
    let cells = catalogue.cells.iter();
    let cells = cells.map(|cell| Candidate { id: &cell.id, stage: &cell.stage, matrix: &cell.matrix });
    stage_or_cell(name, &cells.collect::<Vec<_>>())
}

/// The cells of one name among those of a store, and the output that is named with it: `placement[seed=1].mapping`. None if
/// there is no such stage.
pub(crate) fn in_store<'a>(
    name: &'a str,
    store: &'a Store,
    current: impl Iterator<Item = (&'a PipelineId, &'a str, &'a Current)>,
) -> Result<(Vec<&'a Current>, Option<&'a str>), Mistake> {
    let current: Vec<(&PipelineId, &str, &Current)> = current.collect();
    let cells: Vec<Candidate<'_>> = current
        .iter()
        .map(|&(_, id, current)| Candidate { id, stage: &current.stage, matrix: &current.matrix })
        .collect();
    let split = without_output(name).filter(|_| cells.iter().all(|cell| cell.id != name));
    let (cell, output) = split.as_ref().map_or((name, None), |(cell, output)| (cell.as_str(), Some(*output)));
    let mut found = fitting(cell, &cells)?;
    if !has_keys(cell) && names(&found, &cells).len() > 1 {
        found = of_newest(found, &current, store);
    }
    let found = only_one(cell, found, &cells)?;
    Ok((found.into_iter().map(|index| current[index].2).collect(), output))
}

fn has_keys(name: &str) -> bool {
    name.contains('[')
}

fn stage_or_cell(name: &str, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let found = fitting(name, cells)?;
    if has_keys(name) { only_one(name, found, cells) } else { Ok(found) }
}

/// The cells of a name: of exactly this one, else of this stage, else of the stage with these values. None if there is no such stage.
fn fitting(name: &str, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let exact = all(cells, |cell| cell.id == name);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let stage = name.split_once('[').map_or(name, |(stage, _)| stage).trim();
    let of_stage = all(cells, |cell| cell.stage == stage);
    if of_stage.is_empty() || !has_keys(name) {
        return Ok(of_stage);
    }
    let selector = Selector::parse(name).ok().filter(|selector| selector.choice == Choice::One);
    let fits = |index: &usize| selector.as_ref().is_some_and(|selector| selector.fits(cells[*index].matrix));
    let found: Vec<usize> = of_stage.iter().copied().filter(fits).collect();
    match found.is_empty() {
        true => {
            let help = format!("its cells: {}", first_few(&of_stage, cells));
            Err(Mistake::new(format!("`{stage}` has no cell `{name}`"), help))
        }
        false => Ok(found),
    }
}

fn all(cells: &[Candidate<'_>], fits: impl Fn(&Candidate<'_>) -> bool) -> Vec<usize> {
    (0..cells.len()).filter(|&index| fits(&cells[index])).collect()
}

/// The cells, if they have one name.
fn only_one(name: &str, found: Vec<usize>, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let count = names(&found, cells).len();
    if count < 2 {
        return Ok(found);
    }
    let verb = if has_keys(name) { "stands for" } else { "has" };
    let help = format!("name one: {}", first_few(&found, cells));
    Err(Mistake::new(format!("`{name}` {verb} {count} cells"), help))
}

/// Of the cells of several pipelines those of the one that ran last.
fn of_newest(found: Vec<usize>, current: &[(&PipelineId, &str, &Current)], store: &Store) -> Vec<usize> {
    let pipelines: BTreeSet<&PipelineId> = found.iter().map(|&index| current[index].0).collect();
    if pipelines.len() < 2 {
        return found;
    }
    let runs = engine::read_runs(store).unwrap_or_default();
    match runs.iter().rev().find_map(|run| pipelines.iter().find(|id| run.is_of(id))) {
        Some(&newest) => found.into_iter().filter(|&index| current[index].0 == newest).collect(),
        None => found,
    }
}

fn names<'a>(found: &[usize], cells: &[Candidate<'a>]) -> BTreeSet<&'a str> {
    found.iter().map(|&index| cells[index].id).collect()
}

/// The first names in the order of their values: `seed=2` before `seed=10`.
fn first_few(found: &[usize], cells: &[Candidate<'_>]) -> String {
    let mut cells: Vec<Candidate<'_>> = found.iter().map(|&index| cells[index]).collect();
    cells.sort_by(|one, other| by_matrix(one.matrix, other.matrix).then_with(|| one.id.cmp(other.id)));
    let mut names: Vec<&str> = cells.iter().map(|cell| cell.id).collect();
    names.dedup();
    let more = if names.len() > MOST_NAMED { ", …" } else { "" };
    names.truncate(MOST_NAMED);
    names.join(", ") + more
}

/// A name without the output in it: `placement.mapping`, `placement.mapping[seed=1]` or `placement[seed=1].mapping`.
fn without_output(name: &str) -> Option<(String, &str)> {
    let (stage, keys) = name.split_at(name.find('[').unwrap_or(name.len()));
    if let Some((stage, output)) = stage.split_once('.') {
        return Some((format!("{stage}{keys}"), output));
    }
    let end = name.rfind("].")?;
    Some((name[..=end].to_owned(), &name[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sweep() -> Vec<(String, Vec<(String, Json)>)> {
        let seeds = [1, 10, 2];
        let cell = |(mapper, seed): (&str, i64)| {
            let matrix = vec![("mapper".to_owned(), json!(mapper)), ("seed".to_owned(), json!(seed))];
            (format!("placement[mapper={mapper},seed={seed}]"), matrix)
        };
        let linear = seeds.map(|seed| cell(("linear", seed)));
        linear.into_iter().chain([cell(("a,b]", 1))]).collect()
    }

    fn asked(name: &str) -> Result<String, String> {
        let sweep = sweep();
        let cells: Vec<Candidate<'_>> =
            sweep.iter().map(|(id, matrix)| Candidate { id, stage: "placement", matrix }).collect();
        let found = stage_or_cell(name, &cells).map_err(|mistake| mistake.to_string())?;
        Ok(first_few(&found, &cells))
    }

    #[test]
    fn keys_stand_in_any_order_and_some_of_them_are_enough() {
        let ten = Ok("placement[mapper=linear,seed=10]".to_owned());
        assert_eq!(asked("placement[mapper=linear,seed=10]"), ten);
        assert_eq!(asked("placement[seed=10, mapper = linear]"), ten);
        assert_eq!(asked("placement[seed=10]"), ten);
        assert_eq!(asked("placement[mapper=a,b],seed=1]"), Ok("placement[mapper=a,b],seed=1]".to_owned()));
    }

    #[test]
    fn names_of_several_cells_and_of_none_are_refused() {
        assert_eq!(asked("placement[seed=1]"), Err("`placement[seed=1]` stands for 2 cells".to_owned()));
        let no_cells =
            ["placement[seed=3]", "placement[sed=1]", "placement[*]", "placement[min F]", "placement["];
        for name in no_cells {
            assert_eq!(asked(name), Err(format!("`placement` has no cell `{name}`")));
        }
        assert_eq!(asked("nothing[seed=1]"), Ok(String::new()));
    }

    #[test]
    fn a_stage_is_all_of_its_cells_in_the_order_of_their_values() {
        let first = "placement[mapper=a,b],seed=1], placement[mapper=linear,seed=1], placement[mapper=linear,seed=2], …";
        assert_eq!(asked("placement"), Ok(first.to_owned()));
    }

    #[test]
    fn an_output_is_named_before_or_behind_the_keys() {
        let split = |name| without_output(name).map(|(cell, output)| format!("{cell} {output}"));
        assert_eq!(split("a.out"), Some("a out".to_owned()));
        assert_eq!(split("a.out[x=0.5]"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5].out"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5]"), None);
    }
}
