//! The part of a text that a message shows.

use miette::SourceSpan;

/// Bytes shown on each side of a place: a host list can be one line of a million names.
const MARGIN: usize = 48;

/// A place in a text and what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Line, counted from one.
    pub(crate) line: usize,
    /// Column in characters, counted from one.
    pub(crate) column: usize,
    pub(crate) text: String,
    /// The place in `text`, in bytes.
    pub(crate) span: SourceSpan,
}

impl Excerpt {
    /// What stands around `start..end`, which are bytes of `text` on the bounds of characters.
    pub(crate) fn new(text: &str, start: usize, end: usize) -> Self {
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = end.clamp(start, line_end);
        let from = text.floor_char_boundary(start.saturating_sub(MARGIN)).max(line_start);
        let to = text.ceil_char_boundary((end.min(start + MARGIN) + MARGIN).min(line_end)).min(line_end);
        let cut = if from > line_start { "…" } else { "" };
        let rest = if to < line_end { "…" } else { "" };
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: format!("{cut}{}{rest}", &text[from..to]),
            span: (cut.len() + start - from, end.min(to) - start).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_is_shown_whole() {
        let excerpt = Excerpt::new("a\nbcd\ne", 3, 4);
        assert_eq!((excerpt.line, excerpt.column, excerpt.text.as_str()), (2, 2, "bcd"));
        assert_eq!(excerpt.span, (1, 1).into());
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = "é".repeat(1000);
        let excerpt = Excerpt::new(&text, 1000, 2000);
        assert_eq!(excerpt.column, 501);
        assert!(excerpt.text.len() < 200 && excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
        assert_eq!(&excerpt.text[excerpt.span.offset()..][..2], "é");
    }
}
