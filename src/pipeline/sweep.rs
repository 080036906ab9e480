//! Which cells every stage has: what `foreach` gives, times `matrix`, times `zip`, without what `exclude` leaves out.

use super::embedded::{default_in, give_your_own, is_embedded};
use super::exclude::without_excluded;
use super::file::{Foreach, StageBlock};
use super::glob;
use super::matrix::{Combination, Dimension, Key, MOST_CELLS, count, grouped, of_matrix, of_zip, product};
use super::template::{Base, Folders, Resolved, Scope};
use super::{Problem, Source};

/// The matrix of a stage, multiplied out.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) keys: Vec<Key>,
    /// Number of cells.
    pub(crate) count: u128,
    /// The cells; none if something is wrong with the stage, or if the pipeline has too many.
    pub(crate) cells: Vec<Combination>,
}

/// The sweeps of all stages, in their order. What is wrong is reported, and such a stage has no cells.
pub(crate) fn sweeps(
    blocks: &[StageBlock],
    parameters: &[(String, Resolved)],
    folders: &Folders,
    source: &Source,
    problems: &mut Vec<Problem>,
) -> Vec<Sweep> {
    let scope = Scope { parameters, matrix: &[], artifact: &|_, _| None, folders };
    let made = blocks.iter().map(|_| None).collect();
    let mut sweeper = Sweeper { blocks, scope, source, made, total: 0 };
    for stage in 0..blocks.len() {
        sweeper.make_with_origins(stage, problems);
    }
    let Sweeper { made, total, .. } = sweeper;
    let mut sweeps: Vec<Sweep> = made.into_iter().map(Option::unwrap_or_default).collect();
    if total > MOST_CELLS as u128 {
        let largest = (0..blocks.len()).max_by_key(|&stage| sweeps[stage].count).unwrap_or(0);
        // A stage that is too large by itself has been reported already.
        if let Some(block) = blocks.get(largest).filter(|_| sweeps[largest].count <= MOST_CELLS as u128) {
            let message = format!("the pipeline has {} cells, more than {}", grouped(total), most());
            let problem = Problem::new(message, &block.name_span);
            problems.push(problem.label(format!("the most are here: {}", grouped(sweeps[largest].count))));
        }
        sweeps.iter_mut().for_each(|sweep| sweep.cells.clear());
    }
    sweeps
}

struct Sweeper<'a> {
    blocks: &'a [StageBlock],
    scope: Scope<'a>,
    source: &'a Source,
    made: Vec<Option<Sweep>>,
    /// Number of cells so far.
    total: u128,
}

