//! The text of an SVG.

use std::fmt::{Display, Write};

/// An SVG under construction: a heading, a line below it, and what is drawn.
pub(crate) struct Svg {
    title: String,
    body: String,
}

impl Svg {
    /// A picture with a title and a line below it.
    pub(crate) fn new(title: &str, subtitle: &str) -> Self {
        let mut svg = Self { title: title.to_owned(), body: String::new() };
        svg.text(0.0, 16.0, "t", title);
        svg.text(0.0, 36.0, "q", subtitle);
        svg
    }

    /// Text on the base line `y`; the class decides whether it begins, is centred or ends at `x`.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        if !text.is_empty() {
            let ([x, y], text) = ([x, y].map(Number), Escaped(text));
            self.add(format_args!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>"));
        }
    }

    /// Text turned by a quarter to the left.
    pub(crate) fn upright_text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let ([x, y], text) = ([x, y].map(Number), Escaped(text));
        let turn = format!("translate({x},{y})rotate(-90)");
        self.add(format_args!("<text transform=\"{turn}\" class=\"{class}\">{text}</text>"));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, class: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Number);
        self.add(format_args!("<path d=\"M{x1} {y1}L{x2} {y2}\" class=\"{class}\"/>"));
    }

    /// A rectangle with rounded corners.
    pub(crate) fn rectangle(&mut self, x: f64, y: f64, size: (f64, f64), radius: f64, class: &str) {
        let radius = if radius > 0.0 { format!(" rx=\"{}\"", Number(radius)) } else { String::new() };
        self.add(format_args!("<rect {}{radius} class=\"{class}\"/>", place(x, y, size)));
    }

    /// A disc.
    pub(crate) fn disc(&mut self, x: f64, y: f64, radius: f64, class: &str, opacity: f64) {
        let [x, y] = [x, y].map(Number);
        let look = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        self.add(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" class=\"{class}\"{look}/>"));
    }

    /// A rectangle of which only the border is seen.
    pub(crate) fn outline(&mut self, x: f64, y: f64, size: (f64, f64), class: &str) {
        let [x, y, width, height] = [x, y, size.0, size.1].map(Number);
        self.add(format_args!("<path d=\"M{x} {y}h{width}v{height}h-{width}z\" class=\"{class}\"/>"));
    }

    /// Opens a group with a tooltip.
    pub(crate) fn open_group(&mut self, class: &str, tooltip: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.add(format_args!("<g{class}><title>{}</title>", Escaped(tooltip)));
    }

    /// A group with a tooltip.
    pub(crate) fn group(&mut self, tooltip: &str, draw: impl FnOnce(&mut Self)) {
        self.open_group("", tooltip);
        draw(self);
        self.close_group();
    }

    /// Closes the innermost group.
    pub(crate) fn close_group(&mut self) {
        self.body.push_str("</g>");
    }

    /// Any other markup.
    pub(crate) fn add(&mut self, markup: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(self.body, "{markup}");
    }

    /// The whole text of a picture of this size.
    pub(crate) fn finish(self, width: f64, height: f64) -> String {
        // Room for glyphs that reach over the edge.
        const MARGIN: f64 = 4.0;
        let [edge, width, height] = [-MARGIN, width + 2.0 * MARGIN, height + 2.0 * MARGIN].map(Number);
        let (title, style, body) = (Escaped(&self.title), style(), &self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hopmap\" role=\"img\" viewBox=\"{edge} {edge} {width} {height}\" \
             width=\"{width}\" height=\"{height}\"><title>{title}</title><style>{style}</style>{body}</svg>\n"
        )
    }
}

