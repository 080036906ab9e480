//! Artifacts and cells by the names that people give them: a folder, a digest, a stage, `placement[seed=1]`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hopmap_command::{Mistake, refuse, shown};
use hopmap_launchers::shell_word;
use hopmap_text::closest;

use super::candidates::{
    Candidate, MOST_NAMED, best, choice, fitting, has_keys, is_best, labels_of, names, only_one, some,
    stage_or_cell,
};
use super::open::{StoreArguments, working_directory};
use super::output::{Output, Result};
use crate::archive;
use crate::engine::{self, Catalogue, Current, OutputRecords, PipelineId, Store, short};
use crate::pipeline::{Pipeline, cell_name};
use crate::selector::Choice;

/// A folder or file that is named by its path; none if there is nothing. An archive holds many artifacts.
fn path_of(name: &str) -> Result<Option<PathBuf>> {
    let path = working_directory()?.join(name);
    if archive::looks_like_one(&path) {
        let word = shell_word(name);
        let help =
            format!("`hopmap import {word}` unpacks it as a project; `hopmap verify {word}` checks it");
        return refuse(format!("{name} is an archive of a run, not an artifact"), help);
    }
    Ok(path.exists().then_some(path))
}

/// The folder of an artifact that is named by its folder, its digest or its stage. Of a stage that was stopped early it is the best
/// result of that run, with a note.
pub(crate) fn locate_newest(name: &str, arguments: &StoreArguments, output: Output) -> Result<PathBuf> {
    if let Some(path) = path_of(name)? {
        return Ok(path);
    }
    let store = Store::load(&arguments.readable_root()?)?;
    let found = in_store(name, &store, store.all_newest())?;
    let newest = |current: &Current| store.newest(&current.key).map(|(outputs, _)| outputs);
    let artifacts = found.artifacts(&newest)?;
    if artifacts.is_empty() {
        return locate(name, arguments);
    }
    let folder = only(name, &artifacts, &store)?;
    if let (true, [cell, ..]) = (is_best(name), &*found.cells) {
        output.note(format!("`{name}` is {}", cell.name));
    }
    let is_partial =
        |cell: &FoundCell<'_>| store.newest(&cell.current.key).is_some_and(|(_, partial)| partial);
    if found.cells.iter().any(is_partial) {
        output.note(format!(
            "`{name}` was stopped early: this is its best result so far; `hopmap run` goes on"
        ));
    }
    Ok(folder)
}

/// The cells that a name means in a store, and the output that is named with them. None if it is that of a path or a digest.
pub(super) fn cells<'a>(
    name: &'a str,
    store: &'a Store,
) -> Result<Option<(Vec<FoundCell<'a>>, Option<&'a str>)>> {
    let found = found(name, store, store.all_newest(), Wanted::All)?;
    Ok((!found.cells.is_empty()).then_some((found.cells, found.output)))
}

/// The folder of an artifact that is named by its folder, its digest or its stage.
pub(crate) fn locate(name: &str, store: &StoreArguments) -> Result<PathBuf> {
    if let Some(path) = path_of(name)? {
        return Ok(path);
    }
    let store = Store::load(&store.readable_root()?)?;
    let outputs = |current: &Current| store.result(&current.key).map(|result| &result.outputs);
    let found = in_store(name, &store, store.all_current())?;
    let artifacts = found.artifacts(&outputs)?;
    match artifacts.is_empty() {
        true => of_digest(name, &store),
        false => only(name, &artifacts, &store),
    }
}

/// An artifact of a cell.
#[derive(Debug, Clone, PartialEq)]
struct Artifact<'a> {
    pipeline: &'a PipelineId,
    /// Short name of the cell.
    cell: &'a str,
    output: &'a str,
    digest: &'a str,
}

