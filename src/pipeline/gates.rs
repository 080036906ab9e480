//! `[gates]`: what the results of a pipeline have to keep, each metric tied to its cells.

use std::collections::HashMap;
use std::ops::Range;

use hopmap_model::{Direction, Port};

use super::cells::Cell;
use super::file::StageBlock;
use super::template::Scope;
use crate::gates::{Bound, Cells, Choice, FORM, Formula, Gate, Term};
use crate::selector::show;
use crate::source::{Entry, Problem, Sink, Table, wrong_form};

/// All gates of a file whose cells are known.
pub(crate) fn gates(
    table: &Table,
    cells: &[Cell],
    blocks: &[StageBlock],
    scope: &Scope<'_>,
    source: &str,
) -> Vec<Gate> {
    let mut by_stage: HashMap<&str, Vec<usize>> = HashMap::new();
    cells.iter().enumerate().for_each(|(index, cell)| by_stage.entry(&cell.stage).or_default().push(index));
    let binder = Binder { cells, blocks, by_stage, problems: scope.problems };
    let gate = |entry: &Entry| {
        let (formula, places) = read(entry, scope, source)?;
        let bounds = binder.bounds(&formula, places)?;
        Some(Gate { name: entry.key.clone(), formula, bounds })
    };
    table.entries.iter().filter_map(gate).collect()
}

/// The formula of a gate and the places of its terms in the file.
fn read(entry: &Entry, scope: &Scope<'_>, source: &str) -> Option<(Formula, Vec<Range<usize>>)> {
    let span = &entry.node.span;
    let Some(text) = entry.node.text() else {
        return scope.problems.refuse(wrong_form("a gate", "text", &entry.node).help(FORM));
    };
    let before = scope.problems.count();
    let resolved = show(&scope.resolve_text(&entry.node, text).value);
    if scope.problems.count() > before {
        return None;
    }
    // Within a literal text of the file, places are known to the letter.
    let is_plain = source.get(span.start + 1..span.end.saturating_sub(1)) == Some(resolved.as_str());
    let place = |inner: Range<usize>| match is_plain {
        true => span.start + 1 + inner.start..span.start + 1 + inner.end,
        false => span.clone(),
    };
    let found =
        Formula::parse(&resolved).map(|(formula, places)| (formula, places.into_iter().map(place).collect()));
    let problem = match found {
        Ok((formula, places)) => match fault(&formula) {
            None => return Some((formula, places)),
            Some(fault) => Problem::new(fault, span).help(FORM),
        },
        Err(problem) => Problem { span: place(problem.span.clone()), ..problem },
    };
    scope.problems.refuse(problem)
}

/// The error of a gate that is well-formed but has no meaning.
fn fault(formula: &Formula) -> Option<&'static str> {
    let Formula { left, right, terms, .. } = formula;
    match () {
        () if left.needs_accepted() => {
            Some("`accepted` is the accepted value of the left side, and belongs on the right")
        }
        () if terms.is_empty() => Some("this gate is about no metric"),
        () if right.needs_accepted() && left.terms().is_empty() => {
            Some("nothing on the left side of this gate can be accepted")
        }
        () => None,
    }
}

struct Binder<'a> {
    cells: &'a [Cell],
    blocks: &'a [StageBlock],
    by_stage: HashMap<&'a str, Vec<usize>>,
    problems: &'a Sink,
}

