//! An HTML page of limited size that is built piece by piece, and its stamp, which identifies the results it shows.

use std::fmt::{self, Write};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use hopmap_artifact::{Codec, Folder};
use hopmap_objective::{EVALUATIONS, METRICS};
use serde_json::json;

use crate::engine::{OutputRecord, PipelineId, RunReport, Settled, Store};
use crate::pipeline::{Cell, Origin, Pipeline};
use crate::selector::Extreme;
use crate::verdict;

/// What a report is about: a pipeline and the outcomes of its cells.
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

    /// The outputs of a kind with their cells.
    pub(crate) fn outputs(self, kind: &'static str) -> impl Iterator<Item = (usize, &'a OutputRecord)> {
        let output = move |(index, settled): (usize, &'a Settled)| {
            Some((index, settled.outputs.values().find(|record| record.kind == kind)?))
        };
        self.report.cells.iter().enumerate().filter_map(output)
    }

    /// The input of a cell that is of a kind.
    pub(crate) fn needed<C: Codec>(self, cell: &Cell) -> Option<Arc<C>> {
        self.own(self.source(cell, C::KIND)?)
    }

    /// The cell that the input of a cell of some kind comes from.
    pub(crate) fn source(self, cell: &Cell, kind: &str) -> Option<usize> {
        let need = cell.needs.iter().find(|need| need.port.kind == kind)?;
        let (cells, output, metric, extreme) = match need.origins.first()? {
            Origin::Cell { cell, .. } => return Some(*cell),
            Origin::Best { cells, output, metric, extreme, .. } => (cells, *output, metric, *extreme),
        };
        let value = |&cell: &usize| {
            let value = *self.report.cells[cell].outputs.get(output)?.metrics.get(metric)?;
            Some((cell, if extreme == Extreme::Max { -value } else { value }))
        };
        let best = cells.iter().filter_map(value).min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(cell, _)| cell)
    }
}

/// Size limit of a report.
pub(super) const MOST_BYTES: usize = 5_000_000;

/// Space reserved for the frame of the page and the note on what was left out.
const FRAME: usize = 20_000;

/// A page under construction.
pub(crate) struct Page {
    body: String,
    most_bytes: usize,
    left_out: usize,
    is_sortable: bool,
    /// Metrics that the page has explained.
    explained: Vec<&'static str>,
}

/// A field of a table that can be sorted.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    html: String,
    value: Option<f64>,
    is_best: bool,
}

impl Field {
    /// Text, or a number if it is one.
    pub(crate) fn new(text: &str) -> Self {
        match parse_number(text) {
            Some(value) => Self::number(value),
            None => Self { html: escape(text), value: None, is_best: false },
        }
    }

    /// A number.
    pub(crate) fn number(value: f64) -> Self {
        Self { html: number(value), value: Some(value), is_best: false }
    }

    /// Prints the field in bold.
    pub(crate) fn best(self, is_best: bool) -> Self {
        Self { is_best, ..self }
    }
}

impl Page {
    pub(crate) fn new(most_bytes: usize) -> Self {
        let most_bytes = most_bytes - FRAME;
        Self { body: String::new(), most_bytes, left_out: 0, is_sortable: false, explained: Vec::new() }
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

    /// Adds a heading that ends in the name of a cell.
    pub(crate) fn heading_of(&mut self, text: &str, cell: &Cell) {
        self.add(&format!("<h2>{}{}</h2>\n", escape(text), cell_name(cell)));
    }

    /// Adds a heading, which is HTML, unless it is the one above it.
    pub(crate) fn heading_below(&mut self, html: &str) {
        let above = self.body.trim_end().strip_suffix("</h2>").and_then(|body| body.rsplit_once("<h2>"));
        if above.is_none_or(|(_, above)| !above.eq_ignore_ascii_case(html)) {
            self.add(&format!("<h3>{html}</h3>\n"));
        }
    }

    /// Adds a heading for a cell, with its kind.
    pub(crate) fn cell_heading(&mut self, cell: &Cell) {
        self.add(&format!("<h3>{} <code>{}</code></h3>\n", cell_name(cell), escape(cell.entry.kind)));
    }

    /// Adds a remark, which is HTML.
    pub(crate) fn note(&mut self, html: &str) {
        self.add(&format!("<p class=\"note\">{html}</p>\n"));
    }

    /// Explains those of some metrics that the page has not explained yet.
    pub(crate) fn explain<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let names: Vec<&str> = names.into_iter().collect();
        let is_new = |name: &str| names.contains(&name) && !self.explained.contains(&name);
        let new: Vec<_> =
            METRICS.into_iter().chain([EVALUATIONS]).filter(|metric| is_new(metric.name)).collect();
        let mut html = String::new();
        for metric in &new {
            let sentence = metric.explanation.split_inclusive(". ").next().unwrap_or_default().trim_end();
            // Writing to a string cannot fail.
            let _ = write!(html, "<dt>{}</dt><dd>{} In {}.</dd>", metric.name, prose(sentence), metric.unit);
        }
        if !new.is_empty() {
            self.add(&format!("<dl class=\"metrics\">{html}</dl>\n"));
        }
        self.explained.extend(new.iter().map(|metric| metric.name));
    }

