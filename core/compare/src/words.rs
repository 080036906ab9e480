//! Lists and relative changes as people read them.

/// Items of a list that are shown to people.
pub const MOST_SHOWN: usize = 10;

/// A line for what a list leaves out.
#[must_use]
pub fn more(all: u64, shown: usize) -> Option<String> {
    let left = all.saturating_sub(shown as u64);
    (left > 0).then(|| format!("  … and {left} more"))
}

/// A relative change: `+12.3 %`.
#[must_use]
pub fn percent(relative: f64) -> String {
    let percent = 100.0 * relative;
    match percent.abs() {
        size if size >= 0.1 || size == 0.0 => format!("{percent:+.1} %"),
        // Two digits that count.
        size if size >= 1e-6 => format!("{percent:+.*} %", (1.0 - size.log10().floor()) as usize),
        _ => format!("{percent:+.1e} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_have_two_digits() {
        let shown = [0.5, -0.001, -0.000_999, 0.000_012_3, 1e-9, 0.0].map(percent);
        assert_eq!(shown, ["+50.0 %", "-0.1 %", "-0.100 %", "+0.0012 %", "+1.0e-7 %", "+0.0 %"]);
    }
}