/// Where a rectangle is, as markup.
pub(crate) fn place(x: f64, y: f64, (width, height): (f64, f64)) -> String {
    let [x, y, width, height] = [x, y, width, height].map(Number);
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

/// The course of a line.
#[derive(Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    /// A path that begins here.
    pub(crate) fn from(x: f64, y: f64) -> Self {
        let mut path = Self::default();
        path.add(format_args!("M{} {}", Number(x), Number(y)));
        path
    }

    /// A straight line to here.
    pub(crate) fn across_to(&mut self, x: f64) {
        self.add(format_args!("H{}", Number(x)));
    }

    /// A straight line up or down to here.
    pub(crate) fn down_to(&mut self, y: f64) {
        self.add(format_args!("V{}", Number(y)));
    }

    /// A straight line to here.
    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        self.add(format_args!("L{} {}", Number(x), Number(y)));
    }

    /// A straight line between two points.
    pub(crate) fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.add(format_args!("M{} {}", Number(x1), Number(y1)));
        self.line_to(x2, y2);
    }

    /// A curve to here, led by two points.
    pub(crate) fn curve_to(&mut self, first: (f64, f64), second: (f64, f64), end: (f64, f64)) {
        for (letter, point) in [("C", first), (" ", second), (" ", end)] {
            self.add(format_args!("{letter}{} {}", Number(point.0), Number(point.1)));
        }
    }

    fn add(&mut self, command: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(command);
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A coordinate with at most one decimal.
pub(crate) struct Number(pub(crate) f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = if self.0.is_finite() { libm::round(self.0 * 10.0) as i64 } else { 0 };
        if tenths < 0 {
            f.write_str("-")?;
        }
        match tenths.unsigned_abs() {
            whole if whole.is_multiple_of(10) => write!(f, "{}", whole / 10),
            other => write!(f, "{}.{}", other / 10, other % 10),
        }
    }
}

/// Text in which nothing is markup, and every character is one that XML 1.0 allows.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => f.write_str(" ")?,
                '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Text as HTML, without markup and control characters.
#[must_use]
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(|letter: char| letter.is_control(), " ")
}

/// Width of a text in 12 px type, about; rather too large than too small.
pub(crate) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '(' | ')'
        | '[' | ']' => 4.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 11.0,
        'A'..='Z' => 8.6,
        '\u{0}'..='\u{2fff}' => 7.2,
        _ => 12.5,
    };
    text.chars().map(width).sum()
}

