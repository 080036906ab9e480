//! Names and texts as messages show them.

/// How much of a text a message shows, in characters.
const SHOWN: usize = 40;

/// Similarity from which a name may be the one that was meant.
const ALIKE: f64 = 0.75;

/// The known name most like a wrong one (Jaro-Winkler, in either case), if any is like it at all.
#[must_use]
pub fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&wrong, &name.to_lowercase());
    let alike = known.iter().map(|name| (*name, likeness(name))).filter(|(_, likeness)| *likeness > ALIKE);
    alike.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// The beginning of a text, as a message shows it: on one line, and without what a terminal would obey.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (count, letter) in text.chars().enumerate() {
        match letter {
            _ if count == SHOWN => {
                shown.push('…');
                break;
            }
            letter if letter.is_control() => shown.extend(letter.escape_debug()),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_found() {
        let known = ["annealing", "greedy", "Tabu"];
        assert_eq!(closest("anealing", &known), Some("annealing"));
        assert_eq!(closest("tabu", &known), Some("Tabu"));
        assert_eq!(closest("xyz", &known), None);
    }

    #[test]
    fn texts_are_shown_short_and_harmless() {
        assert_eq!(shown("a\"b\u{1b}[1m\n"), "a\"b\\u{1b}[1m\\n");
        assert_eq!(shown(&"é".repeat(40)), "é".repeat(40));
        assert_eq!(shown(&"é".repeat(41)), "é".repeat(40) + "…");
    }
}
