//! Pipelines that commands build of values, and their text as a person would write it. A value may know the option that it is from, so that
//! a problem in the text names the option, and not a line that nobody has written.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use hopmap_command::{Exit, Failure};
use miette::Report;

use crate::pipeline::literal;
use crate::source::{LocatedProblem, Problems, Sink, Table};

/// Keys of a stage in the order of a file.
const KEYS: [&str; 6] = ["uses", "needs", "foreach", "with", "matrix", "save"];
/// Columns of a table in one line; a longer one has a line for each key.
const MOST_COLUMNS: usize = 120;

/// A value of a pipeline file, in TOML.
#[derive(Debug, Clone)]
pub(crate) struct Value(String);

impl<T: Into<toml::Value>> From<T> for Value {
    fn from(value: T) -> Self {
        Self(literal(&value.into()))
    }
}

/// Another value of the pipeline, such as `params.program`.
pub(crate) fn reference(name: &str) -> Value {
    Value(format!("\"${{{name}}}\""))
}

/// A path as a value.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The options that stages were built from, by the names of the stages.
pub(crate) type StageOptions = BTreeMap<String, Vec<String>>;

/// A pipeline.
#[derive(Debug, Default)]
pub(crate) struct PipelineText {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Parameters with comments.
    pub(crate) parameters: Vec<(&'static str, Value, &'static str)>,
    pub(crate) stages: Vec<StageText>,
}

/// A stage of a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct StageText {
    name: String,
    comment: &'static str,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// One of [`KEYS`].
    table: &'static str,
    /// The key in the table; empty if the value is not a table. A dot is between keys of tables in each other.
    key: String,
    value: Value,
    option: Option<&'static str>,
}

impl PipelineText {
    pub(crate) fn options(&self) -> StageOptions {
        self.stages.iter().map(|stage| (stage.name.clone(), options_of(&stage.entries))).collect()
    }

    /// Problems of the text; those of values from options as mistakes in the options.
    pub(crate) fn in_options(&self, problems: Problems) -> Failure {
        let mut said = HashSet::new();
        let report = |problem: LocatedProblem| match self.options_at(&problem) {
            options if options.is_empty() => Some(Report::new(problem)),
            options => {
                let mistake = problem.mistake(&options);
                said.insert(mistake.to_string()).then(|| mistake.into())
            }
        };
        Failure::new(Exit::Usage, problems.0.into_iter().filter_map(report).collect::<Vec<_>>())
    }

    /// The options of the value that has a problem, or of all values in a table or stage that has one.
    fn options_at(&self, problem: &LocatedProblem) -> Vec<String> {
        let root = Table::parse(problem.text(), &Sink::default());
        let of_stage = |stage: &StageText| {
            options_of(stage.entries.iter().filter(|entry| entry.has(problem, &stage.name, &root)))
        };
        self.stages.iter().flat_map(of_stage).collect()
    }
}

/// The options of values, each once.
fn options_of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let options: Vec<&str> = entries.into_iter().filter_map(|entry| entry.option).collect();
    let is_first = |(index, option): &(usize, &&str)| !options[..*index].contains(option);
    options.iter().enumerate().filter(is_first).map(|(_, option)| format!("`{option}`")).collect()
}

impl Entry {
    /// Whether a problem is at this value, at its key, or at a table or stage that has it.
    fn has(&self, problem: &LocatedProblem, stage: &str, root: &Table) -> bool {
        let keys = self.key.split('.').filter(|key| !key.is_empty());
        let (span, mut own) = (problem.span(), &(0..0));
        let mut table = Some(root);
        for (depth, key) in ["stages", stage, self.table].into_iter().chain(keys).enumerate() {
            let Some(entry) = table.and_then(|table| table.get(key)) else { return false };
            (own, table) = (&entry.node.span, entry.node.table());
            if depth > 0 && (entry.key_span == *span || own == span) {
                return true;
            }
        }
        own.start <= span.start && span.end <= own.end
    }
}

impl StageText {
    pub(crate) fn new(name: impl Into<String>, uses: &str) -> Self {
        Self { name: name.into(), comment: "", entries: Vec::new() }.put("uses", "", uses, None)
    }

    fn put(
        mut self,
        table: &'static str,
        key: &str,
        value: impl Into<Value>,
        option: Option<&'static str>,
    ) -> Self {
        self.entries.push(Entry { table, key: key.to_owned(), value: value.into(), option });
        self
    }

    pub(crate) fn comment(self, comment: &'static str) -> Self {
        Self { comment, ..self }
    }

    pub(crate) fn need(self, port: &str, selectors: impl Into<Value>) -> Self {
        self.put("needs", port, selectors, None)
    }

    pub(crate) fn each(self, stage: &str) -> Self {
        self.put("foreach", "", stage, None)
    }

    /// Sets a parameter.
    pub(crate) fn with(self, key: &str, value: impl Into<Value>) -> Self {
        self.put("with", key, value, None)
    }

