//! Tables by name, and questions about them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, PoisonError};

use hopmap::source::Problem;
use polars::prelude::{DataFrame, PolarsError, PolarsResult};
use polars::sql::SQLContext;

use crate::answer::Answer;
use crate::columns::ColumnType;
use crate::error::QueryError;
use crate::records::{Record, Value, table_of};
use crate::rewrite::rewritten;
use crate::scan::{Fault, scan};
use crate::source::{Opened, Source};
use crate::statement::Question;
use crate::sum::{TOO_LARGE, functions};

/// Tables by name.
#[derive(Default)]
pub struct Tables {
    entries: BTreeMap<String, Entry>,
}

type Make = dyn Fn() -> Result<Source, QueryError> + Send + Sync;

struct Entry {
    /// The name before it was made fit for SQL.
    exact: String,
    make: Box<Make>,
    opened: OnceLock<Arc<Opened>>,
}

/// A table and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Number of its rows.
    pub rows: usize,
    /// Names and types of its columns.
    pub columns: Vec<(String, ColumnType)>,
}

/// A name as SQL takes it without quotes: letters, digits and `_`.
#[must_use]
pub fn sql_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect()
}

/// Says what is wrong with a question, as far as that can be known without the tables: their names must please `is_table`.
pub fn check(sql: &str, is_table: impl Fn(&str) -> bool, known: &[&str]) -> Result<(), Problem> {
    let question = Question::parse(sql)?;
    match question.tables.iter().find(|(name, _)| !is_table(name)) {
        Some((name, place)) => Err(unknown(name, place.clone(), known)),
        None => Ok(()),
    }
}

fn unknown(name: &str, place: std::ops::Range<usize>, known: &[&str]) -> Problem {
    Problem::new(format!("there is no table `{name}`"), &place).suggest(name, "tables", known.iter().copied())
}

impl Tables {
    /// No tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table, unless there is one of that name. Nothing is read before somebody asks.
    pub fn insert(&mut self, name: &str, source: Source) -> bool {
        self.insert_later(name, move || Ok(source.clone()))
    }

    /// Adds a table that is made when somebody asks, unless there is one of that name.
    pub fn insert_later(
        &mut self,
        name: &str,
        make: impl Fn() -> Result<Source, QueryError> + Send + Sync + 'static,
    ) -> bool {
        let entry = Entry { exact: name.to_owned(), make: Box::new(make), opened: OnceLock::new() };
        match self.entries.entry(sql_name(name)) {
            std::collections::btree_map::Entry::Occupied(_) => false,
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(entry);
                true
            }
        }
    }

    /// Names of the tables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// All tables with their columns and rows.
    pub fn list(&self) -> Result<Vec<TableInfo>, QueryError> {
        let info = |(name, entry): (&String, &Entry)| {
            let opened = entry.open()?;
            Ok(TableInfo { name: name.clone(), rows: opened.rows, columns: opened.columns.clone() })
        };
        self.entries.iter().map(info).collect()
    }

    /// Answers a question, with no more rows than wanted.
    pub fn query(&self, sql: &str, most: Option<usize>) -> Result<Answer, QueryError> {
        let question = Question::parse(sql)?;
        let Some(statement) = &question.statement else { return self.show() };
        let used = self.used(&question)?;
        let run = |ordered: bool| run(&rewritten(statement, ordered), &used, most);
        // What cannot be put into an order, such as lists, is answered without one.
        let answer = run(true).or_else(|refused| match refused {
            Refusal::Read(error) => Err(Refusal::Read(error)),
            Refusal::Polars(_) | Refusal::Panic => run(false),
        });
        answer.map_err(|refusal| match refusal {
            Refusal::Read(error) => error,
            Refusal::Polars(error) => explain(&error, &question, &used).into(),
            Refusal::Panic => {
                let problem = Problem::new("Polars cannot answer this", &question.beginning());
                problem.help("types are BIGINT, DOUBLE, BOOLEAN and TEXT").into()
            }
        })
    }

    /// `SHOW TABLES`.
    fn show(&self) -> Result<Answer, QueryError> {
        let record = |info: TableInfo| -> Record {
            let columns: Vec<&str> = info.columns.iter().map(|(name, _)| name.as_str()).collect();
            vec![
                ("table".into(), Value::Text(info.name.clone())),
                ("rows".into(), Value::Whole(info.rows as i128)),
                ("columns".into(), Value::Text(columns.join(", "))),
            ]
        };
        let records: Vec<Record> = self.list()?.into_iter().map(record).collect();
        Ok(Answer::of(vec![table_of(&records)], false))
    }

    /// The tables of a question, under the names that it has for them.
    fn used(&self, question: &Question) -> Result<BTreeMap<String, Arc<Opened>>, QueryError> {
        let mut used = BTreeMap::new();
        for (name, place) in &question.tables {
            let exact = self.entries.values().find(|entry| entry.exact == *name);
            let Some(entry) = exact.or_else(|| self.entries.get(name)) else {
                let known: Vec<&str> = self.names().collect();
                return Err(unknown(name, place.clone(), &known).into());
            };
            if !used.contains_key(name) {
                used.insert(name.clone(), entry.open()?);
            }
        }
        Ok(used)
    }
}

