//! Answers to the questions of the pipeline.

use super::page::{Field, Page, escape};
use crate::engine::RunReport;

/// Every `[tables.NAME]` as a table.
pub(crate) fn tables(page: &mut Page, report: &RunReport) {
    if report.tables.is_empty() {
        return;
    }
    page.heading("Tables");
    for table in &report.tables {
        page.add(&format!("<h3>{}</h3>\n", escape(&table.name)));
        let head: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let rows: Vec<Vec<Field>> =
            table.rows.iter().map(|row| row.iter().map(|text| field(text)).collect()).collect();
        page.sortable(&head, &rows);
        if table.rows.len() < table.all_rows {
            page.add(&format!(
                "<p class=\"note\">{} of {} rows are shown.</p>\n",
                table.rows.len(),
                table.all_rows
            ));
        }
    }
}

fn field(text: &str) -> Field {
    text.parse().map_or_else(|_| Field::text(escape(text)), |value| Field::number(value, escape(text)))
}
