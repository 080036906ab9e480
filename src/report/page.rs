//! An HTML page that is put together piece by piece and never grows beyond a size, and its stamp: what it is about, for programs.

use std::fmt;
use std::fmt::Write;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use hopmap_artifact::{Codec, Folder};
use serde_json::json;

use crate::engine::{OutputRecord, PipelineId, RunReport, Settled, Store};
use crate::pipeline::{Cell, Origin, Pipeline};

/// What a report is about: a pipeline, and what became of its cells.
#[derive(Clone, Copy)]
pub(crate) struct Results<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) store: &'a Store,
    pub(crate) report: &'a RunReport,
}

impl<'a> Results<'a> {
    pub(crate) fn cells(self) -> impl ExactSizeIterator<Item = (&'a Cell, &'a Settled)> {
        self.pipeline.cells.iter().zip(&self.report.cells)
    }

    pub(crate) fn read<C: Codec>(self, record: &OutputRecord) -> Option<C> {
        Folder::read::<C>(&self.store.artifact(&record.digest)).ok()
    }

    /// The output of a cell that is of a kind.
    pub(crate) fn own<C: Codec>(self, cell: usize) -> Option<Arc<C>> {
        let mut outputs = self.report.cells[cell].outputs.values();
        self.read(outputs.find(|record| record.kind == C::KIND)?).map(Arc::new)
    }

    /// The cells with an output of a kind that can be read.
    pub(crate) fn all<C: Codec>(self) -> impl Iterator<Item = (&'a Cell, Arc<C>)> {
        let cells = self.pipeline.cells.iter().enumerate();
        cells.filter_map(move |(index, cell)| Some((cell, self.own(index)?)))
    }

    /// The input of a cell that is of a kind.
    pub(crate) fn needed<C: Codec>(self, cell: &Cell) -> Option<Arc<C>> {
        let need = cell.needs.iter().find(|need| need.port.kind == C::KIND)?;
        match need.origins.first()? {
            Origin::Cell { cell, .. } => self.own(*cell),
            Origin::Best { .. } => None,
        }
    }
}

/// A report never grows beyond this, whatever it is about.
pub(super) const MOST_BYTES: usize = 5_000_000;

/// Room kept for the frame of the page and for saying what was left out.
const FRAME: usize = 20_000;

/// A page under construction.
pub(crate) struct Page {
    body: String,
    most_bytes: usize,
    left_out: usize,
    is_sortable: bool,
}

/// A field of a table that can be sorted.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    html: String,
    value: Option<f64>,
}

impl Field {
    /// Text, escaped already.
    pub(crate) fn text(html: String) -> Self {
        Self { html, value: None }
    }

    /// A number and how it is written.
    pub(crate) fn number(value: f64, html: String) -> Self {
        Self { html, value: Some(value) }
    }
}

