//! What the generated pages are made of: text by path, and the parts of a page in Markdown.

use std::collections::BTreeMap;

/// Text by path below the folder.
pub(super) type Pages = BTreeMap<String, String>;

/// The head of a page: its title, a mark for readers of the source, and a paragraph.
pub(super) fn head(title: &str, introduction: &str) -> String {
    format!("# {title}\n\n{MARK}\n\n{introduction}\n")
}

/// The mark of a generated page.
const MARK: &str =
    "<!-- Generated: `hopmap docs docs/reference` writes this page. Change the sources instead. -->";

/// A table in Markdown, with an empty line before it.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut text = format!("\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// Text in one line, with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.ends_with(['.', ':', '?', '!']) || line.is_empty() {
        true => line,
        false => line + ".",
    }
}

/// The anchor of a heading, as `GitHub` and `mdBook` make it.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_markdown() {
        assert_eq!(anchor("trace/otf2"), "traceotf2");
        assert_eq!(anchor("hopmap topology refresh"), "hopmap-topology-refresh");
        assert_eq!(sentence("Rows\n  and columns"), "Rows and columns.");
        assert_eq!(sentence("As it is."), "As it is.");
        let row = ["a|b".to_owned(), "c".to_owned()];
        assert_eq!(table(["x", "y"], [row]), "\n| x | y |\n|---|---|\n| a\\|b | c |\n");
    }
}
