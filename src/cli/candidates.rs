//! Which of several cells a name means: `placement[seed=1]`. Keys may come in any order, and some of them are enough where they
//! leave one cell.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_command::Mistake;
use hopmap_text::closest;
use serde_json::Value as Json;

use crate::engine::{OutputRecord, OutputRecords, PipelineId, by_matrix};
use crate::pipeline::{cell_name, labels};
use crate::selector::{Choice, Extreme, Selector};

/// Cells that a message names.
pub(super) const MOST_NAMED: usize = 3;

/// A cell that a name may mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// Its pipeline, where there are several.
    pub(super) pipeline: Option<&'a PipelineId>,
    pub(super) id: &'a str,
    pub(super) stage: &'a str,
    pub(super) matrix: &'a [(String, Json)],
    /// What it gave, where that is known.
    pub(super) outputs: Option<&'a OutputRecords>,
}

impl<'a> Candidate<'a> {
    pub(super) fn of(id: &'a str, stage: &'a str, matrix: &'a [(String, Json)]) -> Self {
        Self { pipeline: None, id, stage, matrix, outputs: None }
    }
}

pub(super) fn has_keys(name: &str) -> bool {
    name.contains('[')
}

pub(super) fn is_best(name: &str) -> bool {
    Selector::parse(name).is_ok_and(|selector| matches!(selector.choice, Choice::Best { .. }))
}

/// What a name chooses among the cells that fit it; nothing if it is the name of one of them.
pub(super) fn choice(name: &str, found: &[usize], cells: &[Candidate<'_>]) -> Option<Choice> {
    let is_name = found.iter().any(|&index| cells[index].id == name);
    Selector::parse(name).ok().map(|selector| selector.choice).filter(|_| !is_name)
}

/// Names of the metrics of an output.
pub(super) fn metric_names(output: &OutputRecord) -> impl Iterator<Item = &str> {
    output.metrics.keys().map(String::as_str)
}

/// The cell with the smallest or largest metric, the first of them where several have it.
pub(super) fn best(
    found: &[usize],
    metric: &str,
    extreme: Extreme,
    cells: &[Candidate<'_>],
) -> Result<usize, Mistake> {
    let outputs = |index: usize| cells[index].outputs.into_iter().flat_map(|outputs| outputs.values());
    let value = |&index: &usize| outputs(index).find_map(|output| output.metrics.get(metric)).copied();
    let mut best: Option<(usize, f64)> = None;
    for index in in_order(found, cells) {
        let Some(value) = value(&index) else { continue };
        let wins = best.is_none_or(|(_, best)| match extreme {
            Extreme::Min => value < best,
            Extreme::Max => value > best,
        });
        best = if wins { Some((index, value)) } else { best };
    }
    best.map(|(index, _)| index).ok_or_else(|| {
        let stage = found.first().map_or("", |&index| cells[index].stage);
        let known: BTreeSet<&str> =
            found.iter().flat_map(|&index| outputs(index)).flat_map(metric_names).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let help = match (closest(metric, &known), known.is_empty()) {
            (_, true) => "it has no results here".to_owned(),
            (Some(meant), _) => format!("did you mean `{meant}`? its metrics: {}", known.join(", ")),
            (None, _) => format!("its metrics: {}", known.join(", ")),
        };
        Mistake::new(format!("`{stage}` has no metric `{metric}`"), help)
    })
}

pub(super) fn stage_or_cell(name: &str, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let mut found = fitting(name, cells)?;
    if let Some(Choice::Best { metric, extreme }) = choice(name, &found, cells) {
        found = vec![best(&found, &metric, extreme, cells)?];
    }
    if has_keys(name) { only_one(name, found, cells) } else { Ok(found) }
}

/// The cells of a name: of exactly this one, else of this stage, else of the stage with these values. None if there is no such stage.
pub(super) fn fitting(name: &str, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let exact = all(cells, |cell| cell.id == name);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let stage = name.split_once('[').map_or(name, |(stage, _)| stage).trim();
    let of_stage = all(cells, |cell| cell.stage == stage);
    if of_stage.is_empty() || !has_keys(name) {
        return Ok(of_stage);
    }
    let selector = Selector::parse(name).ok();
    let fits = |index: &usize| selector.as_ref().is_some_and(|selector| selector.fits(cells[*index].matrix));
    let mut found: Vec<usize> = of_stage.iter().copied().filter(fits).collect();
    if found.is_empty() {
        // Values as they are shown, such as parts of paths.
        let labels = labels_of(&of_stage, cells);
        let text = |(key, value): &(&str, String)| ((*key).to_owned(), Json::String(value.clone()));
        let label = |index: &usize| labels[index].iter().map(text).collect::<Vec<_>>();
        let fits = |index: &usize| selector.as_ref().is_some_and(|selector| selector.fits(&label(index)));
        found = of_stage.iter().copied().filter(fits).collect();
    }
    let help = || format!("its cells: {}", first_few(&of_stage, cells));
    let mistake = || Mistake::new(format!("`{stage}` has no cell `{name}`"), help());
    if found.is_empty() { Err(mistake()) } else { Ok(found) }
}

fn all(cells: &[Candidate<'_>], fits: impl Fn(&Candidate<'_>) -> bool) -> Vec<usize> {
    (0..cells.len()).filter(|&index| fits(&cells[index])).collect()
}

/// The cells, if they have one name.
pub(super) fn only_one(
    name: &str,
    found: Vec<usize>,
    cells: &[Candidate<'_>],
) -> Result<Vec<usize>, Mistake> {
    let count = names(&found, cells).len();
    if count < 2 {
        return Ok(found);
    }
    let verb = if has_keys(name) { "matches" } else { "has" };
    let help = format!("name one: {}", first_few(&found, cells));
    Err(Mistake::new(format!("`{name}` {verb} {count} cells"), help))
}

pub(super) fn names<'a>(found: &[usize], cells: &[Candidate<'a>]) -> BTreeSet<&'a str> {
    found.iter().map(|&index| cells[index].id).collect()
}

