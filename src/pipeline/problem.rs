//! What is wrong with a pipeline file, and where.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::ops::Range;
use std::sync::Arc;

use hopmap_text::closest;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::{Deserialize, Serialize};

/// Of problems at one place that differ only in what they name.
const MOST_ALIKE: usize = 3;

/// One thing that is wrong, not yet tied to a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What to say at that place.
    pub label: String,
    /// How to mend it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem at a place.
    pub fn new(message: impl Into<String>, span: &Range<usize>) -> Self {
        Self { message: message.into(), span: span.clone(), label: "here".into(), help: None }
    }

    /// Says something at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Suggests the name that was probably meant, and lists the others.
    #[must_use]
    pub fn suggest<'a>(self, wrong: &str, what: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let meant = closest(wrong, &known);
        let problem = match meant {
            Some(meant) => self.label(format!("did you mean `{meant}`?")),
            None => self,
        };
        match known.is_empty() {
            true => problem,
            false => problem.help(format!("{what}: {}", known.join(", "))),
        }
    }
}

/// A text that people wrote: a pipeline file, or the values of a command line.
#[derive(Debug, Clone)]
pub struct Source(Arc<NamedSource<String>>);

impl Source {
    /// A text and the name under which people know it.
    pub fn new(name: impl AsRef<str>, text: impl Into<String>) -> Self {
        Self(Arc::new(NamedSource::new(name, text.into())))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.inner()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The name without its folder and extension.
    pub(crate) fn stem(&self) -> String {
        let stem = std::path::Path::new(self.name()).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Ties problems to this text, in the order of their places, each once.
    #[must_use]
    pub fn tie(&self, mut problems: Vec<Problem>) -> Problems {
        problems.sort_by_key(|problem| problem.span.start);
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert(problem.clone()));
        // A fault that every cell of a large matrix has again, with other values, is told by its first cells.
        let mut alike: HashMap<_, usize> = HashMap::new();
        problems.retain(|Problem { span, label, help, .. }| {
            let count = alike.entry((span.clone(), label.clone(), help.clone())).or_default();
            *count += 1;
            *count <= MOST_ALIKE
        });
        let problems =
            problems.into_iter().map(|problem| LocatedProblem { problem, source: self.clone() }).collect();
        Problems(problems)
    }
}

/// Everything that is wrong with one text; at least one thing.
#[derive(Debug)]
pub struct Problems(pub Vec<LocatedProblem>);

/// A problem and the text it is in.
#[derive(Debug, Clone)]
pub struct LocatedProblem {
    problem: Problem,
    source: Source,
}

impl LocatedProblem {
    /// File, line, problem and help in one line of text.
    #[must_use]
    pub fn one_line(&self) -> String {
        let Problem { message, span, help, .. } = &self.problem;
        let before = self.source.text().get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let help = help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{}:{line}: {message}{help}", self.source.name())
    }
}

impl Display for LocatedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for LocatedProblem {}

impl Diagnostic for LocatedProblem {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source.0)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Range { start, end } = self.problem.span;
        let label = LabeledSpan::new(Some(self.problem.label.clone()), start, end - start);
        Some(Box::new(std::iter::once(label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_suggested_and_a_strange_one_is_not() {
        assert_eq!(closest("shap", &["costs", "shape"]), Some("shape"));
        assert_eq!(closest("annealling", &["linear", "annealing"]), Some("annealing"));
        assert_eq!(closest("f", &["T", "F"]), Some("F"));
        assert_eq!(closest("qqq", &["costs", "shape"]), None);
    }

    #[test]
    fn what_is_wrong_with_every_cell_is_told_by_the_first() {
        let one = |number: usize| Problem::new(format!("cell {number}"), &(0..1));
        let other = Problem::new("another", &(0..1)).label("there");
        let problems = Source::new("p", "text").tie((0..1000).map(one).chain([other]).collect());
        let told: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["cell 0", "cell 1", "cell 2", "another"]);
    }
}