    /// Adds a picture with a line below it.
    pub(crate) fn figure(&mut self, svg: &str, caption: &str) {
        let caption = if caption.is_empty() {
            String::new()
        } else {
            format!("<figcaption>{}</figcaption>", prose(caption))
        };
        self.add(&format!("<figure>{svg}{caption}</figure>\n"));
    }

    /// Adds a table without its empty columns; rows are escaped already.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let has_content = |row: &Vec<String>, column: usize| !matches!(row[column].as_str(), "" | "–");
        let is_shown = |column: &usize| rows.iter().any(|row| has_content(row, *column));
        let columns: Vec<usize> = (0..head.len()).filter(is_shown).collect();
        let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
        for &column in &columns {
            // Writing to a string cannot fail.
            let _ = write!(html, "<th>{}</th>", escape(head[column]));
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in rows {
            html.push_str("<tr>");
            for cell in columns.iter().map(|&column| &row[column]) {
                let class = if is_number(cell) { " class=\"number\"" } else { "" };
                let _ = write!(html, "<td{class}>{cell}</td>");
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        self.add(&html);
    }

    /// Adds the first rows of a table, and the number of rows if there are more. Rows are escaped already; ` | ` separates the names
    /// of columns.
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

    /// Adds a table that a click on a column header sorts, where the browser runs scripts.
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
                let best = if field.is_best { " best" } else { "" };
                let _ = match field.value {
                    Some(value) if value.is_finite() => {
                        write!(html, "<td class=\"number{best}\" data-value=\"{value}\">{}</td>", field.html)
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

    /// The whole page. `stamp` identifies the results for programs.
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
            .all(|letter| letter.is_ascii_digit() || ",.-+e ×".contains(letter))
}

/// A number in the one format of reports: six significant digits, integers in full, thousands apart.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { verdict::number(value) } else { "–".to_owned() }
}

/// The number that a text is; none of identifiers such as `007`.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches('-');
    let is_plain = digits.starts_with(|letter: char| letter.is_ascii_digit())
        && !(digits.starts_with('0') && digits[1..].starts_with(|letter: char| letter.is_ascii_digit()));
    text.parse().ok().filter(|value: &f64| is_plain && value.is_finite())
}

/// Text with the markup characters of HTML escaped.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as HTML: what is between backticks is code.
pub(crate) fn prose(text: &str) -> String {
    let text = escape(text);
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::new();
    for (index, part) in parts.iter().enumerate() {
        let is_closed = index + 1 < parts.len();
        match (index % 2 == 1, is_closed) {
            (true, true) => html.push_str(&format!("<code>{part}</code>")),
            // A single backtick is one.
            (true, false) => html.push_str(&format!("`{part}")),
            (false, _) => html.push_str(part),
        }
    }
    html
}

/// The short name of a cell as HTML; its tooltip is the full one.
pub(crate) fn cell_name(cell: &Cell) -> String {
    titled(&escape(&cell.name), if cell.name == cell.id { "" } else { &cell.id })
}

/// The values by which the name of the cell differs from those of others.
pub(crate) fn values_of(cell: &Cell) -> String {
    let keys = cell.name.split_once('[').map_or("", |(_, keys)| keys.trim_end_matches(']'));
    let values = keys.split(',').map(|key| key.split_once('=').map_or(key, |(_, value)| value));
    values.collect::<Vec<_>>().join(" ")
}

/// HTML with a tooltip, unless that is empty.
pub(crate) fn titled(html: &str, title: &str) -> String {
    match title {
        "" => html.to_owned(),
        title => format!("<span title=\"{}\">{html}</span>", escape(title)),
    }
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
    /// Digits of the parameters that were given; none in reports of older versions.
    pub(super) parameters: String,
}

impl Stamp {
    /// The same whether a cell ran or was up to date.
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
            parameters: Self::parameters_of(pipeline),
        }
    }

