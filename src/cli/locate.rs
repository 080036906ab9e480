//! Artifacts and cells by the names that people give them: a folder, a digest, a stage, `placement[seed=1]`. Keys may come in
//! any order, and some of them are enough where they leave one cell.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Mistake, refuse, shown};
use hopmap_launchers::shell_word;
use hopmap_text::closest;
use serde_json::{Value as Json, json};

use super::open::{StoreArguments, WaitArguments, duration, existing, working_directory};
use super::output::{Output, Result};
use crate::archive;
use crate::engine::{
    self, Catalogue, Current, Garbage, OutputRecord, OutputRecords, PipelineId, Policy, RunSummary, Store,
    by_matrix, short,
};
use crate::pipeline::{Pipeline, cell_name, labels};
use crate::selector::{Choice, Extreme, Selector};

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

/// The first names; a last one takes no more room than a line about it.
fn some(mut names: Vec<String>, most: usize) -> String {
    let more = if names.len() > most + 1 { ", …" } else { "" };
    if !more.is_empty() {
        names.truncate(most);
    }
    names.join(", ") + more
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

/// Cells that a message names.
const MOST_NAMED: usize = 3;

/// A cell that a name may mean.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    /// Its pipeline, where there are several.
    pipeline: Option<&'a PipelineId>,
    id: &'a str,
    stage: &'a str,
    matrix: &'a [(String, Json)],
    /// What it gave, where that is known.
    outputs: Option<&'a OutputRecords>,
}

