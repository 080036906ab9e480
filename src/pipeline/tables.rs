//! `[tables.NAME]`: questions in SQL that are asked after every run.

use std::path::{Path, PathBuf};

use super::Problem;
use super::file::{StageBlock, is_name};
use super::node::{Entry, Node, NodeValue, Table, unknown_keys, wrong_form};
use super::template::{Resolved, Scope};
use crate::query::{self, Form, TableQuestion};

/// The questions of a pipeline file, checked as far as that is possible before there are results.
pub(crate) fn questions(
    tables: &Table,
    stages: &[StageBlock],
    scope: &Scope<'_>,
    text: &str,
    problems: &mut Vec<Problem>,
) -> Vec<TableQuestion> {
    let stages: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let mut questions: Vec<TableQuestion> =
        tables.entries.iter().filter_map(|entry| parse(entry, scope, problems)).collect();
    let mut checked = query::check(&questions, &stages).into_iter();
    questions.retain(|question| match checked.next() {
        Some(Err(problem)) => {
            problems.push(question.located(problem, text));
            false
        }
        _ => true,
    });
    repeated_saves(&questions, problems);
    questions
}

fn parse(entry: &Entry, scope: &Scope<'_>, problems: &mut Vec<Problem>) -> Option<TableQuestion> {
    if !is_name(&entry.key) {
        let problem = Problem::new(format!("`{}` is not a name for a table", entry.key), &entry.key_span);
        problems.push(problem.help("names have letters, digits, `-` and `_`"));
    }
    let NodeValue::Table(table) = &entry.node.value else {
        problems.push(wrong_form("an entry of `tables`", "a table with the key `sql`", &entry.node));
        return None;
    };
    unknown_keys(table, &["sql", "save"], "keys of a table", problems);
    let Some(sql) = table.get("sql") else {
        let problem = Problem::new(format!("table `{}` asks nothing", entry.key), &entry.key_span);
        problems.push(problem.label("`sql` is missing").help("for example sql = \"SELECT * FROM cells\""));
        return None;
    };
    let Some(text) = sql.node.text() else {
        problems.push(wrong_form("`sql`", "text such as \"SELECT * FROM cells\"", &sql.node));
        return None;
    };
    let save = table.get("save");
    Some(TableQuestion {
        name: entry.key.clone(),
        sql: text.to_owned(),
        save: save.and_then(|entry| place(&entry.node, scope, problems)),
        span: sql.node.span.clone(),
        save_span: save.map_or(0..0, |entry| entry.node.span.clone()),
    })
}

fn place(node: &Node, scope: &Scope<'_>, problems: &mut Vec<Problem>) -> Option<PathBuf> {
    let Some(text) = node.text() else {
        problems.push(wrong_form("`save`", "a path such as \"out/summary.csv\"", node));
        return None;
    };
    let Resolved { value, base } = scope.resolve_text(node, text, problems);
    let path = scope.folders.resolve(Path::new(&super::matrix::show(&value)), base);
    if Form::of_path(&path).is_none() {
        let problem = Problem::new("the ending of this file stands for no form", &node.span);
        problems.push(problem.help("endings: .csv, .json, .parquet, .arrow, .txt"));
        return None;
    }
    Some(path)
}

fn repeated_saves(questions: &[TableQuestion], problems: &mut Vec<Problem>) {
    for (place, question) in questions.iter().enumerate() {
        let same = |other: &&TableQuestion| other.save.is_some() && other.save == question.save;
        if let Some(other) = questions[..place].iter().find(same) {
            let message = format!("tables `{}` and `{}` save to the same place", other.name, question.name);
            problems.push(Problem::new(message, &question.span).help("give each its own path"));
        }
    }
}