    /// Eight digits that distinguish parameters of the command line.
    pub(super) fn parameters_of(pipeline: &Pipeline) -> String {
        let parameters = json!(pipeline.given().collect::<Vec<_>>()).to_string();
        blake3::hash(parameters.as_bytes()).to_hex()[..8].to_owned()
    }

    /// Whether it is known that other parameters were given.
    pub(super) fn has_others(&self, pipeline: &Pipeline) -> bool {
        !self.parameters.is_empty() && self.parameters != Self::parameters_of(pipeline)
    }

    /// The stamp of a report; none if there is no report, or one of an older version.
    pub(super) fn read(place: &Path) -> Option<Self> {
        let mut head = Vec::new();
        File::open(place).ok()?.take(1024).read_to_end(&mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let (stamp, _) = head.split_once(BEGIN)?.1.split_once('"')?;
        let mut words = stamp.split(' ').map(str::to_owned);
        let (pipeline, results) = (words.next()?, words.next()?);
        Some(Self { pipeline, results, parameters: words.next().unwrap_or_default() })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BEGIN}{} {} {}\">", self.pipeline, self.results, self.parameters)
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

    #[test]
    fn a_metric_is_explained_once() {
        let mut page = Page::new(100_000);
        page.explain(["F", "seconds", "dilation_max"]);
        page.explain(["F", "T"]);
        let html = page.finish("p", "");
        for name in ["F", "T", "dilation_max"] {
            assert_eq!(html.matches(&format!("<dt>{name}</dt><dd>")).count(), 1, "{name}: {html}");
        }
        assert!(!html.contains("<dt>seconds</dt>") && !html.contains("<dt>hop_bytes</dt>"));
    }

    /// Once "Quality" was above "quality".
    #[test]
    fn a_heading_is_not_repeated_below_itself() {
        let mut page = Page::new(100_000);
        page.heading("Quality");
        ["quality", "other"].into_iter().for_each(|name| page.heading_below(name));
        assert!(page.finish("p", "").contains("<h2>Quality</h2>\n<h3>other</h3>"));
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let mut page = Page::new(100_000);
        let rows = [["a", "–", ""], ["b", "–", "1"]].map(|row| row.map(str::to_owned).to_vec());
        page.first_rows("name | none | some", rows.into_iter(), 9);
        assert!(page.finish("p", "").contains("<tr><th>name</th><th>some</th></tr>"));
    }

    /// Once captions, warnings and errors showed their backticks.
    #[test]
    fn what_is_between_backticks_is_code() {
        let html = ["`a<b` and `c`", "no code", "a ` alone", "`a` and ` alone"].map(prose);
        assert_eq!(
            html,
            ["<code>a&lt;b</code> and <code>c</code>", "no code", "a ` alone", "<code>a</code> and ` alone"]
        );
    }

    #[test]
    fn numbers_have_one_format_and_identifiers_stay_text() {
        let written = ["6126182400.0", "7.629e8", "0.25", "007", "-3", "nan", "a", ""]
            .map(|text| Field::new(text).html);
        assert_eq!(written, ["6,126,182,400", "762,900,000", "0.25", "007", "-3", "nan", "a", ""]);
        assert_eq!(number(f64::NAN), "–");
    }
}