    /// Sets a parameter to the value of an option, if there is one.
    pub(crate) fn given(self, option: &'static str, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.put("with", key, value, Some(option)),
            None => self,
        }
    }

    pub(crate) fn matrix(self, option: &'static str, key: &str, value: impl Into<Value>) -> Self {
        self.put("matrix", key, value, Some(option))
    }

    pub(crate) fn save(self, port: &str, file: &str) -> Self {
        self.put("save", port, file, None)
    }
}

impl Display for PipelineText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = \"{}\"\ndescription = \"{}\"", self.name, self.description)?;
        let width = self.parameters.iter().map(|(key, ..)| key.len()).max();
        if let Some(width) = width {
            writeln!(f, "\n[params]")?;
            for (key, value, comment) in &self.parameters {
                let comment = if comment.is_empty() { String::new() } else { format!("  # {comment}") };
                writeln!(f, "{key:<width$} = {}{comment}", value.0)?;
            }
        }
        self.stages.iter().try_for_each(|stage| write!(f, "\n{stage}"))
    }
}

impl Display for StageText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let of = |table: &'static str| self.entries.iter().filter(move |entry| entry.table == table);
        let width = self.entries.iter().map(|entry| entry.table.len()).max().unwrap_or_default();
        if !self.comment.is_empty() {
            writeln!(f, "# {}", self.comment)?;
        }
        writeln!(f, "[stages.{}]", self.name)?;
        for table in KEYS {
            let pairs: Vec<String> =
                of(table).map(|entry| format!("{} = {}", entry.key, entry.value.0)).collect();
            let line = match of(table).next() {
                None => continue,
                Some(entry) if entry.key.is_empty() => entry.value.0.clone(),
                Some(_) => format!("{{ {} }}", pairs.join(", ")),
            };
            match line.chars().count() > MOST_COLUMNS && pairs.len() > 1 {
                true => pairs.iter().try_for_each(|pair| writeln!(f, "{table}.{pair}"))?,
                false => writeln!(f, "{table:<width$} = {line}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Problem, Source};

    fn pipeline(own: Vec<f64>) -> PipelineText {
        let network = StageText::new("network", "topology/synthetic")
            .comment("Two hosts.")
            .given("--shape", "shape", Some("tree:${2}"))
            .given("--slots", "slots", None::<u32>)
            .given("--tp", "sizes.tp", Some(2))
            .given("--dp", "sizes.dp", Some(1e-6))
            .with("own", own);
        let trial = StageText::new("t", "run/trial").need("mappings", vec!["a", "b[*]"]).each("a");
        let trial = trial.with("program", reference("params.program")).save("mapping", "best");
        let parameters = vec![("program", "a \"b\"".into(), "as typed"), ("n", 3.into(), "")];
        PipelineText { name: "p", description: "d", parameters, stages: vec![network, trial] }
    }

    #[test]
    fn a_pipeline_reads_as_a_person_writes_it() {
        insta::assert_snapshot!(pipeline(vec![1.5]).to_string(), @r#"
        name = "p"
        description = "d"

        [params]
        program = "a \"b\""  # as typed
        n       = 3

        # Two hosts.
        [stages.network]
        uses = "topology/synthetic"
        with = { shape = "tree:$${2}", sizes.tp = 2, sizes.dp = 1e-6, own = [1.5] }

        [stages.t]
        uses    = "run/trial"
        needs   = { mappings = ["a", "b[*]"] }
        foreach = "a"
        with    = { program = "${params.program}" }
        save    = { mapping = "best" }
        "#);
        assert!(pipeline(vec![1.5; 40]).to_string().contains("\nwith.sizes.tp = 2\nwith.sizes.dp = 1e-6\n"));
    }

    #[test]
    fn a_problem_of_a_value_names_its_option_and_one_of_a_table_all_of_them() {
        for own in [vec![1.5], vec![1.5; 40]] {
            let pipeline = pipeline(own);
            let text = pipeline.to_string();
            let said = |part: &str| {
                let start = text.find(part).unwrap();
                let problem = Problem::new("it is wrong", &(start..start + part.len()));
                let problems = Source::new("p", text.clone()).tie(vec![problem.clone(), problem]);
                let reports = pipeline.in_options(problems).reports;
                assert_eq!(reports.len(), 1);
                let help = reports[0].help().map(|help| help.to_string()).unwrap_or_default();
                format!("{}, {help}", reports[0])
            };
            assert_eq!(said("\"tree:$${2}\""), "`--shape`: it is wrong, see --help");
            assert_eq!(said("tree:"), "`--shape`: it is wrong, see --help");
            assert_eq!(said("1e-6"), "`--dp`: it is wrong, see --help");
            assert_eq!(said("sizes"), "it is wrong, check `--tp`, `--dp`");
            assert_eq!(said("with"), "it is wrong, check `--shape`, `--tp`, `--dp`");
            assert_eq!(said("network"), "it is wrong, check `--shape`, `--tp`, `--dp`");
            assert_eq!(said("1.5"), "it is wrong, ");
            assert_eq!(said("\"run/trial\""), "it is wrong, ");
        }
    }
}