impl<'a> Candidate<'a> {
    fn of(id: &'a str, stage: &'a str, matrix: &'a [(String, Json)]) -> Self {
        Self { pipeline: None, id, stage, matrix, outputs: None }
    }
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
    let (name, current) = rest.map_or((name, all), |rest| (rest, of_named));
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
    if wanted == Wanted::All || is_best(cell) || !has_keys(cell) && names(&found, &cells).len() > 1 {
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

fn has_keys(name: &str) -> bool {
    name.contains('[')
}

fn is_best(name: &str) -> bool {
    Selector::parse(name).is_ok_and(|selector| matches!(selector.choice, Choice::Best { .. }))
}

/// What a name chooses among the cells that fit it; nothing if it is the name of one of them.
fn choice(name: &str, found: &[usize], cells: &[Candidate<'_>]) -> Option<Choice> {
    let is_name = found.iter().any(|&index| cells[index].id == name);
    Selector::parse(name).ok().map(|selector| selector.choice).filter(|_| !is_name)
}

/// Names of the metrics of an output.
pub(super) fn metric_names(output: &OutputRecord) -> impl Iterator<Item = &str> {
    output.metrics.keys().map(String::as_str)
}

/// The cell with the smallest or largest metric, the first of them where several have it.
fn best(found: &[usize], metric: &str, extreme: Extreme, cells: &[Candidate<'_>]) -> Result<usize, Mistake> {
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

fn stage_or_cell(name: &str, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let mut found = fitting(name, cells)?;
    if let Some(Choice::Best { metric, extreme }) = choice(name, &found, cells) {
        found = vec![best(&found, &metric, extreme, cells)?];
    }
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
fn only_one(name: &str, found: Vec<usize>, cells: &[Candidate<'_>]) -> Result<Vec<usize>, Mistake> {
    let count = names(&found, cells).len();
    if count < 2 {
        return Ok(found);
    }
    let verb = if has_keys(name) { "matches" } else { "has" };
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
fn labels_of<'a>(found: &[usize], cells: &[Candidate<'a>]) -> HashMap<usize, Vec<(&'a str, String)>> {
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

/// A name without the output in it: `placement.mapping`, `placement.mapping[seed=1]` or `placement[seed=1].mapping`.
fn without_output(name: &str) -> Option<(String, &str)> {
    let (stage, keys) = name.split_at(name.find('[').unwrap_or(name.len()));
    if let Some((stage, output)) = stage.split_once('.') {
        return Some((format!("{stage}{keys}"), output));
    }
    let end = name.rfind("].")?;
    Some((name[..=end].to_owned(), &name[end + 2..]))
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
The name of a run is its start time in UTC; other commands accept this name.

Example:
  hopmap runs --last 5")]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Show only the newest COUNT runs.
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
}

pub(crate) fn runs(arguments: &RunsArguments, output: Output) -> Result {
    let root = existing(arguments.store.root_here()?)?;
    let runs = engine::read_runs_below(&root, arguments.last.unwrap_or(usize::MAX))?;
    output.json(&runs);
    if runs.is_empty() {
        output.line("no runs yet");
    }
    runs.iter().for_each(|run| output.line(line(run)));
    Ok(Exit::Done)
}

/// The run of a name; `previous` and `-N` count back those of the pipeline that ran last.
pub(super) fn find_run<'a>(name: &str, all: &'a [RunSummary]) -> Option<&'a RunSummary> {
    let back = match name {
        "latest" => Some(0),
        "previous" => Some(1),
        _ => name.strip_prefix('-').and_then(|number| number.parse::<usize>().ok()),
    };
    let Some(back) = back else { return all.iter().find(|run| run.run == name || run.time == name) };
    let latest = all.last()?;
    let id = latest.id();
    all.iter().rev().filter(|run| run.is_of(&id)).nth(back)
}

fn line(run: &RunSummary) -> String {
    let count = |state: &str| run.stages.iter().filter(|stage| stage.state == state).count();
    let end = match (run.exit, run.seconds) {
        (Some(exit), Some(seconds)) => format!("exit {exit} after {seconds:.2} s"),
        _ => "did not end".to_owned(),
    };
    let (ran, cached, failed) = (count("ran"), count("cached"), count("failed") + count("infeasible"));
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{:<21}  {:<20} {ran} ran, {cached} cached{failed}, {end}", run.run, run.pipeline)
}

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
`hopmap run` can recompute everything that gc removes. Results that the pipelines of the store use now are always kept, and so \
is the state of an interrupted search that can continue. A pipeline is identified by its name and its file; results from \
before its last complete run are unused. Results of pipelines whose files are deleted are kept unless --gone is given.

Example:
  hopmap gc --keep-for 30d --dry-run")]
pub(crate) struct GcArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Show what would be removed, and remove nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep unused results that are younger than TIME, such as 30d.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    keep_for: Duration,
    /// Keep journals and logs of the newest COUNT runs.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    keep_runs: usize,
    /// Also remove results that only pipelines with deleted files used.
    #[arg(long)]
    gone: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

pub(crate) fn gc(arguments: &GcArguments, output: Output) -> Result {
    let root = existing(arguments.store.root_here()?)?;
    // A dry run only reads.
    let mut writer = (!arguments.dry_run).then(|| arguments.wait.writer(&root, "gc")).transpose()?;
    let mut store = Store::load(&root)?;
    let policy = Policy { keep: arguments.keep_for, runs: arguments.keep_runs, gone: arguments.gone };
    let garbage = engine::find_garbage(&store, policy)?;
    if let Some(writer) = &mut writer {
        engine::collect(&mut store, writer, &garbage)?;
    }
    output.json(&json!({
        "dry_run": arguments.dry_run,
        "results": garbage.results,
        "artifacts": garbage.artifacts.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        "states": garbage.states.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        "runs": garbage.runs.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        "forgotten": garbage.forgotten.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "gone": garbage.gone.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "bytes": garbage.bytes(),
    }));
    if output.is_talkative() {
        output.raw(listed(&garbage, &root).as_bytes());
    }
    for id in &garbage.gone {
        let why = if id.file.is_empty() { "whose file was not recorded" } else { "whose file is deleted" };
        output.note(format!("note: results of {id}, {why}, are kept until `hopmap gc --gone`"));
    }
    let verb = if arguments.dry_run { "would free" } else { "freed" };
    output.line(match garbage.is_empty() {
        true => "nothing to remove".to_owned(),
        false => format!("{verb} {} bytes", garbage.bytes()),
    });
    // The process ends: a hundred thousand records need not be freed one by one.
    std::mem::forget(store);
    Ok(Exit::Done)
}

/// Everything that is removed, one line each.
fn listed(garbage: &Garbage, root: &Path) -> String {
    let shown_root = PathBuf::from(shown(root));
    let mut text = String::new();
    garbage.forgotten.iter().for_each(|id| text.push_str(&format!("pipeline  {id}\n")));
    garbage.results.iter().for_each(|key| text.push_str(&format!("result    {}\n", short(key))));
    let groups = [("artifact", &garbage.artifacts), ("state", &garbage.states), ("run", &garbage.runs)];
    for (what, entries) in groups {
        for (path, bytes) in entries {
            let path = path.strip_prefix(root).map_or_else(|_| path.clone(), |path| shown_root.join(path));
            text.push_str(&format!("{what:<8}  {}  {bytes} bytes\n", path.display()));
        }
    }
    text
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

    #[test]
    fn an_output_is_named_before_or_behind_the_keys() {
        let split = |name| without_output(name).map(|(cell, output)| format!("{cell} {output}"));
        assert_eq!(split("a.out"), Some("a out".to_owned()));
        assert_eq!(split("a.out[x=0.5]"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5].out"), Some("a[x=0.5] out".to_owned()));
        assert_eq!(split("a[x=0.5]"), None);
    }
}