impl Sweeper<'_> {
    /// Makes the sweep of a stage, after those that its `foreach` follows.
    fn make_with_origins(&mut self, stage: usize, problems: &mut Vec<Problem>) {
        let mut chain = vec![stage];
        while let Some(origin) = chain.last().and_then(|&last| self.origin(last)) {
            if let Some(begin) = chain.iter().position(|&other| other == origin) {
                self.report_circle(&chain[begin..], problems);
                chain.into_iter().for_each(|stage| self.made[stage] = Some(Sweep::default()));
                return;
            }
            if self.made[origin].is_some() {
                break;
            }
            chain.push(origin);
        }
        while let Some(stage) = chain.pop() {
            if self.made[stage].is_none() {
                let sweep = self.make(&self.blocks[stage], problems);
                self.total = self.total.saturating_add(sweep.count);
                self.made[stage] = Some(sweep);
            }
        }
    }

    /// The stage whose cells a stage follows.
    fn origin(&self, stage: usize) -> Option<usize> {
        match &self.blocks[stage].foreach {
            Some(Foreach::Stage { name, .. }) => self.blocks.iter().position(|block| block.name == *name),
            _ => None,
        }
    }

    fn report_circle(&self, circle: &[usize], problems: &mut Vec<Problem>) {
        let mut names: Vec<&str> = circle.iter().map(|&stage| self.blocks[stage].name.as_str()).collect();
        names.push(names[0]);
        let block = &self.blocks[circle[0]];
        let span = block.foreach.as_ref().map_or(&block.name_span, Foreach::span);
        let problem = Problem::new("`foreach` goes in a circle", span);
        problems
            .push(problem.label("part of the circle").help(format!("{} (read: follows)", names.join(" → "))));
    }

    fn make(&self, block: &StageBlock, problems: &mut Vec<Problem>) -> Sweep {
        let before = problems.len();
        let mut dimensions = Vec::new();
        if let Some(foreach) = &block.foreach {
            match self.followed(foreach, problems) {
                Some(dimension) => dimensions.push(dimension),
                None => return Sweep::default(),
            }
        }
        dimensions.extend(of_matrix(&block.matrix, &self.scope, problems));
        dimensions.extend(of_zip(&block.zip, &self.scope, problems));
        repeated_keys(&dimensions, problems);
        if problems.len() > before {
            return Sweep::default();
        }
        let count = count(&dimensions);
        let keys = dimensions.iter().flat_map(|dimension| dimension.keys.iter().cloned()).collect();
        if count > MOST_CELLS as u128 {
            problems.push(too_many(block, count, &dimensions));
            return Sweep { keys, count, cells: Vec::new() };
        }
        let is_full = self.total.saturating_add(count) > MOST_CELLS as u128;
        if is_full && block.exclude.is_empty() {
            // There are too many already; the number is all that anybody wants to know.
            return Sweep { keys, count, cells: Vec::new() };
        }
        let cells = without_excluded(product(&dimensions), &keys, &block.exclude, &self.scope, problems);
        Sweep { keys, count: cells.len() as u128, cells }
    }

    /// What `foreach` gives; `None` if there is nothing.
    fn followed(&self, foreach: &Foreach, problems: &mut Vec<Problem>) -> Option<Dimension> {
        match foreach {
            Foreach::Files { pattern, key } => self.files(pattern, key, problems),
            Foreach::Stage { name, span } => self.cells_of(name, span, problems),
            Foreach::Broken { .. } => None,
        }
    }

    fn files(
        &self,
        pattern: &super::node::Node,
        key: &Key,
        problems: &mut Vec<Problem>,
    ) -> Option<Dimension> {
        let before = problems.len();
        let Resolved { value, base } = self.scope.resolve_text(pattern, pattern.text()?, problems);
        if problems.len() > before {
            return None;
        }
        let text = super::matrix::show(&value);
        let folder = self.scope.folders.resolve(std::path::Path::new(""), base);
        let problem = match glob::find(&folder, &text) {
            Ok(files) if !files.is_empty() => {
                let row = |file: String| vec![Resolved { value: file.into(), base }];
                let rows: Vec<_> = files.into_iter().map(row).collect();
                return Some(Dimension { keys: vec![key.clone()], count: rows.len() as u128, rows });
            }
            Ok(_) => {
                let whose = match base {
                    Base::File => "the folder of the pipeline file",
                    Base::WorkingDirectory => "the working directory",
                    Base::Store => "the store",
                };
                let default = default_in(pattern, self.scope.parameters).filter(|_| is_embedded(self.source));
                let help = match default {
                    Some(name) => give_your_own(self.source.name(), std::iter::once(name), "PATTERN"),
                    None => format!("it is relative to {whose}; hidden files do not count"),
                };
                Problem::new(format!("`{text}` matches nothing"), &pattern.span).help(help)
            }
            Err(message) => Problem::new(message, &pattern.span),
        };
        problems.push(problem);
        None
    }

    fn cells_of(
        &self,
        name: &str,
        span: &std::ops::Range<usize>,
        problems: &mut Vec<Problem>,
    ) -> Option<Dimension> {
        let Some(origin) = self.blocks.iter().position(|block| block.name == name) else {
            let known = self.blocks.iter().map(|block| block.name.as_str());
            let problem = Problem::new(format!("there is no stage `{name}`"), span);
            problems.push(match name.contains(['*', '/']) {
                true => problem.help(format!("files are written as foreach = {{ glob = \"{name}\" }}")),
                false => problem.suggest(name, "stages", known),
            });
            return None;
        };
        // One without cells is broken, which has been reported.
        let sweep = self.made[origin].as_ref().filter(|sweep| sweep.count > 0)?;
        let keys = sweep.keys.iter().map(|key| Key { span: span.clone(), ..key.clone() }).collect();
        let row = |cell: &Combination| cell.iter().map(|(_, value)| value.clone()).collect();
        Some(Dimension { keys, count: sweep.count, rows: sweep.cells.iter().map(row).collect() })
    }
}

fn repeated_keys(dimensions: &[Dimension], problems: &mut Vec<Problem>) {
    let mut seen = std::collections::HashSet::new();
    for key in dimensions.iter().flat_map(|dimension| &dimension.keys) {
        if !seen.insert(&key.name) {
            let problem = Problem::new(format!("the matrix has the key `{}` twice", key.name), &key.span);
            problems
                .push(problem.help("`foreach`, `matrix` and `zip` are multiplied: each has keys of its own"));
        }
    }
}

fn too_many(block: &StageBlock, count: u128, dimensions: &[Dimension]) -> Problem {
    let factor = |dimension: &Dimension| {
        let names: Vec<&str> = dimension.keys.iter().map(|key| key.name.as_str()).collect();
        format!("{} {}", grouped(dimension.count), names.join("+"))
    };
    let factors: Vec<String> = dimensions.iter().map(factor).collect();
    // Nobody needs the exact number of atoms in the universe.
    let number = if count == u128::MAX { "far more".to_owned() } else { grouped(count) };
    let message = format!("the matrix of `{}` has {number} cells, more than {}", block.name, most());
    Problem::new(message, &block.name_span).help(factors.join(" × "))
}

fn most() -> String {
    grouped(MOST_CELLS as u128)
}