impl Binder<'_> {
    /// The cells of every term of a gate.
    fn bounds(&self, formula: &Formula, places: Vec<Range<usize>>) -> Option<Vec<Bound>> {
        let terms = formula.terms.iter().zip(places);
        let bounds: Vec<Bound> = terms.filter_map(|(term, place)| self.bound(term, place)).collect();
        if bounds.len() < formula.terms.len() { None } else { self.paired(&formula.terms, bounds) }
    }

    fn bound(&self, term: &Term, place: Range<usize>) -> Option<Bound> {
        let cells = self.candidates(term, &place)?;
        let output = self.output(term, &cells, &place)?;
        let stage = &term.stage;
        let cells = match (term.function, &term.choice) {
            (None, Choice::Paired | Choice::Where(_)) => Cells::Each(cells),
            (_, Choice::Best { .. }) | (Some(_), Choice::All | Choice::Where(_)) => Cells::Together(cells),
            (None, Choice::All) => {
                let problem = Problem::new(format!("`{stage}[*]` matches {} cells", cells.len()), &place);
                let help =
                    format!("aggregate the cells: max({term}), min({term}), mean({term}) or median({term})");
                return self.problems.refuse(problem.label("which value?").help(help));
            }
            (Some(function), Choice::Paired) => {
                let problem = Problem::new(format!("`{}` takes several cells", function.name()), &place);
                let all = Term { choice: Choice::All, ..term.clone() };
                return self.problems.refuse(problem.help(format!("write {all} for all of them")));
            }
        };
        Some(Bound { place, output, cells })
    }

    /// The cells that a term may mean; at least one.
    fn candidates(&self, term: &Term, place: &Range<usize>) -> Option<Vec<usize>> {
        let stage = term.stage.as_str();
        let Some(cells) = self.by_stage.get(stage) else {
            // A stage without cells has a problem of its own.
            if !self.blocks.iter().any(|block| block.name == stage) {
                let known = self.blocks.iter().map(|block| block.name.as_str());
                let problem = Problem::new(format!("there is no stage `{stage}`"), place);
                self.problems.push(problem.suggest(stage, "stages", known));
            }
            return None;
        };
        let Choice::Where(asked) = &term.choice else { return Some(cells.clone()) };
        let value = |cell: usize, key: &str| {
            let found = self.cells[cell].matrix.iter().find(|(name, _)| name == key);
            found.map(|(_, value)| show(value))
        };
        for (key, wanted) in asked {
            let known: Vec<&str> = self.cells[cells[0]].matrix.iter().map(|(key, _)| key.as_str()).collect();
            if !known.contains(&key.as_str()) {
                let problem = Problem::new(format!("`{stage}` has no matrix key `{key}`"), place);
                return self.problems.refuse(problem.suggest(key, "its matrix keys", known));
            }
            let mut values: Vec<String> = cells.iter().filter_map(|&cell| value(cell, key)).collect();
            if !values.contains(wanted) {
                values.dedup();
                values.truncate(20);
                let problem = Problem::new(format!("no cell of `{stage}` has {key}={wanted}"), place);
                let known = values.iter().map(String::as_str);
                return self.problems.refuse(problem.suggest(wanted, &format!("values of {key}"), known));
            }
        }
        let fits =
            |&cell: &usize| asked.iter().all(|(key, wanted)| value(cell, key).as_ref() == Some(wanted));
        let found: Vec<usize> = cells.iter().copied().filter(fits).collect();
        if found.is_empty() {
            let problem = Problem::new(format!("`{stage}` has no such cell"), place);
            let help = format!("one of its cells is {}", self.cells[cells[0]].id);
            return self.problems.refuse(problem.help(help));
        }
        Some(found)
    }

    /// The output that a term names, or the only one.
    fn output(&self, term: &Term, cells: &[usize], place: &Range<usize>) -> Option<&'static str> {
        let entry = self.cells[*cells.first()?].entry;
        let outputs: Vec<&'static Port> = entry.ports(Direction::Out).collect();
        let names = outputs.iter().map(|port| port.name);
        let problem = match &term.port {
            None if outputs.len() == 1 => return Some(outputs[0].name),
            None => Problem::new(format!("{} has several outputs", entry.kind), place)
                .suggest("", "outputs", names)
                .label(format!("write {}.PORT.{}", term.stage, term.metric)),
            Some(wanted) => match outputs.iter().find(|port| port.name == wanted) {
                Some(port) => return Some(port.name),
                None => Problem::new(format!("{} has no output `{wanted}`", entry.kind), place)
                    .suggest(wanted, "outputs", names),
            },
        };
        self.problems.refuse(problem)
    }

    /// Terms with a value for each cell, put beside each other: the one with the most matrix keys leads, and every one of
    /// its cells has to find exactly one cell of each other term.
    fn paired(&self, terms: &[Term], mut bounds: Vec<Bound>) -> Option<Vec<Bound>> {
        let keys = |index: usize| match &bounds[index].cells {
            Cells::Each(cells) => {
                let asked: &[(String, String)] =
                    if let Choice::Where(pairs) = &terms[index].choice { pairs } else { &[] };
                let matrix = self.cells[cells[0]].matrix.iter().map(|(key, _)| key.as_str());
                Some(matrix.filter(|key| asked.iter().all(|(asked, _)| asked != key)).collect::<Vec<&str>>())
            }
            Cells::Together(_) => None,
        };
        let each: Vec<(usize, Vec<&str>)> =
            (0..bounds.len()).filter_map(|index| Some((index, keys(index)?))).collect();
        // Of several with as many keys the first leads.
        let Some((lead, lead_keys)) = each.iter().rev().max_by_key(|(_, keys)| keys.len()) else {
            return Some(bounds);
        };
        let leading = bounds[*lead].cells.indexes().to_vec();
        for (index, keys) in each.iter().filter(|(index, _)| index != lead) {
            let shared: Vec<&str> = keys.iter().copied().filter(|key| lead_keys.contains(key)).collect();
            let mut groups: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
            for &cell in bounds[*index].cells.indexes() {
                groups.entry(self.values(cell, &shared)).or_default().push(cell);
            }
            let mut partners = Vec::with_capacity(leading.len());
            for &cell in &leading {
                let fitting = groups.get(&self.values(cell, &shared)).map_or(&[][..], Vec::as_slice);
                let [partner] = fitting else {
                    let problem = self.unpaired(&terms[*index], cell, fitting, &bounds[*index].place);
                    return self.problems.refuse(problem);
                };
                partners.push(*partner);
            }
            bounds[*index].cells = Cells::Each(partners);
        }
        Some(bounds)
    }

    fn values(&self, cell: usize, keys: &[&str]) -> Vec<String> {
        let matrix = &self.cells[cell].matrix;
        let value = |key: &&str| {
            matrix.iter().find(|(name, _)| name == key).map_or_else(String::new, |(_, value)| show(value))
        };
        keys.iter().map(value).collect()
    }

    fn unpaired(&self, term: &Term, cell: usize, fitting: &[usize], place: &Range<usize>) -> Problem {
        let (stage, beside) = (&term.stage, &self.cells[cell].id);
        match fitting.first() {
            None => Problem::new(format!("no cell of `{stage}` pairs with `{beside}`"), place)
                .help("cells pair up by equal matrix keys"),
            Some(&first) => {
                let best = format!("{stage}[min {}]", term.metric);
                Problem::new(format!("{} cells of `{stage}` pair with `{beside}`", fitting.len()), place)
                    .label("which one?")
                    .help(format!(
                        "choose: {best}, max({stage}[*].{}), or {}",
                        term.metric, self.cells[first].id
                    ))
            }
        }
    }
}