/// The artifact, if all of them have one digest.
fn only(name: &str, artifacts: &[Artifact<'_>], store: &Store) -> Result<PathBuf> {
    const MOST: usize = 6;
    let mut seen = BTreeSet::new();
    let distinct = artifacts.iter().filter(|artifact| seen.insert(artifact.digest));
    let distinct: Vec<Artifact<'_>> = distinct.cloned().collect();
    if let [artifact] = distinct.as_slice() {
        return Ok(store.artifact(artifact.digest));
    }
    let help = format!("name one: {}", some(typed(&distinct), MOST));
    refuse(format!("`{name}` matches {} artifacts", distinct.len()), help)
}

/// Names of artifacts to type: the pipeline, the cell, and the output, as far as needed to distinguish them.
fn typed(artifacts: &[Artifact<'_>]) -> Vec<String> {
    let has_several = |of: &dyn Fn(&Artifact<'_>) -> String| {
        artifacts.iter().map(of).collect::<BTreeSet<String>>().len() > 1
    };
    let several_pipelines = has_several(&|artifact| artifact.pipeline.to_string());
    let several_outputs = has_several(&|artifact| artifact.output.to_owned());
    let is_alone = |id: &PipelineId| {
        artifacts.iter().all(|other| other.pipeline == id || other.pipeline.name != id.name)
            || id.file.is_empty()
    };
    let name = |artifact: &Artifact<'_>| {
        let id = artifact.pipeline;
        let pipeline = if is_alone(id) { &id.name } else { &id.file };
        let begin = if several_pipelines { format!("{pipeline}:") } else { String::new() };
        let end = if several_outputs { format!(".{}", artifact.output) } else { String::new() };
        format!("{begin}{}{end}", artifact.cell)
    };
    artifacts.iter().map(name).collect()
}

/// The artifact whose digest begins so.
fn of_digest(name: &str, store: &Store) -> Result<PathBuf> {
    let is_digest = name.len() >= 4 && name.chars().all(|letter| letter.is_ascii_hexdigit());
    let digests: BTreeSet<&str> =
        store.digests().filter(|digest| is_digest && digest.starts_with(name)).collect();
    match digests.len() {
        0 => refuse(
            format!("there is no artifact, digest or stage `{name}`"),
            format!("stages of {}: {}", shown(store.root()), stage_names(store)),
        ),
        1 => Ok(store.artifact(digests.first().copied().unwrap_or_default())),
        several => {
            let names = digests.into_iter().map(|digest| short(digest).to_owned()).collect();
            refuse(
                format!("`{name}` matches {several} artifacts"),
                format!("name one by more digits: {}", some(names, MOST_NAMED)),
            )
        }
    }
}

fn stage_names(store: &Store) -> String {
    let mut names: Vec<&str> = store.all_newest().map(|(_, _, current)| current.stage.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(20);
    if names.is_empty() { "none yet".to_owned() } else { names.join(", ") }
}

/// Indexes of the cells of a pipeline: all of a stage, or the one of a name. None if there is no such stage.
pub(crate) fn in_pipeline(name: &str, pipeline: &Pipeline) -> Result<Vec<usize>, Mistake> {
    let cells = pipeline.cells.iter();
    let cells = cells.map(|cell| Candidate::of(&cell.id, &cell.stage, &cell.matrix));
    stage_or_cell(name, &cells.collect::<Vec<_>>())
}

/// A name that no stage of a pipeline has; `whose` is what messages call it.
pub(crate) fn unknown_stage(whose: &str, pipeline: &Pipeline, name: &str) -> Mistake {
    let stages = pipeline.stages();
    let meant = closest(name, &stages).map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    let help = format!("{meant}stages: {}", stages.join(", "));
    Mistake::new(format!("{whose} has no stage `{name}`"), help)
}

/// The same of the cells of a catalogue.
pub(crate) fn in_catalogue(name: &str, catalogue: &Catalogue) -> Result<Vec<usize>, Mistake> {
    let cells = catalogue.cells.iter().map(|cell| {
        let outputs = cell.result.as_ref().map(|result| &result.outputs);
        Candidate { outputs, ..Candidate::of(&cell.id, &cell.stage, &cell.matrix) }
    });
    stage_or_cell(name, &cells.collect::<Vec<_>>())
}

/// A cell of a store.
pub(crate) struct FoundCell<'a> {
    pub(super) pipeline: &'a PipelineId,
    pub(crate) id: &'a str,
    /// Short name.
    name: String,
    /// Keys that distinguish it from the others of its stage, and their values as names have them.
    labels: Vec<(&'a str, String)>,
    pub(crate) current: &'a Current,
}

impl FoundCell<'_> {
    /// What distinguishes it from the others of its stage.
    pub(super) fn label(&self) -> Vec<(String, String)> {
        self.labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }
}

/// What a name means in a store.
pub(crate) struct Found<'a> {
    pub(crate) cells: Vec<FoundCell<'a>>,
    /// The output that is named with them.
    output: Option<&'a str>,
}