/// The first names in the order of their values: `seed=2` before `seed=10`.
fn first_few(found: &[usize], cells: &[Candidate<'_>]) -> String {
    let found = in_order(found, cells);
    let labels = labels_of(&found, cells);
    let mut names: Vec<String> =
        found.iter().map(|index| cell_name(cells[*index].stage, &labels[index])).collect();
    names.dedup();
    some(names, MOST_NAMED)
}

fn in_order(found: &[usize], cells: &[Candidate<'_>]) -> Vec<usize> {
    let mut found = found.to_vec();
    found.sort_by(|&one, &other| {
        let (one, other) = (cells[one], cells[other]);
        by_matrix(one.matrix, other.matrix).then_with(|| one.id.cmp(other.id))
    });
    found
}

/// What distinguishes each cell from the others of its stage in its pipeline.
pub(super) fn labels_of<'a>(
    found: &[usize],
    cells: &[Candidate<'a>],
) -> HashMap<usize, Vec<(&'a str, String)>> {
    let mut groups: BTreeMap<(Option<&PipelineId>, &str), Vec<usize>> = BTreeMap::new();
    let wanted: BTreeSet<&str> = found.iter().map(|&index| cells[index].stage).collect();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| wanted.contains(cell.stage)) {
        groups.entry((cell.pipeline, cell.stage)).or_default().push(index);
    }
    let of_group = |group: Vec<usize>| {
        let pairs =
            |&index: &usize| cells[index].matrix.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let labels = labels(&group.iter().map(pairs).collect::<Vec<_>>());
        group.into_iter().zip(labels)
    };
    groups.into_values().flat_map(of_group).collect()
}

/// The first names; a last one takes no more room than a line about it.
pub(super) fn some(mut names: Vec<String>, most: usize) -> String {
    let more = if names.len() > most + 1 { ", …" } else { "" };
    if !more.is_empty() {
        names.truncate(most);
    }
    names.join(", ") + more
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
            sweep.iter().map(|(id, matrix)| Candidate::of(id, "placement", matrix)).collect();
        let found = stage_or_cell(name, &cells).map_err(|mistake| mistake.to_string())?;
        Ok(first_few(&found, &cells))
    }

    #[test]
    fn keys_may_be_in_any_order_and_some_of_them_are_enough() {
        let ten = Ok("placement[mapper=linear,seed=10]".to_owned());
        assert_eq!(asked("placement[mapper=linear,seed=10]"), ten);
        assert_eq!(asked("placement[seed=10, mapper = linear]"), ten);
        assert_eq!(asked("placement[seed=10]"), ten);
        assert_eq!(asked("placement[mapper=a,b],seed=1]"), Ok("placement[mapper=a,b],seed=1]".to_owned()));
    }

    #[test]
    fn names_of_several_cells_and_of_none_are_refused() {
        assert_eq!(asked("placement[seed=1]"), Err("`placement[seed=1]` matches 2 cells".to_owned()));
        assert_eq!(asked("placement[*]"), Err("`placement[*]` matches 4 cells".to_owned()));
        assert_eq!(asked("placement[min F]"), Err("`placement` has no metric `F`".to_owned()));
        for name in ["placement[seed=3]", "placement[sed=1]", "placement[seed=3, min F]", "placement["] {
            assert_eq!(asked(name), Err(format!("`placement` has no cell `{name}`")));
        }
        assert_eq!(asked("nothing[seed=1]"), Ok(String::new()));
    }

    #[test]
    fn the_best_cell_is_the_first_with_the_smallest_or_largest_metric() {
        let (sweep, costs) = (sweep(), [3.0, 1.0, 1.0, 2.0]);
        let output =
            |cost| OutputRecord { metrics: [("F".to_owned(), cost)].into(), ..OutputRecord::default() };
        let outputs = costs
            .map(|cost| OutputRecords::new([("mapping".to_owned(), output(cost))].into_iter().collect()));
        let cells = sweep.iter().zip(&outputs).map(|((id, matrix), outputs)| Candidate {
            outputs: Some(outputs),
            ..Candidate::of(id, "placement", matrix)
        });
        let cells: Vec<Candidate<'_>> = cells.collect();
        let asked = |name| stage_or_cell(name, &cells).map(|found| first_few(&found, &cells)).unwrap();
        assert_eq!(asked("placement[min F]"), "placement[mapper=linear,seed=2]");
        assert_eq!(asked("placement[seed=1, max F]"), "placement[mapper=linear,seed=1]");
    }

    #[test]
    fn a_stage_is_all_of_its_cells_in_the_order_of_their_values() {
        let first = "placement[mapper=a,b],seed=1], placement[mapper=linear,seed=1], placement[mapper=linear,seed=2], placement[mapper=linear,seed=10]";
        assert_eq!(asked("placement"), Ok(first.to_owned()));
    }
}