fn run(sql: &str, used: &BTreeMap<String, Arc<Opened>>, most: Option<usize>) -> Result<Answer, Refusal> {
    let fault = Fault::default();
    // Polars panics where a type was not built in.
    let answered = catch_unwind(AssertUnwindSafe(|| collect(sql, used, &fault, most)));
    if let Some(error) = fault.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Refusal::Read(error));
    }
    let frame = answered.map_err(|_| Refusal::Panic)?.map_err(Refusal::Polars)?;
    Answer::of_frame(&frame, most).map_err(Refusal::Polars)
}

/// Why Polars did not answer.
enum Refusal {
    Read(QueryError),
    Polars(PolarsError),
    Panic,
}

fn collect(
    sql: &str,
    used: &BTreeMap<String, Arc<Opened>>,
    fault: &Fault,
    most: Option<usize>,
) -> PolarsResult<DataFrame> {
    let mut context = SQLContext::new().with_function_registry(functions());
    for (name, table) in used {
        context.register(name, scan(Arc::clone(table), Arc::clone(fault))?);
    }
    let mut answer = context.execute(sql)?;
    answer.collect_schema()?;
    match most.and_then(|most| u32::try_from(most).ok()?.checked_add(1)) {
        Some(most) => answer.slice(0, most).collect(),
        None => answer.collect(),
    }
}

impl Entry {
    fn open(&self) -> Result<Arc<Opened>, QueryError> {
        if let Some(opened) = self.opened.get() {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(Opened::open(&(self.make)()?)?);
        Ok(Arc::clone(self.opened.get_or_init(|| opened)))
    }
}

/// What Polars says, with the place of the name that it is about.
fn explain(error: &PolarsError, question: &Question, used: &BTreeMap<String, Arc<Opened>>) -> Problem {
    let text = innermost(error);
    if text == TOO_LARGE {
        let place = question.place("sum").unwrap_or_else(|| question.beginning());
        return Problem::new(text, &place).help("SUM(CAST(… AS DOUBLE)) gives a real number");
    }
    if let Some(name) = quoted(&text).next().filter(|_| text.contains("duplicate output name")) {
        let place = question.place(name).unwrap_or_else(|| question.beginning());
        let message = format!("there are two columns `{name}`");
        return Problem::new(message, &place).help("give one another name with AS");
    }
    let found = std::iter::once(text.as_str())
        .chain(quoted(&text))
        .find_map(|name| Some((name.to_owned(), question.place(name)?)));
    match found {
        Some((name, place)) if is_about_columns(error) => {
            let columns = columns_at(&place, question, used);
            match columns.contains(&name.as_str()) {
                true if !text.starts_with("unable to find") => Problem::new(text, &place),
                true => Problem::new(format!("the column `{name}` is not known here"), &place).help(
                    "after GROUP BY only keys and aggregates are; expressions of ORDER BY must be in SELECT",
                ),
                false => unknown_column(&name, place, columns),
            }
        }
        Some((_, place)) => Problem::new(text, &place),
        None => Problem::new(text, &question.beginning()),
    }
}

/// The columns that may be used at a place: those of `table` in `table.column`, else those of all tables.
fn columns_at<'a>(
    place: &std::ops::Range<usize>,
    question: &Question,
    used: &'a BTreeMap<String, Arc<Opened>>,
) -> Vec<&'a str> {
    let table = question.before_point(place).and_then(|table| used.get(table));
    let tables = table.map_or_else(|| used.values().collect(), |table| vec![table]);
    tables.into_iter().flat_map(|table| table.columns.iter().map(|(name, _)| name.as_str())).collect()
}

fn unknown_column(name: &str, place: std::ops::Range<usize>, mut columns: Vec<&str>) -> Problem {
    let mut seen = std::collections::HashSet::new();
    columns.retain(|column| seen.insert(*column));
    let problem = Problem::new(format!("there is no column `{name}`"), &place).suggest(
        name,
        "columns",
        columns.iter().copied(),
    );
    let dotted = columns.iter().find(|column| column.split('.').any(|part| part == name));
    match dotted {
        Some(column) => Problem { label: format!("write \"{column}\", with the quotes"), ..problem },
        None => problem,
    }
}

fn is_about_columns(error: &PolarsError) -> bool {
    match error {
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => {
            is_about_columns(error)
        }
        PolarsError::ColumnNotFound(_)
        | PolarsError::SchemaFieldNotFound(_)
        | PolarsError::StructFieldNotFound(_) => true,
        PolarsError::SQLInterface(text) => text.contains("column") || text.contains("field"),
        _ => false,
    }
}

/// The message of an error without what surrounds it: plans and hints for programmers.
fn innermost(error: &PolarsError) -> String {
    match error {
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => innermost(error),
        PolarsError::ColumnNotFound(text)
        | PolarsError::SchemaFieldNotFound(text)
        | PolarsError::StructFieldNotFound(text)
        | PolarsError::SQLInterface(text)
        | PolarsError::SQLSyntax(text)
        | PolarsError::ComputeError(text)
        | PolarsError::InvalidOperation(text)
        | PolarsError::SchemaMismatch(text)
        | PolarsError::Duplicate(text)
        | PolarsError::ShapeMismatch(text) => first_line(text),
        other => first_line(&other.to_string()),
    }
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    // What follows is how to build Polars otherwise.
    line.split("; consider").next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// The quoted parts of a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\'', '"', '`']).skip(1).step_by(2)
}