impl Found<'_> {
    /// What the cells gave: the named output, or all of them.
    fn artifacts<'s>(
        &'s self,
        outputs: &dyn Fn(&Current) -> Option<&'s OutputRecords>,
    ) -> Result<Vec<Artifact<'s>>, Mistake> {
        let of_cell = |FoundCell { pipeline, name: cell, current, .. }: &'s FoundCell<'_>| {
            let outputs = outputs(current).into_iter().flat_map(|outputs| outputs.iter());
            outputs.map(|(output, record)| Artifact { pipeline, cell, output, digest: &record.digest })
        };
        let all: Vec<Artifact<'s>> = self.cells.iter().flat_map(of_cell).collect();
        let Some(wanted) = self.output else { return Ok(all) };
        let of_output: Vec<Artifact<'s>> =
            all.iter().filter(|artifact| artifact.output == wanted).cloned().collect();
        if of_output.is_empty() && !all.is_empty() {
            let mut known: Vec<&str> = all.iter().map(|artifact| artifact.output).collect();
            known.sort_unstable();
            known.dedup();
            let message = format!("`{}` has no output `{wanted}`", all[0].cell);
            return Err(Mistake::new(message, format!("its outputs: {}", known.join(", "))));
        }
        Ok(of_output)
    }
}

/// The cells of one name among those of a store. The name may begin with a pipeline and end with an output:
/// `place:placement[seed=1].mapping`. No cells if there is no such stage.
pub(crate) fn in_store<'a>(
    name: &'a str,
    store: &'a Store,
    current: impl Iterator<Item = (&'a PipelineId, &'a str, &'a Current)>,
) -> Result<Found<'a>, Mistake> {
    found(name, store, current, Wanted::One)
}

/// Whether several cells may have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    One,
    All,
}

fn found<'a>(
    name: &'a str,
    store: &'a Store,
    current: impl Iterator<Item = (&'a PipelineId, &'a str, &'a Current)>,
    wanted: Wanted,
) -> Result<Found<'a>, Mistake> {
    let all: Vec<(&PipelineId, &str, &Current)> = current.collect();
    let of_named = all.iter().filter(|(id, ..)| id.strip(name).is_some()).copied();
    let of_named: Vec<(&PipelineId, &str, &Current)> = of_named.collect();
    let rest = of_named.iter().find_map(|(id, ..)| id.strip(name));
    let (name, mut current) = rest.map_or((name, all), |rest| (rest, of_named));
    if wanted == Wanted::All {
        let stage = name.split(['[', '.']).next().unwrap_or_default();
        let of_stage = (0..current.len()).filter(|&index| current[index].2.stage == stage).collect();
        let newest = of_newest(of_stage, &current, store).first().map(|&index| current[index].0);
        current.retain(|(id, ..)| newest.is_none_or(|newest| *id == newest));
    }
    let cells: Vec<Candidate<'_>> = current
        .iter()
        .map(|&(id, cell, current)| {
            let outputs = store.newest(&current.key).map(|(outputs, _)| outputs);
            Candidate { pipeline: Some(id), outputs, ..Candidate::of(cell, &current.stage, &current.matrix) }
        })
        .collect();
    let split = without_output(name).filter(|_| cells.iter().all(|cell| cell.id != name));
    let (cell, output) = split.as_ref().map_or((name, None), |(cell, output)| (cell.as_str(), Some(*output)));
    let mut found = fitting(cell, &cells)?;
    // Metrics of different programs are not compared.
    if is_best(cell) || !has_keys(cell) && names(&found, &cells).len() > 1 {
        found = of_newest(found, &current, store);
    }
    if let Some(Choice::Best { metric, extreme }) = choice(cell, &found, &cells) {
        found = vec![best(&found, &metric, extreme, &cells)?];
    }
    let found = if wanted == Wanted::One { only_one(cell, found, &cells)? } else { found };
    let mut labels = labels_of(&found, &cells);
    let cells = found.into_iter().map(|index| {
        let (pipeline, id, current) = current[index];
        let labels = labels.remove(&index).unwrap_or_default();
        FoundCell { pipeline, id, name: cell_name(&current.stage, &labels), labels, current }
    });
    Ok(Found { cells: cells.collect(), output })
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

    #[test]
    fn an_output_is_named_before_or_behind_the_keys() {
        let split = |name| without_output(name).map(|(cell, output)| format!("{cell} {output}"));
        assert_eq!(split("a.out"), Some("a out".to_owned()));
        assert_eq!(split("a.out[x=0.5]"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5].out"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5]"), None);
    }
}