/// The text, or its beginning and an ellipsis when it is wider than `width` in 12 px type.
pub(crate) fn shortened(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = text_width("…");
    for c in text.chars() {
        used += text_width(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        short.push(c);
    }
    short.trim_end().to_owned() + "…"
}

/// The text, or its beginning and its end around an ellipsis when it is wider than `width` in 12 px type.
pub(crate) fn shortened_inside(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    shortened(text, width * 0.55).trim_end_matches('…').to_owned() + &shortened_before(text, width * 0.45)
}

/// The text, or an ellipsis and its end when it is wider than `width` in 12 px type.
pub(crate) fn shortened_before(text: &str, width: f64) -> String {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    backwards(&shortened(&backwards(text), width))
}

/// Number of colours on the ramp for amounts.
pub(crate) const RAMP: usize = 12;

/// Number of colours for kinds.
pub(crate) const KINDS: usize = 7;

/// The style sheet of every view. All rules are confined to `svg.hopmap`, and equal in every view of a page. Colours are
/// plain values: rsvg-convert, `CairoSVG` and other renderers know neither variables nor media queries, and take the light ones, and
/// the size of the picture: `CairoSVG` draws nothing where the height is `auto`.
pub(crate) fn style() -> String {
    // Text, secondary text, thin lines, boxes: those of the pages.
    const LIGHT: [&str; 4] = ["#1c1e21", "#62676e", "#d9d9d4", "#f3f3f0"];
    const DARK: [&str; 4] = ["#e7e8ea", "#9aa0a8", "#363a40", "#202327"];
    // ColorBrewer YlGnBu, from pale to dark.
    const RAMP_LIGHT: [&str; RAMP] = [
        "#d6efb3", "#bae4b5", "#90d4b9", "#6ac5be", "#46b8c3", "#2fa3c2", "#1d8cbe", "#206fb0", "#2353a3",
        "#253b97", "#192a7b", "#081d58",
    ];
    // Viridis without its darkest end, from dark to bright.
    const RAMP_DARK: [&str; RAMP] = [
        "#472a79", "#414487", "#375a8c", "#2e6e8e", "#26828d", "#21968a", "#22a884", "#3dba74", "#64ca5d",
        "#95d740", "#cae126", "#fde725",
    ];
    // Okabe and Ito 2008; on dark ground blue and sky blue change places, and yellow is left out.
    const KINDS_LIGHT: [&str; KINDS] =
        ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a"];
    const KINDS_DARK: [&str; KINDS] =
        ["#56b4e9", "#ff8c42", "#2fc49a", "#e39bc2", "#f0b429", "#3a8fd0", "#a0a0a0"];
    let (light, dark) = (colours(LIGHT, &RAMP_LIGHT, &KINDS_LIGHT), colours(DARK, &RAMP_DARK, &KINDS_DARK));
    format!(
        "svg.hopmap{{color-scheme:light dark;\
         font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;font-size:12px}}\
         .hopmap text{{font-variant-numeric:tabular-nums}}.hopmap .t{{font-size:15px;font-weight:600}}\
         .hopmap .n{{font-size:11px}}.hopmap .w{{font-weight:600}}\
         .hopmap .m{{text-anchor:middle}}.hopmap .e{{text-anchor:end}}.hopmap .l,.hopmap .a,.hopmap .i{{fill:none}}\
         .hopmap .c{{fill:none;shape-rendering:crispEdges;stroke-width:1}}.hopmap .g{{fill:none;stroke-width:2;\
         stroke-linejoin:round;stroke-linecap:round}}{light}\
         @media all{{svg.hopmap{{max-width:100%;height:auto}}}}@media(prefers-color-scheme:dark){{{dark}}}"
    )
}

/// The rules that colour the classes.
fn colours([ink, soft, rule, panel]: [&str; 4], ramp: &[&str], kinds: &[&str]) -> String {
    let mut rules = format!(
        ".hopmap text{{fill:{ink}}}.hopmap .q{{fill:{soft}}}.hopmap .i{{stroke:{ink}}}.hopmap .l{{stroke:{rule}}}\
         .hopmap .a{{stroke:{soft}}}.hopmap .b{{fill:{panel};stroke:{rule}}}"
    );
    for (names, colours) in [("", ramp), ("k", kinds)] {
        for (index, colour) in colours.iter().enumerate() {
            rules += &format!(
                ".hopmap .f{names}{index}{{fill:{colour}}}.hopmap .s{names}{index}{{stroke:{colour}}}"
            );
        }
    }
    rules
}

/// Index on the ramp of a share between 0 and 1.
pub(crate) fn ramp_index(share: f64) -> usize {
    ((share * RAMP as f64) as usize).min(RAMP - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_at_most_one_decimal() {
        let text = |value: f64| Number(value).to_string();
        assert_eq!([1.0, 1.25, -0.04, -2.5, f64::NAN].map(text), ["1", "1.3", "0", "-2.5", "0"]);
    }

    #[test]
    fn markup_and_forbidden_characters_are_escaped() {
        assert_eq!(
            Escaped("<a href=\"x\">&'\u{0}\u{b}\n").to_string(),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}\u{fffd} "
        );
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(shortened("abc", 100.0), "abc");
        let short = shortened(&"n".repeat(100), 80.0);
        assert!(short.ends_with('…') && text_width(&short) <= 80.0);
        assert_eq!(shortened("abc", 0.0), "…");
        assert_eq!(shortened_inside("placement[mapper=annealing,seed=1]", 180.0), "placement[ma…ing,seed=1]");
    }
}