impl Page {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { body: String::new(), most_bytes: most_bytes - FRAME, left_out: 0, is_sortable: false }
    }

    /// Adds HTML, unless the page would grow too large.
    pub(crate) fn add(&mut self, html: &str) -> bool {
        if self.body.len() + html.len() > self.most_bytes {
            self.left_out += 1;
            return false;
        }
        self.body.push_str(html);
        true
    }

    /// Adds a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.add(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// Adds a heading for a cell, with its kind.
    pub(crate) fn cell_heading(&mut self, cell: &Cell) {
        self.add(&format!("<h3>{} <code>{}</code></h3>\n", escape(&cell.id), escape(cell.entry.kind)));
    }

    /// Adds a remark, which is HTML.
    pub(crate) fn note(&mut self, html: &str) {
        self.add(&format!("<p class=\"note\">{html}</p>\n"));
    }

    /// Adds a picture with a line below it.
    pub(crate) fn figure(&mut self, svg: &str, caption: &str) {
        let caption = if caption.is_empty() {
            String::new()
        } else {
            format!("<figcaption>{}</figcaption>", escape(caption))
        };
        self.add(&format!("<figure>{svg}{caption}</figure>\n"));
    }

    /// Adds a table; rows are escaped already.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
        for name in head {
            // Writing to a string cannot fail.
            let _ = write!(html, "<th>{}</th>", escape(name));
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in rows {
            html.push_str("<tr>");
            for cell in row {
                let class = if is_number(cell) { " class=\"number\"" } else { "" };
                let _ = write!(html, "<td{class}>{cell}</td>");
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        self.add(&html);
    }

    /// Adds the first rows of a table, and how many there are; rows are escaped already. Names of columns are apart by ` | `.
    pub(crate) fn first_rows(
        &mut self,
        head: &str,
        rows: impl ExactSizeIterator<Item = Vec<String>>,
        most: usize,
    ) {
        let all = rows.len();
        self.table(&head.split(" | ").collect::<Vec<_>>(), &rows.take(most).collect::<Vec<_>>());
        if all > most {
            self.note(&format!("{most} of {all} are shown."));
        }
    }

    /// Adds a table whose rows a click on a head sorts; without scripts it stays as it is.
    pub(crate) fn sortable(&mut self, head: &[&str], rows: &[Vec<Field>]) {
        self.is_sortable = true;
        let mut html = String::from("<div class=\"wide\"><table class=\"sortable\"><thead><tr>");
        let is_number =
            |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|field| field.value.is_some()));
        for (column, name) in head.iter().enumerate() {
            let class = if is_number(column) { " class=\"number\"" } else { "" };
            let _ = write!(html, "<th{class}>{}</th>", escape(name));
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in rows {
            html.push_str("<tr>");
            for field in row {
                let _ = match field.value {
                    Some(value) if value.is_finite() => {
                        write!(html, "<td class=\"number\" data-value=\"{value}\">{}</td>", field.html)
                    }
                    Some(_) => write!(html, "<td class=\"number\">{}</td>", field.html),
                    None => write!(html, "<td>{}</td>", field.html),
                };
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        self.add(&html);
    }

    /// The whole page. `stamp` says for programs what it is about.
    pub(crate) fn finish(self, title: &str, stamp: &str) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!(
                "<p class=\"note\">{count} parts were left out to keep this page small; <code>hopmap show</code> has them all.</p>\n"
            ),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{stamp}\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} – hopmap</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}{left_out}\
             <footer>hopmap {version}</footer>\n</main>\n{script}</body>\n</html>\n",
            title = escape(title),
            body = self.body,
            script = if self.is_sortable { SORT } else { "" },
            version = env!("CARGO_PKG_VERSION"),
        )
    }
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
        && cell
            .trim_end_matches(" s")
            .chars()
            .all(|letter| letter.is_ascii_digit() || ".-+e ×".contains(letter))
}

/// Text as HTML shows it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const SORT: &str = concat!("<script>\n", include_str!("sort.js"), "</script>\n");
const STYLE: &str = include_str!("report.css");

const BEGIN: &str = "<meta name=\"hopmap\" content=\"";

/// What a report is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Digits of the pipeline.
    pub(super) pipeline: String,
    /// BLAKE3 of its results, verdicts and answers.
    results: String,
}

impl Stamp {
    /// Whether a cell ran or was up to date makes no other report.
    pub(super) fn of(results: Results<'_>) -> Self {
        let Results { pipeline, store, report } = results;
        let cells = results.cells().map(|(cell, settled)| {
            let digests: Vec<&str> = settled.outputs.values().map(|output| output.digest.as_str()).collect();
            json!([cell.id, settled.key, settled.is_usable(), digests])
        });
        let results = json!([cells.collect::<Vec<_>>(), report.gates, report.tables]).to_string();
        Self {
            pipeline: PipelineId::of(pipeline, store.root()).digits(),
            results: blake3::hash(results.as_bytes()).to_hex().to_string(),
        }
    }

    /// The stamp of a report; none if there is no report, or one of an older version.
    pub(super) fn read(place: &Path) -> Option<Self> {
        let mut head = Vec::new();
        File::open(place).ok()?.take(1024).read_to_end(&mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let (stamp, _) = head.split_once(BEGIN)?.1.split_once('"')?;
        let (pipeline, results) = stamp.split_once(' ')?;
        Some(Self { pipeline: pipeline.to_owned(), results: results.to_owned() })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BEGIN}{} {}\">", self.pipeline, self.results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_never_grows_beyond_its_size_and_says_what_is_missing() {
        let mut page = Page::new(100_000);
        for _ in 0..100 {
            page.add(&"x".repeat(10_000));
        }
        let html = page.finish("a <b>", "");
        assert!(html.len() <= 100_000);
        assert!(html.contains("parts were left out"));
        assert!(html.contains("<title>a &lt;b&gt; – hopmap</title>"));
    }
}
