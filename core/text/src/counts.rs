//! Counts with their nouns.

/// A count and its noun in singular or plural: `1 host`, `2 hosts`, `3 switches`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    match noun.ends_with("ch") {
        _ if count == 1 => format!("1 {noun}"),
        true => format!("{count} {noun}es"),
        false => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_the_number_of_their_count() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "host")), ["0 hosts", "1 host", "2 hosts"]);
        assert_eq!(counted(2, "switch"), "2 switches");
    }
}
