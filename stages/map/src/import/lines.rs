//! The lines of a placement in which something stands.

use super::PlacementFault;

/// Most characters of a word that are quoted.
const QUOTED: usize = 40;

/// Lines with their numbers. Comments, behind `#` or on lines that begin with `%`, and empty lines are left out.
#[derive(Debug, Clone)]
pub(super) struct Lines<'t> {
    lines: std::iter::Enumerate<std::str::Split<'t, char>>,
}

/// A line and its number, from one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) number: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { lines: text.split('\n').enumerate() }
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        self.lines.find_map(|(index, line)| {
            let text = line.split('#').next().unwrap_or_default().trim();
            let is_empty = text.is_empty() || text.starts_with('%');
            (!is_empty).then_some(Line { text, number: index + 1 })
        })
    }
}

impl<'t> Line<'t> {
    pub(super) fn words(self) -> impl Iterator<Item = &'t str> {
        self.text.split_whitespace()
    }

    #[cold]
    pub(super) fn fault(self, what: impl Into<String>, hint: &'static str) -> PlacementFault {
        PlacementFault::new(self.number, what, hint)
    }

    /// A number below a bound. `what` says what has it, such as `rank 3 is on PE`.
    pub(super) fn below(
        self,
        word: &str,
        bound: usize,
        what: impl Fn() -> String,
        hint: &'static str,
    ) -> Result<usize, PlacementFault> {
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse::<usize>().ok().filter(|&number| digits && number < bound);
        number.ok_or_else(|| {
            let range = match bound {
                0 => "there are none".to_owned(),
                bound => format!("numbers go from 0 to {}", bound - 1),
            };
            self.fault(format!("{} `{}`, and {range}", what(), quoted(word)), hint)
        })
    }
}

/// The beginning of a word, as messages show it.
pub(super) fn quoted(word: &str) -> String {
    let mut text: String = word.chars().take(QUOTED).flat_map(char::escape_debug).collect();
    if word.chars().nth(QUOTED).is_some() {
        text.push('…');
    }
    text
}

/// Whether a word is a whole number, of any size and sign.
pub(super) fn is_whole(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
